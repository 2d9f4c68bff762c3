/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that are cancellation points in libc, for use inside the bracket. A thread
 * must not end there, since it would never give back a lock or a reference. These
 * are system calls and nothing else, and return what the kernel returns: a negative
 * errno when they fail. Under a mutex there is no need for them (base/lock.h).
 */
#ifndef OS_INSIDE_H
#define OS_INSIDE_H

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/syscall_raw.h"

static inline long inside_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return syscall_raw(SYS_recvmsg, fd, (long)msg, flags, 0, 0, 0);
}

static inline long inside_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return syscall_raw(SYS_sendmsg, fd, (long)msg, flags, 0, 0, 0);
}

static inline int inside_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall_raw(SYS_openat, AT_FDCWD, (long)path, flags,
				(long)mode, 0, 0);
}

static inline ssize_t inside_read(int fd, void *buf, size_t len)
{
	return syscall_raw(SYS_read, fd, (long)buf, (long)len, 0, 0, 0);
}

static inline long inside_pread(int fd, void *buf, size_t len, off_t at)
{
	return syscall_raw(SYS_pread64, fd, (long)buf, (long)len, (long)at, 0, 0);
}

static inline ssize_t inside_write(int fd, const void *buf, size_t len)
{
	return syscall_raw(SYS_write, fd, (long)buf, (long)len, 0, 0, 0);
}

/* Looks and does not wait. */
static inline long inside_poll(struct pollfd *fds, nfds_t cnt)
{
	struct timespec none = { 0 };

	return syscall_raw(SYS_ppoll, (long)fds, (long)cnt, (long)&none, 0, 0,
			   0);
}

static inline long inside_epoll_wait(int epfd, struct epoll_event *events,
				     int cnt)
{
	return syscall_raw(SYS_epoll_pwait, epfd, (long)events, cnt, 0, 0, 0);
}

static inline void inside_close(int fd)
{
	(void)syscall_raw(SYS_close, fd, 0, 0, 0, 0, 0);
}

static inline void inside_nap(long ns)
{
	struct timespec time = { .tv_nsec = ns };

	(void)syscall_raw(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&time,
			  0, 0, 0);
}

#endif
