/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands about memory, event channels and completion queues. See cmd.h. */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "card.h"
#include "cmd.h"
#include "cq.h"
#include "ctx.h"
#include "files.h"
#include "mr.h"
#include "uverbs.h"

int cmd_alloc_pd(const struct cmd *cmd)
{
	struct pd *pd = calloc(1, sizeof(*pd));
	struct ib_uverbs_alloc_pd_resp resp;
	struct mlx5_ib_alloc_pd_resp drv;
	int ret;

	if (!pd)
		return -ENOMEM;
	ret = obj_add(cmd->ctx, &pd->obj, OBJ_PD);
	if (ret) {
		free(pd);
		return ret;
	}
	resp.pd_handle = pd->obj.handle;
	drv.pdn = pd->pdn = pd->obj.handle;
	cmd_reply(cmd, &resp, sizeof(resp));
	cmd_reply_drv(cmd, &drv, sizeof(drv));
	return 0;
}

int cmd_dealloc_pd(const struct cmd *cmd)
{
	const struct ib_uverbs_dealloc_pd *req = cmd->in;
	struct obj *obj = obj_get(cmd->ctx, req->pd_handle, OBJ_PD);

	if (!obj)
		return -EINVAL;
	if (obj->n_users)
		return -EBUSY;
	obj_remove(cmd->ctx, obj);
	free(obj);
	return 0;
}

int cmd_reg_mr(const struct cmd *cmd)
{
	const struct ib_uverbs_reg_mr *req = cmd->in;
	struct mr params = {
		.pd = (struct pd *)obj_get(cmd->ctx, req->pd_handle, OBJ_PD),
		.start = req->start,
		.length = req->length,
		.iova = req->hca_va,
		.access = req->access_flags,
	};
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct mr *mr;
	int ret;

	if (!params.pd || !req->length ||
	    req->start + req->length < req->start)
		return -EINVAL;
	/* Remote rights make sense only to who may write himself. */
	if (req->access_flags & (IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(req->access_flags & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if ((req->start ^ req->hca_va) & 4095)
		return -EINVAL;
	ret = mr_create(cmd->ctx, &params, &mr);
	if (ret)
		return ret;
	resp.mr_handle = mr->obj.handle;
	resp.lkey = resp.rkey = mr->lkey;
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_dereg_mr(const struct cmd *cmd)
{
	const struct ib_uverbs_dereg_mr *req = cmd->in;
	struct obj *obj = obj_get(cmd->ctx, req->mr_handle, OBJ_MR);

	if (!obj)
		return -EINVAL;
	mr_destroy((struct mr *)obj);
	return 0;
}

int cmd_create_comp_channel(const struct cmd *cmd)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	int fd, ret = ctx_create_chan(cmd->ctx, &fd);

	if (ret)
		return ret;
	ret = uverbs_add_chan(cmd->ctx, fd);
	if (ret)
		return ret;
	resp.fd = (uint32_t)fd;
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

static uint32_t round_up(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* Checks what both forms of the command say, and fills in the parameters. */
static int cq_params(const struct cmd *cmd, uint32_t cqe, uint32_t vector,
		     int32_t channel, struct cq_params *params)
{
	struct mlx5_ib_create_cq drv;

	cmd_take_drv(cmd, &drv, sizeof(drv));
	if (!cqe || cqe >= CQ_MAX_ENTRIES || vector >= 4)
		return -EINVAL;
	if (!drv.buf_addr || !drv.db_addr ||
	    (drv.cqe_size != 64 && drv.cqe_size != 128))
		return -EINVAL;
	/* There is no hash of frames: it is zero, as in other completions. */
	if (drv.cqe_comp_en &&
	    (drv.cqe_comp_en != 1 || drv.cqe_size != 64 ||
	     drv.cqe_comp_res_format != MLX5_IB_CQE_RES_FORMAT_HASH))
		return -EOPNOTSUPP;
	if (drv.flags & ~MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
		return -EOPNOTSUPP;
	params->buf = (void *)(uintptr_t)drv.buf_addr;
	params->dbrec = (void *)(uintptr_t)drv.db_addr;
	params->cqe_size = drv.cqe_size;
	params->is_compressing = drv.cqe_comp_en;
	params->n_cqes = round_up(cqe + 1);
	params->uar = idtab_get(&cmd->ctx->uars, drv.uar_page_index);
	params->chan = NULL;
	if (!params->uar)
		return -EINVAL;
	if (channel < 0)
		return 0;
	params->chan = uverbs_find_chan(cmd->ctx, channel);
	return params->chan ? 0 : -EINVAL;
}

static int create_cq(const struct cmd *cmd, struct cq_params *params,
		     struct ib_uverbs_create_cq_resp *resp)
{
	struct mlx5_ib_create_cq_resp drv = { 0 };
	struct cq *cq;
	int ret = cq_create(cmd->ctx, params, &cq);

	if (ret)
		return ret;
	resp->cq_handle = cq->obj.handle;
	resp->cqe = params->n_cqes - 1;
	drv.cqn = cq->cqn;
	cmd_reply_drv(cmd, &drv, sizeof(drv));
	return 0;
}

int cmd_create_cq(const struct cmd *cmd)
{
	const struct ib_uverbs_create_cq *req = cmd->in;
	struct cq_params params = { .user_handle = req->user_handle };
	struct ib_uverbs_create_cq_resp resp;
	int ret = cq_params(cmd, req->cqe, req->comp_vector, req->comp_channel,
			    &params);

	if (!ret)
		ret = create_cq(cmd, &params, &resp);
	if (!ret)
		cmd_reply(cmd, &resp, sizeof(resp));
	return ret;
}

int cmd_create_cq_ex(const struct cmd *cmd)
{
	const struct ib_uverbs_ex_create_cq *req = cmd->in;
	struct cq_params params = { .user_handle = req->user_handle };
	struct ib_uverbs_ex_create_cq_resp resp = {
		.response_length = sizeof(resp),
	};
	int ret;

	if (req->comp_mask)
		return -EINVAL;
	/* Every completion has a time stamp. */
	if (req->flags & ~(uint32_t)IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	ret = cq_params(cmd, req->cqe, req->comp_vector, req->comp_channel,
			&params);
	if (!ret)
		ret = create_cq(cmd, &params, &resp.base);
	if (!ret)
		cmd_reply(cmd, &resp, sizeof(resp));
	return ret;
}

int cmd_destroy_cq(const struct cmd *cmd)
{
	const struct ib_uverbs_destroy_cq *req = cmd->in;
	struct obj *obj = obj_get(cmd->ctx, req->cq_handle, OBJ_CQ);
	struct ib_uverbs_destroy_cq_resp resp;

	if (!obj)
		return -EINVAL;
	if (obj->n_users)
		return -EBUSY;
	ctx_take_doorbells(cmd->ctx);
	cq_destroy((struct cq *)obj, &resp.comp_events_reported,
		   &resp.async_events_reported);
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_modify_cq(const struct cmd *cmd)
{
	const struct ib_uverbs_ex_modify_cq *req = cmd->in;
	struct cq *cq = (struct cq *)obj_get(cmd->ctx, req->cq_handle, OBJ_CQ);

	if (!cq)
		return -EINVAL;
	if (req->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return -EOPNOTSUPP;
	cq->moderate_cnt = req->attr.cq_count;
	cq->moderate_us = req->attr.cq_period;
	cmd->ctx->dev->stats.moderations++;
	return 0;
}
