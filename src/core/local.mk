core_sources = %D%/about.h %D%/about.c %D%/module.h %D%/module.c \
	%D%/network.h %D%/network.c %D%/progress.h %D%/progress.c \
	%D%/rings.h %D%/rings.c %D%/rules_file.h \
	%D%/rules_file.c %D%/runtime.h %D%/runtime.c %D%/startup.def

noinst_LTLIBRARIES += %D%/libcore.la %D%/libcore-debug.la
%C%_libcore_la_SOURCES = $(core_sources)
%C%_libcore_la_CFLAGS = $(release_cflags)
%C%_libcore_debug_la_SOURCES = $(core_sources)
%C%_libcore_debug_la_CFLAGS = $(debug_cflags)
