/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory straight from the kernel, and memory that grows. Not malloc's: what needs it may
 * run inside a call that an allocator makes, or in a signal handler that has interrupted
 * one.
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HUGE_PAGE_SIZE = 2 << 20 };

/* Zeroes, or NULL. Given back with munmap(). */
void *pages_map(size_t size);

/* The same, but in the child of a fork nothing is mapped there, and the fork costs nothing
 * for it. */
void *pages_map_not_inherited(size_t size);

/* The first at an address where a huge page can begin, which the kernel is asked to use
 * also when none are reserved. It need not follow. */
void *pages_map_huge(size_t size);

/*
 * What objects are cut from, which are kept for ever. The first piece has small pages, which
 * come as they are used, so that one object costs little. What has become large grows by huge
 * pages, each piece as large as all before: a fork then copies one entry of the page table
 * for 2 MB, and not 512, and finds few mappings. All zeroes is an empty one.
 */
struct arena {
	uint8_t *at;
	size_t left, mapped;
	/* The child of a fork has nothing of it. Set before the first cut. */
	bool is_not_inherited;
};

/* Zeroes, or NULL. At most 64 KB; the alignment is that of the sizes that are cut. */
void *arena_cut(struct arena *arena, size_t size);

#endif
