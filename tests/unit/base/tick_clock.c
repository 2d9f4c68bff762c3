/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/tick_clock.h"

#include "base/clock.h"
#include "base/rand.h"

#include "tests/support/test.h"

/* A counter of a given speed beside a clock. A reading takes 100 ns of its ticks. */
struct world {
	uint64_t ns, ticks;
	double ticks_per_ns, rest;
	struct tick_clock clock;
	unsigned asked;
};

static uint64_t nobody(void)
{
	return 0;
}

static void world_init(struct world *w, double ticks_per_ns)
{
	*w = (struct world){ .ns = 77 * NS_PER_SEC, .ticks = UINT64_MAX - 1000000,
			     .ticks_per_ns = ticks_per_ns };
	tick_clock_init(&w->clock, nobody, true);
}

static void pass(struct world *w, uint64_t ns)
{
	double ticks = (double)ns * w->ticks_per_ns + w->rest;

	w->ns += ns;
	w->ticks += (uint64_t)ticks;
	w->rest = ticks - (double)(uint64_t)ticks;
}

/* As tick_clock_ns() does it. */
static uint64_t look(struct world *w)
{
	uint64_t ns;

	if (w->clock.limit && tick_clock_tell(&w->clock, w->ticks, &ns))
		return ns;
	w->asked++;
	return tick_clock_learn(&w->clock, w->ticks, w->ns,
				w->ticks + (uint64_t)(100 * w->ticks_per_ns));
}

/* Looks each 10 us for so long; returns the greatest difference to the clock. */
static uint64_t watch(struct world *w, uint64_t ns)
{
	uint64_t most = 0, said, latest = 0;

	for (uint64_t end = w->ns + ns; w->ns < end;) {
		pass(w, 10 * NS_PER_US);
		said = look(w);
		CHECK(said >= latest);
		latest = said;
		most = MAX(most, said > w->ns ? said - w->ns : w->ns - said);
	}
	return most;
}

TEST(it_asks_until_it_knows_and_then_seldom)
{
	static const double speeds[] = { 0.1, 1, 2.345678, 5 };

	for (unsigned i = 0; i < ARRAY_LEN(speeds); i++) {
		struct world w;

		world_init(&w, speeds[i]);
		CHECK_EQ(watch(&w, 99 * NS_PER_MS), 0);
		CHECK_EQ(w.asked, 9900);
		w.asked = 0;
		CHECK(watch(&w, NS_PER_SEC) <= 50);
		/* of the millisecond until then each 10 us, and then each 10 ms */
		CHECK(w.asked >= 198 && w.asked <= 201);
	}
}

TEST(a_silence_of_milliseconds_or_of_hours_ends_with_a_question)
{
	struct world w;
	unsigned asked;

	world_init(&w, 2.5);
	(void)watch(&w, 200 * NS_PER_MS);
	asked = w.asked;
	pass(&w, 11 * NS_PER_MS);
	CHECK_EQ(look(&w), w.ns);
	CHECK_EQ(w.asked, asked + 1);
	/* the processor may be another one by now */
	pass(&w, 3600 * NS_PER_SEC);
	w.ticks_per_ns = 2.2;
	CHECK_EQ(watch(&w, 99 * NS_PER_MS), 0);
	CHECK(watch(&w, NS_PER_SEC) <= 50);
}

TEST(a_counter_that_jumps_is_not_believed)
{
	struct world w;

	world_init(&w, 2.5);
	(void)watch(&w, 200 * NS_PER_MS);
	w.ticks -= 1000;
	CHECK(watch(&w, NS_PER_MS) <= 500);
	w.ticks -= 1000 * NS_PER_SEC;
	CHECK_EQ(watch(&w, 10 * NS_PER_US), 0);
	CHECK(watch(&w, 200 * NS_PER_MS) <= 500);
	w.ticks += 1000 * NS_PER_SEC;
	CHECK_EQ(watch(&w, 10 * NS_PER_US), 0);
	CHECK(watch(&w, 200 * NS_PER_MS) <= 500);
	/* what would pass for a little time passed is wrong for ten milliseconds at most */
	w.ticks += 2500000;
	CHECK(watch(&w, 10 * NS_PER_MS) <= NS_PER_MS);
	pass(&w, 10 * NS_PER_MS);
	CHECK(watch(&w, 10 * NS_PER_US) <= NS_PER_MS);
	CHECK(watch(&w, 200 * NS_PER_MS) <= 500);
}

/* A machine that has slept, or a process on another machine: the counter begins anew, and the
 * clock says that no time has passed. */
static void begin_anew(struct world *w)
{
	pass(w, 60 * NS_PER_MS);
	w->ticks = 1000;
	CHECK_EQ(look(w), w->ns);
	CHECK_EQ(w->clock.limit, 0);
}

TEST(a_counter_that_begins_anew_before_its_speed_is_known_is_not_believed)
{
	struct world w;

	world_init(&w, 2.5);
	w.ticks = UINT64_C(1) << 50;
	CHECK_EQ(look(&w), w.ns);
	begin_anew(&w);
	CHECK_EQ(watch(&w, 90 * NS_PER_MS), 0);
	CHECK(watch(&w, NS_PER_SEC) <= 50);
	/* nor twice in a row */
	begin_anew(&w);
	begin_anew(&w);
	CHECK_EQ(watch(&w, 90 * NS_PER_MS), 0);
	CHECK(watch(&w, NS_PER_SEC) <= 50);
	/* nor one that is as far ahead as it can be */
	world_init(&w, 2.5);
	CHECK_EQ(look(&w), w.ns);
	pass(&w, 60 * NS_PER_MS);
	w.ticks += UINT64_MAX / 2;
	CHECK_EQ(watch(&w, 90 * NS_PER_MS), 0);
	CHECK(watch(&w, NS_PER_SEC) <= 50);
}

TEST(a_clock_that_changes_its_speed_is_followed)
{
	struct world w;

	world_init(&w, 3);
	(void)watch(&w, 200 * NS_PER_MS);
	/* as far as the kernel slews its own */
	w.ticks_per_ns = 3 * 1.0005;
	CHECK(watch(&w, 200 * NS_PER_MS) <= 5100);
	CHECK(watch(&w, NS_PER_SEC) <= 100);
	w.ticks_per_ns = 3 / 1.0005;
	CHECK(watch(&w, 200 * NS_PER_MS) <= 10200);
	CHECK(watch(&w, NS_PER_SEC) <= 100);
	/* as no clock does: it waits for two measurements that agree */
	w.ticks_per_ns = 4;
	(void)watch(&w, 60 * NS_PER_MS);
	w.asked = 0;
	CHECK_EQ(watch(&w, 30 * NS_PER_MS), 0);
	CHECK_EQ(w.asked, 3000);
	CHECK(watch(&w, NS_PER_SEC) <= 100);
}

TEST(a_reading_that_was_interrupted_teaches_nothing)
{
	struct world w;
	struct tick_clock before;

	world_init(&w, 2.5);
	(void)watch(&w, 200 * NS_PER_MS);
	pass(&w, 11 * NS_PER_MS);
	before = w.clock;
	CHECK_EQ(tick_clock_learn(&w.clock, w.ticks, w.ns + NS_PER_MS,
				  w.ticks + 3000000),
		 w.ns + NS_PER_MS);
	CHECK_EQ(w.clock.ns, before.ns);
	CHECK_EQ(w.clock.ticks, before.ticks);
	CHECK_EQ(w.clock.from_ns, before.from_ns);
	/* who asks next is not told an earlier time */
	CHECK_EQ(look(&w), w.ns + NS_PER_MS);
	CHECK(watch(&w, 4 * NS_PER_MS) <= NS_PER_MS);
	CHECK(watch(&w, 100 * NS_PER_MS) <= 50);
}

static unsigned asked_cnt;

static uint64_t counting_clock(void)
{
	asked_cnt++;
	return clock_monotonic_ns();
}

TEST(without_a_counter_the_clock_is_asked_each_time)
{
	struct tick_clock clock;

	tick_clock_init(&clock, counting_clock, false);
	asked_cnt = 0;
	for (uint64_t end = clock_monotonic_ns() + 120 * NS_PER_MS, now = 0; now < end;) {
		uint64_t next = tick_clock_ns(&clock);

		CHECK(next >= now);
		now = next;
		CHECK_EQ(clock.limit, 0);
		CHECK(asked_cnt-- == 1);
	}
}

/* Twice ten milliseconds' worth of a thousandth, and what a reading may take. */
enum { NEAR_NS = 30000 };

TEST(this_processors_counter_follows_its_clock)
{
	uint64_t latest = 0, end = clock_monotonic_ns() + 400 * NS_PER_MS, looks = 0;
	struct tick_clock clock;

	if (!tick_clock_has_steady())
		return;
	tick_clock_init(&clock, counting_clock, true);
	asked_cnt = 0;
	while (latest < end) {
		uint64_t before = clock_monotonic_ns(), said = tick_clock_ns(&clock);
		uint64_t after = clock_monotonic_ns();

		CHECK(said >= latest);
		CHECK(said + NEAR_NS >= before && said <= after + NEAR_NS);
		latest = said;
		looks++;
	}
	CHECK(asked_cnt <= looks);
}
