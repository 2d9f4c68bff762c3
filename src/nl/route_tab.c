/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One hash over (table, prefix) for the routes of all tables. Routes of the same
 * prefix hang together behind the first of them, in the order in which the kernel
 * considers them: tos down, metric up, then as they were put. Each table counts its
 * prefix lengths, so that a look-up tries only those that occur.
 *
 * A full table of the Internet has some 10^6 prefixes and few next hops. So what
 * does not belong to the prefix is a body that equal routes share, as in the kernel
 * (struct fib_info): a route costs less than 100 bytes.
 */
#include "config.h"

#include "nl/route_tab.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "nl/link_tab.h"
#include "nl/net_flow.h"

enum { LEN_WORDS = IP_PREFIX_MAX / 64 + 1 };

/* All of a route except its table and prefix, together with the flags of its hops.
 * A body never changes. It is freed with the last route that uses it. */
struct route_body {
	struct hash_link by_content;
	uint32_t user_cnt;
	/* table and prefix are zero */
	struct route route;
	struct route_hop hops[];
};

struct route_entry {
	/* of the first of its prefix only */
	struct hash_link by_prefix;
	/* the next of the same prefix */
	struct route_entry *next;
	struct route_body *body;
	struct ip_addr dst;
	uint32_t table;
	uint32_t epoch;
	uint8_t prefix_len;
};
_Static_assert(sizeof(struct route_entry) <= 64,
	       "a route costs at most 80 bytes of heap, and its bucket");

/* A table stays when its last route goes. */
struct route_table {
	uint32_t id;
	struct hash_link by_id;
	/* routes by prefix length, and a bit for each length that occurs */
	uint32_t len_cnt[IP_PREFIX_MAX + 1];
	uint64_t len_bits[LEN_WORDS];
};

void route_tab_init(struct route_tab *tab)
{
	*tab = (struct route_tab){ 0 };
}

static uint64_t hash_of_id(uint32_t id)
{
	return hash_u64(0, id);
}

static uint64_t hash_of_prefix(uint32_t table, const struct ip_addr *dst,
			       unsigned len)
{
	return hash_u64x2((uint64_t)table << 8 | len, dst->half[0],
			  dst->half[1]);
}

static struct route_table *find_table(const struct route_tab *tab, uint32_t id)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->tables, hash_of_id(id)) {
		struct route_table *table =
			CONTAINER_OF(link, struct route_table, by_id);

		if (table->id == id)
			return table;
	}
	return NULL;
}

/* NULL without memory. */
static struct route_table *get_table(struct route_tab *tab, uint32_t id)
{
	struct route_table *table = find_table(tab, id);

	if (table)
		return table;
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	table->id = id;
	if (hash_tab_insert(&tab->tables, &table->by_id, hash_of_id(id))) {
		free(table);
		return NULL;
	}
	return table;
}

/* The first route of the prefix, or NULL. */
static struct route_entry *find_prefix(const struct route_tab *tab,
				       uint32_t table,
				       const struct ip_addr *dst, unsigned len)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->leaves, hash_of_prefix(table, dst, len)) {
		struct route_entry *entry =
			CONTAINER_OF(link, struct route_entry, by_prefix);

		if (entry->table == table && entry->prefix_len == len &&
		    ip_addr_eq(&entry->dst, dst))
			return entry;
	}
	return NULL;
}

static bool is_same_hop(const struct route_hop *a, const struct route_hop *b)
{
	return a->ifindex == b->ifindex && a->weight == b->weight &&
	       ip_addr_eq(&a->gateway, &b->gateway);
}

static bool is_same_tcp(const struct route_tcp *a, const struct route_tcp *b)
{
	return a->adv_mss == b->adv_mss && a->initial_window == b->initial_window &&
	       a->rto_min_ms == b->rto_min_ms;
}

/* Whether the two are the same route. The flags of next hops do not count, since
 * they come and go with their links. */
static bool is_same(const struct route *a, const struct route *b)
{
	if (a->tos != b->tos || a->priority != b->priority ||
	    a->type != b->type || a->scope != b->scope ||
	    a->protocol != b->protocol || a->mtu != b->mtu ||
	    a->is_mtu_locked != b->is_mtu_locked ||
	    a->hop_limit != b->hop_limit || !is_same_tcp(&a->tcp, &b->tcp) ||
	    a->is_foreign != b->is_foreign || a->hop_cnt != b->hop_cnt ||
	    !ip_addr_eq(&a->prefsrc, &b->prefsrc))
		return false;
	for (unsigned i = 0; i < a->hop_cnt; i++) {
		if (!is_same_hop(&a->hops[i], &b->hops[i]))
			return false;
	}
	return true;
}

static bool has_same_flags(const struct route *a, const struct route *b)
{
	for (unsigned i = 0; i < a->hop_cnt; i++) {
		if (a->hops[i].flags != b->hops[i].flags)
			return false;
	}
	return true;
}

/* -- bodies ---------------------------------------------------------------- */

static uint64_t hash_of_body(const struct route *route)
{
	struct route body = *route;
	uint64_t hash;

	memset(&body.dst, 0, sizeof(body.dst));
	body.table = 0;
	body.prefix_len = 0;
	/* no padding before the count of hops */
	hash = hash_bytes(route->hop_cnt, &body,
			  offsetof(struct route, hop_cnt));
	for (unsigned i = 0; i < route->hop_cnt; i++) {
		const struct route_hop *hop = &route->hops[i];

		hash = hash_u64x2(hash, hop->gateway.half[0],
				  hop->gateway.half[1]);
		hash = hash_u64x2(hash, (uint64_t)hop->ifindex << 32 | hop->weight,
				  hop->flags);
	}
	return hash;
}

static struct route_body *find_body(const struct route_tab *tab,
				    const struct route *route, uint64_t hash)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &tab->bodies, hash) {
		struct route_body *body =
			CONTAINER_OF(link, struct route_body, by_content);

		if (is_same(&body->route, route) &&
		    has_same_flags(&body->route, route))
			return body;
	}
	return NULL;
}

/* A reference to the route's body, or NULL without memory. */
static struct route_body *get_body(struct route_tab *tab,
				   const struct route *route)
{
	uint64_t hash = hash_of_body(route);
	struct route_body *body = find_body(tab, route, hash);
	size_t hops_size = route->hop_cnt * sizeof(struct route_hop);

	if (body) {
		body->user_cnt++;
		return body;
	}
	body = malloc(sizeof(*body) + hops_size);
	if (!body)
		return NULL;
	body->user_cnt = 1;
	body->route = *route;
	body->route.dst = (struct ip_addr){ 0 };
	body->route.table = 0;
	body->route.prefix_len = 0;
	body->route.hops = body->hops;
	if (hops_size)
		memcpy(body->hops, route->hops, hops_size);
	if (hash_tab_insert(&tab->bodies, &body->by_content, hash)) {
		free(body);
		return NULL;
	}
	return body;
}

static void put_body(struct route_tab *tab, struct route_body *body)
{
	if (--body->user_cnt)
		return;
	hash_tab_remove(&tab->bodies, &body->by_content);
	free(body);
}

/* -- entries --------------------------------------------------------------- */

/* Puts the route together again; its hops are borrowed from the body. */
static struct route route_of(const struct route_entry *entry)
{
	struct route route = entry->body->route;

	route.dst = entry->dst;
	route.table = entry->table;
	route.prefix_len = entry->prefix_len;
	return route;
}

/* Takes over what may differ between two that are the same route. 1: something did
 * differ, 0: nothing did. Or -ENOMEM. */
static int take_flags(struct route_tab *tab, struct route_entry *known,
		      const struct route *route)
{
	struct route_body *body;

	if (has_same_flags(&known->body->route, route))
		return 0;
	body = get_body(tab, route);
	if (!body)
		return -ENOMEM;
	put_body(tab, known->body);
	known->body = body;
	return 1;
}

/* Negative: a comes before b. 0: they are rivals, that is, the order in which they
 * were added decides. */
static int compare(const struct route *a, const struct route *b)
{
	if (a->tos != b->tos)
		return a->tos > b->tos ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	return 0;
}

static struct route_entry *make_entry(struct route_tab *tab,
				      const struct route *route)
{
	struct route_entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return NULL;
	entry->next = NULL;
	entry->epoch = tab->epoch;
	entry->dst = route->dst;
	entry->table = route->table;
	entry->prefix_len = route->prefix_len;
	entry->body = get_body(tab, route);
	if (!entry->body) {
		free(entry);
		return NULL;
	}
	return entry;
}

static void free_entry(struct route_tab *tab, struct route_entry *entry)
{
	put_body(tab, entry->body);
	free(entry);
}

static void count(struct route_tab *tab, struct route_table *table,
		  unsigned len, int by)
{
	uint64_t bit = UINT64_C(1) << len % 64;

	tab->route_cnt += (uint32_t)by;
	table->len_cnt[len] += (uint32_t)by;
	if (table->len_cnt[len])
		table->len_bits[len / 64] |= bit;
	else
		table->len_bits[len / 64] &= ~bit;
}

/* Takes the entry, which follows `prev` or is the first of its prefix, out of the
 * table and frees it. */
static void unchain(struct route_tab *tab, struct route_entry *prev,
		    struct route_entry *entry)
{
	count(tab, find_table(tab, entry->table), entry->prefix_len, -1);
	if (prev)
		prev->next = entry->next;
	else if (entry->next)
		hash_tab_replace(&tab->leaves, &entry->by_prefix,
				 &entry->next->by_prefix);
	else
		hash_tab_remove(&tab->leaves, &entry->by_prefix);
	free_entry(tab, entry);
}

/* Removes the route that is the same, if the prefix has one. */
static bool remove_same(struct route_tab *tab, const struct route *route)
{
	struct route_entry *prev = NULL;
	struct route_entry *entry = find_prefix(tab, route->table, &route->dst,
						route->prefix_len);

	for (; entry; prev = entry, entry = entry->next) {
		if (is_same(&entry->body->route, route)) {
			unchain(tab, prev, entry);
			return true;
		}
	}
	return false;
}

/* The first rival of the route. Through `prev_out`, the route behind which a route
 * in its place is put; NULL: it is the first of the prefix. */
static struct route_entry *find_rival(struct route_entry *entry,
				      const struct route *route,
				      struct route_entry **prev_out)
{
	*prev_out = NULL;
	while (entry && compare(&entry->body->route, route) < 0) {
		*prev_out = entry;
		entry = entry->next;
	}
	return entry && compare(&entry->body->route, route) == 0 ? entry : NULL;
}

static struct route_entry *last_rival(struct route_entry *rival)
{
	while (rival->next && compare(&rival->body->route,
				      &rival->next->body->route) == 0)
		rival = rival->next;
	return rival;
}

static int chain(struct route_tab *tab, struct route_entry *prev,
		 struct route_entry *entry)
{
	struct route_entry *first;

	if (prev) {
		entry->next = prev->next;
		prev->next = entry;
		return 0;
	}
	first = find_prefix(tab, entry->table, &entry->dst, entry->prefix_len);
	if (!first)
		return hash_tab_insert(&tab->leaves, &entry->by_prefix,
				       hash_of_prefix(entry->table, &entry->dst,
						      entry->prefix_len));
	entry->next = first;
	hash_tab_replace(&tab->leaves, &first->by_prefix, &entry->by_prefix);
	return 0;
}

static int add(struct route_tab *tab, const struct route *route,
	       enum route_place place)
{
	struct route_table *table = get_table(tab, route->table);
	struct route_entry *entry = table ? make_entry(tab, route) : NULL;
	struct route_entry *prev, *rival;

	if (!entry)
		return -ENOMEM;
	rival = find_rival(find_prefix(tab, route->table, &route->dst,
				       route->prefix_len),
			   route, &prev);
	if (place == ROUTE_REPLACE && rival)
		unchain(tab, prev, rival);
	if (place == ROUTE_LAST && rival)
		prev = last_rival(rival);
	if (chain(tab, prev, entry)) {
		free_entry(tab, entry);
		return -ENOMEM;
	}
	count(tab, table, route->prefix_len, 1);
	return 1;
}

/* The same route, if it is in the right place already. For ROUTE_LAST the right
 * place is the end, so that a new reading of all routes brings rivals into the
 * kernel's order. */
static struct route_entry *find_in_place(const struct route_tab *tab,
					 const struct route *route,
					 enum route_place place)
{
	struct route_entry *prev;
	struct route_entry *entry =
		find_rival(find_prefix(tab, route->table, &route->dst,
				       route->prefix_len),
			   route, &prev);

	if (entry && place == ROUTE_LAST)
		entry = last_rival(entry);
	return entry && is_same(&entry->body->route, route) ? entry : NULL;
}

int route_tab_insert(struct route_tab *tab, const struct route *route,
		     enum route_place place)
{
	struct route_entry *known = find_in_place(tab, route, place);

	if (known) {
		known->epoch = tab->epoch;
		return take_flags(tab, known, route);
	}
	/* The kernel never has the same route twice, so this one has moved. */
	remove_same(tab, route);
	return add(tab, route, place);
}

bool route_tab_remove(struct route_tab *tab, const struct route *route)
{
	return remove_same(tab, route);
}

unsigned route_tab_rivals(const struct route_tab *tab, const struct route *route,
			  struct route *first_out)
{
	struct route_entry *prev;
	struct route_entry *rival =
		find_rival(find_prefix(tab, route->table, &route->dst, route->prefix_len), route,
			   &prev);
	unsigned cnt = 0;

	if (rival)
		*first_out = route_of(rival);
	for (; rival && compare(&rival->body->route, route) == 0; rival = rival->next)
		cnt++;
	return cnt;
}

void route_tab_mark(struct route_tab *tab)
{
	tab->epoch++;
}

/* Frees the routes of one prefix that were not met in this epoch, or all. */
static bool clear_prefix(struct route_tab *tab, struct route_entry *entry,
			 bool is_all)
{
	struct route_entry *prev = NULL, *following;
	bool has_removed = false;

	for (; entry; entry = following) {
		following = entry->next;
		if (!is_all && entry->epoch == tab->epoch) {
			prev = entry;
			continue;
		}
		unchain(tab, prev, entry);
		has_removed = true;
	}
	return has_removed;
}

static bool clear(struct route_tab *tab, bool is_all)
{
	struct hash_link *link, *following;
	bool has_removed = false;

	for (link = hash_tab_walk(&tab->leaves, NULL); link; link = following) {
		following = hash_tab_walk(&tab->leaves, link);
		has_removed |= clear_prefix(
			tab, CONTAINER_OF(link, struct route_entry, by_prefix),
			is_all);
	}
	return has_removed;
}

bool route_tab_sweep(struct route_tab *tab)
{
	return clear(tab, false);
}

void route_tab_destroy(struct route_tab *tab)
{
	struct hash_link *link, *following;

	clear(tab, true);
	hash_tab_release(&tab->leaves);
	hash_tab_release(&tab->bodies);
	for (link = hash_tab_walk(&tab->tables, NULL); link; link = following) {
		following = hash_tab_walk(&tab->tables, link);
		hash_tab_remove(&tab->tables, link);
		free(CONTAINER_OF(link, struct route_table, by_id));
	}
	hash_tab_release(&tab->tables);
}

void route_tab_visit(const struct route_tab *tab,
		     void (*visit)(void *ctx, const struct route *route),
		     void *ctx)
{
	const struct hash_link *link = NULL;
	const struct route_entry *entry;

	while ((link = hash_tab_walk(&tab->leaves, link))) {
		entry = CONTAINER_OF(link, struct route_entry, by_prefix);
		for (; entry; entry = entry->next) {
			struct route route = route_of(entry);

			visit(ctx, &route);
		}
	}
}

/* So many routes are walked over for one answer. */
enum { STRETCH_ROUTES_MAX = 128 };

/* Ends the stretch before or behind a prefix that `dst` is not in, and at its ends if
 * it is. */
static void heed_prefix(struct route_stretch *stretch, uint32_t dst,
			const struct route_entry *entry)
{
	uint32_t first = be32toh(ip_addr_v4(&entry->dst));
	uint32_t last = first |
			(uint32_t)((UINT64_C(1) << (IP_PREFIX_MAX -
						    entry->prefix_len)) -
				   1);

	if (dst < first) {
		stretch->last = MIN(stretch->last, first - 1);
	} else if (dst > last) {
		stretch->first = MAX(stretch->first, last + 1);
	} else {
		stretch->first = MAX(stretch->first, first);
		stretch->last = MIN(stretch->last, last);
	}
}

struct route_stretch route_tab_stretch(const struct route_tab *tab,
				       const struct ip_addr *dst)
{
	uint32_t at = be32toh(ip_addr_v4(dst));
	struct route_stretch stretch = { 0, UINT32_MAX };
	const struct hash_link *link = NULL;

	if (tab->route_cnt > STRETCH_ROUTES_MAX)
		return (struct route_stretch){ at, at };
	while ((link = hash_tab_walk(&tab->leaves, link))) {
		const struct route_entry *entry =
			CONTAINER_OF(link, struct route_entry, by_prefix);

		if (ip_addr_is_v4(&entry->dst))
			heed_prefix(&stretch, at, entry);
	}
	return stretch;
}

bool route_hop_is_usable(const struct route *route, const struct route_hop *hop,
			 const struct link_tab *links)
{
	const struct link *link;

	if (hop->flags & RTNH_F_DEAD)
		return false;
	link = link_tab_find(links, hop->ifindex);
	return link && (link_is_up(link) || route->scope == RT_SCOPE_HOST);
}

/* What becomes of a packet that a route of this type matches. */
static int verdict_of(uint8_t type)
{
	switch (type) {
	case RTN_UNICAST:
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
	case RTN_MULTICAST:
		return 0;
	case RTN_UNREACHABLE:
		return -EHOSTUNREACH;
	case RTN_PROHIBIT:
		return -EACCES;
	case RTN_THROW:
		return -EAGAIN;
	default:
		return -EINVAL;
	}
}

static const struct route_hop *find_hop(const struct route *route, int oif,
					const struct link_tab *links)
{
	for (unsigned i = 0; i < route->hop_cnt; i++) {
		const struct route_hop *hop = &route->hops[i];

		if ((!oif || hop->ifindex == oif) &&
		    route_hop_is_usable(route, hop, links))
			return hop;
	}
	return NULL;
}

enum { GO_ON = 1 };

/* GO_ON: try the next route of the prefix. */
static int try_route(const struct route_entry *entry,
		     const struct route_query *query,
		     const struct link_tab *links,
		     struct route_match *match_out)
{
	const struct route *route = &entry->body->route;
	int err;

	if (route->tos && route->tos != (query->tos & NET_TOS_ROUTE_MASK))
		return GO_ON;
	if (route->scope < query->scope)
		return GO_ON;
	err = verdict_of(route->type);
	if (err)
		return err;
	*match_out = (struct route_match){
		route_of(entry), find_hop(route, query->oif, links)
	};
	if (route->is_foreign && (match_out->hop || !route->hop_cnt))
		return -EOPNOTSUPP;
	return match_out->hop ? 0 : GO_ON;
}

static int try_prefix(const struct route_entry *entry,
		      const struct route_query *query,
		      const struct link_tab *links,
		      struct route_match *match_out)
{
	int rc = GO_ON;

	for (; entry && rc == GO_ON; entry = entry->next)
		rc = try_route(entry, query, links, match_out);
	return rc;
}

/* The tables that exist, and the prefix lengths that occur in any of them. */
struct search {
	const struct route_table *tables[ROUTE_TABLES_MAX];
	unsigned table_cnt;
	uint64_t len_bits[LEN_WORDS];
};

static void search_init(struct search *search, const struct route_tab *tab,
			const uint32_t *ids, unsigned cnt)
{
	*search = (struct search){ 0 };
	for (unsigned i = 0; i < cnt; i++) {
		const struct route_table *table = find_table(tab, ids[i]);

		if (!table)
			continue;
		search->tables[search->table_cnt++] = table;
		for (unsigned w = 0; w < LEN_WORDS; w++)
			search->len_bits[w] |= table->len_bits[w];
	}
}

static int try_len(const struct route_tab *tab, const struct search *search,
		   unsigned len, const struct route_query *query,
		   const struct link_tab *links, struct route_match *match_out)
{
	struct ip_addr dst = ip_addr_masked(&query->dst, len);
	int rc = GO_ON;

	for (unsigned i = 0; i < search->table_cnt && rc == GO_ON; i++) {
		const struct route_table *table = search->tables[i];

		if (table->len_cnt[len])
			rc = try_prefix(find_prefix(tab, table->id, &dst, len),
					query, links, match_out);
	}
	return rc;
}

int route_tab_lookup(const struct route_tab *tab, const uint32_t *tables,
		     unsigned table_cnt, const struct route_query *query,
		     const struct link_tab *links,
		     struct route_match *match_out)
{
	struct search search;
	int rc;

	INVARIANT(table_cnt <= ROUTE_TABLES_MAX, "nobody merges more");
	search_init(&search, tab, tables, table_cnt);
	for (int w = LEN_WORDS - 1; w >= 0; w--) {
		uint64_t bits = search.len_bits[w];

		while (bits) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(bits);

			rc = try_len(tab, &search, (unsigned)w * 64 + bit,
				     query, links, match_out);
			if (rc != GO_ON)
				return rc;
			bits &= ~(UINT64_C(1) << bit);
		}
	}
	return -EAGAIN;
}
