/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* select, poll, epoll: the set as a whole, or libc. */
#include "config.h"

#include "iomux/mux.h"

#include <limits.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "base/clock.h"
#include "os/clean_up.h"
#include "sock-redirect/call.h"
#include "sock/user_msg.h"

/* A call that sleeps is a cancellation point there. Of the others, which find something at
 * once or only look, one in sixteen is: it would cost each of them a dozen instructions.
 * Before it has done anything. */
static ALWAYS_INLINE void end_if_cancelled(void)
{
	os_thread.sixteenths += 16;
	if (UNLIKELY(!os_thread.sixteenths))
		pthread_testcancel();
}

/* Of a timeout that may be read. */
static inline bool is_wait(const struct timespec *timeout)
{
	return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

/* Runs `first` and then, until it is done, `call` inside the bracket. */
#define INSIDE(first, call)                                                \
	({                                                                 \
		long result_;                                              \
									   \
		os_enter();                                                \
		first;                                                     \
		if (UNLIKELY(fd_wait_is_pending()))                        \
			fd_wait_collect();                                 \
		do                                                         \
			result_ = (call);                                  \
		while (result_ == FD_ABANDONED && !fd_wait_was_interrupted()); \
		if (result_ == FD_ABANDONED)                               \
			result_ = -EINTR;                                  \
		os_leave();                                                \
		result_;                                                   \
	})

/*
 * Makes `call`, an expression of the iomux folder that may use `mark` and waits for `time`,
 * which is `timeout_` in the end, with the signal mask `sigs` if there is one. As under
 * Linux, a signal that the mask lets in stays pending if something is ready at once. So
 * there is a first look without the mask. Then the mask is set outside of the bracket, so
 * that handlers that it lets in run at once, and the call hears of them by the mark. A
 * handler that runs before the bracket, or before the mask is set, came before the call.
 * epoll does not heed them (`is_epoll`) where it only looks. Writes errno as the kernel
 * would.
 */
#define WITH_MASK(sigs, timeout_, is_epoll, call)                          \
	({                                                                 \
		struct signals_mark mark;                                  \
		const struct timespec *time = (timeout_);                  \
		int saved_errno_ = errno;                                  \
		sigset_t old_;                                             \
		long n_;                                                   \
									   \
		end_if_cancelled();                                        \
		if ((sigs) && !((is_epoll) && !is_wait(timeout_)))         \
			time = &mux_first_look;                            \
		n_ = INSIDE(mark = signals_mark(), call);                  \
		if (!n_ && time == &mux_first_look) {                      \
			time = (timeout_);                                 \
			mark = signals_mark();                             \
			pthread_sigmask(SIG_SETMASK, sigs, &old_);         \
			n_ = INSIDE((void)0, call);                        \
			pthread_sigmask(SIG_SETMASK, &old_, NULL);         \
		}                                                          \
		errno = n_ < 0 ? (int)-n_ : saved_errno_;                  \
		(int)(n_ < 0 ? -1 : n_);                                   \
	})

static const sigset_t *const same_mask;

/* NULL for a negative time: no timeout. */
static const struct timespec *from_ms(int ms, struct timespec *ts)
{
	if (ms < 0)
		return NULL;
	*ts = (struct timespec){ 0 };
	/* most programs that are in a hurry do not wait at all */
	if (UNLIKELY(ms))
		*ts = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
	return ts;
}

/* What libc must judge: sets that are not ours, calls from inside, arguments with
 * errors of their own. */
static bool is_mask_sound(const sigset_t *mask)
{
	return !mask || user_is_plausible(mask, sizeof(*mask));
}

static inline bool is_ours(const struct pollfd *fds, nfds_t cnt, bool does_wait)
{
	return UNLIKELY(mux_poll_is_ours(fds, cnt, does_wait)) &&
	       !os_is_inside();
}

int shim_poll(struct pollfd *fds, nfds_t cnt, int timeout)
{
	struct timespec ts;

	CALL_ENTERED(poll);
	if (is_ours(fds, cnt, timeout))
		return WITH_MASK(same_mask, from_ms(timeout, &ts), false,
				 mux_poll(fds, cnt, time, &mark));
	return real.poll(fds, cnt, timeout);
}

int shim___poll_chk(struct pollfd *fds, nfds_t cnt, int timeout, size_t size)
{
	struct timespec ts;

	CALL_ENTERED(__poll_chk);
	if (is_ours(fds, cnt, timeout) && cnt <= size / sizeof(*fds))
		return WITH_MASK(same_mask, from_ms(timeout, &ts), false,
				 mux_poll(fds, cnt, time, &mark));
	return real.__poll_chk(fds, cnt, timeout, size);
}

int shim_ppoll(struct pollfd *fds, nfds_t cnt, const struct timespec *timeout,
	       const sigset_t *mask)
{
	CALL_ENTERED(ppoll);
	if (user_is_timeout(timeout) && is_mask_sound(mask) &&
	    is_ours(fds, cnt, is_wait(timeout)))
		return WITH_MASK(mask, timeout, false,
				 mux_poll(fds, cnt, time, &mark));
	return real.ppoll(fds, cnt, timeout, mask);
}

int shim___ppoll_chk(struct pollfd *fds, nfds_t cnt,
		     const struct timespec *timeout, const sigset_t *mask,
		     size_t size)
{
	CALL_ENTERED(__ppoll_chk);
	if (user_is_timeout(timeout) && is_mask_sound(mask) &&
	    is_ours(fds, cnt, is_wait(timeout)) && cnt <= size / sizeof(*fds))
		return WITH_MASK(mask, timeout, false,
				 mux_poll(fds, cnt, time, &mark));
	return real.__ppoll_chk(fds, cnt, timeout, mask, size);
}

static inline bool is_select_ours(int cnt, const fd_set *in, const fd_set *out,
				  const fd_set *except, bool does_wait)
{
	return UNLIKELY(mux_select_is_ours(cnt, in, out, except, does_wait)) &&
	       !os_is_inside();
}

static bool is_timeval(const struct timeval *timeout)
{
	return !timeout || (user_is_plausible(timeout, sizeof(*timeout)) &&
			    timeout->tv_sec >= 0 && timeout->tv_usec >= 0);
}

/* Linux writes back how much of the time is left, never all of it. */
static void count_down(const struct timespec *from, struct timeval *timeout)
{
	struct timespec now;
	long long gone_us, us;

	clock_gettime(CLOCK_MONOTONIC, &now);
	gone_us = (now.tv_sec - from->tv_sec) * 1000000LL +
		  (now.tv_nsec - from->tv_nsec) / 1000 + 1;
	/* a number of seconds may be too large for one of microseconds */
	us = timeout->tv_usec % 1000000 - gone_us % 1000000;
	timeout->tv_sec -= gone_us / 1000000 + (us < 0) -
			   timeout->tv_usec / 1000000;
	timeout->tv_usec = us < 0 ? us + 1000000 : us;
	if (timeout->tv_sec < 0)
		*timeout = (struct timeval){ 0, 0 };
}

int shim_select(int cnt, fd_set *in, fd_set *out, fd_set *except,
		struct timeval *timeout)
{
	struct timespec ts, from;
	int n;

	CALL_ENTERED(select);
	if (!is_timeval(timeout) ||
	    !is_select_ours(cnt, in, out, except,
			    !timeout || timeout->tv_sec || timeout->tv_usec))
		return real.select(cnt, in, out, except, timeout);
	if (timeout) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		ts.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
		ts.tv_nsec = timeout->tv_usec % 1000000 * 1000;
	}
	n = WITH_MASK(same_mask, timeout ? &ts : NULL, false,
		      mux_select(cnt, in, out, except, time, &mark));
	if (timeout)
		count_down(&from, timeout);
	return n;
}

int shim_pselect(int cnt, fd_set *in, fd_set *out, fd_set *except,
		 const struct timespec *timeout, const sigset_t *mask)
{
	CALL_ENTERED(pselect);
	if (user_is_timeout(timeout) && is_mask_sound(mask) &&
	    is_select_ours(cnt, in, out, except, is_wait(timeout)))
		return WITH_MASK(mask, timeout, false,
				 mux_select(cnt, in, out, except, time, &mark));
	return real.pselect(cnt, in, out, except, timeout, mask);
}

static int made(int epfd)
{
	mux_note_set(epfd);
	return fd_table_forget(epfd);
}

int shim_epoll_create(int size)
{
	CALL_ENTERED(epoll_create);
	return made(real.epoll_create(size));
}

int shim_epoll_create1(int flags)
{
	CALL_ENTERED(epoll_create1);
	return made(real.epoll_create1(flags));
}

/* To the program, internal fds look closed. */
static inline int seen_fd(int fd)
{
	/* a number that no file can have */
	return UNLIKELY(fd_table_is_internal(fd)) && !os_is_inside() ? FD_TABLE_LIMIT :
								       fd;
}

int shim_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	int saved_errno;
	long result;

	CALL_ENTERED(epoll_ctl);
	epfd = seen_fd(epfd);
	if (LIKELY(!fd_table_names(entry) && !mux_is_noted(fd)) ||
	    os_is_inside())
		return real.epoll_ctl(epfd, op, fd, event);
	saved_errno = errno;
	os_enter_first();
	if (UNLIKELY(fd_wait_is_pending()))
		fd_wait_collect();
	result = mux_epoll_ctl_at(entry, epfd, op, fd, event);
	os_leave_last();
	errno = result < 0 ? (int)-result : saved_errno;
	return result < 0 ? -1 : 0;
}

static inline bool is_epoll_ours(int epfd)
{
	return UNLIKELY(mux_epoll_is_ours(epfd)) && !os_is_inside();
}

/* We count ourselves before we look at the set. A thread that makes the set ours
 * does the two steps in the opposite order, so one of us always sees the other. */
static inline bool has_become_ours(int epfd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(epfd);

	return UNLIKELY(entry && atomic_load(entry)) && is_epoll_ours(epfd);
}

/* Whether some event of this wait in the kernel may not be for the program, or not all there
 * is for it. */
static inline bool may_be_woken(int epfd, const struct epoll_event *events, int n)
{
	return UNLIKELY(fd_table_has(epfd) || mux_has_wake(events, n)) && !os_is_inside();
}

/* A wait that is counted among the sleepers of its set. */
struct counted {
	struct clean_up clean_up;
	_Atomic unsigned *cnt;
};

/* A handler that goes to another stack looks as if it jumped out, and may come back. */
static void stop_counting(void *arg)
{
	struct counted *counted = arg;

	if (counted->cnt)
		atomic_fetch_sub(counted->cnt, 1);
	counted->cnt = NULL;
}

static inline void begin_counting(struct counted *counted, int epfd)
{
	counted->cnt = mux_sleepers_of(epfd);
	atomic_fetch_add(counted->cnt, 1);
	clean_up_begin(&counted->clean_up, stop_counting, counted);
}

static inline void end_counting(struct counted *counted)
{
	clean_up_end(&counted->clean_up);
	stop_counting(counted);
}

/* Makes `call`, which waits in the kernel for a set that is not ours. MUX_WOKEN:
 * the set is ours by now, and the wait has to go on there, for the time that is
 * left of it since `from_ns`. Without other threads nobody can make the set ours, but
 * another process may, whose set it is as well: then the wait goes on here. */
#define WAIT_IN_KERNEL(from_ns, call)                                      \
	({                                                                 \
		struct counted counted_;                                   \
		int n_ = MUX_WOKEN;                                        \
									   \
		if (__libc_single_threaded) {                              \
			n_ = (call);                                       \
		} else {                                                   \
			from_ns = from_ns ? from_ns : clock_coarse_ns();   \
			begin_counting(&counted_, epfd);                   \
			if (LIKELY(!has_become_ours(epfd)))                \
				n_ = (call);                               \
			end_counting(&counted_);                           \
		}                                                          \
		if (n_ > 0 && may_be_woken(epfd, events, n_)) {            \
			from_ns = from_ns ? from_ns : clock_coarse_ns();   \
			os_enter();                                        \
			n_ = mux_epoll_woken(epfd, events, n_);            \
			os_leave();                                        \
		}                                                          \
		n_;                                                        \
	})

/* Does so for the time that is left. */
static COLD int wait_on(int epfd, struct epoll_event *events, int cnt,
			const struct timespec *left, const sigset_t *sigs)
{
	int ms = -1;

	if (left)
		ms = left->tv_sec < INT_MAX / 1000 ?
			     (int)left->tv_sec * 1000 + (int)((left->tv_nsec + 999999) / 1000000) :
			     INT_MAX;
	return real.epoll_pwait(epfd, events, cnt, ms, sigs);
}

/* The time that is left of a wait, or rather more. */
static COLD const struct timespec *time_left(const struct timespec *timeout,
					     uint64_t from_ns,
					     struct timespec *ts)
{
	uint64_t now_ns = clock_coarse_ns();
	uint64_t gone = now_ns - MIN(from_ns + CLOCK_COARSE_NS, now_ns);
	uint64_t ns;

	if (!timeout)
		return NULL;
	ns = (uint64_t)timeout->tv_nsec;
	*ts = (struct timespec){ .tv_sec = timeout->tv_sec -
					   (time_t)(gone / NS_PER_SEC) };
	gone %= NS_PER_SEC;
	ts->tv_sec -= ns < gone;
	ts->tv_nsec = (long)(ns < gone ? ns + NS_PER_SEC - gone : ns - gone);
	if (ts->tv_sec < 0)
		*ts = (struct timespec){ 0 };
	return ts;
}

/* The set has nothing of ours: it was another process that woke us, or another thread has
 * given the number to another set. */
static inline bool is_kernels(int n)
{
	return UNLIKELY(n < 0) && errno == EAGAIN;
}

/*
 * epoll_wait and its relatives, which differ in their arguments alone: `call` is libc's
 * with the same ones. `epfd` is the set. Waits in the kernel as long as that is not ours.
 */
#define EPOLL_WAIT(timeout_, sigs, call)                                   \
	({                                                                 \
		const struct timespec *time_ = (timeout_), *left_ = time_; \
		struct timespec left_ts_;                                  \
		uint64_t from_ns_ = 0;                                     \
		bool is_first_ = true;                                     \
		int found_, errno_ = 0;                                    \
									   \
		for (;;) {                                                 \
			if (!is_epoll_ours(epfd)) {                        \
				epfd = seen_fd(epfd);                      \
				found_ = WAIT_IN_KERNEL(                   \
					from_ns_,                          \
					LIKELY(is_first_) ?                \
						(call) :                   \
						wait_on(epfd, events, cnt, \
							left_, sigs));     \
				if (LIKELY(found_ != MUX_WOKEN))           \
					break;                             \
				left_ = time_left(time_, from_ns_,         \
						  &left_ts_);              \
				is_first_ = false;                         \
				errno_ = errno;                            \
			}                                                  \
			found_ = WITH_MASK(sigs, left_, true,              \
					   mux_epoll_wait(epfd, events,    \
							  cnt, time,       \
							  &mark));         \
			if (LIKELY(!is_kernels(found_)))                   \
				break;                                     \
			if (is_first_)                                     \
				continue;                                  \
			errno = errno_;                                    \
			found_ = 0;                                        \
			if (left_ && !is_wait(left_))                      \
				break;                                     \
		}                                                          \
		found_;                                                    \
	})

/* Out of line, since the short way needs none of its registers. */
static NOINLINE int epoll_wait_generally(int epfd, struct epoll_event *events,
					 int cnt, int timeout)
{
	struct timespec ts;

	return EPOLL_WAIT(from_ms(timeout, &ts), same_mask,
			  real.epoll_wait(epfd, events, cnt, timeout));
}

int shim_epoll_wait(int epfd, struct epoll_event *events, int cnt, int timeout)
{
	const _Atomic(struct fd_object *) *entry = fd_table_entry(epfd);

	CALL_ENTERED(epoll_wait);
	return UNLIKELY(fd_table_names(entry)) ?
		       mux_quick_epoll_wait(epfd, events, cnt, timeout, entry) :
		       epoll_wait_generally(epfd, events, cnt, timeout);
}

void mux_calls_load(void)
{
	mux_slow_epoll_wait = epoll_wait_generally;
}

int shim_epoll_pwait(int epfd, struct epoll_event *events, int cnt, int timeout,
		     const sigset_t *sigs)
{
	struct timespec ts;

	CALL_ENTERED(epoll_pwait);
	if (!is_mask_sound(sigs))
		return real.epoll_pwait(epfd, events, cnt, timeout, sigs);
	return EPOLL_WAIT(from_ms(timeout, &ts), sigs,
			  real.epoll_pwait(epfd, events, cnt, timeout, sigs));
}

int shim_epoll_pwait2(int epfd, struct epoll_event *events, int cnt,
		      const struct timespec *timeout, const sigset_t *sigs)
{
	CALL_ENTERED(epoll_pwait2);
	if (!user_is_timeout(timeout) || !is_mask_sound(sigs))
		return real.epoll_pwait2(epfd, events, cnt, timeout, sigs);
	return EPOLL_WAIT(timeout, sigs,
			  real.epoll_pwait2(epfd, events, cnt, timeout, sigs));
}
