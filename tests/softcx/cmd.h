/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands of the uverbs interface. cmd.c takes the envelope apart (write() with
 * its two headers, and ioctl() with attributes), the handlers do the rest.
 * Program and card share their memory, so what a command points to is there; it
 * is still checked for size.
 */
#ifndef SOFTCX_CMD_H
#define SOFTCX_CMD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

struct ctx;

/* One command that came through write(). */
struct cmd {
	struct ctx *ctx;
	const void *in;         /* core structure, at least of the size the
				   table says */
	size_t in_len;
	void *out;              /* core response, or NULL */
	size_t out_len;
	const void *drv_in;     /* of the provider, libmlx5 */
	size_t drv_in_len;
	void *drv_out;
	size_t drv_out_len;
};

/* Responses are cut to what the program has room for. */
void cmd_reply(const struct cmd *cmd, const void *reply, size_t len);
void cmd_reply_drv(const struct cmd *cmd, const void *reply, size_t len);
/* The provider's part of a request; what it is too short for is zero. */
void cmd_take_drv(const struct cmd *cmd, void *request, size_t size);

typedef int cmd_fn(const struct cmd *cmd);

/* cmd_query.c */
cmd_fn cmd_get_context, cmd_query_device, cmd_query_device_ex, cmd_query_port;
/* cmd_cq.c: protection domains, regions, channels, completion queues */
cmd_fn cmd_alloc_pd, cmd_dealloc_pd, cmd_reg_mr, cmd_dereg_mr;
cmd_fn cmd_create_comp_channel, cmd_create_cq, cmd_create_cq_ex, cmd_destroy_cq;
cmd_fn cmd_modify_cq;
/* cmd_qp.c: queue pairs, flow rules */
cmd_fn cmd_create_qp, cmd_create_qp_ex, cmd_modify_qp, cmd_modify_qp_ex;
cmd_fn cmd_query_qp, cmd_destroy_qp, cmd_create_flow, cmd_destroy_flow;

/* Under the card's lock. The bytes taken, or negative errno. */
ssize_t cmd_write(struct ctx *ctx, const void *buf, size_t len);
int cmd_ioctl(struct ctx *ctx, unsigned long request, void *arg);

#endif
