/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of mux_calls.c as the kernel has them: its sets of signals are shorter
 * than libc's, and it writes back how much of the time is left.
 */
#include "config.h"

#include "sock-redirect/syscall_mux.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "iomux/mux.h"
#include "sock-redirect/call.h"
#include "sock/user_msg.h"

#define PTR(x) ((void *)(x))

/* Of a set of signals; other sizes are an error of the program's. */
enum { MASK_SIZE = 8 };

/* NULL in *mask_out: it stays as it is. False: the kernel has to judge. */
static bool read_mask(const void *from, size_t size, sigset_t *set,
		      const sigset_t **mask_out)
{
	*mask_out = NULL;
	if (!from)
		return true;
	if (size != MASK_SIZE || !user_is_plausible(from, MASK_SIZE))
		return false;
	sigemptyset(set);
	memcpy(set, from, MASK_SIZE);
	*mask_out = set;
	return true;
}

/* What pselect6 has as its last argument. */
struct masked {
	const void *mask;
	size_t size;
};

static bool read_masked(const struct masked *from, sigset_t *set,
			const sigset_t **mask_out)
{
	*mask_out = NULL;
	return !from || (user_is_plausible(from, sizeof(*from)) &&
			 read_mask(from->mask, from->size, set, mask_out));
}

/* How much is left of a time that began then. As under Linux it is not said where it cannot
 * be written: the kernel writes it for us. */
static void count_down(uint64_t from_ns, struct timespec *ts)
{
	uint64_t gone = clock_monotonic_ns() - from_ns, ns;
	struct timespec left;
	struct iovec from = { &left, sizeof(left) }, to = { ts, sizeof(left) };
	int saved_errno = errno;

	/* of centuries nobody misses what is gone */
	if (!ts || (uint64_t)ts->tv_sec > UINT64_MAX / NS_PER_SEC / 2)
		return;
	ns = (uint64_t)ts->tv_sec * NS_PER_SEC + (uint64_t)ts->tv_nsec;
	ns -= MIN(ns, gone);
	left.tv_sec = (time_t)(ns / NS_PER_SEC);
	left.tv_nsec = (long)(ns % NS_PER_SEC);
	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0)
		errno = saved_errno;
}

static bool call_ppoll(struct pollfd *fds, nfds_t cnt, struct timespec *ts,
		       const void *from, size_t size, long *result_out)
{
	uint64_t from_ns = clock_monotonic_ns();
	const sigset_t *mask;
	sigset_t set;

	if (!mux_poll_is_ours(fds, cnt, true) || !user_is_timeout(ts) ||
	    !read_mask(from, size, &set, &mask))
		return false;
	*result_out = shim_ppoll(fds, cnt, ts, mask);
	count_down(from_ns, ts);
	return true;
}

static bool call_pselect(int cnt, fd_set *in, fd_set *out, fd_set *except,
			 struct timespec *ts, const struct masked *masked,
			 long *result_out)
{
	uint64_t from_ns = clock_monotonic_ns();
	const sigset_t *mask;
	sigset_t set;

	if (!mux_select_is_ours(cnt, in, out, except, true) || !user_is_timeout(ts) ||
	    !read_masked(masked, &set, &mask))
		return false;
	*result_out = shim_pselect(cnt, in, out, except, ts, mask);
	count_down(from_ns, ts);
	return true;
}

static bool call_epoll_pwait(int epfd, struct epoll_event *events, int cnt,
			     int timeout, const void *from, size_t size,
			     long *result_out)
{
	const sigset_t *mask;
	sigset_t set;

	if (!read_mask(from, size, &set, &mask))
		return false;
	*result_out = shim_epoll_pwait(epfd, events, cnt, timeout, mask);
	return true;
}

static bool call_epoll_pwait2(int epfd, struct epoll_event *events, int cnt,
			      const struct timespec *ts, const void *from,
			      size_t size, long *result_out)
{
	const sigset_t *mask;
	sigset_t set;

	if (!read_mask(from, size, &set, &mask))
		return false;
	*result_out = shim_epoll_pwait2(epfd, events, cnt, ts, mask);
	return true;
}

/* What is the kernel's alone stays syscall()'s, which is no cancellation point. A wait
 * for a set of epoll is one here, since the set may become ours meanwhile. */
bool syscall_on_set(long number, long a, long b, long c, long d, long e, long f,
		    long *result_out)
{
	switch (number) {
	case SYS_epoll_ctl:
		*result_out = shim_epoll_ctl((int)a, (int)b, (int)c, PTR(d));
		return true;
	case SYS_epoll_pwait:
		return call_epoll_pwait((int)a, PTR(b), (int)c, (int)d, PTR(e),
					(size_t)f, result_out);
	case SYS_epoll_pwait2:
		return call_epoll_pwait2((int)a, PTR(b), (int)c, PTR(d), PTR(e),
					 (size_t)f, result_out);
	case SYS_ppoll:
		return call_ppoll(PTR(a), (unsigned)b, PTR(c), PTR(d),
				  (size_t)e, result_out);
	case SYS_pselect6:
		return call_pselect((int)a, PTR(b), PTR(c), PTR(d), PTR(e),
				    PTR(f), result_out);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		*result_out = shim_epoll_wait((int)a, PTR(b), (int)c, (int)d);
		return true;
	case SYS_poll:
		if (!mux_poll_is_ours(PTR(a), (unsigned)b, true))
			return false;
		*result_out = shim_poll(PTR(a), (unsigned)b, (int)c);
		return true;
	case SYS_select:
		if (!mux_select_is_ours((int)a, PTR(b), PTR(c), PTR(d), true))
			return false;
		*result_out = shim_select((int)a, PTR(b), PTR(c), PTR(d),
					  PTR(e));
		return true;
#endif
	default:
		return false;
	}
}
