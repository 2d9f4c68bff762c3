/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Computes which sources interfaces admit (rpf.h). */
#include "config.h"

#include "net/rpf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many look-ups of routes we spend on it at most. */
enum { LOOKUPS_MAX = 1 << 20 };

/* A range of addresses. It begins at `from`, in host order, and ends where the next
 * range begins. */
struct range {
	uint32_t from;
	bool is_admitted;
};

/* The sources that one interface admits, for packets to one local address. */
struct map {
	uint32_t ifindex;
	__be32 local; /* 0: any */
	unsigned range_cnt;
	struct range *ranges;
};

struct rpf {
	unsigned map_cnt;
	struct map maps[];
};

/* -- where answers may change ------------------------------------------------------ */

struct bounds {
	uint32_t *at;
	size_t cnt, room;
	bool is_short_of_memory;
};

static void add_bound(struct bounds *b, uint32_t bound)
{
	size_t room = MAX(2 * b->room, (size_t)64);
	uint32_t *bigger;

	if (b->cnt == b->room) {
		bigger = realloc(b->at, room * sizeof(*b->at));
		if (!bigger) {
			b->is_short_of_memory = true;
			return;
		}
		b->at = bigger;
		b->room = room;
	}
	b->at[b->cnt++] = bound;
}

static void add_prefix(struct bounds *b, const struct ip_addr *addr,
		       unsigned prefix_len)
{
	uint32_t first = be32toh(ip_addr_v4(addr));
	unsigned len = prefix_len - IP_PREFIX_V4;
	uint64_t behind = (uint64_t)first + (1ull << (32 - len));

	add_bound(b, first);
	if (behind <= UINT32_MAX)
		add_bound(b, (uint32_t)behind);
}

static void add_route(void *ctx, const struct route *route)
{
	if (ip_addr_is_v4(&route->dst))
		add_prefix(ctx, &route->dst, route->prefix_len);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Collects the addresses at which an answer may change, in ascending order, each one
 * once. The first is 0. */
static int collect_bounds(const struct net_view *view, struct bounds *b)
{
	const struct policy_entry *entry;
	size_t cnt = 0;

	*b = (struct bounds){ 0 };
	add_bound(b, 0);
	route_tab_visit(&view->routes, add_route, b);
	/* The kernel looks up the way back, so the rule's destination is our source. */
	LIST_FOR_EACH(entry, &view->policies.policies, in_tab)
		if (entry->policy.dst_len)
			add_prefix(b, &entry->policy.dst,
				   entry->policy.dst_len);
	if (b->is_short_of_memory) {
		free(b->at);
		return -ENOMEM;
	}
	qsort(b->at, b->cnt, sizeof(*b->at), compare);
	for (size_t i = 0; i < b->cnt; i++)
		if (!cnt || b->at[i] != b->at[cnt - 1])
			b->at[cnt++] = b->at[i];
	b->cnt = cnt;
	return 0;
}

/* -- making it ----------------------------------------------------------------------- */

/* Whether the answer depends on the address that the packet is for. */
static bool has_rules_by_source(const struct net_view *view)
{
	const struct policy_entry *entry;

	LIST_FOR_EACH(entry, &view->policies.policies, in_tab)
		if (entry->policy.src_len)
			return true;
	return false;
}

static int make_map(const struct net_view *view, const struct bounds *b,
		    struct map *map)
{
	struct ip_addr dst = ip_addr_from_v4(map->local);
	struct range *fitting;

	map->ranges = malloc(b->cnt * sizeof(*map->ranges));
	if (!map->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt; i++) {
		struct ip_addr src = ip_addr_from_v4(htobe32(b->at[i]));
		bool is_admitted =
			net_view_admits(view, (int)map->ifindex, &src, &dst);

		if (map->range_cnt &&
		    map->ranges[map->range_cnt - 1].is_admitted == is_admitted)
			continue;
		map->ranges[map->range_cnt++] =
			(struct range){ b->at[i], is_admitted };
	}
	fitting = realloc(map->ranges, map->range_cnt * sizeof(*map->ranges));
	if (fitting)
		map->ranges = fitting;
	return 0;
}

static bool admits_all(const struct map *map)
{
	return map->range_cnt == 1 && map->ranges[0].is_admitted;
}

static int add_map(struct rpf *rpf, const struct net_view *view,
		   const struct bounds *b, uint32_t ifindex, __be32 local)
{
	struct map *map = &rpf->maps[rpf->map_cnt];
	int err;

	*map = (struct map){ .ifindex = ifindex, .local = local };
	err = make_map(view, b, map);
	if (!err && admits_all(map))
		free(map->ranges);
	else if (!err)
		rpf->map_cnt++;
	return err;
}

static int add_maps(struct rpf *rpf, const struct net_view *view,
		    const struct bounds *b, const int *ifindexes,
		    unsigned ifindex_cnt, const __be32 *own, unsigned own_cnt)
{
	int err = 0;

	for (unsigned i = 0; i < ifindex_cnt; i++) {
		if (rpf_tab_mode(&view->rpf, ifindexes[i]) == RPF_OFF)
			continue;
		for (unsigned k = 0; k < own_cnt && !err; k++)
			err = add_map(rpf, view, b, (uint32_t)ifindexes[i],
				      own[k]);
	}
	return err;
}

static bool is_filtered(const struct net_view *view, const int *ifindexes, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (rpf_tab_mode(&view->rpf, ifindexes[i]) != RPF_OFF)
			return true;
	return false;
}

int rpf_make(const struct net_view *view, const int *ifindexes,
	     unsigned ifindex_cnt, const __be32 *own, unsigned own_cnt,
	     struct rpf **rpf_out)
{
	static const __be32 any;
	struct bounds b;
	struct rpf *rpf;
	int err;

	*rpf_out = NULL;
	if (!is_filtered(view, ifindexes, ifindex_cnt))
		return 0;
	if (!has_rules_by_source(view)) {
		own = &any;
		own_cnt = 1;
	}
	err = collect_bounds(view, &b);
	if (err)
		return err;
	err = -E2BIG;
	if ((uint64_t)b.cnt * ifindex_cnt * own_cnt > LOOKUPS_MAX)
		goto out;
	err = -ENOMEM;
	rpf = calloc(1, sizeof(*rpf) + (size_t)ifindex_cnt * own_cnt *
						sizeof(rpf->maps[0]));
	if (!rpf)
		goto out;
	err = add_maps(rpf, view, &b, ifindexes, ifindex_cnt, own, own_cnt);
	if (err || !rpf->map_cnt)
		rpf_free(rpf);
	else
		*rpf_out = rpf;
out:
	free(b.at);
	return err;
}

void rpf_free(struct rpf *rpf)
{
	if (!rpf)
		return;
	for (unsigned i = 0; i < rpf->map_cnt; i++)
		free(rpf->maps[i].ranges);
	free(rpf);
}

/* -- asking --------------------------------------------------------------------------- */

static bool admits(const struct map *map, uint32_t src)
{
	unsigned from = 0, to = map->range_cnt;

	/* The first range begins at 0. */
	while (to - from > 1) {
		unsigned at = (from + to) / 2;

		if (map->ranges[at].from <= src)
			from = at;
		else
			to = at;
	}
	return map->ranges[from].is_admitted;
}

bool rpf_admits(const struct rpf *rpf, uint32_t ifindex, __be32 src, __be32 dst)
{
	for (unsigned i = 0; rpf && i < rpf->map_cnt; i++) {
		const struct map *map = &rpf->maps[i];

		if (map->ifindex == ifindex &&
		    (!map->local || map->local == dst))
			return admits(map, be32toh(src));
	}
	return true;
}
