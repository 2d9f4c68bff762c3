os_sources =

noinst_LTLIBRARIES += %D%/libos.la %D%/libos-debug.la
%C%_libos_la_SOURCES = $(os_sources)
%C%_libos_la_CFLAGS = $(release_cflags)
%C%_libos_debug_la_SOURCES = $(os_sources)
%C%_libos_debug_la_CFLAGS = $(debug_cflags)
