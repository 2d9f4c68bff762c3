/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * accept(): who has come to our queue, and to the twin's, in turn. The child's socket is
 * made here, with what Linux lets it inherit.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_visit.h"
#include "os/inside.h"
#include "sock/kin.h"
#include "sock/tcp/tsock_priv.h"

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
	{ SOL_SOCKET, SO_BUSY_POLL },
	{ SOL_SOCKET, SO_SELECT_ERR_QUEUE },
	{ SOL_SOCKET, SO_ZEROCOPY },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_TTL },
	{ IPPROTO_IP, IP_RECVTOS },
	{ IPPROTO_IP, IP_RECVTTL },
	{ IPPROTO_IP, IP_PKTINFO },
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
	{ IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS },
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
	bool has_tos, may_keep_alive, reuse_addr;
	/* 0: the system's */
	int snd_buf, rcv_buf;
	uint64_t pacing_rate;
	struct linger linger;
	struct timeval rcv_time, snd_time;
	/* empty: the system's */
	char cc[16];
};

/* Not of malloc(), in whose middle a handler may accept or close. */
static struct fd_pool heritages = FD_POOL_INIT(struct tsock_heritage);
static struct fd_pool saved_syns = FD_POOL_INIT(struct tsock_saved_syn);

/* SO_MAX_PACING_RATE, whose numbers are longer than those of others. */
static uint64_t pacing_rate_of(int fd)
{
	uint64_t rate = 0;

	sock_twin_read(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	return rate;
}

/* `has_own_ttl`: the listener's, whatever value that has. */
static void read_heritage(int from, int fresh, bool has_own_ttl,
			  struct tsock_heritage *h)
{
	int locks = sock_twin_option(from, SOL_SOCKET, SO_BUF_LOCK);
	char cc[sizeof(h->cc)] = "";

	*h = (struct tsock_heritage){ .cnt = 0 };
	for (size_t i = 0; i < ARRAY_LEN(inherited); i++) {
		int level = inherited[i].level, name = inherited[i].name;
		int value = sock_twin_option(from, level, name);
		bool is_own_ttl = has_own_ttl && level == IPPROTO_IP && name == IP_TTL;

		if (value == sock_twin_option(fresh, level, name) && !is_own_ttl)
			continue;
		h->options[h->cnt].which = (uint8_t)i;
		h->options[h->cnt++].value = value;
		h->has_tos |= level == IPPROTO_IP && name == IP_TOS;
		h->may_keep_alive |= level == SOL_SOCKET && name == SO_KEEPALIVE;
		h->reuse_addr |= level == SOL_SOCKET && name == SO_REUSEADDR;
	}
	if (locks & 1)
		h->snd_buf = sock_twin_option(from, SOL_SOCKET, SO_SNDBUF) / 2;
	if (locks & 2)
		h->rcv_buf = sock_twin_option(from, SOL_SOCKET, SO_RCVBUF) / 2;
	if (pacing_rate_of(from) != pacing_rate_of(fresh))
		h->pacing_rate = pacing_rate_of(from);
	sock_twin_read(from, SOL_SOCKET, SO_LINGER, &h->linger, sizeof(h->linger));
	sock_twin_read(from, SOL_SOCKET, SO_RCVTIMEO, &h->rcv_time,
		   sizeof(h->rcv_time));
	sock_twin_read(from, SOL_SOCKET, SO_SNDTIMEO, &h->snd_time,
		   sizeof(h->snd_time));
	sock_twin_read(from, IPPROTO_TCP, TCP_CONGESTION, h->cc, sizeof(h->cc));
	sock_twin_read(fresh, IPPROTO_TCP, TCP_CONGESTION, cc, sizeof(cc));
	if (strncmp(cc, h->cc, sizeof(cc)) == 0)
		h->cc[0] = '\0';
}

/* But for SO_REUSEADDR, which a guard gets when it has its port (give_reuse_addr). */
static void give_heritage(const struct tsock_heritage *h, int to)
{
	for (unsigned i = 0; i < h->cnt; i++) {
		int level = inherited[h->options[i].which].level;
		int name = inherited[h->options[i].which].name;

		if (level != SOL_SOCKET || name != SO_REUSEADDR)
			sock_twin_set(to, level, name, &h->options[i].value,
				      sizeof(int));
	}
	/* which IP_TOS sets; a child of Linux begins without */
	if (h->has_tos)
		sock_twin_set(to, SOL_SOCKET, SO_PRIORITY, &(int){ 0 }, sizeof(int));
	if (h->snd_buf)
		sock_twin_set(to, SOL_SOCKET, SO_SNDBUF, &h->snd_buf, sizeof(int));
	if (h->rcv_buf)
		sock_twin_set(to, SOL_SOCKET, SO_RCVBUF, &h->rcv_buf, sizeof(int));
	if (h->pacing_rate)
		sock_twin_set(to, SOL_SOCKET, SO_MAX_PACING_RATE, &h->pacing_rate,
			      sizeof(h->pacing_rate));
	if (h->linger.l_onoff)
		sock_twin_set(to, SOL_SOCKET, SO_LINGER, &h->linger, sizeof(h->linger));
	if (h->rcv_time.tv_sec || h->rcv_time.tv_usec)
		sock_twin_set(to, SOL_SOCKET, SO_RCVTIMEO, &h->rcv_time,
		     sizeof(h->rcv_time));
	if (h->snd_time.tv_sec || h->snd_time.tv_usec)
		sock_twin_set(to, SOL_SOCKET, SO_SNDTIMEO, &h->snd_time,
		     sizeof(h->snd_time));
	if (h->cc[0])
		sock_twin_set(to, IPPROTO_TCP, TCP_CONGESTION, h->cc, strlen(h->cc));
}

/* Of the listener's twin, by a number that was its own all the while. False: it has none, since
 * it is being closed, or is on its way through a local socket. */
static bool look_up_heritage(struct tsock *t, int fresh, struct tsock_heritage *h)
{
	int fd;

	do {
		fd = tsock_fd(t);
		if (fd < 0) {
			*h = (struct tsock_heritage){ .cnt = 0 };
			return false;
		}
		read_heritage(fd, fresh, atomic_load(&t->sock.has_own_ttl), h);
	} while (tsock_fd(t) != fd);
	return true;
}

/* The listener's options for a fresh socket. They are looked up after each change. */
static void inherit(struct tsock *t, struct tsock *child, int to)
{
	struct tsock_heritage own, *h;

	mutex_acquire(&t->sock.config);
	if (!t->heritage)
		t->heritage = fd_pool_get(&heritages);
	h = t->heritage ? t->heritage : &own;
	if (h == &own || !t->knows_heritage)
		t->knows_heritage = look_up_heritage(t, to, h);
	give_heritage(h, to);
	child->has_options = true;
	atomic_store(&child->sock.has_own_ttl, atomic_load(&t->sock.has_own_ttl));
	child->may_linger = h->linger.l_onoff;
	child->may_keep_alive = h->may_keep_alive;
	child->reuse_addr = h->reuse_addr;
	mutex_release(&t->sock.config);
}

/* The guard has it already, unless there is none, or it seemed that another process might have
 * set it otherwise, which had only what a fresh socket has. */
static void give_reuse_addr(const struct tsock *child, int to)
{
	int on = 1;

	if (child->reuse_addr &&
	    (!child->is_guarded || kin_fork_cnt() != child->fork_cnt))
		sock_twin_set(to, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* SO_RCVLOWAT. Under the lock, which both have. */
NO_LOCK_ANALYSIS static void inherit_lowat(struct tsock *child, const struct tsock *listener)
{
	int lowat = atomic_load(&listener->rcv_lowat);

	if (LIKELY(lowat <= 1))
		return;
	atomic_store(&child->rcv_lowat, lowat);
	child->has_lowat = true;
	tcp_set_rcv_lowat(child->pcb, (uint32_t)lowat, tsock_now(child));
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
	inherit_lowat(child, listener);
	child->port = port;
	port->refs++;
	child->key = *tcp_key(pcb);
	child->was_open = true;
	tcp_set_user(pcb, &child->user);
	child->error = tcp_error(pcb);
	query = tcp_port_query(child->engine, port, &child->key);
	query.priority = 0; /* as give_heritage() has it */
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
	/* in waiting_cnt */
	bool is_counted;
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
	if (!user_is_place_for_name(call->addr, *call->len))
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
	struct tsock_saved_syn *syn = fd_pool_get(&saved_syns);

	if (!syn)
		return;
	syn->len = len;
	memcpy(syn->bytes, bytes, len);
	c->saved_syn = syn;
}

void tsock_forget_saved_syn(struct tsock *t)
{
	struct tsock_saved_syn *syn = t->saved_syn;

	t->saved_syn = NULL;
	if (syn)
		fd_pool_put(&saved_syns, syn);
}

void tsock_forget_heritage(struct tsock *t)
{
	if (t->heritage)
		fd_pool_put(&heritages, t->heritage);
	t->heritage = NULL;
}

void tsock_accept_forked(void)
{
	fd_pool_forked(&heritages);
	fd_pool_forked(&saved_syns);
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
		tsock_update_listener(t, 0);
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
		/* our thread may be at it already */
		mutex_acquire(&c->sock.config);
		tsock_guard(c, child_fd, false);
		give_reuse_addr(c, child_fd);
		mutex_release(&c->sock.config);
		err = fd_table_install(child_fd, &c->sock.obj);
	}
	/* with the wishes of the listener */
	if (!err && UNLIKELY(tsock_stamps_are_kernels(c, tx_stamps_flags(&c->stamps.own))))
		(void)!tsock_leave_for(c, child_fd, REASON_OPTION, STATS_BY_ACCEPT,
				       "a socket option", SO_TIMESTAMPING);
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
	/* which its listener may have had, too */
	int was = sock_twin_option(fd, IPPROTO_IP, IP_PKTINFO), on = 1;

	if (real.setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) != 0)
		return 0;
	if (real.getsockopt(fd, IPPROTO_IP, IP_PKTOPTIONS, &control, &len) == 0 &&
	    len >= CMSG_LEN(sizeof(info)) &&
	    control.head.cmsg_level == IPPROTO_IP &&
	    control.head.cmsg_type == IP_PKTINFO)
		memcpy(&info, CMSG_DATA(&control.head), sizeof(info));
	(void)!real.setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &was, sizeof(was));
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

/* A connection of the kernel's has a reason as well, though no object. */
static void tell_of_twins(const struct tsock *t, int fd)
{
	enum reason reason = t->is_lending ? REASON_FORKS : REASON_EARLY;

	stats_count_unserved(reason);
	log_dbg("fd %d stays with the kernel: %s", fd, reason_why(reason));
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
	tell_of_twins(t, fd);
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

/* Begins to use the twin, until tsock_end_twin(). A duplicate is for calls that are counted; for
 * another whose number has just been closed there is nothing, which is -1. */
static int begin_twin(struct tsock *t, int fd, const struct accept_call *call,
		      struct fd_visit *visit)
{
	if (LIKELY(fd_visit_begin(visit, fd, &t->sock.obj)))
		return fd;
	return call->is_counted ? MAX(tsock_begin_twin(t, fd, visit), -1) : -1;
}

static long accept_at(int twin, const struct accept_call *call)
{
	return syscall_raw(SYS_accept4, twin, (long)call->addr, (long)call->len, call->flags,
			   0, 0);
}

/* Who has come there. With a copy the call has a number of its own; -EMFILE: there is none for it,
 * or it was the last. With `writer`. */
static long accept_ready(struct tsock *t, int fd, const struct accept_call *call, bool has_copy)
{
	struct pollfd twin = { .events = POLLIN };
	_Atomic int copy = -1;
	struct fd_visit visit;
	long result = -EAGAIN;

	twin.fd = begin_twin(t, fd, call, &visit);
	if (inside_poll(&twin, 1) <= 0)
		has_copy = false;
	else if (has_copy)
		result = fd_internal_copy(twin.fd, &copy) ? -EMFILE : 0;
	else
		result = accept_at(twin.fd, call);
	tsock_end_twin(twin.fd, &visit);
	if (has_copy && !result)
		result = accept_at(copy, call);
	if (copy >= 0)
		fd_internal_close(&copy);
	return result;
}

/* What has come by the kernel's ways. No other thread of ours takes it in between, nor does
 * another listener get the number. Others may be faster: a child of a moment ago, or who takes it
 * from another process or by an io_uring. Then a blocking call sleeps until the next one comes;
 * no close shall wait for that, so it has a copy, but where no number is left for one. */
static long accept_twins(struct tsock *t, int fd, const struct accept_call *call)
{
	bool may_sleep = sock_is_blocking(&t->sock, 0) || kin_is_shared_since(t->fork_cnt);
	long result;

	mutex_acquire(&t->writer);
	result = accept_ready(t, fd, call, may_sleep);
	if (UNLIKELY(result == -EMFILE && may_sleep))
		result = accept_ready(t, fd, call, false);
	mutex_release(&t->writer);
	if (result < 0)
		return result;
	fd_table_forget((int)result);
	except_twins(t, (int)result);
	return result;
}

/* The listener at which this thread's call is counted, or a call that it has jumped out of. */
static _Thread_local const struct tsock *counted_at;

/* A child may be faster, and then the call sleeps in the kernel: nobody joins the listener
 * until it is back. */
static long pass_to_kernel(struct tsock *t)
{
	bool is_lent;

	mutex_acquire(&t->sock.config);
	is_lent = tsock_phase(t) == TSOCK_LISTENING;
	if (is_lent && counted_at != t) {
		atomic_fetch_add(&t->kernel_accept_cnt, 1);
		counted_at = t;
	}
	mutex_release(&t->sock.config);
	return is_lent ? FD_PASS : -EAGAIN;
}

/* The kernel accepts for a call whose number is closed. libc cannot do it, since that may be
 * another file's. Another process may be faster, and then the call sleeps in the kernel: a
 * handler that restarts calls has to wait there for the next connection, since no flag of
 * accept() alone says that it shall not sleep. */
static COLD long accept_closed(struct tsock *t, int fd, const struct accept_call *call)
{
	struct pollfd twin = { .events = POLLIN };
	struct fd_visit visit;
	int number = tsock_begin_twin(t, fd, &visit);
	long result;

	/* a close waits for visits */
	if (number >= 0)
		tsock_keep_twin(t, number, true);
	tsock_end_twin(number, &visit);
	twin.fd = atomic_load(&t->twin_fd);
	if (twin.fd < 0)
		return -EBADF;
	if (inside_poll(&twin, 1) <= 0)
		return -EAGAIN;
	result = accept_at(twin.fd, call);
	/* the wait knows whether a handler ends the call */
	if (result < 0)
		return result == -EINTR ? -EAGAIN : result;
	fd_table_forget((int)result);
	if (tsock_phase(t) == TSOCK_LISTENING && t->engine)
		except_twins(t, (int)result);
	return result;
}

/* While a child has the listener, too, the kernel accepts: outside the bracket. Who has to wait
 * does so with us, because it is ours again when the child has ended. */
static long accept_lent(struct tsock *t, int fd, const struct accept_call *call)
{
	struct pollfd twin = { .fd = fd, .events = POLLIN };

	if (!sock_owns_fd(&t->sock, fd))
		return accept_closed(t, fd, call);
	if (!sock_is_blocking(&t->sock, 0))
		return pass_to_kernel(t);
	return inside_poll(&twin, 1) > 0 ? pass_to_kernel(t) : -EAGAIN;
}

void tsock_passed(struct fd_object *obj, enum fd_traffic traffic, long result)
{
	struct tsock *t = tsock_of(obj);

	if (traffic != FD_ACCEPTED) {
		sock_passed(obj, traffic, result);
		return;
	}
	if (result >= 0 && tsock_phase(t) == TSOCK_LISTENING && t->engine)
		except_twins(t, (int)result);
	if (counted_at != t)
		return;
	counted_at = NULL;
	atomic_fetch_sub(&t->kernel_accept_cnt, 1);
}

/* Who sends it away wants that at its twin, not at another file that has got the number. */
static COLD void leave_when_empty(struct tsock *t, int fd, const struct accept_call *call)
{
	struct fd_visit visit;
	int twin = begin_twin(t, fd, call, &visit);

	tsock_leave_when_empty(t, twin);
	tsock_end_twin(twin, &visit);
}

static long accept_any(struct tsock *t, int fd, struct accept_call *call)
{
	bool is_twin_first = call->asks_twin && call->is_twins_turn;
	long result = -EAGAIN;

	if (tsock_phase(t) == TSOCK_LISTENING) {
		result = accept_lent(t, fd, call);
		if (result != -EAGAIN || tsock_phase(t) == TSOCK_LISTENING)
			return result;
	}
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
		leave_when_empty(t, fd, call);
	return result;
}

static long look(struct tsock_wait *w)
{
	struct accept_call *call = w->ctx;

	call->asks_twin = w->asks_twin;
	if (UNLIKELY(tsock_phase(w->t) == TSOCK_LISTENING)) {
		if (!w->asks_twin)
			return -EAGAIN;
		if (!kin_is_shared_since(w->t->fork_cnt))
			tsock_wants_accept(w->t);
	}
	return accept_any(w->t, w->fd, call);
}

/* It has become the kernel's. libc accepts, but not before somebody has come: until libc has
 * entered the kernel, another thread may close the number, so that we wait here. */
static COLD long go_on_with_twin(struct tsock *t, int fd, const struct accept_call *call,
				 uint64_t deadline_ns)
{
	struct pollfd twin = { .fd = fd, .events = POLLIN };
	long result;

	do {
		if (!sock_owns_fd(&t->sock, fd))
			result = accept_closed(t, fd, call);
		else
			result = inside_poll(&twin, 1) > 0 ? FD_PASS : -EAGAIN;
		if (result != -EAGAIN)
			return result;
		result = tsock_wait_for_twin(t, fd, POLLIN, deadline_ns, false);
	} while (!result);
	return result;
}

static long accept_waiting(struct tsock *t, int fd, struct accept_call *call)
{
	uint64_t deadline_ns = tsock_deadline(atomic_load(&t->sock.rx_timeout_ns));
	long result;

	atomic_fetch_add(&t->waiting_cnt, 1);
	call->is_counted = true;
	result = tsock_wait(t, fd, look, call, READY_IN, deadline_ns, false);
	if (UNLIKELY(result == FD_PASS && tsock_phase(t) == TSOCK_KERNELS))
		result = go_on_with_twin(t, fd, call, deadline_ns);
	if (result != FD_ABANDONED)
		tsock_end_waiting(t);
	return result;
}

/* A child may have had it since before we could join it. */
static bool has_stack(struct tsock *t)
{
	enum reason reason;
	struct net *net = sock_params.net(&reason);

	return net && sock_choose_stack(&t->sock, net);
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
	if (tsock_phase(t) != TSOCK_LISTENER &&
	    (tsock_phase(t) != TSOCK_LISTENING || !has_stack(t)))
		return FD_PASS;
	/* fair to both, whatever comes */
	call.is_twins_turn = stack_now_ns(sock_stack(&t->sock)) / NS_PER_US & 1;
	result = accept_any(t, fd, &call);
	if (result != -EAGAIN || !sock_is_blocking(&t->sock, 0))
		return result;
	return accept_waiting(t, fd, &call);
}

long tsock_accept(struct fd_object *obj, int fd, struct sockaddr *addr,
		  socklen_t *len)
{
	return tsock_accept4(obj, fd, addr, len, 0);
}
