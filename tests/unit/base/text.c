/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/text.h"

#include "tests/support/test.h"

TEST(pieces_follow_each_other)
{
	char buf[16];
	struct text t = text_in(buf, sizeof(buf));

	CHECK_STR(buf, "");
	text_add(&t, "a%d", 1);
	text_add(&t, "-%s", "b");
	CHECK_STR(buf, "a1-b");
	CHECK_EQ(t.len, 4);
	CHECK(!t.is_cut);
}

TEST(what_does_not_fit_is_cut)
{
	char buf[8] = "xxxxxxx";
	struct text t = text_in(buf, 5);

	text_add(&t, "1234");
	CHECK(!t.is_cut);
	text_add(&t, "5");
	CHECK(t.is_cut);
	text_add(&t, "6");
	CHECK_STR(buf, "1234");
	CHECK_EQ(t.len, 4);
	CHECK_EQ(buf[5], 'x');
}

TEST(smallest_buffer_holds_the_end)
{
	char buf[1];
	struct text t = text_in(buf, sizeof(buf));

	text_add(&t, "x");
	CHECK_EQ(buf[0], '\0');
	CHECK_EQ(t.len, 0);
}

TEST(quoted_text_is_printable)
{
	char buf[64];
	struct text t = text_in(buf, sizeof(buf));

	text_add_quoted(&t, "a\x1b[\n\xff~", 6, 10);
	CHECK_STR(buf, "\"a?[??~\"");
	t = text_in(buf, sizeof(buf));
	text_add_quoted(&t, "abcdef", 6, 3);
	CHECK_STR(buf, "\"abc...\"");
}
