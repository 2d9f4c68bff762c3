ip_sources = %D%/ip_frag.h %D%/ip_frag.c %D%/ip_icmp.h %D%/ip_icmp.c %D%/ip_udp.h %D%/ip_udp.c

noinst_LTLIBRARIES += %D%/libip.la %D%/libip-debug.la
%C%_libip_la_SOURCES = $(ip_sources)
%C%_libip_la_CFLAGS = $(release_cflags)
%C%_libip_debug_la_SOURCES = $(ip_sources)
%C%_libip_debug_la_CFLAGS = $(debug_cflags)
