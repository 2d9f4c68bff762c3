/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether neighbours are still there, in a process that has no right to have the kernel find
 * out: the keeper of its rights does it (fd/right_keeper.h), which is told once a second, and
 * gives no answer. The kernel's own, an event, comes to us as to everybody.
 */
#ifndef NET_CONFIRM_H
#define NET_CONFIRM_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

struct net;

/* How many are asked for in a second. What is beyond is found anew when the next event of the
 * kernel's has destinations looked up again. */
enum { CONFIRMS_MAX = 64 };

struct confirms {
	struct {
		int ifindex;
		struct ip_addr addr;
	} of[CONFIRMS_MAX];
	unsigned cnt;
};

/* Whether there is room for it. */
bool confirm_later(struct net *net, int ifindex, const struct ip_addr *addr);
/* Never waits: what cannot be told now is left for the next time. */
void confirms_tell(struct net *net);

#endif
