event_test_libs = tests/support/libtest.la src/event/libevent-debug.la \
	src/base/libbase-debug.la

unit_programs += %D%/timer_wheel
%C%_timer_wheel_LDADD = $(event_test_libs)
