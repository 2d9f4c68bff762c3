/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP sockets (udp.h): their life, and when frames begin and cease to reach
 * them. */
#include "config.h"

#include "sock/udp/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_pool.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "sock/udp/udp_priv.h"

struct udp_params udp_params;

static struct fd_pool pool = FD_POOL_INIT(struct udp);

static bool is_attached(const struct udp *u)
{
	return attachment_is_made(&u->att);
}

/* -- the kernel's socket ---------------------------------------------------- */

/* The twin's own or its peer's name; port 0 when it has none. */
static struct user_name read_name(int fd, bool is_peer)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct user_name name = { .port = 0 };
	int err = is_peer ?
			  real.getpeername(fd, (struct sockaddr *)&addr, &len) :
			  real.getsockname(fd, (struct sockaddr *)&addr, &len);

	if (err || user_name_read((struct sockaddr *)&addr, len, &name) != 0)
		name = (struct user_name){ .port = 0 };
	/* :: takes IPv4 too, or the socket would not have come this far */
	if (ip_addr_is_any(&name.addr))
		name.addr = ip_addr_from_v4(0);
	return name;
}

static bool is_v6_only(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return real.getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &len) ==
		       0 &&
	       value;
}

/* -- attaching -------------------------------------------------------------- */

static void watch_twin(struct udp *u, int fd)
{
	if (u->is_watched)
		return;
	u->is_watched = true;
	udp_params.watch_twin(fd, &u->obj);
}

/* Forgets all destinations: what they depend on has changed. */
static void forget_dsts(struct udp *u)
{
	for (int i = 0; i < UDP_DSTS; i++)
		u->dsts[i].view_gen = 0;
}

void udp_detach(struct udp *u)
{
	struct net *net = atomic_load(&u->net);

	if (is_attached(u))
		net_detach(net, &u->att);
}

static enum reason reason_by_names(const struct udp *u, int fd,
				   const struct user_name *local,
				   const struct user_name *peer,
				   char detail[STATS_DETAIL_SIZE])
{
	struct udp_end local_end = { local->addr, local->port };
	struct udp_end peer_end = { peer->addr, peer->port };

	if (!local->port)
		return REASON_NOT_USED;
	if (!ip_addr_is_v4(&local->addr) ||
	    (peer->port && !ip_addr_is_v4(&peer->addr)))
		return REASON_IPV6_PEER;
	if (u->domain == AF_INET6 && is_v6_only(fd))
		return REASON_IPV6_PEER;
	if (ip_addr_is_multicast(&local->addr) ||
	    (peer->port && ip_addr_is_multicast(&peer->addr)))
		return REASON_MULTICAST;
	if (peer->port ? udp_params.is_kernel_by_rule(UDP_CONNECT, &local_end,
						      &peer_end, detail) :
			 udp_params.is_kernel_by_rule(UDP_RECEIVER, &local_end,
						      NULL, detail))
		return REASON_RULE;
	return REASON_NONE;
}

/* The stack's lock guards what senders and receivers read; `config` the time, which
 * counts from bind(), or from connect() if that changed the address. */
static void take_names(struct udp *u, struct stack *stack,
		       const struct user_name *local,
		       const struct user_name *peer)
{
	if (!ip_addr_eq(&u->local, &local->addr) ||
	    u->local_port != local->port)
		u->named_ns = clock_monotonic_ns();
	stack_lock(stack);
	u->local = local->addr;
	u->local_port = local->port;
	u->is_connected = peer->port != 0;
	forget_dsts(u);
	if (u->is_connected) {
		u->dsts[UDP_DST_CONNECTED].query.remote = peer->addr;
		u->dsts[UDP_DST_CONNECTED].query.remote_port = peer->port;
	}
	stack_unlock(stack);
}

static void show_names(struct udp *u, const struct user_name *local,
		       const struct user_name *peer)
{
	struct stats_socket *s = u->stats.at;

	s->local = local->addr;
	s->local_port = be16toh(local->port);
	s->remote = peer->addr;
	s->remote_port = be16toh(peer->port);
}

/* What keeps the socket from being attached, before the network is asked. */
static enum reason reason_to_stay(struct udp *u, int fd,
				  const struct user_name *local,
				  const struct user_name *peer,
				  struct net **net_out,
				  char detail[STATS_DETAIL_SIZE])
{
	enum reason reason = reason_by_names(u, fd, local, peer, detail);

	if (reason == REASON_NONE)
		*net_out = udp_params.net(&reason);
	return reason;
}

static bool is_port_elsewhere(const struct udp *u,
			      const struct attach_where *where)
{
	struct flow_key key = {
		.local = where->local,
		.local_port = where->local_port,
		.remote = where->remote,
		.remote_port = where->remote_port,
	};

	return u->set.may_share && udp_port_is_elsewhere(&key);
}

/* Lets frames reach the socket under the names that its twin has now. With
 * `config`. */
static enum reason attach(struct udp *u, int fd, enum stats_decider decider)
{
	struct user_name local = read_name(fd, false);
	struct user_name peer = read_name(fd, true);
	char detail[STATS_DETAIL_SIZE] = "";
	struct attach_where where = {
		.local = local.addr,
		.local_port = local.port,
		.remote = peer.addr,
		.remote_port = peer.port,
		.is_ipv6 = u->domain == AF_INET6,
		.stats = &u->stats,
		.decider = decider,
	};
	struct net *net = NULL;
	enum reason reason;

	show_names(u, &local, &peer);
	reason = reason_to_stay(u, fd, &local, &peer, &net, detail);
	if (!net) {
		stats_set_rx(&u->stats, reason, decider, 0, detail);
		return reason;
	}
	atomic_store(&u->net, net);
	udp_read_settings(u, fd);
	take_names(u, net->stack, &local, &peer);
	/* release pairs with the acquire in udp_stack */
	atomic_store_explicit(&u->stack, net->stack, memory_order_release);
	watch_twin(u, fd);
	/* What came before us is in the twin. */
	atomic_store(&u->is_twin_ready, true);
	where.ifindex = u->set.ifindex;
	where.is_shared = u->set.is_shared;
	where.named_ns = u->named_ns;
	if (is_port_elsewhere(u, &where)) {
		stats_set_rx(&u->stats, REASON_PORT_SHARED, decider, 0, "");
		return REASON_PORT_SHARED;
	}
	return net_attach(net, &u->att, &u->end, &where);
}

/* Without an attachment there is nothing to poll for, once the queue is empty. */
static void forget_stack_if_empty(struct udp *u)
{
	struct stack *stack = udp_stack(u);
	bool is_empty;

	if (!stack)
		return;
	stack_lock(stack);
	is_empty = list_is_empty(&u->rx_queue);
	stack_unlock(stack);
	if (is_empty)
		atomic_store(&u->stack, NULL);
	else
		udp_end_rx(u);
}

void udp_attach_anew(struct udp *u, int fd, enum stats_decider decider)
{
	udp_detach(u);
	u->reason = attach(u, fd, decider);
	if (u->reason == REASON_NONE)
		return;
	forget_stack_if_empty(u);
	log_dbg("fd %d: datagrams are received by the kernel: %s", fd,
		reason_why(u->reason));
}

void udp_leave_config(struct udp *u, enum reason reason,
		      enum stats_decider decider, const char *detail)
{
	udp_detach(u);
	udp_hand_back(u);
	stats_set_rx(&u->stats, reason, decider, 0, detail);
	stats_set_tx(&u->stats, reason, decider, 0, detail);
	u->has_left = true;
	udp_hold_tx(u, UDP_TX_OVER);
	u->reason = reason;
	forget_stack_if_empty(u);
}

void udp_leave(struct fd_object *obj, int fd, enum reason reason,
	       enum stats_decider decider)
{
	struct udp *u = udp_of(obj);

	mutex_acquire(&u->config);
	if (!u->has_left) {
		udp_leave_config(u, reason, decider, "");
		log_dbg("fd %d goes back to the kernel: %s", fd,
			reason_why(reason));
	}
	mutex_release(&u->config);
}

/* -- binding and connecting --------------------------------------------------- */

static long udp_bind(struct fd_object *obj, int fd,
		     const struct sockaddr *addr, socklen_t len)
{
	struct udp *u = udp_of(obj);
	int result;

	mutex_acquire(&u->config);
	result = real.bind(fd, addr, len) ? -errno : 0;
	if (result == 0 && !u->has_left)
		udp_attach_anew(u, fd, STATS_BY_BIND);
	mutex_release(&u->config);
	return result;
}

/* The socket has no names any more. With `config`. */
static void disconnect(struct udp *u)
{
	static const struct user_name none;

	udp_detach(u);
	show_names(u, &none, &none);
	stats_set_rx(&u->stats, REASON_NOT_USED, STATS_BY_CONNECT, 0, "");
}

/* Also the end of a connection, by AF_UNSPEC, after which Linux keeps the port
 * only if the program had asked for it. */
static long udp_connect(struct fd_object *obj, int fd,
			const struct sockaddr *addr, socklen_t len)
{
	struct udp *u = udp_of(obj);
	int result;

	mutex_acquire(&u->config);
	result = real.connect(fd, addr, len) ? -errno : 0;
	if (result == 0 && !u->has_left) {
		if (read_name(fd, false).port)
			udp_attach_anew(u, fd, STATS_BY_CONNECT);
		else
			disconnect(u);
	}
	mutex_release(&u->config);
	return result;
}

/* Linux gives a socket its port at the first send; so do we, to have one to put
 * into headers. */
static bool ensure_port(struct udp *u, int fd)
{
	struct sockaddr_in6 any = { .sin6_family = (sa_family_t)u->domain };
	socklen_t len = u->domain == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(any);

	return read_name(fd, false).port ||
	       real.bind(fd, (struct sockaddr *)&any, len) == 0;
}

COLD struct net *udp_prepare_send(struct udp *u, int fd)
{
	struct net *net;
	bool is_left;

	mutex_acquire(&u->config);
	is_left = u->has_left;
	net = atomic_load(&u->net);
	if (!is_left && !net && ensure_port(u, fd)) {
		udp_attach_anew(u, fd, STATS_BY_SEND);
		net = atomic_load(&u->net);
	}
	mutex_release(&u->config);
	return is_left ? NULL : net;
}

static long udp_shutdown(struct fd_object *obj, int fd, int how)
{
	struct udp *u = udp_of(obj);
	int result = real.shutdown(fd, how) ? -errno : 0;

	/* Linux shuts an unconnected socket down too, and says it did not. */
	if (result != 0 && result != -ENOTCONN)
		return result;
	if (how == SHUT_RD || how == SHUT_RDWR)
		udp_end_rx(u);
	if (how == SHUT_WR || how == SHUT_RDWR)
		udp_hold_tx(u, UDP_TX_OVER);
	return result;
}

/* A pipe of datagrams out of the socket: the kernel's alone. */
static long udp_splice(struct fd_object *obj, int fd, off64_t *offset UNUSED,
		       int fd2 UNUSED, off64_t *offset2 UNUSED,
		       size_t len UNUSED, unsigned int flags UNUSED)
{
	int err;

	if (!udp_owns_fd(udp_of(obj), fd))
		return FD_PASS;
	err = udp_exception(udp_of(obj), fd, REASON_SPLICE,
			    STATS_BY_SPLICE, "a call", 0);
	if (err)
		return err;
	udp_leave(obj, fd, REASON_SPLICE, STATS_BY_SPLICE);
	return FD_PASS;
}

/* -- life ----------------------------------------------------------------------- */

void udp_twin_event(struct fd_object *obj, bool has_error)
{
	struct udp *u = udp_of(obj);

	atomic_store(&u->is_twin_ready, true);
	if (has_error)
		udp_hold_tx(u, UDP_TX_ERROR);
}

struct endpoint *udp_endpoint(struct fd_object *obj)
{
	return &udp_of(obj)->end;
}

enum udp_wait udp_await(struct fd_object *obj, struct stack **stack_out)
{
	struct udp *u = udp_of(obj);
	struct net *net;
	bool has_left;

	*stack_out = udp_stack(u);
	if (*stack_out)
		return UDP_WAIT_STACK;
	mutex_acquire(&u->config);
	has_left = u->has_left;
	mutex_release(&u->config);
	if (has_left)
		return UDP_WAIT_KERNEL;
	net = udp_params.net_if_made();
	if (!net)
		return UDP_WAIT_EARLY;
	*stack_out = net->stack;
	return UDP_WAIT_STACK;
}

struct endpoint *udp_follow(struct fd_object *obj, struct stack **stack_out)
{
	struct udp *u = udp_of(obj);
	enum reason reason;
	struct net *net;
	bool has_left;

	mutex_acquire(&u->config);
	has_left = u->has_left && !udp_stack(u);
	mutex_release(&u->config);
	net = has_left ? NULL : udp_params.net(&reason);
	if (!net)
		return NULL;
	*stack_out = net->stack;
	return &u->end;
}

bool udp_is_one(const struct fd_object *obj)
{
	return obj->ops == &udp_ops;
}

/* Whether news of interfaces, addresses and routes may end what keeps the socket with
 * the kernel. With `config`. */
static bool depends_on_news(const struct udp *u)
{
	switch (u->reason) {
	case REASON_LOCAL:
		/* of no interface so far */
		return ip_addr_is_any(&u->local);
	case REASON_NO_ROUTE:
	case REASON_NOT_ALLOWED:
	case REASON_INTERFACE_KIND:
	case REASON_INTERFACE_IN_USE:
	case REASON_FOREIGN_PROGRAM:
	case REASON_INTERFACE_ERROR:
	case REASON_MEMORY:
		return true;
	default:
		return false;
	}
}

static bool attach_by_news(struct fd_object *obj, int fd)
{
	struct udp *u = udp_of(obj);

	mutex_acquire(&u->config);
	if (!u->has_left && depends_on_news(u))
		udp_attach_anew(u, fd, STATS_BY_NEWS);
	mutex_release(&u->config);
	return false;
}

void udp_follow_news(void)
{
	fd_visit(&udp_ops, attach_by_news);
}

struct fd_object *udp_create(int fd, int domain, int type)
{
	struct udp *u = fd_pool_get(&pool);
	ino_t inode;

	if (!u)
		return NULL;
	/* The object's head keeps its counters of 0 throughout. */
	memset((char *)u + sizeof(u->obj), 0, sizeof(*u) - sizeof(u->obj));
	endpoint_init(&u->end, udp_input);
	u->domain = domain;
	u->reason = REASON_NOT_USED;
	u->uid = getuid();
	atomic_init(&u->os_countdown, udp_twin_interval());
	mutex_init(&u->config, LOCK_RANK_SOCK_CONFIG);
	list_init(&u->rx_queue);
	inode = file_identify(fd).ino;
	stats_socket_open(&u->stats, fd, inode, IPPROTO_UDP);
	udp_set_nonblocking(u, type & SOCK_NONBLOCK);
	fd_object_init(&u->obj, &udp_ops, inode);
	return &u->obj;
}

/* Whoever follows the socket for long has to let go of it. */
static void udp_last_close(struct fd_object *obj)
{
	struct udp *u = udp_of(obj);
	struct net *net = atomic_load(&u->net);
	struct watch *watch, *following;

	fd_visit_await_end(obj);
	if (!net)
		net = udp_params.net_if_made();
	if (!net)
		return;
	stack_lock(net->stack);
	LIST_FOR_EACH_SAFE(watch, following, &u->end.watches, link)
		if (watch->closed)
			watch->closed(watch);
	stack_unlock(net->stack);
}

/* Nobody is inside any more: no packet comes, nobody waits. */
static void udp_release(struct fd_object *obj)
{
	struct udp *u = udp_of(obj);
	struct stack *stack = udp_stack(u);

	udp_detach(u);
	if (stack) {
		if (u->has_heir)
			udp_hand_back(u);
		stack_lock(stack);
		udp_purge(u);
		stack_unlock(stack);
	}
	stats_socket_close(&u->stats);
	fd_pool_put(&pool, u);
}

/* libc has done a call that we passed on to it. */
static void udp_passed(struct fd_object *obj, enum fd_traffic traffic,
		       long result)
{
	struct udp *u = udp_of(obj);

	if (traffic == FD_RECEIVED)
		stats_count_os_rx(&u->stats, result);
	else
		stats_count_os_tx(&u->stats, result);
}

/* The frames, rules and rings were the parent's and are still. */
void udp_forked(void)
{
	fd_pool_forked(&pool);
	udp_heirs_forked();
	udp_ports_forked();
}

struct fd_ops udp_ops = {
	.quick_recv = udp_quick_recv,
	.quick_send = udp_quick_send,
	.name = "udp",
	.leave = udp_leave,
	.bind = udp_bind,
	.connect = udp_connect,
	.shutdown = udp_shutdown,
	.setsockopt = udp_setsockopt,
	.fcntl = udp_fcntl,
	.fcntl64 = udp_fcntl,
	.ioctl = udp_ioctl,
	.read = udp_read,
	.readv = udp_readv,
	.recv = udp_recv,
	.recvfrom = udp_recvfrom,
	.recvmsg = udp_recvmsg,
	.recvmmsg = udp_recvmmsg,
	.write = udp_write,
	.writev = udp_writev,
	.send = udp_send,
	.sendto = udp_sendto,
	.sendmsg = udp_sendmsg,
	.sendmmsg = udp_sendmmsg,
	.splice = udp_splice,
	.last_close = udp_last_close,
	.release = udp_release,
	.passed = udp_passed,
};

void udp_start(const struct udp_params *params)
{
	udp_params = *params;
	fd_ops_fill(&udp_ops);
}
