/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What AF_XDP sends: short frames, payloads, and the kicks by which they leave. */
#include "config.h"

#include "base/checksum.h"
#include "tests/unit/dev/xdp/played.h"

/* -- short frames ---------------------------------------------------------------- */

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
	CHECK(own->ring.ops->tx_fits(&own->ring, room, 0));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room + 1, 0));
	for (int i = 0; i < 3; i++)
		send_one();
	CHECK(own->ring.ops->tx_fits(&own->ring, room - 3, 0));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room - 2, 0));
	/* what has been sent is taken back when that helps */
	send_out();
	CHECK(own->ring.ops->tx_fits(&own->ring, room - 2, 0));
	CHECK(!own->ring.ops->tx_fits(&own->ring, room - 1, 0));
	send_out();
	send_out();
	CHECK(own->ring.ops->tx_fits(&own->ring, room, 0));
	end();
}

/* So many can be copied, no more; those that were sent come back first. */
static void check_copies(uint32_t cnt)
{
	CHECK(own->ring.ops->tx_fits(&own->ring, 1, cnt));
	CHECK(!own->ring.ops->tx_fits(&own->ring, 1, cnt + 1));
}

/* The queue has room for more. */
TEST(frames_to_copy_to_are_counted)
{
	static uint8_t bytes[500];
	struct pkt foreign = { .data = bytes, .len = sizeof(bytes) };
	uint32_t cnt = FRAMES / 2;

	begin();
	/* also those that the region has */
	region_give(dev.dev.region, &pool, UINT32_MAX);
	check_copies(cnt);
	for (uint32_t left = cnt; left-- > 0;) {
		foreign.refs = 2;
		CHECK_EQ(send_payload(&foreign, 0), 0);
		check_copies(left);
	}
	CHECK(own->ring.ops->tx_fits(&own->ring, 1, 0));
	send_out();
	check_copies(1);
	for (uint32_t i = 1; i < cnt; i++)
		send_out();
	check_copies(cnt);
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
