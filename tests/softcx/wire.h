/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: frames to and from the interface, in batches, over a packet socket
 * that sees only what rules claim. Guarded by the card's lock.
 */
#ifndef SOFTCX_WIRE_H
#define SOFTCX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { WIRE_BATCH = 64 };

struct wire_buffers;

struct wire {
	int fd;
	unsigned int n_tx;   /* committed and not yet sent */
	size_t tx_len[WIRE_BATCH];
	struct wire_buffers *buffers;
};

/* What became of frames given to wire_flush. */
struct wire_sent {
	unsigned int n_sent;
	unsigned int n_failed; /* the interface refused them: link down */
};

/* `prog_fd`: the filter's program for the socket. */
MUST_CHECK int wire_open(struct wire *wire, int ifindex, int prog_fd);
void wire_close(struct wire *wire);

/* Room for one frame of FRAME_MAX_LEN; NULL while the batch is full. */
uint8_t *wire_tx_reserve(struct wire *wire);
/* What was reserved is a frame of `len` bytes; shorter ones are padded. */
void wire_tx_commit(struct wire *wire, size_t len);
/* The committed frames, for whoever wants to see them before they leave. */
const uint8_t *wire_tx_frame(const struct wire *wire, unsigned int i,
			     size_t *len_out);
/* Sends what it can; the rest stays for the next call. */
struct wire_sent wire_flush(struct wire *wire);

/* Called for each frame received; the bytes are the callee's for the call. */
typedef void wire_rx_fn(void *ctx, uint8_t *frame, size_t len, bool is_whole);
/* At most one batch. The number of frames. */
unsigned int wire_receive(struct wire *wire, wire_rx_fn *fn, void *ctx);
/* Frames that were lost because the socket was full, since the last call. */
unsigned int wire_take_overruns(struct wire *wire);

#endif
