/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits: the library looks at objects by itself, now and then. The visitor has a
 * reference, and a number that names the object. A close of that number waits for the
 * visit to end, so that a socket is gone when its close has returned, and that the number
 * is not another file's while the visitor uses it.
 */
#ifndef FD_FD_VISIT_H
#define FD_FD_VISIT_H

#include "fd/fd_ops.h"

/* Calls `each` for every object with these ops (NULL: all but internal fds, which nobody
 * visits), with a reference, once for each of its fds. `each` must not wait for a close.
 * Returns whether any call returned true. Inside the bracket, and without a lock that is
 * taken on the way to a close. */
bool fd_visit(const struct fd_ops *ops,
	      bool (*each)(struct fd_object *obj, int fd));

/* The same for what this fd names, if it is `obj`, of which the caller has a reference;
 * NULL: whatever it is. */
bool fd_visit_at(int fd, const struct fd_object *obj,
		 bool (*each)(struct fd_object *obj, int fd));

/* The table does not name an object by this fd any more, which is still open: returns when
 * no other thread visits one by it. */
void fd_visit_await_end(int fd);

/* In the child of a fork. */
void fd_visit_forked(void);

#endif
