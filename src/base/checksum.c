/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Internet checksums, 32 bytes at a time: four 64-bit words are added to two
 * accumulators with their carries, which keeps the adders busy; 2^64 - 1 is a
 * multiple of 2^16 - 1, so the wide sum folds to the same 16 bits.
 */
#include "base/checksum.h"

#include <string.h>

#include "base/compiler.h"

static ALWAYS_INLINE uint64_t load64(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

static ALWAYS_INLINE uint64_t add64(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return sum + (sum < b);
}

/* Up to seven bytes, as the start of a word whose rest is zero. */
static ALWAYS_INLINE uint64_t load_tail(const uint8_t *from, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, from, len);
	return word;
}

static ALWAYS_INLINE uint32_t fold64(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (uint32_t)(sum + (sum >> 32));
}

/* dst is NULL for a sum without a copy; it is constant in each caller. */
static ALWAYS_INLINE uint32_t sum_bytes(uint8_t *dst, const uint8_t *src,
					size_t len, uint32_t start)
{
	uint64_t even = start, odd = 0;

	while (len >= 32) {
		uint64_t w[4] = { load64(src), load64(src + 8),
				  load64(src + 16), load64(src + 24) };

		even = add64(even, w[0]);
		odd = add64(odd, w[1]);
		even = add64(even, w[2]);
		odd = add64(odd, w[3]);
		if (dst) {
			memcpy(dst, w, sizeof(w));
			dst += 32;
		}
		src += 32;
		len -= 32;
	}
	while (len >= 8) {
		uint64_t word = load64(src);

		even = add64(even, word);
		if (dst) {
			memcpy(dst, &word, sizeof(word));
			dst += 8;
		}
		src += 8;
		len -= 8;
	}
	if (len) {
		uint64_t word = load_tail(src, len);

		even = add64(even, word);
		if (dst)
			memcpy(dst, src, len);
	}
	return fold64(add64(even, odd));
}

uint32_t csum_partial(const void *data, size_t len, uint32_t sum)
{
	return sum_bytes(NULL, data, len, sum);
}

uint32_t csum_copy(void *dst, const void *src, size_t len, uint32_t sum)
{
	return sum_bytes(dst, src, len, sum);
}
