/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/rpf.h"

#include <errno.h>

#include "base/rand.h"
#include "tests/unit/nl/build.h"

enum { LINKS = 3 };

static struct net_view view;
static struct rand rng;

static uint32_t any_below(uint32_t n)
{
	return (uint32_t)rand_below(&rng, n);
}

/* Few bits, so that prefixes meet. */
static uint32_t any_addr(void)
{
	return any_below(16) << 28 | any_below(4) << 16 | any_below(4);
}

static void add_any_route(void)
{
	static const uint8_t types[] = { RTN_UNICAST, RTN_UNICAST, RTN_LOCAL,
					 RTN_UNREACHABLE };
	struct route_hop hop = { .ifindex = 2 + (int)any_below(LINKS),
				 .weight = 1 };
	unsigned len = any_below(33);
	struct route r = { .table = any_below(3) ? RT_TABLE_MAIN : 100,
			   .type = types[any_below(ARRAY_LEN(types))],
			   .priority = any_below(2),
			   .hops = &hop };

	r.hop_cnt = r.type != RTN_UNREACHABLE;
	r.prefix_len = (uint8_t)(IP_PREFIX_V4 + len);
	r.dst = ip_addr_from_v4(htobe32(any_addr()));
	r.dst = ip_addr_masked(&r.dst, r.prefix_len);
	CHECK(route_tab_insert(&view.routes, &r, ROUTE_FIRST) >= 0);
}

static void make_world(const __be32 *own)
{
	struct policy policy;

	net_view_init(&view, 0);
	for (int i = 0; i < LINKS; i++) {
		struct link_info link = link_up(2 + i, "eth");

		CHECK_EQ(link_tab_set(&view.links, &link), 1);
		CHECK(rpf_tab_set(&view.rpf, 2 + i, i) >= 0);
	}
	if (any_below(2)) {
		policy = rule(10, 100);
		if (any_below(2)) {
			policy.src = ip_addr_from_v4(own[0]);
			policy.src_len = IP_PREFIX_MAX;
		} else {
			policy.dst = ip_addr_from_v4(htobe32(any_addr()));
			policy.dst_len = IP_PREFIX_V4 + 4;
			policy.dst = ip_addr_masked(&policy.dst, policy.dst_len);
		}
		CHECK_EQ(policy_tab_add(&view.policies, &policy), 0);
	}
	policy = rule(32766, RT_TABLE_MAIN);
	CHECK_EQ(policy_tab_add(&view.policies, &policy), 0);
	for (unsigned i = any_below(12); i; i--)
		add_any_route();
}

TEST(ranges_say_what_look_ups_say)
{
	static const int ifindexes[LINKS] = { 2, 3, 4 };
	const __be32 own[2] = { htobe32(0x0a000001), htobe32(0x0a000002) };

	rand_init(&rng, test_seed);
	for (int round = 0; round < 500; round++) {
		struct rpf *rpf;

		make_world(own);
		CHECK_EQ(rpf_make(&view, ifindexes, LINKS, own, 2, &rpf), 0);
		for (int i = 0; i < 200; i++) {
			int ifindex = ifindexes[any_below(LINKS)];
			__be32 dst = own[any_below(2)];
			/* next to where prefixes begin and end, too */
			__be32 src = htobe32(any_addr() - any_below(2));
			struct ip_addr from = ip_addr_from_v4(src);
			struct ip_addr to = ip_addr_from_v4(dst);

			CHECK_EQ(rpf_admits(rpf, (uint32_t)ifindex, src, dst),
				 net_view_admits(&view, ifindex, &from, &to));
		}
		rpf_free(rpf);
		net_view_destroy(&view);
	}
}

TEST(too_much_to_compute)
{
	enum { OWN = 4096, ROUTES = 400 };
	static const int ifindex = 2;
	static __be32 own[OWN];
	struct policy policy = rule(10, 100);
	struct rpf *rpf;

	net_view_init(&view, 0);
	CHECK_EQ(rpf_tab_set(&view.rpf, 2, RPF_STRICT), 1);
	policy.src = ip_addr_from_v4(htobe32(0x0a000001));
	policy.src_len = IP_PREFIX_MAX;
	CHECK_EQ(policy_tab_add(&view.policies, &policy), 0);
	for (uint32_t i = 0; i < ROUTES; i++) {
		struct route_hop hop = { .ifindex = 2, .weight = 1 };
		struct route r = { .table = RT_TABLE_MAIN, .type = RTN_UNICAST,
				   .prefix_len = IP_PREFIX_MAX,
				   .hops = &hop, .hop_cnt = 1 };

		r.dst = ip_addr_from_v4(htobe32(0x0b000000 + 2 * i));
		CHECK_EQ(route_tab_insert(&view.routes, &r, ROUTE_FIRST), 1);
	}
	CHECK_EQ(rpf_make(&view, &ifindex, 1, own, OWN, &rpf), -E2BIG);
	CHECK(!rpf);
	CHECK(rpf_admits(rpf, 2, htobe32(0x08080808), own[0]));
	net_view_destroy(&view);
}
