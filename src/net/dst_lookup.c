/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests for destinations (dst_lookup.h). */
#include "config.h"

#include "net/dst_lookup.h"

void dst_lookup_init(struct dst_lookup *lookup, struct dst *dst,
		     void (*answered)(struct dst_lookup *lookup,
				      struct stack *stack))
{
	*lookup = (struct dst_lookup){ .dst = dst, .answered = answered };
	list_init(&lookup->link);
}

static void enqueue(struct stack *stack, struct dst_lookup *lookup)
	REQUIRES(stack->lock)
{
	list_push_back(&stack->lookups, &lookup->link);
	stack->afterwards |= STACK_LOOKUPS;
}

void dst_lookup_begin_locked(struct stack *stack, struct dst_lookup *lookup)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "begun without the lock");
	if (dst_lookup_is_pending(lookup))
		return;
	lookup->has_asked = false;
	enqueue(stack, lookup);
}

void dst_lookup_cancel_locked(struct stack *stack, struct dst_lookup *lookup)
{
	INVARIANT(stack_lock_is_mine(&stack->lock),
		  "cancelled without the lock");
	list_remove(&lookup->link);
	if (lookup->worker)
		*lookup->worker = NULL;
	lookup->worker = NULL;
}

/* Takes the next request off the list. *taken_out becomes NULL if the request is
 * cancelled while we work on it. */
static bool take(struct stack *stack, struct dst_lookup **taken_out,
		 struct dst *dst_out)
{
	struct list *link;

	stack_lock(stack);
	link = list_pop_front(&stack->lookups);
	if (link) {
		struct dst_lookup *lookup =
			LIST_ENTRY(link, struct dst_lookup, link);

		*taken_out = lookup;
		lookup->worker = taken_out;
		*dst_out = *lookup->dst;
		dst_out->query.ask = lookup->has_asked ? DST_ASK_ONCE :
							 DST_ASK_ANEW;
	} else {
		stack->is_looking_up = false;
	}
	stack_unlock(stack);
	return link != NULL;
}

static void answer(struct stack *stack, struct dst_lookup *lookup,
		   struct dst *found) REQUIRES(stack->lock)
{
	lookup->worker = NULL;
	if (!found->is_awaited) {
		/* Packets may have been numbered since the copy was made. */
		found->next_id = lookup->dst->next_id;
		/* how to ask was ours */
		found->query = lookup->dst->query;
		*lookup->dst = *found;
		lookup->answered(lookup, stack);
		return;
	}
	lookup->has_asked = true;
	/* The kernel may have answered since we looked. It does not say so again, so
	 * in that case we look again at once. */
	if (dst_is_valid(found, stack))
		list_push_back(&stack->unanswered, &lookup->link);
	else
		enqueue(stack, lookup);
}

static bool begin_to_look_up(struct stack *stack)
{
	bool is_somebody;

	stack_lock(stack);
	is_somebody = stack->is_looking_up;
	stack->is_looking_up = true;
	stack_unlock(stack);
	return !is_somebody;
}

COLD void dst_lookups_run(struct stack *stack)
{
	struct dst_lookup *taken;
	struct dst found;

	if (net_control_is_mine(stack->net)) {
		atomic_store(&stack->has_lookups_left, true);
		return;
	}
	if (!begin_to_look_up(stack))
		return;
	while (take(stack, &taken, &found)) {
		dst_resolve(&found, stack->net);
		stack_lock(stack);
		if (taken)
			answer(stack, taken, &found);
		stack_unlock(stack);
	}
}

void dst_lookups_again(struct stack *stack)
{
	stack_lock(stack);
	if (!list_is_empty(&stack->unanswered)) {
		list_splice_back(&stack->lookups, &stack->unanswered);
		stack->afterwards |= STACK_LOOKUPS;
	}
	stack_unlock(stack);
}
