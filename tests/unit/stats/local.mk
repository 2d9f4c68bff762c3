stats_test_libs = tests/support/libtest.la src/stats/libstats-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la

unit_programs += %D%/reasons %D%/stats_publish %D%/stats_snapshot \
	%D%/stats_text
%C%_reasons_LDADD = $(stats_test_libs)
%C%_stats_publish_LDADD = $(stats_test_libs)
%C%_stats_snapshot_LDADD = $(stats_test_libs)
%C%_stats_text_LDADD = $(stats_test_libs)
