pkt_test_libs = tests/support/libtest.a src/pkt/libpkt-debug.a \
	src/base/libbase-debug.a

unit_programs += %D%/flow_key %D%/pkt_pool %D%/pkt_stock %D%/region %D%/wire
%C%_flow_key_LDADD = $(pkt_test_libs)
%C%_pkt_pool_LDADD = $(pkt_test_libs)
%C%_pkt_stock_LDADD = $(pkt_test_libs)
%C%_region_LDADD = $(pkt_test_libs)
%C%_wire_LDADD = $(pkt_test_libs)
