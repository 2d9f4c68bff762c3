/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram that is too long for one frame, on its way out as fragments
 * (ip/ip_frag.h). In three steps, since the program's bytes are copied without the
 * stack's lock: frames are taken, filled, and sent. All of it goes, or nothing.
 *
 *	struct dst_cut cut;
 *
 *	err = dst_cut_begin(&cut, dst, len);         the lock is held
 *	LIST_FOR_EACH(pkt, &cut.pieces, link)        without the lock
 *		copy(pkt->data, pkt->len);
 *	dst_cut_sum(&cut);
 *	if (dst_cut_suits(&cut, dst))                with the lock again
 *		err = dst_cut_send(&cut, dst, stack);
 *	else
 *		dst_cut_drop(&cut);
 */
#ifndef NET_DST_CUT_H
#define NET_DST_CUT_H

#include "net/dst.h"

/* More fragments than this make a datagram the kernel's. */
enum { DST_CUT_PIECES_MAX = 128 };

struct dst_cut {
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
int dst_cut_begin(struct dst_cut *cut, const struct dst *dst, uint32_t len)
	MUST_CHECK;

/* The pieces are filled. */
void dst_cut_sum(struct dst_cut *cut);

/* Whether the pieces are what the destination takes now. */
static inline bool dst_cut_suits(const struct dst_cut *cut,
				 const struct dst *dst)
{
	return dst->ring == cut->ring && dst->cut_mtu == cut->mtu;
}

/* Sends them all. -EAGAIN: the ring has no room for them. Takes the pieces either
 * way. */
int dst_cut_send(struct dst_cut *cut, const struct dst *dst,
		 struct stack *stack) MUST_CHECK REQUIRES(stack->lock);

/* Gives the frames back, under the stack's lock. */
void dst_cut_drop(struct dst_cut *cut);

#endif
