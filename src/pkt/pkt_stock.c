/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools that grow (pkt_stock.h). */
#include "config.h"

#include "pkt/pkt_stock.h"

void pkt_stock_init(struct pkt_stock *stock, uint32_t buf_size,
		    uint32_t cnt_max)
{
	pkt_pool_init(&stock->pool, 0);
	stock->buf_size = buf_size;
	stock->cnt_max = cnt_max;
	stock->is_wanted = false;
	stock->is_refused = false;
	stock->pause = stock->last_pause = 0;
}

uint32_t pkt_stock_destroy(struct pkt_stock *stock)
{
	return pkt_pool_destroy(&stock->pool);
}

struct pkt_slab *pkt_stock_make(const struct pkt_stock *stock)
{
	return pkt_slab_create(pkt_stock_slab_cnt(stock), stock->buf_size,
			       NULL);
}

struct pkt_slab *pkt_stock_add(struct pkt_stock *stock, struct pkt_slab *slab)
{
	if (!slab) {
		stock->is_refused = true;
		return NULL;
	}
	if (stock->pool.total_cnt + pkt_stock_slab_cnt(stock) > stock->cnt_max)
		return slab;
	pkt_pool_add(&stock->pool, slab);
	return NULL;
}

struct pkt_slab *pkt_stock_shrink(struct pkt_stock *stock)
{
	if (!stock->pool.total_cnt || !pkt_pool_is_full(&stock->pool))
		return NULL;
	return pkt_pool_take_slabs(&stock->pool);
}

enum { PAUSE_MAX = 63 };

bool pkt_stock_begin_shrink(struct pkt_stock *stock, struct pkt_aside *out)
{
	const struct pkt_pool *pool = &stock->pool;
	uint32_t slab_cnt = pkt_stock_slab_cnt(stock);

	if (pool->free_cnt <= 4 * slab_cnt + PKT_STOCK_LOW ||
	    pool->free_cnt <= pool->total_cnt / 2)
		return false;
	if (stock->pause) {
		stock->pause--;
		return false;
	}
	pkt_pool_set_aside(&stock->pool, slab_cnt + PKT_STOCK_LOW, out);
	return true;
}

void pkt_stock_sort(const struct pkt_stock *stock, struct pkt_aside *aside)
{
	uint32_t slab_cnt = pkt_stock_slab_cnt(stock);

	pkt_aside_sort(aside, slab_cnt, (aside->cnt / slab_cnt + 1) / 2);
}

struct pkt_slab *pkt_stock_end_shrink(struct pkt_stock *stock,
				      struct pkt_aside *aside)
{
	struct pkt_slab *gone = pkt_pool_end_aside(&stock->pool, aside);

	stock->last_pause =
		gone ? 0 : MIN(2 * stock->last_pause + 1, PAUSE_MAX);
	stock->pause = stock->last_pause;
	return gone;
}
