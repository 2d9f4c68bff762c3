/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that are copied or completed for a device (dev/ring_tx.h). */
#include "config.h"

#include "dev/ring_tx.h"

#include "base/checksum.h"
#include "tests/support/test.h"
#include "tests/unit/dev/run.h"

enum { FRAMES = 16, HEADER = 42, CSUM_AT = 40, PARTS = 3 };

static struct dev dev;
static struct ring ring;
static struct pkt_pool pool;

static const uint8_t header[HEADER] = { 1, 2, 3 };
static uint8_t bytes[300];

static void set_up(void)
{
	CHECK_EQ(region_create(FRAMES, 2048, REGION_SMALL_PAGES, &dev.region), 0);
	CHECK_EQ(region_set_add(&dev.regions, dev.region), 0);
	pkt_pool_init(&pool, 128);
	ring.dev = &dev;
	ring.pool = &pool;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
}

static void tear_down(void)
{
	region_set_give(&dev.regions, &pool, FRAMES);
	CHECK_EQ(region_free_cnt(dev.region), FRAMES);
	region_set_put(&dev.regions);
	memset(&dev.regions, 0, sizeof(dev.regions));
}

/* The bytes, in parts of odd lengths. */
static struct pkt *in_parts(void)
{
	static const uint32_t lens[PARTS] = { 101, 98, 101 };
	struct pkt *first = NULL, **link = &first;
	const uint8_t *from = bytes;

	for (int i = 0; i < PARTS; i++) {
		*link = ring_pkt_alloc(&ring);
		memcpy(pkt_append(*link, lens[i]), from, lens[i]);
		from += lens[i];
		link = &(*link)->next_part;
	}
	return first;
}

static struct ring_tx frame_of(struct pkt *payload, uint16_t flags)
{
	return (struct ring_tx){
		.header = header, .header_len = HEADER, .payload = payload,
		.flags = flags, .csum_at = CSUM_AT, .csum_sum = 0x1234,
	};
}

static uint16_t expected(void)
{
	return csum_fold(csum_partial(bytes, sizeof(bytes), 0x1234));
}

static void check_frame(const struct pkt *pkt, uint16_t check)
{
	uint16_t found;

	CHECK_EQ(pkt->len, HEADER + sizeof(bytes));
	CHECK(!pkt->next_part);
	CHECK_EQ(memcmp(pkt->data, header, CSUM_AT), 0);
	CHECK_EQ(memcmp(pkt->data + HEADER, bytes, sizeof(bytes)), 0);
	memcpy(&found, pkt->data + CSUM_AT, sizeof(found));
	CHECK_EQ(found, check);
}

TEST(sum_over_odd_parts)
{
	struct ring_tx tx;

	set_up();
	tx = frame_of(in_parts(), RING_TX_CSUM);
	CHECK_EQ(ring_tx_csum(&tx), expected());
	pkt_put(tx.payload);
	tear_down();
}

TEST(parts_become_one_frame)
{
	struct ring_tx tx;
	struct pkt *pkt;

	set_up();
	tx = frame_of(in_parts(), RING_TX_CSUM);
	pkt = ring_tx_wrap(&ring, &tx, true);
	check_frame(pkt, expected());
	pkt_put(pkt);
	tear_down();
}

/* Where the payload lies there is room in front, and nobody else who has it. */
TEST(payload_alone_stays_where_it_is)
{
	struct pkt *payload, *pkt;
	struct ring_tx tx;

	set_up();
	payload = ring_pkt_alloc(&ring);
	memcpy(pkt_append(payload, sizeof(bytes)), bytes, sizeof(bytes));
	tx = frame_of(payload, RING_TX_CSUM);
	pkt = ring_tx_wrap(&ring, &tx, true);
	CHECK(pkt == payload);
	check_frame(pkt, expected());
	pkt_put(pkt);
	tear_down();
}

/* Who sends it again later needs it as it is. */
TEST(payload_of_somebody_else_too_is_copied)
{
	struct pkt *payload, *pkt;
	struct ring_tx tx;

	set_up();
	payload = ring_pkt_alloc(&ring);
	memcpy(pkt_append(payload, sizeof(bytes)), bytes, sizeof(bytes));
	pkt_get(payload);
	tx = frame_of(payload, RING_TX_CSUM);
	pkt = ring_tx_wrap(&ring, &tx, false);
	CHECK(pkt != payload);
	check_frame(pkt, 0);
	CHECK_EQ(payload->len, sizeof(bytes));
	pkt_put(pkt);
	pkt_put(payload);
	tear_down();
}

TEST(no_frame_releases_the_payload)
{
	struct pkt *taken[FRAMES];
	struct ring_tx tx;
	int cnt = 0;

	set_up();
	tx = frame_of(in_parts(), 0);
	while ((taken[cnt] = ring_pkt_alloc(&ring)))
		cnt++;
	CHECK_EQ(cnt, FRAMES - PARTS);
	CHECK(!ring_tx_wrap(&ring, &tx, true));
	while (cnt)
		pkt_put(taken[--cnt]);
	tear_down();
}

/* In as few frames as they need; the packets stay as they are. */
TEST(run_is_copied_to_parts)
{
	struct run run;
	struct pkt *copy;
	uint32_t at = 0, cnt = 0;

	set_up();
	run_make(&run, 9, 11);
	copy = ring_tx_copy_run(&ring, &run.tx);
	CHECK(copy);
	for (struct pkt *part = copy; part; part = part->next_part, cnt++) {
		CHECK(part->pool == &pool);
		CHECK_MEM(part->data, run.bytes + at, part->len);
		at += part->len;
		CHECK(!part->next_part || !pkt_tailroom(part));
	}
	CHECK_EQ(at, run.tx.run_len);
	CHECK_EQ(cnt, (run.tx.run_len + 2048 - 128 - 1) / (2048 - 128));
	pkt_put(copy);
	CHECK(pkt_pool_is_full(&pool));
	run_end(&run);
	tear_down();
}

/* Those that there were are free again. */
TEST(run_is_longer_than_what_is_free)
{
	struct run run;

	set_up();
	run_make(&run, FRAMES * 2, 0);
	CHECK(!ring_tx_copy_run(&ring, &run.tx));
	CHECK(pkt_pool_is_full(&pool));
	run_end(&run);
	tear_down();
}
