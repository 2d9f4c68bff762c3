event_sources = %D%/timer_wheel.h %D%/timer_wheel.c

noinst_LIBRARIES += %D%/libevent.a %D%/libevent-debug.a
%C%_libevent_a_SOURCES = $(event_sources)
%C%_libevent_a_CFLAGS = $(release_pic)
%C%_libevent_debug_a_SOURCES = $(event_sources)
%C%_libevent_debug_a_CFLAGS = $(debug_pic)
