/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses of the namespace. They tell which addresses are ours, and which one
 * an interface would give to a packet that has none. IPv4 and IPv6 are treated
 * alike. The code is pure and takes no lock.
 */
#ifndef NL_ADDR_TAB_H
#define NL_ADDR_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/ipaddr.h"
#include "base/list.h"

struct addr_info {
	struct ip_addr local;
	/* equal to local, or the peer's address */
	struct ip_addr prefix;
	/* :: when there is none */
	struct ip_addr broadcast;
	int ifindex;
	/* counts all 128 bits, IPv4 has IP_PREFIX_V4 added */
	uint32_t prefix_len;
	/* RT_SCOPE_ */
	uint32_t scope;
	/* IFA_F_ bits; IPv6: not usable while IFA_F_TENTATIVE */
	uint32_t flags;
};
_Static_assert(sizeof(struct addr_info) == 64,
	       "no padding: addresses compare as memory");

struct addr {
	struct addr_info info;
	uint32_t epoch;
	struct hash_link by_local;
	/* of its interface, in the kernel's order */
	struct list in_iface;
};

struct addr_tab {
	struct hash_tab by_local;
	/* the interfaces that have addresses, by index */
	struct hash_tab ifaces;
	/* the same, in the order of ifindex */
	struct list iface_list;
	uint32_t epoch;
};

void addr_tab_init(struct addr_tab *tab);
void addr_tab_destroy(struct addr_tab *tab);

/* The first entry with this local address, whatever its interface, or NULL. */
const struct addr *addr_tab_find(const struct addr_tab *tab,
				 const struct ip_addr *local);
/* Calls `visit` for each address of the interface, in the kernel's order, until
 * it returns false. */
void addr_tab_visit(const struct addr_tab *tab, int ifindex,
		    bool (*visit)(void *ctx, const struct addr_info *info),
		    void *ctx);

/*
 * The IPv4 source address that Linux chooses for packets that leave by `ifindex`
 * (inet_select_addr). It is the interface's first primary address whose scope is at
 * most `scope` and, if a destination is given, whose prefix holds it; else the
 * first address of that scope; else an address of another interface. 0: there is
 * none.
 */
__be32 addr_tab_select_v4(const struct addr_tab *tab, int ifindex, __be32 dst,
			  uint8_t scope);

/* These work as those in link_tab.h. An address is identified by interface, local
 * address, prefix and prefix length. */
int addr_tab_set(struct addr_tab *tab, const struct addr_info *info) MUST_CHECK;
bool addr_tab_remove(struct addr_tab *tab, const struct addr_info *info);
/* Removes all addresses of a link that is gone. Returns whether there were any. */
bool addr_tab_remove_link(struct addr_tab *tab, int ifindex);

/* Around a new reading of all addresses. The second function returns whether
 * anything was removed. */
void addr_tab_mark(struct addr_tab *tab);
bool addr_tab_sweep(struct addr_tab *tab);

#endif
