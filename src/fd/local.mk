fd_sources = %D%/fd_change.h %D%/fd_change.c %D%/fd_flight.h %D%/fd_flight.c \
	%D%/fd_internal.h %D%/fd_internal.c %D%/fd_ops.h \
	%D%/fd_ops.c %D%/fd_pool.h %D%/fd_pool.c %D%/fd_quick.h %D%/fd_quick.c %D%/fd_table.h \
	%D%/fd_table.c %D%/fd_visit.h %D%/fd_visit.c %D%/fd_wait.h %D%/fd_wait.c \
	%D%/right_keeper.h %D%/right_keeper.c

noinst_LIBRARIES += %D%/libfd.a %D%/libfd-debug.a
%C%_libfd_a_SOURCES = $(fd_sources)
%C%_libfd_a_CFLAGS = $(release_pic)
%C%_libfd_debug_a_SOURCES = $(fd_sources)
%C%_libfd_debug_a_CFLAGS = $(debug_pic)
