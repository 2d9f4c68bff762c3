/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/neigh_tab.h"

#include <linux/neighbour.h>

#include "base/clock.h"
#include "tests/unit/nl/build.h"

static struct neigh_tab tab;
static const char *const peer = "10.0.0.2";

/* A last byte of the hardware address, or 0 for none. */
static int set(uint16_t state, uint8_t hw)
{
	struct neigh_info info = {
		.addr = addr(peer),
		.ifindex = 3,
		.state = state,
		.hw_len = hw ? 6 : 0,
		.hw_addr = { [5] = hw },
	};

	return neigh_tab_set(&tab, &info);
}

static int drop(void)
{
	struct ip_addr a = addr(peer);

	return neigh_tab_drop(&tab, 3, &a);
}

static const struct neigh *find(void)
{
	struct ip_addr a = addr(peer);

	return neigh_tab_find(&tab, 3, &a);
}

static enum neigh_advice advice(void)
{
	return neigh_advice(find());
}

TEST(from_unknown_to_usable_to_stale)
{
	neigh_tab_init(&tab);
	CHECK_EQ(advice(), NEIGH_RESOLVE);
	CHECK_EQ(set(NUD_INCOMPLETE, 0), 0);
	CHECK_EQ(advice(), NEIGH_RESOLVE);
	CHECK_EQ(set(NUD_REACHABLE, 7), 1);
	CHECK_EQ(advice(), NEIGH_USABLE);
	CHECK_EQ(find()->info.hw_addr[5], 7);
	CHECK_EQ(set(NUD_REACHABLE, 7), 0);
	CHECK_EQ(set(NUD_STALE, 7), 1);
	CHECK_EQ(advice(), NEIGH_CONFIRM);
	CHECK_EQ(set(NUD_DELAY, 7), 1);
	CHECK_EQ(set(NUD_PROBE, 7), 0);
	CHECK_EQ(advice(), NEIGH_USABLE);
	CHECK_EQ(set(NUD_REACHABLE, 8), 1);
	CHECK_EQ(find()->info.hw_addr[5], 8);
	neigh_tab_destroy(&tab);
}

TEST(other_links_and_addresses_are_others)
{
	struct ip_addr a = addr(peer), b = addr("10.0.0.3");

	neigh_tab_init(&tab);
	CHECK_EQ(set(NUD_PERMANENT, 7), 1);
	CHECK(!neigh_tab_find(&tab, 4, &a));
	CHECK(!neigh_tab_find(&tab, 3, &b));
	neigh_tab_destroy(&tab);
}

TEST(silence_disproves_the_address)
{
	neigh_tab_init(&tab);
	set(NUD_REACHABLE, 7);
	set(NUD_PROBE, 7);
	CHECK_EQ(set(NUD_FAILED, 0), 1);
	CHECK_EQ(advice(), NEIGH_FAILED);
	CHECK_EQ(drop(), 1);
	CHECK(!find());
	neigh_tab_destroy(&tab);
}

TEST(dropped_keeps_the_address_until_there_is_an_answer)
{
	neigh_tab_init(&tab);
	set(NUD_REACHABLE, 7);
	CHECK_EQ(drop(), 1);
	CHECK_EQ(drop(), 0);
	CHECK_EQ(advice(), NEIGH_CONFIRM);
	CHECK_EQ(find()->info.hw_addr[5], 7);
	/* Asked again, not answered yet. */
	CHECK_EQ(set(NUD_INCOMPLETE, 0), 1);
	CHECK_EQ(advice(), NEIGH_USABLE);
	CHECK_EQ(find()->info.hw_addr[5], 7);
	CHECK_EQ(set(NUD_FAILED, 0), 1);
	CHECK_EQ(advice(), NEIGH_FAILED);
	CHECK_EQ(set(NUD_REACHABLE, 9), 1);
	CHECK_EQ(find()->info.hw_addr[5], 9);
	neigh_tab_destroy(&tab);
}

TEST(dropped_and_asked_for_in_vain_is_disproved)
{
	neigh_tab_init(&tab);
	set(NUD_REACHABLE, 7);
	CHECK_EQ(drop(), 1);
	CHECK_EQ(set(NUD_FAILED, 0), 1);
	CHECK_EQ(advice(), NEIGH_FAILED);
	CHECK_EQ(drop(), 1);
	CHECK(!find());
	neigh_tab_destroy(&tab);
}

TEST(deleted_by_hand_is_not_disproved)
{
	neigh_tab_init(&tab);
	set(NUD_REACHABLE, 7);
	set(NUD_FAILED, 0);
	CHECK_EQ(advice(), NEIGH_FAILED);
	drop();
	CHECK_EQ(advice(), NEIGH_CONFIRM);
	CHECK_EQ(find()->info.hw_addr[5], 7);
	neigh_tab_destroy(&tab);
}

static bool is_asked(uint64_t now_ns)
{
	return neigh_is_asked(find(), now_ns);
}

static void note_asked(uint64_t now_ns)
{
	struct ip_addr a = addr(peer);

	neigh_tab_note_asked(&tab, 3, &a, now_ns);
	CHECK(is_asked(now_ns));
}

/* Whatever the kernel says of it, even if it is nothing new. */
TEST(a_question_holds_for_a_second_or_until_there_is_news)
{
	neigh_tab_init(&tab);
	set(NUD_STALE, 7);
	CHECK(!is_asked(1));
	note_asked(1);
	CHECK(is_asked(NS_PER_SEC));
	CHECK(!is_asked(NS_PER_SEC + 1));
	note_asked(2);
	set(NUD_STALE, 7);
	CHECK(!is_asked(2));
	note_asked(3);
	drop();
	CHECK_EQ(advice(), NEIGH_CONFIRM);
	CHECK(!is_asked(3));
	note_asked(4);
	drop();
	CHECK(!is_asked(4));
	note_asked(4);
	set(NUD_REACHABLE, 7);
	CHECK(!is_asked(4));
	neigh_tab_destroy(&tab);
}

TEST(dropped_ones_are_bounded)
{
	struct neigh_info info = {
		.ifindex = 3, .state = NUD_REACHABLE, .hw_len = 6,
	};
	unsigned cnt = NEIGH_DROPPED_MAX + 100;

	neigh_tab_init(&tab);
	for (unsigned i = 0; i < cnt; i++) {
		info.addr = ip_addr_from_v4(i);
		CHECK_EQ(neigh_tab_set(&tab, &info), 1);
		neigh_tab_drop(&tab, 3, &info.addr);
	}
	CHECK_EQ(tab.dropped_cnt, NEIGH_DROPPED_MAX);
	CHECK_EQ(tab.by_addr.cnt, NEIGH_DROPPED_MAX);
	for (unsigned i = 0; i < cnt; i++) {
		info.addr = ip_addr_from_v4(i);
		CHECK_EQ(!!neigh_tab_find(&tab, 3, &info.addr), i >= 100);
	}
	neigh_tab_destroy(&tab);
}

TEST(a_sweep_drops_and_a_link_takes_all)
{
	neigh_tab_init(&tab);
	set(NUD_REACHABLE, 7);
	neigh_tab_mark(&tab);
	CHECK(neigh_tab_sweep(&tab));
	CHECK_EQ(advice(), NEIGH_CONFIRM);
	neigh_tab_mark(&tab);
	CHECK(!neigh_tab_sweep(&tab));
	CHECK(!neigh_tab_remove_link(&tab, 4));
	CHECK(neigh_tab_remove_link(&tab, 3));
	CHECK(!find());
	CHECK_EQ(tab.dropped_cnt, 0);
	neigh_tab_destroy(&tab);
}
