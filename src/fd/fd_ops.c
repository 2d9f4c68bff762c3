/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stands in for the ops that a kind does not have: mostly the one that leaves
 * the call to libc. */
#include "config.h"

#include "fd/fd_ops.h"

#include "base/compiler.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CALL_OP(ret, name, params, args)                                    \
	static long pass_##name(struct fd_object *obj, FD_UNWRAP params)    \
	{                                                                   \
		return FD_PASS;                                             \
	}
#include "os/calls.def"
#pragma GCC diagnostic pop

/* The calls of fortified programs are the plain ones when the buffer is as large as
 * they say; when it is not, libc ends the program. */
static long chk_read(struct fd_object *obj, int fd, void *buf, size_t len,
		     size_t size)
{
	return len > size ? FD_PASS : obj->ops->read(obj, fd, buf, len);
}

static long chk_recv(struct fd_object *obj, int fd, void *buf, size_t len,
		     size_t size, int flags)
{
	return len > size ? FD_PASS : obj->ops->recv(obj, fd, buf, len, flags);
}

static long chk_recvfrom(struct fd_object *obj, int fd, void *buf, size_t len,
			 size_t size, int flags, struct sockaddr *addr,
			 socklen_t *addr_len)
{
	return len > size ? FD_PASS :
			    obj->ops->recvfrom(obj, fd, buf, len, flags, addr,
					       addr_len);
}

struct fd_slow_calls fd_slow_calls;

void fd_ops_nothing(struct fd_object *obj UNUSED)
{
}

static void leave_nothing(struct fd_object *obj UNUSED, int fd UNUSED,
			  enum reason reason UNUSED,
			  enum stats_decider decider UNUSED)
{
}

static void count_nothing(struct fd_object *obj UNUSED,
			  enum fd_traffic traffic UNUSED, long result UNUSED)
{
}

void fd_ops_fill(struct fd_ops *ops)
{
	if (!ops->__read_chk)
		ops->__read_chk = chk_read;
	if (!ops->__recv_chk)
		ops->__recv_chk = chk_recv;
	if (!ops->__recvfrom_chk)
		ops->__recvfrom_chk = chk_recvfrom;
#define CALL_OP(ret, name, params, args) \
	if (!ops->name)                  \
		ops->name = pass_##name;
#include "os/calls.def"
	if (!ops->quick_recv)
		ops->quick_recv = fd_slow_calls.recv;
	if (!ops->quick_send)
		ops->quick_send = fd_slow_calls.send;
	if (!ops->passed)
		ops->passed = count_nothing;
	if (!ops->leave)
		ops->leave = leave_nothing;
	if (!ops->last_close)
		ops->last_close = fd_ops_nothing;
	if (!ops->release)
		ops->release = fd_ops_nothing;
	if (!ops->forked)
		ops->forked = fd_ops_nothing;
}
