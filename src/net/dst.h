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
	uint8_t df; /* enum dst_df */
	/* neither what was learned of the path nor the route's MTU counts */
	bool is_mtu_of_link;
};

struct dst {
	/* 0: never asked */
	uint64_t view_gen;
	/* NULL: the kernel's, for `reason` */
	struct ring *ring;
	enum reason reason;
	/* the longest datagram that one frame carries, without headers; 0
	 * without a ring */
	uint32_t payload_max;
	/* How long the fragments of a longer one are, IP header included; 0:
	 * it is the kernel's. */
	uint32_t cut_mtu;
	/* The header is for a payload of this length. The partial sums are of
	 * the IP header without identification, which has 16 bits, and of all
	 * that the UDP checksum covers but the payload. */
	uint32_t len;
	uint32_t ip_sum;
	uint32_t udp_sum;
	/* The stack's lock. The UDP checksum of the header is 0. */
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
	       a->is_mtu_of_link == b->is_mtu_of_link &&
	       a->is_on_link_only == b->is_on_link_only;
}

/* Whether the answer still holds. Under the lock of the stack whose ring it is. */
static inline bool dst_is_valid(const struct dst *dst, const struct stack *stack)
{
	return net_view_gen(&stack->net->view) == dst->view_gen;
}

/* Answers dst->query. The owner of `dst` keeps other threads from it. */
void dst_resolve(struct dst *dst, struct net *net) EXCLUDES(net->control);

/* Makes the header one for a payload of `len` bytes. Under the stack's lock. */
static inline void dst_set_len(struct dst *dst, uint32_t len)
{
	struct dst_header *header = &dst->header;
	uint32_t udp_len = len + (uint32_t)sizeof(header->udp);

	dst->len = len;
	header->udp.len = htobe16((uint16_t)udp_len);
	header->ip.total_len = htobe16(
		(uint16_t)(udp_len + sizeof(header->ip)));
	header->ip.id = 0;
	header->ip.check = 0;
	dst->ip_sum = (uint16_t)~csum_fold(
		csum_words(&header->ip, sizeof(header->ip) / 4));
	/* the pseudo header has the UDP length, too */
	dst->udp_sum = csum_add(csum_words(&header->ip.src, 2),
				htobe16(WIRE_PROTO_UDP));
	dst->udp_sum = csum_add(dst->udp_sum, header->udp.len);
	dst->udp_sum = csum_add(dst->udp_sum, csum_words(&header->udp, 2));
}

/* Fills in what differs from one datagram to the next, in the destination's header
 * or a copy. Under the stack's lock. */
static ALWAYS_INLINE void dst_number(struct dst *dst, struct dst_header *header)
{
	/* only that they differ counts: the order of this machine will do */
	uint16_t id = dst->next_id++;

	header->ip.id = id;
	header->ip.check = csum_fold(dst->ip_sum + id);
}

/* The header for a payload of `len` bytes, and in `tx` how to send it. Under the
 * stack's lock, until the ring has it. */
static inline void dst_fill(struct dst *dst, uint32_t len, struct ring_tx *tx)
{
	dst_set_len(dst, len);
	dst_number(dst, &dst->header);
	tx->header = (const uint8_t *)&dst->header;
	tx->header_len = sizeof(dst->header);
	tx->flags = RING_TX_CSUM | RING_TX_CSUM_NOT_ZERO;
	tx->csum_at = offsetof(struct dst_header, udp.check);
	tx->csum_sum = dst->udp_sum;
}

/* Writes a whole frame: header and payload. Returns how long it is. Under the
 * stack's lock. */
static ALWAYS_INLINE size_t dst_write(struct dst *dst, const void *payload,
				      size_t len, uint8_t *frame)
{
	struct dst_header *header = (struct dst_header *)frame;
	uint32_t sum;

	if (UNLIKELY((uint32_t)len != dst->len))
		dst_set_len(dst, (uint32_t)len);
	sum = csum_bytes((uint8_t *)(header + 1), payload, len, dst->udp_sum,
			 true);
	*header = dst->header;
	dst_number(dst, header);
	header->udp.check = csum_fold_not_zero(sum);
	return sizeof(*header) + len;
}

#endif
