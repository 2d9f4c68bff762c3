# Of core, what does not need all of the library around it.
core_test_libs = tests/support/libtest.a src/core/libcore-debug.a \
	src/conf/libconf-debug.a src/fd/libfd-debug.a src/os/libos-debug.a src/base/libbase-debug.a

unit_programs += %D%/module %D%/network %D%/progress %D%/rings %D%/rules_file %D%/runtime
# These include their source, or need what the modules may call.
core_all_libs = tests/support/libtest.a src/dev/fake/libfake-debug.a $(debug_folders)
%C%_module_SOURCES = %D%/module.c %D%/fake_module.h
%C%_module_LDADD = $(core_all_libs)
%C%_network_LDADD = $(core_all_libs)
%C%_runtime_LDADD = $(core_all_libs)
%C%_progress_SOURCES = %D%/progress.c $(nic_sources)
%C%_progress_LDADD = src/core/libcore-debug.a src/sock/libsock-debug.a src/tcp/libtcp-debug.a \
	src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_rings_LDADD = $(core_test_libs)
%C%_rules_file_LDADD = $(core_test_libs)

# For module.c.
check_LTLIBRARIES += %D%/fake_module.la %D%/no_module.la
%C%_fake_module_la_SOURCES = %D%/fake_module.c %D%/fake_module.h
%C%_fake_module_la_CPPFLAGS = $(AM_CPPFLAGS) -DVMA_DEBUG=1
%C%_fake_module_la_LDFLAGS = -module -avoid-version -rpath /nowhere
%C%_no_module_la_SOURCES = %D%/no_module.c
%C%_no_module_la_LDFLAGS = -module -avoid-version -rpath /nowhere
