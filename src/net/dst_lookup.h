/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Destinations for those who send under the stack's lock. An engine uses only
 * destinations that have been looked up (dst.h). For one that is stale, or was never
 * looked up, it leaves a request with the stack. The thread that releases the lock
 * next looks it up, and tells the one who asked. Until then the engine may use the
 * destination as it was.
 *
 * If the kernel has no address of the neighbour, we ask for it, and the request
 * waits for what the kernel says. So the answer is always final: a way, or the
 * reason why there is none.
 */
#ifndef NET_DST_LOOKUP_H
#define NET_DST_LOOKUP_H

#include "net/dst.h"

/* A request. It is a member of whatever needs the destination, and is guarded by the
 * stack's lock. */
struct dst_lookup {
	struct list link;
	/* holds the query, and receives the answer */
	struct dst *dst;
	/* Called under the lock when the answer is there. It may send, and may ask
	 * again. */
	void (*answered)(struct dst_lookup *lookup, struct stack *stack);
	/* Points to a variable of the thread that looks it up at this moment, which
	 * finds the request through that variable alone. NULL: nobody does. */
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

/* Does nothing if the request is pending already. */
void dst_lookup_begin_locked(struct stack *stack, struct dst_lookup *lookup)
	REQUIRES(stack->lock);
/* The request is not answered any more, and its memory may be freed. Does nothing if
 * it is not pending. */
void dst_lookup_cancel_locked(struct stack *stack, struct dst_lookup *lookup)
	REQUIRES(stack->lock);

/* Answers the stack's requests, unless another thread does so already. If the caller
 * holds the control mutex, they are answered when he releases it. */
void dst_lookups_run(struct stack *stack) EXCLUDES(stack->lock);

/* The kernel has news: the requests that wait for news are looked up again. */
void dst_lookups_again(struct stack *stack) EXCLUDES(stack->lock);

#endif
