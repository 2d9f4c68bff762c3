/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A TCP socket from the inside, shared by the files of this folder. */
#ifndef SOCK_TCP_TSOCK_PRIV_H
#define SOCK_TCP_TSOCK_PRIV_H

#include <sys/uio.h>

#include "fd/fd_quick.h"
#include "fd/fd_visit.h"
#include "fd/fd_wait.h"
#include "sock/sock_wait.h"
#include "sock/tcp/tcp_engine.h"
#include "sock/tcp/tcp_sysctl.h"
#include "sock/tcp/tsock.h"
#include "sock/tx_stamps.h"
#include "sock/user_msg.h"

/* Whose the socket is. It only moves on. */
enum tsock_phase {
	/* nobody's yet: the twin does what little there is to do */
	TSOCK_FRESH,
	/* the twin listens, and we may join it */
	TSOCK_LISTENING,
	/* we listen beside the twin */
	TSOCK_LISTENER,
	/* a connection of ours, be it under way, open or dead */
	TSOCK_OURS,
	/* the kernel's for good */
	TSOCK_KERNELS,
};

/*
 * A port on which one of our sockets listens, or has listened: connections that were
 * accepted live on by its rule when the listener is closed.
 */
struct tcp_port {
	struct tcp_user user;
	/* what the demultiplexer finds */
	struct endpoint end;
	struct tcp_engine *engine; /* fixed */
	/* the control mutex */
	struct attachment att;
	struct stats_handle stats;
	/* A duplicate of the listener's twin, which keeps the port when the listener
	 * is closed; -1: it is not closed yet. */
	_Atomic int twin_fd;

	/* the stack's lock */
	struct list link; /* of all ports of the stack */
	struct tcp_pcb *pcb; /* that listens; NULL: not any more */
	struct tsock *listener; /* the same */
	/* the listener, and each accepted connection */
	unsigned refs;
	/* connections of the twin that have an exception from the rule */
	uint32_t exception_cnt;
	/* of tcp_engine.lend_round: when it had its turn last */
	unsigned lend_round;
	/* SYNs in this second (sock_tcp_params.syn_rate) */
	uint32_t syn_cnt;
	uint64_t syn_second;
	struct list tidy;
	/* the kernel listens on it, and we do not any more, or until nobody waits to be
	 * accepted */
	bool is_kernels;
	/* what its connections' ways depend on */
	struct dst_query query;
};

/* The headers of the SYN that opened a connection, as they came. */
struct tsock_saved_syn {
	uint32_t len;
	uint8_t bytes[TCP_SAVED_SYN_MAX];
};

/* Stamps of what is written (tsock_stamps.c). */
struct tsock_stamps {
	struct tx_stamps own;

	/* the stack's lock */
	/* bytes that are under way, in their order */
	struct list followed;
	/* the place of the byte with number 0 */
	uint32_t first;
	/* what records may take */
	uint32_t rcv_buf;
	/* Of one that has gone back: what the kernel's numbers are short of. */
	uint32_t by_us;
};

struct tsock {
	struct sock sock;
	struct tcp_user user;

	/* enum tsock_phase; changes with `config` and the stack's lock */
	_Atomic int phase;
	/* two writers, whose calls shall not be mixed */
	struct mutex writer;
	/* one of them, who has the mutex, takes the stack's lock several times */
	_Atomic bool is_writing;
	/* Fixed once the phase is one of ours. */
	struct tcp_engine *engine;
	/* a duplicate of the twin: of a closed socket, and of one of the kernel's or that
	 * listens for the calls that wait; -1 */
	_Atomic int twin_fd;
	/* the latter: tsock_keep_twin(). With `config` */
	bool is_twin_kept;
	/* Calls that wait, or have waited. */
	_Atomic int waiting_cnt;
	/* A number under which the program has used it; it may be another's now. */
	_Atomic int seen_fd;
	/* The program has set TCP_CONGESTION. With `config`. */
	bool has_chosen_cc;
	/* SO_LINGER at the last close; -1: off */
	int linger_s;
	/* of listen(), as the kernel has taken it */
	_Atomic int backlog;
	/* SO_RCVLOWAT */
	_Atomic int rcv_lowat;

	/* the stack's lock */
	struct tcp_pcb *pcb;
	/* of the connection; it stays when that is gone */
	struct flow_key key;
	struct tcp_way *way;
	struct list by_way;
	struct tcp_port *port; /* of an accepted connection, or of a listener */
	/* why a listener goes back to the kernel when nobody waits for it any more, and who
	 * wants that; REASON_NONE */
	_Atomic int leaves_for;
	_Atomic int leaves_by; /* enum stats_decider */
	/* `config`: it does so for the time in which a child has it, too */
	bool is_lending;
	/* `config`: when it joined its twin; how often in a row it has left it for a child
	 * soon after it had accepted something */
	uint64_t joined_ns;
	unsigned short_stays;
	/* calls that accept in the kernel while it is lent; a call that is cancelled or jumped
	 * out of there stays counted. Grows with `config`. */
	_Atomic unsigned kernel_accept_cnt;
	/* since it joined */
	_Atomic bool has_accepted;
	/* the program has called accept() */
	_Atomic bool accepts;
	/* what keeps a receive from just taking what comes */
	union {
		struct {
			/* what SO_ERROR says, a negative errno or 0; said once */
			int error;
			bool is_shut_rd;
			/* SO_RCVLOWAT is more than one byte */
			bool has_lowat;
			uint16_t zero; /* no byte of the word is left out */
		};
		/* not 0: one of these is not 0 */
		uint64_t is_rx_odd;
	};
	/* READY_ERR while there are records of what was sent */
	uint32_t has_record;
	struct tsock_stamps stamps;
	/* connect() has not said yet what has become of it */
	bool is_connecting;
	/* It was shut down after its connection had failed, and before a call had told why:
	 * as on Linux no other one begins until it is disconnected. */
	bool is_disconnecting;
	/* connect() has given it its names, and its SYN leaves with the first bytes
	 * (TCP_FASTOPEN_CONNECT); written under the lock */
	_Atomic bool is_deferred;
	/* when its SYN was sent first */
	uint64_t began_ns;
	/* the connection was open once */
	bool was_open;
	bool is_shut_wr;
	/* what had been received when it was shut down both ways */
	uint32_t shut_at;
	/* somebody has found no room to write */
	bool wants_room;
	/* the socket is closed, and its conversation goes on; it has its reference to itself */
	bool is_orphan, keeps_itself;
	/* why it is about to go back to the kernel: no ring leads to the peer any more, or
	 * the peer's segments do not come by ours; or REASON_NONE */
	enum reason lost_way;
	/* when it tried that last; 0: never */
	uint64_t tried_ns;
	/* `config`: it may have other options than a fresh socket, SO_LINGER among them;
	 * `heritage` is what accepted sockets get from it (tsock_accept.c), and is known. */
	bool has_options, may_linger, knows_heritage;
	/* the twin may have a name: nobody gives it one before its first connect() but by
	 * bind() or listen(), or another process that has it */
	_Atomic bool may_have_name;
	struct tsock_heritage *heritage;
	/* `config`, or there is one thread: what TCP_SAVED_SYN tells once, whoever has the
	 * connection by then; or NULL. A child has a copy of its own. */
	struct tsock_saved_syn *saved_syn;
	/* `config`: it listens and shares its port; else NULL (tsock_share.h) */
	struct tsock_sharer *sharer;
	/* `config`: the twin is its guard, and tcp_twin_socket.is_bound */
	bool is_guarded, is_guard_bound;
	/* `config`: it may have SO_KEEPALIVE; tcp_twin_socket.reuse_addr */
	bool may_keep_alive;
	int8_t reuse_addr;
	/* The program has set TCP_FASTOPEN_CONNECT; a guard must not have it. */
	_Atomic bool opens_fast;
	/* the program has set SO_KEEPALIVE; a guard must not have it */
	_Atomic bool hides_keepalive;
	/* TCP_INQ */
	_Atomic bool tells_inq;
	/* what is told of what is received: a set of enum user_stamp */
	_Atomic uint32_t stamps_in;
	/* what the guard had dropped when it was asked last */
	uint32_t guard_drops;
	/* the stack's lock */
	struct list by_guard;
	bool is_gone;
	/* SIGURG is due */
	bool has_signal;
	/* in engine->orphans; in engine->untidy or stayed */
	struct list orphan, tidy;
	/* in engine->shown; the round in which its figures were published, and what
	 * was told of retransmissions */
	struct list shown;
	uint32_t show_round;
	uint64_t told_retransmitted;
	/* in engine->starved: it has room, but all packets that there may be are taken */
	struct list starved;
	/* in engine->moving, and the packets that came meanwhile */
	struct list moving, held;
	/* Who was forked later has it, too (kin.h). Fixed. */
	uint64_t fork_cnt;
	/* in the child of a fork: who stands in its place */
	struct fd_object *heir;
};

extern struct fd_ops tsock_ops;

static inline struct tsock *tsock_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct tsock, sock.obj);
}

static inline struct tsock *tsock_of_sock(struct sock *s)
{
	return CONTAINER_OF(s, struct tsock, sock);
}

static inline enum tsock_phase tsock_phase(const struct tsock *t)
{
	return (enum tsock_phase)atomic_load_explicit(&t->phase,
						      memory_order_acquire);
}

static inline bool tsock_is_ours(const struct tsock *t)
{
	return LIKELY(tsock_phase(t) == TSOCK_OURS);
}

/* Locks the stack of a socket that is ours or listens; it stays in it. */
static inline void tsock_lock(struct tsock *t) ACQUIRES(t->engine->stack->lock)
{
	stack_lock(t->engine->stack);
	stack_settle_locked(t->engine->stack);
}

static inline void tsock_unlock(struct tsock *t) RELEASES(t->engine->stack->lock)
{
	stack_unlock(t->engine->stack);
}

/* Who has seen that it is ours has to look again once he has the lock, where it cannot
 * leave: without a pcb it would seem closed. False, and not locked: it has left. */
static inline bool tsock_lock_ours(struct tsock *t)
	TRY_ACQUIRES(true, t->engine->stack->lock)
{
	if (!tsock_is_ours(t))
		return false;
	tsock_lock(t);
	if (tsock_is_ours(t))
		return true;
	tsock_unlock(t);
	return false;
}

static inline bool tsock_tells_stamps(const struct tsock *t)
{
	return UNLIKELY(atomic_load_explicit(&t->stamps_in, memory_order_relaxed));
}

/* Not open yet. Two ends that connect to each other at once are in SYN_RCVD, too. */
static inline bool tsock_is_opening_state(enum tcp_state state)
{
	return state == TCPS_SYN_SENT || state == TCPS_SYN_RCVD;
}

/* The peer has nothing to hear any more. */
static inline bool tsock_is_ended_state(enum tcp_state state)
{
	return state == TCPS_CLOSED || state == TCPS_TIME_WAIT;
}

/* It stands still while it goes back to the kernel: the mover reads the engine's queues
 * without the lock, so that nobody takes from them or adds to them. Under the lock. */
static inline bool tsock_is_moving(const struct tsock *t)
{
	return UNLIKELY(list_is_linked(&t->moving));
}

/* Returns when the move is over; the mover has `config`. Without a lock. */
static inline void tsock_await_move(struct tsock *t)
{
	mutex_acquire(&t->sock.config);
	mutex_release(&t->sock.config);
}

static inline uint64_t tsock_now(const struct tsock *t)
	REQUIRES(t->engine->stack->lock)
{
	return tcp_engine_now(t->engine);
}

/* The same without the lock. */
static inline uint64_t tsock_ask_now(struct tsock *t)
{
	uint64_t now_ns;

	tsock_lock(t);
	now_ns = tsock_now(t);
	tsock_unlock(t);
	return now_ns;
}

/* -- tsock.c -- */

/* The object without a twin's name or stack, for an accepted connection as well. */
struct tsock *tsock_make(int fd, int domain, int type) MUST_CHECK;
/* The engine has something to say of its connection. Under the lock. */
void tsock_event(struct tsock *t, unsigned what);
/* Sets the ready word to what is so now, and tells the watches of `news`. Under the
 * lock. */
void tsock_update(struct tsock *t, uint32_t news);
/* Tells those that wait for a packet, if there is one. Under the lock. */
void tsocks_feed(struct tcp_engine *engine);
/* The socket's phase has changed, so that its word is another: who watches it looks
 * anew. `ready` is said of one for which nobody queues with us. With `config`, without the
 * lock. */
bool tsock_is_watched(struct tsock *t);
void tsock_tell_all(struct tsock *t, uint32_t ready);
/* The connection goes back to the kernel soon, or a while after it has tried in vain. Under
 * the lock. */
void tsock_lost_way_locked(struct tsock *t, enum reason why);
/* Takes a reference of the way. Under the lock. */
void tsock_set_way(struct tsock *t, struct tcp_way *way);
/* The error that is said once, or 0. Under the lock. */
int tsock_take_error(struct tsock *t);
/* The socket is the kernel's from now on: `reason` in the statistics. With `config`. */
void tsock_is_kernels(struct tsock *t, int fd, enum reason reason,
		      enum stats_decider decider, const char *detail);
/* What its destinations depend on: the settings of the twin. */
void tsock_read_query(const struct tsock *t, int fd, struct dst_query *out);
void tsocks_tidy(struct stack_engine *base, struct stack *stack);
/* Soon, or, what an orphan has left, perhaps with others. Under the lock. */
void tsock_tidy_later(struct tsock *t);
/* The same for one that is to go back to the kernel. */
void tsock_leave_later(struct tsock *t);
void tsock_tidy_what_is_left(struct tsock *t);
/* One that is about to go back to the kernel does so. */
void tsock_go_after_way(struct tsock *t);
/* The twin of one that the program has closed is about to be closed, too: if it is in
 * TIME_WAIT, the kernel waits from now on. With `config`. */
void tsock_waiting_leaves(struct tsock *t);
/* So it does for all that are in TIME_WAIT; the program ends. */
void tsocks_waiting_leave(struct tcp_engine *engine, void *ctx);
/* What could wait for that has waited long enough. */
void tsocks_lose_patience(struct timer *patience, uint64_t now_ns);
void tsocks_try_again(struct timer *again, uint64_t now_ns);
/* The twin's number: that of a closed socket, or one that names it now; -1: there is
 * none. */
int tsock_fd(struct tsock *t);
/* One of the program's, or -1. */
int tsock_own_number(struct tsock *t);
void tcp_ports_tidy(struct tcp_engine *engine);
/* Its conversation is over, or the kernel's. Under the lock. */
void tsock_is_no_orphan(struct tsock *t);
/* Calls `each` for it with a number that names it, and whose close waits for that, if it is
 * the last one; perhaps once more with another number, and not if none names it any more.
 * Without a lock. */
void tsock_visit(struct tsock *t, bool (*each)(struct fd_object *obj, int fd));
/* Gives up the reference that an orphan has to itself. By who has another one, without a
 * lock. */
void tsock_orphan_is_over(struct tsock *t);
/* Ends what is left of a connection: rule, twin, way. Without a lock. */
void tsock_give_up(struct tsock *t);

/* -- tsock_wait.c -- */

/* How to look: a result, or -EAGAIN. Without the lock. */
struct tsock_wait;
typedef long tsock_look_fn(struct tsock_wait *w);
/* Whether to look before it sleeps. With the lock. */
typedef bool tsock_is_due_fn(const struct tsock_wait *w);
struct tsock_wait {
	struct sock_wait wait;
	struct tsock *t;
	int fd;
	tsock_look_fn *look;
	/* ready bits that end the wait; or who says whether there is news for it */
	uint32_t bits;
	tsock_is_due_fn *is_due;
	/* what the look works on */
	void *ctx;
	/* this look is one of those that also ask the kernel */
	bool asks_twin;
	unsigned looks;
	struct pollfd fds[1 + WAIT_FDS_MAX];
};
/* When a wait ends that may take so long from now on; 0 is for ever, UINT64_MAX. As in Linux
 * all waits of a call take the time of one. */
uint64_t tsock_deadline(uint64_t timeout_ns);
/* Waits after a look that has found nothing, until then at most. `has_some`: the call would
 * have something to tell, so each handler ends it, with SA_RESTART, too. */
long tsock_wait(struct tsock *t, int fd, tsock_look_fn *look, void *ctx,
		uint32_t bits, uint64_t deadline_ns, bool has_some) MUST_CHECK;
/* The same; before it sleeps, with the lock, `is_due` says whether to look. */
long tsock_wait_till_due(struct tsock *t, int fd, tsock_look_fn *look, void *ctx,
			 tsock_is_due_fn *is_due, uint64_t deadline_ns,
			 bool has_some) MUST_CHECK;
/* The connection has become the kernel's under a call that has waited, or has a part of what it
 * wants. Its number may be another file's by now, so that the call must not go there. Begins to
 * use the twin, and returns a number of it, or -EBADF. */
int tsock_begin_twin(struct tsock *t, int fd, struct fd_visit *visit) MUST_CHECK;
void tsock_end_twin(int twin, struct fd_visit *visit);
/* The kernel has it, or it listens, and a call waits: there is a duplicate of this number for
 * it, `is_closed` or where the limit of fds leaves many. */
void tsock_keep_twin(struct tsock *t, int fd, bool is_closed);
/* `fd` is about to be closed, as the last one: there is a duplicate of it until the socket is
 * released. */
void tsock_keep_closed(struct tsock *t, int fd);
/* `fd` is about to be closed: as in Linux, calls that wait for what comes by the kernel go on. */
void tsock_waits_go_on(struct tsock *t, int fd);
/* Where a call that has begun with `fd` waits for who comes by the kernel: at a number that no
 * other file can have; -1: nowhere. */
int tsock_waits_at(const struct tsock *t, int fd);
/* A call that has been counted in waiting_cnt ends. */
void tsock_end_waiting(struct tsock *t);
/* Closes the duplicate, if there is one, whatever it was for. */
void tsock_drop_twin(struct tsock *t);
/* In the child of a fork. */
void tsock_waits_forked(void);
/* So many fds may be ours beside the program's. */
uint32_t tsock_twins_max(struct tcp_engine *engine, uint64_t now_ns) MUST_CHECK;
/* Waits for one of the events on the twin. 0: there is one; -EAGAIN: the time is over; -EINTR;
 * -EBADF; or FD_ABANDONED. */
long tsock_wait_for_twin(struct tsock *t, int fd, short events, uint64_t deadline_ns,
			 bool has_some) MUST_CHECK;
/* From now on it has something to tell. What ran before ends no call. */
void tsock_wait_has_some(struct tsock_wait *w);
/* Polls the rings, with the lock, and has the engine process what came. */
void tsock_poll_locked(struct tsock *t) REQUIRES(t->engine->stack->lock);
/* The latter, after a poll. */
void tsock_run_locked(struct tsock *t) REQUIRES(t->engine->stack->lock);

/* -- tsock_connect.c -- */
long tsock_connect(struct fd_object *obj, int fd, const struct sockaddr *addr,
		   socklen_t len);
/* The socket is as before connect(), but that its twin keeps the port, and `error` (0:
 * none) is still to be said. With `config`. */
void tsock_start_over(struct tsock *t, int error);
/* The error of one that is nobody's, which is said once; 0: none. */
int tsock_fresh_error(struct tsock *t);
/* Sets TCP_FASTOPEN_CONNECT of a twin that has no connection. A negative errno says that
 * the kernel does not allow it (-EOPNOTSUPP), or that it has one. */
int tsock_set_twin_fast(int fd, bool on);
/* A send with MSG_FASTOPEN: the connection's names, for a SYN that waits for its bytes
 * (tsock_open_deferred), or what has become of one before. FD_PASS: the kernel does it all. */
long tsock_connect_to_send(struct tsock *t, int fd, const struct sockaddr *addr,
			   socklen_t len, int flags);
/* Says what has become of a connection whose SYN this call has sent: as connect(). */
long tsock_opened_by_send(struct tsock *t, int fd, int flags);
/* Waits until a connection that is under way is open. 0, -EAGAIN, or its error. */
long tsock_await_open(struct tsock *t, int fd, uint64_t timeout_ns) MUST_CHECK;

/* -- tsock_accept.c -- */
long tsock_accept(struct fd_object *obj, int fd, struct sockaddr *addr,
		  socklen_t *len);
void tsock_passed(struct fd_object *obj, enum fd_traffic traffic, long result);
/* What it keeps of the SYN, and for those that it accepts. */
void tsock_forget_saved_syn(struct tsock *t);
void tsock_forget_heritage(struct tsock *t);
void tsock_accept_forked(void);
long tsock_accept4(struct fd_object *obj, int fd, struct sockaddr *addr,
		   socklen_t *len, int flags);

/* -- tsock_listen.c -- */
long tsock_listen(struct fd_object *obj, int fd, int backlog);
void tcp_port_event(struct tcp_port *port, unsigned what);
/* The port that a SYN with this key is for, or NULL. Under the lock. */
struct tcp_port *tcp_port_find(struct tcp_engine *engine,
			       const struct flow_key *key);
/* What the way of an answer depends on. `port` may be NULL. Under the lock. */
struct dst_query tcp_port_query(const struct tcp_engine *engine,
				const struct tcp_port *port,
				const struct flow_key *key);
/* Whether a segment that none of our connections knows may be the kernel's. */
bool tcp_port_lets_pass(struct tcp_engine *engine, const struct flow_key *key,
			uint8_t flags);
/* Gives the kernel the segments that are its. Without the lock. */
void tcp_foreign_give(struct tcp_engine *engine);
/* Drops a reference; the last one goes to `tidy`. Under the lock. */
void tcp_port_put(struct tcp_port *port);
/* The listener is closed, when `twin_fd` is its twin, or leaves. */
void tsock_stop_listening(struct tsock *t, bool is_closed);
/* A socket that listens, here or by its twin, is a fresh one again. With `config`. */
void tsock_end_listening(struct tsock *t);
/* The kernel listens alone. Who has come to us before and cannot be handed over is accepted
 * first: the listener goes back when nobody of them is left. With `config`. */
void tsock_leave_listening(struct tsock *t, int fd, enum reason reason,
			   enum stats_decider decider);
/* Gives the kernel's listener, which listens beside ours, those that nobody has accepted, as
 * far as this kernel can take them. With `config`. */
void tsock_hand_over(struct tsock *t, int fd);
/* For one that is to leave, once nobody is left who has come to us. */
void tsock_leave_when_empty(struct tsock *t, int fd);
/* Tells who waits whether somebody can be accepted. Under the lock. */
void tsock_update_listener(struct tsock *t, uint32_t news);
/* Who has come to us before and cannot be handed over is reset, and the listener goes back at
 * once. With `config`. */
void tsock_end_queue(struct tsock *t, int fd);
/* The same for all, as long as children of a fork that comes now live. Not by the fd table:
 * at a fork each socket that is visited costs a page of memory. */
void tsocks_lend_listeners(void);
/* Begins to listen beside the twin, if that is possible. With `config`. */
void tsock_join_listener(struct tsock *t, int fd);
/* The same by a visit, if it has not done so yet. */
bool tsock_join_visited(struct fd_object *obj, int fd);
/* Somebody waits for it. Without a lock. */
void tsock_wants_accept(struct tsock *t);
/* Who waits for it is the one who will accept. If not, it joins when somebody accepts. */
bool tsock_is_for_itself(const struct tsock *t);

/* -- tsock_stamps.c -- */
/* What is received has the time stamps that the socket wishes for. Without the lock. */
void tsock_take_stamps(struct tsock *t);
/* Whether only the kernel makes stamps with these flags of SO_TIMESTAMPING. Without the
 * lock. */
bool tsock_stamps_are_kernels(struct tsock *t, uint32_t flags);
/* Whether the ring has all stamps that the socket wishes for. */
bool tsock_stamps_fit(const struct tsock *t, const struct ring *ring);
/* SO_TIMESTAMPING of a connection of ours. The former with `config`; 0 or a negative
 * errno. */
int tsock_stamps_set(struct tsock *t, int fd, const void *value,
		     socklen_t len) MUST_CHECK;
long tsock_stamps_get(struct tsock *t, int fd, void *value, socklen_t *len);
/* The connection has a pcb. Under the lock. */
void tsock_stamps_apply(struct tsock *t);
/* A call's last byte was written, and nothing of that was pushed yet. Under the lock. */
void tsock_stamp_written(struct tsock *t, uint32_t stations)
	REQUIRES(t->engine->stack->lock);
/* The engine's word of a byte. Under the lock. */
void tsock_stamped(struct tsock *t, enum tcp_stamp station, uint32_t byte);
/* A call with MSG_ERRQUEUE. */
long tsock_receive_record(struct tsock *t, int fd, struct msghdr *msg, int flags);
/* A move: before it; while the twin has the connection and hears nothing; when it is over.
 * With `config`. */
void tsock_stamps_before_move(struct tsock *t, int fd);
void tsock_stamps_number_twin(struct tsock *t, int fd);
void tsock_stamps_moved(struct tsock *t, int fd);
/* Of `len` bytes from this place on: as many as end with the first one that is followed, and
 * where that is stamped; or all of them, and 0. While the connection stands still. */
uint32_t tsock_stamps_stretch(const struct tsock *t, uint32_t place, uint32_t len,
			      uint32_t *stations_out);
/* It is the kernel's now: whoever waits hears of records that are left. Without the lock. */
void tsock_stamps_tell(struct tsock *t);
/* Nothing of what was written is followed any more. Under the lock. */
void tsock_stamps_unfollow(struct tsock *t) REQUIRES(t->engine->stack->lock);
/* The same, and frees all records. */
void tsock_stamps_end(struct tsock *t) REQUIRES(t->engine->stack->lock);

/* -- tsock_stats.c -- */
/* Begins to publish the figures of a connection. Under the lock. */
void tsock_show(struct tsock *t);
/* Publishes them once more. Under the lock. */
void tsock_tell_figures(struct tsock *t);

/* -- tsock_options.c -- */
/* What the twin says of options that the engine follows. */
struct tsock_settings {
	struct tcp_settings tcp;
	bool nodelay, cork, keepalive, oob_inline;
	/* 0: not fixed */
	uint32_t rcv_buf, snd_buf;
	int rcv_lowat;
	uint64_t defer_accept_ns;
	/* of a listener */
	struct hash_key fast_keys[TCP_FASTOPEN_KEYS];
	unsigned fast_key_cnt;
	enum tcp_cc_algorithm cc;
	/* The twin's is BBR, which is ours if the program has chosen it, and not the
	 * system for all. */
	bool is_bbr;
	/* the algorithm is one that we do not have */
	bool is_cc_kernels;
};
/* What the user wishes for all new sockets. */
void tsock_first_options(int fd);
/* `out->tcp` has the values of the engine's pcb. */
void tsock_load_settings(const struct tsock *t, int fd, struct tsock_settings *out);
/* Gives them to a connection or listener of the engine. Under the lock. */
int tsock_apply_settings(struct tsock *t, struct tcp_pcb *pcb,
			 const struct tsock_settings *settings) MUST_CHECK;
void tsock_read_settings(struct sock *s, int fd);
long tsock_setsockopt(struct fd_object *obj, int fd, int level, int name,
		      const void *value, socklen_t len);
long tsock_getsockopt(struct fd_object *obj, int fd, int level, int name,
		      void *value, socklen_t *len);
long tsock_heir_option(struct fd_object *obj, int level, int name, void *value,
		       socklen_t *len);
long tsock_ioctl(struct fd_object *obj, int fd, unsigned long request,
		 void *arg);
long tsock_sockatmark(struct fd_object *obj, int fd);
long tsock_fcntl(struct fd_object *obj, int fd, int cmd, void *arg);

/* -- tsock_guard.c -- */
/* The twin guards the connection (tcp_twin_guard), until tsock_unguard. With `config`, or
 * before others know the socket. */
void tsock_guard(struct tsock *t, int fd, bool is_bound);
void tsock_unguard(struct tsock *t, int fd);
/* The same, and the twin stays bound to the connection's local end. */
void tsock_unguard_bound(struct tsock *t, int fd);
/* The two halves of tsock_guard, for a connection whose local end is not known yet: the
 * kernel chooses what the socket lacks of it, and the twin's name says what. 0 or a
 * negative errno. */
int tsock_choose_end(struct tsock *t, int fd, const struct flow_key *key,
		     bool is_bound) MUST_CHECK;
void tsock_is_guarded(struct tsock *t);
/* What is known of `fd`, which is the twin, or, of one without, a fresh socket in its place.
 * With `config`, or before others know the socket. */
struct tcp_twin_socket tsock_twin(const struct tsock *t, int fd);
/* Instead of the second. */
void tsock_give_end_up(struct tsock *t, int fd);
/* The twin is no guard any more, or about to be closed. */
void tsock_guard_is_over(struct tsock *t);
/* The twin's SO_KEEPALIVE was set, or is to be its own again. With `config`. */
void tsock_hide_keepalive(struct tsock *t, int fd);
void tsock_show_keepalive(struct tsock *t, int fd);

/* -- tsock_leave.c -- */
void tsock_leave(struct fd_object *obj, int fd, enum reason reason,
		 enum stats_decider decider);
/* The same for who closes the number, which names it no more. */
void tsock_leave_by(struct tsock *t, int fd, enum reason reason, enum stats_decider decider);
/* Before one goes back. A peer that is near answers soon. What it has opened cannot be begun
 * anew without its seeing a connection that dies, so a SYN that was sent a moment ago is waited
 * for. That takes seconds where a SYN has data, so it is without `config`: our thread, which
 * looks at guards with it, brings the news of the way to the peer meanwhile. */
void tsock_await_answer(struct tsock *t);
/* The connection goes back to the kernel as `fd`. 0: it has; a negative errno: it goes
 * on with us. With `config`. */
int tsock_go_back(struct tsock *t, int fd) MUST_CHECK;
/* The same for one whose socket is closed: as its twin, or, if that is gone, as a fresh
 * socket. */
int tsock_orphan_goes_back(struct tsock *t) MUST_CHECK;
/* Those that the program has closed, and that have not told all yet. */
void tsocks_leave_orphans(void);
/* VMA_WAY_BACK=off */
bool tsocks_shall_stay(void);
/* A connection could not go back, and has to be ended by us. */
bool tsocks_have_stayed(void);
/* Whether the process has the right that it takes, or needs none. */
bool tsocks_may_go_back(void);
/* The connection is ours still, though it was to leave. */
bool tsock_stays(struct fd_object *obj);
/* sock_leave_for; -EOPNOTSUPP if the connection stays all the same. */
int tsock_leave_for(struct tsock *t, int fd, enum reason reason,
		    enum stats_decider decider, const char *what,
		    int number) MUST_CHECK;

/* -- tsock_flush.c -- */
/* Delivers and ends what nobody goes on with. Without a lock. */
void tsocks_flush(void);

/* -- tsock_quick.c -- */
/* A short segment that is the next one in the stack's only ring, straight from there.
 * -EAGAIN: there is none, or something is unusual. The connection has a pcb, and no data
 * waits. Under the lock. */
long tsock_take_direct(struct tsock *t, struct stack *stack, void *buf,
		       size_t len) REQUIRES(stack->lock);
/* Whether a single frame in the ring makes a connection readable: endpoint.foresee, of a
 * socket's end and of a port's. */
struct endpoint *tsock_foresee(struct endpoint *end,
			       const struct ring_frame *segment);
struct endpoint *tsock_foresee_of_port(struct endpoint *end,
				       const struct ring_frame *segment);
ssize_t tsock_quick_recv(int fd, void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *obj);
ssize_t tsock_quick_send(int fd, const void *buf, size_t len, int flags,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *obj);

/* -- tsock_recv.c, tsock_send.c -- */
long tsock_read(struct fd_object *obj, int fd, void *buf, size_t len);
long tsock_readv(struct fd_object *obj, int fd, const struct iovec *iov,
		 int cnt);
long tsock_recv(struct fd_object *obj, int fd, void *buf, size_t len,
		int flags);
long tsock_recvfrom(struct fd_object *obj, int fd, void *buf, size_t len,
		    int flags, struct sockaddr *addr, socklen_t *addr_len);
long tsock_recvmsg(struct fd_object *obj, int fd, struct msghdr *msg,
		   int flags);
long tsock_recvmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		    unsigned int cnt, int flags, struct timespec *timeout);
long tsock_write(struct fd_object *obj, int fd, const void *buf, size_t len);
long tsock_writev(struct fd_object *obj, int fd, const struct iovec *iov,
		  int cnt);
long tsock_send(struct fd_object *obj, int fd, const void *buf, size_t len,
		int flags);
long tsock_sendto(struct fd_object *obj, int fd, const void *buf, size_t len,
		  int flags, const struct sockaddr *addr, socklen_t addr_len);
long tsock_sendmsg(struct fd_object *obj, int fd, const struct msghdr *msg,
		   int flags);
long tsock_sendmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		    unsigned int cnt, int flags);
long tsock_preadv2(struct fd_object *obj, int fd, const struct iovec *iov,
		   int cnt, off_t offset, int flags);
long tsock_pwritev2(struct fd_object *obj, int fd, const struct iovec *iov,
		    int cnt, off_t offset, int flags);
long tsock_splice(struct fd_object *obj, int fd, off64_t *offset, int fd2,
		  off64_t *offset2, size_t len, unsigned int flags);
long tsock_sendfile(struct fd_object *obj, int fd, int fd2, off_t *offset,
		    size_t len);
long tsock_sendfile64(struct fd_object *obj, int fd, int fd2, off64_t *offset,
		      size_t len);

#endif
