nl_test_libs = tests/support/libtest.la src/nl/libnl-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la

unit_programs += %D%/addr_tab %D%/firewall %D%/link_tab %D%/neigh_tab \
	%D%/net_view %D%/netlink_attr %D%/netlink_conn %D%/netlink_msg \
	%D%/netlink_parse %D%/path_mtu_tab %D%/policy_tab %D%/route_tab
%C%_addr_tab_LDADD = $(nl_test_libs)
%C%_firewall_LDADD = $(nl_test_libs)
%C%_link_tab_LDADD = $(nl_test_libs)
%C%_neigh_tab_LDADD = $(nl_test_libs)
%C%_net_view_LDADD = $(nl_test_libs)
%C%_netlink_attr_LDADD = $(nl_test_libs)
%C%_netlink_conn_LDADD = $(nl_test_libs)
%C%_netlink_msg_LDADD = $(nl_test_libs)
%C%_netlink_parse_LDADD = $(nl_test_libs)
%C%_path_mtu_tab_LDADD = $(nl_test_libs)
%C%_policy_tab_LDADD = $(nl_test_libs)
%C%_route_tab_LDADD = $(nl_test_libs)
noinst_HEADERS += %D%/build.h
