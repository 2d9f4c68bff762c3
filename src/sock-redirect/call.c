/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The way into and out of a call on an object. */
#include "config.h"

#include "sock-redirect/call.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

#ifdef VMA_TEST
/* Calls are counted here before the constructor has run; these counts are lost. */
static _Atomic unsigned long too_early[2][CALL_ID_COUNT];
_Atomic unsigned long *call_entries = too_early[0], *call_ops = too_early[1];

__attribute__((constructor(101))) static void share_counters(void)
{
	void *page = mmap(NULL, sizeof(too_early), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	call_entries = page;
	call_ops = call_entries + CALL_ID_COUNT;
}
#endif

bool fd_call_is_odd(void)
{
	if (os_is_inside())
		return true;
	os_enter();
	fd_wait_collect();
	os_leave();
	return false;
}

enum fd_verdict fd_call_end_odd(const struct fd_call *call, long *result)
{
	long n = *result;

	/* An abandoned wait has given the reference back already. */
	if (n == FD_PASS)
		fd_object_put(call->obj);
	os_leave();
	*call->errno_at = call->saved_errno;
	if (n == FD_PASS)
		return FD_CALL_LIBC;
	if (!fd_wait_was_interrupted())
		return FD_CALL_AGAIN;
	*call->errno_at = EINTR;
	*result = -1;
	return FD_CALL_DONE;
}

long fd_call_passed(int fd, enum fd_traffic traffic, long result)
{
	int saved_errno = errno;
	struct fd_object *obj;

	os_enter();
	obj = fd_table_get(fd);
	if (obj)
		obj->ops->passed(obj, traffic,
				 result < 0 ? -saved_errno : result);
	fd_object_put(obj);
	os_leave();
	errno = saved_errno;
	return result;
}

COLD void fd_call_copied_set(int fd)
{
	int saved_errno = errno;

	os_enter();
	mux_epoll_copied(fd);
	os_leave();
	errno = saved_errno;
}

void fd_call_may_be_stream(struct fd_object *obj, int fd, int new_fd)
{
	if (new_fd >= 0 && new_fd <= STDERR_FILENO &&
	    S_ISSOCK(file_identify(fd).mode))
		obj->ops->leave(obj, fd, REASON_HANDED_ON, STATS_BY_HAND);
}

/* Without memory for the table the new fd stays what the kernel made it. */
void fd_call_name_copy(struct fd_object *obj, int fd, int new_fd)
{
	fd_call_may_be_stream(obj, fd, new_fd);
	if (fd_table_install(new_fd, obj) != 0)
		fd_table_forget(new_fd);
}

struct fd_object *fd_call_adopt(int fd)
{
	struct file_id id = file_identify(fd);
	struct fd_object *obj;

	fd_table_forget(fd);
	obj = S_ISSOCK(id.mode) ? fd_table_find_inode(id.ino) : NULL;
	if (obj)
		fd_call_name_copy(obj, fd, fd);
	return obj;
}

int fd_call_duplicate(int fd, int cmd, void *arg)
{
	struct fd_object *obj;
	int new_fd;

	fd_call_copied(fd);
	if (os_is_inside() || !fd_table_has(fd))
		return fd_table_forget(real.fcntl(fd, cmd, arg));
	os_enter();
	obj = fd_table_get(fd);
	if (obj && obj->ops->is_internal) {
		errno = EBADF;
		new_fd = -1;
	} else {
		new_fd = fd_table_forget(real.fcntl(fd, cmd, arg));
		if (obj && new_fd >= 0)
			fd_call_name_copy(obj, fd, new_fd);
	}
	fd_object_put(obj);
	os_leave();
	return new_fd;
}
