/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stands in the table while a number becomes another file (fd_change.h). */
#include "config.h"

#include "fd/fd_change.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_wait.h"
#include "os/signals.h"

struct fd_change {
	struct fd_object obj;
	_Atomic bool is_over;
	struct signals_hold hold;
};

/* One at a time, so that the table and the kernel say the same afterwards. */
static struct mutex changing = MUTEX_INIT(LOCK_RANK_FD_CHANGE);
static struct fd_pool pool = FD_POOL_INIT(struct fd_change);

static struct fd_change *change_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct fd_change, obj);
}

static void change_release(struct fd_object *obj)
{
	fd_pool_put(&pool, change_of(obj));
}

void fd_change_await(struct fd_object *change)
{
	for (unsigned spins = 0; !atomic_load(&change_of(change)->is_over);)
		lock_spin(&spins, LOCK_SPINS);
	fd_object_put(change);
}

/* The wrapper begins anew, and has no reference any more. */
static long await_end(struct fd_object *obj)
{
	fd_change_await(obj);
	return FD_ABANDONED;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CALL_OP(ret, name, params, args)                                      \
	static long changing_##name(struct fd_object *obj, FD_UNWRAP params)  \
	{                                                                     \
		return await_end(obj);                                        \
	}
#include "os/calls.def"
#pragma GCC diagnostic pop

static struct fd_ops change_ops = {
	.name = "change",
	.is_change = true,
#define CALL_OP(ret, name, params, args) .name = changing_##name,
#include "os/calls.def"
	.release = change_release,
};

__attribute__((constructor)) static void fill_ops(void)
{
	fd_ops_fill(&change_ops);
}

NO_LOCK_ANALYSIS static void lock(struct fd_change *change)
{
	signals_hold_until_active(&change->hold);
	mutex_acquire(&changing);
}

NO_LOCK_ANALYSIS static void unlock(const struct fd_change *change)
{
	mutex_release(&changing);
	signals_unhold(&change->hold);
}

/* With the lock if it succeeds. */
struct fd_change *fd_change_begin(int fd, struct fd_object *old)
{
	struct fd_change *change = fd_pool_get(&pool);

	if (!change)
		return NULL;
	atomic_store(&change->is_over, false);
	fd_object_init(&change->obj, &change_ops, 0);
	lock(change);
	old->ops->before_close(old, fd);
	if (fd_table_exchange(fd, old, &change->obj) != 0) {
		unlock(change);
		fd_object_put(&change->obj);
		return NULL;
	}
	fd_object_drop_fd(old, fd);
	return change;
}

void fd_change_end(struct fd_change *change, int fd, struct fd_object *obj)
{
	if (!obj || fd_table_install(fd, obj) != 0)
		fd_table_forget(fd);
	atomic_store(&change->is_over, true);
	unlock(change);
	fd_object_put(&change->obj);
}

NO_LOCK_ANALYSIS void fd_change_before_fork(void)
{
	mutex_acquire(&changing);
}

NO_LOCK_ANALYSIS void fd_change_after_fork(void)
{
	mutex_release(&changing);
}

NO_LOCK_ANALYSIS void fd_change_forked(void)
{
	lock_witness_forked(&changing.witness);
	mutex_release(&changing);
	fd_pool_forked(&pool);
}
