/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path MTUs that the kernel has learned from routers (RFC 1191). The kernel calls
 * them exceptions of a route; there is one for each destination. It sends no
 * message about them, and forgets them after some minutes or with their route. So
 * each entry here is a copy, and we have to ask for it again. The code is pure and
 * takes no lock.
 */
#ifndef NL_PATH_MTU_TAB_H
#define NL_PATH_MTU_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/ipaddr.h"
#include "base/list.h"

/* When there are more, the entry that was confirmed longest ago is removed. */
enum { PATH_MTU_MAX = 1024 };

struct path_mtu_info {
	struct ip_addr dst;
	int ifindex;
	/* the source of the packet that was too large; rules may look at it when we
	 * ask the kernel again */
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

/* NULL: nothing is known. The result is borrowed until the next change. */
const struct path_mtu *path_mtu_tab_find(const struct path_mtu_tab *tab,
					 int ifindex,
					 const struct ip_addr *dst);

/* Takes what the kernel says about a destination; an mtu of 0 means that it has no
 * special one. 1: this is news, 0: it is not. Or -ENOMEM. */
int path_mtu_tab_set(struct path_mtu_tab *tab, const struct path_mtu_info *info)
	MUST_CHECK;

/* The entry to ask the kernel about next. It is in doubt until
 * path_mtu_tab_settle(). NULL: there is none. */
const struct path_mtu_info *path_mtu_tab_doubt(struct path_mtu_tab *tab);
/* Removes the entry that is in doubt, unless it has been set since. Returns whether
 * it did. */
bool path_mtu_tab_settle(struct path_mtu_tab *tab);

#endif
