/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members of a set: an item for each that is a socket of ours or a set. All of this
 * is called with `changes`, or when nobody refers to the set any more.
 */
#ifndef IOMUX_EPOLL_ITEM_H
#define IOMUX_EPOLL_ITEM_H

#include "iomux/epoll_nest.h"

/* What is told though nobody has asked for it. */
enum { EPOLL_ALWAYS = EPOLLERR | EPOLLHUP };
/* The names of EPOLLOUT. */
enum { EPOLL_OUT_NAMES = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND };

struct epoll_item {
	/* -- fixed -- */
	struct epoll_set *set;
	/* The member, and the number that it was added by. Without a reference,
	 * since the item dies when the member is closed. */
	struct fd_object *obj;
	int fd;
	struct endpoint *end; /* NULL: the member is a set */
	struct stack *stack;  /* of the endpoint */
	/* what its word says changes (fd_ops.word) */
	bool has_word;

	/* -- `changes` -- */
	struct hash_link by_key;
	/* of all with the same data word one is in the table, and the others are in a
	 * ring with it */
	struct hash_link by_word;
	struct list same_word;
	bool is_by_word;
	struct list in_set;
	/* It has been taken to the kernel, or is about to be. */
	bool is_leaving;
	/* The kernel's set is without the member (epoll_items_hide_spent, or because its
	 * twin would mislead). An arrival looks at it, too. */
	_Atomic bool is_hidden;
	/* the count of its set (change_cnt) when the kernel's side of it has changed last */
	uint32_t changed_at;

	/* -- the lock of the list that `watch` is on; changed with set->lock, too -- */
	union {
		struct watch watch;
		struct epoll_watch outer; /* of a set */
	};
	struct epoll_event event;
	_Atomic bool is_dead;

	/* -- set->lock -- */
	struct list in_ready;
	struct list in_spent;
	/* what it may report: the events that were given, and EPOLL_ALWAYS; 0: EPOLLONESHOT,
	 * and it has reported since */
	uint32_t wanted;
	/* the kernel has not */
	bool is_armed_in_kernel;
	/* EPOLLET: the kernel will say that the twin can be written to, since it was
	 * added or modified; the same, and we have said so already */
	bool is_out_due;
	bool is_out_said;
	/* the latest of the looks that have reported it; while that goes on: and where */
	uint64_t look;
	struct epoll_event *place;
};
_Static_assert(sizeof(struct epoll_item) <= 248, "four lines of cache with its pool's link");

static inline struct epoll_item *epoll_item_of_outer(struct epoll_watch *watch)
{
	return CONTAINER_OF(watch, struct epoll_item, outer);
}

static inline struct epoll_item *epoll_item_of(struct watch *watch)
{
	return CONTAINER_OF(watch, struct epoll_item, watch);
}

/* The kernel's set has got the member, has lost it, or has it with other events. With
 * `changes`, after that: who has asked the kernel before the count was raised may have an event
 * that the kernel told before. */
static inline void epoll_item_note_change(struct epoll_item *item)
{
	item->changed_at = atomic_fetch_add(&item->set->change_cnt, 1) + 1;
}

/* The item of this member, or NULL. */
struct epoll_item *epoll_item_find(struct epoll_set *set,
				   const struct fd_object *obj, int fd);
/* Adds a member that the kernel's set has, or, with `is_hidden`, is not to have: arrivals
 * find it so from the first one on. -ENOMEM. A member that another thread has
 * closed meanwhile is not added: its last close has looked for items, or will. */
int epoll_item_add(struct epoll_set *set, struct fd_object *obj, int fd,
		   struct endpoint *end, struct stack *stack,
		   const struct epoll_event *event, bool is_hidden) MUST_CHECK;
/* `is_armed`: false for one that has reported what EPOLLONESHOT lets it report. Returns
 * whether it was before. */
bool epoll_item_modify(struct epoll_item *item, const struct epoll_event *event,
		       bool is_armed);
void epoll_item_remove(struct epoll_item *item);
/* All of them, when nobody refers to the set any more. */
void epoll_items_remove_all(struct epoll_set *set);
/* Whether the number by which it was added is still the member's; a duplicate may keep it
 * alive. */
bool epoll_item_has_number(const struct epoll_item *item);
/* The member with a reference and a number that it has now, or NULL: it has none. As under
 * Linux, it stays a member as long as a duplicate lives. With `changes`. */
struct fd_object *epoll_item_get(const struct epoll_item *item, int *fd_out) MUST_CHECK;
/* The first item with this data word, or the next one, or NULL. */
struct epoll_item *epoll_item_by_word(struct epoll_set *set, uint64_t word);
struct epoll_item *epoll_item_next_by_word(struct epoll_item *item);
/* The kernel has told of these events of the item's twin: our thread may not have heard of
 * them yet, and the next receive shall find them. By the event, any item with its data word may
 * be meant, and a program that uses one word for several looks at all of them. Under
 * set->lock. */
void epoll_item_tell_twins(struct epoll_item *item, uint32_t events);
/*
 * A one-shot item that our queues have disarmed is still armed in the kernel's set, so
 * that its twin can make that set readable. Our own looks do not mind: the kernel disarms
 * it, too, when it reports it. But who sees the set from outside, by poll or as a member
 * of another set, would be misled. For him the kernel's set is without the member until it
 * is armed again, or without the events of a member that is a set. `epfd` is an fd of the set. Takes `changes`. A child that has the set as
 * well cannot modify the member meanwhile.
 */
void epoll_items_hide_spent_slow(struct epoll_set *set, int epfd);
static inline void epoll_items_hide_spent(struct epoll_set *set, int epfd)
{
	if (UNLIKELY(atomic_load_explicit(&set->has_spent,
					  memory_order_relaxed)))
		epoll_items_hide_spent_slow(set, epfd);
}

/* Puts members into the kernel's set that have become its own, and takes those out that
 * have become ours, also in sets inside. Takes `changes`, of one set at a time. */
void epoll_items_show_left_slow(struct epoll_set *set, int epfd);
static inline void epoll_items_show_left(struct epoll_set *set, int epfd)
{
	if (UNLIKELY(atomic_load_explicit(&set->has_left, memory_order_relaxed)))
		epoll_items_show_left_slow(set, epfd);
}

/* The twin of the member must not be in the kernel's set. */
static inline bool epoll_item_is_alone(const struct epoll_item *item)
{
	return UNLIKELY(item->has_word) &&
	       item->obj->ops->word(item->obj) == FD_WORD_ALL;
}

/* With `changes`: takes the member out of the kernel's set, or puts it back there as it
 * was, if it is not so already. The latter returns what epoll_ctl does, as a negative
 * errno. */
void epoll_item_hide(struct epoll_item *item, int epfd);
long epoll_item_show(struct epoll_item *item, int epfd) MUST_CHECK;

/* Frees the items whose members were closed. */
void epoll_items_reap_slow(struct epoll_set *set);
static inline void epoll_items_reap(struct epoll_set *set)
{
	if (UNLIKELY(atomic_load_explicit(&set->has_dead, memory_order_relaxed)))
		epoll_items_reap_slow(set);
}
/* The set that is the member is closed. Under the lock of nested sets. */
void epoll_item_closed_nested(struct epoll_item *item);
/* In the child of a fork. */
void epoll_items_forked(void);

#endif
