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

void files_forget(void)
{
	for (int fd = 0; fd < FILES_MAX_FD; fd++) {
		if (files_get(fd))
			atomic_store_explicit(&files[fd], NULL,
					      memory_order_relaxed);
	}
}
