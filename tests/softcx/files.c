/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that are ours; see files.h. */
#include "config.h"

#include "files.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "sys.h"

static struct file *_Atomic files[FILES_MAX_FD];

/* What each number named when it became ours. Programs may close a number by a
 * system call that we do not see, and get it again for another file. */
static struct {
	dev_t dev;
	ino_t ino;
} ids[FILES_MAX_FD];

static int identify(int fd, struct stat *st)
{
	return (int)SYS(__NR_fstat, fd, st);
}

static struct file *load(int fd)
{
	return atomic_load_explicit(&files[fd], memory_order_acquire);
}

static bool is_intact(int fd)
{
	struct stat st;

	return identify(fd, &st) == 0 && st.st_dev == ids[fd].dev &&
	       st.st_ino == ids[fd].ino;
}

int files_add(int fd, struct file *file)
{
	struct stat st;

	if (fd < 0 || fd >= FILES_MAX_FD)
		return -EMFILE;
	if (identify(fd, &st) != 0)
		return -EBADF;
	ids[fd].dev = st.st_dev;
	ids[fd].ino = st.st_ino;
	file->fd = fd;
	atomic_store_explicit(&files[fd], file, memory_order_release);
	return 0;
}

struct file *files_get(int fd)
{
	struct file *file;

	if (fd < 0 || fd >= FILES_MAX_FD)
		return NULL;
	file = load(fd);
	if (LIKELY(!file))
		return NULL;
	if (is_intact(fd))
		return file;
	atomic_store_explicit(&files[fd], NULL, memory_order_relaxed);
	return NULL;
}

void files_copied(int fd, int copy)
{
	struct file *file = copy < 0 ? NULL : files_get(fd);

	if (file && copy != fd)
		(void)!files_add(copy, file);
}

/* Another number of the file, or -1. */
static int find_other(const struct file *file)
{
	for (int fd = 0; fd < FILES_MAX_FD; fd++)
		if (load(fd) == file && files_get(fd))
			return fd;
	return -1;
}

struct file *files_take(int fd)
{
	struct file *file = files_get(fd);
	int other;

	if (!file)
		return NULL;
	atomic_store_explicit(&files[fd], NULL, memory_order_release);
	other = find_other(file);
	if (other < 0)
		return file;
	file->fd = other;
	return NULL;
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
