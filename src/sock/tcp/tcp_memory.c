/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory for the engine (tcp_memory.h). */
#include "config.h"

#include "sock/tcp/tcp_memory.h"

#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

enum { LARGEST = TCP_MEMORY_STEP * TCP_MEMORY_SIZES };

struct tcp_memory_free {
	struct tcp_memory_free *next;
};

static size_t rounded(size_t size)
{
	return (size + TCP_MEMORY_STEP - 1) & ~(size_t)(TCP_MEMORY_STEP - 1);
}

static struct tcp_memory_free **list_of(struct tcp_memory *memory, size_t size)
{
	return &memory->free[rounded(size) / TCP_MEMORY_STEP - 1];
}

void *tcp_memory_get(struct tcp_memory *memory, size_t size)
{
	struct tcp_memory_free *mem;

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

void tcp_memory_put(struct tcp_memory *memory, void *mem, size_t size)
{
	struct tcp_memory_free *free = mem;

	if (size > LARGEST) {
		munmap(mem, size);
		return;
	}
	free->next = *list_of(memory, size);
	*list_of(memory, size) = free;
}
