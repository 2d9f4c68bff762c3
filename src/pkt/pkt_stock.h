/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pool of packets in ordinary memory that grows with what is taken from it, and gives
 * everything back when nobody uses a packet, or by and by what few use. It starts with nothing. Packets are taken
 * under the owner's lock, which makes no memory: whoever takes one of the last notes that
 * there should be more, and the owner makes it after the unlock:
 *
 *	lock; pkt = pkt_stock_take(stock); wanted = pkt_stock_take_wish(stock); unlock
 *	if (wanted) {
 *		slab = pkt_stock_make(stock);
 *		lock; pkt_stock_add(stock, slab); unlock
 *	}
 */
#ifndef PKT_PKT_STOCK_H
#define PKT_PKT_STOCK_H

#include "pkt/pkt_pool.h"

/* How much comes at a time, and how few packets are left when more is wanted: what may
 * be taken before it is there. */
enum { PKT_STOCK_SLAB_SIZE = 256 << 10, PKT_STOCK_LOW = 64 };

struct pkt_stock {
	struct pkt_pool pool;
	uint32_t buf_size;
	/* it never has more packets */
	uint32_t cnt_max;
	bool is_wanted;
	/* there was no memory for more, and nobody has looked again since */
	bool is_refused;
	/* checks that look for slabs which nobody uses in vain: so many are left out, and
	 * were the last time */
	uint8_t pause, last_pause;
};

void pkt_stock_init(struct pkt_stock *stock, uint32_t buf_size,
		    uint32_t cnt_max);
/* Frees what there is. Returns how many packets were missing; then nothing is freed. */
uint32_t pkt_stock_destroy(struct pkt_stock *stock) MUST_CHECK;

static inline uint32_t pkt_stock_slab_cnt(const struct pkt_stock *stock)
{
	return PKT_STOCK_SLAB_SIZE / stock->buf_size;
}

/* It cannot grow any more. */
static inline bool pkt_stock_is_at_limit(const struct pkt_stock *stock)
{
	return stock->pool.total_cnt + pkt_stock_slab_cnt(stock) >
	       stock->cnt_max;
}

/* Nothing is there, and nothing comes by itself: somebody has to put a packet first. */
static inline bool pkt_stock_is_used_up(const struct pkt_stock *stock)
{
	return !stock->pool.free_cnt &&
	       (pkt_stock_is_at_limit(stock) || stock->is_refused);
}

/* Packets may be taken soon. */
static inline void pkt_stock_prepare(struct pkt_stock *stock)
{
	if (UNLIKELY(stock->pool.free_cnt <= PKT_STOCK_LOW) &&
	    !pkt_stock_is_at_limit(stock))
		stock->is_wanted = true;
}

/* An empty packet, or NULL: there is none now. */
static inline struct pkt *pkt_stock_take(struct pkt_stock *stock)
{
	pkt_stock_prepare(stock);
	return pkt_alloc(&stock->pool);
}

/* Whether there should be more; the caller sees to it. */
static inline bool pkt_stock_take_wish(struct pkt_stock *stock)
{
	bool is_wanted = stock->is_wanted;

	stock->is_wanted = false;
	return is_wanted;
}

/* Without the lock. NULL without memory. */
struct pkt_slab *pkt_stock_make(const struct pkt_stock *stock) MUST_CHECK;
/* NULL says that there was no memory. What two threads have made for one wish is added
 * too, up to the most there may be; what is too much is returned, for pkt_slabs_free. */
struct pkt_slab *pkt_stock_add(struct pkt_stock *stock, struct pkt_slab *slab)
	MUST_CHECK;

/* Whether memory was refused since the last time: there may be some again, and whoever
 * waits for a packet may ask for it once more. */
static inline bool pkt_stock_take_refusal(struct pkt_stock *stock)
{
	bool is_refused = stock->is_refused;

	stock->is_refused = false;
	return is_refused;
}

/* Everything it has, if nobody uses a packet, for pkt_slabs_free, without the lock;
 * otherwise NULL. */
struct pkt_slab *pkt_stock_shrink(struct pkt_stock *stock) MUST_CHECK;

/* While some are in use, and more are not: half of the memory that nobody uses can go at each
 * check. Three steps, as pkt_pool.h has them; false: there is nothing to do. */
bool pkt_stock_begin_shrink(struct pkt_stock *stock,
			    struct pkt_aside *out) MUST_CHECK;
void pkt_stock_sort(const struct pkt_stock *stock, struct pkt_aside *aside);
struct pkt_slab *pkt_stock_end_shrink(struct pkt_stock *stock,
				      struct pkt_aside *aside) MUST_CHECK;

#endif
