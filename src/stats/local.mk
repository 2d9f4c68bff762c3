stats_sources = %D%/reasons.def %D%/reasons.h %D%/reasons.c

noinst_LTLIBRARIES += %D%/libstats.la %D%/libstats-debug.la
%C%_libstats_la_SOURCES = $(stats_sources)
%C%_libstats_la_CFLAGS = $(release_cflags)
%C%_libstats_debug_la_SOURCES = $(stats_sources)
%C%_libstats_debug_la_CFLAGS = $(debug_cflags)
