/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A destination of datagrams (net/dst.h), with the UDP header and what is known of
 * checksums before the payload is.
 */
#ifndef SOCK_UDP_UDP_WAY_H
#define SOCK_UDP_UDP_WAY_H

#include "net/dst.h"

struct WIRE_PACKED udp_header {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
};

struct udp_way {
	struct dst dst;
	/* the longest datagram that one frame carries, without headers; 0
	 * without a ring */
	uint32_t payload_max;
	/* The header is for a payload of this length. The partial sums are of
	 * the IP header without identification, which has 16 bits, and of all
	 * that the UDP checksum covers but the payload. */
	uint32_t len;
	uint32_t ip_sum;
	uint32_t udp_sum;
	/* begins as the destination's; the UDP checksum is 0 */
	struct udp_header header;
};

/* Makes the header one for a payload of `len` bytes. Under the stack's lock. */
static inline void udp_way_set_len(struct udp_way *way, uint32_t len)
{
	struct udp_header *header = &way->header;
	uint32_t udp_len = len + (uint32_t)sizeof(header->udp);

	way->len = len;
	header->udp.len = htobe16((uint16_t)udp_len);
	header->ip.total_len = htobe16(
		(uint16_t)(udp_len + sizeof(header->ip)));
	header->ip.id = 0;
	header->ip.check = 0;
	way->ip_sum = (uint16_t)~csum_fold(
		csum_words(&header->ip, sizeof(header->ip) / 4));
	/* the pseudo header has the UDP length, too */
	way->udp_sum = csum_add(csum_words(&header->ip.src, 2),
				htobe16(WIRE_PROTO_UDP));
	way->udp_sum = csum_add(way->udp_sum, header->udp.len);
	way->udp_sum = csum_add(way->udp_sum, csum_words(&header->udp, 2));
}

/* Answers way->dst.query. The owner of `way` keeps other threads from it. */
static inline void udp_way_resolve(struct udp_way *way, struct net *net)
{
	dst_resolve(&way->dst, net);
	way->payload_max = way->dst.packet_max;
	if (!way->dst.ring)
		return;
	way->payload_max -= (uint32_t)(sizeof(struct wire_ipv4) +
				       sizeof(struct wire_udp));
	way->header = (struct udp_header){
		.eth = way->dst.header.eth,
		.ip = way->dst.header.ip,
		.udp.src_port = way->dst.query.local_port,
		.udp.dst_port = way->dst.query.remote_port,
	};
	udp_way_set_len(way, 0);
}

/* The same way to another peer, whom it serves (dst_serves). Under the stack's lock. */
static inline void udp_way_turn(struct udp_way *way, __be32 remote, __be16 port)
{
	way->dst.query.remote = ip_addr_from_v4(remote);
	way->dst.query.remote_port = port;
	way->dst.header.ip.dst = remote;
	way->header.ip.dst = remote;
	way->header.udp.dst_port = port;
	udp_way_set_len(way, way->len);
}

static inline void udp_way_refuse(struct udp_way *way, enum reason reason)
{
	dst_refuse(&way->dst, reason);
	way->payload_max = 0;
}

/* Fills in what differs from one datagram to the next, in the way's header or a copy.
 * Under the stack's lock. */
static ALWAYS_INLINE void udp_way_number(struct udp_way *way,
					 struct udp_header *header)
{
	/* only that they differ counts: the order of this machine will do */
	uint16_t id = way->dst.next_id++;

	header->ip.id = id;
	header->ip.check = csum_fold(way->ip_sum + id);
}

/* The header for a payload of `len` bytes, and in `tx` how to send it. Under the
 * stack's lock, until the ring has it. */
static inline void udp_way_fill(struct udp_way *way, uint32_t len,
				struct ring_tx *tx)
{
	udp_way_set_len(way, len);
	udp_way_number(way, &way->header);
	tx->header = (const uint8_t *)&way->header;
	tx->header_len = sizeof(way->header);
	tx->flags = RING_TX_CSUM | RING_TX_CSUM_NOT_ZERO;
	tx->csum_at = offsetof(struct udp_header, udp.check);
	tx->csum_sum = way->udp_sum;
}

/* Writes a whole frame for the way's ring: header and payload. Returns how long it is.
 * Under the stack's lock. */
static ALWAYS_INLINE size_t udp_way_write(struct udp_way *way, const struct ring *ring,
					  const void *payload, size_t len,
					  uint8_t *frame)
{
	struct udp_header *header = (struct udp_header *)frame;
	uint32_t sum;

	if (UNLIKELY((uint32_t)len != way->len))
		udp_way_set_len(way, (uint32_t)len);
	*header = way->header;
	udp_way_number(way, header);
	if (ring->fills_csum) {
		memcpy(header + 1, payload, OPAQUE(len));
		return sizeof(*header) + len;
	}
	sum = csum_bytes((uint8_t *)(header + 1), payload, len, way->udp_sum,
			 true);
	header->udp.check = csum_fold_not_zero(sum);
	return sizeof(*header) + len;
}

#endif
