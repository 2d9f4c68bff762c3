/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors of the process that are ours: which kind of file each is, found by
 * one load, for calls on all others pass by here, too.
 */
#ifndef SOFTCX_FILES_H
#define SOFTCX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

struct file;

/* What calls on a file do. Results as of system calls: negative errno. */
struct file_ops {
	/* The whole of one command. */
	ssize_t (*write)(struct file *file, const void *buf, size_t len);
	int (*ioctl)(struct file *file, unsigned long request, void *arg);
	/* NULL: ENODEV */
	void *(*mmap)(struct file *file, void *addr, size_t len, int prot,
		      int flags, off_t offset);
	/* The program closed it; ends the life of `file`. */
	void (*close)(struct file *file);
	/* fstat is to say that this is the device TREE_DEV_MAJOR... */
	bool is_shown_as_device;
};

struct file {
	const struct file_ops *ops;
	int fd; /* one of its numbers */
};

/* Beyond these numbers a device cannot be opened (EMFILE). */
enum { FILES_MAX_FD = 65536 };

/* -EMFILE */
MUST_CHECK int files_add(int fd, struct file *file);
/* NULL: not ours. */
struct file *files_get(int fd);
/* `copy` names the same file from now on, if `fd` is ours and `copy` not negative. */
void files_copied(int fd, int copy);
/* The program closes it, and it is no longer ours. The file, if this was the last
 * of its descriptors. */
struct file *files_take(int fd);
/* After a fork: what was opened is the parent's, and commands on it fail (EIO). */
void files_forget(void);

#endif
