sock_test_libs = tests/support/libtest.a src/sock/libsock-debug.a src/tcp/libtcp-debug.a \
	src/fd/libfd-debug.a src/os/libos-debug.a src/base/libbase-debug.a

unit_programs += %D%/crowd %D%/kin %D%/sock %D%/port_row %D%/sock_options %D%/sock_pace %D%/sock_wait %D%/tx_control %D%/tx_followed %D%/tx_stamps \
	%D%/tcp/tcp_engine %D%/tcp/tcp_way %D%/tcp/tsock_leave %D%/udp/udp_cut %D%/udp/udp_rx %D%/udp/udp_way
# On a network, as the tests of net.
%C%_sock_SOURCES = %D%/sock.c $(nic_sources)
%C%_sock_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a src/dev/fake/libfake-debug.a \
	$(net_unit_libs)
%C%_crowd_LDADD = $(sock_test_libs)
%C%_kin_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_sock_options_LDADD = $(sock_test_libs)
%C%_sock_pace_LDADD = $(sock_test_libs)
%C%_sock_wait_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_tcp_tcp_engine_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a src/dev/fake/libfake-debug.a \
	$(net_unit_libs)
%C%_tcp_tcp_way_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_tcp_tsock_leave_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_tx_control_LDADD = $(sock_test_libs)
%C%_tx_followed_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_tx_stamps_LDADD = src/sock/libsock-debug.a src/pkt/libpkt-debug.a $(sock_test_libs)
%C%_port_row_LDADD = $(sock_test_libs)
%C%_udp_udp_cut_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a src/dev/fake/libfake-debug.a \
	$(net_unit_libs)
%C%_udp_udp_rx_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
%C%_udp_udp_way_LDADD = $(net_unit_libs)
