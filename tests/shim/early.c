/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library that makes intercepted calls as early and as late as it gets: in its
 * first malloc, under a lock of its own as allocators do, and in its constructor
 * and destructor. Preloaded together with the library under test.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);

/* Not recursive: a call that allocates while we start up never returns. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_started;

static void start(void)
{
	char buf[8];
	int fd;

	if (has_started)
		return;
	pthread_mutex_lock(&starting);
	if (!has_started) {
		fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY);
		if (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
			close(fd);
		has_started = 1;
	}
	pthread_mutex_unlock(&starting);
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	start();
	return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t cnt, size_t size)
{
	start();
	return __libc_calloc(cnt, size);
}

static void use_everything(const char *when)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), copy = dup(fd);

	close(fd);
	close(copy);
	fd = open("/dev/null", O_WRONLY);
	if (fd < 0 || write(fd, when, 1) != 1)
		_exit(1);
	close(fd);
	dprintf(STDOUT_FILENO, "%s\n", when);
}

__attribute__((constructor(101))) static void early(void)
{
	use_everything("constructor");
}

__attribute__((destructor(101))) static void late(void)
{
	use_everything("destructor");
}
