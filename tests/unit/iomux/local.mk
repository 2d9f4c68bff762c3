iomux_test_libs = src/iomux/libiomux-debug.a src/sock/libsock-debug.a src/tcp/libtcp-debug.a \
	$(net_unit_libs)

unit_programs += %D%/epoll %D%/epoll_nest %D%/epoll_sleepers %D%/epoll_wait %D%/mux_spin
# A set and what is in it, for the tests of sets.
things_sources = %D%/things.h %D%/things.c
%C%_epoll_SOURCES = %D%/epoll.c $(things_sources)
%C%_epoll_LDADD = $(iomux_test_libs)
%C%_epoll_nest_LDADD = $(iomux_test_libs)
%C%_epoll_sleepers_SOURCES = %D%/epoll_sleepers.c $(things_sources)
%C%_epoll_sleepers_LDADD = $(iomux_test_libs)
%C%_epoll_wait_SOURCES = %D%/epoll_wait.c $(things_sources)
%C%_epoll_wait_LDADD = $(iomux_test_libs)
%C%_mux_spin_LDADD = tests/support/libtest.a src/base/libbase-debug.a
