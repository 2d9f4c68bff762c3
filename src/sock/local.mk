sock_sources = %D%/fd_flight.h %D%/fd_flight.c %D%/fd_internal.h %D%/fd_internal.c %D%/fd_ops.h \
	%D%/fd_ops.c %D%/fd_quick.h %D%/fd_quick.c %D%/fd_pool.h %D%/fd_pool.c %D%/fd_table.h \
	%D%/fd_table.c %D%/fd_visit.h %D%/fd_visit.c %D%/tx_control.h %D%/tx_control.c %D%/fd_wait.h %D%/fd_wait.c %D%/udp.h %D%/udp_priv.h \
	%D%/port_row.h %D%/port_row.c %D%/udp.c %D%/udp_heir.c %D%/udp_options.c \
	%D%/udp_exception.c %D%/udp_ports.c %D%/udp_rx.c %D%/udp_tx.c \
	%D%/user_msg.h %D%/user_msg.c

noinst_LTLIBRARIES += %D%/libsock.la %D%/libsock-debug.la
%C%_libsock_la_SOURCES = $(sock_sources)
%C%_libsock_la_CFLAGS = $(release_cflags)
%C%_libsock_debug_la_SOURCES = $(sock_sources)
%C%_libsock_debug_la_CFLAGS = $(debug_cflags)
