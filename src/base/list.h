/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doubly linked lists whose links live inside the elements. A list is a ring
 * through its head, so no operation needs a test for the ends. No locking: the
 * owner of the list says which lock protects it.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Both the head of a list and the link inside each element. */
struct list {
	struct list *next;
	struct list *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

static inline void list_init(struct list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

/* Whether an element that was initialised or removed is on any list. */
static inline bool list_is_linked(const struct list *link)
{
	return link->next != link;
}

static inline void list_insert_after(struct list *where, struct list *link)
{
	link->next = where->next;
	link->prev = where;
	where->next->prev = link;
	where->next = link;
}

static inline void list_push_front(struct list *head, struct list *link)
{
	list_insert_after(head, link);
}

static inline void list_push_back(struct list *head, struct list *link)
{
	struct list *last = head->prev;

	link->next = head;
	link->prev = last;
	last->next = link;
	head->prev = link;
}

/* Leaves `link` initialised, so that removing it again is harmless. */
static inline void list_remove(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* Moves all elements of `from` to the end of `to`; `from` is empty then. */
static inline void list_splice_back(struct list *to, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = to->prev;
	from->prev->next = to;
	to->prev->next = from->next;
	to->prev = from->prev;
	list_init(from);
}

/* Turns the list so that `link`, which is on it, comes first; the head: as it is. */
static inline void list_begin_at(struct list *head, struct list *link)
{
	if (link == head || link == head->next)
		return;
	list_remove(head);
	list_insert_after(link->prev, head);
}

/* The first link, or NULL when the list is empty. */
static inline struct list *list_first(const struct list *head)
{
	return list_is_empty(head) ? NULL : head->next;
}

/* Removes and returns the first link, or NULL when the list is empty. */
static inline struct list *list_pop_front(struct list *head)
{
	struct list *link = list_first(head);

	if (link)
		list_remove(link);
	return link;
}

#define LIST_ENTRY(link, type, member) CONTAINER_OF(link, type, member)

/* The link of an entry, by its address alone: what surrounds the head of a list is no
 * entry, and need not lie where one may. */
#define LIST_LINK(var, member)                                    \
	((struct list *)((uintptr_t)(var) +                       \
			 offsetof(__typeof__(*(var)), member)))

/* The body must not remove `var`; LIST_FOR_EACH_SAFE allows it. */
#define LIST_FOR_EACH(var, head, member)                                 \
	for (var = CONTAINER_OF((head)->next, __typeof__(*var), member); \
	     LIST_LINK(var, member) != (head);                           \
	     var = CONTAINER_OF(LIST_LINK(var, member)->next,            \
				__typeof__(*var), member))

#define LIST_FOR_EACH_SAFE(var, following, head, member)                 \
	for (var = CONTAINER_OF((head)->next, __typeof__(*var), member), \
	    following = CONTAINER_OF(LIST_LINK(var, member)->next,       \
				     __typeof__(*var), member);          \
	     LIST_LINK(var, member) != (head);                           \
	     var = following,                                            \
	    following = CONTAINER_OF(LIST_LINK(following, member)->next, \
				     __typeof__(*var), member))

#endif
