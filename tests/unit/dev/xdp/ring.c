/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What AF_XDP receives, by one queue and by several, and the frames to receive into. */
#include "config.h"

#include "tests/unit/dev/xdp/played.h"

/* Receives a frame of 60 bytes into what it was given. */
static void arrive_at(struct played *k)
{
	uint32_t from, to = k->positions[RX][0];

	CHECK(posted_at(k));
	from = k->positions[FILL][1]++;
	k->descs[0][to % (8 * FRAMES)] = (struct xdp_desc){
		.addr = k->offsets[from % k->fill_size] + XDP_HEADROOM,
		.len = 60,
	};
	k->positions[RX][0]++;
}

static void arrive(void)
{
	arrive_at(&kernel);
}

static unsigned poll_ring(struct pkt **batch)
{
	return own->ring.ops->rx_poll(&own->ring, batch, 32);
}

/* It is waited for, so that the next process does not have to do without. */
TEST(the_queues_of_a_process_that_has_ended_become_free)
{
	struct xsk xsk;
	struct xsk_params params = { .fill_size = FRAMES };

	memset(kernels, 0, sizeof(kernels));
	kernel.busy_naps = 700;
	CHECK_EQ(create_xsk(&xsk, &params), 0);
	CHECK_EQ(kernel.naps, 700);
	/* one that says it is there may just end */
	kernel.naps = 0;
	kernel.busy_naps = 40;
	kernel.owner = 1;
	CHECK_EQ(create_xsk(&xsk, &params), 0);
	kernel.naps = 0;
	kernel.busy_naps = 700;
	CHECK_EQ(create_xsk(&xsk, &params), -EBUSY);
	CHECK(kernel.naps < 100);
}

TEST(a_fill_ring_that_ran_dry_is_filled_without_an_arrival)
{
	struct pkt *held[2][32], *none[32];

	begin();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 32; i++)
			arrive();
		CHECK_EQ(poll_ring(held[round]), 32);
	}
	CHECK_EQ(posted_cnt(), 0);
	CHECK_EQ(own->ring.counts->rx_no_frame, 1);
	CHECK(!ring_is_quiet(&own->ring));
	for (int i = 0; i < 32; i++)
		pkt_put(held[0][i]);
	CHECK_EQ(poll_ring(none), 0);
	CHECK_EQ(posted_cnt(), FRAMES / 2);
	CHECK(ring_is_quiet(&own->ring));
	for (int i = 0; i < 32; i++)
		pkt_put(held[1][i]);
	end();
}

TEST(a_ring_with_frames_is_quiet_until_one_arrives)
{
	struct pkt *batch[32];

	begin();
	CHECK(ring_is_quiet(&own->ring));
	arrive();
	CHECK(!ring_is_quiet(&own->ring));
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(batch[0]->len, 60);
	CHECK(ring_is_quiet(&own->ring));
	pkt_put(batch[0]);
	end();
}

/* As drivers do it that receive into the frames by themselves. */
TEST(a_receiver_that_had_no_frames_is_woken)
{
	struct pkt *batch[32];

	begin();
	for (int i = 0; i < 32; i++)
		arrive();
	kernel.flags[FILL] = XDP_RING_NEED_WAKEUP;
	CHECK_EQ(poll_ring(batch), 32);
	CHECK(own->ring.wants_kick);
	CHECK_EQ(kick(), RING_KICKED);
	CHECK_EQ(kernel.rx_calls, 1);
	CHECK_EQ(kernel.tx_calls, 0);
	kernel.flags[FILL] = 0;
	for (int i = 0; i < 32; i++)
		pkt_put(batch[i]);
	for (int i = 0; i < 32; i++)
		arrive();
	CHECK_EQ(poll_ring(batch), 32);
	CHECK(!own->ring.wants_kick);
	CHECK_EQ(kick(), RING_KICKED);
	CHECK_EQ(kernel.rx_calls, 1);
	for (int i = 0; i < 32; i++)
		pkt_put(batch[i]);
	end();
}

/* One that has run dry has nothing to show, and is filled all the same, while another one is
 * so busy that it fills each batch. */
TEST(a_queue_that_ran_dry_is_filled_beside_a_busy_one)
{
	struct pkt *held[256], *batch[32];
	unsigned cnt = 0;

	queue_cnt = 2;
	begin_with(4 * FRAMES, 32);
	queue_cnt = 1;
	for (int i = 0; i < 32; i++)
		arrive_at(&kernels[1]);
	/* all other frames are somebody's */
	while (cnt < 256 && (held[cnt] = ring_pkt_alloc(&own->ring)))
		cnt++;
	put_all(batch, poll_ring(batch));
	CHECK_EQ(posted_at(&kernels[1]), 0);
	put_all(held, cnt);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 32; i++)
			arrive();
		put_all(batch, poll_ring(batch));
	}
	CHECK(posted_at(&kernels[1]) > 0);
	while (put_all(batch, poll_ring(batch)))
		;
	end();
}

/* Each gets its turn, however much comes to the others. */
TEST(queues_take_turns)
{
	struct pkt *batch[32];
	unsigned cnt = 0;

	queue_cnt = 2;
	begin_with(8 * FRAMES, 2 * FRAMES);
	queue_cnt = 1;
	arrive_at(&kernels[1]);
	for (int i = 0; i < 64; i++)
		arrive();
	for (int round = 0; round < 2; round++)
		cnt += put_all(batch, poll_ring(batch));
	CHECK_EQ(cnt, 64);
	CHECK_EQ(kernels[1].positions[RX][1], 1);
	put_all(batch, poll_ring(batch));
	end();
}

/* Frames of a packet of one queue are nothing to that of another. */
TEST(packets_of_two_queues_are_not_mixed)
{
	struct pkt *batch[32];

	queue_cnt = 2;
	begin_with(4 * FRAMES, FRAMES);
	queue_cnt = 1;
	arrive();
	kernel.descs[0][0].options = XDP_PKT_CONTD;
	arrive_at(&kernels[1]);
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(pkt_total_len(batch[0]), 60);
	pkt_put(batch[0]);
	arrive();
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(pkt_total_len(batch[0]), 120);
	pkt_put(batch[0]);
	end();
}

/* However few could be given at once. */
TEST(a_receiver_that_gets_few_frames_is_woken)
{
	struct pkt *held[2][32], *batch[32];

	begin();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 32; i++)
			arrive();
		CHECK_EQ(poll_ring(held[round]), 32);
	}
	CHECK_EQ(posted_cnt(), 0);
	kernel.flags[FILL] = XDP_RING_NEED_WAKEUP;
	own->ring.wants_kick = false;
	pkt_put(held[0][0]);
	CHECK_EQ(poll_ring(batch), 0);
	CHECK_EQ(posted_cnt(), 1);
	CHECK(own->ring.wants_kick);
	put_all(held[0] + 1, 31);
	put_all(held[1], 32);
	end();
}

/* As many frames come back as were taken, however large the batch. */
TEST(a_large_batch_uses_up_no_frames)
{
	struct pkt *batch[128];

	begin_with(8 * FRAMES, 4 * FRAMES);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 128; i++)
			arrive();
		CHECK_EQ(own->ring.ops->rx_poll(&own->ring, batch, 128), 128);
		put_all(batch, 128);
	}
	CHECK(posted_cnt() >= 4 * FRAMES - 32);
	end();
}

/* What the program has sent may be in use when frames to receive into are short. */
TEST(frames_that_were_sent_are_received_into)
{
	struct pkt *held[256], *batch[32];
	unsigned cnt = 0;

	begin();
	for (int i = 0; i < 8; i++)
		send_one();
	while (cnt < 256 && (held[cnt] = ring_pkt_alloc(&own->ring)))
		cnt++;
	for (int i = 0; i < 8; i++)
		send_out();
	for (int i = 0; i < 32; i++)
		arrive();
	put_all(batch, poll_ring(batch));
	CHECK(posted_cnt() >= 8);
	put_all(held, cnt);
	end();
}

static struct ring_frame peek(void)
{
	return own->ring.ops->rx_peek(&own->ring);
}

static void done(void)
{
	own->ring.ops->rx_done(&own->ring);
}

TEST(a_frame_that_was_looked_at_is_posted_again)
{
	const uint8_t *mem;

	begin();
	mem = dev.dev.region->mem;
	CHECK(!peek().data);
	/* all frames, many times over */
	for (unsigned i = 0; i < 10 * FRAMES; i++) {
		uint64_t offset = kernel.offsets[i % (FRAMES / 2)];

		arrive();
		CHECK_EQ(posted_cnt(), FRAMES / 2 - 1);
		CHECK(peek().data == mem + offset + XDP_HEADROOM);
		CHECK_EQ(peek().len, 60);
		CHECK(!ring_is_quiet(&own->ring));
		done();
		CHECK_EQ(posted_cnt(), FRAMES / 2);
		CHECK_EQ(own->ring.ops->device_cnt(&own->ring),
			 FRAMES / 2 + 1);
		CHECK(ring_is_quiet(&own->ring));
		CHECK_EQ(offset % 2048, 0);
	}
	CHECK_EQ(own->ring.counts->rx_pkts, 10 * FRAMES);
	CHECK_EQ(own->ring.counts->rx_bytes, 600 * FRAMES);
	CHECK(!own->ring.wants_kick);
	/* a driver that waits for frames */
	kernel.flags[FILL] = XDP_RING_NEED_WAKEUP;
	arrive();
	CHECK(peek().data);
	done();
	CHECK(own->ring.wants_kick);
	end();
}

TEST(a_frame_that_a_full_fill_ring_does_not_take_is_kept)
{
	struct pkt *first;
	uint32_t free_cnt;

	begin();
	for (int i = 0; i < 32; i++)
		arrive();
	/* one is taken, and as many as fit are posted */
	CHECK_EQ(own->ring.ops->rx_poll(&own->ring, &first, 1), 1);
	CHECK_EQ(posted_cnt(), FRAMES / 2);
	free_cnt = pool.free_cnt;
	for (unsigned i = 1; i < 32; i++) {
		CHECK(peek().data);
		done();
		CHECK_EQ(pool.free_cnt, free_cnt + i);
		CHECK_EQ(posted_cnt(), FRAMES / 2);
	}
	CHECK(!peek().data);
	pkt_put(first);
	end();
}

/* So that each is in the processor's cache when its turn comes. */
TEST(few_frames_take_turns)
{
	enum { FEW = 8 };
	const uint8_t *seen[FEW];

	begin_with(FRAMES, FEW);
	for (unsigned i = 0; i < 10 * FRAMES; i++) {
		arrive();
		if (i < FEW)
			seen[i] = peek().data;
		CHECK(peek().data == seen[i % FEW]);
		done();
		CHECK_EQ(posted_cnt(), FEW);
	}
	end();
}

/* `cnt` frames come, and are read. */
static void receive(unsigned cnt)
{
	struct pkt *batch[32];
	unsigned got;

	for (unsigned i = 0; i < cnt; i++)
		arrive();
	got = poll_ring(batch);
	CHECK_EQ(got, cnt);
	while (got--)
		pkt_put(batch[got]);
}

static void read_all(void)
{
	struct pkt *batch[32];
	unsigned got;

	while ((got = poll_ring(batch)))
		while (got--)
			pkt_put(batch[got]);
}

TEST(there_are_more_when_they_run_short)
{
	enum { FEW = 64, MANY = 4 * FEW };

	begin_with(2 * MANY, FEW);
	/* as many as come now and then change nothing */
	for (unsigned i = 0; i < 100; i++) {
		receive(1 + i % 16);
		CHECK(posted_cnt() <= FEW);
	}
	/* more than three in four have been used, without a poll */
	for (uint32_t had = FEW; had < MANY; had *= 2) {
		while (posted_cnt() > had / 4 - 1)
			arrive();
		read_all();
		for (unsigned i = 0; i < MANY / 32; i++)
			receive(1);
		CHECK(posted_cnt() > had);
		CHECK(posted_cnt() <= 2 * had);
	}
	end();
}

/* So many come to a queue at once, and are read. */
/* A packet of so many frames. */
static void receive_long(unsigned cnt)
{
	struct pkt *batch[32];
	uint32_t at;

	for (unsigned i = 0; i < cnt; i++) {
		at = kernel.positions[RX][0] % (8 * FRAMES);
		arrive();
		kernel.descs[0][at].options = i + 1 < cnt ? XDP_PKT_CONTD : 0;
	}
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(pkt_total_len(batch[0]), 60 * cnt);
	pkt_put(batch[0]);
}

/* What is longer than all that is posted the kernel drops, and nobody sees it. */
TEST(there_are_more_when_packets_are_long)
{
	enum { FEW = 16, MANY = 4 * FEW };

	begin_with(2 * MANY, FEW);
	for (unsigned i = 0; i < 100; i++) {
		receive_long(1 + i % (FEW / 4));
		CHECK(posted_cnt() <= FEW);
	}
	for (uint32_t had = FEW; had < MANY; had *= 2) {
		receive_long(had / 4 + 1);
		for (unsigned i = 0; i < MANY / 16; i++)
			receive(1);
		CHECK(posted_cnt() > had);
		CHECK(posted_cnt() <= 2 * had);
	}
	receive_long(MANY / 2);
	receive(1);
	CHECK(posted_cnt() <= MANY);
	end();
}

static void burst(struct played *k, unsigned cnt)
{
	struct pkt *batch[32];

	while (cnt--)
		arrive_at(k);
	for (unsigned i = 0; i < 8; i++)
		while (put_all(batch, poll_ring(batch)))
			;
}

/* Of so many frames, two queues of which each has so few. */
static void begin_with_two(uint32_t frames, uint32_t few)
{
	queue_cnt = 2;
	begin_with(frames, few);
	queue_cnt = 1;
}

/* However few it is, most of it is there for the next burst. */
TEST(a_small_share_comes_back_before_it_is_used_up)
{
	begin_with_two(4 * FRAMES, 32);
	for (unsigned cnt = 1; cnt < 32; cnt++) {
		burst(&kernel, cnt);
		CHECK(posted_cnt() > 24);
		end();
		begin_with_two(4 * FRAMES, 32);
	}
	end();
}

/* All queues together have half of the frames at most, and each has its share. */
TEST(a_queue_that_runs_short_gets_what_no_other_has)
{
	enum { ALL = 4 * FRAMES, SHARE = ALL / 4 * 3 / 2 };

	begin_with_two(2 * ALL, 16000);
	CHECK_EQ(posted_cnt(), SHARE);
	burst(&kernel, SHARE - 1);
	burst(&kernel, 1);
	CHECK(posted_cnt() > ALL - SHARE - 32);
	CHECK(posted_cnt() <= ALL - SHARE);
	CHECK_EQ(posted_at(&kernels[1]), SHARE);
	end();
}

/* Also after another one has taken what there is besides. */
TEST(a_queue_gets_its_share_however_little_it_has_begun_with)
{
	enum { ALL = 4 * FRAMES, SHARE = ALL / 4 * 3 / 2 };

	begin_with_two(2 * ALL, 64);
	for (unsigned round = 0; round < 10; round++)
		burst(&kernel, posted_cnt());
	CHECK(posted_cnt() > SHARE);
	for (unsigned round = 0; round < 10; round++)
		burst(&kernels[1], posted_at(&kernels[1]));
	CHECK(posted_at(&kernels[1]) > SHARE - 32);
	CHECK(posted_cnt() + posted_at(&kernels[1]) <= ALL);
	end();
}

/* What has come in one go is not made up for before the first of it is read, with all frames
 * that sockets and senders need. */
TEST(a_poll_posts_about_as_many_as_it_takes)
{
	struct pkt *batch[32];

	begin_with(8 * FRAMES, 16000);
	while (posted_cnt())
		arrive();
	CHECK_EQ(put_all(batch, poll_ring(batch)), 32);
	CHECK(posted_cnt() >= 32 && posted_cnt() <= 64);
	end();
}

/* Of two that run short in turn neither keeps what the other one lacks. */
TEST(a_queue_leaves_others_what_it_has_more)
{
	enum { ALL = 4 * FRAMES, SHARE = ALL / 4 * 3 / 2 };

	begin_with_two(2 * ALL, 16000);
	burst(&kernel, SHARE - 1);
	burst(&kernel, SHARE / 4);
	for (unsigned round = 0; round < 8; round++) {
		burst(&kernels[1], posted_at(&kernels[1]));
		burst(&kernel, 64);
		CHECK(posted_cnt() + posted_at(&kernels[1]) <= ALL);
		CHECK(posted_cnt() > SHARE - 32);
	}
	CHECK(posted_at(&kernels[1]) > SHARE);
	end();
}

TEST(a_packet_of_several_frames_is_not_shown)
{
	struct pkt *batch[32];

	begin();
	arrive();
	kernel.descs[0][0].options = XDP_PKT_CONTD;
	CHECK(!peek().data);
	/* nor is its end, once the beginning was taken */
	CHECK_EQ(poll_ring(batch), 0);
	arrive();
	CHECK(!peek().data);
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(pkt_total_len(batch[0]), 120);
	pkt_put(batch[0]);
	arrive();
	CHECK(peek().data);
	end();
}

TEST(what_the_device_has_is_known)
{
	struct pkt *batch[32];

	begin();
	CHECK_EQ(own->ring.ops->device_cnt(&own->ring), FRAMES / 2 + 1);
	arrive();
	CHECK_EQ(own->ring.ops->device_cnt(&own->ring), FRAMES / 2 + 1);
	CHECK_EQ(poll_ring(batch), 1);
	CHECK_EQ(own->ring.ops->device_cnt(&own->ring), FRAMES / 2);
	send_one();
	CHECK_EQ(own->ring.ops->device_cnt(&own->ring), FRAMES / 2 + 1);
	pkt_put(batch[0]);
	end();
}
