ip_test_libs = tests/support/libtest.la src/ip/libip-debug.la \
	src/pkt/libpkt-debug.la src/base/libbase-debug.la

unit_programs += %D%/ip_frag %D%/ip_icmp
%C%_ip_frag_LDADD = $(ip_test_libs)
%C%_ip_icmp_LDADD = $(ip_test_libs)
