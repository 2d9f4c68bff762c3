/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path MTUs that the kernel has learned from routers (RFC 1191): what it calls
 * exceptions of a route, one for each destination. It tells nobody of them, and
 * forgets them after some minutes or with their route, so each entry is a copy that
 * has to be asked for again. Pure, no locking.
 */
#ifndef NL_PATH_MTU_TAB_H
#define NL_PATH_MTU_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/ipaddr.h"
#include "base/list.h"

/* The one that was confirmed longest ago gives way. */
enum { PATH_MTU_MAX = 1024 };

struct path_mtu_info {
	struct ip_addr dst;
	int ifindex;
	/* whose packet it was about: rules may look at it when the kernel is
	 * asked again */
	struct ip_addr src;
	uint32_t mtu;
	/* so small that datagrams are not to be marked "don't fragment" */
	bool is_locked;
};

struct path_mtu {
	struct path_mtu_info info;
	/* not confirmed since path_mtu_tab_doubt() */
	bool is_doubted;
	struct hash_link by_dst;
	struct list in_tab; /* the longest unconfirmed first */
};

struct path_mtu_tab {
	struct hash_tab by_dst;
	struct list entries;
	unsigned cnt;
};

void path_mtu_tab_init(struct path_mtu_tab *tab);
void path_mtu_tab_destroy(struct path_mtu_tab *tab);

/* NULL: nothing was learned. Borrowed until the next change. */
const struct path_mtu *path_mtu_tab_find(const struct path_mtu_tab *tab,
					 int ifindex,
					 const struct ip_addr *dst);

/* What the kernel says of a destination; mtu 0: nothing special. 1: that is news,
 * 0: it is not; -ENOMEM. */
int path_mtu_tab_set(struct path_mtu_tab *tab, const struct path_mtu_info *info)
	MUST_CHECK;

/* The entry to ask about next, until path_mtu_tab_settle(); NULL: there is none. */
const struct path_mtu_info *path_mtu_tab_doubt(struct path_mtu_tab *tab);
/* Forgets it, if nobody has set it since. Whether it did. */
bool path_mtu_tab_settle(struct path_mtu_tab *tab);

#endif
