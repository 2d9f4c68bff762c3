tcp_test_libs = tests/support/libtest.a src/tcp/libtcp-debug.a \
	src/event/libevent-debug.a src/pkt/libpkt-debug.a \
	src/base/libbase-debug.a

unit_programs += %D%/tcp_options
%C%_tcp_options_LDADD = $(tcp_test_libs)

unit_programs += %D%/tcp_peers
%C%_tcp_peers_LDADD = $(tcp_test_libs)

unit_programs += %D%/tcp_hystart
%C%_tcp_hystart_LDADD = $(tcp_test_libs)

unit_programs += %D%/tcp_bbr
%C%_tcp_bbr_LDADD = $(tcp_test_libs)

unit_programs += %D%/tcp_cc_bbr
%C%_tcp_cc_bbr_LDADD = $(tcp_test_libs)
