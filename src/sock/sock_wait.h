/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting, for every kind of socket and for select, poll and epoll: a call that has
 * found nothing looks again and again, for as long as it may, and then sleeps until
 * something has changed, its time is over or a handler interrupts it. Whoever waits
 * says how to look, and by whom to be woken.
 */
#ifndef SOCK_SOCK_WAIT_H
#define SOCK_SOCK_WAIT_H

#include "fd/fd_wait.h"
#include "net/stack.h"
#include "os/signals.h"

struct sock_wait;

/* How thoroughly to look. */
enum sock_look {
	SOCK_LOOK_QUICK, /* once more, while it spins */
	SOCK_LOOK_ALL,   /* it has slept, or gives up after this */
};

struct sock_wait_ops {
	/* What there is now: what the call returns, or -EAGAIN: nothing. Without
	 * the stack's lock. */
	long (*look)(struct sock_wait *wait, enum sock_look how);
	/* It is about to sleep: sets wait->stack, NULL when there is none yet. 0,
	 * or what the call returns instead. */
	long (*prepare)(struct sock_wait *wait);
	/* Under the stack's lock: wait->waiter hears of everything from now on.
	 * True when something is ready already. */
	bool (*watch)(struct sock_wait *wait);
	/* Under the stack's lock: ends that; with wait->owner, since the waiting
	 * frame may be gone. */
	void (*unwatch)(void *owner);
	/* The wait was jumped out of, or its thread has ended: gives up what
	 * wait->owner stands for. */
	void (*abandoned)(void *owner);
};

struct sock_wait {
	/* -- from the caller -- */
	const struct sock_wait_ops *ops;
	void *owner;
	/* a reference that the call holds, and that goes when it is abandoned; or
	 * NULL */
	struct fd_object *obj;
	/* NULL: there is none yet */
	struct stack *stack;
	/* The kernel's fds in front, and room for WAIT_FDS_MAX behind. */
	struct pollfd *fds;
	unsigned fd_cnt;
	struct signals_mark mark;
	/* handlers with SA_RESTART do not end it */
	bool may_restart;
	/* sock_wait_until */
	bool is_timed;
	uint64_t deadline_ns;
	/* How often it looks before it sleeps (-1: for ever), and until when; the
	 * clock is read once in so many looks. */
	int polls_left;
	uint64_t spin_until_ns;
	unsigned looks_per_clock;
	bool does_yield;

	/* -- the room's -- */
	struct waiter *waiter;
	unsigned looks;
	bool has_slept;
};

/* The wait ends at this time, of the monotonic clock; UINT64_MAX is never. */
static inline void sock_wait_until(struct sock_wait *wait, uint64_t deadline_ns)
{
	wait->is_timed = deadline_ns != UINT64_MAX;
	wait->deadline_ns = deadline_ns;
}

/* After a look that found nothing: what a later one finds, -EAGAIN when the time is
 * over, -EINTR, another error, or FD_ABANDONED: then `owner` is not the caller's any
 * more. Inside the bracket. */
long sock_wait(struct sock_wait *wait) MUST_CHECK;

/* For ops that have nothing to do. */
void sock_wait_nothing(void *owner);

#endif
