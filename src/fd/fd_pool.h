/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for the objects of one kind. It grows and is never given back, so that
 * what was an fd_object stays one for ever (fd_ops.h, `release`). Not malloc,
 * since objects are made inside calls that an allocator may make.
 */
#ifndef FD_FD_POOL_H
#define FD_FD_POOL_H

#include <stddef.h>

#include "base/lock.h"
#include "base/pages.h"

struct fd_pool_free;

struct fd_pool {
	struct spinlock lock;
	size_t size; /* of one object, link included */
	struct fd_pool_free *free; /* list of those that were used */
	struct arena arena;
	int used_cnt;
};

/* The link of an unused object lies behind the object, whose refs of 0 must stay
 * readable. */
#define FD_POOL_INIT(type)                                             \
	{                                                              \
		SPINLOCK_INIT(LOCK_RANK_FD_POOL),                      \
			sizeof(type) + sizeof(struct fd_pool_free *),  \
			NULL, { 0 }, 0                                 \
	}

/* Memory for one object, zero when first used, or NULL. */
void *fd_pool_get(struct fd_pool *pool) MUST_CHECK;

void fd_pool_put(struct fd_pool *pool, void *obj);

/* Objects in use, for tests. */
int fd_pool_used_cnt(struct fd_pool *pool);

/* In the child of a fork: all objects are unused. */
void fd_pool_forked(struct fd_pool *pool);

#endif
