/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of received packets in ordinary memory. A device has few frames; what
 * sockets do not take in time moves here, so that the device always has some to
 * receive into. Under the lock of the stack, except where said otherwise.
 */
#ifndef NET_SPILL_H
#define NET_SPILL_H

#include "pkt/pkt_pool.h"

/* Buffers of a few sizes, so that many short datagrams do not take the room of
 * as many frames. */
enum { SPILL_SIZES = 3 };

struct spill {
	/* each grows by slabs, and never shrinks while a packet of it lives */
	struct pkt_pool pools[SPILL_SIZES];
	/* bit by bit the sizes that are wanted and have run short */
	unsigned wanted;
};

/* Slabs for each size, on their way in or out. */
struct spill_slabs {
	struct pkt_slab *slabs[SPILL_SIZES];
};

void spill_init(struct spill *spill);
/* No packet is left. */
void spill_destroy(struct spill *spill);

/* Packets like this one may have to be copied soon. */
void spill_prepare(struct spill *spill, const struct pkt *pkt);
/* A copy of a packet in one buffer, or NULL: it has several, is too long, or
 * there is no memory yet. */
struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt) MUST_CHECK;

/* There is less memory than there should be: spill_grow, without the lock, then
 * spill_add. */
static inline bool spill_is_short(const struct spill *spill)
{
	return spill->wanted != 0;
}

/* The sizes that are wanted, which are not from then on. */
unsigned spill_take_wanted(struct spill *spill);
/* Without the lock. What there is no memory for is left out. */
struct spill_slabs spill_grow(unsigned wanted);
void spill_add(struct spill *spill, const struct spill_slabs *more);

/* Takes out the slabs of which no packet is used; spill_free, without the lock,
 * gives them back. */
struct spill_slabs spill_shrink(struct spill *spill);
void spill_free(const struct spill_slabs *slabs);

#endif
