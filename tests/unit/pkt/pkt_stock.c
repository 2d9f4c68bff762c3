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

/* -- while some are in use -------------------------------------------------------------- */

static void take_cnt(int cnt)
{
	for (int i = 0; i < cnt; i++) {
		if (!take()) {
			grow();
			CHECK(take());
		}
		if (stock.is_wanted)
			grow();
	}
}

/* Bytes of every packet that was taken, so that one whose memory has gone is a fault. */
static void touch_all(void)
{
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &taken, link)
		memset(pkt->buf, 1, SIZE);
}

static void put_cnt(int cnt)
{
	while (cnt--)
		pkt_put(pkt_from_link(list_pop_front(&taken)));
}

static bool check(void)
{
	struct pkt_aside aside;
	struct pkt_slab *gone;

	if (!pkt_stock_begin_shrink(&stock, &aside))
		return false;
	pkt_stock_sort(&stock, &aside);
	gone = pkt_stock_end_shrink(&stock, &aside);
	pkt_slabs_free(gone);
	return gone != NULL;
}

TEST(memory_goes_by_halves_while_some_use_it)
{
	uint32_t total;

	begin(UINT32_MAX);
	take_cnt(100 * SLAB);
	total = stock.pool.total_cnt;
	CHECK(!check());
	put_cnt(99 * SLAB);
	CHECK(check());
	CHECK(stock.pool.total_cnt < total * 3 / 5);
	CHECK(stock.pool.total_cnt > total * 2 / 5);
	for (int i = 0; i < 20; i++)
		(void)!check();
	CHECK(stock.pool.total_cnt <= 8 * SLAB);
	touch_all();
	/* and it grows again */
	take_cnt(20 * SLAB);
	touch_all();
	end();
}

/* Of most slabs a packet is in use: what cannot go is not asked for each time. */
TEST(pinned_memory_is_looked_at_seldom)
{
	struct pkt_aside aside;
	struct list pinned, *last;
	int looks = 0;

	begin(UINT32_MAX);
	list_init(&pinned);
	for (int i = 0; i < 50; i++) {
		take_cnt(SLAB);
		last = taken.prev;
		list_remove(last);
		list_push_back(&pinned, last);
	}
	put_cnt(50 * SLAB - 50);
	for (int i = 0; i < 20; i++)
		(void)!check();
	for (int i = 0; i < 200; i++) {
		if (!pkt_stock_begin_shrink(&stock, &aside))
			continue;
		looks++;
		pkt_stock_sort(&stock, &aside);
		CHECK(!pkt_stock_end_shrink(&stock, &aside));
	}
	CHECK(looks >= 2);
	CHECK(looks <= 6);
	pkt_put_list(&pinned);
	end();
}

/* Who takes packets while others are set aside gets those that are left. */
TEST(packets_are_taken_meanwhile)
{
	struct pkt_aside aside;

	begin(UINT32_MAX);
	take_cnt(20 * SLAB);
	put_cnt(20 * SLAB);
	CHECK(pkt_stock_begin_shrink(&stock, &aside));
	for (int i = 0; i < SLAB; i++)
		CHECK(take());
	pkt_stock_sort(&stock, &aside);
	put_cnt(SLAB / 2);
	pkt_slabs_free(pkt_stock_end_shrink(&stock, &aside));
	touch_all();
	take_cnt(20 * SLAB);
	touch_all();
	end();
}
