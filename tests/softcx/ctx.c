/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Contexts; see ctx.h. */
#include "config.h"

#include "ctx.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "card.h"
#include "chan.h"
#include "check.h"
#include "cq.h"
#include "dm.h"
#include "mr.h"
#include "qp.h"
#include "steer.h"
#include "sys.h"
#include "uar.h"

/* libmlx5 says in a page offset what it wants mapped: a command, and an index
 * whose high part lies above the command. */
enum { MMAP_CMD_SHIFT = 8, MMAP_CMD_MASK = 0xff };

static int create_memory(const char *name, size_t size)
{
	int fd = (int)SYS(__NR_memfd_create, name, MFD_CLOEXEC), ret;

	if (fd < 0 || !size)
		return fd;
	ret = (int)SYS(__NR_ftruncate, fd, size);
	if (!ret)
		return fd;
	sys_close(fd);
	return ret;
}

static int open_memory(struct ctx *ctx)
{
	int fd = create_memory("softcx-uar", 0);

	if (fd < 0)
		return fd;
	ctx->uar_fd = fd;
	fd = create_memory("softcx-clock", HCA_CLOCK_PAGES * UAR_PAGE_SIZE);
	if (fd < 0) {
		sys_close(ctx->uar_fd);
		return fd;
	}
	ctx->clock_fd = fd;
	ctx->clock_pages = sys_mmap(NULL, HCA_CLOCK_PAGES * UAR_PAGE_SIZE,
				    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ctx->clock_pages)
		return 0;
	sys_close(ctx->uar_fd);
	sys_close(fd);
	return -ENOMEM;
}

int ctx_create(struct card *card, struct dev *dev, int fd, struct ctx **ctx_out)
{
	struct ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	if (!ctx)
		return -ENOMEM;
	ctx->dev = dev;
	ctx->fd = fd;
	idtab_init(&ctx->handles, 1);
	idtab_init(&ctx->uars, 0);
	list_init(&ctx->uar_list);
	list_init(&ctx->chans);
	ret = open_memory(ctx);
	if (ret)
		goto err_free;
	if (list_is_empty(&dev->ctxs)) {
		ret = card_open_dev_locked(card, dev);
		if (ret)
			goto err_memory;
	}
	list_push_back(&dev->ctxs, &ctx->link);
	ctx_publish_clock(ctx, card_now_ns(card));
	*ctx_out = ctx;
	return 0;

err_memory:
	sys_munmap(ctx->clock_pages, HCA_CLOCK_PAGES * UAR_PAGE_SIZE);
	sys_close(ctx->uar_fd);
	sys_close(ctx->clock_fd);
err_free:
	free(ctx);
	return ret;
}

static void destroy_obj(struct ctx *ctx, struct obj *obj)
{
	uint32_t ignored;

	switch (obj->type) {
	case OBJ_RULE:
		rule_destroy((struct rule *)obj);
		break;
	case OBJ_QP:
		qp_destroy((struct qp *)obj, &ignored);
		break;
	case OBJ_CQ:
		cq_destroy((struct cq *)obj, &ignored, &ignored);
		break;
	case OBJ_MR:
		mr_destroy((struct mr *)obj);
		break;
	case OBJ_DM:
		dm_destroy(ctx, (struct dm *)obj);
		break;
	case OBJ_UAR:
		uar_destroy(ctx, (struct uar *)obj);
		break;
	case OBJ_PD:
		obj_remove(ctx, obj);
		free(obj);
		break;
	case OBJ_N_TYPES:
		break;
	}
}

/* Users before what they use. */
static void destroy_objs(struct ctx *ctx)
{
	static const enum obj_type order[] = {
		OBJ_RULE, OBJ_QP, OBJ_CQ, OBJ_MR, OBJ_DM, OBJ_UAR, OBJ_PD,
	};

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct obj *obj;
		uint32_t handle = 0;

		while ((obj = idtab_next(&ctx->handles, &handle))) {
			if (obj->type == order[i])
				destroy_obj(ctx, obj);
			handle++;
		}
	}
}

void ctx_destroy(struct card *card, struct ctx *ctx)
{
	struct dev *dev = ctx->dev;
	struct chan *chan, *next;

	destroy_objs(ctx);
	LIST_FOR_EACH_SAFE(chan, next, &ctx->chans, link)
		chan_destroy(chan);
	chan_destroy(ctx->async);
	sys_munmap(ctx->clock_pages, HCA_CLOCK_PAGES * UAR_PAGE_SIZE);
	sys_close(ctx->uar_fd);
	sys_close(ctx->clock_fd);
	idtab_free(&ctx->handles);
	idtab_free(&ctx->uars);
	list_remove(&ctx->link);
	free(ctx);
	if (list_is_empty(&dev->ctxs))
		card_close_dev_locked(card, dev);
}

int ctx_open_async(struct ctx *ctx, int *fd_out)
{
	int ret;

	if (!ctx->async) {
		ret = chan_create(sizeof(struct ib_uverbs_async_event_desc),
				  &ctx->async);
		if (ret)
			return ret;
	}
	*fd_out = ctx->async->user_fd;
	return 0;
}

bool ctx_raise_async(struct ctx *ctx, uint32_t type, uint64_t element)
{
	struct ib_uverbs_async_event_desc event = {
		.element = element,
		.event_type = type,
	};

	if (!ctx->async || !chan_raise(ctx->async, &event))
		return false;
	ctx->dev->stats.async_events++;
	return true;
}

unsigned int ctx_withdraw_async(struct ctx *ctx, uint64_t element)
{
	return ctx->async ? chan_withdraw(ctx->async, element) : 0;
}

int ctx_create_chan(struct ctx *ctx, int *fd_out)
{
	struct chan *chan;
	int ret = chan_create(sizeof(struct ib_uverbs_comp_event_desc), &chan);

	if (ret)
		return ret;
	list_push_back(&ctx->chans, &chan->link);
	*fd_out = chan->user_fd;
	return 0;
}

struct chan *ctx_find_chan(struct ctx *ctx, int fd)
{
	struct chan *chan;

	LIST_FOR_EACH(chan, &ctx->chans, link) {
		if (chan->user_fd == fd)
			return chan;
	}
	return NULL;
}

void ctx_close_chan(struct ctx *ctx, int fd)
{
	struct chan *chan = ctx_find_chan(ctx, fd);

	if (!chan)
		return;
	chan->user_fd = -1;
	if (!chan->n_users)
		chan_destroy(chan);
}

static void *map_clock(struct ctx *ctx, unsigned int page, void *addr,
		       size_t len, int prot, int flags)
{
	if (prot & PROT_WRITE || len != UAR_PAGE_SIZE)
		return NULL;
	return sys_mmap(addr, len, prot, flags, ctx->clock_fd,
			(off_t)page * UAR_PAGE_SIZE);
}

void *ctx_mmap(struct ctx *ctx, void *addr, size_t len, int prot, int flags,
	       off_t offset)
{
	uint64_t page = (uint64_t)offset / UAR_PAGE_SIZE;
	unsigned int cmd = page >> MMAP_CMD_SHIFT & MMAP_CMD_MASK;

	if (page >= UAR_FIRST_MMAP_PAGE)
		return uar_mmap(ctx, (uint64_t)offset, addr, len, prot, flags);
	switch (cmd) {
	case MLX5_IB_MMAP_CORE_CLOCK:
		return map_clock(ctx, HCA_CLOCK_PAGE, addr, len, prot, flags);
	case MLX5_IB_MMAP_CLOCK_INFO:
		return map_clock(ctx, HCA_CLOCK_INFO_PAGE, addr, len, prot,
				 flags);
	case MLX5_IB_MMAP_DEVICE_MEM:
		return dm_mmap(ctx, page, addr, len, prot, flags);
	default:
		return NULL;
	}
}

void ctx_publish_clock(struct ctx *ctx, uint64_t now_ns)
{
	uint8_t *pages = ctx->clock_pages;

	hca_clock_publish(&ctx->dev->clock, now_ns,
			  pages + HCA_CLOCK_PAGE * UAR_PAGE_SIZE);
	hca_clock_publish_info(&ctx->dev->clock,
			       pages + HCA_CLOCK_INFO_PAGE * UAR_PAGE_SIZE);
}

static int poll_obj(struct obj *obj, uint64_t now_ns)
{
	struct qp *qp;

	if (obj->type == OBJ_CQ)
		return cq_poll((struct cq *)obj, now_ns);
	if (obj->type != OBJ_QP)
		return 0;
	qp = (struct qp *)obj;
	if (qp->state == IBV_QPS_ERR)
		return qp_flush(qp);
	return sq_run(qp, now_ns);
}

static int poll_uars(struct ctx *ctx)
{
	struct uar *uar;
	int n = 0;

	LIST_FOR_EACH(uar, &ctx->uar_list, link)
		n += uar_poll(ctx, uar);
	return n;
}

void ctx_set_guard(struct ctx *ctx, bool is_guarded)
{
	struct uar *uar;

	LIST_FOR_EACH(uar, &ctx->uar_list, link)
		uar_set_guard(uar, is_guarded);
}

void ctx_take_doorbells(struct ctx *ctx)
{
	poll_uars(ctx);
}

int ctx_poll(struct ctx *ctx, uint64_t now_ns)
{
	struct obj *obj;
	uint32_t handle = 0;
	int n = poll_uars(ctx);

	for (; (obj = idtab_next(&ctx->handles, &handle)); handle++)
		n += poll_obj(obj, now_ns);
	return n;
}

void ctx_flush_cqs(struct ctx *ctx)
{
	struct obj *obj;
	uint32_t handle = 0;

	for (; (obj = idtab_next(&ctx->handles, &handle)); handle++) {
		if (obj->type == OBJ_CQ)
			cq_flush_run((struct cq *)obj);
	}
}
