/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands about queue pairs and flow rules. See cmd.h. */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

#include "base/clock.h"
#include "card.h"
#include "check.h"
#include "cmd.h"
#include "cq.h"
#include "ctx.h"
#include "qp.h"
#include "steer.h"
#include "uar.h"

/* The request of either form in the extended one's terms. */
typedef struct ib_uverbs_ex_create_qp create_request;

enum { RECV_STRIDE_MIN = 16, RECV_STRIDE_MAX_SHIFT = 9 };

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static int check_drv(const struct mlx5_ib_create_qp *drv)
{
	const uint32_t known = MLX5_QP_FLAG_BFREG_INDEX |
			       MLX5_QP_FLAG_UAR_PAGE_INDEX |
			       MLX5_QP_FLAG_SCATTER_CQE |
			       MLX5_QP_FLAG_ALLOW_SCATTER_CQE;

	if (drv->flags & ~known)
		return -EOPNOTSUPP;
	if (!drv->db_addr)
		return -EINVAL;
	if (drv->sq_wqe_count &&
	    (!drv->sq_buf_addr || !is_power_of_two(drv->sq_wqe_count) ||
	     drv->sq_wqe_count > QP_MAX_SEND_BBS))
		return -EINVAL;
	if (drv->rq_wqe_count &&
	    (!drv->buf_addr || !is_power_of_two(drv->rq_wqe_count) ||
	     drv->rq_wqe_count > QP_MAX_RECV_WRS ||
	     1u << drv->rq_wqe_shift < RECV_STRIDE_MIN ||
	     drv->rq_wqe_shift > RECV_STRIDE_MAX_SHIFT))
		return -EINVAL;
	return 0;
}

static int find_objects(struct ctx *ctx, const create_request *req,
			const struct mlx5_ib_create_qp *drv, struct qp *qp)
{
	qp->pd = (struct pd *)obj_get(ctx, req->pd_handle, OBJ_PD);
	qp->sq.cq = (struct cq *)obj_get(ctx, req->send_cq_handle, OBJ_CQ);
	qp->rq.cq = (struct cq *)obj_get(ctx, req->recv_cq_handle, OBJ_CQ);
	if (drv->sq_wqe_count) {
		qp->uar = idtab_get(&ctx->uars, drv->bfreg_index);
		if (!qp->uar)
			return -EINVAL;
	}
	return qp->pd && qp->sq.cq && qp->rq.cq ? 0 : -EINVAL;
}

static void set_caps(const create_request *req, struct qp *qp)
{
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = req->max_send_wr,
		.max_recv_wr = qp->rq.n_entries ?
				       MAX(req->max_recv_wr, qp->rq.n_entries) :
				       0,
		.max_send_sge = req->max_send_sge,
		.max_recv_sge = req->max_recv_sge,
		.max_inline_data = req->max_inline_data,
	};
}

static int create_qp(const struct cmd *cmd, const create_request *req,
		     struct ib_uverbs_create_qp_resp *resp)
{
	struct mlx5_ib_create_qp_resp drv_resp = { 0 };
	struct mlx5_ib_create_qp drv;
	struct qp params = { 0 }, *qp;
	int ret;

	cmd_take_drv(cmd, &drv, sizeof(drv));
	if (req->qp_type != IBV_QPT_RAW_PACKET || req->is_srq ||
	    req->comp_mask || req->source_qpn ||
	    req->create_flags & ~(uint32_t)IBV_QP_CREATE_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	ret = check_drv(&drv);
	if (!ret)
		ret = find_objects(cmd->ctx, req, &drv, &params);
	if (ret)
		return ret;
	params.uidx = drv.uidx;
	params.user_handle = req->user_handle;
	params.dbrec = (void *)(uintptr_t)drv.db_addr;
	params.sq.buf = (void *)(uintptr_t)drv.sq_buf_addr;
	params.sq.n_bbs = drv.sq_wqe_count;
	params.rq.buf = (void *)(uintptr_t)drv.buf_addr;
	params.rq.n_entries = drv.rq_wqe_count;
	params.rq.stride = 1u << drv.rq_wqe_shift;
	params.sq_sig_all = req->sq_sig_all;
	params.strips_vlan = req->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING;
	set_caps(req, &params);
	ret = qp_create(cmd->ctx, &params, &qp);
	if (ret)
		return ret;
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = qp->obj.handle,
		.qpn = qp->qpn,
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline_data = qp->cap.max_inline_data,
	};
	drv_resp.bfreg_index = drv.bfreg_index;
	cmd_reply_drv(cmd, &drv_resp, sizeof(drv_resp));
	return 0;
}

int cmd_create_qp(const struct cmd *cmd)
{
	const struct ib_uverbs_create_qp *plain = cmd->in;
	struct ib_uverbs_create_qp_resp resp;
	create_request req = {
		.user_handle = plain->user_handle,
		.pd_handle = plain->pd_handle,
		.send_cq_handle = plain->send_cq_handle,
		.recv_cq_handle = plain->recv_cq_handle,
		.max_send_wr = plain->max_send_wr,
		.max_recv_wr = plain->max_recv_wr,
		.max_send_sge = plain->max_send_sge,
		.max_recv_sge = plain->max_recv_sge,
		.max_inline_data = plain->max_inline_data,
		.sq_sig_all = plain->sq_sig_all,
		.qp_type = plain->qp_type,
		.is_srq = plain->is_srq,
	};
	int ret = create_qp(cmd, &req, &resp);

	if (!ret)
		cmd_reply(cmd, &resp, sizeof(resp));
	return ret;
}

int cmd_create_qp_ex(const struct cmd *cmd)
{
	struct ib_uverbs_ex_create_qp_resp resp = {
		.response_length = sizeof(resp),
	};
	create_request req;
	int ret;

	memcpy(&req, cmd->in, sizeof(req));
	ret = create_qp(cmd, &req, &resp.base);
	if (!ret)
		cmd_reply(cmd, &resp, sizeof(resp));
	return ret;
}

/* A card is through with what was rung long before a command that stops the
 * queue pair has reached it; ours would be later. Pacing is no reason to drop
 * what a card would have sent by then. In manual mode only steps count. */
static void finish_sends(struct qp *qp)
{
	const uint64_t head_start_ns = 10 * NS_PER_MS;
	struct dev *dev = qp->ctx->dev;

	ctx_take_doorbells(qp->ctx);
	if (the_card->conf.is_manual)
		return;
	while (sq_run(qp, card_now_ns(the_card) + head_start_ns))
		dev_flush_wire(the_card, dev);
}

/* What comes with a rate limit: how many bytes may leave at once, and a hint on
 * the size of frames, which are measured here. */
static int take_burst(const struct cmd *cmd, uint32_t rate_kbps,
		      uint64_t *burst_ns_out)
{
	struct mlx5_ib_modify_qp drv;

	cmd_take_drv(cmd, &drv, sizeof(drv));
	*burst_ns_out = 0;
	if (drv.comp_mask || drv.burst_info.reserved)
		return -EOPNOTSUPP;
	if (!drv.burst_info.max_burst_sz && !drv.burst_info.typical_pkt_sz)
		return 0;
	if (!rate_kbps)
		return -EINVAL;
	*burst_ns_out = drv.burst_info.max_burst_sz * 8 * NS_PER_MS / rate_kbps;
	return 0;
}

/* Raw packet queue pairs have few attributes. */
static int modify(const struct cmd *cmd, const struct ib_uverbs_modify_qp *req,
		  const uint32_t *rate_limit)
{
	const uint32_t known = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PORT |
			       IBV_QP_RATE_LIMIT;
	struct qp *qp = (struct qp *)obj_get(cmd->ctx, req->qp_handle, OBJ_QP);
	uint64_t burst_ns;
	int ret;

	if (!qp || req->attr_mask & ~known)
		return -EINVAL;
	if (req->attr_mask & IBV_QP_PORT && req->port_num != 1)
		return -EINVAL;
	if (req->attr_mask & IBV_QP_CUR_STATE &&
	    req->cur_qp_state != (uint8_t)qp->state)
		return -EINVAL;
	if (req->attr_mask & IBV_QP_RATE_LIMIT) {
		if (!rate_limit)
			return -EINVAL;
		ret = take_burst(cmd, *rate_limit, &burst_ns);
		if (ret)
			return ret;
		qp->burst_ns = burst_ns;
		qp->rate_kbps = *rate_limit;
		qp->sq.ready_ns = 0;
	}
	if (!(req->attr_mask & IBV_QP_STATE))
		return 0;
	finish_sends(qp);
	return qp_set_state(qp, req->qp_state);
}

int cmd_modify_qp(const struct cmd *cmd)
{
	return modify(cmd, cmd->in, NULL);
}

int cmd_modify_qp_ex(const struct cmd *cmd)
{
	const struct ib_uverbs_ex_modify_qp *req = cmd->in;
	struct ib_uverbs_ex_modify_qp_resp resp = {
		.response_length = sizeof(resp),
	};
	int ret = modify(cmd, &req->base, &req->rate_limit);

	if (!ret)
		cmd_reply(cmd, &resp, sizeof(resp));
	return ret;
}

int cmd_query_qp(const struct cmd *cmd)
{
	const struct ib_uverbs_query_qp *req = cmd->in;
	const struct qp *qp =
		(struct qp *)obj_get(cmd->ctx, req->qp_handle, OBJ_QP);
	struct ib_uverbs_query_qp_resp resp = { 0 };

	if (!qp)
		return -EINVAL;
	resp.max_send_wr = qp->cap.max_send_wr;
	resp.max_recv_wr = qp->cap.max_recv_wr;
	resp.max_send_sge = qp->cap.max_send_sge;
	resp.max_recv_sge = qp->cap.max_recv_sge;
	resp.max_inline_data = qp->cap.max_inline_data;
	resp.qp_state = (uint8_t)qp->state;
	resp.cur_qp_state = (uint8_t)qp->state;
	resp.port_num = 1;
	resp.sq_sig_all = qp->sq_sig_all;
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_destroy_qp(const struct cmd *cmd)
{
	const struct ib_uverbs_destroy_qp *req = cmd->in;
	struct obj *obj = obj_get(cmd->ctx, req->qp_handle, OBJ_QP);
	struct ib_uverbs_destroy_qp_resp resp;

	if (!obj)
		return -EINVAL;
	if (obj->n_users)
		return -EBUSY;
	finish_sends((struct qp *)obj);
	qp_destroy((struct qp *)obj, &resp.events_reported);
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_create_flow(const struct cmd *cmd)
{
	const struct ib_uverbs_create_flow *req = cmd->in;
	struct qp *qp = (struct qp *)obj_get(cmd->ctx, req->qp_handle, OBJ_QP);
	struct ib_uverbs_create_flow_resp resp = { 0 };
	struct rule params, *rule;
	int ret;

	if (!qp || req->comp_mask)
		return -EINVAL;
	ret = rule_parse(&req->flow_attr,
			 cmd->in_len -
				 offsetof(struct ib_uverbs_create_flow,
					  flow_attr),
			 &params);
	if (!ret)
		ret = rule_create(cmd->ctx, qp, &params, &rule);
	if (ret)
		return ret;
	resp.flow_handle = rule->obj.handle;
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_destroy_flow(const struct cmd *cmd)
{
	const struct ib_uverbs_destroy_flow *req = cmd->in;
	struct obj *obj = obj_get(cmd->ctx, req->flow_handle, OBJ_RULE);

	if (!obj || req->comp_mask)
		return -EINVAL;
	rule_end((struct rule *)obj);
	/* Hardware has steered a frame the moment it arrives. */
	dev_drain_wire(the_card, cmd->ctx->dev);
	rule_destroy((struct rule *)obj);
	return 0;
}
