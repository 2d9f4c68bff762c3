/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ends of quick ops (fd_quick.h). */
#include "config.h"

#include "fd/fd_quick.h"

ssize_t fd_quick_undo_recv(int fd, void *buf, size_t len, int flags,
			   struct fd_object *obj)
{
	fd_object_put(obj);
	os_leave_last();
	return fd_slow_calls.recv(fd, buf, len, flags, fd_table_entry(fd), obj);
}

ssize_t fd_quick_undo_send(int fd, const void *buf, size_t len, int flags,
			   struct fd_object *obj)
{
	fd_object_put(obj);
	os_leave_last();
	return fd_slow_calls.send(fd, buf, len, flags, fd_table_entry(fd), obj);
}

ssize_t fd_quick_undo_sendto(int fd, const void *buf, size_t len, int flags,
			     const struct sockaddr *addr, socklen_t addr_len,
			     struct fd_object *obj)
{
	fd_object_put(obj);
	os_leave_last();
	return fd_slow_calls.sendto(fd, buf, len, flags, addr, addr_len,
				    fd_table_entry(fd), obj);
}

ssize_t fd_quick_again(void)
{
	os_thread.errno_at = &errno;
	errno = EAGAIN;
	return -1;
}

ssize_t fd_quick_deliver(ssize_t n)
{
	os_deliver_deferred();
	return n >= 0 ? n : fd_quick_again();
}

ssize_t fd_quick_release(struct fd_object *obj, ssize_t n)
{
	int saved_errno = errno;

	obj->ops->release(obj);
	os_leave_last();
	errno = n >= 0 ? saved_errno : EAGAIN;
	return n;
}
