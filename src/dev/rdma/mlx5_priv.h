/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ConnectX's queues from the inside: what mlx5_ring.c, which receives and has the
 * ring's life, and mlx5_tx.c, which sends, have in common. */
#ifndef DEV_RDMA_MLX5_PRIV_H
#define DEV_RDMA_MLX5_PRIV_H

#include "dev/rdma/cqe.h"
#include "dev/rdma/dev_mem.h"
#include "dev/rdma/mmio.h"
#include "dev/rdma/rdma_priv.h"
#include "dev/rdma/wqe.h"

enum {
	MLX5_INDEX_MASK = 0xffffff, /* of a completion queue's record */
	/* The frames from which what is to be cut is gathered: 64 KB, by frames for the
	 * usual MTU. */
	MLX5_TSO_PARTS = 36,
};

/* A completion queue as we read it. */
struct mlx5_cq {
	uint8_t *entries;	/* the 64 bytes of the first one */
	const uint8_t *end;	/* behind the last one */
	uint32_t size;
	uint32_t stride;	/* bytes from one to the next */
	/* How many we have read, a counter that runs on. Under the stack's lock; who
	 * acknowledges an event looks at it without. */
	_Atomic uint32_t ci;
	_Atomic uint32_t *record;	/* [0] what we have read, [1] armed */
	uint8_t *uar;
	uint32_t number;
};

/* What an entry refers to until it is complete; it ends before the block `end`. */
struct mlx5_sent {
	/* the packet that the card reads from; NULL: it reads from its own memory */
	struct pkt *pkt;
	/* what was taken of that */
	uint32_t mem_taken;
	uint16_t end;
};

struct mlx5_ring {
	struct rdma_ring base;

	/* receiving; under the stack's lock */
	struct mlx5_cq rx_cq;
	uint8_t *rq;
	uint32_t rq_mask;
	uint32_t rq_stride;
	/* The owner's bit of completions that the card has not written again yet, in the
	 * word's form. Changes with each lap. */
	uint32_t rx_old;
	/* Counters that run on: posted, received, and what the card knows to be posted.
	 * Between rq_ci and rx_cq.ci are frames that rx_done has left to be posted
	 * again. */
	uint32_t rq_pi;
	uint32_t rq_ci;
	uint32_t rq_told;
	_Atomic uint32_t *rq_record;
	struct pkt **rq_pkts;	/* by entry */
	uint32_t rx_len_max;
	uint32_t rx_batch;
	/* the rx_done that brings this to 0 tells the card what is posted */
	uint32_t rx_to_tell;
	uint32_t rx_target;

	/* sending; under the stack's lock */
	struct mlx5_cq tx_cq;
	uint8_t *sq;
	uint32_t sq_blocks;
	uint32_t sq_mask;
	uint32_t qpn;
	/* the checksums that the card computes of a frame in place, and what its entry is
	 * begun with */
	uint8_t csum;
	struct wqe_inline in_place;
	/* Blocks, by counters that run on: written, and complete. */
	uint16_t sq_pi;
	uint16_t sq_ci;
	/* the last block where FRAME_BLOCKS in one piece begin, and the number of
	 * blocks in use above which we look for completions */
	uint32_t sq_edge;
	uint32_t sq_busy;
	/* So many blocks of frames in place may follow until one of both is reached, as far
	 * as it was known when the last one was found. */
	int32_t sq_ahead;
	/* of the last frame that asked for a completion, above WISH_IS_SENT */
	uint32_t signaled_at;
	/* The send that brings this to 0 asks for a completion, and it is signal_each
	 * again, by which the queue cannot fill up in between. */
	int32_t to_signal;
	int32_t signal_each;
	uint32_t inline_max;
	struct mlx5_sent *sent;
	uint32_t sent_head;
	uint32_t sent_tail;
	/* the frames of those packets */
	uint32_t sent_frames;

	/* The doorbell belongs to who holds the stack's lock while nobody kicks, and
	 * else to who kicks. */
	_Atomic uint32_t *sq_record;
	uintptr_t bell;	/* the half to be used next */
	uintptr_t bell_half;	/* by which the two differ */
	uint32_t bf_blocks;	/* what an entry may have; 0: no BlueFlame */
	uint16_t rung;	/* sq_pi of the last doorbell */
	/* What is to be kicked: sq_pi, and in the upper half the first block of the
	 * last entry, which is another one. 0: nothing has been left since the last
	 * kick. */
	_Atomic uint32_t written;

	/* sending from the card's memory; under the stack's lock */
	struct dev_mem mem;
	/* taken since a send has asked for a completion because of it */
	uint32_t mem_unasked;

	/* Events read of each queue. The card takes an armed queue for a new one when this
	 * number is another. */
	_Atomic uint32_t event_cnt;
	_Atomic uint32_t tx_event_cnt;
};

static inline struct mlx5_ring *mlx5_ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct mlx5_ring, base.ring);
}

static inline void mlx5_set_record(_Atomic uint32_t *record, uint32_t value)
{
	/* what the card is told of is written before */
	mmio_before_record();
	atomic_store_explicit(record, htobe32(value), memory_order_release);
}

/* -- completions ------------------------------------------------------------------- */

static inline struct mlx5_cqe64 *mlx5_cq_at(const struct mlx5_cq *cq, uint32_t ci)
{
	return (void *)(cq->entries + (size_t)(ci & (cq->size - 1)) * cq->stride);
}

static inline const _Atomic uint32_t *mlx5_cq_word(const struct mlx5_cqe64 *cqe)
{
	return (const void *)((const uint8_t *)cqe + CQE_WORD_AT);
}

/* The last word of an entry. What the rest of the entry says is read after it. */
static inline uint32_t mlx5_cq_load(const _Atomic uint32_t *word)
{
	uint32_t value = atomic_load_explicit(word, memory_order_acquire);

	mmio_after_owner();
	return value;
}

static inline uint32_t mlx5_cq_ci(const struct mlx5_cq *cq)
{
	return atomic_load_explicit(&cq->ci, memory_order_relaxed);
}

static inline void mlx5_cq_advance(struct mlx5_cq *cq)
{
	atomic_store_explicit(&cq->ci, mlx5_cq_ci(cq) + 1, memory_order_relaxed);
}

static inline bool mlx5_cq_next(const struct mlx5_cq *cq, struct mlx5_cqe64 **cqe_out,
			   uint32_t *word_out)
{
	*cqe_out = mlx5_cq_at(cq, mlx5_cq_ci(cq));
	*word_out = mlx5_cq_load(mlx5_cq_word(*cqe_out));
	return cqe_is_new(*word_out, mlx5_cq_ci(cq), cq->size);
}

/* mlx5_ring.c: the next completion raises an event. Events may be read meanwhile. */
void mlx5_cq_arm(struct mlx5_cq *cq, _Atomic uint32_t *event_cnt);

/* mlx5_ring.c: base.busy has changed between two polls. What peek has shown stays. */
void mlx5_busy_changed(struct mlx5_ring *own);

/* The card wrote that a queue has failed. */
void mlx5_note_error(struct mlx5_ring *own, const struct mlx5_cqe64 *cqe,
		     uint32_t word);

/* -- mlx5_tx.c: ops of the ring, and its sending half's life --------------------------- */

int mlx5_tx(struct ring *ring, const struct ring_tx *tx) MUST_CHECK;
void mlx5_tx_commit(struct ring *ring, size_t len);
void mlx5_tx_follow(struct ring *ring, struct pkt *record);
bool mlx5_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied);
bool mlx5_tx_is_done(struct ring *ring);
void mlx5_reap(struct ring *ring);
/* Looks for completions of frames that are followed. */
void mlx5_tx_look(struct mlx5_ring *own);
enum ring_kick mlx5_kick(struct ring *ring);

/* When the queue is known. */
void mlx5_tx_start(struct mlx5_ring *own);
/* Gives back what the card was to send, which it no longer reads. */
void mlx5_tx_end(struct mlx5_ring *own);

#endif
