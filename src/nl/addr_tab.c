/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each interface has its list of addresses; all of them are in one hash. */
#include "config.h"

#include "nl/addr_tab.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* An interface that has addresses. */
struct addr_iface {
	int ifindex;
	struct list addrs;
	struct hash_link by_index;
	struct list in_tab;
};

void addr_tab_init(struct addr_tab *tab)
{
	*tab = (struct addr_tab){ 0 };
	list_init(&tab->iface_list);
}

static uint64_t hash_of_index(int ifindex)
{
	return hash_u64(0, (uint64_t)ifindex);
}

static uint64_t hash_of_addr(const struct ip_addr *addr)
{
	return hash_u64x2(0, addr->half[0], addr->half[1]);
}

static struct addr_iface *find_iface(const struct addr_tab *tab, int ifindex)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->ifaces, hash_of_index(ifindex)) {
		struct addr_iface *iface =
			CONTAINER_OF(link, struct addr_iface, by_index);

		if (iface->ifindex == ifindex)
			return iface;
	}
	return NULL;
}

static void forget_iface(struct addr_tab *tab, struct addr_iface *iface)
{
	hash_tab_remove(&tab->ifaces, &iface->by_index);
	list_remove(&iface->in_tab);
	free(iface);
}

static void forget(struct addr_tab *tab, struct addr *addr)
{
	hash_tab_remove(&tab->by_local, &addr->by_local);
	list_remove(&addr->in_iface);
	free(addr);
}

/* Finds the interface, or makes it. NULL: there is no memory. */
static struct addr_iface *get_iface(struct addr_tab *tab, int ifindex)
{
	struct addr_iface *iface = find_iface(tab, ifindex);
	struct list *where;

	if (iface)
		return iface;
	iface = malloc(sizeof(*iface));
	if (!iface)
		return NULL;
	iface->ifindex = ifindex;
	list_init(&iface->addrs);
	if (hash_tab_insert(&tab->ifaces, &iface->by_index,
			    hash_of_index(ifindex))) {
		free(iface);
		return NULL;
	}
	where = tab->iface_list.prev;
	while (where != &tab->iface_list &&
	       LIST_ENTRY(where, struct addr_iface, in_tab)->ifindex > ifindex)
		where = where->prev;
	list_insert_after(where, &iface->in_tab);
	return iface;
}

const struct addr *addr_tab_find(const struct addr_tab *tab,
				 const struct ip_addr *local)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->by_local, hash_of_addr(local)) {
		struct addr *addr = CONTAINER_OF(link, struct addr, by_local);

		if (ip_addr_eq(&addr->info.local, local))
			return addr;
	}
	return NULL;
}

void addr_tab_visit(const struct addr_tab *tab, int ifindex,
		    bool (*visit)(void *ctx, const struct addr_info *info),
		    void *ctx)
{
	const struct addr_iface *iface = find_iface(tab, ifindex);
	const struct addr *addr;

	if (!iface)
		return;
	LIST_FOR_EACH(addr, &iface->addrs, in_iface) {
		if (!visit(ctx, &addr->info))
			return;
	}
}

static bool is_primary_v4(const struct addr_info *info)
{
	return ip_addr_is_v4(&info->local) && !(info->flags & IFA_F_SECONDARY);
}

/* The address that the interface itself would give to a packet. */
static __be32 select_own(const struct addr_iface *iface, __be32 dst,
			 uint8_t scope)
{
	struct ip_addr to = ip_addr_from_v4(dst);
	const struct addr *addr;
	__be32 first = 0;

	LIST_FOR_EACH(addr, &iface->addrs, in_iface) {
		const struct addr_info *info = &addr->info;

		if (!is_primary_v4(info) ||
		    MIN(info->scope, (uint32_t)RT_SCOPE_HOST) > scope)
			continue;
		if (!dst || ip_addr_in_prefix(&to, &info->prefix,
					      info->prefix_len))
			return ip_addr_v4(&info->local);
		if (!first)
			first = ip_addr_v4(&info->local);
	}
	return first;
}

/* The address that the interface lends to packets of other interfaces. An address
 * of link scope is valid on its own link only. */
static __be32 select_lent(const struct addr_iface *iface, uint8_t scope)
{
	const struct addr *addr;

	LIST_FOR_EACH(addr, &iface->addrs, in_iface) {
		if (is_primary_v4(&addr->info) &&
		    addr->info.scope != RT_SCOPE_LINK &&
		    addr->info.scope <= scope)
			return ip_addr_v4(&addr->info.local);
	}
	return 0;
}

__be32 addr_tab_select_v4(const struct addr_tab *tab, int ifindex, __be32 dst,
			  uint8_t scope)
{
	const struct addr_iface *iface = find_iface(tab, ifindex);
	__be32 addr = iface ? select_own(iface, dst, scope) : 0;

	if (addr)
		return addr;
	LIST_FOR_EACH(iface, &tab->iface_list, in_tab) {
		addr = select_lent(iface, scope);
		if (addr)
			return addr;
	}
	return 0;
}

static bool is_same(const struct addr_info *a, const struct addr_info *b)
{
	return a->ifindex == b->ifindex && a->prefix_len == b->prefix_len &&
	       ip_addr_eq(&a->local, &b->local) &&
	       ip_addr_eq(&a->prefix, &b->prefix);
}

static struct addr *find_same(const struct addr_tab *tab,
			      const struct addr_info *info)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->by_local, hash_of_addr(&info->local)) {
		struct addr *addr = CONTAINER_OF(link, struct addr, by_local);

		if (is_same(&addr->info, info))
			return addr;
	}
	return NULL;
}

/* Where inet_insert_ifa() puts it: a primary IPv4 address behind the last
 * primary one of the same or a narrower scope, anything else at the end. */
static struct list *place_for(struct addr_iface *iface,
			      const struct addr_info *info)
{
	struct list *where = &iface->addrs;
	struct addr *addr;

	if (!is_primary_v4(info))
		return iface->addrs.prev;
	LIST_FOR_EACH(addr, &iface->addrs, in_iface) {
		if (is_primary_v4(&addr->info) &&
		    info->scope <= addr->info.scope)
			where = &addr->in_iface;
	}
	return where;
}

static int add(struct addr_tab *tab, const struct addr_info *info)
{
	struct addr_iface *iface = get_iface(tab, info->ifindex);
	struct addr *addr;

	if (!iface)
		return -ENOMEM;
	addr = malloc(sizeof(*addr));
	if (!addr)
		return -ENOMEM;
	addr->info = *info;
	addr->epoch = tab->epoch;
	if (hash_tab_insert(&tab->by_local, &addr->by_local,
			    hash_of_addr(&info->local))) {
		free(addr);
		return -ENOMEM;
	}
	list_insert_after(place_for(iface, info), &addr->in_iface);
	return 1;
}

int addr_tab_set(struct addr_tab *tab, const struct addr_info *info)
{
	struct addr *addr = find_same(tab, info);
	bool has_moved;

	if (!addr)
		return add(tab, info);
	addr->epoch = tab->epoch;
	if (memcmp(&addr->info, info, sizeof(*info)) == 0)
		return 0;
	/* A secondary address that became primary has another place in the list; one
	 * whose lifetime changes keeps its own. */
	has_moved = (addr->info.flags ^ info->flags) & IFA_F_SECONDARY ||
		    addr->info.scope != info->scope;
	addr->info = *info;
	if (!has_moved)
		return 1;
	list_remove(&addr->in_iface);
	list_insert_after(place_for(find_iface(tab, info->ifindex), info),
			  &addr->in_iface);
	return 1;
}

bool addr_tab_remove(struct addr_tab *tab, const struct addr_info *info)
{
	struct addr *addr = find_same(tab, info);
	struct addr_iface *iface;

	if (!addr)
		return false;
	iface = find_iface(tab, info->ifindex);
	forget(tab, addr);
	if (list_is_empty(&iface->addrs))
		forget_iface(tab, iface);
	return true;
}

/* Forgets the addresses that were not met in this epoch, or all of them. */
static bool clear_iface(struct addr_tab *tab, struct addr_iface *iface,
			bool is_all)
{
	struct addr *addr, *following;
	bool has_removed = false;

	LIST_FOR_EACH_SAFE(addr, following, &iface->addrs, in_iface) {
		if (!is_all && addr->epoch == tab->epoch)
			continue;
		forget(tab, addr);
		has_removed = true;
	}
	if (list_is_empty(&iface->addrs))
		forget_iface(tab, iface);
	return has_removed;
}

bool addr_tab_remove_link(struct addr_tab *tab, int ifindex)
{
	struct addr_iface *iface = find_iface(tab, ifindex);

	return iface && clear_iface(tab, iface, true);
}

void addr_tab_mark(struct addr_tab *tab)
{
	tab->epoch++;
}

static bool clear_all(struct addr_tab *tab, bool is_all)
{
	struct addr_iface *iface, *following;
	bool has_removed = false;

	LIST_FOR_EACH_SAFE(iface, following, &tab->iface_list, in_tab)
		has_removed |= clear_iface(tab, iface, is_all);
	return has_removed;
}

bool addr_tab_sweep(struct addr_tab *tab)
{
	return clear_all(tab, false);
}

void addr_tab_destroy(struct addr_tab *tab)
{
	clear_all(tab, true);
	hash_tab_release(&tab->by_local);
	hash_tab_release(&tab->ifaces);
}
