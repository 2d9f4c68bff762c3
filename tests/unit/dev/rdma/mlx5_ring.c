/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring on ConnectX: receiving, sending, and what the card cuts or gathers. */
#include "config.h"

#include "tests/unit/dev/rdma/mlx5_card.h"
#include "tests/unit/dev/run.h"

/* The card is told of new buffers once in a batch of frames, whichever way they are
 * taken. */
TEST(buffers_are_given_in_batches)
{
	set_up();
	CHECK_EQ(posted_cnt(), RX);
	for (uint32_t i = 1; i <= 6 * BATCH; i++) {
		struct pkt *pkt;

		frame_comes();
		if (i / BATCH % 2) {
			CHECK_EQ(ring->ops->rx_peek(ring).len, LEN);
			ring->ops->rx_done(ring);
		} else {
			CHECK_EQ(ring->ops->rx_poll(ring, &pkt, 1), 1);
			pkt_put(pkt);
		}
		CHECK((posted_cnt() - RX) % BATCH == 0);
		CHECK(left_cnt() > RX - 2 * BATCH);
	}
	CHECK_EQ(ring->counts->rx_pkts, 6 * BATCH);
	tear_down();
}

/* The frames of the entries that the card has are all different. */
static void check_posted(void)
{
	for (uint32_t i = 0; i < left_cnt(); i++)
		for (uint32_t k = 0; k < i; k++)
			CHECK(card.rq[(card.come_cnt + i) % RX].addr !=
			      card.rq[(card.come_cnt + k) % RX].addr);
}

/* Several frames come, and are taken in one way or the other: each lies where the card's
 * entry says, and there is none behind the last one. */
static void take_some(uint32_t cnt, bool is_shown)
{
	uint64_t addrs[RX];
	struct pkt *pkts[RX];

	CHECK(ring_is_quiet(ring));
	for (uint32_t i = 0; i < cnt; i++) {
		addrs[i] = be64toh(card.rq[card.come_cnt % RX].addr);
		frame_comes();
	}
	for (uint32_t i = 0; i < cnt && is_shown; i++) {
		CHECK(!ring_is_quiet(ring));
		CHECK((uintptr_t)ring->ops->rx_peek(ring).data == addrs[i]);
		ring->ops->rx_done(ring);
	}
	CHECK(is_shown || ring->ops->rx_poll(ring, pkts, RX) == cnt);
	for (uint32_t i = 0; i < cnt && !is_shown; i++) {
		CHECK((uintptr_t)pkts[i]->data == addrs[i]);
		pkt_put(pkts[i]);
	}
	CHECK(ring_is_quiet(ring));
	CHECK(!ring->ops->rx_peek(ring).data);
}

/* The queue has as many entries as there are frames for it, or more; what was shown is
 * posted again behind the others, in whatever order it is mixed with what was polled. */
TEST(frames_go_around)
{
	for (unsigned sharer_cnt = 1; sharer_cnt <= 8; sharer_cnt++) {
		set_up_sharer(sharer_cnt);
		CHECK_EQ(posted_cnt(), ring->rx_post_max);
		for (uint32_t i = 0; i < 10 * RX; i++) {
			take_some(MIN(i % 4, left_cnt()), i % 7 < 5);
			check_posted();
			CHECK_EQ(ring->ops->device_cnt(ring) + pool.free_cnt,
				 pool.total_cnt);
			CHECK(left_cnt() + 2 * BATCH > ring->rx_post_max);
		}
		tear_down();
	}
}

/* The card says a rule's tag, which is that of the device and the flow's. */
TEST(frames_say_which_rule_has_brought_them)
{
	static const struct {
		uint32_t said, tag;
	} cases[] = { { 1000, 0 }, { 1005, 5 }, { 1000 + FLOW_TAG_MAX, FLOW_TAG_MAX } };
	static const uint32_t others[] = { 0, 999, 0xffffff };
	struct pkt *pkt;

	set_up();
	dev.tag = 1000;
	CHECK(ring->has_tags);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		card.rx_cqes[card.come_cnt % RX].sop_drop_qpn = htobe32(cases[i].said);
		frame_comes();
		CHECK_EQ(ring->ops->rx_poll(ring, &pkt, 1), 1);
		CHECK_EQ(pkt->flow_tag, cases[i].tag);
		pkt_put(pkt);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		card.rx_cqes[card.come_cnt % RX].sop_drop_qpn = htobe32(others[i]);
		frame_comes();
		CHECK_EQ(ring->ops->rx_poll(ring, &pkt, 1), 1);
		CHECK(pkt->flow_tag > FLOW_TAG_MAX);
		pkt_put(pkt);
	}
	tear_down();
}

/* Who sleeps leaves nothing that would have to be posted. */
TEST(arming_tells_what_was_shown)
{
	set_up_sharer(3);
	take_some(3, true);
	CHECK_EQ(posted_cnt(), ring->rx_post_max);
	CHECK(ring->ops->arm(ring));
	CHECK_EQ(posted_cnt(), ring->rx_post_max + 3);
	check_posted();
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
	while (left_cnt() && card.come_cnt < FRAMES + 40) {
		frame_comes();
		held_cnt += ring->ops->rx_poll(ring, &held[held_cnt], 1);
	}
	left = left_cnt();
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
	CHECK(left_when_nobody_gives_back(true) >= BATCH);
	CHECK_EQ(left_when_nobody_gives_back(false), 0);
}

/* Once there are frames again, the queue is filled up. */
TEST(frames_that_come_back_are_posted)
{
	struct pkt *held[FRAMES];
	unsigned held_cnt = 0;

	set_up();
	while (left_cnt()) {
		frame_comes();
		held_cnt += ring->ops->rx_poll(ring, &held[held_cnt], 1);
	}
	CHECK(ring->counts->rx_no_frame > 0);
	/* a poll has something to do, although nothing comes */
	CHECK(!ring_is_quiet(ring));
	while (held_cnt)
		pkt_put(held[--held_cnt]);
	CHECK_EQ(ring->ops->rx_poll(ring, held, 1), 0);
	CHECK_EQ(left_cnt(), RX);
	CHECK(ring_is_quiet(ring));
	tear_down();
}

static uint64_t stamp_of_one(void)
{
	struct pkt *pkt;
	uint64_t ns;

	frame_comes();
	CHECK_EQ(ring->ops->rx_poll(ring, &pkt, 1), 1);
	ns = pkt_card_ns(pkt);
	pkt_put(pkt);
	return ns;
}

/* Nobody reads stamps that nobody has asked for; a packet that is used again has none
 * that is old. */
TEST(stamps_for_who_asks)
{
	set_up();
	stamped_cnt = 0;
	CHECK_EQ(stamp_of_one(), 0);
	ring->wants_stamps = true;
	for (uint64_t i = 1; i < FRAMES; i++)
		CHECK_EQ(stamp_of_one(), UINT64_C(0x1122334400000000) + i);
	ring->wants_stamps = false;
	for (int i = 0; i < FRAMES; i++)
		CHECK_EQ(stamp_of_one(), 0);
	CHECK_EQ(stamped_cnt, FRAMES - 1);
	tear_down();
}

/* What the card was told last. */
static uint16_t told_pi(void)
{
	return (uint16_t)be32toh(card.qp_record[MLX5_SND_DBR]);
}

/* Sends one, by a doorbell at once, and completes it when it asks for that. */
static void send_through(uint32_t *completed_cnt)
{
	uint16_t block = mlx5_ring_of(ring)->sq_pi;

	send_short();
	CHECK_EQ(told_pi(), (uint16_t)(block + 2));
	if (is_signaled_at(block))
		entry_is_sent((*completed_cnt)++, block, 0);
}

/* Sends one that waits for a kick. */
static void leave_one_to_a_kick(void)
{
	struct pkt *payload = ring_pkt_alloc(ring);
	struct ring_tx tx = { .header = (const uint8_t *)"12345678901234",
			      .header_len = 14,
			      .payload = payload };

	memset(pkt_append(payload, 600), 0, 600);
	CHECK_EQ(ring->ops->tx(ring, &tx), 0);
	CHECK(ring->wants_kick);
	CHECK_EQ(told_pi(), 0);
	CHECK_EQ(ring->ops->kick(ring), RING_KICKED);
	CHECK_EQ(told_pi(), mlx5_ring_of(ring)->sq_pi);
	ring->wants_kick = false;
}

/* Looks for room, as others do that send by another ring. Whether that asks for a kick. */
static bool reap_and_kick(void)
{
	bool wants_kick;

	ring->ops->reap(ring);
	wants_kick = ring->wants_kick;
	if (wants_kick)
		CHECK_EQ(ring->ops->kick(ring), RING_KICKED);
	ring->wants_kick = false;
	return wants_kick;
}

/* A kick is asked for though nothing was left to one for a long time, or ever. The card is
 * not told once more of what it has done, wherever its counters are. */
TEST(late_kicks_tell_nothing)
{
	for (int has_left = 0; has_left < 2; has_left++) {
		uint32_t completed_cnt = 0, kick_cnt = 0;

		set_up();
		if (has_left)
			leave_one_to_a_kick();
		for (uint32_t i = 0; i < UINT16_MAX; i++) {
			uint16_t pi;

			send_through(&completed_cnt);
			pi = told_pi();
			kick_cnt += reap_and_kick();
			CHECK_EQ(told_pi(), pi);
		}
		CHECK(kick_cnt > 0);
		tear_down();
	}
}

/* -- what the card cuts ------------------------------------------------------------------- */

static uint8_t byte_at(uint32_t at)
{
	return card.sq[at % sizeof(card.sq)];
}

/* The bytes of an entry, which goes on at the beginning of the queue. */
static void read_entry(uint16_t block, uint8_t *entry, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		entry[i] = byte_at(block * (uint32_t)WQE_BLOCK + i);
}

static uint32_t be32_at(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static const uint8_t *pointer_at(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return (const uint8_t *)(uintptr_t)be64toh(value);
}

/* The entry has the header, and all bytes in their order; returns its blocks. */
static unsigned check_run_entry(uint16_t block, const struct run *run)
{
	enum { DATA_AT = (WQE_FRAME_AT + RUN_HEADER + 15) / 16 };
	uint8_t entry[1024];
	uint32_t at = 0;
	unsigned segments;

	read_entry(block, entry, sizeof(entry));
	CHECK_EQ(entry[3], MLX5_OPCODE_TSO);
	CHECK_EQ(entry[20], MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM);
	CHECK_EQ(entry[22] << 8 | entry[23], RUN_SEGMENT);
	CHECK_EQ(entry[28] << 8 | entry[29], RUN_HEADER);
	CHECK_MEM(entry + WQE_FRAME_AT, run->header, RUN_HEADER);
	segments = wqe_segments(entry);
	for (unsigned i = DATA_AT; i < segments; i++) {
		const uint8_t *seg = entry + (size_t)i * WQE_SEGMENT;
		uint32_t len = be32_at(seg);

		CHECK_EQ(be32_at(seg + 4), dev.lkeys[0]);
		CHECK_MEM(pointer_at(seg + 8), run->bytes + at, len);
		at += len;
	}
	CHECK_EQ(at, run->tx.run_len);
	return wqe_blocks(segments);
}

/* Frames that are neither free nor the card's. */
static uint32_t held_cnt(void)
{
	return pool.total_cnt - pool.free_cnt - ring->ops->device_cnt(ring);
}

/* One entry, which is complete by itself; its frames are the card's until then. The
 * caller's packets are as they were. */
TEST(run_is_one_entry)
{
	struct mlx5_ring *own;
	struct run run;

	set_up();
	own = mlx5_ring_of(ring);
	dev.lkeys[0] = 0x1234;
	run_make(&run, 40, 77);
	CHECK_EQ(ring->ops->tx(ring, &run.tx), 0);
	CHECK_EQ(check_run_entry(0, &run), own->sq_pi);
	CHECK(is_signaled_at(0));
	CHECK_EQ(ring->counts->tx_pkts, 41);
	CHECK_EQ(ring->counts->tx_bytes, 41 * RUN_HEADER + run.tx.run_len);
	CHECK(ring->wants_kick);
	CHECK_EQ(held_cnt(), 0);
	/* nothing of it is the caller's any more, and nothing of the caller's the ring's */
	CHECK_EQ(run.tx.run->refs, 1);
	entry_is_sent(0, 0, 1);
	ring->ops->reap(ring);
	CHECK_EQ(own->sent_head, own->sent_tail);
	CHECK_EQ(own->sent_frames, 0);
	CHECK_EQ(held_cnt(), 0);
	run_end(&run);
	tear_down();
}

/* 64 KB at every second place, so that it goes on at the beginning of the queue, too. */
TEST(longest_run_at_the_queues_end)
{
	struct mlx5_ring *own;
	struct run run;

	set_up();
	own = mlx5_ring_of(ring);
	run_make(&run, (UINT16_MAX - 80) / RUN_SEGMENT, 295);
	CHECK_EQ(run.tx.run_len, UINT16_MAX - 80);
	for (uint32_t i = 0; i < 3 * TX; i++) {
		uint16_t block = own->sq_pi;

		CHECK_EQ(ring->ops->tx(ring, &run.tx), 0);
		/* its end, up to which the queue may have been filled since */
		CHECK((int16_t)(own->sq_pi - block -
				check_run_entry(block, &run)) >= 0);
		entry_is_sent(i, block, 1);
		ring->ops->reap(ring);
		CHECK_EQ(own->sent_head, own->sent_tail);
		CHECK_EQ(held_cnt(), 0);
		send_short();
	}
	run_end(&run);
	tear_down();
}

/* Without frames it is refused as a whole, and goes once there are some: those of what has
 * been sent count. */
TEST(run_that_does_not_fit)
{
	struct mlx5_ring *own;
	uint16_t blocks[FRAMES];
	uint32_t free_cnt, cnt = 0;
	struct run run;

	set_up();
	own = mlx5_ring_of(ring);
	run_make(&run, 40, 0);
	do {
		blocks[cnt++] = own->sq_pi;
		free_cnt = pool.free_cnt + region_free_cnt(dev.dev.region);
	} while (ring->ops->tx(ring, &run.tx) == 0);
	CHECK(cnt > 3);
	CHECK_EQ(ring->counts->tx_full, 1);
	CHECK_EQ(ring->counts->tx_pkts, (cnt - 1) * 40);
	CHECK_EQ(pool.free_cnt + region_free_cnt(dev.dev.region), free_cnt);
	CHECK_EQ(held_cnt(), 0);
	entry_is_sent(0, blocks[0], 1);
	CHECK_EQ(ring->ops->tx(ring, &run.tx), 0);
	CHECK_EQ(ring->ops->tx(ring, &run.tx), -EAGAIN);
	run_end(&run);
	tear_down();
}

/* The ring ends in the middle: all come back, which tear_down sees. */
TEST(ring_that_ends_with_runs)
{
	struct run run;

	set_up();
	run_make(&run, 40, 0);
	CHECK_EQ(ring->ops->tx(ring, &run.tx), 0);
	CHECK_EQ(ring->ops->tx(ring, &run.tx), 0);
	run_end(&run);
	tear_down();
}

/* -- the card's memory --------------------------------------------------------------------- */

enum { MEM = 1024, MEM_KEY = 0x4321, PAYLOAD = 300, MEM_HEADER = 42 };

static _Alignas(64) uint8_t card_mem[MEM];

/* A payload that is gathered, in two parts of memory that is none of the ring's. */
static struct pkt *payload_of(struct pkt_pool *elsewhere, uint8_t first)
{
	struct pkt *pkt = pkt_alloc(elsewhere);
	uint8_t *to = pkt_append(pkt, PAYLOAD - 7);

	pkt->next_part = pkt_alloc(elsewhere);
	for (unsigned i = 0; i < PAYLOAD - 7; i++)
		to[i] = (uint8_t)(first + i);
	to = pkt_append(pkt->next_part, 7);
	for (unsigned i = 0; i < 7; i++)
		to[i] = (uint8_t)(first + PAYLOAD - 7 + i);
	return pkt;
}

static void send_payload(struct pkt_pool *elsewhere, uint8_t first)
{
	static const uint8_t header[MEM_HEADER] = { 1, 2, 3 };
	struct ring_tx tx = {
		.header = header, .header_len = MEM_HEADER,
		.payload = payload_of(elsewhere, first),
	};

	CHECK_EQ(ring->ops->tx(ring, &tx), 0);
}

static void set_up_mem(struct pkt_pool *elsewhere)
{
	struct mlx5_ring *own;

	set_up();
	own = mlx5_ring_of(ring);
	own->mem.at = card_mem;
	own->mem.size = MEM;
	own->mem.lkey = MEM_KEY;
	pkt_pool_init(elsewhere, 0);
	CHECK_EQ(pkt_pool_grow(elsewhere, 16, 2048), 0);
}

static void tear_down_mem(struct pkt_pool *elsewhere)
{
	mlx5_ring_of(ring)->mem.size = 0;
	tear_down();
	CHECK_EQ(pkt_pool_destroy(elsewhere), 0);
}

/* The one pointer of the entry: to a place in the card's memory, by its key, or to a frame
 * in the host's. */
static const uint8_t *data_of(uint16_t block, uint32_t *key_out)
{
	enum { DATA_AT = (WQE_FRAME_AT + MEM_HEADER + 15) / 16 };
	uint8_t entry[4 * WQE_BLOCK];
	const uint8_t *seg = entry + (size_t)DATA_AT * WQE_SEGMENT;

	read_entry(block, entry, sizeof(entry));
	CHECK_EQ(entry[3], MLX5_OPCODE_SEND);
	CHECK_EQ(wqe_segments(entry), DATA_AT + 1);
	CHECK_EQ(be32_at(seg), PAYLOAD);
	*key_out = be32_at(seg + 4);
	return *key_out == MEM_KEY ? card_mem + (uintptr_t)pointer_at(seg + 8) :
				     pointer_at(seg + 8);
}

static void check_sent(uint16_t block, uint8_t first, uint32_t key)
{
	uint32_t found;
	const uint8_t *data = data_of(block, &found);

	CHECK_EQ(found, key);
	for (unsigned i = 0; i < PAYLOAD; i++)
		CHECK_EQ(data[i], (uint8_t)(first + i));
}

/* Three payloads fit; the fourth is sent from a frame, until the first has left. None of
 * their packets stays with the ring, and each asks for a completion, since it takes more
 * than a quarter of what there is. */
TEST(card_gathers_from_its_own_memory)
{
	struct pkt_pool elsewhere;
	struct mlx5_ring *own;
	uint16_t blocks[5];

	set_up_mem(&elsewhere);
	own = mlx5_ring_of(ring);
	dev.lkeys[0] = 0x1234;
	for (uint8_t i = 0; i < 4; i++) {
		blocks[i] = own->sq_pi;
		send_payload(&elsewhere, i * 10);
		CHECK_EQ(elsewhere.free_cnt, elsewhere.total_cnt);
		check_sent(blocks[i], i * 10, i < 3 ? MEM_KEY : 0x1234);
		CHECK_EQ(is_signaled_at(blocks[i]), i < 3);
		CHECK_EQ(own->sent_frames, i == 3);
		CHECK_EQ(held_cnt(), 0);
	}
	CHECK_EQ(ring->counts->dev_mem_pkts, 3);
	CHECK_EQ(ring->counts->dev_mem_bytes, 3 * PAYLOAD);
	CHECK_EQ(ring->counts->dev_mem_full, 1);
	CHECK_EQ(ring->counts->tx_pkts, 4);
	CHECK_EQ(ring->counts->tx_bytes, 4 * (MEM_HEADER + PAYLOAD));
	entry_is_sent(0, blocks[0], 1);
	blocks[4] = own->sq_pi;
	send_payload(&elsewhere, 40);
	check_sent(blocks[4], 40, MEM_KEY);
	/* what the others refer to is as it was */
	check_sent(blocks[1], 10, MEM_KEY);
	check_sent(blocks[2], 20, MEM_KEY);
	tear_down_mem(&elsewhere);
}

/* Somebody else has the packet as well, as TCP until it is acknowledged: he need not wait
 * for the card. */
TEST(bytes_on_the_card_are_nobodys_packet)
{
	struct pkt_pool elsewhere;
	struct ring_tx tx = { .header = (const uint8_t *)"header of its own ...",
			      .header_len = 20 };

	set_up_mem(&elsewhere);
	tx.payload = payload_of(&elsewhere, 5);
	pkt_get(tx.payload);
	CHECK_EQ(ring->ops->tx(ring, &tx), 0);
	CHECK_EQ(tx.payload->refs, 1);
	pkt_put(tx.payload);
	tear_down_mem(&elsewhere);
}

/* A frame in place that is not to be inline goes the same way, but for what cards look at. */
TEST(frame_in_place_lies_on_the_card)
{
	struct pkt_pool elsewhere;

	params.inline_max = 40;
	set_up_mem(&elsewhere);
	memset(ring->tx_frame, 0x5a, LEN);
	ring->ops->tx_commit(ring, LEN);
	CHECK_EQ(ring->counts->dev_mem_pkts, 1);
	CHECK_EQ(ring->counts->dev_mem_bytes, LEN - WQE_INLINE_MIN);
	CHECK_EQ(ring->counts->tx_bytes, LEN);
	CHECK_EQ(card_mem[LEN - WQE_INLINE_MIN - 1], 0x5a);
	CHECK_EQ(held_cnt(), 0);
	tear_down_mem(&elsewhere);
	params.inline_max = 256;
}

/* -- what the queue ever holds ------------------------------------------------------- */

/* Whatever has been sent before; those sends that ask for no completion are the most when the
 * card is done with all others. */
TEST(more_than_fits_is_told_before)
{
	uint32_t completed_cnt = 0, max;

	set_up();
	max = ring->tx_fits_max;
	CHECK(max > 30);
	for (int i = 0; i < 3 * TX; i++) {
		CHECK(ring->ops->tx_fits(ring, max, 0));
		CHECK(!ring->ops->tx_fits(ring, TX / 6 + 1, 0));
		send_through(&completed_cnt);
	}
	tear_down();
	set_up_any(1, 8);
	CHECK_EQ(ring->tx_fits_max, 5);
	tear_down();
}

/* A paced ring has few frames, fewer than sends between two completions. Some of those that
 * are under way come back. */
TEST(few_frames_come_back)
{
	static const uint8_t header[MEM_HEADER] = { 1, 2, 3 };
	uint16_t blocks[8];
	uint32_t signaled_cnt = 0;

	set_up_any(1, 8);
	for (int i = 0; i < 8; i++) {
		struct ring_tx tx = { header, MEM_HEADER, .payload = ring_pkt_alloc(ring) };

		blocks[i] = mlx5_ring_of(ring)->sq_pi;
		pkt_append(tx.payload, 1000);
		CHECK_EQ(ring->ops->tx(ring, &tx), 0);
	}
	CHECK(!ring_pkt_alloc(ring));
	/* there are places, and nothing to copy to until then */
	CHECK(ring->ops->tx_fits(ring, 1, 0));
	CHECK(!ring->ops->tx_fits(ring, 1, 1));
	for (int i = 0; i < 8; i++)
		if (is_signaled_at(blocks[i]))
			entry_is_sent(signaled_cnt++, blocks[i], 1);
	CHECK(signaled_cnt > 0);
	CHECK(ring->ops->tx_fits(ring, 1, 1));
	CHECK(pool.free_cnt > 0);
	CHECK(ring->ops->tx_fits(ring, 1, pool.free_cnt));
	CHECK(!ring->ops->tx_fits(ring, 1, pool.free_cnt + 1));
	tear_down();
}

/* -- the doorbell register ----------------------------------------------------------- */

/* Where its entry is after a short send. */
static bool is_entry_in_register(void)
{
	bool result;

	params.has_blue_flame = true;
	set_up();
	send_short();
	CHECK_MEM(&card.uar[256], card.sq, 8);
	result = memcmp(&card.uar[256], card.sq, 2 * WQE_BLOCK) == 0;
	tear_down();
	params.has_blue_flame = false;
	return result;
}

/* What two queues write into one at a time would mix. */
TEST(entries_go_to_a_register_that_is_nobody_elses)
{
	CHECK(is_entry_in_register());
	has_register = false;
	CHECK(!is_entry_in_register());
	has_register = true;
}
