/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: a range of addresses under a key. The card shares the
 * program's address space, so registering is remembering, and a use is a check.
 */
#ifndef SOFTCX_MR_H
#define SOFTCX_MR_H

#include <stdbool.h>
#include <stdint.h>

#include "obj.h"

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
};

MUST_CHECK int mr_create(struct ctx *ctx, const struct mr *params,
			 struct mr **mr_out);
void mr_destroy(struct mr *mr);
/*
 * Where the card finds `len` bytes at `addr` of the region, for a queue of `pd`.
 * NULL, after a violation that names `user`, when they are not (all) there, or
 * are to be written and may not be.
 */
void *mr_map(struct dev *dev, const struct pd *pd, uint32_t lkey, uint64_t addr,
	     uint64_t len, bool is_write, const char *user);

#endif
