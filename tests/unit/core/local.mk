# Of core, what does not need all of the library around it.
core_test_libs = tests/support/libtest.la src/core/libcore-debug.la \
	src/conf/libconf-debug.la src/fd/libfd-debug.la src/os/libos-debug.la src/base/libbase-debug.la

unit_programs += %D%/progress %D%/rings %D%/rules_file
%C%_progress_SOURCES = %D%/progress.c $(nic_sources)
%C%_progress_LDADD = src/core/libcore-debug.la src/sock/libsock-debug.la \
	src/dev/fake/libfake-debug.la $(net_unit_libs)
%C%_rings_LDADD = $(core_test_libs)
%C%_rules_file_LDADD = $(core_test_libs)
