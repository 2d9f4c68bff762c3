/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pkt/region.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

TEST(frames_go_to_pools_and_come_back)
{
	struct region *region;
	struct pkt_pool a, b;
	struct pkt *pkt;

	pkt_pool_init(&a, 64);
	pkt_pool_init(&b, 64);
	CHECK_EQ(region_create(100, 2048, REGION_SMALL_PAGES, &region), 0);
	CHECK_EQ(region_take(region, &a, REGION_MAGAZINE), 64);
	CHECK_EQ(region_take(region, &b, REGION_MAGAZINE), 36);
	CHECK_EQ(region_take(region, &b, REGION_MAGAZINE), 0);
	CHECK_EQ(region_free_cnt(region), 0);
	pkt = pkt_alloc(&b);
	CHECK(pkt->pool == &b);
	CHECK_EQ(region_give(region, &b, 100), 35);
	CHECK_EQ(region_give(region, &a, 10), 10);
	CHECK_EQ(region_give(region, &a, 100), 54);
	CHECK_EQ(region_free_cnt(region), 99);
	/* who holds a packet keeps the region */
	region_get(region);
	region_put(region);
	pkt_put(pkt);
	CHECK_EQ(region_give(region, &b, 100), 1);
	CHECK_EQ(a.total_cnt + b.total_cnt, 0);
	CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	region_put(region);
}

static size_t pages_in_core(const void *mem, size_t size)
{
	size_t pages = size / 4096, cnt = 0;
	unsigned char in_core[64];

	CHECK(pages <= sizeof(in_core));
	CHECK_EQ(mincore((void *)(uintptr_t)mem, size, in_core), 0);
	for (size_t i = 0; i < pages; i++)
		cnt += in_core[i] & 1;
	return cnt;
}

TEST(what_nobody_takes_costs_nothing)
{
	struct region *region;
	struct pkt_pool pool;
	size_t size = 1024 * sizeof(struct pkt);

	pkt_pool_init(&pool, 0);
	CHECK_EQ(region_create(1024, 64, REGION_SMALL_PAGES, &region), 0);
	CHECK_EQ(pages_in_core(region->pkts, size), 0);
	CHECK_EQ(region_take(region, &pool, 10), 10);
	CHECK(pages_in_core(region->pkts, size) < 4);
	/* what has come back is warm, and taken first */
	CHECK_EQ(region_give(region, &pool, 10), 10);
	CHECK_EQ(region_take(region, &pool, 10), 10);
	CHECK_EQ(region->first_fresh, 10);
	CHECK_EQ(region_free_cnt(region), 1014);
	CHECK_EQ(region_take(region, &pool, 2000), 1014);
	CHECK_EQ(region_give(region, &pool, 2000), 1024);
	CHECK_EQ(region_free_cnt(region), 1024);
	region_put(region);
}

TEST(offsets_lead_to_frames)
{
	struct region *region;
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(region_create(8, 4096, REGION_SMALL_PAGES, &region), 0);
	CHECK_EQ(region_take(region, &pool, 8), 8);
	for (uint32_t i = 0; i < 8; i++) {
		struct pkt *pkt = &region->pkts[i];

		CHECK_EQ(region_offset(region, pkt), i * 4096);
		CHECK(region_pkt(region, i * 4096) == pkt);
		CHECK(region_pkt(region, i * 4096 + 4095) == pkt);
		CHECK(pkt->buf == region->mem + i * 4096);
	}
	CHECK_EQ(region_give(region, &pool, 8), 8);
	CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	region_put(region);
}

TEST(huge_pages_are_a_wish)
{
	struct region *region;

	CHECK_EQ(region_create(16, 2048, REGION_HUGE_PAGES, &region), 0);
	memset(region->mem, 1, 16 * 2048);
	CHECK(region->pages == REGION_SMALL_PAGES ||
	      region->mem_size == 2 << 20);
	CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	region_put(region);
}

/* Which the kernel uses without being asked for one, if it can. */
TEST(a_large_region_begins_where_a_huge_page_does)
{
	struct region *region;

	CHECK_EQ(region_create(1536, 2048, REGION_SMALL_PAGES, &region), 0);
	CHECK_EQ((uintptr_t)region->mem % (2 << 20), 0);
	CHECK_EQ(region->mem_size, 1536 * 2048);
	memset(region->mem, 1, region->mem_size);
	region_put(region);
}

TEST(a_child_does_not_inherit_the_frames)
{
	struct region *region;
	unsigned char in_core;
	int status;
	pid_t pid;

	CHECK_EQ(region_create(16, 4096, REGION_SMALL_PAGES, &region), 0);
	region->mem[0] = 1;
	pid = fork();
	if (pid == 0)
		_exit(mincore(region->mem, 4096, &in_core) == 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	region_put(region);
}

static void *take_and_give(void *arg)
{
	struct region *region = arg;
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	for (int i = 0; i < 20000; i++) {
		region_take(region, &pool, 1 + (uint32_t)i % 64);
		region_give(region, &pool, (uint32_t)i % 100);
	}
	region_give(region, &pool, UINT32_MAX);
	return (void *)(uintptr_t)pool.total_cnt;
}

TEST(threads_share_the_store)
{
	struct region *region;
	pthread_t threads[3];
	void *left;

	CHECK_EQ(region_create(256, 64, REGION_SMALL_PAGES, &region), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, take_and_give,
					region), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &left);
		CHECK(left == NULL);
	}
	CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	region_put(region);
}
