/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Entries of ConnectX's send queues: blocks of 64 bytes in which segments of 16 bytes
 * follow each other. A control segment is first, then an Ethernet segment with as
 * much of the frame as is inline, then pointers to the rest. Pure functions over
 * memory.
 */
#ifndef DEV_RDMA_WQE_H
#define DEV_RDMA_WQE_H

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	WQE_BLOCK = MLX5_SEND_WQE_BB,
	WQE_SEGMENT = 16,
	/* Where the bytes of the frame begin. */
	WQE_FRAME_AT = 30,
	/* So many of them have to be inline on cards that look at them. */
	WQE_INLINE_MIN = 18,
	/* What the size field of the Ethernet segment can say. */
	WQE_INLINE_MAX = 1023,
};

/* How an entry is to be sent. */
struct wqe_head {
	uint32_t qpn;
	uint16_t index;	/* its first block, by a counter that runs on */
	bool is_signaled;	/* it gets a completion */
	uint8_t csum;	/* MLX5_ETH_WQE_L3_CSUM and L4, to be computed */
	/* TCP to be cut: bytes behind the inline header for each segment; else 0 */
	uint16_t segment_len;
};

static inline unsigned wqe_blocks(unsigned segments)
{
	return (segments + 3) / 4;
}

/* How many segments an entry has whose frame is inline up to `len`. */
static inline unsigned wqe_segments_of_inline(size_t len)
{
	return (unsigned)((WQE_FRAME_AT + len + WQE_SEGMENT - 1) / WQE_SEGMENT);
}

static inline void wqe_put_ctrl(uint8_t *entry, const struct wqe_head *head,
				uint8_t opcode, unsigned segments)
{
	uint64_t halves[2] = {
		htobe64((uint64_t)((uint32_t)head->index << 8 | opcode) << 32 |
			(head->qpn << 8 | segments)),
		head->is_signaled ?
			htobe64((uint64_t)MLX5_WQE_CTRL_CQ_UPDATE << 32) : 0,
	};

	memcpy(entry, halves, sizeof(halves));
}

/* The Ethernet segment, up to the frame's bytes, which stay as they are. */
static inline void wqe_put_eth(uint8_t *entry, const struct wqe_head *head,
			       size_t inline_len)
{
	uint8_t *eth = entry + WQE_SEGMENT;
	uint16_t size = htobe16((uint16_t)inline_len);

	memset(eth, 0, 12);
	eth[offsetof(struct mlx5_wqe_eth_seg, cs_flags)] = head->csum;
	if (head->segment_len) {
		uint16_t mss = htobe16(head->segment_len);

		memcpy(eth + offsetof(struct mlx5_wqe_eth_seg, mss), &mss,
		       sizeof(mss));
	}
	memcpy(eth + offsetof(struct mlx5_wqe_eth_seg, inline_hdr_sz), &size,
	       sizeof(size));
}

/* What the entries of a queue have in common whose frames are inline, in the processor's
 * order and in the card's: the control segment without number and length, and the beginning
 * of the Ethernet segment. */
struct wqe_inline {
	uint64_t ctrl;
	uint64_t eth;
};

static inline struct wqe_inline wqe_inline_of(uint32_t qpn, uint8_t csum)
{
	struct wqe_inline common = {
		.ctrl = (uint64_t)MLX5_OPCODE_SEND << 32 | qpn << 8,
	};

	memcpy((uint8_t *)&common.eth + offsetof(struct mlx5_wqe_eth_seg, cs_flags),
	       &csum, sizeof(csum));
	return common;
}

/* Completes an entry around a frame that was written to its place: all of it is
 * inline. Returns the number of segments. */
static inline unsigned wqe_wrap_inline(uint8_t *entry, const struct wqe_inline *common,
				       uint16_t index, bool is_signaled, size_t len)
{
	unsigned segments = wqe_segments_of_inline(len);
	uint64_t ctrl = htobe64(common->ctrl | (uint64_t)index << 40 | segments);
	uint64_t wish = is_signaled ? htobe64((uint64_t)MLX5_WQE_CTRL_CQ_UPDATE << 32) : 0;
	/* six bytes of zeros and the length, of which two are of `eth`, too */
	uint64_t end = htobe64(len);

	_Static_assert(offsetof(struct mlx5_wqe_eth_seg, inline_hdr_sz) + 2 ==
			       WQE_FRAME_AT - WQE_SEGMENT, "the length is last");
	memcpy(entry, &ctrl, sizeof(ctrl));
	memcpy(entry + 8, &wish, sizeof(wish));
	memcpy(entry + WQE_SEGMENT, &common->eth, sizeof(common->eth));
	memcpy(entry + WQE_FRAME_AT - sizeof(end), &end, sizeof(end));
	return segments;
}

/* Begins an entry whose frame begins with these bytes and goes on elsewhere. Returns
 * the number of segments so far; wqe_add_data() adds one, and wqe_put_ctrl() ends
 * it. Of one that is to be cut, these bytes are the header that each segment gets, and the
 * opcode is MLX5_OPCODE_TSO. */
static inline unsigned wqe_begin_gather(uint8_t *entry,
					const struct wqe_head *head,
					const uint8_t *bytes, size_t len)
{
	wqe_put_eth(entry, head, len);
	memcpy(entry + WQE_FRAME_AT, bytes, len);
	return wqe_segments_of_inline(len);
}

static inline unsigned wqe_add_data(uint8_t *entry, unsigned segments,
				    const void *data, uint32_t len,
				    uint32_t lkey)
{
	struct mlx5_wqe_data_seg seg = {
		htobe32(len),
		htobe32(lkey),
		htobe64((uintptr_t)data),
	};

	memcpy(entry + (size_t)segments * WQE_SEGMENT, &seg, sizeof(seg));
	return segments + 1;
}

/* An entry of one block that does nothing. */
static inline void wqe_put_nop(uint8_t *entry, const struct wqe_head *head)
{
	wqe_put_ctrl(entry, head, MLX5_OPCODE_NOP, 1);
}

/* How many segments a written entry says it has. */
static inline unsigned wqe_segments(const uint8_t *entry)
{
	return entry[7] & 0x3f;
}

/* A receive entry: where the next frame goes. */
static inline void wqe_put_recv(void *entry, const void *data, uint32_t len,
				uint32_t lkey)
{
	struct mlx5_wqe_data_seg seg = {
		htobe32(len),
		htobe32(lkey),
		htobe64((uintptr_t)data),
	};

	memcpy(entry, &seg, sizeof(seg));
}

#endif
