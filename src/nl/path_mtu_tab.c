/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash of the entries, and a list of them in the order of their last
 * confirmation. */
#include "config.h"

#include "nl/path_mtu_tab.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

void path_mtu_tab_init(struct path_mtu_tab *tab)
{
	*tab = (struct path_mtu_tab){ 0 };
	list_init(&tab->entries);
}

static uint64_t hash_of(int ifindex, const struct ip_addr *dst)
{
	return hash_u64x2((uint64_t)ifindex, dst->half[0], dst->half[1]);
}

static struct path_mtu *find(const struct path_mtu_tab *tab, int ifindex,
			     const struct ip_addr *dst)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->by_dst, hash_of(ifindex, dst)) {
		struct path_mtu *entry =
			CONTAINER_OF(link, struct path_mtu, by_dst);

		if (entry->info.ifindex == ifindex &&
		    ip_addr_eq(&entry->info.dst, dst))
			return entry;
	}
	return NULL;
}

const struct path_mtu *path_mtu_tab_find(const struct path_mtu_tab *tab,
					 int ifindex, const struct ip_addr *dst)
{
	return find(tab, ifindex, dst);
}

static void forget(struct path_mtu_tab *tab, struct path_mtu *entry)
{
	hash_tab_remove(&tab->by_dst, &entry->by_dst);
	list_remove(&entry->in_tab);
	tab->cnt--;
	free(entry);
}

static struct path_mtu *first(const struct path_mtu_tab *tab)
{
	struct list *link = list_first(&tab->entries);

	return link ? LIST_ENTRY(link, struct path_mtu, in_tab) : NULL;
}

static int add(struct path_mtu_tab *tab, const struct path_mtu_info *info)
{
	struct path_mtu *entry = malloc(sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	*entry = (struct path_mtu){ .info = *info };
	if (hash_tab_insert(&tab->by_dst, &entry->by_dst,
			    hash_of(info->ifindex, &info->dst))) {
		free(entry);
		return -ENOMEM;
	}
	list_push_back(&tab->entries, &entry->in_tab);
	if (++tab->cnt > PATH_MTU_MAX)
		forget(tab, first(tab));
	return 1;
}

int path_mtu_tab_set(struct path_mtu_tab *tab, const struct path_mtu_info *info)
{
	struct path_mtu *entry = find(tab, info->ifindex, &info->dst);
	bool is_news;

	if (!entry)
		return info->mtu ? add(tab, info) : 0;
	if (!info->mtu) {
		forget(tab, entry);
		return 1;
	}
	is_news = entry->info.mtu != info->mtu ||
		  entry->info.is_locked != info->is_locked;
	entry->info = *info;
	entry->is_doubted = false;
	list_remove(&entry->in_tab);
	list_push_back(&tab->entries, &entry->in_tab);
	return is_news;
}

const struct path_mtu_info *path_mtu_tab_doubt(struct path_mtu_tab *tab)
{
	struct path_mtu *entry = first(tab);

	if (!entry)
		return NULL;
	entry->is_doubted = true;
	return &entry->info;
}

bool path_mtu_tab_settle(struct path_mtu_tab *tab)
{
	struct path_mtu *entry = first(tab);
	bool is_refuted = entry && entry->is_doubted;

	/* An entry that was confirmed has moved to the end of the list. */
	if (is_refuted)
		forget(tab, entry);
	return is_refuted;
}

void path_mtu_tab_destroy(struct path_mtu_tab *tab)
{
	struct path_mtu *entry;

	while ((entry = first(tab)))
		forget(tab, entry);
	hash_tab_release(&tab->by_dst);
}
