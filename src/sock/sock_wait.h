/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting, for every kind of socket and for select, poll and epoll. A call that has
 * found nothing looks again and again, for as long as it may. Then it sleeps until
 * something has changed, its time is over, or a handler interrupts it. The caller
 * says how to look, and what shall wake it.
 */
#ifndef SOCK_SOCK_WAIT_H
#define SOCK_SOCK_WAIT_H

#include "fd/fd_wait.h"
#include "net/stack.h"
#include "os/signals.h"
#include "sock/sock_crowd.h"

struct sock_wait;

/* How thoroughly to look. */
enum sock_look {
	SOCK_LOOK_QUICK, /* once more, while it spins */
	SOCK_LOOK_ALL,   /* after a sleep, or for the last time */
};

struct sock_wait_ops {
	/* Looks for what there is now. Returns the result of the call, or -EAGAIN:
	 * there is nothing. Without the stack's lock. */
	long (*look)(struct sock_wait *wait, enum sock_look how);
	/* The call is about to sleep: sets wait->stack to its stack, or to NULL if
	 * there is none (is_alone). Returns 0, or what the call returns instead. */
	long (*prepare)(struct sock_wait *wait);
	/* Under the stack's lock, if there is a stack: from now on wait->waiter hears of
	 * everything that the call waits for. True: something is ready already. */
	bool (*watch)(struct sock_wait *wait);
	/* In the same way: ends that. It gets wait->owner, since `wait` may
	 * be gone. */
	void (*unwatch)(void *owner);
	/* The same for one of the further stacks, under its lock; `waiter` is in it.
	 * All of them come before `watch`. Not called without further stacks. */
	bool (*watch_more)(struct sock_wait *wait, struct waiter *waiter);
	void (*unwatch_more)(void *owner, struct waiter *waiter);
	/* Under the stack's lock: a handler of the program is about to run in the
	 * sleeping thread, and may not come back for long. What wait->owner does for
	 * other threads, one of them must do now. NULL: it does nothing for them. */
	void (*pause)(void *owner);
	/* A handler has jumped out of the wait, or the thread has ended: gives up
	 * what wait->owner stands for. */
	void (*abandoned)(void *owner);
};

struct sock_wait {
	/* -- from the caller -- */
	const struct sock_wait_ops *ops;
	void *owner;
	/* the object to which the call holds a reference, which is given back when
	 * the call is abandoned; or NULL */
	struct fd_object *obj;
	/* NULL: there is none yet */
	struct stack *stack;
	/* With no stack: the call does not wait for the first one either, only for who
	 * finds the waiter by `watch`. Otherwise there is no watch then. */
	bool is_alone;
	/* further ones that the call waits for; `prepare` may change them */
	struct stack *const *more;
	unsigned more_cnt;
	/* The kernel's fds to poll, and behind them room for WAIT_FDS_MAX more for
	 * each stack. */
	struct pollfd *fds;
	unsigned fd_cnt;
	struct signals_mark mark;
	/* handlers with SA_RESTART do not end it */
	bool may_restart;
	/* set by sock_wait_until */
	bool is_timed;
	uint64_t deadline_ns;
	/* How often the call looks before it sleeps (-1: for ever), and until when
	 * at most. The clock is read once in `looks_per_clock` looks. */
	int polls_left;
	uint64_t spin_until_ns;
	unsigned looks_per_clock;
	bool does_yield;
	/* it does not spin while somebody else wants the processor */
	bool makes_room;
	/* Nothing wakes it for some of what it waits for, so its sleeps are short. `look`
	 * may change it. */
	bool is_deaf;

	/* -- the room's -- */
	struct waiter *waiter;
	struct sock_spinner spinner;
	unsigned looks;
	/* when it opens the bracket next while it spins; 0: not decided */
	uint64_t open_ns;
	bool has_slept;
};

/* Sets when the wait ends, by the monotonic clock. UINT64_MAX: never. */
static inline void sock_wait_until(struct sock_wait *wait, uint64_t deadline_ns)
{
	wait->is_timed = deadline_ns != UINT64_MAX;
	wait->deadline_ns = deadline_ns;
}

/* Waits, after a look that found nothing. Returns what a later look finds; -EAGAIN:
 * the time is over; -EINTR; another error; or FD_ABANDONED: then the caller must not
 * touch `owner` any more. Inside the bracket. */
long sock_wait(struct sock_wait *wait) MUST_CHECK;

/* For ops that have nothing to do. */
void sock_wait_nothing(void *owner);

#endif
