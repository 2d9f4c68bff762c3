/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The most frequent calls on a connection in the fewest steps: a short send that may
 * leave at once, the receive of a short segment that lies in the ring, and a receive with
 * nothing there. Whatever is unusual is left to the general way, which begins anew.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/checksum.h"
#include "pkt/wire.h"
#include "sock/tcp/tsock_priv.h"

enum {
	/* So many bytes are copied under the stack's lock. */
	SHORT_MAX = 256,
	RX_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL,
	TX_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL,
	/* a plain segment has time stamps at most */
	HEADERS_MAX = sizeof(struct dst_header) + sizeof(struct wire_tcp) + 12,
};

_Static_assert(HEADERS_MAX + SHORT_MAX <= RING_TX_FRAME_LEN,
	       "what is sent at once fits the ring's frame");

/* -- receiving ---------------------------------------------------------------------- */

/* Whether the segment is the connection's. */
static inline bool is_ours(const struct tsock *t, const uint8_t *segment)
{
	const struct wire_ipv4 *ip = (const void *)(segment - sizeof(*ip));
	const struct wire_tcp *tcp = (const void *)segment;

	return ip->src == ip_addr_v4(&t->key.remote) &&
	       ip->dst == ip_addr_v4(&t->key.local) &&
	       tcp->src_port == t->key.remote_port &&
	       tcp->dst_port == t->key.local_port;
}

/* On a link without a wire, the sum may be that of the pseudo header alone. It is right
 * when 2^16 - 1 divides it. */
static inline bool has_right_sum(const struct stack *stack,
				 const struct ring_frame *segment)
{
	const struct wire_tcp *tcp = (const void *)segment->data;
	uint64_t pseudo = stack->demux.last.pseudo_sum +
			  htobe16((uint16_t)segment->len);

	if (segment->csum_verdict == PKT_CSUM_GOOD)
		return true;
	if (stack->only_from->rx_partial_csum &&
	    (pseudo + 0xffff - tcp->check) % 0xffff == 0)
		return true;
	return (pseudo + csum_partial(segment->data, segment->len, 0)) % 0xffff ==
	       0;
}

/* Whether the segment can go straight to who reads. */
static inline bool is_short_and_right(const struct stack *stack,
				      const struct ring_frame *segment)
{
	return LIKELY(segment->len >= sizeof(struct wire_tcp) &&
		      segment->len <= SHORT_MAX &&
		      has_right_sum(stack, segment));
}

/* Who reads is told nothing but what comes. */
static inline bool is_plain(const struct tsock *t)
{
	return LIKELY(t->pcb && !t->is_rx_odd);
}

static struct endpoint *foresee(struct tsock *t, const struct ring_frame *segment)
{
	struct stack *stack = t->engine->stack;

	if (!tsock_is_ours(t) || !is_plain(t) || tsock_is_moving(t) ||
	    endpoint_ready(&t->sock.end) & READY_IN ||
	    !is_short_and_right(stack, segment) ||
	    !tcp_would_take_direct(t->pcb, segment->data, segment->len))
		return NULL;
	return &t->sock.end;
}

struct endpoint *tsock_foresee(struct endpoint *end,
			       const struct ring_frame *segment)
{
	return foresee(tsock_of_sock(CONTAINER_OF(end, struct sock, end)),
		       segment);
}

struct endpoint *tsock_foresee_of_port(struct endpoint *end,
				       const struct ring_frame *segment)
{
	struct tcp_port *port = CONTAINER_OF(end, struct tcp_port, end);
	const struct wire_ipv4 *ip = (const void *)(segment->data - sizeof(*ip));
	const struct wire_tcp *tcp = (const void *)segment->data;
	struct flow_key key = {
		.local = ip_addr_from_v4(ip->dst),
		.remote = ip_addr_from_v4(ip->src),
	};
	struct tcp_user *user = NULL;
	struct tcp_pcb *pcb;

	if (segment->len < sizeof(*tcp))
		return NULL;
	key.local_port = tcp->dst_port;
	key.remote_port = tcp->src_port;
	pcb = tcp_find(port->engine->table, &key);
	if (pcb)
		user = tcp_user(pcb);
	return user && !user->is_port ?
		       foresee(CONTAINER_OF(user, struct tsock, user), segment) :
		       NULL;
}

/* Whether a segment of the last flow is for this connection. The flow of a socket's own
 * end is the connection. The frames of an accepted one come by the end of its port, and
 * may be another's. */
static inline bool is_of_flow(const struct tsock *t, const struct stack *stack,
			      const struct ring_frame *segment)
{
	const struct endpoint *last = stack->demux.last.end;

	return LIKELY(last == &t->sock.end) ||
	       (t->port && last == &t->port->end && is_ours(t, segment->data));
}

/* The next segment in the ring, or no data: it is not for this connection, or something is
 * unusual. What was announced has been looked at before. */
static ALWAYS_INLINE struct ring_frame next_segment(const struct tsock *t,
						    const struct stack *stack)
{
	struct ring *ring = stack->only;
	struct ring_frame segment;

	if (stack->announced == &t->sock.end)
		return stack->announced_frame;
	if (UNLIKELY(!stack->demux.last.end))
		return RING_NO_FRAME;
	segment = demux_peek(&stack->demux, ring->ops->rx_peek(ring),
			     stack->only_from);
	if (UNLIKELY(!segment.data || !is_short_and_right(stack, &segment) ||
		     !is_of_flow(t, stack, &segment)))
		return RING_NO_FRAME;
	return segment;
}

/* tsock_take_direct, where the ring has something. */
static ALWAYS_INLINE long take_direct(struct tsock *t, struct stack *stack,
				      void *buf, size_t len)
	REQUIRES(stack->lock)
{
	struct ring *ring = stack->only;
	struct stats_socket_counters *c;
	struct ring_frame segment;
	long n;

	if (UNLIKELY(!ring || stack->afterwards & STACK_ENGINES))
		return -EAGAIN;
	segment = next_segment(t, stack);
	if (UNLIKELY(!segment.data))
		return -EAGAIN;
	n = tcp_input_direct(t->pcb, segment.data, segment.len, buf,
			     (uint32_t)MIN(len, (size_t)SHORT_MAX),
			     stack_now_locked_ns(stack));
	if (UNLIKELY(n < 0))
		return n;
	if (stack->announced)
		stack_unannounce_locked(stack);
	ring->ops->rx_done(ring);
	if (UNLIKELY(ring->wants_kick))
		stack_note_kick(stack, ring);
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	/* what it acknowledges may have given packets back */
	if (UNLIKELY(!list_is_empty(&t->engine->starved)))
		stack_engine_due_locked(stack, &t->engine->base);
	stack_note_timers_locked(stack);
	c = sock_counters(&t->sock);
	c->rx_poll_hit++;
	c->rx_packets++;
	c->rx_bytes += (size_t)n;
	return n;
}

long tsock_take_direct(struct tsock *t, struct stack *stack, void *buf,
		       size_t len)
{
	return take_direct(t, stack, buf, len);
}

static COLD ssize_t undo_recv(int fd, void *buf, size_t len, int flags,
			      struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	stack_unlock(stack);
	return fd_quick_undo_recv(fd, buf, len, flags, obj);
}

/* With the stack locked by stack_lock_try_plain: the ring has something. */
static NOINLINE ssize_t quick_take(int fd, void *buf, size_t len, int flags,
				   struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	long n = take_direct(tsock_of(obj), stack, buf, len);

	if (UNLIKELY(n < 0))
		return undo_recv(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(stack->afterwards))
		stack_unlock_slow(stack);
	else
		stack_lock_release_plain(&stack->lock);
	return fd_quick_end(obj, n);
}

static inline ssize_t end_look(struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	sock_counters(&tsock_of(obj)->sock)->rx_eagain++;
	stack_lock_release_plain(&stack->lock);
	return fd_quick_end_again(obj);
}

/* With the stack locked: nothing has come, and it is time to look at the timers. */
static NOINLINE ssize_t quick_look_at_clock(int fd, void *buf, size_t len,
					    int flags, struct fd_object *obj,
					    struct stack *stack)
	RELEASES(stack->lock)
{
	if (stack_has_timer_due_locked(stack))
		return undo_recv(fd, buf, len, flags, obj, stack);
	return end_look(obj, stack);
}

ssize_t tsock_quick_recv(int fd, void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *obj)
{
	struct stack *stack;
	struct tsock *t;

	if (UNLIKELY(fd_quick_is_odd() || flags & ~RX_FLAGS ||
		     !user_is_plausible(buf, 1)))
		return fd_slow_calls.recv(fd, buf, len, flags, entry, obj);
	os_enter_first();
	if (UNLIKELY(!fd_object_try_hold(obj)))
		return fd_quick_undo_recv(fd, buf, len, flags, NULL);
	if (UNLIKELY(!fd_quick_is_mine(obj, &tsock_ops, entry)))
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	t = tsock_of(obj);
	if (UNLIKELY(!tsock_is_ours(t)))
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	stack = t->engine->stack;
	if (UNLIKELY(!stack_lock_try_plain(&stack->lock)))
		return fd_quick_undo_recv(fd, buf, len, flags, obj);
	if (UNLIKELY(!is_plain(t) ||
		     (endpoint_ready(&t->sock.end) & READY_IN &&
		      stack->announced != &t->sock.end)))
		return undo_recv(fd, buf, len, flags, obj, stack);
	if (LIKELY(!stack_has_quiet_rings(stack)))
		return quick_take(fd, buf, len, flags, obj, stack);
	if (UNLIKELY(stack->afterwards || sock_is_blocking(&t->sock, flags)))
		return undo_recv(fd, buf, len, flags, obj, stack);
	if (stack_is_clock_due_locked(stack))
		return quick_look_at_clock(fd, buf, len, flags, obj, stack);
	return end_look(obj, stack);
}

/* -- sending ------------------------------------------------------------------------- */

static COLD ssize_t undo_send(int fd, const void *buf, size_t len, int flags,
			      struct fd_object *obj, struct stack *stack)
	RELEASES(stack->lock)
{
	stack_unlock(stack);
	return fd_quick_undo_send(fd, buf, len, flags, obj);
}

/* The segment waits until there is room, or is lost where no ring leads there, as any
 * segment may be. */
static COLD void wait_unlock(struct fd_object *obj, struct stack *stack,
			     struct tcp_header header, uint32_t len)
	RELEASES(stack->lock)
{
	struct tsock *t = tsock_of(obj);

	tcp_engine_refused(t->engine, t->pcb, header.bytes, len);
	stack_note_timers_locked(stack);
	stack_unlock(stack);
}

/* Sends the segment and unlocks. */
static inline void send_unlock(struct fd_object *obj, struct tcp_way *way,
			       struct stack *stack, struct tcp_header header,
			       const struct pkt *pkt)
	RELEASES(stack->lock)
{
	uint8_t *frame = NULL, *at;

	if (LIKELY(tcp_way_is_open(way, stack)))
		frame = stack_tx_frame_locked(stack, way->dst.ring);
	if (UNLIKELY(!frame)) {
		wait_unlock(obj, stack, header, pkt->len);
		return;
	}
	at = tcp_engine_write_headers(way, frame, header, pkt->len, 0);
	memcpy(at, pkt->data, OPAQUE((size_t)pkt->len));
	stack_tx_commit_unlock(stack, way->dst.ring,
			       (size_t)(at - frame) + pkt->len);
}

ssize_t tsock_quick_send(int fd, const void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *obj)
{
	struct stats_socket_counters *c;
	struct tcp_header header;
	struct tcp_way *way;
	struct stack *stack;
	struct tsock *t;
	struct pkt *pkt;

	/* the end of a program's memory is for the general way */
	if (UNLIKELY(fd_quick_is_odd() || flags & ~TX_FLAGS ||
		     len - 1 >= SHORT_MAX ||
		     !user_is_plausible(buf, SHORT_MAX)))
		return fd_slow_calls.send(fd, buf, len, flags, entry, obj);
	os_enter_first();
	if (UNLIKELY(!fd_object_try_hold(obj)))
		return fd_quick_undo_send(fd, buf, len, flags, NULL);
	if (UNLIKELY(!fd_quick_is_mine(obj, &tsock_ops, entry)))
		return fd_quick_undo_send(fd, buf, len, flags, obj);
	t = tsock_of(obj);
	if (UNLIKELY(!tsock_is_ours(t)))
		return fd_quick_undo_send(fd, buf, len, flags, obj);
	stack = t->engine->stack;
	if (UNLIKELY(!stack_lock_try_plain(&stack->lock)))
		return fd_quick_undo_send(fd, buf, len, flags, obj);
	way = t->way;
	/* another thread is in the middle of a long send */
	if (UNLIKELY(!t->pcb || t->error || !way || sock_params.tcp.polls_on_send ||
		     atomic_load_explicit(&t->is_writing, memory_order_relaxed)))
		return undo_send(fd, buf, len, flags, obj, stack);
	pkt = stack_send_alloc_locked(stack);
	if (UNLIKELY(!pkt))
		return undo_send(fd, buf, len, flags, obj, stack);
	memcpy(pkt_append(pkt, (uint32_t)len), buf, OPAQUE(len));
	header = tcp_send_now(t->pcb, pkt, way->needs_csum, stack_now_locked_ns(stack));
	if (UNLIKELY(!header.bytes)) {
		pkt_put(pkt);
		return undo_send(fd, buf, len, flags, obj, stack);
	}
	stack_note_timers_locked(stack);
	c = sock_counters(&t->sock);
	c->tx_packets++;
	c->tx_bytes += len;
	send_unlock(obj, way, stack, header, pkt);
	return fd_quick_end(obj, (ssize_t)len);
}
