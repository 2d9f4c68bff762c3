/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * select, poll and epoll for sets with sockets of ours. Such an fd is the kernel's
 * socket as well. So the kernel is asked about all fds as always, and the state of
 * our own queues is added: a set is ready if either side says so.
 *
 * The calls return what libc's would return, or a negative errno, or FD_ABANDONED:
 * begin again. They run inside the bracket.
 */
#ifndef IOMUX_MUX_H
#define IOMUX_MUX_H

#include "fd/fd_ops.h"
#include "os/signals.h"

struct mux_params {
	/* microseconds of polling before a call sleeps; -1: it never does */
	int poll_us;
	/* less while nothing of ours comes (mux_spin.h) */
	bool does_ease;
	/* The kernel is asked once in so many looks; 0: only before a sleep. */
	unsigned os_ratio;
	/* After a look that found something of ours, so many further looks that
	 * find something of ours do not ask the kernel. */
	unsigned skip_os;
	/* measures how much of the time is spent polling */
	bool measures;
};

/* When the library is loaded. */
void mux_load(void);
/* Once, before anything is ours. */
void mux_start(const struct mux_params *params);
/* Before a fork: the child has the kernel's sets alone. Inside the bracket. */
void mux_before_fork(void);
/* In the child of a fork. */
void mux_forked(void);
/* When the process ends or becomes another program, and its connections are the kernel's:
 * children that have its sets find all members there. Inside the bracket. */
void mux_before_exit(void);

/* For a look that is not the whole call: one that finds nothing is not counted, and leaves the
 * sets of select as they are. */
extern HIDDEN const struct timespec mux_first_look;

/* Whether something in the set is ours, or is a set of epoll in which another thread may
 * put something of ours while the call waits. May be called outside the bracket, at any
 * time. If so, the function below does the whole call. The caller sets the signal
 * mask for that time; `mark` is from before that. `timeout` NULL: for ever;
 * &mux_first_look. */
bool mux_poll_is_ours(const struct pollfd *fds, nfds_t cnt, bool does_wait);
long mux_poll(struct pollfd *fds, nfds_t cnt, const struct timespec *timeout,
	      const struct signals_mark *mark);

bool mux_select_is_ours(int cnt, const fd_set *in, const fd_set *out,
			const fd_set *except, bool does_wait);
long mux_select(int cnt, fd_set *in, fd_set *out, fd_set *except,
		const struct timespec *timeout,
		const struct signals_mark *mark);

bool mux_epoll_is_ours(int epfd);

/* Counts threads that sleep in the kernel, or are about to, for a set that is not
 * ours; another thread may make it ours meanwhile. There is a count for each epfd,
 * but high numbers share places. Who leaves the wait by a way that libc does not see, as
 * setcontext(), leaves his count behind, which costs the others a little. */
enum { MUX_SLEEPER_PLACES = 256 };
struct mux_sleepers {
	_Atomic unsigned cnt;
} CACHE_ALIGNED;
extern HIDDEN struct mux_sleepers mux_sleepers[MUX_SLEEPER_PLACES];

static inline _Atomic unsigned *mux_sleepers_at(int epfd)
{
	return &mux_sleepers[(unsigned)epfd % MUX_SLEEPER_PLACES].cnt;
}

/* The count of this set: that of the fd by which it is known. */
_Atomic unsigned *mux_sleepers_of(int epfd);

/* The address of this is the data word of what wakes such a wait up for us: no program has it.
 * The set may be closed by then, or another process's, of which ours was forked or the other
 * way round: there the address is the same. */
extern HIDDEN const char mux_wake_mark;

static inline bool mux_has_wake(const struct epoll_event *events, int n)
{
	bool result = false;

	for (int i = 0; i < n; i++)
		result |= events[i].data.u64 == (uint64_t)(uintptr_t)&mux_wake_mark;
	return result;
}

/* What such a wait returned, without the event that only woke it up for us. */
enum { MUX_WOKEN = -2 };
int mux_epoll_woken(int epfd, struct epoll_event *events, int n);
typedef int mux_epoll_wait_fn(int epfd, struct epoll_event *events, int cnt,
			      int timeout);
/* epoll_wait, outside the bracket, with the fd's entry in the table: by one look at what is
 * ours, without the kernel, as most calls are while sockets are busy. If that may not be, or
 * finds nothing, mux_slow_epoll_wait is called last, and does it all. */
int mux_quick_epoll_wait(int epfd, struct epoll_event *events, int cnt, int timeout,
			 const _Atomic(struct fd_object *) *entry);
/* The wrappers set it before there is any set. */
extern HIDDEN mux_epoll_wait_fn *mux_slow_epoll_wait;
/* -EAGAIN: the number is another set's by now, which has nothing of ours. Nothing is
 * done. */
long mux_epoll_wait(int epfd, struct epoll_event *events, int cnt,
		    const struct timespec *timeout,
		    const struct signals_mark *mark);

/* epoll_ctl for a member that may be ours, or a set: the whole call. A socket that
 * cannot be followed goes back to the kernel. */
long mux_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
/* The same with the fd's entry in the table; NULL: there is none. */
long mux_epoll_ctl_at(_Atomic(struct fd_object *) *entry, int epfd, int op, int fd,
		      struct epoll_event *event);

/* A noted set gets another number: it is known from now on, for both. */
void mux_epoll_copied(int epfd);

/* A set may become a member of another one before anything in it is ours, or somebody
 * polls it. So the numbers of sets are noted, a bit each. Those that are closed otherwise
 * than by close() stay noted. Higher numbers than these are not: such sets go unnoticed
 * as long as nothing in them is ours. */
enum { MUX_NOTED_FDS = 1 << 20 };
extern HIDDEN _Atomic uint64_t mux_noted_sets[MUX_NOTED_FDS / 64];
extern HIDDEN _Atomic bool mux_has_noted;

static inline void mux_note_set(int epfd)
{
	if (epfd < 0 || epfd >= MUX_NOTED_FDS)
		return;
	atomic_fetch_or(&mux_noted_sets[epfd / 64], UINT64_C(1) << epfd % 64);
	if (!atomic_load_explicit(&mux_has_noted, memory_order_relaxed))
		atomic_store(&mux_has_noted, true);
}

static inline bool mux_is_noted(int fd)
{
	return fd >= 0 && fd < MUX_NOTED_FDS &&
	       UNLIKELY(atomic_load_explicit(&mux_noted_sets[fd / 64],
					     memory_order_relaxed) >> fd % 64 &
			1);
}

/* The number is about to be closed. */
static inline void mux_forget_noted(int fd)
{
	if (mux_is_noted(fd))
		atomic_fetch_and(&mux_noted_sets[fd / 64],
				 ~(UINT64_C(1) << fd % 64));
}

#endif
