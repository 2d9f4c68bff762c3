sock_sources = %D%/kin.h %D%/kin.c %D%/port_row.h %D%/port_row.c %D%/sock.h %D%/sock.c %D%/sock_crowd.h %D%/sock_crowd.c %D%/sock_exception.c %D%/sock_kinds.h %D%/sock_kinds.c \
	%D%/sock_pace.h %D%/sock_pace.c %D%/sock_options.def %D%/sock_options.h %D%/sock_options.c \
	%D%/sock_setsockopt.c %D%/sock_wait.h %D%/sock_wait.c %D%/tcp_right.h %D%/tcp_right.c %D%/tx_control.h %D%/tx_control.c %D%/tx_followed.h %D%/tx_followed.c %D%/tx_stamps.h %D%/tx_stamps.c %D%/user_msg.h %D%/user_msg.c \
	%D%/udp/udp.h %D%/udp/udp_priv.h %D%/udp/udp.c \
	%D%/udp/udp_cut.h %D%/udp/udp_cut.c %D%/udp/udp_way.h %D%/udp/udp_ways.h %D%/udp/udp_ways.c \
	%D%/udp/udp_heir.c %D%/udp/udp_options.c %D%/udp/udp_pace.c %D%/udp/udp_ports.c \
	%D%/udp/udp_msgs.c %D%/udp/udp_queue.c %D%/udp/udp_rx.c %D%/udp/udp_rx_twin.h %D%/udp/udp_rx_twin.c %D%/udp/udp_stamps.c %D%/udp/udp_tx.h %D%/udp/udp_tx.c \
	%D%/tcp/tcp_engine.h %D%/tcp/tcp_engine.c \
	%D%/tcp/tcp_sysctl.def %D%/tcp/tcp_sysctl.h %D%/tcp/tcp_sysctl.c \
	%D%/tcp/tcp_twin.h %D%/tcp/tcp_twin.c %D%/tcp/tcp_way.h %D%/tcp/tcp_way.c \
	%D%/tcp/tcp_way_back.h %D%/tcp/tcp_way_back.c \
	%D%/tcp/tcp_gift.h %D%/tcp/tcp_gift.c %D%/tcp/tsock.h %D%/tcp/tsock_priv.h %D%/tcp/tsock.c %D%/tcp/tsock_connect.c \
	%D%/tcp/tsock_accept.c %D%/tcp/tsock_end.c %D%/tcp/tsock_flush.c %D%/tcp/tsock_hand_over.c %D%/tcp/tsock_info.h %D%/tcp/tsock_info.c %D%/tcp/tsock_leave.c %D%/tcp/tsock_listen.c %D%/tcp/tsock_options.c \
	%D%/tcp/tsock_msgs.c %D%/tcp/tsock_quick.c %D%/tcp/tsock_recv.c %D%/tcp/tsock_send.c %D%/tcp/tsock_tx.h \
	%D%/tcp/tsock_stamps.c %D%/tcp/tsock_guard.c %D%/tcp/tsock_share.h %D%/tcp/tsock_share.c %D%/tcp/tsock_stats.c %D%/tcp/tsock_tidy.c %D%/tcp/tsock_tw.c %D%/tcp/tsock_wait.c

noinst_LIBRARIES += %D%/libsock.a %D%/libsock-debug.a
%C%_libsock_a_SOURCES = $(sock_sources)
%C%_libsock_a_CFLAGS = $(release_pic)
%C%_libsock_debug_a_SOURCES = $(sock_sources)
%C%_libsock_debug_a_CFLAGS = $(debug_pic)
