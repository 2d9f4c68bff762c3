/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of frames that a card is to stamp (ring_ops.tx_follow). Such a record waits with the
 * ring until the card has said when the frame left, and belongs to a socket's stamps
 * (tx_stamps.h) meanwhile, or to nobody. All of it is under the stack's lock.
 */
#ifndef SOCK_TX_FOLLOWED_H
#define SOCK_TX_FOLLOWED_H

#include "net/stack.h"
#include "sock/tx_stamps.h"

/* The ring's next frame is the record's, which the caller keeps, too. He ends that by a wish
 * for none (tx_follow(ring, NULL)) when it has been sent or not. `told`: see struct
 * ring_followed; it begins with tx_followed_told(). */
void tx_follow(struct ring *ring, struct pkt *record, void (*told)(struct pkt *record));

/* The frame was sent, and the card says when, or has said it. */
bool tx_is_followed(const struct pkt *record);

/* The caller's hold of it ends. The record, if it is to be queued at once; NULL: the ring will
 * tell it, or no frame was sent. */
struct pkt *tx_followed_leave(struct pkt *record, struct tx_stamps *stamps,
			      const struct tx_stamp *what) MUST_CHECK;

/* Of a record that was told: whose it is, who queues it now. NULL: nobody's, or the card has
 * not said anything; it was given back. */
struct tx_stamps *tx_followed_told(struct pkt *record, struct tx_stamp *what_out)
	MUST_CHECK;

/* Has rings look for what cards have said, for who polls in no other way. */
void tx_followed_look(const struct tx_stamps *stamps, struct stack *stack)
	REQUIRES(stack->lock);

/* What cards have yet to say is nobody's from now on. */
void tx_followed_forget(struct tx_stamps *stamps, struct stack *stack)
	REQUIRES(stack->lock);

#endif
