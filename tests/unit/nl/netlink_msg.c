/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/netlink_msg.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>

#include "base/rand.h"
#include "tests/unit/nl/build.h"

static struct net_view view;
static struct netlink_effect effect;
static struct message m;

static int apply(bool is_dump)
{
	return netlink_apply(&view, &m.head, is_dump, &effect);
}

/* Applies and says whether the generation of routes moved. */
static bool moves_routes(bool is_dump)
{
	uint32_t gen = net_view_route_gen(&view);

	CHECK_EQ(apply(is_dump), 0);
	return net_view_route_gen(&view) != gen;
}

static bool moves_neighs(void)
{
	uint64_t gen = net_view_gen(&view);

	CHECK_EQ(apply(false), 0);
	return net_view_gen(&view) != gen;
}

static void make_link(uint16_t type, unsigned flags)
{
	struct ifinfomsg head = { .ifi_index = 3, .ifi_flags = flags };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_text(&m, IFLA_IFNAME, "eth3");
	msg_put_u32(&m, IFLA_MTU, 1500);
}

static void make_addr(uint16_t type)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 3,
				  .ifa_prefixlen = 24 };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_v4(&m, IFA_LOCAL, "10.0.0.1");
}

static void make_route(uint16_t type, uint16_t flags, const char *gateway)
{
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_table = 254,
			      .rtm_type = RTN_UNICAST };

	msg_begin(&m, type, &head, sizeof(head));
	m.head.nlmsg_flags = flags;
	msg_put_u32(&m, RTA_OIF, 3);
	msg_put_v4(&m, RTA_GATEWAY, gateway);
}

static void make_rule(uint16_t type)
{
	struct fib_rule_hdr head = { .family = AF_INET, .table = 254,
				     .action = FR_ACT_TO_TBL };

	msg_begin(&m, type, &head, sizeof(head));
}

static void make_neigh(uint16_t type, uint16_t state)
{
	struct ndmsg head = { .ndm_family = AF_INET, .ndm_ifindex = 3,
			      .ndm_state = state };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_v4(&m, NDA_DST, "10.0.0.2");
	msg_put(&m, NDA_LLADDR, "\2\0\0\0\0\2", 6);
}

TEST(news_moves_the_generation_and_the_same_again_does_not)
{
	net_view_init(&view, 0);
	make_link(RTM_NEWLINK, IFF_UP);
	CHECK(moves_routes(false));
	CHECK_EQ(effect.part, NETLINK_LINKS);
	CHECK(!moves_routes(false));
	make_addr(RTM_NEWADDR);
	CHECK(moves_routes(false));
	CHECK_EQ(effect.part, NETLINK_ADDRS);
	CHECK(!moves_routes(false));
	make_route(RTM_NEWROUTE, 0, "10.0.0.2");
	CHECK(moves_routes(false));
	CHECK_EQ(effect.part, NETLINK_ROUTES);
	CHECK(!moves_routes(false));
	make_neigh(RTM_NEWNEIGH, NUD_REACHABLE);
	CHECK(moves_neighs());
	CHECK_EQ(effect.part, NETLINK_NEIGHS);
	CHECK(!moves_neighs());
	make_rule(RTM_NEWRULE);
	CHECK(moves_routes(false));
	CHECK_EQ(effect.part, NETLINK_POLICIES);
	net_view_destroy(&view);
}

TEST(what_is_deleted_is_gone)
{
	net_view_init(&view, 0);
	make_addr(RTM_NEWADDR);
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, 0, "10.0.0.2");
	CHECK_EQ(apply(false), 0);
	make_rule(RTM_NEWRULE);
	CHECK_EQ(apply(false), 0);
	make_rule(RTM_DELRULE);
	CHECK(moves_routes(false));
	CHECK_EQ(view.policies.policy_cnt, 0);
	make_route(RTM_DELROUTE, 0, "10.0.0.2");
	CHECK(moves_routes(false));
	CHECK_EQ(view.routes.route_cnt, 0);
	CHECK_EQ(effect.stale, 0);
	make_addr(RTM_DELADDR);
	CHECK(moves_routes(false));
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	net_view_destroy(&view);
}

TEST(a_link_takes_addresses_and_neighbours_along)
{
	net_view_init(&view, 0);
	make_link(RTM_NEWLINK, IFF_UP);
	CHECK_EQ(apply(false), 0);
	make_addr(RTM_NEWADDR);
	CHECK_EQ(apply(false), 0);
	make_neigh(RTM_NEWNEIGH, NUD_REACHABLE);
	CHECK_EQ(apply(false), 0);
	make_link(RTM_DELLINK, 0);
	CHECK(moves_routes(false));
	CHECK_EQ(effect.stale, NETLINK_BIT(NETLINK_ROUTES));
	CHECK_EQ(view.links.by_index.cnt, 0);
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	CHECK_EQ(view.neighs.by_addr.cnt, 0);
	net_view_destroy(&view);
}

TEST(routes_are_read_again_where_the_kernel_is_silent)
{
	struct netconfmsg conf = { .ncm_family = AF_INET };
	const unsigned routes = NETLINK_BIT(NETLINK_ROUTES);

	net_view_init(&view, 0);
	make_link(RTM_NEWLINK, IFF_UP | IFF_RUNNING);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, 0);
	make_link(RTM_NEWLINK, IFF_UP);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	make_link(RTM_NEWLINK, IFF_UP | IFF_PROMISC);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, 0);
	make_addr(RTM_NEWADDR);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, 0);
	make_addr(RTM_DELADDR);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	/* A route nobody knows. */
	make_route(RTM_DELROUTE, 0, "10.0.0.2");
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	msg_begin(&m, RTM_DELNEXTHOP, "", 0);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	msg_begin(&m, RTM_NEWNETCONF, &conf, sizeof(conf));
	msg_put_u32(&m, NETCONFA_IFINDEX, 2);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, 0);
	msg_put_u32(&m, NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, 1);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, routes);
	net_view_destroy(&view);
}

static void make_netconf(uint16_t type, int ifindex, uint32_t rp_filter)
{
	struct netconfmsg conf = { .ncm_family = AF_INET };

	msg_begin(&m, type, &conf, sizeof(conf));
	msg_put_u32(&m, NETCONFA_IFINDEX, (uint32_t)ifindex);
	if (type == RTM_NEWNETCONF)
		msg_put_u32(&m, NETCONFA_RP_FILTER, rp_filter);
}

static enum rpf_mode rpf_after(uint16_t type, int ifindex, uint32_t rp_filter)
{
	uint32_t gen = net_view_route_gen(&view);
	enum rpf_mode before = rpf_tab_mode(&view.rpf, 2);

	make_netconf(type, ifindex, rp_filter);
	CHECK_EQ(apply(false), 0);
	CHECK_EQ(effect.stale, 0);
	if (rpf_tab_mode(&view.rpf, 2) != before)
		CHECK(net_view_route_gen(&view) != gen);
	return rpf_tab_mode(&view.rpf, 2);
}

TEST(rp_filter_is_followed)
{
	net_view_init(&view, 0);
	CHECK_EQ(rpf_tab_mode(&view.rpf, 2), RPF_OFF);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, 2, 1), RPF_STRICT);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, NETCONFA_IFINDEX_ALL, 2), RPF_LOOSE);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, 2, 0), RPF_LOOSE);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, NETCONFA_IFINDEX_ALL, 1),
		 RPF_STRICT);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, NETCONFA_IFINDEX_ALL, 0), RPF_OFF);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, NETCONFA_IFINDEX_DEFAULT, 1),
		 RPF_OFF);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, 3, 1), RPF_OFF);
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, 2, 2), RPF_LOOSE);
	CHECK_EQ(rpf_after(RTM_DELNETCONF, 2, 0), RPF_OFF);
	/* what a reading does not show any more */
	CHECK_EQ(rpf_after(RTM_NEWNETCONF, 2, 1), RPF_STRICT);
	netlink_part_begin(&view, NETLINK_NETCONFS);
	netlink_part_end(&view, NETLINK_NETCONFS);
	CHECK_EQ(rpf_tab_mode(&view.rpf, 2), RPF_OFF);
	net_view_destroy(&view);
}

static char order[128];

static void add_gateway(void *ctx UNUSED, const struct route *route)
{
	char text[IP_ADDR_TEXT_SIZE];

	strcat(order, ip_addr_format(&route->hops[0].gateway, text));
	strcat(order, " ");
}

static const char *order_of_routes(void)
{
	order[0] = '\0';
	route_tab_visit(&view.routes, add_gateway, NULL);
	return order;
}

TEST(flags_of_a_route_say_where_it_went)
{
	net_view_init(&view, 0);
	make_route(RTM_NEWROUTE, NLM_F_CREATE, "10.0.0.1");
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, NLM_F_CREATE, "10.0.0.2");
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, NLM_F_APPEND, "10.0.0.3");
	CHECK_EQ(apply(false), 0);
	CHECK_STR(order_of_routes(), "10.0.0.2 10.0.0.1 10.0.0.3 ");
	make_route(RTM_NEWROUTE, NLM_F_REPLACE, "10.0.0.4");
	CHECK_EQ(apply(false), 0);
	CHECK_STR(order_of_routes(), "10.0.0.4 10.0.0.1 10.0.0.3 ");
	make_route(RTM_NEWROUTE, NLM_F_MULTI, "10.0.0.5");
	CHECK_EQ(apply(true), 0);
	CHECK_STR(order_of_routes(), "10.0.0.4 10.0.0.1 10.0.0.3 10.0.0.5 ");
	net_view_destroy(&view);
}

TEST(what_a_reading_does_not_show_goes)
{
	uint64_t gen;

	net_view_init(&view, 0);
	make_link(RTM_NEWLINK, IFF_UP);
	CHECK_EQ(apply(false), 0);
	make_rule(RTM_NEWRULE);
	CHECK_EQ(apply(false), 0);
	make_addr(RTM_NEWADDR);
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, 0, "10.0.0.2");
	CHECK_EQ(apply(false), 0);
	for (int part = 0; part < NETLINK_NEIGHS; part++) {
		gen = net_view_route_gen(&view);
		netlink_part_begin(&view, (enum netlink_part)part);
		CHECK_EQ(net_view_route_gen(&view), gen);
		netlink_part_end(&view, (enum netlink_part)part);
		CHECK(net_view_route_gen(&view) != gen);
	}
	CHECK_EQ(view.links.by_index.cnt, 0);
	CHECK_EQ(view.policies.policy_cnt, 0);
	CHECK_EQ(view.addrs.by_local.cnt, 0);
	CHECK_EQ(view.routes.route_cnt, 0);
	make_neigh(RTM_NEWNEIGH, NUD_REACHABLE);
	CHECK_EQ(apply(false), 0);
	gen = net_view_gen(&view);
	netlink_part_begin(&view, NETLINK_NEIGHS);
	netlink_part_end(&view, NETLINK_NEIGHS);
	CHECK(net_view_gen(&view) != gen);
	CHECK_EQ(view.neighs.dropped_cnt, 1);
	net_view_destroy(&view);
}

TEST(a_reading_that_shows_the_same_changes_nothing)
{
	net_view_init(&view, 0);
	make_rule(RTM_NEWRULE);
	CHECK_EQ(apply(false), 0);
	netlink_part_begin(&view, NETLINK_POLICIES);
	CHECK(!moves_routes(true));
	netlink_part_end(&view, NETLINK_POLICIES);
	CHECK_EQ(view.policies.policy_cnt, 1);
	net_view_destroy(&view);
}

TEST(nonsense_changes_nothing)
{
	net_view_init(&view, 0);
	msg_begin(&m, RTM_NEWLINK, "abc", 3);
	CHECK_EQ(apply(false), -EBADMSG);
	msg_begin(&m, RTM_NEWQDISC, "abc", 3);
	CHECK(!moves_routes(false));
	CHECK_EQ(effect.part, NETLINK_PARTS);
	msg_begin(&m, RTM_NEWNETCONF, "", 0);
	CHECK_EQ(apply(false), -EBADMSG);
	net_view_destroy(&view);
}

/* One of the messages that a kernel may send. */
static void make_any(unsigned which)
{
	bool is_new = which % 2;

	switch (which / 2) {
	case 0:
		make_link(is_new ? RTM_NEWLINK : RTM_DELLINK, IFF_UP);
		break;
	case 1:
		make_addr(is_new ? RTM_NEWADDR : RTM_DELADDR);
		break;
	case 2:
		make_route(is_new ? RTM_NEWROUTE : RTM_DELROUTE, 0,
			   "10.0.0.2");
		break;
	case 3:
		make_rule(is_new ? RTM_NEWRULE : RTM_DELRULE);
		break;
	default:
		make_neigh(is_new ? RTM_NEWNEIGH : RTM_DELNEIGH,
			   NUD_REACHABLE);
	}
}

enum { ANY_CNT = 10 };

/* Everything once, as after an overrun. */
static void read_all(void)
{
	static const unsigned news[] = { 1, 7, 3, 5, 9 };

	for (int part = 0; part < NETLINK_PARTS; part++)
		netlink_part_begin(&view, (enum netlink_part)part);
	for (size_t i = 0; i < ARRAY_LEN(news); i++) {
		make_any(news[i]);
		CHECK_EQ(apply(true), 0);
	}
	for (int part = 0; part < NETLINK_PARTS; part++)
		netlink_part_end(&view, (enum netlink_part)part);
}

/* Whatever came in whatever order, whole or cut: the next reading counts. */
TEST(disorder_is_forgotten_at_the_next_reading)
{
	struct net_flow flow = { .dst = addr("10.9.9.9"), .proto = 17 };
	struct net_path path;
	struct rand rand;

	rand_init(&rand, test_seed);
	for (int round = 0; round < 2000; round++) {
		net_view_init(&view, 0);
		for (int i = 0; i < 30; i++) {
			make_any((unsigned)rand_below(&rand, ANY_CNT));
			if (rand_below(&rand, 4) == 0)
				m.head.nlmsg_len = (uint32_t)rand_between(
					&rand, NLMSG_HDRLEN, m.head.nlmsg_len);
			(void)!apply(rand_below(&rand, 4) == 0);
		}
		read_all();
		CHECK_EQ(view.links.by_index.cnt, 1);
		CHECK_EQ(view.addrs.by_local.cnt, 1);
		CHECK_EQ(view.routes.route_cnt, 1);
		CHECK_EQ(view.policies.policy_cnt, 1);
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		CHECK_EQ(path.ifindex, 3);
		CHECK(path.has_gateway);
		net_view_destroy(&view);
	}
}

TEST(messages_one_after_the_other)
{
	uint8_t buf[64] __attribute__((aligned(4))) = { 0 };
	struct nlmsghdr *first = (struct nlmsghdr *)buf;
	struct nlmsghdr *second = (struct nlmsghdr *)(buf + 20);
	const uint8_t *at = buf;
	size_t left = 36;

	first->nlmsg_len = 17;
	second->nlmsg_len = 16;
	CHECK(netlink_next(&at, &left) == first);
	CHECK(netlink_next(&at, &left) == second);
	CHECK(!netlink_next(&at, &left));
	CHECK_EQ(left, 0);
	/* Cut, and too short to be one. */
	at = buf;
	left = 35;
	CHECK(netlink_next(&at, &left) && !netlink_next(&at, &left));
	CHECK_EQ(left, 15);
	at = buf;
	left = 36;
	first->nlmsg_len = 15;
	CHECK(!netlink_next(&at, &left));
	first->nlmsg_len = 37;
	CHECK(!netlink_next(&at, &left));
	CHECK_EQ(left, 36);
}
