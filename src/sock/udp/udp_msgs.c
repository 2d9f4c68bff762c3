/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending vectors and messages: each is read, and then goes as any datagram does. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "base/clock.h"
#include "fd/fd_visit.h"
#include "os/inside.h"
#include "os/signals.h"
#include "sock/udp/udp_tx.h"

/* A message as a call, and what the call points to. */
struct tx_msg {
	struct tx_call call;
	struct user_name to;
	struct tx_control control;
	/* the control messages ask for what only the kernel does */
	bool is_beyond;
	/* they say where this one is stamped */
	bool has_stations;
};

static long send_vector(struct udp *u, int fd, const struct iovec *iov, int cnt, int flags)
{
	ssize_t len = cnt < 0 ? -EINVAL : user_iov_len(iov, (size_t)cnt);
	struct tx_call call = {
		.iov = iov,
		.iov_cnt = (size_t)cnt,
		.len = (size_t)len,
		.flags = flags,
	};

	/* where write() sends an empty datagram, Linux sends none */
	if (len == 0)
		return 0;
	return len < 0 ? udp_leave_to_twin(u, 0) : udp_send_call(u, fd, &call);
}

long udp_writev(struct fd_object *obj, int fd, const struct iovec *iov, int cnt)
{
	return send_vector(udp_of(obj), fd, iov, cnt, 0);
}

long udp_pwritev2(struct fd_object *obj, int fd, const struct iovec *iov, int cnt,
		  off_t offset, int flags)
{
	/* where there are places, libc has the right errno */
	if (offset != -1)
		return FD_PASS;
	if (UNLIKELY(flags & ~SOCK_RWF_SERVED))
		return udp_leave_asked(udp_of(obj), fd, 0, "a write with these flags");
	return send_vector(udp_of(obj), fd, iov, cnt,
			   flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
}

static bool read_control(const struct udp *u, const struct msghdr *msg,
			 struct tx_msg *out)
{
	if (!msg->msg_controllen)
		return true;
	out->call.control = &out->control;
	if (!user_is_plausible(msg->msg_control, msg->msg_controllen))
		return false;
	out->is_beyond = !tx_control_read(msg->msg_control, msg->msg_controllen,
					  u->sock.domain == AF_INET6, &out->control);
	out->has_stations = !out->is_beyond && out->control.has_stations;
	return !out->is_beyond && !out->has_stations;
}

/* Whether a message is one that we can send in the usual way. With `has_stations` it is not,
 * but has been read nevertheless. */
static bool read_msg(const struct udp *u, const struct msghdr *msg, int flags,
		     struct tx_msg *out)
{
	ssize_t len = user_iov_len(msg->msg_iov, msg->msg_iovlen);

	out->is_beyond = false;
	out->has_stations = false;
	if (len < 0)
		return false;
	out->call = (struct tx_call){
		.iov = msg->msg_iov,
		.iov_cnt = msg->msg_iovlen,
		.len = (size_t)len,
		.flags = flags,
	};
	/* one of no length is none */
	if (msg->msg_name && msg->msg_namelen) {
		out->call.to = &out->to;
		if (!udp_read_name(u, msg->msg_name, msg->msg_namelen, &out->to))
			return false;
	}
	return read_control(u, msg, out);
}

/* A message that read_msg does not let pass. */
static COLD long send_odd_msg(struct udp *u, int fd, const struct tx_msg *own,
			      int flags)
{
	if (own->has_stations)
		return udp_send_oddly(u, fd, &own->call);
	if (!own->is_beyond)
		return udp_leave_to_twin(u, flags);
	if (udp_stamps_stations(u, NULL))
		return udp_leave_followed(u, fd, flags);
	return udp_leave_asked(u, fd, flags, "a send with these control messages");
}

long udp_sendmsg(struct fd_object *obj, int fd, const struct msghdr *msg,
		 int flags)
{
	struct udp *u = udp_of(obj);
	struct tx_msg own;

	if (!user_is_plausible(msg, sizeof(*msg)))
		return udp_leave_to_twin(u, flags);
	if (UNLIKELY(!read_msg(u, msg, flags, &own)))
		return send_odd_msg(u, fd, &own, flags);
	return udp_send_call(u, fd, &own.call);
}

/* As many short datagrams as go at once under one hold of the lock. */
static unsigned send_run(struct udp *u, struct mmsghdr *msgs, unsigned cnt,
			 int flags)
{
	struct stack *stack;
	struct tx_msg own;
	unsigned done;

	sock_lock(&u->sock, &stack);
	for (done = 0; done < cnt; done++) {
		if (!read_msg(u, &msgs[done].msg_hdr, flags, &own) ||
		    !udp_send_short_locked(u, stack, &own.call))
			break;
		msgs[done].msg_len = (unsigned)own.call.len;
	}
	stack_unlock(stack);
	return done;
}

/* A burst as long as a ring takes between two kicks. */
enum { RUN_MAX = 32 };

/* Without a wait, in which the handler of a signal would not run. -EBADF: since the batch has
 * begun, another thread has closed the number, or given it to another file. */
static long send_by_twin(struct udp *u, int fd, const struct msghdr *msg,
			 int flags)
{
	struct fd_visit visit;
	long n;

	if (!fd_visit_begin(&visit, fd, &u->sock.obj))
		return -EBADF;
	n = inside_sendmsg(fd, msg, flags | MSG_DONTWAIT);
	fd_visit_end(&visit);
	stats_count_os_tx(&u->sock.stats, n);
	return n;
}

/* How long one sleep is at most: another thread may have given the number away. */
enum { ROOM_NAP_NS = 20 * 1000 * 1000 };

/* The same, but a blocking call waits for room as the kernel would. A handler ends it, since the batch
 * has others already. -EINTR, -EAGAIN: SO_SNDTIMEO is over; or FD_ABANDONED. */
static COLD long send_by_twin_in_time(struct udp *u, int fd, const struct msghdr *msg,
				      int flags)
{
	struct signals_mark mark = signals_mark();
	uint64_t limit_ns = atomic_load(&u->sock.tx_timeout_ns);
	uint64_t end_ns = limit_ns ? clock_monotonic_ns() + limit_ns : UINT64_MAX;
	struct timespec nap = { .tv_nsec = ROOM_NAP_NS };
	long n;

	while ((n = send_by_twin(u, fd, msg, flags)) == -EAGAIN &&
	       sock_is_blocking(&u->sock, flags) && clock_monotonic_ns() < end_ns) {
		struct pollfd twin = { .fd = fd, .events = POLLOUT };
		int slept = fd_wait(&u->sock.obj, &twin, 1, &nap, &mark, false, NULL,
				    NULL);

		if (slept < 0)
			return slept == -ECANCELED ? FD_ABANDONED : slept;
	}
	return n;
}

long udp_sendmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		  unsigned int cnt, int flags)
{
	struct udp *u = udp_of(obj);
	bool is_ours = udp_is_by_stack(u, fd, flags);
	/* those that the program follows go one by one */
	bool is_followed = !is_ours && sock_tx_holds(&u->sock) & SOCK_TX_STAMPED;
	unsigned done = 0;
	long n = 0;

	cnt = MIN(cnt, (unsigned)IOV_MAX);
	if (!(is_ours || is_followed) || !user_is_plausible(msgs, cnt * sizeof(*msgs)))
		return udp_leave_for(u, fd, flags);
	while (done < cnt) {
		unsigned run = is_followed ?
				       0 :
				       send_run(u, msgs + done,
						MIN(cnt - done,
						    (unsigned)RUN_MAX),
						flags);

		done += run;
		if (run)
			continue;
		/* one that needs more than that; with its own errors */
		n = udp_sendmsg(obj, fd, &msgs[done].msg_hdr, flags);
		if (n == FD_PASS) {
			n = done ? send_by_twin_in_time(u, fd, &msgs[done].msg_hdr,
							flags) :
				   send_by_twin(u, fd, &msgs[done].msg_hdr, flags);
			if (!done && (n == -EBADF ||
				      (n == -EAGAIN &&
				       sock_is_blocking(&u->sock, flags))))
				return FD_PASS;
		}
		if (n < 0)
			break;
		msgs[done++].msg_len = (unsigned)n;
	}
	if (n == FD_ABANDONED)
		return fd_wait_abandoned(obj, done);
	return done ? (long)done : n;
}
