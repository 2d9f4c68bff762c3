/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "base/pages.h"

#include <string.h>
#include <sys/mman.h>

#include "tests/support/inherited.h"
#include "tests/support/test.h"

static bool is_zero(const uint8_t *mem, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (mem[i])
			return false;
	return true;
}

TEST(huge_pages_can_begin_there)
{
	size_t size = HUGE_PAGE_SIZE + 4096;
	uint8_t *mem = pages_map_huge(size);

	CHECK(mem);
	CHECK_EQ((uintptr_t)mem % HUGE_PAGE_SIZE, 0);
	CHECK(is_zero(mem, size));
	memset(mem, 1, size);
	CHECK_EQ(munmap(mem, size), 0);
}

/* More than a huge page of it, of sizes that do not fit evenly. */
TEST(what_is_cut_is_zero_and_lies_apart)
{
	enum { CNT = 5000 };
	static uint8_t *mem[CNT];
	struct arena arena = { 0 };

	for (size_t i = 0; i < CNT; i++) {
		size_t size = 64 * (1 + i % 20);

		mem[i] = arena_cut(&arena, size);
		CHECK(mem[i]);
		CHECK_EQ((uintptr_t)mem[i] % 64, 0);
		CHECK(is_zero(mem[i], size));
		memset(mem[i], (int)(1 + i % 20), size);
	}
	for (size_t i = 0; i < CNT; i++)
		for (size_t at = 0; at < 64 * (1 + i % 20); at++)
			CHECK_EQ(mem[i][at], 1 + i % 20);
}

TEST(what_children_have)
{
	struct arena shared = { 0 }, own = { .is_not_inherited = true };
	void *alone = pages_map_not_inherited(10000);

	CHECK(alone);
	CHECK(!is_inherited(alone));
	/* also when it grows by huge pages */
	for (int i = 0; i < 50; i++) {
		void *mem = arena_cut(&own, 60 << 10);

		CHECK(mem);
		if (i % 10 == 9) {
			CHECK(!is_inherited(mem));
			CHECK(is_inherited(arena_cut(&shared, 60 << 10)));
		}
	}
}

static size_t resident(const uint8_t *mem, size_t size)
{
	unsigned char pages[HUGE_PAGE_SIZE / 4096];
	size_t cnt = 0;

	CHECK(size <= HUGE_PAGE_SIZE);
	CHECK_EQ(mincore((void *)mem, size, pages), 0);
	for (size_t i = 0; i < size / 4096; i++)
		cnt += pages[i] & 1;
	return cnt * 4096;
}

TEST(one_object_costs_little)
{
	struct arena arena = { 0 };
	uint8_t *mem = arena_cut(&arena, 64);

	CHECK(mem);
	mem[0] = 1;
	CHECK_EQ(resident(mem, arena.mapped), 4096);
}

/* By few pieces, of which no more than twice is mapped of what is used, or a huge page. */
TEST(an_arena_grows_as_it_is_used)
{
	struct arena arena = { 0 };
	size_t before;
	unsigned piece_cnt = 0;

	for (size_t used = 4096; used <= 64 << 20; used += 4096) {
		void *mem;

		before = arena.mapped;
		mem = arena_cut(&arena, 4096);
		CHECK(mem);
		if (arena.mapped != before && before)
			CHECK_EQ((uintptr_t)mem % HUGE_PAGE_SIZE, 0);
		piece_cnt += arena.mapped != before;
		CHECK(arena.mapped <= 2 * used + HUGE_PAGE_SIZE);
	}
	CHECK(piece_cnt <= 7);
}
