/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of received packets in ordinary memory. A device has few frames; what
 * sockets do not take in time moves here, so that the device always has some to
 * receive into. Under the lock of the stack, which makes the stocks grow and shrink.
 */
#ifndef NET_SPILL_H
#define NET_SPILL_H

#include "pkt/pkt_stock.h"

/* Buffers of a few sizes, so that many short datagrams do not take the room of
 * as many frames. */
enum { SPILL_SIZES = 3 };

struct spill {
	struct pkt_stock stocks[SPILL_SIZES];
};

void spill_init(struct spill *spill);

/* Packets like this one may have to be copied soon. Whether there is less memory than
 * there should be. */
bool spill_prepare(struct spill *spill, const struct pkt *pkt);
/* A copy of a packet in one buffer, or NULL: it has several, is too long, or
 * there is no memory yet. */
struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt) MUST_CHECK;

#endif
