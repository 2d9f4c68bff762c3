/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The buffers of one interface: one block of memory that a device can be told of,
 * cut into frames of one size, and a packet descriptor for each frame. A region
 * never grows; a device that can be told of more than one has a set of them.
 *
 * A frame is in the region's store, or it belongs to the packet pool of one stack.
 * The stack takes frames out of the store in magazines and brings them back. Only
 * the store has a lock. A forked child does not inherit the memory.
 */
#ifndef PKT_REGION_H
#define PKT_REGION_H

#include "base/lock.h"
#include "pkt/pkt_pool.h"

/* How many frames a stack takes at a time. */
enum { REGION_MAGAZINE = 64 };

enum region_pages { REGION_SMALL_PAGES, REGION_HUGE_PAGES };

struct stats_pool;

struct region {
	/* fixed after the creation */
	uint32_t id; /* its place in the set of its device */
	uint8_t *mem;
	size_t mem_size; /* as mapped */
	uint32_t frame_size;
	uint32_t frame_shift; /* its logarithm */
	uint32_t frame_cnt;
	enum region_pages pages; /* what it got */
	struct pkt *pkts; /* by frame id */

	_Atomic uint32_t user_cnt;

	struct spinlock lock;
	/* under the lock: the store, which is what has come back, linked by
	 * next_part, and all frames from this one on. Those were never taken, and
	 * nobody has written to their descriptors. */
	struct pkt *free;
	uint32_t first_fresh;
	uint32_t free_cnt;
	struct stats_pool *stats; /* where it is counted; or NULL */
};

/* `frame_cnt` frames of `frame_size` bytes, a power of two. Huge pages are a
 * wish: without any, the region has small ones. -ENOMEM. */
int region_create(uint32_t frame_cnt, uint32_t frame_size,
		  enum region_pages pages, struct region **region_out)
	MUST_CHECK;

/* Adds a user of the region. Whoever has a pool with frames of it is a user, since
 * a packet may outlive the device. region_create() makes the first one. */
void region_get(struct region *region);
/* Removes a user. The last one frees the region; all frames are in the store then.
 * NULL is a no-op. */
void region_put(struct region *region);

/* Moves up to `cnt` frames from the store to `pool`, whose lock the caller
 * holds. Returns how many. */
uint32_t region_take(struct region *region, struct pkt_pool *pool,
		     uint32_t cnt);

/* Moves up to `cnt` unused frames back to the store. */
uint32_t region_give(struct region *region, struct pkt_pool *pool,
		     uint32_t cnt);

/* -- of one device ------------------------------------------------------------- */

enum { REGION_SET_MAX = 8 };

/* Regions are added one by one, under the control mutex, and stay as long as the
 * device. */
struct region_set {
	struct region *regions[REGION_SET_MAX];
	_Atomic uint32_t cnt;
};

/* Adds a region that has given no frame to anybody yet; the caller's use of it
 * passes to the set. -ENOSPC: the set cannot have any more. */
int region_set_add(struct region_set *set, struct region *region) MUST_CHECK;
/* Adds a region that is in another set by the number that is the next one here, and a
 * user to it. */
void region_set_share(struct region_set *set, struct region *region);
/* Copies the set and adds a user to each region. */
void region_set_get(struct region_set *copy, const struct region_set *set);
/* Removes a user from each region. */
void region_set_put(struct region_set *set);

/* Frames of all regions, wherever they are. */
static inline uint32_t region_set_frame_cnt(const struct region_set *set)
{
	uint32_t cnt = 0;

	/* acquire pairs with the release in region_set_add */
	for (uint32_t i = atomic_load_explicit(&set->cnt, memory_order_acquire);
	     i-- > 0;)
		cnt += set->regions[i]->frame_cnt;
	return cnt;
}

/* region_take() from those regions that have frames, and region_give() of each
 * frame to its own region. */
uint32_t region_set_take(struct region_set *set, struct pkt_pool *pool,
			 uint32_t cnt);
uint32_t region_set_give(struct region_set *set, struct pkt_pool *pool,
			 uint32_t cnt);

static inline struct region *region_set_find(const struct region_set *set,
					     const struct pkt *pkt)
{
	return set->regions[pkt->region_id];
}

/* -- statistics ---------------------------------------------------------------- */

/* From now on `stats` says how many frames the store has; NULL: nothing does. */
void region_set_stats(struct region *region, struct stats_pool *stats);

/* Frames in the store at this moment. */
uint32_t region_free_cnt(struct region *region);

/* Where a frame's buffer begins, seen from the region's start. */
static inline uint64_t region_offset(const struct region *region,
				     const struct pkt *pkt)
{
	return (uint64_t)pkt->frame_id << region->frame_shift;
}

/* The packet in whose buffer the offset lies; the caller has checked that it is
 * inside the region. */
static inline struct pkt *region_pkt(const struct region *region,
				     uint64_t offset)
{
	return &region->pkts[offset >> region->frame_shift];
}

#endif
