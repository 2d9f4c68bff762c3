/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams in pieces (udp_cut.h). */
#include "config.h"

#include "sock/udp/udp_cut.h"

#include <errno.h>

#include "ip/ip_frag.h"

/* One datagram takes no more than this share of an interface's frames. */
enum { FRAMES_SHARE = 8 };

/* What is longer would wait for a room that there never is. */
static uint32_t pieces_max(const struct ring *ring)
{
	uint32_t cnt = MIN((uint32_t)UDP_CUT_PIECES_MAX,
			   ring->dev->region->frame_cnt / FRAMES_SHARE);

	return ring->tx_fits_max ? MIN(cnt, ring->tx_fits_max) : cnt;
}

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
static int take_frames(struct udp_cut *cut, struct ip_frag_walk *walk)
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

int udp_cut_begin(struct udp_cut *cut, const struct udp_way *way, uint32_t len)
{
	const struct dst *dst = &way->dst;
	struct ip_frag_walk walk;
	int err;

	*cut = (struct udp_cut){
		.ring = dst->ring,
		.len = len,
		.mtu = dst->cut_mtu,
	};
	list_init(&cut->pieces);
	err = begin_walk(&walk, &way->header.ip, len, cut->mtu);
	if (err)
		return err;
	cut->piece_cnt = ip_frag_cnt(&walk);
	if (cut->piece_cnt > pieces_max(cut->ring))
		return -EMSGSIZE;
	err = take_frames(cut, &walk);
	if (err)
		udp_cut_drop(cut);
	return err;
}

void udp_cut_sum(struct udp_cut *cut)
{
	const struct pkt *pkt;

	/* each piece but the last has an even length */
	cut->sum = 0;
	LIST_FOR_EACH(pkt, &cut->pieces, link)
		cut->sum = csum_partial(pkt->data, pkt->len, cut->sum);
}

int udp_cut_send(struct udp_cut *cut, const struct udp_way *way,
		 struct stack *stack)
{
	struct udp_header header = way->header;
	struct ip_frag_walk walk;
	struct ip_frag frag;
	int err = cut->ring->ops->tx_fits(cut->ring, cut->piece_cnt, 0) ? 0 : -EAGAIN;

	header.ip.id = stack_frag_id_locked(stack, header.ip.src, header.ip.dst);
	header.udp.len = htobe16((uint16_t)(cut->len + sizeof(header.udp)));
	header.udp.check = ip_udp_check(&header.ip, &header.udp, cut->sum);
	if (!err)
		err = begin_walk(&walk, &header.ip, cut->len, cut->mtu);
	while (!err && ip_frag_next(&walk, &frag)) {
		struct ring_tx tx = {
			.header = (const uint8_t *)&header,
			.header_len = offsetof(struct udp_header, udp),
			.payload = pkt_from_link(list_pop_front(&cut->pieces)),
		};

		if (frag.offset == 0)
			tx.header_len = sizeof(header);
		header.ip = frag.header;
		err = stack_tx_locked(stack, cut->ring, &tx);
	}
	udp_cut_drop(cut);
	return err;
}

void udp_cut_drop(struct udp_cut *cut)
{
	pkt_put_list(&cut->pieces);
}
