/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A seeded generator of pseudo-random numbers (xoshiro256**): the same seed
 * gives the same numbers on every machine, so that a simulated network can be
 * replayed. Not for secrets; hash.h has the keyed functions for those.
 */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stdbool.h>
#include <stdint.h>

/* Probabilities are whole numbers, so that results do not depend on floating point. */
#define RAND_CERTAIN UINT32_C(1000000)

struct rand {
	uint64_t state[4];
};

/* Any seed will do, 0 included. */
void rand_init(struct rand *rand, uint64_t seed);

static inline uint64_t rand_rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline uint64_t rand_u64(struct rand *rand)
{
	uint64_t *s = rand->state;
	uint64_t result = rand_rotl(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rand_rotl(s[3], 45);
	return result;
}

static inline uint32_t rand_u32(struct rand *rand)
{
	return (uint32_t)(rand_u64(rand) >> 32);
}

/* Uniform in [0, limit); 0 when limit is 0. The bias of the multiplication is
 * below limit / 2^64. */
static inline uint64_t rand_below(struct rand *rand, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)rand_u64(rand) * limit >> 64);
}

/* Uniform in [low, high], both ends included. */
static inline uint64_t rand_between(struct rand *rand, uint64_t low,
				    uint64_t high)
{
	return low + rand_below(rand, high - low + 1);
}

/* True with a probability in millionths. For 0 it draws no number, so that an
 * impairment which is off does not change the sequence of the others. */
static inline bool rand_chance(struct rand *rand, uint32_t ppm)
{
	return ppm && rand_below(rand, RAND_CERTAIN) < ppm;
}

#endif
