conf_test_libs = tests/support/libtest.a src/conf/libconf-debug.a \
	src/base/libbase-debug.a

unit_programs += %D%/banner %D%/cpus %D%/each_option %D%/options %D%/profiles \
	%D%/rules_match \
	%D%/rules_parse %D%/suggest
unit_scripts += %D%/vma_conf.sh
noinst_HEADERS += %D%/env.h %D%/rules_text.h
%C%_banner_LDADD = $(conf_test_libs)
%C%_cpus_LDADD = $(conf_test_libs)
%C%_each_option_LDADD = $(conf_test_libs)
%C%_options_LDADD = $(conf_test_libs)
%C%_profiles_LDADD = $(conf_test_libs)
%C%_rules_match_LDADD = $(conf_test_libs)
%C%_rules_parse_LDADD = $(conf_test_libs)
%C%_suggest_LDADD = $(conf_test_libs)
