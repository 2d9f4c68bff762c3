/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What rings do with a frame that cannot be sent as it was given: copying, and the
 * checksum that the device does not compute. Compiled into each back end. */
#ifndef DEV_RING_TX_H
#define DEV_RING_TX_H

#include "dev/ring.h"

/* A packet of the ring with header and payload, without the checksum that the flags
 * ask for. The payload stays the caller's. NULL: there is no frame, or it does not
 * fit. Under the stack's lock. */
struct pkt *ring_tx_copy(struct ring *ring, const struct ring_tx *tx);

/*
 * The frame in one packet of the ring: its payload where there is nobody else who has
 * it, and room for the header in front, else a copy. Takes the payload. With `fills`,
 * the checksum is stored that the flags ask for. NULL as above.
 */
struct pkt *ring_tx_wrap(struct ring *ring, const struct ring_tx *tx, bool fills);

/* The bytes of a run, copied to packets of the ring that are parts of one. NULL: there
 * are too few of them. */
struct pkt *ring_tx_copy_run(struct ring *ring, const struct ring_tx *tx);

/* The checksum that the flags ask for, over the payload, whatever its parts are. */
uint16_t ring_tx_csum(const struct ring_tx *tx);

#endif
