/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits: the library looks at objects by itself, now and then. The visitor has a
 * reference. The close of a kind that is visited waits for the visit to end, so
 * that a socket is gone when its close has returned.
 */
#ifndef FD_FD_VISIT_H
#define FD_FD_VISIT_H

#include "fd/fd_ops.h"

/* Calls `each` for every object with these ops (NULL: with any), with a reference,
 * once for each of its fds. `each` must not wait for a close. Returns whether any
 * call returned true. Inside the bracket, and without a lock that is taken on the
 * way to a close. */
bool fd_visit(const struct fd_ops *ops,
	      bool (*each)(struct fd_object *obj, int fd));

/* The same for what this fd names, if it is `obj`, of which the caller has a reference;
 * NULL: whatever it is. */
bool fd_visit_at(int fd, const struct fd_object *obj,
		 bool (*each)(struct fd_object *obj, int fd));

/* In last_close: returns when nobody visits the object any more. */
void fd_visit_await_end(const struct fd_object *obj);

/* In the child of a fork. */
void fd_visit_forked(void);

#endif
