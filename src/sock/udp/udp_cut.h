/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram that is too long for one frame, on its way out as fragments
 * (ip/ip_frag.h). This takes three steps, since the program's bytes are copied
 * without the stack's lock: frames are taken, filled, and sent. All of it goes, or
 * nothing.
 *
 *	struct udp_cut cut;
 *
 *	err = udp_cut_begin(&cut, way, len);         the lock is held
 *	LIST_FOR_EACH(pkt, &cut.pieces, link)        without the lock
 *		copy(pkt->data, pkt->len);
 *	udp_cut_sum(&cut);
 *	if (udp_cut_suits(&cut, way))                with the lock again
 *		err = udp_cut_send(&cut, way, stack);
 *	else
 *		udp_cut_drop(&cut);
 */
#ifndef SOCK_UDP_UDP_CUT_H
#define SOCK_UDP_UDP_CUT_H

#include "sock/udp/udp_way.h"

/* More fragments than this make a datagram the kernel's. */
enum { UDP_CUT_PIECES_MAX = 128 };

struct udp_cut {
	struct ring *ring;
	/* of the datagram, without headers */
	uint32_t len;
	uint32_t mtu;
	/* of its bytes, once they are there */
	uint32_t sum;
	uint32_t piece_cnt;
	/* a packet for each fragment, as long as its share of the datagram */
	struct list pieces;
};

/* Takes the frames. -EAGAIN: there are not enough of them now; -EMSGSIZE: it takes
 * more than will ever be there for one datagram. Under the stack's lock. */
int udp_cut_begin(struct udp_cut *cut, const struct udp_way *way, uint32_t len)
	MUST_CHECK;

/* The pieces are filled. */
void udp_cut_sum(struct udp_cut *cut);

/* Whether the pieces are what the destination takes now. */
static inline bool udp_cut_suits(const struct udp_cut *cut,
				 const struct udp_way *way)
{
	const struct pkt *first = LIST_ENTRY(list_first(&cut->pieces), struct pkt, link);

	/* Another ring may be where that one was, but its pool lives as long as a frame of
	 * it is out. */
	return way->dst.ring == cut->ring && first->pool == cut->ring->pool &&
	       way->dst.cut_mtu == cut->mtu;
}

/* Sends them all. -EAGAIN: the ring has no room for them. Takes the pieces either
 * way. */
int udp_cut_send(struct udp_cut *cut, const struct udp_way *way,
		 struct stack *stack) MUST_CHECK REQUIRES(stack->lock);

/* Gives the frames back, under the stack's lock. */
void udp_cut_drop(struct udp_cut *cut);

#endif
