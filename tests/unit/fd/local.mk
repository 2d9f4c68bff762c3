fd_test_libs = tests/support/libtest.a src/fd/libfd-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a

unit_programs += %D%/fd_internal %D%/fd_quick %D%/fd_table %D%/fd_visit
%C%_fd_internal_LDADD = $(fd_test_libs)
%C%_fd_quick_LDADD = $(fd_test_libs)
%C%_fd_table_LDADD = $(fd_test_libs)
%C%_fd_visit_LDADD = $(fd_test_libs)
