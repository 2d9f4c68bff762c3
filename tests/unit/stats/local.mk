stats_test_libs = tests/support/libtest.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a

unit_programs += %D%/reasons %D%/stats_publish %D%/stats_snapshot \
	%D%/stats_text
%C%_reasons_LDADD = $(stats_test_libs)
%C%_stats_publish_LDADD = $(stats_test_libs)
%C%_stats_snapshot_LDADD = $(stats_test_libs)
%C%_stats_text_LDADD = $(stats_test_libs)
