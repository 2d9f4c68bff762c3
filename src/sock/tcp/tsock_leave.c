/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets go back to the kernel (tcp_way_back.h has the transaction): because only
 * the kernel can do what the program wants, because another process will have them too,
 * or because no ring leads to the peer any more.
 */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/tcp_right.h"
#include "sock/tcp/tcp_gift.h"
#include "sock/tcp/tcp_twin.h"
#include "sock/tcp/tcp_way_back.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tx_followed.h"

/* So long the answer to a SYN is waited for before the kernel sends one anew. */
#define ANSWER_NS (20 * NS_PER_MS)
/* The same where a SYN may have brought data: it cannot begin anew without the data coming
 * twice. By then three SYNs have left, of which two were usual ones. */
#define EARLY_ANSWER_NS (3 * NS_PER_SEC)
#define ANSWER_NAP_NS 100000

/* A move of one connection. */
struct move {
	struct tsock *t;
	struct tcp_gift gift;
	int fd; /* the twin */
	uint64_t since_ns; /* it began, and what was sent since then needs not be sent again */
};

static int give(void *ctx, const uint8_t *header, size_t header_len,
		const struct pkt *data)
{
	struct move *m = ctx;

	return tcp_gift_give(&m->gift, header, header_len, data);
}

/* What came meanwhile is the kernel's. Each frame is a call, so those that it needs not
 * have are left out. */
static void give_held(void *ctx)
{
	struct list pkts = LIST_INIT(pkts);
	struct move *m = ctx;
	struct tsock *t = m->t;
	struct pkt *pkt;

	tsock_lock(t);
	while (!list_is_empty(&t->held)) {
		list_splice_back(&pkts, &t->held);
		tcp_drop_superseded(t->pcb, &pkts);
		tsock_unlock(t);
		LIST_FOR_EACH(pkt, &pkts, link)
			(void)!net_give_back(m->gift.net, pkt);
		tsock_lock(t);
		pkt_put_list(&pkts);
	}
	tsock_unlock(t);
}

/* The rings may still have frames of it, which came before the rule changed. */
static void drain(struct tsock *t)
{
	tsock_lock(t);
	stack_drain_locked(t->engine->stack);
	if (t->engine->stack->afterwards & STACK_ENGINES)
		stack_run_engines_locked(t->engine->stack);
	tcp_engine_add_ghost(t->engine, &t->key);
	tsock_unlock(t);
}

/* A guard that has heard the peer knows better. */
static bool keeps_all(void *ctx)
{
	struct move *m = ctx;
	struct tsock *t = m->t;

	return !t->guard_drops &&
	       net_keeps_all(m->gift.net, t->port ? &t->port->att : &t->sock.att,
			     &t->key);
}

static int open_to_kernel(void *ctx)
{
	struct move *m = ctx;
	struct tsock *t = m->t;
	int err;

	tsock_stamps_number_twin(t, m->fd);
	if (t->port) {
		/* Where rules cannot say so, or there is no room for one more, its segments
		 * still come to us, and the engine, which has no connection for them, gives
		 * them back. */
		err = net_except(m->gift.net, &t->port->att, &t->key);
		if (err && err != -EOPNOTSUPP)
			return err;
		drain(t);
	} else {
		/* while its endpoint is there its frames are kept */
		tsock_lock(t);
		stack_drain_locked(t->engine->stack);
		tsock_unlock(t);
		sock_detach(&t->sock);
	}
	return 0;
}

static void close_to_kernel(void *ctx)
{
	struct move *m = ctx;
	struct tsock *t = m->t;

	if (t->port) {
		net_unexcept(m->gift.net, &t->port->att, &t->key);
		return;
	}
	/* the rule was there a moment ago */
	if (net_attach(m->gift.net, &t->sock.att, &t->sock.end,
		       &t->sock.att.where) != REASON_NONE)
		log_err("a connection that could not go back to the kernel has lost its rule");
}

static const struct tcp_way_back_ops ops = {
	.give = give,
	.keeps_all = keeps_all,
	.open = open_to_kernel,
	.give_held = give_held,
	.close = close_to_kernel,
};

bool tsocks_shall_stay(void)
{
	return sock_params.right_keeper == SOCK_RIGHT_UNUSED;
}

/* -- the move ---------------------------------------------------------------------------- */

/* 0: it stands still; its frames are kept. */
static int freeze(struct move *m) REQUIRES(m->t->engine->stack->lock)
{
	struct tsock *t = m->t;
	/* it may have ended since the caller looked */
	int err = t->pcb ? tcp_freeze(t->pcb, m->since_ns, tsock_now(m->t)) : -ENOTCONN;

	if (err)
		return err;
	list_push_back(&t->engine->moving, &t->moving);
	tcp_engine_due_locked(m->t->engine);
	if (t->way) {
		m->gift.header = t->way->dst.header;
		m->gift.ifindex = t->way->ifindex;
	}
	return 0;
}

/* It goes on here. */
static void thaw(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	list_remove(&t->moving);
	tcp_thaw(t->pcb, tsock_now(t));
	if (t->way)
		tcp_way_ask(t->way);
	/* what has come meanwhile */
	if (t->lost_way != REASON_NONE)
		tsock_leave_later(t);
	tcp_engine_take_list(t->engine, &t->held);
	tcp_engine_due_locked(t->engine);
}

/* Bytes of it are lost, which nobody must take for a silence. */
static COLD void break_off(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	if (!t->pcb)
		return;
	t->error = -ECONNRESET;
	tcp_abort(t->pcb, tsock_now(t));
	tcp_engine_due_locked(t->engine);
}

static void forget_pcb(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	tsock_set_way(t, NULL);
	t->is_deferred = false;
	if (t->pcb) {
		tcp_set_user(t->pcb, NULL);
		tcp_drop(t->pcb);
		t->pcb = NULL;
	}
	t->is_gone = true;
	tcp_engine_due_locked(t->engine);
}

/* Whoever waits goes on with the twin. */
static void is_theirs(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	list_remove(&t->moving);
	tsock_is_no_orphan(t);
	/* what cards say later nobody hears any more */
	tx_followed_look(&t->stamps.own, t->engine->stack);
	tsock_stamps_unfollow(t);
	atomic_store_explicit(&t->phase, TSOCK_KERNELS, memory_order_release);
	atomic_store(&t->sock.end.ready, t->has_record);
	endpoint_fire(&t->sock.end, UINT32_MAX);
}

/* The kernel has it. */
static void let_go(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	forget_pcb(t);
	is_theirs(t);
}

/* There is no word of TCP for it, so no repair restores it. */
static void shut_twin_for_reading(const struct tsock *t, int fd)
{
	if (t->is_shut_rd)
		(void)!real.shutdown(fd, SHUT_RD);
}

NO_LOCK_ANALYSIS static int move_open(struct move *m, int fd) /* two names of one lock */
{
	struct tcp_twin_socket twin = tsock_twin(m->t, fd);
	struct tsock *t = m->t;
	int err;

	tsock_lock(t);
	err = freeze(m);
	tsock_unlock(t);
	if (err)
		return err;
	err = tcp_way_back(&twin, t->pcb, &ops, m, tsock_ask_now(t));
	if (!err)
		shut_twin_for_reading(t, fd);
	tsock_lock(t);
	if (err) {
		thaw(t);
		if (err == -ECONNRESET)
			break_off(t);
	} else {
		let_go(t);
		/* what has come since the others were given */
		tcp_engine_give_list(t->engine, &t->held);
	}
	tsock_unlock(t);
	return err;
}

/* 0: it stands still, as what is left of it, and the error is the twin's to say. */
static int stop_ended(struct move *m, int *error_out)
{
	struct tsock *t = m->t;
	int err = -ENOTCONN;

	tsock_lock(t);
	if (t->way && t->was_open && !t->is_orphan &&
	    (!t->pcb || tsock_is_ended_state(tcp_state(t->pcb)))) {
		list_push_back(&t->engine->moving, &t->moving);
		m->gift.header = t->way->dst.header;
		m->gift.ifindex = t->way->ifindex;
		*error_out = t->error;
		t->error = 0;
		err = 0;
	}
	tsock_unlock(t);
	return err;
}

/* The twin has it, or with `err` it stays, with the error that it had to tell. */
static void end_ended(struct tsock *t, int err, int error)
{
	tsock_lock(t);
	pkt_put_list(&t->held);
	if (!err) {
		let_go(t);
	} else {
		list_remove(&t->moving);
		t->error = error;
		tsock_update(t, 0);
	}
	tsock_unlock(t);
}

/* What is left of one that has ended: bytes that were not read, an error that was not said,
 * and the end. */
static int move_ended(struct tsock *t, int fd)
{
	struct move m = {
		.t = t,
		.gift = { .net = t->engine->stack->net, .key = &t->key },
		.fd = fd,
	};
	struct tcp_twin_socket twin = tsock_twin(t, fd);
	int error, err = tsocks_shall_stay() ? -EOPNOTSUPP : stop_ended(&m, &error);

	if (err)
		return err;
	err = tcp_way_back_ended(&twin, &t->key, t->pcb, error, &ops, &m,
				 tsock_ask_now(t));
	tcp_gift_end(&m.gift);
	end_ended(t, err, error);
	if (err)
		log_dbg("fd %d: what is left of the connection cannot be the kernel's: %s",
			fd, strerror(-err));
	return err;
}

/* False: it is open since the caller looked, or has failed. Until it is the kernel's,
 * who comes waits, and what comes is kept. */
static bool stop_opening(struct tsock *t)
{
	bool is_opening;

	tsock_lock(t);
	is_opening = t->pcb && tsock_is_opening_state(tcp_state(t->pcb)) &&
		     !tcp_is_early(t->pcb);
	if (is_opening) {
		list_push_back(&t->engine->moving, &t->moving);
		forget_pcb(t);
	}
	tsock_unlock(t);
	return is_opening;
}

/* The kernel says at once that it cannot. As after any connect() that has failed, the program
 * hears that once, and may try again. */
static COLD void fail_anew(struct tsock *t, int err)
{
	/* until all of that is true, who comes waits */
	tsock_start_over(t, err);
	tsock_lock(t);
	list_remove(&t->moving);
	pkt_put_list(&t->held);
	tsock_unlock(t);
}

/* The kernel connects it, and nobody waits for that. */
static int begin_connect(const struct tsock *t, int fd, const struct user_name *peer)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int flags = real.fcntl(fd, F_GETFL), err;

	user_name_write(peer, t->sock.domain, &name, &len);
	(void)!real.fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	err = real.connect(fd, (struct sockaddr *)&name, len) == 0 || errno == EINPROGRESS ?
		      0 :
		      -errno;
	(void)!real.fcntl(fd, F_SETFL, flags);
	return err;
}

/* By the kernel, what has only begun: nobody has said anything yet. -EAGAIN: it is not
 * opening any more; -ENOTCONN: it has failed. */
static int begin_anew(struct tsock *t, int fd)
{
	struct user_name peer = { t->key.remote, t->key.remote_port };
	bool was_deferred = atomic_load(&t->is_deferred);
	int err;

	if (!stop_opening(t))
		return -EAGAIN;
	/* the program may know its name already */
	tsock_unguard_bound(t, fd);
	/* the program believes to be connected and will write first */
	if (was_deferred && atomic_load(&t->opens_fast))
		(void)!tsock_set_twin_fast(fd, true);
	sock_detach(&t->sock);
	err = begin_connect(t, fd, &peer);
	if (err) {
		fail_anew(t, err);
		return -ENOTCONN;
	}
	tsock_stamps_moved(t, fd);
	tsock_lock(t);
	/* answers to the SYN that was dropped */
	pkt_put_list(&t->held);
	is_theirs(t);
	tsock_unlock(t);
	return 0;
}

/* 0: it stands still, and the error is the twin's to say. */
static int stop_failed(struct tsock *t, int *error_out)
{
	int err = -ENOTCONN;

	tsock_lock(t);
	if (!t->was_open && !t->is_orphan &&
	    (!t->pcb || tcp_state(t->pcb) == TCPS_CLOSED)) {
		list_push_back(&t->engine->moving, &t->moving);
		*error_out = t->error;
		t->error = 0;
		err = 0;
	}
	tsock_unlock(t);
	return err;
}

/* False: somebody does not let it end, and it fails in another way. */
static bool await_refusal(int fd)
{
	for (uint64_t ns = 0; ns < ANSWER_NS && !tcp_twin_is_closed(fd); ns += ANSWER_NAP_NS)
		inside_nap(ANSWER_NAP_NS);
	return tcp_twin_is_closed(fd);
}

/* Nobody listens on port 0. The kernel refuses it as it would refuse any, and the socket is
 * one whose connection has failed; why it has, only a refusal can say. */
static int refuse_twin(const struct tsock *t, int fd, int error)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	const struct user_name loopback = { ip_addr_from_v4(htobe32(INADDR_LOOPBACK)), 0 };
	int err = begin_connect(t, fd, &loopback), said;
	socklen_t len = sizeof(said);

	if (err)
		return err;
	if (!await_refusal(fd))
		(void)!real.connect(fd, &nobody, sizeof(nobody));
	if (!error)
		(void)!real.getsockopt(fd, SOL_SOCKET, SO_ERROR, &said, &len);
	return 0;
}

/* What has never been open, and has failed: who asks the twin must not believe that it is
 * connected, since it can be written and SO_ERROR says nothing. */
static int move_failed(struct tsock *t, int fd)
{
	int error, err = tsocks_shall_stay() ? -EOPNOTSUPP : stop_failed(t, &error);

	if (err)
		return err;
	tsock_unguard(t, fd);
	sock_detach(&t->sock);
	err = refuse_twin(t, fd, error);
	end_ended(t, err, error);
	if (err)
		log_dbg("fd %d: that the connection has failed the kernel cannot say: %s", fd,
			strerror(-err));
	return err;
}

/* -- two ends in one process ---------------------------------------------------------------- */

/* What is under way arrives, and is acknowledged; `b` is the other end, or NULL. Under the
 * lock. */
NO_LOCK_ANALYSIS static void settle(struct tsock *a, struct tsock *b) /* two names of one lock */
{
	struct stack *stack = a->engine->stack;
	uint64_t now = tsock_now(a);

	for (int i = 0; i < 4; i++) {
		if (a->pcb)
			tcp_set_quick_ack(a->pcb, true, now);
		if (b && b->pcb)
			tcp_set_quick_ack(b->pcb, true, now);
		stack_drain_locked(stack);
		tcp_engine_due_locked(a->engine);
		stack_run_engines_locked(stack);
	}
}

NO_LOCK_ANALYSIS static int freeze_pair(struct move *m, struct tsock *b) /* two names of one lock */
{
	struct move other = { .t = b, .since_ns = m->since_ns };
	int err;

	tsock_lock(m->t);
	settle(m->t, b);
	err = freeze(m);
	if (!err) {
		err = freeze(&other);
		if (err)
			thaw(m->t);
	}
	tsock_unlock(m->t);
	return err;
}

NO_LOCK_ANALYSIS static void end_pair(struct tsock *a, struct tsock *b, int err) /* two names of one lock */
{
	tsock_lock(a);
	/* What they have said meanwhile, or before, they say again. Of what is still under way
	 * later, the engine would say that it knows no such connection. */
	stack_drain_locked(a->engine->stack);
	tsock_run_locked(a);
	pkt_put_list(&a->held);
	pkt_put_list(&b->held);
	if (err) {
		thaw(a);
		thaw(b);
	} else {
		let_go(a);
		let_go(b);
	}
	tsock_unlock(a);
}

/* The local device of tests: its frames never pass the kernel, so both twins have to be
 * ready before either speaks. */
static int move_pair(struct move *m, int fd, struct tsock *b)
{
	struct tsock *a = m->t;
	struct tcp_twin_socket own_twin = tsock_twin(a, fd), twin = tsock_twin(b, tsock_fd(b));
	struct tcp_twin ours, theirs;
	int err = freeze_pair(m, b);

	if (err)
		return err;
	tsock_stamps_before_move(b, tsock_fd(b));
	err = tcp_twin_begin(&ours, &own_twin, a->pcb, true, tsock_ask_now(a));
	if (err)
		goto out;
	err = tcp_twin_begin(&theirs, &twin, b->pcb, true, tsock_ask_now(b));
	if (err) {
		tcp_twin_undo(&ours);
		goto out;
	}
	tsock_stamps_number_twin(a, fd);
	tsock_stamps_number_twin(b, tsock_fd(b));
	err = tcp_twin_hear(&ours);
	if (!err)
		err = tcp_twin_hear(&theirs);
	if (!err)
		err = tcp_twin_end(&ours);
	if (!err)
		err = tcp_twin_end(&theirs);
	if (!err) {
		shut_twin_for_reading(a, fd);
		shut_twin_for_reading(b, tsock_fd(b));
	}
out:
	end_pair(a, b, err);
	if (!err) {
		tsock_stamps_moved(b, tsock_fd(b));
		tsock_give_up(b);
		tsock_is_kernels(b, tsock_fd(b), REASON_LOCAL, STATS_BY_FORK, "");
	}
	return err;
}

/* The other end of the connection, if it is ours, too. */
static struct tsock *find_pair(struct tsock *t)
{
	struct flow_key key = {
		.local = t->key.remote,
		.remote = t->key.local,
		.local_port = t->key.remote_port,
		.remote_port = t->key.local_port,
	};
	struct tcp_user *user = NULL;
	struct tcp_pcb *pcb;

	if (!sock_params.listens_early)
		return NULL;
	tsock_lock(t);
	pcb = tcp_find(t->engine->table, &key);
	if (pcb)
		user = tcp_user(pcb);
	tsock_unlock(t);
	return user && !user->is_port ? CONTAINER_OF(user, struct tsock, user) :
					NULL;
}

static enum tcp_state state_of(struct tsock *t)
{
	enum tcp_state state;

	tsock_lock(t);
	tsock_poll_locked(t);
	/* the last word of one that is in TIME_WAIT already would never reach a twin */
	if (sock_params.listens_early)
		settle(t, NULL);
	state = t->pcb ? tcp_state(t->pcb) : TCPS_CLOSED;
	tsock_unlock(t);
	return state;
}

static bool is_early(struct tsock *t)
{
	bool result;

	tsock_lock(t);
	result = t->pcb && tcp_is_early(t->pcb);
	tsock_unlock(t);
	return result;
}

/* The answer is still worth waiting for, until `early_end_ns` that of one that is early.
 * Another thread may move it meanwhile. */
static bool is_awaited(struct tsock *t, uint64_t early_end_ns)
{
	bool is_opening, has_early;
	uint64_t began_ns, now_ns;

	tsock_lock(t);
	if (t->pcb && (tsock_is_opening_state(tcp_state(t->pcb)) || tcp_is_early(t->pcb)))
		tsock_poll_locked(t);
	is_opening = t->pcb && tsock_is_opening_state(tcp_state(t->pcb));
	has_early = t->pcb && tcp_is_early(t->pcb);
	began_ns = t->began_ns;
	now_ns = tsock_now(t);
	tsock_unlock(t);
	return (is_opening && now_ns - began_ns < ANSWER_NS) ||
	       (has_early && now_ns < early_end_ns);
}

void tsock_await_answer(struct tsock *t)
{
	uint64_t early_end_ns = tsock_ask_now(t) + EARLY_ANSWER_NS;

	while (is_awaited(t, early_end_ns))
		inside_nap(ANSWER_NAP_NS);
}

static int move_open_one(struct tsock *t, int fd, uint64_t since_ns)
{
	struct move m = {
		.t = t,
		.gift = { .net = t->engine->stack->net, .key = &t->key },
		.fd = fd,
		.since_ns = since_ns,
	};
	struct tsock *pair = find_pair(t);
	int err;

	tsock_stamps_before_move(t, fd);
	err = pair ? move_pair(&m, fd, pair) : move_open(&m, fd);
	tcp_gift_end(&m.gift);
	if (!err)
		tsock_stamps_moved(t, fd);
	return err;
}

static _Atomic bool has_stayed;

bool tsocks_have_stayed(void)
{
	return atomic_load(&has_stayed);
}

static bool is_open(const struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	return t->pcb && !tsock_is_opening_state(tcp_state(t->pcb)) &&
	       !tsock_is_ended_state(tcp_state(t->pcb));
}

/* What the peer says before the connection stands still the kernel needs not be told by
 * frames, of which each is a call that takes longer than all others together. And what waits
 * to be sent the kernel sends. A peer on the same machine has answered when the lock is taken
 * again. */
static void calm(struct tsock *t)
{
	bool has_asked = false;

	tsock_lock(t);
	if (is_open(t)) {
		tcp_calm(t->pcb);
		tsock_poll_locked(t);
	}
	if (is_open(t))
		has_asked = tcp_ask(t->pcb, tsock_now(t));
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
	if (!has_asked)
		return;
	tsock_lock(t);
	tsock_poll_locked(t);
	tsock_unlock(t);
}

/* It could not go back. */
static COLD void excite(struct tsock *t)
{
	tsock_lock(t);
	if (is_open(t))
		tcp_thaw(t->pcb, tsock_now(t));
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
}

/* What was sent since then needs not be sent again. */
static int go_back(struct tsock *t, int fd, uint64_t since_ns)
{
	enum tcp_state state;
	int err = -EAGAIN;

	/* what nobody has answered yet is no connection */
	do {
		state = state_of(t);
		if (is_early(t))
			return -EAGAIN;
		if (tsock_is_opening_state(state))
			err = begin_anew(t, fd);
		if (err == -ENOTCONN)
			return err;
	} while (err && tsock_is_opening_state(state));
	if (tsock_is_ended_state(state)) {
		tsock_show_keepalive(t, fd);
		err = move_ended(t, fd);
		if (err == -ENOTCONN)
			err = move_failed(t, fd);
		if (err) {
			tsock_unguard(t, fd);
			return -ENOTCONN;
		}
		tsock_guard_is_over(t);
		tsock_give_up(t);
		return 0;
	}
	if (err && tsocks_shall_stay())
		return -EOPNOTSUPP;
	if (err) {
		tsock_show_keepalive(t, fd);
		err = move_open_one(t, fd, since_ns);
	}
	/* one that could not begin to take over holds the port as the guard that it is */
	if (err && tcp_twin_is_guard(fd)) {
		tsock_hide_keepalive(t, fd);
		return err;
	}
	tsock_guard_is_over(t);
	if (!err)
		tsock_give_up(t);
	else
		tsock_guard(t, fd, false);
	return err;
}

int tsock_go_back(struct tsock *t, int fd)
{
	uint64_t since_ns = tsock_ask_now(t);
	int err;

	if (fd < 0)
		return -EBADF;
	/* both ends of the local device of tests have to agree first */
	if (!sock_params.listens_early)
		calm(t);
	err = go_back(t, fd, since_ns);
	if (err && !sock_params.listens_early)
		excite(t);
	return err;
}

int tsock_orphan_goes_back(struct tsock *t)
{
	int fd = tsock_fd(t), fresh = -1, err;

	if (fd < 0)
		fd = fresh = real.socket(t->sock.domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (fresh >= 0)
		fd_table_forget(fresh);
	err = tsock_go_back(t, fd);
	/* the kernel needs no fd to go on with it */
	if (fresh >= 0)
		inside_close(fresh);
	return err;
}

/* -- who wants it -------------------------------------------------------------------------- */

static void leave_ours(struct tsock *t, int fd, enum reason reason,
		       enum stats_decider decider)
{
	int err = tsock_go_back(t, fd);

	if (err == -ENOTCONN)
		return;
	if (!err) {
		tsock_is_kernels(t, fd, reason, decider, "");
		return;
	}
	atomic_store(&has_stayed, true);
	if (tsocks_shall_stay())
		LOG_ONCE(LOG_LEVEL_WARNING, "fd %d: VMA_WAY_BACK=off keeps a connection that the kernel should have: %s",
			 fd, reason_why(reason));
	else
		log_warn("fd %d: the connection cannot go back to the kernel (%s), which should have it: %s",
			 fd, strerror(-err), reason_why(reason));
}

bool tsock_stays(struct fd_object *obj)
{
	struct tsock *t = tsock_of(obj);
	bool result;

	if (!tsock_lock_ours(t))
		return false;
	result = t->pcb && !tsock_is_ended_state(tcp_state(t->pcb));
	tsock_unlock(t);
	return result;
}

int tsock_leave_for(struct tsock *t, int fd, enum reason reason,
		    enum stats_decider decider, const char *what, int number)
{
	int err = sock_leave_for(&t->sock, fd, reason, decider, what, number);

	return !err && tsock_stays(&t->sock.obj) ? -EOPNOTSUPP : err;
}

void tsock_leave_by(struct tsock *t, int fd, enum reason reason, enum stats_decider decider)
{
	mutex_acquire(&t->sock.config);
	switch (tsock_phase(t)) {
	case TSOCK_OURS:
		leave_ours(t, fd, reason, decider);
		break;
	case TSOCK_LISTENER:
		t->is_lending = false;
		tsock_leave_listening(t, fd, reason, decider);
		break;
	case TSOCK_LISTENING:
	case TSOCK_FRESH:
		tsock_is_kernels(t, fd, reason, decider, "");
		break;
	case TSOCK_KERNELS:
		break;
	}
	mutex_release(&t->sock.config);
}

/* The number that the caller has may be another file's by now, which is not to become the
 * connection. A duplicate may keep it alive. False: it is being closed. */
static bool begin_leaving(struct fd_visit *visit, struct tsock *t, int *fd)
{
	if (fd_visit_begin(visit, *fd, &t->sock.obj))
		return true;
	*fd = tsock_own_number(t);
	return *fd >= 0 && fd_visit_begin(visit, *fd, &t->sock.obj);
}

void tsock_leave(struct fd_object *obj, int fd, enum reason reason,
		 enum stats_decider decider)
{
	struct tsock *t = tsock_of(obj);
	struct fd_visit visit;

	if (tsock_phase(t) == TSOCK_OURS)
		tsock_await_answer(t);
	if (!begin_leaving(&visit, t, &fd))
		return;
	tsock_leave_by(t, fd, reason, decider);
	fd_visit_end(&visit);
}

/* -- all of them ----------------------------------------------------------------------------- */

static bool leave_for_fork(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	/* a fresh one the child may use as it is */
	if (tsock_phase(t) == TSOCK_OURS)
		tsock_leave(obj, fd, REASON_FORKS, STATS_BY_FORK);
	return false;
}

static bool unlisten_for_fork(struct fd_object *obj, int fd)
{
	if (tsock_phase(tsock_of(obj)) != TSOCK_FRESH ||
	    tsock_is_watched(tsock_of(obj)))
		tsock_leave(obj, fd, REASON_FORKS, STATS_BY_FORK);
	return false;
}

/* Connections first: they live by the rule of their listener. */
void tsocks_before_fork(bool is_shared)
{
	if (!tsocks_exist())
		return;
	if (is_shared) {
		tsocks_lend_listeners();
		return;
	}
	fd_visit(&tsock_ops, leave_for_fork);
	fd_visit(&tsock_ops, unlisten_for_fork);
}

/* The program that is started may know the number of what it inherits. */
static bool leave_if_inherited(struct fd_object *obj, int fd)
{
	if (tsock_phase(tsock_of(obj)) != TSOCK_FRESH && file_is_inherited(fd))
		tsock_leave(obj, fd, REASON_FORKS, STATS_BY_FORK);
	return false;
}

void tsocks_before_spawn(void)
{
	fd_visit(&tsock_ops, leave_if_inherited);
}

static void leave_orphans(struct tcp_engine *engine, void *ctx UNUSED)
{
	struct list stayed = LIST_INIT(stayed), *link;
	struct tsock *t;
	int err;

	for (;;) {
		stack_lock(engine->stack);
		link = engine->orphans.next;
		t = LIST_ENTRY(link, struct tsock, orphan);
		if (link != &engine->orphans) {
			/* its end, seen by our thread, would free it */
			fd_object_hold(&t->sock.obj);
			tsock_is_no_orphan(t);
		}
		stack_unlock(engine->stack);
		if (link == &engine->orphans)
			break;
		tsock_await_answer(t);
		mutex_acquire(&t->sock.config);
		err = tsock_orphan_goes_back(t);
		mutex_release(&t->sock.config);
		stack_lock(engine->stack);
		if (err && err != -ENOTCONN && t->pcb) {
			atomic_store(&has_stayed, true);
			list_push_back(&stayed, &t->orphan);
			atomic_fetch_add_explicit(&engine->orphan_cnt, 1,
						  memory_order_relaxed);
		}
		stack_unlock(engine->stack);
		if (!err)
			tsock_orphan_is_over(t);
		fd_object_put(&t->sock.obj);
	}
	stack_lock(engine->stack);
	list_splice_back(&engine->orphans, &stayed);
	stack_unlock(engine->stack);
}

void tsocks_leave_orphans(void)
{
	tcp_engines_visit(leave_orphans, NULL);
}

/* -- rights ------------------------------------------------------------------------------ */

static _Atomic bool has_no_rights;

bool tsocks_may_go_back(void)
{
	return !atomic_load_explicit(&has_no_rights, memory_order_relaxed) ||
	       tcp_right_is_kept() || tsocks_shall_stay();
}

void tsocks_rights_changed(bool may_go_back)
{
	atomic_store(&has_no_rights, !may_go_back);
}

/* One that has not decided yet does so later, and then finds that the right is gone. */
static bool leave_connection(struct fd_object *obj, int fd)
{
	if (tsock_phase(tsock_of(obj)) == TSOCK_OURS)
		tsock_leave(obj, fd, REASON_NO_WAY_BACK, STATS_BY_RIGHTS);
	return false;
}

static bool leave_listener(struct fd_object *obj, int fd)
{
	if (tsock_phase(tsock_of(obj)) == TSOCK_LISTENER)
		tsock_leave(obj, fd, REASON_NO_WAY_BACK, STATS_BY_RIGHTS);
	return false;
}

/* No connection may begin meanwhile, so the flag is first. Connections live by the rule of
 * their listener. */
void tsocks_before_rights_go(void)
{
	if (tsocks_shall_stay() || (!tcp_twin_load_dropper() && tcp_right_keep()))
		return;
	tsocks_rights_changed(false);
	fd_visit(&tsock_ops, leave_connection);
	fd_visit(&tsock_ops, leave_listener);
	tsocks_leave_orphans();
}

/* Without a helper, what is ours goes back when the right goes. */
void tsocks_before_root_changes(void)
{
	if (!tsocks_shall_stay())
		(void)tcp_right_keep();
}
