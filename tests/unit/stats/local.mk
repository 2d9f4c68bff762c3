unit_programs += %D%/reasons
%C%_reasons_LDADD = tests/support/libtest.la src/stats/libstats-debug.la
