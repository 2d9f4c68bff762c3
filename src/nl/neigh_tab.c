/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash of neighbours. Those that the kernel knows are in one list, those that it
 * has dropped in another one. */
#include "config.h"

#include "nl/neigh_tab.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

void neigh_tab_init(struct neigh_tab *tab)
{
	*tab = (struct neigh_tab){ 0 };
	list_init(&tab->known);
	list_init(&tab->dropped);
}

static uint64_t hash_of(int ifindex, const struct ip_addr *addr)
{
	return hash_u64x2((uint64_t)ifindex, addr->half[0], addr->half[1]);
}

static struct neigh *find(const struct neigh_tab *tab, int ifindex,
			  const struct ip_addr *addr)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->by_addr, hash_of(ifindex, addr)) {
		struct neigh *neigh = CONTAINER_OF(link, struct neigh, by_addr);

		if (neigh->info.ifindex == ifindex &&
		    ip_addr_eq(&neigh->info.addr, addr))
			return neigh;
	}
	return NULL;
}

const struct neigh *neigh_tab_find(const struct neigh_tab *tab, int ifindex,
				   const struct ip_addr *addr)
{
	return find(tab, ifindex, addr);
}

enum neigh_advice neigh_advice(const struct neigh *neigh)
{
	if (!neigh)
		return NEIGH_RESOLVE;
	switch (neigh->info.state) {
	case NUD_FAILED:
		return NEIGH_FAILED;
	case NUD_NONE:
	case NUD_STALE:
		return neigh->info.hw_len ? NEIGH_CONFIRM : NEIGH_RESOLVE;
	default:
		return neigh->info.hw_len ? NEIGH_USABLE : NEIGH_RESOLVE;
	}
}

bool neigh_is_asked(const struct neigh *neigh, uint64_t now_ns)
{
	return neigh->asked_ns && now_ns - neigh->asked_ns < NS_PER_SEC;
}

void neigh_tab_note_asked(struct neigh_tab *tab, int ifindex, const struct ip_addr *addr,
			  uint64_t now_ns)
{
	struct neigh *neigh = find(tab, ifindex, addr);

	if (neigh)
		neigh->asked_ns = now_ns;
}

static bool is_dropped(const struct neigh *neigh)
{
	return neigh->info.state == NUD_NONE;
}

static void forget(struct neigh_tab *tab, struct neigh *neigh)
{
	if (is_dropped(neigh))
		tab->dropped_cnt--;
	hash_tab_remove(&tab->by_addr, &neigh->by_addr);
	list_remove(&neigh->in_tab);
	free(neigh);
}

/* Makes a new entry. It begins as one that the kernel has dropped, until a message
 * says otherwise. */
static struct neigh *make(struct neigh_tab *tab, int ifindex,
			  const struct ip_addr *addr)
{
	struct neigh *neigh = calloc(1, sizeof(*neigh));

	if (!neigh)
		return NULL;
	neigh->info.ifindex = ifindex;
	neigh->info.addr = *addr;
	if (hash_tab_insert(&tab->by_addr, &neigh->by_addr,
			    hash_of(ifindex, addr))) {
		free(neigh);
		return NULL;
	}
	list_push_back(&tab->dropped, &neigh->in_tab);
	tab->dropped_cnt++;
	return neigh;
}

static void set_state(struct neigh_tab *tab, struct neigh *neigh,
		      uint16_t state)
{
	if (is_dropped(neigh) != (state == NUD_NONE)) {
		bool is_going = state == NUD_NONE;

		list_remove(&neigh->in_tab);
		list_push_back(is_going ? &tab->dropped : &tab->known,
			       &neigh->in_tab);
		tab->dropped_cnt += is_going ? 1 : -1;
	}
	neigh->info.state = state;
}

/* Whether the kernel asked and nobody answered. An entry that is deleted by hand
 * enters the state FAILED first as well, from any state that we have heard of. Of one that
 * it has dropped the kernel does not say that it asks again. */
static bool is_disproved(const struct neigh *neigh,
			 const struct neigh_info *info)
{
	return info->state == NUD_FAILED &&
	       (is_dropped(neigh) || neigh->info.state & (NUD_INCOMPLETE | NUD_PROBE));
}

/* The kernel sends no address while it does not know a valid one. Until there is an
 * answer, we keep the last one. */
static bool take_hw_addr(struct neigh *neigh, const struct neigh_info *info)
{
	struct neigh_info *known = &neigh->info;

	if (!info->hw_len && !is_disproved(neigh, info))
		return false;
	if (known->hw_len == info->hw_len &&
	    memcmp(known->hw_addr, info->hw_addr, info->hw_len) == 0)
		return false;
	known->hw_len = info->hw_len;
	memcpy(known->hw_addr, info->hw_addr, info->hw_len);
	return true;
}

bool neigh_tab_is_met(const struct neigh_tab *tab, const struct neigh_info *info)
{
	const struct neigh *neigh = find(tab, info->ifindex, &info->addr);

	return neigh && !is_dropped(neigh) && neigh->epoch == tab->epoch;
}

int neigh_tab_set(struct neigh_tab *tab, const struct neigh_info *info)
{
	struct neigh *neigh = find(tab, info->ifindex, &info->addr);
	enum neigh_advice before = neigh_advice(neigh);
	bool has_moved;

	if (info->state == NUD_NONE)
		return neigh_tab_drop(tab, info->ifindex, &info->addr);
	if (!neigh)
		neigh = make(tab, info->ifindex, &info->addr);
	if (!neigh)
		return -ENOMEM;
	has_moved = take_hw_addr(neigh, info);
	set_state(tab, neigh, info->state);
	neigh->epoch = tab->epoch;
	neigh->asked_ns = 0;
	/* The kernel says nothing when it begins to ask once more: that it has asked in
	 * vain again is an answer to whoever waits. */
	return has_moved || neigh_advice(neigh) != before || info->state == NUD_FAILED;
}

int neigh_tab_drop(struct neigh_tab *tab, int ifindex,
		   const struct ip_addr *addr)
{
	struct neigh *neigh = find(tab, ifindex, addr);
	enum neigh_advice before = neigh_advice(neigh);

	if (!neigh)
		return 0;
	neigh->asked_ns = 0;
	if (is_dropped(neigh))
		return 0;
	set_state(tab, neigh, NUD_NONE);
	if (!neigh->info.hw_len) {
		forget(tab, neigh);
		return before != NEIGH_RESOLVE;
	}
	if (tab->dropped_cnt > NEIGH_DROPPED_MAX)
		forget(tab, LIST_ENTRY(list_first(&tab->dropped), struct neigh,
				       in_tab));
	return before != NEIGH_CONFIRM;
}

/* Removes the entries of a link from the list. Returns whether there were any. */
static bool forget_of(struct neigh_tab *tab, struct list *list, int ifindex)
{
	struct neigh *neigh, *following;
	bool has_removed = false;

	LIST_FOR_EACH_SAFE(neigh, following, list, in_tab) {
		if (neigh->info.ifindex != ifindex)
			continue;
		forget(tab, neigh);
		has_removed = true;
	}
	return has_removed;
}

bool neigh_tab_remove_link(struct neigh_tab *tab, int ifindex)
{
	bool had_known = forget_of(tab, &tab->known, ifindex);

	return forget_of(tab, &tab->dropped, ifindex) || had_known;
}

void neigh_tab_mark(struct neigh_tab *tab)
{
	tab->epoch++;
}

bool neigh_tab_sweep(struct neigh_tab *tab)
{
	struct neigh *neigh, *following;
	bool has_changed = false;

	LIST_FOR_EACH_SAFE(neigh, following, &tab->known, in_tab) {
		if (neigh->epoch != tab->epoch)
			has_changed |= neigh_tab_drop(tab, neigh->info.ifindex,
						      &neigh->info.addr);
	}
	return has_changed;
}

void neigh_tab_destroy(struct neigh_tab *tab)
{
	struct neigh *neigh, *following;

	LIST_FOR_EACH_SAFE(neigh, following, &tab->known, in_tab)
		forget(tab, neigh);
	LIST_FOR_EACH_SAFE(neigh, following, &tab->dropped, in_tab)
		forget(tab, neigh);
	hash_tab_release(&tab->by_addr);
}
