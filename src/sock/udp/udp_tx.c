/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending. A datagram leaves by a ring when its destination leads there, in one
 * frame or cut into several; everything else is the twin's.
 */
#include "config.h"

#include "sock/udp/udp_tx.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "os/inside.h"
#include "os/signals.h"

/* What one attempt to send a datagram has come to. */
enum tx_verdict {
	TX_SENT,
	TX_RESOLVE, /* the destination has to be looked up first */
	TX_KERNEL,  /* the twin is to send it */
	TX_FULL,    /* no room, or no frame */
	TX_COPY,    /* too long to be copied under the lock */
	TX_CUT,     /* too long for one frame */
};

/* Up to this many bytes are copied under the stack's lock. */
enum { SHORT_MAX = 256 };

/* Flags that make no difference to a datagram sent by us, or that we follow. */
enum { TX_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM | MSG_EOR };

/* -- one datagram --------------------------------------------------------------- */

static const uint8_t *gather(const struct tx_call *call, uint8_t *buf)
{
	/* an empty datagram may come from nowhere */
	if (LIKELY(call->iov_cnt == 1 && call->len))
		return call->iov[0].iov_base;
	user_iov_read(call->iov, call->iov_cnt, 0, buf, call->len);
	return buf;
}

static enum tx_verdict judge(const struct stack *stack, const struct udp_way *way,
			      const struct tx_call *call)
{
	if (UNLIKELY(!way || !dst_is_valid(&way->dst, stack)))
		return TX_RESOLVE;
	if (UNLIKELY(!way->dst.ring))
		return TX_KERNEL;
	if (UNLIKELY(call->len > way->payload_max))
		return way->dst.cut_mtu && call->len <= UDP_PAYLOAD_MAX ?
			       TX_CUT :
			       TX_KERNEL;
	return TX_SENT;
}

static inline void count_sent(struct udp *u, size_t len)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	c->tx_packets++;
	c->tx_bytes += len;
}

static enum tx_verdict transmit_long(struct udp *u, struct stack *stack,
				     struct udp_way *way, struct pkt *payload,
				     uint32_t len) REQUIRES(stack->lock)
{
	struct ring_tx tx = { .payload = payload };

	udp_way_fill(way, len, &tx);
	if (stack_tx_locked(stack, way->dst.ring, &tx) != 0)
		return TX_FULL;
	count_sent(u, len);
	return TX_SENT;
}

/* A short datagram, straight from the program's memory to the ring's. */
static inline enum tx_verdict transmit_short(struct udp *u, struct stack *stack,
					     struct udp_way *way, const void *buf,
					     uint32_t len) REQUIRES(stack->lock)
{
	struct ring *ring = way->dst.ring;
	uint8_t *frame = stack_tx_frame_locked(stack, ring);

	_Static_assert(SHORT_MAX + sizeof(struct udp_header) <=
			       RING_TX_FRAME_LEN,
		       "it has room");
	if (UNLIKELY(!frame))
		return TX_FULL;
	stack_tx_commit_locked(stack, ring, udp_way_write(way, ring, buf, len, frame));
	count_sent(u, len);
	return TX_SENT;
}

static inline enum tx_verdict send_short_locked(struct udp *u,
						struct stack *stack,
						const struct tx_call *call)
	REQUIRES(stack->lock)
{
	struct udp_way *way = udp_way_find(u, call);
	enum tx_verdict verdict;
	uint8_t buf[SHORT_MAX];

	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	if (UNLIKELY(!way) && call->to && !call->control &&
	    ip_addr_is_v4(&call->to->addr))
		way = udp_way_derive(u, stack, ip_addr_v4(&call->to->addr),
				 call->to->port);
	verdict = judge(stack, way, call);
	if (UNLIKELY(verdict != TX_SENT))
		return verdict;
	if (UNLIKELY(call->len > SHORT_MAX))
		return TX_COPY;
	return transmit_short(u, stack, way, gather(call, buf),
			      (uint32_t)call->len);
}

bool udp_send_short_locked(struct udp *u, struct stack *stack, const struct tx_call *call)
{
	return send_short_locked(u, stack, call) == TX_SENT;
}

/* A chain of packets that hold the payload, copied without the lock. */
static void fill_chain(struct pkt *pkt, const struct tx_call *call)
{
	size_t done = 0;

	for (; pkt; pkt = pkt->next_part) {
		uint32_t n = (uint32_t)MIN((size_t)pkt_tailroom(pkt),
					   call->len - done);

		user_iov_read(call->iov, call->iov_cnt, done,
			      pkt_append(pkt, n), n);
		done += n;
	}
}

static struct pkt *alloc_chain(struct ring *ring, size_t len)
{
	struct pkt *first = NULL, **at = &first;

	for (size_t room = 0; room < len;) {
		*at = ring_pkt_alloc(ring);
		if (!*at) {
			pkt_put(first);
			return NULL;
		}
		room += pkt_tailroom(*at);
		at = &(*at)->next_part;
	}
	return first;
}

/* Of a datagram that the program follows the card may say when its first frame left. */
static inline void begin_follow(const struct tx_call *call, struct ring *ring)
{
	if (UNLIKELY(call->draft))
		udp_draft_follow(call->draft, ring);
}

static inline void end_follow(const struct tx_call *call, struct ring *ring)
{
	if (UNLIKELY(call->draft))
		udp_draft_unfollow(call->draft, ring);
}

/* A longer one: its bytes are copied to frames without the lock, and sent under it. */
static enum tx_verdict send_long(struct udp *u, const struct tx_call *call)
{
	struct stack *stack;
	struct pkt *payload = NULL;
	struct ring *ring = NULL;
	enum tx_verdict verdict;
	struct udp_way *way;

	sock_lock(&u->sock, &stack);
	way = udp_way_find(u, call);
	verdict = judge(stack, way, call);
	if (verdict == TX_SENT) {
		ring = way->dst.ring;
		payload = alloc_chain(ring, call->len);
		if (!payload)
			verdict = TX_FULL;
	}
	stack_unlock(stack);
	if (verdict != TX_SENT)
		return verdict;

	fill_chain(payload, call);

	sock_lock(&u->sock, &stack);
	way = udp_way_find(u, call);
	verdict = judge(stack, way, call);
	/* Another ring may be where that one was, but its pool lives as long as a frame of it
	 * is out. */
	if (verdict == TX_SENT && way->dst.ring->pool != payload->pool)
		verdict = TX_RESOLVE;
	if (verdict == TX_SENT) {
		ring = way->dst.ring;
		begin_follow(call, ring);
		verdict = transmit_long(u, stack, way, payload,
					(uint32_t)call->len);
		end_follow(call, ring);
	} else {
		pkt_put(payload);
	}
	stack_unlock(stack);
	return verdict;
}

/* Frames for all fragments of it, or for none. */
static enum tx_verdict begin_cut(struct udp *u, struct stack *stack,
				 const struct tx_call *call,
				 struct udp_cut *cut) REQUIRES(stack->lock)
{
	struct udp_way *way = udp_way_find(u, call);
	enum tx_verdict verdict = judge(stack, way, call);
	int err;

	if (verdict != TX_CUT)
		return verdict == TX_SENT ? TX_RESOLVE : verdict;
	err = udp_cut_begin(cut, way, (uint32_t)call->len);
	if (err)
		return err == -EAGAIN ? TX_FULL : TX_KERNEL;
	return TX_CUT;
}

static void fill_cut(struct udp_cut *cut, const struct tx_call *call)
{
	struct pkt *pkt;
	size_t done = 0;

	LIST_FOR_EACH(pkt, &cut->pieces, link) {
		user_iov_read(call->iov, call->iov_cnt, done, pkt->data,
			      pkt->len);
		done += pkt->len;
	}
	udp_cut_sum(cut);
}

static enum tx_verdict finish_cut(struct udp *u, struct stack *stack,
				  const struct tx_call *call,
				  struct udp_cut *cut) REQUIRES(stack->lock)
{
	struct udp_way *way = udp_way_find(u, call);
	enum tx_verdict verdict = judge(stack, way, call);

	if (verdict != TX_CUT || !udp_cut_suits(cut, way)) {
		udp_cut_drop(cut);
		return verdict == TX_KERNEL ? TX_KERNEL : TX_RESOLVE;
	}
	begin_follow(call, cut->ring);
	verdict = udp_cut_send(cut, way, stack) != 0 ? TX_FULL : TX_SENT;
	end_follow(call, cut->ring);
	if (verdict == TX_SENT)
		count_sent(u, cut->len);
	return verdict;
}

/* One that is longer than a frame. */
static COLD enum tx_verdict send_cut(struct udp *u, const struct tx_call *call)
{
	struct stack *stack;
	struct udp_cut cut;
	enum tx_verdict verdict;

	sock_lock(&u->sock, &stack);
	verdict = begin_cut(u, stack, call, &cut);
	stack_unlock(stack);
	if (verdict != TX_CUT)
		return verdict;
	fill_cut(&cut, call);
	sock_lock(&u->sock, &stack);
	verdict = finish_cut(u, stack, call, &cut);
	stack_unlock(stack);
	return verdict;
}

static enum tx_verdict send_once(struct udp *u, const struct tx_call *call)
{
	enum tx_verdict way;
	struct stack *stack;

	sock_lock(&u->sock, &stack);
	way = send_short_locked(u, stack, call);
	stack_unlock(stack);
	if (LIKELY(way != TX_COPY && way != TX_CUT))
		return way;
	return way == TX_COPY ? send_long(u, call) : send_cut(u, call);
}

/* The same of one that the program follows; a ring whose card does not say what is asked of
 * it leaves it to the kernel. */
static COLD enum tx_verdict send_followed(struct udp *u, const struct tx_call *call)
{
	enum tx_verdict verdict;
	struct udp_way *way;
	struct stack *stack;

	sock_lock(&u->sock, &stack);
	way = udp_way_find(u, call);
	verdict = judge(stack, way, call);
	if ((verdict == TX_SENT || verdict == TX_CUT) &&
	    !udp_draft_is_for(call->draft, way->dst.ring))
		verdict = TX_KERNEL;
	if (verdict == TX_SENT) {
		begin_follow(call, way->dst.ring);
		verdict = send_short_locked(u, stack, call);
		end_follow(call, way->dst.ring);
	}
	stack_unlock(stack);
	if (verdict == TX_COPY)
		return send_long(u, call);
	return verdict == TX_CUT ? send_cut(u, call) : verdict;
}

/* -- when it cannot go at once ---------------------------------------------------- */

long udp_leave_to_twin(struct udp *u, int flags)
{
	if (flags & MSG_MORE) {
		atomic_store(&u->has_sent_more, true);
		sock_hold_tx(&u->sock, UDP_TX_MORE);
	} else {
		sock_release_tx(&u->sock, UDP_TX_MORE | UDP_TX_ERROR);
	}
	atomic_store_explicit(&u->sock.is_twin_ready, true, memory_order_relaxed);
	return FD_PASS;
}

long udp_leave_asked(struct udp *u, int fd, int flags, const char *what)
{
	int err = sock_exception(&u->sock, fd, REASON_SEND, STATS_BY_SEND, what,
				flags);

	return err ? err : udp_leave_to_twin(u, flags);
}

long udp_leave_for(struct udp *u, int fd, int flags)
{
	return flags & ~TX_FLAGS ?
		       udp_leave_asked(u, fd, flags, "a send with these flags") :
		       udp_leave_to_twin(u, flags);
}

/* Frames come back as the device sends them, which takes microseconds: so long a blocking
 * send only looks again, and then it sleeps. One whose ring sends nothing, or nothing of it for
 * long, is lost, as Linux's queues lose what a device does not take. If frames are paced it
 * takes as long as it takes. */
enum {
	FULL_LOOK_NS = 100 * 1000,
	FULL_STILL_NS = 100 * 1000 * 1000,
	FULL_WAIT_NS = 1000 * 1000 * 1000,
};

struct room_wait {
	struct signals_mark mark;
	uint64_t began_ns; /* 0: nothing was waited for yet */
	uint64_t limit_ns; /* SO_SNDTIMEO, or 0 */
	/* the frames that its ring has sent, and since when not more */
	uint64_t sent, still_ns;
};

/* How many frames the ring of the datagram has sent by then. */
static uint64_t reap(struct udp *u, const struct tx_call *call)
{
	struct udp_way *way;
	struct stack *stack;
	uint64_t sent;

	sock_lock(&u->sock, &stack);
	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i]) {
			stack->rings[i]->ops->reap(stack->rings[i]);
			stack_note_kick(stack, stack->rings[i]);
		}
	way = udp_way_find(u, call);
	sent = way && way->dst.ring ? way->dst.ring->counts->tx_pkts : 0;
	stack_unlock(stack);
	return sent;
}

static long fail(struct udp *u, long err)
{
	stats_add(&sock_counters(&u->sock)->tx_errors, 1);
	return err;
}

static long lose(struct udp *u, const struct tx_call *call)
{
	stats_add(&sock_counters(&u->sock)->tx_drops, 1);
	if (call->draft)
		call->draft->is_dropped = true;
	return (long)call->len;
}

/* A non-blocking send without room. */
static long give_up(struct udp *u, const struct tx_call *call)
{
	if (!sock_params.tx_eagain)
		return lose(u, call);
	stats_add(&sock_counters(&u->sock)->tx_eagain, 1);
	return -EAGAIN;
}

/* A blocking one. As on Linux, only who has asked for all errors hears of it. */
static long give_up_waiting(struct udp *u, int fd, const struct tx_call *call)
{
	return sock_owns_fd(&u->sock, fd) && sock_twin_option(fd, IPPROTO_IP, IP_RECVERR) ?
		       fail(u, -ENOBUFS) :
		       lose(u, call);
}

/* Who has records to undo stays in the bracket, where no handler runs that could jump away. */
static long sleep_without_room(struct udp *u, const struct tx_call *call,
			       const struct room_wait *w)
{
	struct timespec nap = { .tv_nsec = (long)udp_room_nap_ns(u) };
	int n;

	if (call->draft) {
		inside_nap(nap.tv_nsec);
		return 0;
	}
	n = fd_wait(&u->sock.obj, NULL, 0, &nap, &w->mark, !w->limit_ns, NULL, NULL);
	if (n == -ECANCELED)
		return FD_ABANDONED;
	return n == -EINTR ? n : 0;
}

/* 0: try again; -ENOBUFS: it does not move; -EINTR; -EAGAIN: SO_SNDTIMEO is over; or
 * FD_ABANDONED. */
static long wait_for_room(struct udp *u, const struct tx_call *call, uint64_t sent,
			  struct room_wait *w)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_paced = udp_is_paced(u) && !call->draft;

	if (!w->began_ns) {
		w->began_ns = w->still_ns = now_ns;
		w->limit_ns = atomic_load(&u->sock.tx_timeout_ns);
	} else if (w->sent == sent && atomic_load(&u->stuck_at) == sent + 1 && !is_paced) {
		return -ENOBUFS;
	}
	if (w->sent != sent)
		w->still_ns = now_ns;
	w->sent = sent;
	if (w->limit_ns && now_ns - w->began_ns >= w->limit_ns)
		return -EAGAIN;
	if (is_paced)
		return sleep_without_room(u, call, w);
	if (now_ns - w->began_ns < FULL_LOOK_NS)
		return 0;
	/* handlers wait for who has records */
	if (now_ns - w->began_ns < (call->draft ? FULL_STILL_NS : FULL_WAIT_NS) &&
	    now_ns - w->still_ns < FULL_STILL_NS)
		return sleep_without_room(u, call, w);
	atomic_store(&u->stuck_at, sent + 1);
	return -ENOBUFS;
}

static COLD long send_slowly(struct udp *u, int fd, const struct tx_call *call,
			     enum tx_verdict way)
{
	struct room_wait room = { .mark = signals_mark() };
	uint64_t sent;
	int err;
	long n;

	for (;;) {
		switch (way) {
		case TX_RESOLVE:
			err = udp_way_look_up(u, call);
			if (err)
				return udp_leave_to_twin(u, call->flags);
			break;
		case TX_FULL:
			sent = reap(u, call);
			if (!sock_is_blocking(&u->sock, call->flags))
				return give_up(u, call);
			n = wait_for_room(u, call, sent, &room);
			if (n == -ENOBUFS)
				return give_up_waiting(u, fd, call);
			if (n)
				return n == FD_ABANDONED ? n : fail(u, n);
			if (!(sock_tx_holds(&u->sock) & SOCK_TX_OVER))
				break;
			way = TX_KERNEL;
			continue;
		case TX_KERNEL:
			return sock_owns_fd(&u->sock, fd) ?
				       udp_leave_to_twin(u, call->flags) :
				       fail(u, -EBADF);
		default:
			return (long)call->len;
		}
		way = call->draft ? send_followed(u, call) : send_once(u, call);
	}
}

/* -- datagrams that the program follows (tx_stamps.h) ------------------------------- */

/* The kernel does it all from now on: it has to count the datagrams, too. */
long udp_leave_followed(struct udp *u, int fd, int flags)
{
	int err = sock_leave_for(&u->sock, fd, REASON_SEND, STATS_BY_SEND,
				 "a send like this with time stamps", flags);

	return err ? err : udp_leave_to_twin(u, flags);
}

static long follow_by_twin(struct udp *u, int fd, const struct tx_call *call,
			   uint32_t stations)
{
	struct sockaddr_storage name;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)call->iov,
		.msg_iovlen = call->iov_cnt,
	};
	long n;

	if (!sock_owns_fd(&u->sock, fd))
		return fail(u, -EBADF);
	if (call->to) {
		msg.msg_name = &name;
		msg.msg_namelen = sizeof(name);
		user_name_write(call->to, u->sock.domain, &name,
				&msg.msg_namelen);
	}
	if (call->control) {
		msg.msg_control = (void *)(uintptr_t)call->control->bytes;
		msg.msg_controllen = call->control->len;
	}
	(void)udp_leave_to_twin(u, call->flags);
	n = udp_stamps_send_by_twin(u, fd, &msg, call->flags, stations);
	if (n == -EOVERFLOW ||
	    (n == -EAGAIN && sock_is_blocking(&u->sock, call->flags)))
		return udp_leave_followed(u, fd, call->flags);
	stats_count_os_tx(&u->sock.stats, n);
	return n;
}

/* Sends it, and makes the records of that. */
static long follow(struct udp *u, int fd, const struct tx_call *call,
		   uint32_t stations)
{
	struct tx_call own = *call;
	struct udp_draft draft;
	struct stack *stack;
	enum tx_verdict way;
	long n = (long)call->len;

	own.draft = &draft;
	udp_draft_begin(u, &draft, stations, call->iov, call->iov_cnt, call->len);
	way = send_followed(u, &own);
	if (way != TX_SENT)
		n = send_slowly(u, fd, &own, way);
	sock_lock(&u->sock, &stack);
	if (n >= 0)
		udp_draft_end(u, &draft, draft.is_dropped ? NULL : udp_way_find(u, call),
			      call->len);
	else
		udp_draft_drop(&draft);
	stack_unlock(stack);
	return n == FD_PASS ? follow_by_twin(u, fd, call, stations) : n;
}

/* The twin has said that it has an error, which a send would tell; but most likely it is a
 * record. 0: it was. */
static COLD int take_twin_error(struct udp *u, int fd)
{
	sock_release_tx(&u->sock, UDP_TX_ERROR);
	return sock_owns_fd(&u->sock, fd) ?
		       -sock_twin_option(fd, SOL_SOCKET, SO_ERROR) :
		       -EBADF;
}

/* Under Linux a datagram that the device is done with is an edge. Here it is told of before
 * it is sent, and nobody is woken before the lock is released. */
static COLD void tell_edges(struct udp *u)
{
	struct stack *stack;

	sock_lock(&u->sock, &stack);
	endpoint_fire(&u->sock.end, READY_OUT);
	stack_unlock(stack);
}

long udp_send_oddly(struct udp *u, int fd, const struct tx_call *call)
{
	uint32_t stations = udp_stamps_stations(u, call->control);
	unsigned holds = sock_tx_holds(&u->sock) & ~(unsigned)SOCK_TX_LONG;
	enum tx_verdict way;
	bool is_ours;
	int err;

	/* what the twin says from then on is for the next send: it says so of each record */
	if (stations && holds & UDP_TX_ERROR) {
		err = take_twin_error(u, fd);
		if (err)
			return fail(u, err);
		holds &= ~(unsigned)UDP_TX_ERROR;
	}
	is_ours = !holds || (holds == SOCK_TX_UNNAMED &&
			     sock_prepare_send(&u->sock, fd));
	/* nothing is ours to number without a stack */
	if (!sock_stack(&u->sock))
		return udp_leave_for(u, fd, call->flags);
	if (!stations && (call->flags & ~TX_FLAGS || !is_ours))
		return udp_leave_for(u, fd, call->flags);
	if (call->flags & ~TX_FLAGS || holds & (UDP_TX_CORKED | UDP_TX_MORE))
		return udp_leave_followed(u, fd, call->flags);
	if (!is_ours)
		return follow_by_twin(u, fd, call, stations);
	if (sock_tx_holds(&u->sock) & SOCK_TX_EDGES)
		tell_edges(u);
	if (stations)
		return follow(u, fd, call, stations);
	way = send_once(u, call);
	return way == TX_SENT ? (long)call->len : send_slowly(u, fd, call, way);
}

/* -- calls ------------------------------------------------------------------------ */

static inline bool is_by_stack(struct udp *u, int fd, int flags)
{
	unsigned holds = sock_tx_holds(&u->sock);
	bool is_told = UNLIKELY(holds & SOCK_TX_EDGES);

	if (UNLIKELY(flags & ~TX_FLAGS))
		return false;
	holds &= ~(unsigned)SOCK_TX_EDGES;
	if (UNLIKELY(holds) && !(holds == SOCK_TX_UNNAMED &&
				 sock_prepare_send(&u->sock, fd)))
		return false;
	if (is_told)
		tell_edges(u);
	return true;
}

bool udp_is_by_stack(struct udp *u, int fd, int flags)
{
	return is_by_stack(u, fd, flags);
}

static inline long send_call(struct udp *u, int fd, const struct tx_call *call)
{
	enum tx_verdict way;

	if (UNLIKELY(!is_by_stack(u, fd, call->flags)))
		return udp_send_oddly(u, fd, call);
	way = send_once(u, call);
	if (LIKELY(way == TX_SENT))
		return (long)call->len;
	return send_slowly(u, fd, call, way);
}

long udp_send_call(struct udp *u, int fd, const struct tx_call *call)
{
	return send_call(u, fd, call);
}

/* AF_UNSPEC on a socket of AF_INET. */
bool udp_read_odd_name(const struct udp *u, const struct sockaddr *addr, socklen_t len,
		       struct user_name *to)
{
	struct sockaddr_in name;

	if (u->sock.domain != AF_INET || len < sizeof(name) ||
	    len > sizeof(struct sockaddr_storage) || !user_is_plausible(addr, len))
		return false;
	memcpy(&name, addr, sizeof(name));
	if (name.sin_family != AF_UNSPEC)
		return false;
	*to = (struct user_name){ ip_addr_from_v4(name.sin_addr.s_addr), name.sin_port };
	return true;
}

long udp_sendto(struct fd_object *obj, int fd, const void *buf, size_t len,
		int flags, const struct sockaddr *addr, socklen_t addr_len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct tx_call call = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
		.flags = flags,
	};
	struct user_name to;

	if (addr) {
		if (!udp_read_name(udp_of(obj), addr, addr_len, &to))
			return udp_leave_to_twin(udp_of(obj), flags);
		call.to = &to;
	}
	if (UNLIKELY(!user_is_plausible(buf, len)))
		return udp_leave_to_twin(udp_of(obj), flags);
	return send_call(udp_of(obj), fd, &call);
}

long udp_send(struct fd_object *obj, int fd, const void *buf, size_t len,
	      int flags)
{
	return udp_sendto(obj, fd, buf, len, flags, NULL, 0);
}

/* The parameters of a quick send; without a name `addr` is NULL. */
struct quick_tx {
	int fd;
	const void *buf;
	size_t len;
	int flags;
	const struct sockaddr *addr;
	socklen_t addr_len;
};

static ALWAYS_INLINE ssize_t quick_undo(const struct quick_tx *tx,
					struct fd_object *obj)
{
	return tx->addr ?
		       fd_quick_undo_sendto(tx->fd, tx->buf, tx->len, tx->flags,
					    tx->addr, tx->addr_len, obj) :
		       fd_quick_undo_send(tx->fd, tx->buf, tx->len, tx->flags,
					  obj);
}

/* Unlocks, and leaves the call to the general way. */
static COLD ssize_t quick_undo_locked(int fd, const void *buf, size_t len,
				      int flags, struct fd_object *obj,
				      struct stack *stack) RELEASES(stack->lock)
{
	stack_unlock(stack);
	return fd_quick_undo_send(fd, buf, len, flags, obj);
}

static ALWAYS_INLINE struct udp_way *find_sockaddr(struct udp *u,
						   const struct sockaddr_in *to)
{
	struct ip_addr addr = ip_addr_from_v4(to->sin_addr.s_addr);

	return udp_way_named(u, &addr, to->sin_port);
}

/* To a peer that the socket has not sent to before, but to one like it. */
static NOINLINE bool send_to_new(struct udp *u, struct stack *stack,
				 const void *buf, size_t len,
				 const struct sockaddr_in *to)
	REQUIRES(stack->lock)
{
	struct udp_way *way;

	if (!sock_is_in(&u->sock, stack) || find_sockaddr(u, to))
		return false;
	way = udp_way_derive(u, stack, to->sin_addr.s_addr, to->sin_port);
	return way && len <= way->payload_max &&
	       transmit_short(u, stack, way, buf, (uint32_t)len) == TX_SENT;
}

/* The socket has no way to this name that can be used at once. */
static COLD ssize_t
quick_miss_to(int fd, const void *buf, size_t len, int flags,
	      const struct sockaddr *addr, socklen_t addr_len,
	      struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	bool is_sent = send_to_new(udp_of(obj), stack, buf, len,
				   (const void *)addr);

	stack_unlock(stack);
	if (is_sent)
		return fd_quick_end(obj, (long)len);
	return fd_quick_undo_sendto(fd, buf, len, flags, addr, addr_len, obj);
}

/* The second half, where nothing stands against it so far. */
static ALWAYS_INLINE ssize_t quick_send_by(const struct quick_tx *tx, struct udp *u,
					   struct fd_object *obj)
{
	struct stack *stack = sock_stack(&u->sock);
	struct ring *ring;
	uint8_t *frame;
	struct udp_way *way;

	if (UNLIKELY(!stack_lock_try_plain(&stack->lock)))
		return quick_undo(tx, obj);
	way = tx->addr ? find_sockaddr(u, (const void *)tx->addr) :
			 &u->ways[UDP_WAY_CONNECTED];
	/* without a ring nothing is short enough */
	if (UNLIKELY(!sock_is_in(&u->sock, stack) || !way ||
		     !dst_is_valid(&way->dst, stack) ||
		     (uint32_t)tx->len > way->payload_max ||
		     !way->dst.ring->tx_frame))
		return tx->addr ? quick_miss_to(tx->fd, tx->buf, tx->len,
						tx->flags, tx->addr,
						tx->addr_len, obj, stack) :
				  quick_undo_locked(tx->fd, tx->buf, tx->len,
						    tx->flags, obj, stack);
	ring = way->dst.ring;
	frame = ring->tx_frame;
	count_sent(u, tx->len);
	stack_tx_commit_unlock(stack, ring,
			       udp_way_write(way, ring, tx->buf, tx->len, frame));
	return fd_quick_end(obj, (long)tx->len);
}

/* The same, told to the sets that want edges. A function of its own for each call, so that
 * the others do not pay for it. */
static NOINLINE ssize_t quick_send_edge(int fd, const void *buf, size_t len, int flags,
					struct fd_object *obj)
{
	tell_edges(udp_of(obj));
	return quick_send_by(&(struct quick_tx){ .fd = fd,
						 .buf = buf,
						 .len = len,
						 .flags = flags },
			     udp_of(obj), obj);
}

static NOINLINE ssize_t quick_send_edge_to(int fd, const void *buf, size_t len, int flags,
					   const struct sockaddr *addr,
					   socklen_t addr_len, struct fd_object *obj)
{
	tell_edges(udp_of(obj));
	return quick_send_by(&(struct quick_tx){ .fd = fd,
						 .buf = buf,
						 .len = len,
						 .flags = flags,
						 .addr = addr,
						 .addr_len = addr_len },
			     udp_of(obj), obj);
}

static ALWAYS_INLINE ssize_t quick_send_held(const struct quick_tx *tx, unsigned holds,
					     struct fd_object *obj)
{
	if (holds != SOCK_TX_EDGES)
		return quick_undo(tx, obj);
	return tx->addr ? quick_send_edge_to(tx->fd, tx->buf, tx->len, tx->flags,
					     tx->addr, tx->addr_len, obj) :
			  quick_send_edge(tx->fd, tx->buf, tx->len, tx->flags, obj);
}

/* The most frequent sends: a short datagram, by a way that is known, to where the socket
 * is connected or to a name. First everything that may stand against it. `tx->addr` is
 * NULL in the first case, which each caller fixes. */
static ALWAYS_INLINE ssize_t quick_send(const struct quick_tx *tx,
					const _Atomic(struct fd_object *) *entry,
					struct fd_object *obj)
{
	unsigned holds;
	struct udp *u;

	os_enter_first();
	if (UNLIKELY(!fd_object_try_hold(obj)))
		return quick_undo(tx, NULL);
	if (UNLIKELY(!fd_quick_is_mine(obj, &udp_ops, entry)))
		return quick_undo(tx, obj);
	u = udp_of(obj);
	/* without a name, there may be no stack */
	holds = sock_tx_holds(&u->sock);
	if (UNLIKELY(holds))
		return quick_send_held(tx, holds, obj);
	return quick_send_by(tx, u, obj);
}

/* An empty one is not this short. Memory that ends where a program's does, so that the longest
 * would not fit, is looked at in the general way. */
static ALWAYS_INLINE bool is_quick(const void *buf, size_t len, int flags)
{
	return LIKELY(!fd_quick_is_odd() && !(flags & ~TX_FLAGS) &&
		      len - 1 < SHORT_MAX &&
		      user_is_plausible(buf, SHORT_MAX));
}

ssize_t udp_quick_send(int fd, const void *buf, size_t len, int flags,
		       const _Atomic(struct fd_object *) *entry,
		       struct fd_object *obj)
{
	if (UNLIKELY(!is_quick(buf, len, flags)))
		return fd_slow_calls.send(fd, buf, len, flags, entry, obj);
	return quick_send(&(struct quick_tx){ .fd = fd,
					      .buf = buf,
					      .len = len,
					      .flags = flags },
			  entry, obj);
}

/* Of a name in a call; 0 and what is too long make one large number. */
static ALWAYS_INLINE bool is_length_of_v4(socklen_t len)
{
	const socklen_t least = sizeof(struct sockaddr_in);

	return LIKELY(len - least <= sizeof(struct sockaddr_storage) - least);
}

ssize_t udp_quick_sendto(int fd, const void *buf, size_t len, int flags,
			 const struct sockaddr *addr, socklen_t addr_len,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *obj)
{
	if (UNLIKELY(!is_quick(buf, len, flags) ||
		     !is_length_of_v4(addr_len) ||
		     !user_is_plausible(addr, sizeof(struct sockaddr_in)) ||
		     addr->sa_family != AF_INET))
		return fd_slow_calls.sendto(fd, buf, len, flags, addr, addr_len,
					    entry, obj);
	return quick_send(&(struct quick_tx){ .fd = fd,
					      .buf = buf,
					      .len = len,
					      .flags = flags,
					      .addr = addr,
					      .addr_len = addr_len },
			  entry, obj);
}

long udp_write(struct fd_object *obj, int fd, const void *buf, size_t len)
{
	return udp_sendto(obj, fd, buf, len, 0, NULL, 0);
}
