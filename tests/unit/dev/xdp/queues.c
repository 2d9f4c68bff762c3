/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queues of interfaces that sysfs and drivers, played here, tell of or not. */
#include "config.h"

#include "dev/xdp/queues.h"

#include <errno.h>
#include <stdio.h>

#include "dev/xdp/ethtool.h"
#include "os/file.h"
#include "tests/support/test.h"

enum { CARD = 7, LIMIT = 64 };

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xab };

/* What is to be seen under the interface's name. */
static struct {
	bool is_there;
	const char *ifindex, *address;
	uint32_t file_cnt;
	uint32_t by_driver;
	/* numbers that a program might have missed meanwhile */
	unsigned opened;
} shown;

int ethtool_name(int by, int ifindex, char name[IF_NAMESIZE])
{
	shown.opened += by < 0;
	if (ifindex != CARD)
		return -ENODEV;
	snprintf(name, IF_NAMESIZE, "card0");
	return 0;
}

uint32_t ethtool_queue_cnt(int by, int ifindex)
{
	shown.opened += by < 0;
	return ifindex == CARD ? shown.by_driver : 0;
}

ssize_t file_peek(const char *path, char *buf, size_t size)
{
	bool is_index = strcmp(path, "/sys/class/net/card0/ifindex") == 0;
	const char *text = is_index ? shown.ifindex : shown.address;

	shown.opened++;
	if (!shown.is_there)
		return -ENOENT;
	if (!is_index)
		CHECK_STR(path, "/sys/class/net/card0/address");
	return snprintf(buf, size, "%s\n", text);
}

bool file_is_there(const char *path)
{
	unsigned queue;

	CHECK_EQ(sscanf(path, "/sys/class/net/card0/queues/rx-%u", &queue), 1);
	return shown.is_there && queue < shown.file_cnt;
}

static uint32_t count(uint32_t max)
{
	struct queues_of of = { .ifindex = CARD, .mac = mac, .max = max };

	return queues_count(&of, LIMIT);
}

static void begin(void)
{
	shown.is_there = true;
	shown.ifindex = "7";
	shown.address = "02:00:00:00:00:ab";
	shown.file_cnt = 4;
	shown.by_driver = 0;
}

TEST(a_driver_need_not_say)
{
	begin();
	CHECK_EQ(count(16), 4);
	CHECK_EQ(count(0), 4);
	/* a queue that the driver has none of receives, too */
	shown.by_driver = 3;
	CHECK_EQ(count(16), 4);
	shown.file_cnt = LIMIT;
	CHECK_EQ(count(128), LIMIT);
	shown.file_cnt = 100;
	CHECK_EQ(count(128), LIMIT + 1);
}

/* The one of the name that /sys shows is another namespace's. */
TEST(files_of_another_interface_do_not_count)
{
	begin();
	shown.ifindex = "70";
	CHECK_EQ(count(16), 0);
	shown.by_driver = 8;
	CHECK_EQ(count(16), 8);
	shown.ifindex = "7";
	shown.address = "02:00:00:00:00:ac";
	CHECK_EQ(count(16), 8);
	shown.is_there = false;
	CHECK_EQ(count(16), 8);
	shown.by_driver = 100;
	CHECK_EQ(count(128), LIMIT + 1);
}

/* They are looked for all the time, and counted only when there may be some. */
TEST(further_ones_are_seen_without_opening_anything)
{
	struct queues_of of = { .ifindex = CARD, .mac = mac, .max = 16 };

	begin();
	CHECK_EQ(queues_count(&of, LIMIT), 4);
	shown.opened = 0;
	CHECK(!queues_may_be_more(&of, 3, 4));
	shown.file_cnt = 5;
	CHECK(queues_may_be_more(&of, 3, 4));
	shown.is_there = false;
	CHECK(!queues_may_be_more(&of, 3, 4));
	CHECK_EQ(shown.opened, 0);
	shown.by_driver = 4;
	CHECK_EQ(queues_count(&of, LIMIT), 4);
	shown.opened = 0;
	CHECK(!queues_may_be_more(&of, 3, 4));
	shown.by_driver = 5;
	CHECK(queues_may_be_more(&of, 3, 4));
	of.max = 1;
	CHECK(!queues_may_be_more(&of, 3, 4));
	CHECK_EQ(shown.opened, 0);
}

TEST(one_that_may_have_only_one_has_one)
{
	begin();
	shown.is_there = false;
	CHECK_EQ(count(1), 1);
}
