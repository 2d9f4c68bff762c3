/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables asked together. Against the kernel itself they are tested by
 * system/net_view_routes_test. */
#include "nl/net_view.h"

#include <errno.h>

#include "tests/unit/nl/build.h"

static struct net_view view;
static struct net_flow flow;
static struct net_path path;

enum { LO = 1, ETH2, ETH3 };

static void add_rule(const struct policy *policy)
{
	CHECK_EQ(policy_tab_add(&view.policies, policy), 0);
}

static struct route *route(uint32_t table, const char *net, const char *gateway,
			   int ifindex)
{
	static struct route_hop hops[2];
	static struct route r;
	unsigned len;

	hops[0] = (struct route_hop){ .gateway = addr(gateway),
				      .ifindex = ifindex, .weight = 1 };
	r = (struct route){ .table = table, .type = RTN_UNICAST,
			    .hops = hops, .hop_cnt = 1 };
	r.dst = prefix(net, &len);
	r.prefix_len = (uint8_t)len;
	return &r;
}

static void add_route(const struct route *r)
{
	CHECK_EQ(route_tab_insert(&view.routes, r, ROUTE_FIRST), 1);
}

static void add_link(int ifindex, const char *name, const char *local,
		     const char *net)
{
	struct link_info link = link_up(ifindex, name);
	struct addr_info info = address(ifindex, local, net);
	struct route *r;

	CHECK_EQ(link_tab_set(&view.links, &link), 1);
	CHECK_EQ(addr_tab_set(&view.addrs, &info), 1);
	r = route(RT_TABLE_LOCAL, net, NULL, ifindex);
	r->dst = info.local;
	r->prefix_len = IP_PREFIX_MAX;
	r->type = RTN_LOCAL;
	r->scope = RT_SCOPE_HOST;
	add_route(r);
	r = route(RT_TABLE_MAIN, net, NULL, ifindex);
	r->dst = ip_addr_masked(&r->dst, r->prefix_len);
	r->scope = RT_SCOPE_LINK;
	add_route(r);
}

/* A host of two interfaces, 10.2.0.1/24 and 10.3.0.1/24, default by the first. */
static void set_up(void)
{
	struct policy policy;

	net_view_init(&view, 0);
	policy = rule(0, RT_TABLE_LOCAL);
	add_rule(&policy);
	policy = rule(32766, RT_TABLE_MAIN);
	add_rule(&policy);
	policy = rule(32767, RT_TABLE_DEFAULT);
	add_rule(&policy);
	add_link(LO, "lo", "127.0.0.1", "127.0.0.1/8");
	add_link(ETH2, "eth2", "10.2.0.1", "10.2.0.1/24");
	add_link(ETH3, "eth3", "10.3.0.1", "10.3.0.1/24");
	add_route(route(RT_TABLE_MAIN, "0.0.0.0/0", "10.2.0.254", ETH2));
	flow = (struct net_flow){ 0 };
}

static int way(const char *dst)
{
	flow.dst = addr(dst);
	return net_view_route(&view, &flow, &path);
}

static bool is_addr(const struct ip_addr *a, const char *text)
{
	struct ip_addr want = addr(text);

	return ip_addr_eq(a, &want);
}

/* Whether the stretch around a destination is that. */
static bool stretches(const char *dst, const char *first, const char *last)
{
	struct ip_addr from = addr(first), to = addr(last);
	struct route_stretch s;

	CHECK_EQ(way(dst), 0);
	s = net_view_stretch(&view, &flow, &path);
	return s.first == be32toh(ip_addr_v4(&from)) &&
	       s.last == be32toh(ip_addr_v4(&to));
}

TEST(one_next_hop_for_a_stretch)
{
	static const struct path_mtu_info learned = { .mtu = 1000,
						      .ifindex = ETH2 };
	struct policy policy = rule(100, RT_TABLE_MAIN);
	struct route *r;

	set_up();
	CHECK(stretches("8.8.8.8", "1.0.0.0", "10.1.255.255") == false);
	CHECK(stretches("8.8.8.8", "0.0.0.1", "10.1.255.255"));
	CHECK(stretches("11.0.0.0", "10.3.1.0", "126.255.255.255"));
	CHECK(stretches("200.1.1.1", "128.0.0.0", "223.255.255.255"));
	CHECK(stretches("250.1.1.1", "240.0.0.0", "255.255.255.254"));
	/* each neighbour has an address of its own, and we are not one */
	CHECK(stretches("10.3.0.9", "10.3.0.9", "10.3.0.9"));
	CHECK(stretches("10.3.0.1", "10.3.0.1", "10.3.0.1"));

	/* the destination decides */
	r = route(RT_TABLE_MAIN, "20.0.0.0/8", "10.2.0.253", ETH2);
	r->hops[1] = (struct route_hop){ .gateway = addr("10.3.0.254"),
					 .ifindex = ETH3, .weight = 1 };
	r->hop_cnt = 2;
	add_route(r);
	CHECK(stretches("20.0.0.9", "20.0.0.9", "20.0.0.9"));
	CHECK(stretches("19.0.0.9", "10.3.1.0", "19.255.255.255"));

	/* somebody has learned of a path; a rule may look at ports */
	CHECK_EQ(path_mtu_tab_set(&view.path_mtus,
				  &(struct path_mtu_info){
					  .mtu = learned.mtu,
					  .ifindex = learned.ifindex,
					  .dst = addr("8.8.8.8") }),
		 1);
	CHECK(stretches("19.0.0.9", "19.0.0.9", "19.0.0.9"));
	net_view_destroy(&view);

	set_up();
	add_rule(&policy);
	CHECK(stretches("8.8.8.8", "8.8.8.8", "8.8.8.8"));
	net_view_destroy(&view);
}

TEST(on_the_link_and_by_the_gateway)
{
	set_up();
	CHECK_EQ(way("10.3.0.9"), 0);
	CHECK_EQ(path.type, RTN_UNICAST);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK(!path.has_gateway && is_addr(&path.next_hop, "10.3.0.9"));
	CHECK(is_addr(&path.src, "10.3.0.1"));
	CHECK_EQ(path.mtu, 1500);
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK(path.has_gateway && is_addr(&path.next_hop, "10.2.0.254"));
	CHECK(is_addr(&path.src, "10.2.0.1"));
	CHECK_EQ(path.table, RT_TABLE_MAIN);
	net_view_destroy(&view);
}

TEST(to_ourselves)
{
	struct ip_addr own = addr("10.3.0.1"), lo = addr("127.3.2.1");
	struct route *r;

	set_up();
	r = route(RT_TABLE_LOCAL, "127.0.0.0/8", NULL, LO);
	r->type = RTN_LOCAL;
	r->scope = RT_SCOPE_HOST;
	add_route(r);
	CHECK_EQ(way("10.3.0.1"), 0);
	CHECK_EQ(path.type, RTN_LOCAL);
	CHECK_EQ(path.ifindex, LO);
	CHECK(is_addr(&path.src, "10.3.0.1"));
	CHECK(net_view_is_ours(&view, &own) && net_view_is_ours(&view, &lo));
	CHECK_EQ(way("0.0.0.0"), 0);
	CHECK_EQ(path.type, RTN_LOCAL);
	CHECK(is_addr(&path.src, "127.0.0.1"));
	net_view_destroy(&view);
}

TEST(metrics_of_the_route)
{
	struct route *r;

	set_up();
	r = route(RT_TABLE_MAIN, "10.9.0.0/16", "10.3.0.254", ETH3);
	r->mtu = 1300;
	r->is_mtu_locked = true;
	r->hop_limit = 9;
	r->tcp = (struct route_tcp){ .adv_mss = 500, .initial_window = 40,
				    .rto_min_ms = 5 };
	r->prefsrc = addr("10.2.0.1");
	add_route(r);
	CHECK_EQ(way("10.9.0.1"), 0);
	CHECK_EQ(path.mtu, 1300);
	CHECK(path.is_mtu_locked);
	CHECK_EQ(path.hop_limit, 9);
	CHECK_EQ(path.tcp.adv_mss, 500);
	CHECK_EQ(path.tcp.initial_window, 40);
	CHECK_EQ(path.tcp.rto_min_ms, 5);
	CHECK(is_addr(&path.src, "10.2.0.1"));
	net_view_destroy(&view);
}

TEST(what_was_learned_of_a_path)
{
	struct path_mtu_info info = { addr("8.8.8.8"), ETH2, addr("10.2.0.1"),
				      1000, false };

	set_up();
	CHECK_EQ(path_mtu_tab_set(&view.path_mtus, &info), 1);
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.mtu, 1000);
	CHECK_EQ(path.link_mtu, 1500);
	CHECK(!path.is_mtu_locked);
	CHECK_EQ(way("8.8.8.9"), 0);
	CHECK_EQ(path.mtu, 1500);
	info.mtu = 552;
	info.is_locked = true;
	CHECK_EQ(path_mtu_tab_set(&view.path_mtus, &info), 1);
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.mtu, 552);
	CHECK(path.is_mtu_locked);
	/* by another interface nothing is known */
	flow.oif = ETH3;
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.mtu, 1500);
	net_view_destroy(&view);
}

static bool admits(int ifindex, const char *src, const char *dst)
{
	struct ip_addr from = addr(src), to = addr(dst);

	return net_view_admits(&view, ifindex, &from, &to);
}

static void set_rpf(int mode)
{
	CHECK(rpf_tab_set(&view.rpf, ETH3, mode) >= 0);
}

TEST(rp_filter_strict_and_loose)
{
	struct policy policy = rule(100, 200);

	set_up();
	CHECK(admits(ETH3, "8.8.8.8", "10.3.0.1"));
	set_rpf(RPF_STRICT);
	CHECK(admits(ETH3, "10.3.0.9", "10.3.0.1"));
	/* the way back is by the other interface */
	CHECK(!admits(ETH3, "10.2.0.9", "10.3.0.1"));
	CHECK(!admits(ETH3, "8.8.8.8", "10.3.0.1"));
	CHECK(!admits(ETH3, "10.3.0.1", "10.3.0.1"));
	CHECK(admits(ETH2, "8.8.8.8", "10.2.0.1"));
	set_rpf(RPF_LOOSE);
	CHECK(admits(ETH3, "8.8.8.8", "10.3.0.1"));
	CHECK(!admits(ETH3, "10.3.0.1", "10.3.0.1"));
	/* for one of our addresses a rule leads back by eth3 */
	set_rpf(RPF_STRICT);
	policy.src = addr("10.3.0.1");
	policy.src_len = IP_PREFIX_MAX;
	add_rule(&policy);
	add_route(route(200, "0.0.0.0/0", "10.3.0.254", ETH3));
	CHECK(admits(ETH3, "8.8.8.8", "10.3.0.1"));
	CHECK(!admits(ETH3, "8.8.8.8", "10.2.0.1"));
	net_view_destroy(&view);
}

TEST(a_source_must_be_ours)
{
	set_up();
	flow.src = addr("10.3.0.1");
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK(is_addr(&path.src, "10.3.0.1"));
	CHECK_EQ(path.ifindex, ETH2);
	flow.src = addr("10.3.0.2");
	CHECK_EQ(way("8.8.8.8"), -ENETUNREACH);
	flow.is_any_src = true;
	CHECK_EQ(way("8.8.8.8"), 0);
	flow.src = addr("224.0.0.1");
	CHECK_EQ(way("8.8.8.8"), -EINVAL);
	/* An address of the loopback does not leave the host. */
	flow.src = addr("127.0.0.1");
	CHECK_EQ(way("8.8.8.8"), -EINVAL);
	net_view_destroy(&view);
}

/* While local and main are one, a local route in main will do. */
TEST(a_source_may_be_ours_by_a_route)
{
	struct policy any = rule(10, 99);
	struct route *r;

	set_up();
	r = route(RT_TABLE_MAIN, "10.64.0.0/10", NULL, LO);
	r->type = RTN_LOCAL;
	r->scope = RT_SCOPE_HOST;
	add_route(r);
	flow.src = addr("10.64.0.1");
	CHECK_EQ(way("8.8.8.8"), 0);
	add_rule(&any);
	CHECK_EQ(way("8.8.8.8"), -ENETUNREACH);
	net_view_destroy(&view);
}

TEST(on_the_link_only)
{
	struct route *r;

	set_up();
	flow.is_on_link_only = true;
	CHECK_EQ(way("10.3.0.9"), 0);
	CHECK_EQ(way("8.8.8.8"), -ENETUNREACH);
	r = route(RT_TABLE_MAIN, "8.0.0.0/8", NULL, ETH3);
	r->scope = RT_SCOPE_LINK;
	add_route(r);
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.ifindex, ETH3);
	net_view_destroy(&view);
}

TEST(an_interface_named_by_the_sender)
{
	struct link_info down = link_up(ETH3, "eth3");

	set_up();
	flow.oif = ETH3;
	/* No route leads there, and yet. */
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK(!path.has_gateway && is_addr(&path.next_hop, "8.8.8.8"));
	CHECK(is_addr(&path.src, "10.3.0.1"));
	flow.oif = 77;
	CHECK_EQ(way("8.8.8.8"), -ENODEV);
	down.flags = 0;
	CHECK_EQ(link_tab_set(&view.links, &down), 1);
	flow.oif = ETH3;
	CHECK_EQ(way("8.8.8.8"), -ENETUNREACH);
	net_view_destroy(&view);
}

TEST(who_is_in_a_vrf_is_the_kernels)
{
	struct link_info port = link_up(ETH3, "eth3");

	set_up();
	port.master = 9;
	port.master_kind = LINK_VRF;
	CHECK_EQ(link_tab_set(&view.links, &port), 1);
	flow.oif = ETH3;
	CHECK_EQ(way("10.3.0.9"), -EOPNOTSUPP);
	/* its table decides what comes to it, too */
	set_rpf(RPF_STRICT);
	CHECK(admits(ETH3, "8.8.8.8", "10.3.0.1"));
	net_view_destroy(&view);
}

TEST(groups_and_everybody)
{
	set_up();
	CHECK_EQ(way("239.1.1.1"), 0);
	CHECK_EQ(path.type, RTN_MULTICAST);
	CHECK_EQ(path.ifindex, ETH2);
	CHECK(!path.has_gateway && is_addr(&path.src, "10.2.0.1"));
	flow.src = addr("10.3.0.1");
	CHECK_EQ(way("239.1.1.1"), 0);
	CHECK_EQ(path.ifindex, ETH3);
	flow.src = addr(NULL);
	flow.oif = ETH3;
	CHECK_EQ(way("255.255.255.255"), 0);
	CHECK_EQ(path.type, RTN_BROADCAST);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK(is_addr(&path.src, "10.3.0.1"));
	net_view_destroy(&view);
}

TEST(a_route_for_groups_may_name_a_gateway)
{
	set_up();
	add_route(route(RT_TABLE_MAIN, "224.0.0.0/3", "10.3.0.254", ETH3));
	CHECK_EQ(way("239.1.1.1"), 0);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK(!path.has_gateway);
	add_route(route(RT_TABLE_MAIN, "224.0.0.0/4", "10.3.0.254", ETH3));
	CHECK_EQ(way("239.1.1.1"), 0);
	CHECK(path.has_gateway && is_addr(&path.next_hop, "10.3.0.254"));
	CHECK_EQ(path.type, RTN_MULTICAST);
	net_view_destroy(&view);
}

TEST(rules_in_turn)
{
	struct policy policy = rule(100, 7), jump = rule(50, 0),
		      suppress = rule(200, RT_TABLE_MAIN), stop = rule(300, 0);

	set_up();
	policy.mark = policy.mark_mask = 1;
	add_rule(&policy);
	add_route(route(7, "10.0.0.0/8", "10.3.0.254", ETH3));
	CHECK_EQ(way("10.9.0.1"), 0);
	CHECK_EQ(path.ifindex, ETH2);
	flow.mark = 1;
	CHECK_EQ(way("10.9.0.1"), 0);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK_EQ(path.table, 7);
	/* Nothing there: the next rule's turn. */
	CHECK_EQ(way("11.9.0.1"), 0);
	CHECK_EQ(path.ifindex, ETH2);
	suppress.suppress_len = IP_PREFIX_V4;
	stop.action = FR_ACT_PROHIBIT;
	add_rule(&suppress);
	add_rule(&stop);
	CHECK_EQ(way("11.9.0.1"), -EACCES);
	CHECK_EQ(way("10.2.0.9"), 0);
	jump.action = FR_ACT_GOTO;
	jump.target = 32766;
	add_rule(&jump);
	CHECK_EQ(way("10.9.0.1"), 0);
	CHECK_EQ(path.ifindex, ETH2);
	net_view_destroy(&view);
}

TEST(a_jump_back_does_not_hang)
{
	struct policy jump = rule(100, 0);

	set_up();
	jump.action = FR_ACT_GOTO;
	jump.target = 100;
	add_rule(&jump);
	jump.target = 0;
	add_rule(&jump);
	CHECK_EQ(way("8.8.8.8"), 0);
	net_view_destroy(&view);
}

TEST(rules_of_their_own_part_local_and_main)
{
	struct policy any = rule(10, 99);
	struct route *r;

	set_up();
	r = route(RT_TABLE_LOCAL, "10.64.0.0/10", NULL, LO);
	r->type = RTN_LOCAL;
	r->scope = RT_SCOPE_HOST;
	add_route(r);
	add_route(route(RT_TABLE_MAIN, "10.64.1.0/24", "10.3.0.254", ETH3));
	CHECK_EQ(way("10.64.1.1"), 0);
	CHECK_EQ(path.type, RTN_UNICAST);
	add_rule(&any);
	CHECK_EQ(way("10.64.1.1"), 0);
	CHECK_EQ(path.type, RTN_LOCAL);
	net_view_destroy(&view);
}

TEST(hops_are_chosen_by_weight_and_flow)
{
	unsigned cnt[ETH3 + 1] = { 0 };
	struct route *r;

	set_up();
	r = route(RT_TABLE_MAIN, "10.9.0.0/16", "10.2.0.254", ETH2);
	r->hops[1] = (struct route_hop){ .gateway = addr("10.3.0.254"),
					 .ifindex = ETH3, .weight = 3 };
	r->hop_cnt = 2;
	add_route(r);
	for (uint32_t i = 0; i < 4000; i++) {
		int first;

		flow.dst = ip_addr_from_v4(htobe32(0x0a090000 + i));
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		first = path.ifindex;
		cnt[first]++;
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		CHECK_EQ(path.ifindex, first);
		/* the source that this way gives leads the same way */
		flow.src = path.src;
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		CHECK_EQ(path.ifindex, first);
		flow.src = addr(NULL);
	}
	test_note("%u and %u", cnt[ETH2], cnt[ETH3]);
	CHECK(cnt[ETH2] > 800 && cnt[ETH2] < 1200);
	/* nor does a source of one's own choice */
	flow.src = addr("10.3.0.1");
	for (uint32_t i = 0; i < 100; i++) {
		flow.dst = ip_addr_from_v4(htobe32(0x0a090000 + i));
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		CHECK_EQ(path.ifindex, ETH3);
	}
	flow.src = addr(NULL);
	/* An interface of one's own choice leaves none. */
	flow.oif = ETH2;
	CHECK_EQ(way("10.9.0.1"), 0);
	CHECK_EQ(path.ifindex, ETH2);
	net_view_destroy(&view);
}

TEST(connect_looks_twice)
{
	struct policy policy = rule(100, 7);
	unsigned len;

	set_up();
	policy.src = prefix("10.2.0.1/32", &len);
	policy.src_len = (uint8_t)len;
	add_rule(&policy);
	add_route(route(7, "0.0.0.0/0", "10.3.0.254", ETH3));
	CHECK_EQ(way("8.8.8.8"), 0);
	CHECK_EQ(path.ifindex, ETH2);
	flow.dst = addr("8.8.8.8");
	CHECK_EQ(net_view_route_connect(&view, &flow, &path), 0);
	CHECK_EQ(path.ifindex, ETH3);
	CHECK(is_addr(&path.src, "10.2.0.1"));
	net_view_destroy(&view);
}

TEST(ipv6_is_not_ours_yet)
{
	set_up();
	CHECK_EQ(way("2001:db8::1"), -EAFNOSUPPORT);
	net_view_destroy(&view);
}

TEST(generations_are_never_zero)
{
	net_view_init(&view, 0);
	CHECK_EQ(net_view_route_gen(&view), 1);
	atomic_store(&view.route_gen, UINT32_MAX);
	net_view_routes_changed(&view);
	CHECK_EQ(net_view_route_gen(&view), 1);
	net_view_neighs_changed(&view);
	CHECK_EQ(net_view_route_gen(&view), 1);
	/* news of both */
	CHECK_EQ(net_view_gen(&view), 3);
	net_view_destroy(&view);
}
