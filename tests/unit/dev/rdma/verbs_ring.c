/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring on portable verbs (src/dev/rdma/verbs_ring.c) with a card that the test is:
 * what libibverbs would ask of a driver arrives here. Events are as on ConnectX: an
 * arming has a number, that of the events read so far, and one by an older number
 * counts for nothing. It looks at what was polled, and fires at once when more has come.
 */
#include "config.h"

#include "dev/rdma/verbs_ring.c"
#include "tests/support/test.h"

enum {
	FRAMES = 256, FRAME = 2048, HEADROOM = 128, RX = 64, TX = 512,
	SIGNAL_EACH = 16, LEN = 60,
};

static struct card {
	/* receiving: entries posted, completions written and read */
	struct pkt *posted[2 * FRAMES];
	uint32_t posted_cnt, come_cnt, polled_cnt;
	/* sending: the numbers of signaled sends that are done, and how many of
	 * them were read */
	uint64_t done[2 * TX];
	uint32_t done_cnt, reaped_cnt;
	uint64_t signaled[2 * TX];
	uint32_t signaled_cnt, sent_cnt;
	/* events */
	uint32_t event_cnt;
	bool is_armed;
	bool has_event;
	uint32_t armings, tx_armings, tx_event_cnt;
	/* what another thread does in the middle of the next arming */
	void (*meanwhile)(void);
	/* between start_poll and end_poll; completions are errors */
	bool is_polling, fails;
	/* completions cannot be read at all */
	bool breaks;
	/* between wr_start and wr_complete; and the bytes that the send has got */
	bool is_sending, has_send;
	size_t send_len;
	/* how many requests of the next posting it takes; 0: all */
	uint32_t takes;
} card;

/* Whether its driver has the calls for single parts. */
static bool has_parts = true;

static struct ibv_context context;
static struct ibv_cq rx_cq = { .context = &context }, tx_cq = { .context = &context };
static struct ibv_cq_ex stamped_cq, sent_cq;
static struct ibv_qp_ex qp = { .qp_base.context = &context };
static struct rdma_params params = {
	.rx_max = RX, .rx_batch = 8, .tx_max = TX, .tx_batch = SIGNAL_EACH,
};
static struct rdma_dev dev;
static struct pkt_pool pool;
static struct ring *ring;

/* -- the card ---------------------------------------------------------------------- */

static int card_poll_cq(struct ibv_cq *cq, int cnt, struct ibv_wc *wcs)
{
	int n = 0;

	if (card.breaks)
		return -EIO;
	for (; n < cnt; n++) {
		bool has_come = cq == &rx_cq ? card.polled_cnt < card.come_cnt :
					       card.reaped_cnt < card.done_cnt;

		if (!has_come)
			break;
		wcs[n] = (struct ibv_wc){ .status = IBV_WC_SUCCESS, .byte_len = LEN };
		wcs[n].wr_id = cq == &rx_cq ?
				       (uintptr_t)card.posted[card.polled_cnt++] :
				       card.done[card.reaped_cnt++];
	}
	return n;
}

static int card_post_recv(struct ibv_qp *pair UNUSED, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	uint32_t taken = 0;

	for (; wr; wr = wr->next) {
		struct pkt *pkt = (void *)(uintptr_t)wr->wr_id;

		if (card.takes && taken++ == card.takes) {
			*bad = wr;
			return ENOMEM;
		}
		CHECK_EQ(wr->num_sge, 1);
		CHECK(wr->sg_list->addr == (uintptr_t)pkt->data);
		CHECK_EQ(wr->sg_list->length, FRAME - HEADROOM);
		card.posted[card.posted_cnt++] = pkt;
	}
	CHECK(card.posted_cnt <= ARRAY_LEN(card.posted));
	return 0;
}

static int card_post_send(struct ibv_qp *pair UNUSED, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad UNUSED)
{
	card.sent_cnt++;
	if (wr->send_flags & IBV_SEND_SIGNALED)
		card.signaled[card.signaled_cnt++] = wr->wr_id;
	return 0;
}

/* The same part by part. */
static void card_wr_start(struct ibv_qp_ex *pair UNUSED)
{
	CHECK(!card.is_sending);
	card.is_sending = true;
	card.has_send = false;
	card.send_len = 0;
}

static void card_wr_send(struct ibv_qp_ex *pair UNUSED)
{
	CHECK(card.is_sending);
	card.has_send = true;
}

static void card_wr_set_inline_data(struct ibv_qp_ex *pair UNUSED,
				    void *addr UNUSED, size_t len)
{
	CHECK(card.has_send && len <= params.inline_max);
	card.send_len = len;
}

static void card_wr_set_sge(struct ibv_qp_ex *pair UNUSED, uint32_t lkey UNUSED,
			    uint64_t addr UNUSED, uint32_t len)
{
	CHECK(card.has_send);
	card.send_len = len;
}

static int card_wr_complete(struct ibv_qp_ex *pair)
{
	CHECK(card.is_sending && card.send_len);
	card.is_sending = false;
	card.sent_cnt++;
	if (pair->wr_flags & IBV_SEND_SIGNALED)
		card.signaled[card.signaled_cnt++] = pair->wr_id;
	return 0;
}

static void fire_if_behind(void)
{
	if (!card.is_armed || card.polled_cnt == card.come_cnt)
		return;
	card.is_armed = false;
	card.has_event = true;
}

static int card_req_notify(struct ibv_cq *cq, int solicited UNUSED)
{
	uint32_t number = card.event_cnt;
	void (*meanwhile)(void) = card.meanwhile;

	if (cq == &tx_cq) {
		card.tx_armings++;
		return 0;
	}
	card.armings++;
	card.meanwhile = NULL;
	if (meanwhile)
		meanwhile();
	card.is_armed = number == card.event_cnt;
	fire_if_behind();
	return 0;
}

/* The same completions one by one, with the number of the frame for a stamp. */
static int card_next_poll(struct ibv_cq_ex *cq)
{
	struct ibv_wc wc;

	CHECK(cq == &stamped_cq || cq == &sent_cq);
	if (card_poll_cq(cq == &sent_cq ? &tx_cq : &rx_cq, 1, &wc) != 1)
		return ENOENT;
	cq->wr_id = wc.wr_id;
	cq->status = card.fails ? IBV_WC_WR_FLUSH_ERR : wc.status;
	return 0;
}

static int card_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr UNUSED)
{
	int err = card_next_poll(cq);

	CHECK(!card.is_polling);
	card.is_polling = !err;
	return err;
}

static void card_end_poll(struct ibv_cq_ex *cq UNUSED)
{
	CHECK(card.is_polling);
	card.is_polling = false;
}

static uint32_t card_read_byte_len(struct ibv_cq_ex *cq UNUSED)
{
	return LEN;
}

static unsigned card_read_wc_flags(struct ibv_cq_ex *cq UNUSED)
{
	return 0;
}

static uint64_t card_read_ts(struct ibv_cq_ex *cq)
{
	return cq == &sent_cq ? 1000 + cq->wr_id : card.polled_cnt;
}

void rdma_stamp(struct rdma_ring *own, struct pkt *pkt, uint64_t ticks)
{
	CHECK(&own->ring == ring);
	pkt->card_ns = ticks;
	pkt->flags |= PKT_CARD_STAMPED;
}

void rdma_stamp_left(struct rdma_ring *own, struct pkt *record, uint64_t ticks)
{
	rdma_stamp(own, record, ticks);
}

/* queues.c's: reads the event. */
struct rdma_events rdma_queues_acknowledge(struct rdma_ring *own UNUSED)
{
	struct rdma_events events = { card.has_event, card.tx_event_cnt };

	card.tx_event_cnt = 0;
	card.event_cnt += card.has_event;
	card.has_event = false;
	return events;
}

void rdma_queues_close(struct rdma_queues *queues UNUSED)
{
}

int rdma_set_pace(struct ring *paced UNUSED, const struct ring_pace *pace UNUSED)
{
	return 0;
}

static void frames_come(uint32_t cnt)
{
	card.come_cnt += cnt;
	CHECK(card.come_cnt <= card.posted_cnt);
	fire_if_behind();
}

static void all_is_sent(void)
{
	while (card.done_cnt < card.signaled_cnt) {
		card.done[card.done_cnt] = card.signaled[card.done_cnt];
		card.done_cnt++;
	}
}

/* -- the ring ---------------------------------------------------------------------- */

/* `own_cnt` is not 0: it only sends, and has so many frames for itself. */
static void set_up_any(uint32_t own_cnt)
{
	struct rdma_queues queues = {
		.rx_cq = own_cnt ? NULL : &rx_cq, .tx_cq = &tx_cq, .qp = &qp.qp_base,
		.rx_stamped = has_parts ? &stamped_cq : NULL,
		.rx_parts = has_parts ? &stamped_cq : NULL,
		.tx_parts = has_parts ? &qp : NULL,
		.tx_stamped = &sent_cq,
		.rx_size = own_cnt ? 0 : RX, .tx_size = TX, .inline_max = params.inline_max,
	};

	memset(&card, 0, sizeof(card));
	memset(&dev, 0, sizeof(dev));
	context.ops.poll_cq = card_poll_cq;
	context.ops.post_recv = card_post_recv;
	context.ops.post_send = card_post_send;
	context.ops.req_notify_cq = card_req_notify;
	stamped_cq = (struct ibv_cq_ex){
		.context = &context,
		.start_poll = card_start_poll,
		.next_poll = card_next_poll,
		.end_poll = card_end_poll,
		.read_byte_len = card_read_byte_len,
		.read_wc_flags = card_read_wc_flags,
		.read_completion_ts = card_read_ts,
	};
	sent_cq = stamped_cq;
	qp.wr_start = card_wr_start;
	qp.wr_send = card_wr_send;
	qp.wr_set_inline_data = card_wr_set_inline_data;
	qp.wr_set_sge = card_wr_set_sge;
	qp.wr_complete = card_wr_complete;
	dev.params = &params;
	dev.sharer_cnt = 1;
	CHECK_EQ(region_create(FRAMES, FRAME, REGION_SMALL_PAGES,
			       &dev.dev.region), 0);
	CHECK_EQ(region_set_add(&dev.dev.regions, dev.dev.region), 0);
	pkt_pool_init(&pool, HEADROOM);
	region_take(dev.dev.region, &pool, own_cnt);
	rdma_kind_verbs.start();
	CHECK_EQ(rdma_kind_verbs.ring_create(&dev, &queues, &pool, &ring), 0);
}

static void set_up(void)
{
	set_up_any(0);
}

static void tear_down(void)
{
	struct region_set *set = &dev.dev.regions;

	ring_end(ring);
	region_set_give(set, &pool, FRAMES);
	CHECK_EQ(region_free_cnt(dev.dev.region), FRAMES);
	region_set_put(set);
}

static unsigned look(unsigned cnt)
{
	struct pkt *batch[64];
	unsigned got = ring->ops->rx_poll(ring, batch, cnt);

	for (unsigned i = 0; i < got; i++)
		pkt_put(batch[i]);
	return got;
}

static int send_one(void)
{
	static const uint8_t header[42];
	struct pkt *payload = ring_pkt_alloc(ring);
	struct ring_tx tx = {
		.header = header, .header_len = sizeof(header), .payload = payload,
	};

	if (!payload)
		return -ENOBUFS;
	memset(pkt_append(payload, 20), 0, 20);
	return ring->ops->tx(ring, &tx);
}

/* What the ports of a bond share is enough for all of them; a further region is, too. */
TEST(rings_of_a_bond_post_their_share)
{
	struct region *region;

	set_up();
	CHECK_EQ(ring->rx_post_max, RX);
	CHECK_EQ(card.posted_cnt, RX);
	dev.sharer_cnt = 2;
	ring->ops->rx_grow(ring);
	CHECK_EQ(ring->rx_post_max, RX / 2);
	CHECK_EQ(region_create(FRAMES / 2, FRAME, REGION_SMALL_PAGES, &region), 0);
	CHECK_EQ(region_set_add(&dev.dev.regions, region), 0);
	ring->ops->rx_grow(ring);
	CHECK_EQ(ring->rx_post_max, (FRAMES + FRAMES / 2) / 2 / 4);
	/* one for each at least */
	dev.sharer_cnt = 1000;
	ring->ops->rx_grow(ring);
	CHECK_EQ(ring->rx_post_max, 1);
	tear_down();
}

/* A completion that was read raises no event, so who sleeps would not hear of it. */
TEST(nothing_is_read_ahead)
{
	set_up();
	frames_come(40);
	CHECK_EQ(look(16), 16);
	CHECK_EQ(card.polled_cnt, 16);
	CHECK(ring->ops->rx_peek(ring).data);
	CHECK_EQ(card.polled_cnt, 17);
	ring->ops->rx_done(ring);
	CHECK(ring->ops->rx_peek(ring).has_more);
	CHECK_EQ(look(4), 4);
	CHECK_EQ(card.polled_cnt, 21);
	tear_down();
}

/* One sleeps, another polls and reads the event: the sleeper hears of the rest. */
TEST(sleeper_hears_of_what_another_left)
{
	set_up();
	CHECK(ring->ops->arm(ring));
	frames_come(20);
	CHECK(card.has_event);
	CHECK(ring->ops->rx_peek(ring).data);
	ring->ops->rx_done(ring);
	CHECK_EQ(look(16), 16);
	ring->ops->acknowledge(ring);
	CHECK(card.has_event);
	CHECK_EQ(look(16), 3);
	ring->ops->acknowledge(ring);
	CHECK(!card.has_event);
	frames_come(1);
	CHECK(card.has_event);
	tear_down();
}

/* What is neither free nor the device's is what sockets hold. */
static uint32_t held_cnt(void)
{
	return pool.total_cnt - pool.free_cnt - ring->ops->device_cnt(ring);
}

/* Short ones are copied into the queue, and take no frame with them. */
static void count_frames(void)
{
	params.inline_max = LEN;
	set_up();
	CHECK_EQ(held_cnt(), 0);
	for (int i = 0; i < SIGNAL_EACH; i++) {
		memset(ring->tx_frame, 0, LEN);
		ring->ops->tx_commit(ring, LEN);
		CHECK_EQ(held_cnt(), 0);
		CHECK_EQ(send_one(), 0);
		CHECK_EQ(held_cnt(), 0);
	}
	CHECK_EQ(card.sent_cnt, 2 * SIGNAL_EACH);
	CHECK_EQ(card.signaled_cnt, 2);
	frames_come(3);
	CHECK_EQ(look(3), 3);
	CHECK_EQ(held_cnt(), 0);
	all_is_sent();
	ring->ops->reap(ring);
	CHECK_EQ(held_cnt(), 0);
	tear_down();
	params.inline_max = 0;
}

TEST(frames_of_the_device_are_counted)
{
	count_frames();
}

/* Other drivers have calls for whole requests and completions alone. */
TEST(devices_without_calls_for_parts)
{
	has_parts = false;
	count_frames();
	set_up();
	frames_come(20);
	CHECK_EQ(ring->ops->rx_peek(ring).len, LEN);
	ring->ops->rx_done(ring);
	CHECK_EQ(look(RX), 19);
	CHECK_EQ(look(1), 0);
	tear_down();
	has_parts = true;
}

static void another_reads_the_event(void)
{
	ring->ops->acknowledge(ring);
}

/* One arms, and another reads an event in the middle of it: the number by which the
 * first arms counts no more. */
TEST(armed_while_an_event_is_read)
{
	set_up();
	frames_come(1);
	CHECK_EQ(look(16), 1);
	CHECK(card.has_event);
	card.meanwhile = another_reads_the_event;
	CHECK(ring->ops->arm(ring));
	frames_come(1);
	CHECK(card.has_event);
	tear_down();
}

/* Frames that were shown are posted in batches, and earlier with others. */
TEST(shown_frames_are_posted_with_others)
{
	set_up();
	frames_come(2 * params.rx_batch + 3);
	for (uint32_t i = 0; i < params.rx_batch + 3; i++) {
		CHECK_EQ(card.posted_cnt, RX + i / params.rx_batch * params.rx_batch);
		CHECK(ring->ops->rx_peek(ring).data);
		ring->ops->rx_done(ring);
	}
	CHECK_EQ(look(params.rx_batch), params.rx_batch);
	CHECK_EQ(card.posted_cnt, RX + 2 * params.rx_batch + 3);
	tear_down();
}

/* The queue does not take all: the rest comes back, and the device has failed. */
TEST(frames_that_are_not_taken_come_back)
{
	set_up();
	frames_come(params.rx_batch);
	card.takes = 3;
	for (uint32_t i = 0; i < params.rx_batch; i++) {
		CHECK(ring->ops->rx_peek(ring).data);
		ring->ops->rx_done(ring);
	}
	CHECK_EQ(card.posted_cnt, RX + 3);
	CHECK_EQ(ring->ops->device_cnt(ring), RX - params.rx_batch + 3 + 1);
	CHECK(atomic_load(&dev.failure) != 0);
	tear_down();
}

/* A look that finds nothing says nothing of the next poll. */
TEST(frame_behind_an_empty_look)
{
	set_up();
	CHECK(!ring->ops->rx_peek(ring).data);
	frames_come(1);
	CHECK_EQ(look(16), 1);
	CHECK(!ring->ops->rx_peek(ring).data);
	frames_come(1);
	CHECK(ring->ops->rx_peek(ring).data);
	CHECK_EQ(look(16), 1);
	tear_down();
}

/* All frames of the pool are sent, or posted, long before the queue is full: those that
 * have been sent are found. */
TEST(frames_come_back_when_there_are_none)
{
	uint32_t sent = 0;

	set_up();
	while (!send_one())
		sent++;
	CHECK(sent < TX / 2);
	/* there is a place, and nothing to copy to until then */
	CHECK(ring->ops->tx_fits(ring, 1, 0));
	CHECK(!ring->ops->tx_fits(ring, 1, 1));
	all_is_sent();
	CHECK(ring->ops->tx_fits(ring, 1, 1));
	CHECK(ring->ops->tx_fits(ring, 1, pool.free_cnt));
	CHECK(!ring->ops->tx_fits(ring, 1, pool.free_cnt + 1));
	for (uint32_t i = 0; i < 4 * TX; i++) {
		/* a payload of other memory has to be copied */
		struct pkt *payload = pkt_alloc(&pool);
		static struct pkt foreign;
		static uint8_t bytes[20];
		struct ring_tx tx = { .header = bytes, .header_len = 20 };

		if (payload)
			pkt_put(payload);
		foreign = (struct pkt){ .refs = 2, .data = bytes, .len = 20 };
		tx.payload = &foreign;
		CHECK_EQ(ring->ops->tx(ring, &tx), 0);
		if (card.signaled_cnt + 2 >= ARRAY_LEN(card.signaled))
			break;
		all_is_sent();
	}
	tear_down();
}

/* Frames come until the card has none, or has had many more than there are; nobody gives
 * any back. Returns how many it has at the end. */
static uint32_t left_when_nobody_gives_back(bool is_kept_full)
{
	struct pkt *held[FRAMES];
	unsigned held_cnt = 0;
	uint32_t left;

	params.is_kept_full = is_kept_full;
	set_up();
	while (card.come_cnt < card.posted_cnt && card.come_cnt < FRAMES + 40) {
		frames_come(1);
		held_cnt += ring->ops->rx_poll(ring, &held[held_cnt], 1);
	}
	left = card.posted_cnt - card.come_cnt;
	/* each was a packet for the caller, or was dropped and counted */
	CHECK_EQ(held_cnt + ring->counts->rx_errors, card.come_cnt);
	while (held_cnt)
		pkt_put(held[--held_cnt]);
	tear_down();
	params.is_kept_full = false;
	return left;
}

/* No frame is left anywhere: the last ones stay with the card, and what they bring is
 * dropped; or the program gets it, and the card has none. */
TEST(last_frames_stay_with_the_card)
{
	CHECK(left_when_nobody_gives_back(true) >= params.rx_batch);
	CHECK_EQ(left_when_nobody_gives_back(false), 0);
}

/* The card has had its frames, the rest is sent: they are posted. */
TEST(sent_frames_are_posted_when_there_are_no_others)
{
	struct pkt *batch[RX];
	unsigned got;

	set_up();
	while (!send_one())
		;
	frames_come(RX);
	got = ring->ops->rx_poll(ring, batch, RX);
	CHECK_EQ(got, RX);
	CHECK(ring->counts->rx_no_frame > 0);
	all_is_sent();
	(void)look(1);
	CHECK_EQ(card.posted_cnt - card.come_cnt, RX);
	for (unsigned i = 0; i < got; i++)
		pkt_put(batch[i]);
	tear_down();
}

/* So many frames come; each has its number for a stamp, or none has any. */
static void check_stamps(uint32_t cnt, bool has_stamps)
{
	struct pkt *batch[64];
	uint64_t number = card.polled_cnt;
	unsigned got;

	frames_come(cnt);
	got = ring->ops->rx_poll(ring, batch, 64);
	CHECK_EQ(got, cnt);
	for (unsigned i = 0; i < got; i++) {
		CHECK_EQ(pkt_card_ns(batch[i]), has_stamps ? ++number : 0);
		CHECK_EQ(batch[i]->len, LEN);
		pkt_put(batch[i]);
	}
	CHECK(!card.is_polling);
}

TEST(stamps_for_who_asks)
{
	set_up();
	check_stamps(5, false);
	ring->wants_stamps = true;
	for (int i = 0; i < 20; i++) {
		check_stamps(POLL_BATCH + 1, true);
		CHECK_EQ(look(1), 0);
		card.come_cnt = card.polled_cnt;
		if (card.posted_cnt + RX > ARRAY_LEN(card.posted))
			break;
	}
	ring->wants_stamps = false;
	check_stamps(20, false);
	tear_down();
}

/* The stamp of a frame that was shown first is not lost. */
TEST(stamp_of_one_that_was_shown)
{
	struct pkt *pkt;

	set_up();
	ring->wants_stamps = true;
	frames_come(1);
	CHECK_EQ(ring->ops->rx_peek(ring).len, LEN);
	CHECK_EQ(ring->ops->rx_poll(ring, &pkt, 1), 1);
	CHECK_EQ(pkt_card_ns(pkt), 1);
	pkt_put(pkt);
	tear_down();
}

TEST(errors_among_stamps)
{
	set_up();
	ring->wants_stamps = true;
	frames_come(1);
	card.fails = true;
	CHECK_EQ(look(16), 0);
	CHECK(!card.is_polling);
	CHECK(atomic_load(&dev.failure) != 0);
	tear_down();
}

/* -- frames that are followed ---------------------------------------------------------- */

static struct pkt *told;

static void is_told(struct pkt *record)
{
	CHECK(!told);
	told = record;
}

static struct pkt *follow(void)
{
	struct pkt *record = ring_pkt_alloc(ring);

	told = NULL;
	PKT_CB(record, struct ring_followed)->told = is_told;
	ring->ops->tx_follow(ring, record);
	pkt_put(record);
	return record;
}

/* It alone asks for a completion, which has its number. */
TEST(frame_that_is_followed)
{
	set_up();
	CHECK(ring->follows_tx);
	CHECK_EQ(send_one(), 0);
	CHECK_EQ(card.signaled_cnt, 0);
	follow();
	CHECK_EQ(send_one(), 0);
	ring->ops->tx_follow(ring, NULL);
	CHECK_EQ(card.signaled_cnt, 1);
	CHECK_EQ(send_one(), 0);
	CHECK_EQ(card.signaled_cnt, 1);
	CHECK_EQ(look(1), 0);
	CHECK(!told);
	all_is_sent();
	CHECK_EQ(look(1), 0);
	CHECK(told);
	CHECK_EQ(pkt_card_ns(told), 1001);
	CHECK(!card.is_polling);
	CHECK(!ring_has_followed(ring));
	pkt_put(told);
	tear_down();
}

TEST(frames_do_not_hide_completions)
{
	set_up();
	follow();
	CHECK_EQ(send_one(), 0);
	ring->ops->tx_follow(ring, NULL);
	all_is_sent();
	frames_come(1);
	CHECK(!ring->ops->rx_peek(ring).data);
	CHECK_EQ(look(1), 1);
	CHECK(told);
	pkt_put(told);
	tear_down();
}

TEST(wish_that_is_taken_back)
{
	set_up();
	follow();
	ring->ops->tx_follow(ring, NULL);
	CHECK(!ring_has_followed(ring));
	CHECK_EQ(send_one(), 0);
	CHECK_EQ(card.signaled_cnt, 0);
	tear_down();
}

/* An error says nothing of the time; the records come back when the ring ends. */
TEST(followed_frames_of_a_card_that_fails)
{
	set_up();
	follow();
	CHECK_EQ(send_one(), 0);
	ring->ops->tx_follow(ring, NULL);
	card.fails = true;
	all_is_sent();
	CHECK_EQ(look(1), 0);
	CHECK(!told);
	CHECK(atomic_load(&dev.failure) != 0);
	ring_forget_followed(ring);
	CHECK(told);
	CHECK_EQ(pkt_card_ns(told), 0);
	pkt_put(told);
	tear_down();
}

/* Nothing comes back any more, and the device is given up for it. */
TEST(completions_that_cannot_be_read)
{
	set_up();
	CHECK_EQ(send_one(), 0);
	card.breaks = true;
	ring->ops->reap(ring);
	CHECK(atomic_load(&dev.failure) != 0);
	card.breaks = false;
	tear_down();
}

TEST(sleeper_hears_when_it_has_left)
{
	set_up();
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(card.tx_armings, 0);
	follow();
	CHECK_EQ(send_one(), 0);
	ring->ops->tx_follow(ring, NULL);
	CHECK_EQ(card.tx_armings, 1);
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(card.tx_armings, 2);
	card.tx_event_cnt = 1;
	ring->ops->acknowledge(ring);
	CHECK_EQ(card.tx_armings, 3);
	all_is_sent();
	ring->ops->reap(ring);
	pkt_put(told);
	card.tx_event_cnt = 1;
	ring->ops->acknowledge(ring);
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(card.tx_armings, 3);
	tear_down();
}

/* -- what the queue ever holds ------------------------------------------------------- */

/* Whatever has been sent before; those sends that ask for no completion are the most when the
 * card is done with all others. */
TEST(more_than_fits_is_told_before)
{
	set_up();
	CHECK_EQ(ring->tx_fits_max, TX - SIGNAL_EACH + 1);
	for (int i = 0; i < 3 * SIGNAL_EACH; i++) {
		all_is_sent();
		CHECK(ring->ops->tx_fits(ring, ring->tx_fits_max, 0));
		CHECK_EQ(ring->ops->tx_fits(ring, ring->tx_fits_max + 1, 0),
			 i % SIGNAL_EACH != SIGNAL_EACH - 1);
		CHECK_EQ(send_one(), 0);
	}
	tear_down();
	set_up_any(8);
	CHECK_EQ(ring->tx_fits_max, 6);
	tear_down();
}

/* A paced ring has few frames, fewer than sends between two completions. Some of those that
 * are under way come back. */
TEST(few_frames_come_back)
{
	set_up_any(8);
	for (int i = 0; i < 7; i++)
		CHECK_EQ(send_one(), 0);
	CHECK_EQ(send_one(), -ENOBUFS);
	all_is_sent();
	ring->ops->reap(ring);
	CHECK_EQ(send_one(), 0);
	tear_down();
}
