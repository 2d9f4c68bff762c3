/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A list in the order of ifindex, and a hash to find one. */
#include "config.h"

#include "nl/link_tab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void link_tab_init(struct link_tab *tab)
{
	*tab = (struct link_tab){ 0 };
	list_init(&tab->links);
}

static void forget(struct link_tab *tab, struct link *link)
{
	hash_tab_remove(&tab->by_index, &link->by_index);
	list_remove(&link->in_tab);
	free(link);
}

void link_tab_destroy(struct link_tab *tab)
{
	struct link *link, *following;

	LIST_FOR_EACH_SAFE(link, following, &tab->links, in_tab)
		forget(tab, link);
	hash_tab_release(&tab->by_index);
}

static uint64_t hash_of(int ifindex)
{
	return hash_u64(0, (uint64_t)ifindex);
}

static struct link *find(const struct link_tab *tab, int ifindex)
{
	struct hash_link *hl;

	HASH_FOR_EACH(hl, &tab->by_index, hash_of(ifindex)) {
		struct link *link = CONTAINER_OF(hl, struct link, by_index);

		if (link->info.ifindex == ifindex)
			return link;
	}
	return NULL;
}

const struct link *link_tab_find(const struct link_tab *tab, int ifindex)
{
	return find(tab, ifindex);
}

const struct link *link_tab_find_name(const struct link_tab *tab,
				      const char *name)
{
	const struct link *link;

	LIST_FOR_EACH(link, &tab->links, in_tab) {
		if (strcmp(link->info.name, name) == 0)
			return link;
	}
	return NULL;
}

/* Puts the link behind those of lower index. We search from the end, since most new
 * links have the highest index. */
static void put_in_order(struct link_tab *tab, struct link *link)
{
	struct list *where = tab->links.prev;

	while (where != &tab->links &&
	       LIST_ENTRY(where, struct link, in_tab)->info.ifindex >
		       link->info.ifindex)
		where = where->prev;
	list_insert_after(where, &link->in_tab);
}

static int add(struct link_tab *tab, const struct link_info *info)
{
	struct link *link = malloc(sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->info = *info;
	link->epoch = tab->epoch;
	if (hash_tab_insert(&tab->by_index, &link->by_index,
			    hash_of(info->ifindex))) {
		free(link);
		return -ENOMEM;
	}
	put_in_order(tab, link);
	return 1;
}

int link_tab_set(struct link_tab *tab, const struct link_info *info)
{
	struct link *link = find(tab, info->ifindex);

	if (!link)
		return add(tab, info);
	link->epoch = tab->epoch;
	if (memcmp(&link->info, info, sizeof(*info)) == 0)
		return 0;
	link->info = *info;
	return 1;
}

bool link_tab_remove(struct link_tab *tab, int ifindex)
{
	struct link *link = find(tab, ifindex);

	if (link)
		forget(tab, link);
	return link;
}

bool link_tab_is_met(const struct link_tab *tab, int ifindex)
{
	const struct link *link = link_tab_find(tab, ifindex);

	return link && link->epoch == tab->epoch;
}

void link_tab_mark(struct link_tab *tab)
{
	tab->epoch++;
}

bool link_tab_sweep(struct link_tab *tab)
{
	struct link *link, *following;
	bool has_removed = false;

	LIST_FOR_EACH_SAFE(link, following, &tab->links, in_tab) {
		if (link->epoch == tab->epoch)
			continue;
		forget(tab, link);
		has_removed = true;
	}
	return has_removed;
}

bool link_tab_has_upper(const struct link_tab *tab, int ifindex)
{
	const struct link *link;

	LIST_FOR_EACH(link, &tab->links, in_tab) {
		if (link->info.lower == ifindex &&
		    (link->info.kind == LINK_MACVLAN ||
		     link->info.kind == LINK_IPVLAN))
			return true;
	}
	return false;
}

bool link_tab_has_vlan(const struct link_tab *tab, int ifindex)
{
	const struct link *link;

	LIST_FOR_EACH(link, &tab->links, in_tab) {
		if (link->info.lower == ifindex && link->info.kind == LINK_VLAN)
			return true;
	}
	return false;
}

const char *link_kind_name(enum link_kind kind)
{
	static const char *const names[] = {
		[LINK_PLAIN] = "plain",	    [LINK_LOOPBACK] = "loopback",
		[LINK_VETH] = "veth",	    [LINK_VLAN] = "vlan",
		[LINK_MACVLAN] = "macvlan", [LINK_IPVLAN] = "ipvlan",
		[LINK_BRIDGE] = "bridge",   [LINK_BOND] = "bond",
		[LINK_TEAM] = "team",	    [LINK_VRF] = "vrf",
		[LINK_DUMMY] = "dummy",	    [LINK_TUN] = "tun",
		[LINK_OTHER] = "other",
	};

	return names[kind];
}
