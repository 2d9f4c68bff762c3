/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a multiplexing call proceeds (mux_wait.h). */
#include "config.h"

#include "iomux/mux_wait.h"

#include <errno.h>

#include "base/clock.h"
#include "iomux/mux_spin.h"

struct mux_settings mux_params;
const struct timespec mux_first_look;
_Thread_local struct mux_spin mux_spin;

static struct mux_call *call_of(struct sock_wait *wait)
{
	return CONTAINER_OF(wait, struct mux_call, wait);
}

static bool is_kernels_turn(struct mux_call *call)
{
	return mux_params.os_ratio && ++call->looks % mux_params.os_ratio == 0;
}

/* Counts the time until now as spent polling. */
static void add_polling(struct mux_call *call)
{
	uint64_t now;

	if (LIKELY(!call->polls_since_ns))
		return;
	now = clock_monotonic_ns();
	stats_mux_add_polling(call->stats, call->polls_since_ns, now);
	call->polls_since_ns = now;
}

static long look(struct sock_wait *wait, enum sock_look how)
{
	struct mux_call *call = call_of(wait);
	bool with_kernel = how == SOCK_LOOK_ALL || is_kernels_turn(call);
	long n = call->ops->look(call, with_kernel);

	add_polling(call);

	return n ? n : -EAGAIN;
}

static long prepare(struct sock_wait *wait)
{
	struct mux_call *call = call_of(wait);

	add_polling(call);
	call->polls_since_ns = 0;
	call->ops->prepare(call);
	return 0;
}

static bool watch(struct sock_wait *wait)
{
	struct mux_call *call = call_of(wait);

	return call->ops->watch(call);
}

static void unwatch(void *owner)
{
	struct mux_call *call = owner;

	call->ops->unwatch(call);
	call->polls_since_ns = mux_begin();
}

static bool watch_more(struct sock_wait *wait, struct waiter *waiter)
{
	struct mux_call *call = call_of(wait);

	return call->ops->watch_more(call, waiter);
}

static void unwatch_more(void *owner, struct waiter *waiter)
{
	struct mux_call *call = owner;

	call->ops->unwatch_more(call, waiter);
}

static void handler_runs(void *owner)
{
	struct mux_call *call = owner;

	if (call->ops->pause)
		call->ops->pause(call);
}

static void abandoned(void *owner)
{
	struct mux_call *call = owner;

	call->ops->abandoned(call);
}

static const struct sock_wait_ops wait_ops = {
	.look = look,
	.prepare = prepare,
	.watch = watch,
	.unwatch = unwatch,
	.watch_more = watch_more,
	.unwatch_more = unwatch_more,
	.pause = handler_runs,
	.abandoned = abandoned,
};

static inline void count(struct stats_mux *stats, long n, long own, bool has_slept)
{
	struct stats_mux_counters *c = &stats->counters;

	stats_add(has_slept ? &c->poll_miss : &c->poll_hit, 1);
	own = MIN(own, n);
	if (LIKELY(n > 0)) {
		stats_add(&c->rx_ready, (uint64_t)own);
		if (n > own)
			stats_add(&c->os_rx_ready, (uint64_t)(n - own));
	} else {
		stats_add(n ? &c->errors : &c->timeouts, 1);
	}
}

/* Adds the two. The sum is at most the largest number. */
static uint64_t add_time(uint64_t ns, const struct timespec *ts)
{
	uint64_t sum;

	if (__builtin_mul_overflow((uint64_t)ts->tv_sec, NS_PER_SEC, &sum) ||
	    __builtin_add_overflow(sum, ns + (uint64_t)ts->tv_nsec, &sum))
		return UINT64_MAX;
	return sum;
}

static uint64_t spin_until(uint64_t now)
{
	uint64_t ns = (uint64_t)mux_params.poll_us * NS_PER_US;

	if (mux_params.poll_us < 0)
		return UINT64_MAX;
	return now + (mux_params.does_ease ? mux_spin_ns(&mux_spin, ns) : ns);
}

long mux_found(struct stats_mux *stats, long n, unsigned own, uint64_t from_ns)
{
	if (UNLIKELY(from_ns))
		stats_mux_add_polling(stats, from_ns, clock_monotonic_ns());
	if (own)
		mux_spin_learn(&mux_spin, true);
	count(stats, n, own, false);
	return n;
}

long mux_wait(struct mux_call *call, const struct timespec *timeout,
	      const struct signals_mark *mark, uint64_t from_ns)
{
	uint64_t now = clock_monotonic_ns();
	long n;

	call->wait.ops = &wait_ops;
	call->wait.owner = call;
	call->wait.mark = *mark;
	call->looks = 0;
	call->polls_since_ns = from_ns;
	call->own_cnt = 0;
	sock_wait_until(&call->wait,
			timeout ? add_time(now, timeout) : UINT64_MAX);
	call->wait.polls_left = -1;
	call->wait.looks_per_clock = 1;
	call->wait.spin_until_ns = spin_until(now);
	call->wait.makes_room = mux_params.does_ease;
	n = sock_wait(&call->wait);
	if (n == FD_ABANDONED)
		return n;
	mux_spin_learn(&mux_spin, n > 0 && call->own_cnt);
	if (n == -EAGAIN)
		n = 0;
	count(call->stats, n, call->own_cnt, call->wait.has_slept);
	return n;
}
