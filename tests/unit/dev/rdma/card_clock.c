/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the counter of a card that runs fast or slow to system time, by samples that are
 * a little wrong. */
#include "config.h"

#include "dev/rdma/card_clock.h"

#include <pthread.h>

#include "base/rand.h"
#include "tests/support/test.h"

#define START_NS (UINT64_C(1700000000) * NS_PER_SEC)

enum { KHZ = 156250 };

/* The two clocks of a machine: the counter's rate is off by so many millionths, and the
 * system's clock may have been set. */
static struct world {
	uint64_t mask;
	uint64_t first_ticks;
	int64_t ppm;
	uint64_t now_ns;	/* since the start; nobody sets this one */
	int64_t set_by_ns;
	/* it is made to run fast, by so much in a millisecond */
	int64_t slew_ns;
	/* of a sample, which tells so itself */
	uint64_t error_ns;
	struct rand rand;
	struct card_clock clock;
} world;

static uint64_t ticks_at(uint64_t ns)
{
	unsigned __int128 ticks = (unsigned __int128)ns * KHZ / NS_PER_MS;

	ticks = ticks * (uint64_t)(1000000 + world.ppm) / 1000000;
	return (world.first_ticks + (uint64_t)ticks) & world.mask;
}

static uint64_t system_at(uint64_t ns)
{
	return START_NS + ns + (uint64_t)world.set_by_ns;
}

static void sample(void)
{
	uint64_t off = world.error_ns ? rand_below(&world.rand,
						   2 * (uint32_t)world.error_ns) :
					0;

	card_clock_add(&world.clock, &(struct card_clock_sample){
		.ticks = ticks_at(world.now_ns),
		.ns = system_at(world.now_ns) + off - world.error_ns,
		.error_ns = world.error_ns,
	});
}

static void begin(int64_t ppm, uint64_t error_ns, uint64_t mask)
{
	world = (struct world){
		.mask = mask,
		.first_ticks = UINT64_C(123456789012) & mask,
		.ppm = ppm,
		.error_ns = error_ns,
	};
	rand_init(&world.rand, 1);
	card_clock_init(&world.clock, KHZ, mask);
	CHECK_EQ(card_clock_ns(&world.clock, ticks_at(0)), 0);
	sample();
}

/* By how much a packet of now has a wrong stamp. */
static uint64_t error_now(void)
{
	int64_t by = (int64_t)(card_clock_ns(&world.clock, ticks_at(world.now_ns)) -
			       system_at(world.now_ns));

	return (uint64_t)(by < 0 ? -by : by);
}

/* So many seconds with a packet in each millisecond and a sample in each second. Returns
 * the greatest error in the last second. */
static uint64_t run(unsigned seconds)
{
	uint64_t worst = 0, last = 0;

	for (unsigned s = 0; s < seconds; s++) {
		worst = 0;
		for (int ms = 0; ms < 1000; ms++) {
			uint64_t ns;

			world.now_ns += NS_PER_MS;
			world.set_by_ns += world.slew_ns;
			ns = card_clock_ns(&world.clock, ticks_at(world.now_ns));
			CHECK(ns >= last);
			last = ns;
			worst = MAX(worst, error_now());
		}
		sample();
	}
	return worst;
}

/* What the issue demands: 100 ppm, after ten seconds. */
static void check_skew(int64_t ppm, uint64_t error_ns, uint64_t most)
{
	uint64_t worst;

	begin(ppm, error_ns, UINT64_MAX >> 1);
	worst = run(10);
	worst = MAX(worst, run(20));
	test_note("%" PRId64 " ppm, samples wrong by %" PRIu64 " ns: stamps by %" PRIu64
		  " ns", ppm, error_ns, worst);
	CHECK(worst <= most);
}

TEST(skewed_clocks_are_right_within_a_microsecond)
{
	check_skew(0, 0, 10);
	check_skew(100, 0, 10);
	check_skew(-100, 0, 10);
	check_skew(100, 300, 1000);
	check_skew(-100, 300, 1000);
	check_skew(400, 300, 1000);
}

/* Until the rate is known, it is the nominal one that leads astray, and no more. */
TEST(right_from_the_first_sample)
{
	begin(100, 300, UINT64_MAX >> 1);
	CHECK(error_now() <= 300);
	CHECK(run(1) <= 101 * NS_PER_US);
	CHECK(run(2) <= 2 * NS_PER_US);
}

/* A reader that was interrupted says so, and what it says changes little. */
TEST(bad_samples_do_no_harm)
{
	begin(100, 200, UINT64_MAX >> 1);
	run(10);
	for (int i = 0; i < 20; i++) {
		world.error_ns = i % 3 ? 200 : 2 * NS_PER_MS;
		CHECK(run(1) <= 5 * NS_PER_US);
	}
	world.error_ns = 200;
	CHECK(run(10) <= NS_PER_US);
}

/* A look whose two times were in the wrong order is no look. */
TEST(worthless_sample_does_no_harm)
{
	begin(100, 200, UINT64_MAX >> 1);
	run(10);
	for (int i = 0; i < 3; i++) {
		card_clock_add(&world.clock, &(struct card_clock_sample){
			.ticks = ticks_at(world.now_ns),
			.ns = system_at(world.now_ns) + NS_PER_SEC / 2,
			.error_ns = UINT64_MAX / 2,
		});
		CHECK(run(1) <= NS_PER_US);
	}
}

/* Nobody knows better than to half a millisecond. Such samples are good for that. */
TEST(samples_that_are_all_bad)
{
	begin(1000, 500 * NS_PER_US, UINT64_MAX >> 1);
	run(10);
	for (int i = 0; i < 20; i++)
		CHECK(run(1) <= 1500 * NS_PER_US);
}

/* A lap of the counter takes 27 seconds, and one of those of today's cards longer. */
TEST(counter_wraps)
{
	begin(100, 300, UINT32_MAX);
	run(10);
	for (int i = 0; i < 60; i++)
		CHECK(run(1) <= NS_PER_US);
	begin(100, 300, (UINT64_C(1) << 41) - 1);
	world.first_ticks = world.mask - 5ull * KHZ * 1000;
	card_clock_init(&world.clock, KHZ, world.mask);
	sample();
	CHECK(run(12) <= NS_PER_US);
}

/* The administrator sets the system's clock: stamps follow it with the next sample, and
 * the rate stays as good as it was. */
static void check_set(int64_t by_ns)
{
	begin(100, 300, UINT64_MAX >> 1);
	run(10);
	world.set_by_ns = by_ns;
	sample();
	CHECK(error_now() <= 300);
	CHECK(run(1) <= NS_PER_US);
	CHECK(run(10) <= NS_PER_US);
}

TEST(clock_is_set)
{
	check_set(3600 * (int64_t)NS_PER_SEC);
	check_set(-3600 * (int64_t)NS_PER_SEC);
	check_set(-11 * (int64_t)NS_PER_MS);
}

/* What it is a little wrong by is made up for without a jump, which run() checks. */
TEST(clock_is_corrected)
{
	begin(100, 300, UINT64_MAX >> 1);
	run(10);
	world.set_by_ns = -9 * (int64_t)NS_PER_MS;
	run(1);
	CHECK(run(1) > 8 * NS_PER_MS);
	CHECK(run(4) <= NS_PER_US);
	world.set_by_ns = 0;
	run(3);
	CHECK(run(4) <= NS_PER_US);
}

/* The system's clock is made to run slow for a while, as by NTP. */
TEST(clock_is_slowed_down)
{
	begin(0, 300, UINT64_MAX >> 1);
	run(10);
	world.slew_ns = -500;
	CHECK(run(1) <= 501 * NS_PER_US);
	CHECK(run(1) <= 501 * NS_PER_US);
	CHECK(run(10) <= NS_PER_US);
	world.slew_ns = 0;
	run(2);
	CHECK(run(10) <= NS_PER_US);
}

/* It was received before a sample and is asked for after it. */
TEST(what_waited_keeps_its_time)
{
	uint64_t ticks, before;

	begin(100, 300, UINT64_MAX >> 1);
	run(1);
	for (int i = 0; i < 10; i++) {
		world.now_ns += NS_PER_SEC / 2;
		ticks = ticks_at(world.now_ns);
		before = card_clock_ns(&world.clock, ticks);
		world.now_ns += NS_PER_SEC / 2;
		sample();
		CHECK_EQ(card_clock_ns(&world.clock, ticks), before);
	}
}

TEST(raw_time_is_at_the_nominal_rate)
{
	card_clock_init(&world.clock, KHZ, (UINT64_C(1) << 41) - 1);
	CHECK_EQ(card_clock_raw_ns(&world.clock, 0), 0);
	CHECK_EQ(card_clock_raw_ns(&world.clock, 156250000), NS_PER_SEC);
	CHECK_EQ(card_clock_raw_ns(&world.clock, (UINT64_C(1) << 41) + 156250), NS_PER_MS);
}

/* -- threads ------------------------------------------------------------------------- */

static _Atomic bool is_over;

static void *ask(void *arg UNUSED)
{
	uint64_t ticks = ticks_at(0);

	/* before all samples but the first, so that a torn line would be far off */
	while (!atomic_load(&is_over))
		CHECK(card_clock_ns(&world.clock, ticks) - START_NS + NS_PER_MS <
		      (1 << 30) + NS_PER_SEC);
	return NULL;
}

TEST(asked_while_it_changes)
{
	pthread_t thread;

	begin(0, 0, UINT64_MAX >> 1);
	CHECK_EQ(pthread_create(&thread, NULL, ask, NULL), 0);
	for (int i = 0; i < 20000; i++) {
		world.now_ns += NS_PER_MS;
		sample();
	}
	atomic_store(&is_over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}
