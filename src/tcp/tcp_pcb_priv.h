/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pcb, which is all that is kept for a connection, and what hangs on its queues.
 * tcp_priv.h has what the files of the engine do with it.
 */
#ifndef TCP_TCP_PCB_PRIV_H
#define TCP_TCP_PCB_PRIV_H

#include "base/clock.h"
#include "pkt/wire.h"
#include "tcp/tcp.h"
#include "tcp/tcp_bbr.h"
#include "tcp/tcp_hystart.h"
#include "tcp/tcp_options.h"

/* ---- packets on the queues of a pcb ---- */

enum tcp_seg_flag {
	/* transmitted at least once */
	SEG_SENT = 1 << 0,
	/* the peer reported it by SACK */
	SEG_SACKED = 1 << 1,
	/* deemed lost; on pcb.lost until it is sent again */
	SEG_LOST = 1 << 2,
	SEG_FIN = 1 << 3,
	/* end of a write: carries PSH */
	SEG_PUSH = 1 << 4,
	/* the writer has said that more follows */
	SEG_MORE = 1 << 5,
	/* end of a record: what follows does not join it */
	SEG_EOR = 1 << 6,
	/* the owner follows its last byte */
	SEG_STAMP = 1 << 7,
	/* what belongs to the last byte of an entry */
	SEG_OF_END = SEG_PUSH | SEG_MORE | SEG_EOR | SEG_STAMP,
};

/* In the cb of a packet on the send queue. The queue is a list by sequence
 * number; entries that are under way are also on pcb.in_flight in the order of
 * their last transmission, entries that are lost on pcb.lost. */
struct tcp_seg {
	uint64_t sent_ns;
	struct list order;
	uint32_t seq;
	uint8_t flags;
	/* sent more than once: an ACK tells no RTT (Karn); the count does not wrap */
	uint8_t sent_cnt;
	uint16_t spare;
};
_Static_assert(sizeof(struct tcp_seg) <= PKT_CB_SIZE, "fits the packet");

static inline struct tcp_seg *tcp_seg(struct pkt *pkt)
{
	return PKT_CB(pkt, struct tcp_seg);
}

/* The packet of a link on in_flight or lost. */
static inline struct pkt *tcp_seg_pkt(struct list *order)
{
	char *cb = (char *)order - offsetof(struct tcp_seg, order);

	return (struct pkt *)(void *)(cb - offsetof(struct pkt, cb));
}

/* Sequence numbers that the entry covers: its bytes, or one for FIN. */
static inline uint32_t tcp_seg_len(struct pkt *pkt)
{
	return pkt->len + !!(tcp_seg(pkt)->flags & SEG_FIN);
}

static inline uint32_t tcp_seg_end(struct pkt *pkt)
{
	return tcp_seg(pkt)->seq + tcp_seg_len(pkt);
}

/* In the cb of a packet that heads a run of bytes received out of order. The
 * bytes are those of the packet and its further parts. */
struct tcp_run {
	uint32_t seq;
	uint32_t end;
	struct pkt *last_part;
	/* of the buffers */
	uint32_t memory;
	bool has_fin;
};
_Static_assert(sizeof(struct tcp_run) <= PKT_CB_SIZE, "fits the packet");

static inline struct tcp_run *tcp_run(struct pkt *pkt)
{
	return PKT_CB(pkt, struct tcp_run);
}

/* ---- a received segment, parsed ---- */

struct tcp_segment {
	struct pkt *pkt;
	uint32_t seq;
	uint32_t ack;
	/* not yet scaled */
	uint16_t window;
	/* the pointer, whether the flag is there or not */
	uint16_t urgent;
	uint8_t flags;
	/* the ninth flag: accurate ECN, or the highest bit of ACE */
	bool has_ae;
	uint8_t ecn;
	/* of the header, which lies right before the packet's data */
	uint8_t header_len;
	/* payload bytes */
	uint32_t len;
	struct tcp_options options;
};

/* seq behind the segment: SYN and FIN count */
static inline uint32_t tcp_segment_end(const struct tcp_segment *in)
{
	return in->seq + in->len + !!(in->flags & WIRE_TCP_SYN) +
	       !!(in->flags & WIRE_TCP_FIN);
}

/* ---- congestion control ---- */

struct tcp_ack_sample;

/* Of an algorithm that sets window and rate after a model of the path, on each
 * acknowledgment and in recovery, too, where others leave them to tcp_recovery.c. */
struct tcp_model_ops {
	/* So many bytes were delivered. */
	void (*acked)(struct tcp_pcb *pcb, const struct tcp_ack_sample *sample,
		      uint32_t bytes, uint64_t now_ns);
	/* So many are newly deemed lost. */
	void (*lost)(struct tcp_pcb *pcb, uint32_t bytes);
	/* Recovery begins, and ends. */
	void (*recovers)(struct tcp_pcb *pcb, bool is_timeout);
	void (*recovered)(struct tcp_pcb *pcb);
};

/* An algorithm. It keeps its state in pcb.cc and changes cwnd only in `acked`. */
struct tcp_cc_ops {
	const char *name;
	void (*init)(struct tcp_pcb *pcb);
	/* The slow start threshold after a congestion event, in bytes. */
	uint32_t (*ssthresh)(struct tcp_pcb *pcb, uint64_t now_ns);
	/* Outside recovery, `bytes` were acknowledged while cwnd limited the sender. */
	void (*acked)(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns);
	/* Nothing was sent for this time; 0 after a timeout. */
	void (*restarted)(struct tcp_pcb *pcb, uint64_t idle_ns);
	/* The last reduction was a mistake; cwnd has been restored. */
	void (*undone)(struct tcp_pcb *pcb);
	/* NULL: there is no model. It is asked for where the two kinds part. */
	const struct tcp_model_ops *model;
};

extern const struct tcp_cc_ops tcp_cc_newreno, tcp_cc_cubic, tcp_cc_none,
	tcp_cc_bbr;

/* The threshold of slow start while no loss has set one. */
#define TCP_SSTHRESH_NONE (UINT32_MAX / 4)

/* Room for an algorithm's state. */
struct tcp_cubic {
	uint64_t epoch_ns; /* 0: none has begun */
	uint32_t w_max;
	uint32_t k_ms;
	uint32_t w_est;
	uint32_t origin;
	/* in the slow start of the beginning */
	struct tcp_hystart hystart;
};

struct tcp_cc_bbr {
	struct tcp_bbr rules;
	/* when the present round trip began */
	uint32_t tx_in_flight;
	/* since the last acknowledgment */
	uint32_t lost;
};

/* ---- the pcb ---- */

/* Why the retransmission timer runs. */
enum tcp_rtx_kind {
	RTX_NONE,
	RTX_PROBE, /* tail loss probe, RFC 8985 section 7 */
	/* From here on, data sent while the timer runs does not move it further away. */
	RTX_TIMEOUT, /* RFC 6298 */
	/* A probe of a segment alone. Later ones may join it: it does not wait for them,
	 * since the first one's acknowledgment is due before. */
	RTX_LONE_PROBE,
	/* A probe at the time of the timeout, because section 7.2 would set it later.
	 * It becomes a timeout if no probe may be sent any more. */
	RTX_LATE_PROBE,
	RTX_REORDER, /* RACK waits for reordered segments */
	RTX_PERSIST, /* zero window */
};

/* Where loss recovery stands. */
enum tcp_recovery {
	RECOVERY_OPEN,
	/* something is out of order, nothing deemed lost */
	RECOVERY_DISORDER,
	/* the congestion window is being reduced for an ECN echo */
	RECOVERY_CWR,
	/* fast recovery (RFC 6675, 6582, 6937) */
	RECOVERY_FAST,
	/* after a retransmission timeout */
	RECOVERY_LOSS,
};

enum tcp_flag {
	TF_NODELAY = 1 << 0,
	TF_CORK = 1 << 1,
	/* each segment is acknowledged at once: always, or quick_acks_left times */
	TF_QUICK_ACK = 1 << 2,
	TF_KEEPALIVE = 1 << 3,
	/* negotiated */
	TF_SACK = 1 << 4,
	TF_TS = 1 << 5,
	TF_SCALE = 1 << 6,
	TF_ECN = 1 << 7,
	/* an ACK is to be sent at the next opportunity */
	TF_ACK_NOW = 1 << 8,
	/* FIN was received and is in order */
	TF_FIN_RCVD = 1 << 9,
	/* our FIN is queued */
	TF_FIN_QUEUED = 1 << 10,
	/* the owner gave the pcb back */
	TF_ORPHAN = 1 << 11,
	/* the peer shall see ECE until it answers with CWR */
	TF_ECE_OUT = 1 << 12,
	/* the next new data carries CWR */
	TF_CWR_OUT = 1 << 13,
	/* sizes were set by hand */
	TF_RCV_BUF_FIXED = 1 << 14,
	TF_SND_BUF_FIXED = 1 << 15,
	/* waits in its listener's queue */
	TF_IN_ACCEPT_QUEUE = 1 << 16,
	/* hangs in the table of connections */
	TF_HASHED = 1 << 17,
	/* opened by a peer */
	TF_PASSIVE = 1 << 18,
	/* the window was used; ACKs up to cwnd_used_end may widen it */
	TF_CWND_LIMITED = 1 << 19,
	/* urgent data is queued or under way, up to urgent_end */
	TF_URGENT_OUT = 1 << 20,
	/* a reordering was seen on this connection */
	TF_REORDERS = 1 << 21,
	/* the probe in flight carried new data (RFC 8985 section 7.4.2) */
	TF_TLP_NEW = 1 << 22,
	/* the timeout may turn out to be needless (RFC 5682) */
	TF_FRTO = 1 << 23,
	/* Neither Nagle's rule nor a cork holds back what was written up to due_end: its time
	 * was over already, or it has been sent, and a full device has refused it. */
	TF_DUE = 1 << 24,
	/* an RTT was measured */
	TF_HAS_RTT = 1 << 25,
	/* urgent bytes stay in the stream */
	TF_OOB_INLINE = 1 << 26,
	/* F-RTO sends new data before it repairs */
	TF_FRTO_NEW = 1 << 27,
	/* a child that was never accepted: no events, freed quietly */
	TF_UNSEEN = 1 << 28,
	/* its handshake is complete, but the listener wants data first */
	TF_DEFERRED = 1 << 30,
	/* the writer itself pushes: data that it calls incomplete waits */
	TF_MORE_FOLLOWS = 1 << 29,
};

/* What a connection has to do with Fast Open. */
enum tcp_fastopen_flag {
	/* its SYN had the option, or data without it */
	FASTOPEN_ASKS = 1 << 0,
	FASTOPEN_OPTIONLESS = 1 << 1,
	/* opened by a SYN alone, of which the answer is not acknowledged yet: snd_una is
	 * that of our SYN still */
	FASTOPEN_PENDING = 1 << 2,
	/* the answer has a cookie */
	FASTOPEN_GRANTS = 1 << 3,
	/* data of a SYN has arrived */
	FASTOPEN_HAD_DATA = 1 << 4,
	/* in SYN_SENT, and the SYN has not been sent yet: see tcp_connect_held */
	FASTOPEN_HELD = 1 << 5,
	/* an enum tcp_fastopen_failure */
	FASTOPEN_FAILURE_SHIFT = 6,
};

/* Why a connection does not send by the short rules of tcp_fast.c. */
enum tcp_slow_out {
	/* The device splits what is long. One packet is sent by the short rules. */
	SLOW_SPLIT = 1 << 0,
	SLOW_PACED = 1 << 1,
	/* the writer waits for room */
	SLOW_WANTED = 1 << 2,
	/* A segment was acknowledged quickly, at quick_at: what is sent next may be the
	 * answer to it. */
	SLOW_REPLY = 1 << 3,
	/* tcp_set_stamped */
	SLOW_STAMPED = 1 << 4,
};

/* What the time of a sender is counted as. */
enum tcp_chrono {
	CHRONO_IDLE,
	CHRONO_BUSY,
	CHRONO_WINDOW, /* the peer's is full */
	CHRONO_BUFFER, /* all is sent, and the writer waits for room */
};

/* Time in 32 bits, for what need not be exact. A tick is about a millisecond, and the
 * counter wraps after 52 days. */
enum { TICK_SHIFT = 20 };

static inline uint32_t tcp_ticks(uint64_t now_ns)
{
	return (uint32_t)(now_ns >> TICK_SHIFT);
}

struct tcp_pcb {
	/* look-up: touched by every segment */
	struct tcp_pcb *hash_next;
	struct flow_key key;
	struct tcp_table *table;

	/* receiving, in order */
	uint32_t rcv_nxt;
	/* first sequence number the peer may not send; never moves back */
	uint32_t rcv_edge;
	uint32_t ts_recent;
	uint32_t flags; /* enum tcp_flag */
	uint8_t state; /* enum tcp_state */
	/* nothing unusual goes on: see tcp_fast.c */
	bool is_quiet;
	/* what was received or read since the plain header was last used */
	bool is_header_stale;
	/* length of a plain segment's header, and where it says so: the word
	 * with the flags */
	uint8_t plain_len;
	__be16 plain_word;
	uint8_t recovery; /* enum tcp_recovery */
	uint8_t snd_scale;
	uint8_t rcv_scale;
	uint8_t urgent; /* enum tcp_urgent */
	uint8_t urgent_byte;
	/* see tcp_calm, tcp_freeze */
	bool is_calm : 1, is_frozen : 1;
	/* What we send answers what we receive, and carries its acknowledgments (Linux's
	 * ping-pong mode). */
	bool is_talking : 1;
	/* the latest segment with data was the end of a write */
	bool was_pushed : 1;
	uint8_t slow_out; /* a set of enum tcp_slow_out */
	uint8_t chrono; /* enum tcp_chrono */
	uint8_t fastopen; /* a set of enum tcp_fastopen_flag */
	/* a set of enum tcp_event_bit, for whom event_link is on the list */
	uint8_t events;
	/* bytes received since the last ACK left */
	uint32_t unacked_rcvd;
	/* when we last answered a segment that anyone can send again and again; see
	 * tcp_ticks, 0: never */
	uint32_t stray_at;
	struct list rcv_queue;
	/* bytes taken into rcv_queue and not yet reported by tcp_recved */
	uint32_t rcv_unread;
	/* buffers on rcv_queue */
	uint32_t rcv_memory;
	uint32_t rcv_buf;
	/* where in the stream the last ACK stood (RFC 7323: Last.ACK.sent) */
	uint32_t last_ack_sent;
	/* largest segment seen, for ACK and window decisions */
	uint32_t rcv_mss;

	/* sending */
	uint32_t snd_una;
	uint32_t snd_nxt;
	/* behind the last byte queued, FIN included */
	uint32_t snd_end;
	uint32_t snd_wnd;
	uint32_t snd_wnd_max;
	/* seq of the segment that last updated the window */
	uint32_t snd_wl1;
	/* end of the last segment that was smaller than a full one (Minshall) */
	uint32_t snd_small_end;
	uint32_t mss;
	uint32_t snd_buf;
	/* from snd_una to snd_end by sequence; `unsent` is the first not sent */
	struct list snd_queue;
	struct pkt *unsent;
	struct list in_flight;
	struct list lost;
	/* entries with SEG_STAMP */
	uint32_t stamp_cnt;

	/* addresses and protocol, for checksums */
	uint32_t pseudo_sum;
	/* the header of a plain segment, see tcp_fast_init */
	struct {
		struct wire_tcp header;
		__be32 ts_head;
		__be32 ts_val;
		__be32 ts_ecr;
	} plain;
	/* of the pseudo header, and of the fields of the plain one that never change */
	uint32_t plain_sum;

	/* congestion */
	uint32_t cwnd;
	uint32_t ssthresh;
	uint32_t sacked_bytes;
	uint32_t lost_bytes;
	/* snd_nxt when cwnd was last full, see TF_CWND_LIMITED */
	uint32_t cwnd_used_end;
	/* recovery ends when snd_una passes this */
	uint32_t recovery_point;
	/* behind the last urgent byte that was written, see TF_URGENT_OUT */
	uint32_t urgent_end;
	const struct tcp_cc_ops *cc_ops;
	union {
		struct tcp_cubic cubic;
		struct tcp_cc_bbr bbr;
		uint32_t acked;
	} cc;

	/* Bytes in a second that the algorithm wants; 0: it does not pace. It calls
	 * tcp_pace_update after a change between the two. */
	uint64_t pacing_rate;
	/* when all that was sent is through at the rate */
	uint64_t pace_at_ns;
	/* nothing leaves before; 0: something may */
	uint64_t pace_wait_ns;
	/* the latest burst: when it began, its bytes */
	uint64_t pace_begun_ns;
	uint32_t pace_burst;

	/* when min_rtt_ns was measured, see tcp_ticks */
	uint32_t min_rtt_at;
	/* what the timeouts were set for, in units of tcp_rtt.c */
	uint32_t timed_srtt;
	uint32_t timed_rttvar;
	/* round-trip times, in nanoseconds */
	uint64_t srtt_ns;
	uint64_t rttvar_ns;
	uint64_t rto_ns;
	uint64_t min_rtt_ns;
	/* no sample is needed before */
	uint64_t rtt_due_ns;

	/* timers: one in the wheel, armed no later than the earliest of these;
	 * 0 is off */
	struct timer timer;
	/* what it is set for; 0: not pending */
	uint64_t armed_ns;
	uint64_t rtx_at_ns;
	uint64_t delack_at_ns;
	uint64_t keep_at_ns;
	/* of the present state: SYN retries, FIN_WAIT_2 */
	uint64_t state_at_ns;
	/* how long a quiet connection waits, and for what, with more than one segment
	 * under way or with one alone; follows from the round trips */
	uint64_t quiet_rtx_ns;
	uint64_t quiet_lone_ns;
	uint8_t quiet_kind;
	uint8_t quiet_lone_kind;
	uint8_t rtx_kind; /* enum tcp_rtx_kind */
	/* doublings of the timeout; only a known round trip ends them (RFC 6298
	 * section 5.7), while the decision to give up counts `timeouts` */
	uint8_t backoff;
	/* retransmission timeouts since the peer last took something new, or
	 * said that it cannot */
	uint8_t timeouts;
	uint8_t probes; /* keepalive and persist, unanswered */
	uint8_t quick_acks_left;
	uint8_t cc_id;
	/* when the oldest data in flight, or the probe, was first sent; start of the
	 * user timeout */
	uint64_t progress_ns;
	uint64_t last_sent_ns;
	uint64_t last_rcvd_ns;

	/* out of order: runs by sequence */
	struct list runs;
	uint32_t ooo_bytes;
	uint32_t ooo_memory;
	/* the run that last grew, where the next segment likely belongs */
	struct pkt *run_hint;
	/* what SACK reports first (RFC 2018 section 4), ends kept up to date */
	struct tcp_sack_block recent[TCP_SACK_BLOCKS_MAX];
	uint8_t recent_cnt;
	/* of sack_seen */
	uint8_t sack_seen_cnt;
	/* see tlp_end, undo_resent */
	bool has_tlp;
	bool undo_has_resent;
	/* duplicate to report once (RFC 2883); empty: none */
	struct tcp_sack_block dsack;

	/* the peer's last SACK blocks: what of a new one is news */
	struct tcp_sack_block sack_seen[TCP_SACK_BLOCKS_MAX];
	/* how long the peer has let a lone segment wait, beyond a round trip; see
	 * tcp_rtt.c */
	uint32_t lone_wait_us;
	struct pkt *sack_hint;
	/* entries of the queue that are sacked, however small */
	uint32_t sacked_cnt;
	/* behind the highest byte sacked */
	uint32_t sack_high;

	/* RACK (RFC 8985 section 5.2) */
	uint64_t rack_sent_ns;
	uint64_t rack_rtt_ns;
	uint32_t rack_end;
	uint32_t rack_round_end;
	uint8_t rack_mult;
	uint8_t rack_persist;
	/* duplicate ACKs without SACK (RFC 5681) */
	uint16_t dup_acks;
	/* end of the tail loss probe, while one is under way */
	uint32_t tlp_end;

	/* proportional rate reduction (RFC 6937) */
	uint32_t prr_delivered;
	uint32_t prr_out;
	uint32_t prr_flight;

	/* what to go back to when the reduction was a mistake */
	uint32_t undo_cwnd;
	uint32_t undo_ssthresh;
	/* snd_una at its start; valid while undo_cwnd is not 0 */
	uint32_t undo_una;
	/* retransmissions that no DSACK has called needless */
	uint32_t undo_resent;
	/* our clock at the first of them (Eifel, RFC 3522) */
	uint32_t undo_ts;

	uint64_t ts_recent_ns;
	uint32_t ts_offset;
	uint32_t iss;
	uint32_t irs;
	/* the byte that the peer marked as urgent, if it did */
	uint32_t urgent_seq;
	/* the table's, or those of tcp_settings.c */
	struct tcp_settings *settings;
	uint64_t cork_ns;
	uint16_t mss_peer;
	/* See SLOW_REPLY: the low bits of tcp_ticks(). Once in a minute they mistake an
	 * old segment for a new one, which costs a few quick acknowledgments. */
	uint16_t quick_at;
	struct tcp_path path;
	/* the size that the path was found to carry, and when; 0: no limit was found */
	uint16_t pmtu;
	/* error reported by ICMP; a connection that ends in silence ends with this
	 * error */
	int16_t soft_error;
	int16_t error;
	/* how far segments were out of order, in segments */
	uint16_t reordering;
	uint32_t pmtu_at; /* see tcp_ticks */
	uint32_t retransmitted;

	/* see struct tcp_pcb_stats and tcp_stats.c */
	uint32_t segs_in;
	uint32_t segs_out;
	uint32_t data_segs_in;
	uint32_t data_segs_out;
	uint32_t delivered;
	uint32_t delivered_ce;
	uint32_t acked_halves;
	uint32_t received_halves;
	uint32_t duplicates;
	uint32_t reorderings;
	uint32_t out_of_order;
	uint16_t timeouts_ever;
	uint16_t timeout_runs;
	/* what the runs of timeouts that are over took; when the present one began, 0:
	 * there is none; see tcp_ticks */
	uint32_t timeout_ticks;
	uint32_t timeout_since;
	uint32_t busy_ticks;
	uint32_t window_ticks;
	uint32_t buffer_ticks;
	/* snd_end when the writer found no room, see SLOW_WANTED */
	uint32_t wanted_end;
	uint32_t chrono_since;
	/* bytes, unsent by the state of the queue, that our SYN carried */
	uint32_t syn_data;
	uint64_t bytes_resent;

	/* See tcp_rate.c: the segment behind this one is looked at. Below, what had
	 * arrived when it was to be sent, when that was, and when the latest that had
	 * arrived was sent. */
	uint32_t rate_mark;
	uint32_t rate_delivered;
	uint64_t rate_mark_ns;
	uint64_t rate_sent_ns;
	/* bytes in a second; 0: not known */
	uint64_t delivery_rate;
	bool is_mark_app_limited;
	bool is_mark_taken;
	bool is_rate_app_limited;
	/* ECN is accurate, see tcp_accecn.c; TF_ECN is set, too */
	bool is_accurate;

	/* receive-buffer tuning: bytes taken in the present round trip */
	uint32_t tune_taken;
	uint64_t tune_start_ns;

	/* events */
	struct list event_link;
	struct list table_link;
	void *user;

	/* listeners: their children; children: their listener */
	struct tcp_listener *listener;
	struct list child_link;
	/* what few connections need, or NULL: see tcp_extra_get */
	struct tcp_extra *extra;
	/* see TF_DUE */
	uint32_t due_end;

	/* the FIN, when queued: an entry without bytes */
	struct pkt fin;
};

_Static_assert(sizeof(struct tcp_pcb) <= 1304, "an idle connection is cheap");

/* Whether what ends there is under way. A mark that was set long ago is not moved while
 * nothing unusual happens (tcp_fast.c), and half a round later seems to lie ahead: it has
 * to be asked for like this. */
static inline bool tcp_is_under_way(const struct tcp_pcb *pcb, uint32_t end)
{
	return end - pcb->snd_una - 1 < pcb->snd_nxt - pcb->snd_una;
}

/* What a segment without data is numbered: snd_nxt, unless the peer has taken back its
 * window, so that this is out of it, and neither an acknowledgment nor a reset would be
 * read. What the scale cut off the window does not count. */
static inline uint32_t tcp_bare_seq(const struct tcp_pcb *pcb)
{
	uint32_t flight = pcb->snd_nxt - pcb->snd_una;

	if (LIKELY(flight <= pcb->snd_wnd) ||
	    flight - pcb->snd_wnd < 1u << pcb->snd_scale)
		return pcb->snd_nxt;
	return pcb->snd_una + pcb->snd_wnd;
}

#endif
