/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Seeding of the generator in rand.h. */
#include "base/rand.h"

/* The splitmix64 sequence: spreads a poor seed over all bits of the state, which
 * must not be all zero. */
static uint64_t splitmix(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void rand_init(struct rand *rand, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rand->state[i] = splitmix(&seed);
}
