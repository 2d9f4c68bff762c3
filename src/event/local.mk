event_sources = %D%/timer_wheel.h %D%/timer_wheel.c

noinst_LTLIBRARIES += %D%/libevent.la %D%/libevent-debug.la
%C%_libevent_la_SOURCES = $(event_sources)
%C%_libevent_la_CFLAGS = $(release_cflags)
%C%_libevent_debug_la_SOURCES = $(event_sources)
%C%_libevent_debug_la_CFLAGS = $(debug_cflags)
