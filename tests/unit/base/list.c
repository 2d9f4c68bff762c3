/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/list.h"

#include "tests/support/test.h"

struct item {
	int value;
	struct list link;
};

/* The values on the list as a decimal number, first element leftmost. */
static int digits(struct list *head)
{
	struct item *item;
	int n = 0;

	LIST_FOR_EACH(item, head, link)
		n = 10 * n + item->value;
	return n;
}

TEST(keeps_order_at_both_ends)
{
	struct list head = LIST_INIT(head);
	struct item a = { .value = 1 }, b = { .value = 2 }, c = { .value = 3 };

	CHECK(list_is_empty(&head));
	list_push_back(&head, &b.link);
	list_push_back(&head, &c.link);
	list_push_front(&head, &a.link);
	CHECK_EQ(digits(&head), 123);
	CHECK(LIST_ENTRY(list_pop_front(&head), struct item, link) == &a);
	CHECK_EQ(digits(&head), 23);
}

TEST(removed_element_is_unlinked)
{
	struct list head = LIST_INIT(head);
	struct item a = { .value = 1 }, b = { .value = 2 };

	list_push_back(&head, &a.link);
	list_push_back(&head, &b.link);
	list_remove(&a.link);
	CHECK(!list_is_linked(&a.link));
	list_remove(&a.link);
	CHECK_EQ(digits(&head), 2);
	list_remove(&b.link);
	CHECK(list_pop_front(&head) == NULL);
}

TEST(splice_appends_and_empties)
{
	struct list to = LIST_INIT(to), from = LIST_INIT(from);
	struct item a = { .value = 1 }, b = { .value = 2 }, c = { .value = 3 };

	list_splice_back(&to, &from);
	CHECK(list_is_empty(&to));
	list_push_back(&to, &a.link);
	list_push_back(&from, &b.link);
	list_push_back(&from, &c.link);
	list_splice_back(&to, &from);
	CHECK_EQ(digits(&to), 123);
	CHECK(list_is_empty(&from));
}

TEST(turns_to_begin_anywhere)
{
	struct list head = LIST_INIT(head);
	struct item a = { .value = 1 }, b = { .value = 2 }, c = { .value = 3 };

	list_begin_at(&head, &head);
	CHECK(list_is_empty(&head));
	list_push_back(&head, &a.link);
	list_push_back(&head, &b.link);
	list_push_back(&head, &c.link);
	list_begin_at(&head, &a.link);
	CHECK_EQ(digits(&head), 123);
	list_begin_at(&head, &b.link);
	CHECK_EQ(digits(&head), 231);
	list_begin_at(&head, &head);
	CHECK_EQ(digits(&head), 231);
	list_begin_at(&head, &a.link);
	CHECK_EQ(digits(&head), 123);
}

TEST(safe_walk_survives_removal)
{
	struct list head = LIST_INIT(head);
	struct item items[4], *item, *following;

	for (int i = 0; i < 4; i++) {
		items[i].value = i + 1;
		list_push_back(&head, &items[i].link);
	}
	LIST_FOR_EACH_SAFE(item, following, &head, link)
		if (item->value % 2)
			list_remove(&item->link);
	CHECK_EQ(digits(&head), 24);
}
