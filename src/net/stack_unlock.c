/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What follows the unlock of a stack (stack.h): kicks, wake-ups, and everything else
 * that was asked for under the lock but must be done without it.
 */
#include "config.h"

#include "net/dst_lookup.h"
#include "net/strays.h"

/* How long a device without room gets to make some: each time for longer, as one may never
 * make any. */
enum { KICK_LATER_NS = 1000 * 1000, KICK_LATEST_NS = 16 * KICK_LATER_NS };

static void time_kick(struct stack *stack) REQUIRES(stack->lock)
{
	uint64_t now = stack_now_ns(stack);
	bool is_soon = now - stack->kick_set_ns <= 4 * stack->kick_pause_ns;

	if (timer_is_pending(&stack->kick))
		return;
	stack->kick_pause_ns = is_soon ? MIN(2 * stack->kick_pause_ns, (uint64_t)KICK_LATEST_NS) :
					 (uint64_t)KICK_LATER_NS;
	stack->kick_set_ns = now;
	timer_set(&stack->timers, &stack->kick, now + stack->kick_pause_ns);
}

/* Leaves the kick to the thread that unlocks next, which whoever serves the timers does if
 * nobody else comes. */
static COLD void kick_later(struct stack *stack, struct ring *ring)
{
	bool is_sooner;

	stack_lock(stack);
	ring->wants_kick = true;
	time_kick(stack);
	stack_note_timers_locked(stack);
	is_sooner = stack->afterwards & STACK_SOONER;
	stack->afterwards &= ~(uint64_t)STACK_SOONER;
	stack_note_kick(stack, ring);
	stack_lock_release(&stack->lock);
	if (is_sooner && stack->sooner)
		stack->sooner(stack);
}

COLD bool stack_kick_begin_slow(struct ring *ring)
{
	if (atomic_exchange(&ring->kick_state, STACK_KICK_AGAIN) != STACK_KICK_IDLE)
		return false;
	TSAN_ACQUIRED(&ring->kick_state);
	return true;
}

COLD void stack_kick_on(struct stack *stack, struct ring *ring,
			enum ring_kick result)
{
	for (;;) {
		while (result == RING_KICK_MORE)
			result = ring->ops->kick(ring);
		if (result == RING_KICK_LATER)
			kick_later(stack, ring);
		if (stack_kick_end(ring))
			return;
		/* An exchange, not a store: another thread may have told us again
		 * since, and what it has written comes before this kick. */
		(void)atomic_exchange(&ring->kick_state, STACK_KICKING);
		result = RING_KICK_MORE;
	}
}

enum { WAKES_AT_ONCE = 32 };

/* Releases the lock. */
static void wake_all(struct stack *stack) RELEASES(stack->lock)
{
	struct waiter *waiters[WAKES_AT_ONCE];
	struct list *link;
	unsigned cnt;
	bool is_more;

	for (;;) {
		cnt = 0;
		while (cnt < WAKES_AT_ONCE &&
		       (link = list_pop_front(&stack->wakes)))
			waiters[cnt++] =
				LIST_ENTRY(link, struct waiter, wake_link);
		is_more = !list_is_empty(&stack->wakes);
		stack_lock_release(&stack->lock);
		for (unsigned i = 0; i < cnt; i++)
			waiter_signal(waiters[i]);
		if (!is_more)
			return;
		stack_lock_acquire(&stack->lock);
	}
}

/* Returns a bit for each of the stack's stocks that should have more memory. */
static unsigned take_wishes(struct stack *stack) REQUIRES(stack->lock)
{
	unsigned wishes = 0;

	for (int i = 0; i < STACK_STOCKS; i++)
		if (pkt_stock_take_wish(stack_stock(stack, i)))
			wishes |= 1u << i;
	return wishes;
}

/* Makes memory without the lock, and adds it to the stocks. */
static void grow(struct stack *stack, unsigned wishes)
{
	struct pkt_slab *more[STACK_STOCKS] = { 0 };

	for (int i = 0; i < STACK_STOCKS; i++)
		if (wishes >> i & 1)
			more[i] = pkt_stock_make(stack_stock(stack, i));
	stack_lock(stack);
	for (int i = 0; i < STACK_STOCKS; i++)
		if (wishes >> i & 1)
			more[i] = pkt_stock_add(stack_stock(stack, i), more[i]);
	stack_lock_release(&stack->lock);
	for (int i = 0; i < STACK_STOCKS; i++)
		pkt_slabs_free(more[i]);
}

/* Does stack_kick_begin for a kick that was noted. */
static inline bool take_kick(struct ring *ring)
{
	ring->wants_kick = false;
	return stack_kick_begin(ring);
}

/* Called with the lock. It releases the lock in one of two ways, which the lock
 * analysis does not follow. */
static COLD void unlock_and_do(struct stack *stack, uint64_t afterwards)
	NO_LOCK_ANALYSIS
{
	struct ring *rings[STACK_RINGS_MAX];
	/* one for each ring that is to be kicked */
	uint64_t kicks = afterwards & (STACK_WAKES - 1);
	unsigned cnt = 0, wishes = 0;

	if (afterwards & STACK_SHORT)
		wishes = take_wishes(stack);
	for (; kicks; kicks &= kicks - 1) {
		struct ring *ring = stack->rings[__builtin_ctzll(kicks)];

		if (ring && take_kick(ring))
			rings[cnt++] = ring;
	}
	if (afterwards & STACK_WAKES)
		wake_all(stack);
	else
		stack_lock_release(&stack->lock);
	for (unsigned i = 0; i < cnt; i++)
		stack_kick(stack, rings[i]);
	if (wishes)
		grow(stack, wishes);
	if (afterwards & STACK_SOONER && stack->sooner)
		stack->sooner(stack);
	if (afterwards & STACK_LOOKUPS)
		dst_lookups_run(stack);
	if (afterwards & STACK_STRAYS)
		strays_give_back(stack);
}

/* The lock analysis is off here and below for the same reason as at unlock_and_do(). */
static NOINLINE NO_LOCK_ANALYSIS void unlock_and_kick(struct stack *stack,
						      struct ring *ring)
{
	if (UNLIKELY(!ring || !take_kick(ring))) {
		stack_lock_release(&stack->lock);
		return;
	}
	stack_lock_release(&stack->lock);
	stack_kick(stack, ring);
}

static NOINLINE NO_LOCK_ANALYSIS void unlock_and_tell_sooner(struct stack *stack)
{
	stack_lock_release(&stack->lock);
	if (stack->sooner)
		stack->sooner(stack);
}

NO_LOCK_ANALYSIS void stack_unlock_slow(struct stack *stack)
{
	uint64_t afterwards;

	if (UNLIKELY(stack->afterwards & STACK_ENGINES))
		stack_run_engines_locked(stack);
	afterwards = stack->afterwards;
	stack->afterwards = 0;
	if (UNLIKELY(!afterwards))
		stack_lock_release(&stack->lock);
	/* whoever sends or receives after a pause has set a timer */
	else if (afterwards == STACK_SOONER)
		unlock_and_tell_sooner(stack);
	/* After a send there is usually the kick of one ring, and nothing else. */
	else if (LIKELY(!(afterwards & (afterwards - 1)) &&
			afterwards < STACK_WAKES))
		unlock_and_kick(stack, stack->rings[__builtin_ctzll(afterwards)]);
	else
		unlock_and_do(stack, afterwards);
}

COLD void stack_unlock_kick_slow(struct stack *stack, struct ring *ring)
{
	ring->wants_kick |= ring->needs_kick;
	stack_note_kick(stack, ring);
	stack_unlock_slow(stack);
}
