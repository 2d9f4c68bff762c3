/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving from a connection of ours. Bytes are unlinked under the lock, and copied
 * after it unless they are few. A connection that becomes the kernel's in the middle of
 * a call goes on there, behind the bytes that the call has already.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "os/inside.h"
#include "sock/tcp/tsock_priv.h"

/* So many bytes are copied under the stack's lock. */
enum { COPY_LOCKED_MAX = 256 };

/* A receive call, whichever it was. */
struct rx_call {
	const struct iovec *iov;
	size_t iov_cnt;
	/* what it wants, and has got */
	size_t len, done;
	int flags;
	/* the urgent byte was there for it */
	bool is_urgent;
	/* its batch has others already */
	bool is_behind;
	/* the message that it fills, if it is one; the twin has filled that in */
	struct msghdr *msg;
	bool is_told;
	/* a handler has ended it before it had all that it wants */
	bool is_cut;
	/* when it ends, once it has waited */
	bool has_waited;
	uint64_t deadline_ns;
	/* when the last bytes were received that it has got; time 0: nobody knows */
	struct user_stamps stamps;
};

/* -- copying -------------------------------------------------------------------------- */

/* Without a lock. With MSG_TRUNC the program wants no bytes, only their number. */
static void copy_list(struct rx_call *call, struct list *pkts)
{
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, pkts, link) {
		if (!(call->flags & MSG_TRUNC))
			user_iov_write(call->iov, call->iov_cnt, call->done,
				       pkt->data, pkt->len);
		call->done += pkt->len;
		if (pkt->time_ns)
			call->stamps = (struct user_stamps){
				.time_ns = pkt->time_ns,
				.card_ns = pkt_card_ns(pkt),
			};
	}
}

/* Shows what is there once more: the packets stay. Returns the packets that borrow
 * them, in `pkts`. Under the lock. */
static void borrow_all(struct tsock *t, size_t max, struct list *pkts)
{
	struct pkt *pkt = NULL, *copy;
	uint32_t skip, span = tcp_unread_span(t->pcb, &skip);

	max = MIN(max, (size_t)span);
	while (max && (pkt = tcp_unread_next(t->pcb, pkt))) {
		uint32_t passed = MIN(skip, pkt->len);
		uint32_t len = (uint32_t)MIN((size_t)(pkt->len - passed), max);

		skip -= passed;
		if (!len)
			continue;
		copy = pkt_borrow(&t->engine->borrowers, pkt, passed, len);
		if (!copy)
			return;
		list_push_back(pkts, &copy->link);
		max -= len;
	}
}

/* The first bytes of what borrow_all would show. */
static uint32_t peek_some(const struct tsock *t, uint8_t *to, uint32_t max)
{
	uint32_t skip, span = tcp_unread_span(t->pcb, &skip);
	const struct pkt *pkt = tcp_unread_next(t->pcb, NULL);
	uint32_t len;

	if (pkt && pkt->len <= skip) {
		skip -= pkt->len;
		pkt = tcp_unread_next(t->pcb, pkt);
	}
	if (!pkt)
		return 0;
	len = MIN(MIN(max, span), pkt->len - skip);
	memcpy(to, pkt->data + skip, len);
	return len;
}

/* The first bytes, for when no packet could be borrowed to cut one with. Under the lock. */
static void copy_some(struct tsock *t, struct rx_call *call, uint32_t max)
	REQUIRES(t->engine->stack->lock)
{
	uint8_t some[COPY_LOCKED_MAX];
	uint32_t len = MIN(max, (uint32_t)sizeof(some));

	if (call->flags & MSG_PEEK) {
		len = peek_some(t, some, len);
	} else {
		len = tcp_take_bytes(t->pcb, len, some);
		tcp_recved(t->pcb, len, tsock_now(t));
		tcp_engine_due_locked(t->engine);
	}
	if (!(call->flags & MSG_TRUNC))
		user_iov_write(call->iov, call->iov_cnt, call->done, some, len);
	call->done += len;
}

/* Whether the call's pointers can be right. */
static bool is_plausible(const struct rx_call *call)
{
	return call->flags & MSG_TRUNC ||
	       user_iov_len(call->iov, call->iov_cnt) >= 0;
}

/* The least that the call waits for. */
static size_t wanted(const struct tsock *t, const struct rx_call *call)
{
	size_t lowat = (size_t)atomic_load_explicit(&t->rcv_lowat,
						    memory_order_relaxed);

	if (call->flags & MSG_WAITALL)
		return call->len;
	return MIN(call->len, lowat);
}

/* Whether there is something that the call has not seen. */
static bool has_more(const struct tsock *t, const struct rx_call *call)
{
	if (!t->pcb)
		return false;
	return call->flags & MSG_PEEK ? tcp_shown(t->pcb) > call->done :
					tcp_has_data(t->pcb);
}

/* As in Linux, a call that has some bytes does not read on from the urgent mark. */
static bool is_at_mark(const struct tsock *t, const struct rx_call *call)
{
	uint32_t skip;

	if (LIKELY(tcp_urgent_state(t->pcb) == TCP_URGENT_NONE))
		return false;
	return call->flags & MSG_PEEK ? tcp_unread_span(t->pcb, &skip) == call->done :
					tcp_at_mark(t->pcb);
}

/* Whether a call that has some bytes, and waits for more, has all that it gets: an error or
 * the end behind them is for the next one. */
static bool has_all(const struct tsock *t, const struct rx_call *call)
{
	/* the kernel has the rest of one that has gone back */
	if (!t->pcb)
		return tsock_is_ours(t);
	if (is_at_mark(t, call))
		return true;
	return !has_more(t, call) && (t->error || t->is_shut_rd || tcp_has_end(t->pcb) ||
				      tcp_state(t->pcb) == TCPS_CLOSED);
}

/* Takes what is there, up to what the call still wants. The lock is released for a long
 * copy. Under the lock, which it releases. 0: the call is over; -EAGAIN: it would wait. */
static long take(struct tsock *t, struct rx_call *call)
	RELEASES(t->engine->stack->lock)
{
	uint32_t max = (uint32_t)MIN(call->len - call->done, (size_t)INT_MAX);
	struct list pkts = LIST_INIT(pkts);
	size_t before = call->done;
	uint32_t len = 0;
	bool is_over;

	if (call->flags & MSG_PEEK) {
		borrow_all(t, max, &pkts);
	} else {
		len = tcp_take(t->pcb, max, &pkts);
		tcp_recved(t->pcb, len, tsock_now(t));
		tcp_engine_due_locked(t->engine);
		tsock_update(t, 0);
	}
	if (UNLIKELY(list_is_empty(&pkts) && max))
		copy_some(t, call, max);
	if (len > COPY_LOCKED_MAX || call->flags & MSG_PEEK) {
		tsock_unlock(t);
		copy_list(call, &pkts);
		tsock_lock(t);
	} else {
		copy_list(call, &pkts);
	}
	pkt_put_list(&pkts);
	if (!(call->flags & MSG_PEEK)) {
		struct stats_socket_counters *c = sock_counters(&t->sock);

		c->rx_packets++;
		c->rx_bytes += call->done - before;
	}
	is_over = call->done >= wanted(t, call) || has_all(t, call);
	tsock_unlock(t);
	return is_over && (call->done != before || call->flags & MSG_PEEK) ? 0 : -EAGAIN;
}

/* -- one look --------------------------------------------------------------------------- */

/* What a call without bytes says, when there are none. */
static long state_result(struct tsock *t)
{
	long err;

	/* behind the end there is no error */
	if (t->pcb && tcp_at_end(t->pcb))
		return 0;
	err = tsock_take_error(t);
	if (err)
		return err;
	if (!t->pcb || tcp_state(t->pcb) == TCPS_CLOSED)
		return 0;
	if (t->is_shut_rd || tcp_at_end(t->pcb))
		return 0;
	return -EAGAIN;
}

/* The next short segment, straight from the ring. True: the call has it. */
static inline bool take_direct(struct tsock *t, struct rx_call *call)
	REQUIRES(t->engine->stack->lock)
{
	long n;

	if (stack_has_quiet_rings(t->engine->stack) || !t->pcb || t->error || t->is_shut_rd ||
	    tsock_tells_stamps(t) ||
	    call->iov_cnt != 1 || !call->len || call->done ||
	    call->flags & (MSG_PEEK | MSG_TRUNC) || !is_plausible(call))
		return false;
	n = tsock_take_direct(t, t->engine->stack, call->iov[0].iov_base,
			      call->iov[0].iov_len);
	if (n < 0)
		return false;
	call->done = (size_t)n;
	return true;
}

/* As in Linux, who finds nothing but the urgent byte at the mark has passed it all the same. */
static void pass_mark(struct tsock *t, const struct rx_call *call)
	REQUIRES(t->engine->stack->lock)
{
	if (tcp_urgent_state(t->pcb) == TCP_URGENT_NONE || call->done || !call->len ||
	    call->flags & MSG_PEEK)
		return;
	tcp_pass_mark(t->pcb);
	tsock_update(t, 0);
}

/* 0 and more: the call is over, with call->done bytes; -EAGAIN: it would wait for more;
 * another error. */
static long look_once(struct tsock *t, struct rx_call *call)
{
	long n;

again:
	/* what is announced is taken below */
	stack_lock(t->engine->stack);
	if (UNLIKELY(!tsock_is_ours(t))) {
		tsock_unlock(t);
		return FD_PASS;
	}
	if (tsock_is_moving(t)) {
		tsock_unlock(t);
		tsock_await_move(t);
		goto again;
	}
	/* who has looked at what there is wants what is not there yet */
	if (!t->pcb || !tcp_has_data(t->pcb) || (call->flags & MSG_PEEK && call->done)) {
		if (take_direct(t, call)) {
			tsock_unlock(t);
			return call->done >= wanted(t, call) ? 0 : -EAGAIN;
		}
		tsock_poll_locked(t);
	} else if (stack_poll_beside_locked(t->engine->stack)) {
		tsock_run_locked(t);
	}
	if (UNLIKELY(!t->pcb || !tcp_has_data(t->pcb))) {
		if (t->pcb)
			pass_mark(t, call);
		if (call->done)
			n = has_all(t, call) ? 0 : -EAGAIN;
		else
			n = state_result(t);
		if (n == -EAGAIN)
			sock_counters(&t->sock)->rx_eagain++;
		tsock_unlock(t);
		return n;
	}
	if (UNLIKELY(!is_plausible(call))) {
		tsock_unlock(t);
		return -EFAULT;
	}
	if (UNLIKELY(!call->len)) {
		tsock_unlock(t);
		return 0;
	}
	if (call->flags & MSG_PEEK) {
		call->done = 0;
	} else if (UNLIKELY(call->done && is_at_mark(t, call))) {
		tsock_unlock(t);
		return 0;
	}
	return take(t, call);
}

static long look(struct tsock_wait *w)
{
	struct rx_call *call = w->ctx;
	long n = look_once(w->t, call);

	if (call->done)
		tsock_wait_has_some(w);
	return n;
}

/* -- calls ------------------------------------------------------------------------------ */

/* What the twin has. An error is for the next call, if this one has something to tell.
 * -EAGAIN: nothing. */
static long read_twin(struct tsock *t, int fd, struct rx_call *call)
{
	struct iovec iov[64];
	struct msghdr msg = { .msg_iov = iov };
	struct fd_visit visit;
	int twin = tsock_begin_twin(t, fd, &visit), unread = 0;
	struct pollfd pfd = { .fd = twin, .events = POLLIN };
	long n = MIN(twin, 0);

	if (twin >= 0 && call->done) {
		n = inside_poll(&pfd, 1) > 0 && pfd.revents & (POLLIN | POLLHUP) ? 0 : -EAGAIN;
		(void)!syscall_raw(SYS_ioctl, twin, FIONREAD, (long)&unread, 0, 0, 0);
	}
	if (twin >= 0 && (!call->done || unread)) {
		msg.msg_iovlen = user_iov_rest(call->iov, call->iov_cnt, call->done, iov,
					       ARRAY_LEN(iov));
		if (call->msg && !call->done) {
			msg.msg_control = call->msg->msg_control;
			msg.msg_controllen = call->msg->msg_controllen;
		}
		n = inside_recvmsg(twin, &msg,
				   (call->flags & ~MSG_WAITALL) | MSG_DONTWAIT);
	}
	if (n >= 0 && call->msg && !call->done) {
		call->msg->msg_controllen = msg.msg_controllen;
		call->msg->msg_flags = msg.msg_flags;
		call->is_told = true;
	}
	tsock_end_twin(twin, &visit);
	return n;
}

/* The connection has become the kernel's while the call waited, or had some bytes: the twin
 * gives the rest, for which MSG_WAITALL goes on waiting. */
static COLD long go_on_with_twin(struct tsock *t, int fd, struct rx_call *call)
{
	bool may_wait = call->has_waited || sock_is_blocking(&t->sock, call->flags);
	long n;

	/* what was only looked at the twin shows as well */
	if (call->flags & MSG_PEEK)
		call->done = 0;
	if (!call->done && !call->has_waited && !call->is_behind)
		return FD_PASS;
	/* no poll waits for more than there is to look at; the kernel's own call does */
	if (call->flags & MSG_PEEK && call->flags & MSG_WAITALL && sock_owns_fd(&t->sock, fd))
		return FD_PASS;
	for (;;) {
		n = read_twin(t, fd, call);
		if (n > 0) {
			call->done += (size_t)n;
			if (call->flags & MSG_PEEK || call->done >= wanted(t, call))
				break;
			continue;
		}
		if (n != -EAGAIN || !may_wait || (call->done && !(call->flags & MSG_WAITALL)))
			break;
		n = tsock_wait_for_twin(t, fd, POLLIN, call->deadline_ns,
					call->done || call->is_behind);
		call->is_cut = n == -EINTR;
		if (n == FD_ABANDONED)
			return fd_wait_abandoned(&t->sock.obj, (long)call->done);
		if (n)
			break;
	}
	return call->done ? (long)call->done : n;
}

static long receive_urgent(struct tsock *t, struct rx_call *call)
{
	uint8_t byte;
	bool is_over;
	int err;

	for (;;) {
		if (!tsock_lock_ours(t))
			return FD_PASS;
		if (!tsock_is_moving(t))
			break;
		tsock_unlock(t);
		tsock_await_move(t);
	}
	tsock_poll_locked(t);
	err = t->pcb ? tcp_take_urgent(t->pcb, &byte, call->flags & MSG_PEEK) :
		       -EINVAL;
	is_over = t->is_shut_rd || (t->pcb && tcp_has_end(t->pcb));
	if (!err)
		tsock_update(t, 0);
	tsock_unlock(t);
	/* it was announced, and will not come any more */
	if (err == -EAGAIN && is_over)
		return 0;
	if (err)
		return err;
	call->is_urgent = true;
	if (!call->len)
		return 0;
	if (!is_plausible(call))
		return -EFAULT;
	if (!(call->flags & MSG_TRUNC))
		user_iov_write(call->iov, call->iov_cnt, 0, &byte, 1);
	return 1;
}

/* A call that has some bytes is woken by each segment, and its socket may count as readable
 * for the bytes that it has seen, or not for those that it has not. */
static bool is_due(const struct tsock_wait *w)
{
	const struct rx_call *call = w->ctx;

	if (!call->done)
		return endpoint_ready(&w->t->sock.end) & (READY_IN | READY_ERR | READY_HUP);
	return has_more(w->t, call) || has_all(w->t, call);
}

static long wait_for_more(struct tsock *t, int fd, struct rx_call *call)
{
	return tsock_wait_till_due(t, fd, look, call, is_due, call->deadline_ns,
				   call->done || call->is_behind);
}

/* A call that blocks, and has found nothing, or is behind others of its batch that have. */
static NOINLINE long receive_waiting(struct tsock *t, int fd, struct rx_call *call)
{
	long n = FD_PASS;

	atomic_fetch_add(&t->waiting_cnt, 1);
	call->has_waited = true;
	call->deadline_ns = tsock_deadline(
		atomic_load_explicit(&t->sock.rx_timeout_ns, memory_order_relaxed));
	if (tsock_is_ours(t))
		n = wait_for_more(t, fd, call);
	/* as in Linux, one who wants nothing has it */
	if (n == -EAGAIN && !call->len)
		n = 0;
	call->is_cut = n == -EINTR || n == FD_ABANDONED;
	if (n == FD_ABANDONED)
		n = fd_wait_abandoned(&t->sock.obj, (long)call->done);
	else if (n == FD_PASS)
		n = go_on_with_twin(t, fd, call);
	else if (call->done)
		n = (long)call->done;
	if (n != FD_ABANDONED)
		tsock_end_waiting(t);
	return n;
}

/* The kernel has it, and the call has a part, or others of its batch have. */
static COLD long receive_rest(struct tsock *t, int fd, struct rx_call *call)
{
	long n;

	if (call->is_behind && sock_is_blocking(&t->sock, call->flags))
		return receive_waiting(t, fd, call);
	atomic_fetch_add(&t->waiting_cnt, 1);
	n = go_on_with_twin(t, fd, call);
	if (n != FD_ABANDONED)
		tsock_end_waiting(t);
	return n;
}

static long receive(struct tsock *t, int fd, struct rx_call *call)
{
	long n;

	if (UNLIKELY(!tsock_is_ours(t))) {
		n = tsock_fresh_error(t);
		if (n || !call->is_behind || call->flags & (MSG_OOB | MSG_ERRQUEUE))
			return n ? n : FD_PASS;
		return receive_rest(t, fd, call);
	}
	if (UNLIKELY(call->flags & (MSG_OOB | MSG_ERRQUEUE))) {
		if (call->flags & MSG_ERRQUEUE)
			return FD_PASS;
		return receive_urgent(t, call);
	}
	n = look_once(t, call);
	if (n == -EAGAIN && sock_is_blocking(&t->sock, call->flags))
		return receive_waiting(t, fd, call);
	if (UNLIKELY(n == FD_PASS))
		return receive_rest(t, fd, call);
	/* what the call has counts for more than how it ended */
	return call->done ? (long)call->done : n;
}

/* MSG_ERRQUEUE of a call without control messages. */
static COLD long receive_bare_record(struct tsock *t, int fd,
				     const struct rx_call *call)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)call->iov,
			      .msg_iovlen = call->iov_cnt };

	return tsock_receive_record(t, fd, &msg, call->flags);
}

static long receive_plain(struct tsock *t, int fd, void *buf, size_t len,
			  int flags)
{
	struct iovec iov = user_buffer(buf, len);
	struct rx_call call = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = iov.iov_len,
		.flags = flags,
	};
	long n = receive(t, fd, &call);

	if (UNLIKELY(n == FD_PASS && flags & MSG_ERRQUEUE))
		return receive_bare_record(t, fd, &call);
	return n;
}

long tsock_recv(struct fd_object *obj, int fd, void *buf, size_t len, int flags)
{
	return receive_plain(tsock_of(obj), fd, buf, len, flags);
}

long tsock_read(struct fd_object *obj, int fd, void *buf, size_t len)
{
	struct tsock *t = tsock_of(obj);

	if (len == 0)
		return FD_PASS;
	/* alone among the calls it has to have room for all of it in Linux */
	if (UNLIKELY(len > USER_MEMORY_SIZE) && tsock_is_ours(t))
		return -EFAULT;
	return receive_plain(t, fd, buf, len, 0);
}

/* A connection has no names of senders: the length becomes 0. */
long tsock_recvfrom(struct fd_object *obj, int fd, void *buf, size_t len,
		    int flags, struct sockaddr *addr, socklen_t *addr_len)
{
	long n = receive_plain(tsock_of(obj), fd, buf, len, flags);

	if (n >= 0 && addr) {
		if (!user_is_plausible(addr_len, sizeof(*addr_len)))
			return -EFAULT;
		if ((int)*addr_len < 0)
			return -EINVAL;
		*addr_len = 0;
	}
	return n;
}

static long receive_vector(struct tsock *t, int fd, const struct iovec *iov,
			   int cnt, int flags)
{
	ssize_t len = cnt < 0 ? -EINVAL : user_iov_len(iov, (size_t)cnt);
	struct rx_call call = {
		.iov = iov,
		.iov_cnt = (size_t)cnt,
		.len = (size_t)len,
		.flags = flags,
	};

	if (UNLIKELY(len == -EFAULT) && tsock_is_ours(t))
		return len;
	/* libc has the right errno */
	return len <= 0 ? FD_PASS : receive(t, fd, &call);
}

long tsock_readv(struct fd_object *obj, int fd, const struct iovec *iov, int cnt)
{
	return receive_vector(tsock_of(obj), fd, iov, cnt, 0);
}

long tsock_preadv2(struct fd_object *obj, int fd, const struct iovec *iov,
		   int cnt, off_t offset, int flags)
{
	struct tsock *t = tsock_of(obj);
	int err;

	/* where there are places, libc has the right errno */
	if (offset != -1 || !tsock_is_ours(t))
		return FD_PASS;
	if (UNLIKELY(flags & ~SOCK_RWF_SERVED)) {
		err = tsock_leave_for(t, fd, REASON_OPTION, STATS_BY_OPTION,
				      "a read with these flags", flags);
		return err ? err : FD_PASS;
	}
	return receive_vector(t, fd, iov, cnt,
			      flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
}

/* TCP_INQ: the bytes behind those that the call has, and one for the end. */
static int left_behind(struct tsock *t, int fd)
{
	struct tcp_pcb_info info;
	struct fd_visit visit;
	int cnt = 0, twin;

	if (!tsock_lock_ours(t)) {
		twin = tsock_begin_twin(t, fd, &visit);
		(void)!real.ioctl(twin, FIONREAD, &cnt);
		tsock_end_twin(twin, &visit);
		return cnt;
	}
	if (t->pcb) {
		tcp_get_info(t->pcb, &info);
		cnt = (int)info.rcv_unread + tcp_has_end(t->pcb);
	}
	tsock_unlock(t);
	return cnt;
}

/* What the call says beside the bytes, once it has some, or the end. */
static void end_message(struct tsock *t, int fd, struct msghdr *msg,
			const struct rx_call *call)
{
	struct user_control control = {
		.at = msg->msg_control,
		.room = msg->msg_controllen,
	};
	int cnt;

	if (tsock_tells_stamps(t) && call->stamps.time_ns)
		user_control_put_stamps(&control,
					atomic_load_explicit(&t->stamps_in,
							     memory_order_relaxed),
					&call->stamps);
	if (UNLIKELY(atomic_load_explicit(&t->tells_inq, memory_order_relaxed))) {
		cnt = left_behind(t, fd);
		user_control_put(&control, IPPROTO_TCP, TCP_CM_INQ, &cnt,
				 sizeof(cnt));
	}
	msg->msg_controllen -= control.room;
	msg->msg_flags = control.flags | (call->flags & MSG_CMSG_CLOEXEC);
	if (call->is_urgent)
		msg->msg_flags |= call->len ? MSG_OOB : MSG_OOB | MSG_TRUNC;
	if (msg->msg_name)
		msg->msg_namelen = 0;
}

static long receive_message(struct tsock *t, int fd, struct msghdr *msg,
			    struct rx_call *call)
{
	ssize_t len;
	long n;

	if (!user_is_plausible(msg, sizeof(*msg)) ||
	    (msg->msg_name && (int)msg->msg_namelen < 0))
		return FD_PASS;
	len = user_iov_len(msg->msg_iov, msg->msg_iovlen);
	if (len < 0)
		return len == -EFAULT && tsock_is_ours(t) ? len : FD_PASS;
	call->msg = msg;
	call->iov = msg->msg_iov;
	call->iov_cnt = msg->msg_iovlen;
	call->len = (size_t)len;
	n = receive(t, fd, call);
	if (n >= 0 && !call->is_told)
		end_message(t, fd, msg, call);
	else if (n >= 0 && msg->msg_name)
		msg->msg_namelen = 0;
	else if (n == FD_PASS && call->flags & MSG_ERRQUEUE)
		n = tsock_receive_record(t, fd, msg, call->flags);
	return n;
}

long tsock_recvmsg(struct fd_object *obj, int fd, struct msghdr *msg, int flags)
{
	struct rx_call call = { .flags = flags };

	return receive_message(tsock_of(obj), fd, msg, &call);
}

/* An error goes before the data that came before it. */
static long first_error(struct tsock *t)
{
	long err;

	if (!tsock_lock_ours(t))
		return FD_PASS;
	err = tsock_take_error(t);
	tsock_unlock(t);
	return err;
}

/* As Linux, an error behind some messages is told later. */
static void keep_error(struct tsock *t, int err)
{
	if (!tsock_lock_ours(t))
		return;
	t->error = err;
	tsock_update(t, 0);
	tsock_unlock(t);
}

long tsock_recvmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		    unsigned int cnt, int flags, struct timespec *timeout)
{
	struct tsock *t = tsock_of(obj);
	struct timespec wished = { 0 };
	uint64_t start_ns = 0;
	unsigned int done = 0;
	long n = 0;

	if (!(flags & MSG_ERRQUEUE))
		n = tsock_fresh_error(t);
	if (n)
		return n;
	/* each of the others is looked at when it is its turn */
	if (cnt == 0 || !user_is_plausible(msgs, sizeof(*msgs)) ||
	    !user_is_timeout(timeout) || !tsock_is_ours(t))
		return FD_PASS;
	if (!(flags & MSG_ERRQUEUE))
		n = first_error(t);
	if (n)
		return n;
	if (timeout) {
		wished = *timeout;
		start_ns = clock_monotonic_ns();
	}
	while (done < cnt) {
		struct rx_call call = { .flags = flags & ~MSG_WAITFORONE,
					.is_behind = done > 0 };

		n = receive_message(t, fd, &msgs[done].msg_hdr, &call);
		if (n == FD_ABANDONED)
			return fd_wait_abandoned(obj, done);
		if (n < 0)
			break;
		msgs[done++].msg_len = (unsigned)n;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (call.is_cut || call.is_urgent ||
		    (timeout && !user_count_down(timeout, &wished, start_ns)))
			break;
	}
	if (done && n < 0 && n != -EAGAIN && n != -EINTR && n != FD_PASS)
		keep_error(t, (int)n);
	return done ? (long)done : n;
}
