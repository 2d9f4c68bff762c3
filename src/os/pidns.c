/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc tells of PID namespaces (pidns.h). */
#include "config.h"

#include "os/pidns.h"

#include <errno.h>
#include <sys/stat.h>

/* By libc's own way, which a filter of system calls that knows the program knows, too. */
static int look(const char *link, struct stat *st)
{
	int saved_errno = errno, err = stat(link, st) != 0 ? -errno : 0;

	errno = saved_errno;
	return err;
}

/* The link of a namespace in which no process was yet leads nowhere. */
bool pidns_of_children_is_another(void)
{
	struct stat own, childrens;
	int err;

	if (look("/proc/thread-self/ns/pid", &own) != 0)
		return false;
	err = look("/proc/thread-self/ns/pid_for_children", &childrens);
	return err == -ENOENT || (!err && childrens.st_ino != own.st_ino);
}
