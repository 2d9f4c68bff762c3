/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for what TCP's engine makes: connections, listeners, tables. It is mapped in
 * large pieces, since a call may run in a signal handler that has interrupted malloc,
 * and what is released is kept for the next one of its size. Under the stack's lock.
 */
#ifndef SOCK_TCP_TCP_MEMORY_H
#define SOCK_TCP_TCP_MEMORY_H

#include <stddef.h>

#include "base/pages.h"

/* Sizes are rounded up to a multiple of the step; what is larger than the last one is
 * mapped by itself. */
enum { TCP_MEMORY_STEP = 64, TCP_MEMORY_SIZES = 64 };

struct tcp_memory_free;

struct tcp_memory {
	struct tcp_memory_free *free[TCP_MEMORY_SIZES];
	struct arena arena;
};

/* Zeroed, or NULL. All zeroes is an empty struct tcp_memory. */
void *tcp_memory_get(struct tcp_memory *memory, size_t size);
void tcp_memory_put(struct tcp_memory *memory, void *mem, size_t size);

#endif
