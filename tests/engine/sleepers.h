/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the models of sleepers have in common: the kernel's part, which stands in for
 * os/event_fd.c, and a ring that hands frames straight to who they are for. An eventfd is
 * written to after the unlock, by a thread that may be slow; so a write is due at first,
 * and comes at any time after.
 */
#ifndef ENGINE_SLEEPERS_H
#define ENGINE_SLEEPERS_H

#include <stdlib.h>
#include <string.h>

#include "net/stack.h"
#include "os/event_fd.h"
#include "tests/engine/ways.h"

enum { EVENT_FDS = 64, SLEEPERS_MAX = 12, RING_FRAMES_MAX = 4, RINGS_MAX = 2 };

/* A ring, with the numbers of those for whom frames are in it. */
struct model_ring {
	struct ring ring;
	struct pkt_pool pool;
	struct stack *stack;
	unsigned frames[RING_FRAMES_MAX], frame_cnt;
};

static struct {
	bool is_signalled[EVENT_FDS];
	unsigned writes_due[EVENT_FDS];
	struct model_ring rings[RINGS_MAX];
	/* a frame for this one is processed, under the stack's lock */
	void (*deliver)(unsigned whom);
	/* something may happen right before and after an eventfd is emptied; or NULL */
	void (*around_clear)(int fd);
} kernel;

/* -- eventfds ---------------------------------------------------------------------- */

/* Their numbers are none that a file can have. */
enum { EVENT_FD_FIRST = 1 << 30 };

static unsigned event_of(int fd)
{
	return (unsigned)fd - EVENT_FD_FIRST;
}

int event_fd_open(void)
{
	static int next;

	return EVENT_FD_FIRST + next++ % EVENT_FDS;
}

void event_fd_signal(int fd)
{
	kernel.writes_due[event_of(fd)]++;
}

void event_fd_clear(int fd)
{
	if (kernel.around_clear)
		kernel.around_clear(fd);
	kernel.is_signalled[event_of(fd)] = false;
	if (kernel.around_clear)
		kernel.around_clear(fd);
}

/* A write that is due comes now. */
static void write_event(unsigned at)
{
	kernel.writes_due[at]--;
	kernel.is_signalled[at] = true;
}

static bool is_signalled(const struct waiter *waiter)
{
	return kernel.is_signalled[event_of(atomic_load(&waiter->fd))];
}

/* -- rings -------------------------------------------------------------------------- */

static struct model_ring *model_ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct model_ring, ring);
}

/* Delivers all there is, as the demultiplexer would. */
static unsigned poll_ring(struct ring *ring, struct pkt **batch UNUSED,
			  unsigned cnt UNUSED)
{
	struct model_ring *model = model_ring_of(ring);

	while (model->frame_cnt)
		kernel.deliver(model->frames[--model->frame_cnt]);
	return 0;
}

static bool arm_ring(struct ring *ring)
{
	return model_ring_of(ring)->frame_cnt == 0;
}

static unsigned ring_fds(struct ring *ring UNUSED, int *fds, unsigned cnt)
{
	if (cnt)
		fds[0] = 1000;
	return 1;
}

static const struct ring_ops ring_ops = {
	.rx_poll = poll_ring,
	.arm = arm_ring,
	.fds = ring_fds,
};

static void arrive(unsigned ring, unsigned whom)
{
	struct model_ring *model = &kernel.rings[ring];

	CHECK(model->frame_cnt < RING_FRAMES_MAX);
	model->frames[model->frame_cnt++] = whom;
}

/* -- runs -------------------------------------------------------------------------- */

/* The stacks stay for all runs, which leave them as they were. */
static struct stack *model_stack(unsigned i)
{
	struct stack_params params = { .lock_kind = STACK_LOCK_SPIN,
				       .poll_batch = 16,
				       .index = i };
	static struct stack *stacks[RINGS_MAX];

	if (!stacks[i])
		CHECK_EQ(stack_create(&params, &stacks[i]), 0);
	return stacks[i];
}

/* The same thread finds the same waiter in each run, with no signal on its way. */
static void reset_waiters(void)
{
	struct waiter *sorted[SLEEPERS_MAX], *waiter;
	unsigned at;

	for (unsigned i = 0; i < SLEEPERS_MAX; i++) {
		waiter = waiter_get();
		for (at = i; at && atomic_load(&sorted[at - 1]->fd) <
					   atomic_load(&waiter->fd);
		     at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = waiter;
		atomic_store(&waiter->is_woken, false);
	}
	for (unsigned i = 0; i < SLEEPERS_MAX; i++)
		waiter_put(sorted[i]);
}

/* A run begins: so many stacks, each with an empty ring. */
static void begin_kernel(unsigned stack_cnt, void (*deliver)(unsigned whom))
{
	reset_waiters();
	memset(&kernel, 0, sizeof(kernel));
	kernel.deliver = deliver;
	for (unsigned i = 0; i < stack_cnt; i++) {
		struct model_ring *model = &kernel.rings[i];

		model->stack = model_stack(i);
		model->ring.ops = &ring_ops;
		pkt_pool_init(&model->pool, 0);
		model->ring.pool = &model->pool;
		ring_set_busy(&model->ring);
		model->stack->rings[0] = &model->ring;
		model->stack->ring_cnt = 1;
	}
}

/* Nobody waits any more. */
static void check_stack_is_at_rest(const struct stack *stack)
{
	CHECK(stack->watcher == NULL);
	CHECK(list_is_empty(&stack->waiters));
	CHECK(list_is_empty(&stack->wakes));
	CHECK_EQ(stack->afterwards, 0);
}

#endif
