/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Handles; see obj.h. */
#include "config.h"

#include "obj.h"

#include "card.h"

int obj_add(struct ctx *ctx, struct obj *obj, enum obj_type type)
{
	obj->type = type;
	obj->n_users = 0;
	return idtab_add(&ctx->handles, obj, &obj->handle);
}

struct obj *obj_get(struct ctx *ctx, uint32_t handle, enum obj_type type)
{
	struct obj *obj = idtab_get(&ctx->handles, handle);

	return obj && obj->type == type ? obj : NULL;
}

void obj_remove(struct ctx *ctx, struct obj *obj)
{
	idtab_remove(&ctx->handles, obj->handle);
}
