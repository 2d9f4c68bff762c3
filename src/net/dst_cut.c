/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams in pieces (dst_cut.h). */
#include "config.h"

#include "net/dst_cut.h"

#include <errno.h>

#include "base/hash.h"
#include "ip/ip_frag.h"

/* One datagram takes no more than this share of an interface's frames. */
enum { FRAMES_SHARE = 8 };

/* The pieces with the IP header as it is for all of them. */
static int begin_walk(struct ip_frag_walk *walk, const struct wire_ipv4 *ip,
		      uint32_t len, uint32_t mtu)
{
	struct wire_ipv4 header = *ip;

	/* A socket that wants DF without insisting on it has it on datagrams
	 * that fit alone, as with Linux. */
	header.frag = 0;
	return ip_frag_begin(walk, &header,
			     len + (uint32_t)sizeof(struct wire_udp), mtu);
}

/* The UDP header, which the first piece brings, is not in a packet. */
static int take_frames(struct dst_cut *cut, struct ip_frag_walk *walk)
{
	struct ip_frag frag;

	while (ip_frag_next(walk, &frag)) {
		struct pkt *pkt = ring_pkt_alloc(cut->ring);

		if (!pkt)
			return -EAGAIN;
		list_push_back(&cut->pieces, &pkt->link);
		if (frag.offset == 0)
			frag.len -= (uint32_t)sizeof(struct wire_udp);
		pkt_append(pkt, frag.len);
	}
	return 0;
}

int dst_cut_begin(struct dst_cut *cut, const struct dst *dst, uint32_t len)
{
	uint32_t frame_cnt = dst->ring->dev->region->frame_cnt;
	struct ip_frag_walk walk;
	int err;

	*cut = (struct dst_cut){
		.ring = dst->ring,
		.len = len,
		.mtu = dst->cut_mtu,
	};
	list_init(&cut->pieces);
	err = begin_walk(&walk, &dst->header.ip, len, cut->mtu);
	if (err)
		return err;
	cut->piece_cnt = ip_frag_cnt(&walk);
	if (cut->piece_cnt > MIN((uint32_t)DST_CUT_PIECES_MAX,
				 frame_cnt / FRAMES_SHARE))
		return -EMSGSIZE;
	err = take_frames(cut, &walk);
	if (err)
		dst_cut_drop(cut);
	return err;
}

void dst_cut_sum(struct dst_cut *cut)
{
	const struct pkt *pkt;

	/* each piece but the last has an even length */
	cut->sum = 0;
	LIST_FOR_EACH(pkt, &cut->pieces, link)
		cut->sum = csum_partial(pkt->data, pkt->len, cut->sum);
}

/* The identification of a datagram between two hosts is one that none before it
 * had for as long as possible, whichever socket sends it. */
static __be16 next_id(struct stack *stack, const struct wire_ipv4 *ip)
	REQUIRES(stack->lock)
{
	uint64_t hash = hash_u64x2(stack->frag_seed, ip->src, ip->dst);

	return htobe16(stack->frag_ids[hash % ARRAY_LEN(stack->frag_ids)]++);
}

int dst_cut_send(struct dst_cut *cut, const struct dst *dst,
		 struct stack *stack)
{
	struct dst_header header = dst->header;
	struct ip_frag_walk walk;
	struct ip_frag frag;
	int err = cut->ring->ops->tx_fits(cut->ring, cut->piece_cnt) ? 0 :
								       -EAGAIN;

	header.ip.id = next_id(stack, &header.ip);
	header.udp.len = htobe16((uint16_t)(cut->len + sizeof(header.udp)));
	header.udp.check = ip_udp_check(&header.ip, &header.udp, cut->sum);
	if (!err)
		err = begin_walk(&walk, &header.ip, cut->len, cut->mtu);
	while (!err && ip_frag_next(&walk, &frag)) {
		struct ring_tx tx = {
			.header = (const uint8_t *)&header,
			.header_len = offsetof(struct dst_header, udp),
			.payload = pkt_from_link(list_pop_front(&cut->pieces)),
		};

		if (frag.offset == 0)
			tx.header_len = sizeof(header);
		header.ip = frag.header;
		err = stack_tx_locked(stack, cut->ring, &tx);
	}
	dst_cut_drop(cut);
	return err;
}

void dst_cut_drop(struct dst_cut *cut)
{
	pkt_put_list(&cut->pieces);
}
