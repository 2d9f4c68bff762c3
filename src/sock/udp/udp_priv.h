/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A UDP socket from the inside, shared by the files udp*.c. */
#ifndef SOCK_UDP_UDP_PRIV_H
#define SOCK_UDP_UDP_PRIV_H

#include <limits.h>

#include "fd/fd_quick.h"
#include "fd/fd_wait.h"
#include "net/dst_cut.h"
#include "sock/tx_control.h"
#include "sock/udp/udp.h"
#include "sock/user_msg.h"

/* Destinations that a socket remembers: the one it is connected to, and some it
 * has sent to. */
enum { UDP_DSTS = 4, UDP_DST_CONNECTED = 0, UDP_CONTROLLED_DSTS = 2 };

/* What a receiver wants to be told with each datagram. */
enum udp_wish {
	UDP_WISH_PKTINFO = 1 << 0,
	UDP_WISH_TTL = 1 << 1,
	UDP_WISH_TOS = 1 << 2,
	UDP_WISH_TIMESTAMP = 1 << 3,
	UDP_WISH_TIMESTAMPNS = 1 << 4,
	UDP_WISH_TIMESTAMPING = 1 << 5,
	UDP_WISH_PKTINFO6 = 1 << 6,
};

/* Why a datagram is the twin's to send, wherever it goes. */
enum udp_tx_hold {
	/* left, or shut down: for good */
	UDP_TX_OVER = 1 << 0,
	/* UDP_CORK is set */
	UDP_TX_CORKED = 1 << 1,
	/* the twin has the beginning of a datagram, sent with MSG_MORE */
	UDP_TX_MORE = 1 << 2,
	/* the twin may have an error, which the next send is to tell */
	UDP_TX_ERROR = 1 << 3,
};

/* The twin's settings as far as they concern us, read from it after each change.
 * The stack's lock, but written with `config` as well. */
struct udp_settings {
	uint32_t wishes; /* enum udp_wish */
	uint32_t mark;
	int ifindex;
	uint8_t tos;
	uint8_t ttl;
	uint8_t df; /* enum dst_df */
	bool may_cut;
	bool is_mtu_of_link;
	bool is_on_link_only;
	/* SO_REUSEPORT */
	bool is_shared;
	/* that or SO_REUSEADDR: others may have the port, too */
	bool may_share;
};

struct udp {
	struct fd_object obj;
	struct endpoint end;

	/* fixed; what it leads to is written as counters.def says, the rest of
	 * it with `config` */
	struct stats_handle stats;
	int domain;

	/* Read without a lock. */
	_Atomic bool is_nonblocking;
	/* the twin may have something for us: read, or an error */
	_Atomic bool is_twin_ready;
	/* Once the queue is empty the twin does all the receiving: left, or
	 * shut down. is_twin_ready stays true with it. */
	_Atomic bool is_rx_over;
	/* why the twin does the sending; enum udp_tx_hold */
	_Atomic unsigned tx_holds;
	/* looks until the next one at the twin; never 0 */
	_Atomic unsigned os_countdown;
	/* in nanoseconds; 0: none */
	_Atomic uint64_t rx_timeout_ns;
	_Atomic uint64_t tx_timeout_ns;
	/* Set with the stack that the endpoint is in; NULL: not attached. */
	_Atomic(struct stack *) stack;
	_Atomic(struct net *) net;

	/* `config`: ranked outside everything */
	struct mutex config;
	struct attachment att;
	enum reason reason;
	bool is_watched; /* the twin */
	bool has_left; /* for good */
	bool was_port_elsewhere; /* at the last look (udp_ports.c) */
	/* has asked for what only the kernel does, which was said */
	bool has_exceeded;
	/* A child of a fork has the socket too; and at the last look something
	 * waited here unread, when so many had been read. */
	bool has_heir;
	bool is_neglected;
	uint64_t neglected_since;
	/* when it got its local name */
	uint64_t named_ns;
	uid_t uid;
	/* what SIOCGSTAMP says until the twin has a stamp of its own; 0: nothing */
	uint64_t stamp_ns;

	/* the stack's lock */
	struct list rx_queue;
	uint32_t rx_cnt;
	uint32_t rx_bytes;
	uint32_t rx_limit;
	struct udp_settings set;
	struct ip_addr local;
	__be16 local_port;
	bool is_connected;
	struct dst dsts[UDP_DSTS];
	/* of sends whose control messages asked for something; these are
	 * recognised by all that they depend on */
	struct dst controlled[UDP_CONTROLLED_DSTS];
	unsigned next_dst;
};

extern struct udp_params udp_params;
extern struct fd_ops udp_ops;

static inline struct udp *udp_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct udp, obj);
}

/* Whether `fd` is still the socket: a call that has waited looks before it acts on
 * the number. */
static inline bool udp_owns_fd(const struct udp *u, int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_load(entry) == &u->obj;
}

static inline struct stats_socket_counters *udp_counters(struct udp *u)
{
	return &u->stats.at->counters;
}

static inline struct stack *udp_stack(struct udp *u)
{
	/* acquire pairs with the release in udp_attach */
	return atomic_load_explicit(&u->stack, memory_order_acquire);
}

static inline void udp_end_rx(struct udp *u)
{
	/* in this order, which read_twin relies on */
	atomic_store(&u->is_rx_over, true);
	atomic_store(&u->is_twin_ready, true);
}

static inline void udp_hold_tx(struct udp *u, enum udp_tx_hold hold)
{
	atomic_fetch_or(&u->tx_holds, (unsigned)hold);
}

static inline void udp_release_tx(struct udp *u, unsigned holds)
{
	atomic_fetch_and(&u->tx_holds, ~holds);
}

/* VMA_RX_UDP_POLL_OS_RATIO; 0 is as good as never. */
static inline unsigned udp_twin_interval(void)
{
	return udp_params.os_ratio ? udp_params.os_ratio : UINT_MAX;
}

static inline void udp_set_nonblocking(struct udp *u, bool is_nonblocking)
{
	atomic_store(&u->is_nonblocking, is_nonblocking);
	u->stats.at->is_blocking = !is_nonblocking;
}

/* udp.c: makes the socket ready to send, binding the twin if it has no port yet.
 * The network, or NULL: the kernel is to do it. */
struct net *udp_prepare_send(struct udp *u, int fd);

/* udp_options.c: reads all settings anew, with `config`. */
void udp_read_settings(struct udp *u, int fd);
long udp_setsockopt(struct fd_object *obj, int fd, int level, int name,
		    const void *value, socklen_t len);
long udp_fcntl(struct fd_object *obj, int fd, int cmd, void *arg);
long udp_ioctl(struct fd_object *obj, int fd, unsigned long request, void *arg);
/* udp.c, for the options, with `config`: leaves for good; attaches again under
 * what holds now. */
void udp_leave_config(struct udp *u, enum reason reason,
		      enum stats_decider decider, const char *detail);
void udp_attach_anew(struct udp *u, int fd, enum stats_decider decider);
/* Frames cease to reach the socket; what is queued stays. With `config`. */
void udp_detach(struct udp *u);
/* udp_ports.c: whether a socket of another process stands in the way of this name,
 * as of the last second. With `config`. */
bool udp_port_is_elsewhere(const struct flow_key *key);
/* udp_ports.c, udp_heir.c: in the child of a fork. */
void udp_ports_forked(void);
void udp_heirs_forked(void);
/* udp_heir.c: returns what is queued to the kernel, from which it can be read then;
 * what that does not take stays queued. It is detached. */
void udp_hand_back(struct udp *u);

/* udp_exception.c: the program asks for something that only the kernel does: `what`
 * and its number. 0: go on, or -EINVAL: refuse it, without having done any of it. */
int udp_exception(struct udp *u, int fd, enum reason reason,
		  enum stats_decider decider, const char *what, int number)
	MUST_CHECK;

/* udp_rx.c */
void udp_input(struct endpoint *end, struct pkt *pkt);
/* Frees what is queued, moves it to an empty list, puts one of that back. Under
 * the stack's lock. */
void udp_purge(struct udp *u);
void udp_take_queue(struct udp *u, struct list *pkts);
void udp_requeue(struct udp *u, struct pkt *pkt);
long udp_read(struct fd_object *obj, int fd, void *buf, size_t len);
long udp_readv(struct fd_object *obj, int fd, const struct iovec *iov, int cnt);
long udp_recv(struct fd_object *obj, int fd, void *buf, size_t len, int flags);
long udp_recvfrom(struct fd_object *obj, int fd, void *buf, size_t len,
		  int flags, struct sockaddr *addr, socklen_t *addr_len);
long udp_recvmsg(struct fd_object *obj, int fd, struct msghdr *msg, int flags);
long udp_recvmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		  unsigned int cnt, int flags, struct timespec *timeout);

ssize_t udp_quick_recv(int fd, void *buf, size_t len, int flags,
		       const _Atomic(struct fd_object *) *entry,
		       struct fd_object *named);

/* udp_tx.c */
ssize_t udp_quick_send(int fd, const void *buf, size_t len, int flags,
		       const _Atomic(struct fd_object *) *entry,
		       struct fd_object *named);
long udp_write(struct fd_object *obj, int fd, const void *buf, size_t len);
long udp_writev(struct fd_object *obj, int fd, const struct iovec *iov,
		int cnt);
long udp_send(struct fd_object *obj, int fd, const void *buf, size_t len,
	      int flags);
long udp_sendto(struct fd_object *obj, int fd, const void *buf, size_t len,
		int flags, const struct sockaddr *addr, socklen_t addr_len);
long udp_sendmsg(struct fd_object *obj, int fd, const struct msghdr *msg,
		 int flags);
long udp_sendmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		  unsigned int cnt, int flags);

#endif
