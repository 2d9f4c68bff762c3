/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hash tables whose links live inside the elements. The caller supplies the hash
 * (base/hash.h) and the comparison. A full table doubles all at once, so it is for
 * code that is not in a hurry. Its memory comes from the kernel: a handler may call us
 * while its thread is inside malloc. It takes no lock.
 */
#ifndef BASE_HASH_TAB_H
#define BASE_HASH_TAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Inside each element. */
struct hash_link {
	struct hash_link *next;
	uint64_t hash;
};

/* All zero is an empty table. */
struct hash_tab {
	struct hash_link **buckets;
	/* 0 or a power of two */
	size_t bucket_cnt;
	size_t cnt;
};

/* The first element with this hash, or NULL; the next one with the same. Equal
 * hashes need not mean equal keys. */
static inline struct hash_link *hash_next(struct hash_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

static inline struct hash_link *hash_tab_first(const struct hash_tab *tab,
					       uint64_t hash)
{
	if (UNLIKELY(!tab->bucket_cnt))
		return NULL;
	return hash_next(tab->buckets[hash & (tab->bucket_cnt - 1)], hash);
}

#define HASH_FOR_EACH(link, tab, hash_)                          \
	for (link = hash_tab_first(tab, hash_); link;            \
	     link = hash_next((link)->next, hash_))

/* Inserts the link in front of others with the same hash. -ENOMEM: the table has no
 * buckets at all. A full table that cannot grow only gets slower. */
int hash_tab_insert(struct hash_tab *tab, struct hash_link *link, uint64_t hash)
	MUST_CHECK;
/* The link must be in the table. */
void hash_tab_remove(struct hash_tab *tab, struct hash_link *link);
/* `link` must be in the table; `with` takes its place and its hash. */
void hash_tab_replace(struct hash_tab *tab, struct hash_link *link,
		      struct hash_link *with);
/* All elements in no order: the one after `link`, or any for NULL; NULL at the
 * end. `link` may be removed once its successor is known, others may not. */
struct hash_link *hash_tab_walk(const struct hash_tab *tab,
				const struct hash_link *link);
/* Frees the buckets; the elements are the caller's. The table is empty then. */
void hash_tab_release(struct hash_tab *tab);

#endif
