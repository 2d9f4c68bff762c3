/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hashes: SipHash-2-4, keyed and safe to show to strangers (initial sequence
 * numbers, SYN cookies), and a fast mixer for tables. The mixer is seeded too,
 * which makes collisions hard to prepare, but not impossible for someone who
 * sees its output: never let it out.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t word[2];
};

/* SipHash-2-4 of the bytes. */
uint64_t hash_sip(const struct hash_key *key, const void *data, size_t len);

/* Both halves of a 128-bit product, so that each bit of the result depends on
 * all bits of both. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of one and two words. The constants only keep an input of zero from winning. */
static inline uint64_t hash_u64(uint64_t seed, uint64_t word)
{
	return hash_mix(word ^ seed ^ UINT64_C(0xa0761d6478bd642f),
			seed ^ UINT64_C(0xe7037ed1a0b428db));
}

static inline uint64_t hash_u64x2(uint64_t seed, uint64_t a, uint64_t b)
{
	return hash_mix(a ^ seed ^ UINT64_C(0xa0761d6478bd642f),
			b ^ UINT64_C(0xe7037ed1a0b428db));
}

/* Of any bytes. */
uint64_t hash_bytes(uint64_t seed, const void *data, size_t len);

#endif
