/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that make, copy and close fds: the bookkeeping of the fd table. */
#include "config.h"

#include <linux/close_range.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/runtime.h"
#include "fd/fd_change.h"
#include "fd/fd_internal.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock-redirect/call.h"

int shim_socket(int domain, int type, int protocol)
{
	int fd;

	CALL_ENTERED(socket);
	fd = fd_table_forget(real.socket(domain, type, protocol));
	if (fd >= 0 && !os_is_inside())
		runtime_socket_made(fd, domain, type, protocol);
	return fd;
}

/* A call has made a pair of fds, if it succeeded. Returns its result. */
static int forget_pair(int result, const int fds[2])
{
	if (result == 0) {
		fd_table_forget(fds[0]);
		fd_table_forget(fds[1]);
	}
	return result;
}

int shim_socketpair(int domain, int type, int protocol, int fds[2])
{
	CALL_ENTERED(socketpair);
	return forget_pair(real.socketpair(domain, type, protocol, fds), fds);
}

int shim_pipe(int fds[2])
{
	CALL_ENTERED(pipe);
	return forget_pair(real.pipe(fds), fds);
}

int shim_pipe2(int fds[2], int flags)
{
	CALL_ENTERED(pipe2);
	return forget_pair(real.pipe2(fds, flags), fds);
}

int shim_open(const char *path, int flags, mode_t mode)
{
	CALL_ENTERED(open);
	return fd_table_forget(real.open(path, flags, mode));
}

int shim_open64(const char *path, int flags, mode_t mode)
{
	CALL_ENTERED(open64);
	return fd_table_forget(real.open64(path, flags, mode));
}

int shim_openat(int dir, const char *path, int flags, mode_t mode)
{
	CALL_ENTERED(openat);
	return fd_table_forget(real.openat(dir, path, flags, mode));
}

int shim_openat64(int dir, const char *path, int flags, mode_t mode)
{
	CALL_ENTERED(openat64);
	return fd_table_forget(real.openat64(dir, path, flags, mode));
}

/* What the twin of such a one is, the kernel closes with all that belongs to it. */
static bool is_kernels(const struct fd_object *obj)
{
	return obj->ops->word(obj) == FD_WORD_NOTHING;
}

static int close_by_kernel(int fd)
{
	long result = syscall_raw(SYS_close, fd, 0, 0, 0, 0, 0);

	if (result == 0)
		return 0;
	errno = (int)-result;
	return -1;
}

/* The entry is removed first, so that whoever gets the number next finds it empty. The number
 * is closed before the object lingers, as by the kernel. No cancellation point, since the
 * object is gone by then. */
static COLD int close_object(int fd)
{
	struct fd_object *obj;
	int result, saved_errno = errno;

	os_enter();
	obj = fd_table_get(fd);
	/* to the program, an internal fd looks closed */
	if (obj && obj->ops->is_internal) {
		fd_object_put(obj);
		os_leave();
		errno = EBADF;
		return -1;
	}
	fd_table_remove(fd);
	if (!obj || !fd_object_lingers(obj)) {
		fd_object_put(obj);
		os_leave();
		return close_by_kernel(fd);
	}
	result = close_by_kernel(fd);
	if (result < 0)
		saved_errno = errno;
	fd_object_put_lingering(obj);
	os_leave();
	errno = saved_errno;
	return result;
}

static bool is_close_ours(int fd)
{
	mux_forget_noted(fd);
	return UNLIKELY(fd_table_has(fd)) && !os_is_inside();
}

int table_close(int fd)
{
	return is_close_ours(fd) ? close_object(fd) : close_by_kernel(fd);
}

int shim_close(int fd)
{
	CALL_ENTERED(close);
	if (!is_close_ours(fd))
		return real.close(fd);
	/* where a thread is cancelled as long as it has done nothing */
	pthread_testcancel();
	return close_object(fd);
}

int shim_dup(int fd)
{
	CALL_ENTERED(dup);
	fd_call_copied(fd);
	if (UNLIKELY(fd_table_has(fd)))
		return fd_call_duplicate(fd, F_DUPFD, NULL);
	return fd_table_forget(real.dup(fd));
}

/* /proc says whose it is, unless it is that of another namespace of processes. */
static bool is_own_pidfd(int pidfd)
{
	char path[48], text[512];
	const char *at;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	len = file_peek(path, text, sizeof(text) - 1);
	text[MAX(len, 0)] = '\0';
	at = strstr(text, "\nPid:\t");
	return at && atoi(at + strlen("\nPid:\t")) == getpid();
}

/* What another process has may be ours as well, since it has got it from us. */
static COLD int get_fd(int pidfd, int fd, unsigned flags)
{
	struct fd_object *obj = NULL;
	bool is_own = is_own_pidfd(pidfd);
	int new_fd, saved_errno;

	if (is_own)
		fd_call_copied(fd);
	os_enter();
	if (is_own)
		obj = fd_table_get(fd);
	if (obj && obj->ops->is_internal) {
		errno = EBADF;
		new_fd = -1;
	} else {
		new_fd = fd_table_forget((int)real.syscall(SYS_pidfd_getfd, pidfd, fd,
							   flags, 0L, 0L, 0L));
	}
	saved_errno = errno;
	if (new_fd >= 0 && obj)
		fd_call_name_copy(obj, fd, new_fd);
	else if (new_fd >= 0)
		obj = fd_call_adopt(new_fd);
	fd_object_put(obj);
	os_leave();
	errno = saved_errno;
	return new_fd;
}

/* By its number, since older C libraries do not know the call. */
int shim_pidfd_getfd(int pidfd, int fd, unsigned flags)
{
	bool has_objects = atomic_load_explicit(&fd_table_root, memory_order_relaxed) &&
			   !fd_table_is_closed();

	CALL_ENTERED(pidfd_getfd);
	if ((has_objects || mux_is_noted(fd)) && !os_is_inside())
		return get_fd(pidfd, fd, flags);
	return fd_table_forget(
		(int)real.syscall(SYS_pidfd_getfd, pidfd, fd, flags, 0L, 0L, 0L));
}

static int copy_to(int fd, int new_fd, int flags, bool is_dup3)
{
	return is_dup3 ? real.dup3(fd, new_fd, flags) : real.dup2(fd, new_fd);
}

/* Whether the kernel will let new_fd name another file. What it refuses must change
 * nothing of ours. */
static bool will_replace(int fd, int new_fd, int flags)
{
	struct rlimit limit;

	return fd != new_fd && !(flags & ~O_CLOEXEC) && new_fd >= 0 &&
	       getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)new_fd < limit.rlim_cur && real.fcntl(fd, F_GETFD) >= 0;
}

/* Refuses internal numbers, with the checks in the same order as in Linux. */
static int refuse_internal(int fd, int new_fd, int flags, bool is_dup3)
{
	errno = is_dup3 && (fd == new_fd || (flags & ~O_CLOEXEC)) ? EINVAL :
								    EBADF;
	return -1;
}

/*
 * dup2 and dup3 where one of the numbers is in the table, or might be in it soon. The
 * kernel replaces new_fd in one step and we do not: the old object goes before, the new one
 * comes after, and in between who calls waits (fd_change.h). Where the old one is the
 * kernel's, or nothing, it needs no such care: the number is a plain fd of the kernel then.
 */
static COLD int replace(int fd, int new_fd, int flags, bool is_dup3)
{
	struct fd_object *obj, *old = NULL;
	struct fd_change *change = NULL;
	struct fd_internal_way way;
	int result = -1, err, saved_errno;

	os_enter();
	obj = fd_table_get(fd);
	if (obj && obj->ops->is_internal) {
		result = refuse_internal(fd, new_fd, flags, is_dup3);
		goto out;
	}
	if (!will_replace(fd, new_fd, flags)) {
		result = copy_to(fd, new_fd, flags, is_dup3);
		goto out;
	}
	if (obj)
		fd_call_may_be_stream(obj, fd, new_fd);
	old = fd_table_get(new_fd);
	if (old && !old->ops->is_internal && !is_kernels(old))
		change = fd_change_begin(new_fd, old);
	if (old && !old->ops->is_internal && !change)
		fd_table_forget(new_fd);
	err = fd_internal_make_way(new_fd, &way);
	if (err) {
		errno = -err;
	} else {
		result = copy_to(fd, new_fd, flags, is_dup3);
		saved_errno = errno;
		fd_internal_end_way(&way);
		errno = saved_errno;
	}
	if (change)
		fd_change_end(change, new_fd, result < 0 ? NULL : obj);
	else if (result >= 0 && (!obj || fd_table_install(new_fd, obj) != 0))
		fd_table_forget(new_fd);
out:
	saved_errno = errno;
	fd_object_put(obj);
	fd_object_put_lingering(old);
	os_leave();
	errno = saved_errno;
	return result;
}

/* While there are objects, the library has fds of its own, and new_fd may become one of them
 * in this moment, or be none any more. */
static bool is_replacement_ours(int fd, int new_fd)
{
	bool has_own = atomic_load_explicit(&fd_table_root, memory_order_relaxed) &&
		       !fd_table_is_closed();

	return (has_own || fd_table_has(fd) || fd_table_has(new_fd)) &&
	       !os_is_inside();
}

int shim_dup2(int fd, int new_fd)
{
	CALL_ENTERED(dup2);
	fd_call_copied(fd);
	if (UNLIKELY(is_replacement_ours(fd, new_fd)))
		return replace(fd, new_fd, 0, false);
	return real.dup2(fd, new_fd);
}

int shim_dup3(int fd, int new_fd, int flags)
{
	CALL_ENTERED(dup3);
	fd_call_copied(fd);
	if (UNLIKELY(is_replacement_ours(fd, new_fd)))
		return replace(fd, new_fd, flags, true);
	return real.dup3(fd, new_fd, flags);
}

static COLD int close_around(unsigned first, unsigned last, int flags)
{
	struct fd_lingering lingering = { 0 };
	int result, saved_errno;

	os_enter();
	/* Flags that this kernel does not know, or no such call at all: a range in
	 * which no fd can be has the same answer, and closes nothing. */
	result = real.close_range(~0u, ~0u, flags);
	if (result == 0 && !(flags & CLOSE_RANGE_CLOEXEC))
		fd_table_remove_range(first, last, &lingering);
	if (result == 0)
		result = fd_internal_close_range(first, last, flags);
	saved_errno = errno;
	fd_table_end_lingering(&lingering);
	os_leave();
	errno = saved_errno;
	return result;
}

static bool is_range_ours(unsigned first, unsigned last)
{
	return first <= last && !os_is_inside() &&
	       atomic_load_explicit(&fd_table_root, memory_order_relaxed);
}

static int close_many(unsigned first, unsigned last, int flags)
{
	if (is_range_ours(first, last))
		return close_around(first, last, flags);
	return real.close_range(first, last, flags);
}

/* What the kernel would refuse parts nothing. Without the flag it can be asked. */
static bool will_unshare(unsigned first, unsigned last, int flags)
{
	return flags & CLOSE_RANGE_UNSHARE && first <= last &&
	       real.close_range(~0u, ~0u, flags & ~(int)CLOSE_RANGE_UNSHARE) == 0;
}

int shim_close_range(unsigned int first, unsigned int last, int flags)
{
	bool is_alone;
	int result;

	CALL_ENTERED(close_range);
	if (LIKELY(!will_unshare(first, last, flags)))
		return close_many(first, last, flags);
	process_gets_own_fds();
	is_alone = runtime_begin_alone();
	result = close_many(first, last, flags);
	runtime_end_alone(is_alone);
	return result;
}

void shim_closefrom(int first)
{
	unsigned low = first < 0 ? 0 : (unsigned)first;

	CALL_ENTERED(closefrom);
	if (is_range_ours(low, ~0u) && close_around(low, ~0u, 0) == 0)
		return;
	real.closefrom(first);
}

/* The resolver closes its sockets by itself; our table must know. */
void shim___res_iclose(res_state state, bool free_addr)
{
	CALL_ENTERED(__res_iclose);
	if (state->_vcsock >= 0)
		fd_table_forget(state->_vcsock);
	for (int i = 0; i < MAXNS; i++)
		if (state->_u._ext.nssocks[i] >= 0)
			fd_table_forget(state->_u._ext.nssocks[i]);
	real.__res_iclose(state, free_addr);
}
