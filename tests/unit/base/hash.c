/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/hash.h"

#include "base/rand.h"
#include "tests/support/test.h"

TEST(siphash_agrees_with_its_paper)
{
	struct hash_key key;
	uint8_t bytes[16];

	for (int i = 0; i < 16; i++)
		bytes[i] = (uint8_t)i;
	memcpy(&key, bytes, sizeof(key));
	/* fifteen bytes: appendix A of the paper */
	CHECK(hash_sip(&key, bytes, 15) == UINT64_C(0xa129ca6149be45e5));
	CHECK(hash_sip(&key, bytes, 0) == UINT64_C(0x726fdb47dd0e0e31));
}

TEST(siphash_depends_on_key_and_length)
{
	struct hash_key a = { { 1, 2 } }, b = { { 1, 3 } };
	uint8_t zero[9] = { 0 };

	CHECK(hash_sip(&a, zero, 8) != hash_sip(&b, zero, 8));
	CHECK(hash_sip(&a, zero, 8) != hash_sip(&a, zero, 9));
}

/* A fair table: no bucket of 256 far from the mean, whatever byte varies. */
TEST(mixer_spreads_counters)
{
	for (int shift = 0; shift <= 48; shift += 8) {
		unsigned buckets[256] = { 0 };

		for (uint64_t i = 0; i < 25600; i++)
			buckets[hash_u64(test_seed, i << shift) & 255]++;
		for (int i = 0; i < 256; i++)
			CHECK(buckets[i] > 40 && buckets[i] < 170);
	}
}

TEST(one_bit_changes_half_the_result)
{
	struct rand rand;
	unsigned changed = 0;
	uint8_t data[36];

	rand_init(&rand, test_seed);
	for (int i = 0; i < 1000; i++) {
		uint64_t before;
		unsigned bit = (unsigned)rand_below(&rand, 8 * sizeof(data));

		for (size_t j = 0; j < sizeof(data); j++)
			data[j] = (uint8_t)rand_u32(&rand);
		before = hash_bytes(7, data, sizeof(data));
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		before ^= hash_bytes(7, data, sizeof(data));
		CHECK(before != 0);
		changed += (unsigned)__builtin_popcountll(before);
	}
	CHECK(changed > 30000 && changed < 34000);
}

TEST(length_and_seed_matter)
{
	uint8_t zero[40] = { 0 };

	for (size_t len = 1; len < sizeof(zero); len++)
		CHECK(hash_bytes(1, zero, len) != hash_bytes(1, zero, len - 1));
	CHECK(hash_bytes(1, zero, 16) != hash_bytes(2, zero, 16));
}
