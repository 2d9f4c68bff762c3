tcp_sources = %D%/tcp.h %D%/tcp.c %D%/tcp_accecn.c %D%/tcp_ack.c %D%/tcp_bbr.h %D%/tcp_bbr.c \
	%D%/tcp_cc.h %D%/tcp_cc_bbr.c \
	%D%/tcp_cc_cubic.c %D%/tcp_cc_newreno.c %D%/tcp_cc_none.c \
	%D%/tcp_emit.c %D%/tcp_export.def %D%/tcp_export_accecn.def %D%/tcp_export_priv.h \
	%D%/tcp_export.c %D%/tcp_fast.c %D%/tcp_fastopen.c %D%/tcp_hystart.h %D%/tcp_hystart.c \
	%D%/tcp_import.c %D%/tcp_in.c \
	%D%/tcp_listen.c %D%/tcp_metrics.c \
	%D%/tcp_options.h %D%/tcp_options.c %D%/tcp_out.c %D%/tcp_pace.c %D%/tcp_pcb_priv.h \
	%D%/tcp_peers.h %D%/tcp_peers.c %D%/tcp_pmtu.c %D%/tcp_priv.h %D%/tcp_rack.c %D%/tcp_rate.c %D%/tcp_recovery.c \
	%D%/tcp_repair.c %D%/tcp_reply.c \
	%D%/tcp_rtt_priv.h %D%/tcp_rtt.c %D%/tcp_rx_priv.h %D%/tcp_rx.c %D%/tcp_sack.c %D%/tcp_seq.h \
	%D%/tcp_settings.c %D%/tcp_stamp.c %D%/tcp_stats.c %D%/tcp_syn.c \
	%D%/tcp_table.c %D%/tcp_timer.c %D%/tcp_tw.c %D%/tcp_urgent.c

noinst_LIBRARIES += %D%/libtcp.a %D%/libtcp-debug.a
%C%_libtcp_a_SOURCES = $(tcp_sources)
%C%_libtcp_a_CFLAGS = $(release_pic)
%C%_libtcp_debug_a_SOURCES = $(tcp_sources)
%C%_libtcp_debug_a_CFLAGS = $(debug_pic)

# One archive with the engine and all it needs, for conformance suites and other
# programs: `make libvma-tcp.a`; its interface is src/tcp/tcp.h.
EXTRA_LIBRARIES += libvma-tcp.a
CLEANFILES += libvma-tcp.a
libvma_tcp_a_SOURCES = $(tcp_sources) $(event_sources) $(pkt_sources) \
	src/base/checksum.c src/base/hash.c src/base/pages.c
libvma_tcp_a_CFLAGS = $(release_cflags)
