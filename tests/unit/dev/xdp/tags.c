/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A card that takes tags off, played here, from its driving to the end of the process. */
#include "config.h"

#include "dev/xdp/tags.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/xdp/ethtool.h"
#include "tests/support/test.h"

static const struct dev dev = { .ifindex = 7, .mac = { 2, 0, 0, 0, 0, 1 }, .name = "card0" };

static struct {
	bool takes_tags, is_fixed;
	uint8_t mac[6];
	unsigned set_cnt;
} card;

bool ethtool_takes_tags(int ifindex)
{
	return ifindex == dev.ifindex && card.takes_tags;
}

int ethtool_set_takes_tags(int ifindex, bool does_take)
{
	CHECK_EQ(ifindex, dev.ifindex);
	card.set_cnt++;
	if (card.is_fixed)
		return -EOPNOTSUPP;
	card.takes_tags = does_take;
	return 0;
}

int ethtool_address(int ifindex, uint8_t mac[6])
{
	CHECK_EQ(ifindex, dev.ifindex);
	memcpy(mac, card.mac, sizeof(card.mac));
	return 0;
}

static struct tags tags;

static void begin(bool takes_tags, bool is_virtual)
{
	memset(&card, 0, sizeof(card));
	memcpy(card.mac, dev.mac, sizeof(card.mac));
	card.takes_tags = takes_tags;
	tags_see(&tags, &dev, is_virtual);
}

TEST(a_card_takes_tags_again_when_the_process_ends)
{
	begin(true, false);
	CHECK(!card.takes_tags && !tags.are_off);
	tags_ending(&tags, &dev, true);
	CHECK(card.takes_tags);
	/* and that is all: a user may tell it something else */
	tags_ending(&tags, &dev, true);
	CHECK_EQ(card.set_cnt, 2);
}

/* An exec that has failed. */
TEST(it_leaves_them_when_the_process_goes_on)
{
	begin(true, false);
	tags_ending(&tags, &dev, false);
	CHECK_EQ(card.set_cnt, 1);
	tags_ending(&tags, &dev, true);
	tags_ending(&tags, &dev, false);
	CHECK(!card.takes_tags);
	tags_ending(&tags, &dev, true);
	CHECK(card.takes_tags);
}

TEST(what_we_have_not_told_it_stays)
{
	static const struct {
		bool takes_tags, is_virtual, is_fixed;
	} cases[] = { { false, false, false }, { true, true, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(cases[i].takes_tags, cases[i].is_virtual);
		CHECK_EQ(tags.are_off, cases[i].takes_tags);
		tags_ending(&tags, &dev, true);
		CHECK_EQ(card.set_cnt, 0);
	}
	begin(false, false);
	card.is_fixed = true;
	card.takes_tags = true;
	tags_see(&tags, &dev, false);
	CHECK(tags.are_off);
	tags_ending(&tags, &dev, true);
	CHECK_EQ(card.set_cnt, 1);
}

TEST(the_end_of_a_child_is_not_the_parents)
{
	int status;
	pid_t pid;

	begin(true, false);
	pid = fork();
	if (pid == 0) {
		tags_ending(&tags, &dev, true);
		_exit((int)card.set_cnt);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 1);
}

/* In another network namespace its number is that of another one. */
TEST(another_card_is_left_alone)
{
	begin(true, false);
	card.mac[5] = 9;
	tags_ending(&tags, &dev, true);
	CHECK_EQ(card.set_cnt, 1);
}
