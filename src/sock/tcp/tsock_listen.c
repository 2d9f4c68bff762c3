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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "os/file.h"
#include "os/inside.h"
#include "os/thread.h"
#include "pkt/wire.h"
#include "sock/kin.h"
#include "sock/tcp_right.h"
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
void tsock_update_listener(struct tsock *t, uint32_t news)
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
		tsock_update_listener(port->listener, READY_IN);
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
	mem_pool_put(&engine->port_memory, port, sizeof(*port));
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
	port = mem_pool_get(&engine->port_memory, sizeof(*port));
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
	REQUIRES(t->engine->stack->lock)
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
		/* who sends it away from now on means this stay */
		atomic_store(&t->leaves_for, REASON_NONE);
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
	if (kin_is_shared_since(t->fork_cnt) || atomic_load(&t->kernel_accept_cnt))
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
	atomic_store(&t->has_accepted, false);
	t->joined_ns = clock_monotonic_ns();
	atomic_store(&t->phase, TSOCK_LISTENER);
	tsock_share_joined(t);
	log_dbg("fd %d: connections are accepted by us, too", fd);
}

/* A thread that the program has made. Our own looks at sockets for others. */
static bool is_in_other_thread(void)
{
	return !os_thread.is_internal && gettid() != getpid();
}

/* inetd and its like wait for a connection, and start another program for it, which
 * accepts. The connection would be in our queue then, where that program cannot find it. They
 * have listeners that block, never accept, and wait in their first thread. Loops of events
 * have listeners that do not block, or, as ZeroMQ's, a thread of their own. There the first
 * connection may stay for hours, so that it must not be the kernel's. */
bool tsock_is_for_itself(const struct tsock *t)
{
	return !sock_is_blocking(&t->sock, 0) || sock_params.listens_early ||
	       atomic_load_explicit(&t->accepts, memory_order_relaxed) ||
	       is_in_other_thread();
}

bool tsock_join_visited(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_LISTENING)
		tsock_join_listener(t, fd);
	mutex_release(&t->sock.config);
	return false;
}

/* By a visit: another thread may close the number meanwhile, and the name that the twin has
 * would be another socket's. */
void tsock_wants_accept(struct tsock *t)
{
	tsock_visit(t, tsock_join_visited);
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

static void show_name(struct tsock *t, int fd)
{
	struct user_name local = sock_twin_name(fd, false);

	sock_show_names(&t->sock, &local, &(struct user_name){ 0 });
}

long tsock_listen(struct fd_object *obj, int fd, int backlog)
{
	struct tsock *t = tsock_of(obj);
	bool is_first = tsock_phase(t) == TSOCK_FRESH;
	long result;

	atomic_store_explicit(&t->may_have_name, true, memory_order_relaxed);
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
		show_name(t, fd);
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
	sock_twin_read(fd, SOL_SOCKET, SO_BINDTODEVICE, device, sizeof(device));
	if (device[0])
		sock_twin_set(keeper, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device));
	sock_twin_set(keeper, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	sock_twin_set(keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* others of the port may listen on */
	if (shares)
		sock_twin_set(keeper, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	(void)!real.shutdown(fd, SHUT_RD);
	sock_twin_set(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (real.bind(keeper, (struct sockaddr *)&name, len) != 0)
		goto err;
	sock_twin_set(keeper, SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof(reuses));
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
	/* connections that have ended were patient for its sake */
	if (is_used)
		stack_engine_tidy(t->engine->stack);
	tsock_unlock(t);
	if (unaccepted_cnt && leaves)
		log_warn("port %u: %u connections are reset: they came before another process got the listener, and nobody has accepted them here",
			 t->sock.stats.at->local_port, unaccepted_cnt);
	if (!is_used)
		tcp_ports_tidy(t->engine);
}

void tsock_end_listening(struct tsock *t)
{
	if (tsock_phase(t) == TSOCK_LISTENER)
		tsock_stop_listening(t, false);
	tsock_unshare(t);
	atomic_store(&t->phase, TSOCK_FRESH);
	/* its twin is not in the kernel's sets from now on */
	tsock_tell_all(t, READY_OUT | READY_HUP);
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

/* Nobody else gets a listener whose port has been given an option that we do not know, or a
 * program, by which the kernel would choose another one for each connection
 * (SO_ATTACH_REUSEPORT_EBPF): what waits is accepted here. */
static bool is_for_others(const struct tsock *t, enum reason reason)
{
	return !t->sharer || (reason != REASON_OPTION && reason != REASON_GROUP);
}

void tsock_leave_listening(struct tsock *t, int fd, enum reason reason,
			   enum stats_decider decider)
{
	bool is_empty;

	tsock_lock(t);
	t->port->is_kernels = true;
	atomic_store(&t->leaves_by, decider);
	atomic_store(&t->leaves_for, reason);
	tsock_unlock(t);
	if (is_for_others(t, reason))
		tsock_hand_over(t, fd);
	tsock_lock(t);
	is_empty = !tcp_child_cnt(t->port->pcb);
	tsock_unlock(t);
	/* one of them that joins in this moment sees the above, or is seen here */
	if (!t->is_lending)
		tsock_share_leaves(t);
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

	tsock_hand_over(t, fd);
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

	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_LISTENER) {
		is_short = atomic_load(&t->has_accepted) &&
			   clock_monotonic_ns() - t->joined_ns < SHORT_STAY_NS;
		t->short_stays = is_short ? t->short_stays + 1 : 0;
		t->is_lending = t->short_stays < SHORT_STAYS_MAX;
		tsock_leave_listening(t, fd, REASON_FORKS, STATS_BY_FORK);
	}
	mutex_release(&t->sock.config);
	return false;
}

/* One that has not had its turn in this round, with a reference, or NULL. What is about to be
 * released stays where it is. */
static struct tsock *next_to_lend(struct tcp_engine *engine, unsigned round)
{
	struct tcp_port *port;
	struct tsock *t = NULL;

	stack_lock(engine->stack);
	LIST_FOR_EACH(port, &engine->ports, link) {
		if (!port->listener || port->is_kernels || port->lend_round == round)
			continue;
		port->lend_round = round;
		if (fd_object_try_hold(&port->listener->sock.obj)) {
			t = port->listener;
			break;
		}
	}
	stack_unlock(engine->stack);
	return t;
}

static void lend_all_of(struct tcp_engine *engine, void *ctx UNUSED)
{
	struct tsock *t;
	unsigned round;

	stack_lock(engine->stack);
	round = ++engine->lend_round;
	stack_unlock(engine->stack);
	while ((t = next_to_lend(engine, round))) {
		tsock_visit(t, lend);
		fd_object_put(&t->sock.obj);
	}
}

void tsocks_lend_listeners(void)
{
	tcp_engines_visit(lend_all_of, NULL);
}

COLD void tsock_leave_when_empty(struct tsock *t, int fd)
{
	enum stats_decider by;
	enum reason reason;

	mutex_acquire(&t->sock.config);
	reason = (enum reason)atomic_load(&t->leaves_for);
	by = (enum stats_decider)atomic_load(&t->leaves_by);
	/* another thread may have been faster, and the listener may have joined anew */
	if (tsock_phase(t) == TSOCK_LISTENER && reason != REASON_NONE) {
		/* another of its port may have sent it away while it was lent */
		t->is_lending &= reason == REASON_FORKS;
		tsock_leave_listening(t, fd, reason, by);
	}
	mutex_release(&t->sock.config);
}
