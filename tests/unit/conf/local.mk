conf_test_libs = tests/support/libtest.la src/conf/libconf-debug.la \
	src/base/libbase-debug.la

unit_programs += %D%/cpus %D%/each_option %D%/options %D%/profiles \
	%D%/suggest
noinst_HEADERS += %D%/env.h
%C%_cpus_LDADD = $(conf_test_libs)
%C%_each_option_LDADD = $(conf_test_libs)
%C%_options_LDADD = $(conf_test_libs)
%C%_profiles_LDADD = $(conf_test_libs)
%C%_suggest_LDADD = $(conf_test_libs)
