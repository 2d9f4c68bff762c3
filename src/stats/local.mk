stats_sources = %D%/counters.def %D%/deciders.def %D%/layout.c \
	%D%/stats_clean.h %D%/stats_clean.c \
	%D%/reasons.def %D%/reasons.h %D%/reasons.c %D%/stats_abi.h \
	%D%/stats_file.h %D%/stats_file.c %D%/stats_process.h \
	%D%/stats_process.c %D%/stats_publish.h %D%/stats_publish.c \
	%D%/stats_snapshot.h %D%/stats_snapshot.c \
	%D%/stats_text.h %D%/stats_text.c

noinst_LIBRARIES += %D%/libstats.a %D%/libstats-debug.a
%C%_libstats_a_SOURCES = $(stats_sources)
%C%_libstats_a_CFLAGS = $(release_pic)
%C%_libstats_debug_a_SOURCES = $(stats_sources)
%C%_libstats_debug_a_CFLAGS = $(debug_pic)
