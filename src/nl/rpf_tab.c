/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A list is enough: it is only asked when routes change, and hosts have few
 * interfaces. */
#include "config.h"

#include "nl/rpf_tab.h"

#include <errno.h>
#include <stdlib.h>

struct rpf_entry {
	int ifindex;
	int mode;
	uint32_t epoch;
	struct list in_tab;
};

void rpf_tab_init(struct rpf_tab *tab)
{
	*tab = (struct rpf_tab){ 0 };
	list_init(&tab->entries);
}

static struct rpf_entry *find(const struct rpf_tab *tab, int ifindex)
{
	struct rpf_entry *entry;

	LIST_FOR_EACH(entry, &tab->entries, in_tab)
		if (entry->ifindex == ifindex)
			return entry;
	return NULL;
}

static void forget(struct rpf_entry *entry)
{
	list_remove(&entry->in_tab);
	free(entry);
}

int rpf_tab_set(struct rpf_tab *tab, int ifindex, int mode)
{
	struct rpf_entry *entry = find(tab, ifindex);
	int old = entry ? entry->mode : RPF_OFF;

	if (!entry) {
		entry = malloc(sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->ifindex = ifindex;
		list_push_back(&tab->entries, &entry->in_tab);
	}
	entry->mode = mode;
	entry->epoch = tab->epoch;
	return mode != old;
}

bool rpf_tab_remove(struct rpf_tab *tab, int ifindex)
{
	struct rpf_entry *entry = find(tab, ifindex);

	if (entry)
		forget(entry);
	return entry;
}

static int own_mode(const struct rpf_tab *tab, int ifindex)
{
	const struct rpf_entry *entry = find(tab, ifindex);

	return entry ? entry->mode : RPF_OFF;
}

enum rpf_mode rpf_tab_mode(const struct rpf_tab *tab, int ifindex)
{
	int mode = MAX(own_mode(tab, RPF_ALL), own_mode(tab, ifindex));

	/* Linux takes every other number for loose. */
	return mode <= RPF_OFF	  ? RPF_OFF :
	       mode == RPF_STRICT ? RPF_STRICT :
				    RPF_LOOSE;
}

void rpf_tab_mark(struct rpf_tab *tab)
{
	tab->epoch++;
}

bool rpf_tab_sweep(struct rpf_tab *tab)
{
	struct rpf_entry *entry, *following;
	bool has_changed = false;

	LIST_FOR_EACH_SAFE(entry, following, &tab->entries, in_tab) {
		if (entry->epoch == tab->epoch)
			continue;
		forget(entry);
		has_changed = true;
	}
	return has_changed;
}

void rpf_tab_destroy(struct rpf_tab *tab)
{
	struct rpf_entry *entry, *following;

	LIST_FOR_EACH_SAFE(entry, following, &tab->entries, in_tab)
		forget(entry);
}
