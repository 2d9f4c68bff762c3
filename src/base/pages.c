/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory straight from the kernel (pages.h). */
#include "config.h"

#include "base/pages.h"

#include <sys/mman.h>

#include "base/compiler.h"

enum { FIRST_PIECE = 512 << 10 };

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

/* Where there is no room for so much, one huge page will do. */
static uint8_t *map_piece(size_t mapped, size_t *size_out)
{
	uint8_t *piece;

	*size_out = mapped ? MAX(mapped & ~(size_t)(HUGE_PAGE_SIZE - 1),
				 (size_t)HUGE_PAGE_SIZE) :
			     (size_t)FIRST_PIECE;
	piece = mapped ? pages_map_huge(*size_out) : pages_map(*size_out);
	if (piece || *size_out <= HUGE_PAGE_SIZE)
		return piece;
	*size_out = HUGE_PAGE_SIZE;
	return pages_map_huge(*size_out);
}

/* What is left of the last piece is lost. */
static void grow(struct arena *arena)
{
	size_t size;
	uint8_t *piece = map_piece(arena->mapped, &size);

	if (!piece)
		return;
	if (arena->is_not_inherited)
		not_inherited(piece, size);
	arena->at = piece;
	arena->left = size;
	arena->mapped += size;
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
