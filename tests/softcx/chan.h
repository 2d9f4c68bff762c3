/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: what libibverbs reads completion and asynchronous events from.
 * A channel is a pipe, so the program may poll and read it in any way it likes.
 */
#ifndef SOFTCX_CHAN_H
#define SOFTCX_CHAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct chan {
	struct list link;     /* ctx->chans; the async one is on no list */
	int user_fd;          /* the program's end; -1 once it closed it */
	int read_fd;          /* our own view of that end, non-blocking */
	int write_fd;
	size_t event_size;
	unsigned int n_users; /* CQs that raise events here */
};

/* Events begin with the 8 bytes that say what they are about. */
MUST_CHECK int chan_create(size_t event_size, struct chan **chan_out);
/* Closes our ends; the program's is its own to close. */
void chan_destroy(struct chan *chan);
/* False when the program lets thousands of events lie and this one is lost. */
bool chan_raise(struct chan *chan, const void *event);
/* Takes back the events about `element` that were not read; returns how many. */
unsigned int chan_withdraw(struct chan *chan, uint64_t element);

#endif
