/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives tagged frames to the kernel (strays.h). */
#include "config.h"

#include "net/strays.h"

#include "net/net.h"

/* No more of them wait at a time, so that a flood takes no frames from others. */
enum { STRAYS_MAX = 64 };

/* The lock is the caller's, which the analysis does not see through the demultiplexer. */
NO_LOCK_ANALYSIS static void take(struct demux *demux, struct pkt *pkt)
{
	struct stack *stack = CONTAINER_OF(demux, struct stack, demux);

	if (!stack->net || stack->stray_cnt >= STRAYS_MAX) {
		demux_drop(demux, pkt, DEMUX_NOT_IP);
		return;
	}
	list_push_back(&stack->strays, &pkt->link);
	stack->stray_cnt++;
	stack->afterwards |= STACK_STRAYS;
}

void strays_init(struct stack *stack)
{
	list_init(&stack->strays);
	stack->demux.take_tagged = take;
}

static unsigned give_all(struct net *net, const struct list *strays)
{
	unsigned failed = 0;

	for (struct list *link = strays->next; link != strays; link = link->next)
		failed += net_give_tagged(net, pkt_from_link(link)) != 0;
	return failed;
}

COLD void strays_give_back(struct stack *stack)
{
	struct list strays = LIST_INIT(strays);
	unsigned failed;

	if (net_control_is_mine(stack->net)) {
		atomic_store(&stack->has_strays_left, true);
		return;
	}
	stack_lock(stack);
	list_splice_back(&strays, &stack->strays);
	stack->stray_cnt = 0;
	stack_unlock(stack);
	failed = give_all(stack->net, &strays);
	stack_lock(stack);
	pkt_put_list(&strays);
	stack->demux.drops[DEMUX_NOT_IP] += failed;
	stack_unlock(stack);
}

void strays_drop(struct stack *stack)
{
	pkt_put_list(&stack->strays);
}
