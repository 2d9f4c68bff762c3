/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stores that wake the card; see guard.h. */
#include "config.h"

#include "guard.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "sys.h"
#include "uar.h"

/* Newer than the distribution's header may be: shared memory, too. */
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

int guard_open(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	int fd = (int)SYS(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int ret;

	if (fd < 0)
		return fd;
	ret = sys_ioctl(fd, UFFDIO_API, &api);
	if (!ret)
		return fd;
	sys_close(fd);
	return ret;
}

static struct uffdio_range range_of(const void *page)
{
	return (struct uffdio_range){ (uintptr_t)page, UAR_PAGE_SIZE };
}

bool guard_add(int fd, void *page)
{
	struct uffdio_register reg = {
		.range = range_of(page),
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return sys_ioctl(fd, UFFDIO_REGISTER, &reg) == 0;
}

void guard_set(int fd, void *page, bool is_guarded)
{
	struct uffdio_writeprotect wp = {
		.range = range_of(page),
		.mode = is_guarded ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	/* -ENOENT: the program has unmapped it, or put something else there. */
	sys_ioctl(fd, UFFDIO_WRITEPROTECT, &wp);
}

bool guard_drain(int fd)
{
	struct uffd_msg msg;
	bool is_any = false;

	while (sys_read(fd, &msg, sizeof(msg)) == sizeof(msg))
		is_any = true;
	return is_any;
}
