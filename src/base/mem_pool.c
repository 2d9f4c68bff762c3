/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory for small objects (mem_pool.h). */
#include "config.h"

#include "base/mem_pool.h"

#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

enum { LARGEST = MEM_POOL_STEP * MEM_POOL_SIZES };

struct mem_pool_free {
	struct mem_pool_free *next;
};

static size_t rounded(size_t size)
{
	return (size + MEM_POOL_STEP - 1) & ~(size_t)(MEM_POOL_STEP - 1);
}

static struct mem_pool_free **list_of(struct mem_pool *memory, size_t size)
{
	return &memory->free[rounded(size) / MEM_POOL_STEP - 1];
}

void *mem_pool_get(struct mem_pool *memory, size_t size)
{
	struct mem_pool_free *mem;

	if (size > LARGEST)
		return memory->arena.is_not_inherited ?
			       pages_map_not_inherited(size) :
			       pages_map(size);
	mem = *list_of(memory, size);
	if (!mem)
		return arena_cut(&memory->arena, rounded(size));
	*list_of(memory, size) = mem->next;
	memset(mem, 0, size);
	return mem;
}

void mem_pool_put(struct mem_pool *memory, void *mem, size_t size)
{
	struct mem_pool_free *free = mem;

	if (size > LARGEST) {
		munmap(mem, size);
		return;
	}
	free->next = *list_of(memory, size);
	*list_of(memory, size) = free;
}
