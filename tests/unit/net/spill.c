/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/spill.h"

#include "tests/support/test.h"

static struct spill spill;
static struct pkt_pool frames;

static void begin(void)
{
	spill_init(&spill);
	pkt_pool_init(&frames, 128);
	CHECK_EQ(pkt_pool_grow(&frames, 4, 4096), 0);
}

static void end(void)
{
	CHECK_EQ(pkt_pool_destroy(&frames), 0);
	for (int i = 0; i < SPILL_SIZES; i++)
		CHECK(pkt_pool_is_full(&spill.pools[i]));
	spill_destroy(&spill);
}

static void grow(void)
{
	struct spill_slabs more = spill_grow(spill_take_wanted(&spill));

	spill_add(&spill, &more);
}

static struct pkt *frame(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&frames);

	memset(pkt_append(pkt, len), (int)len & 0xff, len);
	return pkt;
}

/* The first one of a size finds nothing, and has it made. */
static void check_copy(uint32_t len, uint32_t buf_size)
{
	struct pkt *pkt = frame(len), *copy;

	pkt->time_ns = 7;
	pkt->csum_verdict = PKT_CSUM_GOOD;
	CHECK(!spill_is_short(&spill));
	CHECK(spill_copy(&spill, pkt) == NULL);
	spill_prepare(&spill, pkt);
	CHECK(spill_is_short(&spill));
	grow();
	CHECK(!spill_is_short(&spill));
	copy = spill_copy(&spill, pkt);
	CHECK(copy != NULL);
	CHECK_EQ(copy->buf_size, buf_size);
	CHECK_EQ(copy->len, len);
	CHECK_EQ(memcmp(copy->data, pkt->data, len), 0);
	CHECK_EQ(copy->time_ns, 7);
	CHECK_EQ(copy->csum_verdict, PKT_CSUM_GOOD);
	pkt_put(pkt);
	pkt_put(copy);
}

TEST(a_copy_has_a_buffer_of_its_size)
{
	begin();
	check_copy(256, 256);
	check_copy(257, 2048);
	check_copy(2049, 4096);
	end();
}

TEST(a_packet_of_several_frames_is_not_copied)
{
	struct pkt *pkt;

	begin();
	pkt = frame(100);
	spill_prepare(&spill, pkt);
	grow();
	pkt->next_part = frame(100);
	CHECK(spill_copy(&spill, pkt) == NULL);
	spill_prepare(&spill, pkt);
	CHECK(!spill_is_short(&spill));
	pkt_put(pkt);
	end();
}

TEST(memory_goes_when_nobody_uses_it)
{
	struct spill_slabs idle;
	struct pkt *pkt, *copy;

	begin();
	pkt = frame(100);
	spill_prepare(&spill, pkt);
	grow();
	copy = spill_copy(&spill, pkt);
	pkt_put(pkt);
	idle = spill_shrink(&spill);
	for (int i = 0; i < SPILL_SIZES; i++)
		CHECK(idle.slabs[i] == NULL);
	pkt_put(copy);
	idle = spill_shrink(&spill);
	CHECK(idle.slabs[0] != NULL);
	spill_free(&idle);
	CHECK_EQ(spill.pools[0].total_cnt, 0);
	end();
}
