/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Internet checksums, 32 bytes at a time: the 32-bit words of two vectors are added
 * up in 64-bit lanes, even and odd words apart, which needs no carries. 2^32 is 1
 * modulo 2^16 - 1, so it does not matter which words a lane holds.
 */
#include "base/checksum.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

typedef uint64_t lanes __attribute__((vector_size(16)));

static ALWAYS_INLINE lanes load_lanes(const uint8_t *from)
{
	lanes words;

	memcpy(&words, from, sizeof(words));
	return words;
}

static ALWAYS_INLINE lanes add_words(lanes sum, lanes words)
{
	return sum + (words & 0xffffffff) + (words >> 32);
}

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
	return sum + (word & 0xffffffff) + (word >> 32);
}

static ALWAYS_INLINE uint32_t fold64(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (uint32_t)(sum + (sum >> 32));
}

/* `copies` is constant in each caller; without it there is no dst. */
static ALWAYS_INLINE uint32_t sum_bytes(uint8_t *dst, const uint8_t *src,
					size_t len, uint32_t start, bool copies)
{
	const uint8_t *end = src + (len & ~(size_t)31);
	lanes sums = { start };
	uint64_t sum;

	for (; src != end; src += 32) {
		lanes low = load_lanes(src), high = load_lanes(src + 16);

		sums = add_words(add_words(sums, low), high);
		if (copies) {
			memcpy(dst, &low, sizeof(low));
			memcpy(dst + 16, &high, sizeof(high));
			dst += 32;
		}
	}
	sum = sums[0] + sums[1];
	len &= 31;
	if (!len)
		return fold64(sum);
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
