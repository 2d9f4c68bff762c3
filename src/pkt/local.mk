pkt_sources = %D%/flow_key.h %D%/pkt.h %D%/pkt_pool.h %D%/pkt_pool.c \
	%D%/pkt_stock.h %D%/pkt_stock.c \
	%D%/region.h %D%/region.c %D%/wire.h %D%/wire.c

noinst_LIBRARIES += %D%/libpkt.a %D%/libpkt-debug.a
%C%_libpkt_a_SOURCES = $(pkt_sources)
%C%_libpkt_a_CFLAGS = $(release_pic)
%C%_libpkt_debug_a_SOURCES = $(pkt_sources)
%C%_libpkt_debug_a_CFLAGS = $(debug_pic)
