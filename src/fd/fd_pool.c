/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Type-stable memory for fd objects. */
#include "config.h"

#include "fd/fd_pool.h"

/* The link of an unused object, at the end of its memory. */
struct fd_pool_free {
	struct fd_pool_free *next;
};

/* Objects start on a cache line each. */
static size_t stride(const struct fd_pool *pool)
{
	return (pool->size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

static struct fd_pool_free *link_of(const struct fd_pool *pool, void *obj)
{
	return (void *)((char *)obj + stride(pool) -
			sizeof(struct fd_pool_free));
}

static void *object_of(const struct fd_pool *pool, struct fd_pool_free *link)
{
	return (char *)(link + 1) - stride(pool);
}

/* Of those that were used before, or a new one. */
static void *take_locked(struct fd_pool *pool) REQUIRES(pool->lock)
{
	struct fd_pool_free *link = pool->free;

	INVARIANT(lock_witness_is_mine(&pool->lock.witness), "taken without the lock");
	if (!link)
		return arena_cut(&pool->arena, stride(pool));
	pool->free = link->next;
	return object_of(pool, link);
}

void *fd_pool_get(struct fd_pool *pool)
{
	void *obj;

	spinlock_acquire(&pool->lock);
	obj = take_locked(pool);
	if (obj)
		pool->used_cnt++;
	spinlock_release(&pool->lock);
	return obj;
}

void fd_pool_put(struct fd_pool *pool, void *obj)
{
	struct fd_pool_free *link = link_of(pool, obj);

	spinlock_acquire(&pool->lock);
	link->next = pool->free;
	pool->free = link;
	pool->used_cnt--;
	spinlock_release(&pool->lock);
}

int fd_pool_used_cnt(struct fd_pool *pool)
{
	int cnt;

	spinlock_acquire(&pool->lock);
	cnt = pool->used_cnt;
	spinlock_release(&pool->lock);
	return cnt;
}

void fd_pool_forked(struct fd_pool *pool)
{
	/* Another thread of the parent may have held the lock or been between
	 * two steps: the child starts with a new list and leaves the parent's
	 * memory alone. */
	spinlock_init(&pool->lock, LOCK_RANK_FD_POOL);
	pool->free = NULL;
	pool->arena = (struct arena){ 0 };
	pool->used_cnt = 0;
}
