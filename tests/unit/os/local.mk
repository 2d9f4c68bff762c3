os_test_libs = tests/support/libtest.a src/os/libos-debug.a \
	src/base/libbase-debug.a

unit_programs += %D%/file %D%/filter %D%/keeper_abi %D%/log_out %D%/own_thread %D%/real %D%/signals \
	%D%/signals_process
%C%_file_LDADD = $(os_test_libs)
%C%_filter_LDADD = $(os_test_libs)
%C%_keeper_abi_LDADD = $(os_test_libs)
%C%_log_out_LDADD = $(os_test_libs)
%C%_own_thread_LDADD = $(os_test_libs)
%C%_real_LDADD = $(os_test_libs)
%C%_signals_LDADD = $(os_test_libs)
%C%_signals_process_LDADD = $(os_test_libs)
