/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll that have something of ours in them. Such a set is the kernel's as
 * well: whatever the program adds is a member of the kernel's set, with the program's
 * events and data word. So a child, or whoever gets the set, finds it as the program
 * made it, and the kernel tells what the twins have. Beside it stands our set. It has
 * an item for each socket of ours, and for each set that has such sockets itself, and
 * it knows what our queues have. An item follows Linux's rules by its own events:
 * what is reported once, what is disarmed, who is woken.
 *
 * Locks. `changes` is held while members change, over the kernel's change too, and
 * when an item is looked up. A socket's item is on the list of the socket's endpoint,
 * under the lock of its stack; a set's item is on a list of that set, under a lock of
 * all nested sets. `lock` comes after these, and guards what an arrival changes.
 */
#ifndef IOMUX_EPOLL_SET_H
#define IOMUX_EPOLL_SET_H

#include <sys/epoll.h>

#include "base/hash_tab.h"
#include "fd/fd_table.h"
#include "iomux/mux_wait.h"
#include "net/net.h"

struct epoll_call;

/* A stack that can make a set ready, and by how many items. */
struct epoll_place {
	_Atomic(struct stack *) stack;
	unsigned live_cnt;
};

struct epoll_set {
	struct fd_object obj;
	/* The fd by which it was made known. It may be closed while duplicates live;
	 * epoll_set_fd() finds one that is not. Read by anybody, without a reference. */
	_Atomic int fd;
	/* The stacks of its sockets, and of those in sets inside. The first one stays
	 * for good; it is NULL until there is one. The others come and go, and leave
	 * empty places. Changed under the lock of nested sets, read by anybody. */
	struct epoll_place places[NET_STACKS_MAX];
	_Atomic unsigned place_cnt; /* behind that they are empty */
	/* counts the stacks that have come */
	_Atomic unsigned stacks_gen;
	/* How many items there are by which our queues can make it ready: those of
	 * sockets, and of sets that have such items, for each of their stacks. */
	_Atomic unsigned live_cnt;

	struct mutex changes;
	struct hash_tab by_key;
	struct hash_tab by_word;
	struct list items; /* all of them; those that leave, or have left, are last */

	struct spinlock lock;
	struct list ready; /* items that may be, the next to report first */
	struct list dead;  /* items whose member was closed */
	_Atomic bool has_dead;
	/* one-shot items that are disarmed here, but not in the kernel's set */
	struct list spent;
	_Atomic bool has_spent;
	/* items whose members have become the kernel's, or ours, which the kernel's set
	 * does not show yet; by the same links. The flags say that there are some, and
	 * the same of sets inside, whose own flags say which. */
	struct list left;
	_Atomic bool has_left;
	_Atomic bool has_left_inside;
	struct list sleepers; /* calls that may be woken, who waits longest first */
	/* what has come and is left to calls that wait, but do not sleep */
	unsigned left_cnt;
	/* the sleeper that hears of the kernel's events, for all of them */
	struct epoll_call *kernels_watcher;
	/* threads that look right now; calls in `sleepers`; calls that wait, and have
	 * not been woken */
	_Atomic unsigned looking_cnt;
	/* threads that make the kernel's calls on it by its number */
	_Atomic unsigned user_cnt;
	/* calls that wait, woken or not; a number of ours for them, once the program has
	 * closed its last one, else -1 */
	_Atomic unsigned caller_cnt;
	_Atomic int kept_fd;
	_Atomic unsigned sleeper_cnt;
	_Atomic unsigned waiting_cnt;
	_Atomic uint64_t looks;
	/* counts what changes in the kernel's set of members that have items; written with
	 * `changes` */
	_Atomic uint32_t change_cnt;

	/* the items of this set in others, and polls; the lock of nested sets */
	struct list outers; /* epoll_watch */
	_Atomic bool has_outers;

	/* how many further looks do without the kernel; any thread */
	_Atomic unsigned skips_left;
	/* counts the looks with room for one event; our events and the kernel's
	 * take turns */
	_Atomic unsigned turns;
	/* epoll_wake.c */
	_Atomic int wake_fd;
	_Atomic uint64_t wake_until_ns;
	/* NULL: it has not been alive yet */
	struct stats_mux *stats;
	/* in the child of a fork: who stands in its place */
	struct fd_object *heir;
};

static inline struct epoll_set *epoll_set_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct epoll_set, obj);
}

static inline int epoll_set_number(const struct epoll_set *set)
{
	return atomic_load_explicit(&set->fd, memory_order_relaxed);
}

/* NULL: it has never had anything of ours. */
static inline struct stack *epoll_set_stack(const struct epoll_set *set)
{
	return atomic_load(&set->places[0].stack);
}

/* The same of all of them, NULL for an empty place. */
static inline unsigned epoll_set_place_cnt(const struct epoll_set *set)
{
	return atomic_load_explicit(&set->place_cnt, memory_order_acquire);
}

static inline struct stack *epoll_set_stack_at(const struct epoll_set *set,
					       unsigned i)
{
	return atomic_load_explicit(&set->places[i].stack, memory_order_acquire);
}

extern HIDDEN struct fd_ops epoll_set_ops;

static inline bool epoll_is_set(const struct fd_object *obj)
{
	return obj->ops == &epoll_set_ops;
}

/* In the child of a fork: if the set is its parent's as well, the kernel has all that is
 * in it from now on; or only where the child is about to change it (kin.h). Inside the
 * bracket. */
void epoll_set_ask_parent(int epfd, bool is_change);
/* The set that epfd names, which becomes known if it is not yet: with a reference, or
 * NULL without memory. */
struct epoll_set *epoll_set_make(int epfd) MUST_CHECK;
/* The set that this fd names, if its number is noted (mux.h), as an object with a
 * reference: it is known from then on. NULL: it is none. */
struct fd_object *epoll_noted_set(int fd) MUST_CHECK;
static inline bool epoll_set_has_number(const struct epoll_set *set, int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_load(entry) == &set->obj;
}

/* An fd that names it, or -1. */
int epoll_set_fd(const struct epoll_set *set);
/* The same for calls of the kernel: `fd`, if that names it, or ours that is kept for calls that
 * wait. Until the end of the use the last close waits, so that the number is not another set's
 * meanwhile. With -1 there is nothing to be ended. Of two numbers, one may be another file's
 * all the same. */
int epoll_set_begin_use(struct epoll_set *set, int fd) MUST_CHECK;
static inline void epoll_set_end_use(struct epoll_set *set, int fd)
{
	if (LIKELY(fd >= 0))
		atomic_fetch_sub(&set->user_cnt, 1);
}
/* The set that epfd names, with a reference. NULL: none that we know. */
struct epoll_set *epoll_set_get(int epfd) MUST_CHECK;
void epoll_sets_load(void);
/* The kernel's sets have what is the kernel's after this: before a fork. */
void epoll_sets_show_left(void);
/* This process ends, and children have its sets. */
void epoll_sets_leave(void);
void epoll_sets_forked(void);

#endif
