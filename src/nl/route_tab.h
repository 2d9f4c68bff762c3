/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The routes of all tables. For a table and a destination they give the route that
 * Linux takes (fib_table_lookup). A look-up computes one hash for each prefix
 * length that occurs. The code is pure and takes no lock.
 */
#ifndef NL_ROUTE_TAB_H
#define NL_ROUTE_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/ipaddr.h"
#include "base/list.h"

struct link_tab;

/* A route with more next hops is foreign. */
enum { ROUTE_HOPS_MAX = 128 };
/* How many tables are ever searched as one. */
enum { ROUTE_TABLES_MAX = 2 };

struct route_hop {
	/* any: the destination is on the link. May be an IPv6 address for an
	 * IPv4 route (RTA_VIA). */
	struct ip_addr gateway;
	int ifindex;
	/* 1 and more */
	uint32_t weight;
	/* RTNH_F_ bits */
	uint8_t flags;
};

/* What a route says of TCP; 0: nothing. */
struct route_tcp {
	/* how long the segments may be that a peer sends to us */
	uint32_t adv_mss;
	/* the segments that a connection may send at once in its beginning */
	uint32_t initial_window;
	/* the least margin of a retransmission's timeout */
	uint32_t rto_min_ms;
};

struct route {
	struct ip_addr dst;
	/* :: when there is none */
	struct ip_addr prefsrc;
	uint32_t table;
	/* the metric: the lowest wins */
	uint32_t priority;
	/* 0: the link's */
	uint32_t mtu;
	struct route_tcp tcp;
	/* counts all 128 bits, IPv4 has IP_PREFIX_V4 added */
	uint8_t prefix_len;
	uint8_t tos;
	/* RTN_ */
	uint8_t type;
	uint8_t scope;
	uint8_t protocol;
	/* 0: the system's */
	uint8_t hop_limit;
	bool is_mtu_locked;
	/* it has something that this library does not follow (an encapsulation, a
	 * next hop that it cannot see); a socket whose packets take this route
	 * stays with the kernel */
	bool is_foreign;
	uint16_t hop_cnt;
	struct route_hop *hops;
};

/* Where the kernel put a route among those of the same prefix, tos and metric. */
enum route_place {
	ROUTE_FIRST,
	ROUTE_LAST,
	/* in the place of the first of them */
	ROUTE_REPLACE,
};

struct route_tab {
	struct hash_tab leaves;
	struct hash_tab bodies;
	struct hash_tab tables;
	uint32_t route_cnt;
	uint32_t epoch;
};

/* The question that a look-up answers. */
struct route_query {
	struct ip_addr dst;
	/* the whole byte; only some of its bits are looked at */
	uint8_t tos;
	/* 0: any */
	int oif;
	/* routes of a wider scope are passed over; 0: none */
	uint8_t scope;
};

struct route_match {
	/* its hops are borrowed, as is the next one */
	struct route route;
	/* the first usable next hop; NULL for a route that has none */
	const struct route_hop *hop;
};

void route_tab_init(struct route_tab *tab);
void route_tab_destroy(struct route_tab *tab);

/* Adds a copy of the route and its hops. 1: something changed, 0: it was known. Or
 * -ENOMEM. */
int route_tab_insert(struct route_tab *tab, const struct route *route,
		     enum route_place place) MUST_CHECK;
/* The route that equals this one in everything but next hops' flags. Whether
 * there was one. */
bool route_tab_remove(struct route_tab *tab, const struct route *route);
/* How many there are of the same prefix, tos and metric: ROUTE_REPLACE means the place of the
 * first. The copy's hops are borrowed. */
unsigned route_tab_rivals(const struct route_tab *tab, const struct route *route,
			  struct route *first_out) MUST_CHECK;

/* Around a new reading of all routes. The second function returns whether anything
 * was removed. */
void route_tab_mark(struct route_tab *tab);
bool route_tab_sweep(struct route_tab *tab);

/* Calls `visit` for all routes. Those of one prefix come in the kernel's order, the
 * prefixes in no order. `visit` gets a copy with borrowed hops. */
void route_tab_visit(const struct route_tab *tab,
		     void (*visit)(void *ctx, const struct route *route),
		     void *ctx);

/*
 * Finds the route with the longest prefix, the right tos and the lowest metric.
 * Several tables are searched as if they were one; among equal prefixes, those of
 * the first table come first. 0, or an error. -EAGAIN: there is no route, or it is
 * a throw route. -EINVAL (blackhole), -EHOSTUNREACH (unreachable) or -EACCES
 * (prohibit): the route refuses. -EOPNOTSUPP: it is a foreign route. The match is
 * borrowed until the next change.
 */
int route_tab_lookup(const struct route_tab *tab, const uint32_t *tables,
		     unsigned table_cnt, const struct route_query *query,
		     const struct link_tab *links,
		     struct route_match *match_out) MUST_CHECK;

/* IPv4 addresses, in host order and with both ends. */
struct route_stretch {
	uint32_t first;
	uint32_t last;
};

/* The destinations around this one, which is IPv4, that no route of any table tells
 * from it: a look-up of each has the same answer. Among many routes that is just the
 * one, since it takes a walk over all of them. */
struct route_stretch route_tab_stretch(const struct route_tab *tab,
				       const struct ip_addr *dst);

/* Whether a next hop can be used at all. It cannot when it is dead, when its link
 * is gone, or when its link is down, unless the route leads to this host. */
bool route_hop_is_usable(const struct route *route, const struct route_hop *hop,
			 const struct link_tab *links);

#endif
