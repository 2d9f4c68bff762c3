core_sources = %D%/about.h %D%/about.c %D%/module.h %D%/module.c \
	%D%/network.h %D%/network.c %D%/origin.h %D%/origin.c %D%/progress.h %D%/progress.c \
	%D%/rings.h %D%/rings.c %D%/rules_file.h \
	%D%/rules_file.c %D%/runtime.h %D%/runtime.c %D%/startup.def

noinst_LIBRARIES += %D%/libcore.a %D%/libcore-debug.a
%C%_libcore_a_SOURCES = $(core_sources)
%C%_libcore_a_CFLAGS = $(release_pic)
%C%_libcore_debug_a_SOURCES = $(core_sources)
%C%_libcore_debug_a_CFLAGS = $(debug_pic)
