/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the engines of a stack, and its timers (stack.h). */
#include "config.h"

#include "net/stack.h"

void stack_run_engines_locked(struct stack *stack)
{
	struct list *link;

	INVARIANT(stack_lock_is_mine(&stack->lock), "run without the lock");
	stack->afterwards &= ~STACK_ENGINES;
	while ((link = list_pop_front(&stack->engines))) {
		struct stack_engine *engine =
			LIST_ENTRY(link, struct stack_engine, link);

		engine->run(engine, stack);
		INVARIANT(!list_is_linked(&engine->link),
			  "it makes nothing due");
	}
	stack_note_timers_locked(stack);
}

static void publish(struct stack *stack, uint64_t next_ns)
{
	atomic_store_explicit(&stack->next_timer_ns, next_ns,
			      memory_order_relaxed);
}

/* If a timer is cancelled or moved to a later time, nobody is told. A sleeper then
 * wakes up for nothing, and finds out. */
void stack_note_new_timers_locked(struct stack *stack)
{
	uint64_t next = stack->timers.news_tick << TIMER_TICK_SHIFT;

	stack->timers.news_tick = TIMER_NO_NEWS;
	INVARIANT(stack_lock_is_mine(&stack->lock), "noted without the lock");
	if (next >= stack_next_timer_ns(stack))
		return;
	publish(stack, next);
	if (stack->watcher && next < stack->watch_until_ns)
		waiter_wake_locked(stack->watcher);
	if (next < atomic_load_explicit(&stack->thread_until_ns,
					memory_order_relaxed)) {
		/* Telling the thread once is enough. */
		stack_sleep_over(stack);
		stack->afterwards |= STACK_SOONER;
	}
}

void stack_run_timers_locked(struct stack *stack)
{
	struct stack_engine *tcp =
		atomic_load_explicit(&stack->tcp, memory_order_relaxed);

	INVARIANT(stack_lock_is_mine(&stack->lock), "fired without the lock");
	timer_wheel_advance(&stack->timers, stack_now_locked_ns(stack));
	publish(stack, timer_wheel_next_ns(&stack->timers));
	/* what has timed out has to be told */
	if (tcp)
		stack_engine_due_locked(stack, tcp);
	if (stack->afterwards & STACK_ENGINES)
		stack_run_engines_locked(stack);
}

void stack_tidy(struct stack *stack)
{
	struct stack_engine *engine =
		atomic_load_explicit(&stack->tcp, memory_order_acquire);

	if (engine && atomic_exchange(&stack->is_untidy, false))
		engine->tidy(engine, stack);
}

void stack_take_icmp(struct stack *stack, const struct ip_icmp *icmp)
{
	struct stack_engine *engine =
		atomic_load_explicit(&stack->tcp, memory_order_acquire);

	if (!engine)
		return;
	stack_lock(stack);
	engine->icmp(engine, stack, icmp);
	stack_engine_due_locked(stack, engine);
	stack_unlock(stack);
}

unsigned stack_leave(struct stack *stack, int ifindex)
{
	struct stack_engine *engine =
		atomic_load_explicit(&stack->tcp, memory_order_acquire);
	unsigned left;

	if (!engine)
		return 0;
	stack_lock(stack);
	left = engine->leave(engine, ifindex);
	stack_unlock(stack);
	return left;
}

void stack_run_timers(struct stack *stack)
{
	if (!stack_has_timer_due(stack))
		return;
	stack_lock(stack);
	if (stack_has_timer_due_locked(stack))
		stack_run_timers_locked(stack);
	stack_unlock(stack);
}

uint64_t stack_sleep_until(struct stack *stack, uint64_t grace_ns)
{
	uint64_t until;

	stack_lock(stack);
	until = stack_next_timer_ns(stack);
	if (until != TIMER_NEVER && stack->watcher)
		until += grace_ns;
	atomic_store_explicit(&stack->thread_until_ns, until,
			      memory_order_relaxed);
	stack_unlock(stack);
	return until;
}
