/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: a range of addresses under a key.
 */
#ifndef SOFTCX_MR_H
#define SOFTCX_MR_H

#include <stdbool.h>
#include <stdint.h>

#include "obj.h"
#include "umem.h"

struct dev;

struct mr {
	struct obj obj;
	struct ctx *ctx;
	struct pd *pd;
	struct obj *dm;      /* the device memory it is about, or NULL */
	uint64_t start;      /* in the program */
	uint64_t length;
	uint64_t iova;       /* what the card is told instead of start */
	uint32_t access;     /* IBV_ACCESS_... */
	uint32_t lkey;
	struct umem umem;
};

/* -EFAULT, -ENOMEM: as umem_pin() says. */
MUST_CHECK int mr_create(struct ctx *ctx, const struct mr *params,
			 struct mr **mr_out);
void mr_destroy(struct mr *mr);
/* What a queue wants of a region. */
struct mr_use {
	struct dev *dev;
	const struct pd *pd;
	uint32_t lkey;
	uint64_t addr;
	uint32_t len;
	const char *user;    /* for the line about it, if it is wrong */
};
/* False, after a violation, when the bytes are not (all) there, or are to be
 * written and may not be. */
MUST_CHECK bool mr_read(const struct mr_use *use, void *to);
MUST_CHECK bool mr_write(const struct mr_use *use, const void *from);

#endif
