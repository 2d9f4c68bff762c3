/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Eventfds (event_fd.h). */
#include "config.h"

#include "os/event_fd.h"

#include <stdint.h>
#include <sys/eventfd.h>

#include "base/syscall_raw.h"

int event_fd_open(void)
{
	/* eventfd2 is called directly, as close is: a thread sanitizer that
	 * interposes both calls must know of both or of neither. */
	return (int)syscall_raw(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC, 0,
				0, 0, 0);
}

void event_fd_signal(int fd)
{
	uint64_t one = 1;

	(void)syscall_raw(SYS_write, fd, (long)&one, sizeof(one), 0, 0, 0);
}

void event_fd_clear(int fd)
{
	uint64_t value;

	(void)syscall_raw(SYS_read, fd, (long)&value, sizeof(value), 0, 0, 0);
}
