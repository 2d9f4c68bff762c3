/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way to one destination: which ring, and the headers of a packet up to IP's with
 * everything filled in that does not change from one to the next. Looked up once,
 * and again when routes or neighbours have changed. What follows the IP header is
 * the protocol's own.
 */
#ifndef NET_DST_H
#define NET_DST_H

#include "net/net.h"
#include "pkt/wire.h"

struct WIRE_PACKED dst_header {
	struct wire_eth eth;
	struct wire_ipv4 ip;
};

/* Whether packets may be fragmented on their way. */
enum dst_df {
	DST_DF_NEVER,
	DST_DF_USUAL, /* set, unless the route forbids to find out its MTU */
	DST_DF_ALWAYS,
};

/* Whether the kernel is asked for a neighbour whose address it does not know. */
enum dst_ask {
	/* No: a packet that is sent through it makes it find out. */
	DST_ASK_NOT,
	/* Whatever came of it before. */
	DST_ASK_ANEW,
	/* It has been, and may have found that there is none. */
	DST_ASK_ONCE,
};

/* Everything that the answer depends on. */
struct dst_query {
	struct ip_addr local; /* any: to be chosen */
	struct ip_addr remote;
	__be16 local_port;
	__be16 remote_port;
	uint8_t proto; /* IP's */
	/* whose ring it leaves by */
	struct stack *stack;
	int ifindex; /* 0: any */
	uint32_t mark;
	uint32_t uid;
	uint8_t tos;
	uint8_t ttl; /* 0: the route's or the system's */
	bool is_on_link_only;
	/* what is longer than the way allows may be sent in pieces */
	bool may_cut;
	uint8_t df;  /* enum dst_df */
	uint8_t ask; /* enum dst_ask; makes no difference to the answer */
	/* neither what was learned of the path nor the route's MTU counts */
	bool is_mtu_of_link;
};

struct dst {
	/* 0: never asked */
	uint64_t view_gen;
	/* NULL: the kernel's, for `reason` */
	struct ring *ring;
	enum reason reason;
	/* the kernel has been asked for the neighbour, and will have news */
	bool is_awaited;
	/* the longest IP packet that one frame carries; 0 without a ring */
	uint32_t packet_max;
	/* How long the fragments of a longer one are, IP header included; 0:
	 * it is the kernel's. */
	uint32_t cut_mtu;
	/* The stack's lock. */
	uint16_t next_id;
	/* without the length, the identification and the checksum */
	struct dst_header header;
	struct dst_query query;
	/* With a ring: remote addresses for which the same query has the same
	 * answer, but for the address in the header. */
	struct route_stretch serves;
};

static inline bool dst_query_eq(const struct dst_query *a,
				const struct dst_query *b)
{
	return a->remote_port == b->remote_port && a->proto == b->proto &&
	       ip_addr_eq(&a->remote, &b->remote) &&
	       ip_addr_eq(&a->local, &b->local) &&
	       a->local_port == b->local_port && a->ifindex == b->ifindex &&
	       a->mark == b->mark && a->uid == b->uid && a->tos == b->tos &&
	       a->ttl == b->ttl && a->df == b->df &&
	       a->may_cut == b->may_cut &&
	       a->is_mtu_of_link == b->is_mtu_of_link &&
	       a->is_on_link_only == b->is_on_link_only;
}

/* Whether the answer still holds. Under the lock of the stack whose ring it is. */
static inline bool dst_is_valid(const struct dst *dst, const struct stack *stack)
{
	return net_view_gen(&stack->net->view) == dst->view_gen;
}

/* Whether the answer also holds for this remote address, with any port. Under the
 * lock of the stack whose ring it is. */
static inline bool dst_serves(const struct dst *dst, const struct stack *stack,
			      __be32 remote)
{
	uint32_t addr = be32toh(remote);

	return dst->ring && addr >= dst->serves.first &&
	       addr <= dst->serves.last && dst_is_valid(dst, stack);
}

/* Answers dst->query. The owner of `dst` keeps other threads from it. */
void dst_resolve(struct dst *dst, struct net *net) EXCLUDES(net->control);

/* There is no other way than the kernel's. */
static inline void dst_refuse(struct dst *dst, enum reason reason)
{
	dst->ring = NULL;
	dst->packet_max = 0;
	dst->cut_mtu = 0;
	dst->reason = reason;
	dst->is_awaited = false;
}

#endif
