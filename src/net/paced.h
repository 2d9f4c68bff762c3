/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket that sends at a pace which the card keeps (SO_MAX_PACING_RATE): its own ring
 * on each interface that its destinations lead to, made when the first one does. Linux
 * keeps a pace for each interface, too. A ring whose socket has ended, or has no pace any
 * more, stays until it has sent what it has.
 */
#ifndef NET_PACED_H
#define NET_PACED_H

#include "net/net.h"

struct netif;

/* The part of the socket; all zeroes at first. Under the control mutex. */
struct paced {
	/* it wants a pace, which this is; else it has no rings */
	bool is_wanted;
	struct ring_pace pace;
	/* its rings (paced.c), once it has had some */
	struct list rings;
	bool has_list;
};

/* The ring of the socket on an interface that is driven. A negative errno: none keeps its
 * pace, and the log has said why, once for each interface and reason. */
int paced_ring(struct paced *paced, struct netif *netif, struct stack *stack,
	       struct ring **ring_out) MUST_CHECK;

/* From now on the pace is this one; NULL: there is none. Rings that cannot keep it end: the
 * caller has seen to it that no destination which leads to them is used any more. */
void paced_set(struct net *net, struct paced *paced, const struct ring_pace *pace)
	REQUIRES(net->control);

/* Ends rings that have sent what they had; each second. */
void paced_check(struct netif *netif);

/* Ends all rings of an interface that is about to be closed. */
void paced_end_all(struct netif *netif);

#endif
