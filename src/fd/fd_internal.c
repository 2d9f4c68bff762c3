/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fds of our own: high, invisible, and out of the program's way. */
#include "config.h"

#include "fd/fd_internal.h"

#include <errno.h>

#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "os/file.h"
#include "os/inside.h"

struct fd_internal {
	struct fd_object obj;
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

/* Makes this number internal. */
static int take(int fd, _Atomic int *slot)
{
	struct fd_internal *internal = fd_pool_get(&pool);
	int err;

	if (!internal)
		return -ENOMEM;
	internal->slot = slot;
	internal->id = file_identify(fd);
	fd_object_init(&internal->obj, &internal_ops, 0);
	err = fd_table_install(fd, &internal->obj);
	fd_object_put(&internal->obj); /* the table's reference remains */
	if (!err)
		atomic_store(slot, fd);
	return err;
}

int fd_internal_copy(int fd, _Atomic int *slot)
{
	int high = file_duplicate_high(fd), err;

	if (high < 0)
		return high;
	err = take(high, slot);
	if (err)
		inside_close(high);
	return err;
}

int fd_internal_adopt(int fd, _Atomic int *slot)
{
	int err = fd_internal_copy(fd, slot);

	if (!err)
		inside_close(fd);
	if (err != -EMFILE)
		return err;
	/* There is no other number, so it becomes internal where it is. */
	(void)!real.fcntl(fd, F_SETFD, FD_CLOEXEC);
	return take(fd, slot);
}

/* The internal fd of this number, with a reference, or NULL. */
static struct fd_internal *get_internal(int fd)
{
	struct fd_object *obj = fd_table_get(fd);

	if (obj && obj->ops == &internal_ops)
		return internal_of(obj);
	fd_object_put(obj);
	return NULL;
}

static bool is_same_file(int fd, const struct fd_internal *internal)
{
	struct file_id now = file_identify(fd);

	return file_is_same(&now, &internal->id);
}

bool fd_internal_is_intact(_Atomic int *slot)
{
	int fd = atomic_load(slot);
	struct fd_internal *internal = fd < 0 ? NULL : get_internal(fd);
	bool result;

	if (!internal)
		return false;
	result = is_same_file(fd, internal);
	fd_object_put(&internal->obj);
	return result;
}

void fd_internal_close(_Atomic int *slot)
{
	bool is_intact = fd_internal_is_intact(slot);
	int fd = atomic_exchange(slot, -1);

	if (fd < 0)
		return;
	fd_table_remove(fd);
	if (is_intact)
		inside_close(fd);
}

int fd_internal_make_way(int fd)
{
	struct fd_internal *internal = get_internal(fd);
	int high, err = 0;

	if (!internal)
		return 0;
	if (!is_same_file(fd, internal)) {
		/* The program has closed it by a raw call, so the number is the
		 * program's. */
		fd_table_remove(fd);
		goto out;
	}
	high = file_duplicate_high(fd);
	if (high < 0) {
		err = high;
		goto out;
	}
	err = fd_table_install(high, &internal->obj);
	if (err) {
		inside_close(high);
		goto out;
	}
	atomic_store(internal->slot, high);
	fd_table_remove(fd);
out:
	fd_object_put(&internal->obj);
	return err;
}

void fd_internal_forked(void)
{
	int fd = -1;

	while ((fd = fd_table_next_internal((unsigned)fd + 1,
					    FD_TABLE_LIMIT - 1)) >= 0) {
		struct fd_internal *internal = get_internal(fd);

		if (!internal)
			continue;
		if (is_same_file(fd, internal))
			inside_close(fd);
		atomic_store(internal->slot, -1);
	}
	fd_pool_forked(&pool);
}
