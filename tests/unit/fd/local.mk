fd_test_libs = tests/support/libtest.la src/fd/libfd-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la

unit_programs += %D%/fd_internal %D%/fd_quick %D%/fd_table %D%/fd_visit
%C%_fd_internal_LDADD = $(fd_test_libs)
%C%_fd_quick_LDADD = $(fd_test_libs)
%C%_fd_table_LDADD = $(fd_test_libs)
%C%_fd_visit_LDADD = $(fd_test_libs)
