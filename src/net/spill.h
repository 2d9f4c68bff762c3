/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of received packets in ordinary memory. A device has few frames. Packets
 * that sockets do not take in time are copied here, so that the device always has
 * frames to receive into. All of this is under the stack's lock. The stack makes the
 * stocks grow and shrink.
 */
#ifndef NET_SPILL_H
#define NET_SPILL_H

#include "pkt/pkt_stock.h"

/* There are buffers of a few sizes, so that a short datagram does not need the
 * memory of a whole frame. */
enum { SPILL_SIZES = 3 };

struct spill {
	struct pkt_stock stocks[SPILL_SIZES];
};

void spill_init(struct spill *spill);

/* Packets of this size may have to be copied soon. True: the stock should have more
 * memory. */
bool spill_prepare(struct spill *spill, const struct pkt *pkt);
/* NULL: there is no memory yet. */
struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt) MUST_CHECK;

#endif
