ip_sources = %D%/ip_frag.h %D%/ip_frag.c %D%/ip_icmp.h %D%/ip_icmp.c %D%/ip_udp.h %D%/ip_udp.c

noinst_LIBRARIES += %D%/libip.a %D%/libip-debug.a
%C%_libip_a_SOURCES = $(ip_sources)
%C%_libip_a_CFLAGS = $(release_pic)
%C%_libip_debug_a_SOURCES = $(ip_sources)
%C%_libip_debug_a_CFLAGS = $(debug_pic)
