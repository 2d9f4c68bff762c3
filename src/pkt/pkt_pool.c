/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools of packets (pkt_pool.h), and the end of a packet's life. */
#include "pkt/pkt_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pkt_slab {
	struct pkt_slab *next;
	/* what pkt_slab_create allocated for the buffers, or NULL */
	void *own_mem;
	uint32_t cnt;
	struct pkt *pkts;
};

void pkt_pool_init(struct pkt_pool *pool, uint32_t headroom)
{
	memset(pool, 0, sizeof(*pool));
	pool->headroom = headroom;
}

static void slab_free(struct pkt_slab *slab)
{
	free(slab->own_mem);
	free(slab->pkts);
	free(slab);
}

uint32_t pkt_pool_destroy(struct pkt_pool *pool)
{
	struct pkt_slab *slab;

	if (!pkt_pool_is_full(pool))
		return pool->total_cnt - pool->free_cnt;
	while ((slab = pool->slabs)) {
		pool->slabs = slab->next;
		slab_free(slab);
	}
	pkt_pool_init(pool, pool->headroom);
	return 0;
}

static void *alloc_lines(size_t size)
{
	size = (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	return aligned_alloc(CACHE_LINE, size);
}

/* Where `buf` points in a packet that only borrows: never NULL, so that it can
 * be calculated with. */
static uint8_t *no_buffer(struct pkt *pkt)
{
	return (uint8_t *)pkt;
}

struct pkt_slab *pkt_slab_create(uint32_t cnt, uint32_t buf_size, void *mem)
{
	struct pkt_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return NULL;
	slab->cnt = cnt;
	slab->pkts = alloc_lines(cnt * sizeof(struct pkt));
	if (!slab->pkts)
		goto err_free_slab;
	if (!mem && buf_size) {
		mem = slab->own_mem = alloc_lines((size_t)cnt * buf_size);
		if (!mem)
			goto err_free_slab;
	}
	memset(slab->pkts, 0, cnt * sizeof(struct pkt));
	for (uint32_t i = 0; i < cnt; i++) {
		struct pkt *pkt = &slab->pkts[i];

		list_init(&pkt->link);
		pkt->buf_size = buf_size;
		pkt->buf = buf_size ? (uint8_t *)mem + (size_t)i * buf_size
				    : no_buffer(pkt);
	}
	return slab;
err_free_slab:
	slab_free(slab);
	return NULL;
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
