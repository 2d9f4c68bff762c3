/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says about the network, one row at a time. The module that speaks
 * netlink makes rows, and the tables take them (net_feed.h). Whoever makes a row
 * has checked it, so a row is always complete.
 */
#ifndef NL_NET_ROW_H
#define NL_NET_ROW_H

#include <stdbool.h>

#include "nl/addr_tab.h"
#include "nl/link_tab.h"
#include "nl/neigh_tab.h"
#include "nl/path_mtu_tab.h"
#include "nl/policy_tab.h"
#include "nl/route_tab.h"

/* The tables that can be read, in the order in which they are read. */
enum net_part {
	NET_LINKS,
	NET_ADDRS,
	NET_ROUTES,
	NET_POLICIES,
	NET_NEIGHS,
	NET_NETCONFS,
	NET_PARTS,
};

#define NET_BIT(part) (1u << (part))

enum net_row_kind {
	/* one of each table */
	NET_ROW_LINK = NET_LINKS,
	NET_ROW_ADDR = NET_ADDRS,
	NET_ROW_ROUTE = NET_ROUTES,
	NET_ROW_POLICY = NET_POLICIES,
	NET_ROW_NEIGH = NET_NEIGHS,
	NET_ROW_NETCONF = NET_NETCONFS,
	/* what the kernel has learned of a path; never gone */
	NET_ROW_PATH_MTU,
	/* a next hop object; we only use the news that one is gone */
	NET_ROW_NEXTHOP,
};

/* Settings of an interface, or of RPF_ALL. */
struct netconf_info {
	int ifindex;
	/* -1: not said */
	int rp_filter;
	/* routes over links without a carrier may count from now on, or may no
	 * longer count */
	bool has_linkdown;
};

struct net_row {
	enum net_row_kind kind;
	/* it was there and is gone now; of a link, only the index is valid then */
	bool is_gone;
	/* part of the reading of a table, not an event */
	bool is_dump;
	/* of a route that is not gone */
	enum route_place place;
	union {
		struct link_info link;
		struct addr_info addr;
		/* its hops are borrowed */
		struct route route;
		struct policy policy;
		struct neigh_info neigh;
		struct netconf_info netconf;
		struct path_mtu_info path_mtu;
	};
};

/* Who takes rows. */
struct net_sink {
	/* 0, or -ENOMEM: the row is lost and its table must be read again. Adds to
	 * *stale, as NET_BITs, tables that must be read again in any case, because
	 * the kernel changes some of them without a message (routes, for example,
	 * when a link goes down). */
	int (*take)(void *ctx, const struct net_row *row, unsigned *stale)
		MUST_CHECK;
	/* Around the reading of one table. Entries that did not come in between are
	 * removed at the end. A reading that failed begins once more; its end is
	 * never called. */
	void (*begin)(void *ctx, enum net_part part);
	void (*end)(void *ctx, enum net_part part);
};

#endif
