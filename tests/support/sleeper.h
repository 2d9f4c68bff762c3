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
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The first bytes of a file about the thread. */
static inline char *sleeper_read(pid_t tid, const char *name, char *text,
				 size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, size - 1);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return text;
}

/* On a busy machine threads also sleep for a moment on the way to where they wait: until
 * another gives up a lock, or for a given time. */
static inline bool sleeper_is_on_its_way(pid_t tid)
{
	char text[512];
	long call = strtol(sleeper_read(tid, "syscall", text, sizeof(text)),
			   NULL, 10);

	return call == SYS_futex || call == SYS_nanosleep ||
	       call == SYS_clock_nanosleep || strncmp(text, "running", 7) == 0;
}

static inline bool sleeper_is_asleep(pid_t tid)
{
	char text[512];
	/* "TID (NAME) S ..." */
	const char *at = strrchr(sleeper_read(tid, "stat", text, sizeof(text)),
				 ')');

	return at && at[1] == ' ' && at[2] == 'S' &&
	       !sleeper_is_on_its_way(tid);
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
