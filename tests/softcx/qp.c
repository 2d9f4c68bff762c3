/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queue pairs; see qp.h. */
#include "config.h"

#include "qp.h"

#include <stdlib.h>

#include "card.h"
#include "check.h"
#include "cq.h"
#include "ctx.h"
#include "dma.h"
#include "uar.h"

static void take_references(struct qp *qp, int by)
{
	qp->pd->obj.n_users += (unsigned int)by;
	qp->sq.cq->obj.n_users += (unsigned int)by;
	qp->rq.cq->obj.n_users += (unsigned int)by;
	if (qp->uar)
		qp->uar->obj.n_users += (unsigned int)by;
}

static void unpin(struct qp *qp)
{
	umem_unpin(&qp->rq_umem);
	umem_unpin(&qp->sq_umem);
	umem_unpin(&qp->dbrec_umem);
}

static int pin(struct qp *qp)
{
	int ret = umem_pin(&qp->dbrec_umem, qp->dbrec, 2 * sizeof(*qp->dbrec),
			   true);

	if (!ret && qp->sq.n_bbs)
		ret = umem_pin(&qp->sq_umem, qp->sq.buf,
			       (uint64_t)qp->sq.n_bbs * MLX5_SEND_WQE_BB,
			       false);
	if (!ret && qp->rq.n_entries)
		ret = umem_pin(&qp->rq_umem, qp->rq.buf,
			       (uint64_t)qp->rq.n_entries * qp->rq.stride,
			       false);
	if (ret)
		unpin(qp);
	return ret;
}

int qp_create(struct ctx *ctx, const struct qp *params, struct qp **qp_out)
{
	struct qp *qp = malloc(sizeof(*qp));
	int ret = -ENOMEM;

	if (!qp)
		return ret;
	*qp = *params;
	qp->ctx = ctx;
	qp->state = IBV_QPS_RESET;
	qp->sq.bf = -1;
	list_init(&qp->uar_link);
	ret = pin(qp);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	if (idtab_add(&ctx->dev->qps, qp, &qp->qpn))
		goto err_unpin;
	ret = obj_add(ctx, &qp->obj, OBJ_QP);
	if (ret)
		goto err_number;
	if (qp->uar)
		list_push_back(&qp->uar->qps, &qp->uar_link);
	take_references(qp, 1);
	*qp_out = qp;
	return 0;

err_number:
	idtab_remove(&ctx->dev->qps, qp->qpn);
err_unpin:
	unpin(qp);
err_free:
	free(qp);
	return ret;
}

static void forget_completions(struct qp *qp)
{
	cq_forget_qp(qp->sq.cq, qp->uidx);
	cq_forget_qp(qp->rq.cq, qp->uidx);
}

void qp_destroy(struct qp *qp, uint32_t *n_async_events_out)
{
	struct ctx *ctx = qp->ctx;

	*n_async_events_out = qp->n_async_events -
			      ctx_withdraw_async(ctx, qp->user_handle);
	forget_completions(qp);
	list_remove(&qp->uar_link);
	take_references(qp, -1);
	unpin(qp);
	idtab_remove(&ctx->dev->qps, qp->qpn);
	obj_remove(ctx, &qp->obj);
	free(qp);
}

static void reset(struct qp *qp)
{
	forget_completions(qp);
	qp->sq.ci = 0;
	qp->sq.target = 0;
	qp->sq.ready_ns = 0;
	qp->rq.ci = 0;
	qp->state = IBV_QPS_RESET;
}

int qp_set_state(struct qp *qp, enum ibv_qp_state state)
{
	static const enum ibv_qp_state from[] = {
		[IBV_QPS_INIT] = IBV_QPS_RESET,
		[IBV_QPS_RTR] = IBV_QPS_INIT,
		[IBV_QPS_RTS] = IBV_QPS_RTR,
	};

	if (state == IBV_QPS_RESET) {
		reset(qp);
		return 0;
	}
	if (state == IBV_QPS_ERR) {
		if (qp->state == IBV_QPS_RESET)
			return -EINVAL;
		qp_stop(qp);
		return 0;
	}
	if (state > IBV_QPS_RTS)
		return -EOPNOTSUPP;
	/* Staying in a state is how its attributes are changed. */
	if (state == qp->state && state != IBV_QPS_RTR)
		return 0;
	if (from[state] != qp->state)
		return -EINVAL;
	qp->state = state;
	return 0;
}

void qp_stop(struct qp *qp)
{
	qp->state = IBV_QPS_ERR;
}

void qp_fail(struct qp *qp)
{
	qp_stop(qp);
	if (ctx_raise_async(qp->ctx, IBV_EVENT_QP_FATAL, qp->user_handle))
		qp->n_async_events++;
}

void qp_post_error(struct qp *qp, bool is_send, uint16_t index, uint8_t opcode,
		   uint8_t syndrome)
{
	union {
		struct mlx5_cqe64 cqe;
		struct mlx5_err_cqe err;
	} u = { 0 };

	u.cqe.srqn_uidx = htobe32(qp->uidx);
	u.err.syndrome = syndrome;
	u.err.s_wqe_opcode_qpn = htobe32((uint32_t)opcode << 24 | qp->qpn);
	u.err.wqe_counter = htobe16(index);
	u.err.op_own = (uint8_t)((is_send ? MLX5_CQE_REQ_ERR :
				  MLX5_CQE_RESP_ERR) << 4);
	cq_post(is_send ? qp->sq.cq : qp->rq.cq, &u.cqe);
}

/* Entries are flushed whether or not they asked for a completion. */
static int flush_sq(struct qp *qp)
{
	struct sq *sq = &qp->sq;
	uint16_t end = (uint16_t)dma_record_read(&qp->dbrec[QP_RECORD_SQ]);
	int n = 0;

	while (sq->n_bbs && sq->ci != end && cq_has_room(sq->cq)) {
		uint8_t *at = sq->buf + (size_t)(sq->ci & (sq->n_bbs - 1)) *
						MLX5_SEND_WQE_BB;
		struct mlx5_wqe_ctrl_seg ctrl;
		uint32_t ds, n_bbs;

		dma_copy(&ctrl, at, sizeof(ctrl));
		ds = be32toh(ctrl.qpn_ds) & 0x3f;
		n_bbs = MAX(1u, (ds + 3) / 4);
		qp_post_error(qp, true, sq->ci,
			      (uint8_t)be32toh(ctrl.opmod_idx_opcode),
			      MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		sq->ci = (uint16_t)(sq->ci +
				    MIN(n_bbs, (uint32_t)(uint16_t)(end -
								    sq->ci)));
		n++;
	}
	sq->target = sq->ci;
	return n;
}

static int flush_rq(struct qp *qp)
{
	struct rq *rq = &qp->rq;
	uint16_t end = (uint16_t)dma_record_read(&qp->dbrec[QP_RECORD_RQ]);
	int n = 0;

	while (rq->n_entries && rq->ci != end && cq_has_room(rq->cq)) {
		qp_post_error(qp, false, rq->ci, 0,
			      MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		rq->ci++;
		n++;
	}
	return n;
}

int qp_flush(struct qp *qp)
{
	int n = flush_sq(qp) + flush_rq(qp);

	qp->ctx->dev->stats.flushed += (uint64_t)n;
	return n;
}
