/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The card's access to the program's memory. Hardware is no thread: what orders
 * its accesses with the program's are doorbell records, doorbells and owner
 * bytes, which are C11 atomics here. The data itself is moved behind the back of
 * the thread sanitizer, so that what it reports is the program's own.
 */
#ifndef SOFTCX_DMA_H
#define SOFTCX_DMA_H

#include <endian.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#if HAS_THREAD_SANITIZER
__attribute__((no_sanitize("thread"), noinline, unused))
static void dma_copy(void *dst, const void *src, size_t len)
{
	const uint8_t *from = src;
	uint8_t *to = dst;

	/* The barrier keeps compilers from making this the memcpy that the
	 * sanitizer watches. */
	for (; len >= 8; len -= 8, to += 8, from += 8) {
		uint64_t word;

		__builtin_memcpy(&word, from, 8);
		__builtin_memcpy(to, &word, 8);
		__asm__ volatile("" ::: "memory");
	}
	for (; len; len--) {
		*to++ = *from++;
		__asm__ volatile("" ::: "memory");
	}
}
#else
static inline void dma_copy(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}
#endif

/* A doorbell record: big-endian, shared with the program. */
static inline uint32_t dma_record_read(const _Atomic uint32_t *record)
{
	return be32toh(atomic_load_explicit(record, memory_order_acquire));
}

#endif
