/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hierarchy behind timer_wheel.h. Compare the tick of a timer with the wheel's:
 * the highest group of six bits in which they differ is the timer's level, and the
 * value of this group in the timer's tick is its slot. So everything on one level is
 * due before anything on the next, and the next timer is in the first occupied slot
 * of the lowest occupied level. When the wheel reaches the start of a slot of a
 * higher level, the timers in it drop to lower levels.
 */
#include "event/timer_wheel.h"

#include "base/compiler.h"

static uint64_t tick_up(uint64_t ns)
{
	return (ns >> TIMER_TICK_SHIFT) + !!(ns & (TIMER_TICK_NS - 1));
}

void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns)
{
	wheel->tick = now_ns >> TIMER_TICK_SHIFT;
	wheel->reached_tick = wheel->tick;
	wheel->occupied_levels = 0;
	wheel->pending_cnt = 0;
	wheel->news_tick = TIMER_NO_NEWS;
	for (int level = 0; level < TIMER_LEVELS; level++) {
		wheel->occupied[level] = 0;
		for (int slot = 0; slot < TIMER_SLOTS; slot++)
			list_init(&wheel->slots[level][slot]);
	}
}

/* Puts a timer that is not linked into the slot of its tick, which is not
 * before the wheel's. */
static ALWAYS_INLINE void hang(struct timer_wheel *wheel, struct timer *timer)
{
	uint64_t differing = (timer->tick ^ wheel->tick) | 1;
	unsigned highest_bit = 63u - (unsigned)__builtin_clzll(differing);
	unsigned level = highest_bit / TIMER_SLOT_BITS;
	unsigned slot = timer->tick >> level * TIMER_SLOT_BITS & (TIMER_SLOTS - 1);

	timer->level = (uint8_t)level;
	timer->slot = (uint8_t)slot;
	wheel->occupied_levels |= 1u << level;
	wheel->occupied[level] |= UINT64_C(1) << slot;
	list_push_back(&wheel->slots[level][slot], &timer->link);
}

static void mark_slot_empty(struct timer_wheel *wheel, unsigned level,
			    unsigned slot)
{
	wheel->occupied[level] &= ~(UINT64_C(1) << slot);
	if (!wheel->occupied[level])
		wheel->occupied_levels &= ~(1u << level);
}

/* Takes a timer off its slot, or off the list of those that are about to fire. In
 * the second case its slot is empty, or has other timers in it. */
static void unhang(struct timer_wheel *wheel, struct timer *timer)
{
	list_remove(&timer->link);
	if (list_is_empty(&wheel->slots[timer->level][timer->slot]))
		mark_slot_empty(wheel, timer->level, timer->slot);
}

void timer_set(struct timer_wheel *wheel, struct timer *timer,
	       uint64_t deadline_ns)
{
	if (timer_is_pending(timer))
		unhang(wheel, timer);
	else
		wheel->pending_cnt++;
	timer->tick = MAX(tick_up(deadline_ns), wheel->reached_tick + 1);
	wheel->news_tick = MIN(wheel->news_tick, timer->tick);
	hang(wheel, timer);
}

void timer_cancel(struct timer_wheel *wheel, struct timer *timer)
{
	if (!timer_is_pending(timer))
		return;
	unhang(wheel, timer);
	wheel->pending_cnt--;
}

/* Finds the slot with the next timers, and the tick at which this slot begins.
 * False: the wheel is empty. */
static bool first_slot(const struct timer_wheel *wheel, unsigned *level_out,
		       unsigned *slot_out, uint64_t *tick_out)
{
	unsigned level, slot, shift;

	if (!wheel->occupied_levels)
		return false;
	level = (unsigned)__builtin_ctz(wheel->occupied_levels);
	slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
	shift = level * TIMER_SLOT_BITS;
	*level_out = level;
	*slot_out = slot;
	*tick_out = (wheel->tick >> shift & ~(uint64_t)(TIMER_SLOTS - 1)) |
		    slot;
	*tick_out <<= shift;
	return true;
}

/* Moves a slot's timers to lower levels, now that the wheel stands at the slot's
 * start. */
static void drop_down(struct timer_wheel *wheel, struct list *timers)
{
	struct list *link;

	while ((link = list_pop_front(timers)))
		hang(wheel, LIST_ENTRY(link, struct timer, link));
}

static unsigned fire_all(struct timer_wheel *wheel, struct list *timers,
			 uint64_t now_ns)
{
	unsigned fired_cnt = 0;
	struct list *link;

	while ((link = list_pop_front(timers))) {
		struct timer *timer = LIST_ENTRY(link, struct timer, link);

		wheel->pending_cnt--;
		fired_cnt++;
		timer->fire(timer, now_ns);
	}
	return fired_cnt;
}

unsigned timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ns)
{
	uint64_t tick, target = now_ns >> TIMER_TICK_SHIFT;
	unsigned level, slot, fired_cnt = 0;

	wheel->reached_tick = target;
	while (first_slot(wheel, &level, &slot, &tick) && tick <= target) {
		struct list timers;

		list_init(&timers);
		list_splice_back(&timers, &wheel->slots[level][slot]);
		mark_slot_empty(wheel, level, slot);
		wheel->tick = tick;
		if (level)
			drop_down(wheel, &timers);
		else
			fired_cnt += fire_all(wheel, &timers, now_ns);
	}
	wheel->tick = target;
	return fired_cnt;
}

uint64_t timer_wheel_next_ns(const struct timer_wheel *wheel)
{
	unsigned level, slot;
	uint64_t tick;

	if (!first_slot(wheel, &level, &slot, &tick))
		return TIMER_NEVER;
	return tick << TIMER_TICK_SHIFT;
}

uint64_t timer_wheel_first_ns(const struct timer_wheel *wheel)
{
	uint64_t tick, first = TIMER_NEVER;
	const struct timer *timer;
	unsigned level, slot;

	if (!first_slot(wheel, &level, &slot, &tick))
		return TIMER_NEVER;
	LIST_FOR_EACH(timer, &wheel->slots[level][slot], link)
		first = MIN(first, timer->tick);
	return first << TIMER_TICK_SHIFT;
}
