/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/suggest.h"

#include "tests/support/test.h"

static struct suggest meant(const char *typed)
{
	static const char *const known[] = { "RX_POLL", "RX_BUFS", "TX_BUFS",
					     "MTU",	"MSS",	   "BF" };
	struct suggest s = { .word = typed, .len = strlen(typed) };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		suggest_try(&s, known[i]);
	return s;
}

TEST(one_mistake_of_each_kind)
{
	CHECK_STR(meant("RX_POL").best, "RX_POLL");
	CHECK_STR(meant("RX_POLLL").best, "RX_POLL");
	CHECK_STR(meant("RX_POKL").best, "RX_POLL");
	CHECK_STR(meant("RX_PLOL").best, "RX_POLL");
	CHECK_EQ(meant("RX_POL").distance, 1);
	CHECK_EQ(meant("RX_POLLL").distance, 1);
	CHECK_EQ(meant("RX_POKL").distance, 1);
	CHECK_EQ(meant("RX_PLOL").distance, 1);
}

TEST(case_does_not_count)
{
	CHECK_STR(meant("rx_Poll").best, "RX_POLL");
	CHECK_EQ(meant("rx_Poll").distance, 0);
}

TEST(nearest_wins_and_the_first_of_equals)
{
	CHECK_STR(meant("TX_BUF").best, "TX_BUFS");
	CHECK_STR(meant("X_BUFS").best, "RX_BUFS");
}

TEST(nothing_is_close_to_a_stranger)
{
	CHECK(!meant("HOME").best);
	CHECK(!meant("").best);
	CHECK(!meant("XX").best);
}

TEST(long_words_are_left_alone)
{
	char word[500];
	struct suggest s = { .word = word, .len = sizeof(word) };

	memset(word, 'A', sizeof(word));
	suggest_try(&s, "RX_POLL");
	CHECK(!s.best);
	/* The longest that is compared. */
	s.len = 64;
	suggest_try(&s, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	CHECK(s.best);
	CHECK_EQ(s.distance, 0);
}
