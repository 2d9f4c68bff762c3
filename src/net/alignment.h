/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where frames for a socket arrive: the flows of an attachment are brought into line with
 * what its name, the addresses and the routes of the moment ask for. All of it is under the
 * control mutex.
 */
#ifndef NET_ALIGNMENT_H
#define NET_ALIGNMENT_H

#include "net/net.h"

struct netif;

/* The state while it is done; net and att are the caller's to set. */
struct alignment {
	struct net *net;
	struct attachment *att;
	struct netif *netif;
	unsigned held_cnt;
	/* the first reason against it, and the interface that it is about */
	enum reason reason;
	const struct netif *blamed;
};

/* Holds the flows that are wanted now, besides those that it has. */
void alignment_hold(struct alignment *a);
/* Those that alignment_hold() has not found wanted go. */
void alignment_give_up(struct alignment *a);
/* Both. */
void alignment_make(struct alignment *a);
/* Writes into the statistics what has become of the attachment. */
void alignment_tell(const struct alignment *a, enum stats_decider decider);

#endif
