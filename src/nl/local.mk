nl_sources = %D%/addr_tab.h %D%/addr_tab.c %D%/firewall.h %D%/firewall.c \
	%D%/firewall_parse.c %D%/link_tab.h %D%/link_tab.c %D%/neigh_tab.h \
	%D%/neigh_tab.c %D%/net_flow.h %D%/net_view.h %D%/net_view.c \
	%D%/netlink_attr.h %D%/netlink_attr.c %D%/netlink_conn.h \
	%D%/netlink_conn.c %D%/netlink_msg.h %D%/netlink_msg.c \
	%D%/netlink_parse.h %D%/netlink_parse.c %D%/netlink_parse_route.c \
	%D%/path_mtu_tab.h %D%/path_mtu_tab.c \
	%D%/policy_tab.h %D%/policy_tab.c %D%/route_tab.h %D%/route_tab.c \
	%D%/rpf_tab.h %D%/rpf_tab.c

noinst_LTLIBRARIES += %D%/libnl.la %D%/libnl-debug.la
%C%_libnl_la_SOURCES = $(nl_sources)
%C%_libnl_la_CFLAGS = $(release_cflags)
%C%_libnl_debug_la_SOURCES = $(nl_sources)
%C%_libnl_debug_la_CFLAGS = $(debug_cflags)
