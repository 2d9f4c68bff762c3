/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting until another thread of this process sleeps in the kernel, for programs that
 * do something to a thread in its sleep. They use libc alone.
 */
#ifndef SUPPORT_SLEEPER_H
#define SUPPORT_SLEEPER_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static inline bool sleeper_is_asleep(pid_t tid)
{
	char path[64], text[512];
	const char *at;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	/* "TID (NAME) S ..." */
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] == 'S';
}

/* Five seconds at most. Whether it does. */
static inline bool sleeper_await(pid_t tid)
{
	for (int i = 0; i < 5000; i++) {
		if (sleeper_is_asleep(tid))
			return true;
		usleep(1000);
	}
	return false;
}

#endif
