/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting inside an op. The bracket is left for the wait, so handlers of the
 * program run. They may call us on the same socket, or jump out and never come
 * back. The reference that the waiting call holds is recorded, so that the thread's
 * next call gives it back after such a jump.
 */
#ifndef FD_FD_WAIT_H
#define FD_FD_WAIT_H

#include "fd/fd_ops.h"
#include "os/signals.h"
#include "os/thread.h"

/* How a wait gives up what it holds besides the object. */
struct fd_wait_hold {
	/* A handler of the program is about to run in the sleeping thread, and
	 * may never return: others must be able to go on without it. Called
	 * inside the bracket, possibly more than once. */
	void (*handler_runs)(void *arg);
	/* The handler did not return; nothing of the wait may be left. Inside the
	 * bracket. */
	void (*abandoned)(void *arg);
};

/*
 * Sleeps until an event on `fds`, a handler that interrupts, or the timeout (NULL: for
 * ever). Returns what signals_sleep() returns. The wait holds a reference to `obj`
 * (NULL: to none) and, with `hold`, something that `arg` stands for. -ECANCELED: the
 * wait looked abandoned meanwhile, and what it held was given back. The caller must not
 * touch `obj` and `arg` any more, and returns FD_ABANDONED.
 */
int fd_wait(struct fd_object *obj, struct pollfd *fds, nfds_t cnt,
	    const struct timespec *timeout, const struct signals_mark *mark,
	    bool may_restart, const struct fd_wait_hold *hold, void *arg);

/* What an op returns after -ECANCELED: the wrapper starts the call again. */
#define FD_ABANDONED (LONG_MIN + 1)

/* Whether it does not, once: this is the child of a fork by a handler that ends calls with
 * EINTR. */
bool fd_wait_was_interrupted(void);

/* The same for an op that had done something before its wait was abandoned, `done` bytes or
 * messages, which the program must hear of: returns what the op returns. `obj` may be gone,
 * but it is an object still. */
long fd_wait_abandoned(struct fd_object *obj, long done);

/* Gives back the references of waits that were jumped out of. At the start of
 * each call, outside or inside the bracket. */
void fd_wait_collect(void);

/* In the child of a fork: what its waits held is the parent's. A wait that a
 * handler forked from returns as if it had been abandoned. */
void fd_wait_forked(void);

/* Whether this thread has waits on record, that is, fd_wait_collect() has
 * something to look at. */
static inline bool fd_wait_is_pending(void)
{
	return os_thread.wait_cnt > 0;
}

#endif
