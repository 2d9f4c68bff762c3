/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Type-stable memory for fd objects. */
#include "config.h"

#include "fd/fd_pool.h"

#include <sys/mman.h>

/* The link of an unused object, at the end of its memory. */
struct fd_pool_free {
	struct fd_pool_free *next;
};

enum { CHUNK_SIZE = 16 << 10 };

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

static void push_locked(struct fd_pool *pool, void *obj) REQUIRES(pool->lock)
{
	struct fd_pool_free *link = link_of(pool, obj);

	INVARIANT(lock_witness_is_mine(&pool->lock.witness), "pushed without the lock");
	link->next = pool->free;
	pool->free = link;
}

static void grow_locked(struct fd_pool *pool) REQUIRES(pool->lock)
{
	char *chunk = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	INVARIANT(lock_witness_is_mine(&pool->lock.witness), "grown without the lock");
	if (chunk == MAP_FAILED)
		return;
	for (size_t at = 0; at + stride(pool) <= CHUNK_SIZE; at += stride(pool))
		push_locked(pool, chunk + at);
}

void *fd_pool_get(struct fd_pool *pool)
{
	struct fd_pool_free *link;

	spinlock_acquire(&pool->lock);
	if (!pool->free)
		grow_locked(pool);
	link = pool->free;
	if (link) {
		pool->free = link->next;
		pool->used_cnt++;
	}
	spinlock_release(&pool->lock);
	return link ? object_of(pool, link) : NULL;
}

void fd_pool_put(struct fd_pool *pool, void *obj)
{
	spinlock_acquire(&pool->lock);
	push_locked(pool, obj);
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
	pool->used_cnt = 0;
}
