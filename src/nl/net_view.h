/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library knows of the network namespace it lives in: links, addresses,
 * routes, rules, neighbours, and the questions senders ask of all of them
 * together, answered as Linux answers them. Fed from netlink messages; does no
 * I/O itself.
 *
 * One writer at a time, and no reader beside it: the view's owner holds its lock
 * (the control mutex) around every call here but the two that read a generation.
 * What is looked up is borrowed until that lock is given back.
 *
 * A generation goes up with every change that may lead to other answers. Whoever
 * keeps an answer remembers the generation from before the question, and asks
 * again when it has moved.
 */
#ifndef NL_NET_VIEW_H
#define NL_NET_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "nl/addr_tab.h"
#include "nl/link_tab.h"
#include "nl/neigh_tab.h"
#include "nl/net_flow.h"
#include "nl/path_mtu_tab.h"
#include "nl/policy_tab.h"
#include "nl/route_tab.h"
#include "nl/rpf_tab.h"

struct net_view {
	struct link_tab links;
	struct addr_tab addrs;
	struct route_tab routes;
	/* what has gone while all routes are read anew (net_feed.c) */
	struct route_tab gone_routes;
	bool is_reading_routes;
	struct policy_tab policies;
	struct neigh_tab neighs;
	struct path_mtu_tab path_mtus;
	struct rpf_tab rpf;
	/* chooses among the next hops of a multipath route */
	uint64_t hash_seed;
	/* links, addresses, routes, rules, rp_filter */
	_Atomic uint32_t route_gen;
	/* all of that, neighbours and path MTUs: what is sent depends on them */
	_Atomic uint64_t gen;
};

/* `hash_seed`: any number. */
void net_view_init(struct net_view *view, uint64_t hash_seed);
void net_view_destroy(struct net_view *view);

/* Any thread, no lock. Never 0, so that 0 can stand for "never asked". */
static inline uint32_t net_view_route_gen(const struct net_view *view)
{
	/* pairs with the release in net_view_routes_changed() */
	return atomic_load_explicit(&view->route_gen, memory_order_acquire);
}

static inline uint64_t net_view_gen(const struct net_view *view)
{
	/* pairs with the release in net_view_neighs_changed() */
	return atomic_load_explicit(&view->gen, memory_order_acquire);
}

/* For whoever changes the tables. */
void net_view_routes_changed(struct net_view *view);
void net_view_neighs_changed(struct net_view *view);

/* Where packets of a flow go. */
struct net_path {
	/* RTN_UNICAST, RTN_LOCAL, RTN_BROADCAST or RTN_MULTICAST */
	uint8_t type;
	/* 0: the system's default */
	uint8_t hop_limit;
	/* the route forbids path MTU discovery, or what was learned is too small
	 * for it: no DF bit unless the socket insists */
	bool is_mtu_locked;
	bool has_gateway;
	int ifindex;
	/* whom to resolve: the gateway, else the destination */
	struct ip_addr next_hop;
	/* the flow's, else the one Linux chooses; any: there is none */
	struct ip_addr src;
	/* what the kernel has learned of the path, or of the route, if it is
	 * smaller than the link's */
	uint32_t mtu;
	uint32_t link_mtu;
	struct route_tcp tcp;
	/* 0: no route was asked */
	uint32_t table;
	/* one of several next hops, which the destination decides */
	bool is_one_of_many;
};

/*
 * The way of one packet, as ip_route_output_key() finds it. IPv4 only; a flow of
 * IPv6 addresses gets -EAFNOSUPPORT. 0, or the errno the kernel gives:
 * -ENETUNREACH, -EHOSTUNREACH, -EACCES, -EINVAL, -ENODEV; or -EOPNOTSUPP: only
 * the kernel can tell. What gets no path is best left to the twin, so that the
 * kernel has the last word.
 *
 * Which of several next hops the kernel would take depends on a secret of its own;
 * ours is as good. Of several default routes of equal metric we take the first,
 * where the kernel looks which gateway answers.
 */
int net_view_route(const struct net_view *view, const struct net_flow *flow,
		   struct net_path *path_out) MUST_CHECK;

/* The destinations around the flow's, which has `path`, that the same next hop leads
 * to: all else being equal, their paths differ in nothing. At least that one. */
struct route_stretch net_view_stretch(const struct net_view *view,
				      const struct net_flow *flow,
				      const struct net_path *path);

/* The same for connect(): when the flow has no source the route is looked up a
 * second time with the one found, because rules may look at it. */
int net_view_route_connect(const struct net_view *view,
			   const struct net_flow *flow,
			   struct net_path *path_out) MUST_CHECK;

/* Whether a packet from `src` to `dst` that an interface received would pass
 * rp_filter, as fib_validate_source() decides it. What only the kernel can tell
 * passes. IPv4 only. */
bool net_view_admits(const struct net_view *view, int ifindex,
		     const struct ip_addr *src, const struct ip_addr *dst);

/* Whether packets to this address are for this host: an address of an interface,
 * or in a local route. */
bool net_view_is_ours(const struct net_view *view, const struct ip_addr *addr);

#endif
