conf_sources = %D%/options.def %D%/choices.def %D%/spec.def %D%/names.def \
	%D%/options.h %D%/option_info.h %D%/cpus.h %D%/suggest.h %D%/banner.h \
	%D%/rules.h %D%/options.c %D%/options_parse.c %D%/cpus.c \
	%D%/suggest.c %D%/banner.c %D%/rules_priv.h %D%/rules.c \
	%D%/rules_parse.c %D%/rules_match.c

noinst_LIBRARIES += %D%/libconf.a %D%/libconf-debug.a
%C%_libconf_a_SOURCES = $(conf_sources)
%C%_libconf_a_CFLAGS = $(release_pic)
%C%_libconf_debug_a_SOURCES = $(conf_sources)
%C%_libconf_debug_a_CFLAGS = $(debug_pic)
