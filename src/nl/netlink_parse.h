/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a message of rtnetlink says, one function for each kind. The message must be
 * whole (netlink_next); everything in it is checked. Each returns 0,
 * NETLINK_NOT_OURS for a message that is about something else than the tables of
 * this library, or -EBADMSG, and fills its output only with 0.
 */
#ifndef NL_NETLINK_PARSE_H
#define NL_NETLINK_PARSE_H

#include <linux/netlink.h>

#include "base/compiler.h"
#include "nl/addr_tab.h"
#include "nl/link_tab.h"
#include "nl/neigh_tab.h"
#include "nl/path_mtu_tab.h"
#include "nl/policy_tab.h"
#include "nl/route_tab.h"

enum { NETLINK_NOT_OURS = 1 };

/* RTM_NEWLINK, RTM_DELLINK; of the latter only the index may be there. */
int netlink_parse_link(const struct nlmsghdr *msg, struct link_info *out)
	MUST_CHECK;
/* RTM_NEWADDR, RTM_DELADDR */
int netlink_parse_addr(const struct nlmsghdr *msg, struct addr_info *out)
	MUST_CHECK;

/* A route and the room for its hops. */
struct netlink_route {
	struct route route;
	struct route_hop hops[ROUTE_HOPS_MAX];
};

/* RTM_NEWROUTE, RTM_DELROUTE, of IPv4; out->route.hops is out->hops. */
int netlink_parse_route(const struct nlmsghdr *msg, struct netlink_route *out)
	MUST_CHECK;
/* RTM_NEWROUTE of IPv4 that is no route but an answer, or an exception of one */
int netlink_parse_path_mtu(const struct nlmsghdr *msg,
			   struct path_mtu_info *out) MUST_CHECK;
/* RTM_NEWRULE, RTM_DELRULE, of IPv4 */
int netlink_parse_policy(const struct nlmsghdr *msg, struct policy *out)
	MUST_CHECK;
/* RTM_NEWNEIGH, RTM_DELNEIGH */
int netlink_parse_neigh(const struct nlmsghdr *msg, struct neigh_info *out)
	MUST_CHECK;
/* Settings of an interface, or of RPF_ALL. */
struct netlink_netconf {
	int ifindex;
	/* -1: not said */
	int rp_filter;
	/* routes over links without a carrier may count from now on, or no
	 * longer */
	bool has_linkdown;
};

/* RTM_NEWNETCONF, RTM_DELNETCONF, of IPv4 */
int netlink_parse_netconf(const struct nlmsghdr *msg,
			  struct netlink_netconf *out) MUST_CHECK;

#endif
