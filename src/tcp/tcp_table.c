/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of connections by four-tuple. Connections hang in buckets by a seeded hash
 * of the whole key. When there are more of them than buckets the table doubles, and
 * moves a few buckets with each insertion, so that no single segment pays for it.
 * Listeners hang by local port.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

enum { FIRST_BUCKETS = 64, MOVED_AT_ONCE = 4 };

static uint64_t hash_of(const struct tcp_table *table,
			const struct flow_key *key)
{
	return flow_key_hash(key, table->hash_seed);
}

static struct tcp_pcb *find_in(struct tcp_pcb *pcb, const struct flow_key *key)
{
	while (pcb && !flow_key_eq(&pcb->key, key))
		pcb = pcb->hash_next;
	return pcb;
}

struct tcp_pcb *tcp_table_look_up(struct tcp_table *table,
				  const struct flow_key *key)
{
	uint64_t hash = hash_of(table, key);
	struct tcp_pcb *pcb = NULL;

	if (LIKELY(table->buckets != NULL))
		pcb = find_in(table->buckets[hash & (table->bucket_cnt - 1)],
			      key);
	if (UNLIKELY(!pcb && table->old_buckets))
		pcb = find_in(table->old_buckets[hash &
						 (table->old_bucket_cnt - 1)],
			      key);
	table->recent = pcb;
	return pcb;
}

static void hang(struct tcp_table *table, struct tcp_pcb *pcb)
{
	uint64_t hash = hash_of(table, &pcb->key);
	struct tcp_pcb **bucket =
		&table->buckets[hash & (table->bucket_cnt - 1)];

	pcb->hash_next = *bucket;
	*bucket = pcb;
}

static void free_old_buckets(struct tcp_table *table)
{
	table->ops->release(table->ctx, table->old_buckets,
			    table->old_bucket_cnt * sizeof(struct tcp_pcb *));
	table->old_buckets = NULL;
}

static void move_some(struct tcp_table *table)
{
	for (int i = 0; i < MOVED_AT_ONCE; i++) {
		struct tcp_pcb *pcb, *following;

		if (table->old_next == table->old_bucket_cnt) {
			free_old_buckets(table);
			return;
		}
		pcb = table->old_buckets[table->old_next];
		table->old_buckets[table->old_next++] = NULL;
		for (; pcb; pcb = following) {
			following = pcb->hash_next;
			hang(table, pcb);
		}
	}
}

/* Without memory the table stays as it is, only more crowded. */
static int grow(struct tcp_table *table)
{
	uint32_t cnt = table->bucket_cnt ? 2 * table->bucket_cnt
					 : FIRST_BUCKETS;
	struct tcp_pcb **buckets = table->ops->alloc(
		table->ctx, cnt * sizeof(struct tcp_pcb *));

	if (!buckets)
		return table->buckets ? 0 : -ENOMEM;
	if (table->buckets) {
		table->old_buckets = table->buckets;
		table->old_bucket_cnt = table->bucket_cnt;
		table->old_next = 0;
	}
	table->buckets = buckets;
	table->bucket_cnt = cnt;
	return 0;
}

int tcp_table_insert(struct tcp_table *table, struct tcp_pcb *pcb)
{
	int rc;

	if (table->old_buckets)
		move_some(table);
	if (table->hashed_cnt >= table->bucket_cnt && !table->old_buckets) {
		rc = grow(table);
		if (rc)
			return rc;
	}
	hang(table, pcb);
	pcb->flags |= TF_HASHED;
	table->hashed_cnt++;
	return 0;
}

static bool unhang(struct tcp_pcb **bucket, struct tcp_pcb *pcb)
{
	for (; *bucket; bucket = &(*bucket)->hash_next) {
		if (*bucket == pcb) {
			*bucket = pcb->hash_next;
			return true;
		}
	}
	return false;
}

void tcp_table_remove(struct tcp_table *table, struct tcp_pcb *pcb)
{
	uint64_t hash = hash_of(table, &pcb->key);

	if (!(pcb->flags & TF_HASHED))
		return;
	if (!unhang(&table->buckets[hash & (table->bucket_cnt - 1)], pcb) &&
	    table->old_buckets)
		unhang(&table->old_buckets[hash & (table->old_bucket_cnt - 1)],
		       pcb);
	pcb->flags &= ~TF_HASHED;
	table->hashed_cnt--;
	table->recent = NULL;
}

void tcp_table_free_buckets(struct tcp_table *table)
{
	if (table->old_buckets)
		free_old_buckets(table);
	if (table->buckets)
		table->ops->release(table->ctx, table->buckets,
				    table->bucket_cnt *
					    sizeof(struct tcp_pcb *));
}

struct list *tcp_table_listeners(struct tcp_table *table, __be16 port)
{
	return &table->listeners[be16toh(port) % TCP_LISTEN_BUCKETS];
}

/* How well it fits; 0: not. A listener that is bound to this very address goes before a
 * wildcard, and who yields comes after who does not. */
static unsigned fit_of(const struct tcp_listener *listener,
		       const struct flow_key *key)
{
	const struct flow_key *own = &listener->pcb->key;
	unsigned not_yielding = listener->yields ? 0 : 1;

	if (own->local_port != key->local_port)
		return 0;
	if (ip_addr_eq(&own->local, &key->local))
		return 3 + not_yielding;
	if (ip_addr_is_any(&own->local) &&
	    (!ip_addr_is_v4(&own->local) || ip_addr_is_v4(&key->local)))
		return 1 + not_yielding;
	return 0;
}

/* Each of n candidates is the last one chosen with a probability of 1/n. When one comes,
 * only what it gets changes its place. */
static struct tcp_listener *choose_shared(struct tcp_table *table,
					  const struct list *bucket,
					  const struct flow_key *key,
					  unsigned fit)
{
	uint64_t hash = flow_key_hash(key, ~table->hash_seed);
	struct tcp_listener *listener, *chosen = NULL;
	uint64_t cnt = 0;

	LIST_FOR_EACH(listener, bucket, link) {
		if (fit_of(listener, key) != fit)
			continue;
		cnt++;
		hash = hash_u64(hash, cnt);
		if (((hash >> 32) * cnt) >> 32 == 0)
			chosen = listener;
	}
	return chosen;
}

struct tcp_listener *tcp_table_find_listener(struct tcp_table *table,
					     const struct flow_key *key)
{
	struct list *bucket = tcp_table_listeners(table, key->local_port);
	struct tcp_listener *listener, *best = NULL;
	unsigned best_fit = 0;

	LIST_FOR_EACH(listener, bucket, link) {
		unsigned fit = fit_of(listener, key);

		if (fit > best_fit) {
			best = listener;
			best_fit = fit;
		}
	}
	return best && best->is_shared ?
		       choose_shared(table, bucket, key, best_fit) :
		       best;
}
