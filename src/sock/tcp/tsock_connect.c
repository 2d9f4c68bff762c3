/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect(). It decides whose the connection is. One of ours has its rule and its port
 * before the SYN leaves: the twin is bound to what the kernel would have chosen.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/log.h"
#include "sock/kin.h"
#include "sock/tcp_right.h"
#include "sock/tcp/tcp_twin.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tcp/tsock_share.h"

/* What is to be connected, while it is decided by whom. */
struct attempt {
	struct tsock *t;
	int fd;
	struct user_name local, peer;
	struct net *net;
	struct dst dst;
	/* the twin is the connection by its names already */
	bool is_guarded;
	/* the SYN may wait for bytes: for those of a send call, or with
	 * TCP_FASTOPEN_CONNECT if the SYN will carry them */
	bool is_for_send, opens_fast;
	/* why there is no local end for it, which the kernel would say, too; 0 */
	int error;
	char detail[STATS_DETAIL_SIZE];
};

static struct flow_key key_of(const struct attempt *a)
{
	return (struct flow_key){
		.local = a->local.addr,
		.remote = a->peer.addr,
		.local_port = a->local.port,
		.remote_port = a->peer.port,
	};
}

/* -- whose it is -------------------------------------------------------------------- */

static enum reason reason_by_names(struct attempt *a)
{
	struct sock_end local = { a->local.addr, a->local.port };
	struct sock_end peer = { a->peer.addr, a->peer.port };

	if (!ip_addr_is_v4(&a->peer.addr) ||
	    (!ip_addr_is_any(&a->local.addr) && !ip_addr_is_v4(&a->local.addr)))
		return REASON_IPV6_PEER;
	if (a->t->sock.domain == AF_INET6 &&
	    sock_twin_option(a->fd, IPPROTO_IPV6, IPV6_V6ONLY))
		return REASON_IPV6_PEER;
	if (ip_addr_is_any(&a->peer.addr) || !a->peer.port)
		return REASON_LOCAL;
	if (sock_params.is_kernel_by_rule(SOCK_TCP_CLIENT,
					  a->local.port ? &local : NULL, &peer,
					  a->detail))
		return REASON_RULE;
	return REASON_NONE;
}

/* What the kernel knows to do in connect(), and we do not. */
static enum reason reason_by_options(const struct tsock *t, int fd)
{
	if (!t->has_options)
		return REASON_NONE;
	if (sock_twin_option(fd, IPPROTO_IP, IP_TRANSPARENT))
		return REASON_OPTION;
	return REASON_NONE;
}

/* Whether the ring has the time stamps that are wished for. A way that is not known, or not
 * any more, is looked up again (tcp_way.c). */
static bool has_stamps(const struct attempt *a)
{
	struct stack *stack = a->dst.query.stack;
	bool result;

	if (LIKELY(!(tx_stamps_flags(&a->t->stamps.own) & SOF_TIMESTAMPING_TX_HARDWARE)))
		return true;
	/* the ring stays meanwhile */
	stack_lock(stack);
	result = !a->dst.ring || !dst_is_valid(&a->dst, stack) ||
		 tsock_stamps_fit(a->t, a->dst.ring);
	stack_unlock(stack);
	return result;
}

/* The way there, as far as it is known. A neighbour that is asked for is no obstacle. */
static enum reason find_way(struct attempt *a)
{
	tsock_read_query(a->t, a->fd, &a->dst.query);
	a->dst.query.stack = sock_choose_stack(&a->t->sock, a->net);
	a->dst.query.local = a->local.addr;
	a->dst.query.local_port = a->local.port;
	a->dst.query.remote = a->peer.addr;
	a->dst.query.remote_port = a->peer.port;
	a->dst.query.ask = DST_ASK_ANEW;
	dst_resolve(&a->dst, a->net);
	if (!a->dst.ring && !a->dst.is_awaited)
		return a->dst.reason;
	return has_stamps(a) ? REASON_NONE : REASON_OPTION;
}

/*
 * The kernel chooses for the connection as a whole: it looks for a port that is free for
 * this destination, where bind() looks for one that nobody has, which takes long among
 * thousands. A name that the twin had before says nothing of its port: a failed connection
 * leaves its number there, and not the port. False: the address is another than the
 * route's, or the twin cannot be a guard.
 */
static bool choose_by_connect(struct attempt *a)
{
	struct flow_key key = key_of(a);
	struct ip_addr wanted = ip_addr_is_any(&a->local.addr) ? a->dst.source :
								 a->local.addr;
	struct user_name name;
	int err = tsock_choose_end(a->t, a->fd, &key, true);

	if (err) {
		a->error = err == -EADDRNOTAVAIL ? err : 0;
		return false;
	}
	name = sock_twin_name(a->fd, false);
	a->is_guarded = name.port && ip_addr_eq(&name.addr, &wanted);
	if (a->is_guarded)
		a->local = name;
	else
		tsock_give_end_up(a->t, a->fd);
	return a->is_guarded;
}

/* The twin says what it is bound to. */
static enum reason choose_by_bind(struct attempt *a)
{
	struct sockaddr_in6 name6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in name = { .sin_family = AF_INET };
	bool is_v6 = a->t->sock.domain == AF_INET6;
	struct ip_addr source = a->local.addr;

	if (ip_addr_is_any(&source))
		source = a->dst.source;
	a->local.addr = source;
	name.sin_addr.s_addr = ip_addr_v4(&source);
	memcpy(&name6.sin6_addr, &source, sizeof(name6.sin6_addr));
	if (real.bind(a->fd, is_v6 ? (struct sockaddr *)&name6 : (struct sockaddr *)&name,
		      is_v6 ? sizeof(name6) : sizeof(name)) != 0)
		/* one that has a port is bound already */
		return errno == EINVAL && a->local.port ? REASON_NONE :
							  REASON_INTERFACE_ERROR;
	a->local.port = sock_twin_name(a->fd, false).port;
	return a->local.port ? REASON_NONE : REASON_OPTION;
}

static enum reason choose(struct attempt *a)
{
	if (choose_by_connect(a))
		return REASON_NONE;
	return a->error ? REASON_INTERFACE_ERROR : choose_by_bind(a);
}

/* The kernel does not know of one that waits in our TIME_WAIT, nor of one whose number was
 * closed behind our back. */
static bool is_free(const struct attempt *a)
{
	struct stack *stack = a->dst.query.stack;
	struct tcp_engine *engine = tcp_engine_of(stack);
	struct flow_key key = key_of(a);
	bool result;

	if (!engine)
		return true;
	stack_lock(stack);
	result = tcp_may_choose(engine->table, &key, tcp_engine_now(engine));
	stack_unlock(stack);
	return result;
}

/* One that is only bound gives its port up once it has been a guard. */
static bool give_port_up(struct attempt *a)
{
	struct tcp_twin_socket twin = tsock_twin(a->t, a->fd);
	struct flow_key key = key_of(a);

	if (!a->is_guarded && tcp_twin_guard(&twin, &key, true) != 0)
		return false;
	tsock_give_end_up(a->t, a->fd);
	a->is_guarded = false;
	return true;
}

/* How often the kernel is asked, which takes one port after another, or any. */
enum { PORTS_MAX = 16 };

/* The address that the route chooses for us, and a port. */
static enum reason choose_source(struct attempt *a)
{
	struct user_name wanted = a->local;
	enum reason reason = choose(a);

	for (int i = 1; i < PORTS_MAX && reason == REASON_NONE; i++) {
		/* a connection that failed has left the number of a port, and not the port */
		bool is_users = wanted.port && a->local.port == wanted.port;

		if (is_users || is_free(a) || !give_port_up(a))
			break;
		a->local = wanted;
		reason = choose(a);
	}
	return reason;
}

static enum reason attach(struct attempt *a)
{
	struct tsock *t = a->t;
	struct attach_where where = {
		.stack = sock_stack(&t->sock),
		.proto = IPPROTO_TCP,
		.local = a->local.addr,
		.local_port = a->local.port,
		.remote = a->peer.addr,
		.remote_port = a->peer.port,
		.ifindex = a->dst.query.ifindex,
		.mark = a->dst.query.mark,
		.uid = a->dst.query.uid,
		.tos = a->dst.query.tos,
		.is_on_link_only = a->dst.query.is_on_link_only,
		.is_ipv6 = t->sock.domain == AF_INET6,
		.stats = &t->sock.stats,
		.decider = STATS_BY_CONNECT,
	};

	t->engine = tcp_engine_of(where.stack);
	if (t->engine)
		tsock_take_stamps(t);
	if (!t->engine)
		return REASON_MEMORY;
	return net_attach(a->net, &t->sock.att, &t->sock.end, &where);
}

/* Each step may find that the connection is the kernel's. */
static enum reason decide(struct attempt *a)
{
	enum reason reason = reason_by_names(a);

	if (reason == REASON_NONE)
		reason = reason_by_options(a->t, a->fd);
	if (reason == REASON_NONE && !tsocks_may_go_back())
		reason = REASON_NO_WAY_BACK;
	if (reason == REASON_NONE)
		a->net = sock_params.net(&reason);
	if (reason == REASON_NONE)
		reason = find_way(a);
	/* whose guard needs the right already */
	if (reason == REASON_NONE && !tcp_right_is_ready())
		reason = REASON_NO_WAY_BACK;
	if (reason == REASON_NONE)
		reason = choose_source(a);
	return reason == REASON_NONE ? attach(a) : reason;
}

/* -- the SYN ------------------------------------------------------------------------- */

static void show_names(struct attempt *a)
{
	struct stats_socket *at = a->t->sock.stats.at;

	at->local = a->local.addr;
	at->local_port = be16toh(a->local.port);
	at->remote = a->peer.addr;
	at->remote_port = be16toh(a->peer.port);
}

/* With Fast Open, where the system allows it. Else the bytes follow the handshake. */
static int open_fast(struct attempt *a, const struct tcp_path *path, uint64_t now)
{
	struct tsock *t = a->t;
	int err = tcp_connect_held(t->pcb, &a->peer.addr, a->peer.port, path, now);

	if (err)
		return err;
	if (a->is_for_send || tcp_fast_room(t->pcb, now)) {
		t->is_deferred = true;
		/* its time begins with the SYN */
		t->began_ns = 0;
	} else {
		tcp_open_held(t->pcb, NULL, now);
	}
	return 0;
}

static int open_by_rules(struct attempt *a, const struct tcp_path *path,
			 uint64_t now)
{
	int err = -EOPNOTSUPP;

	if (a->is_for_send || a->opens_fast)
		err = open_fast(a, path, now);
	return err == -EOPNOTSUPP ? tcp_connect(a->t->pcb, &a->peer.addr,
						a->peer.port, path, now) :
				    err;
}

static int open_locked(struct attempt *a, const struct tsock_settings *settings,
		       struct tcp_way *way)
{
	struct tsock *t = a->t;
	struct tcp_path path = tcp_way_path(way);
	uint64_t now = tcp_engine_now(t->engine);
	int err;

	t->pcb = tcp_new(t->engine->table);
	if (!t->pcb)
		return -ENOMEM;
	tcp_set_user(t->pcb, &t->user);
	tsock_stamps_apply(t);
	err = tsock_apply_settings(t, t->pcb, settings);
	if (!err)
		err = tcp_bind(t->pcb, &a->local.addr, a->local.port);
	/* until the neighbour is known, for the widest of paths */
	if (!path.mtu)
		path.mtu = 1500;
	t->began_ns = now;
	t->is_deferred = false;
	if (!err)
		err = open_by_rules(a, &path, now);
	if (!err)
		return 0;
	tcp_set_user(t->pcb, NULL);
	tcp_abort(t->pcb, now);
	t->pcb = NULL;
	return err;
}

static void set_key(struct attempt *a)
{
	tsock_lock(a->t);
	a->t->key = key_of(a);
	tsock_unlock(a->t);
}

/* 0: the SYN is on its way. */
static int open_ours(struct attempt *a)
{
	struct tsock *t = a->t;
	struct tsock_settings settings;
	struct tcp_way *way;
	int err = -ENOMEM;

	tsock_load_settings(t, a->fd, &settings);
	atomic_store(&t->seen_fd, a->fd);
	tsock_lock(t);
	a->dst.query.local = a->local.addr;
	way = tcp_way_get(t->engine, &a->dst.query);
	if (way) {
		/* what was found with the source left open serves as well */
		tcp_way_learn(way, &a->dst);
		if (!a->dst.ring) {
			way->is_known = false;
			tcp_way_ask(way);
		}
		t->error = 0;
		t->is_shut_rd = t->is_shut_wr = t->was_open = false;
		/* that was the one before, which a disconnect has ended */
		t->is_gone = false;
		tsock_set_way(t, way);
		err = open_locked(a, &settings, way);
	}
	t->is_connecting = !err;
	if (err)
		tsock_set_way(t, NULL);
	else
		atomic_store_explicit(&t->phase, TSOCK_OURS,
				      memory_order_release);
	if (!err)
		tsock_show(t);
	tcp_engine_due_locked(t->engine);
	tsock_update(t, 0);
	tsock_unlock(t);
	return err;
}

int tsock_set_twin_fast(int fd, bool on)
{
	int value = on;

	return real.setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &value,
			       sizeof(value)) ?
		       -errno :
		       0;
}

/* The kernel is not asked for the name of a socket that has none, as most that are connected.
 * One that was bound by a call which we did not see keeps its port all the same: that is the
 * one with which the twin connects. With `config`. */
static struct user_name local_name(struct tsock *t, int fd)
{
	bool may_have_name = atomic_load_explicit(&t->may_have_name,
						  memory_order_relaxed) ||
			     kin_fork_cnt() != t->fork_cnt;

	/* this attempt gives it one */
	atomic_store_explicit(&t->may_have_name, true, memory_order_relaxed);
	return may_have_name ? sock_twin_name(fd, false) :
			       (struct user_name){ ip_addr_from_v4(0), 0 };
}

/* FD_PASS: the kernel connects it. With `config`. */
static long start(struct tsock *t, int fd, const struct user_name *peer,
		  bool is_for_send)
{
	struct attempt a = {
		.t = t,
		.fd = fd,
		.local = local_name(t, fd),
		.peer = *peer,
		.is_for_send = is_for_send,
		.opens_fast = atomic_load(&t->opens_fast),
	};
	enum reason reason;
	int err;

	/* the twin's connect in repair would wait for bytes as well */
	if (a.opens_fast)
		(void)!tsock_set_twin_fast(fd, false);
	reason = decide(&a);
	if (a.opens_fast && (a.error || reason != REASON_NONE)) {
		if (a.is_guarded)
			tsock_give_end_up(t, fd);
		a.is_guarded = false;
		(void)!tsock_set_twin_fast(fd, true);
	}
	if (a.error)
		return a.error;
	if (reason != REASON_NONE) {
		if (a.is_guarded)
			tsock_give_end_up(t, fd);
		tsock_is_kernels(t, fd, reason, STATS_BY_CONNECT, a.detail);
		return FD_PASS;
	}
	show_names(&a);
	set_key(&a);
	/* the answer may come by another interface */
	if (a.is_guarded)
		tsock_is_guarded(t);
	else
		tsock_guard(t, fd, true);
	err = open_ours(&a);
	if (!err) {
		stats_set_tx(&t->sock.stats, REASON_NONE, STATS_BY_CONNECT,
			     a.dst.ring ? stats_ring_bit(a.dst.ring->stats) : 0,
			     "");
		t->sock.reason = REASON_NONE;
		return 0;
	}
	tsock_unguard(t, fd);
	sock_detach(&t->sock);
	if (a.opens_fast)
		(void)!tsock_set_twin_fast(fd, true);
	/* the same four-tuple is in use */
	return err == -EADDRINUSE ? -EADDRNOTAVAIL : err;
}

/* A close of the number waits, so that it is not another file's before all is done that needs
 * it; and who waits there has no `config`. */
static long start_fresh(struct tsock *t, int fd, const struct user_name *peer, bool is_for_send)
{
	struct fd_visit visit;
	long result = FD_PASS;

	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_FRESH) {
		result = -EBADF;
		if (fd_visit_begin(&visit, fd, &t->sock.obj)) {
			result = start(t, fd, peer, is_for_send);
			fd_visit_end(&visit);
		}
	}
	mutex_release(&t->sock.config);
	return result;
}

/* -- what becomes of it --------------------------------------------------------------- */

void tsock_start_over(struct tsock *t, int error)
{
	tsock_unguard(t, tsock_fd(t));
	tsock_lock(t);
	if (t->pcb) {
		tcp_set_user(t->pcb, NULL);
		tcp_abort(t->pcb, tsock_now(t));
		t->pcb = NULL;
	}
	t->error = error;
	t->is_connecting = t->is_disconnecting = false;
	t->is_deferred = false;
	t->is_shut_rd = t->is_shut_wr = false;
	/* an accepted one has a rule of its own the next time */
	if (t->port)
		tcp_port_put(t->port);
	t->port = NULL;
	/* that was accepted has its guard's */
	atomic_store_explicit(&t->may_have_name, true, memory_order_relaxed);
	t->lost_way = REASON_NONE;
	t->tried_ns = 0;
	tsock_stamps_unfollow(t);
	tsock_set_way(t, NULL);
	atomic_store_explicit(&t->phase, TSOCK_FRESH, memory_order_release);
	atomic_store(&t->sock.end.ready,
		     READY_OUT | READY_HUP | (error ? READY_ERR : 0));
	endpoint_fire(&t->sock.end, UINT32_MAX);
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
	sock_detach(&t->sock);
	if (atomic_load(&t->opens_fast))
		(void)!tsock_set_twin_fast(tsock_fd(t), true);
	stats_set_rx(&t->sock.stats, REASON_NOT_USED, STATS_BY_CONNECT, 0, "");
	stats_set_tx(&t->sock.stats, REASON_NOT_USED, STATS_BY_CONNECT, 0, "");
	t->sock.stats.at->tcp_state = STATS_TCP_CLOSED;
	t->sock.stats.at->remote_port = 0;
}

int tsock_fresh_error(struct tsock *t)
{
	int err = 0;

	if (LIKELY(tsock_phase(t) != TSOCK_FRESH || !t->engine))
		return 0;
	tsock_lock(t);
	err = t->error;
	t->error = 0;
	if (err)
		atomic_store(&t->sock.end.ready, READY_OUT | READY_HUP);
	tsock_unlock(t);
	return err;
}

/* 0: it is open; -EAGAIN: it is under way; FD_PASS: the kernel has it; or why it failed. */
static long result_locked(struct tsock *t)
{
	if (tsock_phase(t) == TSOCK_KERNELS)
		return FD_PASS;
	if (t->was_open)
		return 0;
	/* the kernel begins it anew */
	if (tsock_is_moving(t))
		return -EAGAIN;
	if (t->pcb && tsock_is_opening_state(tcp_state(t->pcb)))
		return -EAGAIN;
	return t->error ? t->error : -ECONNABORTED;
}

static long look(struct tsock_wait *w)
{
	struct tsock *t = w->t;
	long result;

	if (tsock_phase(t) == TSOCK_FRESH) {
		/* another thread has shut it down, or disconnected it */
		result = tsock_fresh_error(t);
		return result ? result : -ECONNABORTED;
	}
	tsock_lock(t);
	tsock_poll_locked(t);
	result = result_locked(t);
	tsock_unlock(t);
	return result;
}

enum { OPEN_BITS = READY_OUT | READY_ERR | READY_HUP };

long tsock_await_open(struct tsock *t, int fd, uint64_t timeout_ns)
{
	return tsock_wait(t, fd, look, NULL, OPEN_BITS, tsock_deadline(timeout_ns), false);
}

/* A connection that another call has begun may have ended since. As in Linux, the call that
 * asks for it later tells why, and frees the socket. */
static long later_result_locked(struct tsock *t)
{
	bool has_ended = tsock_is_ours(t) && t->was_open && !tsock_is_moving(t) &&
			 (!t->pcb || tcp_state(t->pcb) == TCPS_CLOSED);

	if (LIKELY(!has_ended))
		return result_locked(t);
	return t->error ? t->error : -ECONNABORTED;
}

/* Says once what has become of it. With `config`. */
static long settle(struct tsock *t, long result)
{
	if (result == 0)
		t->is_connecting = false;
	else if (result != -EAGAIN)
		tsock_start_over(t, 0);
	return result;
}

/* Whether it went back to the kernel when it was open, and nobody has been told so: the twin
 * would say that it is connected already. */
static bool tells_open_once(struct tsock *t, int fd)
{
	bool result;

	if (tsock_phase(t) != TSOCK_KERNELS || !t->engine)
		return false;
	tsock_lock(t);
	result = t->is_connecting && t->was_open;
	t->is_connecting = false;
	tsock_unlock(t);
	/* somebody may have disconnected it by a call that we did not see */
	return result && sock_twin_name(fd, true).port;
}

/* A connection that this call or an earlier one has begun. */
static long go_on(struct tsock *t, int fd, bool is_first, int flags)
{
	uint64_t timeout = atomic_load(&t->sock.tx_timeout_ns);
	bool may_wait = sock_is_blocking(&t->sock, flags);
	long result;

	/* as in Linux, where no answer is looked at before the call has ended */
	if (is_first && !may_wait)
		return -EINPROGRESS;
	tsock_lock(t);
	result = is_first ? result_locked(t) : later_result_locked(t);
	tsock_unlock(t);
	if (result == -EAGAIN && !may_wait)
		return -EALREADY;
	if (result == -EAGAIN) {
		result = tsock_await_open(t, fd, timeout);
		if (result == -EAGAIN)
			return is_first ? -EINPROGRESS : -EALREADY;
		if (result == -EINTR || result == FD_ABANDONED)
			return result;
	}
	if (result == FD_PASS && tells_open_once(t, fd))
		return 0;
	/* the number may be another file's by now */
	if (result == FD_PASS)
		return sock_owns_fd(&t->sock, fd) ? FD_PASS : -EBADF;
	mutex_acquire(&t->sock.config);
	if (tsock_is_ours(t))
		result = settle(t, result);
	/* the twin has failed in its place since, and this call says so */
	else if (result != 0 && tsock_phase(t) == TSOCK_KERNELS && sock_owns_fd(&t->sock, fd))
		result = FD_PASS;
	mutex_release(&t->sock.config);
	return result;
}

static long connect_again(struct tsock *t, int fd, int flags)
{
	bool is_under_way, is_disconnecting;

	tsock_lock(t);
	is_under_way = t->is_connecting;
	is_disconnecting = t->is_disconnecting;
	tsock_unlock(t);
	if (UNLIKELY(is_disconnecting))
		return -EINVAL;
	/* it is only a name so far; Linux would wait for ever */
	if (atomic_load(&t->is_deferred))
		return -EISCONN;
	return is_under_way ? go_on(t, fd, false, flags) : -EISCONN;
}

/* What is told of one that ends in this way. One that has ended before tells why. */
static int error_of_end(struct tsock *t)
{
	int err;

	tsock_lock(t);
	err = !t->pcb || tsock_is_ended_state(tcp_state(t->pcb)) ? t->error :
								  -ECONNRESET;
	tsock_unlock(t);
	return err;
}

static long disconnect(struct tsock *t, int fd)
{
	mutex_acquire(&t->sock.config);
	if (tsock_is_ours(t)) {
		tsock_start_over(t, error_of_end(t));
	} else if (tsock_phase(t) == TSOCK_LISTENER ||
		   tsock_phase(t) == TSOCK_LISTENING) {
		tsock_end_listening(t);
	} else {
		(void)tells_open_once(t, fd);
	}
	mutex_release(&t->sock.config);
	/* the twin may lose its port now */
	return FD_PASS;
}

long tsock_connect(struct fd_object *obj, int fd, const struct sockaddr *addr,
		   socklen_t len)
{
	struct tsock *t = tsock_of(obj);
	struct user_name peer;
	long result;

	if (!user_is_plausible(addr, sizeof(addr->sa_family)) ||
	    len < sizeof(addr->sa_family) ||
	    len > sizeof(struct sockaddr_storage))
		return FD_PASS;
	if (addr->sa_family == AF_UNSPEC)
		return disconnect(t, fd);
	if (tsock_is_ours(t))
		return connect_again(t, fd, 0);
	if (tells_open_once(t, fd))
		return 0;
	if (user_name_read(t->sock.domain, addr, len, &peer) != 0)
		return FD_PASS;
	result = start_fresh(t, fd, &peer, false);
	if (!result && atomic_load(&t->is_deferred))
		return 0;
	return result ? result : go_on(t, fd, true, 0);
}

long tsock_connect_to_send(struct tsock *t, int fd, const struct sockaddr *addr,
			   socklen_t len, int flags)
{
	struct user_name peer;
	long result;

	/* libc has the right errno */
	if (tsock_phase(t) != TSOCK_OURS && tsock_phase(t) != TSOCK_FRESH)
		return FD_PASS;
	if (tsock_set_twin_fast(fd, atomic_load(&t->opens_fast) &&
					    tsock_phase(t) == TSOCK_FRESH) ==
	    -EOPNOTSUPP)
		return -EOPNOTSUPP;
	if (tsock_is_ours(t))
		return atomic_load(&t->is_deferred) ? 0 :
						      connect_again(t, fd, flags);
	if (!user_is_plausible(addr, sizeof(addr->sa_family)) ||
	    len < sizeof(addr->sa_family) ||
	    len > sizeof(struct sockaddr_storage) ||
	    addr->sa_family == AF_UNSPEC ||
	    user_name_read(t->sock.domain, addr, len, &peer) != 0)
		return FD_PASS;
	result = start_fresh(t, fd, &peer, true);
	/* where the engine may not, a usual SYN is on its way already */
	if (!result && !atomic_load(&t->is_deferred))
		result = go_on(t, fd, true, flags);
	return result;
}

long tsock_opened_by_send(struct tsock *t, int fd, int flags)
{
	return go_on(t, fd, true, flags);
}
