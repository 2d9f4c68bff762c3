/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timers of one owner, in a hierarchy of wheels. To add or cancel a timer costs
 * the same however many there are. The caller supplies the time; nothing here reads
 * a clock.
 *
 * A timer never fires early. It fires at the first advance whose time is at least
 * the timer's deadline, rounded up to a whole tick of TIMER_TICK_NS. A timer that a
 * callback sets, or whose deadline has passed, waits for the next tick that an
 * advance reaches. Whoever calls these functions holds the lock of the wheel's
 * owner.
 */
#ifndef EVENT_TIMER_WHEEL_H
#define EVENT_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/* A tick is 8.192 microseconds. That is fine enough for the reordering window of a
 * path of 50 microseconds. */
enum { TIMER_TICK_SHIFT = 13 };
#define TIMER_TICK_NS (UINT64_C(1) << TIMER_TICK_SHIFT)

/* The result of timer_wheel_next_ns if no timer is pending. */
#define TIMER_NEVER UINT64_MAX
/* See timer_wheel.news_tick. */
#define TIMER_NO_NEWS UINT64_MAX

struct timer;

/* Called by timer_wheel_advance for a timer that is no longer pending, under the
 * caller's lock. It may set and cancel any timers, including its own and those that
 * expire in the same advance, and may free what holds the timer. */
typedef void (*timer_fn)(struct timer *timer, uint64_t now_ns);

struct timer {
	/* in a slot; linked to itself while not pending */
	struct list link;
	/* the tick in which it is to fire */
	uint64_t tick;
	timer_fn fire;
	/* where it hangs while pending */
	uint8_t level;
	uint8_t slot;
};

/* Nine levels of six bits cover every tick of a 64-bit time. */
enum {
	TIMER_LEVELS = 9,
	TIMER_SLOT_BITS = 6,
	TIMER_SLOTS = 1 << TIMER_SLOT_BITS,
};

struct timer_wheel {
	/* the tick that is served now, or was served last */
	uint64_t tick;
	/* the tick of the latest advance; timers that are set now are due later than
	 * this */
	uint64_t reached_tick;
	/* a bit for each level that is not empty, and for each slot of a level */
	uint32_t occupied_levels;
	uint64_t occupied[TIMER_LEVELS];
	size_t pending_cnt;
	/* The first tick that a timer was set for since the owner has put TIMER_NO_NEWS
	 * here. */
	uint64_t news_tick;
	struct list slots[TIMER_LEVELS][TIMER_SLOTS];
};

void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns);

static inline void timer_init(struct timer *timer, timer_fn fire)
{
	list_init(&timer->link);
	timer->fire = fire;
}

static inline bool timer_is_pending(const struct timer *timer)
{
	return list_is_linked(&timer->link);
}

/* Starts the timer, or moves it if it is pending. */
void timer_set(struct timer_wheel *wheel, struct timer *timer,
	       uint64_t deadline_ns);
/* Stops the timer. Does nothing if it is not pending. */
void timer_cancel(struct timer_wheel *wheel, struct timer *timer);

/* Fires every timer that is due, in the order of their ticks. `now_ns` never goes
 * back. Returns how many fired. */
unsigned timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ns);

/* When to call advance next. This is never later than the tick of the first
 * deadline. It may be earlier while that deadline is far away: for each level there
 * is at most one advance that only moves timers to lower levels. */
uint64_t timer_wheel_next_ns(const struct timer_wheel *wheel);

/* The same, but exact to the tick, without such advances. It looks at all timers
 * that are about as near as the first one, so it is for wheels with few timers. */
uint64_t timer_wheel_first_ns(const struct timer_wheel *wheel);

static inline size_t timer_wheel_pending_cnt(const struct timer_wheel *wheel)
{
	return wheel->pending_cnt;
}

#endif
