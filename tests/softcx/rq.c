/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Receive queues: frames into posted entries; see qp.h. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "card.h"
#include "check.h"
#include "cq.h"
#include "dma.h"
#include "mr.h"
#include "qp.h"

/* What a completion says of the transport header. */
enum {
	CQE_L4_TCP_NO_ACK = 1,
	CQE_L4_UDP = 2,
	CQE_L4_TCP_ACK_NO_DATA = 3,
	CQE_L4_TCP_ACK_AND_DATA = 4,
	CQE_VLAN_STRIPPED = 1,
	TCP_ACK = 0x10,
};

/* Whether an entry is posted. */
static bool has_entry(struct qp *qp)
{
	struct rq *rq = &qp->rq;
	uint16_t posted = (uint16_t)dma_record_read(&qp->dbrec[QP_RECORD_RQ]);
	uint16_t n = (uint16_t)(posted - rq->ci);

	if (n > rq->n_entries) {
		check_violation("rq-overrun",
				"queue pair %#x: %u receive entries posted in "
				"a ring of %u",
				qp->qpn, n, rq->n_entries);
		return false;
	}
	if (posted != rq->posted)
		qp->ctx->dev->stats.rx_refills++;
	rq->posted = posted;
	return n > 0;
}

/* A copy of the entry's scatter list. Returns the number of its segments. */
static unsigned int read_entry(const struct rq *rq,
			       struct mlx5_wqe_data_seg segs[QP_MAX_SGE + 2])
{
	unsigned int n = MIN(rq->stride / (uint32_t)sizeof(*segs),
			     (uint32_t)QP_MAX_SGE + 2);

	dma_copy(segs,
		 rq->buf + (size_t)(rq->ci & (rq->n_entries - 1)) * rq->stride,
		 n * sizeof(*segs));
	return n;
}

/* 0, or the syndrome of the error completion. */
static uint8_t scatter(struct qp *qp, const uint8_t *frame, size_t len)
{
	struct mlx5_wqe_data_seg segs[QP_MAX_SGE + 2];
	unsigned int n = read_entry(&qp->rq, segs);

	for (unsigned int i = 0; i < n && len; i++) {
		size_t room = be32toh(segs[i].byte_count) & 0x7fffffff;
		struct mr_use use = {
			.dev = qp->ctx->dev,
			.pd = qp->pd,
			.lkey = be32toh(segs[i].lkey),
			.addr = be64toh(segs[i].addr),
			.len = (uint32_t)MIN(room, len),
			.user = "a receive entry",
		};

		if (use.lkey == MLX5_INVALID_LKEY)
			break;
		if (!use.len)
			continue;
		if (!mr_write(&use, frame))
			return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
		frame += use.len;
		len -= use.len;
	}
	return len ? MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR : 0;
}

static uint8_t l4_type(const uint8_t *frame, const struct frame_info *info)
{
	const uint8_t *tcp = frame + info->l4_offset;
	size_t header;

	if (info->key.l4 == FRAME_L4_NONE)
		return 0;
	if (info->key.l4 == FRAME_L4_UDP)
		return CQE_L4_UDP;
	if (!(tcp[13] & TCP_ACK))
		return CQE_L4_TCP_NO_ACK;
	header = (size_t)(tcp[12] >> 4) * 4;
	return info->l4_offset + header < info->ip_end ?
		       CQE_L4_TCP_ACK_AND_DATA : CQE_L4_TCP_ACK_NO_DATA;
}

static void describe(struct mlx5_cqe64 *cqe, const uint8_t *frame,
		     const struct frame_info *info)
{
	uint8_t l3 = info->key.l3 == FRAME_L3_IPV4 ? MLX5_CQE_L3_HDR_TYPE_IPV4 :
		     info->key.l3 == FRAME_L3_IPV6 ? MLX5_CQE_L3_HDR_TYPE_IPV6 :
						     0;

	cqe->hds_ip_ext = MLX5_CQE_L2_OK;
	if (frame_l3_is_ok(frame, info))
		cqe->hds_ip_ext |= MLX5_CQE_L3_OK;
	if (frame_l4_is_ok(frame, info))
		cqe->hds_ip_ext |= MLX5_CQE_L4_OK;
	cqe->l4_hdr_type_etc =
		(uint8_t)(l4_type(frame, info) << 4 | l3 << 2);
}

/* Takes the tag out, in a copy, and says so. */
static size_t strip_vlan(uint8_t *stripped, const uint8_t *frame, size_t len,
			 struct mlx5_cqe64 *cqe)
{
	memcpy(stripped, frame, 12);
	memcpy(stripped + 12, frame + 16, len - 16);
	memcpy(&cqe->vlan_info, frame + 14, 2);
	cqe->l4_hdr_type_etc |= CQE_VLAN_STRIPPED;
	return len - FRAME_VLAN_LEN;
}

static void fill(struct qp *qp, const uint8_t *frame, size_t len,
		 struct mlx5_cqe64 *cqe)
{
	struct dev *dev = qp->ctx->dev;
	uint16_t index = qp->rq.ci;
	uint8_t syndrome = scatter(qp, frame, len);

	qp->rq.ci++;
	if (syndrome) {
		dev->stats.rx_bad_entry++;
		qp_post_error(qp, false, index, 0, syndrome);
		qp_stop(qp);
		return;
	}
	cqe->wqe_counter = htobe16(index);
	cqe->byte_cnt = htobe32((uint32_t)len);
	dev->stats.rx_delivered++;
	cq_post(qp->rq.cq, cqe);
}

void rq_receive(struct qp *qp, const uint8_t *frame, size_t len,
		const struct frame_info *info, uint32_t tag)
{
	static uint8_t stripped[FRAME_MAX_LEN + FRAME_VLAN_LEN];
	struct dev *dev = qp->ctx->dev;
	struct mlx5_cqe64 cqe = {
		.srqn_uidx = htobe32(qp->uidx),
		.sop_drop_qpn = htobe32(tag & 0xffffff),
		.op_own = MLX5_CQE_RESP_SEND << 4,
	};

	if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) {
		dev->stats.rx_not_ready++;
		return;
	}
	if (!qp->rq.n_entries || !has_entry(qp)) {
		dev->stats.rx_no_buffer++;
		return;
	}
	describe(&cqe, frame, info);
	if (qp->strips_vlan && info->key.has_vlan) {
		len = strip_vlan(stripped, frame, len, &cqe);
		frame = stripped;
	}
	fill(qp, frame, len, &cqe);
}
