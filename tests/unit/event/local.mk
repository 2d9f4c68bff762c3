event_test_libs = tests/support/libtest.a src/event/libevent-debug.a \
	src/base/libbase-debug.a

unit_programs += %D%/timer_wheel
%C%_timer_wheel_LDADD = $(event_test_libs)
