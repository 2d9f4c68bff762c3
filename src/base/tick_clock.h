/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CLOCK_MONOTONIC by the processor's own counter. Asking the C library takes some hundred
 * instructions. This takes fifteen, for a few milliseconds after each time that it has
 * asked. How long a tick is it measures against the real clock again and again. It is never
 * further from that than a few millionths of the time since it asked, and it says nothing
 * of its own where the counter and the clock disagree.
 *
 * It does not order the reading of the counter against other instructions, so it holds for
 * those alone who read it one after the other under a lock, and it is never set back for them.
 */
#ifndef BASE_TICK_CLOCK_H
#define BASE_TICK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#if defined(__x86_64__)
#define HAS_TICKS 1
#else
#define HAS_TICKS 0
#endif

struct tick_clock {
	/* one moment, as the counter and as the clock have it */
	uint64_t ticks, ns;
	/* the length of a tick; for so many after that moment it may be used, 0: not known */
	uint64_t scale, limit;
	/* what has been said last */
	uint64_t latest_ns;
	/* where the present measurement of the length began; 0: nowhere */
	uint64_t from_ticks, from_ns;
	/* the clock that it follows, and whether by the counter */
	uint64_t (*clock_ns)(void);
	bool has_ticks;
};

/* scale is in so many parts of a nanosecond. */
enum { TICK_SCALE_BITS = 30 };

/* Whether this processor has a counter that runs at the same speed always. What the
 * system makes of it is another question. */
bool tick_clock_has_steady(void);

/* Without `has_ticks` it does nothing but ask the clock, and the counter is not read. */
void tick_clock_init(struct tick_clock *clock, uint64_t (*clock_ns)(void), bool has_ticks);

/* The counter said `before`, then the clock `ns`, then the counter `after`. Returns the
 * present time. */
uint64_t tick_clock_learn(struct tick_clock *clock, uint64_t before, uint64_t ns,
			  uint64_t after);
uint64_t tick_clock_ask(struct tick_clock *clock);

/* The counter says `ticks` now. Returns whether that is enough to tell the time. */
static ALWAYS_INLINE bool tick_clock_tell(struct tick_clock *clock, uint64_t ticks,
					  uint64_t *ns_out)
{
	uint64_t passed = ticks - clock->ticks, ns;

	/* also where the counter went back */
	if (UNLIKELY(passed >= clock->limit))
		return false;
	ns = clock->ns + (passed * clock->scale >> TICK_SCALE_BITS);
	if (UNLIKELY(ns < clock->latest_ns))
		ns = clock->latest_ns;
	*ns_out = clock->latest_ns = ns;
	return true;
}

static ALWAYS_INLINE uint64_t ticks_now(void)
{
#if HAS_TICKS
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static ALWAYS_INLINE uint64_t tick_clock_ns(struct tick_clock *clock)
{
	uint64_t ns;

	if (UNLIKELY(!clock->limit || !tick_clock_tell(clock, ticks_now(), &ns)))
		return tick_clock_ask(clock);
	return ns;
}

#endif
