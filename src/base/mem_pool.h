/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for small objects of several sizes. It is mapped in large pieces, since a call may
 * run in a signal handler that has interrupted malloc, and what is released is kept for the
 * next one of its size. It takes no lock.
 */
#ifndef BASE_MEM_POOL_H
#define BASE_MEM_POOL_H

#include <stddef.h>

#include "base/pages.h"

/* Sizes are rounded up to a multiple of the step; what is larger than the last one is
 * mapped by itself. */
enum { MEM_POOL_STEP = 64, MEM_POOL_SIZES = 64 };

struct mem_pool_free;

struct mem_pool {
	struct mem_pool_free *free[MEM_POOL_SIZES];
	struct arena arena;
};

/* Zeroed, or NULL. All zeroes is an empty struct mem_pool. */
void *mem_pool_get(struct mem_pool *memory, size_t size);
void mem_pool_put(struct mem_pool *memory, void *mem, size_t size);

#endif
