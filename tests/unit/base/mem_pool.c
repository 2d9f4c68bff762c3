/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "base/mem_pool.h"

#include <stdint.h>
#include <string.h>

#include "tests/support/inherited.h"
#include "tests/support/test.h"

static bool is_zero(const uint8_t *mem, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (mem[i])
			return false;
	return true;
}

enum { CNT = 7 };
static const size_t sizes[CNT] = { 1, 64, 65, 1000, 4096, 4097, 100000 };

TEST(what_is_taken_is_zero_also_when_it_was_used)
{
	struct mem_pool pool = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < CNT; i++) {
			uint8_t *mem = mem_pool_get(&pool, sizes[i]);

			CHECK(mem);
			CHECK(is_zero(mem, sizes[i]));
			memset(mem, 1, sizes[i]);
			mem_pool_put(&pool, mem, sizes[i]);
		}
	}
}

TEST(what_is_released_serves_the_next_of_its_size)
{
	struct mem_pool pool = { 0 };
	void *small = mem_pool_get(&pool, 60), *other = mem_pool_get(&pool, 100);

	CHECK(small != other);
	mem_pool_put(&pool, small, 60);
	CHECK(mem_pool_get(&pool, 100) != small);
	CHECK(mem_pool_get(&pool, 33) == small);
}

/* The last ones are mapped by themselves. */
TEST(children_have_nothing_of_what_is_not_inherited)
{
	for (size_t i = 0; i < CNT; i++) {
		struct mem_pool own = { .arena.is_not_inherited = true }, shared = { 0 };

		CHECK(!is_inherited(mem_pool_get(&own, sizes[i])));
		CHECK(is_inherited(mem_pool_get(&shared, sizes[i])));
	}
}
