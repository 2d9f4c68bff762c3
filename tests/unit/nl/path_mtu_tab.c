/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/path_mtu_tab.h"

#include <stdio.h>

#include "tests/unit/nl/build.h"

static struct path_mtu_tab tab;

static int set(const char *dst, int ifindex, uint32_t mtu)
{
	struct path_mtu_info info = { addr(dst), ifindex, addr(NULL), mtu,
				      false };

	return path_mtu_tab_set(&tab, &info);
}

static uint32_t mtu_of(const char *dst, int ifindex)
{
	struct ip_addr to = addr(dst);
	const struct path_mtu *entry = path_mtu_tab_find(&tab, ifindex, &to);

	return entry ? entry->info.mtu : 0;
}

TEST(what_is_learned_changes_and_goes)
{
	struct path_mtu_info info;

	path_mtu_tab_init(&tab);
	CHECK_EQ(set("10.0.0.2", 3, 1000), 1);
	CHECK_EQ(set("10.0.0.2", 3, 1000), 0);
	CHECK_EQ(mtu_of("10.0.0.2", 3), 1000);
	CHECK_EQ(mtu_of("10.0.0.2", 4), 0);
	CHECK_EQ(mtu_of("10.0.0.3", 3), 0);
	CHECK_EQ(set("10.0.0.2", 3, 600), 1);
	info = (struct path_mtu_info){ addr("10.0.0.2"), 3, addr(NULL), 600,
				       true };
	CHECK_EQ(path_mtu_tab_set(&tab, &info), 1);
	CHECK_EQ(path_mtu_tab_set(&tab, &info), 0);
	CHECK_EQ(set("10.0.0.3", 3, 0), 0);
	CHECK_EQ(set("10.0.0.2", 3, 0), 1);
	CHECK_EQ(mtu_of("10.0.0.2", 3), 0);
	CHECK_EQ(tab.cnt, 0);
	path_mtu_tab_destroy(&tab);
}

TEST(what_is_not_confirmed_is_forgotten)
{
	const struct path_mtu_info *info;

	path_mtu_tab_init(&tab);
	CHECK(!path_mtu_tab_doubt(&tab));
	CHECK(!path_mtu_tab_settle(&tab));
	set("10.0.0.2", 3, 1000);
	set("10.0.0.3", 3, 1001);
	info = path_mtu_tab_doubt(&tab);
	CHECK_EQ(info->mtu, 1000);
	CHECK_EQ(set("10.0.0.2", 3, 1000), 0);
	CHECK(!path_mtu_tab_settle(&tab));
	/* the other one's turn, of which the kernel knows nothing any more */
	CHECK_EQ(path_mtu_tab_doubt(&tab)->mtu, 1001);
	CHECK_EQ(set("10.0.0.4", 3, 1002), 1);
	CHECK(path_mtu_tab_settle(&tab));
	CHECK_EQ(mtu_of("10.0.0.3", 3), 0);
	CHECK_EQ(mtu_of("10.0.0.2", 3), 1000);
	/* the only one, confirmed and refuted */
	set("10.0.0.4", 3, 0);
	path_mtu_tab_doubt(&tab);
	CHECK_EQ(set("10.0.0.2", 3, 1000), 0);
	CHECK(!path_mtu_tab_settle(&tab));
	path_mtu_tab_doubt(&tab);
	CHECK_EQ(set("10.0.0.2", 3, 0), 1);
	CHECK(!path_mtu_tab_settle(&tab));
	CHECK_EQ(tab.cnt, 0);
	path_mtu_tab_destroy(&tab);
}

TEST(the_longest_unconfirmed_gives_way)
{
	char text[20];

	path_mtu_tab_init(&tab);
	for (int i = 0; i < PATH_MTU_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.%d.%d", i / 256, i % 256);
		CHECK_EQ(set(text, 3, 1000), 1);
	}
	CHECK_EQ(set("10.0.0.0", 3, 1000), 0);
	CHECK_EQ(set("10.9.0.0", 3, 1000), 1);
	CHECK_EQ(tab.cnt, PATH_MTU_MAX);
	CHECK_EQ(mtu_of("10.0.0.0", 3), 1000);
	CHECK_EQ(mtu_of("10.0.0.1", 3), 0);
	CHECK_EQ(mtu_of("10.0.0.2", 3), 1000);
	path_mtu_tab_destroy(&tab);
}
