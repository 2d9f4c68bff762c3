/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "base/pages.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Whether the child of a fork has something there. */
static bool is_inherited(const void *mem)
{
	uintptr_t page = (uintptr_t)mem & ~(uintptr_t)4095;
	unsigned char is_in_core;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(mincore((void *)page, 4096, &is_in_core) == 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(what_children_have)
{
	struct arena shared = { 0 }, own = { .is_not_inherited = true };
	void *alone = pages_map_not_inherited(10000);

	/* a child under the thread sanitizer maps memory of its own wherever there is room */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
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

/* One object costs little, and many no more than twice their size or a huge page, on which
 * they lie. */
TEST(an_arena_grows_as_it_is_used)
{
	struct arena arena = { 0 };
	size_t used = 0, before, huge_cnt = 0;
	void *mem;

	CHECK(arena_cut(&arena, 64));
	CHECK_EQ(arena.mapped, 64 << 10);
	for (used = 64; used < 64 << 20; used += 4096) {
		before = arena.mapped;
		mem = arena_cut(&arena, 4096);
		CHECK(mem);
		if (arena.mapped - before == HUGE_PAGE_SIZE) {
			CHECK_EQ((uintptr_t)mem % HUGE_PAGE_SIZE, 0);
			huge_cnt++;
		}
		CHECK(arena.mapped <= MAX(2 * used + (64 << 10),
					  used + used / 8 + HUGE_PAGE_SIZE));
	}
	CHECK(huge_cnt >= 30);
}
