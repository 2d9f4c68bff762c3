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

static void put_waiters(struct waiter *waiter)
{
	struct waiter *more;

	for (; waiter; waiter = more) {
		more = waiter->more;
		waiter_put(waiter);
	}
}

static bool get_more(struct waiter *first, unsigned cnt)
{
	struct waiter *waiter;

	for (unsigned i = 0; i < cnt; i++) {
		waiter = waiter_get();
		if (!waiter)
			return false;
		waiter->more = first->more;
		first->more = waiter;
	}
	return true;
}

/* A handler may jump out of the wait: its waiter knows what is to be cleaned up then. */
static struct waiter *get_waiter(const struct sock_wait *wait, unsigned more_cnt)
{
	struct waiter *waiter = waiter_get();

	if (!waiter)
		return NULL;
	if (UNLIKELY(!get_more(waiter, more_cnt))) {
		put_waiters(waiter);
		return NULL;
	}
	waiter->pause = wait->ops->pause;
	waiter->unwatch_more = wait->ops->unwatch_more;
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
	for (struct waiter *more = waiter->more; more; more = more->more) {
		stack_lock(more->stack);
		wait_pause_locked(more->stack, more);
		stack_unlock(more->stack);
	}
}

static void end_more(struct waiter *first)
{
	for (struct waiter *more = first->more; more; more = more->more) {
		stack_lock(more->stack);
		first->unwatch_more(first->owner, more);
		wait_end_locked(more->stack, more);
		stack_unlock(more->stack);
	}
}

static void end_sleep(struct waiter *waiter)
{
	struct stack *stack = waiter->stack;

	if (stack) {
		stack_lock(stack);
		waiter->unwatch(waiter->owner);
		wait_end_locked(stack, waiter);
		stack_unlock(stack);
		end_more(waiter);
	} else if (waiter->is_alone) {
		waiter->unwatch(waiter->owner);
	} else {
		wait_early_end(waiter);
	}
	put_waiters(waiter);
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

/* Registers the waiter in one of the further stacks. Returns how many fds it adds; 0:
 * something has come. */
static unsigned begin_more(struct sock_wait *wait, struct waiter *waiter,
			   struct stack *stack, struct pollfd *fds,
			   uint64_t *until)
{
	unsigned cnt = 0;
	bool has_watch;

	wait_rearm(waiter);
	stack_acknowledge(stack);
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, waiter);
	if (!wait->ops->watch_more(wait, waiter) &&
	    !(has_watch && (!stack_arm_locked(stack) ||
			    stack_poll_locked(stack) > 0)))
		cnt = wait_fds(stack, waiter, fds);
	*until = wait_until_locked(stack, waiter, *until);
	stack_unlock(stack);
	return cnt;
}

/* The same in all of them: each is begun, whatever comes. */
static unsigned begin_all_more(struct sock_wait *wait, struct pollfd *fds,
			       uint64_t *until)
{
	struct waiter *waiter = wait->waiter->more;
	unsigned cnt = 0, sum = 0;
	bool has_come = false;

	for (unsigned i = 0; waiter; waiter = waiter->more, i++) {
		cnt = begin_more(wait, waiter, wait->more[i], fds + sum, until);
		has_come |= !cnt;
		sum += cnt;
	}
	return has_come ? 0 : sum;
}

static unsigned begin_without_stack(struct sock_wait *wait, struct pollfd *fd)
{
	bool may_sleep;

	if (wait->is_alone) {
		wait_alone_begin(wait->waiter, fd);
		may_sleep = !wait->ops->watch(wait);
	} else {
		may_sleep = wait_early_begin(wait->waiter, fd);
	}
	return may_sleep ? wait->fd_cnt + 1 : 0;
}

/* Registers the waiter. Returns on how many fds to sleep, and until when in *until_out;
 * 0: something has come, so there is no sleep. */
static unsigned begin_sleep(struct sock_wait *wait, uint64_t *until_out)
{
	struct stack *stack = wait->stack;
	struct waiter *waiter = wait->waiter;
	struct pollfd *fds = wait->fds + wait->fd_cnt;
	unsigned cnt = 0, more = 0;
	bool has_watch;

	*until_out = wait->is_timed ? wait->deadline_ns : UINT64_MAX;
	wait_rearm(waiter);
	if (!stack)
		return begin_without_stack(wait, fds);
	if (UNLIKELY(waiter->more))
		more = begin_all_more(wait, fds, until_out);
	stack_acknowledge(stack);
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, waiter);
	if (!wait->ops->watch(wait) &&
	    !(has_watch && (!stack_arm_locked(stack) ||
			    stack_poll_locked(stack) > 0)) &&
	    !(waiter->more && !more))
		cnt = wait->fd_cnt + more +
		      wait_fds(stack, waiter, fds + more);
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

/* Who cannot be woken looks by himself, as often as that. */
#define DEAF_NS NS_PER_MS

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
	wait->waiter = get_waiter(wait, wait->stack ? wait->more_cnt : 0);
	if (!wait->waiter)
		return -ENOMEM;
	wait->has_slept = true;
	sock_crowd_leave(&wait->spinner);
	cnt = begin_sleep(wait, &until);
	if (UNLIKELY(waiter_is_deaf(wait->waiter) || wait->is_deaf))
		until = MIN(until, clock_monotonic_ns() + DEAF_NS);
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
	struct waiter *waiter = get_waiter(wait, 0);
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

/* How long a thread spins without a cancellation point. */
#define OPEN_NS (10 * NS_PER_MS)

/* Nobody tells us that the thread is cancelled: it finds out where it calls libc. */
static long let_cancel(struct sock_wait *wait, uint64_t now)
{
	bool is_due = wait->open_ns && now >= wait->open_ns;

	if (is_due || !wait->open_ns)
		wait->open_ns = now + OPEN_NS;
	return UNLIKELY(is_due) ? let_handlers_run(wait) : 0;
}

/* Whether to look once more before a sleep. False with *n_out set: the time is over, or
 * what else ends the wait. */
static bool may_spin(struct sock_wait *wait, long *n_out)
{
	uint64_t now;
	bool is_wanted;

	if (wait->polls_left == 0 || !wait->stack)
		return false;
	if (wait->polls_left > 0)
		wait->polls_left--;
	if (++wait->looks % wait->looks_per_clock)
		return true;
	now = clock_monotonic_ns();
	is_wanted = wait->makes_room &&
		    sock_crowd_is_wanted(&wait->spinner, now);
	*n_out = wait->is_timed && now >= wait->deadline_ns ?
			 -EAGAIN :
			 let_cancel(wait, now);
	return !*n_out && now < wait->spin_until_ns && !is_wanted;
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
	wait->open_ns = 0;
	wait->has_slept = false;
	*spinner = (struct sock_spinner){ .place = -1 };
	n = look_and_rest(wait);
	/* an abandoned call has left before it slept, and its memory is gone */
	if (n != FD_ABANDONED)
		sock_crowd_leave(spinner);
	return n;
}
