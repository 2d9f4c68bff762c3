/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets (sock.h): their names, and when frames begin to reach them or cease to. */
#include "config.h"

#include "sock/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"

struct sock_params sock_params;

/* -- the kernel's socket ---------------------------------------------------- */

struct user_name sock_twin_name(int fd, bool is_peer)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct user_name name = { .port = 0 };
	int err = is_peer ?
			  real.getpeername(fd, (struct sockaddr *)&addr, &len) :
			  real.getsockname(fd, (struct sockaddr *)&addr, &len);

	if (err || user_name_read(AF_INET6, (struct sockaddr *)&addr, len,
				  &name) != 0)
		name = (struct user_name){ .port = 0 };
	/* The address :: stands for IPv4, too. A socket that takes IPv6 alone is
	 * sorted out later. */
	if (ip_addr_is_any(&name.addr))
		name.addr = ip_addr_from_v4(0);
	return name;
}

bool sock_file_is_nonblocking(int fd)
{
	int flags = real.fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

int sock_twin_option(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return real.getsockopt(fd, level, name, &value, &len) == 0 ? value : 0;
}

void sock_twin_read(int fd, int level, int name, void *value, socklen_t len)
{
	if (real.getsockopt(fd, level, name, value, &len) != 0)
		memset(value, 0, len);
}

void sock_twin_set(int fd, int level, int name, const void *value, size_t len)
{
	(void)!real.setsockopt(fd, level, name, value, (socklen_t)len);
}

int sock_twin_device(int fd)
{
	char name[IFNAMSIZ] = "";
	int ifindex;
	socklen_t len = sizeof(ifindex);

	/* also of one that is not there, by which nothing comes and goes; before Linux 5.0 by
	 * its name alone */
	if (real.getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &ifindex, &len) == 0)
		return ifindex;
	len = sizeof(name);
	if (real.getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len) != 0 ||
	    len == 0 || !name[0])
		return 0;
	return (int)if_nametoindex(name);
}

/* -- attaching -------------------------------------------------------------- */

static void watch_twin(struct sock *s, int fd)
{
	if (atomic_load(&s->is_watched))
		return;
	atomic_store(&s->is_watched, true);
	sock_params.watch_twin(fd, &s->obj);
}

void sock_detach(struct sock *s)
{
	if (sock_is_attached(s))
		net_detach(sock_stack(s)->net, &s->att);
}

static enum reason reason_by_names(const struct sock *s, int fd,
				   const struct user_name *local,
				   const struct user_name *peer,
				   char detail[STATS_DETAIL_SIZE])
{
	struct sock_end local_end = { local->addr, local->port };
	struct sock_end peer_end = { peer->addr, peer->port };

	if (!local->port)
		return REASON_NOT_USED;
	if (!ip_addr_is_v4(&local->addr) ||
	    (peer->port && !ip_addr_is_v4(&peer->addr)))
		return REASON_IPV6_PEER;
	if (s->domain == AF_INET6 &&
	    sock_twin_option(fd, IPPROTO_IPV6, IPV6_V6ONLY))
		return REASON_IPV6_PEER;
	if (ip_addr_is_multicast(&local->addr) ||
	    (peer->port && ip_addr_is_multicast(&peer->addr)))
		return REASON_MULTICAST;
	if (sock_params.is_kernel_by_rule(
		    peer->port ? s->kind->connect : s->kind->receiver,
		    &local_end, peer->port ? &peer_end : NULL, detail))
		return REASON_RULE;
	return REASON_NONE;
}

/* The stack's lock guards the names, which senders and receivers read, and `config` the
 * time. It counts from bind(), or from connect() if that has changed the address. */
static void take_names(struct sock *s, const struct user_name *local,
		       const struct user_name *peer)
{
	struct stack *stack;

	if (!ip_addr_eq(&s->local, &local->addr) ||
	    s->local_port != local->port)
		s->named_ns = clock_monotonic_ns();
	sock_lock(s, &stack);
	s->local = local->addr;
	s->local_port = local->port;
	s->is_connected = peer->port != 0;
	/* Nobody is a peer, too: a send to the old one by its name must not find the way
	 * of sends without a name. */
	s->kind->forget_ways(s, peer);
	stack_unlock(stack);
}

void sock_show_names(struct sock *s, const struct user_name *local,
		     const struct user_name *peer)
{
	struct stats_socket *at = s->stats.at;

	at->local = local->addr;
	at->local_port = be16toh(local->port);
	at->remote = peer->addr;
	at->remote_port = be16toh(peer->port);
}

/* The reason that keeps the socket from being attached, as far as we know it without
 * the network. */
static enum reason reason_to_stay(struct sock *s, int fd,
				  const struct user_name *local,
				  const struct user_name *peer,
				  struct net **net_out,
				  char detail[STATS_DETAIL_SIZE])
{
	enum reason reason = reason_by_names(s, fd, local, peer, detail);

	if (reason == REASON_NONE)
		*net_out = sock_params.net(&reason);
	return reason;
}

static bool is_port_elsewhere(const struct sock *s,
			      const struct attach_where *where)
{
	struct flow_key key = {
		.local = where->local,
		.local_port = where->local_port,
		.remote = where->remote,
		.remote_port = where->remote_port,
	};

	return s->set.may_share && s->kind->is_port_elsewhere(s, &key);
}

struct stack *sock_choose_stack(struct sock *s, struct net *net)
{
	struct stack *none = NULL;

	if (!sock_stack(s))
		/* release pairs with the acquire in sock_stack */
		atomic_compare_exchange_strong_explicit(
			&s->stack, &none, net_choose_stack(net),
			memory_order_release, memory_order_relaxed);
	return sock_stack(s);
}

/* Lets frames reach the socket, under the names that its twin has now. If that cannot be,
 * it may still be attached under those that it had. */
static enum reason attach(struct sock *s, int fd, enum stats_decider decider)
{
	struct user_name local = sock_twin_name(fd, false);
	struct user_name peer = sock_twin_name(fd, true);
	char detail[STATS_DETAIL_SIZE] = "";
	struct attach_where where = {
		.local = local.addr,
		.local_port = local.port,
		.remote = peer.addr,
		.remote_port = peer.port,
		.proto = s->kind->proto,
		.is_ipv6 = s->domain == AF_INET6,
		.stats = &s->stats,
		.decider = decider,
	};
	struct net *net = NULL;
	enum reason reason;

	sock_show_names(s, &local, &peer);
	reason = reason_to_stay(s, fd, &local, &peer, &net, detail);
	if (!net) {
		stats_set_rx(&s->stats, reason, decider, 0, detail);
		/* what was known of the names that it had leads to somebody else */
		if (sock_stack(s)) {
			sock_hold_tx(s, SOCK_TX_UNNAMED);
			take_names(s, &local, &peer);
		}
		return reason;
	}
	where.stack = sock_choose_stack(s, net);
	s->kind->read_settings(s, fd);
	take_names(s, &local, &peer);
	sock_release_tx(s, SOCK_TX_UNNAMED);
	watch_twin(s, fd);
	where.ifindex = s->set.ifindex;
	where.mark = s->set.mark;
	where.uid = s->uid;
	where.tos = s->set.tos;
	where.is_on_link_only = s->set.is_on_link_only;
	where.is_shared = s->set.is_shared;
	where.named_ns = s->named_ns;
	if (is_port_elsewhere(s, &where)) {
		stats_set_rx(&s->stats, REASON_PORT_SHARED, decider, 0, "");
		return REASON_PORT_SHARED;
	}
	/* Receivers have to look for frames before the first one can come. What
	 * came before we were attached is in the twin. */
	if (!sock_is_attached(s)) {
		atomic_fetch_and(&s->rx_holds,
				 ~(unsigned)(SOCK_RX_UNATTACHED | SOCK_RX_REFUSED));
		atomic_store(&s->is_twin_ready, true);
	}
	return net_attach(net, &s->att, &s->end, &where);
}

void sock_attach_anew(struct sock *s, int fd, enum stats_decider decider)
{
	s->reason = attach(s, fd, decider);
	if (s->reason == REASON_NONE)
		return;
	sock_detach(s);
	sock_hold_rx(s, SOCK_RX_UNATTACHED);
	if (s->reason == REASON_RULE || s->reason == REASON_RULES_FULL)
		sock_hold_rx(s, SOCK_RX_REFUSED);
	else
		atomic_fetch_and(&s->rx_holds, ~(unsigned)SOCK_RX_REFUSED);
	log_dbg("fd %d: datagrams are received by the kernel: %s", fd,
		reason_why(s->reason));
}

/* Who sends says under the stack's lock where it goes. */
static void show_tx_left(struct sock *s, enum reason reason,
			 enum stats_decider decider, const char *detail)
{
	struct stack *stack;

	if (!sock_try_lock(s, &stack)) {
		stats_set_tx(&s->stats, reason, decider, 0, detail);
		return;
	}
	stats_set_tx(&s->stats, reason, decider, 0, detail);
	stack_unlock(stack);
}

void sock_leave_config(struct sock *s, int fd, enum reason reason,
		       enum stats_decider decider, const char *detail)
{
	s->kind->hand_back(s, fd);
	stats_set_rx(&s->stats, reason, decider, 0, detail);
	show_tx_left(s, reason, decider, detail);
	s->has_left = true;
	s->reason = reason;
	sock_hold_tx(s, SOCK_TX_LEFT);
	sock_hold_rx(s, SOCK_RX_LEFT);
	s->kind->left(s);
}

void sock_leave(struct fd_object *obj, int fd, enum reason reason,
		enum stats_decider decider)
{
	struct sock *s = sock_of(obj);

	mutex_acquire(&s->config);
	if (!s->has_left) {
		sock_leave_config(s, fd, reason, decider, "");
		log_dbg("fd %d goes back to the kernel: %s", fd,
			reason_why(reason));
	}
	mutex_release(&s->config);
}

/* -- names ------------------------------------------------------------------ */

long sock_bind(struct fd_object *obj, int fd, const struct sockaddr *addr,
	       socklen_t len)
{
	struct sock *s = sock_of(obj);
	int result;

	mutex_acquire(&s->config);
	result = real.bind(fd, addr, len) ? -errno : 0;
	if (result == 0 && !s->has_left)
		sock_attach_anew(s, fd, STATS_BY_BIND);
	mutex_release(&s->config);
	return result;
}

/* The socket has no names any more. It is as it was before its first use, and the
 * next send gives it a port again. */
static void forget_names(struct sock *s)
{
	static const struct user_name none;

	sock_detach(s);
	sock_hold_rx(s, SOCK_RX_UNATTACHED);
	sock_hold_tx(s, SOCK_TX_UNNAMED);
	if (sock_stack(s))
		take_names(s, &none, &none);
	sock_show_names(s, &none, &none);
	s->reason = REASON_NOT_USED;
	stats_set_rx(&s->stats, REASON_NOT_USED, STATS_BY_CONNECT, 0, "");
}

void sock_renamed(struct sock *s, int fd)
{
	if (sock_twin_name(fd, false).port)
		sock_attach_anew(s, fd, STATS_BY_CONNECT);
	else
		forget_names(s);
}

/* Linux gives a socket its port at the first send. We do so before that, since the
 * port goes into our headers. */
static bool ensure_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	/* One that was disconnected may have lost its port and kept its address. */
	return sock_twin_name(fd, false).port ||
	       (real.getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		real.bind(fd, (struct sockaddr *)&name, len) == 0);
}

COLD bool sock_prepare_send(struct sock *s, int fd)
{
	mutex_acquire(&s->config);
	if (!s->has_left && s->reason == REASON_NOT_USED && ensure_port(fd))
		sock_attach_anew(s, fd, STATS_BY_SEND);
	mutex_release(&s->config);
	return !(sock_tx_holds(s) & ~(unsigned)SOCK_TX_LONG);
}

/* -- what others ask ---------------------------------------------------------- */

/* Whether the socket has left, and has nothing queued any more. */
static bool is_over(struct sock *s)
{
	struct stack *stack;
	bool is_empty;

	if (LIKELY(!(sock_rx_holds(s) & SOCK_RX_LEFT)))
		return false;
	if (!sock_try_lock(s, &stack))
		return true;
	is_empty = s->kind->is_empty(s);
	stack_unlock(stack);
	return is_empty;
}

enum fd_await sock_await(struct fd_object *obj, struct endpoint **end_out,
			 struct stack **stack_out)
{
	struct sock *s = sock_of(obj);
	struct net *net;

	*end_out = &s->end;
	if (is_over(s))
		return FD_AWAIT_KERNEL;
	*stack_out = sock_stack(s);
	if (*stack_out)
		return FD_AWAIT_STACK;
	net = sock_params.net_if_made();
	if (!net)
		return FD_AWAIT_EARLY;
	*stack_out = sock_choose_stack(s, net);
	return FD_AWAIT_STACK;
}

struct endpoint *sock_follow(struct fd_object *obj, struct stack **stack_out)
{
	struct sock *s = sock_of(obj);
	enum reason reason;
	struct net *net;

	if (is_over(s))
		return NULL;
	*stack_out = sock_stack(s);
	if (*stack_out)
		return &s->end;
	net = sock_params.net(&reason);
	if (!net)
		return NULL;
	*stack_out = sock_choose_stack(s, net);
	return &s->end;
}

/* Whether the reason why the kernel has the socket may end with news of interfaces,
 * addresses or routes. */
static bool depends_on_news(const struct sock *s)
{
	switch (s->reason) {
	case REASON_LOCAL:
		/* the address belongs to no interface so far */
		return ip_addr_is_any(&s->local);
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

void sock_follow_news(struct fd_object *obj, int fd)
{
	struct sock *s = sock_of(obj);

	mutex_acquire(&s->config);
	if (!s->has_left && depends_on_news(s))
		sock_attach_anew(s, fd, STATS_BY_NEWS);
	mutex_release(&s->config);
}

/* -- life ---------------------------------------------------------------------- */

void sock_clear(struct sock *s, size_t size)
{
	static const size_t behind = offsetof(struct sock, end) +
				     sizeof(struct endpoint);

	memset((char *)s + behind, 0, size - behind);
}

void sock_init(struct sock *s, const struct sock_kind *kind,
	       const struct fd_ops *ops,
	       void (*input)(struct endpoint *, struct pkt *), int fd,
	       int domain, int type)
{
	ino_t inode;

	(void)file_identify_socket(fd, &inode, &s->uid);
	endpoint_init(&s->end, input);
	s->kind = kind;
	s->domain = domain;
	s->reason = REASON_NOT_USED;
	atomic_init(&s->rx_holds, SOCK_RX_UNATTACHED);
	atomic_init(&s->is_twin_ready, true);
	atomic_init(&s->tx_holds, SOCK_TX_UNNAMED);
	mutex_init(&s->config, LOCK_RANK_SOCK_CONFIG);
	stats_socket_open(&s->stats, fd, inode, kind->proto);
	sock_set_nonblocking(s, type & SOCK_NONBLOCK);
	fd_object_init(&s->obj, ops, inode);
	atomic_store_explicit(&s->obj.ready, &s->end.ready,
			      memory_order_relaxed);
}

/* Whoever follows the socket for a long time has to let go of it now. */
void sock_last_close(struct fd_object *obj, int fd)
{
	struct sock *s = sock_of(obj);
	struct watch *watch, *following;
	struct stack *stack;

	if (fd >= 0 && atomic_load(&s->is_watched))
		sock_params.forget_twin(fd);
	if (!sock_try_lock(s, &stack))
		return;
	LIST_FOR_EACH_SAFE(watch, following, &s->end.watches, link)
		if (watch->closed)
			watch->closed(watch);
	stack_unlock(stack);
}

void sock_destroy(struct sock *s)
{
	stats_socket_close(&s->stats);
}

/* Counts a call that libc has done because we passed it on. */
void sock_passed(struct fd_object *obj, enum fd_traffic traffic, long result)
{
	struct sock *s = sock_of(obj);

	if (traffic == FD_RECEIVED)
		stats_count_os_rx(&s->stats, result);
	else
		stats_count_os_tx(&s->stats, result);
}
