base_test_libs = tests/support/libtest.a src/base/libbase-debug.a

unit_programs += %D%/checksum %D%/hash %D%/hash_tab %D%/ipaddr \
	%D%/list %D%/lock %D%/log %D%/mem_pool %D%/pages %D%/rand %D%/text %D%/tick_clock
%C%_checksum_LDADD = $(base_test_libs)
%C%_hash_LDADD = $(base_test_libs)
%C%_hash_tab_LDADD = $(base_test_libs)
%C%_ipaddr_LDADD = $(base_test_libs)
%C%_list_LDADD = $(base_test_libs)
%C%_lock_LDADD = $(base_test_libs)
%C%_log_LDADD = $(base_test_libs)
%C%_mem_pool_LDADD = $(base_test_libs)
%C%_pages_LDADD = $(base_test_libs)
%C%_rand_LDADD = $(base_test_libs)
%C%_text_LDADD = $(base_test_libs)
%C%_tick_clock_LDADD = $(base_test_libs)
