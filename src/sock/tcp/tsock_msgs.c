/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forms in which programs send on a connection: bytes, vectors and messages. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "sock/tcp/tsock_tx.h"
#include "sock/tx_control.h"

static long send_memory(struct tsock *t, int fd, const void *buf, size_t len,
			int flags, const struct sockaddr *name,
			socklen_t name_len)
{
	struct iovec iov = user_buffer(buf, len);
	struct tx_call call = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = iov.iov_len,
		.flags = flags,
		.name = name,
		.name_len = name_len,
		.file = -1,
	};

	if (UNLIKELY(!user_is_plausible(buf, call.len)))
		return tsock_is_ours(t) ? -EFAULT : FD_PASS;
	return tsock_send_call(t, fd, &call);
}

long tsock_send(struct fd_object *obj, int fd, const void *buf, size_t len,
		int flags)
{
	return send_memory(tsock_of(obj), fd, buf, len, flags, NULL, 0);
}

/* A name makes no difference to a connection, but where MSG_FASTOPEN begins it. One that
 * cannot be is refused all the same; libc has the right errno. */
static bool is_name(const struct sockaddr *addr, socklen_t len)
{
	return !addr || (len <= sizeof(struct sockaddr_storage) &&
			 user_is_plausible(addr, len));
}

long tsock_sendto(struct fd_object *obj, int fd, const void *buf, size_t len,
		  int flags, const struct sockaddr *addr, socklen_t addr_len)
{
	if (!is_name(addr, addr_len))
		return FD_PASS;
	return send_memory(tsock_of(obj), fd, buf, len, flags, addr, addr_len);
}

long tsock_write(struct fd_object *obj, int fd, const void *buf, size_t len)
{
	struct tsock *t = tsock_of(obj);

	/* as read() */
	if (UNLIKELY(len > USER_MEMORY_SIZE) && tsock_is_ours(t))
		return -EFAULT;
	return send_memory(t, fd, buf, len, 0, NULL, 0);
}

static long send_vector(struct tsock *t, int fd, const struct iovec *iov,
			size_t cnt, int flags, const struct sockaddr *name,
			socklen_t name_len)
{
	ssize_t len = user_iov_len(iov, cnt);
	struct tx_call call = {
		.iov = iov,
		.iov_cnt = cnt,
		.len = (size_t)len,
		.flags = flags,
		.name = name,
		.name_len = name_len,
		.file = -1,
	};

	if (UNLIKELY(len == -EFAULT) && tsock_is_ours(t))
		return len;
	/* libc has the right errno */
	return len < 0 ? FD_PASS : tsock_send_call(t, fd, &call);
}

/* Nothing at all Linux writes to any file, whatever its state. */
static long write_vector(struct tsock *t, int fd, const struct iovec *iov, int cnt,
			 int flags)
{
	if (cnt < 0 || user_iov_len(iov, (size_t)cnt) == 0)
		return FD_PASS;
	return send_vector(t, fd, iov, (size_t)cnt, flags, NULL, 0);
}

long tsock_writev(struct fd_object *obj, int fd, const struct iovec *iov, int cnt)
{
	return write_vector(tsock_of(obj), fd, iov, cnt, 0);
}

long tsock_pwritev2(struct fd_object *obj, int fd, const struct iovec *iov,
		    int cnt, off_t offset, int flags)
{
	struct tsock *t = tsock_of(obj);

	/* where there are places, libc has the right errno */
	if (offset != -1 || !tsock_is_ours(t))
		return FD_PASS;
	if (UNLIKELY(flags & ~SOCK_RWF_SERVED))
		return tsock_send_leaves(t, fd, flags, "a write with these flags");
	return write_vector(t, fd, iov, cnt, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
}

/* Out of the socket or into it, without passing the program: the kernel's alone. */
long tsock_splice(struct fd_object *obj, int fd, off64_t *offset UNUSED, int fd2,
		  off64_t *offset2 UNUSED, size_t len UNUSED,
		  unsigned int flags UNUSED)
{
	struct tsock *t = tsock_of(obj);
	int err;

	if (!tsock_is_ours(t))
		return FD_PASS;
	err = tsock_leave_for(t, sock_owns_fd(&t->sock, fd) ? fd : fd2,
			      REASON_SPLICE, STATS_BY_SPLICE, "a splice", 0);
	return err ? err : FD_PASS;
}

/* Where it is stamped is all that we serve of control messages. */
static COLD long send_controlled(struct tsock *t, int fd, const struct msghdr *msg,
				 int flags)
{
	ssize_t len = user_iov_len(msg->msg_iov, msg->msg_iovlen);
	struct tx_control control;
	struct tx_call call = {
		.iov = msg->msg_iov,
		.iov_cnt = msg->msg_iovlen,
		.len = (size_t)len,
		.flags = flags,
		.name = msg->msg_name,
		.name_len = msg->msg_namelen,
		.file = -1,
		.has_stations = true,
	};
	uint32_t how = tx_stamps_flags(&t->stamps.own) & SOF_TIMESTAMPING_OPT_TSONLY;

	if (!user_is_plausible(msg->msg_control, msg->msg_controllen) ||
	    !tx_control_read(msg->msg_control, msg->msg_controllen, false,
			     &control) ||
	    !control.has_stations || control.asks_else ||
	    tsock_stamps_are_kernels(t, control.stations | how))
		return tsock_send_leaves(t, fd, flags, "a send with control messages");
	call.stations = control.stations;
	return len < 0 ? FD_PASS : tsock_send_call(t, fd, &call);
}

/* In a message a length that is too long is cut. */
static bool is_message_name(const struct msghdr *msg)
{
	socklen_t len = msg->msg_namelen;

	return !msg->msg_name ||
	       ((int)len >= 0 &&
		is_name(msg->msg_name,
			MIN(len, (socklen_t)sizeof(struct sockaddr_storage))));
}

long tsock_sendmsg(struct fd_object *obj, int fd, const struct msghdr *msg,
		   int flags)
{
	struct tsock *t = tsock_of(obj);

	if (!user_is_plausible(msg, sizeof(*msg)) || !is_message_name(msg))
		return FD_PASS;
	if (msg->msg_control && msg->msg_controllen && tsock_is_ours(t))
		return send_controlled(t, fd, msg, flags);
	return send_vector(t, fd, msg->msg_iov, msg->msg_iovlen, flags,
			   msg->msg_name, msg->msg_namelen);
}

long tsock_sendmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		    unsigned int cnt, int flags)
{
	unsigned done = 0;
	long n = 0;

	cnt = MIN(cnt, (unsigned)IOV_MAX);
	if (!user_is_plausible(msgs, cnt * sizeof(*msgs)) ||
	    !tsock_is_ours(tsock_of(obj)))
		return FD_PASS;
	while (done < cnt) {
		const struct msghdr *msg = &msgs[done].msg_hdr;

		n = tsock_sendmsg(obj, fd, msg, flags);
		if (n == FD_ABANDONED)
			return fd_wait_abandoned(obj, done);
		if (n < 0)
			break;
		msgs[done++].msg_len = (unsigned)n;
		/* nothing goes before the rest of one */
		if (n < user_iov_len(msg->msg_iov, msg->msg_iovlen))
			break;
	}
	return done ? (long)done : n;
}
