/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data path of AF_XDP against a kernel that is played here: rings in memory,
 * and the system calls that would move frames. */
#include "config.h"

#include "base/syscall_raw.h"

#include <unistd.h>

static long played_call(long number, long fd);
static int played_nap(void);
#define syscall_raw(number, a, b, c, d, e, f) played_call(number, a)
#define usleep(us) played_nap()

#include "dev/xdp/ring.c"

#include "base/checksum.h"
#include "tests/support/test.h"

enum { FRAMES = 64, FD = 42 };

/* -- the kernel ------------------------------------------------------------------ */

/* Of each queue; what is sent goes by the first. */
static struct played {
	/* what it knows of the rings */
	_Atomic uint32_t positions[4][2];
	_Atomic uint32_t flags[4];
	uint64_t offsets[8 * FRAMES];
	uint32_t fill_size;
	uint64_t done[FRAMES];
	struct xdp_desc descs[2][8 * FRAMES];
	/* frames that tx takes at a call, and the answer */
	uint32_t tx_takes;
	long tx_answer;
	unsigned tx_calls, rx_calls;
	/* the queue is another's for so many naps; who says that he has it */
	unsigned naps, busy_naps;
	int owner;
} kernels[2];
#define kernel kernels[0]

enum { RX, TX, FILL, DONE };

static long played_call(long number, long fd)
{
	CHECK_EQ(fd, FD);
	if (number == SYS_recvfrom) {
		kernel.rx_calls++;
		return 0;
	}
	CHECK_EQ(number, SYS_sendto);
	kernel.tx_calls++;
	kernel.positions[TX][1] += kernel.tx_takes;
	return kernel.tx_answer;
}

static void map(struct played *k, struct xsk_ring *ring, int which, uint32_t size,
		void *entries)
{
	*ring = (struct xsk_ring){
		.producer = &k->positions[which][0],
		.consumer = &k->positions[which][1],
		.flags = &k->flags[which],
		.entries = entries,
		.mask = size - 1,
		.size = size,
	};
}

static int played_nap(void)
{
	kernel.naps++;
	return 0;
}

int owner_ask(int ifindex UNUSED)
{
	return kernel.owner;
}

int xsk_create(struct xsk *xsk, const struct xsk_params *params)
{
	struct played *k = &kernels[params->queue];

	if (kernel.naps < kernel.busy_naps)
		return -EBUSY;
	atomic_store(&xsk->fd, FD);
	map(k, &xsk->rx, RX, 8 * FRAMES, k->descs[0]);
	map(k, &xsk->tx, TX, FRAMES, k->descs[1]);
	k->fill_size = params->fill_size;
	map(k, &xsk->fill, FILL, params->fill_size, k->offsets);
	map(k, &xsk->done, DONE, FRAMES, k->done);
	return 0;
}

void xsk_destroy(struct xsk *xsk UNUSED)
{
}

int steer_set_queue(struct steer *steer UNUSED, uint32_t queue UNUSED,
		    int fd UNUSED)
{
	return 0;
}

static uint32_t posted_at(const struct played *k)
{
	return k->positions[FILL][0] - k->positions[FILL][1];
}

static uint32_t posted_cnt(void)
{
	return posted_at(&kernel);
}

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

/* Has sent the next frame that it was given. Where it was. */
static uint64_t send_out(void)
{
	uint32_t from = kernel.positions[TX][1]++;
	uint32_t to = kernel.positions[DONE][0]++;

	CHECK(from != kernel.positions[TX][0]);
	kernel.done[to % FRAMES] = kernel.descs[1][from % FRAMES].addr;
	return kernel.done[to % FRAMES];
}

/* -- the ring -------------------------------------------------------------------- */

static struct xdp_dev dev;
static struct xdp_ring *own;
static struct pkt_pool pool;

static uint32_t queue_cnt = 1;

/* Of so many frames, with so many to receive into at first. */
static void begin_with(uint32_t frames, uint32_t few)
{
	memset(kernels, 0, sizeof(kernels));
	memset(&dev, 0, sizeof(dev));
	dev.queue_cnt = queue_cnt;
	dev.rx_post_first = few;
	pkt_pool_init(&pool, 128);
	/* one for the next short datagram */
	CHECK_EQ(region_create(frames + 1, 2048, REGION_SMALL_PAGES,
			       &dev.dev.region),
		 0);
	CHECK_EQ(region_set_add(&dev.dev.regions, dev.dev.region), 0);
	xdp_ring_module();
	CHECK_EQ(xdp_ring_create(&dev, 0, &own), 0);
	xdp_ring_start(own, &pool);
	CHECK_EQ(posted_cnt(), MIN(few, queue_cnt == 1 ? frames / 2 :
							 frames / 8 * 3 / queue_cnt));
	CHECK_EQ(own->ring.rx_post_max, frames / 2);
}

static void begin(void)
{
	begin_with(FRAMES, 16000);
}

static void end(void)
{
	xdp_ring_destroy(own);
	region_give(dev.dev.region, &pool, UINT32_MAX);
	CHECK_EQ(region_free_cnt(dev.dev.region), dev.dev.region->frame_cnt);
	region_put(dev.dev.region);
}

static unsigned poll_ring(struct pkt **batch)
{
	return own->ring.ops->rx_poll(&own->ring, batch, 32);
}

static enum ring_kick kick(void)
{
	own->ring.wants_kick = false;
	return own->ring.ops->kick(&own->ring);
}

static void send_one(void)
{
	CHECK(own->ring.tx_frame);
	memset(own->ring.tx_frame, 0, RING_TX_FRAME_LEN);
	own->ring.ops->tx_commit(&own->ring, 60);
}

/* -- receiving ------------------------------------------------------------------- */

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

static unsigned put_all(struct pkt **batch, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		pkt_put(batch[i]);
	return cnt;
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

/* -- sending --------------------------------------------------------------------- */

TEST(a_frame_that_was_sent_is_written_again)
{
	uint8_t *mem;
	uint32_t free_cnt;

	begin();
	mem = dev.dev.region->mem;
	send_one();
	free_cnt = pool.free_cnt;
	for (unsigned i = 0; i < 10 * FRAMES; i++) {
		uint8_t *frame = own->ring.tx_frame;

		send_out();
		send_one();
		CHECK(own->ring.tx_frame != frame);
		CHECK(mem + kernel.descs[1][(i + 1) % FRAMES].addr == frame);
		CHECK_EQ(kernel.descs[1][(i + 1) % FRAMES].len, 60);
		CHECK_EQ(pool.free_cnt, free_cnt);
		CHECK_EQ(own->ring.ops->device_cnt(&own->ring),
			 FRAMES / 2 + 2);
	}
	CHECK_EQ(own->ring.counts->tx_pkts, 10 * FRAMES + 1);
	CHECK_EQ(own->ring.counts->tx_bytes, 60 * (10 * FRAMES + 1));
	end();
}

/* As many as a burst left behind. */
TEST(frames_that_are_not_needed_go_back_to_the_pool)
{
	begin();
	for (unsigned i = 0; i <= FRAMES / 2; i++)
		send_one();
	CHECK_EQ(pool.free_cnt, 0);
	CHECK(!own->ring.tx_frame);
	/* nothing has been sent yet */
	own->ring.ops->reap(&own->ring);
	CHECK(!own->ring.tx_frame);
	for (unsigned i = 0; i <= FRAMES / 2; i++)
		send_out();
	own->ring.ops->reap(&own->ring);
	CHECK(own->ring.tx_frame);
	CHECK_EQ(pool.free_cnt, FRAMES / 2);
	CHECK(!own->ring.wants_kick);
	end();
}

/* -- payloads -------------------------------------------------------------------- */

enum { HEADER_LEN = 42, CSUM_AT = 40, CSUM_SUM = 0x1234 };

static uint8_t header[HEADER_LEN];

/* With bytes that go on from those of `pkt`'s other parts. */
static void append(struct pkt *pkt, uint32_t len)
{
	static uint8_t next;
	uint8_t *at = pkt_append(pkt, len);

	for (uint32_t i = 0; i < len; i++)
		at[i] = next++;
}

static int send_payload(struct pkt *payload, uint16_t flags)
{
	struct ring_tx tx = {
		.header = header,
		.header_len = HEADER_LEN,
		.payload = payload,
		.flags = flags,
		.csum_at = CSUM_AT,
		.csum_sum = CSUM_SUM,
	};

	for (int i = 0; i < HEADER_LEN; i++)
		header[i] = (uint8_t)(200 - i);
	return own->ring.ops->tx(&own->ring, &tx);
}

/* The last frame that was posted has the header, with the sum or without, and then
 * these bytes. */
static void check_posted(const uint8_t *payload, uint32_t len, bool has_sum)
{
	uint32_t last = kernel.positions[TX][0] - 1;
	const struct xdp_desc *desc = &kernel.descs[1][last % FRAMES];
	const uint8_t *frame = dev.dev.region->mem + desc->addr;
	uint16_t sum;

	CHECK_EQ(desc->len, HEADER_LEN + len);
	CHECK(memcmp(frame, header, CSUM_AT) == 0);
	CHECK(memcmp(frame + HEADER_LEN, payload, len) == 0);
	if (has_sum) {
		sum = csum_fold(csum_partial(payload, len, CSUM_SUM));
		CHECK(memcmp(frame + CSUM_AT, &sum, sizeof(sum)) == 0);
	} else {
		CHECK(memcmp(frame + CSUM_AT, header + CSUM_AT, 2) == 0);
	}
}

TEST(a_payload_in_a_frame_goes_as_it_is)
{
	uint32_t free_cnt;

	begin();
	free_cnt = pool.free_cnt;
	for (int round = 0; round < 4; round++) {
		struct pkt *pkt = ring_pkt_alloc(&own->ring);
		uint16_t flags = round % 2 ? RING_TX_CSUM : 0;
		uint8_t bytes[301];

		append(pkt, sizeof(bytes));
		memcpy(bytes, pkt->data, sizeof(bytes));
		CHECK_EQ(send_payload(pkt, flags), 0);
		check_posted(bytes, sizeof(bytes), flags);
		CHECK(own->mem + send_out() == pkt->data);
	}
	own->ring.ops->reap(&own->ring);
	CHECK_EQ(pool.free_cnt, free_cnt);
	end();
}

/* Of several parts, of odd lengths, or with somebody else who holds it. */
TEST(any_other_payload_is_copied)
{
	uint32_t free_cnt;

	begin();
	free_cnt = pool.free_cnt;
	for (int round = 0; round < 4; round++) {
		struct pkt *pkt = ring_pkt_alloc(&own->ring);
		uint16_t flags = round % 2 ? RING_TX_CSUM : 0;
		bool has_parts = round / 2;
		uint8_t bytes[600];
		uint32_t len = 0;

		append(pkt, 301);
		if (has_parts) {
			pkt->next_part = ring_pkt_alloc(&own->ring);
			append(pkt->next_part, 77);
			pkt->next_part->next_part = ring_pkt_alloc(&own->ring);
			append(pkt->next_part->next_part, 100);
		} else {
			pkt_get(pkt);
		}
		for (struct pkt *at = pkt; at; at = at->next_part) {
			memcpy(bytes + len, at->data, at->len);
			len += at->len;
		}
		CHECK_EQ(send_payload(pkt, flags), 0);
		check_posted(bytes, len, flags);
		CHECK(own->mem + send_out() != pkt->data);
		if (!has_parts)
			pkt_put(pkt);
	}
	own->ring.ops->reap(&own->ring);
	CHECK_EQ(pool.free_cnt, free_cnt);
	end();
}

/* Whatever comes of it the ring has taken it. */
TEST(a_payload_that_no_frame_holds_is_not_sent)
{
	struct pkt *pkt, **at = &pkt;
	uint32_t free_cnt;

	begin();
	free_cnt = pool.free_cnt;
	for (int i = 0; i < 2; i++) {
		*at = ring_pkt_alloc(&own->ring);
		append(*at, pkt_tailroom(*at));
		at = &(*at)->next_part;
	}
	CHECK_EQ(send_payload(pkt, 0), -EAGAIN);
	CHECK_EQ(own->ring.counts->tx_full, 1);
	CHECK_EQ(pool.free_cnt, free_cnt);
	end();
}

/* What was sent long ago may be all there is, when the pool is small. */
TEST(a_payload_is_copied_to_a_frame_that_was_sent)
{
	struct pkt_pool elsewhere;
	struct pkt *held[256];
	unsigned cnt = 0;

	begin();
	pkt_pool_init(&elsewhere, 0);
	CHECK_EQ(pkt_pool_grow(&elsewhere, 8, 1024), 0);
	for (int i = 0; i < 8; i++)
		send_one();
	while (cnt < 256 && (held[cnt] = ring_pkt_alloc(&own->ring)))
		cnt++;
	for (int i = 0; i < 8; i++) {
		struct pkt *pkt = pkt_alloc(&elsewhere);

		send_out();
		append(pkt, 500);
		CHECK_EQ(send_payload(pkt, 0), 0);
	}
	put_all(held, cnt);
	CHECK_EQ(pkt_pool_destroy(&elsewhere), 0);
	end();
}

TEST(room_for_several_is_known)
{
	uint32_t room;

	begin();
	/* one is for ring.tx_frame */
	room = own->queues[0].tx.size - 1;
	CHECK_EQ(own->ring.tx_fits_max, room);
	CHECK(own->ring.ops->tx_fits(&own->ring, room));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room + 1));
	for (int i = 0; i < 3; i++)
		send_one();
	CHECK(own->ring.ops->tx_fits(&own->ring, room - 3));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room - 2));
	/* what has been sent is taken back when that helps */
	send_out();
	CHECK(own->ring.ops->tx_fits(&own->ring, room - 2));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room - 1));
	send_out();
	send_out();
	CHECK(own->ring.ops->tx_fits(&own->ring, room));
	end();
}

/* The place of ring.tx_frame is not given away: who has it does not ask again. */
TEST(a_frame_that_is_being_written_keeps_its_place)
{
	uint64_t sent[FRAMES];

	begin_with(4 * FRAMES, 16);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < FRAMES; i++) {
			struct pkt *pkt = ring_pkt_alloc(&own->ring);

			append(pkt, 100);
			CHECK_EQ(send_payload(pkt, 0),
				 i < FRAMES - 1 ? 0 : -EAGAIN);
		}
		send_one();
		CHECK(!own->ring.tx_frame);
		CHECK_EQ(kernel.positions[TX][0] - kernel.positions[TX][1],
			 FRAMES);
		for (unsigned i = 0; i < FRAMES; i++) {
			sent[i] = send_out();
			for (unsigned j = 0; j < i; j++)
				CHECK(sent[i] != sent[j]);
		}
		own->ring.ops->reap(&own->ring);
		CHECK(own->ring.tx_frame);
	}
	end();
}

/* -- kicks ----------------------------------------------------------------------- */

TEST(a_kick_that_the_kernel_did_whole_is_one)
{
	begin();
	kernel.flags[TX] = XDP_RING_NEED_WAKEUP;
	kernel.tx_takes = 1;
	send_one();
	CHECK(own->ring.needs_kick);
	CHECK_EQ(kick(), RING_KICKED);
	CHECK_EQ(kernel.tx_calls, 1);
	end();
}

TEST(a_kick_that_took_some_asks_for_another_one)
{
	begin();
	kernel.flags[TX] = XDP_RING_NEED_WAKEUP;
	kernel.tx_takes = 1;
	kernel.tx_answer = -EAGAIN;
	send_one();
	send_one();
	CHECK_EQ(kick(), RING_KICK_MORE);
	end();
}

/* At the end of a process what the kernel has not taken would go with it. */
TEST(what_has_not_come_back_is_not_sent)
{
	begin();
	CHECK(own->ring.ops->tx_is_done(&own->ring));
	send_one();
	own->ring.wants_kick = false;
	CHECK(!own->ring.ops->tx_is_done(&own->ring));
	CHECK(own->ring.wants_kick);
	send_out();
	CHECK(own->ring.ops->tx_is_done(&own->ring));
	end();
}

TEST(an_interface_that_is_down_is_not_kicked_again)
{
	begin();
	send_one();
	kernel.tx_answer = -ENETDOWN;
	CHECK_EQ(kick(), RING_KICKED);
	end();
}

/* What it had then fills the queue, and leaves by a kick alone. */
TEST(a_queue_that_an_interface_left_full_is_kicked_again)
{
	begin_with(4 * FRAMES, 16);
	kernel.flags[TX] = XDP_RING_NEED_WAKEUP;
	kernel.tx_answer = -ENETDOWN;
	for (unsigned i = 0; i < FRAMES - 1; i++) {
		struct pkt *pkt = ring_pkt_alloc(&own->ring);

		append(pkt, 100);
		CHECK_EQ(send_payload(pkt, 0), 0);
		CHECK_EQ(kick(), RING_KICKED);
	}
	kernel.tx_answer = 0;
	for (int i = 0; i < 2; i++) {
		struct pkt *pkt = ring_pkt_alloc(&own->ring);

		append(pkt, 100);
		own->ring.wants_kick = false;
		CHECK_EQ(send_payload(pkt, 0), -EAGAIN);
		CHECK(own->ring.wants_kick);
	}
	end();
}

TEST(a_kick_that_took_none_is_to_be_made_later)
{
	begin();
	kernel.flags[TX] = XDP_RING_NEED_WAKEUP;
	kernel.tx_answer = -ENOBUFS;
	send_one();
	CHECK_EQ(kick(), RING_KICK_LATER);
	CHECK_EQ(own->ring.wants_kick, false);
	/* and by whoever looks for room, as long as something is under way */
	own->ring.ops->reap(&own->ring);
	CHECK(own->ring.wants_kick);
	end();
}
