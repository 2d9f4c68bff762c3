/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP sockets (tsock.h): their life, what they are ready for, names, shutdown. */
#include "config.h"

#include "sock/tcp/tsock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "os/file.h"
#include "os/inside.h"
#include "os/rights.h"
#include "sock/kin.h"
#include "sock/tcp/tcp_twin.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tcp/tsock_share.h"

static struct fd_pool pool = FD_POOL_INIT(struct tsock);

/* -- what it is ready for ---------------------------------------------------------- */

static bool is_readable(const struct tsock *t)
{
	int lowat = atomic_load_explicit(&t->rcv_lowat, memory_order_relaxed);

	return tcp_has_data(t->pcb) && (lowat <= 1 || tcp_has_waiting(t->pcb, (uint32_t)lowat));
}

/* A byte that came before the end can be read after it. */
static uint32_t urgent_bit(const struct tsock *t)
{
	return t->pcb && tcp_urgent_state(t->pcb) == TCP_URGENT_HERE ? READY_PRI : 0;
}

/* As tcp_poll() of Linux says it. */
static uint32_t bits_of_open(const struct tsock *t)
{
	bool is_at_end = t->is_shut_rd || tcp_has_end(t->pcb);
	uint32_t bits = 0;

	if (is_at_end)
		bits |= READY_IN | READY_RDHUP;
	if (is_at_end && t->is_shut_wr)
		bits |= READY_HUP;
	if (is_readable(t))
		bits |= READY_IN;
	if (t->is_shut_wr ||
	    (tcp_has_room(t->pcb) && !list_is_linked(&t->starved)))
		bits |= READY_OUT;
	return bits | urgent_bit(t);
}

static uint32_t bits_of(const struct tsock *t)
{
	uint32_t bits = (t->error ? READY_ERR : 0) | t->has_record;

	if (!t->pcb || tcp_state(t->pcb) == TCPS_CLOSED)
		return bits | urgent_bit(t) | READY_IN | READY_OUT | READY_RDHUP |
		       READY_HUP;
	if (tsock_is_opening_state(tcp_state(t->pcb)))
		return bits | (t->is_deferred ? READY_OUT : 0);
	return bits | bits_of_open(t);
}

void tsock_update(struct tsock *t, uint32_t news)
{
	struct endpoint *end = &t->sock.end;
	uint32_t bits = bits_of(t);

	/* Whoever has seen that there is no room waits for it, without a send that has
	 * failed: the sets of who stops after so many bytes do. */
	news |= bits & ~endpoint_ready(end) & READY_OUT;
	atomic_store_explicit(&end->ready, bits, memory_order_relaxed);
	if (news && !list_is_empty(&end->watches))
		endpoint_fire(end, news);
}

/* Everybody who waits is told: what is there may be enough for one of them, but nobody
 * knows whether he still wants it. The stack is the engine's own, which the analysis does
 * not see. */
NO_LOCK_ANALYSIS void tsocks_feed(struct tcp_engine *engine)
{
	struct list *link;

	if (stack_send_is_used_up_locked(engine->stack))
		return;
	while ((link = list_pop_front(&engine->starved))) {
		struct tsock *t = LIST_ENTRY(link, struct tsock, starved);

		if (tsock_is_ours(t))
			tsock_update(t, READY_OUT);
	}
}

/* Everybody looks again, as after Linux's sk_state_change. */
enum { ALL_NEWS = ~0u };

static uint32_t news_of(struct tsock *t, unsigned what)
{
	uint32_t news = 0;

	if (what & (TCP_EV_CONNECTED | TCP_EV_ERROR))
		return (uint32_t)ALL_NEWS;
	if (what & TCP_EV_READABLE) {
		if (tcp_has_end(t->pcb))
			return (uint32_t)ALL_NEWS;
		news |= is_readable(t) ? READY_IN : 0;
	}
	if (what & TCP_EV_WRITABLE && t->wants_room && tcp_has_room(t->pcb)) {
		t->wants_room = false;
		news |= READY_OUT;
	}
	return what & TCP_EV_URGENT ? news | READY_PRI : news;
}

/* The pcb is only a name now. */
static void is_gone(struct tsock *t)
{
	t->pcb = NULL;
	t->is_gone = true;
	tsock_is_no_orphan(t);
	if (t->way)
		list_remove(&t->by_way);
	if (!t->is_orphan)
		tsock_update(t, 0);
	endpoint_fire(&t->sock.end, (uint32_t)ALL_NEWS);
	tsock_tidy_what_is_left(t);
}

/* Received so far, but for the end. */
static uint32_t received(const struct tsock *t)
{
	struct tcp_pcb_info info;

	tcp_get_info(t->pcb, &info);
	return info.rcv_nxt - tcp_has_end(t->pcb);
}

/* Data for one that is shut down both ways ends it by a reset, as in Linux. While something
 * from before waits to be read, which an abort would throw away, it is taken. */
static void refuse_data(struct tsock *t)
{
	uint32_t new_len = received(t) - t->shut_at;

	if (!new_len || tcp_readable(t->pcb) != new_len)
		return;
	t->error = -ECONNRESET;
	tcp_abort(t->pcb, tcp_engine_now(t->engine));
}

void tsock_event(struct tsock *t, unsigned what)
{
	if (what & TCP_EV_CONNECTED)
		t->was_open = true;
	if (what & TCP_EV_ERROR && t->pcb)
		t->error = tcp_error(t->pcb);
	if (what & TCP_EV_URGENT) {
		t->has_signal = true;
		tsock_tidy_later(t);
	}
	if (what & TCP_EV_GONE) {
		tsock_tell_figures(t);
		is_gone(t);
		return;
	}
	if (UNLIKELY(t->is_shut_rd && t->is_shut_wr) && what & TCP_EV_READABLE && t->pcb)
		refuse_data(t);
	if (t->pcb)
		tsock_update(t, news_of(t, what));
}

int tsock_take_error(struct tsock *t)
{
	int err = t->error;

	t->error = 0;
	if (err)
		tsock_update(t, 0);
	return err;
}

void tsock_lost_way_locked(struct tsock *t, enum reason why)
{
	t->lost_way = why;
	tsock_leave_later(t);
}

void tsock_set_way(struct tsock *t, struct tcp_way *way)
{
	if (t->way) {
		list_remove(&t->by_way);
		tcp_way_put(t->way);
	}
	t->way = way;
	if (way)
		list_push_back(&way->users, &t->by_way);
}

int tsock_own_number(struct tsock *t)
{
	int fd = atomic_load_explicit(&t->seen_fd, memory_order_relaxed);

	if (!atomic_load(&t->sock.obj.fd_cnt))
		return -1;
	if (sock_owns_fd(&t->sock, fd))
		return fd;
	for (fd = fd_table_next(0); fd >= 0; fd = fd_table_next((unsigned)fd + 1))
		if (sock_owns_fd(&t->sock, fd))
			break;
	return fd;
}

int tsock_fd(struct tsock *t)
{
	int fd = atomic_load(&t->twin_fd);

	return fd >= 0 ? fd : tsock_own_number(t);
}

/* The number may have been closed before the visit begins, and another one be left. */
void tsock_visit(struct tsock *t, bool (*each)(struct fd_object *obj, int fd))
{
	int fd, last = -1;

	while ((fd = tsock_own_number(t)) >= 0 && fd != last) {
		(void)fd_visit_at(fd, &t->sock.obj, each);
		last = fd;
	}
}

/* -- the end of it ------------------------------------------------------------------ */

bool tsock_is_watched(struct tsock *t)
{
	struct stack *stack;
	bool result;

	if (!sock_try_lock(&t->sock, &stack))
		return false;
	result = !list_is_empty(&t->sock.end.watches);
	stack_unlock(stack);
	return result;
}

void tsock_tell_all(struct tsock *t, uint32_t ready)
{
	struct stack *stack;

	if (!sock_try_lock(&t->sock, &stack)) {
		atomic_store(&t->sock.end.ready, ready);
		return;
	}
	/* somebody may have come since it joined its twin */
	if (t->port && t->port->listener == t)
		tsock_update_listener(t, 0);
	else
		atomic_store(&t->sock.end.ready, ready);
	endpoint_fire(&t->sock.end, (uint32_t)ALL_NEWS);
	stack_unlock(stack);
}

void tsock_is_kernels(struct tsock *t, int fd, enum reason reason,
		      enum stats_decider decider, const char *detail)
{
	struct sock *s = &t->sock;

	atomic_store_explicit(&t->phase, TSOCK_KERNELS, memory_order_release);
	stats_set_rx(&s->stats, reason, decider, 0, detail);
	stats_set_tx(&s->stats, reason, decider, 0, detail);
	s->has_left = true;
	s->reason = reason;
	tsock_share_leaves(t);
	sock_hold_tx(s, SOCK_TX_LEFT);
	sock_hold_rx(s, SOCK_RX_LEFT);
	s->stats.at->tcp_state = STATS_TCP_UNKNOWN;
	memset(&s->stats.at->tcp, 0, sizeof(s->stats.at->tcp));
	tsock_tell_all(t, 0);
	if (t->engine)
		tsock_stamps_tell(t);
	log_dbg("fd %d is the kernel's: %s", fd, reason_why(reason));
}

/* The control mutex is taken for it: without a lock. */
void tsock_give_up(struct tsock *t)
{
	sock_detach(&t->sock);
	/* a call that is inside goes on with it */
	if (t->is_orphan || !atomic_load(&t->waiting_cnt))
		tsock_drop_twin(t);
	tsock_lock(t);
	/* of one that is over here alone the program still has what is left (tsock_leave.c) */
	if (t->is_orphan || !tsock_is_ours(t))
		tsock_set_way(t, NULL);
	if (t->port)
		tcp_port_put(t->port);
	t->port = NULL;
	tsock_unlock(t);
	tcp_ports_tidy(t->engine);
}

/* For so long what one close has asked is good for others. A limit that becomes lower
 * meanwhile is heeded as if it had become so later. */
#define LIMIT_NS (100 * NS_PER_MS)

/* Closed connections may have so many fds for their twins: those of the program are few
 * where its limit is low, and on the kernel a closed connection takes none. */
uint32_t tsock_twins_max(struct tcp_engine *engine, uint64_t now_ns)
{
	enum { SHARE = 16 };
	/* acquire pairs with the release below: who sees the time sees the answer */
	uint64_t asked_ns = atomic_load_explicit(&engine->keepers_ns,
						 memory_order_acquire);
	struct rlimit limit;

	if (!asked_ns || now_ns - asked_ns > LIMIT_NS) {
		if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
			limit.rlim_cur = 0;
		atomic_store_explicit(&engine->keepers_max,
				      (uint32_t)MIN(limit.rlim_cur / SHARE, UINT32_MAX),
				      memory_order_relaxed);
		atomic_store_explicit(&engine->keepers_ns, now_ns, memory_order_release);
	}
	return atomic_load_explicit(&engine->keepers_max, memory_order_relaxed);
}

static bool may_keep_twin(const struct tsock *t)
{
	return atomic_load_explicit(&t->engine->orphan_cnt,
				    memory_order_relaxed) <
	       tsock_twins_max(t->engine, clock_monotonic_ns());
}

void tsock_is_no_orphan(struct tsock *t)
{
	if (!list_is_linked(&t->orphan))
		return;
	list_remove(&t->orphan);
	atomic_fetch_sub_explicit(&t->engine->orphan_cnt, 1,
				  memory_order_relaxed);
}

/* The conversation goes on without the socket, which keeps a reference to itself. The caller
 * gets another one, since our thread may see the conversation's end at once. */
static void orphan(struct tsock *t)
{
	if (atomic_load(&t->twin_fd) < 0)
		tsock_guard_is_over(t);
	tsock_lock(t);
	t->is_orphan = true;
	t->keeps_itself = true;
	/* who finds it in a list, where it may have been before, knows what it is now */
	atomic_store(&t->sock.obj.refs, 2);
	list_push_back(&t->engine->orphans, &t->orphan);
	atomic_fetch_add_explicit(&t->engine->orphan_cnt, 1,
				  memory_order_relaxed);
	if (!t->pcb)
		is_gone(t);
	else if (t->linger_s == 0)
		tcp_abort(t->pcb, tsock_now(t));
	else
		tcp_close(t->pcb, tsock_now(t));
	/* our thread may have left it alone because nobody had it any more */
	if (t->lost_way != REASON_NONE)
		tsock_leave_later(t);
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
}

/* Two threads may find that it is over: one that has sent it back, and ours. */
void tsock_orphan_is_over(struct tsock *t)
{
	bool has_reference;

	tsock_lock(t);
	has_reference = t->keeps_itself;
	t->keeps_itself = false;
	tsock_unlock(t);
	if (has_reference)
		fd_object_put(&t->sock.obj);
}

/* What SO_LINGER says: seconds, or -1. */
static int linger_of(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	if (fd < 0 || real.getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger,
				      &len) != 0 ||
	    !linger.l_onoff)
		return -1;
	/* Linux takes it for a number without a sign */
	return linger.l_linger < 0 ? INT_MAX : linger.l_linger;
}

/* 0: all is delivered, and our FIN is acknowledged. */
static long look_for_end(struct tsock_wait *w)
{
	struct tsock *t = w->t;
	enum tcp_state state = TCPS_CLOSED;

	if (!tsock_lock_ours(t))
		return 0;
	tsock_poll_locked(t);
	if (t->pcb)
		state = tcp_state(t->pcb);
	tsock_unlock(t);
	return state == TCPS_FIN_WAIT_1 || state == TCPS_CLOSING ||
			       state == TCPS_LAST_ACK ?
		       -EAGAIN :
		       0;
}

/* Whether a call of another thread is inside. Our own thread gives back what it holds at
 * once. */
static bool is_in_use(const struct fd_object *obj)
{
	uint64_t until_ns = clock_monotonic_ns() + NS_PER_MS;

	while (atomic_load(&obj->refs) > 1) {
		if (clock_monotonic_ns() >= until_ns)
			return true;
		sched_yield();
	}
	return false;
}

/* As in Linux, a close that lingers waits even on a non-blocking socket. */
static long tsock_linger(struct fd_object *obj)
{
	struct tsock *t = tsock_of(obj);

	if (!atomic_exchange(&obj->lingers, false))
		return 0;
	/* the connection ends with that call, as in Linux, and nobody waits for it */
	if (is_in_use(obj))
		return 0;
	tsock_lock(t);
	if (t->pcb && !tsock_is_moving(t) && !tcp_has_data(t->pcb)) {
		(void)!tcp_shutdown(t->pcb, tsock_now(t));
		tcp_engine_due_locked(t->engine);
	}
	tsock_unlock(t);
	if (look_for_end(&(struct tsock_wait){ .t = t }) != -EAGAIN)
		return 0;
	return tsock_wait(t, -1, look_for_end, NULL, 0,
			  tsock_deadline((uint64_t)t->linger_s * NS_PER_SEC), false);
}

/* A child may have it as well, and then this is not its end: what closes last ends it, as
 * the kernel knows. The number is another file's if the program has closed it by a way that
 * we do not see. */
static void leave_to_kin(struct tsock *t, int fd)
{
	enum tsock_phase phase = tsock_phase(t);

	if ((phase == TSOCK_OURS || phase == TSOCK_LISTENER) && fd >= 0 &&
	    UNLIKELY(kin_is_shared_since(t->fork_cnt)) &&
	    file_identify(fd).ino == t->sock.obj.inode) {
		tsock_await_answer(t);
		tsock_leave_by(t, fd, REASON_FORKS, STATS_BY_FORK);
	}
}

/* While a number names it: a child that asks for it now must find it, and is answered when it
 * is the kernel's. */
static void tsock_before_close(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	if (atomic_load(&obj->fd_cnt) == 1)
		leave_to_kin(t, fd);
	tsock_waits_go_on(t, fd);
}

/* Calls that are inside go on: what becomes of the connection is for the last of them
 * (tsock_release). The twin keeps the port until then, and longer. */
static void tsock_last_close(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);
	enum tsock_phase phase;

	/* two threads may have closed the last two numbers at once */
	leave_to_kin(t, fd);
	phase = tsock_phase(t);
	sock_last_close(obj, fd);
	/* a call may have begun to wait behind tsock_before_close() */
	if (phase == TSOCK_LISTENING)
		tsock_waits_go_on(t, fd);
	if (phase != TSOCK_OURS && phase != TSOCK_LISTENER)
		return;
	t->linger_s = t->may_linger ? linger_of(fd) : -1;
	/* An accepted connection lives by its listener's port and goes on without a twin.
	 * One whose twin has the port needs it (tsock_release). */
	if (fd >= 0 && t->linger_s != 0 &&
	    (phase == TSOCK_LISTENER || !t->port || may_keep_twin(t)))
		tsock_keep_closed(t, fd);
	if (phase == TSOCK_LISTENER)
		tsock_waits_go_on(t, fd);
	if (phase == TSOCK_OURS && t->linger_s > 0)
		atomic_store(&obj->lingers, true);
}

/* -- names -------------------------------------------------------------------------- */

static long give_name(const struct tsock *t, const struct user_name *name,
		      struct sockaddr *addr, socklen_t *len)
{
	if (!user_is_plausible(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	if (!user_is_plausible(addr, *len))
		return -EFAULT;
	user_name_write(name, t->sock.domain, addr, len);
	return 0;
}

/* The twin of a connection that we have begun is bound, and the kernel refuses to bind it
 * once more. That of an accepted one is not, and shall not be. A fresh socket has what else
 * the kernel would say. */
static long tsock_bind(struct fd_object *obj, int fd UNUSED,
		       const struct sockaddr *addr, socklen_t len)
{
	struct tsock *t = tsock_of(obj);
	bool is_accepted;
	int probe, err;

	atomic_store_explicit(&t->may_have_name, true, memory_order_relaxed);
	if (!tsock_lock_ours(t))
		return FD_PASS;
	is_accepted = t->port;
	tsock_unlock(t);
	if (!is_accepted)
		return FD_PASS;
	probe = real.socket(t->sock.domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return -EINVAL;
	fd_table_forget(probe);
	err = real.bind(probe, addr, len) ? errno : 0;
	inside_close(probe);
	return err && err != EADDRINUSE ? -err : -EINVAL;
}

static long tsock_getsockname(struct fd_object *obj, int fd UNUSED,
			      struct sockaddr *addr, socklen_t *len)
{
	struct tsock *t = tsock_of(obj);
	struct user_name name;

	if (!tsock_lock_ours(t))
		return FD_PASS;
	name = (struct user_name){ t->key.local, t->key.local_port };
	tsock_unlock(t);
	return give_name(t, &name, addr, len);
}

static long tsock_getpeername(struct fd_object *obj, int fd UNUSED,
			      struct sockaddr *addr, socklen_t *len)
{
	struct tsock *t = tsock_of(obj);
	struct user_name name;
	bool is_open;

	if (!tsock_lock_ours(t))
		return FD_PASS;
	name = (struct user_name){ t->key.remote, t->key.remote_port };
	is_open = t->pcb && tcp_state(t->pcb) != TCPS_CLOSED &&
		  tcp_state(t->pcb) != TCPS_TIME_WAIT &&
		  !tsock_is_opening_state(tcp_state(t->pcb));
	tsock_unlock(t);
	return is_open ? give_name(t, &name, addr, len) : -ENOTCONN;
}

/* -- shutdown ------------------------------------------------------------------------ */

#define MOVE_NAP_NS 100000

/* Who moves a connection has its config, as who shuts it. Only a local device takes the
 * other end along without that end's, and what is shut meanwhile neither the engine nor
 * the twin would tell. */
static bool lock_at_rest(struct tsock *t)
	TRY_ACQUIRES(true, t->engine->stack->lock)
{
	while (tsock_lock_ours(t)) {
		if (!tsock_is_moving(t))
			return true;
		tsock_unlock(t);
		inside_nap(MOVE_NAP_NS);
	}
	return false;
}

/* By who has the config. */
static long shut_ours(struct tsock *t, int how)
{
	enum tcp_state state;
	bool is_opening = false, was_shut;
	long result = 0;

	if (!lock_at_rest(t))
		return FD_PASS;
	was_shut = t->is_shut_rd && t->is_shut_wr;
	state = t->pcb ? tcp_state(t->pcb) : TCPS_CLOSED;
	if (how != SHUT_WR)
		t->is_shut_rd = true;
	if (how != SHUT_RD)
		t->is_shut_wr = true;
	if (tsock_is_ended_state(state))
		result = -ENOTCONN;
	else if (tsock_is_opening_state(state))
		is_opening = true;
	else if (how != SHUT_RD)
		(void)!tcp_shutdown(t->pcb, tsock_now(t));
	/* nobody has to ask any more what has become of connect() */
	t->is_disconnecting |= result && t->is_connecting;
	if (!is_opening)
		t->is_connecting = false;
	if (t->pcb && !was_shut)
		t->shut_at = received(t);
	tcp_engine_due_locked(t->engine);
	tsock_update(t, (uint32_t)ALL_NEWS);
	tsock_unlock(t);
	/* what has only begun ends at once */
	if (is_opening)
		tsock_start_over(t, -ECONNRESET);
	return result;
}

/* It is remembered, and makes half a connection of the next one: the kernel's. */
static long shut_fresh(struct tsock *t, int fd, int how)
{
	long result = real.shutdown(fd, how) ? -errno : 0;

	/* the kernel does not know of it */
	if (atomic_load(&t->sock.end.ready) & READY_ERR)
		return result;
	tsock_is_kernels(t, fd, REASON_SHUT_DOWN, STATS_BY_SHUTDOWN, "");
	return result;
}

static long tsock_shutdown(struct fd_object *obj, int fd, int how)
{
	struct tsock *t = tsock_of(obj);
	long result = FD_PASS;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return FD_PASS;
	mutex_acquire(&t->sock.config);
	switch (tsock_phase(t)) {
	case TSOCK_OURS:
		result = shut_ours(t, how);
		break;
	case TSOCK_LISTENER:
	case TSOCK_LISTENING:
		if (how == SHUT_WR)
			break;
		tsock_end_listening(t);
		t->sock.stats.at->tcp_state = STATS_TCP_CLOSED;
		break;
	case TSOCK_FRESH:
		result = shut_fresh(t, fd, how);
		break;
	case TSOCK_KERNELS:
		break;
	}
	mutex_release(&t->sock.config);
	return result;
}

/* -- what others ask ------------------------------------------------------------------ */

/* One that has gone back may have records of what it had sent before. */
static bool has_record(const struct tsock *t)
{
	return endpoint_ready(&t->sock.end) & READY_ERR;
}

static enum fd_await tsock_await(struct fd_object *obj,
				 struct endpoint **end_out,
				 struct stack **stack_out)
{
	struct tsock *t = tsock_of(obj);

	*end_out = &t->sock.end;
	switch (tsock_phase(t)) {
	case TSOCK_FRESH:
		/* the twin does not know of an error that is still to be told */
		if (!(atomic_load_explicit(&t->sock.end.ready, memory_order_relaxed) &
		      READY_ERR))
			return FD_AWAIT_KERNEL;
		*stack_out = sock_stack(&t->sock);
		return FD_AWAIT_ALONE;
	case TSOCK_KERNELS:
		if (!has_record(t))
			return FD_AWAIT_KERNEL;
		*stack_out = sock_stack(&t->sock);
		return FD_AWAIT_STACK;
	case TSOCK_LISTENING:
		if (tsock_is_for_itself(t))
			tsock_wants_accept(t);
		if (tsock_phase(t) == TSOCK_KERNELS)
			return FD_AWAIT_KERNEL;
		/* another thread may have us join it meanwhile */
		return sock_await(obj, end_out, stack_out);
	case TSOCK_LISTENER:
		*stack_out = sock_stack(&t->sock);
		return FD_AWAIT_STACK;
	case TSOCK_OURS:
		*stack_out = sock_stack(&t->sock);
		return FD_AWAIT_ALONE;
	}
	return FD_AWAIT_KERNEL;
}

static enum fd_word tsock_word(const struct fd_object *obj)
{
	const struct tsock *t = CONTAINER_OF(obj, const struct tsock, sock.obj);

	switch (tsock_phase(t)) {
	case TSOCK_FRESH:
	case TSOCK_OURS:
		return FD_WORD_ALL;
	case TSOCK_LISTENING:
	case TSOCK_LISTENER:
		return FD_WORD_BESIDE;
	case TSOCK_KERNELS:
		if (has_record(t))
			return FD_WORD_PART;
		break;
	}
	return FD_WORD_NOTHING;
}

/* Who follows one for which there is no network leaves it to the kernel. */
static struct endpoint *tsock_follow(struct fd_object *obj,
				     struct stack **stack_out)
{
	struct tsock *t = tsock_of(obj);
	enum reason reason = REASON_NONE;
	struct net *net;

	if (tsock_phase(t) == TSOCK_LISTENING && tsock_is_for_itself(t))
		tsock_wants_accept(t);
	if (tsock_phase(t) == TSOCK_KERNELS) {
		*stack_out = sock_stack(&t->sock);
		return has_record(t) ? &t->sock.end : NULL;
	}
	net = sock_params.net(&reason);
	if (!net) {
		mutex_acquire(&t->sock.config);
		if (tsock_phase(t) == TSOCK_FRESH)
			tsock_is_kernels(t, tsock_fd(t), reason, STATS_BY_EPOLL,
					 "");
		mutex_release(&t->sock.config);
		return NULL;
	}
	*stack_out = sock_choose_stack(&t->sock, net);
	return &t->sock.end;
}

/* -- its part of what all sockets do --------------------------------------------------- */

static void forget_ways(struct sock *s UNUSED,
			const struct user_name *peer UNUSED)
{
}

static bool is_port_elsewhere(const struct sock *s UNUSED,
			      const struct flow_key *key UNUSED)
{
	return false;
}

static void hand_back(struct sock *s, int fd UNUSED)
{
	sock_detach(s);
}

static bool is_empty(const struct sock *s UNUSED)
{
	return true;
}

static void left(struct sock *s UNUSED)
{
}

static const struct sock_kind kind = {
	.proto = IPPROTO_TCP,
	.receiver = SOCK_TCP_SERVER,
	.connect = SOCK_TCP_CLIENT,
	.read_settings = tsock_read_settings,
	.forget_ways = forget_ways,
	.is_port_elsewhere = is_port_elsewhere,
	.hand_back = hand_back,
	.is_empty = is_empty,
	.left = left,
};

/* -- life ---------------------------------------------------------------------------- */

/* The demultiplexer has a packet of an own rule of the connection. */
static void input(struct endpoint *end, struct pkt *pkt)
{
	tcp_engine_take(CONTAINER_OF(end, struct tsock, sock.end)->engine, pkt);
}

struct tsock *tsock_make(int fd, int domain, int type)
{
	struct tsock *t = fd_pool_get(&pool);

	if (!t)
		return NULL;
	sock_clear(&t->sock, sizeof(*t));
	mutex_init(&t->writer, LOCK_RANK_SOCK_WRITER);
	atomic_init(&t->twin_fd, -1);
	atomic_init(&t->waiting_cnt, 0);
	atomic_init(&t->rcv_lowat, 1);
	list_init(&t->by_way);
	list_init(&t->by_guard);
	list_init(&t->orphan);
	list_init(&t->tidy);
	list_init(&t->moving);
	list_init(&t->shown);
	list_init(&t->starved);
	list_init(&t->held);
	/* nobody has closed it */
	t->linger_s = -1;
	tx_stamps_init(&t->stamps.own);
	list_init(&t->stamps.followed);
	sock_init(&t->sock, &kind, &tsock_ops, input, fd, domain, type);
	t->fork_cnt = kin_fork_cnt();
	t->sock.stats.at->tcp_state = STATS_TCP_CLOSED;
	t->sock.end.foresee = tsock_foresee;
	atomic_store(&t->sock.end.ready, READY_OUT | READY_HUP);
	return t;
}

struct fd_object *tsock_create(int fd, int domain, int type)
{
	struct tsock *t = tsock_make(fd, domain, type);

	tsock_first_options(fd);
	return t ? &t->sock.obj : NULL;
}

/* Nobody has it any more, and nobody is inside. */
static void tsock_release(struct fd_object *obj)
{
	struct tsock *t = tsock_of(obj);

	if (tsock_phase(t) == TSOCK_OURS && !t->is_gone && !t->is_orphan) {
		bool is_one_too_many = !t->port && !may_keep_twin(t);

		orphan(t);
		/* the kernel needs no fd to go on with it */
		if (UNLIKELY(is_one_too_many))
			tsock_go_after_way(t);
		fd_object_put(obj);
		return;
	}
	if (tsock_phase(t) == TSOCK_LISTENER)
		tsock_stop_listening(t, true);
	tsock_drop_twin(t);
	tsock_guard_is_over(t);
	if (t->engine) {
		/* nobody may find the memory by a list any more */
		tsock_lock(t);
		list_remove(&t->tidy);
		list_remove(&t->shown);
		list_remove(&t->starved);
		tsock_stamps_end(t);
		tsock_set_way(t, NULL);
		/* it was over, and our thread has not been there yet */
		if (t->port)
			tcp_port_put(t->port);
		tsock_unlock(t);
	}
	sock_detach(&t->sock);
	tsock_unshare(t);
	tsock_forget_heritage(t);
	tsock_forget_saved_syn(t);
	sock_destroy(&t->sock);
	fd_pool_put(&pool, t);
}

void tsocks_forked(void)
{
	fd_pool_forked(&pool);
	tsock_accept_forked();
	tcp_twins_forked();
	tsock_waits_forked();
	tsocks_share_forked();
}

/* The child may use a twin that listens as it is, but it may also hand it on to who is not
 * our kin. */
static struct fd_object *tsock_heir(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	switch (tsock_phase(t)) {
	case TSOCK_FRESH:
	case TSOCK_OURS:
		return kin_make_heir(obj, &t->heir, fd, KIN_ANY_USE);
	case TSOCK_LISTENING:
	case TSOCK_LISTENER:
		return kin_make_heir(obj, &t->heir, fd, KIN_HANDING_ON);
	case TSOCK_KERNELS:
		/* but for its SYN */
		return t->saved_syn ? kin_make_heir(obj, &t->heir, fd,
						    KIN_HANDING_ON) :
				      NULL;
	}
	return NULL;
}

bool tsocks_exist(void)
{
	return fd_pool_used_cnt(&pool);
}

static _Atomic uint64_t numbers;

struct fd_ops tsock_ops = {
	.name = "tcp",
	.numbers = &numbers,
	.leave = tsock_leave,
	.stays = tsock_stays,
	.await = tsock_await,
	.follow = tsock_follow,
	.word = tsock_word,
	.bind = tsock_bind,
	.connect = tsock_connect,
	.listen = tsock_listen,
	.accept = tsock_accept,
	.accept4 = tsock_accept4,
	.shutdown = tsock_shutdown,
	.setsockopt = tsock_setsockopt,
	.getsockopt = tsock_getsockopt,
	.getsockname = tsock_getsockname,
	.getpeername = tsock_getpeername,
	.fcntl = tsock_fcntl,
	.fcntl64 = tsock_fcntl,
	.ioctl = tsock_ioctl,
	.sockatmark = tsock_sockatmark,
	.read = tsock_read,
	.readv = tsock_readv,
	.recv = tsock_recv,
	.recvfrom = tsock_recvfrom,
	.recvmsg = tsock_recvmsg,
	.recvmmsg = tsock_recvmmsg,
	.write = tsock_write,
	.writev = tsock_writev,
	.send = tsock_send,
	.sendto = tsock_sendto,
	.sendmsg = tsock_sendmsg,
	.sendmmsg = tsock_sendmmsg,
	.preadv2 = tsock_preadv2,
	.preadv64v2 = tsock_preadv2,
	.pwritev2 = tsock_pwritev2,
	.pwritev64v2 = tsock_pwritev2,
	.splice = tsock_splice,
	.sendfile = tsock_sendfile,
	.sendfile64 = tsock_sendfile64,
	.quick_recv = tsock_quick_recv,
	.quick_send = tsock_quick_send,
	.before_close = tsock_before_close,
	.last_close = tsock_last_close,
	.linger = tsock_linger,
	.release = tsock_release,
	.heir = tsock_heir,
	.heir_option = tsock_heir_option,
	.passed = tsock_passed,
};

void tsocks_start(void)
{
	fd_ops_fill(&tsock_ops);
	/* a card can be driven without it */
	tsocks_rights_changed(rights_is_net_admin());
}
