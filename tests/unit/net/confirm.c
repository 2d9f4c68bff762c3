/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/confirm.h"

#include <errno.h>

#include "fd/right_keeper.h"
#include "net/net.h"
#include "tests/support/test.h"

enum { NETNS = 7, ASKED_MAX = 2 * CONFIRMS_MAX };

static struct net net = { .netns = NETNS };
static struct keeper_request asked[ASKED_MAX];
static unsigned asked_cnt;
/* how many it takes now */
static unsigned room;
static int keepers_word;

/* The keeper. */
int right_keeper_tell(const struct keeper_request *request, uint64_t netns)
{
	CHECK_EQ(netns, NETNS);
	CHECK(asked_cnt < ASKED_MAX);
	if (!room)
		return -EAGAIN;
	room--;
	asked[asked_cnt++] = *request;
	return keepers_word;
}

static void later(int ifindex, uint32_t host)
{
	struct ip_addr addr = ip_addr_from_v4(htobe32(host));

	confirm_later(&net, ifindex, &addr);
}

static void begin(void)
{
	net.confirms.cnt = 0;
	asked_cnt = 0;
	keepers_word = 0;
	room = ASKED_MAX;
}

static void check_asked(unsigned i, int ifindex, uint32_t host)
{
	struct ip_addr addr = ip_addr_from_v4(htobe32(host));

	CHECK(i < asked_cnt);
	CHECK_EQ(asked[i].op, KEEPER_NEIGHBOUR);
	CHECK_EQ(asked[i].ifindex, ifindex);
	CHECK_EQ(memcmp(asked[i].addr, &addr, sizeof(addr)), 0);
}

TEST(each_is_asked_for_once)
{
	begin();
	for (int i = 0; i < 3; i++) {
		later(1, 5);
		later(2, 5);
		later(1, 6);
	}
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, 3);
	check_asked(0, 1, 5);
	check_asked(1, 2, 5);
	check_asked(2, 1, 6);
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, 3);
}

TEST(what_finds_no_room_is_left_for_the_next_time)
{
	begin();
	for (uint32_t host = 0; host < 5; host++)
		later(1, host);
	room = 2;
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, 2);
	later(1, 3);
	later(1, 9);
	room = ASKED_MAX;
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, 6);
	for (unsigned i = 0; i < 5; i++)
		check_asked(i, 1, i);
	check_asked(5, 1, 9);
}

TEST(no_more_than_so_many_at_once)
{
	begin();
	for (uint32_t host = 0; host < CONFIRMS_MAX + 5; host++)
		later(1, host);
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, CONFIRMS_MAX);
}

/* A question that nobody takes is none later, either. */
TEST(without_a_keeper_nothing_is_kept)
{
	begin();
	later(1, 1);
	later(1, 2);
	keepers_word = -EPERM;
	confirms_tell(&net);
	CHECK_EQ(asked_cnt, 2);
	CHECK_EQ(net.confirms.cnt, 0);
}
