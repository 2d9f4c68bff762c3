/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/policy_tab.h"

#include <netinet/in.h>

#include "nl/link_tab.h"
#include "nl/net_flow.h"
#include "tests/unit/nl/build.h"

static struct policy_tab tab;

static void add(uint32_t priority, uint32_t table)
{
	struct policy policy = rule(priority, table);

	CHECK_EQ(policy_tab_add(&tab, &policy), 0);
}

/* Tables of the rules in their order. */
static void check_order(const uint32_t *tables, unsigned cnt)
{
	const struct policy_entry *entry;
	unsigned i = 0;

	CHECK_EQ(tab.policy_cnt, cnt);
	LIST_FOR_EACH(entry, &tab.policies, in_tab)
		CHECK_EQ(entry->policy.table, tables[i++]);
	CHECK_EQ(i, cnt);
}

TEST(by_priority_then_by_age)
{
	static const uint32_t order[] = { 1, 2, 3, 4, 5 };

	policy_tab_init(&tab);
	add(100, 3);
	add(0, 1);
	add(200, 5);
	add(100, 4);
	add(50, 2);
	check_order(order, ARRAY_LEN(order));
	policy_tab_destroy(&tab);
}

TEST(twice_is_two)
{
	struct policy policy = rule(5, 7);

	policy_tab_init(&tab);
	add(5, 7);
	add(5, 7);
	CHECK(policy_tab_remove(&tab, &policy));
	CHECK_EQ(tab.policy_cnt, 1);
	CHECK(policy_tab_remove(&tab, &policy));
	CHECK(!policy_tab_remove(&tab, &policy));
	policy_tab_destroy(&tab);
}

TEST(reading_again_finds_twins_and_leftovers)
{
	struct policy twin = rule(5, 7), other = rule(6, 7);

	policy_tab_init(&tab);
	add(5, 7);
	add(4, 1);
	policy_tab_mark(&tab);
	CHECK_EQ(policy_tab_meet(&tab, &twin), 0);
	CHECK_EQ(policy_tab_meet(&tab, &twin), 1);
	CHECK_EQ(policy_tab_meet(&tab, &other), 1);
	CHECK(policy_tab_sweep(&tab));
	CHECK_EQ(tab.policy_cnt, 3);
	policy_tab_mark(&tab);
	CHECK_EQ(policy_tab_meet(&tab, &twin), 0);
	CHECK_EQ(policy_tab_meet(&tab, &twin), 0);
	CHECK_EQ(policy_tab_meet(&tab, &other), 0);
	CHECK(!policy_tab_sweep(&tab));
	policy_tab_destroy(&tab);
}

TEST(what_every_namespace_is_born_with)
{
	policy_tab_init(&tab);
	add(0, RT_TABLE_LOCAL);
	add(32766, RT_TABLE_MAIN);
	CHECK(!policy_tab_is_default(&tab));
	add(32767, RT_TABLE_DEFAULT);
	CHECK(policy_tab_is_default(&tab));
	add(100, 7);
	CHECK(!policy_tab_is_default(&tab));
	policy_tab_destroy(&tab);
}

static struct net_flow flow;
static struct link_tab links;

static bool matches(const struct policy *policy)
{
	return policy_match(policy, &flow, &links) == POLICY_MATCHES;
}

/* Both the rule and the flow begin plain, and match. */
static struct policy start(void)
{
	struct policy policy = rule(1, 1);

	flow = (struct net_flow){ .dst = addr("10.1.2.3"), .tos = 0xb8,
				  .proto = IPPROTO_UDP, .sport = 1000,
				  .dport = 53, .mark = 5, .uid = 1000 };
	link_tab_init(&links);
	CHECK(matches(&policy));
	return policy;
}

TEST(addresses)
{
	struct policy policy = start();
	unsigned len;

	policy.dst = prefix("10.1.0.0/16", &len);
	policy.dst_len = (uint8_t)len;
	CHECK(matches(&policy));
	flow.dst = addr("10.2.0.0");
	CHECK(!matches(&policy));
	flow.dst = addr("10.1.0.0");
	/* A source not known yet is 0.0.0.0. */
	policy.src = prefix("0.0.0.0/1", &len);
	policy.src_len = (uint8_t)len;
	CHECK(matches(&policy));
	policy.src = prefix("10.0.0.0/8", &len);
	policy.src_len = (uint8_t)len;
	CHECK(!matches(&policy));
	flow.src = addr("10.9.9.9");
	CHECK(matches(&policy));
	policy.is_inverted = true;
	CHECK(!matches(&policy));
}

TEST(mark_uid_and_protocol)
{
	struct policy policy = start();

	policy.mark = 1;
	policy.mark_mask = 3;
	CHECK(matches(&policy));
	policy.mark_mask = UINT32_MAX;
	CHECK(!matches(&policy));
	policy = rule(1, 1);
	policy.uid_first = 1001;
	CHECK(!matches(&policy));
	policy.uid_first = policy.uid_last = 1000;
	CHECK(matches(&policy));
	policy.uid_first = 0;
	policy.uid_last = 999;
	CHECK(!matches(&policy));
	policy = rule(1, 1);
	policy.proto = IPPROTO_TCP;
	CHECK(!matches(&policy));
	policy.proto = IPPROTO_UDP;
	CHECK(matches(&policy));
}

TEST(ports)
{
	struct policy policy = start();

	policy.dport = (struct policy_ports){ .first = 50, .last = 53 };
	policy.sport = (struct policy_ports){ .first = 1000, .last = 1001 };
	CHECK(matches(&policy));
	flow.dport = 54;
	CHECK(!matches(&policy));
	policy.dport = (struct policy_ports){ 48, 48, 0xfff0 };
	CHECK(matches(&policy));
	flow.dport = 64;
	CHECK(!matches(&policy));
	/* of TCP nobody knows where its connections go by */
	flow.proto = IPPROTO_TCP;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_UNKNOWN);
	policy.mark = ~flow.mark;
	policy.mark_mask = UINT32_MAX;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_PASSES);
}

TEST(tos_and_dscp)
{
	struct policy policy = start();

	/* Of 0xb8 plain rules see 0x18. */
	policy.tos = 0x18;
	CHECK(matches(&policy));
	policy.tos = 0x10;
	CHECK(!matches(&policy));
	policy.tos = 0;
	policy.dscp = 0xb8;
	policy.dscp_mask = 0xfc;
	CHECK(matches(&policy));
	policy.dscp = 0x98;
	CHECK(!matches(&policy));
	policy.dscp_mask = 0x1c;
	CHECK(matches(&policy));
}

TEST(links_by_name)
{
	struct policy policy = start();
	struct link_info info = link_up(3, "eth3");

	CHECK_EQ(link_tab_set(&links, &info), 1);
	strcpy(policy.iif, "lo");
	CHECK(matches(&policy));
	strcpy(policy.oif, "eth3");
	CHECK(!matches(&policy));
	flow.oif = 3;
	CHECK(matches(&policy));
	strcpy(policy.oif, "eth");
	CHECK(!matches(&policy));
	policy.oif[0] = '\0';
	strcpy(policy.iif, "eth3");
	CHECK(!matches(&policy));
	link_tab_destroy(&links);
}

TEST(what_we_do_not_follow_is_unknown)
{
	struct policy policy = start();

	policy.is_foreign = true;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_UNKNOWN);
	policy.is_inverted = true;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_UNKNOWN);
	/* What we do follow says enough. */
	policy.proto = IPPROTO_TCP;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_MATCHES);
	policy.is_inverted = false;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_PASSES);
	policy = rule(1, 1);
	policy.is_l3mdev = true;
	CHECK_EQ(policy_match(&policy, &flow, &links), POLICY_PASSES);
}
