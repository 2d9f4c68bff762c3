/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The course of a wait (sock_wait.h). */
#include "config.h"

#include "sock/sock_wait.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "os/thread.h"

void sock_wait_nothing(void *owner UNUSED)
{
}

/* A handler may jump out of the wait: its waiter knows what is to be cleaned up then. */
static struct waiter *get_waiter(const struct sock_wait *wait)
{
	struct waiter *waiter = waiter_get();

	if (!waiter)
		return NULL;
	waiter->pause = wait->ops->pause;
	waiter->unwatch = wait->ops->unwatch;
	waiter->abandoned = wait->ops->abandoned;
	waiter->owner = wait->owner;
	return waiter;
}

/* -- sleeping ------------------------------------------------------------------ */

/* Before a handler runs in the sleeping thread: somebody else watches the rings. */
static void handler_runs(void *arg)
{
	struct waiter *waiter = arg;

	if (!waiter->stack)
		return;
	stack_lock(waiter->stack);
	wait_pause_locked(waiter->stack, waiter);
	if (waiter->pause)
		waiter->pause(waiter->owner);
	stack_unlock(waiter->stack);
}

static void end_sleep(struct waiter *waiter)
{
	struct stack *stack = waiter->stack;

	if (stack) {
		stack_lock(stack);
		waiter->unwatch(waiter->owner);
		wait_end_locked(stack, waiter);
		stack_unlock(stack);
	} else {
		wait_early_end(waiter);
	}
	waiter_put(waiter);
}

static void abandoned(void *arg)
{
	struct waiter *waiter = arg;
	void (*fn)(void *) = waiter->abandoned;
	void *owner = waiter->owner;

	end_sleep(waiter);
	fn(owner);
}

static const struct fd_wait_hold sleep_hold = {
	.handler_runs = handler_runs,
	.abandoned = abandoned,
};

/* Registers the waiter. Returns on how many fds to sleep, and until when in *until_out;
 * 0: something has come, so there is no sleep. */
static unsigned begin_sleep(struct sock_wait *wait, uint64_t *until_out)
{
	struct stack *stack = wait->stack;
	struct waiter *waiter = wait->waiter;
	struct pollfd *fds = wait->fds + wait->fd_cnt;
	unsigned cnt = 0;
	bool has_watch;

	*until_out = wait->is_timed ? wait->deadline_ns : UINT64_MAX;
	wait_rearm(waiter);
	if (!stack)
		return wait_early_begin(waiter, fds) ? wait->fd_cnt + 1 : 0;
	stack_acknowledge(stack);
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, waiter);
	if (!wait->ops->watch(wait) &&
	    !(has_watch && (!stack_arm_locked(stack) ||
			    stack_poll_locked(stack) > 0)))
		cnt = wait->fd_cnt + wait_fds(stack, waiter, fds);
	*until_out = wait_until_locked(stack, waiter, *until_out);
	stack_unlock(stack);
	return cnt;
}

/* The time until then, and NULL in *left_out for ever. False: it is over. */
static bool time_left(uint64_t until_ns, struct timespec *left,
		      struct timespec **left_out)
{
	uint64_t now = clock_monotonic_ns();

	*left_out = until_ns == UINT64_MAX ? NULL : left;
	if (now >= until_ns)
		return false;
	left->tv_sec = (time_t)((until_ns - now) / NS_PER_SEC);
	left->tv_nsec = (long)((until_ns - now) % NS_PER_SEC);
	return true;
}

/* Sleeps once. 0: look again. */
static long sleep_once(struct sock_wait *wait)
{
	struct timespec left, *timeout;
	long n = wait->ops->prepare(wait);
	uint64_t until;
	unsigned cnt;

	if (n)
		return n;
	if (wait->is_timed && clock_monotonic_ns() >= wait->deadline_ns)
		return -EAGAIN;
	wait->waiter = get_waiter(wait);
	if (!wait->waiter)
		return -ENOMEM;
	wait->has_slept = true;
	sock_crowd_leave(&wait->spinner);
	cnt = begin_sleep(wait, &until);
	if (cnt && time_left(until, &left, &timeout))
		n = fd_wait(wait->obj, wait->fds, cnt, timeout, &wait->mark,
			    wait->may_restart, &sleep_hold, wait->waiter);
	if (n == -ECANCELED)
		return FD_ABANDONED;
	end_sleep(wait->waiter);
	return MIN(n, 0L);
}

/* -- looking ------------------------------------------------------------------- */

/* The call was abandoned while it looked. The waiter is not registered; it only says
 * what the call holds. */
static void abandoned_looking(void *arg)
{
	struct waiter *waiter = arg;
	void (*fn)(void *) = waiter->abandoned;
	void *owner = waiter->owner;

	waiter_put(waiter);
	fn(owner);
}

/* Lets handlers run whose signals came while we looked. */
static long let_handlers_run(struct sock_wait *wait)
{
	static const struct fd_wait_hold hold = {
		.handler_runs = sock_wait_nothing,
		.abandoned = abandoned_looking,
	};
	static const struct timespec none;
	struct waiter *waiter = get_waiter(wait);
	int n;

	if (!waiter)
		return -ENOMEM;
	sock_crowd_leave(&wait->spinner);
	n = fd_wait(wait->obj, NULL, 0, &none, &wait->mark, wait->may_restart,
		    &hold, waiter);
	if (n == -ECANCELED)
		return FD_ABANDONED;
	waiter_put(waiter);
	return n;
}

/* Whether to look once more before a sleep. False with *n_out set: the time is over. */
static bool may_spin(struct sock_wait *wait, long *n_out)
{
	uint64_t now;

	if (wait->polls_left == 0 || !wait->stack)
		return false;
	if (wait->polls_left > 0)
		wait->polls_left--;
	if (++wait->looks % wait->looks_per_clock)
		return true;
	now = clock_monotonic_ns();
	if (wait->is_timed && now >= wait->deadline_ns)
		*n_out = -EAGAIN;
	return !*n_out && now < wait->spin_until_ns;
}

/* Called between two looks: lets handlers and other threads run. 0: look again, in
 * the way of *how_out. */
static long rest(struct sock_wait *wait, enum sock_look *how_out)
{
	long n = 0;

	*how_out = SOCK_LOOK_QUICK;
	if (UNLIKELY(os_thread.has_deferred)) {
		n = let_handlers_run(wait);
		if (n)
			return n;
	}
	if (!may_spin(wait, &n)) {
		*how_out = SOCK_LOOK_ALL;
		return n ? n : sleep_once(wait);
	}
	if (sock_crowd_is_here(&wait->spinner) || wait->does_yield)
		sched_yield();
	return 0;
}

static long look_and_rest(struct sock_wait *wait)
{
	enum sock_look how;
	long n;

	do {
		n = rest(wait, &how);
		/* what has come until the last moment still counts */
		if (n && n != -EAGAIN)
			return n;
		if (n)
			return wait->ops->look(wait, SOCK_LOOK_ALL);
		n = wait->ops->look(wait, how);
	} while (n == -EAGAIN);
	return n;
}

long sock_wait(struct sock_wait *wait)
{
	struct sock_spinner *spinner = &wait->spinner;
	long n;

	wait->looks = 0;
	wait->has_slept = false;
	spinner->place = -1;
	n = look_and_rest(wait);
	/* an abandoned call has left before it slept, and its memory is gone */
	if (n != FD_ABANDONED)
		sock_crowd_leave(spinner);
	return n;
}
