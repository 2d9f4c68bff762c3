/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "event/timer_wheel.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/rand.h"
#include "tests/support/test.h"

static struct timer_wheel wheel;

struct probe {
	struct timer timer;
	uint64_t fired_ns; /* 0: not yet */
	unsigned fired_cnt;
};

static void note_fired(struct timer *timer, uint64_t now_ns)
{
	struct probe *probe = CONTAINER_OF(timer, struct probe, timer);

	probe->fired_ns = now_ns;
	probe->fired_cnt++;
}

static void probe_init(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	timer_init(&probe->timer, note_fired);
}

/* Goes from one proposed wake-up to the next; returns how many there were. */
static unsigned run_to(uint64_t until_ns)
{
	unsigned wakes = 0;

	while (timer_wheel_next_ns(&wheel) <= until_ns) {
		timer_wheel_advance(&wheel, timer_wheel_next_ns(&wheel));
		wakes++;
	}
	timer_wheel_advance(&wheel, until_ns);
	return wakes;
}

TEST(empty_wheel_has_no_next)
{
	timer_wheel_init(&wheel, 12345);
	CHECK(timer_wheel_next_ns(&wheel) == TIMER_NEVER);
	CHECK_EQ(timer_wheel_advance(&wheel, 10 * NS_PER_SEC), 0);
	CHECK(timer_wheel_next_ns(&wheel) == TIMER_NEVER);
}

TEST(fires_within_a_tick_never_early)
{
	static const uint64_t delays_ns[] = {
		1, TIMER_TICK_NS, TIMER_TICK_NS + 1, 500000, 33 * NS_PER_MS,
		NS_PER_SEC, 137 * NS_PER_SEC, 7200 * NS_PER_SEC,
		100 * 86400 * NS_PER_SEC,
	};
	uint64_t start_ns = 987654321;

	for (size_t i = 0; i < ARRAY_LEN(delays_ns); i++) {
		struct probe probe;
		uint64_t deadline_ns = start_ns + delays_ns[i];

		timer_wheel_init(&wheel, start_ns);
		probe_init(&probe);
		timer_set(&wheel, &probe.timer, deadline_ns);
		CHECK(run_to(deadline_ns + 2 * TIMER_TICK_NS) <= TIMER_LEVELS);
		CHECK_EQ(probe.fired_cnt, 1);
		CHECK(probe.fired_ns >= deadline_ns);
		CHECK(probe.fired_ns < deadline_ns + TIMER_TICK_NS);
		CHECK_EQ(timer_wheel_pending_cnt(&wheel), 0);
	}
}

TEST(one_big_step_fires_all_in_order)
{
	struct probe probes[3];

	timer_wheel_init(&wheel, 0);
	for (int i = 0; i < 3; i++) {
		probe_init(&probes[i]);
		timer_set(&wheel, &probes[i].timer, (3 - i) * NS_PER_SEC);
	}
	CHECK_EQ(timer_wheel_advance(&wheel, 2 * NS_PER_SEC + TIMER_TICK_NS),
		 2);
	CHECK_EQ(probes[0].fired_cnt, 0);
	CHECK_EQ(timer_wheel_advance(&wheel, 9 * NS_PER_SEC), 1);
	CHECK_EQ(probes[0].fired_ns, 9 * NS_PER_SEC);
}

TEST(moving_and_cancelling)
{
	struct probe probe;

	timer_wheel_init(&wheel, 0);
	probe_init(&probe);
	timer_cancel(&wheel, &probe.timer);
	timer_set(&wheel, &probe.timer, NS_PER_MS);
	timer_set(&wheel, &probe.timer, 5 * NS_PER_MS);
	CHECK_EQ(timer_wheel_pending_cnt(&wheel), 1);
	run_to(4 * NS_PER_MS);
	CHECK_EQ(probe.fired_cnt, 0);
	timer_cancel(&wheel, &probe.timer);
	CHECK(!timer_is_pending(&probe.timer));
	CHECK(timer_wheel_next_ns(&wheel) == TIMER_NEVER);
	run_to(NS_PER_SEC);
	CHECK_EQ(probe.fired_cnt, 0);
}

struct killer {
	struct timer timer;
	struct timer *victim;
};

static void kill_victim(struct timer *timer, uint64_t now_ns UNUSED)
{
	timer_cancel(&wheel,
		     CONTAINER_OF(timer, struct killer, timer)->victim);
}

TEST(callback_may_cancel_one_of_the_same_tick)
{
	struct probe probe;
	struct killer killer = { .victim = &probe.timer };

	timer_wheel_init(&wheel, 0);
	timer_init(&killer.timer, kill_victim);
	probe_init(&probe);
	timer_set(&wheel, &killer.timer, NS_PER_MS);
	timer_set(&wheel, &probe.timer, NS_PER_MS);
	CHECK_EQ(timer_wheel_advance(&wheel, NS_PER_SEC), 1);
	CHECK_EQ(probe.fired_cnt, 0);
	CHECK_EQ(timer_wheel_pending_cnt(&wheel), 0);
}

static unsigned rearm_cnt;

static void rearm_in_the_past(struct timer *timer, uint64_t now_ns UNUSED)
{
	rearm_cnt++;
	timer_set(&wheel, timer, 0);
}

TEST(rearming_in_the_past_waits_for_the_next_advance)
{
	struct timer timer;

	rearm_cnt = 0;
	timer_wheel_init(&wheel, 0);
	timer_init(&timer, rearm_in_the_past);
	timer_set(&wheel, &timer, NS_PER_MS);
	timer_wheel_advance(&wheel, NS_PER_SEC);
	CHECK_EQ(rearm_cnt, 1);
	timer_wheel_advance(&wheel, NS_PER_SEC + TIMER_TICK_NS);
	CHECK_EQ(rearm_cnt, 2);
}

/* Of the times that are set, rounded up to a tick. */
static uint64_t first_of(const uint64_t *set_ns, int cnt)
{
	uint64_t first = TIMER_NEVER;

	for (int i = 0; i < cnt; i++)
		if (set_ns[i])
			first = MIN(first, (set_ns[i] + TIMER_TICK_NS - 1) &
						   ~(TIMER_TICK_NS - 1));
	return first;
}

/* Against a model that looks at all timers each time. */
TEST(random_operations_match_a_plain_model)
{
	enum { PROBES = 200 };
	struct probe *probes = calloc(PROBES, sizeof(*probes));
	uint64_t set_ns[PROBES] = { 0 }, now_ns;
	struct rand rand;

	rand_init(&rand, test_seed);
	now_ns = rand_below(&rand, UINT64_C(1) << 62);
	timer_wheel_init(&wheel, now_ns);
	for (int i = 0; i < PROBES; i++)
		probe_init(&probes[i]);
	for (int step = 0; step < 100000; step++) {
		unsigned i = (unsigned)rand_below(&rand, PROBES);
		unsigned scale = (unsigned)rand_below(&rand, 44);
		uint64_t by_ns = rand_below(&rand, UINT64_C(1) << scale);
		uint64_t next_ns, reached_ns;

		switch (rand_below(&rand, 4)) {
		case 0:
			timer_cancel(&wheel, &probes[i].timer);
			set_ns[i] = 0;
			continue;
		case 1:
		case 2:
			timer_set(&wheel, &probes[i].timer, now_ns + by_ns);
			probes[i].fired_ns = 0;
			/* due in a later tick than the present one */
			set_ns[i] = MAX(now_ns + by_ns,
					(now_ns | (TIMER_TICK_NS - 1)) + 1);
			continue;
		}
		next_ns = timer_wheel_next_ns(&wheel);
		CHECK_EQ(timer_wheel_first_ns(&wheel),
			 first_of(set_ns, PROBES));
		now_ns += by_ns;
		reached_ns = now_ns & ~(TIMER_TICK_NS - 1);
		timer_wheel_advance(&wheel, now_ns);
		for (int j = 0; j < PROBES; j++) {
			bool is_due = set_ns[j] && set_ns[j] <= reached_ns;

			CHECK_EQ(set_ns[j] != 0 && !is_due,
				 timer_is_pending(&probes[j].timer));
			if (!is_due)
				continue;
			CHECK(next_ns <= now_ns);
			CHECK_EQ(probes[j].fired_ns, now_ns);
			set_ns[j] = 0;
		}
	}
	for (int i = 0; i < PROBES; i++)
		timer_cancel(&wheel, &probes[i].timer);
	CHECK_EQ(timer_wheel_pending_cnt(&wheel), 0);
	CHECK(timer_wheel_next_ns(&wheel) == TIMER_NEVER);
	CHECK(timer_wheel_first_ns(&wheel) == TIMER_NEVER);
	free(probes);
}

/* The owner hears of the earliest, whatever became of it. */
TEST(news_are_of_the_earliest)
{
	struct probe probes[3];

	timer_wheel_init(&wheel, 0);
	CHECK(wheel.news_tick == TIMER_NO_NEWS);
	for (int i = 0; i < 3; i++)
		probe_init(&probes[i]);
	timer_set(&wheel, &probes[0].timer, 500 * NS_PER_MS);
	CHECK(wheel.news_tick == probes[0].timer.tick);
	timer_set(&wheel, &probes[1].timer, 3 * NS_PER_MS);
	timer_set(&wheel, &probes[2].timer, 70 * NS_PER_MS);
	CHECK(wheel.news_tick == probes[1].timer.tick);
	wheel.news_tick = TIMER_NO_NEWS;
	timer_set(&wheel, &probes[1].timer, 90 * NS_PER_MS);
	CHECK(wheel.news_tick == probes[1].timer.tick);
	for (int i = 0; i < 3; i++)
		timer_cancel(&wheel, &probes[i].timer);
}
