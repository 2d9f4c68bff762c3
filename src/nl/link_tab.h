/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links (interfaces) of the network namespace, found by index or by name, with
 * the facts that a back end asks for before it drives one. The code is pure:
 * whoever reads netlink puts the links in. It takes no lock; the owner of the view
 * says which lock protects it.
 */
#ifndef NL_LINK_TAB_H
#define NL_LINK_TAB_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/list.h"

enum link_kind {
	/* no kind of its own: hardware, mostly */
	LINK_PLAIN,
	LINK_LOOPBACK,
	LINK_VETH,
	LINK_VLAN,
	/* macvtap too */
	LINK_MACVLAN,
	/* ipvtap too */
	LINK_IPVLAN,
	LINK_BRIDGE,
	LINK_BOND,
	LINK_TEAM,
	LINK_VRF,
	LINK_DUMMY,
	LINK_TUN,
	/* any other kind the kernel names */
	LINK_OTHER,
};

/* The values of IFLA_XDP_ATTACHED. */
enum link_xdp_mode {
	LINK_XDP_NONE,
	LINK_XDP_NATIVE,
	LINK_XDP_GENERIC,
	LINK_XDP_HW,
	LINK_XDP_SEVERAL,
};

/* The longest hardware address there is (MAX_ADDR_LEN of the kernel). */
enum { LINK_ADDR_MAX = 32 };

/* So many priorities of sockets a VLAN's egress map may name: all that TOS leads to, and
 * all that need no rights. */
enum { LINK_VLAN_PRIORITIES = 16 };

struct link_info {
	int ifindex;
	char name[IF_NAMESIZE];
	/* IFF_ bits */
	uint32_t flags;
	enum link_kind kind;
	uint32_t mtu;
	/* ARPHRD_ */
	uint16_t hw_type;
	/* of a LINK_VLAN: its id */
	uint16_t vlan_id;
	/* the MAC, for a hw_type of ARPHRD_ETHER */
	uint32_t addr_len;
	uint8_t addr[LINK_ADDR_MAX];
	/* the bridge, bond, team or VRF it is a port of; 0: none */
	int master;
	/* what the master is, from the port's own message; meaningless
	 * without a master, LINK_OTHER when the kernel does not say */
	enum link_kind master_kind;
	/* the link below, when it is in this namespace; 0: none. For a veth,
	 * the peer. */
	int lower;
	uint32_t group;
	/* The kernel does not tell when this changes: read the link again
	 * (netlink_read_link) before relying on it. */
	enum link_xdp_mode xdp_mode;
	uint32_t xdp_prog_id;
	/* the most queues that may ever receive; 0: the kernel does not say */
	uint32_t rx_queue_max;
	/* of a LINK_VLAN: the type of Ethernet that its tags have, and the priority in the
	 * tag (PCP) for each priority of a packet, which is 0 for higher ones */
	uint16_t vlan_proto;
	/* 1: its egress map names higher ones, too */
	uint16_t has_far_priorities;
	uint8_t vlan_pcps[LINK_VLAN_PRIORITIES];
	/* of a LINK_BOND: the numbers of IFLA_BOND_MODE and IFLA_BOND_XMIT_HASH_POLICY */
	uint8_t bond_mode;
	uint8_t bond_policy;
	/* of a port of a bond, 1: the bond sends and receives by it */
	uint16_t is_active_port;
};
_Static_assert(sizeof(struct link_info) == 124,
	       "no padding: links compare as memory");

struct link {
	struct link_info info;
	uint32_t epoch;
	struct hash_link by_index;
	/* in the order of ifindex */
	struct list in_tab;
};

struct link_tab {
	struct hash_tab by_index;
	struct list links;
	uint32_t epoch;
};

void link_tab_init(struct link_tab *tab);
void link_tab_destroy(struct link_tab *tab);

/* NULL when there is none. Borrowed until the link is removed. */
const struct link *link_tab_find(const struct link_tab *tab, int ifindex);
const struct link *link_tab_find_name(const struct link_tab *tab,
				      const char *name);

/* Adds the link or replaces what is known of it. 1: something changed, 0: all of
 * it was known. -ENOMEM. */
int link_tab_set(struct link_tab *tab, const struct link_info *info) MUST_CHECK;
/* Whether it was set since the last link_tab_mark(). */
bool link_tab_is_met(const struct link_tab *tab, int ifindex);
/* Whether there was such a link. */
bool link_tab_remove(struct link_tab *tab, int ifindex);

/* Around a new reading of all links. The second function removes the links that
 * were not set in between, and returns whether there were any. */
void link_tab_mark(struct link_tab *tab);
bool link_tab_sweep(struct link_tab *tab);

/* Whether a MACVLAN or IPVLAN of this namespace is built on the link, or a VLAN. */
bool link_tab_has_upper(const struct link_tab *tab, int ifindex);
bool link_tab_has_vlan(const struct link_tab *tab, int ifindex);

static inline bool link_is_up(const struct link *link)
{
	return link->info.flags & IFF_UP;
}

/* A VRF, or an interface of one. */
static inline bool link_is_in_vrf(const struct link *link)
{
	return link->info.kind == LINK_VRF ||
	       (link->info.master && link->info.master_kind == LINK_VRF);
}

/* Up, and with a carrier. */
static inline bool link_is_running(const struct link *link)
{
	return (link->info.flags & (IFF_UP | IFF_RUNNING)) ==
	       (IFF_UP | IFF_RUNNING);
}

static inline bool link_is_loopback(const struct link *link)
{
	return link->info.flags & IFF_LOOPBACK;
}

/* A port of a bridge, bond, team or switch: its frames are its master's. A VRF
 * takes no frames. */
static inline bool link_is_port(const struct link *link)
{
	return link->info.master && link->info.master_kind != LINK_VRF;
}

/* The priority in the tag of what a socket of this priority (SO_PRIORITY) sends by a
 * VLAN. */
static inline uint8_t link_vlan_pcp(const struct link *link, uint32_t priority)
{
	return priority < LINK_VLAN_PRIORITIES ? link->info.vlan_pcps[priority] : 0;
}

/* "veth" and so on, for log lines. */
const char *link_kind_name(enum link_kind kind);

#endif
