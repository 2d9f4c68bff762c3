/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping for packets. One of the threads that sleep on a stack is its watcher: it
 * alone polls the fds of the rings, and processes what arrives for all of them. Each
 * sleeper has an eventfd of its own. Whoever has processed a packet for it, or hands
 * the watch to it, wakes it by that.
 *
 * What a thread does that has found nothing to do:
 *
 *   wait_rearm
 *   lock; wait_begin_locked        registers; takes the watch if it is free
 *   look once more, poll the rings once more
 *   unlock
 *   ppoll on wait_fds and whatever else
 *   lock; wait_end_locked          hands the watch on, if it had it
 *   poll the rings; unlock
 *
 * Nobody is forgotten: while anybody is registered there is a watcher, or a
 * registered thread that was woken to become one and has not come back yet.
 * tests/engine/wait_model.c walks through all interleavings.
 */
#ifndef NET_WAIT_H
#define NET_WAIT_H

#include <poll.h>

#include "net/endpoint.h"

struct stack;

/* One wait of one thread. Its memory is never used for anything else, since a
 * handler may jump out of the wait while another thread is about to wake it. */
struct waiter {
	/* an internal fd, made at the first use and kept; -1: there was none to be had */
	_Atomic int fd;
	/* It waits for no stack (wait_alone_begin). The waiting thread's. */
	bool is_alone;
	/* The eventfd has been written to since the last wait_rearm. */
	_Atomic bool is_woken;
	/* under the stack's lock from here on */
	bool is_watcher;
	/* to be woken at the next unlock */
	struct list wake_link;
	/* in the list of all that wait on the stack, or that wait for the first
	 * stack */
	struct list by_stack;
	struct stack *stack; /* NULL: it waits for the first one, or alone */
	/* the watch of the first endpoint that it waits for; the caller has watches
	 * for more */
	struct watch watch;
	/* What its owner holds meanwhile, and how to give that up
	 * (sock/sock_wait.c). `pause` may be NULL. */
	void (*pause)(void *owner);
	void (*unwatch)(void *owner);
	void (*unwatch_more)(void *owner, struct waiter *waiter);
	void (*abandoned)(void *owner);
	void *owner;
	/* Who waits on several stacks has a waiter in each. The first one has them
	 * all behind it. */
	struct waiter *more;
	/* the owner's free list */
	struct waiter *next_free;
};

/* Of the waiters of one wait, the one that is in this stack, or NULL. */
static inline struct waiter *waiter_in(struct waiter *waiter,
				       const struct stack *stack)
{
	while (waiter && UNLIKELY(waiter->stack != stack))
		waiter = waiter->more;
	return waiter;
}

/* Returns a waiter that nobody uses, or NULL without memory. If there is no fd for it, it
 * can register all the same, and hears nothing. */
struct waiter *waiter_get(void) MUST_CHECK;
/* Whether one of those of a wait hears nothing, so that it must not sleep for long. */
static inline bool waiter_is_deaf(const struct waiter *waiter)
{
	while (waiter && LIKELY(atomic_load_explicit(
				    &waiter->fd, memory_order_relaxed) >= 0))
		waiter = waiter->more;
	return waiter;
}
/* Gives a waiter back that is not registered. */
void waiter_put(struct waiter *waiter);
/* Called in the child of a fork, where the fds of the waiters are gone. */
void waiters_forked(void);

/* Takes back the wake-ups of earlier waits. Call it right before a wait begins, and
 * without a lock, since it is a system call. */
void wait_rearm(struct waiter *waiter);

/* Registers for wake-ups by watches, and as watcher if there is none. True: the
 * waiter has the watch. Then it must arm the rings, and look at them once more after
 * that. Under the stack's lock. */
bool wait_begin_locked(struct stack *stack, struct waiter *waiter);
/* Ends the wait, also if it was never begun. Takes the waiter's own watch off, and
 * hands the stack's watch over, so that nothing is left behind. */
void wait_end_locked(struct stack *stack, struct waiter *waiter);

/* The waiting thread may not come back. So the watch goes to another waiter, if
 * there is one. The waiter can still be woken by what it waits for. */
void wait_pause_locked(struct stack *stack, struct waiter *waiter);

/* The fds to poll for POLLIN, at most WAIT_FDS_MAX. Under the stack's lock. */
enum { WAIT_FDS_MAX = 2 };
unsigned wait_fds(struct stack *stack, struct waiter *waiter,
		  struct pollfd *fds);

/* When to wake up: at `deadline_ns` (UINT64_MAX: never), and if it is the watcher,
 * also when the stack's next timer is due. Under the stack's lock, as the last step
 * before the sleep. */
uint64_t wait_until_locked(struct stack *stack, const struct waiter *waiter,
			   uint64_t deadline_ns);

/* Sleeping while there is no stack yet. The fd to poll for POLLIN becomes readable
 * when there is one. False: there is one already. */
bool wait_early_begin(struct waiter *waiter, struct pollfd *fd_out) MUST_CHECK;
void wait_early_end(struct waiter *waiter);
/* There is a stack now, and everybody can find it: wakes those sleepers. */
void wait_early_over(void);

/* Sleeping for no stack at all, until somebody calls waiter_signal. The fd to poll for
 * POLLIN becomes readable then. */
void wait_alone_begin(struct waiter *waiter, struct pollfd *fd_out);

/* The `fire` of a watch that wakes this waiter. */
bool waiter_watch_fire(struct watch *watch, uint32_t bits);
/* Notes that the waiter is to be woken when the stack's lock is released. */
void waiter_wake_locked(struct waiter *waiter);
/* Writes to the eventfd. Any thread may call it, without a lock. */
void waiter_signal(struct waiter *waiter);

#endif
