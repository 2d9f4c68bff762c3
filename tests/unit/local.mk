# Tier 1: one program for each source file, linking that folder and those below
# it. No root, no network, milliseconds.
base_test_libs = tests/support/libtest.la src/base/libbase-debug.la

unit_programs += %D%/base/list %D%/base/log %D%/base/lock
%C%_base_list_LDADD = $(base_test_libs)
%C%_base_log_LDADD = $(base_test_libs)
%C%_base_lock_LDADD = $(base_test_libs)
