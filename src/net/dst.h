/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way to one destination: the ring, and the headers of a packet up to IP's, in
 * which everything is filled in that is the same for all packets. It is looked up
 * once, and again when routes or neighbours have changed. The headers behind IP's
 * are up to the protocol.
 */
#ifndef NET_DST_H
#define NET_DST_H

#include "net/net.h"
#include "pkt/wire.h"

struct paced;

struct WIRE_PACKED dst_header {
	struct wire_eth eth;
	struct wire_ipv4 ip;
};

/* Whether packets may be fragmented on their way. */
enum dst_df {
	DST_DF_NEVER,
	DST_DF_USUAL, /* set, unless the route has a locked MTU */
	DST_DF_ALWAYS,
};

/* Whether we ask the kernel for a neighbour whose address it does not know. */
enum dst_ask {
	/* We do not ask. The caller sends a packet through the kernel, which finds
	 * the neighbour out for that. */
	DST_ASK_NOT,
	/* We ask, whatever the result of earlier questions was. */
	DST_ASK_ANEW,
	/* The kernel has been asked already, and may have found that there is no
	 * such neighbour. */
	DST_ASK_ONCE,
};

/* Everything that the answer depends on. */
struct dst_query {
	struct ip_addr local; /* the any-address: Linux's rules choose one */
	struct ip_addr remote;
	__be16 local_port;
	__be16 remote_port;
	uint8_t proto; /* the number of the protocol in IP */
	/* the stack whose ring sends the packets */
	struct stack *stack;
	/* The socket's rings for what is sent at a pace; NULL: it has none. And how often that
	 * has changed, which tells answers of different times apart. */
	struct paced *paced;
	uint32_t pace_gen;
	int ifindex; /* 0: any */
	uint32_t mark;
	uint32_t uid;
	uint32_t priority; /* of packets in the kernel, for the tags of VLANs */
	uint8_t tos;
	uint8_t ttl; /* 0: nobody knows */
	/* the program has chosen the TTL, and the route's hop limit does not count */
	bool has_own_ttl;
	bool is_on_link_only;
	/* a packet longer than the path allows may be sent in fragments */
	bool may_cut;
	uint8_t df;  /* enum dst_df */
	uint8_t ask; /* enum dst_ask; makes no difference to the answer */
	/* ignore the path MTU that routers told us of, and the MTU of the route */
	bool is_mtu_of_link;
};

struct dst {
	/* the generation of the view that the answer is of; 0: never asked */
	uint64_t view_gen;
	/* NULL: the kernel has to send, because of `reason` */
	struct ring *ring;
	enum reason reason;
	/* the kernel has been asked for the neighbour, and will tell us the result */
	bool is_awaited;
	/* the longest IP packet that one frame carries; 0 without a ring */
	uint32_t packet_max;
	struct route_tcp tcp;
	/* the query's local address, or the one that the route chooses; any: there is no
	 * route */
	struct ip_addr source;
	/* The length of the fragments of a longer packet, IP header included. 0: the
	 * kernel has to send longer packets. */
	uint32_t cut_mtu;
	/* Under the stack's lock: the identification of the next packet. */
	uint16_t next_id;
	/* complete, except for length, identification and checksum; where the ring is a
	 * VLAN's, with the tag's word for Ethernet's type (dev/ring.h) */
	struct dst_header header;
	struct dst_query query;
	/* If there is a ring: a range of remote addresses for which the same query
	 * has the same answer, except for the address in the header. */
	struct route_stretch serves;
};

static inline bool dst_query_eq(const struct dst_query *a,
				const struct dst_query *b)
{
	return a->remote_port == b->remote_port && a->proto == b->proto &&
	       a->pace_gen == b->pace_gen &&
	       ip_addr_eq(&a->remote, &b->remote) &&
	       ip_addr_eq(&a->local, &b->local) &&
	       a->local_port == b->local_port && a->ifindex == b->ifindex &&
	       a->mark == b->mark && a->uid == b->uid && a->tos == b->tos &&
	       a->priority == b->priority &&
	       a->ttl == b->ttl && a->has_own_ttl == b->has_own_ttl &&
	       a->df == b->df &&
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

/* Answers dst->query. The caller sees to it that no other thread uses `dst`
 * meanwhile. */
void dst_resolve(struct dst *dst, struct net *net) EXCLUDES(net->control);

/* Notes that the kernel has to send, and why. */
static inline void dst_refuse(struct dst *dst, enum reason reason)
{
	dst->ring = NULL;
	dst->packet_max = 0;
	dst->cut_mtu = 0;
	dst->reason = reason;
	dst->is_awaited = false;
}

#endif
