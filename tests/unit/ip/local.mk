ip_test_libs = tests/support/libtest.a src/ip/libip-debug.a \
	src/pkt/libpkt-debug.a src/base/libbase-debug.a

unit_programs += %D%/ip_frag %D%/ip_icmp
%C%_ip_frag_LDADD = $(ip_test_libs)
%C%_ip_icmp_LDADD = $(ip_test_libs)
