/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets that a child of a fork has too. The child reads the twin, which is
 * one for both processes; we read our queue, which is ours alone. So what is queued
 * at a fork goes to the kernel, where either finds it, and frames keep coming to
 * us: programs that fork to run others notice nothing. When nobody reads here what
 * comes afterwards, the child is meant to, and the socket is lent to the kernel: until
 * this process reads it again, and at first not for long. Each time that this turns out
 * to be wrong it is lent for twice as long. When no child is left that has it, all is as
 * before the fork; of a program that was started with it, nobody tells us that it has ended.
 */
#include "config.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/kin.h"
#include "sock/udp/udp_priv.h"

/* How many such sockets there may be. */
static _Atomic unsigned heirs;

/* -- datagrams back to the kernel ------------------------------------------------ */

/* Frames that the kernel does not take are the socket's again, before what has come
 * meanwhile. The first so many come before what the kernel has. */
static void take_rest(struct udp *u, struct stack *stack, struct list *pkts,
		      uint32_t ahead)
{
	stack_lock(stack);
	udp_return_queue(u, pkts);
	udp_put_ahead(u, ahead);
	stack_unlock(stack);
	atomic_fetch_and(&u->sock.rx_holds, ~(unsigned)SOCK_RX_MOVING);
}

/* Takes what is queued, or else nothing has to be done. */
static bool take_queue(struct udp *u, struct stack **stack_out, struct list *pkts,
		       uint32_t *cnt_out)
{
	struct stack *stack;

	list_init(pkts);
	if (!sock_try_lock(&u->sock, &stack))
		return false;
	stack_drain_locked(stack);
	*cnt_out = u->rx_cnt;
	if (*cnt_out) {
		/* Who looks at the twin from now on does not find it empty and goes on to
		 * what comes behind. */
		sock_hold_rx(&u->sock, SOCK_RX_MOVING);
		udp_take_queue(u, pkts);
	}
	stack_unlock(stack);
	*stack_out = stack;
	return *cnt_out;
}

COLD void udp_await_move(struct udp *u)
{
	mutex_acquire(&u->sock.config);
	mutex_release(&u->sock.config);
}

static void put(struct stack *stack, struct pkt *pkt)
{
	stack_lock(stack);
	pkt_put(pkt);
	stack_unlock(stack);
}

/* How much of the twin's buffer a frame that we give back may take. It is more than for
 * one that comes by the usual way, for which the size of the buffer is meant. */
enum { GIVEN_BACK_COST = 8192 };

/* 0: Linux does not say. */
static int read_rcvbuf(int fd)
{
	return sock_twin_option(fd, SOL_SOCKET, SO_RCVBUF);
}

/* What anybody may ask for; 0: nobody knows. */
static int most_of_anybody(void)
{
	char text[24];
	ssize_t len = file_peek("/proc/sys/net/core/rmem_max", text, sizeof(text) - 1);

	if (len <= 0)
		return 0;
	text[len] = '\0';
	return (int)MIN(strtol(text, NULL, 10), INT_MAX / 2L);
}

/* Without rights it never becomes smaller than is meant: a program that had them may have
 * asked for more than it could ask for now. */
static void write_rcvbuf(int fd, int size)
{
	/* the kernel doubles it */
	int half = size / 2, most;

	if (real.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half)) == 0)
		return;
	most = most_of_anybody();
	if (half > most && 2 * most <= read_rcvbuf(fd))
		return;
	half = MIN(half, most);
	(void)!real.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half));
}

/* How many frames it takes. Linux takes one more than there is room for. */
static uint32_t room_in_twin(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 }, room;
	socklen_t len = sizeof(info);

	if (fd < 0 || real.getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0)
		return UINT32_MAX;
	room = info[SK_MEMINFO_RCVBUF] -
	       MIN(info[SK_MEMINFO_RMEM_ALLOC], info[SK_MEMINFO_RCVBUF]);
	return room ? room / GIVEN_BACK_COST + 1 : 0;
}

/* The datagrams that a buffer of this size has room for if they come by the usual way. */
static uint32_t most_in(int rcvbuf)
{
	enum { LEAST_COST = 768 };

	return (uint32_t)rcvbuf / LEAST_COST + 1;
}

/* Makes room in the twin for so many more, in all for no more than the program could have
 * waiting there. It stays that wide until it has been read empty: what was given back lies in
 * it until then, and what comes behind, which long datagrams and those of this host do even
 * while we serve the socket, must find the room that the program has asked for. */
static void widen_twin(struct udp *u, int fd, uint32_t cnt)
{
	int was = read_rcvbuf(fd);
	int64_t most, size;

	if (!was)
		return;
	if (was != u->twin_rcvbuf_wide)
		u->twin_rcvbuf = was;
	most = u->twin_rcvbuf + (int64_t)most_in(u->twin_rcvbuf) * GIVEN_BACK_COST;
	size = MIN(was + (int64_t)cnt * GIVEN_BACK_COST, most);
	write_rcvbuf(fd, (int)MIN(size, (int64_t)INT_MAX));
	u->twin_rcvbuf_wide = read_rcvbuf(fd);
	atomic_store(&u->is_twin_wide, true);
}

int udp_rcvbuf(const struct udp *u, int fd)
{
	int size = read_rcvbuf(fd);

	return u->twin_rcvbuf_wide && size == u->twin_rcvbuf_wide ? u->twin_rcvbuf : size;
}

static bool is_empty(int fd)
{
	struct pollfd twin = { .fd = fd, .events = POLLIN };

	return inside_poll(&twin, 1) == 0;
}

/* More may have been given to it since. A size that the program has set stays. */
COLD void udp_narrow_twin(struct udp *u, int fd)
{
	mutex_acquire(&u->sock.config);
	if (atomic_load(&u->is_twin_wide) && sock_owns_fd(&u->sock, fd) && is_empty(fd)) {
		if (read_rcvbuf(fd) == u->twin_rcvbuf_wide)
			write_rcvbuf(fd, u->twin_rcvbuf);
		atomic_store(&u->is_twin_wide, false);
	}
	mutex_release(&u->sock.config);
}

/* Whether the twin would take it. A connected one takes what its peer sends; what came
 * from others before it was connected is to be received as well, as under Linux. */
static bool is_for_twin(const struct udp *u, const struct pkt *pkt)
{
	const struct dst_query *peer = &u->ways[UDP_WAY_CONNECTED].dst.query;
	struct user_name from;

	if (!u->sock.is_connected)
		return true;
	from = udp_source(pkt);
	return from.port == peer->remote_port &&
	       ip_addr_eq(&from.addr, &peer->remote);
}

/* Gives the twin what is queued, in its order. What comes meanwhile, where frames still reach
 * the socket, stays queued behind it. Returns how many the kernel has taken. */
static uint32_t give_queue(struct udp *u, int fd)
{
	struct stack *stack;
	struct list pkts, kept;
	uint32_t cnt, kept_cnt = 0, given = 0, room;
	int err = 0;

	if (!take_queue(u, &stack, &pkts, &cnt))
		return 0;
	list_init(&kept);
	if (fd >= 0)
		widen_twin(u, fd, cnt);
	/* what does not fit stays here, or it would be lost */
	room = room_in_twin(fd);
	while (!list_is_empty(&pkts)) {
		struct pkt *pkt = pkt_from_link(list_first(&pkts));

		if (!is_for_twin(u, pkt)) {
			list_remove(&pkt->link);
			list_push_back(&kept, &pkt->link);
			kept_cnt++;
			continue;
		}
		if (!room--)
			break;
		err = net_give_back(stack->net, pkt);
		if (err)
			break;
		list_remove(&pkt->link);
		put(stack, pkt);
		given++;
		atomic_store(&u->sock.is_twin_ready, true);
	}
	if (err)
		log_dbg("datagrams that wait here cannot be given to the kernel (error %d)",
			-err);
	list_splice_back(&kept, &pkts);
	take_rest(u, stack, &kept, kept_cnt);
	return given;
}

/* So often what came during a round is given in one more, which is shorter. */
enum { GIVE_ROUNDS = 16 };

/* What the kernel receives once the flows are gone comes behind what was given before. So
 * nearly all of it goes while they are there; what comes between the last round and their
 * end is the only thing that something may overtake. */
void udp_hand_back(struct sock *s, int fd)
{
	struct udp *u = udp_of_sock(s);

	if (attachment_is_made(&s->att) && net_knows_given(sock_stack(s)->net))
		for (int i = 0; i < GIVE_ROUNDS && give_queue(u, fd); i++)
			;
	sock_detach(s);
	(void)give_queue(u, fd);
}

/* -- forks ----------------------------------------------------------------------- */

/* Something is queued, and the kernel would give it to the twin. Of several sockets that share
 * a port it chooses by itself, and another one than ours would get some of a sender's
 * datagrams: there all stays, in its order, until this socket is lent. */
static bool has_for_twin(struct udp *u)
{
	struct stack *stack;
	bool result;

	sock_lock(&u->sock, &stack);
	result = !list_is_empty(&u->rx_queue) &&
		 !demux_has_others(&stack->demux, &u->sock.end);
	stack_unlock(stack);
	return result;
}

/* With frames still reaching the socket. Where the device would bring us again what we give
 * back, they must not for that time, and what comes meanwhile is read before. */
static void give_to_both(struct udp *u, int fd)
{
	if (!has_for_twin(u))
		return;
	if (net_knows_given(sock_stack(&u->sock)->net)) {
		(void)give_queue(u, fd);
		return;
	}
	sock_detach(&u->sock);
	(void)give_queue(u, fd);
	sock_attach_anew(&u->sock, fd, STATS_BY_FORK);
}

/* With `config`. */
static void note_heir(struct udp *u, bool is_for_good)
{
	uint64_t now = kin_fork_cnt();

	if (!u->has_heir) {
		u->has_heir = true;
		u->heir_first = now;
		atomic_fetch_add(&heirs, 1);
	}
	u->heir_last = now;
	u->has_heir_for_good |= is_for_good;
}

static void share_with(struct udp *u, int fd, bool is_for_good)
{
	bool is_made;

	mutex_acquire(&u->sock.config);
	is_made = attachment_is_made(&u->sock.att);
	atomic_store(&u->was_shared, true);
	/* one that is lent comes back, even if nobody has it for whom it was */
	if (is_made || u->is_lent || u->has_heir)
		note_heir(u, is_for_good);
	if (is_made)
		give_to_both(u, fd);
	mutex_release(&u->sock.config);
}

static bool share(struct fd_object *obj, int fd)
{
	share_with(udp_of(obj), fd, false);
	return false;
}

static void share_all(bool (*each)(struct fd_object *obj, int fd))
{
	struct net *net = sock_params.net_if_made();

	if (!net)
		return;
	net_poll_all(net);
	fd_visit(&udp_ops, each);
}

void udp_before_fork(void)
{
	share_all(share);
}

/* The other program does not get what is closed at its start. */
static bool share_if_inherited(struct fd_object *obj, int fd)
{
	if (file_is_inherited(fd))
		share_with(udp_of(obj), fd, true);
	return false;
}

void udp_before_spawn(void)
{
	share_all(share_if_inherited);
}

void udp_heirs_forked(void)
{
	atomic_store(&heirs, 0);
}

/* With `config`, or when it is released. */
void udp_forget_heir(struct udp *u)
{
	if (!u->has_heir)
		return;
	u->has_heir = u->has_heir_for_good = u->is_neglected = false;
	u->lend_ns = u->lent_until_ns = 0;
	atomic_fetch_sub(&heirs, 1);
}

/* With `config`. */
static bool has_heir_still(struct udp *u)
{
	if (u->has_heir && !u->has_heir_for_good &&
	    !kin_may_be_shared(u->heir_first, u->heir_last))
		udp_forget_heir(u);
	return u->has_heir;
}

/* -- afterwards ------------------------------------------------------------------ */

#define LEND_FIRST_NS (100 * NS_PER_MS)
#define LEND_MAX_NS (60 * NS_PER_SEC)

/* Something is queued here. Who sleeps for it would take it at once; but a watch may also
 * be a set's, which the program may look at soon, or have left to its child as well. */
static bool is_neglected(struct udp *u, uint64_t *taken_out, bool *is_watched_out)
{
	struct stack *stack;
	bool result;

	sock_lock(&u->sock, &stack);
	result = !list_is_empty(&u->rx_queue);
	*is_watched_out = !list_is_empty(&u->sock.end.watches);
	*taken_out = sock_counters(&u->sock)->rx_packets;
	stack_unlock(stack);
	return result;
}

/* The first look notes what the program has read so far, a later one whether that has
 * changed: the second one, or one after some time where the socket is in a set. */
static bool is_left_to_heir(struct udp *u)
{
	bool was_neglected = u->is_neglected, is_watched;
	uint64_t had_taken = u->neglected_since;
	uint64_t now = clock_monotonic_ns();

	if (!has_heir_still(u) || u->sock.has_left || !attachment_is_made(&u->sock.att))
		return false;
	u->is_neglected = is_neglected(u, &u->neglected_since, &is_watched);
	if (!was_neglected || !u->is_neglected ||
	    had_taken != u->neglected_since) {
		u->neglected_from_ns = now;
		return false;
	}
	return !is_watched || now - u->neglected_from_ns >= LEND_FIRST_NS;
}

/* With `config`. */
static void lend(struct udp *u, int fd)
{
	struct sock *s = &u->sock;

	udp_hand_back(s, fd);
	u->is_lent = true;
	u->is_neglected = false;
	u->lend_ns = u->lend_ns ? MIN(2 * u->lend_ns, LEND_MAX_NS) :
				  LEND_FIRST_NS;
	u->lent_until_ns = clock_monotonic_ns() + u->lend_ns;
	s->reason = REASON_HEIR;
	stats_set_rx(&s->stats, REASON_HEIR, STATS_BY_FORK, 0, "");
	sock_hold_rx(s, SOCK_RX_UNATTACHED);
	LOG_ONCE(LOG_LEVEL_INFO,
		 "fd %d: a child process has it too, and is to read it; the kernel serves it until this process reads again",
		 fd);
}

COLD void udp_reclaim(struct udp *u, int fd)
{
	mutex_acquire(&u->sock.config);
	if (u->is_lent && !u->sock.has_left &&
	    clock_monotonic_ns() >= u->lent_until_ns) {
		u->is_lent = false;
		sock_attach_anew(&u->sock, fd, STATS_BY_FORK);
	}
	mutex_release(&u->sock.config);
}

static bool look_after(struct fd_object *obj, int fd)
{
	struct udp *u = udp_of(obj);
	bool is_noted;

	mutex_acquire(&u->sock.config);
	if (is_left_to_heir(u))
		lend(u, fd);
	is_noted = u->is_neglected;
	mutex_release(&u->sock.config);
	return is_noted;
}

bool udp_has_heirs(void)
{
	return atomic_load_explicit(&heirs, memory_order_relaxed);
}

bool udp_look_after_heirs(void)
{
	return fd_visit(&udp_ops, look_after);
}

static bool leave_to_heir(struct fd_object *obj, int fd)
{
	struct udp *u = udp_of(obj);
	bool has_heir;

	mutex_acquire(&u->sock.config);
	has_heir = u->has_heir && attachment_is_made(&u->sock.att);
	mutex_release(&u->sock.config);
	if (has_heir)
		sock_leave(&u->sock.obj, fd, REASON_HEIR, STATS_BY_FORK);
	return false;
}

void udp_before_exit(void)
{
	struct net *net = sock_params.net_if_made();

	if (!net || !udp_has_heirs())
		return;
	net_poll_all(net);
	fd_visit(&udp_ops, leave_to_heir);
}
