/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A UDP socket from the inside, shared by the files udp*.c. */
#ifndef SOCK_UDP_UDP_PRIV_H
#define SOCK_UDP_UDP_PRIV_H

#include <limits.h>

#include "fd/fd_quick.h"
#include "fd/fd_wait.h"
#include "net/paced.h"
#include "sock/sock_wait.h"
#include "sock/tx_control.h"
#include "sock/tx_stamps.h"
#include "sock/udp/udp.h"
#include "sock/udp/udp_cut.h"
#include "sock/user_msg.h"

/* With its headers, such a datagram is as long as an IP packet can be. */
enum { UDP_PAYLOAD_MAX = 65535 - 20 - 8 };

/* Destinations that a socket remembers: the one it is connected to, and some it
 * has sent to. */
enum { UDP_WAYS = 4, UDP_WAY_CONNECTED = 0, UDP_CONTROLLED_WAYS = 2 };

/* What a receiver wants to be told with each datagram. */
enum udp_wish {
	UDP_WISH_PKTINFO = 1 << 0,
	UDP_WISH_TTL = 1 << 1,
	UDP_WISH_TOS = 1 << 2,
	UDP_WISH_TIMESTAMP = USER_STAMP,
	UDP_WISH_TIMESTAMPNS = USER_STAMP_NS,
	UDP_WISH_TIMESTAMPING = USER_STAMPING,
	UDP_WISH_PKTINFO6 = 1 << 6,
	UDP_WISH_CARD_STAMP = USER_CARD_STAMP,
	UDP_WISH_CARD_INFO = USER_CARD_INFO,
};

/* Why a datagram is the twin's to send, besides enum sock_tx_hold. */
enum udp_tx_hold {
	/* UDP_CORK is set */
	UDP_TX_CORKED = SOCK_TX_KIND << 0,
	/* the twin has the beginning of a datagram, sent with MSG_MORE, or may have it still */
	UDP_TX_MORE = SOCK_TX_KIND << 1,
	/* the twin may have an error, which the next send is to tell */
	UDP_TX_ERROR = SOCK_TX_KIND << 2,
};

/* What each datagram takes of the receive buffer besides its bytes. */
enum { UDP_RX_OVERHEAD = 256 };

/* Datagrams that the twin has sent with stamps, between two of ours. */
struct udp_stamp_run {
	/* the first one: its order among all, and its number as the kernel has it */
	uint32_t own_first, twin_first;
	/* records that nobody has read yet */
	uint32_t left;
};
enum { UDP_STAMP_RUNS = 8 };

/* Stamps of what is sent (udp_stamps.c); under the stack's lock, but for atomic members. */
struct udp_stamps {
	struct tx_stamps own;
	/* the order of the next datagram that is stamped, and of the one with number 0; the
	 * number of the next one that the twin stamps */
	_Atomic uint32_t next;
	uint32_t first;
	uint32_t twin_next;
	/* the oldest one first; those with records left are behind those without */
	struct udp_stamp_run runs[UDP_STAMP_RUNS];
	unsigned run_cnt;
	/* The order as of which the twin's error queue may have something; all bits: it is
	 * not known to. */
	_Atomic uint64_t twin_since;
	/* what the ready word says while there are records */
	uint32_t ready;
};

/* The records of one datagram that is about to be sent. */
struct udp_draft {
	uint32_t stations;
	/* the records; 0: none is wanted, or there is no memory */
	unsigned cnt;
	struct pkt *records[3];
	/* they show the frame, whose payload is here */
	bool has_frame;
	struct pkt *bytes;
	uint64_t scheduled_ns;
	/* it was dropped for want of room */
	bool is_dropped;
};

struct udp {
	struct sock sock;

	/* Read without a lock: looks until the next one at the twin; never 0 */
	_Atomic unsigned os_countdown;
	/* The program has looked at what the twin has first: the next receive takes that, or
	 * finds that it is gone. The twin counts as ready with it. */
	_Atomic bool is_twin_next;
	/* MSG_MORE has been used. */
	_Atomic bool has_sent_more;
	/* An error that a call with a result has met: the next one's; 0: none.
	 * The twin counts as ready with it. */
	_Atomic int kept_error;

	/* Another process has it, too, or had it. */
	_Atomic bool was_shared;

	/* The twin's buffer becomes what it was when the twin is found empty. */
	_Atomic bool is_twin_wide;

	/* The pace that it has (udp_pace.c); 0: none. Written under the stack's lock. */
	_Atomic uint32_t paced_kbps;

	/* the network's control mutex */
	struct paced paced;

	/* sock.config */
	/* SO_MAX_PACING_RATE asks for a pace, which is sock.pace; and that has not been
	 * followed yet, since there was no stack. */
	bool has_pace;
	bool has_pace_news;
	struct fd_object *heir; /* in the child of a fork (kin.h) */
	bool was_port_elsewhere; /* at the last look (udp_ports.c) */
	/* A child of a fork has the socket too, since the first fork and to the last one behind
	 * these counts (kin.h); for good: a program that was started has it. */
	bool has_heir;
	bool has_heir_for_good;
	uint64_t heir_first, heir_last;
	/* at the last look something waited here unread, when so many had been read, and
	 * since then */
	bool is_neglected;
	uint64_t neglected_since;
	uint64_t neglected_from_ns;
	/* So it was lent to the kernel, for at least so long (udp_heir.c). */
	_Atomic bool is_lent;
	uint64_t lend_ns, lent_until_ns;
	/* Frames were given back to the twin, whose SO_RCVBUF was made so wide for them;
	 * 0: not so. And what it was, which the program sees as long as it is wide. */
	int twin_rcvbuf_wide, twin_rcvbuf;
	/* The frames that a ring had sent when a blocking send gave it up, and one: as long as
	 * it sends none, nobody waits for it. 0: no ring. Without a lock */
	_Atomic uint64_t stuck_at;
	/* what SIOCGSTAMP says until the twin has a stamp of its own; 0: nothing */
	uint64_t stamp_ns;

	/* the stack's lock */
	struct list rx_queue;
	uint32_t rx_cnt;
	uint32_t rx_bytes;
	/* So many of them are received before anything of the twin's: the program has looked
	 * at the first one, or they waited when the kernel became the one who receives. Read
	 * without the lock, too. */
	_Atomic uint32_t rx_ahead;
	/* what records leave of `rx_limit_full` */
	uint32_t rx_limit, rx_limit_full;
	struct udp_stamps stamps;
	/* dst_query.pace_gen */
	uint32_t pace_gen;
	struct udp_way ways[UDP_WAYS];
	/* of sends whose control messages asked for something; these are
	 * recognised by all that they depend on */
	struct udp_way controlled[UDP_CONTROLLED_WAYS];
	unsigned next_way;
	/* what has come since the queue was taken, which nobody reads before it is back */
	struct list rx_behind;
};

extern struct fd_ops udp_ops;

static inline struct udp *udp_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct udp, sock.obj);
}

static inline struct udp *udp_of_sock(struct sock *s)
{
	return CONTAINER_OF(s, struct udp, sock);
}

/* VMA_RX_UDP_POLL_OS_RATIO; 0 is as good as never. */
static inline unsigned udp_twin_interval(void)
{
	return sock_params.os_ratio ? sock_params.os_ratio : UINT_MAX;
}

/* udp.c: the destinations are looked up anew before the next sends; `peer` is what the
 * socket is connected to now, or NULL. Under the stack's lock. */
void udp_forget_ways(struct sock *s, const struct user_name *peer);
/* udp_options.c: reads all settings anew, with `config`. */
void udp_read_settings(struct sock *s, int fd);
long udp_setsockopt(struct fd_object *obj, int fd, int level, int name,
		    const void *value, socklen_t len);
long udp_getsockopt(struct fd_object *obj, int fd, int level, int name,
		    void *value, socklen_t *len);
long udp_fcntl(struct fd_object *obj, int fd, int cmd, void *arg);
long udp_ioctl(struct fd_object *obj, int fd, unsigned long request, void *arg);
/* udp_ports.c: whether a socket of another process stands in the way of this name,
 * as of the last second. With `config`. */
bool udp_port_is_elsewhere(const struct sock *s, const struct flow_key *key);
/* udp_ports.c, udp_heir.c: in the child of a fork. */
void udp_ports_forked(void);
void udp_heirs_forked(void);
void udp_forget_heir(struct udp *u);
/* udp_heir.c: this process reads a socket that was lent. Takes `config`. */
void udp_reclaim(struct udp *u, int fd);
/* udp_heir.c: until what was queued is with the twin (SOCK_RX_MOVING): what comes behind it
 * must not be read before. Takes `config`. */
void udp_await_move(struct udp *u);
/* udp_rx_twin.c: an error that was kept, which is said once; 0: there is none. */
long udp_take_error(struct udp *u);
/* udp_heir.c: the twin, which may be wide, has been read empty. Takes `config`. */
void udp_narrow_twin(struct udp *u, int fd);
/* udp_heir.c: the SO_RCVBUF that the program has asked for. With `config`. */
int udp_rcvbuf(const struct udp *u, int fd);
/* udp_heir.c: detaches it, and returns what is queued to the kernel, from which it can be
 * read then; what that does not take stays queued. `fd` may be -1: not known. With `config`,
 * or when nobody is inside. */
void udp_hand_back(struct sock *s, int fd);

/* -- udp_pace.c -- */
/* setsockopt() with SO_MAX_PACING_RATE. */
long udp_pace_setsockopt(struct udp *u, int fd, const void *value, socklen_t len);
/* Does as the option says. With `config`; the socket is in a stack. */
void udp_pace_follow(struct udp *u);
/* It sends no more. With `config`, or when nobody is inside. */
void udp_pace_end(struct udp *u);
/* How long a send without room sleeps before it looks again. */
uint64_t udp_room_nap_ns(const struct udp *u);
static inline bool udp_is_paced(const struct udp *u)
{
	return atomic_load_explicit(&u->paced_kbps, memory_order_relaxed) != 0;
}

/* -- udp_stamps.c -- */
/* Linux has taken an option that tells of stamps. With `config`. */
void udp_stamps_follow(struct udp *u, int fd);
/* Where a send with these control messages (or NULL) is stamped: flags of SO_TIMESTAMPING; 0:
 * nowhere. */
uint32_t udp_stamps_stations(const struct udp *u, const struct tx_control *control);
/* Makes the records for a datagram of so many bytes, before it is sent. */
void udp_draft_begin(struct udp *u, struct udp_draft *draft, uint32_t stations,
		     const struct iovec *iov, size_t iov_cnt, size_t len);
/* It has been sent by this way: the program finds the records. NULL: it was lost on this host.
 * Either way it has a number. Under the stack's lock. */
void udp_draft_end(struct udp *u, struct udp_draft *draft,
		   const struct udp_way *way, size_t len);
/* The next frame of this ring is its first one, and the card is to say when that leaves,
 * if it is asked for; and the end of that. Under one hold of the stack's lock. */
void udp_draft_follow(const struct udp_draft *draft, struct ring *ring);
void udp_draft_unfollow(const struct udp_draft *draft, struct ring *ring);
/* Whether the ring has all stamps that are asked for. */
bool udp_draft_is_for(const struct udp_draft *draft, const struct ring *ring)
	MUST_CHECK;
/* It was not sent. Under the stack's lock. */
void udp_draft_drop(struct udp_draft *draft);
/* The twin sends a datagram that is stamped; without a wait. -EOVERFLOW: the numbers of its
 * datagrams cannot be followed any more, or the socket has left. Takes `config`. */
long udp_stamps_send_by_twin(struct udp *u, int fd, const struct msghdr *msg,
			     int flags, uint32_t stations) MUST_CHECK;
/* The twin has an error. */
void udp_stamps_twin_event(struct udp *u);
/* A call with MSG_ERRQUEUE. Takes `config`. */
long udp_receive_record(struct udp *u, int fd, struct msghdr *msg, int flags);
/* Sets the ready word's error bits to what is so. Under the stack's lock. */
void udp_settle_error(struct udp *u);

/* What the queue takes of the receive buffer. Under the stack's lock. */
static inline uint32_t udp_rx_used(const struct udp *u)
{
	return u->rx_bytes + u->rx_cnt * UDP_RX_OVERHEAD;
}

/* Records leave less of the receive buffer. Under the stack's lock. */
static inline void udp_settle_limit(struct udp *u)
{
	u->rx_limit = u->rx_limit_full -
		      MIN(u->rx_limit_full, u->stamps.own.taken);
}

/* udp_queue.c. Under the stack's lock. */
void udp_input(struct endpoint *end, struct pkt *pkt);
/* Frees what is queued. */
void udp_purge(struct udp *u);
/* Moves what is queued to an empty list; and puts what is left of it back, before what has
 * come meanwhile. With `config` from the one to the other, or when nobody is inside. */
void udp_take_queue(struct udp *u, struct list *pkts);
void udp_return_queue(struct udp *u, struct list *pkts);
static inline uint32_t udp_rx_len(const struct pkt *pkt)
{
	return PKT_CB(pkt, struct rx_info)->len;
}

/* The first so many of the queue, which has them, come before what the twin has. Under
 * the stack's lock. */
static inline void udp_put_ahead(struct udp *u, uint32_t cnt)
{
	if (atomic_load_explicit(&u->rx_ahead, memory_order_relaxed) < cnt)
		atomic_store_explicit(&u->rx_ahead, cnt, memory_order_relaxed);
}

static inline void udp_unlink_first(struct udp *u, struct pkt *pkt)
{
	uint32_t ahead = atomic_load_explicit(&u->rx_ahead, memory_order_relaxed);

	if (UNLIKELY(ahead))
		atomic_store_explicit(&u->rx_ahead, ahead - 1,
				      memory_order_relaxed);
	list_remove(&pkt->link);
	u->rx_bytes -= udp_rx_len(pkt);
	if (--u->rx_cnt == 0)
		endpoint_clear_ready(&u->sock.end, READY_IN);
}

/* udp_rx.c */
/* What a receiver is told of an IP header, in the order in which Linux does; `own`: the
 * address of ours. */
void udp_put_ip_control(struct user_control *control, uint32_t wishes,
			const struct wire_ipv4 *ip, uint32_t ifindex,
			__be32 own);
/* Who has sent it. */
struct user_name udp_source(const struct pkt *pkt);
long udp_read(struct fd_object *obj, int fd, void *buf, size_t len);
long udp_readv(struct fd_object *obj, int fd, const struct iovec *iov, int cnt);
long udp_preadv2(struct fd_object *obj, int fd, const struct iovec *iov, int cnt,
		 off_t offset, int flags);
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
ssize_t udp_quick_sendto(int fd, const void *buf, size_t len, int flags,
			 const struct sockaddr *addr, socklen_t addr_len,
			 const _Atomic(struct fd_object *) *entry,
			 struct fd_object *named);
long udp_write(struct fd_object *obj, int fd, const void *buf, size_t len);
long udp_writev(struct fd_object *obj, int fd, const struct iovec *iov,
		int cnt);
long udp_pwritev2(struct fd_object *obj, int fd, const struct iovec *iov, int cnt,
		  off_t offset, int flags);
long udp_send(struct fd_object *obj, int fd, const void *buf, size_t len,
	      int flags);
long udp_sendto(struct fd_object *obj, int fd, const void *buf, size_t len,
		int flags, const struct sockaddr *addr, socklen_t addr_len);
long udp_sendmsg(struct fd_object *obj, int fd, const struct msghdr *msg,
		 int flags);
long udp_sendmmsg(struct fd_object *obj, int fd, struct mmsghdr *msgs,
		  unsigned int cnt, int flags);

#endif
