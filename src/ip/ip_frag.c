/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Computes where to cut a datagram, and the header of each fragment (ip_frag.h). */
#include "config.h"

#include "ip/ip_frag.h"

#include <errno.h>

enum {
	HEADER_LEN = sizeof(struct wire_ipv4),
	PACKET_MAX = 65535,
	/* RFC 791: every link carries this much. */
	MTU_MIN = 68,
	OFFSET_UNIT = 8,
};

int ip_frag_begin(struct ip_frag_walk *walk, const struct wire_ipv4 *header,
		  uint32_t len, uint32_t mtu)
{
	bool is_whole = HEADER_LEN + len <= mtu;

	if (mtu < MTU_MIN)
		return -EINVAL;
	if (len > PACKET_MAX - HEADER_LEN)
		return -EMSGSIZE;
	if (!is_whole && (header->frag & htobe16(WIRE_IPV4_DF)))
		return -EMSGSIZE;
	walk->header = *header;
	walk->len = len;
	walk->piece_len = is_whole ? len
				   : (mtu - HEADER_LEN) & ~(OFFSET_UNIT - 1u);
	walk->next = 0;
	return 0;
}

static void fill_header(const struct ip_frag_walk *walk, struct ip_frag *frag)
{
	struct wire_ipv4 *header = &frag->header;
	bool is_last = frag->offset + frag->len == walk->len;
	uint16_t place = (uint16_t)(frag->offset / OFFSET_UNIT);

	*header = walk->header;
	header->total_len = htobe16((uint16_t)(HEADER_LEN + frag->len));
	header->frag &= htobe16(WIRE_IPV4_DF);
	header->frag |= htobe16(place | (is_last ? 0 : WIRE_IPV4_MF));
	header->check = 0;
	header->check = csum_fold(csum_partial(header, sizeof(*header), 0));
}

bool ip_frag_next(struct ip_frag_walk *walk, struct ip_frag *out)
{
	/* A datagram without any bytes is a packet, too. */
	bool is_empty_one = walk->len == 0 && walk->next == 0;

	if (walk->next >= walk->len && !is_empty_one)
		return false;
	out->offset = walk->next;
	out->len = MIN(walk->piece_len, walk->len - walk->next);
	fill_header(walk, out);
	walk->next += is_empty_one ? 1 : out->len;
	return true;
}

uint32_t ip_frag_cnt(const struct ip_frag_walk *walk)
{
	if (!walk->len)
		return 1;
	return (walk->len + walk->piece_len - 1) / walk->piece_len;
}

uint16_t ip_udp_check(const struct wire_ipv4 *ip, const struct wire_udp *udp,
		      uint32_t payload_sum)
{
	struct ip_addr src = ip_addr_from_v4(ip->src);
	struct ip_addr dst = ip_addr_from_v4(ip->dst);
	struct wire_udp header = *udp;
	uint32_t sum = wire_pseudo_sum(&src, &dst, WIRE_PROTO_UDP,
				       be16toh(udp->len));
	uint16_t check;

	header.check = 0;
	sum = csum_partial(&header, sizeof(header), sum);
	check = csum_fold(csum_add(sum, payload_sum));
	return check ? check : 0xffff;
}
