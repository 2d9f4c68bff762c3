/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands that come through write(); see cmd.h. */
#include "config.h"

#include "cmd.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "card.h"
#include "check.h"

struct handler {
	const char *name;
	cmd_fn *fn;
	size_t in_size;   /* of the core structure */
	size_t out_size;  /* of the core response; 0: the structure has no
			     pointer to one */
};

/* Sizes by the structures of the kernel's header. */
#define PLAIN(fn, in) { #fn, cmd_##fn, sizeof(struct ib_uverbs_##in), 0 }
#define REPLYING(fn, in)                                                 \
	{                                                                \
		#fn, cmd_##fn, sizeof(struct ib_uverbs_##in),            \
			sizeof(struct ib_uverbs_##in##_resp)             \
	}

static const struct handler handlers[] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] = REPLYING(get_context, get_context),
	[IB_USER_VERBS_CMD_QUERY_DEVICE] = REPLYING(query_device, query_device),
	[IB_USER_VERBS_CMD_QUERY_PORT] = REPLYING(query_port, query_port),
	[IB_USER_VERBS_CMD_ALLOC_PD] = REPLYING(alloc_pd, alloc_pd),
	[IB_USER_VERBS_CMD_DEALLOC_PD] = PLAIN(dealloc_pd, dealloc_pd),
	[IB_USER_VERBS_CMD_REG_MR] = REPLYING(reg_mr, reg_mr),
	[IB_USER_VERBS_CMD_DEREG_MR] = PLAIN(dereg_mr, dereg_mr),
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] =
		REPLYING(create_comp_channel, create_comp_channel),
	[IB_USER_VERBS_CMD_CREATE_CQ] = REPLYING(create_cq, create_cq),
	[IB_USER_VERBS_CMD_DESTROY_CQ] = REPLYING(destroy_cq, destroy_cq),
	[IB_USER_VERBS_CMD_CREATE_QP] = REPLYING(create_qp, create_qp),
	[IB_USER_VERBS_CMD_QUERY_QP] = REPLYING(query_qp, query_qp),
	[IB_USER_VERBS_CMD_MODIFY_QP] = PLAIN(modify_qp, modify_qp),
	[IB_USER_VERBS_CMD_DESTROY_QP] = REPLYING(destroy_qp, destroy_qp),
};

#undef PLAIN
#undef REPLYING

/* The extended form: the response is in the envelope. */
#define EX(fn, in, out) { #fn, cmd_##fn, sizeof(in), out }

static const struct handler ex_handlers[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] =
		EX(query_device_ex, struct ib_uverbs_ex_query_device,
		   sizeof(struct ib_uverbs_query_device_resp)),
	[IB_USER_VERBS_EX_CMD_CREATE_CQ] =
		EX(create_cq_ex, struct ib_uverbs_ex_create_cq,
		   sizeof(struct ib_uverbs_ex_create_cq_resp)),
	[IB_USER_VERBS_EX_CMD_CREATE_QP] =
		EX(create_qp_ex, struct ib_uverbs_ex_create_qp,
		   sizeof(struct ib_uverbs_ex_create_qp_resp)),
	[IB_USER_VERBS_EX_CMD_MODIFY_QP] =
		EX(modify_qp_ex, struct ib_uverbs_ex_modify_qp, 0),
	[IB_USER_VERBS_EX_CMD_CREATE_FLOW] =
		EX(create_flow, struct ib_uverbs_create_flow,
		   sizeof(struct ib_uverbs_create_flow_resp)),
	[IB_USER_VERBS_EX_CMD_DESTROY_FLOW] =
		EX(destroy_flow, struct ib_uverbs_destroy_flow, 0),
	[IB_USER_VERBS_EX_CMD_MODIFY_CQ] =
		EX(modify_cq, struct ib_uverbs_ex_modify_cq, 0),
};

#undef EX

static const struct handler *find(const struct handler *table, size_t n,
				  uint32_t number)
{
	return number < n && table[number].fn ? &table[number] : NULL;
}

static void reply(void *to, size_t room, const void *from, size_t len)
{
	if (to)
		memcpy(to, from, MIN(room, len));
}

void cmd_reply(const struct cmd *cmd, const void *from, size_t len)
{
	reply(cmd->out, cmd->out_len, from, len);
}

void cmd_reply_drv(const struct cmd *cmd, const void *from, size_t len)
{
	reply(cmd->drv_out, cmd->drv_out_len, from, len);
}

void cmd_take_drv(const struct cmd *cmd, void *request, size_t size)
{
	memset(request, 0, size);
	if (cmd->drv_in)
		memcpy(request, cmd->drv_in, MIN(size, cmd->drv_in_len));
}

/* The core structure begins with a pointer to the response, behind which lies
 * the provider's. Their sizes are in words of 4 bytes, this header included. */
static int unpack(struct cmd *cmd, const struct handler *handler,
		  const uint8_t *buf, const struct ib_uverbs_cmd_hdr *hdr,
		  size_t len)
{
	size_t in_len = hdr->in_words * 4u, out_len = hdr->out_words * 4u;
	uint64_t response;

	if (in_len != len || in_len < sizeof(*hdr) + handler->in_size ||
	    out_len < handler->out_size)
		return -EINVAL;
	cmd->in = buf + sizeof(*hdr);
	cmd->in_len = handler->in_size;
	cmd->drv_in = buf + sizeof(*hdr) + handler->in_size;
	cmd->drv_in_len = in_len - sizeof(*hdr) - handler->in_size;
	if (!handler->out_size)
		return 0;
	memcpy(&response, cmd->in, sizeof(response));
	cmd->out = (void *)(uintptr_t)response;
	cmd->out_len = handler->out_size;
	cmd->drv_out = (uint8_t *)cmd->out + handler->out_size;
	cmd->drv_out_len = out_len - handler->out_size;
	return cmd->out ? 0 : -EFAULT;
}

/* Words of 8 bytes, headers not included. */
static int unpack_ex(struct cmd *cmd, const struct handler *handler,
		     const uint8_t *buf, const struct ib_uverbs_cmd_hdr *hdr,
		     size_t len)
{
	const size_t headers = sizeof(*hdr) +
			       sizeof(struct ib_uverbs_ex_cmd_hdr);
	struct ib_uverbs_ex_cmd_hdr ex;

	if (len < headers)
		return -EINVAL;
	memcpy(&ex, buf + sizeof(*hdr), sizeof(ex));
	cmd->in = buf + headers;
	cmd->in_len = hdr->in_words * 8u;
	cmd->drv_in = buf + headers + cmd->in_len;
	cmd->drv_in_len = ex.provider_in_words * 8u;
	cmd->out = (void *)(uintptr_t)ex.response;
	cmd->out_len = hdr->out_words * 8u;
	cmd->drv_out = cmd->out ? (uint8_t *)cmd->out + cmd->out_len : NULL;
	cmd->drv_out_len = ex.provider_out_words * 8u;
	if (len != headers + cmd->in_len + cmd->drv_in_len ||
	    cmd->in_len < handler->in_size || cmd->out_len < handler->out_size)
		return -EINVAL;
	return !cmd->out && (cmd->out_len || cmd->drv_out_len) ? -EFAULT : 0;
}

static void trace(const char *name, uint32_t number, bool is_ex, int ret)
{
	if (the_card->conf.is_traced)
		check_say("command %s%u %s: %s", is_ex ? "ex " : "", number,
			  name, ret ? strerror(-ret) : "ok");
}

ssize_t cmd_write(struct ctx *ctx, const void *buf, size_t len)
{
	struct cmd cmd = { .ctx = ctx };
	const struct handler *handler;
	struct ib_uverbs_cmd_hdr hdr;
	uint32_t number;
	bool is_ex;
	int ret;

	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	number = hdr.command & IB_USER_VERBS_CMD_COMMAND_MASK;
	is_ex = hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	handler = is_ex ? find(ex_handlers, ARRAY_LEN(ex_handlers), number) :
			  find(handlers, ARRAY_LEN(handlers), number);
	if (!handler) {
		trace("(unknown)", number, is_ex, -EOPNOTSUPP);
		return -EOPNOTSUPP;
	}
	ret = is_ex ? unpack_ex(&cmd, handler, buf, &hdr, len) :
		      unpack(&cmd, handler, buf, &hdr, len);
	if (!ret)
		ret = ctx->dev->is_removed ? -EIO : handler->fn(&cmd);
	trace(handler->name, number, is_ex, ret);
	return ret ? ret : (ssize_t)len;
}
