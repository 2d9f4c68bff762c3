/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of send and receive queues against the bytes that a card expects. */
#include "config.h"

#include "dev/rdma/wqe.h"
#include "tests/support/test.h"

enum { QPN = 0x123456, INDEX = 0xabcd };

static const struct wqe_head plain = { .qpn = QPN, .index = INDEX };

/* Fills what has to stay as it is with a mark. */
static void mark(uint8_t *entry, size_t len)
{
	memset(entry, 0xee, len);
}

TEST(frame_in_place)
{
	static const uint8_t expected[32] = {
		0x00, 0xab, 0xcd, 0x0a, /* entry number, SEND */
		0x12, 0x34, 0x56, 0x06, /* queue pair, six segments */
		0, 0, 0, 0,		/* no completion */
		0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,		/* no checksum, no segmentation */
		0, 0, 0, 0,
		0x00, 60,		/* bytes that are inline */
		0xee, 0xee,		/* the frame begins */
	};
	struct wqe_inline common = wqe_inline_of(plain.qpn, 0);
	uint8_t entry[128];

	mark(entry, sizeof(entry));
	CHECK_EQ(wqe_wrap_inline(entry, &common, plain.index, false, 60), 6);
	CHECK_MEM(entry, expected, sizeof(expected));
	for (size_t i = WQE_FRAME_AT; i < sizeof(entry); i++)
		CHECK_EQ(entry[i], 0xee);
	CHECK_EQ(wqe_segments(entry), 6);
	CHECK_EQ(wqe_blocks(6), 2);
}

TEST(completion_and_checksums_by_wish)
{
	struct wqe_inline common = wqe_inline_of(
		plain.qpn, MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM);
	uint8_t entry[128];

	mark(entry, sizeof(entry));
	wqe_wrap_inline(entry, &common, plain.index, true, 18);
	CHECK_EQ(entry[11], 0x08);
	CHECK_EQ(entry[20], 0xc0);
	CHECK_EQ(entry[7], 3);
}

/* Two bytes of the frame are in the first two segments, 16 in each further one. */
TEST(segments_of_each_length)
{
	CHECK_EQ(wqe_segments_of_inline(1), 2);
	CHECK_EQ(wqe_segments_of_inline(2), 2);
	CHECK_EQ(wqe_segments_of_inline(3), 3);
	CHECK_EQ(wqe_segments_of_inline(18), 3);
	CHECK_EQ(wqe_segments_of_inline(19), 4);
	CHECK_EQ(wqe_segments_of_inline(320), 22);
	CHECK_EQ(wqe_blocks(1), 1);
	CHECK_EQ(wqe_blocks(4), 1);
	CHECK_EQ(wqe_blocks(5), 2);
	CHECK_EQ(wqe_blocks(22), 6);
}

TEST(header_inline_and_payload_gathered)
{
	static const uint8_t expected[96] = {
		0x00, 0xab, 0xcd, 0x0a, 0x12, 0x34, 0x56, 0x06, /* six segments */
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0x00, 20, 1, 2,
		3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
		19, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x00, 0x00, 0x05, 0xdc, /* 1500 bytes */
		0xde, 0xad, 0x00, 0x01, /* the key */
		0x00, 0x00, 0x7f, 0xff, 0x12, 0x34, 0x56, 0x78,
		0x00, 0x00, 0x00, 0x07,
		0x00, 0x00, 0x00, 0x02,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
	};
	uint8_t entry[128] = { 0 }, header[20];
	unsigned segments;

	for (unsigned i = 0; i < sizeof(header); i++)
		header[i] = (uint8_t)(i + 1);
	segments = wqe_begin_gather(entry, &plain, header, sizeof(header));
	CHECK_EQ(segments, 4);
	segments = wqe_add_data(entry, segments, (void *)0x7fff12345678, 1500,
				0xdead0001);
	segments = wqe_add_data(entry, segments, (void *)0x1000, 7, 2);
	wqe_put_ctrl(entry, &plain, MLX5_OPCODE_SEND, segments);
	CHECK_MEM(entry, expected, sizeof(expected));
}

/* The same with a header that each segment gets, and how long these are. */
TEST(header_of_segments_to_be_cut)
{
	static const uint8_t expected[64] = {
		0x00, 0xab, 0xcd, 0x0e, /* entry number, TSO */
		0x12, 0x34, 0x56, 0x05, /* five segments */
		0, 0, 0, 0x08, 0, 0, 0, 0,
		0, 0, 0, 0,
		0xc0, 0, 0x05, 0xa8,	/* both checksums; segments of 1448 bytes */
		0, 0, 0, 0, 0x00, 20, 1, 2,
		3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
	};
	struct wqe_head head = {
		.qpn = QPN, .index = INDEX, .is_signaled = true,
		.csum = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM,
		.segment_len = 1448,
	};
	uint8_t entry[128] = { 0 }, header[20];
	unsigned segments;

	for (unsigned i = 0; i < sizeof(header); i++)
		header[i] = (uint8_t)(i + 1);
	mark(entry + WQE_SEGMENT, WQE_SEGMENT);
	segments = wqe_begin_gather(entry, &head, header, sizeof(header));
	segments = wqe_add_data(entry, segments, (void *)0x1000, 20000, 2);
	wqe_put_ctrl(entry, &head, MLX5_OPCODE_TSO, segments);
	CHECK_MEM(entry, expected, sizeof(expected) - 16);
}

TEST(nothing_to_do)
{
	static const uint8_t expected[16] = {
		0x00, 0xab, 0xcd, 0x00, 0x12, 0x34, 0x56, 0x01,
	};
	uint8_t entry[16];

	mark(entry, sizeof(entry));
	wqe_put_nop(entry, &plain);
	CHECK_MEM(entry, expected, sizeof(expected));
}

TEST(receive_entry)
{
	static const uint8_t expected[16] = {
		0x00, 0x00, 0x07, 0x80, 0xde, 0xad, 0x00, 0x01,
		0x00, 0x00, 0x7f, 0xff, 0x12, 0x34, 0x56, 0x78,
	};
	uint8_t entry[16];

	wqe_put_recv(entry, (void *)0x7fff12345678, 1920, 0xdead0001);
	CHECK_MEM(entry, expected, sizeof(expected));
}
