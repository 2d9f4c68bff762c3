/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What select, poll and epoll_wait have in common: how they wait (sock/sock_wait.h),
 * when the kernel's fds are looked at, and what is counted.
 */
#ifndef IOMUX_MUX_WAIT_H
#define IOMUX_MUX_WAIT_H

#include "base/clock.h"
#include "iomux/mux.h"
#include "iomux/mux_spin.h"
#include "os/signals.h"
#include "sock/sock_wait.h"
#include "stats/stats_publish.h"

/* As struct mux_params. A wait for a set without anything of ours may have begun before
 * the library starts, and reads them meanwhile. */
struct mux_settings {
	_Atomic int poll_us;
	_Atomic bool does_ease;
	_Atomic unsigned os_ratio, skip_os;
	_Atomic bool measures;
};
extern HIDDEN struct mux_settings mux_params;

struct mux_call;

struct mux_ops {
	/* What is ready now: a count, 0, or what the call returns. With
	 * `with_kernel` the kernel's fds are looked at too, otherwise only what
	 * our queues have. Without the stack's lock. Finds the stack, too. */
	long (*look)(struct mux_call *call, bool with_kernel);
	/* The call is about to sleep: it says in wait.stack and wait.more for which
	 * stacks. */
	void (*prepare)(struct mux_call *call);
	/* Under the stack's lock, if there is a stack: the call's waiter hears of
	 * everything in the set from now on. True when something is ready already. */
	bool (*watch)(struct mux_call *call);
	/* In the same way; also after the waiter was abandoned. */
	void (*unwatch)(struct mux_call *call);
	/* The same for a further stack, under its lock; `waiter` is in it. */
	bool (*watch_more)(struct mux_call *call, struct waiter *waiter);
	void (*unwatch_more)(struct mux_call *call, struct waiter *waiter);
	/* See sock_wait_ops; or NULL. */
	void (*pause)(struct mux_call *call);
	/* Gives up the call's memory, after a jump out of the wait. */
	void (*abandoned)(struct mux_call *call);
};

struct mux_call {
	/* fds, fd_cnt and stack are the caller's to set; the stack is NULL when
	 * there is none yet */
	struct sock_wait wait;
	const struct mux_ops *ops;
	/* where the call is counted */
	struct stats_mux *stats;
	/* how many fds were ready by our queues at the last look that found
	 * something */
	unsigned own_cnt;

	/* -- this file's -- */
	unsigned looks;
	/* since when it polls, as far as that is measured and not counted yet; 0: it
	 * sleeps, or nobody asks */
	uint64_t polls_since_ns;
};

static inline bool mux_is_look(const struct timespec *timeout)
{
	return timeout && !timeout->tv_sec && !timeout->tv_nsec;
}

static inline void mux_poll_rings(struct stack *stack)
{
	stack_lock(stack);
	stack_look_locked(stack);
	stack_unlock(stack);
}

/* The same for a call that looks once more, and by this, if it finds nothing. */
static inline void mux_poll_rings_quickly(struct stack *stack)
{
	stack_lock(stack);
	stack_look_quickly_locked(stack);
	stack_unlock(stack);
}

/* When a call begins, if that is of interest; else 0. */
static inline uint64_t mux_begin(void)
{
	return UNLIKELY(mux_params.measures) ? clock_monotonic_ns() : 0;
}

/* Ends a call that did not wait: its first look has found `n`, or an error, of which
 * our queues had `own`. Counts it. */
long mux_found(struct stats_mux *stats, long n, unsigned own, uint64_t from_ns);

extern _Thread_local HIDDEN struct mux_spin mux_spin;

/* The same where our queues have all that it found. */
static inline void mux_count_own(struct stats_mux *stats, int n)
{
	mux_spin_learn(&mux_spin, true);
	stats_add(&stats->counters.poll_hit, 1);
	stats_add(&stats->counters.rx_ready, (uint64_t)n);
}

/* The rest of a call whose first look has found nothing. FD_ABANDONED: `call` is not
 * the caller's any more. It must not be on the stack frame of the waiting call. */
long mux_wait(struct mux_call *call, const struct timespec *timeout,
	      const struct signals_mark *mark, uint64_t from_ns);

/* poll.c, in the child of a fork. */
void poll_forked(void);

#endif
