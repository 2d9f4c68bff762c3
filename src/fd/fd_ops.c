/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ops that are used where a kind has none of its own. Most of them leave the
 * call to libc. */
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

/* Not what the wrappers have set, which may come after the filling of a table. */
static ssize_t slow_recv(int fd, void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *named)
{
	return fd_slow_calls.recv(fd, buf, len, flags, entry, named);
}

static ssize_t slow_send(int fd, const void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *named)
{
	return fd_slow_calls.send(fd, buf, len, flags, entry, named);
}

static ssize_t slow_sendto(int fd, const void *buf, size_t len, int flags,
			   const struct sockaddr *addr, socklen_t addr_len,
			   const _Atomic(struct fd_object *) *entry,
			   struct fd_object *named)
{
	return fd_slow_calls.sendto(fd, buf, len, flags, addr, addr_len, entry,
				    named);
}

static void count_nothing(struct fd_object *obj UNUSED,
			  enum fd_traffic traffic UNUSED, long result UNUSED)
{
}

static void leave_nothing(struct fd_object *obj UNUSED, int fd UNUSED,
			  enum reason reason UNUSED,
			  enum stats_decider decider UNUSED)
{
}

static bool has_gone(struct fd_object *obj UNUSED)
{
	return false;
}

static void ignore_event(struct fd_object *obj UNUSED, uint32_t events UNUSED)
{
}

static enum fd_await await_kernel(struct fd_object *obj UNUSED,
				  struct endpoint **end_out UNUSED,
				  struct stack **stack_out UNUSED)
{
	return FD_AWAIT_KERNEL;
}

static struct endpoint *follow_nothing(struct fd_object *obj UNUSED,
				       struct stack **stack_out UNUSED)
{
	return NULL;
}

static enum fd_word say_part(const struct fd_object *obj UNUSED)
{
	return FD_WORD_PART;
}

static void ignore_news(struct fd_object *obj UNUSED, int fd UNUSED)
{
}

static void close_nothing(struct fd_object *obj UNUSED, int fd UNUSED)
{
}

static long linger_not(struct fd_object *obj UNUSED)
{
	return 0;
}

static void do_nothing(struct fd_object *obj UNUSED)
{
}

static long no_option(struct fd_object *obj UNUSED, int level UNUSED,
		      int name UNUSED, void *value UNUSED, socklen_t *len UNUSED)
{
	return FD_PASS;
}

static struct fd_object *no_heir(struct fd_object *obj UNUSED, int fd UNUSED)
{
	return NULL;
}

#define FILL(member, fn)           \
	do {                       \
		if (!ops->member)  \
			ops->member = fn; \
	} while (0)

void fd_ops_fill(struct fd_ops *ops)
{
	FILL(__read_chk, chk_read);
	FILL(__recv_chk, chk_recv);
	FILL(__recvfrom_chk, chk_recvfrom);
#define CALL_OP(ret, name, params, args) FILL(name, pass_##name);
#include "os/calls.def"
	FILL(quick_recv, slow_recv);
	FILL(quick_send, slow_send);
	FILL(quick_sendto, slow_sendto);
	FILL(passed, count_nothing);
	FILL(leave, leave_nothing);
	FILL(stays, has_gone);
	FILL(twin_event, ignore_event);
	FILL(await, await_kernel);
	FILL(follow, follow_nothing);
	FILL(word, say_part);
	FILL(await_room, do_nothing);
	FILL(follow_news, ignore_news);
	FILL(before_close, close_nothing);
	FILL(last_close, close_nothing);
	FILL(linger, linger_not);
	FILL(release, do_nothing);
	FILL(forked, do_nothing);
	FILL(heir, no_heir);
	FILL(heir_option, no_option);
}
