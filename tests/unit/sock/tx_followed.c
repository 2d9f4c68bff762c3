/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records that wait for a card, on a ring that does nothing else. */
#include "config.h"

#include "sock/tx_followed.h"

#include <string.h>

#include "pkt/pkt_stock.h"
#include "tests/support/test.h"

static struct pkt_stock stock;
static struct stack stack;
static struct ring ring;
static struct tx_stamps ours, theirs;

/* What the socket of `ours` has heard last. */
static struct tx_stamps *told_stamps;
static struct tx_stamp told_what;
static unsigned told_cnt, reap_cnt;

static void told(struct pkt *record)
{
	told_cnt++;
	told_stamps = tx_followed_told(record, &told_what);
	if (told_stamps)
		pkt_put(record);
}

/* A frame is sent at once, if there is room for it. */
static struct pkt *wish;

static void ring_follow(struct ring *r UNUSED, struct pkt *record)
{
	if (record)
		pkt_get(record);
	else
		pkt_put(wish);
	wish = record;
}

static void send_frame(void)
{
	list_push_back(&ring.followed, &wish->link);
	wish = NULL;
}

/* The card says of the oldest frame when it left; 0: nobody knows what it says. */
static void say(uint64_t ns)
{
	struct pkt *record = pkt_from_link(list_pop_front(&ring.followed));

	if (ns) {
		record->card_ns = ns;
		record->flags |= PKT_CARD_STAMPED;
	}
	PKT_CB(record, struct ring_followed)->told(record);
}

static void ring_reap(struct ring *r UNUSED)
{
	reap_cnt++;
	while (!list_is_empty(&ring.followed))
		say(100);
}

static struct ring_ops ops = { .tx_follow = ring_follow, .reap = ring_reap };

static void begin(void)
{
	pkt_stock_init(&stock, 2048, 1024);
	CHECK(!pkt_stock_add(&stock, pkt_stock_make(&stock)));
	ring = (struct ring){ .ops = &ops, .follows_tx = true };
	list_init(&ring.followed);
	stack.rings[0] = NULL;
	stack.rings[1] = &ring;
	stack.ring_cnt = 2;
	tx_stamps_init(&ours);
	tx_stamps_init(&theirs);
	ours.waiting = theirs.waiting = 0;
	told_cnt = reap_cnt = 0;
	told_stamps = NULL;
}

/* Nobody has a record any more. */
static void end(void)
{
	CHECK(list_is_empty(&ring.followed));
	CHECK_EQ(ours.waiting, 0);
	CHECK_EQ(theirs.waiting, 0);
	CHECK_EQ(pkt_stock_destroy(&stock), 0);
}

/* A frame of this socket's; NULL: its record waits, or there was no frame. */
static struct pkt *send_of(struct tx_stamps *stamps, uint32_t number, bool is_sent)
{
	struct tx_stamp what = { .station = SCM_TSTAMP_SND, .number = number };
	struct pkt *record = pkt_stock_take(&stock);

	tx_follow(&ring, record, told);
	if (is_sent)
		send_frame();
	else
		ring.ops->tx_follow(&ring, NULL);
	CHECK_EQ(tx_is_followed(record), is_sent);
	return tx_followed_leave(record, stamps, &what);
}

TEST(card_says_it_later)
{
	begin();
	CHECK(!send_of(&ours, 7, true));
	CHECK(!send_of(&theirs, 8, true));
	CHECK_EQ(ours.waiting, 1);
	say(100);
	CHECK(told_stamps == &ours);
	CHECK_EQ(told_what.number, 7);
	CHECK_EQ(ours.waiting, 0);
	say(200);
	CHECK(told_stamps == &theirs);
	CHECK_EQ(told_what.number, 8);
	end();
}

TEST(card_has_said_it_already)
{
	struct tx_stamp what = { .station = SCM_TSTAMP_SND };
	struct pkt *record;

	begin();
	record = pkt_stock_take(&stock);
	tx_follow(&ring, record, told);
	send_frame();
	say(100);
	/* nobody's yet */
	CHECK_EQ(told_cnt, 1);
	CHECK(!told_stamps);
	CHECK(tx_is_followed(record));
	CHECK(tx_followed_leave(record, &ours, &what) == record);
	CHECK_EQ(pkt_card_ns(record), 100);
	CHECK_EQ(ours.waiting, 0);
	pkt_put(record);
	end();
}

TEST(frame_that_was_not_sent)
{
	begin();
	CHECK(!send_of(&ours, 0, false));
	CHECK_EQ(ours.waiting, 0);
	end();
}

TEST(nobody_knows_when_it_left)
{
	begin();
	CHECK(!send_of(&ours, 0, true));
	say(0);
	CHECK_EQ(told_cnt, 1);
	CHECK(!told_stamps);
	end();
}

/* Nobody else has this stack, and the analysis does not know. */
NO_LOCK_ANALYSIS static void look(void)
{
	tx_followed_look(&ours, &stack);
}

NO_LOCK_ANALYSIS static void forget(void)
{
	tx_followed_forget(&ours, &stack);
}

TEST(who_looks_hears_it)
{
	begin();
	CHECK(!send_of(&theirs, 0, true));
	look();
	/* not for somebody else */
	CHECK_EQ(reap_cnt, 0);
	CHECK(!send_of(&ours, 1, true));
	look();
	CHECK_EQ(reap_cnt, 1);
	CHECK_EQ(told_cnt, 2);
	CHECK(told_stamps == &ours);
	end();
}

TEST(one_that_is_gone_hears_nothing)
{
	begin();
	CHECK(!send_of(&ours, 0, true));
	CHECK(!send_of(&theirs, 1, true));
	CHECK(!send_of(&ours, 2, true));
	forget();
	memset(&ours, 0x5a, sizeof(ours));
	say(100);
	CHECK(!told_stamps);
	say(100);
	CHECK(told_stamps == &theirs);
	say(100);
	CHECK(!told_stamps);
	CHECK_EQ(told_cnt, 3);
	ours.waiting = 0;
	end();
}

TEST(ring_that_ends_tells_all)
{
	begin();
	CHECK(!send_of(&ours, 0, true));
	CHECK(!send_of(&ours, 1, true));
	ring_forget_followed(&ring);
	CHECK_EQ(told_cnt, 2);
	CHECK(!told_stamps);
	end();
}
