sock_test_libs = tests/support/libtest.la src/sock/libsock-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la

unit_programs += %D%/fd_internal %D%/fd_table %D%/fd_visit %D%/port_row %D%/tx_control
%C%_port_row_LDADD = $(sock_test_libs)
%C%_tx_control_LDADD = $(sock_test_libs)
%C%_fd_internal_LDADD = $(sock_test_libs)
%C%_fd_table_LDADD = $(sock_test_libs)
%C%_fd_visit_LDADD = $(sock_test_libs)
