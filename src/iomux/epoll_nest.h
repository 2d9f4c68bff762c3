/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets in sets. A set has something of ours as long as an item in it is alive: that of a
 * socket, and that of a set that has something of ours.
 */
#ifndef IOMUX_EPOLL_NEST_H
#define IOMUX_EPOLL_NEST_H

#include "iomux/epoll_set.h"

/* Guards the `outers` of all sets, and all live_cnt. */
extern HIDDEN struct spinlock epoll_nesting;

/* Somebody around a set: an item of another set, or a poll. Linked under that lock. */
struct epoll_watch {
	struct list link;
	/* of the poll; NULL: it is an item's */
	struct waiter *waiter;
	/* the last walk that came by (epoll_nest_wake_for_stack) */
	uint64_t walk;
};

/* The set has one more item that this stack makes ready, or one less. The sets around it
 * follow. The former returns whether the stack is new to the set. */
bool epoll_nest_add_live(struct epoll_set *set, struct stack *stack)
	REQUIRES(epoll_nesting);
void epoll_nest_drop_live(struct epoll_set *set, struct stack *stack)
	REQUIRES(epoll_nesting);
/* The same for all stacks of a set that has become a member, or is one no more. */
bool epoll_nest_add_inner(struct epoll_set *set, const struct epoll_set *inner)
	REQUIRES(epoll_nesting);
void epoll_nest_drop_inner(struct epoll_set *set, const struct epoll_set *inner)
	REQUIRES(epoll_nesting);
/* A stack was new to the set: who sleeps for it, or for sets around it, has to sleep on
 * that stack as well. `is_first`: nothing of ours was in it before. Called without a
 * lock but `changes`. */
void epoll_nest_wake_for_stack(struct epoll_set *set, bool is_first);

/* A stack by which the set may be ready; NULL: there is none. */
struct stack *epoll_nest_live_stack(struct epoll_set *set);

/* Whether `set` is in `outer`, or in a set that is. */
bool epoll_nest_is_within(const struct epoll_set *set,
			  const struct epoll_set *outer)
	REQUIRES(epoll_nesting);

/* Something has come to the set, of which those around it hear. Called under the lock of
 * this stack, too. */
void epoll_nest_fire_outers(struct epoll_set *set, struct stack *stack)
	REQUIRES(epoll_nesting);

/* Members of the set have become the kernel's, or ours: who looks at a set around it lets
 * the kernel's set follow, too. */
void epoll_nest_note_left(struct epoll_set *set) REQUIRES(epoll_nesting);

/* The kernel is about to tell those around it itself; polls hear by the kernel. */
void epoll_nest_foretell_outers(struct epoll_set *set) REQUIRES(epoll_nesting);

/* Whether a set around it, or one around that, tells of it once only (EPOLLET): then who is told
 * has to find all there is, the kernel's as well. */
bool epoll_nest_tells_once(const struct epoll_set *set);

/* A poll waits for the set as a whole. False: a stack has come to the set since it had
 * so many (stacks_gen). */
bool epoll_set_watch(struct epoll_set *set, struct epoll_watch *watch,
		     unsigned gen);
void epoll_set_unwatch(struct epoll_watch *watch);

#endif
