/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's own fds. They have higher numbers than programs use, look closed to
 * the program whatever it tries, and move away when it asks for their number with
 * dup2. The program may close one without our seeing it (by a raw system call). So
 * before the owner uses such an fd outside the data path, it checks it with
 * fd_internal_is_intact().
 */
#ifndef FD_FD_INTERNAL_H
#define FD_FD_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"

struct fd_object;

/*
 * Moves `fd` to a high number, with FD_CLOEXEC, stores it in `*slot` and keeps
 * `*slot` true when it moves again. `fd` itself is closed, unless there is no other
 * number for it. Negative errno: `fd` is still open, `*slot` untouched.
 */
int fd_internal_adopt(int fd, _Atomic int *slot) MUST_CHECK;

/* Does the same with a duplicate: `fd` stays as it is. -EEXIST: the slot names one of ours,
 * which stays; who reads the slot alone cannot know (fd_internal_close_unused). */
int fd_internal_copy(int fd, _Atomic int *slot) MUST_CHECK;

/* Closes what `slot` names, if it is still ours, and stores -1. */
void fd_internal_close(_Atomic int *slot);

/* The same, unless `*user_cnt` counts somebody; false: it does. Users are counted before they
 * read the slot, which may say -1 for a moment to who begins meanwhile. */
bool fd_internal_close_unused(_Atomic int *slot, const _Atomic int *user_cnt);

/* Whether `*slot` is still the file that was adopted. */
bool fd_internal_is_intact(_Atomic int *slot);

/*
 * The program's dup2() onto a number, from one of these calls to the other. An owner who has
 * read the slot before, and enters the kernel after, uses the program's file once. To wait for
 * such owners would take a count around each use, of which many sleep: that is too much for
 * what takes a dup2() onto one of our numbers between two instructions.
 */
struct fd_internal_way {
	bool is_held;
	/* what the number to which ours has moved named before */
	struct fd_object *stale;
	int stale_fd;
};

/*
 * The program is about to replace `fd` by another file: an internal fd of that number
 * moves away. Unless the number is open for the program, no fd becomes internal or is
 * closed by us until the end of the way, so that the number is not ours by then. -EMFILE
 * and the like when ours cannot move: then there is no way to be ended. Without a lock; in
 * between, nothing is done but the kernel's call.
 */
int fd_internal_make_way(int fd, struct fd_internal_way *way) MUST_CHECK;
void fd_internal_end_way(struct fd_internal_way *way);

/*
 * close_range() of the program, around our fds, which the table has been told of: returns
 * what close_range() does. Where ours are, no fd becomes internal or is closed by us
 * meanwhile: the kernel would close one that the table does not have yet. Without a lock.
 */
int fd_internal_close_range(unsigned first, unsigned last, int flags) MUST_CHECK;

/* In the child of a fork, before anything else of the table: all internal fds but those that
 * are kept are closed, their slots hold -1. */
void fd_internal_forked(void);
/* Before that: what `slot` names stays open, and is an fd like any other afterwards. It needs
 * no other number, of which there may be none. -1: nothing of ours is there. */
int fd_internal_keep(const _Atomic int *slot) MUST_CHECK;

#endif
