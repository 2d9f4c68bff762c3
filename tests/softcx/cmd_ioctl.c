/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands that come through ioctl(): those that have no other form. All others
 * answer EPROTONOSUPPORT, as a kernel does that has the write() form only, and
 * libibverbs comes back with that. See cmd.h.
 */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "card.h"
#include "check.h"
#include "cmd.h"
#include "dm.h"
#include "mr.h"
#include "uar.h"

/* One attribute, or NULL. */
static struct ib_uverbs_attr *find(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	for (unsigned int i = 0; i < hdr->num_attrs; i++) {
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	}
	return NULL;
}

/* A value: small ones lie in the attribute itself. */
static int get(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id, void *value,
	       size_t size)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	memset(value, 0, size);
	if (!attr)
		return -EINVAL;
	if (attr->len <= sizeof(attr->data))
		memcpy(value, &attr->data, MIN(size, sizeof(attr->data)));
	else
		memcpy(value, (void *)(uintptr_t)attr->data,
		       MIN(size, (size_t)attr->len));
	return 0;
}

/* An answer, for which the program gave a place; optional ones may lack it. */
static void put(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id, const void *value,
		size_t size)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	if (!attr)
		return;
	memcpy((void *)(uintptr_t)attr->data, value,
	       MIN(size, (size_t)attr->len));
	attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

static int put_handle(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id,
		      uint32_t handle)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	if (!attr)
		return -EINVAL;
	attr->data = handle;
	return 0;
}

static struct obj *get_obj(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr,
			   uint16_t id, enum obj_type type)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	return attr ? obj_get(ctx, (uint32_t)attr->data, type) : NULL;
}

typedef int ioctl_fn(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr);

static int alloc_uar(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	uint64_t offset, length = UAR_PAGE_SIZE;
	struct uar *uar;
	int ret;

	if (!find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE))
		return -EINVAL;
	ret = uar_create(ctx, &uar);
	if (ret)
		return ret;
	offset = uar_mmap_offset(uar);
	put(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset,
	    sizeof(offset));
	put(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length,
	    sizeof(length));
	put(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page_id,
	    sizeof(uar->page_id));
	return put_handle(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE,
			  uar->obj.handle);
}

static int destroy_uar(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct obj *obj = get_obj(ctx, hdr,
				  MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, OBJ_UAR);

	if (!obj)
		return -EINVAL;
	if (obj->n_users)
		return -EBUSY;
	uar_destroy(ctx, (struct uar *)obj);
	return 0;
}

static int alloc_dm(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	uint64_t length, offset = 0;
	uint16_t page;
	struct dm *dm;
	uint8_t type[8];
	int ret;

	if (!get(hdr, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, type, sizeof(type)) &&
	    type[0] != MLX5_IB_UAPI_DM_TYPE_MEMIC)
		return -EOPNOTSUPP;
	ret = get(hdr, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	if (!ret && !find(hdr, UVERBS_ATTR_ALLOC_DM_HANDLE))
		ret = -EINVAL;
	if (!ret)
		ret = dm_create(ctx, length, &dm);
	if (ret)
		return ret;
	page = (uint16_t)dm->page;
	put(hdr, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, &offset,
	    sizeof(offset));
	put(hdr, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &page, sizeof(page));
	return put_handle(hdr, UVERBS_ATTR_ALLOC_DM_HANDLE, dm->obj.handle);
}

static int free_dm(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct obj *obj = get_obj(ctx, hdr, UVERBS_ATTR_FREE_DM_HANDLE, OBJ_DM);

	if (!obj)
		return -EINVAL;
	if (obj->n_users)
		return -EBUSY;
	dm_destroy(ctx, (struct dm *)obj);
	return 0;
}

/* The region's addresses begin at 0, whatever part of the memory it is. */
static int reg_dm_mr(struct ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	uint64_t offset, length;
	struct mr params = { 0 }, *mr;
	struct dm *dm;
	int ret;

	params.pd = (struct pd *)get_obj(
		ctx, hdr, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, OBJ_PD);
	dm = (struct dm *)get_obj(ctx, hdr, UVERBS_ATTR_REG_DM_MR_DM_HANDLE,
				  OBJ_DM);
	if (!params.pd || !dm ||
	    get(hdr, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, sizeof(offset)) ||
	    get(hdr, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, sizeof(length)) ||
	    get(hdr, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &params.access,
		sizeof(params.access)) ||
	    !find(hdr, UVERBS_ATTR_REG_DM_MR_HANDLE))
		return -EINVAL;
	if (offset > dm->length || length > dm->length - offset)
		return -EINVAL;
	params.dm = &dm->obj;
	params.start = (uintptr_t)dm->memory + offset;
	params.length = length;
	params.access &= ~(uint32_t)IBV_ACCESS_ZERO_BASED;
	ret = mr_create(ctx, &params, &mr);
	if (ret)
		return ret;
	put(hdr, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &mr->lkey, sizeof(mr->lkey));
	put(hdr, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &mr->lkey, sizeof(mr->lkey));
	return put_handle(hdr, UVERBS_ATTR_REG_DM_MR_HANDLE, mr->obj.handle);
}

static const struct {
	uint16_t object;
	uint16_t method;
	const char *name;
	ioctl_fn *fn;
} methods[] = {
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, "alloc_uar",
	  alloc_uar },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, "destroy_uar",
	  destroy_uar },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, "alloc_dm", alloc_dm },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, "free_dm", free_dm },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, "reg_dm_mr", reg_dm_mr },
};

static void trace(const struct ib_uverbs_ioctl_hdr *hdr, const char *name,
		  int ret)
{
	if (the_card->conf.is_traced)
		check_say("ioctl object %#x method %#x %s: %s", hdr->object_id,
			  hdr->method_id, name, ret ? strerror(-ret) : "ok");
}

int cmd_ioctl(struct ctx *ctx, unsigned long request, void *arg)
{
	struct ib_uverbs_ioctl_hdr *hdr = arg;
	int ret;

	if (request != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	if (!hdr || hdr->length != sizeof(*hdr) +
					  hdr->num_attrs * sizeof(*hdr->attrs))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (hdr->object_id != methods[i].object ||
		    hdr->method_id != methods[i].method)
			continue;
		ret = ctx->dev->is_removed ? -EIO : methods[i].fn(ctx, hdr);
		trace(hdr, methods[i].name, ret);
		return ret;
	}
	trace(hdr, "(unknown)", -EPROTONOSUPPORT);
	return -EPROTONOSUPPORT;
}
