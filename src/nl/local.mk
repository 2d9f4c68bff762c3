nl_sources = %D%/addr_tab.h %D%/firewall.h %D%/link_tab.h %D%/neigh_tab.h \
	%D%/net_flow.h %D%/net_view.h %D%/netlink_conn.h %D%/netlink_msg.h \
	%D%/policy_tab.h %D%/route_tab.h
