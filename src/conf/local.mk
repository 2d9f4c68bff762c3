conf_sources =

noinst_LTLIBRARIES += %D%/libconf.la %D%/libconf-debug.la
%C%_libconf_la_SOURCES = $(conf_sources)
%C%_libconf_la_CFLAGS = $(release_cflags)
%C%_libconf_debug_la_SOURCES = $(conf_sources)
%C%_libconf_debug_la_CFLAGS = $(debug_cflags)
