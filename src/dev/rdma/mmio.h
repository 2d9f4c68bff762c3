/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a processor and a card that share memory see each other's stores in order.
 *
 * The card reads entries and doorbell records from ordinary memory, and completions
 * come from it there. Doorbells are registers of the card; those of BlueFlame are
 * mapped write-combining, which means that the processor may keep stores back, join
 * them and reorder them until it is told to flush.
 *
 *	write the entry
 *	mmio_before_record()	the card must not see the record before the entry
 *	write the doorbell record
 *	mmio_before_bell()	the card must not see the doorbell before the record,
 *				and a store to write-combining memory may overtake
 *				one to ordinary memory
 *	write the doorbell
 *	mmio_flush()		it must leave the processor now, and before the next
 *				doorbell to the other half of the register
 *
 *	read who owns the completion
 *	mmio_after_owner()	what it says must not have been read before
 *	read the completion and the packet
 */
#ifndef DEV_RDMA_MMIO_H
#define DEV_RDMA_MMIO_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static inline void mmio_compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Stores to ordinary memory are seen in their order. */
static inline void mmio_before_record(void)
{
#if defined(__x86_64__)
	mmio_compiler_barrier();
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__sync_synchronize();
#endif
}

static inline void mmio_before_bell(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__sync_synchronize();
#endif
}

static inline void mmio_flush(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* Loads are done in their order on x86. */
static inline void mmio_after_owner(void)
{
#if defined(__x86_64__)
	mmio_compiler_barrier();
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* One store of eight bytes, which the card has to see whole; of two threads that arm a queue
 * one is the last. */
static inline void mmio_write64(void *reg, const void *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	atomic_store_explicit((volatile _Atomic uint64_t *)reg, word,
			      memory_order_relaxed);
}

enum { MMIO_BLOCK = 64 };

/* A block of 64 bytes, at addresses that are multiples of it. */
static inline void mmio_copy_block(uint8_t *reg, const uint8_t *from)
{
#if defined(__x86_64__)
	__m128i *to = (void *)reg;
	const __m128i *at = (const void *)from;

	_mm_stream_si128(to, at[0]);
	_mm_stream_si128(to + 1, at[1]);
	_mm_stream_si128(to + 2, at[2]);
	_mm_stream_si128(to + 3, at[3]);
#else
	volatile uint64_t *to = (void *)reg;
	const uint64_t *at = (const void *)from;

	for (unsigned i = 0; i < MMIO_BLOCK / 8; i++)
		to[i] = at[i];
#endif
}

/* One block at least. Those of a short entry need no pointers that move. */
static inline void mmio_copy_blocks(uint8_t *reg, const uint8_t *from, unsigned blocks)
{
	enum { TURN = 3 };

	for (;; reg += TURN * MMIO_BLOCK, from += TURN * MMIO_BLOCK, blocks -= TURN) {
		mmio_copy_block(reg, from);
		if (blocks == 1)
			return;
		mmio_copy_block(reg + MMIO_BLOCK, from + MMIO_BLOCK);
		if (blocks == 2)
			return;
		mmio_copy_block(reg + 2 * MMIO_BLOCK, from + 2 * MMIO_BLOCK);
		if (blocks == TURN)
			return;
	}
}

#endif
