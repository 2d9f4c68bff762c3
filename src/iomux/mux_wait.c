/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The course of a multiplexing call (mux_wait.h). */
#include "config.h"

#include "iomux/mux_wait.h"

#include <errno.h>

#include "base/clock.h"
#include "fd/fd_wait.h"
#include "os/thread.h"

struct mux_params mux_params;

static bool time_left(const struct mux_call *call, struct timespec *left)
{
	uint64_t now = clock_monotonic_ns();

	if (now >= call->deadline_ns)
		return false;
	left->tv_sec = (time_t)((call->deadline_ns - now) / NS_PER_SEC);
	left->tv_nsec = (long)((call->deadline_ns - now) % NS_PER_SEC);
	return true;
}

static void handler_runs(void *arg)
{
	struct mux_call *call = arg;

	if (!call->stack)
		return;
	stack_lock(call->stack);
	wait_pause_locked(call->stack, call->waiter);
	stack_unlock(call->stack);
}

static void end_wait(struct mux_call *call)
{
	if (call->stack) {
		stack_lock(call->stack);
		call->unwatch(call);
		wait_end_locked(call->stack, call->waiter);
		stack_unlock(call->stack);
	} else {
		wait_early_end(call->waiter);
	}
	waiter_put(call->waiter);
	call->waiter = NULL;
}

static void abandoned(void *arg)
{
	struct mux_call *call = arg;

	end_wait(call);
	call->abandoned(call);
}

static const struct fd_wait_hold wait_hold = {
	.handler_runs = handler_runs,
	.abandoned = abandoned,
};

/* How many fds to sleep on; 0: something has come. */
static unsigned begin_wait(struct mux_call *call)
{
	struct stack *stack = call->stack;
	struct pollfd *fds = call->fds + call->fd_cnt;
	unsigned cnt = 0;
	bool has_watch;

	if (!stack)
		return wait_early_begin(call->waiter, fds) ? call->fd_cnt + 1 :
							     0;
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, call->waiter);
	if (!call->watch(call) &&
	    !(has_watch && (!stack_arm_locked(stack) ||
			    stack_poll_locked(stack) > 0)))
		cnt = call->fd_cnt + wait_fds(stack, call->waiter, fds);
	stack_unlock(stack);
	return cnt;
}

/* 0: look again. */
static long sleep_once(struct mux_call *call)
{
	struct timespec left;
	unsigned cnt;
	int n = 0;

	if (call->is_timed && !time_left(call, &left))
		return 0; /* the last look says what there is */
	call->waiter = waiter_get();
	if (!call->waiter)
		return -ENOMEM;
	cnt = begin_wait(call);
	if (cnt)
		n = fd_wait_holding(NULL, call->fds, cnt,
				    call->is_timed ? &left : NULL, &call->mark,
				    false, &wait_hold, call);
	if (n == -ECANCELED)
		return FD_ABANDONED;
	end_wait(call);
	return n < 0 ? n : 0;
}

static void nothing_to_pause(void *arg UNUSED)
{
}

static void abandoned_looking(void *arg)
{
	struct mux_call *call = arg;

	call->abandoned(call);
}

/* Lets a handler run that came while we looked. */
static long let_handlers_run(struct mux_call *call)
{
	static const struct fd_wait_hold hold = {
		.handler_runs = nothing_to_pause,
		.abandoned = abandoned_looking,
	};
	static const struct timespec none;
	int n = fd_wait_holding(NULL, NULL, 0, &none, &call->mark, false, &hold,
				call);

	return n == -ECANCELED ? FD_ABANDONED : n;
}

static bool is_kernels_turn(struct mux_call *call)
{
	return mux_params.os_ratio && ++call->looks % mux_params.os_ratio == 0;
}

static long run(struct mux_call *call)
{
	bool with_kernel = true;
	uint64_t now;
	long n;

	for (;;) {
		n = call->look(call, with_kernel);
		if (n)
			return n;
		if (UNLIKELY(os_thread.has_deferred)) {
			n = let_handlers_run(call);
			if (n)
				return n;
		}
		now = clock_monotonic_ns();
		if (call->is_timed && now >= call->deadline_ns)
			return with_kernel ? 0 : call->look(call, true);
		with_kernel = is_kernels_turn(call);
		if (call->stack && now < call->sleep_from_ns)
			continue;
		call->has_slept = true;
		n = sleep_once(call);
		if (n)
			return n;
		with_kernel = true;
	}
}

static void count(const struct mux_call *call, long n)
{
	struct stats_mux_counters *c = &call->stats->counters;
	long own = MIN((long)call->own_cnt, n);

	stats_add(call->has_slept ? &c->poll_miss : &c->poll_hit, 1);
	if (n < 0)
		stats_add(&c->errors, 1);
	else if (n == 0)
		stats_add(&c->timeouts, 1);
	if (own > 0)
		stats_add(&c->rx_ready, (uint64_t)own);
	if (n > own)
		stats_add(&c->os_rx_ready, (uint64_t)(n - own));
}

/* No later than the end of time. */
static uint64_t add_time(uint64_t ns, const struct timespec *ts)
{
	uint64_t sum;

	if (__builtin_mul_overflow((uint64_t)ts->tv_sec, NS_PER_SEC, &sum) ||
	    __builtin_add_overflow(sum, ns + (uint64_t)ts->tv_nsec, &sum))
		return UINT64_MAX;
	return sum;
}

long mux_wait(struct mux_call *call, const struct timespec *timeout,
	      const struct signals_mark *mark)
{
	uint64_t now = clock_monotonic_ns();
	long n;

	call->waiter = NULL;
	call->mark = *mark;
	call->looks = 0;
	call->own_cnt = 0;
	call->has_slept = false;
	call->is_timed = timeout != NULL;
	if (timeout)
		call->deadline_ns = add_time(now, timeout);
	call->sleep_from_ns = mux_params.poll_us < 0 ?
				      UINT64_MAX :
				      now + (uint64_t)mux_params.poll_us *
						      NS_PER_US;
	/* as ppoll does with a signal that its mask lets in */
	if (signals_is_interrupted(mark, false))
		return -EINTR;
	n = run(call);
	if (n != FD_ABANDONED)
		count(call, n);
	return n;
}
