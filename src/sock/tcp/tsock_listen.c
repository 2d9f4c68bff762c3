/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners. The twin listens, too: it has what comes by interfaces that we do not
 * drive, by loopback and by IPv6. We join it at the first accept() or wait: a wide rule
 * leads the frames for the port to us, and accept() takes from both queues in turn.
 *
 * The port (struct tcp_port) outlives the listener as long as connections of its rule
 * do.
 */
#include "config.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "os/inside.h"
#include "pkt/wire.h"
#include "sock/kin.h"
#include "sock/tcp/tcp_right.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tcp/tsock_share.h"

/* -- ports ------------------------------------------------------------------------ */

static void port_input(struct endpoint *end, struct pkt *pkt)
{
	tcp_engine_take(CONTAINER_OF(end, struct tcp_port, end)->engine, pkt);
}

struct tcp_port *tcp_port_find(struct tcp_engine *engine,
			       const struct flow_key *key)
{
	struct tcp_pcb *pcb = tcp_find_listener(engine->table, key);
	struct tcp_user *user = pcb ? tcp_user(pcb) : NULL;

	return user ? CONTAINER_OF(user, struct tcp_port, user) : NULL;
}

struct dst_query tcp_port_query(const struct tcp_engine *engine,
				const struct tcp_port *port,
				const struct flow_key *key)
{
	struct dst_query query = { .proto = IPPROTO_TCP, .df = DST_DF_USUAL };

	if (port)
		query = port->query;
	query.stack = engine->stack;
	query.local = key->local;
	query.remote = key->remote;
	return query;
}

/* What SYNs and connections have come for it, and nobody has asked for yet. */
static void update_listener(struct tsock *t, uint32_t news)
{
	struct endpoint *end = &t->sock.end;
	uint32_t bits = tcp_accept_cnt(t->port->pcb) ? READY_IN : 0;

	atomic_store_explicit(&end->ready, bits, memory_order_relaxed);
	if (bits && news)
		endpoint_fire(end, news);
}

void tcp_port_event(struct tcp_port *port, unsigned what)
{
	if (what & TCP_EV_ACCEPT && port->listener)
		update_listener(port->listener, READY_IN);
}

void tcp_port_put(struct tcp_port *port)
{
	if (--port->refs)
		return;
	list_push_back(&port->engine->unused_ports, &port->tidy);
	stack_engine_tidy(port->engine->stack);
}

/* The kernel has connections of our ports that were begun before we joined its listener,
 * or by other ways. When it listens and we do not any more, SYNs are its, too. */
bool tcp_port_lets_pass(struct tcp_engine *engine, const struct flow_key *key,
			uint8_t flags)
{
	bool opens = (flags & (WIRE_TCP_SYN | WIRE_TCP_ACK)) == WIRE_TCP_SYN;

	struct tcp_port *port;

	LIST_FOR_EACH(port, &engine->ports, link) {
		const struct flow_key *own = &port->end.key;

		if (own->local_port == key->local_port &&
		    (ip_addr_is_any(&own->local) ||
		     ip_addr_eq(&own->local, &key->local)) &&
		    (port->is_kernels || !opens))
			return true;
	}
	return false;
}

void tcp_foreign_give(struct tcp_engine *engine)
{
	struct list *link;

	for (;;) {
		stack_lock(engine->stack);
		link = list_pop_front(&engine->foreign);
		engine->foreign_cnt -= link != NULL;
		stack_unlock(engine->stack);
		if (!link)
			return;
		(void)!net_give_back(engine->stack->net, pkt_from_link(link));
		stack_lock(engine->stack);
		pkt_put(pkt_from_link(link));
		stack_unlock(engine->stack);
	}
}

static struct tcp_port *next_unused(struct tcp_engine *engine)
{
	struct list *link;

	stack_lock(engine->stack);
	link = list_pop_front(&engine->unused_ports);
	stack_unlock(engine->stack);
	return link ? LIST_ENTRY(link, struct tcp_port, tidy) : NULL;
}

static void free_port(struct tcp_port *port)
{
	struct tcp_engine *engine = port->engine;

	stack_lock(engine->stack);
	list_remove(&port->link);
	tcp_memory_put(&engine->memory, port, sizeof(*port));
	stack_unlock(engine->stack);
}

void tcp_ports_tidy(struct tcp_engine *engine)
{
	struct tcp_port *port;

	while ((port = next_unused(engine))) {
		net_detach(engine->stack->net, &port->att);
		if (atomic_load(&port->twin_fd) >= 0)
			fd_internal_close(&port->twin_fd);
		free_port(port);
	}
}

static struct tcp_port *make_port(struct tcp_engine *engine)
{
	struct tcp_port *port;

	stack_lock(engine->stack);
	port = tcp_memory_get(&engine->memory, sizeof(*port));
	stack_unlock(engine->stack);
	if (!port)
		return NULL;
	port->user.is_port = true;
	port->engine = engine;
	port->refs = 1;
	port->stats.at = &port->stats.own;
	atomic_init(&port->twin_fd, -1);
	list_init(&port->tidy);
	list_init(&port->link);
	endpoint_init(&port->end, port_input);
	port->end.foresee = tsock_foresee_of_port;
	return port;
}

/* -- joining the twin ---------------------------------------------------------------- */

enum { SOMAXCONN_USUAL = 4096 };

static uint32_t somaxconn(void)
{
	char text[16] = "";
	long n = 0;

	if (file_peek("/proc/sys/net/core/somaxconn", text, sizeof(text) - 1) > 0)
		n = strtol(text, NULL, 10);
	return n > 0 ? (uint32_t)n : SOMAXCONN_USUAL;
}

/* Linux's queue takes one more than it says. */
static uint32_t queue_len(int backlog)
{
	return MIN((uint32_t)backlog, somaxconn()) + 1;
}

static enum reason reason_by_names(struct tsock *t, int fd,
				   const struct user_name *local,
				   char detail[STATS_DETAIL_SIZE])
{
	struct sock_end end = { local->addr, local->port };

	if (!ip_addr_is_v4(&local->addr))
		return REASON_IPV6_PEER;
	if (t->sock.domain == AF_INET6 &&
	    sock_twin_option(fd, IPPROTO_IPV6, IPV6_V6ONLY))
		return REASON_IPV6_PEER;
	if (t->sharer || sock_twin_option(fd, SOL_SOCKET, SO_REUSEPORT)) {
		enum reason reason = t->sharer ? tsock_share_reason(t) :
						 REASON_MEMORY;

		if (reason != REASON_NONE)
			return reason;
	}
	if (sock_params.is_kernel_by_rule(SOCK_TCP_SERVER, &end, NULL, detail))
		return REASON_RULE;
	return REASON_NONE;
}

static int listen_as(struct tsock *t, struct tcp_pcb *pcb)
{
	uint32_t backlog = queue_len(atomic_load(&t->backlog));

	return t->sharer ? tcp_listen_shared(pcb, backlog,
					     t->sock.domain == AF_INET6) :
			   tcp_listen(pcb, backlog);
}

static int listen_locked(struct tsock *t, struct tcp_port *port,
			 const struct user_name *local,
			 const struct tsock_settings *settings)
{
	uint64_t now = tsock_now(t);
	int err;

	port->pcb = tcp_new(t->engine->table);
	if (!port->pcb)
		return -ENOMEM;
	tcp_set_user(port->pcb, &port->user);
	err = tsock_apply_settings(t, port->pcb, settings);
	if (!err)
		err = tcp_bind(port->pcb, &local->addr, local->port);
	if (!err)
		err = listen_as(t, port->pcb);
	if (!err && settings->fast_key_cnt)
		tcp_set_listener_keys(port->pcb, settings->fast_keys,
				      settings->fast_key_cnt);
	if (!err)
		return 0;
	tcp_set_user(port->pcb, NULL);
	tcp_abort(port->pcb, now);
	port->pcb = NULL;
	return err;
}

static enum reason attach_port(struct tsock *t, struct tcp_port *port,
			       const struct user_name *local)
{
	struct attach_where where = {
		.stack = sock_stack(&t->sock),
		.proto = IPPROTO_TCP,
		.local = local->addr,
		.local_port = local->port,
		.ifindex = port->query.ifindex,
		.is_ipv6 = t->sock.domain == AF_INET6,
		.named_ns = clock_monotonic_ns(),
		.stats = &port->stats,
		.decider = STATS_BY_LISTEN,
	};
	enum reason reason = net_attach(where.stack->net, &port->att,
					&port->end, &where);

	stats_set_rx(&t->sock.stats, reason, STATS_BY_LISTEN, 0, "");
	return reason;
}

static enum reason join_as(struct tsock *t, int fd, const struct user_name *local)
{
	struct tsock_settings settings;
	struct tcp_port *port;
	enum reason reason;
	int err;

	t->engine = tcp_engine_of(sock_stack(&t->sock));
	port = t->engine ? make_port(t->engine) : NULL;
	if (!port)
		return REASON_MEMORY;
	tsock_take_stamps(t);
	tsock_load_settings(t, fd, &settings);
	tsock_read_query(t, fd, &port->query);
	tsock_lock(t);
	err = listen_locked(t, port, local, &settings);
	if (!err) {
		port->listener = t;
		t->port = port;
		list_push_back(&t->engine->ports, &port->link);
	}
	tsock_unlock(t);
	if (err) {
		free_port(port);
		return err == -EADDRINUSE ? REASON_PORT_SHARED : REASON_MEMORY;
	}
	/* connections may come from now on */
	reason = attach_port(t, port, local);
	if (reason == REASON_NONE)
		return reason;
	tsock_lock(t);
	tcp_close(port->pcb, tsock_now(t));
	tcp_engine_due_locked(t->engine);
	port->pcb = NULL;
	port->listener = NULL;
	t->port = NULL;
	tsock_unlock(t);
	free_port(port);
	return reason;
}

void tsock_join_listener(struct tsock *t, int fd)
{
	char detail[STATS_DETAIL_SIZE] = "";
	struct user_name local;
	struct net *net = NULL;
	enum reason reason;

	/* the twin listens for a child as well, which accepts what comes there */
	if (kin_is_shared_since(t->fork_cnt))
		return;
	local = sock_twin_name(fd, false);
	reason = reason_by_names(t, fd, &local, detail);
	if (reason == REASON_NONE && !tsocks_may_go_back())
		reason = REASON_NO_WAY_BACK;
	if (reason == REASON_NONE)
		net = sock_params.net(&reason);
	if (net && !tcp_right_is_ready()) {
		reason = REASON_NO_WAY_BACK;
	} else if (net) {
		sock_choose_stack(&t->sock, net);
		reason = join_as(t, fd, &local);
	}
	t->sock.stats.at->local = local.addr;
	t->sock.stats.at->local_port = be16toh(local.port);
	if (reason != REASON_NONE) {
		tsock_is_kernels(t, fd, reason, STATS_BY_LISTEN, detail);
		return;
	}
	t->sock.reason = REASON_NONE;
	atomic_store(&t->seen_fd, fd);
	atomic_store(&t->leaves_for, REASON_NONE);
	atomic_store(&t->has_accepted, false);
	t->joined_ns = clock_monotonic_ns();
	atomic_store_explicit(&t->phase, TSOCK_LISTENER, memory_order_release);
	log_dbg("fd %d: connections are accepted by us, too", fd);
}

/* inetd and its like wait for a connection, and start another program for it, which
 * accepts. The connection would be in our queue then, where that program cannot find it. They
 * have listeners that block, and never accept; loops of events have those that do not. */
bool tsock_is_for_itself(const struct tsock *t)
{
	return !sock_is_blocking(&t->sock, 0) || sock_params.listens_early ||
	       atomic_load_explicit(&t->accepts, memory_order_relaxed);
}

void tsock_wants_accept(struct tsock *t)
{
	int fd = tsock_fd(t);

	if (fd < 0)
		return;
	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_LISTENING)
		tsock_join_listener(t, fd);
	mutex_release(&t->sock.config);
	tsock_share_joins(t);
}

/* Those of its port who are ours get nothing any more, since we do not see what is the
 * kernel's. */
static long listen_by_kernel(struct tsock *t, int fd, int backlog)
{
	long result;

	mutex_acquire(&t->sock.config);
	result = real.listen(fd, backlog) ? -errno : 0;
	if (result == 0) {
		tsock_share(t, fd);
		tsock_share_leaves(t);
	}
	mutex_release(&t->sock.config);
	return result;
}

long tsock_listen(struct fd_object *obj, int fd, int backlog)
{
	struct tsock *t = tsock_of(obj);
	bool is_first = tsock_phase(t) == TSOCK_FRESH;
	long result;

	if (tsock_phase(t) == TSOCK_OURS)
		return -EINVAL;
	if (tsock_phase(t) == TSOCK_KERNELS)
		return listen_by_kernel(t, fd, backlog);
	mutex_acquire(&t->sock.config);
	result = real.listen(fd, backlog) ? -errno : 0;
	if (result == 0) {
		atomic_store(&t->backlog, backlog);
		atomic_store(&t->seen_fd, fd);
		if (tsock_phase(t) == TSOCK_FRESH)
			atomic_store(&t->phase, TSOCK_LISTENING);
		t->sock.stats.at->tcp_state = STATS_TCP_LISTEN;
		tsock_share(t, fd);
		/* who has it in a set waits for it; and of those who share a port each
		 * gets its part at once */
		if (tsock_phase(t) == TSOCK_LISTENING &&
		    (sock_params.listens_early ||
		     (tsock_is_watched(t) && tsock_is_for_itself(t)) ||
		     tsock_shares_with_ours(t)))
			tsock_join_listener(t, fd);
		if (is_first)
			tsock_tell_all(t, 0);
		if (tsock_phase(t) == TSOCK_LISTENER) {
			tsock_lock(t);
			tcp_set_backlog(t->port->pcb, queue_len(backlog));
			tsock_unlock(t);
		}
	}
	mutex_release(&t->sock.config);
	tsock_share_joins(t);
	return result;
}

/* -- the end ------------------------------------------------------------------------------ */

static void read_bytes(int fd, int level, int name, void *value, socklen_t len)
{
	if (real.getsockopt(fd, level, name, value, &len) != 0)
		memset(value, 0, len);
}

static void give(int fd, int level, int name, const void *value, size_t len)
{
	(void)!real.setsockopt(fd, level, name, value, (socklen_t)len);
}

/* The port stays taken while connections of it live. Not by a duplicate of the listener's
 * twin, since that would stay in the program's epoll sets after its close. Two sockets may
 * have a port if both allow it and neither listens. */
static void keep_port(const struct tsock *t, int fd, _Atomic int *slot)
{
	int reuses = sock_twin_option(fd, SOL_SOCKET, SO_REUSEADDR), on = 1;
	int shares = sock_twin_option(fd, SOL_SOCKET, SO_REUSEPORT);
	int keeper = real.socket(t->sock.domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	char device[IFNAMSIZ] = "";

	if (keeper < 0 || real.getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		goto err;
	fd_table_forget(keeper);
	read_bytes(fd, SOL_SOCKET, SO_BINDTODEVICE, device, sizeof(device));
	if (device[0])
		give(keeper, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device));
	give(keeper, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	give(keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* others of the port may listen on */
	if (shares)
		give(keeper, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	(void)!real.shutdown(fd, SHUT_RD);
	give(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (real.bind(keeper, (struct sockaddr *)&name, len) != 0)
		goto err;
	give(keeper, SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof(reuses));
	if (fd_internal_adopt(keeper, slot) == 0)
		return;
err:
	log_dbg("fd %d: the port of connections is not kept: %s", fd, strerror(errno));
	if (keeper >= 0)
		inside_close(keeper);
}

void tsock_stop_listening(struct tsock *t, bool is_closed)
{
	struct tcp_port *port = t->port;
	bool leaves = atomic_load(&t->leaves_for) != REASON_NONE;
	uint32_t unaccepted_cnt;
	bool is_used;

	/* The rule may stay for connections that were accepted; then the port does, too,
	 * and SYNs are refused. */
	int fd = atomic_load(&t->twin_fd);

	if (is_closed && !leaves && fd >= 0)
		keep_port(t, fd, &port->twin_fd);
	tsock_lock(t);
	unaccepted_cnt = tcp_accept_cnt(port->pcb);
	/* those that nobody has accepted are reset */
	tcp_close(port->pcb, tsock_now(t));
	tcp_engine_due_locked(t->engine);
	port->pcb = NULL;
	port->listener = NULL;
	t->port = NULL;
	atomic_store(&t->sock.end.ready, READY_OUT | READY_HUP);
	endpoint_fire(&t->sock.end, UINT32_MAX);
	is_used = port->refs > 1;
	/* the twin goes on listening, here or in another process */
	port->is_kernels = !is_closed || leaves;
	tcp_port_put(port);
	tsock_unlock(t);
	if (unaccepted_cnt && leaves)
		log_warn("port %u: %u connections are reset: they came before another process got the listener, and nobody has accepted them here",
			 t->sock.stats.at->local_port, unaccepted_cnt);
	if (!is_used)
		tcp_ports_tidy(t->engine);
}

/* It is the kernel's, for good or until it is ours again. */
static void end_stay(struct tsock *t, int fd, enum reason reason,
		     enum stats_decider decider)
{
	tsock_stop_listening(t, false);
	if (!t->is_lending) {
		tsock_is_kernels(t, fd, reason, decider, "");
		return;
	}
	atomic_store_explicit(&t->phase, TSOCK_LISTENING, memory_order_release);
	stats_set_rx(&t->sock.stats, reason, decider, 0, "");
	tsock_tell_all(t, 0);
}

void tsock_leave_listening(struct tsock *t, int fd, enum reason reason,
			   enum stats_decider decider)
{
	bool is_empty;

	if (!t->is_lending)
		tsock_share_leaves(t);
	tsock_lock(t);
	t->port->is_kernels = true;
	is_empty = !tcp_child_cnt(t->port->pcb);
	tsock_unlock(t);
	atomic_store(&t->leaves_by, decider);
	atomic_store(&t->leaves_for, reason);
	if (!is_empty)
		return;
	if (t->is_lending)
		log_dbg("fd %d: the kernel accepts alone while a child process has it, too",
			fd);
	end_stay(t, fd, reason, decider);
}

void tsock_end_queue(struct tsock *t, int fd)
{
	enum reason reason = (enum reason)atomic_load(&t->leaves_for);
	enum stats_decider by = (enum stats_decider)atomic_load(&t->leaves_by);

	if (reason != REASON_NONE) {
		end_stay(t, fd, reason, by);
		return;
	}
	t->is_lending = true;
	end_stay(t, fd, REASON_EXIT, STATS_BY_EXIT);
}

/* A server that forks for each connection gains nothing by ours. */
#define SHORT_STAY_NS NS_PER_SEC
enum { SHORT_STAYS_MAX = 8 };

static bool lend(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);
	bool is_short;

	/* the number may be another's now */
	if (obj->ops != &tsock_ops)
		return false;
	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_LISTENER) {
		is_short = atomic_load(&t->has_accepted) &&
			   clock_monotonic_ns() - t->joined_ns < SHORT_STAY_NS;
		t->short_stays = is_short ? t->short_stays + 1 : 0;
		t->is_lending = t->short_stays < SHORT_STAYS_MAX;
		tsock_leave_listening(t, fd, REASON_FORKS, STATS_BY_FORK);
	}
	mutex_release(&t->sock.config);
	return true;
}

/* The first one behind `skip` others that is not lent yet, with a reference, or NULL. */
static struct tsock *next_to_lend(struct tcp_engine *engine, unsigned skip)
{
	struct tcp_port *port;
	struct tsock *t = NULL;

	stack_lock(engine->stack);
	LIST_FOR_EACH(port, &engine->ports, link)
		if (port->listener && !port->is_kernels && skip-- == 0) {
			if (fd_object_try_hold(&port->listener->sock.obj))
				t = port->listener;
			break;
		}
	stack_unlock(engine->stack);
	return t;
}

static void lend_all_of(struct tcp_engine *engine)
{
	unsigned skip = 0;
	struct tsock *t;

	while ((t = next_to_lend(engine, skip))) {
		int fd = tsock_fd(t);

		/* what is about to be closed stays where it is */
		if (fd < 0 || !fd_visit_at(fd, lend))
			skip++;
		fd_object_put(&t->sock.obj);
	}
}

void tsocks_lend_listeners(void)
{
	struct net *net = sock_params.net_if_made();

	for (unsigned i = 0; net && i < net_stack_cnt(net); i++) {
		struct stack_engine *base =
			/* acquire pairs with the release in tcp_engine_of */
			atomic_load_explicit(&net->stacks[i]->tcp,
					     memory_order_acquire);

		if (base)
			lend_all_of(CONTAINER_OF(base, struct tcp_engine, base));
	}
}

static COLD void leave_when_empty(struct tsock *t, int fd)
{
	enum stats_decider by;
	enum reason reason;

	mutex_acquire(&t->sock.config);
	reason = (enum reason)atomic_load(&t->leaves_for);
	by = (enum stats_decider)atomic_load(&t->leaves_by);
	/* another of its port may have sent it away while it was lent */
	t->is_lending &= reason == REASON_FORKS;
	if (tsock_phase(t) == TSOCK_LISTENER)
		tsock_leave_listening(t, fd, reason, by);
	mutex_release(&t->sock.config);
}

/* -- accept --------------------------------------------------------------------------------- */

/* The options that an accepted socket of Linux has from its listener. */
static const struct {
	int level, name;
} inherited[] = {
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_OOBINLINE },
	{ SOL_SOCKET, SO_MARK },
	{ SOL_SOCKET, SO_DONTROUTE },
	{ SOL_SOCKET, SO_RCVLOWAT },
	{ SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_REUSEPORT },
	{ SOL_SOCKET, SO_DEBUG },
	{ SOL_SOCKET, SO_BROADCAST },
	{ SOL_SOCKET, SO_TIMESTAMP },
	{ SOL_SOCKET, SO_TIMESTAMPNS },
	{ SOL_SOCKET, SO_TIMESTAMPING },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_TTL },
	{ IPPROTO_IP, IP_RECVTOS },
	{ IPPROTO_IP, IP_RECVTTL },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_CORK },
	{ IPPROTO_TCP, TCP_QUICKACK },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_SYNCNT },
	{ IPPROTO_TCP, TCP_LINGER2 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_INQ },
	{ IPPROTO_TCP, TCP_SAVE_SYN },
};

/* Which of them the listener has otherwise than a fresh socket. */
struct tsock_heritage {
	unsigned cnt;
	struct {
		uint8_t which;
		int value;
	} options[ARRAY_LEN(inherited)];
	/* 0: the system's */
	int snd_buf, rcv_buf;
	struct linger linger;
	struct timeval rcv_time, snd_time;
	/* empty: the system's */
	char cc[16];
};

static void read_heritage(int from, int fresh, struct tsock_heritage *h)
{
	int locks = sock_twin_option(from, SOL_SOCKET, SO_BUF_LOCK);
	char cc[sizeof(h->cc)] = "";

	*h = (struct tsock_heritage){ .cnt = 0 };
	for (size_t i = 0; i < ARRAY_LEN(inherited); i++) {
		int level = inherited[i].level, name = inherited[i].name;
		int value = sock_twin_option(from, level, name);

		if (value == sock_twin_option(fresh, level, name))
			continue;
		h->options[h->cnt].which = (uint8_t)i;
		h->options[h->cnt++].value = value;
	}
	if (locks & 1)
		h->snd_buf = sock_twin_option(from, SOL_SOCKET, SO_SNDBUF) / 2;
	if (locks & 2)
		h->rcv_buf = sock_twin_option(from, SOL_SOCKET, SO_RCVBUF) / 2;
	read_bytes(from, SOL_SOCKET, SO_LINGER, &h->linger, sizeof(h->linger));
	read_bytes(from, SOL_SOCKET, SO_RCVTIMEO, &h->rcv_time,
		   sizeof(h->rcv_time));
	read_bytes(from, SOL_SOCKET, SO_SNDTIMEO, &h->snd_time,
		   sizeof(h->snd_time));
	read_bytes(from, IPPROTO_TCP, TCP_CONGESTION, h->cc, sizeof(h->cc));
	read_bytes(fresh, IPPROTO_TCP, TCP_CONGESTION, cc, sizeof(cc));
	if (strncmp(cc, h->cc, sizeof(cc)) == 0)
		h->cc[0] = '\0';
}

static void give_heritage(const struct tsock_heritage *h, int to)
{
	for (unsigned i = 0; i < h->cnt; i++)
		give(to, inherited[h->options[i].which].level,
		     inherited[h->options[i].which].name, &h->options[i].value,
		     sizeof(int));
	/* which IP_TOS sets; a child of Linux begins without */
	if (h->cnt)
		give(to, SOL_SOCKET, SO_PRIORITY, &(int){ 0 }, sizeof(int));
	if (h->snd_buf)
		give(to, SOL_SOCKET, SO_SNDBUF, &h->snd_buf, sizeof(int));
	if (h->rcv_buf)
		give(to, SOL_SOCKET, SO_RCVBUF, &h->rcv_buf, sizeof(int));
	if (h->linger.l_onoff)
		give(to, SOL_SOCKET, SO_LINGER, &h->linger, sizeof(h->linger));
	if (h->rcv_time.tv_sec || h->rcv_time.tv_usec)
		give(to, SOL_SOCKET, SO_RCVTIMEO, &h->rcv_time,
		     sizeof(h->rcv_time));
	if (h->snd_time.tv_sec || h->snd_time.tv_usec)
		give(to, SOL_SOCKET, SO_SNDTIMEO, &h->snd_time,
		     sizeof(h->snd_time));
	if (h->cc[0])
		give(to, IPPROTO_TCP, TCP_CONGESTION, h->cc, strlen(h->cc));
}

/* The listener's options for a fresh socket. They are looked up after each change. */
static void inherit(struct tsock *t, struct tsock *child, int to)
{
	struct tsock_heritage own, *h;

	mutex_acquire(&t->sock.config);
	if (!t->heritage)
		t->heritage = malloc(sizeof(*t->heritage));
	h = t->heritage ? t->heritage : &own;
	if (h == &own || !t->knows_heritage)
		read_heritage(tsock_fd(t), to, h);
	t->knows_heritage = true;
	give_heritage(h, to);
	child->has_options = true;
	child->may_linger = h->linger.l_onoff;
	mutex_release(&t->sock.config);
}

/* The connection becomes that of the new socket. Under the lock. */
static void adopt(struct tsock *child, struct tsock *listener,
		  struct tcp_pcb *pcb)
{
	struct tcp_port *port = listener->port;
	struct dst_query query;
	struct tcp_way *way;

	child->pcb = pcb;
	tsock_stamps_apply(child);
	child->port = port;
	port->refs++;
	child->key = *tcp_key(pcb);
	child->was_open = true;
	tcp_set_user(pcb, &child->user);
	child->error = tcp_error(pcb);
	query = tcp_port_query(child->engine, port, &child->key);
	way = tcp_way_get(child->engine, &query);
	if (way) {
		if (!way->is_known)
			tcp_way_ask(way);
		tsock_set_way(child, way);
	}
	atomic_store_explicit(&child->phase, TSOCK_OURS, memory_order_release);
	tsock_update(child, 0);
}

/* Under the lock. */
static uint32_t rings_of(const struct tsock *c)
{
	const struct ring *ring = c->way ? tcp_way_ring(c->way) : NULL;

	return ring ? stats_ring_bit(ring->stats) : 0;
}

static void show_child(struct tsock *c, uint32_t rings)
{
	struct stats_socket *at = c->sock.stats.at;

	at->local = c->key.local;
	at->local_port = be16toh(c->key.local_port);
	at->remote = c->key.remote;
	at->remote_port = be16toh(c->key.remote_port);
	stats_set_rx(&c->sock.stats, REASON_NONE, STATS_BY_ACCEPT, rings, "");
	stats_set_tx(&c->sock.stats, REASON_NONE, STATS_BY_ACCEPT, rings, "");
	c->sock.reason = REASON_NONE;
}

/* The call, whichever it was. */
struct accept_call {
	struct sockaddr *addr;
	socklen_t *len;
	int flags;
	/* the twin is asked, too; it is its turn to be the first */
	bool asks_twin, is_twins_turn;
};

static long tell_peer(const struct tsock *c, const struct accept_call *call)
{
	struct user_name name = { c->key.remote, c->key.remote_port };

	if (!call->addr)
		return 0;
	if (!user_is_plausible(call->len, sizeof(*call->len)))
		return -EFAULT;
	if ((int)*call->len < 0)
		return -EINVAL;
	if (!user_is_plausible(call->addr, *call->len))
		return -EFAULT;
	user_name_write(&name, c->sock.domain, call->addr, call->len);
	return 0;
}

static bool has_one(struct tsock *t)
{
	bool result;

	tsock_lock(t);
	if (t->port && !tcp_accept_cnt(t->port->pcb))
		tsock_poll_locked(t);
	result = t->port && tcp_accept_cnt(t->port->pcb);
	tsock_unlock(t);
	return result;
}

/* A repaired socket of the kernel has no SYN, so that it is the socket's from here on. As
 * in Linux, a connection for whose SYN there is no memory goes without. */
static COLD void keep_syn(struct tsock *c, const uint8_t *bytes, uint32_t len)
{
	struct tsock_saved_syn *syn = malloc(sizeof(*syn) + len);

	if (!syn)
		return;
	syn->len = len;
	memcpy(syn->bytes, bytes, len);
	c->saved_syn = syn;
}

static void undo_child(struct tsock *c, int fd)
{
	fd_object_put(&c->sock.obj);
	inside_close(fd);
}

static long accept_ours(struct tsock *t, const struct accept_call *call)
{
	struct tcp_pcb *pcb = NULL;
	struct tsock *c;
	uint8_t syn[TCP_SAVED_SYN_MAX];
	uint32_t rings = 0, syn_len = 0;
	int child_fd, err;

	if (!has_one(t))
		return -EAGAIN;
	/* without a number for it, it stays where it is */
	child_fd = real.socket(t->sock.domain, SOCK_STREAM | call->flags, 0);
	if (child_fd < 0)
		return -errno;
	fd_table_forget(child_fd);
	c = tsock_make(child_fd, t->sock.domain, call->flags);
	if (!c) {
		inside_close(child_fd);
		return -ENOMEM;
	}
	c->engine = t->engine;
	c->has_chosen_cc = t->has_chosen_cc;
	atomic_store(&c->tells_inq, atomic_load(&t->tells_inq));
	atomic_store(&c->stamps_in, atomic_load(&t->stamps_in));
	atomic_store(&c->stamps.own.flags, tx_stamps_flags(&t->stamps.own));
	atomic_store(&c->sock.stack, t->engine->stack);
	atomic_store(&c->seen_fd, child_fd);
	inherit(t, c, child_fd);
	tsock_lock(t);
	if (t->port)
		pcb = tcp_accept(t->port->pcb);
	if (pcb) {
		syn_len = tcp_take_saved_syn(pcb, syn);
		adopt(c, t, pcb);
		tsock_show(c);
		update_listener(t, 0);
		rings = rings_of(c);
	}
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
	if (!pcb) {
		undo_child(c, child_fd);
		return -EAGAIN;
	}
	atomic_store(&c->sock.rx_timeout_ns, atomic_load(&t->sock.rx_timeout_ns));
	atomic_store(&c->sock.tx_timeout_ns, atomic_load(&t->sock.tx_timeout_ns));
	show_child(c, rings);
	if (syn_len)
		keep_syn(c, syn, syn_len);
	/* as in Linux, the connection is lost if its name cannot be told */
	err = (int)tell_peer(c, call);
	atomic_store(&t->has_accepted, true);
	if (!err) {
		tsock_guard(c, child_fd, false);
		err = fd_table_install(child_fd, &c->sock.obj);
	}
	fd_object_put(&c->sock.obj);
	if (err)
		inside_close(child_fd);
	return err ? err : child_fd;
}

/* The number of the interface by which the kernel's connection was begun, or 0. Linux
 * tells it with what IP_PKTINFO asks for. */
static int interface_of_twins(int fd)
{
	union {
		struct cmsghdr head;
		char bytes[256];
	} control = { 0 };
	socklen_t len = sizeof(control);
	struct in_pktinfo info = { 0 };
	int on = 1, off = 0;

	if (real.setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) != 0)
		return 0;
	if (real.getsockopt(fd, IPPROTO_IP, IP_PKTOPTIONS, &control, &len) == 0 &&
	    len >= CMSG_LEN(sizeof(info)) &&
	    control.head.cmsg_level == IPPROTO_IP &&
	    control.head.cmsg_type == IP_PKTINFO)
		memcpy(&info, CMSG_DATA(&control.head), sizeof(info));
	(void)!real.setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &off, sizeof(off));
	return info.ipi_ifindex;
}

/* Exceptions stay until the rule goes. So many are enough for those that were there
 * before us; others come only if somebody sends what no rule of a device matches. */
enum { EXCEPTIONS_MAX = 1024 };

/* The port whose rule leads to us what comes for the twin: the listener's, or that of
 * connections which it accepted before it was lent. Under the lock. */
static struct tcp_port *port_of_twin(struct tsock *t, const struct flow_key *key)
{
	struct tcp_port *port;

	if (t->port)
		return t->port;
	LIST_FOR_EACH(port, &t->engine->ports, link)
		if (port->is_kernels && port->refs &&
		    port->end.key.local_port == key->local_port)
			return port;
	return NULL;
}

/* A connection that was begun before we joined the listener, or while it is lent: our rule
 * has its frames, and leads them to the kernel from now on. Without this they still come
 * there, by us. */
static void except_twins(struct tsock *t, int fd)
{
	struct user_name local = sock_twin_name(fd, false);
	struct user_name peer = sock_twin_name(fd, true);
	struct flow_key key = { local.addr, peer.addr, local.port, peer.port, 0 };
	struct net *net = t->engine->stack->net;
	struct tcp_port *port;

	if (!ip_addr_is_v4(&peer.addr) ||
	    !net_drives(net, interface_of_twins(fd)))
		return;
	tsock_lock(t);
	port = port_of_twin(t, &key);
	if (port && port->exception_cnt >= EXCEPTIONS_MAX)
		port = NULL;
	if (port) {
		port->exception_cnt++;
		port->refs++;
	}
	tsock_unlock(t);
	if (!port)
		return;
	(void)!net_except(net, &port->att, &key);
	tsock_lock(t);
	tcp_port_put(port);
	tsock_unlock(t);
}

/* What has come by the kernel's ways. No other thread of ours takes it in between. */
static long accept_twins(struct tsock *t, int fd, const struct accept_call *call)
{
	struct pollfd twin = { .fd = fd, .events = POLLIN };
	long result = -EAGAIN;

	/* closed while we waited */
	if (!sock_owns_fd(&t->sock, fd))
		return -EAGAIN;
	mutex_acquire(&t->writer);
	if (inside_poll(&twin, 1) > 0)
		result = syscall_raw(SYS_accept4, fd, (long)call->addr,
				     (long)call->len, call->flags, 0, 0);
	mutex_release(&t->writer);
	if (result < 0)
		return result;
	fd_table_forget((int)result);
	except_twins(t, (int)result);
	return result;
}

/* While a child has the listener, too. Who has to wait does so in the kernel. */
static long accept_lent(struct tsock *t, int fd, const struct accept_call *call)
{
	long result = accept_twins(t, fd, call);

	return result == -EAGAIN ? FD_PASS : result;
}

static long accept_any(struct tsock *t, int fd, struct accept_call *call)
{
	bool is_twin_first = call->asks_twin && call->is_twins_turn;
	long result = -EAGAIN;

	if (tsock_phase(t) != TSOCK_LISTENER)
		return FD_PASS;
	if (is_twin_first)
		result = accept_twins(t, fd, call);
	if (result == -EAGAIN)
		result = accept_ours(t, call);
	if (result == -EAGAIN && call->asks_twin && !is_twin_first)
		result = accept_twins(t, fd, call);
	if (call->asks_twin)
		call->is_twins_turn = !call->is_twins_turn;
	if (UNLIKELY(atomic_load_explicit(&t->leaves_for,
					  memory_order_relaxed) != REASON_NONE))
		leave_when_empty(t, fd);
	return result;
}

static long look(struct tsock_wait *w)
{
	struct accept_call *call = w->ctx;

	call->asks_twin = w->asks_twin;
	return accept_any(w->t, w->fd, call);
}

long tsock_accept4(struct fd_object *obj, int fd, struct sockaddr *addr,
		   socklen_t *len, int flags)
{
	struct tsock *t = tsock_of(obj);
	struct accept_call call = {
		.addr = addr, .len = len, .flags = flags, .asks_twin = true,
	};
	long result;

	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return FD_PASS;
	if (tsock_phase(t) == TSOCK_LISTENING) {
		atomic_store_explicit(&t->accepts, true, memory_order_relaxed);
		tsock_wants_accept(t);
	}
	if (tsock_phase(t) == TSOCK_OURS)
		return -EINVAL;
	if (tsock_phase(t) == TSOCK_LISTENING && t->is_lending)
		return accept_lent(t, fd, &call);
	if (tsock_phase(t) != TSOCK_LISTENER)
		return FD_PASS;
	/* fair to both, whatever comes */
	call.is_twins_turn = tsock_now(t) / NS_PER_US & 1;
	result = accept_any(t, fd, &call);
	if (result != -EAGAIN || !sock_is_blocking(&t->sock, 0))
		return result;
	return tsock_wait(t, fd, look, &call, READY_IN,
			  atomic_load(&t->sock.rx_timeout_ns));
}

long tsock_accept(struct fd_object *obj, int fd, struct sockaddr *addr,
		  socklen_t *len)
{
	return tsock_accept4(obj, fd, addr, len, 0);
}
