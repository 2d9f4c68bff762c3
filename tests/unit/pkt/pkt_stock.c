/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pkt/pkt_stock.h"

#include "tests/support/test.h"

enum { SIZE = 2048, SLAB = PKT_STOCK_SLAB_SIZE / SIZE };

static struct pkt_stock stock;
static struct list taken;

static void begin(uint32_t cnt_max)
{
	pkt_stock_init(&stock, SIZE, cnt_max);
	list_init(&taken);
}

static void end(void)
{
	pkt_put_list(&taken);
	CHECK_EQ(pkt_stock_destroy(&stock), 0);
}

static bool take(void)
{
	struct pkt *pkt = pkt_stock_take(&stock);

	if (pkt)
		list_push_back(&taken, &pkt->link);
	return pkt != NULL;
}

static void grow(void)
{
	CHECK(pkt_stock_take_wish(&stock));
	CHECK(!pkt_stock_add(&stock, pkt_stock_make(&stock)));
}

TEST(it_has_nothing_before_something_is_taken)
{
	begin(UINT32_MAX);
	CHECK(!pkt_stock_take_wish(&stock));
	CHECK_EQ(stock.pool.total_cnt, 0);
	CHECK(!take());
	grow();
	CHECK(take());
	CHECK_EQ(stock.pool.total_cnt, SLAB);
	end();
}

/* More is wanted while there still is some: who takes one after the other never finds
 * none. */
TEST(it_grows_before_it_is_empty)
{
	begin(UINT32_MAX);
	CHECK(!take());
	grow();
	for (int i = 0; i < 10 * SLAB; i++) {
		CHECK(take());
		if (stock.is_wanted)
			grow();
	}
	end();
}

TEST(it_does_not_grow_beyond_its_most)
{
	struct pkt_slab *slab;
	int cnt = 0;

	begin(3 * SLAB - 1);
	(void)!take();
	for (int i = 0; i < 10 * SLAB; i++) {
		cnt += take();
		if (stock.is_wanted)
			grow();
	}
	CHECK_EQ(cnt, 2 * SLAB);
	/* nor when two have made some for one wish */
	slab = pkt_stock_make(&stock);
	CHECK(pkt_stock_add(&stock, slab) == slab);
	pkt_slabs_free(slab);
	end();
}

TEST(memory_goes_when_nobody_uses_it)
{
	struct pkt_slab *idle;

	begin(UINT32_MAX);
	CHECK(pkt_stock_shrink(&stock) == NULL);
	(void)!take();
	grow();
	CHECK(take());
	CHECK(pkt_stock_shrink(&stock) == NULL);
	pkt_put_list(&taken);
	idle = pkt_stock_shrink(&stock);
	CHECK(idle != NULL);
	pkt_slabs_free(idle);
	CHECK_EQ(stock.pool.total_cnt, 0);
	/* and comes again */
	CHECK(!take());
	grow();
	CHECK(take());
	end();
}
