/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits: the library looks at objects by itself, now and then. The visitor has a
 * reference, and a number that names the object. A close of that number waits for the
 * visit to end, so that a socket is gone when its close has returned, and that the number
 * is not another file's while the visitor uses it.
 */
#ifndef FD_FD_VISIT_H
#define FD_FD_VISIT_H

#include "base/list.h"
#include "fd/fd_ops.h"
#include "os/thread.h"

/* A visit that goes on. It lies in the frame of its visitor, who is inside the bracket and
 * so takes it away in any case. */
struct fd_visit {
	struct list link;
	int fd;
	const struct fd_object *obj;
	/* whose it is */
	const struct os_thread *visitor;
};

/* Calls `each` for every object with these ops (NULL: all but internal fds, which nobody
 * visits), with a reference, once for each of its fds. `each` must not wait for a close.
 * Returns whether any call returned true. Inside the bracket; it takes no
 * lock that a close holds while it waits for visits. */
bool fd_visit(const struct fd_ops *ops,
	      bool (*each)(struct fd_object *obj, int fd));

/* The same for what this fd names, if it is `obj`, of which the caller has a reference;
 * NULL: whatever it is. */
bool fd_visit_at(int fd, const struct fd_object *obj,
		 bool (*each)(struct fd_object *obj, int fd));

/* The same as two calls, around what the visitor does, for one who has a reference. False: the
 * fd does not name the object any more, and there is no visit. Within a visit of the caller's
 * own it does: a close has to wait for that. */
bool fd_visit_begin(struct fd_visit *visit, int fd, const struct fd_object *obj) MUST_CHECK;
void fd_visit_end(struct fd_visit *visit);

/* The table does not name an object by this fd any more, which is still open: returns when
 * no other thread visits one by it. */
void fd_visit_await_end(int fd);

/* In the child of a fork. */
void fd_visit_forked(void);

#endif
