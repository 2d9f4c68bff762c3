/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stats/reasons.h"

#include "tests/support/test.h"

TEST(each_reason_says_why)
{
	for (int i = 1; i < REASON_COUNT; i++) {
		CHECK(reason_name((enum reason)i)[0]);
		CHECK(strlen(reason_why((enum reason)i)) > 8);
	}
	CHECK_STR(reason_name(REASON_RULE), "RULE");
}

TEST(numbers_out_of_range_are_none)
{
	CHECK_STR(reason_name(REASON_COUNT), "NONE");
	CHECK_STR(reason_name((enum reason)-1), "NONE");
	CHECK_STR(reason_remedy(REASON_NONE), "");
}
