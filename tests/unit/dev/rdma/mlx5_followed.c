/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring on ConnectX: frames of which somebody wants to know when they have left
 * (src/dev/rdma/followed.c, mlx5_tx.c). */
#include "config.h"

#include "tests/unit/dev/rdma/mlx5_card.h"

static struct pkt *told;
static unsigned told_cnt;

static void is_told(struct pkt *record)
{
	CHECK(!told);
	told = record;
	told_cnt++;
}

static struct pkt *new_record(void)
{
	struct pkt *record = ring_pkt_alloc(ring);

	PKT_CB(record, struct ring_followed)->told = is_told;
	return record;
}

/* The test keeps no reference. */
static void follow(void)
{
	struct pkt *record = new_record();

	ring->ops->tx_follow(ring, record);
	pkt_put(record);
}

/* What its own completion says is its stamp, and it is told once; nobody else's sends ask
 * for more. */
TEST(frame_that_is_followed)
{
	struct mlx5_ring *own;
	struct pkt *batch[1];
	uint16_t block;

	set_up();
	own = mlx5_ring_of(ring);
	told = NULL;
	told_cnt = 0;
	CHECK(ring->follows_tx);
	send_short();
	CHECK(!is_signaled_at(0));
	block = own->sq_pi;
	follow();
	send_short();
	ring->ops->tx_follow(ring, NULL);
	CHECK(is_signaled_at(block));
	CHECK(ring_has_followed(ring));
	send_short();
	CHECK(!is_signaled_at((uint16_t)(own->sq_pi - 2)));
	/* polls are made until it has left */
	CHECK(!ring_is_quiet(ring));
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 0);
	CHECK(!ring_is_quiet(ring));
	CHECK(!told);
	entry_is_sent(0, block, 4711);
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 0);
	CHECK(told);
	CHECK_EQ(pkt_card_ns(told), 4711);
	CHECK(!ring_has_followed(ring));
	CHECK(ring_is_quiet(ring));
	pkt_put(told);
	CHECK_EQ(told_cnt, 1);
	tear_down();
}

/* A frame that is shown may wait; who polls hears of both. */
TEST(frames_do_not_hide_completions)
{
	struct pkt *batch[1];

	set_up();
	told = NULL;
	follow();
	send_short();
	ring->ops->tx_follow(ring, NULL);
	frame_comes();
	CHECK(!ring->ops->rx_peek(ring).data);
	entry_is_sent(0, 0, 1);
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 1);
	pkt_put(batch[0]);
	CHECK(told);
	pkt_put(told);
	frame_comes();
	CHECK(ring->ops->rx_peek(ring).data);
	tear_down();
}

/* Nothing was sent: the ring keeps nothing, and what is sent later is followed by nobody. */
TEST(wish_that_is_taken_back)
{
	struct pkt *record;

	set_up();
	told = NULL;
	record = new_record();
	ring->ops->tx_follow(ring, record);
	CHECK_EQ(record->refs, 2);
	ring->ops->tx_follow(ring, NULL);
	CHECK_EQ(record->refs, 1);
	send_short();
	CHECK(!ring_has_followed(ring));
	entry_is_sent(0, 0, 1);
	ring->ops->reap(ring);
	CHECK(!told);
	pkt_put(record);
	tear_down();
}

/* The card is gone: records come back without a stamp. */
TEST(followed_frames_of_a_ring_that_ends)
{
	set_up();
	told = NULL;
	follow();
	send_short();
	ring->ops->tx_follow(ring, NULL);
	ring_forget_followed(ring);
	CHECK(told);
	CHECK_EQ(pkt_card_ns(told), 0);
	pkt_put(told);
	tear_down();
}

static uint32_t armed_number(void)
{
	return be32toh(card.tx_record[1]) >> 28;
}

/* Who sleeps hears of it: the queue is armed by the send, by who goes to sleep, and again
 * when another one has read the event. */
TEST(sleeper_hears_when_it_has_left)
{
	set_up();
	told = NULL;
	card.tx_record[1] = UINT32_MAX;
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(card.tx_record[1], UINT32_MAX);
	follow();
	send_short();
	ring->ops->tx_follow(ring, NULL);
	CHECK_EQ(armed_number(), 0);
	card.tx_record[1] = UINT32_MAX;
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(armed_number(), 0);
	events.tx_cnt = 1;
	ring->ops->acknowledge(ring);
	CHECK_EQ(armed_number(), 1);
	entry_is_sent(0, 0, 1);
	ring->ops->reap(ring);
	pkt_put(told);
	events.tx_cnt = 1;
	card.tx_record[1] = UINT32_MAX;
	ring->ops->acknowledge(ring);
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(card.tx_record[1], UINT32_MAX);
	tear_down();
}

/* -- between frames that are shown ---------------------------------------------------- */

static void followed_is_sent(void)
{
	follow();
	send_short();
	ring->ops->tx_follow(ring, NULL);
}

/* Whatever was sent since the ring has shown the frame: it is taken as any other, and the
 * completion is looked for. */
static void take_shown(bool is_first_over)
{
	struct pkt *batch[1];

	set_up();
	told = NULL;
	frame_comes();
	CHECK(ring->ops->rx_peek(ring).data);
	followed_is_sent();
	CHECK(!ring_is_quiet(ring));
	if (is_first_over) {
		entry_is_sent(0, 0, 1);
		ring->ops->reap(ring);
		CHECK(told);
	}
	ring->ops->rx_done(ring);
	CHECK_EQ(ring->counts->rx_bytes, LEN);
	CHECK_EQ(ring_is_quiet(ring), is_first_over);
	if (!is_first_over) {
		entry_is_sent(0, 0, 1);
		CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 0);
	}
	CHECK(told);
	pkt_put(told);
	CHECK(ring_is_quiet(ring));
	frame_comes();
	CHECK(!ring_is_quiet(ring));
	CHECK(ring->ops->rx_peek(ring).data);
	ring->ops->rx_done(ring);
	CHECK_EQ(ring->counts->rx_bytes, 2 * LEN);
	tear_down();
}

TEST(frame_that_was_shown_before)
{
	take_shown(false);
	take_shown(true);
}

/* So it is when the send has not come about. */
TEST(frame_that_was_shown_before_a_wish)
{
	set_up();
	frame_comes();
	CHECK(ring->ops->rx_peek(ring).data);
	follow();
	ring->ops->tx_follow(ring, NULL);
	ring->ops->rx_done(ring);
	CHECK_EQ(ring->counts->rx_bytes, LEN);
	CHECK(ring_is_quiet(ring));
	frame_comes();
	CHECK(ring->ops->rx_peek(ring).data);
	tear_down();
}

/* A completion that no poll has found leaves nothing behind: what the card wrote a lap ago is
 * not shown for a new frame. */
TEST(old_frames_are_not_shown_again)
{
	struct pkt *batch[1];

	set_up();
	told = NULL;
	for (int i = 0; i < RX; i++) {
		frame_comes();
		CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 1);
		pkt_put(batch[0]);
	}
	followed_is_sent();
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 1), 0);
	entry_is_sent(0, 0, 1);
	ring->ops->reap(ring);
	CHECK(told);
	pkt_put(told);
	CHECK(ring_is_quiet(ring));
	CHECK(!ring->ops->rx_peek(ring).data);
	frame_comes();
	CHECK(ring->ops->rx_peek(ring).data);
	tear_down();
}
