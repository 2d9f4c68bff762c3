/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queues by hand; see direct.h. */
#include "config.h"

#include "direct.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/support/test.h"

enum { HEADER = 18, SEGMENT = 16, INDEX_MASK = 0xffffff };

void direct_init(struct direct *d, struct rig *rig)
{
	struct mlx5dv_obj obj = { 0 };

	memset(d, 0, sizeof(*d));
	obj.qp.in = rig->qp;
	obj.qp.out = &d->qp;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	obj.cq.in = rig->send_cq;
	obj.cq.out = &d->send_cq;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	obj.cq.in = rig->recv_cq;
	obj.cq.out = &d->recv_cq;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	d->qpn = rig->qp->qp_num;
}

static void put_data(struct direct_entry *e, const uint8_t *data, uint32_t len,
		     uint32_t lkey, bool is_inline)
{
	struct mlx5_wqe_data_seg seg;
	uint32_t head;

	if (!len)
		return;
	if (!is_inline) {
		mlx5dv_set_data_seg(&seg, len, lkey, (uintptr_t)data);
		memcpy(e->bytes + e->len, &seg, sizeof(seg));
		e->len += sizeof(seg);
		return;
	}
	head = htobe32(len | MLX5_INLINE_SEG);
	memcpy(e->bytes + e->len, &head, sizeof(head));
	memcpy(e->bytes + e->len + sizeof(head), data, len);
	e->len += ((uint32_t)sizeof(head) + len + SEGMENT - 1) & ~(SEGMENT - 1u);
}

void direct_build(struct direct *d, struct direct_entry *e, const void *frame,
		  uint32_t len, uint32_t lkey, unsigned int flags)
{
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)e->bytes;
	struct mlx5_wqe_eth_seg eth = { 0 };
	const uint8_t *data = frame;

	memset(e->bytes, 0, sizeof(e->bytes));
	e->index = d->sq_pi;
	eth.inline_hdr_sz = htobe16(HEADER);
	if (flags & DIRECT_CSUM)
		eth.cs_flags = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
	memcpy(e->bytes + SEGMENT, &eth, sizeof(eth));
	memcpy(e->bytes + SEGMENT + offsetof(struct mlx5_wqe_eth_seg,
					     inline_hdr_start),
	       data, HEADER);
	e->len = 3 * SEGMENT;
	put_data(e, data + HEADER, len - HEADER, lkey, flags & DIRECT_INLINE);
	mlx5dv_set_ctrl_seg(ctrl, e->index, MLX5_OPCODE_SEND, 0, d->qpn,
			    flags & DIRECT_SIGNALED ? MLX5_WQE_CTRL_CQ_UPDATE :
						      0,
			    (uint8_t)(e->len / SEGMENT), 0, 0);
}

void direct_put(struct direct *d, const struct direct_entry *e)
{
	uint8_t *ring = d->qp.sq.buf;
	uint32_t n_bbs = (e->len + MLX5_SEND_WQE_BB - 1) / MLX5_SEND_WQE_BB;

	for (uint32_t i = 0; i < n_bbs; i++) {
		uint32_t at = (uint16_t)(d->sq_pi + i) & (d->qp.sq.wqe_cnt - 1);

		memcpy(ring + (size_t)at * MLX5_SEND_WQE_BB,
		       e->bytes + (size_t)i * MLX5_SEND_WQE_BB,
		       MLX5_SEND_WQE_BB);
	}
	d->sq_pi = (uint16_t)(d->sq_pi + n_bbs);
}

/* The release pairs with the card's acquire of the record. */
static void set_record(__be32 *record, uint32_t value)
{
	atomic_store_explicit((_Atomic uint32_t *)record, htobe32(value),
			      memory_order_release);
}

void direct_set_record(struct direct *d, uint16_t pi)
{
	set_record(&d->qp.dbrec[MLX5_SND_DBR], pi);
}

/* The first word goes last: it is what the card takes for the doorbell. */
void direct_bell(struct direct *d, const struct direct_entry *e, bool is_bf)
{
	uint8_t *reg = (uint8_t *)d->qp.bf.reg + d->bf_offset;
	uint64_t word;

	if (is_bf && d->qp.bf.size && e->len <= d->qp.bf.size) {
		for (uint32_t i = 8; i < e->len; i += 8) {
			memcpy(&word, e->bytes + i, 8);
			atomic_store_explicit((_Atomic uint64_t *)(reg + i),
					      word, memory_order_relaxed);
		}
	}
	memcpy(&word, e->bytes, 8);
	atomic_store_explicit((_Atomic uint64_t *)reg, word,
			      memory_order_release);
	d->bf_offset ^= d->qp.bf.size;
}

void direct_ring(struct direct *d, const struct direct_entry *e, bool is_bf)
{
	direct_set_record(d, d->sq_pi);
	direct_bell(d, e, is_bf);
}

void direct_post_recv(struct direct *d, const void *at, uint32_t len,
		      uint32_t lkey)
{
	uint8_t *ring = d->qp.rq.buf;
	struct mlx5_wqe_data_seg segs[2];
	size_t slot = (size_t)(d->rq_pi & (d->qp.rq.wqe_cnt - 1)) *
		      d->qp.rq.stride;

	mlx5dv_set_data_seg(&segs[0], len, lkey, (uintptr_t)at);
	mlx5dv_set_data_seg(&segs[1], 0, MLX5_INVALID_LKEY, 0);
	memcpy(ring + slot, segs, MIN(sizeof(segs), (size_t)d->qp.rq.stride));
	set_record(&d->qp.dbrec[MLX5_RCV_DBR], ++d->rq_pi);
}

static bool poll_cq(struct mlx5dv_cq *cq, uint32_t *ci, struct direct_wc *wc)
{
	uint8_t *slot = (uint8_t *)cq->buf +
			(size_t)(*ci & (cq->cqe_cnt - 1)) * cq->cqe_size;
	struct mlx5_cqe64 *cqe = (void *)(slot + cq->cqe_size - 64);
	uint8_t op_own = atomic_load_explicit((_Atomic uint8_t *)&cqe->op_own,
					      memory_order_acquire);

	if (op_own >> 4 == MLX5_CQE_INVALID ||
	    (op_own & MLX5_CQE_OWNER_MASK) != !!(*ci & cq->cqe_cnt))
		return false;
	wc->opcode = op_own >> 4;
	wc->index = be16toh(cqe->wqe_counter);
	wc->len = be32toh(cqe->byte_cnt);
	wc->csum_is_ok = (cqe->hds_ip_ext &
			  (MLX5_CQE_L3_OK | MLX5_CQE_L4_OK)) ==
			 (MLX5_CQE_L3_OK | MLX5_CQE_L4_OK);
	set_record(&cq->dbrec[0], ++*ci & INDEX_MASK);
	return true;
}

bool direct_poll_send(struct direct *d, struct direct_wc *wc)
{
	return poll_cq(&d->send_cq, &d->send_ci, wc);
}

bool direct_poll_recv(struct direct *d, struct direct_wc *wc)
{
	return poll_cq(&d->recv_cq, &d->recv_ci, wc);
}

static void arm(struct mlx5dv_cq *cq, uint32_t ci, uint8_t sn)
{
	uint32_t word = (uint32_t)(sn & 3) << 28 | (ci & INDEX_MASK);
	uint64_t bell = htobe64((uint64_t)word << 32 | cq->cqn);

	set_record(&cq->dbrec[1], word);
	atomic_store_explicit((_Atomic uint64_t *)((uint8_t *)cq->cq_uar +
						   MLX5_CQ_DOORBELL),
			      bell, memory_order_release);
}

void direct_arm(struct direct *d)
{
	arm(&d->send_cq, d->send_ci, d->send_sn);
	arm(&d->recv_cq, d->recv_ci, d->recv_sn);
}
