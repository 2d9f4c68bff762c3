/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that nobody has accepted yet, when their listener becomes the kernel's: its
 * queue gets them (net/hand_over.h), where every process that has the listener finds them.
 * Each stands still meanwhile. What it has received was acknowledged to the peer, who does
 * not send it again, so it is given to the kernel until that has all of it.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "net/give_back.h"
#include "net/hand_over.h"
#include "os/inside.h"
#include "os/real.h"
#include "os/rights.h"
#include "sock/tcp/tcp_gift.h"
#include "sock/tcp/tsock_priv.h"

enum {
	ROUNDS_MAX = 50,
	HEADER_MAX = 60,
	PIECE_MAX = 16384,
	/* in one frame */
	FIRST_MAX = GIVE_BACK_LEN_MAX - sizeof(struct wire_eth) - sizeof(struct wire_ipv4) -
		    HEADER_MAX,
	SLACK = 1 << 16,
};
#define ROUND_NAP_NS (NS_PER_MS / 5)
/* A fork waits so long for them at most; the others stay where they are. */
#define ALL_NS (500 * NS_PER_MS)

/* The move of one. */
struct hand {
	struct tcp_handed handed;
	struct tcp_pcb *pcb;
	struct tcp_repair state;
	struct tcp_gift gift;
	/* the kernel has got something of it */
	bool is_begun;
	/* what it has received, in one piece: each frame that the kernel is given is a
	 * system call */
	uint8_t *unread;
	uint64_t now_ns;
};

/* How this thread and the listener were before the kernel was to choose that one. */
struct choice {
	cpu_set_t cpus;
	bool is_pinned;
	int incoming_cpu;
};

/* All of those of a listener. */
struct hands {
	struct tsock *t;
	int fd; /* the kernel's listener */
	struct hand_over door;
	int ifindex; /* where it is; 0: it is not open */
	/* its buffer and lock as they were; 0: it was left alone */
	int size, lock;
	struct choice choice;
};

/* -- standing still ------------------------------------------------------------------- */

/* The way by which it was answered. */
static int find_way(struct tsock *t, struct hand *h) REQUIRES(t->engine->stack->lock)
{
	struct dst_query query = tcp_port_query(t->engine, t->port, &h->handed.key);
	const struct tcp_way *way = tcp_way_between(t->engine, &query);

	if (!way || !way->ifindex)
		return -ENETUNREACH;
	h->gift = (struct tcp_gift){
		.net = t->engine->stack->net,
		.key = &h->handed.key,
		.header = way->dst.header,
		.ifindex = way->ifindex,
	};
	return 0;
}

/* A server that has not accepted has sent nothing. */
static int read_state(struct tsock *t, struct hand *h) REQUIRES(t->engine->stack->lock)
{
	int err = tcp_get_unread(h->pcb, &h->state, h->now_ns);

	if (!err && (h->state.unacked || h->state.unsent || h->state.fin != TCP_FIN_NONE))
		err = -EBUSY;
	/* which would say that none can be moved */
	if (err == -EOPNOTSUPP)
		err = -EBUSY;
	return err ? err : find_way(t, h);
}

/* 0: it stands still, and nobody can accept it. */
static int freeze(struct tsock *t, struct hand *h) REQUIRES(t->engine->stack->lock)
{
	struct tcp_pcb *listener = t->port->pcb;
	int err;

	h->pcb = tcp_accept(listener);
	if (!h->pcb)
		return -EAGAIN;
	h->handed.key = *tcp_key(h->pcb);
	err = tcp_freeze(h->pcb, h->now_ns, h->now_ns);
	if (!err)
		err = read_state(t, h);
	tcp_engine_due_locked(t->engine);
	if (!err) {
		list_push_back(&t->engine->handed, &h->handed.link);
		return 0;
	}
	tcp_thaw(h->pcb, h->now_ns);
	tcp_accept_undo(listener, h->pcb);
	return err;
}

/* -- the kernel's --------------------------------------------------------------------- */

static int give(struct hand *h, uint32_t seq, uint8_t flags, const struct pkt *data)
{
	uint8_t header[HEADER_MAX];
	size_t len = tcp_build_of_peer(h->pcb, header, seq, false, h->now_ns);
	int err;

	((struct wire_tcp *)(void *)header)->flags |= flags;
	err = tcp_gift_give(&h->gift, header, len, data);
	h->is_begun |= !err;
	return err;
}

static uint32_t first_byte(const struct hand *h)
{
	return h->state.rcv_nxt - h->state.unread;
}

/* Where the kernel is once it has all. */
static uint32_t end_of_all(const struct hand *h)
{
	return h->state.rcv_nxt + h->state.has_fin;
}

/* What has come, from that byte on, and a last segment by which we hear how far it is. The
 * first one makes the connection, where there is none yet. So what fits into one is there as
 * soon as that is, and if we are killed in between, nobody waits for it. */
static int give_from(struct hand *h, uint32_t from)
{
	uint8_t fin = h->state.has_fin ? WIRE_TCP_FIN : 0;
	uint32_t left, at = from - first_byte(h);
	int err = 0;

	if (from == h->state.rcv_nxt && fin)
		err = give(h, from, fin, NULL);
	for (; !err && at < h->state.unread; at += left) {
		left = MIN(h->state.unread - at,
			   (uint32_t)(at ? PIECE_MAX : FIRST_MAX));
		err = give(h, first_byte(h) + at,
			   WIRE_TCP_PSH | (at + left == h->state.unread ? fin : 0),
			   &(struct pkt){ .data = h->unread + at, .len = left });
	}
	/* without anything, it makes the connection, and says nothing */
	if (!err && !h->state.unread && !fin && from == first_byte(h))
		err = give(h, from, 0, NULL);
	return err ? err : give(h, end_of_all(h), 0, NULL);
}

/* The kernel has the connection, so it cannot go on here. Whoever accepts it must not take a
 * part for the whole. */
static void end_incomplete(struct hand *h, uint32_t at)
{
	(void)!give(h, at, WIRE_TCP_RST, NULL);
	log_warn("port %u: a connection that nobody had accepted became the kernel's, which could not be given what it had received; it is reset",
		 be16toh(h->handed.key.local_port));
}

/* A process that has accepted it already, and is in a call, takes what comes afterwards. */
static void complete(struct hand *h, struct hand_over *door, uint32_t at)
{
	int err = 0;

	for (int i = 0; at != end_of_all(h) && i < ROUNDS_MAX && !err; i++) {
		inside_nap(ROUND_NAP_NS);
		err = give_from(h, at);
		(void)!hand_over_is_taken(door, &h->handed.key, &at);
	}
	if (at != end_of_all(h))
		end_incomplete(h, at);
}

static int copy_unread(struct hand *h)
{
	struct pkt *pkt = NULL;
	uint32_t at = 0;

	/* a handler that has interrupted malloc may end the program */
	h->unread = pages_map(MAX(h->state.unread, 1u));
	if (!h->unread)
		return -ENOMEM;
	while ((pkt = tcp_unread_next(h->pcb, pkt))) {
		memcpy(h->unread + at, pkt->data, pkt->len);
		at += pkt->len;
	}
	return 0;
}

/* 0: the kernel has it. */
static int move(struct hand *h, struct hand_over *door)
{
	const struct tcp_repair *s = &h->state;
	const struct hand_over_options options = {
		.ts_recent = s->ts_recent,
		.ts_next = s->ts_next,
		.mss_peer = s->mss_peer,
		.snd_scale = s->snd_scale,
		.rcv_scale = s->rcv_scale,
		.has_scale = s->has_scale,
		.has_sack = s->has_sack,
		.has_timestamps = s->has_timestamps,
		.has_ecn = s->has_ecn,
	};
	uint32_t at;
	int err = copy_unread(h);

	if (!err)
		err = hand_over_offer(door, &h->handed.key, &options);
	if (err)
		return err;
	err = give_from(h, first_byte(h));
	if (hand_over_is_taken(door, &h->handed.key, &at)) {
		complete(h, door, at);
		return 0;
	}
	/* It has got all, and has no room in its queue, or does not like the options. */
	if (!err)
		return -ECONNREFUSED;
	if (!h->is_begun)
		return err;
	/* It may have made the connection, and we cannot find out: there must not be two. */
	end_incomplete(h, first_byte(h));
	return 0;
}

/* -- room ----------------------------------------------------------------------------- */

/* What is set counts double. */
static int buffer_of(int fd)
{
	return sock_twin_option(fd, SOL_SOCKET, SO_RCVBUF) / 2;
}

/* How much of it a process without rights gets. It may have set more when it had them. */
static int allowed_of(int wanted)
{
	int fd = real.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size;

	if (fd < 0)
		return 0;
	fd_table_forget(fd);
	sock_twin_set(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
	size = buffer_of(fd);
	inside_close(fd);
	return size;
}

/* To set it locks it, and a connection has the lock of its listener. */
static void set_buffer(const struct hands *all, int size)
{
	sock_twin_set(all->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (buffer_of(all->fd) != size)
		sock_twin_set(all->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	sock_twin_set(all->fd, SOL_SOCKET, SO_BUF_LOCK, &all->lock, sizeof(all->lock));
}

/* A connection begins with the window that its listener has room for, and has to take all
 * that came within ours. */
static int widen(struct hands *all, uint32_t unread)
{
	int size = buffer_of(all->fd), wanted = (int)(unread + SLACK);

	if (size >= wanted)
		return 0;
	/* another one of the port may get it, whose buffer stays as it is */
	if (all->t->sharer && !all->choice.is_pinned)
		return size >= (int)unread ? 0 : -ENOBUFS;
	if (!rights_is_net_admin())
		wanted = allowed_of(wanted);
	if (wanted > size) {
		if (!all->size) {
			all->size = size;
			all->lock = sock_twin_option(all->fd, SOL_SOCKET, SO_BUF_LOCK);
		}
		set_buffer(all, wanted);
	}
	return buffer_of(all->fd) >= (int)unread ? 0 : -ENOBUFS;
}

static void narrow(const struct hands *all)
{
	if (all->size)
		set_buffer(all, all->size);
}

/* -- the one of those that share a port ------------------------------------------------ */

/* Of them the kernel chooses one, by itself also where the program that makes the connection
 * names a listener (out of a SOCKMAP). It prefers the one whose SO_INCOMING_CPU is the
 * processor where the segment comes in, and ours come in where the thread is that gives them.
 * What a thread gives that cannot stay there, another of the port may get, as with
 * net.ipv4.tcp_migrate_req. A process that is killed meanwhile leaves a listener that is
 * preferred on that processor, if another process has it. */
static void choose(struct hands *all)
{
	struct choice *c = &all->choice;
	cpu_set_t here;
	int cpu;

	/* programs that set it have one listener for each processor */
	c->incoming_cpu = sock_twin_option(all->fd, SOL_SOCKET, SO_INCOMING_CPU);
	cpu = c->incoming_cpu < 0 ? sched_getcpu() : c->incoming_cpu;
	CPU_ZERO(&here);
	CPU_SET(MAX(cpu, 0), &here);
	c->is_pinned = sched_getaffinity(0, sizeof(c->cpus), &c->cpus) == 0 &&
		       sched_setaffinity(0, sizeof(here), &here) == 0;
	sock_twin_set(all->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof(cpu));
}

static void choose_no_more(const struct hands *all)
{
	const struct choice *c = &all->choice;

	sock_twin_set(all->fd, SOL_SOCKET, SO_INCOMING_CPU, &c->incoming_cpu,
		      sizeof(c->incoming_cpu));
	if (c->is_pinned)
		(void)!sched_setaffinity(0, sizeof(c->cpus), &c->cpus);
}

/* -- one and all ---------------------------------------------------------------------- */

/* What came meanwhile is the kernel's. */
static void give_held(struct tsock *t, struct hand *h)
{
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &h->handed.held, link)
		(void)!net_give_back(h->gift.net, pkt);
	tsock_lock(t);
	pkt_put_list(&h->handed.held);
	tsock_unlock(t);
}

static void settle(struct tsock *t, struct hand *h, bool is_kernels)
	REQUIRES(t->engine->stack->lock)
{
	list_remove(&h->handed.link);
	if (is_kernels) {
		tcp_set_user(h->pcb, NULL);
		tcp_drop(h->pcb);
		tcp_engine_add_ghost(t->engine, &h->handed.key);
	} else {
		tcp_thaw(h->pcb, tsock_now(t));
		tcp_accept_undo(t->port->pcb, h->pcb);
		tcp_engine_take_list(t->engine, &h->handed.held);
	}
	tcp_engine_due_locked(t->engine);
}

static int open_door(struct hands *all, int ifindex)
{
	int err;

	if (all->ifindex == ifindex)
		return 0;
	if (all->ifindex)
		hand_over_close(&all->door);
	all->ifindex = 0;
	err = hand_over_open(&all->door, ifindex);
	if (!err)
		all->ifindex = ifindex;
	return err;
}

/* The oldest of them. -EAGAIN: there is none. */
NO_LOCK_ANALYSIS static int hand_one(struct hands *all) /* two names of one lock */
{
	struct tsock *t = all->t;
	struct hand h = { 0 };
	int err;

	list_init(&h.handed.held);
	tsock_lock(t);
	h.now_ns = tsock_now(t);
	err = freeze(t, &h);
	tsock_unlock(t);
	if (err)
		return err;
	err = open_door(all, h.gift.ifindex);
	if (!err)
		err = widen(all, h.state.unread);
	if (!err)
		err = move(&h, &all->door);
	tsock_lock(t);
	settle(t, &h, !err);
	tsock_unlock(t);
	if (!err)
		give_held(t, &h);
	if (h.unread)
		munmap(h.unread, MAX(h.state.unread, 1u));
	tcp_gift_end(&h.gift);
	return err;
}

static uint32_t waiting_cnt(struct tsock *t)
{
	uint32_t cnt;

	tsock_lock(t);
	cnt = tcp_accept_cnt(t->port->pcb);
	tsock_unlock(t);
	return cnt;
}

void tsock_hand_over(struct tsock *t, int fd)
{
	uint32_t cnt = waiting_cnt(t), handed = 0;
	uint64_t until = clock_monotonic_ns() + ALL_NS;
	struct hands all = { .t = t, .fd = fd };
	int err = 0;

	if (!cnt || tsocks_shall_stay())
		return;
	if (t->sharer)
		choose(&all);
	for (uint32_t i = 0; i < cnt && clock_monotonic_ns() < until; i++) {
		int result = hand_one(&all);

		handed += !result;
		err = result ? result : err;
		/* then there is no way for any of them */
		if (result == -EOPNOTSUPP || result == -EPERM)
			break;
	}
	if (all.ifindex)
		hand_over_close(&all.door);
	narrow(&all);
	if (t->sharer)
		choose_no_more(&all);
	tsock_lock(t);
	tsock_update_listener(t, 0);
	tsock_unlock(t);
	log_dbg("port %u: %u of %u connections that nobody has accepted are in the kernel's queue%s%s",
		t->sock.stats.at->local_port, handed, cnt, err ? ": " : "",
		err ? strerror(-err) : "");
}
