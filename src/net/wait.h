/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping for packets. Of the threads that sleep on a stack one is its watcher:
 * it alone has the rings' fds among those it polls, and processes what arrives
 * for all. Everybody has an eventfd of their own, by which whoever processed a
 * packet for them, or leaves the watch to them, wakes them.
 *
 * The protocol, for a thread that found nothing to do:
 *
 *   wait_rearm
 *   lock; wait_begin_locked        registers; takes the watch if it is free
 *   look once more, poll the rings once more
 *   unlock
 *   ppoll on wait_fds and whatever else
 *   lock; wait_end_locked          gives the watch on, if it had it
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

/* One wait of one thread. Its memory is a waiter's for ever, since a handler may
 * jump out of the wait, and somebody may be about to wake it. */
struct waiter {
	/* an internal fd; made at the first use, and kept */
	_Atomic int fd;
	/* It has been written to since the last wait_rearm. */
	_Atomic bool is_woken;
	/* the stack's lock, from here on */
	bool is_watcher;
	/* to be woken at the next unlock */
	struct list wake_link;
	/* all that wait on the stack, or for one */
	struct list by_stack;
	struct stack *stack; /* NULL: for one */
	/* the first endpoint it waits for; more are the caller's watches */
	struct watch watch;
	/* What its owner holds meanwhile, and how that ends (sock/sock_wait.c). */
	void (*unwatch)(void *owner);
	void (*abandoned)(void *owner);
	void *owner;
	/* the owner's free list */
	struct waiter *next_free;
};

/* A waiter that nobody uses, with its fd, or NULL. */
struct waiter *waiter_get(void) MUST_CHECK;
/* It is not registered. */
void waiter_put(struct waiter *waiter);
/* In the child of a fork: its fds are gone. */
void waiters_forked(void);

/* Takes back the wake-ups of earlier waits: right before one begins, and without a
 * lock, since it is a system call. */
void wait_rearm(struct waiter *waiter);

/* Registers for a wake-up by watches and, being the first, as watcher. True when
 * it has the watch: then the rings are armed, and it must look at them once more
 * after this. Under the stack's lock. */
bool wait_begin_locked(struct stack *stack, struct waiter *waiter);
/* Also if it was never begun. Leaves nothing behind: takes the waiter's own watch
 * off, and hands over the stack's. */
void wait_end_locked(struct stack *stack, struct waiter *waiter);

/* The waiting thread may not come back: the watch goes to another one, if there
 * is one. It can still be woken by what it waits for. */
void wait_pause_locked(struct stack *stack, struct waiter *waiter);

/* The fds to poll for POLLIN, at most WAIT_FDS_MAX. Under the stack's lock. */
enum { WAIT_FDS_MAX = 2 };
unsigned wait_fds(struct stack *stack, struct waiter *waiter,
		  struct pollfd *fds);

/* When to wake up: at `deadline_ns`, UINT64_MAX being never, and the watcher for the
 * stack's timers, too. Under the stack's lock, the last thing before the sleep. */
uint64_t wait_until_locked(struct stack *stack, const struct waiter *waiter,
			   uint64_t deadline_ns);

/* Sleeping while there is no stack yet: the fd to poll for POLLIN is readable when
 * there is one. False: it has been made. */
bool wait_early_begin(struct waiter *waiter, struct pollfd *fd_out) MUST_CHECK;
void wait_early_end(struct waiter *waiter);
/* There is a stack, and everybody can find it. */
void wait_early_over(void);

/* A watch that wakes this waiter. */
void waiter_watch_fire(struct watch *watch);
/* Notes that the waiter is to be woken when the stack's lock is released. */
void waiter_wake_locked(struct waiter *waiter);
/* Writes to the eventfd. Any thread, no lock. */
void waiter_signal(struct waiter *waiter);

#endif
