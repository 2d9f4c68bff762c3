/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP without I/O: packets and time go in, segments and events come out. The
 * shape is lwIP's raw interface. Nothing here reads a clock, an option or the
 * environment; nothing sleeps, locks or allocates except through the ops.
 *
 * A table holds the connections of one stack. Every call is made by the one who
 * holds that stack's lock, and carries the present time `now_ns`, which never
 * goes back. The owner also advances the timer wheel he gave; the engine's timers
 * run from there.
 *
 * Life of a pcb: tcp_new or tcp_accept hand it to the caller; tcp_close or
 * tcp_abort take it back, and the caller does not use it again. In between it
 * stays valid whatever happens to the connection; if that dies, the state is
 * TCPS_CLOSED and tcp_error tells why.
 */
#ifndef TCP_TCP_H
#define TCP_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/ipaddr.h"
#include "event/timer_wheel.h"
#include "pkt/flow_key.h"
#include "pkt/pkt_pool.h"

struct tcp_table;
struct tcp_pcb;

/* RFC 9293 section 3.3.2; the names that <netinet/tcp.h> left free */
enum tcp_state {
	TCPS_CLOSED,
	TCPS_LISTEN,
	TCPS_SYN_SENT,
	TCPS_SYN_RCVD,
	TCPS_ESTABLISHED,
	TCPS_FIN_WAIT_1,
	TCPS_FIN_WAIT_2,
	TCPS_CLOSE_WAIT,
	TCPS_CLOSING,
	TCPS_LAST_ACK,
	TCPS_TIME_WAIT,
};

enum tcp_cc_algorithm {
	TCP_CC_CUBIC,
	TCP_CC_NEWRENO,
	TCP_CC_NONE, /* the peer's window alone */
	TCP_CC_BBR,
	TCP_CC_CNT,
};

/* net.ipv4.tcp_tw_reuse */
enum tcp_tw_reuse {
	TCP_TW_REUSE_NEVER,
	TCP_TW_REUSE_ALWAYS,
	/* where both ends are of this machine */
	TCP_TW_REUSE_LOOPBACK,
};

/* net.ipv4.tcp_ecn */
enum tcp_ecn {
	TCP_ECN_OFF,
	TCP_ECN_ON,
	/* used when a peer asks for it, and not asked for */
	TCP_ECN_ACCEPTED,
	/* accurate (RFC 9768) when both want it: asked for, and accepted; accepted, while
	 * the classic one is asked for; accepted, and nothing asked for */
	TCP_ECN_ACCURATE,
	TCP_ECN_ACCURATE_ACCEPTED_ASKS,
	TCP_ECN_ACCURATE_ACCEPTED,
};

/* net.ipv4.tcp_fastopen: data in SYNs (RFC 7413) */
enum tcp_fastopen {
	/* tcp_connect_fast; listeners that have settings.fastopen_max */
	TCP_FASTOPEN_CLIENT = 0x1,
	TCP_FASTOPEN_SERVER = 0x2,
	/* sent, and accepted, without a cookie */
	TCP_FASTOPEN_CLIENT_NO_COOKIE = 0x4,
	TCP_FASTOPEN_SERVER_NO_COOKIE = 0x200,
	/* all listeners, for as many as their backlog */
	TCP_FASTOPEN_LISTENERS = 0x400,
};

/* What may be chosen for all connections of a table. tcp_params_init gives the
 * defaults; whoever creates the table changes what the options say. */
struct tcp_params {
	/* Secret; from a random source. */
	struct hash_key secret;

	/* Bytes: what a new pcb starts with, and how far tuning may go. */
	uint32_t rcv_buf;
	uint32_t rcv_buf_max;
	uint32_t snd_buf;
	uint32_t snd_buf_max;
	/* Largest segment we accept, without the path's limit; 0 is none. */
	uint16_t mss_max;

	/* Offered in our SYN and accepted in others'. */
	bool with_sack;
	bool with_timestamps;
	bool with_window_scale;
	enum tcp_ecn ecn;
	/* accurate ECN is told by options, too (tcp_ecn_option) */
	bool with_ecn_option;
	/* a set of enum tcp_fastopen */
	uint32_t fastopen;
	/* For so long nobody's SYN carries data or asks for a cookie, after a connection
	 * that did was silent thrice in a row; twice as long the next time. 0: it goes on
	 * (tcp_fastopen_blackhole_timeout_sec). */
	uint64_t fastopen_pause_ns;
	/* Duplicates are reported (tcp_dsack), tails probed (RFC 8985 section 7;
	 * tcp_early_retrans), needless timeouts looked for (RFC 5682; tcp_frto),
	 * and the window is that of the start after a pause
	 * (tcp_slow_start_after_idle). */
	bool with_dsack;
	bool with_tlp;
	bool with_frto;
	/* Full segments that vanish in silence become smaller (tcp_mtu_probing). An outage
	 * looks the same, so that it is not for every path. */
	bool finds_black_holes;
	bool restarts_when_idle;
	/* The receive buffer grows with the path (tcp_moderate_rcvbuf). */
	bool tunes_rcv_buf;
	/* A connection that finds the accept queue full is reset, not left to
	 * try again (tcp_abort_on_overflow). */
	bool resets_on_overflow;
	/* Round trips of a connection that ended well are kept for the next one to
	 * the same peer (not tcp_no_metrics_save), thresholds of slow start only if
	 * this is set, too (not tcp_no_ssthresh_metrics_save), path MTUs always; for
	 * so many peers in all. */
	bool saves_metrics;
	bool saves_ssthresh;
	uint32_t peers_max;
	/* When a listener of several is closed, those that wait for it wait for another one
	 * (tcp_migrate_req); else they are reset. */
	bool migrates_children;
	/* A reset ends TIME_WAIT unless this is set (tcp_rfc1337). */
	bool protects_time_wait;
	/* of a new connection, see struct tcp_settings */
	uint32_t notsent_lowat;
	bool thin_linear_timeouts;

	enum tcp_cc_algorithm cc;
	/* CUBIC's first slow start ends where round trips become longer (RFC 9406) */
	bool with_hystart;
	/* segments; RFC 6928 */
	uint8_t initial_window;

	uint64_t rto_initial_ns;
	uint64_t rto_min_ns;
	uint64_t rto_max_ns;
	uint64_t delayed_ack_ns;
	/* Segments acknowledged at once after the start (quick ACK), until data is sent
	 * within delayed_ack_ns of data received; or all. */
	uint8_t quick_acks;
	bool always_quick_acks;
	/* So many times in a batch, neighbours that continue each other are taken as one. */
	uint32_t merges_max;

	/* How often a SYN, a SYN-ACK, and data are sent again before the
	 * connection is given up; data of a pcb without owner has its own. */
	uint8_t syn_retries;
	uint8_t synack_retries;
	uint8_t retries;
	uint8_t orphan_retries;
	/* Before a SYN's timeout doubles it stays as it is for so many times, which
	 * count besides syn_retries (tcp_syn_linear_timeouts). */
	uint8_t syn_linear_timeouts;
	uint64_t fin_wait_2_ns;
	uint64_t time_wait_ns;
	uint32_t time_wait_max;
	/* Whether tcp_may_choose allows the four-tuple of an entry that is as old
	 * as this (tcp_tw_reuse_delay). */
	enum tcp_tw_reuse tw_reuse;
	uint64_t tw_reuse_delay_ns;

	uint64_t keepalive_idle_ns;
	uint64_t keepalive_interval_ns;
	uint8_t keepalive_probes;

	/* A connection answers segments without data that are out of window,
	 * and challenges (RFC 5961), once in this time. */
	uint64_t stray_interval_ns;
	/* Per second and table: challenge ACKs (RFC 5961 section 7; how many
	 * exactly is drawn anew each second, from half of it to one and a half
	 * times as many), resets to segments of no connection, SYNs to one
	 * listener. 0: no limit. */
	uint32_t challenge_acks_per_sec;
	uint32_t resets_per_sec;
	uint32_t syns_per_sec;
	/* Half-open connections of one listener; past it SYN cookies answer. */
	uint32_t half_open_max;
	bool with_syn_cookies;
};

void tcp_params_init(struct tcp_params *params);

/* What the way to a peer allows. */
struct tcp_path {
	/* bytes of an IP packet */
	uint16_t mtu;
	/* the longest segment that the peer is to send; 0: as long as the MTU allows */
	uint16_t adv_mss;
	/* in place of the parameters of the same names, unless they are 0 */
	uint16_t initial_window;
	uint16_t rto_min_ms;
	/* the device splits segments of up to so many bytes, for which it must
	 * complete checksums, too; 0: it does not */
	uint32_t segment_max : 24;
	/* the device completes the checksum: tcp_out.header then carries the
	 * sum of the pseudo header in its place */
	bool with_checksum : 1;
};

/* A segment to send. All of it is only valid during the call, except that the
 * receiver may take references (pkt_get) on the packets; their bytes do not
 * change while he holds one. */
struct tcp_out {
	const struct flow_key *key;
	/* from the ports to the end of the options */
	const uint8_t *header;
	uint32_t header_len;
	/* payload: `data_cnt` packets from this one on, linked by pkt.link; NULL
	 * when there is none */
	struct pkt *data;
	uint32_t data_cnt;
	uint32_t data_len;
	/* payload bytes of each segment to be made of this one; 0: it is one */
	uint32_t segment_size;
	/* the two ECN bits of the IP header */
	uint8_t ecn;
	/* bytes of the payload have been sent before */
	bool is_retransmission;
};

/* The stations of a byte that was written with TCP_WRITE_STAMP. */
enum tcp_stamp {
	/* its segment is about to be given to `emit`; again if it is sent again */
	TCP_STAMP_SCHEDULED,
	/* `emit` has returned, and the segment was not taken back (tcp_emit_failed) */
	TCP_STAMP_SENT,
	/* or it was, and will be scheduled once more */
	TCP_STAMP_REFUSED,
	TCP_STAMP_ACKED,
};

/* What the engine asks of its owner. All are called under the stack's lock, from
 * within a call of this interface or from a timer, and none calls back. */
struct tcp_ops {
	/* Sends a segment. `pcb` is NULL for answers that belong to none. What
	 * cannot be sent is lost, like any segment, or taken back (tcp_emit_failed, the only
	 * one that may be called from here). */
	void (*emit)(void *ctx, struct tcp_pcb *pcb, const struct tcp_out *out);
	/* Memory for pcbs and tables, zeroed, or NULL. */
	void *(*alloc)(void *ctx, size_t size);
	void (*release)(void *ctx, void *mem, size_t size);
	/* The way to the remote end of a connection that a peer opens; false to
	 * refuse it. */
	bool (*path)(void *ctx, const struct flow_key *key,
		     struct tcp_path *path_out);
	/* Such a byte has come to a station. Its number counts from 0 for the first
	 * of the stream, modulo 2^32. tcp_stamp_ignore where nobody asks for it. */
	void (*stamped)(void *ctx, struct tcp_pcb *pcb, enum tcp_stamp what,
			uint32_t byte, uint64_t now_ns);
	/* A segment with these flags is of no connection of ours, and opens none: its
	 * answer would be a reset, if it is none itself. Whoever knows better takes
	 * the packet and returns true. tcp_stray_refuse where nobody does. */
	bool (*stray)(void *ctx, const struct flow_key *key, uint8_t flags,
		      struct pkt *pkt);
	/* 0: TCP_EMITS_PER_LOOK further segments of the connection could be sent now. Else
	 * when to ask again; until then its data waits here, and is lost nowhere, and no
	 * timeout counts, so that the owner does not say that for long. Asked before each
	 * so many segments of all connections. tcp_room_always where nothing is ever
	 * full. */
	uint64_t (*no_room_ns)(void *ctx, const struct tcp_pcb *pcb, uint64_t now_ns);
};
enum { TCP_EMITS_PER_LOOK = 16 };
/* Follows the last byte that was written, unless its segment has been sent; what is written
 * later does not join that. *byte_out: its place, as `stamped` tells it. As if it had been
 * written with TCP_WRITE_STAMP. */
bool tcp_stamp_last(struct tcp_pcb *pcb, uint32_t *byte_out) MUST_CHECK;
/* What is written from now on is followed, so that tcp_send_now declines. */
void tcp_set_stamped(struct tcp_pcb *pcb, bool is_stamped);
/* Places of bytes, as `stamped` tells them. */
struct tcp_stamp_places {
	/* the oldest one that is not acknowledged; one less until the SYN is */
	uint32_t unacked;
	/* the first one that was not sent; that will be written next */
	uint32_t unsent, unwritten;
};
struct tcp_stamp_places tcp_stamp_places(const struct tcp_pcb *pcb) MUST_CHECK;
void tcp_stamp_ignore(void *ctx, struct tcp_pcb *pcb, enum tcp_stamp what,
		      uint32_t byte, uint64_t now_ns);
bool tcp_stray_refuse(void *ctx, const struct flow_key *key, uint8_t flags,
		      struct pkt *pkt);
uint64_t tcp_room_always(void *ctx, const struct tcp_pcb *pcb, uint64_t now_ns);

/* `borrowers` has packets without buffers, for segments that must be split. The
 * wheel and the pool outlive the table. NULL without memory. */
struct tcp_table *tcp_table_create(const struct tcp_params *params,
				   const struct tcp_ops *ops, void *ctx,
				   struct timer_wheel *wheel,
				   struct pkt_pool *borrowers) MUST_CHECK;
/* Frees everything without another word to the peers: whoever wants resets
 * aborts first. NULL is a no-op. */
void tcp_table_destroy(struct tcp_table *table);

/* Why connections die and segments are dropped; one counter for each reason. */
struct tcp_counts {
#define TCP_COUNTER(name, how, what) uint64_t name;
#include "stats/counters.def"
};
const struct tcp_counts *tcp_counts(const struct tcp_table *table);
/* A segment could not be sent after all: no_room_ns is asked before the next one. Told from
 * within `emit`, or by who sends for tcp_send_now, before the engine is called again: whose
 * segment (NULL: nobody's), the header that `emit` was given, and the bytes behind it. What
 * was sent for the first time waits until there is room, as if it had not been sent, and so
 * does an acknowledgment, unless no_room_ns says that nothing is waited for. Resets, repairs
 * and the answers to SYNs are lost, like any segment. */
void tcp_emit_failed(struct tcp_table *table, struct tcp_pcb *pcb,
		     const uint8_t *header, uint32_t data_len, uint64_t now_ns);
/* Everything that has an address: pcbs that are not yet freed, and how many of
 * the compact TIME_WAIT entries there are. */
uint32_t tcp_pcb_cnt(const struct tcp_table *table);
uint32_t tcp_time_wait_cnt(const struct tcp_table *table);
/* The pcbs one after the other, listeners, half-open ones and those given back
 * included: the one behind `pcb`, the first for NULL, and NULL at the end. */
struct tcp_pcb *tcp_pcb_next(const struct tcp_table *table,
			     const struct tcp_pcb *pcb);

/* ---- events ---- */

enum tcp_event_bit {
	TCP_EV_CONNECTED = 1 << 0,
	/* data or the end of the stream can be taken */
	TCP_EV_READABLE = 1 << 1,
	/* acknowledged data made room */
	TCP_EV_WRITABLE = 1 << 2,
	/* tcp_accept of this listener will give one */
	TCP_EV_ACCEPT = 1 << 3,
	/* tcp_error tells the reason; the state is TCPS_CLOSED */
	TCP_EV_ERROR = 1 << 4,
	/* after tcp_close or tcp_abort: nothing of the connection is left, or
	 * only a TIME_WAIT entry. The pcb is only a name now. */
	TCP_EV_GONE = 1 << 5,
	/* the peer has announced urgent data: SIGURG */
	TCP_EV_URGENT = 1 << 6,
};

struct tcp_event {
	struct tcp_pcb *pcb;
	void *user;
	/* a set of enum tcp_event_bit */
	unsigned what;
};

/* Takes the next event; false when there is none. Several of one pcb come as one
 * record. A pcb named with TCP_EV_GONE is freed by the next call. */
bool tcp_event_next(struct tcp_table *table, struct tcp_event *event_out);

/* ---- connections ---- */

/* An unconnected pcb, owned by the caller, or NULL. */
struct tcp_pcb *tcp_new(struct tcp_table *table) MUST_CHECK;
void tcp_set_user(struct tcp_pcb *pcb, void *user);
void *tcp_user(const struct tcp_pcb *pcb);

/* The local end. The port is in network order and not 0: reserving one is the
 * caller's business. -EINVAL unless the pcb is fresh. */
int tcp_bind(struct tcp_pcb *pcb, const struct ip_addr *addr, __be16 port)
	MUST_CHECK;
/* From a bound pcb makes a listener; address may be the wildcard. -EADDRINUSE if
 * there is one for the same address and port. */
int tcp_listen(struct tcp_pcb *pcb, uint32_t backlog) MUST_CHECK;
/* The same for one of several listeners with this address and port, all of which were
 * made by this call (SO_REUSEPORT): a connection goes to one of them by its four-tuple, to
 * the same one as long as they are the same. With `yields` they get what finds none
 * without. */
int tcp_listen_shared(struct tcp_pcb *pcb, uint32_t backlog, bool yields)
	MUST_CHECK;
/* Another length of its queue. */
void tcp_set_backlog(struct tcp_pcb *listener, uint32_t backlog);
/* How many connections wait to be accepted, and how many of them and of those that are
 * not open yet there are. */
uint32_t tcp_accept_cnt(const struct tcp_pcb *listener);
uint32_t tcp_child_cnt(const struct tcp_pcb *listener);
/* The oldest connection that waits, owned by the caller, or NULL. */
struct tcp_pcb *tcp_accept(struct tcp_pcb *listener) MUST_CHECK;
/* It waits again, behind the others. */
void tcp_accept_undo(struct tcp_pcb *listener, struct tcp_pcb *pcb);
/* The most that settings.saved_syn_front may be, and what is saved at most with it. */
enum { TCP_SAVED_FRONT_MAX = 74, TCP_SAVED_SYN_MAX = TCP_SAVED_FRONT_MAX + 60 };
/* What was kept of the SYN that opened the connection; it is told once. Returns the number
 * of bytes, 0: nothing was. */
uint32_t tcp_take_saved_syn(struct tcp_pcb *pcb, uint8_t to[TCP_SAVED_SYN_MAX]);
/* Sends a SYN from a bound pcb. TCP_EV_CONNECTED or TCP_EV_ERROR follow.
 * -EADDRINUSE if the same four-tuple is in use. */
int tcp_connect(struct tcp_pcb *pcb, const struct ip_addr *addr, __be16 port,
		const struct tcp_path *path, uint64_t now_ns) MUST_CHECK;

/* The same with Fast Open: the SYN carries the bytes of `pkt`, as far as they fit, if the
 * peer's cookie is known, or settings say that it needs none; else it asks for one. In
 * any case they are the first that was written. On success the engine owns the packet;
 * NULL is none. -EOPNOTSUPP unless params.fastopen allows it. */
int tcp_connect_fast(struct tcp_pcb *pcb, const struct ip_addr *addr,
		     __be16 port, const struct tcp_path *path, struct pkt *pkt,
		     uint64_t now_ns) MUST_CHECK;
/* The two halves of it. The first gives the connection its names, and is in SYN_SENT, but
 * nothing leaves. The second sends the SYN; where the peer has connected meanwhile, the
 * packet is written as usual. In between tcp_fast_room says how many bytes the SYN would
 * carry now; 0: none, but a question for a cookie. */
int tcp_connect_held(struct tcp_pcb *pcb, const struct ip_addr *addr,
		     __be16 port, const struct tcp_path *path,
		     uint64_t now_ns) MUST_CHECK;
uint32_t tcp_fast_room(const struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_open_held(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns);
/* Whether a SYN between these would carry data now. */
bool tcp_knows_cookie(struct tcp_table *table, const struct ip_addr *local,
		      const struct ip_addr *remote, uint64_t now_ns);
/* By Fast Open data is ahead of the handshake: bytes of ours that the SYN may have brought
 * to the peer, or the peer's. Such a connection cannot begin anew. */
bool tcp_is_early(const struct tcp_pcb *pcb);
enum { TCP_FASTOPEN_KEYS = 2 };
/* The cookies of a listener are made with the first key and accepted with any, in place
 * of one that follows from params.secret. */
void tcp_set_fastopen_keys(struct tcp_table *table, const struct hash_key *keys,
			   unsigned cnt);
/* The same for one that listens, in place of the table's. */
void tcp_set_listener_keys(struct tcp_pcb *listener, const struct hash_key *keys,
			   unsigned cnt);

/* Whether a port that nobody asked for by name may be chosen for the connection `key`:
 * nothing has it, or a TIME_WAIT entry that tw_reuse gives up. tcp_connect itself, to
 * which the program may have named the port, needs no more than time stamps. */
bool tcp_may_choose(struct tcp_table *table, const struct flow_key *key,
		    uint64_t now_ns);

/* Queues a packet, filled by the caller, with PKT_HAS_SUM if he has the sum. On
 * success the engine owns it. -EPIPE after tcp_shutdown, -ENOTCONN, the
 * connection's error, or -ENOBUFS when the send buffer is full. A packet larger
 * than tcp_mss is split. */
int tcp_write(struct tcp_pcb *pcb, struct pkt *pkt) MUST_CHECK;

enum tcp_write_flag {
	/* the last byte is urgent (MSG_OOB) */
	TCP_WRITE_URGENT = 1 << 0,
	/* more follows, be it of the same call or later (MSG_MORE): no PSH, and
	 * the tcp_output after it keeps what is no full segment */
	TCP_WRITE_MORE = 1 << 1,
	/* the end of a record, in which its segment ends, too (MSG_EOR) */
	TCP_WRITE_EOR = 1 << 2,
	/* the last byte is followed on its way: see enum tcp_stamp. What is written
	 * later does not join its segment. */
	TCP_WRITE_STAMP = 1 << 3,
};
/* The same with a set of enum tcp_write_flag. */
int tcp_write_with(struct tcp_pcb *pcb, struct pkt *pkt, unsigned flags)
	MUST_CHECK;
/* So many bytes more fit in the last packet of the send queue, which was never sent and
 * is no full segment yet: what is written there needs no packet of its own. 0: none. */
uint32_t tcp_extend_room(const struct tcp_pcb *pcb);
/* Makes that packet `len` bytes longer, at most tcp_extend_room(). Returns where they lie;
 * the caller fills them before he calls the engine again. The flags but for
 * TCP_WRITE_STAMP. The size of the send buffer is the caller's to look at. */
uint8_t *tcp_extend(struct tcp_pcb *pcb, uint32_t len, unsigned flags);
/* Sends what may be sent. After a series of tcp_write and tcp_extend. */
void tcp_output(struct tcp_pcb *pcb, uint64_t now_ns);
/* From the ports to the end of the options; small enough for two registers. */
struct tcp_header {
	const uint8_t *bytes;
	uint32_t len;
};
/* Both at once, for a packet whose bytes may be sent now, as one segment, and leave the
 * program room to write more (tcp_has_room). The caller sends it, behind the header that
 * is returned, before he calls the engine again. No bytes: nothing was done, since
 * something is unusual. Without `with_checksum` the header's field for it means nothing:
 * the device computes it. */
struct tcp_header tcp_send_now(struct tcp_pcb *pcb, struct pkt *pkt,
			       bool with_checksum, uint64_t now_ns) MUST_CHECK;
/* Bytes that should be written now: 0, or a full segment at least, which may be
 * more than the buffer's size allows. A writer who filled it to the byte would
 * leave short segments in the middle of the stream. */
uint32_t tcp_sndbuf(const struct tcp_pcb *pcb);
/* Whether poll() says that there is room: a third of the buffer, as in Linux, and less
 * unsent than notsent_lowat. */
bool tcp_has_room(const struct tcp_pcb *pcb);
/* The program would write more, but the buffer is full. From now on until there is
 * room, the time when nothing is left to send counts as limited by the buffer. */
void tcp_wants_room(struct tcp_pcb *pcb, uint64_t now_ns);
/* Payload bytes of a full segment. */
uint32_t tcp_mss(const struct tcp_pcb *pcb);
/* The device makes segments, and their checksums, of what is longer than that. */
bool tcp_is_split(const struct tcp_pcb *pcb);

/* Moves received data, at most so many bytes, to the end of `pkts`, in order; returns
 * how many. A packet is cut for it, unless there is none to cut it with. The window
 * opens only with tcp_recved. The data ends before a byte that the peer has marked as
 * urgent; the next call leaves that byte out, unless it shall stay in line, and goes on
 * behind it. */
uint32_t tcp_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts);
/* For when that has given nothing, because there was no packet to cut with: copies the
 * first bytes, of one packet at most. */
uint32_t tcp_take_bytes(struct tcp_pcb *pcb, uint32_t max, uint8_t *to);
/* There is something for tcp_take, be it behind the mark. */
bool tcp_has_data(const struct tcp_pcb *pcb);
/* Bytes in order that were not taken, as SIOCINQ has it: those before the mark, at the
 * mark 0, and all where urgent bytes stay in line. */
uint32_t tcp_readable(const struct tcp_pcb *pcb);
/* Whether poll() would say so to one who wants `cnt` bytes: those behind the mark count, too,
 * and the urgent one, unless a read comes to it next. */
bool tcp_has_waiting(const struct tcp_pcb *pcb, uint32_t cnt);
/* What a look at the unread packets (tcp_unread_next) shows of what tcp_take would take:
 * behind *skip_out bytes so many at most. */
uint32_t tcp_unread_span(const struct tcp_pcb *pcb, uint32_t *skip_out);
/* The same: how many there are. */
uint32_t tcp_shown(const struct tcp_pcb *pcb);
/* Who reads on at the mark is behind it, also where nothing has come behind the urgent byte
 * and tcp_take had nothing to give. */
void tcp_pass_mark(struct tcp_pcb *pcb);
/* The caller is done with so many bytes. */
void tcp_recved(struct tcp_pcb *pcb, uint32_t len, uint64_t now_ns);
/* The peer has sent FIN, and everything before it has been taken; or whether that was
 * or not. */
bool tcp_at_end(const struct tcp_pcb *pcb);
bool tcp_has_end(const struct tcp_pcb *pcb);

/* RFC 6093. What is known of the urgent byte. */
enum tcp_urgent {
	TCP_URGENT_NONE,
	/* announced, and not here yet */
	TCP_URGENT_COMING,
	TCP_URGENT_HERE,
	/* by tcp_take_urgent */
	TCP_URGENT_READ,
};
enum tcp_urgent tcp_urgent_state(const struct tcp_pcb *pcb);
/* All data before the mark has been taken, and none behind it (SIOCATMARK). */
bool tcp_at_mark(const struct tcp_pcb *pcb);
/* The urgent byte, apart from the stream (MSG_OOB). -EINVAL if there is none, if it
 * was read, or stays in line; -EAGAIN while it is announced alone; -ENOTCONN if a reset has
 * ended the connection before it was read. */
int tcp_take_urgent(struct tcp_pcb *pcb, uint8_t *byte_out, bool peeks)
	MUST_CHECK;

/* No more writes: FIN follows what is queued. -ENOTCONN. */
int tcp_shutdown(struct tcp_pcb *pcb, uint64_t now_ns) MUST_CHECK;
/* Gives the pcb back. Data that was not taken resets the connection (RFC 9293
 * section 3.10.4 with RFC 1122 4.2.2.13); else queued data and FIN are still
 * delivered. */
void tcp_close(struct tcp_pcb *pcb, uint64_t now_ns);
/* Gives the pcb back and resets the peer. */
void tcp_abort(struct tcp_pcb *pcb, uint64_t now_ns);

/* 0 or the negative errno the connection died of. */
int tcp_error(const struct tcp_pcb *pcb);
enum tcp_state tcp_state(const struct tcp_pcb *pcb);
const struct flow_key *tcp_key(const struct tcp_pcb *pcb);

/* ---- settings of one connection; listeners pass them to their children ---- */

void tcp_set_nodelay(struct tcp_pcb *pcb, bool on, uint64_t now_ns);
/* Holds back partial segments while on, at most 200 ms. */
void tcp_set_cork(struct tcp_pcb *pcb, bool on, uint64_t now_ns);
bool tcp_has_nodelay(const struct tcp_pcb *pcb);
bool tcp_has_cork(const struct tcp_pcb *pcb);
/* Urgent bytes stay in the stream (SO_OOBINLINE). */
void tcp_set_oob_inline(struct tcp_pcb *pcb, bool on);
/* What waits to be acknowledged is at once; the next one may wait again, as with
 * TCP_QUICKACK of Linux. What is left of the quick ACKs of the start goes on, or, off, is
 * kept back until an acknowledgment was late. */
void tcp_set_quick_ack(struct tcp_pcb *pcb, bool on, uint64_t now_ns);
/* 0 for a time or count leaves it as it is. -ENOMEM. */
int tcp_set_keepalive(struct tcp_pcb *pcb, bool on, uint64_t idle_ns,
		      uint64_t interval_ns, uint8_t probes, uint64_t now_ns)
	MUST_CHECK;
/* -ENOMEM */
int tcp_set_user_timeout(struct tcp_pcb *pcb, uint64_t timeout_ns) MUST_CHECK;

/* As a rate: no limit. */
#define TCP_NO_PACING UINT64_MAX
/* Not in FIN_WAIT_2 at all once nobody owns the connection (TCP_LINGER2 below 0). */
#define TCP_NO_FIN_WAIT_2 UINT64_MAX
/* The least that TCP_MAXSEG may say, as in Linux. */
enum { TCP_MSS_LEAST = 88 };

/* What a program may set and few do. To change one: get, change, set. */
struct tcp_settings {
	/* RFC 9293 section 3.8.4; the switch is tcp_set_keepalive's */
	uint64_t keep_idle_ns, keep_interval_ns;
	/* RFC 5482: how long sent data may stay unacknowledged; 0: by retries */
	uint64_t user_timeout_ns;
	/* without owner (TCP_LINGER2) */
	uint64_t fin_wait_2_ns;
	/* bytes in a second that leave at most (SO_MAX_PACING_RATE); TCP_NO_PACING:
	 * as many as may. The window of the start leaves at once. */
	uint64_t max_pacing_rate;
	/* offered by the SYN, and the most that is sent (TCP_MAXSEG); read while
	 * the connection is set up. 0: what the path allows */
	uint16_t mss_max;
	uint8_t keep_probes;
	/* how often a SYN is sent again after the linear timeouts, or a listener's
	 * answer to one (TCP_SYNCNT); 0: as the parameters say */
	uint8_t syn_retries;
	/* For so many timeouts of its answer a listener waits for data behind
	 * the handshake (TCP_DEFER_ACCEPT); who connects keeps his last ACK for
	 * the data that he is to send. 0: not. */
	uint8_t defer_accept;
	/* the most that is granted (TCP_WINDOW_CLAMP); 0: no limit */
	uint32_t window_clamp;
	/* tcp_sndbuf gives no room while so much has not been sent */
	uint32_t notsent_lowat;
	/* so many connections of a listener at most, opened by SYNs with data, wait for
	 * their last ACK (TCP_FASTOPEN); 0: none */
	uint32_t fastopen_max;
	/* SYNs with data need no cookie (TCP_FASTOPEN_FAIL_COOKIE) */
	bool fastopen_no_cookie;
	/* A listener keeps the header of each SYN for tcp_take_saved_syn, and so many
	 * bytes in front of it, which lie in the same buffer (TCP_SAVE_SYN). 0: it does
	 * not. Behind a SYN cookie there is none. */
	uint8_t saved_syn_front;
	/* The first six timeouts do not double while fewer than four segments are
	 * under way (TCP_THIN_LINEAR_TIMEOUTS). */
	bool thin_linear_timeouts;
};
/* Those of its table. */
const struct tcp_params *tcp_params_of(const struct tcp_pcb *pcb);
void tcp_get_settings(const struct tcp_pcb *pcb,
		      struct tcp_settings *settings_out);
/* -EINVAL for a segment size below TCP_MSS_LEAST, or a saved_syn_front above its limit;
 * -ENOMEM. */
int tcp_set_settings(struct tcp_pcb *pcb, const struct tcp_settings *settings,
		     uint64_t now_ns) MUST_CHECK;
/* What defer_accept is for so long. */
uint8_t tcp_defer_accept_timeouts(const struct tcp_params *params,
				  uint64_t time_ns);

/* The reader wants so many bytes at once (SO_RCVLOWAT): a buffer whose size is not
 * fixed becomes large enough for them. */
void tcp_set_rcv_lowat(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns);
/* Fixes the size and ends automatic tuning. */
void tcp_set_rcv_buf(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns);
void tcp_set_snd_buf(struct tcp_pcb *pcb, uint32_t bytes);
/* At any time; in the middle of a connection it begins with the present window. */
int tcp_set_cc(struct tcp_pcb *pcb, enum tcp_cc_algorithm cc) MUST_CHECK;
/* The way to the peer has changed. */
void tcp_set_path(struct tcp_pcb *pcb, const struct tcp_path *path,
		  uint64_t now_ns);

/* As Linux numbers them. */
enum tcp_fastopen_failure {
	TCP_FASTOPEN_FAIL_NONE,
	TCP_FASTOPEN_FAIL_COOKIE,
	TCP_FASTOPEN_FAIL_DATA,
	TCP_FASTOPEN_FAIL_SYN,
};

/* A look at a connection, for statistics and tests. */
struct tcp_pcb_info {
	enum tcp_state state;
	uint32_t snd_una, snd_nxt, snd_end, snd_wnd;
	uint32_t rcv_nxt, rcv_edge;
	uint32_t cwnd, ssthresh, in_flight;
	/* of a full segment that we send; the largest received; what our SYN
	 * announces */
	uint32_t mss, rcv_mss, mss_offered;
	/* of a packet, as far as is known */
	uint32_t pmtu;
	uint32_t snd_buf, rcv_buf;
	/* bytes queued: to send or unacknowledged, in order, out of order */
	uint32_t snd_queued, rcv_unread, ooo_bytes;
	/* of the queued ones, those that were never sent */
	uint32_t unsent;
	/* memory of the packets in order that were not taken, and of those out of
	 * order, buffers included */
	uint32_t rcv_memory, ooo_memory;
	enum tcp_urgent urgent;
	uint64_t srtt_ns, rttvar_ns, rto_ns, min_rtt_ns;
	/* bytes in a second, or TCP_NO_PACING */
	uint64_t pacing_rate;
	bool has_sack, has_timestamps, has_window_scale, has_ecn;
	bool has_accurate_ecn;
	/* A SYN brought data that was taken, either way; the connection was opened by it,
	 * and the handshake is not over yet. */
	bool has_syn_data, is_opened_early;
	/* why our SYN brought no data that was taken, as far as it should have */
	enum tcp_fastopen_failure fastopen_failure;
	/* some timer of this connection is pending */
	bool has_timer;
	/* in recovery, by duplicates or by timeout */
	bool is_recovering;
	uint8_t snd_scale, rcv_scale;
	/* doublings of the timeout; timeouts since the peer last took something;
	 * probes, of a closed window or to keep alive, without an answer */
	uint8_t backoff, timeouts, probes;
	/* segments, and when the last one left and came; 0: none did */
	uint64_t retransmitted;
	uint64_t last_sent_ns, last_rcvd_ns;
};
void tcp_get_info(const struct tcp_pcb *pcb, struct tcp_pcb_info *info_out);

/* What has happened so far, as TCP_INFO counts it. */
struct tcp_pcb_stats {
	/* segments, and those with data, sent again or not */
	uint32_t segs_in, segs_out;
	uint32_t data_segs_in, data_segs_out;
	/* packets that arrived, by ACK or SACK; those of them whose news came
	 * with an ECN echo */
	uint32_t delivered, delivered_ce;
	/* payload; what was sent again counts each time */
	uint64_t bytes_acked, bytes_received;
	uint64_t bytes_sent, bytes_resent;
	/* duplicates that the peer has reported */
	uint32_t duplicates;
	/* how often what was thought lost was only late; by how many segments
	 * at most, 3 until more were seen */
	uint32_t reorderings;
	uint16_t reordering;
	/* segments with data that came before others were there */
	uint32_t out_of_order;
	/* timeouts, how many of them were the first behind progress, and how long it
	 * took until what they sent again was through */
	uint16_t timeouts, timeout_runs;
	uint64_t timeout_ns;
	/* something was sent and not acknowledged; while the peer's window alone
	 * was in the way; while the program waited for room (tcp_wants_room) and
	 * everything had been sent. To a millisecond, in 52 days round once. */
	uint64_t busy_ns, window_limited_ns, buffer_limited_ns;
	/* bytes in a second that have arrived of late, 0 if that is not known; the
	 * path may carry more, because the program wrote less */
	uint64_t delivery_rate;
	bool is_app_limited;
};
enum { TCP_REORDERING_LEAST = 3 };
void tcp_get_stats(const struct tcp_pcb *pcb, struct tcp_pcb_stats *stats_out,
		   uint64_t now_ns);

/* What is under way, in segments. */
struct tcp_flight {
	/* sent and not acknowledged; the others are parts of it */
	uint32_t unacked;
	uint32_t sacked;
	/* deemed lost and not sent again yet */
	uint32_t lost;
	/* sent again, and neither sacked nor lost since */
	uint32_t resent;
};
/* Walks the send queue: for who asks once, not for each segment. */
void tcp_get_flight(struct tcp_pcb *pcb, struct tcp_flight *flight_out);

/* ---- packets in ---- */

struct tcp_in {
	/* data begins with the TCP header, which lies in the first part, and
	 * ends with the segment */
	struct pkt *pkt;
	/* local is where the packet was sent to */
	struct flow_key key;
	/* the two ECN bits of the IP header */
	uint8_t ecn;
};

/* Processes a segment and takes its packet in every case. The checksum is
 * verified unless the packet's verdict says it is good. The ports of the key are
 * set from the header. */
void tcp_input(struct tcp_table *table, struct tcp_in *in, uint64_t now_ns);
/* The same for what a poll brought, in its order. Neighbours that continue each
 * other are taken as one, and answered by one acknowledgment at most. */
void tcp_input_batch(struct tcp_table *table, struct tcp_in *in, unsigned cnt,
		     uint64_t now_ns);

/* The next data segment of this connection, straight to who reads: as tcp_input, tcp_take
 * and tcp_recved, one after the other. It lies in one piece, fits in `room`, and its
 * checksum is good. Returns the number of bytes. -EAGAIN: nothing was changed (but what
 * is in `buf`), since something is unusual, other data comes first, or somebody may wait for
 * room to write (tcp_has_room); so there is no event. */
long tcp_input_direct(struct tcp_pcb *pcb, const uint8_t *segment, uint32_t len,
		      void *buf, uint32_t room, uint64_t now_ns);

/* Whether tcp_input_direct would take the segment, if there is room enough. */
bool tcp_would_take_direct(struct tcp_pcb *pcb, const uint8_t *segment,
			   uint32_t len);

/* The connection with this key, be it half-open, or NULL. */
struct tcp_pcb *tcp_find(struct tcp_table *table, const struct flow_key *key);
/* The listener that a SYN with this key would reach, or NULL. */
struct tcp_pcb *tcp_find_listener(struct tcp_table *table,
				  const struct flow_key *key);

/* ---- ICMP ---- */

/* An error message about a segment of ours. */
struct tcp_icmp {
	/* local is the source of the segment that it quotes */
	struct flow_key key;
	uint32_t seq;
	/* length of the quoted packet, IP header included, as its header says */
	uint32_t quoted_len;
	/* -EMSGSIZE: fragmentation needed, or packet too big; others are what a
	 * connection that cannot be set up fails with */
	int error;
	/* of the next hop; 0: the message does not say */
	uint16_t mtu;
};

/* Believed only when it quotes numbers that are under way. */
void tcp_icmp_in(struct tcp_table *table, const struct tcp_icmp *icmp,
		 uint64_t now_ns);

/* ---- moving ---- */

/* Before a connection is frozen: what arrives is taken and acknowledged, but nothing new is
 * sent in answer to it, which whoever takes over can do as well. Until tcp_thaw. */
void tcp_calm(struct tcp_pcb *pcb);
/* Sends the last of what was sent and is not acknowledged once more, so that a peer that is
 * near says now what it has. False: there is nothing to ask for. */
bool tcp_ask(struct tcp_pcb *pcb, uint64_t now_ns);
/* A connection stands still while somebody else may take it over: what was sent before
 * `since_ns` and not acknowledged, and an ACK that is due, are sent once more, then no timer
 * runs, nothing is sent, and segments for it are dropped, which are better kept from it. Until
 * tcp_thaw or tcp_drop it may be looked at and exported, and nothing else; it does not
 * change, so that this needs no lock. -ENOTCONN for what cannot be moved, which
 * includes one that is not open yet; -EALREADY. */
int tcp_freeze(struct tcp_pcb *pcb, uint64_t since_ns, uint64_t now_ns) MUST_CHECK;
/* It goes on here after all. Does nothing to one that goes on anyway. */
void tcp_thaw(struct tcp_pcb *pcb, uint64_t now_ns);
/* It was given back, and what is queued is still to be delivered. Those, too, can be
 * moved; who looks for them walks by tcp_pcb_next. */
bool tcp_is_orphan(const struct tcp_pcb *pcb);

/* Where the FIN of our own stands. */
enum tcp_fin {
	TCP_FIN_NONE,
	TCP_FIN_QUEUED,
	TCP_FIN_SENT,
	TCP_FIN_ACKED,
};

/* What a kernel's socket must be told to go on with a connection (TCP_REPAIR): the
 * numbers are those of bytes, as if there was no FIN either way. */
struct tcp_repair {
	/* the send queue begins there: so many bytes that were sent, then so
	 * many that were not */
	uint32_t snd_una;
	uint32_t unacked, unsent;
	enum tcp_fin fin;
	/* the receive queue ends there: so many bytes were not taken, beside the urgent one
	 * there (tcp_unread_len) */
	uint32_t rcv_nxt;
	uint32_t unread;
	uint32_t urgent_at;
	/* then a FIN has come */
	bool has_fin;
	uint16_t mss_peer;
	/* 0 where no scale was agreed on */
	bool has_scale;
	uint8_t snd_scale, rcv_scale;
	bool has_sack, has_timestamps;
	/* which cannot be repaired: see DESIGN, the way back */
	bool has_ecn;
	/* our next time stamp, never an odd one; the peer's latest */
	uint32_t ts_next, ts_recent;
	/* so much has come that an old segment may have the numbers of a new one, and its
	 * time stamp alone tells (PAWS, RFC 7323 section 5) */
	bool needs_paws;
	/* TCP_REPAIR_WINDOW */
	uint32_t snd_wl1, snd_wnd, snd_wnd_max, rcv_wnd, rcv_wup;
};
/* -EOPNOTSUPP while urgent data is on its way out, or the peer's urgent byte was not read: a
 * repaired socket knows no mark. Who has read it, and stands before the mark, passes that. */
int tcp_get_repair(const struct tcp_pcb *pcb, struct tcp_repair *repair_out,
		   uint64_t now_ns) MUST_CHECK;
/* The same of a connection whose bytes are received once more as segments
 * (tcp_build_of_peer), which tell of an urgent byte that nobody has read. */
int tcp_get_unread(const struct tcp_pcb *pcb, struct tcp_repair *repair_out,
		   uint64_t now_ns) MUST_CHECK;
/* How many bytes of what was received in order reads would still give. A byte of the queue
 * that is not of the stream is at `urgent_at_out`, which is UINT32_MAX for none. */
uint32_t tcp_unread_len(const struct tcp_pcb *pcb, uint32_t *urgent_at_out);
/* The packet behind `pkt`, the first for NULL, NULL at the end: of what was received in
 * order and not taken; of what was written and not acknowledged; of what is out of
 * order, where a run is a packet with its further parts, and a FIN alone has no byte. */
struct pkt *tcp_unread_next(const struct tcp_pcb *pcb, const struct pkt *pkt);
struct pkt *tcp_queued_next(const struct tcp_pcb *pcb, const struct pkt *pkt);
struct pkt *tcp_run_next(const struct tcp_pcb *pcb, const struct pkt *pkt,
			 uint32_t *seq_out, bool *has_fin_out);
/* The header of a segment as the peer would send it, without checksum, for what cannot
 * be repaired but has to be received: runs, a FIN, the peer's time stamp, an urgent mark.
 * Returns its length, at most 60. */
size_t tcp_build_of_peer(const struct tcp_pcb *pcb, uint8_t *to, uint32_t seq,
			 bool has_fin, uint64_t now_ns);

/* One in TIME_WAIT, which may have no pcb any more, and what a kernel's socket is told to wait
 * in its place: our end is acknowledged, the peer's has come. */
struct tcp_waiting {
	struct flow_key key;
	struct tcp_repair repair;
};
bool tcp_is_waiting(const struct tcp_table *table, const struct flow_key *key);
/* Those that have waited for at most `age_ns`, the latest first: how many of at most `max`. */
unsigned tcp_get_waiting(const struct tcp_table *table, struct tcp_waiting *out, unsigned max,
			 uint64_t age_ns, uint64_t now_ns);
/* That of these names; false: there is none. */
bool tcp_find_waiting(const struct tcp_table *table, const struct flow_key *key,
		      struct tcp_waiting *out, uint64_t now_ns);
/* The kernel waits in its place. */
void tcp_forget_waiting(struct tcp_table *table, const struct flow_key *key);
/* The peer's end as it would repeat it, without checksum. Returns its length, at most 60. */
size_t tcp_build_end_of_peer(const struct tcp_waiting *waiting, uint8_t *to);

/* Segments that came while it stood still, in their order, and that the kernel is to have
 * now. Takes out, and puts, the acknowledgments that tell it nothing, because a later one
 * among them says the same and more. */
void tcp_drop_superseded(const struct tcp_pcb *pcb, struct list *segments);

/* A connection as bytes, which tcp_import makes a connection of again, in another
 * table or process. Its size is 0 for what cannot be moved: listeners, and what is
 * closed, in TIME_WAIT, or not accepted yet. One that was given back becomes one that
 * somebody owns. */
size_t tcp_export_size(const struct tcp_pcb *pcb);
/* The version, which the bytes name behind a magic word: others are refused. */
enum { TCP_EXPORT_VERSION = 7 };
/* Writes so many bytes. -ENOTCONN, -ENOBUFS; the pcb stays as it is. */
int tcp_export(const struct tcp_pcb *pcb, uint8_t *to, size_t size,
	       uint64_t now_ns) MUST_CHECK;
/* Gives a pcb back without a word to the peer and without an event: it lives on
 * elsewhere. */
void tcp_drop(struct tcp_pcb *pcb);
/* The bytes may come from anyone. Packets for what they hold are taken from
 * `pool`. The pcb is the caller's; what it has to read or room to write is raised
 * as events anew. -EINVAL, -EADDRINUSE, -ENOBUFS when the pool
 * ran dry, -ENOMEM. */
int tcp_import(struct tcp_table *table, const uint8_t *data, size_t len,
	       struct pkt_pool *pool, uint64_t now_ns,
	       struct tcp_pcb **pcb_out) MUST_CHECK;

#endif
