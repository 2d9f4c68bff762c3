/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fds of our own: high, invisible, and out of the program's way. */
#include "config.h"

#include "fd/fd_internal.h"

#include <errno.h>

#include "base/lock.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "os/file.h"
#include "os/inside.h"

struct fd_internal {
	struct fd_object obj;
	/* NULL: it is kept through a fork, for the time of that */
	_Atomic int *slot;
	struct file_id id;
};

static struct fd_pool pool = FD_POOL_INIT(struct fd_internal);

static struct fd_internal *internal_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct fd_internal, obj);
}

static void internal_release(struct fd_object *obj)
{
	fd_pool_put(&pool, internal_of(obj));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CALL_OP(ret, name, params, args)                                      \
	static long closed_##name(struct fd_object *obj, FD_UNWRAP params)    \
	{                                                                     \
		return -EBADF;                                                \
	}
#include "os/calls.def"
#pragma GCC diagnostic pop

static struct fd_ops internal_ops = {
	.name = "internal",
	.is_internal = true,
#define CALL_OP(ret, name, params, args) .name = closed_##name,
#include "os/calls.def"
	.release = internal_release,
};

/* This runs before there can be any internal fd. */
__attribute__((constructor)) static void fill_ops(void)
{
	fd_ops_fill(&internal_ops);
}

/* What the table, the kernel and the owner's slot say of an internal fd changes as one.
 * Other locks do not do: the owners of internal fds have different ones, and a dup2() of
 * the program has none. */
static struct mutex changes = MUTEX_INIT(LOCK_RANK_FD_INTERNAL);

/* Makes this number internal. What is in `stale_out` afterwards, which a close that we
 * could not see has left, is to be dropped without the lock. */
static int take(int fd, _Atomic int *slot, struct fd_object **stale_out)
	REQUIRES(changes)
{
	struct fd_internal *internal = fd_pool_get(&pool);
	int err;

	INVARIANT(lock_witness_is_mine(&changes.witness), "taken without the lock");
	if (!internal)
		return -ENOMEM;
	internal->slot = slot;
	internal->id = file_identify(fd);
	fd_object_init(&internal->obj, &internal_ops, 0);
	err = fd_table_swap(fd, &internal->obj, stale_out);
	fd_object_put(&internal->obj); /* the table's reference remains */
	if (!err)
		atomic_store(slot, fd);
	return err;
}

static void drop_stale(struct fd_object *stale, int fd)
{
	if (stale)
		fd_object_drop_fd(stale, fd);
}

/* The internal fd of this number, with a reference, or NULL. Who changes what a number names
 * asks, too. */
static struct fd_internal *get_internal(int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *obj = entry ? fd_table_get_at(entry) : NULL;

	if (obj && obj->ops == &internal_ops)
		return internal_of(obj);
	fd_object_put(obj);
	return NULL;
}

/* The same for what the slot names, and not for another internal fd, which may have got
 * the number after the program had closed ours. */
static struct fd_internal *get_own(const _Atomic int *slot) REQUIRES(changes)
{
	int fd = atomic_load(slot);
	struct fd_internal *internal = fd < 0 ? NULL : get_internal(fd);

	INVARIANT(lock_witness_is_mine(&changes.witness), "looked without the lock");
	if (!internal || internal->slot == slot)
		return internal;
	fd_object_put(&internal->obj);
	return NULL;
}

static bool is_same_file(int fd, const struct fd_internal *internal)
{
	struct file_id now = file_identify(fd);

	return file_is_same(&now, &internal->id);
}

int fd_internal_copy(int fd, _Atomic int *slot)
{
	struct fd_object *stale = NULL;
	struct fd_internal *other;
	int high, err;

	mutex_acquire(&changes);
	other = get_own(slot);
	high = other && is_same_file(atomic_load(slot), other) ? -EEXIST :
								  file_duplicate_high(fd);
	err = high < 0 ? high : take(high, slot, &stale);
	if (err && high >= 0)
		inside_close(high);
	mutex_release(&changes);
	if (other)
		fd_object_put(&other->obj);
	drop_stale(stale, high);
	return err;
}

int fd_internal_adopt(int fd, _Atomic int *slot)
{
	int err = fd_internal_copy(fd, slot);
	struct fd_object *stale = NULL;

	if (!err)
		inside_close(fd);
	if (err != -EMFILE)
		return err;
	/* There is no other number, so it becomes internal where it is. */
	(void)!real.fcntl(fd, F_SETFD, FD_CLOEXEC);
	mutex_acquire(&changes);
	err = take(fd, slot, &stale);
	mutex_release(&changes);
	drop_stale(stale, fd);
	return err;
}

/* Nobody visits an internal fd, so we wait for no visit of its number, which may be one of a
 * file that had it before. The visitor may want this lock, or those of our callers. */
static void forget_number(struct fd_internal *internal, int fd) REQUIRES(changes)
{
	INVARIANT(lock_witness_is_mine(&changes.witness), "forgot without the lock");
	if (fd_table_take(fd, &internal->obj))
		fd_object_drop_fd(&internal->obj, -1);
}

bool fd_internal_is_intact(_Atomic int *slot)
{
	struct fd_internal *internal;
	bool result;

	mutex_acquire(&changes);
	internal = get_own(slot);
	result = internal && is_same_file(atomic_load(slot), internal);
	mutex_release(&changes);
	if (internal)
		fd_object_put(&internal->obj);
	return result;
}

bool fd_internal_close_unused(_Atomic int *slot, const _Atomic int *user_cnt)
{
	struct fd_internal *internal;
	bool is_used;
	int fd;

	mutex_acquire(&changes);
	internal = get_own(slot);
	/* who is counted from here on does not read it */
	fd = atomic_exchange(slot, -1);
	is_used = atomic_load(user_cnt) != 0;
	if (is_used) {
		atomic_store(slot, fd);
	} else if (internal) {
		bool is_intact = is_same_file(fd, internal);

		forget_number(internal, fd);
		if (is_intact)
			inside_close(fd);
	}
	mutex_release(&changes);
	if (internal)
		fd_object_put(&internal->obj);
	return !is_used;
}

void fd_internal_close(_Atomic int *slot)
{
	static const _Atomic int nobody;

	(void)fd_internal_close_unused(slot, &nobody);
}

/* The fd gets another number. The old one is the kernel's still, and nothing to us. */
static int move_away(struct fd_internal *internal, int fd,
		     struct fd_internal_way *way) REQUIRES(changes)
{
	int high = file_duplicate_high(fd), err;

	INVARIANT(lock_witness_is_mine(&changes.witness), "moved without the lock");
	if (high < 0)
		return high;
	way->stale_fd = high;
	err = fd_table_swap(high, &internal->obj, &way->stale);
	if (err) {
		inside_close(high);
		return err;
	}
	atomic_store(internal->slot, high);
	forget_number(internal, fd);
	return 0;
}

/* The lock stays taken until the end of the way, unless the number is the program's: its file
 * goes then, which may take long. */
NO_LOCK_ANALYSIS int fd_internal_make_way(int fd, struct fd_internal_way *way)
{
	struct fd_internal *internal;
	int err = 0;

	*way = (struct fd_internal_way){ .is_held = true };
	mutex_acquire(&changes);
	internal = get_internal(fd);
	if (internal && is_same_file(fd, internal)) {
		err = move_away(internal, fd, way);
	} else {
		/* The program may have closed ours by a raw call, so that the number is
		 * the program's. */
		if (internal)
			forget_number(internal, fd);
		way->is_held = !file_identify(fd).mode;
	}
	if (internal)
		fd_object_put(&internal->obj);
	if (err)
		way->is_held = false;
	if (!way->is_held)
		mutex_release(&changes);
	return err;
}

NO_LOCK_ANALYSIS void fd_internal_end_way(struct fd_internal_way *way)
{
	if (way->is_held)
		mutex_release(&changes);
	drop_stale(way->stale, way->stale_fd);
}

static int close_others(unsigned first, unsigned last, int flags)
{
	int result = 0;

	while (first <= last && result == 0) {
		int kept = fd_table_next_internal(first, last);

		if (kept < 0)
			return real.close_range(first, last, flags);
		/* the range may begin with one of ours */
		if ((unsigned)kept > first)
			result = real.close_range(first, (unsigned)kept - 1,
						  flags);
		first = (unsigned)kept + 1;
	}
	return result;
}

/* To close files may take long, and most of the program's are below ours: these go without
 * the lock. Where it has taken all high numbers, one of ours may be there, too: if it becomes
 * ours in this moment, it is closed. */
int fd_internal_close_range(unsigned first, unsigned last, int flags)
{
	unsigned high = (unsigned)file_high_begins();
	int result = 0;

	if (first < high)
		result = close_others(first, MIN(last, high - 1), flags);
	if (result != 0 || last < high)
		return result;
	mutex_acquire(&changes);
	result = close_others(MAX(first, high), last, flags);
	mutex_release(&changes);
	return result;
}

/* There is no other thread, but one of the parent may have had the lock. */
ALONE_AFTER_FORK int fd_internal_keep(const _Atomic int *slot)
{
	int fd = atomic_load(slot);
	struct fd_internal *internal = fd < 0 ? NULL : get_internal(fd);

	if (!internal || internal->slot != slot || !is_same_file(fd, internal))
		return -1;
	internal->slot = NULL;
	return fd;
}

void fd_internal_forked(void)
{
	int fd = -1;

	/* Another thread of the parent may have been inside. */
	mutex_init(&changes, LOCK_RANK_FD_INTERNAL);
	while ((fd = fd_table_next_internal((unsigned)fd + 1,
					    FD_TABLE_LIMIT - 1)) >= 0) {
		struct fd_internal *internal = get_internal(fd);

		/* or it is kept */
		if (!internal || !internal->slot)
			continue;
		if (is_same_file(fd, internal))
			inside_close(fd);
		atomic_store(internal->slot, -1);
	}
	fd_pool_forked(&pool);
}
