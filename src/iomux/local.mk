iomux_sources = %D%/epoll_ctl.c %D%/epoll_item.h %D%/epoll_item.c \
	%D%/epoll_nest.h %D%/epoll_nest.c %D%/epoll_ready.h %D%/epoll_ready.c \
	%D%/epoll_set.h %D%/epoll_set.c %D%/epoll_wait.c \
	%D%/epoll_wake.h %D%/epoll_wake.c %D%/mux.h %D%/mux_spin.h \
	%D%/mux_wait.h %D%/mux_wait.c %D%/poll.h %D%/poll.c %D%/select.c

noinst_LIBRARIES += %D%/libiomux.a %D%/libiomux-debug.a
%C%_libiomux_a_SOURCES = $(iomux_sources)
%C%_libiomux_a_CFLAGS = $(release_pic)
%C%_libiomux_debug_a_SOURCES = $(iomux_sources)
%C%_libiomux_debug_a_CFLAGS = $(debug_pic)
