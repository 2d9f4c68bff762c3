/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools that grow (pkt_stock.h). */
#include "config.h"

#include "pkt/pkt_stock.h"

void pkt_stock_init(struct pkt_stock *stock, uint32_t buf_size, uint32_t cnt_max)
{
	pkt_pool_init(&stock->pool, 0);
	stock->buf_size = buf_size;
	stock->cnt_max = cnt_max;
	stock->is_wanted = false;
	stock->is_refused = false;
}

uint32_t pkt_stock_destroy(struct pkt_stock *stock)
{
	return pkt_pool_destroy(&stock->pool);
}

struct pkt_slab *pkt_stock_make(const struct pkt_stock *stock)
{
	return pkt_slab_create(pkt_stock_slab_cnt(stock), stock->buf_size, NULL);
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
