/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The op of a kind that leaves a call to libc. */
#include "config.h"

#include "sock/fd_ops.h"

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

static ssize_t slow_recv(int fd, void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 fd_recv_fn *slow)
{
	return slow(fd, buf, len, flags, entry);
}

static ssize_t slow_send(int fd, const void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 fd_send_fn *slow)
{
	return slow(fd, buf, len, flags, entry);
}

void fd_ops_nothing(struct fd_object *obj UNUSED)
{
}

static void count_nothing(struct fd_object *obj UNUSED,
			  enum fd_traffic traffic UNUSED, long result UNUSED)
{
}

void fd_ops_fill(struct fd_ops *ops)
{
#define CALL_OP(ret, name, params, args) \
	if (!ops->name)                  \
		ops->name = pass_##name;
#include "os/calls.def"
	if (!ops->quick_recv)
		ops->quick_recv = slow_recv;
	if (!ops->quick_send)
		ops->quick_send = slow_send;
	if (!ops->passed)
		ops->passed = count_nothing;
	if (!ops->last_close)
		ops->last_close = fd_ops_nothing;
	if (!ops->release)
		ops->release = fd_ops_nothing;
	if (!ops->forked)
		ops->forked = fd_ops_nothing;
}
