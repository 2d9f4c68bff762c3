/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls on an fd: the object's op, or libc. Most are made from calls.def. */
#include "config.h"

#include <string.h>
#include <sys/stat.h>

#include "fd/fd_flight.h"
#include "os/file.h"
#include "sock-redirect/call.h"
#include "sock/user_msg.h"

/* The body of a call on an object. If libc is to do the call, it ends without
 * returning, and `verdict_` is FD_CALL_LIBC if an object passed the call on. */
#define ON_OBJECT_OR(verdict_, ret, entry, name, ...)                         \
	do {                                                                  \
		struct fd_call call_;                                         \
		long result_;                                                 \
									      \
		while (UNLIKELY(verdict_ == FD_CALL_AGAIN) &&                 \
		       fd_call_begin(&call_, entry)) {                        \
			CALL_REACHED_OP(name);                                \
			result_ = call_.obj->ops->name(call_.obj,             \
						       __VA_ARGS__);          \
			verdict_ = fd_call_end(&call_, &result_);             \
			if (LIKELY(verdict_ == FD_CALL_DONE))                 \
				return (ret)result_;                          \
		}                                                             \
	} while (0)

#define ON_OBJECT(ret, entry, name, ...)                                      \
	do {                                                                  \
		enum fd_verdict is_passed_ = FD_CALL_AGAIN;                   \
		ON_OBJECT_OR(is_passed_, ret, entry, name, __VA_ARGS__);         \
	} while (0)

/* A wrapper in two parts, so that a call on an fd that is not ours saves no
 * register. */
#define CALL_SPLIT(ret, number, name, params, args)                          \
	ret shim_##name params                                               \
	{                                                                    \
		const _Atomic(struct fd_object *) *entry =                   \
			fd_table_entry(number);                              \
									     \
		CALL_ENTERED(name);                                          \
		return UNLIKELY(fd_table_names(entry)) ?                     \
			       object_##name(FD_UNWRAP args, entry) :        \
			       real.name args;                               \
	}
#define CALL_ON(ret, number, name, params, args)                             \
	static NOINLINE ret object_##name(                                   \
		FD_UNWRAP params, const _Atomic(struct fd_object *) *entry)  \
	{                                                                    \
		ON_OBJECT(ret, entry, name, FD_UNWRAP args);                 \
		return real.name args;                                       \
	}                                                                    \
	CALL_SPLIT(ret, number, name, params, args)

/* Flags of a receive call that takes nothing from the socket's queue. */
enum { RX_TAKES_NOTHING = MSG_PEEK | MSG_ERRQUEUE };

/* For calls that move data: the object is told when libc has done the call. */
#define CALL_MOVES(ret, name, params, args, traffic, is_counted)             \
	static NOINLINE ret object_##name(                                   \
		FD_UNWRAP params, const _Atomic(struct fd_object *) *entry)  \
	{                                                                    \
		enum fd_verdict verdict = FD_CALL_AGAIN;                     \
									     \
		ON_OBJECT_OR(verdict, ret, entry, name, FD_UNWRAP args);     \
		if (verdict == FD_CALL_LIBC && (is_counted))                 \
			return fd_call_passed(fd, traffic, real.name args);  \
		return real.name args;                                       \
	}                                                                    \
	CALL_SPLIT(ret, fd, name, params, args)
#define CALL_FD_RX(ret, name, params, args, flags_)            \
	CALL_MOVES(ret, name, params, args, FD_RECEIVED,       \
		   !((flags_) & RX_TAKES_NOTHING))
#define CALL_FD_TX(ret, name, params, args) \
	CALL_MOVES(ret, name, params, args, FD_SENT, true)
#define CALL_FD(ret, name, params, args) CALL_ON(ret, fd, name, params, args)
#define CALL_FD2(ret, name, params, args) \
	CALL_ON(ret, fd_table_has(fd) ? fd : fd2, name, params, args)
#define CALL_MAKER(ret, name, params, args)                \
	ret shim_##name params                             \
	{                                                  \
		CALL_ENTERED(name);                        \
		return fd_table_forget(real.name args);    \
	}
#include "os/calls.def"

static ssize_t object_recv(int fd, void *buf, size_t len, int flags,
			   const _Atomic(struct fd_object *) *entry,
			   struct fd_object *named UNUSED)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;

	ON_OBJECT_OR(verdict, ssize_t, entry, recv, fd, buf, len, flags);
	if (verdict == FD_CALL_LIBC && !(flags & RX_TAKES_NOTHING))
		return fd_call_passed(fd, FD_RECEIVED,
				      real.recv(fd, buf, len, flags));
	return real.recv(fd, buf, len, flags);
}

ssize_t shim_recv(int fd, void *buf, size_t len, int flags)
{
	const _Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *obj;

	CALL_ENTERED(recv);
	if (UNLIKELY(!entry))
		return real.recv(fd, buf, len, flags);
	obj = atomic_load_explicit(entry, memory_order_acquire);
	return obj ? obj->ops->quick_recv(fd, buf, len, flags, entry, obj) :
		     real.recv(fd, buf, len, flags);
}

/*
 * A dummy send of VMA's (VMA_SND_FLAGS_DUMMY) is never to reach the wire. There is none here,
 * and Linux, which takes no notice of the flag, would send the bytes.
 */
static COLD int refuse_dummy(void)
{
	errno = EINVAL;
	return -1;
}

static ssize_t kernel_send(int fd, const void *buf, size_t len, int flags)
{
	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	return real.send(fd, buf, len, flags);
}

static ssize_t object_send(int fd, const void *buf, size_t len, int flags,
			   const _Atomic(struct fd_object *) *entry,
			   struct fd_object *named UNUSED)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;

	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	ON_OBJECT_OR(verdict, ssize_t, entry, send, fd, buf, len, flags);
	if (verdict == FD_CALL_LIBC)
		return fd_call_passed(fd, FD_SENT,
				      real.send(fd, buf, len, flags));
	return real.send(fd, buf, len, flags);
}

ssize_t shim_send(int fd, const void *buf, size_t len, int flags)
{
	const _Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *obj;

	CALL_ENTERED(send);
	if (UNLIKELY(!entry))
		return kernel_send(fd, buf, len, flags);
	obj = atomic_load_explicit(entry, memory_order_acquire);
	return obj ? obj->ops->quick_send(fd, buf, len, flags, entry, obj) :
		     kernel_send(fd, buf, len, flags);
}

static ssize_t kernel_sendto(int fd, const void *buf, size_t len, int flags,
			     const struct sockaddr *addr, socklen_t addr_len)
{
	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	return real.sendto(fd, buf, len, flags, addr, addr_len);
}

static ssize_t object_sendto(int fd, const void *buf, size_t len, int flags,
			     const struct sockaddr *addr, socklen_t addr_len,
			     const _Atomic(struct fd_object *) *entry,
			     struct fd_object *named UNUSED)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;
	ssize_t n;

	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	ON_OBJECT_OR(verdict, ssize_t, entry, sendto, fd, buf, len, flags, addr,
		     addr_len);
	n = real.sendto(fd, buf, len, flags, addr, addr_len);
	return verdict == FD_CALL_LIBC ? fd_call_passed(fd, FD_SENT, n) : n;
}

ssize_t shim_sendto(int fd, const void *buf, size_t len, int flags,
		    const struct sockaddr *addr, socklen_t addr_len)
{
	const _Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *obj;

	CALL_ENTERED(sendto);
	if (UNLIKELY(!entry))
		return kernel_sendto(fd, buf, len, flags, addr, addr_len);
	obj = atomic_load_explicit(entry, memory_order_acquire);
	return obj ? obj->ops->quick_sendto(fd, buf, len, flags, addr, addr_len,
					    entry, obj) :
		     kernel_sendto(fd, buf, len, flags, addr, addr_len);
}

void fd_calls_load(void)
{
	fd_slow_calls = (struct fd_slow_calls){ object_recv, object_send,
						object_sendto };
}

/* libc has accepted new_fd, or nothing. */
static int accepted(int fd, int new_fd)
{
	fd_table_forget(new_fd);
	if (UNLIKELY(fd_table_has(fd)))
		fd_call_passed(fd, FD_ACCEPTED, new_fd);
	return new_fd;
}

int shim_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	CALL_ENTERED(accept);
	ON_OBJECT(int, fd_table_entry(fd), accept, fd, addr, len);
	return accepted(fd, real.accept(fd, addr, len));
}

int shim_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	CALL_ENTERED(accept4);
	ON_OBJECT(int, fd_table_entry(fd), accept4, fd, addr, len, flags);
	return accepted(fd, real.accept4(fd, addr, len, flags));
}

/* What is done with each fd in a control message. False where nothing is to be told. */
typedef bool fd_fn(int fd);

static bool for_fds_in(const struct cmsghdr *cmsg, fd_fn *fn)
{
	bool result = false;
	size_t len = cmsg->cmsg_len - CMSG_LEN(0);
	int fd;

	for (size_t at = 0; at + sizeof(fd) <= len; at += sizeof(fd)) {
		memcpy(&fd, CMSG_DATA(cmsg) + at, sizeof(fd));
		result |= fn(fd);
	}
	return result;
}

/* The program's lengths have not been checked by anybody yet. */
static bool is_within(const struct msghdr *msg, const struct cmsghdr *cmsg)
{
	const char *end = (const char *)msg->msg_control + msg->msg_controllen;

	return cmsg->cmsg_len >= CMSG_LEN(0) &&
	       cmsg->cmsg_len <= (size_t)(end - (const char *)cmsg);
}

/* Whether `fn` has said yes to any of them. */
static COLD bool for_fds_of_message(const struct msghdr *msg, fd_fn *fn)
{
	/* The macros take no const. */
	struct msghdr *walked = (struct msghdr *)msg;
	int saved_errno = errno;
	struct cmsghdr *cmsg;
	bool result = false;

	os_enter();
	for (cmsg = CMSG_FIRSTHDR(walked); cmsg && is_within(msg, cmsg);
	     cmsg = CMSG_NXTHDR(walked, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET &&
		    cmsg->cmsg_type == SCM_RIGHTS)
			result |= for_fds_in(cmsg, fn);
	os_leave();
	errno = saved_errno;
	return result;
}

/* Fds only matter when there are objects that they could name. What cannot be a
 * message is left to the kernel, which has the right errno. */
static bool may_carry_objects(const struct msghdr *msg)
{
	return atomic_load_explicit(&fd_table_root, memory_order_relaxed) &&
	       !fd_table_is_closed() && user_is_plausible(msg, sizeof(*msg)) &&
	       msg->msg_controllen >= CMSG_LEN(sizeof(int)) &&
	       user_is_plausible(msg->msg_control, msg->msg_controllen) &&
	       !os_is_inside();
}

/* How many messages of a batch may be looked at: the kernel takes no more. */
static unsigned batch_len(const struct mmsghdr *msgs, unsigned cnt)
{
	cnt = MIN(cnt, (unsigned)UIO_MAXIOV);
	return user_is_array_plausible(msgs, cnt, sizeof(*msgs)) ? cnt : 0;
}

/* A received fd names a file of the sender. */
static bool adopt_fd(int fd)
{
	struct fd_object *obj = fd_call_adopt(fd);

	if (obj)
		fd_flight_end(obj);
	fd_object_put(obj);
	return false;
}

/* The receiver gets the kernel's socket, so the kernel must have everything that is
 * in it. True: it has not. */
static bool send_fd(int fd)
{
	struct fd_object *obj = fd_table_get(fd);
	bool result;

	if (obj && !obj->ops->is_internal)
		obj->ops->leave(obj, fd, REASON_HANDED_ON, STATS_BY_HAND);
	result = obj && obj->ops->stays(obj);
	fd_object_put(obj);
	fd_flight_start(fd);
	return result;
}

/* The fd did not leave after all. */
static bool ground_fd(int fd)
{
	struct fd_object *obj = fd_table_get(fd);

	if (obj)
		fd_flight_end(obj);
	fd_object_put(obj);
	return false;
}

/* A batch that libc has done for an object: `n` messages, or -1. */
static void passed_batch(int fd, enum fd_traffic traffic,
			 const struct mmsghdr *msgs, int n)
{
	if (n < 0)
		fd_call_passed(fd, traffic, n);
	for (int i = 0; i < n; i++)
		fd_call_passed(fd, traffic, (long)msgs[i].msg_len);
}

ssize_t shim_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;
	bool has_objects;
	ssize_t n;

	CALL_ENTERED(sendmsg);
	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	ON_OBJECT_OR(verdict, ssize_t, fd_table_entry(fd), sendmsg, fd, msg, flags);
	has_objects = UNLIKELY(may_carry_objects(msg));
	if (has_objects && for_fds_of_message(msg, send_fd)) {
		(void)for_fds_of_message(msg, ground_fd);
		errno = EOPNOTSUPP;
		return -1;
	}
	n = real.sendmsg(fd, msg, flags);
	if (UNLIKELY(verdict == FD_CALL_LIBC))
		fd_call_passed(fd, FD_SENT, n);
	if (has_objects && n < 0)
		(void)for_fds_of_message(msg, ground_fd);
	return n;
}

int shim_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;
	unsigned len;
	int n;

	CALL_ENTERED(sendmmsg);
	if (UNLIKELY(flags & MSG_SYN))
		return refuse_dummy();
	ON_OBJECT_OR(verdict, int, fd_table_entry(fd), sendmmsg, fd, msgs, cnt, flags);
	len = batch_len(msgs, cnt);
	for (unsigned i = 0; i < len; i++)
		if (UNLIKELY(may_carry_objects(&msgs[i].msg_hdr)))
			if (for_fds_of_message(&msgs[i].msg_hdr, send_fd)) {
				/* those before it leave */
				len = i + 1;
				cnt = i;
			}
	if (UNLIKELY(len && !cnt)) {
		errno = EOPNOTSUPP;
		n = -1;
	} else {
		n = real.sendmmsg(fd, msgs, cnt, flags);
	}
	if (UNLIKELY(verdict == FD_CALL_LIBC))
		passed_batch(fd, FD_SENT, msgs, n);
	for (unsigned i = (unsigned)MAX(n, 0); i < len; i++)
		if (UNLIKELY(may_carry_objects(&msgs[i].msg_hdr)))
			(void)for_fds_of_message(&msgs[i].msg_hdr, ground_fd);
	return n;
}

ssize_t shim_recvmsg(int fd, struct msghdr *msg, int flags)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;
	ssize_t n;

	CALL_ENTERED(recvmsg);
	ON_OBJECT_OR(verdict, ssize_t, fd_table_entry(fd), recvmsg, fd, msg, flags);
	n = real.recvmsg(fd, msg, flags);
	if (UNLIKELY(verdict == FD_CALL_LIBC) && !(flags & RX_TAKES_NOTHING))
		fd_call_passed(fd, FD_RECEIVED, n);
	if (n >= 0 && UNLIKELY(may_carry_objects(msg)))
		(void)for_fds_of_message(msg, adopt_fd);
	return n;
}

int shim_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags,
		  struct timespec *timeout)
{
	enum fd_verdict verdict = FD_CALL_AGAIN;
	int n;

	CALL_ENTERED(recvmmsg);
	ON_OBJECT_OR(verdict, int, fd_table_entry(fd), recvmmsg, fd, msgs, cnt, flags, timeout);
	n = real.recvmmsg(fd, msgs, cnt, flags, timeout);
	if (UNLIKELY(verdict == FD_CALL_LIBC) && !(flags & RX_TAKES_NOTHING))
		passed_batch(fd, FD_RECEIVED, msgs, n);
	for (int i = 0; i < n; i++)
		if (UNLIKELY(may_carry_objects(&msgs[i].msg_hdr)))
			(void)for_fds_of_message(&msgs[i].msg_hdr, adopt_fd);
	return n;
}

static bool is_duplication(int cmd)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

int shim_fcntl(int fd, int cmd, void *arg)
{
	CALL_ENTERED(fcntl);
	if (is_duplication(cmd))
		return fd_call_duplicate(fd, cmd, arg);
	ON_OBJECT(int, fd_table_entry(fd), fcntl, fd, cmd, arg);
	return real.fcntl(fd, cmd, arg);
}

int shim_fcntl64(int fd, int cmd, void *arg)
{
	CALL_ENTERED(fcntl64);
	if (is_duplication(cmd))
		return fd_call_duplicate(fd, cmd, arg);
	ON_OBJECT(int, fd_table_entry(fd), fcntl64, fd, cmd, arg);
	return real.fcntl64(fd, cmd, arg);
}

int shim_ioctl(int fd, unsigned long request, void *arg)
{
	CALL_ENTERED(ioctl);
	ON_OBJECT(int, fd_table_entry(fd), ioctl, fd, request, arg);
	return real.ioctl(fd, request, arg);
}
