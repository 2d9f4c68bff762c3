/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a module gets of the library for its fds, for tests that link a module's
 * sources: fds that nobody moves. */
#include "config.h"

#include <errno.h>

#include "os/real.h"
#include "os/services.h"

int services_copy_fd(int fd, _Atomic int *slot)
{
	int copy = real.fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	atomic_store(slot, copy);
	return 0;
}

void services_close_fd(_Atomic int *slot)
{
	int fd = atomic_exchange(slot, -1);

	if (fd >= 0)
		real.close(fd);
}
