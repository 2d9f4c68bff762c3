/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/addr_tab.h"

#include <linux/if_addr.h>

#include "tests/unit/nl/build.h"

static struct addr_tab tab;

static int set(int ifindex, const char *local, const char *net, uint8_t scope,
	       uint32_t flags)
{
	struct addr_info info = address(ifindex, local, net);

	info.scope = scope;
	info.flags = flags;
	return addr_tab_set(&tab, &info);
}

/* The source of interface 3, as text. */
static const char *source(int ifindex, const char *dst, uint8_t scope)
{
	static char text[IP_ADDR_TEXT_SIZE];
	struct ip_addr to = addr(dst), from;

	from = ip_addr_from_v4(addr_tab_select_v4(
		&tab, ifindex, dst ? ip_addr_v4(&to) : 0, scope));
	return ip_addr_format(&from, text);
}

static bool is_there(const char *local)
{
	struct ip_addr a = addr(local);

	return addr_tab_find(&tab, &a);
}

TEST(ours_by_address)
{
	struct addr_info info = address(3, "10.0.0.1", "10.0.0.1/24");

	addr_tab_init(&tab);
	CHECK_EQ(addr_tab_set(&tab, &info), 1);
	CHECK_EQ(addr_tab_set(&tab, &info), 0);
	CHECK_EQ(set(3, "2001:db8::1", "2001:db8::1/64", 0, 0), 1);
	CHECK(is_there("10.0.0.1") && is_there("2001:db8::1"));
	CHECK(!is_there("10.0.0.2"));
	CHECK(addr_tab_remove(&tab, &info));
	CHECK(!addr_tab_remove(&tab, &info));
	CHECK(!is_there("10.0.0.1"));
	addr_tab_destroy(&tab);
}

TEST(the_same_on_two_links_is_there_twice)
{
	addr_tab_init(&tab);
	CHECK_EQ(set(3, "10.0.0.1", "10.0.0.1/24", 0, 0), 1);
	CHECK_EQ(set(4, "10.0.0.1", "10.0.0.1/24", 0, 0), 1);
	CHECK(addr_tab_remove_link(&tab, 3));
	CHECK(is_there("10.0.0.1"));
	CHECK(addr_tab_remove_link(&tab, 4));
	CHECK(!addr_tab_remove_link(&tab, 4));
	CHECK(!is_there("10.0.0.1"));
	addr_tab_destroy(&tab);
}

TEST(source_is_the_first_primary_of_the_scope)
{
	addr_tab_init(&tab);
	set(3, "10.0.0.1", "10.0.0.1/24", RT_SCOPE_LINK, 0);
	set(3, "10.1.0.1", "10.1.0.1/24", RT_SCOPE_UNIVERSE, 0);
	set(3, "10.1.0.2", "10.1.0.2/24", RT_SCOPE_UNIVERSE, IFA_F_SECONDARY);
	set(3, "10.2.0.1", "10.2.0.1/24", RT_SCOPE_UNIVERSE, 0);
	CHECK_STR(source(3, NULL, RT_SCOPE_UNIVERSE), "10.1.0.1");
	CHECK_STR(source(3, NULL, RT_SCOPE_LINK), "10.0.0.1");
	CHECK_STR(source(3, "10.2.0.9", RT_SCOPE_UNIVERSE), "10.2.0.1");
	CHECK_STR(source(3, "10.9.0.9", RT_SCOPE_UNIVERSE), "10.1.0.1");
	set(3, "10.9.0.1", "10.9.0.1/24", RT_SCOPE_UNIVERSE, IFA_F_SECONDARY);
	CHECK_STR(source(3, "10.9.0.9", RT_SCOPE_UNIVERSE), "10.1.0.1");
	addr_tab_destroy(&tab);
}

TEST(others_lend_what_is_not_of_their_link)
{
	addr_tab_init(&tab);
	CHECK_STR(source(3, NULL, RT_SCOPE_UNIVERSE), "0.0.0.0");
	set(5, "10.5.0.1", "10.5.0.1/24", RT_SCOPE_UNIVERSE, 0);
	set(4, "10.4.0.1", "10.4.0.1/24", RT_SCOPE_LINK, 0);
	set(1, "127.0.0.1", "127.0.0.1/8", RT_SCOPE_HOST, 0);
	CHECK_STR(source(3, NULL, RT_SCOPE_UNIVERSE), "10.5.0.1");
	CHECK_STR(source(3, NULL, RT_SCOPE_LINK), "10.5.0.1");
	CHECK_STR(source(3, NULL, RT_SCOPE_HOST), "127.0.0.1");
	addr_tab_destroy(&tab);
}

static bool add_text(void *ctx, const struct addr_info *info)
{
	char text[IP_ADDR_TEXT_SIZE];

	strcat(strcat(ctx, ip_addr_format(&info->local, text)), " ");
	return strlen(ctx) < 200;
}

TEST(order_is_the_kernels)
{
	char order[256] = "";

	addr_tab_init(&tab);
	set(3, "10.0.0.2", "10.0.0.2/24", RT_SCOPE_UNIVERSE, IFA_F_SECONDARY);
	set(3, "10.0.0.1", "10.0.0.1/24", RT_SCOPE_UNIVERSE, 0);
	set(3, "10.3.0.1", "10.3.0.1/24", RT_SCOPE_HOST, 0);
	set(3, "10.1.0.1", "10.1.0.1/24", RT_SCOPE_UNIVERSE, 0);
	addr_tab_visit(&tab, 3, add_text, order);
	CHECK_STR(order, "10.3.0.1 10.0.0.1 10.1.0.1 10.0.0.2 ");
	/* The first secondary one is promoted: it moves. */
	CHECK_EQ(set(3, "10.0.0.2", "10.0.0.2/24", RT_SCOPE_UNIVERSE, 0), 1);
	order[0] = '\0';
	addr_tab_visit(&tab, 3, add_text, order);
	CHECK_STR(order, "10.3.0.1 10.0.0.1 10.1.0.1 10.0.0.2 ");
	addr_tab_visit(&tab, 9, add_text, order);
	/* the first one is deprecated: it stays where it is */
	CHECK_EQ(set(3, "10.0.0.1", "10.0.0.1/24", RT_SCOPE_UNIVERSE, IFA_F_DEPRECATED), 1);
	order[0] = '\0';
	addr_tab_visit(&tab, 3, add_text, order);
	CHECK_STR(order, "10.3.0.1 10.0.0.1 10.1.0.1 10.0.0.2 ");
	addr_tab_destroy(&tab);
}

TEST(a_sweep_removes_what_was_not_met)
{
	addr_tab_init(&tab);
	set(3, "10.0.0.1", "10.0.0.1/24", 0, 0);
	set(3, "10.0.0.2", "10.0.0.2/24", 0, 0);
	set(4, "10.0.0.3", "10.0.0.3/24", 0, 0);
	addr_tab_mark(&tab);
	CHECK_EQ(set(3, "10.0.0.2", "10.0.0.2/24", 0, 0), 0);
	CHECK(addr_tab_sweep(&tab));
	CHECK(!is_there("10.0.0.1") && is_there("10.0.0.2"));
	CHECK(!is_there("10.0.0.3"));
	CHECK_EQ(tab.ifaces.cnt, 1);
	addr_tab_destroy(&tab);
}
