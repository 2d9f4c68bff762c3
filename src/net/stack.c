/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks (stack.h): polling, and what follows an unlock. */
#include "config.h"

#include "net/stack.h"

#include <errno.h>
#include <stdlib.h>

/* Room in front of what is received or sent: the longest headers. */
enum { POOL_HEADROOM = 128 };

int stack_create(const struct stack_params *params, struct stack **stack_out)
{
	struct stack *stack = calloc(1, sizeof(*stack));
	int err;

	if (!stack)
		return -ENOMEM;
	err = demux_init(&stack->demux, params->seed);
	if (err) {
		free(stack);
		return err;
	}
	stack_lock_init(&stack->lock, params->lock_kind);
	stack->poll_batch = MIN(params->poll_batch, (unsigned)STACK_BATCH);
	list_init(&stack->wakes);
	list_init(&stack->waiters);
	*stack_out = stack;
	return 0;
}

void stack_destroy(struct stack *stack)
{
	if (!stack)
		return;
	demux_destroy(&stack->demux);
	free(stack);
}

/* A slot without a ring. One whose frames sockets still hold keeps its pool: they
 * go back there, and nowhere else. */
static unsigned free_slot(const struct stack *stack)
{
	unsigned i;

	for (i = 0; i < STACK_RINGS_MAX; i++)
		if (!stack->rings[i] && !stack->pools[i].total_cnt)
			break;
	return i;
}

/* It sleeps on the fds of the rings there were. */
static void wake_watcher(struct stack *stack) REQUIRES(stack->lock)
{
	if (stack->watcher)
		waiter_wake_locked(stack->watcher);
}

int stack_add_ring(struct stack *stack, struct dev *dev,
		   const struct demux_from *from, struct ring **ring_out)
{
	/* Rings come and go under the control mutex alone, so that the slot
	 * stays free without the lock. */
	unsigned slot = free_slot(stack);
	struct ring *ring;
	int err;

	if (slot == STACK_RINGS_MAX)
		return -ENOSPC;
	pkt_pool_init(&stack->pools[slot], POOL_HEADROOM);
	err = dev->ops->ring_create(dev, &stack->pools[slot], &ring);
	if (err)
		return err;
	stack_lock(stack);
	stack->rings[slot] = ring;
	stack->froms[slot] = *from;
	stack->ring_cnt = MAX(stack->ring_cnt, slot + 1);
	wake_watcher(stack);
	stack_unlock(stack);
	*ring_out = ring;
	return 0;
}

void stack_remove_ring(struct stack *stack, struct ring *ring)
{
	struct region *region = ring->dev->region;
	unsigned slot;

	stack_lock(stack);
	for (slot = 0; slot < stack->ring_cnt; slot++)
		if (stack->rings[slot] == ring)
			break;
	stack->rings[slot] = NULL;
	while (stack->ring_cnt && !stack->rings[stack->ring_cnt - 1])
		stack->ring_cnt--;
	wake_watcher(stack);
	stack_unlock(stack);
	/* no new kick can begin */
	while (atomic_load(&stack->kickers[slot].state))
		cpu_relax();
	ring->ops->close(ring);
	stack_lock(stack);
	region_give(region, &stack->pools[slot], UINT32_MAX);
	stack_unlock(stack);
}

unsigned stack_poll_locked(struct stack *stack)
{
	struct pkt *batch[STACK_BATCH];
	unsigned sum = 0;

	INVARIANT(stack_lock_is_mine(&stack->lock), "polled without the lock");
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];
		unsigned cnt;

		if (UNLIKELY(!ring))
			continue;
		cnt = ring->ops->rx_poll(ring, batch, stack->poll_batch);
		for (unsigned j = 0; j < cnt; j++)
			demux_input(&stack->demux, batch[j], &stack->froms[i]);
		stack->wants_kick |= ring->wants_kick;
		sum += cnt;
	}
	return sum;
}

unsigned stack_poll_unwatched(struct stack *stack)
{
	unsigned cnt = 0;

	stack_lock(stack);
	if (!stack->watcher)
		cnt = stack_poll_locked(stack);
	stack_unlock(stack);
	return cnt;
}

unsigned stack_fds_locked(struct stack *stack, int *fds, unsigned cnt)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (ring && sum < cnt)
			sum += MIN(ring->ops->fds(ring, fds + sum, cnt - sum),
				   cnt - sum);
	}
	return sum;
}

unsigned stack_fds(struct stack *stack, int *fds, unsigned cnt)
{
	stack_lock(stack);
	cnt = stack_fds_locked(stack, fds, cnt);
	stack_unlock(stack);
	return cnt;
}

bool stack_arm_locked(struct stack *stack)
{
	bool is_empty = true;

	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i] &&
		    !stack->rings[i]->ops->arm(stack->rings[i]))
			is_empty = false;
	return is_empty;
}

/* -- after the unlock ------------------------------------------------------ */

enum kick_state { KICK_IDLE, KICKING, KICK_AGAIN };

/* Whether the caller has become the one who kicks; otherwise that one has been
 * told that there is more. Under the stack's lock. */
static bool claim_kick(struct kicker *kicker, struct ring *ring)
{
	int state = KICK_IDLE;

	while (!atomic_compare_exchange_weak(
		&kicker->state, &state,
		state == KICK_IDLE ? KICKING : KICK_AGAIN))
		;
	if (state != KICK_IDLE)
		return false;
	kicker->ring = ring;
	return true;
}

static void kick(struct kicker *kicker)
{
	int state;

	do {
		atomic_store(&kicker->state, KICKING);
		while (kicker->ring->ops->kick(kicker->ring))
			;
		state = KICKING;
	} while (!atomic_compare_exchange_strong(&kicker->state, &state,
						 KICK_IDLE));
}

enum { WAKES_AT_ONCE = 32 };

struct afterwards {
	struct waiter *wakes[WAKES_AT_ONCE];
	unsigned wake_cnt;
	uint32_t kicks; /* by slot */
};
_Static_assert(STACK_RINGS_MAX <= 32, "a bit for each ring");

static void collect(struct stack *stack, struct afterwards *after)
	REQUIRES(stack->lock)
{
	struct list *link;

	after->wake_cnt = 0;
	while (after->wake_cnt < WAKES_AT_ONCE &&
	       (link = list_pop_front(&stack->wakes)))
		after->wakes[after->wake_cnt++] =
			LIST_ENTRY(link, struct waiter, wake_link);
	after->kicks = 0;
	for (unsigned i = 0; stack->wants_kick && i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (!ring || !ring->wants_kick)
			continue;
		ring->wants_kick = false;
		if (claim_kick(&stack->kickers[i], ring))
			after->kicks |= 1u << i;
	}
	stack->wants_kick = false;
}

NO_LOCK_ANALYSIS void stack_unlock_slow(struct stack *stack)
{
	struct afterwards after;
	bool is_more;

	for (;;) {
		collect(stack, &after);
		is_more = !list_is_empty(&stack->wakes);
		stack_lock_release(&stack->lock);
		for (unsigned i = 0; after.kicks; i++, after.kicks >>= 1)
			if (after.kicks & 1)
				kick(&stack->kickers[i]);
		for (unsigned i = 0; i < after.wake_cnt; i++)
			waiter_signal(after.wakes[i]);
		if (!is_more)
			return;
		stack_lock_acquire(&stack->lock);
	}
}
