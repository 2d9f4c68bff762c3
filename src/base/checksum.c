/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Internet checksums, 64-bit words with the carries added back in: 2^64 is 1 modulo
 * 2^16 - 1, as 2^16 is.
 */
#include "base/checksum.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

enum { BLOCK = 32, CHUNK = 2 * BLOCK };

static ALWAYS_INLINE uint64_t load64(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

/* Up to seven bytes, as the start of a word whose rest is zero. */
static ALWAYS_INLINE uint64_t load_tail(const uint8_t *from, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, from, len);
	return word;
}

static ALWAYS_INLINE uint64_t add_word(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word);
}

static ALWAYS_INLINE uint64_t add_block(uint64_t sum, const uint8_t *from)
{
#if defined(__x86_64__)
	/* compilers do not chain carries */
	const struct {
		uint64_t words[BLOCK / 8];
	} __attribute__((packed)) *block = (const void *)from;

	__asm__("addq %1, %0\n\tadcq %2, %0\n\t"
		"adcq %3, %0\n\tadcq %4, %0\n\tadcq $0, %0"
		: "+r"(sum)
		: "m"(block->words[0]), "m"(block->words[1]),
		  "m"(block->words[2]), "m"(block->words[3])
		: "cc");
#else
	for (int i = 0; i < BLOCK; i += 8)
		sum = add_word(sum, load64(from + i));
#endif
	return sum;
}

static ALWAYS_INLINE uint32_t fold64(uint64_t sum)
{
	/* both halves added, and the carry, meet in the upper half */
	return (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
}

/* `copies` is constant in each caller; without it there is no dst. */
static ALWAYS_INLINE uint32_t sum_bytes(uint8_t *dst, const uint8_t *src,
					size_t len, uint32_t start, bool copies)
{
	uint64_t sum = start;

	for (; len >= CHUNK; len -= CHUNK, src += CHUNK) {
		sum = add_block(add_block(sum, src), src + BLOCK);
		if (copies) {
			memcpy(dst, src, CHUNK);
			dst += CHUNK;
		}
	}
	if (!len)
		return fold64(sum);
	if (len >= BLOCK) {
		sum = add_block(sum, src);
		if (copies) {
			memcpy(dst, src, BLOCK);
			dst += BLOCK;
		}
		len -= BLOCK;
		src += BLOCK;
	}
	for (; len >= 8; len -= 8, src += 8) {
		uint64_t word = load64(src);

		sum = add_word(sum, word);
		if (copies) {
			memcpy(dst, &word, sizeof(word));
			dst += 8;
		}
	}
	if (len) {
		sum = add_word(sum, load_tail(src, len));
		if (copies)
			memcpy(dst, src, len);
	}
	return fold64(sum);
}

uint32_t csum_partial(const void *data, size_t len, uint32_t sum)
{
	return sum_bytes(NULL, data, len, sum, false);
}

uint32_t csum_copy(void *dst, const void *src, size_t len, uint32_t sum)
{
	return sum_bytes(dst, src, len, sum, true);
}
