/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/rand.h"

#include "tests/support/test.h"

TEST(known_sequence_of_seed_zero)
{
	struct rand rand;

	rand_init(&rand, 0);
	/* splitmix64(0) is published; the state must be those numbers */
	CHECK(rand.state[0] == UINT64_C(0xe220a8397b1dcdaf));
	CHECK(rand.state[1] == UINT64_C(0x6e789e6aa1b965f4));
	CHECK(rand_u64(&rand) ==
	      rand_rotl(UINT64_C(0x6e789e6aa1b965f4) * 5, 7) * 9);
}

TEST(same_seed_same_numbers)
{
	struct rand a, b, c;
	int same_cnt = 0;

	rand_init(&a, test_seed);
	rand_init(&b, test_seed);
	rand_init(&c, test_seed + 1);
	for (int i = 0; i < 1000; i++) {
		uint64_t number = rand_u64(&a);

		CHECK(number == rand_u64(&b));
		same_cnt += number == rand_u64(&c);
	}
	CHECK_EQ(same_cnt, 0);
}

TEST(ranges_are_reached_and_kept)
{
	unsigned seen[5] = { 0 };
	struct rand rand;

	rand_init(&rand, test_seed);
	for (int i = 0; i < 50000; i++)
		seen[rand_between(&rand, 3, 7) - 3]++;
	for (int i = 0; i < 5; i++)
		CHECK(seen[i] > 9000 && seen[i] < 11000);
	CHECK_EQ(rand_below(&rand, 0), 0);
	CHECK_EQ(rand_below(&rand, 1), 0);
}

TEST(chance_is_met)
{
	struct rand rand, before;
	int hits = 0;

	rand_init(&rand, test_seed);
	for (int i = 0; i < 100000; i++)
		hits += rand_chance(&rand, 250000);
	CHECK(hits > 24000 && hits < 26000);
	CHECK(rand_chance(&rand, RAND_CERTAIN));
	before = rand;
	CHECK(!rand_chance(&rand, 0));
	CHECK_MEM(&rand, &before, sizeof(rand));
}
