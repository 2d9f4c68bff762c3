/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface as we see it: driven by a back end, or refused for a reason. It is
 * opened when the first socket needs it. All of it is under the control mutex.
 */
#ifndef NET_NETIF_H
#define NET_NETIF_H

#include "dev/backend.h"
#include "net/net.h"

struct netif {
	struct list link;
	int ifindex;
	char name[16];
	/* NULL: refused, or given up */
	struct dev *dev;
	/* the ring of each stack that uses it, by the stack's index */
	struct ring *rings[NET_STACKS_MAX];
	/* rings of single sockets (paced.h), and what was said of those that it refused */
	struct list paced;
	uint8_t paced_refusals;
	/* it is a device inside this machine */
	bool is_local;
	/* of a VLAN that is driven: the interface below; else 0 */
	int lower;
	/* Of a bond whose ports are driven, or a VLAN on one: what it was made of; else
	 * there are no ports. */
	struct backend_bond bond;
	/* Its device has failed or is to end, and no destination leads there any more. It is closed when
	 * the connections have left that its rules still keep from the kernel, which knows
	 * nothing of them yet and would reset their peers; or at this time. */
	bool is_failing;
	uint64_t closes_at_ns;
	/* It was refused more frames, which is said once. */
	bool is_at_limit;
	enum reason reason;
	/* the name of the interface, and details of the reason if there are any */
	char why[STATS_DETAIL_SIZE];
	/* the view's generation when it was refused: later news may change the
	 * answer */
	uint32_t refused_gen;
};

/* An interface that was asked for before, or NULL. */
struct netif *netif_find(struct net *net, int ifindex) REQUIRES(net->control);

/* The interface, which is driven from now on if it can be. NULL: there is no
 * interface of that number, or no memory. A refusal is logged once. */
struct netif *netif_get(struct net *net, int ifindex) REQUIRES(net->control);

/* The stack's ring of an interface that is driven. It is made when it is first
 * wanted. */
int netif_ring(struct netif *netif, struct stack *stack, struct ring **ring_out)
	MUST_CHECK;

/* Gives its device another region, as large as its first. -ENOMEM: the interfaces have all
 * that they may have; or what the device says. */
int netif_add_frames(struct net *net, struct netif *netif) MUST_CHECK;

/* The interface of the local device, or NULL. */
struct netif *netif_get_local(struct net *net) REQUIRES(net->control);

static inline bool netif_is_driven(const struct netif *netif)
{
	return netif && netif->dev && !netif->is_failing;
}

/* Stops driving it. All its flows have been released. */
void netif_close(struct net *net, struct netif *netif) REQUIRES(net->control);

/* Looks whether the interface has another address or MTU, and follows that; and
 * whether it is gone, or its device has failed. True: it has to be given up, so its
 * flows must be released. False, and is_failing: that is for later. */
bool netif_check(struct net *net, struct netif *netif) REQUIRES(net->control);

void netif_destroy_all(struct net *net) REQUIRES(net->control);

#endif
