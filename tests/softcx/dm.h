/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory: a few pages of the card that a program may write to and send
 * from. Here they are shared memory with two views.
 */
#ifndef SOFTCX_DM_H
#define SOFTCX_DM_H

#include <stddef.h>
#include <stdint.h>

#include "obj.h"

struct ctx;

enum {
	DM_MAX_SIZE = 256 << 10, /* in total; what query_device reports */
	DM_ALIGN = 64,
	DM_MAX_PAGES = 4096,
};

struct dm {
	struct obj obj;
	uint32_t page;      /* index in the mmap offset */
	uint64_t length;
	size_t map_size;
	int fd;
	void *memory;       /* the card's view */
};

MUST_CHECK int dm_create(struct ctx *ctx, uint64_t length, struct dm **dm_out);
void dm_destroy(struct ctx *ctx, struct dm *dm);
/* `page` as in the mmap offset, with the command. */
void *dm_mmap(struct ctx *ctx, uint64_t page, void *addr, size_t len, int prot,
	      int flags);

#endif
