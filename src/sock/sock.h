/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all kinds of our sockets have in common. The program's fd is that of the
 * kernel's socket, the twin. The twin has port, address, options and errors. Beside
 * it, we receive what our flows bring, and send where our rings lead. The twin does
 * everything else: a call that an accelerated socket cannot serve is passed on, not
 * refused.
 *
 * A kind (sock/udp) begins its struct with this one, and fills a struct sock_kind
 * with what it adds. In its table of ops it uses the sock_ functions below where it
 * has nothing to add.
 */
#ifndef SOCK_SOCK_H
#define SOCK_SOCK_H

#include "fd/fd_ops.h"
#include "fd/fd_table.h"
#include "net/net.h"
#include "sock/user_msg.h"

/* The roles of libvma.conf that a socket can be in. */
enum sock_role {
	SOCK_UDP_RECEIVER,
	SOCK_UDP_SENDER,
	SOCK_UDP_CONNECT,
	SOCK_TCP_SERVER,
	SOCK_TCP_CLIENT,
};

/* The values of VMA_EXCEPTION_HANDLING; for sockets, -2 is the same as PASS. */
enum sock_exception_mode {
	SOCK_EXCEPTION_PASS = -1,
	SOCK_EXCEPTION_LEAVE = 0,
	SOCK_EXCEPTION_LEAVE_LOUDLY = 1,
	SOCK_EXCEPTION_REFUSE = 2,
	SOCK_EXCEPTION_ABORT = 3,
};

/* One end of a conversation. */
struct sock_end {
	struct ip_addr addr;
	__be16 port;
};

/* What the user wishes for all TCP sockets. */
struct sock_tcp_params {
	/* what TCP_NODELAY is for a new socket */
	bool nodelay;
	/* every segment is acknowledged at once */
	bool quickack;
	/* VMA_TCP_CC_ALGO; -1: not set, which is CUBIC here, and the system's there */
	int cc;
	/* 0: without, 1: with, 2: as the system has it */
	int timestamps;
	/* the largest segment; 0: what the path allows */
	uint16_t mss;
	/* the most connections that a port opens in a second; 0: no limit */
	uint32_t syn_rate;
	/* each send looks first at what has come */
	bool polls_on_send;
	/* tcp_params.merges_max */
	uint32_t merges_max;
};

/* Who has the right to give connections back (sock/tcp_right.h): the process; a helper
 * once the process gives it up; a helper from the first connection on; or nobody, since none
 * shall go back. */
enum sock_right_keeper {
	SOCK_RIGHT_SELF,
	SOCK_RIGHT_HELPER_IN_NEED,
	SOCK_RIGHT_HELPER_ALWAYS,
	SOCK_RIGHT_UNUSED,
};

/* What the sockets know of the rest of the library. Fixed after the start. */
struct sock_params {
	/* Returns the network, and starts it if it has not been started yet. NULL:
	 * there is none, for *reason_out. In the bracket. */
	struct net *(*net)(enum reason *reason_out);
	/* Returns the network if it has been started, else NULL. */
	struct net *(*net_if_made)(void);
	/* Whether a rule leaves a socket in this role to the kernel; `detail` is the
	 * text of the rule. Either end may be NULL. */
	bool (*is_kernel_by_rule)(enum sock_role role,
				  const struct sock_end *local,
				  const struct sock_end *remote,
				  char detail[STATS_DETAIL_SIZE]);
	/* There are rules for SOCK_UDP_SENDER. If not, the answer for this role is
	 * always no. */
	bool has_sender_rules;
	/* Has the twin_event op called whenever the twin becomes readable or has an
	 * error, until the twin is closed. */
	void (*watch_twin)(int fd, struct fd_object *obj);
	/* That is over. When the twin is closed after it, its port is free at once. */
	void (*forget_twin)(int fd);

	/* Finds a program that is installed beside the library. */
	bool (*find_program)(const char *name, char *path, size_t size);
	enum sock_right_keeper right_keeper;
	/* How long the process may take at its end for what nobody goes on with. */
	uint64_t exit_linger_ms;

	/* Called when there may be conversations that the kernel has to go on with if the
	 * process ends, by a signal, too. */
	void (*hold_conversations)(void);

	/* how often a blocking call polls before it sleeps; -1: it never sleeps */
	int rx_polls;
	/* we look at the twin once in so many polls; 0: only when is_twin_ready says
	 * so */
	unsigned os_ratio;
	bool does_yield;
	/* a call that polls sleeps while others want its processor */
	bool makes_room;
	/* the least room for received data that a socket has, in bytes */
	uint32_t rx_bytes_min;
	/* When there is no room to send, a non-blocking send says EAGAIN. Without
	 * this option it drops the datagram, as a network may do. */
	bool tx_eagain;
	enum sock_exception_mode exception_mode;
	/* TCP sockets may be ours; and a listener joins its twin at listen() already,
	 * for tests whose peer is the same thread */
	bool with_tcp, listens_early;
	struct sock_tcp_params tcp;
};
extern HIDDEN struct sock_params sock_params;

/* The settings of the twin that concern us. They are read from the twin after each
 * change. They are under the stack's lock, and are written with `config` as well. */
struct sock_settings {
	uint32_t wishes; /* what a receiver wants to be told: bits of the kind */
	uint32_t mark;
	uint32_t priority;
	int ifindex;
	uint8_t tos;
	uint8_t ttl;
	bool has_own_ttl;
	uint8_t df; /* enum dst_df */
	bool may_cut;
	bool is_mtu_of_link;
	bool is_on_link_only;
	/* SO_REUSEPORT */
	bool is_shared;
	/* SO_REUSEPORT or SO_REUSEADDR: other sockets may have the same port */
	bool may_share;
};

/* Flags of preadv2() and pwritev2() that change nothing for a socket, and RWF_NOWAIT. Whether
 * there are others, and what they do, is the kernel's to say. */
enum { SOCK_RWF_SERVED = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND | RWF_NOWAIT };

/* Why our rings bring nothing to a socket. */
enum sock_rx_hold {
	/* it is the kernel's for good */
	SOCK_RX_LEFT = 1 << 0,
	/* shut down */
	SOCK_RX_SHUT = 1 << 1,
	/* not attached */
	SOCK_RX_UNATTACHED = 1 << 2,
	/* nor will news of interfaces change that */
	SOCK_RX_REFUSED = 1 << 3,
	/* what was queued is on its way to the twin, for a moment */
	SOCK_RX_MOVING = 1 << 4,
	SOCK_RX_OVER = SOCK_RX_LEFT | SOCK_RX_SHUT,
};

/* Why the twin does all the sending. */
enum sock_tx_hold {
	/* it is the kernel's for good */
	SOCK_TX_LEFT = 1 << 0,
	/* shut down */
	SOCK_TX_SHUT = 1 << 1,
	SOCK_TX_OVER = SOCK_TX_LEFT | SOCK_TX_SHUT,
	/* it was never attached, so we do not know its names */
	SOCK_TX_UNNAMED = 1 << 2,
	/* We send, but not in the shortest way: the program follows what it sends
	 * (tx_stamps.h). */
	SOCK_TX_STAMPED = 1 << 3,
	/* The same: an edge-triggered set hears of each send. */
	SOCK_TX_EDGES = 1 << 4,
	SOCK_TX_LONG = SOCK_TX_STAMPED | SOCK_TX_EDGES,
	/* the kind's reasons begin here */
	SOCK_TX_KIND = 1 << 5,
};

struct sock;

/* What a kind adds. All of it is called with `config`, unless said otherwise. */
struct sock_kind {
	uint8_t proto; /* the protocol's number in IP */
	enum sock_role receiver, connect;
	/* Reads the twin's settings anew. Called before each attachment. */
	void (*read_settings)(struct sock *s, int fd);
	/* Called under the stack's lock: names, options or routes that destinations
	 * depend on have changed. `peer`: what the socket is connected to from now on,
	 * with port 0 if it is nobody; NULL: what it was connected to. */
	void (*forget_ways)(struct sock *s, const struct user_name *peer);
	/* Whether another process has a socket with this name, so that we must not
	 * take its packets. */
	bool (*is_port_elsewhere)(const struct sock *s,
				  const struct flow_key *key);
	/* Detaches it, and gives everything that is queued to the kernel, as far as it
	 * takes it. `fd` is the twin. */
	void (*hand_back)(struct sock *s, int fd);
	/* Called under the stack's lock: whether nothing is queued. */
	bool (*is_empty)(const struct sock *s);
	/* The kernel has it for good: what only its sends needed can go. */
	void (*left)(struct sock *s);
};

struct sock {
	struct fd_object obj;
	struct endpoint end;

	/* Fixed, except for what `stats` points to. The counters there are written
	 * as counters.def says, the rest with `config`. */
	const struct sock_kind *kind;
	struct stats_handle stats;
	int domain;
	uid_t uid;

	/* Read without a lock. */
	_Atomic bool is_nonblocking;
	/* the twin may have data or an error for us */
	_Atomic bool is_twin_ready;
	/* Why the twin does all the receiving once the queue is empty: bits of enum
	 * sock_rx_hold. While one is set, is_twin_ready stays true. */
	_Atomic unsigned rx_holds;
	/* why the twin does all the sending: bits of enum sock_tx_hold */
	_Atomic unsigned tx_holds;
	/* the times of SO_RCVTIMEO and SO_SNDTIMEO, in nanoseconds */
	_Atomic uint64_t rx_timeout_ns;
	_Atomic uint64_t tx_timeout_ns;
	/* IP_TTL was set, so that the hop limits of routes do not count. The twin does not
	 * say whether the value that it has is the system's. */
	_Atomic bool has_own_ttl;
	/* The stack whose lock guards the socket. It is set when somebody begins to
	 * wait for the socket, or frames are to reach it. NULL: there is none yet.
	 * Changes under the lock of the stack that it names (sock_lock,
	 * sock_try_lock). */
	_Atomic(struct stack *) stack;
	/* the twin is watched for us (sock_params); written with `config` */
	_Atomic bool is_watched;

	/* the members under `config`, which is taken before all other locks */
	struct mutex config;
	struct attachment att;
	enum reason reason;
	bool has_left; /* for good */
	/* it has asked for what only the kernel does, and the log said so */
	bool has_exceeded;
	/* what SO_MAX_PACING_RATE has said in VMA's form, as long as the twin has that rate */
	struct ring_pace pace;
	/* when it got its local name, by the monotonic clock */
	uint64_t named_ns;

	/* the stack's lock */
	struct sock_settings set;
	struct ip_addr local;
	__be16 local_port;
	bool is_connected;
};

static inline struct sock *sock_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct sock, obj);
}

/* Makes the memory of a kind, which begins with the socket, all zeroes but for the
 * object's head and the endpoint, which others may still look at. */
void sock_clear(struct sock *s, size_t size);
/* Begins the life of a socket whose memory is so. */
void sock_init(struct sock *s, const struct sock_kind *kind,
	       const struct fd_ops *ops,
	       void (*input)(struct endpoint *, struct pkt *), int fd,
	       int domain, int type);
/* Ends the life of a socket. No call is inside any more, and the kind has emptied
 * its queues. */
void sock_destroy(struct sock *s);

/* Whether `fd` still names the socket. A call that has waited looks before it uses
 * the number. */
static inline bool sock_owns_fd(const struct sock *s, int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_load(entry) == &s->obj;
}

static inline struct stats_socket_counters *sock_counters(struct sock *s)
{
	return &s->stats.at->counters;
}

/* The stack of the socket, or NULL. A moment later it may be another one, or none.
 * For callers that take its lock and then look again. */
static inline struct stack *sock_stack(const struct sock *s)
{
	/* acquire pairs with the release in sock_choose_stack */
	return atomic_load_explicit(&s->stack, memory_order_acquire);
}

/* Called with the lock of `stack`: whether it still is the socket's stack. */
static inline bool sock_is_in(const struct sock *s, const struct stack *stack)
{
	return LIKELY(atomic_load_explicit(&s->stack, memory_order_relaxed) ==
		      stack);
}

/* Locks the stack that the socket is in. The caller unlocks it. False: the socket is
 * in no stack, and nothing is locked. */
static inline bool sock_try_lock(struct sock *s, struct stack **stack_out)
	TRY_ACQUIRES(true, (*stack_out)->lock)
{
	while ((*stack_out = sock_stack(s))) {
		stack_lock(*stack_out);
		if (sock_is_in(s, *stack_out))
			return true;
		stack_unlock(*stack_out);
	}
	return false;
}

/* The same, for a socket that must be in a stack since it has tried to attach. */
static inline void sock_lock(struct sock *s, struct stack **stack_out)
	ACQUIRES((*stack_out)->lock)
{
	for (;;) {
		*stack_out = sock_stack(s);
		INVARIANT(*stack_out, "a socket stays in a stack");
		stack_lock(*stack_out);
		if (sock_is_in(s, *stack_out))
			return;
		stack_unlock(*stack_out);
	}
}

static inline void sock_hold_rx(struct sock *s, enum sock_rx_hold hold)
{
	/* This order matters: code that looks at the twin relies on it. */
	atomic_fetch_or(&s->rx_holds, (unsigned)hold);
	atomic_store(&s->is_twin_ready, true);
}

static inline void sock_hold_tx(struct sock *s, unsigned holds)
{
	atomic_fetch_or(&s->tx_holds, holds);
}

static inline void sock_release_tx(struct sock *s, unsigned holds)
{
	atomic_fetch_and(&s->tx_holds, ~holds);
}

static inline unsigned sock_tx_holds(const struct sock *s)
{
	return atomic_load_explicit(&s->tx_holds, memory_order_relaxed);
}

static inline unsigned sock_rx_holds(const struct sock *s)
{
	return atomic_load_explicit(&s->rx_holds, memory_order_relaxed);
}

static inline void sock_set_nonblocking(struct sock *s, bool is_nonblocking)
{
	atomic_store(&s->is_nonblocking, is_nonblocking);
	s->stats.at->is_blocking = !is_nonblocking;
}

static inline bool sock_is_blocking(const struct sock *s, int flags)
{
	return !(flags & MSG_DONTWAIT) &&
	       !atomic_load_explicit(&s->is_nonblocking, memory_order_relaxed);
}

/* What the file itself says. A process that shares it may have changed that without us. */
bool sock_file_is_nonblocking(int fd);

/* An option of the twin that is a number; 0 if Linux does not know it. */
int sock_twin_option(int fd, int level, int name);
/* One of any length; zeros if Linux does not know it. */
void sock_twin_read(int fd, int level, int name, void *value, socklen_t len);
/* As far as Linux takes it. */
void sock_twin_set(int fd, int level, int name, const void *value, size_t len);
/* The interface of SO_BINDTODEVICE, or 0. */
int sock_twin_device(int fd);
/* The twin's own name or its peer's. The port is 0 if there is none. */
struct user_name sock_twin_name(int fd, bool is_peer);
/* For vma_stats. */
void sock_show_names(struct sock *s, const struct user_name *local,
		     const struct user_name *peer);

/* The stack that the socket belongs to. The first caller that needs it decides. */
struct stack *sock_choose_stack(struct sock *s, struct net *net);

static inline bool sock_is_attached(const struct sock *s)
{
	return attachment_is_made(&s->att);
}

/* -- when frames begin and cease to reach it; with `config` ------------------------ */

/* Attaches the socket under the names that its twin has now. */
void sock_attach_anew(struct sock *s, int fd, enum stats_decider decider);
/* Frames cease to reach it; what is queued stays. */
void sock_detach(struct sock *s);
/* Leaves the socket to the kernel for good. */
void sock_leave_config(struct sock *s, int fd, enum reason reason,
		       enum stats_decider decider, const char *detail);
/* The twin has another name, or has lost its name. */
void sock_renamed(struct sock *s, int fd);
/* Makes the socket ready to send. Binds the twin if it has no port yet. Takes
 * `config`. False: the kernel has to send. */
bool sock_prepare_send(struct sock *s, int fd);

/* The program asks for something that only the kernel does: `what`, and its number.
 * 0: go on. -EINVAL: refuse it; nothing of it has been done. Takes `config`. */
int sock_exception(struct sock *s, int fd, enum reason reason,
		   enum stats_decider decider, const char *what, int number)
	MUST_CHECK;
/* The same for what the kernel cannot do while we have the socket: with 0 it is the
 * kernel's. */
int sock_leave_for(struct sock *s, int fd, enum reason reason,
		   enum stats_decider decider, const char *what, int number)
	MUST_CHECK;

/* -- ops, for the tables of kinds -------------------------------------------------- */

long sock_bind(struct fd_object *obj, int fd, const struct sockaddr *addr,
	       socklen_t len);
/* sock_setsockopt.c */
long sock_setsockopt(struct fd_object *obj, int fd, int level, int name,
		     const void *value, socklen_t len);
/* Linux has taken an option: if it is a timeout, we follow it, which counts before there
 * is a stack, too. */
void sock_follow_timeout(struct sock *s, int fd, int level, int name,
			 const void *value);
/* The same of IP_TTL. */
void sock_follow_ttl(struct sock *s, int level, int name, const void *value,
		     socklen_t len);
void sock_leave(struct fd_object *obj, int fd, enum reason reason,
		enum stats_decider decider);
enum fd_await sock_await(struct fd_object *obj, struct endpoint **end_out,
			 struct stack **stack_out);
struct endpoint *sock_follow(struct fd_object *obj, struct stack **stack_out);
void sock_follow_news(struct fd_object *obj, int fd);
void sock_last_close(struct fd_object *obj, int fd);
void sock_passed(struct fd_object *obj, enum fd_traffic traffic, long result);

#endif
