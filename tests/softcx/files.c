/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that are ours; see files.h. */
#include "config.h"

#include "files.h"

#include <errno.h>
#include <stdatomic.h>

static struct file *_Atomic files[FILES_MAX_FD];

int files_add(int fd, struct file *file)
{
	if (fd < 0 || fd >= FILES_MAX_FD)
		return -EMFILE;
	file->fd = fd;
	atomic_store_explicit(&files[fd], file, memory_order_release);
	return 0;
}

struct file *files_get(int fd)
{
	if (fd < 0 || fd >= FILES_MAX_FD)
		return NULL;
	return atomic_load_explicit(&files[fd], memory_order_acquire);
}

struct file *files_take(int fd)
{
	if (!files_get(fd))
		return NULL;
	return atomic_exchange_explicit(&files[fd], NULL, memory_order_acq_rel);
}

/* --- what a child has inherited --- */

static ssize_t dead_write(struct file *file UNUSED, const void *buf UNUSED,
			  size_t len UNUSED)
{
	return -EIO;
}

static int dead_ioctl(struct file *file UNUSED, unsigned long request UNUSED,
		      void *arg UNUSED)
{
	return -EIO;
}

static void dead_close(struct file *file UNUSED)
{
}

static const struct file_ops dead_ops = {
	.write = dead_write,
	.ioctl = dead_ioctl,
	.close = dead_close,
};

/* One for all, since none of them has anything of its own. Channels are pipes,
 * which parent and child share. */
static struct file dead = { &dead_ops, -1 };

void files_forget(void)
{
	for (int fd = 0; fd < FILES_MAX_FD; fd++) {
		const struct file *file = files_get(fd);

		if (file)
			atomic_store_explicit(&files[fd],
					      file->ops->write ? &dead : NULL,
					      memory_order_relaxed);
	}
}
