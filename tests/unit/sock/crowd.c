/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who spins beside whom. */
#include "config.h"

#include "sock/sock_crowd.h"

#include <sched.h>

#include "base/clock.h"
#include "tests/support/test.h"

/* The thread stays on the processor that it runs on. */
static void stay_here(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void let_go(const cpu_set_t *before)
{
	CHECK_EQ(sched_setaffinity(0, sizeof(*before), before), 0);
}

TEST(one_that_spins_alone_gives_no_way)
{
	struct sock_spinner spinner = { .place = -1 };
	cpu_set_t before;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	CHECK(!sock_crowd_is_here(&spinner));
	CHECK(!sock_crowd_is_here(&spinner));
	sock_crowd_leave(&spinner);
	sock_crowd_leave(&spinner);
	let_go(&before);
}

TEST(two_on_one_processor_give_way_until_one_leaves)
{
	struct sock_spinner one = { .place = -1 }, other = { .place = -1 };
	cpu_set_t before;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	CHECK(!sock_crowd_is_here(&one));
	CHECK(sock_crowd_is_here(&other));
	CHECK(sock_crowd_is_here(&one));
	sock_crowd_leave(&other);
	CHECK(!sock_crowd_is_here(&one));
	sock_crowd_leave(&one);
	let_go(&before);
}

/* Who computes keeps a processor for longer than any look takes. */
TEST(processor_is_wanted_for_a_while)
{
	struct sock_spinner one = { .place = -1 }, other = { .place = -1 };
	uint64_t now = clock_monotonic_ns();
	cpu_set_t before;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	CHECK(!sock_crowd_is_here(&one));
	CHECK(!sock_crowd_is_wanted(&one, now));
	now += NS_PER_MS - 1;
	CHECK(!sock_crowd_is_wanted(&one, now));
	now += NS_PER_MS;
	CHECK(sock_crowd_is_wanted(&one, now));
	/* by whoever looks */
	CHECK(sock_crowd_is_wanted(&other, now + 19 * NS_PER_MS));
	sock_crowd_leave(&other);
	CHECK(!sock_crowd_is_wanted(&other, now + 20 * NS_PER_MS));
	sock_crowd_leave(&one);
	let_go(&before);
}

/* What it does while it does not spin says nothing of others, and it has just been moved from
 * the place that it could not have, if any. */
TEST(only_the_place_that_was_kept_is_wanted)
{
	struct sock_spinner one = { .place = -1 };
	uint64_t now = clock_monotonic_ns() + NS_PER_SEC;
	int elsewhere;
	cpu_set_t before;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	CHECK(!sock_crowd_is_here(&one));
	CHECK(!sock_crowd_is_wanted(&one, now));
	sock_crowd_leave(&one);
	now += NS_PER_SEC;
	CHECK(!sock_crowd_is_wanted(&one, now));
	elsewhere = (sched_getcpu() + 1) % SOCK_CROWD_PLACES;
	one.place = elsewhere;
	atomic_fetch_add(&sock_crowd[elsewhere].cnt, 1);
	now += NS_PER_SEC;
	CHECK(!sock_crowd_is_wanted(&one, now));
	CHECK_EQ(sock_crowd[elsewhere].wanted_until_ns, now + 20 * NS_PER_MS);
	sock_crowd_leave(&one);
	let_go(&before);
}

/* It is counted where it is, and no longer where it was. */
TEST(one_that_is_moved_is_counted_anew)
{
	struct sock_spinner mover = { .place = -1 }, stayer = { .place = -1 };
	cpu_set_t before;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	stayer.place = (sched_getcpu() + 1) % SOCK_CROWD_PLACES;
	mover.place = stayer.place;
	atomic_fetch_add(&sock_crowd[stayer.place].cnt, 2);
	CHECK(!sock_crowd_is_here(&mover));
	CHECK_EQ(sock_crowd[stayer.place].cnt, 1);
	sock_crowd_leave(&mover);
	sock_crowd_leave(&stayer);
	for (int i = 0; i < SOCK_CROWD_PLACES; i++)
		CHECK_EQ(sock_crowd[i].cnt, 0);
	let_go(&before);
}
