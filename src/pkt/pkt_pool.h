/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pool of packets whose buffers have one size. It starts with the packets that it
 * is given and grows by slabs. Taking a packet never allocates memory, so it can be
 * done under the stack's lock. The owner of the pool watches how many packets are
 * left, makes a slab outside the lock, and adds it under the lock.
 *
 * Every packet comes back to its pool. So if the pool is not full at the end, a
 * packet was leaked.
 */
#ifndef PKT_PKT_POOL_H
#define PKT_PKT_POOL_H

#include "pkt/pkt.h"

struct pkt_slab;

struct pkt_pool {
	/* free packets, linked by link.next up to NULL. The one that was returned
	 * last comes first. Their next_part and lender are NULL. */
	struct list *free;
	uint32_t free_cnt;
	uint32_t total_cnt;
	/* room kept in front of the data of a fresh packet */
	uint32_t headroom;
	/* how often no packet was left */
	uint64_t empty_cnt;
	struct pkt_slab *slabs;
};

void pkt_pool_init(struct pkt_pool *pool, uint32_t headroom);
/* Frees the slabs. Returns how many packets were missing, in which case nothing
 * is freed, because somebody still uses them. */
uint32_t pkt_pool_destroy(struct pkt_pool *pool) MUST_CHECK;

/* Makes `cnt` packets with buffers of `buf_size` bytes, each of which begins at a
 * multiple of 64. `mem` is cnt * buf_size bytes that outlive the slab, such as a
 * registered region, or NULL to have the memory allocated. A buf_size of 0 makes
 * packets for pkt_borrow only. NULL: there is no memory. The memory is mapped, not
 * malloc'ed, because a send or receive that needs a slab may run in a signal
 * handler that has interrupted malloc. The child of a fork has nothing of it. */
struct pkt_slab *pkt_slab_create(uint32_t cnt, uint32_t buf_size, void *mem)
	MUST_CHECK;
/* The pool owns the slab from now on; frame ids count on from those it has. */
void pkt_pool_add(struct pkt_pool *pool, struct pkt_slab *slab);

/* Two steps to empty a pool when nobody uses a packet of it. The first one takes
 * the slabs out, under the pool's lock. The second one frees them, outside the
 * lock. */
struct pkt_slab *pkt_pool_take_slabs(struct pkt_pool *pool) MUST_CHECK;
void pkt_slabs_free(struct pkt_slab *slabs);

/* Free packets that were set aside, and what became of their slabs. */
struct pkt_aside {
	/* those that go back to the pool after all */
	struct pkt *first, *last;
	uint32_t cnt;
	/* slabs that can go */
	struct pkt_slab *slabs;
	uint32_t slab_cnt;
};

/* Three steps to give slabs back while packets of others are in use, for a pool whose slabs
 * all have `slab_cnt` packets. Under the pool's lock its free packets are set aside, but
 * for the `keep` that came last; without it, at most `slabs_max` slabs are found whose
 * packets are all there; and under it the other packets go back. The slabs are for
 * pkt_slabs_free. */
void pkt_pool_set_aside(struct pkt_pool *pool, uint32_t keep,
			struct pkt_aside *out);
void pkt_aside_sort(struct pkt_aside *aside, uint32_t slab_cnt,
		    uint32_t slabs_max);
struct pkt_slab *pkt_pool_end_aside(struct pkt_pool *pool,
				    struct pkt_aside *aside) MUST_CHECK;

/* Both steps, for owners that may allocate. -ENOMEM. */
int pkt_pool_grow(struct pkt_pool *pool, uint32_t cnt, uint32_t buf_size)
	MUST_CHECK;

/* Packets that nobody uses any more, linked from `first` to `last`. */
static inline void pkt_pool_give_back(struct pkt_pool *pool, struct pkt *first,
				      struct pkt *last, uint32_t cnt)
{
	last->link.next = pool->free;
	pool->free = &first->link;
	pool->free_cnt += cnt;
}

/* Adds or removes single packets whose memory belongs to somebody else, such as a
 * region. */
static inline void pkt_pool_adopt(struct pkt_pool *pool, struct pkt *pkt)
{
	pkt->pool = pool;
	pkt->next_part = NULL;
	pkt_pool_give_back(pool, pkt, pkt, 1);
	pool->total_cnt++;
}

/* Takes an unused packet out; the pool must have one. */
static inline struct pkt *pkt_pool_disown(struct pkt_pool *pool)
{
	struct pkt *pkt = pkt_from_link(pool->free);

	pool->free = pkt->link.next;
	pool->free_cnt--;
	pool->total_cnt--;
	return pkt;
}

static inline bool pkt_pool_is_full(const struct pkt_pool *pool)
{
	return pool->free_cnt == pool->total_cnt;
}

/* An empty packet with one reference and the pool's headroom, or NULL. */
static inline struct pkt *pkt_alloc(struct pkt_pool *pool)
{
	struct pkt *pkt;

	if (UNLIKELY(!pool->free)) {
		pool->empty_cnt++;
		return NULL;
	}
	pkt = pkt_from_link(pool->free);
	pool->free = pkt->link.next;
	pool->free_cnt--;
	list_init(&pkt->link);
	pkt->data = pkt->buf + pool->headroom;
	pkt->len = 0;
	pkt->refs = 1;
	pkt->csum_verdict = PKT_CSUM_UNKNOWN;
	pkt->flags = 0;
	pkt->time_ns = 0;
	return pkt;
}

/* Not 0: more has to be done than to drop one reference in order to give `pkt` back
 * to `pool`. The results for several packets can be combined by |, so that one test
 * is enough for all. */
static inline uintptr_t pkt_put_obstacles(const struct pkt *pkt,
					  const struct pkt_pool *pool)
{
	return (uintptr_t)(pkt->refs - 1) | (uintptr_t)pkt->next_part |
	       (uintptr_t)pkt->lender |
	       ((uintptr_t)pkt->pool ^ (uintptr_t)pool);
}

/* pkt_put(), which is inline when there is no such obstacle. */
static inline void pkt_put_quick(struct pkt *pkt)
{
	if (LIKELY(!pkt_put_obstacles(pkt, pkt->pool)))
		pkt_pool_give_back(pkt->pool, pkt, pkt, 1);
	else
		pkt_put(pkt);
}

/* A packet of `pool` (its slabs have no buffers) that shows `len` bytes of
 * another one from `offset` on, and holds a reference on it. Flags and sums are not
 * inherited, time stamps are. NULL when the pool is empty. */
struct pkt *pkt_borrow(struct pkt_pool *pool, struct pkt *lender,
		       uint32_t offset, uint32_t len) MUST_CHECK;

#endif
