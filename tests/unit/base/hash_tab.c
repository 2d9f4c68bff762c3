/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/hash_tab.h"

#include "base/hash.h"
#include "tests/support/test.h"

enum { ELEMENTS = 5000 };

struct element {
	struct hash_link link;
	uint64_t key;
	bool is_in;
};

static struct element elements[ELEMENTS];
static struct hash_tab tab;

static struct element *find(uint64_t key, uint64_t hash)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab, hash) {
		struct element *e = CONTAINER_OF(link, struct element, link);

		if (e->key == key)
			return e;
	}
	return NULL;
}

static void insert(unsigned i, uint64_t hash)
{
	elements[i].key = i;
	CHECK_EQ(hash_tab_insert(&tab, &elements[i].link, hash), 0);
}

TEST(empty_table_has_nothing)
{
	struct hash_tab empty = { 0 };

	CHECK(!hash_tab_first(&empty, 0));
	CHECK(!hash_tab_walk(&empty, NULL));
	hash_tab_release(&empty);
}

TEST(finds_what_is_in_it_and_nothing_else)
{
	for (unsigned i = 0; i < ELEMENTS; i++)
		insert(i, hash_u64(0, i));
	CHECK_EQ(tab.cnt, ELEMENTS);
	CHECK(tab.bucket_cnt >= ELEMENTS);
	for (unsigned i = 0; i < ELEMENTS; i += 2)
		hash_tab_remove(&tab, &elements[i].link);
	for (unsigned i = 0; i < ELEMENTS; i++)
		CHECK(find(i, hash_u64(0, i)) == (i % 2 ? &elements[i] : NULL));
	CHECK_EQ(tab.cnt, ELEMENTS / 2);
	hash_tab_release(&tab);
}

TEST(equal_hashes_live_together)
{
	for (unsigned i = 0; i < 100; i++)
		insert(i, i % 3);
	for (unsigned i = 0; i < 100; i++)
		CHECK(find(i, i % 3) == &elements[i]);
	CHECK(!find(1, 0));
	hash_tab_remove(&tab, &elements[50].link);
	CHECK(!find(50, 50 % 3));
	hash_tab_release(&tab);
}

TEST(replacing_keeps_hash_and_neighbours)
{
	for (unsigned i = 0; i < 10; i++)
		insert(i, 7);
	elements[10].key = 10;
	hash_tab_replace(&tab, &elements[4].link, &elements[10].link);
	CHECK(!find(4, 7));
	CHECK(find(10, 7) == &elements[10]);
	CHECK(find(0, 7) && find(9, 7));
	CHECK_EQ(tab.cnt, 10);
	hash_tab_release(&tab);
}

TEST(a_walk_meets_each_once_and_may_remove_it)
{
	struct hash_link *link, *following;
	unsigned cnt = 0;

	for (unsigned i = 0; i < 1000; i++) {
		insert(i, hash_u64(0, i / 2));
		elements[i].is_in = true;
	}
	for (link = hash_tab_walk(&tab, NULL); link; link = following) {
		struct element *e = CONTAINER_OF(link, struct element, link);

		following = hash_tab_walk(&tab, link);
		CHECK(e->is_in);
		e->is_in = false;
		hash_tab_remove(&tab, link);
		cnt++;
	}
	CHECK_EQ(cnt, 1000);
	CHECK_EQ(tab.cnt, 0);
	hash_tab_release(&tab);
}
