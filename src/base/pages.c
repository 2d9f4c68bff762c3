/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory straight from the kernel (pages.h). */
#include "config.h"

#include "base/pages.h"

#include <sys/mman.h>

#include "base/compiler.h"

enum { FIRST_PIECE = 64 << 10, SMALL_UP_TO = 1 << 20 };

void *pages_map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void *not_inherited(void *mem, size_t size)
{
	/* a child that has it all the same does not use it */
	if (mem)
		madvise(mem, size, MADV_DONTFORK);
	return mem;
}

void *pages_map_not_inherited(size_t size)
{
	return not_inherited(pages_map(size), size);
}

void *pages_map_huge(size_t size)
{
	uint8_t *mem = pages_map(size + HUGE_PAGE_SIZE), *start;
	size_t before;

	if (!mem)
		return NULL;
	before = -(uintptr_t)mem % HUGE_PAGE_SIZE;
	start = mem + before;
	if (before)
		munmap(mem, before);
	munmap(start + size, HUGE_PAGE_SIZE - before);
	/* the rest has small pages */
	madvise(start, size & ~(size_t)(HUGE_PAGE_SIZE - 1), MADV_HUGEPAGE);
	return start;
}

/* What is left of the last piece is lost. */
static void grow(struct arena *arena)
{
	bool is_huge = arena->mapped >= SMALL_UP_TO;
	size_t piece = is_huge ? HUGE_PAGE_SIZE :
				 MAX(arena->mapped, (size_t)FIRST_PIECE);

	arena->at = is_huge ? pages_map_huge(piece) : pages_map(piece);
	if (arena->is_not_inherited)
		not_inherited(arena->at, piece);
	arena->left = arena->at ? piece : 0;
	arena->mapped += arena->left;
}

void *arena_cut(struct arena *arena, size_t size)
{
	void *mem;

	if (arena->left < size)
		grow(arena);
	if (arena->left < size)
		return NULL;
	mem = arena->at;
	arena->at += size;
	arena->left -= size;
	return mem;
}
