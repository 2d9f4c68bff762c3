/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's routes and neighbours, as address resolution needs them: by which
 * interface and over which next hop an address is reached, and whether the next
 * hop's MAC is known.
 */
#ifndef SOFTCX_NEIGH_H
#define SOFTCX_NEIGH_H

#include <netinet/in.h>
#include <stdbool.h>

#include "base/compiler.h"

/* How the kernel would send to an address. sockaddr_in6 holds either family. */
struct neigh_way {
	int ifindex;
	struct sockaddr_in6 src;
	struct sockaddr_in6 hop;    /* the gateway, or the address itself */
	bool has_neighbour;         /* false: a group, or one of our own */
};

/* `src` with family 0 leaves the choice to the kernel. -ENETUNREACH and others:
 * as the kernel's look-up says. */
MUST_CHECK int neigh_route(const struct sockaddr_in6 *dst,
			   const struct sockaddr_in6 *src,
			   struct neigh_way *way_out);
/* Whether the next hop's MAC is known. Else the kernel is asked to find it. */
bool neigh_is_valid(const struct neigh_way *way);

/* A socket that is readable when some neighbour changed. */
MUST_CHECK int neigh_monitor_open(void);

#endif
