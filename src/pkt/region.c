/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions (region.h). */
#include "config.h"

#include "pkt/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "stats/stats_abi.h"

enum { SMALL_PAGE = 4 << 10 };

static size_t round_up(size_t size, size_t page)
{
	return (size + page - 1) & ~(page - 1);
}

static void *map_reserved(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/* With huge pages where the kernel has some: a device that registers all of it at once is
 * then four times as fast, and the processor translates its addresses faster. */
static void *map_unreserved(size_t size)
{
	return size < HUGE_PAGE_SIZE ? pages_map(size) : pages_map_huge(size);
}

static int map_frames(struct region *region, enum region_pages pages)
{
	size_t size = (size_t)region->frame_cnt * region->frame_size;

	region->pages = pages;
	region->mem_size = round_up(size, HUGE_PAGE_SIZE);
	if (pages == REGION_HUGE_PAGES)
		region->mem = map_reserved(region->mem_size);
	if (!region->mem) {
		region->pages = REGION_SMALL_PAGES;
		region->mem_size = round_up(size, SMALL_PAGE);
		region->mem = map_unreserved(region->mem_size);
	}
	if (!region->mem)
		return -ENOMEM;
	/* If a child wrote to an inherited copy, the kernel would give the parent
	 * new pages, which the device does not know. */
	if (madvise(region->mem, region->mem_size, MADV_DONTFORK) != 0)
		return -errno;
	return 0;
}

static size_t descriptors_size(const struct region *region)
{
	return round_up(region->frame_cnt * sizeof(struct pkt), SMALL_PAGE);
}

static void free_all(struct region *region)
{
	if (region->pkts)
		munmap(region->pkts, descriptors_size(region));
	if (region->mem)
		munmap(region->mem, region->mem_size);
	free(region);
}

int region_create(uint32_t frame_cnt, uint32_t frame_size,
		  enum region_pages pages, struct region **region_out)
{
	struct region *region = calloc(1, sizeof(*region));
	int err;

	if (!region)
		return -ENOMEM;
	region->frame_cnt = frame_cnt;
	region->free_cnt = frame_cnt;
	region->frame_size = frame_size;
	region->frame_shift = (uint32_t)__builtin_ctz(frame_size);
	INVARIANT(frame_size == 1u << region->frame_shift, "a power of two");
	atomic_init(&region->user_cnt, 1);
	spinlock_init(&region->lock, LOCK_RANK_REGION);
	err = map_frames(region, pages);
	if (err)
		goto err_free;
	region->pkts = pages_map_not_inherited(descriptors_size(region));
	if (!region->pkts) {
		err = -ENOMEM;
		goto err_free;
	}
	*region_out = region;
	return 0;
err_free:
	free_all(region);
	return err;
}

void region_get(struct region *region)
{
	atomic_fetch_add_explicit(&region->user_cnt, 1, memory_order_relaxed);
}

void region_put(struct region *region)
{
	/* release pairs with the acquire of the last user's decrement: what the
	 * others did to the store has ended */
	if (!region ||
	    atomic_fetch_sub_explicit(&region->user_cnt, 1,
				      memory_order_acq_rel) != 1)
		return;
	INVARIANT(region_free_cnt(region) == region->frame_cnt,
		  "all frames have come back");
	free_all(region);
}

static void count_locked(struct region *region, bool is_in_vain)
	REQUIRES(region->lock)
{
	INVARIANT(lock_witness_is_mine(&region->lock.witness),
		  "counted without the lock");
	if (!region->stats)
		return;
	region->stats->free_cnt = region->free_cnt;
	region->stats->empty_cnt += is_in_vain;
}

void region_set_stats(struct region *region, struct stats_pool *stats)
{
	spinlock_acquire(&region->lock);
	region->stats = stats;
	count_locked(region, false);
	spinlock_release(&region->lock);
}

/* Its memory is zero, and of a page that perhaps nobody has touched yet. */
static struct pkt *begin_pkt(struct region *region, uint32_t id)
{
	struct pkt *pkt = &region->pkts[id];

	list_init(&pkt->link);
	pkt->frame_id = id;
	pkt->region_id = (uint16_t)region->id;
	pkt->buf_size = region->frame_size;
	pkt->buf = region->mem + (size_t)id * region->frame_size;
	return pkt;
}

static struct pkt *take_one(struct region *region) REQUIRES(region->lock)
{
	struct pkt *pkt = region->free;

	if (pkt) {
		region->free = pkt->next_part;
		return pkt;
	}
	if (region->first_fresh == region->frame_cnt)
		return NULL;
	return begin_pkt(region, region->first_fresh++);
}

uint32_t region_take(struct region *region, struct pkt_pool *pool, uint32_t cnt)
{
	struct pkt *pkt;
	uint32_t taken;

	spinlock_acquire(&region->lock);
	for (taken = 0; taken < cnt && (pkt = take_one(region)); taken++)
		pkt_pool_adopt(pool, pkt);
	region->free_cnt -= taken;
	count_locked(region, cnt && !taken);
	spinlock_release(&region->lock);
	return taken;
}

uint32_t region_give(struct region *region, struct pkt_pool *pool, uint32_t cnt)
{
	struct pkt *pkt;
	uint32_t given;

	spinlock_acquire(&region->lock);
	for (given = 0; given < cnt && pool->free; given++) {
		pkt = pkt_pool_disown(pool);
		pkt->next_part = region->free;
		region->free = pkt;
	}
	region->free_cnt += given;
	count_locked(region, false);
	spinlock_release(&region->lock);
	return given;
}

uint32_t region_free_cnt(struct region *region)
{
	uint32_t cnt;

	spinlock_acquire(&region->lock);
	cnt = region->free_cnt;
	spinlock_release(&region->lock);
	return cnt;
}

/* -- of one device ------------------------------------------------------------- */

/* release pairs with the acquire of those who take frames: the region is in its place
 * before it counts */
static void put_last(struct region_set *set, struct region *region)
{
	uint32_t cnt = atomic_load(&set->cnt);

	set->regions[cnt] = region;
	atomic_store_explicit(&set->cnt, cnt + 1, memory_order_release);
}

int region_set_add(struct region_set *set, struct region *region)
{
	uint32_t cnt = atomic_load(&set->cnt);

	if (cnt == REGION_SET_MAX)
		return -ENOSPC;
	INVARIANT(!region->first_fresh, "frames say of which region they are");
	region->id = cnt;
	put_last(set, region);
	return 0;
}

void region_set_share(struct region_set *set, struct region *region)
{
	INVARIANT(region->id == atomic_load(&set->cnt),
		  "a packet's region is found in each set");
	region_get(region);
	put_last(set, region);
}

void region_set_get(struct region_set *copy, const struct region_set *set)
{
	uint32_t cnt = atomic_load(&set->cnt);

	for (uint32_t i = 0; i < cnt; i++) {
		copy->regions[i] = set->regions[i];
		region_get(copy->regions[i]);
	}
	atomic_store(&copy->cnt, cnt);
}

void region_set_put(struct region_set *set)
{
	uint32_t cnt = atomic_load(&set->cnt);

	atomic_store(&set->cnt, 0);
	for (uint32_t i = 0; i < cnt; i++)
		region_put(set->regions[i]);
}

uint32_t region_set_take(struct region_set *set, struct pkt_pool *pool,
			 uint32_t cnt)
{
	uint32_t region_cnt =
		atomic_load_explicit(&set->cnt, memory_order_acquire);
	uint32_t taken = 0;

	for (uint32_t i = 0; i < region_cnt && taken < cnt; i++)
		taken += region_take(set->regions[i], pool, cnt - taken);
	return taken;
}

/* Gives back the packets at the top of the pool that belong to one region. */
static uint32_t give_run(struct region_set *set, struct pkt_pool *pool,
			 uint32_t cnt)
{
	uint32_t id = pkt_from_link(pool->free)->region_id, run = 1;
	struct list *link = pool->free->next;

	while (run < cnt && link && pkt_from_link(link)->region_id == id) {
		link = link->next;
		run++;
	}
	return region_give(set->regions[id], pool, run);
}

uint32_t region_set_give(struct region_set *set, struct pkt_pool *pool,
			 uint32_t cnt)
{
	uint32_t given = 0;

	while (given < cnt && pool->free)
		given += give_run(set, pool, cnt - given);
	return given;
}
