/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What select, poll and epoll_wait have in common: a call looks again and again,
 * for as long as it may, and then sleeps until something has changed.
 */
#ifndef IOMUX_MUX_WAIT_H
#define IOMUX_MUX_WAIT_H

#include "iomux/mux.h"
#include "net/stack.h"
#include "os/signals.h"
#include "stats/stats_publish.h"

extern struct mux_params mux_params;

struct mux_call {
	/* -- from the caller -- */
	struct stack *stack; /* NULL: there is none yet (wait_early_begin) */
	/* What is ready now: a count, 0, or what the call returns. With
	 * `with_kernel` the kernel's fds are looked at too, otherwise only what
	 * our queues have. Without the stack's lock. Finds the stack, too. */
	long (*look)(struct mux_call *call, bool with_kernel);
	/* Under the stack's lock: `call->waiter` hears of everything in the set
	 * from now on. True when something is ready already. */
	bool (*watch)(struct mux_call *call);
	/* Under the stack's lock; also after the waiter was abandoned. */
	void (*unwatch)(struct mux_call *call);
	/* Gives up the caller's own memory, after a jump out of the wait. */
	void (*abandoned)(struct mux_call *call);
	/* Room for the kernel's fds in front, and WAIT_FDS_MAX behind. */
	struct pollfd *fds;
	unsigned fd_cnt;
	/* where the call is counted */
	struct stats_mux *stats;
	/* from the last look that found something: how many were ready by our
	 * queues */
	unsigned own_cnt;

	/* -- this file's -- */
	struct waiter *waiter;
	struct signals_mark mark;
	bool is_timed;
	uint64_t deadline_ns;
	uint64_t sleep_from_ns;
	unsigned looks;
	bool has_slept;
};

/* The whole call. FD_ABANDONED: `call` is not the caller's any more. It must not
 * be on the stack frame of the waiting call. */
long mux_wait(struct mux_call *call, const struct timespec *timeout,
	      const struct signals_mark *mark);

#endif
