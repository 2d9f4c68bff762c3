/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers of one stack, in a hierarchy of wheels: adding and cancelling cost the
 * same however many there are. The caller supplies the time; nothing here reads
 * a clock.
 *
 * A timer never fires early, and at the first advance whose time is at least its
 * deadline rounded up to a whole tick of TIMER_TICK_NS. One set by a callback,
 * or with a deadline that has passed, waits for the next tick that an advance
 * reaches. All functions are called by the one who holds the lock of whatever
 * owns the wheel.
 */
#ifndef EVENT_TIMER_WHEEL_H
#define EVENT_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/* 8.192 microseconds: fine enough for the reordering window of a path of 50
 * microseconds. */
enum { TIMER_TICK_SHIFT = 13 };
#define TIMER_TICK_NS (UINT64_C(1) << TIMER_TICK_SHIFT)

/* No timer is pending: what timer_wheel_next_ns says then. */
#define TIMER_NEVER UINT64_MAX

struct timer;

/* Called by timer_wheel_advance for a timer that is no longer pending, under the
 * caller's lock. It may add and cancel any timers, its own and those that expire
 * in the same advance included, and free what holds the timer. */
typedef void (*timer_fn)(struct timer *timer, uint64_t now_ns);

struct timer {
	/* in a slot, or linked to itself */
	struct list link;
	/* the one in which it is to fire */
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
	/* the tick that is being served, or was last */
	uint64_t tick;
	/* the tick of the latest advance: what is set now is due later */
	uint64_t reached_tick;
	/* a bit for each level that is not empty, for each slot of a level */
	uint32_t occupied_levels;
	uint64_t occupied[TIMER_LEVELS];
	size_t pending_cnt;
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
/* Harmless when the timer is not pending. */
void timer_cancel(struct timer_wheel *wheel, struct timer *timer);

/* Calls every timer that is due, in the order of their ticks. `now_ns` never
 * goes back. Returns how many fired. */
unsigned timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ns);

/* When to call advance next: never later than the first deadline's tick. It may
 * be earlier while that deadline is far: for each level there is at most one
 * advance that only moves timers closer. */
uint64_t timer_wheel_next_ns(const struct timer_wheel *wheel);

/* The same to the tick, without such advances. It looks at every timer that is about as
 * near as the first one: for wheels of a few. */
uint64_t timer_wheel_first_ns(const struct timer_wheel *wheel);

static inline size_t timer_wheel_pending_cnt(const struct timer_wheel *wheel)
{
	return wheel->pending_cnt;
}

#endif
