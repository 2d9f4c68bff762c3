pkt_sources =

noinst_LTLIBRARIES += %D%/libpkt.la %D%/libpkt-debug.la
%C%_libpkt_la_SOURCES = $(pkt_sources)
%C%_libpkt_la_CFLAGS = $(release_cflags)
%C%_libpkt_debug_la_SOURCES = $(pkt_sources)
%C%_libpkt_debug_la_CFLAGS = $(debug_cflags)
