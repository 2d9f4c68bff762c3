/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/spill.h"

#include "tests/support/test.h"

static struct spill spill;
static struct pkt_pool frames;

static void begin(void)
{
	spill_init(&spill);
	pkt_pool_init(&frames, 128);
	CHECK_EQ(pkt_pool_grow(&frames, 4, 16384), 0);
}

static void end(void)
{
	CHECK_EQ(pkt_pool_destroy(&frames), 0);
	for (int i = 0; i < SPILL_SIZES; i++)
		CHECK_EQ(pkt_stock_destroy(&spill.stocks[i]), 0);
}

/* Makes what is wanted. */
static void grow(void)
{
	for (int i = 0; i < SPILL_SIZES; i++) {
		struct pkt_stock *stock = &spill.stocks[i];

		if (pkt_stock_take_wish(stock))
			CHECK(!pkt_stock_add(stock, pkt_stock_make(stock)));
	}
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
	pkt->card_ns = 8;
	pkt->flags |= PKT_CARD_STAMPED;
	pkt->csum_verdict = PKT_CSUM_GOOD;
	CHECK(spill_copy(&spill, pkt) == NULL);
	CHECK(spill_prepare(&spill, pkt));
	grow();
	copy = spill_copy(&spill, pkt);
	CHECK(copy != NULL);
	CHECK_EQ(copy->buf_size, buf_size);
	CHECK_EQ(copy->len, len);
	CHECK_EQ(memcmp(copy->data, pkt->data, len), 0);
	CHECK_EQ(copy->time_ns, 7);
	CHECK_EQ(pkt_card_ns(copy), 8);
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

static void check_pieces(const struct pkt *copy, const struct pkt *pkt,
			 uint32_t last_buf_size)
{
	CHECK_EQ(pkt_total_len(copy), pkt_total_len(pkt));
	for (uint32_t done = 0; pkt; copy = copy->next_part) {
		CHECK_EQ(memcmp(copy->data, pkt->data + done, copy->len), 0);
		CHECK_EQ(copy->buf_size, copy->next_part ? 4096 : last_buf_size);
		done += copy->len;
		if (done == pkt->len) {
			pkt = pkt->next_part;
			done = 0;
		}
	}
	CHECK(copy == NULL);
}

TEST(a_packet_of_several_frames_is_copied_to_several)
{
	struct pkt *pkt, *copy;

	begin();
	pkt = frame(4096);
	pkt->next_part = frame(3000);
	pkt->next_part->next_part = frame(100);
	pkt->time_ns = 7;
	CHECK(spill_copy(&spill, pkt) == NULL);
	CHECK(spill_prepare(&spill, pkt));
	grow();
	copy = spill_copy(&spill, pkt);
	CHECK(copy != NULL);
	check_pieces(copy, pkt, 256);
	CHECK_EQ(copy->time_ns, 7);
	pkt_put(copy);
	pkt_put(pkt);
	end();
}

TEST(a_frame_that_is_longer_than_a_buffer_is_copied_to_several)
{
	struct pkt *pkt, *copy;

	begin();
	pkt = frame(9014);
	for (uint32_t i = 0; i < pkt->len; i++)
		pkt->data[i] = (uint8_t)(i % 251);
	CHECK(spill_prepare(&spill, pkt));
	grow();
	copy = spill_copy(&spill, pkt);
	CHECK(copy != NULL);
	check_pieces(copy, pkt, 2048);
	pkt_put(copy);
	pkt_put(pkt);
	end();
}

/* There is memory for the first piece, and not for the second one. */
TEST(what_cannot_be_copied_whole_leaves_no_piece)
{
	struct pkt *pkt;

	begin();
	pkt = frame(4000);
	CHECK(spill_prepare(&spill, pkt));
	grow();
	pkt->next_part = frame(100);
	CHECK(spill_copy(&spill, pkt) == NULL);
	CHECK(spill_prepare(&spill, pkt));
	pkt_put(pkt);
	end();
}
