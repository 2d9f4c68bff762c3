/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How calls on TCP sockets of ours wait (sock/sock_wait.h). */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "fd/fd_internal.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/kin.h"
#include "sock/tcp/tsock_priv.h"

enum {
	POLLS_PER_CLOCK = 64,
	/* While a thread spins, the kernel is asked at each of so many looks. */
	LOOKS_PER_TWIN = 64,
};

static struct tsock_wait *wait_of(struct sock_wait *wait)
{
	return CONTAINER_OF(wait, struct tsock_wait, wait);
}

void tsock_poll_locked(struct tsock *t)
{
	stack_poll_locked(t->engine->stack);
	tsock_run_locked(t);
}

void tsock_run_locked(struct tsock *t)
{
	if (t->engine->stack->afterwards & STACK_ENGINES)
		stack_run_engines_locked(t->engine->stack);
}

static long look(struct sock_wait *wait, enum sock_look how)
{
	struct tsock_wait *w = wait_of(wait);

	w->asks_twin = how == SOCK_LOOK_ALL || ++w->looks % LOOKS_PER_TWIN == 0;
	return w->look(w);
}

/* The kernel accepts for one that listens, at least what comes by its own ways. */
static bool accepts_at_twin(const struct tsock *t)
{
	return tsock_phase(t) == TSOCK_LISTENER || tsock_phase(t) == TSOCK_LISTENING;
}

/* A child may have set O_NONBLOCK on a listener, which it uses without asking us. It does
 * not end a call that waits already. */
static bool is_nonblocking_by_child(const struct tsock_wait *w)
{
	return !w->wait.has_slept && accepts_at_twin(w->t) &&
	       kin_fork_cnt() != w->t->fork_cnt &&
	       sock_owns_fd(&w->t->sock, w->fd) && sock_file_is_nonblocking(w->fd);
}

static long prepare(struct sock_wait *wait)
{
	struct tsock_wait *w = wait_of(wait);

	if (w->wait.fd_cnt)
		w->fds[0] = (struct pollfd){ .fd = tsock_waits_at(w->t, w->fd),
					     .events = POLLIN };
	/* it was closed before the call counted as one that waits */
	if (w->wait.fd_cnt && w->fds[0].fd < 0 && accepts_at_twin(w->t))
		return -EBADF;
	wait->stack = sock_stack(&w->t->sock);
	return is_nonblocking_by_child(w) ? -EAGAIN : 0;
}

static bool watch(struct sock_wait *wait)
{
	struct tsock_wait *w = wait_of(wait);
	struct endpoint *end = &w->t->sock.end;

	endpoint_add_watch(end, &wait->waiter->watch);
	/* who closes the number tells the watch (tsock_waits_go_on), or has done so before */
	if (w->wait.fd_cnt && UNLIKELY(w->fds[0].fd != tsock_waits_at(w->t, w->fd)))
		return true;
	return (w->is_due ? w->is_due(w) : endpoint_ready(end) & w->bits) ||
	       tsock_phase(w->t) == TSOCK_KERNELS;
}

static const struct sock_wait_ops ops = {
	.look = look,
	.prepare = prepare,
	.watch = watch,
	.unwatch = sock_wait_nothing,
	.abandoned = sock_wait_nothing,
};

uint64_t tsock_deadline(uint64_t timeout_ns)
{
	return timeout_ns ? clock_monotonic_ns() + timeout_ns : UINT64_MAX;
}

static long wait_until(struct tsock_wait *w, uint64_t deadline_ns, bool has_some)
{
	struct tsock *t = w->t;

	w->wait = (struct sock_wait){
		.ops = &ops,
		.obj = &t->sock.obj,
		.stack = sock_stack(&t->sock),
		.fds = w->fds,
		.mark = signals_mark(),
		.may_restart = deadline_ns == UINT64_MAX && !has_some,
		.polls_left = sock_params.rx_polls,
		.spin_until_ns = UINT64_MAX,
		.looks_per_clock = POLLS_PER_CLOCK,
		.does_yield = sock_params.does_yield,
		.makes_room = sock_params.makes_room,
	};
	/* a listener's twin has connections, too */
	if (accepts_at_twin(t))
		w->wait.fd_cnt = 1;
	sock_wait_until(&w->wait, deadline_ns);
	return sock_wait(&w->wait);
}

long tsock_wait(struct tsock *t, int fd, tsock_look_fn *look_fn, void *ctx,
		uint32_t bits, uint64_t deadline_ns, bool has_some)
{
	struct tsock_wait w = { .t = t, .fd = fd, .look = look_fn, .ctx = ctx, .bits = bits };

	return wait_until(&w, deadline_ns, has_some);
}

long tsock_wait_till_due(struct tsock *t, int fd, tsock_look_fn *look_fn, void *ctx,
			 tsock_is_due_fn *is_due, uint64_t deadline_ns, bool has_some)
{
	struct tsock_wait w = { .t = t, .fd = fd, .look = look_fn, .ctx = ctx,
				.is_due = is_due };

	return wait_until(&w, deadline_ns, has_some);
}

/* -- calls that go on at the kernel's socket ----------------------------------------- */

/* Twins that are kept for calls, of all sockets. */
static _Atomic unsigned kept_cnt;

/* The child has none of these calls, and none of their fds. */
void tsock_waits_forked(void)
{
	atomic_store(&kept_cnt, 0);
}

int tsock_waits_at(const struct tsock *t, int fd)
{
	/* the duplicate is for the calls that are counted, and is dropped behind them */
	return sock_owns_fd(&t->sock, fd) ? fd : atomic_load(&t->twin_fd);
}

void tsock_keep_twin(struct tsock *t, int fd, bool is_closed)
{
	mutex_acquire(&t->sock.config);
	if (atomic_load(&t->twin_fd) < 0 &&
	    (tsock_phase(t) == TSOCK_KERNELS || accepts_at_twin(t)) &&
	    (is_closed || (t->engine &&
			   atomic_load(&kept_cnt) <
				   tsock_twins_max(t->engine, clock_monotonic_ns()))) &&
	    fd_internal_copy(fd, &t->twin_fd) == 0) {
		t->is_twin_kept = true;
		atomic_fetch_add(&kept_cnt, 1);
	}
	mutex_release(&t->sock.config);
}

/* What was kept for the calls that wait is the socket's from now on. False: it has gone with
 * the last of them. */
static bool take_kept(struct tsock *t)
{
	bool is_there;

	mutex_acquire(&t->sock.config);
	is_there = atomic_load(&t->twin_fd) >= 0;
	if (t->is_twin_kept)
		atomic_fetch_sub(&kept_cnt, 1);
	t->is_twin_kept = false;
	mutex_release(&t->sock.config);
	return is_there;
}

void tsock_keep_closed(struct tsock *t, int fd)
{
	/* maybe within a change of another socket, which has met a closed number: where nothing
	 * is kept, without the lock */
	while (fd_internal_copy(fd, &t->twin_fd) == -EEXIST && !take_kept(t))
		;
}

/* The program's close has returned, and nobody waits for this one. */
static void linger_no_more(struct tsock *t)
{
	const struct linger off = { 0 };

	if (t->may_linger && !atomic_load(&t->sock.obj.fd_cnt))
		(void)!real.setsockopt(atomic_load(&t->twin_fd), SOL_SOCKET, SO_LINGER, &off,
				       sizeof(off));
}

/* Another call may begin, which is counted and then reads the number. */
static void drop_unused_twin(struct tsock *t)
{
	mutex_acquire(&t->sock.config);
	if (t->is_twin_kept && !atomic_load(&t->waiting_cnt)) {
		linger_no_more(t);
		if (fd_internal_close_unused(&t->twin_fd, &t->waiting_cnt)) {
			atomic_fetch_sub(&kept_cnt, 1);
			t->is_twin_kept = false;
		}
	}
	mutex_release(&t->sock.config);
}

COLD static void go_on(struct tsock *t, int fd)
{
	/* what is on its way to another process counts as open */
	if (fd < 0 || file_identify(fd).ino != t->sock.obj.inode)
		return;
	tsock_keep_twin(t, fd, true);
	/* the calls may have ended before they could see it */
	drop_unused_twin(t);
	/* who sleeps does so by the number */
	if (accepts_at_twin(t))
		tsock_tell_all(t, 0);
}

void tsock_waits_go_on(struct tsock *t, int fd)
{
	if (UNLIKELY(atomic_load(&t->waiting_cnt)))
		go_on(t, fd);
}

void tsock_drop_twin(struct tsock *t)
{
	if (t->is_twin_kept)
		atomic_fetch_sub(&kept_cnt, 1);
	t->is_twin_kept = false;
	if (atomic_load(&t->twin_fd) >= 0)
		fd_internal_close(&t->twin_fd);
}

void tsock_end_waiting(struct tsock *t)
{
	if (atomic_fetch_sub(&t->waiting_cnt, 1) == 1 && UNLIKELY(atomic_load(&t->twin_fd) >= 0))
		drop_unused_twin(t);
}

int tsock_begin_twin(struct tsock *t, int fd, struct fd_visit *visit)
{
	int twin = atomic_load(&t->twin_fd);

	visit->obj = NULL;
	if (twin >= 0)
		return twin;
	if (LIKELY(fd_visit_begin(visit, fd, &t->sock.obj)))
		return fd;
	visit->obj = NULL;
	/* it may be kept by now, or have another number */
	twin = tsock_fd(t);
	if (twin < 0 || twin == atomic_load(&t->twin_fd))
		return twin < 0 ? -EBADF : twin;
	if (fd_visit_begin(visit, twin, &t->sock.obj))
		return twin;
	visit->obj = NULL;
	return -EBADF;
}

void tsock_end_twin(int twin, struct fd_visit *visit)
{
	if (twin >= 0 && visit->obj)
		fd_visit_end(visit);
}

long tsock_wait_for_twin(struct tsock *t, int fd, short events, uint64_t deadline_ns,
			 bool has_some)
{
	struct pollfd twin = { .events = events };
	struct signals_mark mark = signals_mark();
	uint64_t now = clock_monotonic_ns();
	struct timespec left, *timeout = NULL;
	struct fd_visit visit;
	int kept, n;

	/* A poll of the kernel's looks at its number again when it is woken: one that nobody
	 * else has is not another file's by then. */
	twin.fd = tsock_begin_twin(t, fd, &visit);
	if (twin.fd < 0)
		return -EBADF;
	tsock_keep_twin(t, twin.fd, false);
	tsock_end_twin(twin.fd, &visit);
	kept = atomic_load(&t->twin_fd);
	if (kept >= 0)
		twin.fd = kept;
	if (deadline_ns != UINT64_MAX) {
		if (now >= deadline_ns)
			return -EAGAIN;
		left.tv_sec = (time_t)((deadline_ns - now) / NS_PER_SEC);
		left.tv_nsec = (long)((deadline_ns - now) % NS_PER_SEC);
		timeout = &left;
	}
	n = fd_wait(&t->sock.obj, &twin, 1, timeout, &mark, !timeout && !has_some, NULL, NULL);
	if (n == -ECANCELED)
		return FD_ABANDONED;
	if (n == 0)
		return -EAGAIN;
	/* records in its error queue end every poll, and are no news for this call */
	if (n > 0 && twin.revents == POLLERR)
		inside_nap(NS_PER_MS);
	return MIN(n, 0);
}

void tsock_wait_has_some(struct tsock_wait *w)
{
	if (!w->wait.may_restart)
		return;
	w->wait.mark = signals_mark();
	w->wait.may_restart = false;
}
