/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completions as ConnectX writes them: 64 bytes, or the latter half of 128. Pure
 * functions over memory, which look at what a card says and never believe it: an
 * index or a length is for the caller to check.
 */
#ifndef DEV_RDMA_CQE_H
#define DEV_RDMA_CQE_H

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <string.h>

#include "pkt/pkt.h"

/* The last word, in which the card says by one bit that the entry is new: the bit
 * changes with each lap around the queue. */
enum { CQE_WORD_AT = 60 };
#define CQE_OWNER htobe32(MLX5_CQE_OWNER_MASK)

static inline uint8_t cqe_op_own(uint32_t word)
{
	return (uint8_t)(be32toh(word) & 0xff);
}

static inline uint8_t cqe_opcode(uint32_t word)
{
	return cqe_op_own(word) >> 4;
}

/* Whether the word is that of completion number `ci` of a queue of `size`, which is
 * a power of two. */
static inline bool cqe_is_new(uint32_t word, uint32_t ci, uint32_t size)
{
	uint8_t op_own = cqe_op_own(word);

	return op_own >> 4 != MLX5_CQE_INVALID &&
	       (op_own & MLX5_CQE_OWNER_MASK) == !!(ci & size);
}

/* That bit, in the word's form, while completion number `ci` has not been written yet. */
static inline uint32_t cqe_old_owner(uint32_t ci, uint32_t size)
{
	return ci & size ? 0 : CQE_OWNER;
}

/* Of what the word is or was: as long as it is equal to this, the completion is old. */
static inline uint32_t cqe_old_word(uint32_t word, uint32_t old_owner)
{
	return (word & ~CQE_OWNER) | old_owner;
}

/* The entry's number in its queue: of a receive queue, or the first block of one
 * for sending. */
static inline uint16_t cqe_index(uint32_t word)
{
	return (uint16_t)(be32toh(word) >> 16);
}

/* A frame came, whose bytes are where the receive entry says: neither in the
 * completion itself, nor one of several in a compressed one. */
static inline bool cqe_is_frame(uint32_t word)
{
	enum { OPCODE_AND_FORMAT = 0xfc };

	return (word & htobe32(OPCODE_AND_FORMAT)) ==
	       htobe32(MLX5_CQE_RESP_SEND << 4);
}

static inline bool cqe_is_sent(uint32_t word)
{
	return cqe_opcode(word) == MLX5_CQE_REQ;
}

static inline uint32_t cqe_len(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->byte_cnt);
}

/* Of a frame that it could parse the card says which checksums were right. When one
 * was not, or it did not know the protocol, software has to look. */
static inline enum pkt_csum cqe_csum(const struct mlx5_cqe64 *cqe)
{
	enum { BOTH = MLX5_CQE_L3_OK | MLX5_CQE_L4_OK };

	return (cqe->hds_ip_ext & BOTH) == BOTH ? PKT_CSUM_GOOD :
						  PKT_CSUM_UNKNOWN;
}

/* The tag of the rule that matched. 0: it has none. */
static inline uint32_t cqe_tag(const struct mlx5_cqe64 *cqe)
{
	uint32_t tag = be32toh(cqe->sop_drop_qpn) & 0xffffff;

	/* what the kernel gives rules without one */
	return tag == 0xffffff ? 0 : tag;
}

/* What the card's counter said when the frame came. */
static inline uint64_t cqe_ticks(const struct mlx5_cqe64 *cqe)
{
	return be64toh(cqe->timestamp);
}

/* Of a completion with an error: what was wrong. */
static inline uint8_t cqe_syndrome(const struct mlx5_cqe64 *cqe)
{
	return ((const struct mlx5_err_cqe *)(const void *)cqe)->syndrome;
}

#endif
