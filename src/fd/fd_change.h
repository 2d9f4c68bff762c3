/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A number that is about to be another file: dup2() over an object. The kernel's table changes
 * in one step, and ours a moment before. A call that comes in between neither finds the old
 * object without its end nor the bare twin: it waits for the new file.
 */
#ifndef FD_FD_CHANGE_H
#define FD_FD_CHANGE_H

#include "base/compiler.h"

struct fd_change;
struct fd_object;

/* Calls on `fd`, which names `old`, wait from now on, no visit of it goes on, and its number
 * is dropped. Other changes and forks wait, too. NULL: it names something else by now, or
 * there is no memory, and nothing has changed. Without a lock. */
struct fd_change *fd_change_begin(int fd, struct fd_object *old) MUST_CHECK;
/* They go on with what the number is now: `obj`, or, where that is NULL, a file of the
 * kernel's. */
void fd_change_end(struct fd_change *change, int fd, struct fd_object *obj);

/* Returns when the change is over, and gives the reference back. */
void fd_change_await(struct fd_object *change);

/* Around a fork. The child calls the last one in place of the second. */
void fd_change_before_fork(void);
void fd_change_after_fork(void);
void fd_change_forked(void);

#endif
