/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP sockets: what of their life is not every socket's (sock/sock.h). */
#include "config.h"

#include "sock/udp/udp.h"

#include <errno.h>
#include <string.h>

#include "fd/fd_pool.h"
#include "sock/kin.h"
#include "sock/tx_followed.h"
#include "sock/udp/udp_priv.h"

static struct fd_pool pool = FD_POOL_INIT(struct udp);

/* Also the end of a connection, by AF_UNSPEC, after which Linux keeps the port
 * only if the program had asked for it. */
static long udp_connect(struct fd_object *obj, int fd,
			const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_of(obj);
	int result;

	mutex_acquire(&s->config);
	result = real.connect(fd, addr, len) ? -errno : 0;
	if (result == 0 && !s->has_left)
		sock_renamed(s, fd);
	mutex_release(&s->config);
	return result;
}

/* Whoever waits for the socket hears of it. */
static void tell_shut(struct sock *s)
{
	uint32_t bits = 0;
	struct stack *stack;

	if (sock_rx_holds(s) & SOCK_RX_SHUT)
		bits |= READY_RDHUP;
	if (bits && sock_tx_holds(s) & SOCK_TX_SHUT)
		bits |= READY_HUP;
	/* in no stack yet, nobody else writes it; or it is written once more */
	atomic_fetch_or(&s->end.ready, bits);
	if (!sock_try_lock(s, &stack))
		return;
	endpoint_add_ready(&s->end, bits);
	endpoint_fire(&s->end, READY_BY_TWIN | READY_OUT |
				       (bits ? bits | READY_IN : 0));
	stack_unlock(stack);
}

static void foretell_shut(struct sock *s)
{
	struct stack *stack;

	if (!sock_try_lock(s, &stack))
		return;
	endpoint_fire(&s->end, READY_SOON);
	stack_unlock(stack);
}

static long udp_shutdown(struct fd_object *obj, int fd, int how)
{
	struct sock *s = sock_of(obj);
	int result;

	if (how >= SHUT_RD && how <= SHUT_RDWR)
		foretell_shut(s);
	result = real.shutdown(fd, how) ? -errno : 0;
	/* Linux shuts an unconnected socket down too, and says it did not. */
	if (result != 0 && result != -ENOTCONN)
		return result;
	if (how == SHUT_RD || how == SHUT_RDWR)
		sock_hold_rx(s, SOCK_RX_SHUT);
	if (how == SHUT_WR || how == SHUT_RDWR)
		sock_hold_tx(s, SOCK_TX_SHUT);
	tell_shut(s);
	return result;
}

/* A pipe of datagrams out of the socket: the kernel's alone. */
static long udp_splice(struct fd_object *obj, int fd, off64_t *offset UNUSED,
		       int fd2 UNUSED, off64_t *offset2 UNUSED,
		       size_t len UNUSED, unsigned int flags UNUSED)
{
	int err;

	if (!sock_owns_fd(sock_of(obj), fd))
		return FD_PASS;
	err = sock_leave_for(sock_of(obj), fd, REASON_SPLICE, STATS_BY_SPLICE,
			     "a call", 0);
	return err ? err : FD_PASS;
}

/* -- its part of what all sockets do ---------------------------------------------- */

void udp_forget_ways(struct sock *s, const struct user_name *peer)
{
	struct udp *u = udp_of_sock(s);

	for (int i = 0; i < UDP_WAYS; i++)
		u->ways[i].dst.view_gen = 0;
	if (peer) {
		u->ways[UDP_WAY_CONNECTED].dst.query.remote = peer->addr;
		u->ways[UDP_WAY_CONNECTED].dst.query.remote_port = peer->port;
	}
}

static bool udp_is_empty(const struct sock *s)
{
	const struct udp *u = CONTAINER_OF(s, const struct udp, sock);

	return list_is_empty(&u->rx_queue) &&
	       list_is_empty(&u->stamps.own.records) && !u->stamps.own.waiting;
}

static void udp_left(struct sock *s)
{
	udp_pace_end(udp_of_sock(s));
}

static const struct sock_kind udp_kind = {
	.proto = IPPROTO_UDP,
	.receiver = SOCK_UDP_RECEIVER,
	.connect = SOCK_UDP_CONNECT,
	.read_settings = udp_read_settings,
	.forget_ways = udp_forget_ways,
	.is_port_elsewhere = udp_port_is_elsewhere,
	.hand_back = udp_hand_back,
	.is_empty = udp_is_empty,
	.left = udp_left,
};

/* Libc has done a call that we passed on. Of sends that fail, some leave to the twin what it
 * has of a datagram that was begun with MSG_MORE, as one that is too long, and others drop
 * it. The next send goes there, too, which is right in both cases. */
static void udp_passed(struct fd_object *obj, enum fd_traffic traffic, long result)
{
	struct udp *u = udp_of(obj);

	if (traffic == FD_SENT && result < 0 && atomic_load(&u->has_sent_more))
		sock_hold_tx(&u->sock, UDP_TX_MORE);
	sock_passed(obj, traffic, result);
}

/* -- life ----------------------------------------------------------------------- */

static void udp_twin_event(struct fd_object *obj, uint32_t events)
{
	struct sock *s = sock_of(obj);

	atomic_store(&s->is_twin_ready, true);
	if (events & EPOLLERR) {
		sock_hold_tx(s, UDP_TX_ERROR);
		udp_stamps_twin_event(udp_of(obj));
	}
}

struct fd_object *udp_create(int fd, int domain, int type)
{
	struct udp *u = fd_pool_get(&pool);

	if (!u)
		return NULL;
	sock_clear(&u->sock, sizeof(*u));
	list_init(&u->rx_queue);
	tx_stamps_init(&u->stamps.own);
	u->stamps.ready = READY_ERR;
	atomic_init(&u->stamps.twin_since, UINT64_MAX);
	atomic_init(&u->os_countdown, udp_twin_interval());
	sock_init(&u->sock, &udp_kind, &udp_ops, udp_input, fd, domain, type);
	return &u->sock.obj;
}

/* Nobody is inside any more: no packet comes, nobody waits. */
static void udp_release(struct fd_object *obj)
{
	struct udp *u = udp_of(obj);
	struct stack *stack;

	if (u->has_heir)
		udp_hand_back(&u->sock, -1);
	udp_forget_heir(u);
	sock_detach(&u->sock);
	udp_pace_end(u);
	if (sock_try_lock(&u->sock, &stack)) {
		udp_purge(u);
		tx_followed_forget(&u->stamps.own, stack);
		tx_stamps_purge(&u->stamps.own);
		stack_unlock(stack);
	}
	sock_destroy(&u->sock);
	fd_pool_put(&pool, u);
}

/* The frames, rules and rings were the parent's and are still. */
void udp_forked(void)
{
	fd_pool_forked(&pool);
	udp_heirs_forked();
	udp_ports_forked();
}

/* The child may receive and send by the twin. One that is lent becomes the parent's again. */
static struct fd_object *udp_heir(struct fd_object *obj, int fd)
{
	struct udp *u = udp_of(obj);

	return u->has_heir && !u->sock.has_left ?
		       kin_make_heir(obj, &u->heir, fd, KIN_CHANGES) :
		       NULL;
}

static _Atomic uint64_t numbers;

static void udp_await_room(struct fd_object *obj)
{
	sock_hold_tx(&udp_of(obj)->sock, SOCK_TX_EDGES);
}

struct fd_ops udp_ops = {
	.quick_recv = udp_quick_recv,
	.quick_send = udp_quick_send,
	.quick_sendto = udp_quick_sendto,
	.name = "udp",
	.numbers = &numbers,
	.heir = udp_heir,
	.leave = sock_leave,
	.twin_event = udp_twin_event,
	.await = sock_await,
	.follow = sock_follow,
	.await_room = udp_await_room,
	.follow_news = sock_follow_news,
	.bind = sock_bind,
	.connect = udp_connect,
	.shutdown = udp_shutdown,
	.setsockopt = udp_setsockopt,
	.getsockopt = udp_getsockopt,
	.fcntl = udp_fcntl,
	.fcntl64 = udp_fcntl,
	.ioctl = udp_ioctl,
	.read = udp_read,
	.readv = udp_readv,
	.preadv2 = udp_preadv2,
	.preadv64v2 = udp_preadv2,
	.recv = udp_recv,
	.recvfrom = udp_recvfrom,
	.recvmsg = udp_recvmsg,
	.recvmmsg = udp_recvmmsg,
	.write = udp_write,
	.writev = udp_writev,
	.pwritev2 = udp_pwritev2,
	.pwritev64v2 = udp_pwritev2,
	.send = udp_send,
	.sendto = udp_sendto,
	.sendmsg = udp_sendmsg,
	.sendmmsg = udp_sendmmsg,
	.splice = udp_splice,
	.last_close = sock_last_close,
	.release = udp_release,
	.passed = udp_passed,
};

void udp_start(void)
{
	fd_ops_fill(&udp_ops);
}
