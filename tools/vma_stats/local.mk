bin_PROGRAMS += %D%/vma_stats
vma_stats_sources = %D%/args.h %D%/args.c %D%/process.h %D%/process.c \
	%D%/report.h %D%/report_basic.c %D%/report_full.c %D%/report_list.c \
	%D%/report_raw.c %D%/report_why.c
%C%_vma_stats_SOURCES = %D%/vma_stats.c $(vma_stats_sources)
%C%_vma_stats_CFLAGS = $(release_cflags)
%C%_vma_stats_LDADD = src/stats/libstats.a src/os/libos.a \
	src/base/libbase.a
