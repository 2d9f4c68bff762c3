/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Buckets, and their doubling. */
#include "base/hash_tab.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/pages.h"

/* A page of them. */
enum { FIRST_BUCKETS = 4096 / sizeof(struct hash_link *) };

static struct hash_link **bucket_of(const struct hash_tab *tab, uint64_t hash)
{
	return &tab->buckets[hash & (tab->bucket_cnt - 1)];
}

static void hang(struct hash_tab *tab, struct hash_link *link)
{
	struct hash_link **bucket = bucket_of(tab, link->hash);

	link->next = *bucket;
	*bucket = link;
}

/* The pointer that leads to the link. */
static struct hash_link **slot_of(struct hash_tab *tab, struct hash_link *link)
{
	struct hash_link **slot = bucket_of(tab, link->hash);

	while (*slot != link)
		slot = &(*slot)->next;
	return slot;
}

static size_t size_of(const struct hash_tab *tab)
{
	return tab->bucket_cnt * sizeof(*tab->buckets);
}

static int grow(struct hash_tab *tab)
{
	struct hash_tab bigger = { .cnt = tab->cnt };
	struct hash_link *link, *following;

	bigger.bucket_cnt = tab->bucket_cnt ? 2 * tab->bucket_cnt
					    : FIRST_BUCKETS;
	bigger.buckets = pages_map(size_of(&bigger));
	if (!bigger.buckets)
		return -ENOMEM;
	for (size_t i = 0; i < tab->bucket_cnt; i++) {
		for (link = tab->buckets[i]; link; link = following) {
			following = link->next;
			hang(&bigger, link);
		}
	}
	hash_tab_release(tab);
	*tab = bigger;
	return 0;
}

int hash_tab_insert(struct hash_tab *tab, struct hash_link *link, uint64_t hash)
{
	if (tab->cnt >= tab->bucket_cnt && grow(tab) && !tab->bucket_cnt)
		return -ENOMEM;
	link->hash = hash;
	hang(tab, link);
	tab->cnt++;
	return 0;
}

void hash_tab_remove(struct hash_tab *tab, struct hash_link *link)
{
	*slot_of(tab, link) = link->next;
	tab->cnt--;
}

void hash_tab_replace(struct hash_tab *tab, struct hash_link *link,
		      struct hash_link *with)
{
	*slot_of(tab, link) = with;
	*with = *link;
}

struct hash_link *hash_tab_walk(const struct hash_tab *tab,
				const struct hash_link *link)
{
	size_t i = 0;

	if (link) {
		if (link->next)
			return link->next;
		i = (link->hash & (tab->bucket_cnt - 1)) + 1;
	}
	for (; i < tab->bucket_cnt; i++) {
		if (tab->buckets[i])
			return tab->buckets[i];
	}
	return NULL;
}

void hash_tab_release(struct hash_tab *tab)
{
	if (tab->bucket_cnt)
		munmap(tab->buckets, size_of(tab));
	*tab = (struct hash_tab){ 0 };
}
