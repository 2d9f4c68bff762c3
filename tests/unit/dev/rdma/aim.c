/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many packets an interrupt waits for, by what came. */
#include "config.h"

#include "dev/rdma/aim.h"

#include "base/clock.h"
#include "tests/support/test.h"

static const struct aim_params params = {
	.interval_ns = NS_PER_SEC / 4, .max_cnt = 560, .max_us = 250, .rate = 5000,
};

/* Of the choice after a second with so many packets of so many bytes. */
static struct aim_choice choice_for(const struct aim_params *p, uint64_t pkts,
				    uint64_t len)
{
	struct aim aim = { .now = { 48, 50 } };

	CHECK(!aim_adapt(&aim, p, 1, 7, 70));
	CHECK(aim_adapt(&aim, p, 1 + NS_PER_SEC, 7 + pkts, 70 + pkts * len));
	return aim.now;
}

static void check(struct aim_choice got, uint16_t cnt, uint16_t us)
{
	CHECK_EQ(got.cnt, cnt);
	CHECK_EQ(got.us, us);
}

TEST(few_small_ones_are_told_at_once)
{
	check(choice_for(&params, 0, 0), 0, 0);
	check(choice_for(&params, 1, 64), 0, 0);
	check(choice_for(&params, 449999, 1023), 0, 0);
}

TEST(many_or_long_ones_wait)
{
	check(choice_for(&params, 450000, 64), 90, 200);
	check(choice_for(&params, 100000, 1024), 20, 200);
	check(choice_for(&params, 5001, 1500), 1, 200);
}

/* The wished rate is not reached anyway. */
TEST(long_ones_that_are_rare_do_not)
{
	check(choice_for(&params, 5000, 1500), 0, 0);
}

TEST(never_more_than_the_most)
{
	struct aim_params slow = params;

	check(choice_for(&params, 10000000, 64), 560, 200);
	slow.rate = 1000;
	check(choice_for(&slow, 500000, 64), 500, 250);
	slow.rate = 0;
	check(choice_for(&slow, 500000, 64), 560, 250);
}

TEST(once_in_an_interval)
{
	struct aim aim = { .now = { 48, 50 } };
	uint64_t now = 5;

	CHECK(!aim_adapt(&aim, &params, now, 0, 0));
	now += params.interval_ns - 1;
	CHECK(!aim_adapt(&aim, &params, now, 0, 0));
	check(aim.now, 48, 50);
	now++;
	CHECK(aim_adapt(&aim, &params, now, 0, 0));
	check(aim.now, 0, 0);
	/* again the same: nothing has changed */
	CHECK(!aim_adapt(&aim, &params, now + params.interval_ns, 1, 1));
}

TEST(never_without_an_interval)
{
	struct aim_params never = params;
	struct aim aim = { .now = { 48, 50 } };

	never.interval_ns = 0;
	CHECK(!aim_adapt(&aim, &never, 1, 0, 0));
	CHECK(!aim_adapt(&aim, &never, 100 * NS_PER_SEC, 1, 1));
	check(aim.now, 48, 50);
}

/* Somebody has set the counters to 0. */
TEST(counters_that_fall_begin_anew)
{
	struct aim aim = { .now = { 48, 50 } };

	CHECK(!aim_adapt(&aim, &params, 1, 1000000, 64000000));
	CHECK(!aim_adapt(&aim, &params, 1 + NS_PER_SEC, 0, 0));
	check(aim.now, 48, 50);
	CHECK(aim_adapt(&aim, &params, 1 + 2 * NS_PER_SEC, 900000, 57600000));
	check(aim.now, 180, 200);
}
