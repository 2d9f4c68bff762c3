/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/link_tab.h"

#include "tests/unit/nl/build.h"

static struct link_tab tab;

static int set(int ifindex, const char *name)
{
	struct link_info info = link_up(ifindex, name);

	return link_tab_set(&tab, &info);
}

TEST(found_by_index_and_name)
{
	link_tab_init(&tab);
	CHECK_EQ(set(7, "eth7"), 1);
	CHECK_EQ(set(3, "eth3"), 1);
	CHECK_STR(link_tab_find(&tab, 7)->info.name, "eth7");
	CHECK_EQ(link_tab_find_name(&tab, "eth3")->info.ifindex, 3);
	CHECK(!link_tab_find(&tab, 4));
	CHECK(!link_tab_find_name(&tab, "eth"));
	CHECK(link_tab_remove(&tab, 7));
	CHECK(!link_tab_remove(&tab, 7));
	CHECK(!link_tab_find(&tab, 7));
	link_tab_destroy(&tab);
}

TEST(only_a_difference_is_a_change)
{
	struct link_info info = link_up(7, "eth7");

	link_tab_init(&tab);
	CHECK_EQ(link_tab_set(&tab, &info), 1);
	CHECK_EQ(link_tab_set(&tab, &info), 0);
	info.mtu = 9000;
	CHECK_EQ(link_tab_set(&tab, &info), 1);
	CHECK_EQ(link_tab_find(&tab, 7)->info.mtu, 9000);
	link_tab_destroy(&tab);
}

TEST(listed_in_the_order_of_index)
{
	static const int order[] = { 5, 9, 1, 7, 3 };
	const struct link *link;
	int last = 0;

	link_tab_init(&tab);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		CHECK_EQ(set(order[i], "x"), 1);
	LIST_FOR_EACH(link, &tab.links, in_tab) {
		CHECK(link->info.ifindex > last);
		last = link->info.ifindex;
	}
	CHECK_EQ(last, 9);
	link_tab_destroy(&tab);
}

TEST(a_sweep_removes_what_was_not_met)
{
	link_tab_init(&tab);
	for (int i = 1; i <= 4; i++)
		CHECK_EQ(set(i, "x"), 1);
	link_tab_mark(&tab);
	CHECK_EQ(set(2, "x"), 0);
	CHECK_EQ(set(5, "x"), 1);
	CHECK(link_tab_sweep(&tab));
	CHECK(!link_tab_find(&tab, 1) && link_tab_find(&tab, 2));
	CHECK(!link_tab_find(&tab, 3) && link_tab_find(&tab, 5));
	link_tab_mark(&tab);
	CHECK_EQ(set(2, "x") + set(5, "x"), 0);
	CHECK(!link_tab_sweep(&tab));
	link_tab_destroy(&tab);
}

TEST(what_stands_on_a_link)
{
	struct link_info vlan = link_up(9, "eth3.5"), veth = link_up(8, "v0");

	vlan.kind = LINK_VLAN;
	vlan.lower = 3;
	veth.kind = LINK_VETH;
	veth.lower = 4;
	link_tab_init(&tab);
	CHECK_EQ(set(3, "eth3") + set(4, "v1"), 2);
	CHECK_EQ(link_tab_set(&tab, &vlan) + link_tab_set(&tab, &veth), 2);
	CHECK(link_tab_has_vlan(&tab, 3));
	CHECK(!link_tab_has_upper(&tab, 3));
	/* A peer is not an upper one. */
	CHECK(!link_tab_has_vlan(&tab, 4));
	CHECK(!link_tab_has_upper(&tab, 4));
	vlan.kind = LINK_MACVLAN;
	CHECK_EQ(link_tab_set(&tab, &vlan), 1);
	CHECK(link_tab_has_upper(&tab, 3));
	CHECK(!link_tab_has_vlan(&tab, 3));
	link_tab_destroy(&tab);
}

TEST(ports)
{
	struct link link = { .info = link_up(3, "eth3") };

	CHECK(!link_is_port(&link));
	link.info.master = 9;
	link.info.master_kind = LINK_OTHER;
	CHECK(link_is_port(&link));
	link.info.master_kind = LINK_VRF;
	CHECK(!link_is_port(&link));
	CHECK(link_is_running(&link));
	link.info.flags = IFF_UP;
	CHECK(link_is_up(&link) && !link_is_running(&link));
	CHECK_STR(link_kind_name(LINK_OTHER), "other");
}

TEST(priorities_in_tags)
{
	struct link link = { .info = link_up(9, "eth3.5") };

	link.info.vlan_pcps[3] = 5;
	link.info.vlan_pcps[15] = 7;
	CHECK_EQ(link_vlan_pcp(&link, 0), 0);
	CHECK_EQ(link_vlan_pcp(&link, 3), 5);
	CHECK_EQ(link_vlan_pcp(&link, 15), 7);
	CHECK_EQ(link_vlan_pcp(&link, 16), 0);
	CHECK_EQ(link_vlan_pcp(&link, UINT32_MAX), 0);
}
