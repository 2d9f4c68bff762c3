/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What commands create: every object has a handle in its context, and cannot be
 * destroyed while another one uses it.
 */
#ifndef SOFTCX_OBJ_H
#define SOFTCX_OBJ_H

#include <stdint.h>

#include "base/compiler.h"

struct ctx;

enum obj_type {
	OBJ_PD,
	OBJ_MR,
	OBJ_CQ,
	OBJ_QP,
	OBJ_RULE,
	OBJ_UAR,
	OBJ_DM,
	OBJ_N_TYPES,
};

struct obj {
	enum obj_type type;
	uint32_t handle;
	unsigned int n_users;
};

/* Gives `obj` a handle. */
MUST_CHECK int obj_add(struct ctx *ctx, struct obj *obj, enum obj_type type);
/* NULL: there is no such object, or it is of another type. */
struct obj *obj_get(struct ctx *ctx, uint32_t handle, enum obj_type type);
void obj_remove(struct ctx *ctx, struct obj *obj);

/* Protection domains have nothing but users. */
struct pd {
	struct obj obj;
	uint32_t pdn;
};

#endif
