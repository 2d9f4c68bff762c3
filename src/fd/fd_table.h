/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which fds name objects of ours. The table is sparse: an empty one is one NULL,
 * and a process with an fd limit of a billion only pays for the pages it uses.
 * Look-ups take no lock and count a reference. A change is a single atomic
 * exchange, so other threads may reuse a number the moment the kernel gives it out.
 *
 * At a close, the entry is removed first and then the kernel's fd, so that whoever
 * gets the number next finds it empty. Every call of calls.def that makes an fd forgets
 * what was left at its number by a close that we could not see.
 */
#ifndef FD_FD_TABLE_H
#define FD_FD_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fd/fd_ops.h"

/* Linux never gives out an fd as high as this. */
#define FD_TABLE_LIMIT (1 << 30)

enum { FD_LEAF_BITS = 12, FD_LEAF_SIZE = 1 << FD_LEAF_BITS };

/* Entries on a page of memory. */
enum { FD_PAGE_SIZE = 512 };

struct fd_leaf {
	_Atomic(struct fd_object *) entries[FD_LEAF_SIZE];
};

/* Inline for the pass-through of fds that are not ours; everybody else uses the
 * functions below. */
struct fd_root {
	_Atomic(struct fd_leaf *) leaves[FD_TABLE_LIMIT / FD_LEAF_SIZE];
	/* A bit for each page of entries that was ever used, for who walks. */
	_Atomic uint64_t used[FD_TABLE_LIMIT / FD_PAGE_SIZE / 64];
};

extern HIDDEN _Atomic(struct fd_root *) fd_table_root;
/* Most programs need no other. */
extern HIDDEN struct fd_leaf fd_table_first;

/* The entry itself, or NULL where nothing can be. */
static inline _Atomic(struct fd_object *) *fd_table_entry(int fd)
{
	struct fd_root *root;
	struct fd_leaf *leaf;

	if (LIKELY((unsigned)fd < FD_LEAF_SIZE))
		return &fd_table_first.entries[fd];
	/* acquire pairs with the release stores in make_entry */
	root = atomic_load_explicit(&fd_table_root, memory_order_acquire);
	if (!root || (unsigned)fd >= FD_TABLE_LIMIT)
		return NULL;
	leaf = atomic_load_explicit(&root->leaves[(unsigned)fd >> FD_LEAF_BITS],
				    memory_order_acquire);
	return leaf ? &leaf->entries[fd & (FD_LEAF_SIZE - 1)] : NULL;
}

static inline bool fd_table_names(const _Atomic(struct fd_object *) *entry)
{
	return entry && atomic_load_explicit(entry, memory_order_relaxed);
}

/* Whether the fd names an object at this moment. Costs a few loads; for a
 * program without objects, one. */
static inline bool fd_table_has(int fd)
{
	return fd_table_names(fd_table_entry(fd));
}

/* Whether it names something that looks closed to the program. Without a reference, which after
 * a fork would cost a page of memory: what was an object stays one for ever. */
static inline bool fd_table_is_internal(int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	const struct fd_object *obj =
		entry ? atomic_load_explicit(entry, memory_order_acquire) : NULL;

	return obj && obj->ops->is_internal;
}

/* Adds a reference; the caller must have one. */
struct fd_object *fd_object_hold(struct fd_object *obj);

/* Gives a reference back; the last one releases the object. NULL is fine. */
static inline void fd_object_put(struct fd_object *obj)
{
	if (!obj)
		return;
	TSAN_RELEASED(obj);
	/* acq_rel: whoever releases sees what all others did */
	if (UNLIKELY(atomic_fetch_sub_explicit(&obj->refs, 1,
					       memory_order_acq_rel) == 1)) {
		TSAN_ACQUIRED(obj);
		obj->ops->release(obj);
	}
}

/* Takes a reference, unless the object is gone. Its memory is an object's for ever,
 * so looking at a dead one is harmless. */
static inline bool fd_object_try_hold(struct fd_object *obj)
{
	int refs = atomic_load_explicit(&obj->refs, memory_order_relaxed);

	while (LIKELY(refs > 0))
		if (LIKELY(atomic_compare_exchange_weak_explicit(
			    &obj->refs, &refs, refs + 1, memory_order_acquire,
			    memory_order_relaxed))) {
			TSAN_ACQUIRED(obj);
			return true;
		}
	return false;
}

/* What an entry names, with a reference, or NULL. */
static inline struct fd_object *
fd_table_get_at(const _Atomic(struct fd_object *) *entry)
{
	struct fd_object *obj;

	while ((obj = atomic_load_explicit(entry, memory_order_acquire))) {
		if (UNLIKELY(!fd_object_try_hold(obj)))
			continue; /* being replaced */
		if (LIKELY(atomic_load_explicit(
				   entry, memory_order_relaxed) == obj))
			return obj;
		fd_object_put(obj);
	}
	return NULL;
}

/* Its last number is closed, or will be soon, and its close waits for the peer. */
static inline bool fd_object_lingers(const struct fd_object *obj)
{
	return atomic_load_explicit(&obj->lingers, memory_order_relaxed);
}

/* Gives the reference back, and waits before that, if it lingers. A handler may jump out of
 * this. NULL is fine. */
void fd_object_put_lingering(struct fd_object *obj);

/* What an entry names when no change of the number is under way any more (fd_change.h). */
struct fd_object *
fd_table_get_settled(const _Atomic(struct fd_object *) *entry) MUST_CHECK;

/* The same for a number. */
struct fd_object *fd_table_get(int fd) MUST_CHECK;

/* Begins the life of an object: one reference, the caller's, and no fd. */
void fd_object_init(struct fd_object *obj, const struct fd_ops *ops,
		    ino_t inode);

/* Counts an fd of the object that is not in the table (fd_flight.h), and gives
 * it up again: `fd`, or -1 for one that has no number. The last one closes the
 * object. */
void fd_object_add_fd(struct fd_object *obj);
void fd_object_drop_fd(struct fd_object *obj, int fd);

/*
 * Lets `fd` name `obj`, which gets a reference for it. What the number named
 * before is dropped. -ENOMEM, -EBADF for a number that no fd can have.
 */
int fd_table_install(int fd, struct fd_object *obj) MUST_CHECK;

/* The same, but what the number named before is the caller's: if there is something,
 * fd_object_drop_fd() of it is due, as soon as no lock is held. */
int fd_table_swap(int fd, struct fd_object *obj,
		  struct fd_object **old_out) MUST_CHECK;

/* Does it for a number that names `old` (NULL: nothing), if no other thread has been faster;
 * else -EEXIST, and nothing changes. fd_object_drop_fd() of the old one is due. */
int fd_table_exchange(int fd, struct fd_object *old, struct fd_object *obj) MUST_CHECK;

/* Lets `fd` name nothing. False when it named nothing already. */
bool fd_table_remove(int fd);

/* Objects whose close waits for the peer, when their numbers are closed. What is more lingers
 * before. */
struct fd_lingering {
	unsigned cnt;
	struct fd_object *objs[32];
};

/* Does the same for first..last, both included, but internal fds stay. */
void fd_table_remove_range(unsigned first, unsigned last,
			   struct fd_lingering *lingering);
void fd_table_end_lingering(struct fd_lingering *lingering);

/* Lets `fd` name nothing, if it names `obj`: then fd_object_drop_fd() of it is due. */
bool fd_table_take(int fd, struct fd_object *obj) MUST_CHECK;

/* The first fd from `first` on that names an object, or -1. */
int fd_table_next(unsigned first);

/* The first internal fd in first..last, or -1. */
int fd_table_next_internal(unsigned first, unsigned last);

/* Lets it name nothing. Enters the bracket if need be, and leaves errno as it is. */
COLD void fd_table_forget_named(int fd);

/* A call has returned a new fd that the kernel made: it is not ours. Returns
 * fd, whatever it is. */
static inline int fd_table_forget(int fd)
{
	if (UNLIKELY(fd_table_has(fd)))
		fd_table_forget_named(fd);
	return fd;
}

/* From now on no fd of the program names anything, ever: wrappers need not make a call
 * of their own to find out. */
void fd_table_close(void);
bool fd_table_is_closed(void);

/* The live object whose twin has this inode, with a reference, or NULL. */
struct fd_object *fd_table_find_inode(ino_t inode) MUST_CHECK;

/* In the child of a fork: no fd names anything of the parent's any more, but heirs
 * perhaps, and each object hears of it. */
void fd_table_forked(void);

#endif
