iomux_test_libs = src/iomux/libiomux-debug.la src/sock/libsock-debug.la src/tcp/libtcp-debug.la \
	$(net_unit_libs)

unit_programs += %D%/epoll %D%/epoll_nest %D%/mux_spin
%C%_epoll_LDADD = $(iomux_test_libs)
%C%_epoll_nest_LDADD = $(iomux_test_libs)
%C%_mux_spin_LDADD = tests/support/libtest.la src/base/libbase-debug.la
