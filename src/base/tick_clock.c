/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "base/tick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/clock.h"

enum {
	/* The counter is read before and after the clock. If more ticks are between, the
	 * thread may have been interrupted, and nobody knows when the clock was read. */
	SURE_TICKS = 1 << 14,
	/* a length and the one before it agree if they differ by less than one in so many */
	AGREE = 1 << 10,
};

/* The clock is asked again after this time: an error of the length grows with it. */
#define ASK_NS (10 * NS_PER_MS)
/* A length is measured over so long at least, since either end of it is uncertain by
 * SURE_TICKS; and at most, since the processor may be another one after a long time. */
#define MEASURE_MIN_NS (50 * NS_PER_MS)
#define MEASURE_MAX_NS (8 * NS_PER_SEC)

bool tick_clock_has_steady(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	/* "invariant TSC" */
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#else
	return false;
#endif
}

void tick_clock_init(struct tick_clock *clock, uint64_t (*clock_ns)(void), bool has_ticks)
{
	*clock = (struct tick_clock){ .clock_ns = clock_ns,
				      .has_ticks = HAS_TICKS && has_ticks };
}

/* The second of two lengths that agree is used. One that does not agree with the one
 * before is not: the counter has jumped, or the clock has been set. */
static void measure(struct tick_clock *clock, uint64_t ticks, uint64_t ns)
{
	uint64_t span = ticks - clock->from_ticks, scale;
	uint64_t span_ns = ns - clock->from_ns;
	bool is_measured = clock->from_ns && span_ns <= MEASURE_MAX_NS && span > SURE_TICKS;

	if (clock->from_ns && span_ns < MEASURE_MIN_NS)
		return;
	clock->from_ticks = ticks;
	clock->from_ns = ns;
	clock->limit = 0;
	if (!is_measured)
		return;
	scale = (span_ns << TICK_SCALE_BITS) / span;
	/* 0: the counter has gone back, as where the machine has slept, or far ahead */
	if (scale && scale - clock->scale + scale / AGREE <= 2 * (scale / AGREE))
		clock->limit = (ASK_NS << TICK_SCALE_BITS) / scale;
	clock->scale = scale;
}

uint64_t tick_clock_learn(struct tick_clock *clock, uint64_t before, uint64_t ns,
			  uint64_t after)
{
	/* A clock that we were ahead of stands still until it has caught up. */
	if (clock->latest_ns < ns)
		clock->latest_ns = ns;
	if (after - before <= SURE_TICKS) {
		measure(clock, before, ns);
		clock->ticks = before;
		clock->ns = ns;
	}
	return clock->latest_ns;
}

uint64_t tick_clock_ask(struct tick_clock *clock)
{
	uint64_t before, ns;

	if (!clock->has_ticks)
		return clock->clock_ns();
	before = ticks_now();
	ns = clock->clock_ns();
	return tick_clock_learn(clock, before, ns, ticks_now());
}
