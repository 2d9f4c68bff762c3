pkt_sources = %D%/flow_key.h %D%/pkt.h %D%/pkt_pool.h %D%/pkt_pool.c \
	%D%/pkt_stock.h %D%/pkt_stock.c \
	%D%/region.h %D%/region.c %D%/wire.h %D%/wire.c

noinst_LTLIBRARIES += %D%/libpkt.la %D%/libpkt-debug.la
%C%_libpkt_la_SOURCES = $(pkt_sources)
%C%_libpkt_la_CFLAGS = $(release_cflags)
%C%_libpkt_debug_la_SOURCES = $(pkt_sources)
%C%_libpkt_debug_la_CFLAGS = $(debug_cflags)
