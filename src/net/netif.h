/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface as far as we are concerned: driven by a back end, or refused, and
 * why. Opened when the first socket needs it. All under the control mutex.
 */
#ifndef NET_NETIF_H
#define NET_NETIF_H

#include "net/net.h"

struct netif {
	struct list link;
	int ifindex;
	char name[16];
	/* NULL: refused, or not any more */
	struct dev *dev;
	/* of each stack that uses it, by the stack's index */
	struct ring *rings[NET_STACKS_MAX];
	/* within this machine */
	bool is_local;
	enum reason reason;
	/* the interface, and more of the reason if there is more */
	char why[STATS_DETAIL_SIZE];
	/* the view's generation when it was refused: news may change that */
	uint32_t refused_gen;
};

/* One that has been asked for before, or NULL. */
struct netif *netif_find(struct net *net, int ifindex) REQUIRES(net->control);

/* The interface, driven if it can be, or NULL: there is none of that number, or
 * no memory. A refusal is logged once. */
struct netif *netif_get(struct net *net, int ifindex) REQUIRES(net->control);

/* The stack's ring of an interface that is driven, made when it is first wanted. */
int netif_ring(struct netif *netif, struct stack *stack, struct ring **ring_out)
	MUST_CHECK;

/* The local device's, or NULL. */
struct netif *netif_get_local(struct net *net) REQUIRES(net->control);

static inline bool netif_is_driven(const struct netif *netif)
{
	return netif && netif->dev;
}

/* Stops driving it: no flow leads to it any more. */
void netif_close(struct net *net, struct netif *netif) REQUIRES(net->control);

/* Address or MTU have changed, the interface is gone, or its device does not work
 * any more. True when it was given up, and flows on it must go. */
bool netif_check(struct net *net, struct netif *netif) REQUIRES(net->control);

void netif_destroy_all(struct net *net) REQUIRES(net->control);

#endif
