/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bracket for quick ops (fd_ops.h), step by step, for functions in which
 * whatever is called is called last, so that they save no register:
 *
 *   is the thread odd?                     fd_slow_calls
 *   enter; hold it; is it mine?            fd_quick_undo_recv(...)
 *   do it
 *   fd_quick_end, fd_quick_end_again       the call's result, errno included
 */
#ifndef FD_FD_QUICK_H
#define FD_FD_QUICK_H

#include <errno.h>

#include "fd/fd_table.h"
#include "os/thread.h"

/* Whether the call comes from inside the library, or after a handler may have
 * jumped out of another one. */
static ALWAYS_INLINE bool fd_quick_is_odd(void)
{
	return UNLIKELY(os_thread.is_odd);
}

/* Called with a reference on the object that the entry named: whether the entry
 * still names it, and it is of the right kind. */
static ALWAYS_INLINE bool
fd_quick_is_mine(const struct fd_object *obj, const struct fd_ops *ops,
		 const _Atomic(struct fd_object *) *entry)
{
	return LIKELY(atomic_load_explicit(entry, memory_order_relaxed) ==
			      obj &&
		      obj->ops == ops);
}

/* Gives the reference back, if there is one, and leaves the bracket. */
COLD ssize_t fd_quick_undo_recv(int fd, void *buf, size_t len, int flags,
				struct fd_object *obj);
COLD ssize_t fd_quick_undo_send(int fd, const void *buf, size_t len, int flags,
				struct fd_object *obj);
COLD ssize_t fd_quick_undo_sendto(int fd, const void *buf, size_t len,
				  int flags, const struct sockaddr *addr,
				  socklen_t addr_len, struct fd_object *obj);

/* The rare cases of the functions below. */
COLD ssize_t fd_quick_release(struct fd_object *obj, ssize_t n);
COLD ssize_t fd_quick_deliver(ssize_t n);
/* -1, with errno EAGAIN; from then on it is known where this thread has its errno. */
COLD ssize_t fd_quick_again(void);

/* Gives the reference back and leaves, in a function that returns `n`; -1 stands
 * for EAGAIN. */
#define FD_QUICK_LEAVE(obj, n)                                               \
	do {                                                                 \
		/* acq_rel: whoever releases sees what all others did */     \
		if (UNLIKELY(atomic_fetch_sub_explicit(                      \
				     &(obj)->refs, 1,                        \
				     memory_order_acq_rel) == 1))            \
			return fd_quick_release(obj, n);                     \
		atomic_signal_fence(memory_order_seq_cst);                   \
		os_thread.depth = 0;                                         \
		if (UNLIKELY(os_thread.has_deferred))                        \
			return fd_quick_deliver(n);                          \
	} while (0)

/* The call has done `n` bytes. */
static ALWAYS_INLINE ssize_t fd_quick_end(struct fd_object *obj, ssize_t n)
{
	FD_QUICK_LEAVE(obj, n);
	return n;
}

/* There was nothing to do. */
static ALWAYS_INLINE ssize_t fd_quick_end_again(struct fd_object *obj)
{
	FD_QUICK_LEAVE(obj, -1);
	if (UNLIKELY(!os_thread.errno_at))
		return fd_quick_again();
	*os_thread.errno_at = EAGAIN;
	return -1;
}

#endif
