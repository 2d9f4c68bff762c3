/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts: an opened /dev/infiniband/uverbsN, what was created through it, and
 * its asynchronous events. Everything here is called under the card's lock.
 */
#ifndef SOFTCX_CTX_H
#define SOFTCX_CTX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

struct card;
struct chan;
struct ctx;
struct dev;

MUST_CHECK int ctx_create(struct card *card, struct dev *dev, int fd,
			  struct ctx **ctx_out);
/* Destroys all that is left in it, as the kernel does at close. */
void ctx_destroy(struct card *card, struct ctx *ctx);

/* The channel of asynchronous events; made by the first call. */
MUST_CHECK int ctx_open_async(struct ctx *ctx, int *fd_out);
/* Whether the event was raised and counts as one to acknowledge. */
bool ctx_raise_async(struct ctx *ctx, uint32_t type, uint64_t element);
unsigned int ctx_withdraw_async(struct ctx *ctx, uint64_t element);

MUST_CHECK int ctx_create_chan(struct ctx *ctx, int *fd_out);
/* NULL: `fd` is no completion channel of this context. */
struct chan *ctx_find_chan(struct ctx *ctx, int fd);
/* The program closed its end of a channel. */
void ctx_close_chan(struct ctx *ctx, int fd);

/* NULL: the context has nothing at this offset. */
void *ctx_mmap(struct ctx *ctx, void *addr, size_t len, int prot, int flags,
	       off_t offset);
/* The pages that show the clock. */
void ctx_publish_clock(struct ctx *ctx, uint64_t now_ns);

/* For all UAR pages: see uar_set_guard(). */
void ctx_set_guard(struct ctx *ctx, bool is_guarded);
/* Takes notice of doorbells rung so far, before what they ring is destroyed. */
void ctx_take_doorbells(struct ctx *ctx);
/* The end of a step: completions wait no longer for others. */
void ctx_flush_cqs(struct ctx *ctx);
/* Looks for doorbells and for queues that are due. The number of things done. */
int ctx_poll(struct ctx *ctx, uint64_t now_ns);

#endif
