/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving. A datagram comes from the socket's queue, which whoever polls the
 * stack fills, or from the twin. A call that finds neither polls as often as it
 * may, and then sleeps.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"
#include "ip/ip_udp.h"
#include "os/signals.h"
#include "os/thread.h"
#include "pkt/wire.h"
#include "sock/udp/udp_priv.h"
#include "sock/udp/udp_rx_twin.h"

/* Payloads up to this many bytes are copied under the stack's lock. */
enum { COPY_LOCKED_MAX = 256 };

/* -- to the program ------------------------------------------------------------- */

/* The program gets it. */
static inline void unlink_taken(struct udp *u, struct pkt *pkt)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	udp_unlink_first(u, pkt);
	c->rx_packets++;
	c->rx_bytes += udp_rx_len(pkt);
}

static const struct wire_ipv4 *ip_of(const struct pkt *pkt)
{
	return (const void *)(pkt->buf + PKT_CB(pkt, struct rx_info)->ip_at);
}

struct user_name udp_source(const struct pkt *pkt)
{
	const struct wire_udp *udp =
		(const void *)(pkt->buf + PKT_CB(pkt, struct rx_info)->transport_at);

	return (struct user_name){ ip_addr_from_v4(ip_of(pkt)->src),
				   udp->src_port };
}

void udp_put_ip_control(struct user_control *control, uint32_t wishes,
			const struct wire_ipv4 *ip, uint32_t ifindex,
			__be32 own)
{
	struct in6_pktinfo info6 = { .ipi6_ifindex = ifindex };
	struct in_pktinfo info = {
		.ipi_ifindex = (int)ifindex,
		.ipi_spec_dst.s_addr = own,
		.ipi_addr.s_addr = ip->dst,
	};
	struct ip_addr dst = ip_addr_from_v4(ip->dst);
	int ttl = ip->ttl;

	if (wishes & UDP_WISH_PKTINFO6) {
		memcpy(&info6.ipi6_addr, &dst, sizeof(info6.ipi6_addr));
		user_control_put(control, IPPROTO_IPV6, IPV6_PKTINFO, &info6,
				 sizeof(info6));
	}
	if (wishes & UDP_WISH_PKTINFO)
		user_control_put(control, IPPROTO_IP, IP_PKTINFO, &info,
				 sizeof(info));
	if (wishes & UDP_WISH_TTL)
		user_control_put(control, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	if (wishes & UDP_WISH_TOS)
		user_control_put(control, IPPROTO_IP, IP_TOS, &ip->tos,
				 sizeof(ip->tos));
}

static void put_control(const struct udp *u, struct msghdr *msg,
			const struct pkt *pkt)
{
	struct user_control control = {
		.at = msg->msg_control,
		.room = msg->msg_controllen,
	};
	const struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const struct wire_ipv4 *ip = ip_of(pkt);
	uint32_t wishes = u->sock.set.wishes;
	struct user_stamps stamps = {
		.time_ns = pkt->time_ns,
		.card_ns = pkt_card_ns(pkt),
		.ifindex = info->ifindex,
		.frame_len = (uint32_t)(sizeof(struct wire_eth) + sizeof(*ip) +
					sizeof(struct wire_udp)) + info->len,
	};

	/* It came before anybody asked. As in Linux, where a time is needed it is that of the
	 * reading. */
	if (!stamps.time_ns && wishes & (USER_STAMP | USER_STAMP_NS))
		stamps.time_ns = clock_realtime_ns();
	if (!stamps.time_ns)
		wishes &= ~(uint32_t)USER_STAMPING;
	user_control_put_stamps(&control, wishes, &stamps);
	udp_put_ip_control(&control, wishes, ip, info->ifindex, ip->dst);
	msg->msg_controllen -= control.room;
	msg->msg_flags |= control.flags;
}

static void copy_chain(const struct rx_call *call, const struct pkt *pkt,
		       size_t len)
{
	size_t done = 0;

	/* of nothing, the place may be nowhere */
	if (LIKELY(call->iov_cnt == 1 && len && !pkt->next_part)) {
		memcpy(call->iov[0].iov_base, pkt->data, len);
		return;
	}
	for (; pkt && done < len; pkt = pkt->next_part) {
		size_t n = MIN((size_t)pkt->len, len - done);

		user_iov_write(call->iov, call->iov_cnt, done, pkt->data, n);
		done += n;
	}
}

/* The datagram as the call wants it. Returns the call's result. */
static long give(const struct udp *u, const struct rx_call *call,
		 const struct pkt *pkt)
{
	size_t full = PKT_CB(pkt, struct rx_info)->len;
	size_t len = MIN(full, call->len);
	struct user_name source;

	copy_chain(call, pkt, len);
	if (call->name) {
		source = udp_source(pkt);
		user_name_write(&source, u->sock.domain, call->name, call->name_len);
	}
	if (call->msg) {
		call->msg->msg_flags = call->flags & MSG_CMSG_CLOEXEC;
		if (len < full)
			call->msg->msg_flags |= MSG_TRUNC;
		put_control(u, call->msg, pkt);
	}
	return (long)(call->flags & MSG_TRUNC ? full : len);
}

/* Whether the pointers to the sender's name can be right. That to control messages is
 * user_control_put()'s. */
static bool has_plausible_name(const struct rx_call *call)
{
	return !call->name ||
	       (user_is_plausible(call->name_len, sizeof(*call->name_len)) &&
		user_is_place_for_name(call->name, *call->name_len));
}

static bool is_plausible(const struct rx_call *call)
{
	return user_iov_is_writable(call->iov, call->iov_cnt, call->len) &&
	       has_plausible_name(call);
}

/* With a datagram at the head of the queue. Under the stack's lock, which is
 * released for a long copy. */
static long take_first(struct udp *u, struct stack *stack,
		       const struct rx_call *call) RELEASES(stack->lock)
{
	struct pkt *pkt = pkt_from_link(u->rx_queue.next);
	size_t len = MIN((size_t)PKT_CB(pkt, struct rx_info)->len, call->len);
	long result;

	if (UNLIKELY(!has_plausible_name(call))) {
		stats_add(&sock_counters(&u->sock)->rx_errors, 1);
		stack_unlock(stack);
		return -EFAULT;
	}
	if (UNLIKELY(call->flags & MSG_PEEK)) {
		pkt_get(pkt);
		udp_put_ahead(u, 1);
	} else {
		unlink_taken(u, pkt);
	}
	/* as in Linux, it is gone all the same */
	if (UNLIKELY(!user_iov_is_writable(call->iov, call->iov_cnt, len))) {
		stats_add(&sock_counters(&u->sock)->rx_errors, 1);
		result = -EFAULT;
	} else if (LIKELY(len <= COPY_LOCKED_MAX)) {
		result = give(u, call, pkt);
	} else {
		stack_unlock(stack);
		result = give(u, call, pkt);
		stack_lock(stack);
	}
	pkt_put(pkt);
	stack_unlock(stack);
	return result;
}

/* The call has nothing to give. Under the stack's lock. */
static inline void count_nothing(struct udp *u)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	c->rx_poll_miss++;
	c->rx_eagain++;
}

/* The IP header lies right before the UDP header that demux_peek() shows. */
static inline struct user_name source_of_segment(const struct wire_udp *udp)
{
	const struct wire_ipv4 *ip =
		(const void *)((const uint8_t *)udp - sizeof(*ip));

	return (struct user_name){ ip_addr_from_v4(ip->src), udp->src_port };
}

/* Whether length and checksum are right; of the latter the device may know. */
static ALWAYS_INLINE bool is_right(const struct stack *stack,
				   const struct ring_frame *segment,
				   const struct wire_udp *udp)
{
	if (segment->csum_verdict == PKT_CSUM_GOOD)
		return ip_udp_fills(udp, segment->len);
	return ip_udp_is_good(udp, segment->len, stack->demux.last.pseudo_sum,
			      stack->only_from->rx_partial_csum);
}

/* Gives a short datagram straight from its frame, without making a packet of it. It has
 * to be the next one in the stack's only ring, and for this socket, whose queue is
 * empty. `source_out` may be NULL. -EAGAIN: it is not such a one. */
static ALWAYS_INLINE long take_from_ring(struct udp *u, struct stack *stack,
					 void *buf, size_t len,
					 struct user_name *source_out)
	REQUIRES(stack->lock)
{
	struct ring *ring = stack->only;
	struct stats_socket_counters *c;
	struct ring_frame frame, segment;
	const struct wire_udp *udp;
	size_t n;

	if (UNLIKELY(!ring || stack->demux.last.end != &u->sock.end))
		return -EAGAIN;
	frame = ring->ops->rx_peek(ring);
	segment = demux_peek(&stack->demux, frame, stack->only_from);
	udp = (const void *)segment.data;
	n = segment.len - sizeof(*udp);
	/* a segment that is too short for a header has no n that fits */
	if (UNLIKELY(!udp || n > len) || UNLIKELY(n > COPY_LOCKED_MAX) ||
	    UNLIKELY(!user_is_plausible(buf, 1) ||
		     !is_right(stack, &segment, udp)))
		return -EAGAIN;
	memcpy(buf, udp + 1, OPAQUE(n));
	if (source_out)
		*source_out = source_of_segment(udp);
	ring->ops->rx_done(ring);
	/* it has come, and is read: edges tell of the former */
	if (UNLIKELY(!list_is_empty(&u->sock.end.watches)))
		endpoint_fire(&u->sock.end, READY_IN);
	if (UNLIKELY(ring->wants_kick))
		stack_note_kick(stack, ring);
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	c = sock_counters(&u->sock);
	c->rx_poll_hit++;
	c->rx_queued_packets++;
	c->rx_queued_bytes += n;
	c->rx_packets++;
	c->rx_bytes += n;
	return (long)n;
}

/* The same for a call that wants bytes, and at most the sender's name: no control
 * messages. */
static inline long take_next(struct udp *u, struct stack *stack,
			     const struct rx_call *call) REQUIRES(stack->lock)
{
	struct user_name source;
	long n;

	if (stack_is_quiet(stack) || call->iov_cnt != 1 ||
	    call->flags & MSG_PEEK || (call->msg && u->sock.set.wishes) ||
	    !is_plausible(call))
		return -EAGAIN;
	n = take_from_ring(u, stack, call->iov[0].iov_base,
			   call->iov[0].iov_len, &source);
	if (n < 0)
		return n;
	if (call->name)
		user_name_write(&source, u->sock.domain, call->name, call->name_len);
	if (call->msg) {
		call->msg->msg_flags = call->flags & MSG_CMSG_CLOEXEC;
		call->msg->msg_controllen = 0;
	}
	return n;
}

/* The queue is empty: polls the rings. True: it has something now. */
static inline bool poll_for_data(struct udp *u, struct stack *stack, int flags)
	REQUIRES(stack->lock)
{
	if (UNLIKELY(stack_poll_locked(stack)) &&
	    !list_is_empty(&u->rx_queue)) {
		sock_counters(&u->sock)->rx_poll_hit++;
		return true;
	}
	if (!sock_is_blocking(&u->sock, flags))
		count_nothing(u);
	return false;
}

/* Whether what is queued may have come behind what the twin was given since we looked at it
 * (udp_heir.c). With holds it always seems so, but nothing comes behind. Under the lock. */
static inline bool is_twin_before(struct udp *u)
{
	return UNLIKELY(atomic_load_explicit(&u->sock.is_twin_ready,
					     memory_order_relaxed)) &&
	       !atomic_load(&u->sock.rx_holds);
}

enum { TWIN_IS_BEFORE = -ESTALE };

/* -EAGAIN: nothing has come by our ways. TWIN_IS_BEFORE: look there again. */
static inline long try_queue(struct udp *u, const struct rx_call *call, bool is_first)
{
	struct stack *stack;
	long n;

	if (UNLIKELY(!sock_try_lock(&u->sock, &stack)))
		return -EAGAIN;
	if (!is_first && is_twin_before(u)) {
		stack_unlock(stack);
		return TWIN_IS_BEFORE;
	}
	if (!list_is_empty(&u->rx_queue)) {
		(void)stack_poll_beside_locked(stack);
		return take_first(u, stack, call);
	}
	n = take_next(u, stack, call);
	if (n < 0 && poll_for_data(u, stack, call->flags))
		return take_first(u, stack, call);
	stack_unlock(stack);
	return n;
}

/* -- the twin ------------------------------------------------------------------- */

/* Whether it is time to look at the twin. Threads that count together may lose a
 * count. None of them finds a 0, from which it would count through all numbers. */
static inline bool is_twin_due(struct udp *u)
{
	unsigned left = atomic_load_explicit(&u->os_countdown,
					     memory_order_relaxed) - 1;

	if (UNLIKELY(left == 0)) {
		atomic_store_explicit(&u->os_countdown, udp_twin_interval(),
				      memory_order_relaxed);
		return true;
	}
	atomic_store_explicit(&u->os_countdown, left, memory_order_relaxed);
	return UNLIKELY(atomic_load_explicit(&u->sock.is_twin_ready,
					     memory_order_relaxed));
}

/* -- waiting -------------------------------------------------------------------- */

/* A receive call that waits. */
struct rx_wait {
	struct sock_wait wait;
	struct udp *u;
	int fd;
	const struct rx_call *call;
	bool is_timed;
	struct pollfd fds[1 + WAIT_FDS_MAX];
};

static struct rx_wait *rx_wait_of(struct sock_wait *wait)
{
	return CONTAINER_OF(wait, struct rx_wait, wait);
}

static long look(struct udp *u, int fd, const struct rx_call *call);

static long wait_look(struct sock_wait *wait, enum sock_look how)
{
	struct rx_wait *w = rx_wait_of(wait);
	long n;

	if (how == SOCK_LOOK_ALL && w->fds[0].revents & POLLRDHUP)
		sock_hold_rx(&w->u->sock, SOCK_RX_SHUT);
	else if (how == SOCK_LOOK_ALL && w->fds[0].revents)
		atomic_store(&w->u->sock.is_twin_ready, true);
	n = look(w->u, w->fd, w->call);
	/* The kernel knows how to wait for what the twin alone brings, and when
	 * there is nothing to wait for; but not how much time is left. */
	if (n == -EAGAIN && sock_rx_holds(&w->u->sock) &
				    (w->is_timed ? SOCK_RX_SHUT : SOCK_RX_OVER))
		return sock_owns_fd(&w->u->sock, w->fd) ? FD_PASS : -EBADF;
	return n;
}

static long wait_prepare(struct sock_wait *wait)
{
	struct rx_wait *w = rx_wait_of(wait);
	struct endpoint *end;

	w->fds[0].revents = 0;
	wait->stack = NULL;
	(void)sock_await(&w->u->sock.obj, &end, &wait->stack);
	if (!sock_owns_fd(&w->u->sock, w->fd))
		return -EBADF;
	/* as it was when the call began */
	return !wait->has_slept && atomic_load(&w->u->was_shared) &&
			       sock_file_is_nonblocking(w->fd) ?
		       -EAGAIN :
		       0;
}

static bool wait_watch(struct sock_wait *wait)
{
	struct udp *u = rx_wait_of(wait)->u;

	endpoint_add_watch(&u->sock.end, &wait->waiter->watch);
	if (!list_is_empty(&u->rx_queue))
		return true;
	sock_counters(&u->sock)->rx_poll_miss++;
	return false;
}

/* The waiter's own watch is all that there is, and wait_end_locked takes it off. */
static const struct sock_wait_ops wait_ops = {
	.look = wait_look,
	.prepare = wait_prepare,
	.watch = wait_watch,
	.unwatch = sock_wait_nothing,
	.abandoned = sock_wait_nothing,
};

enum { POLLS_PER_CLOCK = 64 };

/* Waits after a look that has found nothing. */
static long wait_for_data(struct udp *u, int fd, const struct rx_call *call)
{
	uint64_t timeout = atomic_load_explicit(&u->sock.rx_timeout_ns,
						memory_order_relaxed);
	struct rx_call waiting = *call;
	struct rx_wait w = {
		.wait = {
			.ops = &wait_ops,
			.obj = &u->sock.obj,
			.stack = sock_stack(&u->sock),
			.fds = w.fds,
			.fd_cnt = 1,
			.mark = signals_mark(),
			.may_restart = !timeout && !call->is_behind,
			/* what the twin alone brings is not polled for */
			.polls_left = sock_rx_holds(&u->sock) ?
					      0 :
					      sock_params.rx_polls,
			.spin_until_ns = UINT64_MAX,
			.looks_per_clock = POLLS_PER_CLOCK,
			.does_yield = sock_params.does_yield,
			.makes_room = sock_params.makes_room,
		},
		.u = u,
		.fd = fd,
		.call = &waiting,
		.is_timed = timeout,
		.fds = { { .fd = fd, .events = POLLIN | POLLRDHUP } },
	};

	waiting.has_waited = true;
	sock_wait_until(&w.wait, timeout ? clock_monotonic_ns() + timeout :
					   UINT64_MAX);
	return sock_wait(&w.wait);
}

/* -- calls ---------------------------------------------------------------------- */

/* A call that waited ends without a datagram. */
static long count_end(struct udp *u, long n)
{
	struct stack *stack;

	if (n == -EAGAIN) {
		if (sock_try_lock(&u->sock, &stack)) {
			sock_counters(&u->sock)->rx_eagain++;
			stack_unlock(stack);
		} else {
			stats_count_os_rx(&u->sock.stats, n);
		}
	} else if (n < 0 && n != FD_PASS && n != FD_ABANDONED) {
		stats_add(&sock_counters(&u->sock)->rx_errors, 1);
	}
	return n;
}

/* Whether the first one in the queue comes before what the twin has. */
static inline bool is_queue_first(struct udp *u)
{
	return atomic_load_explicit(&u->rx_ahead, memory_order_relaxed) &&
	       !atomic_load(&u->is_twin_next);
}

/* The same, though not before an error of the twin's. -EAGAIN: somebody else has taken
 * it. */
static COLD long take_ahead(struct udp *u, int fd, const struct rx_call *call)
{
	long n = udp_take_error(u);

	if (!sock_owns_fd(&u->sock, fd))
		return -EBADF;
	if (!n)
		n = -sock_twin_option(fd, SOL_SOCKET, SO_ERROR);
	return n ? n : try_queue(u, call, true);
}

/* It is the twin's turn. */
static COLD long look_at_twin(struct udp *u, int fd, const struct rx_call *call)
{
	long n = is_queue_first(u) ? take_ahead(u, fd, call) : -EAGAIN;

	return n == -EAGAIN ? udp_read_twin(u, fd, call) : n;
}

/* One look at everything. -EAGAIN: nothing. */
static ALWAYS_INLINE long look_once(struct udp *u, int fd,
				    const struct rx_call *call)
{
	bool is_due = is_twin_due(u);
	long n;

	do {
		n = UNLIKELY(is_due) ? look_at_twin(u, fd, call) : -EAGAIN;
		if (n == -EAGAIN)
			n = try_queue(u, call, false);
		is_due = true;
	} while (UNLIKELY(n == TWIN_IS_BEFORE));
	return n;
}

static NOINLINE long look(struct udp *u, int fd, const struct rx_call *call)
{
	return look_once(u, fd, call);
}

static bool is_empty(struct udp *u)
{
	struct stack *stack;
	bool result;

	if (!sock_try_lock(&u->sock, &stack))
		return true;
	result = list_is_empty(&u->rx_queue);
	stack_unlock(stack);
	return result;
}

/* The error queue, for whichever call. */
static COLD long receive_record(struct udp *u, int fd, const struct rx_call *call)
{
	struct msghdr msg = {
		.msg_name = call->name,
		.msg_namelen = call->name ? *call->name_len : 0,
		.msg_iov = (struct iovec *)call->iov,
		.msg_iovlen = call->iov_cnt,
	};
	long n;

	if (!sock_owns_fd(&u->sock, fd))
		return -EBADF;
	n = udp_receive_record(u, fd, call->msg ? call->msg : &msg, call->flags);
	if (n >= 0 && call->name && !call->msg)
		*call->name_len = msg.msg_namelen;
	return n;
}

/* Whether only the kernel can answer, because our rings bring
 * nothing to the socket and nothing is queued. A blocking call on one that is not
 * attached waits with us all the same, since another thread may attach it. */
static COLD bool is_for_kernel(struct udp *u, int flags)
{
	unsigned holds = sock_rx_holds(&u->sock);

	if (!(holds & SOCK_RX_LEFT) &&
	    (!(holds & SOCK_RX_UNATTACHED) ||
	     sock_is_blocking(&u->sock, flags)))
		return false;
	return is_empty(u);
}

static NOINLINE long receive(struct udp *u, int fd, const struct rx_call *call)
{
	/* MSG_OOB means nothing here, as in Linux */
	bool is_odd = call->flags & MSG_ERRQUEUE || sock_rx_holds(&u->sock);
	long n;

	if (UNLIKELY(is_odd)) {
		if (call->flags & MSG_ERRQUEUE)
			return receive_record(u, fd, call);
		if (sock_rx_holds(&u->sock) & SOCK_RX_MOVING)
			udp_await_move(u);
		if (atomic_load(&u->is_lent))
			udp_reclaim(u, fd);
		if (is_for_kernel(u, call->flags))
			return FD_PASS;
	}
	n = look_once(u, fd, call);
	if (n != -EAGAIN || !sock_is_blocking(&u->sock, call->flags))
		return n;
	return count_end(u, wait_for_data(u, fd, call));
}

/* Whether quick_take_queued can give this datagram. */
static inline bool is_short(const struct pkt *pkt, const void *buf, size_t len)
{
	return pkt->len <= COPY_LOCKED_MAX && pkt->len <= len &&
	       !pkt->next_part && user_is_plausible(buf, len);
}

/* The general way, for a call without a name and control messages. */
static NOINLINE long receive_plain(struct udp *u, int fd, void *buf, size_t len,
				   int flags)
{
	struct iovec iov = user_buffer(buf, len);
	struct rx_call call = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = iov.iov_len,
		.flags = flags,
	};

	return receive(u, fd, &call);
}

long udp_recv(struct fd_object *obj, int fd, void *buf, size_t len, int flags)
{
	return receive_plain(udp_of(obj), fd, buf, len, flags);
}

/* With the stack locked: a short datagram from the queue, which a poll may fill. */
static NOINLINE ssize_t quick_take_queued(int fd, void *buf, size_t len,
					  int flags, struct fd_object *obj,
					  struct stack *stack)
	RELEASES(stack->lock)
{
	struct udp *u = udp_of(obj);
	bool was_empty = list_is_empty(&u->rx_queue);
	struct pkt *pkt;
	long n;

	if (was_empty && stack_poll_locked(stack) &&
	    !list_is_empty(&u->rx_queue))
		sock_counters(&u->sock)->rx_poll_hit++;
	pkt = pkt_from_link(u->rx_queue.next);
	if (list_is_empty(&u->rx_queue) && !sock_is_blocking(&u->sock, flags)) {
		count_nothing(u);
		stack_unlock(stack);
		return fd_quick_end_again(obj);
	}
	if (UNLIKELY(list_is_empty(&u->rx_queue) || is_twin_before(u) ||
		     !is_short(pkt, buf, len))) {
		stack_unlock(stack);
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	}
	if (!was_empty)
		(void)stack_poll_beside_locked(stack);
	unlink_taken(u, pkt);
	n = pkt->len;
	memcpy(buf, pkt->data, OPAQUE((size_t)n));
	pkt_put_quick(pkt);
	stack_unlock(stack);
	return fd_quick_end(obj, n);
}

/* With the stack locked by stack_lock_try_plain: nothing is queued, but a ring may
 * have something. */
static NOINLINE ssize_t quick_take(int fd, void *buf, size_t len, int flags,
				   struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	struct udp *u = udp_of(obj);
	long n = take_from_ring(u, stack, buf, len, NULL);

	if (UNLIKELY(n < 0))
		return quick_take_queued(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(stack->afterwards))
		stack_unlock_slow(stack);
	else
		stack_lock_release_plain(&stack->lock);
	return fd_quick_end(obj, n);
}

/* The stack is locked, and the quick way does not do: the general one begins. */
static COLD ssize_t quick_unlock(int fd, void *buf, size_t len, int flags,
				 struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	stack_unlock(stack);
	return fd_quick_undo_recv(fd, buf, len, flags, obj);
}

/* It is the twin's turn. The general way would read it and then poll a whole batch. So we
 * ask the twin first: if it has nothing, the quick call begins again, unless every turn
 * is the twin's. */
static COLD ssize_t quick_ask_twin(int fd, void *buf, size_t len, int flags,
				   const _Atomic(struct fd_object *) *entry,
				   struct fd_object *obj)
{
	bool is_ready = udp_twin_interval() == 1 || udp_ask_twin(udp_of(obj), fd);

	fd_object_put(obj);
	os_leave_last();
	return (is_ready ? fd_slow_calls.recv : udp_quick_recv)(
		fd, buf, len, flags, entry, obj);
}

/*
 * The most frequent receives in the fewest steps: a short datagram that is there,
 * and nothing there with no wish to wait.
 */
ssize_t udp_quick_recv(int fd, void *buf, size_t len, int flags,
		       const _Atomic(struct fd_object *) *entry,
		       struct fd_object *obj)
{
	struct stack *stack;
	struct udp *u;

	if (fd_quick_is_odd())
		return fd_slow_calls.recv(fd, buf, len, flags, entry, obj);
	os_enter_first();
	if (UNLIKELY(!fd_object_try_hold(obj)))
		return fd_quick_undo_recv(fd, buf, len, flags, NULL);
	if (UNLIKELY(!fd_quick_is_mine(obj, &udp_ops, entry)))
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	u = udp_of(obj);
	stack = sock_stack(&u->sock);
	if (UNLIKELY(is_twin_due(u)))
		return quick_ask_twin(fd, buf, len, flags, entry, obj);
	/* where it is not the twin's turn there is a stack (sock.rx_holds) */
	if (UNLIKELY(flags & (MSG_ERRQUEUE | MSG_PEEK) ||
		     !stack_lock_try_plain(&stack->lock)))
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	if (UNLIKELY(!sock_is_in(&u->sock, stack)))
		return quick_unlock(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(!list_is_empty(&u->rx_queue)))
		return quick_take_queued(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(!stack_is_quiet(stack)))
		return quick_take(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(stack->afterwards || sock_is_blocking(&u->sock, flags)))
		return quick_unlock(fd, buf, len, flags, obj, stack);
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	count_nothing(u);
	stack_lock_release_plain(&stack->lock);
	return fd_quick_end_again(obj);
}

/* What Linux says of the place for the sender's name. It says so when it has a datagram,
 * which is lost; we say it before. */
static int check_name(const struct sockaddr *addr, const socklen_t *len)
{
	if (!addr)
		return 0;
	if (!user_is_plausible(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	return user_is_place_for_name(addr, *len) ? 0 : -EFAULT;
}

long udp_recvfrom(struct fd_object *obj, int fd, void *buf, size_t len,
		  int flags, struct sockaddr *addr, socklen_t *addr_len)
{
	int err = check_name(addr, addr_len);
	struct iovec iov = user_buffer(buf, len);
	struct rx_call call = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = iov.iov_len,
		.flags = flags,
		.name = addr,
		.name_len = addr_len,
	};

	return err ? err : receive(udp_of(obj), fd, &call);
}

long udp_read(struct fd_object *obj, int fd, void *buf, size_t len)
{
	/* read() of nothing returns at once, and takes no datagram. Alone among the calls
	 * it has to have room for all of it in Linux. */
	return len == 0 || len > USER_MEMORY_SIZE ?
		       FD_PASS :
		       receive_plain(udp_of(obj), fd, buf, len, 0);
}

static long receive_vector(struct udp *u, int fd, const struct iovec *iov, int cnt, int flags)
{
	ssize_t len = cnt < 0 ? -EINVAL : user_iov_room(iov, (size_t)cnt);
	struct rx_call call = {
		.iov = iov,
		.iov_cnt = (size_t)cnt,
		.len = (size_t)len,
		.flags = flags,
	};

	/* libc has the right errno */
	return len <= 0 ? FD_PASS : receive(u, fd, &call);
}

long udp_readv(struct fd_object *obj, int fd, const struct iovec *iov, int cnt)
{
	return receive_vector(udp_of(obj), fd, iov, cnt, 0);
}

long udp_preadv2(struct fd_object *obj, int fd, const struct iovec *iov, int cnt,
		 off_t offset, int flags)
{
	int err;

	/* where there are places, libc has the right errno */
	if (offset != -1)
		return FD_PASS;
	if (UNLIKELY(flags & ~SOCK_RWF_SERVED)) {
		err = sock_leave_for(sock_of(obj), fd, REASON_OPTION, STATS_BY_OPTION,
				     "a read with these flags", flags);
		return err ? err : FD_PASS;
	}
	return receive_vector(udp_of(obj), fd, iov, cnt,
			      flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
}

/* How much it has room for, or an errno. */
static ssize_t check_message(const struct msghdr *msg)
{
	if (!user_is_plausible(msg, sizeof(*msg)))
		return -EFAULT;
	if (msg->msg_name && (int)msg->msg_namelen < 0)
		return -EINVAL;
	return user_iov_room(msg->msg_iov, msg->msg_iovlen);
}

static long receive_message(struct udp *u, int fd, struct msghdr *msg, int flags,
			    bool is_behind)
{
	struct rx_call call = { .flags = flags, .msg = msg,
				.is_behind = is_behind };
	ssize_t len;

	len = check_message(msg);
	if (len < 0)
		/* libc has the right errno, unless it would receive the others again */
		return is_behind ? len : FD_PASS;
	call.iov = msg->msg_iov;
	call.iov_cnt = msg->msg_iovlen;
	call.len = (size_t)len;
	call.name = msg->msg_name;
	call.name_len = &msg->msg_namelen;
	return receive(u, fd, &call);
}

long udp_recvmsg(struct fd_object *obj, int fd, struct msghdr *msg, int flags)
{
	return receive_message(udp_of(obj), fd, msg, flags, false);
}

/* As Linux does it: the timeout is looked at after each datagram only. */
long udp_recvmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		  unsigned int cnt, int flags, struct timespec *timeout)
{
	struct timespec wished = { 0 };
	uint64_t start_ns = 0;
	unsigned int done = 0;
	long n = 0;

	/* each of the others is looked at when it is its turn */
	if (cnt == 0 || !user_is_plausible(msgs, sizeof(*msgs)) ||
	    !user_is_timeout(timeout))
		return FD_PASS;
	if (timeout) {
		wished = *timeout;
		start_ns = clock_monotonic_ns();
	}
	while (done < cnt) {
		n = receive_message(udp_of(obj), fd, &msgs[done].msg_hdr,
				    flags & ~MSG_WAITFORONE, done > 0);
		if (n < 0)
			break;
		msgs[done++].msg_len = (unsigned)n;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout && !user_count_down(timeout, &wished, start_ns))
			break;
	}
	if (n == FD_ABANDONED)
		return fd_wait_abandoned(obj, done);
	if (!done)
		return n;
	if (n < 0 && n != FD_PASS && n != -EAGAIN && n != -EINTR)
		udp_keep_error(udp_of(obj), n);
	return (long)done;
}
