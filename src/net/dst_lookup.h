/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Destinations for who sends under the stack's lock. An engine reads finished ones only
 * (dst.h); for one that is stale, or was never looked up, it leaves a request with the
 * stack. Whoever releases the lock next works it off, and tells who asked. Until then
 * the engine may use the destination as it was.
 *
 * A neighbour that the kernel has no address of is asked for, and the request waits for
 * what the kernel says. So an answer is a way, or that there is none.
 */
#ifndef NET_DST_LOOKUP_H
#define NET_DST_LOOKUP_H

#include "net/dst.h"

/* Lives in whatever it is for. The stack's lock. */
struct dst_lookup {
	struct list link;
	/* has the query, and gets the answer */
	struct dst *dst;
	/* Under the lock, when the answer is there. It may send, and ask again. */
	void (*answered)(struct dst_lookup *lookup, struct stack *stack);
	/* Somebody looks it up at this moment, and knows it by this alone; NULL:
	 * nobody does. */
	struct dst_lookup **worker;
	/* the kernel has been asked for the neighbour */
	bool has_asked;
};

void dst_lookup_init(struct dst_lookup *lookup, struct dst *dst,
		     void (*answered)(struct dst_lookup *lookup,
				      struct stack *stack));

static inline bool dst_lookup_is_pending(const struct dst_lookup *lookup)
{
	return lookup->worker || list_is_linked(&lookup->link);
}

/* Harmless when it is pending. */
void dst_lookup_begin_locked(struct stack *stack, struct dst_lookup *lookup)
	REQUIRES(stack->lock);
/* It is not answered any more, and its memory may go. Harmless when it is not
 * pending. */
void dst_lookup_cancel_locked(struct stack *stack, struct dst_lookup *lookup)
	REQUIRES(stack->lock);

/* Works the stack's requests off, unless somebody is at it. Who holds the control mutex
 * does it when he releases that. */
void dst_lookups_run(struct stack *stack) EXCLUDES(stack->lock);

/* The kernel has news: what waits for it is looked up again. */
void dst_lookups_again(struct stack *stack) EXCLUDES(stack->lock);

#endif
