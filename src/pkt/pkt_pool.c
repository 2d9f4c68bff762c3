/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools of packets (pkt_pool.h), and the end of a packet's life. */
#include "pkt/pkt_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"

/* The head of one mapping. The packets follow it, and then their buffers, unless
 * these are in other memory. */
struct pkt_slab {
	struct pkt_slab *next;
	/* who points to it: the pool, or the one before */
	struct pkt_slab **at;
	size_t size; /* of the mapping */
	uint32_t cnt;
	/* of pkt_aside_sort: how many of its packets are there; it can go, and which one
	 * can beside it */
	uint32_t aside_cnt;
	bool can_go;
	struct pkt_slab *next_gone;
	struct pkt pkts[] __attribute__((aligned(CACHE_LINE)));
};

void pkt_pool_init(struct pkt_pool *pool, uint32_t headroom)
{
	memset(pool, 0, sizeof(*pool));
	pool->headroom = headroom;
}

void pkt_slabs_free(struct pkt_slab *slab)
{
	struct pkt_slab *next;

	for (; slab; slab = next) {
		next = slab->next;
		munmap(slab, slab->size);
	}
}

uint32_t pkt_pool_destroy(struct pkt_pool *pool)
{
	uint32_t missing = pool->total_cnt - pool->free_cnt;

	if (!missing)
		pkt_slabs_free(pkt_pool_take_slabs(pool));
	return missing;
}

struct pkt_slab *pkt_pool_take_slabs(struct pkt_pool *pool)
{
	struct pkt_slab *slabs = pool->slabs;

	INVARIANT(pkt_pool_is_full(pool), "nobody uses a packet");
	pkt_pool_init(pool, pool->headroom);
	return slabs;
}

/* -- slabs that nobody uses, among others ------------------------------------------------ */

void pkt_pool_set_aside(struct pkt_pool *pool, uint32_t keep,
			struct pkt_aside *out)
{
	struct list **at = &pool->free;

	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < keep && *at; i++)
		at = &(*at)->next;
	if (!*at)
		return;
	out->first = pkt_from_link(*at);
	out->cnt = pool->free_cnt - keep;
	*at = NULL;
	pool->free_cnt = keep;
}

static struct pkt *next_aside(const struct pkt *pkt)
{
	return pkt->link.next ? pkt_from_link(pkt->link.next) : NULL;
}

static struct pkt_slab *slab_of(struct pkt *pkt, uint32_t slab_cnt)
{
	struct pkt *first = pkt - pkt->frame_id % slab_cnt;

	return CONTAINER_OF(first, struct pkt_slab, pkts[0]);
}

static bool can_go(struct pkt_aside *aside, struct pkt_slab *slab,
		   uint32_t slabs_max)
{
	if (!slab->can_go && slab->aside_cnt == slab->cnt &&
	    aside->slab_cnt < slabs_max) {
		slab->can_go = true;
		slab->next_gone = aside->slabs;
		aside->slabs = slab;
		aside->slab_cnt++;
	}
	return slab->can_go;
}

void pkt_aside_sort(struct pkt_aside *aside, uint32_t slab_cnt,
		    uint32_t slabs_max)
{
	struct pkt *pkt, *next, *all = aside->first;

	for (pkt = all; pkt; pkt = next_aside(pkt))
		slab_of(pkt, slab_cnt)->aside_cnt++;
	aside->first = aside->last = NULL;
	aside->cnt = 0;
	for (pkt = all; pkt; pkt = next) {
		next = next_aside(pkt);
		if (can_go(aside, slab_of(pkt, slab_cnt), slabs_max))
			continue;
		pkt->link.next = aside->first ? &aside->first->link : NULL;
		aside->first = pkt;
		if (!aside->last)
			aside->last = pkt;
		aside->cnt++;
	}
	for (pkt = aside->first; pkt; pkt = next_aside(pkt))
		slab_of(pkt, slab_cnt)->aside_cnt = 0;
}

struct pkt_slab *pkt_pool_end_aside(struct pkt_pool *pool,
				    struct pkt_aside *aside)
{
	if (aside->first)
		pkt_pool_give_back(pool, aside->first, aside->last, aside->cnt);
	for (struct pkt_slab *slab = aside->slabs; slab; slab = slab->next_gone) {
		*slab->at = slab->next;
		if (slab->next)
			slab->next->at = slab->at;
		pool->total_cnt -= slab->cnt;
		slab->next = slab->next_gone;
	}
	return aside->slabs;
}

/* The value of `buf` in a packet that only borrows. It is never NULL, so that one
 * can calculate with it. */
static uint8_t *no_buffer(struct pkt *pkt)
{
	return (uint8_t *)pkt;
}

struct pkt_slab *pkt_slab_create(uint32_t cnt, uint32_t buf_size, void *mem)
{
	size_t head = sizeof(struct pkt_slab) + cnt * sizeof(struct pkt);
	size_t size = head + (mem ? 0 : (size_t)cnt * buf_size);
	struct pkt_slab *slab = pages_map_not_inherited(size);

	if (!slab)
		return NULL;
	slab->size = size;
	slab->cnt = cnt;
	if (!mem)
		mem = (uint8_t *)slab + head;
	for (uint32_t i = 0; i < cnt; i++) {
		struct pkt *pkt = &slab->pkts[i];

		list_init(&pkt->link);
		pkt->buf_size = buf_size;
		pkt->buf = buf_size ? (uint8_t *)mem + (size_t)i * buf_size
				    : no_buffer(pkt);
	}
	return slab;
}

void pkt_pool_add(struct pkt_pool *pool, struct pkt_slab *slab)
{
	/* from the end, so that the first buffer is taken first */
	for (uint32_t i = slab->cnt; i-- > 0;) {
		struct pkt *pkt = &slab->pkts[i];

		pkt->pool = pool;
		pkt->frame_id = pool->total_cnt + i;
		pkt_pool_give_back(pool, pkt, pkt, 1);
	}
	pool->total_cnt += slab->cnt;
	slab->next = pool->slabs;
	slab->at = &pool->slabs;
	if (slab->next)
		slab->next->at = &slab->next;
	pool->slabs = slab;
}

int pkt_pool_grow(struct pkt_pool *pool, uint32_t cnt, uint32_t buf_size)
{
	struct pkt_slab *slab = pkt_slab_create(cnt, buf_size, NULL);

	if (!slab)
		return -ENOMEM;
	pkt_pool_add(pool, slab);
	return 0;
}

struct pkt *pkt_borrow(struct pkt_pool *pool, struct pkt *lender,
		       uint32_t offset, uint32_t len)
{
	struct pkt *pkt = pkt_alloc(pool);

	if (!pkt)
		return NULL;
	INVARIANT(!pkt->buf_size, "borrowers have no buffer of their own");
	pkt->data = pkt->buf = lender->data + offset;
	pkt->len = pkt->buf_size = len;
	pkt_take_stamps(pkt, lender);
	/* the one that owns the buffer, so that chains stay short */
	pkt->lender = lender->lender ? lender->lender : lender;
	pkt_get(pkt->lender);
	return pkt;
}

static void end_loan(struct pkt *pkt)
{
	struct pkt *lender = pkt->lender;

	pkt->lender = NULL;
	pkt->buf = no_buffer(pkt);
	pkt->buf_size = 0;
	pkt_put(lender);
}

void pkt_release(struct pkt *pkt)
{
	do {
		struct pkt *part = pkt->next_part;

		pkt->next_part = NULL;
		if (pkt->lender)
			end_loan(pkt);
		pkt_pool_give_back(pkt->pool, pkt, pkt, 1);
		pkt = part;
	} while (pkt && --pkt->refs == 0);
}

void pkt_put_list(struct list *pkts)
{
	struct list *link;

	while ((link = list_pop_front(pkts)))
		pkt_put(pkt_from_link(link));
}
