/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls as the device makes them: directly. Inside libsoftcx the ordinary
 * symbols belong to the library under test, which may treat our descriptors as
 * the program's. All return a negative errno on failure.
 */
#ifndef SOFTCX_SYS_H
#define SOFTCX_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#ifndef __x86_64__
#error "softcx knows the system call convention of x86-64 only"
#endif

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define SYS6(nr, a, b, c, d, e, f, ...)                                     \
	sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define SYS(...) SYS6(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

static inline int sys_close(int fd)
{
	return (int)SYS(__NR_close, fd);
}

static inline int sys_openat(int dir, const char *path, int flags, int mode)
{
	return (int)SYS(__NR_openat, dir, path, flags, mode);
}

static inline ssize_t sys_read(int fd, void *buf, size_t size)
{
	return SYS(__NR_read, fd, buf, size);
}

static inline ssize_t sys_write(int fd, const void *buf, size_t len)
{
	return SYS(__NR_write, fd, buf, len);
}

static inline int sys_fcntl(int fd, int cmd, long arg)
{
	return (int)SYS(__NR_fcntl, fd, cmd, arg);
}

static inline int sys_ioctl(int fd, unsigned long request, void *arg)
{
	return (int)SYS(__NR_ioctl, fd, request, arg);
}

static inline int sys_socket(int family, int type, int protocol)
{
	return (int)SYS(__NR_socket, family, type, protocol);
}

static inline int sys_setsockopt(int fd, int level, int name, const void *value,
				 size_t len)
{
	return (int)SYS(__NR_setsockopt, fd, level, name, value, len);
}

static inline int sys_bind(int fd, const void *addr, size_t len)
{
	return (int)SYS(__NR_bind, fd, addr, len);
}

static inline int sys_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n)
{
	return (int)SYS(__NR_recvmmsg, fd, msgs, n, MSG_DONTWAIT, NULL);
}

static inline int sys_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n)
{
	return (int)SYS(__NR_sendmmsg, fd, msgs, n, MSG_DONTWAIT);
}

static inline int sys_ppoll(struct pollfd *fds, unsigned int n,
			    const struct timespec *timeout)
{
	return (int)SYS(__NR_ppoll, fds, n, timeout, NULL, 8);
}

/* NULL on failure, whatever the reason: callers can only give up. */
static inline void *sys_mmap(void *addr, size_t len, int prot, int flags, int fd,
			     off_t offset)
{
	long ret = SYS(__NR_mmap, addr, len, prot, flags, fd, offset);

	return ret < 0 && ret > -4096 ? NULL : (void *)ret;
}

static inline int sys_munmap(void *addr, size_t len)
{
	return (int)SYS(__NR_munmap, addr, len);
}

#endif
