/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completions as a card writes them, byte by byte, and as it should not. */
#include "config.h"

#include "dev/rdma/cqe.h"
#include "tests/support/test.h"

/* A frame of 1514 bytes that is right, of the rule with tag 0x0abcde. */
static const uint8_t frame[64] = {
	[28] = 0x06,		  /* layers 3 and 4 are right */
	[44] = 0x00, 0x00, 0x05, 0xea,
	[48] = 0, 0, 0, 1, 2, 3, 4, 5, /* time */
	[56] = 0x00, 0x0a, 0xbc, 0xde,
	[60] = 0x12, 0x34, 0x00, 0x21, /* entry 0x1234; RESP_SEND, owner 1 */
};

static uint32_t word_of(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes + CQE_WORD_AT, sizeof(word));
	return word;
}

static uint32_t word_by(uint8_t op_own)
{
	uint8_t bytes[64] = { [63] = op_own };

	return word_of(bytes);
}

TEST(frame_by_its_bytes)
{
	struct mlx5_cqe64 cqe;

	memcpy(&cqe, frame, sizeof(cqe));
	CHECK(cqe_is_frame(word_of(frame)));
	CHECK(!cqe_is_sent(word_of(frame)));
	CHECK_EQ(cqe_index(word_of(frame)), 0x1234);
	CHECK_EQ(cqe_len(&cqe), 1514);
	CHECK_EQ(cqe_tag(&cqe), 0x0abcde);
	CHECK_EQ(cqe_csum(&cqe), PKT_CSUM_GOOD);
}

/* The owner's bit is that of the lap: 0 in the first one. */
TEST(new_by_the_lap)
{
	enum { SIZE = 1024 };
	uint32_t first = word_by(0x20), second = word_by(0x21);

	CHECK(cqe_is_new(first, 0, SIZE));
	CHECK(cqe_is_new(first, SIZE - 1, SIZE));
	CHECK(!cqe_is_new(first, SIZE, SIZE));
	CHECK(cqe_is_new(second, SIZE, SIZE));
	CHECK(!cqe_is_new(second, 2 * SIZE, SIZE));
	CHECK(cqe_is_new(first, 2 * SIZE, SIZE));
	/* as the queue is before the card has written anything */
	CHECK(!cqe_is_new(word_by(0xf0), 0, SIZE));
	CHECK(!cqe_is_new(word_by(0xf1), SIZE, SIZE));
	/* at the end of what the counter can count */
	CHECK(cqe_is_new(second, UINT32_MAX, SIZE));
	CHECK(cqe_is_new(first, UINT32_MAX + 1u, SIZE));
}

TEST(checksums_are_good_or_unknown)
{
	struct mlx5_cqe64 cqe;

	memcpy(&cqe, frame, sizeof(cqe));
	for (unsigned bits = 0; bits < 256; bits++) {
		cqe.hds_ip_ext = (uint8_t)bits;
		CHECK_EQ(cqe_csum(&cqe), (bits & 6) == 6 ? PKT_CSUM_GOOD :
							     PKT_CSUM_UNKNOWN);
	}
}

TEST(frame_without_a_tag)
{
	struct mlx5_cqe64 cqe;

	memcpy(&cqe, frame, sizeof(cqe));
	cqe.sop_drop_qpn = htobe32(0xffffffff);
	CHECK_EQ(cqe_tag(&cqe), 0);
	cqe.sop_drop_qpn = htobe32(0xff000000);
	CHECK_EQ(cqe_tag(&cqe), 0);
}

TEST(send_is_complete)
{
	uint32_t word = word_by(0x00);

	CHECK(cqe_is_sent(word));
	CHECK(!cqe_is_frame(word));
}

/* Whatever else a card says is neither. */
TEST(everything_else_is_an_error)
{
	for (unsigned op_own = 0; op_own < 256; op_own++) {
		uint32_t word = word_by((uint8_t)op_own);
		bool is_plain = !(op_own & 0x0c);

		CHECK_EQ(cqe_is_frame(word), op_own >> 4 == 2 && is_plain);
		CHECK_EQ(cqe_is_sent(word), op_own >> 4 == 0);
	}
}

TEST(syndrome)
{
	struct mlx5_cqe64 cqe = { 0 };
	uint8_t bytes[64] = { [54] = 0x88, [55] = 0x05, [63] = 0xe0 };

	memcpy(&cqe, bytes, sizeof(cqe));
	CHECK_EQ(cqe_syndrome(&cqe), 5);
	CHECK_EQ(cqe_opcode(word_of(bytes)), MLX5_CQE_RESP_ERR);
}
