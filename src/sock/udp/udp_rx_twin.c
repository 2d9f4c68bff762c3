/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a receive call asks the twin for, and what it has kept of that (udp_rx_twin.h). */
#include "config.h"

#include "sock/udp/udp_rx_twin.h"

#include "fd/fd_visit.h"
#include "os/inside.h"
#include "sock/udp/udp_priv.h"

COLD void udp_keep_error(struct udp *u, long err)
{
	struct stack *stack;

	atomic_store(&u->kept_error, (int)err);
	atomic_store(&u->sock.is_twin_ready, true);
	if (!sock_try_lock(&u->sock, &stack))
		return;
	endpoint_set_ready(&u->sock.end, READY_ERR);
	stack_unlock(stack);
}

COLD long udp_take_error(struct udp *u)
{
	struct stack *stack;
	int err;

	if (LIKELY(!atomic_load(&u->kept_error)))
		return 0;
	err = atomic_exchange(&u->kept_error, 0);
	if (sock_try_lock(&u->sock, &stack)) {
		udp_settle_error(u);
		stack_unlock(stack);
	}
	return err;
}

/* -EAGAIN: it has nothing. */
static long read_number(struct udp *u, int fd, const struct rx_call *call)
{
	struct msghdr msg = {
		.msg_name = call->name,
		.msg_namelen = call->name ? *call->name_len : 0,
		.msg_iov = (struct iovec *)call->iov,
		.msg_iovlen = call->iov_cnt,
	};
	long n = udp_take_error(u);

	if (n)
		return n;
	/* before the read: what comes after it sets the flag again */
	atomic_store(&u->sock.is_twin_ready, false);
	if (atomic_load(&u->sock.rx_holds))
		atomic_store(&u->sock.is_twin_ready, true);
	if (call->msg)
		n = inside_recvmsg(fd, call->msg, call->flags | MSG_DONTWAIT);
	else
		n = inside_recvmsg(fd, &msg, call->flags | MSG_DONTWAIT);
	atomic_store(&u->is_twin_next, n >= 0 && call->flags & MSG_PEEK);
	if (n != -EAGAIN) {
		atomic_store(&u->sock.is_twin_ready, true);
		if (!(call->flags & MSG_PEEK))
			stats_count_os_rx(&u->sock.stats, n);
	}
	if (UNLIKELY(n == -EAGAIN && atomic_load(&u->is_twin_wide)) &&
	    !(call->flags & MSG_PEEK))
		udp_narrow_twin(u, fd);
	if (n >= 0 && call->name && !call->msg)
		*call->name_len = msg.msg_namelen;
	return n;
}

/* Receives from the twin. A call that has waited visits it, so that the number is not another
 * file's meanwhile. One that begins is as fast as libc's, and knows no better than that what the
 * number names when it enters the kernel. */
COLD long udp_read_twin(struct udp *u, int fd, const struct rx_call *call)
{
	struct fd_visit visit;
	long n;

	if (!call->has_waited)
		return sock_owns_fd(&u->sock, fd) ? read_number(u, fd, call) : -EBADF;
	if (!fd_visit_begin(&visit, fd, &u->sock.obj))
		return -EBADF;
	n = read_number(u, fd, call);
	fd_visit_end(&visit);
	return n;
}

COLD bool udp_ask_twin(struct udp *u, int fd)
{
	struct pollfd twin = { .fd = fd, .events = POLLIN };

	if (atomic_load(&u->sock.is_twin_ready))
		return true;
	if (sock_owns_fd(&u->sock, fd) && inside_poll(&twin, 1) == 0)
		return false;
	atomic_store(&u->sock.is_twin_ready, true);
	return true;
}
