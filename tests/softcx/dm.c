/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Device memory; see dm.h. */
#include "config.h"

#include "dm.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "card.h"
#include "sys.h"

enum { PAGE = 4096 };

/* How much the device has given out, over all contexts. */
static uint64_t used(struct ctx *ctx)
{
	uint64_t sum = 0;
	struct ctx *other;

	LIST_FOR_EACH(other, &ctx->dev->ctxs, link) {
		uint32_t handle = 0;
		struct obj *obj;

		for (; (obj = idtab_next(&other->handles, &handle)); handle++) {
			if (obj->type == OBJ_DM)
				sum += ((struct dm *)obj)->map_size;
		}
	}
	return sum;
}

static int map_memory(struct dm *dm)
{
	int ret = (int)SYS(__NR_memfd_create, "softcx-dm", MFD_CLOEXEC);

	if (ret < 0)
		return ret;
	dm->fd = ret;
	ret = (int)SYS(__NR_ftruncate, dm->fd, dm->map_size);
	dm->memory = ret ? NULL : sys_mmap(NULL, dm->map_size,
					   PROT_READ | PROT_WRITE, MAP_SHARED,
					   dm->fd, 0);
	if (dm->memory)
		return 0;
	sys_close(dm->fd);
	return -ENOMEM;
}

int dm_create(struct ctx *ctx, uint64_t length, struct dm **dm_out)
{
	struct dm *dm = calloc(1, sizeof(*dm));
	int ret;

	if (!dm)
		return -ENOMEM;
	dm->length = length;
	dm->map_size = (size_t)((length + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	ret = -ENOMEM;
	if (!length || length > DM_MAX_SIZE ||
	    used(ctx) + dm->map_size > DM_MAX_SIZE)
		goto err_free;
	ret = map_memory(dm);
	if (ret)
		goto err_free;
	ret = obj_add(ctx, &dm->obj, OBJ_DM);
	if (ret)
		goto err_unmap;
	dm->page = dm->obj.handle;
	*dm_out = dm;
	return 0;

err_unmap:
	sys_munmap(dm->memory, dm->map_size);
	sys_close(dm->fd);
err_free:
	free(dm);
	return ret;
}

void dm_destroy(struct ctx *ctx, struct dm *dm)
{
	obj_remove(ctx, &dm->obj);
	sys_munmap(dm->memory, dm->map_size);
	sys_close(dm->fd);
	free(dm);
}

void *dm_mmap(struct ctx *ctx, uint64_t page, void *addr, size_t len, int prot,
	      int flags)
{
	uint32_t handle = (uint32_t)((page & 0xff) | (page >> 16 << 8));
	struct dm *dm = (struct dm *)obj_get(ctx, handle, OBJ_DM);

	if (!dm || len > dm->map_size)
		return NULL;
	return sys_mmap(addr, len, prot, flags, dm->fd, 0);
}
