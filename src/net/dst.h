/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way to one destination: which ring, and the headers of a datagram with
 * everything filled in that does not change from one to the next. Looked up once,
 * and again when routes or neighbours have changed.
 */
#ifndef NET_DST_H
#define NET_DST_H

#include "net/net.h"
#include "pkt/wire.h"

struct WIRE_PACKED dst_header {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
};

/* Whether datagrams may be fragmented on their way. */
enum dst_df {
	DST_DF_NEVER,
	DST_DF_USUAL, /* set, unless the route forbids to find out its MTU */
	DST_DF_ALWAYS,
};

/* Everything that the answer depends on. */
struct dst_query {
	struct ip_addr local; /* any: to be chosen */
	struct ip_addr remote;
	__be16 local_port;
	__be16 remote_port;
	int ifindex; /* 0: any */
	uint32_t mark;
	uint32_t uid;
	uint8_t tos;
	uint8_t ttl; /* 0: the route's or the system's */
	bool is_on_link_only;
	/* what is longer than the way allows may be sent in pieces */
	bool may_cut;
	uint8_t df; /* enum dst_df */
};

struct dst {
	/* 0: never asked */
	uint32_t route_gen;
	uint32_t neigh_gen;
	/* NULL: the kernel's, for `reason` */
	struct ring *ring;
	enum reason reason;
	/* the longest datagram that one frame carries, without headers; 0
	 * without a ring */
	uint32_t payload_max;
	/* How long the fragments of a longer one are, IP header included; 0:
	 * it is the kernel's. */
	uint32_t cut_mtu;
	/* partial sums of the IP header without length and identification, and
	 * of pseudo and UDP header without lengths */
	uint32_t ip_sum;
	uint32_t udp_sum;
	/* The stack's lock. The checksum fields of the header are 0 but while
	 * it is sent. */
	uint16_t next_id;
	struct dst_header header;
	struct dst_query query;
};

static inline bool dst_query_eq(const struct dst_query *a,
				const struct dst_query *b)
{
	return a->remote_port == b->remote_port &&
	       ip_addr_eq(&a->remote, &b->remote) &&
	       ip_addr_eq(&a->local, &b->local) &&
	       a->local_port == b->local_port && a->ifindex == b->ifindex &&
	       a->mark == b->mark && a->uid == b->uid && a->tos == b->tos &&
	       a->ttl == b->ttl && a->df == b->df &&
	       a->may_cut == b->may_cut &&
	       a->is_on_link_only == b->is_on_link_only;
}

/* Whether the answer still holds. Any thread. */
static inline bool dst_is_valid(const struct dst *dst, const struct net *net)
{
	return dst->route_gen == net_view_route_gen(&net->view) &&
	       dst->neigh_gen == net_view_neigh_gen(&net->view);
}

/* Answers dst->query. The owner of `dst` keeps other threads from it. */
void dst_resolve(struct dst *dst, struct net *net) EXCLUDES(net->control);

/* Fills the header in for a payload of `len` bytes, and says in `tx` how to send
 * it. Under the stack's lock, until the ring has it. */
static inline void dst_fill(struct dst *dst, uint32_t len, struct ring_tx *tx)
{
	struct dst_header *header = &dst->header;
	uint16_t udp_len = htobe16((uint16_t)(len + sizeof(header->udp)));
	uint16_t ip_len = htobe16((uint16_t)(len + sizeof(header->udp) +
					     sizeof(header->ip)));
	uint16_t id = htobe16(dst->next_id++);

	header->ip.total_len = ip_len;
	header->ip.id = id;
	header->ip.check =
		csum_fold(csum_add(dst->ip_sum, (uint32_t)ip_len + id));
	header->udp.len = udp_len;
	tx->header = (const uint8_t *)header;
	tx->header_len = sizeof(*header);
	tx->flags = RING_TX_CSUM | RING_TX_CSUM_NOT_ZERO;
	tx->csum_at = offsetof(struct dst_header, udp.check);
	/* once in the pseudo header and once in the header */
	tx->csum_sum = csum_add(dst->udp_sum, 2 * (uint32_t)udp_len);
	tx->segment_len = 0;
}

#endif
