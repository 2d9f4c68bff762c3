/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pkt/pkt_pool.h"

#include "tests/support/inherited.h"
#include "tests/support/test.h"

TEST(pool_gives_all_and_gets_all_back)
{
	struct pkt *pkts[10];
	struct pkt_pool pool;

	pkt_pool_init(&pool, 100);
	CHECK(pkt_alloc(&pool) == NULL);
	CHECK_EQ(pool.empty_cnt, 1);
	CHECK_EQ(pkt_pool_grow(&pool, 4, 256), 0);
	CHECK_EQ(pkt_pool_grow(&pool, 6, 256), 0);
	for (uint32_t i = 0; i < 10; i++) {
		pkts[i] = pkt_alloc(&pool);
		CHECK(pkts[i] != NULL);
		CHECK_EQ((uintptr_t)pkts[i]->buf % 64, 0);
		CHECK_EQ(pkt_headroom(pkts[i]), 100);
		CHECK_EQ(pkt_tailroom(pkts[i]), 156);
		memset(pkt_append(pkts[i], 156), (int)i, 156);
	}
	CHECK(pkt_alloc(&pool) == NULL);
	CHECK_EQ(pkt_pool_destroy(&pool), 10);
	for (uint32_t i = 0; i < 10; i++) {
		CHECK_EQ(pkts[i]->data[155], i);
		pkt_put(pkts[i]);
	}
	CHECK(pkt_pool_is_full(&pool));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

/* The network is the parent's alone. */
TEST(children_have_nothing_of_a_slab)
{
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 4, 256), 0);
	CHECK(!is_inherited(pool.slabs));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(slabs_of_an_unused_pool_can_be_taken)
{
	struct pkt_slab *slabs;
	struct pkt_pool pool;

	pkt_pool_init(&pool, 100);
	CHECK_EQ(pkt_pool_grow(&pool, 4, 256), 0);
	CHECK_EQ(pkt_pool_grow(&pool, 6, 256), 0);
	slabs = pkt_pool_take_slabs(&pool);
	CHECK(slabs != NULL);
	CHECK_EQ(pool.total_cnt, 0);
	CHECK(pkt_alloc(&pool) == NULL);
	pkt_slabs_free(slabs);
	CHECK_EQ(pkt_pool_grow(&pool, 1, 256), 0);
	pkt_put(pkt_alloc(&pool));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

/* What is in the way of giving a packet back as it is. */
TEST(obstacles_to_a_quick_end_are_seen)
{
	struct pkt_pool pool, borrowers;
	struct pkt *pkt, *part, *lent;

	pkt_pool_init(&pool, 0);
	pkt_pool_init(&borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 2, 64), 0);
	CHECK_EQ(pkt_pool_grow(&borrowers, 1, 0), 0);
	pkt = pkt_alloc(&pool);
	part = pkt_alloc(&pool);
	CHECK(pkt && part);
	CHECK_EQ(pkt_put_obstacles(pkt, &pool), 0);
	CHECK(pkt_put_obstacles(pkt, &borrowers) != 0);
	lent = pkt_borrow(&borrowers, pkt, 0, 0);
	CHECK(lent != NULL);
	CHECK(pkt_put_obstacles(lent, &borrowers) != 0);
	CHECK(pkt_put_obstacles(pkt, &pool) != 0);
	pkt_put_quick(pkt);
	CHECK_EQ(pool.free_cnt, 0);
	pkt_put_quick(lent);
	CHECK_EQ(pool.free_cnt, 1);
	pkt = pkt_alloc(&pool);
	part->next_part = pkt;
	CHECK(pkt_put_obstacles(part, &pool) != 0);
	pkt_put_quick(part);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
	CHECK_EQ(pkt_pool_destroy(&borrowers), 0);
}

TEST(linked_packets_go_back_together)
{
	struct pkt *first, *second, *third;
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 3, 64), 0);
	first = pkt_alloc(&pool);
	second = pkt_alloc(&pool);
	third = pkt_alloc(&pool);
	first->link.next = &second->link;
	second->link.next = &third->link;
	pkt_pool_give_back(&pool, first, third, 3);
	CHECK_EQ(pool.free_cnt, 3);
	CHECK(pkt_alloc(&pool) == first);
	CHECK(pkt_alloc(&pool) == second);
	CHECK(pkt_alloc(&pool) == third);
	CHECK(pkt_alloc(&pool) == NULL);
	pkt_put(first);
	pkt_put(second);
	pkt_put(third);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(frames_of_given_memory_are_numbered)
{
	static uint8_t region[4 * 512] CACHE_ALIGNED;
	struct pkt_slab *slab = pkt_slab_create(4, 512, region);
	struct pkt *pkts[4];
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK(slab != NULL);
	pkt_pool_add(&pool, slab);
	for (uint32_t i = 0; i < 4; i++) {
		pkts[i] = pkt_alloc(&pool);
		CHECK_EQ(pkts[i]->frame_id, i);
		CHECK(pkts[i]->buf == region + 512 * i);
	}
	for (uint32_t i = 0; i < 4; i++)
		pkt_put(pkts[i]);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(data_moves_within_its_buffer)
{
	struct pkt_pool pool;
	struct pkt *pkt;

	pkt_pool_init(&pool, 32);
	CHECK_EQ(pkt_pool_grow(&pool, 1, 64), 0);
	pkt = pkt_alloc(&pool);
	memcpy(pkt_append(pkt, 5), "hello", 5);
	memcpy(pkt_push(pkt, 3), "oh ", 3);
	CHECK_EQ(pkt->len, 8);
	CHECK_MEM(pkt->data, "oh hello", 8);
	CHECK_EQ(pkt_headroom(pkt), 29);
	CHECK_EQ(pkt_tailroom(pkt), 64 - 29 - 8);
	pkt_pull(pkt, 4);
	pkt_trim(pkt, 3);
	CHECK_EQ(pkt->len, 3);
	CHECK_MEM(pkt->data, "ell", 3);
	pkt_put(pkt);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(references_keep_a_packet)
{
	struct pkt_pool pool;
	struct pkt *pkt;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 1, 64), 0);
	pkt = pkt_alloc(&pool);
	pkt_get(pkt);
	pkt_put(pkt);
	CHECK(!pkt_pool_is_full(&pool));
	pkt_put(pkt);
	CHECK(pkt_pool_is_full(&pool));
	pkt_put(NULL);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(parts_go_with_their_packet)
{
	struct pkt *head, *part, *kept;
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 3, 64), 0);
	head = pkt_alloc(&pool);
	part = pkt_alloc(&pool);
	kept = pkt_alloc(&pool);
	head->next_part = part;
	part->next_part = kept;
	pkt_append(head, 1);
	pkt_append(part, 2);
	pkt_append(kept, 3);
	CHECK_EQ(pkt_total_len(head), 6);
	/* somebody else holds the last part */
	pkt_get(kept);
	pkt_put(head);
	CHECK_EQ(pool.free_cnt, 2);
	CHECK_EQ(kept->len, 3);
	pkt_put(kept);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

TEST(borrower_shows_the_bytes_and_keeps_the_lender)
{
	struct pkt_pool pool, borrowers;
	struct pkt *pkt, *one, *two;

	pkt_pool_init(&pool, 0);
	pkt_pool_init(&borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 1, 64), 0);
	CHECK_EQ(pkt_pool_grow(&borrowers, 2, 0), 0);
	pkt = pkt_alloc(&pool);
	memcpy(pkt_append(pkt, 10), "0123456789", 10);
	one = pkt_borrow(&borrowers, pkt, 4, 6);
	two = pkt_borrow(&borrowers, one, 2, 3);
	CHECK(pkt_borrow(&borrowers, pkt, 0, 1) == NULL);
	CHECK_EQ(two->len, 3);
	CHECK_MEM(two->data, "678", 3);
	CHECK_EQ(pkt_tailroom(two), 0);
	CHECK_EQ(pkt_headroom(two), 0);
	pkt_put(pkt);
	pkt_put(one);
	CHECK_MEM(two->data, "678", 3);
	CHECK_EQ(pool.free_cnt, 0);
	pkt_put(two);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
	/* a borrower can be used again */
	CHECK_EQ(borrowers.free_cnt, 2);
	CHECK_EQ(pkt_pool_destroy(&borrowers), 0);
}

TEST(list_is_put_whole)
{
	struct list queue = LIST_INIT(queue);
	struct pkt_pool pool;

	pkt_pool_init(&pool, 0);
	CHECK_EQ(pkt_pool_grow(&pool, 3, 64), 0);
	for (int i = 0; i < 3; i++)
		list_push_back(&queue, &pkt_alloc(&pool)->link);
	pkt_put_list(&queue);
	CHECK(list_is_empty(&queue));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}
