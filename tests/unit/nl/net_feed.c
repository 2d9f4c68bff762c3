/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/net_feed.h"

#include <linux/neighbour.h>

#include "tests/unit/nl/build.h"

static struct net_view view;
static struct net_row row;
static struct route_hop hop;
static unsigned stale;

static const unsigned routes = NET_BIT(NET_ROUTES);

static int take(void)
{
	stale = 0;
	return net_feed_take(&view, &row, &stale);
}

/* Takes and says whether the generation of routes moved. */
static bool moves_routes(void)
{
	uint32_t gen = net_view_route_gen(&view);

	CHECK_EQ(take(), 0);
	return net_view_route_gen(&view) != gen;
}

static bool moves_neighs(void)
{
	uint64_t gen = net_view_gen(&view);

	CHECK_EQ(take(), 0);
	return net_view_gen(&view) != gen;
}

static void begin(enum net_row_kind kind)
{
	memset(&row, 0, sizeof(row));
	row.kind = kind;
}

static void make_link(unsigned flags)
{
	begin(NET_ROW_LINK);
	row.link = link_up(3, "eth3");
	row.link.flags = flags;
}

static void make_addr(void)
{
	begin(NET_ROW_ADDR);
	row.addr = address(3, "10.0.0.1", "10.0.0.0/24");
}

static void make_route(const char *gateway)
{
	begin(NET_ROW_ROUTE);
	hop = (struct route_hop){ .gateway = addr(gateway), .ifindex = 3,
				  .weight = 1 };
	row.place = ROUTE_FIRST;
	row.route = (struct route){ .dst = addr("0.0.0.0"),
				    .prefix_len = IP_PREFIX_V4,
				    .table = RT_TABLE_MAIN,
				    .type = RTN_UNICAST,
				    .hop_cnt = 1,
				    .hops = &hop };
}

static void make_rule(void)
{
	begin(NET_ROW_POLICY);
	row.policy = rule(0, RT_TABLE_MAIN);
}

static void make_neigh(uint16_t state)
{
	begin(NET_ROW_NEIGH);
	row.neigh = (struct neigh_info){ .addr = addr("10.0.0.2"),
					 .ifindex = 3, .state = state,
					 .hw_len = 6, .hw_addr = { 2 } };
}

static void make_netconf(int ifindex, int rp_filter)
{
	begin(NET_ROW_NETCONF);
	row.netconf = (struct netconf_info){ ifindex, rp_filter, false };
}

TEST(news_moves_the_generation_and_the_same_again_does_not)
{
	net_view_init(&view, 0);
	make_link(IFF_UP);
	CHECK(moves_routes());
	CHECK(!moves_routes());
	make_addr();
	CHECK(moves_routes());
	CHECK(!moves_routes());
	make_route("10.0.0.2");
	CHECK(moves_routes());
	CHECK(!moves_routes());
	make_neigh(NUD_REACHABLE);
	CHECK(moves_neighs());
	CHECK(!moves_neighs());
	make_rule();
	CHECK(moves_routes());
	net_view_destroy(&view);
}

TEST(what_is_gone_is_gone)
{
	net_view_init(&view, 0);
	make_addr();
	CHECK_EQ(take(), 0);
	make_route("10.0.0.2");
	CHECK_EQ(take(), 0);
	make_rule();
	CHECK_EQ(take(), 0);
	row.is_gone = true;
	CHECK(moves_routes());
	CHECK_EQ(view.policies.policy_cnt, 0);
	make_route("10.0.0.2");
	row.is_gone = true;
	CHECK(moves_routes());
	CHECK_EQ(view.routes.route_cnt, 0);
	CHECK_EQ(stale, 0);
	make_addr();
	row.is_gone = true;
	CHECK(moves_routes());
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	net_view_destroy(&view);
}

TEST(a_link_takes_addresses_and_neighbours_along)
{
	net_view_init(&view, 0);
	make_link(IFF_UP);
	CHECK_EQ(take(), 0);
	make_addr();
	CHECK_EQ(take(), 0);
	make_neigh(NUD_REACHABLE);
	CHECK_EQ(take(), 0);
	make_link(0);
	row.is_gone = true;
	CHECK(moves_routes());
	CHECK_EQ(stale, routes);
	CHECK_EQ(view.links.by_index.cnt, 0);
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	CHECK_EQ(view.neighs.by_addr.cnt, 0);
	net_view_destroy(&view);
}

static unsigned stale_after(void)
{
	CHECK_EQ(take(), 0);
	return stale;
}

TEST(routes_are_read_again_where_the_kernel_is_silent)
{
	net_view_init(&view, 0);
	make_link(IFF_UP | IFF_RUNNING);
	CHECK_EQ(stale_after(), 0);
	make_link(IFF_UP);
	CHECK_EQ(stale_after(), routes);
	make_link(IFF_UP | IFF_PROMISC);
	CHECK_EQ(stale_after(), 0);
	make_addr();
	CHECK_EQ(stale_after(), routes);
	CHECK_EQ(stale_after(), 0);
	row.is_gone = true;
	CHECK_EQ(stale_after(), routes);
	/* A route nobody knows. */
	make_route("10.0.0.2");
	row.is_gone = true;
	CHECK_EQ(stale_after(), routes);
	begin(NET_ROW_NEXTHOP);
	CHECK_EQ(stale_after(), 0);
	row.is_gone = true;
	CHECK_EQ(stale_after(), routes);
	make_netconf(2, -1);
	CHECK_EQ(stale_after(), 0);
	row.netconf.has_linkdown = true;
	CHECK_EQ(stale_after(), routes);
	row.is_dump = true;
	CHECK_EQ(stale_after(), 0);
	net_view_destroy(&view);
}

static enum rpf_mode rpf_after(bool is_gone, int ifindex, int rp_filter)
{
	uint32_t gen = net_view_route_gen(&view);
	enum rpf_mode before = rpf_tab_mode(&view.rpf, 2);

	make_netconf(ifindex, rp_filter);
	row.is_gone = is_gone;
	CHECK_EQ(stale_after(), 0);
	if (rpf_tab_mode(&view.rpf, 2) != before)
		CHECK(net_view_route_gen(&view) != gen);
	return rpf_tab_mode(&view.rpf, 2);
}

TEST(rp_filter_is_followed)
{
	enum { DEFAULT = -2 }; /* what new interfaces get */

	net_view_init(&view, 0);
	CHECK_EQ(rpf_tab_mode(&view.rpf, 2), RPF_OFF);
	CHECK_EQ(rpf_after(false, 2, 1), RPF_STRICT);
	CHECK_EQ(rpf_after(false, RPF_ALL, 2), RPF_LOOSE);
	CHECK_EQ(rpf_after(false, 2, 0), RPF_LOOSE);
	CHECK_EQ(rpf_after(false, RPF_ALL, 1), RPF_STRICT);
	CHECK_EQ(rpf_after(false, RPF_ALL, 0), RPF_OFF);
	CHECK_EQ(rpf_after(false, DEFAULT, 1), RPF_OFF);
	CHECK_EQ(rpf_after(false, 3, 1), RPF_OFF);
	CHECK_EQ(rpf_after(false, 2, 2), RPF_LOOSE);
	CHECK_EQ(rpf_after(true, 2, -1), RPF_OFF);
	/* what a reading does not show any more */
	CHECK_EQ(rpf_after(false, 2, 1), RPF_STRICT);
	net_feed_begin(&view, NET_NETCONFS);
	net_feed_end(&view, NET_NETCONFS);
	CHECK_EQ(rpf_tab_mode(&view.rpf, 2), RPF_OFF);
	net_view_destroy(&view);
}

TEST(what_was_learned_of_a_path_moves_what_is_sent)
{
	net_view_init(&view, 0);
	begin(NET_ROW_PATH_MTU);
	row.path_mtu = (struct path_mtu_info){ .dst = addr("10.5.0.1"),
					       .src = addr("10.0.0.1"),
					       .ifindex = 3, .mtu = 1000 };
	CHECK(moves_neighs());
	CHECK(!moves_neighs());
	CHECK_EQ(view.path_mtus.cnt, 1);
	net_view_destroy(&view);
}

TEST(what_a_reading_does_not_show_goes)
{
	uint64_t gen;

	net_view_init(&view, 0);
	make_link(IFF_UP);
	CHECK_EQ(take(), 0);
	make_rule();
	CHECK_EQ(take(), 0);
	make_addr();
	CHECK_EQ(take(), 0);
	make_route("10.0.0.2");
	CHECK_EQ(take(), 0);
	for (int part = 0; part < NET_NEIGHS; part++) {
		gen = net_view_route_gen(&view);
		net_feed_begin(&view, (enum net_part)part);
		CHECK_EQ(net_view_route_gen(&view), gen);
		net_feed_end(&view, (enum net_part)part);
		CHECK(net_view_route_gen(&view) != gen);
	}
	CHECK_EQ(view.links.by_index.cnt, 0);
	CHECK_EQ(view.policies.policy_cnt, 0);
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	CHECK_EQ(view.routes.route_cnt, 0);
	make_neigh(NUD_REACHABLE);
	CHECK_EQ(take(), 0);
	gen = net_view_gen(&view);
	net_feed_begin(&view, NET_NEIGHS);
	net_feed_end(&view, NET_NEIGHS);
	CHECK(net_view_gen(&view) != gen);
	CHECK_EQ(view.neighs.dropped_cnt, 1);
	net_view_destroy(&view);
}

TEST(a_reading_that_shows_the_same_changes_nothing)
{
	net_view_init(&view, 0);
	make_rule();
	CHECK_EQ(take(), 0);
	net_feed_begin(&view, NET_POLICIES);
	row.is_dump = true;
	CHECK(!moves_routes());
	net_feed_end(&view, NET_POLICIES);
	CHECK_EQ(view.policies.policy_cnt, 1);
	net_view_destroy(&view);
}

/* The kernel may have shown it in a reading before it says that it is new. */
TEST(a_rule_told_after_it_was_read_is_read_once_more)
{
	net_view_init(&view, 0);
	make_rule();
	net_feed_begin(&view, NET_POLICIES);
	row.is_dump = true;
	CHECK_EQ(take(), 0);
	net_feed_end(&view, NET_POLICIES);
	CHECK_EQ(stale, 0);
	row.is_dump = false;
	CHECK_EQ(take(), 0);
	CHECK_EQ(stale, NET_BIT(NET_POLICIES));
	net_feed_begin(&view, NET_POLICIES);
	row.is_dump = true;
	CHECK_EQ(take(), 0);
	net_feed_end(&view, NET_POLICIES);
	CHECK_EQ(view.policies.policy_cnt, 1);
	net_view_destroy(&view);
}

/* As the module calls it. */
TEST(the_sink_is_the_view)
{
	net_view_init(&view, 0);
	make_link(IFF_UP);
	net_feed_sink.begin(&view, NET_LINKS);
	CHECK_EQ(net_feed_sink.take(&view, &row, &stale), 0);
	net_feed_sink.end(&view, NET_LINKS);
	CHECK_EQ(view.links.by_index.cnt, 1);
	net_view_destroy(&view);
}

/* A reading may show what has gone or changed before: the kernel fills a part of it earlier,
 * and says that a route goes while it is still there. */
static void take_shown(void)
{
	row.is_gone = false;
	row.is_dump = true;
	row.place = ROUTE_LAST;
	CHECK_EQ(take(), 0);
	row.is_dump = false;
	row.place = ROUTE_FIRST;
}

static void take_gone(void)
{
	row.is_gone = true;
	CHECK_EQ(take(), 0);
	CHECK_EQ(stale, 0);
	row.is_gone = false;
}

static bool has_route(const char *gateway)
{
	struct route_match match;
	struct route_query query = { .dst = addr("10.9.0.1"), .oif = 3 };
	struct ip_addr wanted = addr(gateway);
	uint32_t table = RT_TABLE_MAIN;

	return route_tab_lookup(&view.routes, &table, 1, &query, &view.links, &match) == 0 &&
	       ip_addr_eq(&match.hop->gateway, &wanted);
}

static void begin_with_route(void)
{
	net_view_init(&view, 0);
	make_link(IFF_UP | IFF_RUNNING);
	CHECK_EQ(take(), 0);
	make_route("10.0.0.2");
	CHECK_EQ(take(), 0);
	net_feed_begin(&view, NET_ROUTES);
}

TEST(a_route_that_goes_within_a_reading_that_shows_it_is_gone)
{
	uint32_t gen;

	begin_with_route();
	take_gone();
	take_shown();
	gen = net_view_route_gen(&view);
	net_feed_end(&view, NET_ROUTES);
	CHECK(net_view_route_gen(&view) != gen);
	CHECK_EQ(view.routes.route_cnt, 0);
	/* it does not go for ever */
	take_shown();
	net_feed_begin(&view, NET_ROUTES);
	take_shown();
	net_feed_end(&view, NET_ROUTES);
	CHECK(has_route("10.0.0.2"));
	net_view_destroy(&view);
}

TEST(a_route_that_goes_and_comes_within_a_reading_is_there)
{
	begin_with_route();
	take_gone();
	CHECK_EQ(take(), 0);
	take_shown();
	net_feed_end(&view, NET_ROUTES);
	CHECK(has_route("10.0.0.2"));
	net_view_destroy(&view);
}

TEST(a_route_that_is_replaced_within_a_reading_that_shows_it_is_gone)
{
	begin_with_route();
	make_route("10.0.0.3");
	row.place = ROUTE_REPLACE;
	CHECK_EQ(take(), 0);
	make_route("10.0.0.2");
	take_shown();
	net_feed_end(&view, NET_ROUTES);
	CHECK_EQ(view.routes.route_cnt, 1);
	CHECK(has_route("10.0.0.3"));
	net_view_destroy(&view);
}

TEST(a_reading_that_was_not_ended_is_forgotten)
{
	begin_with_route();
	take_gone();
	net_feed_begin(&view, NET_ROUTES);
	take_shown();
	net_feed_end(&view, NET_ROUTES);
	CHECK(has_route("10.0.0.2"));
	net_view_destroy(&view);
}

/* Of two in one place the reading may have parted, so that ours need not be the kernel's
 * first. */
TEST(one_of_two_that_is_replaced_within_a_reading_is_read_again)
{
	begin_with_route();
	make_route("10.0.0.4");
	row.place = ROUTE_LAST;
	CHECK_EQ(take(), 0);
	make_route("10.0.0.3");
	row.place = ROUTE_REPLACE;
	CHECK_EQ(take(), 0);
	CHECK_EQ(stale, routes);
	net_feed_end(&view, NET_ROUTES);
	net_view_destroy(&view);
}

TEST(a_link_that_changes_within_a_reading_has_changed)
{
	net_view_init(&view, 0);
	make_link(IFF_UP | IFF_RUNNING);
	CHECK_EQ(take(), 0);
	net_feed_begin(&view, NET_LINKS);
	make_link(IFF_UP);
	CHECK_EQ(take(), 0);
	make_link(IFF_UP | IFF_RUNNING);
	take_shown();
	net_feed_end(&view, NET_LINKS);
	CHECK_EQ(link_tab_find(&view.links, 3)->info.flags, IFF_UP);
	net_view_destroy(&view);
}

TEST(a_neighbour_that_moves_within_a_reading_has_moved)
{
	const struct neigh *neigh;
	struct ip_addr where = addr("10.0.0.2");

	net_view_init(&view, 0);
	make_neigh(NUD_REACHABLE);
	CHECK_EQ(take(), 0);
	net_feed_begin(&view, NET_NEIGHS);
	row.neigh.hw_addr[0] = 6;
	CHECK_EQ(take(), 0);
	make_neigh(NUD_REACHABLE);
	take_shown();
	net_feed_end(&view, NET_NEIGHS);
	neigh = neigh_tab_find(&view.neighs, 3, &where);
	CHECK(neigh && neigh->info.hw_addr[0] == 6);
	/* the next one is believed */
	net_feed_begin(&view, NET_NEIGHS);
	take_shown();
	net_feed_end(&view, NET_NEIGHS);
	CHECK_EQ(neigh->info.hw_addr[0], 2);
	net_view_destroy(&view);
}
