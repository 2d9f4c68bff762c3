sock_sources = %D%/sock.h %D%/sock.c %D%/sock_crowd.h %D%/sock_crowd.c %D%/sock_exception.c %D%/sock_kinds.h %D%/sock_kinds.c \
	%D%/sock_options.def %D%/sock_options.h %D%/sock_options.c \
	%D%/sock_setsockopt.c %D%/sock_wait.h %D%/sock_wait.c %D%/tx_control.h %D%/tx_control.c %D%/user_msg.h %D%/user_msg.c \
	%D%/udp/port_row.h %D%/udp/port_row.c %D%/udp/udp.h %D%/udp/udp_priv.h %D%/udp/udp.c \
	%D%/udp/udp_cut.h %D%/udp/udp_cut.c %D%/udp/udp_way.h \
	%D%/udp/udp_heir.c %D%/udp/udp_options.c %D%/udp/udp_ports.c \
	%D%/udp/udp_rx.c %D%/udp/udp_tx.c

noinst_LTLIBRARIES += %D%/libsock.la %D%/libsock-debug.la
%C%_libsock_la_SOURCES = $(sock_sources)
%C%_libsock_la_CFLAGS = $(release_cflags)
%C%_libsock_debug_la_SOURCES = $(sock_sources)
%C%_libsock_debug_la_CFLAGS = $(debug_cflags)

# TCP's way back. No socket uses it yet, so that the library does not have it.
noinst_LTLIBRARIES += %D%/libsock-tcp-debug.la
%C%_libsock_tcp_debug_la_SOURCES = %D%/tcp/tcp_twin.h %D%/tcp/tcp_twin.c \
	%D%/tcp/tcp_way_back.h %D%/tcp/tcp_way_back.c
%C%_libsock_tcp_debug_la_CFLAGS = $(debug_cflags)
