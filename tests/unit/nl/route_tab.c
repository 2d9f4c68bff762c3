/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/route_tab.h"

#include <errno.h>
#include <malloc.h>

#include "base/clock.h"
#include "base/rand.h"
#include "nl/link_tab.h"
#include "tests/unit/nl/build.h"

static struct route_tab tab;
static struct link_tab links;
static struct rand dice;

static void set_up(void)
{
	route_tab_init(&tab);
	link_tab_init(&links);
	for (int i = 1; i <= 4; i++) {
		struct link_info info = link_up(i, "x");

		CHECK_EQ(link_tab_set(&links, &info), 1);
	}
}

static void tear_down(void)
{
	route_tab_destroy(&tab);
	link_tab_destroy(&links);
	CHECK_EQ(tab.route_cnt, 0);
}

/* A route by one hop on the link `ifindex`. */
static struct route *route(const char *net, int ifindex)
{
	static struct route_hop hop;
	static struct route r;
	unsigned len;

	hop = (struct route_hop){ .ifindex = ifindex, .weight = 1 };
	r = (struct route){ .table = RT_TABLE_MAIN, .type = RTN_UNICAST,
			    .hops = &hop, .hop_cnt = 1 };
	r.dst = prefix(net, &len);
	r.prefix_len = (uint8_t)len;
	return &r;
}

static void add(const struct route *r)
{
	CHECK_EQ(route_tab_insert(&tab, r, ROUTE_FIRST), 1);
}

static struct route_match match;
static uint8_t query_tos;
static int query_oif;

/* The errno of a look-up in main. */
static int look_up(const char *dst)
{
	static const uint32_t table = RT_TABLE_MAIN;
	struct route_query query = { .dst = addr(dst), .tos = query_tos,
				     .oif = query_oif };

	return route_tab_lookup(&tab, &table, 1, &query, &links, &match);
}

/* The link of the route that is found. */
static int link_to(const char *dst)
{
	CHECK_EQ(look_up(dst), 0);
	return match.hop->ifindex;
}

TEST(longest_prefix_wins)
{
	set_up();
	CHECK_EQ(look_up("10.0.0.1"), -EAGAIN);
	add(route("0.0.0.0/0", 1));
	add(route("10.0.0.0/8", 2));
	add(route("10.1.0.0/16", 3));
	add(route("10.1.1.1/32", 4));
	CHECK_EQ(link_to("9.9.9.9"), 1);
	CHECK_EQ(link_to("10.0.0.1"), 2);
	CHECK_EQ(link_to("10.1.0.1"), 3);
	CHECK_EQ(link_to("10.1.1.1"), 4);
	CHECK(route_tab_remove(&tab, route("10.1.0.0/16", 3)));
	CHECK(!route_tab_remove(&tab, route("10.1.0.0/16", 3)));
	CHECK_EQ(link_to("10.1.0.1"), 2);
	tear_down();
}

TEST(families_do_not_mix)
{
	set_up();
	add(route("::/0", 1));
	CHECK_EQ(link_to("2001:db8::1"), 1);
	add(route("0.0.0.0/0", 2));
	CHECK_EQ(link_to("10.0.0.1"), 2);
	CHECK_EQ(link_to("2001:db8::1"), 1);
	tear_down();
}

TEST(lowest_metric_then_order)
{
	struct route *r;

	set_up();
	r = route("10.0.0.0/8", 2);
	r->priority = 100;
	add(r);
	r = route("10.0.0.0/8", 3);
	r->priority = 50;
	add(r);
	CHECK_EQ(link_to("10.0.0.1"), 3);
	r = route("10.0.0.0/8", 4);
	r->priority = 50;
	CHECK_EQ(route_tab_insert(&tab, r, ROUTE_LAST), 1);
	CHECK_EQ(link_to("10.0.0.1"), 3);
	r = route("10.0.0.0/8", 1);
	r->priority = 50;
	add(r);
	CHECK_EQ(link_to("10.0.0.1"), 1);
	tear_down();
}

TEST(replace_takes_the_first_rivals_place)
{
	struct route *r;

	set_up();
	add(route("10.0.0.0/8", 2));
	add(route("10.0.0.0/8", 3));
	CHECK_EQ(route_tab_insert(&tab, route("10.0.0.0/8", 4), ROUTE_REPLACE),
		 1);
	CHECK_EQ(link_to("10.0.0.1"), 4);
	CHECK_EQ(tab.route_cnt, 2);
	CHECK(!route_tab_remove(&tab, route("10.0.0.0/8", 3)));
	r = route("10.0.0.0/8", 1);
	r->priority = 7;
	CHECK_EQ(route_tab_insert(&tab, r, ROUTE_REPLACE), 1);
	CHECK_EQ(tab.route_cnt, 3);
	CHECK_EQ(link_to("10.0.0.1"), 4);
	tear_down();
}

TEST(the_same_route_is_there_once)
{
	struct route *r;

	set_up();
	add(route("10.0.0.0/8", 2));
	CHECK_EQ(route_tab_insert(&tab, route("10.0.0.0/8", 2), ROUTE_FIRST),
		 0);
	r = route("10.0.0.0/8", 2);
	r->hops[0].flags = RTNH_F_LINKDOWN;
	CHECK_EQ(route_tab_insert(&tab, r, ROUTE_FIRST), 1);
	add(route("10.0.0.0/8", 3));
	/* It moves. */
	CHECK_EQ(route_tab_insert(&tab, route("10.0.0.0/8", 2), ROUTE_FIRST),
		 1);
	CHECK_EQ(link_to("10.0.0.1"), 2);
	CHECK_EQ(tab.route_cnt, 2);
	tear_down();
}

TEST(tos_chooses_among_equals)
{
	struct route *r;

	set_up();
	add(route("10.0.0.0/8", 2));
	r = route("10.0.0.0/8", 3);
	r->tos = 0x10;
	r->priority = 9;
	add(r);
	query_tos = 0;
	CHECK_EQ(link_to("10.0.0.1"), 2);
	query_tos = 0x10;
	CHECK_EQ(link_to("10.0.0.1"), 3);
	/* Bits that routing does not look at. */
	query_tos = 0xf3;
	CHECK_EQ(link_to("10.0.0.1"), 3);
	query_tos = 0x14;
	CHECK_EQ(link_to("10.0.0.1"), 2);
	query_tos = 0;
	tear_down();
}

TEST(routes_that_refuse)
{
	static const struct {
		uint8_t type;
		int error;
	} types[] = {
		{ RTN_BLACKHOLE, -EINVAL },	 { RTN_THROW, -EAGAIN },
		{ RTN_UNREACHABLE, -EHOSTUNREACH }, { RTN_PROHIBIT, -EACCES },
		{ RTN_NAT, -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct route *r;

		set_up();
		add(route("0.0.0.0/0", 1));
		r = route("10.0.0.0/8", 0);
		r->type = types[i].type;
		r->hop_cnt = 0;
		add(r);
		CHECK_EQ(look_up("10.0.0.1"), types[i].error);
		CHECK_EQ(link_to("11.0.0.1"), 1);
		tear_down();
	}
}

TEST(dead_hops_are_passed_over)
{
	struct link_info down = link_up(3, "x");
	struct route *r;

	set_up();
	add(route("0.0.0.0/0", 1));
	add(route("10.0.0.0/8", 3));
	CHECK_EQ(link_to("10.0.0.1"), 3);
	down.flags = 0;
	CHECK_EQ(link_tab_set(&links, &down), 1);
	CHECK_EQ(link_to("10.0.0.1"), 1);
	/* Addresses of a link that is down are still this host's. */
	r = route("10.0.0.1/32", 3);
	r->type = RTN_LOCAL;
	r->scope = RT_SCOPE_HOST;
	add(r);
	CHECK_EQ(link_to("10.0.0.1"), 3);
	r = route("10.1.0.0/16", 2);
	r->hops[0].flags = RTNH_F_DEAD;
	add(r);
	CHECK_EQ(link_to("10.1.0.1"), 1);
	add(route("10.2.0.0/16", 99));
	CHECK_EQ(link_to("10.2.0.1"), 1);
	tear_down();
}

TEST(an_interface_named_by_the_sender)
{
	set_up();
	add(route("0.0.0.0/0", 1));
	add(route("10.0.0.0/8", 2));
	query_oif = 1;
	CHECK_EQ(link_to("10.0.0.1"), 1);
	query_oif = 2;
	CHECK_EQ(link_to("10.0.0.1"), 2);
	query_oif = 3;
	CHECK_EQ(look_up("10.0.0.1"), -EAGAIN);
	query_oif = 0;
	tear_down();
}

TEST(foreign_routes_are_the_kernels)
{
	struct route *r;

	set_up();
	add(route("0.0.0.0/0", 1));
	r = route("10.0.0.0/8", 2);
	r->is_foreign = true;
	add(r);
	CHECK_EQ(look_up("10.0.0.1"), -EOPNOTSUPP);
	query_oif = 1;
	CHECK_EQ(link_to("10.0.0.1"), 1);
	query_oif = 0;
	tear_down();
}

TEST(two_tables_as_one)
{
	static const uint32_t both[] = { RT_TABLE_LOCAL, RT_TABLE_MAIN };
	struct route_query query = { .dst = addr("10.1.0.1") };
	struct route *r;

	set_up();
	r = route("10.0.0.0/8", 2);
	r->table = RT_TABLE_LOCAL;
	add(r);
	add(route("10.0.0.0/8", 3));
	CHECK_EQ(route_tab_lookup(&tab, both, 2, &query, &links, &match), 0);
	CHECK_EQ(match.hop->ifindex, 2);
	add(route("10.1.0.0/16", 4));
	CHECK_EQ(route_tab_lookup(&tab, both, 2, &query, &links, &match), 0);
	CHECK_EQ(match.hop->ifindex, 4);
	CHECK_EQ(route_tab_lookup(&tab, both, 1, &query, &links, &match), 0);
	CHECK_EQ(match.hop->ifindex, 2);
	tear_down();
}

TEST(a_sweep_removes_what_was_not_met)
{
	set_up();
	add(route("10.0.0.0/8", 2));
	add(route("10.0.0.0/8", 3));
	add(route("10.0.0.0/8", 4));
	add(route("11.0.0.0/8", 4));
	route_tab_mark(&tab);
	/* The kernel's order is another one. */
	CHECK(route_tab_insert(&tab, route("10.0.0.0/8", 2), ROUTE_LAST) >= 0);
	CHECK(route_tab_insert(&tab, route("10.0.0.0/8", 4), ROUTE_LAST) >= 0);
	CHECK(route_tab_sweep(&tab));
	CHECK_EQ(tab.route_cnt, 2);
	CHECK_EQ(link_to("10.0.0.1"), 2);
	CHECK_EQ(look_up("11.0.0.1"), -EAGAIN);
	tear_down();
}

/* The same in a list, which knows nothing but the rules. */

enum { MODEL_MAX = 4000 };

struct model_route {
	struct route route;
	struct route_hop hop;
};

static struct model_route model[MODEL_MAX];
static unsigned model_cnt;

static bool is_same_prefix(const struct route *a, const struct route *b)
{
	return a->table == b->table && a->prefix_len == b->prefix_len &&
	       ip_addr_eq(&a->dst, &b->dst);
}

static bool are_rivals(const struct route *a, const struct route *b)
{
	return is_same_prefix(a, b) && a->tos == b->tos &&
	       a->priority == b->priority;
}

static bool is_same_route(const struct model_route *a,
			  const struct model_route *b)
{
	return are_rivals(&a->route, &b->route) &&
	       a->route.type == b->route.type &&
	       a->hop.ifindex == b->hop.ifindex;
}

static void model_take_out(unsigned i)
{
	memmove(&model[i], &model[i + 1],
		(model_cnt - i - 1) * sizeof(model[0]));
	model_cnt--;
}

static bool model_remove(const struct model_route *r)
{
	for (unsigned i = 0; i < model_cnt; i++) {
		if (is_same_route(&model[i], r)) {
			model_take_out(i);
			return true;
		}
	}
	return false;
}

/* Rivals are in order in the list; nothing else is. */
static void model_insert(const struct model_route *r, enum route_place place)
{
	unsigned at = model_cnt;

	if (place == ROUTE_REPLACE) {
		for (at = 0; at < model_cnt &&
			     !are_rivals(&model[at].route, &r->route); at++)
			;
		if (at < model_cnt && is_same_route(&model[at], r))
			return;
		if (at < model_cnt)
			model_take_out(at);
		for (unsigned i = 0; i < model_cnt; i++) {
			if (is_same_route(&model[i], r)) {
				model_take_out(i);
				at -= i < at;
				break;
			}
		}
	} else {
		model_remove(r);
		at = place == ROUTE_FIRST ? 0 : model_cnt;
	}
	CHECK(model_cnt < MODEL_MAX);
	memmove(&model[at + 1], &model[at], (model_cnt - at) * sizeof(model[0]));
	model[at] = *r;
	model_cnt++;
}

static bool is_better(const struct route *a, const struct route *than)
{
	if (a->prefix_len != than->prefix_len)
		return a->prefix_len > than->prefix_len;
	if (a->tos != than->tos)
		return a->tos > than->tos;
	return a->priority < than->priority;
}

static const struct model_route *model_find(uint32_t table,
					    const struct route_query *query)
{
	const struct model_route *best = NULL;

	for (unsigned i = 0; i < model_cnt; i++) {
		const struct route *r = &model[i].route;

		if (r->table != table ||
		    !ip_addr_in_prefix(&query->dst, &r->dst, r->prefix_len) ||
		    (r->tos && r->tos != (query->tos & 0x1c)) ||
		    (query->oif && r->type == RTN_UNICAST &&
		     model[i].hop.ifindex != query->oif))
			continue;
		if (!best || is_better(r, &best->route))
			best = &model[i];
	}
	return best;
}

static unsigned below(unsigned limit)
{
	return (unsigned)rand_below(&dice, limit);
}

static struct ip_addr draw_addr(void)
{
	static const uint8_t bytes[] = { 0, 1, 2, 128, 255 };
	struct ip_addr a = ip_addr_from_v4(0);

	for (int i = 12; i < 16; i++)
		a.byte[i] = bytes[below(ARRAY_LEN(bytes))];
	return a;
}

static struct model_route draw_route(void)
{
	static const uint8_t lens[] = { 0, 1, 8, 9, 16, 24, 25, 31, 32 };
	struct model_route m = {
		.route = {
			.table = below(2) ? 100 : 70000,
			.type = below(4) ? RTN_UNICAST : RTN_PROHIBIT,
			.prefix_len = IP_PREFIX_V4 + lens[below(9)],
			.tos = below(3) ? 0 : 0x10,
			.priority = below(3),
			.hop_cnt = 1,
		},
		.hop = { .ifindex = 1 + (int)below(4), .weight = 1 },
	};
	struct ip_addr dst = draw_addr();

	m.route.dst = ip_addr_masked(&dst, m.route.prefix_len);
	if (m.route.type != RTN_UNICAST) {
		m.route.hop_cnt = 0;
		m.hop.ifindex = 0;
	}
	return m;
}

static void change_both(void)
{
	struct model_route m = draw_route();
	enum route_place place = (enum route_place)below(3);

	m.route.hops = &m.hop;
	if (model_cnt && below(3) == 0) {
		m = model[below(model_cnt)];
		m.route.hops = &m.hop;
		CHECK(model_remove(&m));
		CHECK(route_tab_remove(&tab, &m.route));
		return;
	}
	CHECK(route_tab_insert(&tab, &m.route, place) >= 0);
	model_insert(&m, place);
}

static void ask_both(void)
{
	static const uint32_t tables[] = { 100, 70000, 5 };
	uint32_t table = tables[below(3)];
	struct route_query query = {
		.dst = draw_addr(),
		.tos = (uint8_t)below(256),
		.oif = below(2) ? 0 : (int)below(5),
	};
	const struct model_route *want = model_find(table, &query);
	int rc = route_tab_lookup(&tab, &table, 1, &query, &links, &match);

	if (!want)
		CHECK_EQ(rc, -EAGAIN);
	else if (want->route.type == RTN_PROHIBIT)
		CHECK_EQ(rc, -EACCES);
	else
		CHECK(rc == 0 && is_same_prefix(&match.route, &want->route) &&
		      match.hop->ifindex == want->hop.ifindex);
}

TEST(random_changes_agree_with_a_list)
{
	set_up();
	rand_init(&dice, test_seed);
	model_cnt = 0;
	for (int i = 0; i < 3000; i++) {
		change_both();
		CHECK_EQ(tab.route_cnt, model_cnt);
		for (int j = 0; j < 10; j++)
			ask_both();
	}
	tear_down();
}

/* Whether some route of the model is there for just one of two destinations. */
static bool is_told_apart(uint32_t a, uint32_t b)
{
	struct ip_addr x = ip_addr_from_v4(htobe32(a));
	struct ip_addr y = ip_addr_from_v4(htobe32(b));

	for (unsigned i = 0; i < model_cnt; i++) {
		const struct route *r = &model[i].route;

		if (ip_addr_in_prefix(&x, &r->dst, r->prefix_len) !=
		    ip_addr_in_prefix(&y, &r->dst, r->prefix_len))
			return true;
	}
	return false;
}

static void check_stretch(const struct ip_addr *dst)
{
	struct route_stretch s = route_tab_stretch(&tab, dst);
	uint32_t at = be32toh(ip_addr_v4(dst));

	CHECK(s.first <= at && at <= s.last);
	CHECK(!is_told_apart(s.first, at) && !is_told_apart(s.last, at));
	for (int i = 0; i < 10; i++)
		CHECK(!is_told_apart(at, s.first +
						 (uint32_t)rand_below(
							 &dice,
							 (uint64_t)s.last -
								 s.first + 1)));
	/* and no shorter than it must be */
	CHECK(s.first == 0 || is_told_apart(s.first - 1, at));
	CHECK(s.last == UINT32_MAX || is_told_apart(s.last + 1, at));
}

TEST(a_stretch_has_one_answer)
{
	set_up();
	rand_init(&dice, test_seed);
	model_cnt = 0;
	while (tab.route_cnt < 128) {
		struct ip_addr dst = draw_addr();

		check_stretch(&dst);
		change_both();
	}
	tear_down();
}

TEST(a_stretch_among_many_routes_is_one_address)
{
	struct route_stretch s;
	struct ip_addr dst = addr("10.200.0.1");

	set_up();
	add(route("0.0.0.0/0", 1));
	s = route_tab_stretch(&tab, &dst);
	CHECK(s.first == 0 && s.last == UINT32_MAX);
	for (unsigned i = 0; i < 200; i++) {
		struct route *r = route("10.0.0.0/24", 2);

		r->dst = ip_addr_from_v4(htobe32(0x0a000000 + (i << 8)));
		add(r);
	}
	s = route_tab_stretch(&tab, &dst);
	CHECK(s.first == 0x0ac80001 && s.last == 0x0ac80001);
	tear_down();
}

TEST(a_hundred_thousand_routes)
{
	enum { ROUTES = 100000 };
	uint64_t start_ns = clock_monotonic_ns(), loaded_ns;
	struct route_query query = { 0 };
	uint32_t table = RT_TABLE_MAIN;

	set_up();
	for (unsigned i = 0; i < ROUTES; i++) {
		struct route *r = route("0.0.0.0/24", 2);

		r->dst = ip_addr_from_v4(htobe32(i << 8));
		add(r);
	}
	add(route("0.0.0.0/0", 1));
	loaded_ns = clock_monotonic_ns();
	for (unsigned i = 0; i < ROUTES; i++) {
		query.dst = ip_addr_from_v4(htobe32(i << 8 | 7));
		CHECK_EQ(route_tab_lookup(&tab, &table, 1, &query, &links,
					  &match), 0);
		CHECK_EQ(match.hop->ifindex, 2);
	}
	test_note("%u routes in %u ms, each look-up in %u ns", ROUTES,
		  (unsigned)((loaded_ns - start_ns) / NS_PER_MS),
		  (unsigned)((clock_monotonic_ns() - loaded_ns) / ROUTES));
	tear_down();
}

/* Sanitizers have a heap of their own, of which this knows nothing. */
static size_t heap_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* A full table of the Internet: many prefixes by few next hops. */
TEST(half_a_million_routes_cost_a_hundred_bytes_each)
{
	enum { ROUTES = 500000, HOPS = 50, BYTES_MAX = 100 };
	struct route_hop hop = { .ifindex = 2, .weight = 1 };
	struct route *r;
	size_t before = heap_in_use(), cost;

	set_up();
	for (unsigned i = 0; i < ROUTES; i++) {
		r = route("0.0.0.0/24", 2);
		r->dst = ip_addr_from_v4(htobe32(i << 8));
		hop.gateway = ip_addr_from_v4(htobe32(0x0a000001 + i % HOPS));
		r->hops = &hop;
		add(r);
	}
	CHECK_EQ(tab.bodies.cnt, HOPS);
	cost = heap_in_use() - before;
	test_note("%zu bytes for each of %u routes", cost / ROUTES, ROUTES);
	CHECK(cost / ROUTES <= BYTES_MAX);
	tear_down();
	CHECK_EQ(tab.bodies.cnt, 0);
}
