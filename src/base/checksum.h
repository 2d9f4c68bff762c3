/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The internet checksum (RFC 1071) as sums that can be taken in parts, added,
 * and taken away again.
 *
 * A partial sum is an unfolded 32-bit ones' complement sum of 16-bit words as
 * they lie in memory. Byte order does not matter: a sum that starts from 0 and
 * is folded can be stored as it is. The sum of a block is independent of its
 * address; what matters is whether it begins at an even offset of the whole, and
 * csum_block_add takes care of that.
 */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Returns `sum` plus the sum of the bytes, which begin at an even offset. */
uint32_t csum_partial(const void *data, size_t len, uint32_t sum);
/* The same while copying; dst and src do not overlap. */
uint32_t csum_copy(void *dst, const void *src, size_t len, uint32_t sum);

/* -- inline -- */

/* The loop adds 64-bit words and adds each carry back in. This is correct because
 * 2^64 is 1 modulo 2^16 - 1, as 2^16 is. */
enum { CSUM_BLOCK = 64 };

static ALWAYS_INLINE uint64_t csum_load64(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

/* Up to seven bytes, as the start of a word whose rest is zero. */
static ALWAYS_INLINE uint64_t csum_load_tail(const uint8_t *from, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, from, len);
	return word;
}

static ALWAYS_INLINE uint64_t csum_add_word(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word);
}

static ALWAYS_INLINE uint64_t csum_add_64_bytes(uint64_t sum, const uint8_t *from)
{
#if defined(__x86_64__)
	/* compilers do not chain carries */
	const struct {
		uint64_t words[CSUM_BLOCK / 8];
	} __attribute__((packed)) *block = (const void *)from;

	__asm__("addq %1, %0\n\tadcq %2, %0\n\t"
		"adcq %3, %0\n\tadcq %4, %0\n\t"
		"adcq %5, %0\n\tadcq %6, %0\n\t"
		"adcq %7, %0\n\tadcq %8, %0\n\tadcq $0, %0"
		: "+r"(sum)
		: "m"(block->words[0]), "m"(block->words[1]),
		  "m"(block->words[2]), "m"(block->words[3]),
		  "m"(block->words[4]), "m"(block->words[5]),
		  "m"(block->words[6]), "m"(block->words[7])
		: "cc");
#else
	for (int i = 0; i < CSUM_BLOCK; i += 8)
		sum = csum_add_word(sum, csum_load64(from + i));
#endif
	return sum;
}

static ALWAYS_INLINE uint32_t csum_fold64(uint64_t sum)
{
	/* both halves added, and the carry, meet in the upper half */
	return (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
}

/* csum_bytes() that goes on with a sum of 64 bits, and leaves the folding to the caller. The
 * sum is that of the copy: others may write what is copied. */
static ALWAYS_INLINE uint64_t csum_bytes64(uint8_t *dst, const uint8_t *src,
					  size_t len, uint64_t sum, bool copies)
{
	const uint8_t *end = src + (len & ~(size_t)(CSUM_BLOCK - 1));

	for (; src != end; src += CSUM_BLOCK) {
		const uint8_t *block = src;

		if (copies) {
			block = memcpy(dst, src, CSUM_BLOCK);
			dst += CSUM_BLOCK;
		}
		sum = csum_add_64_bytes(sum, block);
	}
	len &= CSUM_BLOCK - 1;
	if (!len)
		return sum;
	for (; len >= 8; len -= 8, src += 8) {
		uint64_t word = csum_load64(src);

		sum = csum_add_word(sum, word);
		if (copies) {
			memcpy(dst, &word, sizeof(word));
			dst += 8;
		}
	}
	if (len) {
		uint64_t word = csum_load_tail(src, len);

		sum = csum_add_word(sum, word);
		if (copies)
			memcpy(dst, &word, len);
	}
	return sum;
}

/* `copies` is constant in each caller; without it there is no dst. */
static ALWAYS_INLINE uint32_t csum_bytes(uint8_t *dst, const uint8_t *src,
					size_t len, uint32_t start, bool copies)
{
	return csum_fold64(csum_bytes64(dst, src, len, start, copies));
}

/* The same for a header of a few 32-bit words, whose number is constant. */
static inline uint32_t csum_words(const void *data, size_t cnt)
{
	const uint8_t *from = data;
	uint64_t sum = 0;

#pragma GCC unroll 8
	for (size_t i = 0; i < cnt; i++) {
		uint32_t word;

		memcpy(&word, from + 4 * i, sizeof(word));
		sum += word;
	}
	/* both halves added, and the carry, meet in the upper half */
	return (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
}

static inline uint32_t csum_add(uint32_t a, uint32_t b)
{
	uint32_t sum = a + b;

	return sum + (sum < b);
}

/* Takes away what was added: a - b in ones' complement. */
static inline uint32_t csum_sub(uint32_t a, uint32_t b)
{
	return csum_add(a, ~b);
}

/* The sum of a block, seen from an odd offset: each byte is in the other half
 * of its word. */
static inline uint32_t csum_swap(uint32_t sum)
{
	return sum << 24 | sum >> 8;
}

/* `sum` plus that of a block that begins `offset` bytes into the whole. */
static inline uint32_t csum_block_add(uint32_t sum, uint32_t block,
				      size_t offset)
{
	return csum_add(sum, offset & 1 ? csum_swap(block) : block);
}

/* Returns `sum` without that of the block. */
static inline uint32_t csum_block_sub(uint32_t sum, uint32_t block,
				      size_t offset)
{
	return csum_block_add(sum, ~block, offset);
}

/* The 16-bit checksum to store: folded and complemented. The sum of a packet
 * that carries its checksum folds to 0. */
static inline uint16_t csum_fold(uint32_t sum)
{
	/* both halves added, and the carry, meet in the upper half */
	return (uint16_t)(~(sum + (sum << 16 | sum >> 16)) >> 16);
}

/* The same for UDP, where 0 says that there is none, and 0xffff is as good. */
static inline uint16_t csum_fold_not_zero(uint32_t sum)
{
	uint16_t check = csum_fold(sum);

	return check ? check : 0xffff;
}

/* A field changes from one value to another (RFC 1624, equation 3); all three
 * as they lie in memory. */
static inline uint16_t csum_update(uint16_t check, uint16_t from, uint16_t to)
{
	uint32_t sum = (uint16_t)~check;

	sum = csum_add(sum, (uint16_t)~from);
	return csum_fold(csum_add(sum, to));
}

#endif
