/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the engine share: the table, and the functions of each file. */
#ifndef TCP_TCP_PRIV_H
#define TCP_TCP_PRIV_H

#include "tcp/tcp_pcb_priv.h"
#include "tcp/tcp_peers.h"
#include "tcp/tcp_seq.h"

/* So many in a second. */
struct tcp_limit {
	uint64_t second_ns;
	uint32_t cnt;
};

struct tcp_fastopen_keys {
	struct hash_key key[2];
	uint32_t cnt;
};
_Static_assert(ARRAY_LEN(((struct tcp_fastopen_keys *)0)->key) == TCP_FASTOPEN_KEYS,
	       "as many as may be set");

/* What only a pcb in LISTEN has. */
struct tcp_listener {
	struct tcp_pcb *pcb;
	struct list link; /* in the bucket of its port */
	/* struct tcp_pcb.child_link */
	struct list half_open;
	struct list accept_queue;
	uint32_t half_open_cnt;
	uint32_t accept_cnt;
	uint32_t backlog;
	/* as tcp_listen_shared says */
	bool is_shared, yields;
	struct tcp_limit syn_limit;
	/* when a cookie was last sent: only then may one come back */
	uint64_t cookie_ns;
	/* opened by Fast Open and pending, accepted or not; those of them that were reset
	 * of late, and when the last one was */
	struct list early; /* struct tcp_extra */
	uint32_t early_cnt;
	uint32_t early_resets;
	uint64_t early_reset_ns;
	/* of its cookies; none: the table's */
	struct tcp_fastopen_keys keys;
};

/* RFC 9768: what was counted of a peer's packets, and what it has told of ours. */
struct tcp_accecn {
	/* packets with CE; bytes of payload by the bits of their packets */
	uint32_t rcvd_ce;
	uint32_t rcvd_ce_bytes;
	uint32_t rcvd_ect0_bytes;
	uint32_t rcvd_ect1_bytes;
	/* the first three as the peer last heard of them, and when */
	uint32_t told_ce;
	uint32_t told_ce_bytes;
	uint32_t told_ect1_bytes;
	uint64_t told_ns;
	/* what the peer has counted of ours: packets, as far as they are known, and
	 * bytes as its last option said */
	uint32_t sent_ce;
	uint32_t sent_ce_bytes;
	/* the bits of the last packet with payload, and of the peer's SYN */
	uint8_t last_ecn;
	uint8_t syn_ecn;
	/* the next segment says what the peer's SYN looked like on arrival */
	bool reflects;
	/* no segment of the peer without SYN has come yet; this one has the bits of the
	 * handshake */
	bool awaits_first;
	bool is_third;
	/* Somebody on the way writes what he likes: nothing of ours is capable any more;
	 * or options of the peer are not believed. */
	bool is_mangled;
	bool has_bad_options;
};

/* What few connections need. It stays for the life of the pcb. */
struct tcp_extra {
	/* While Fast Open has it open and the handshake is not over. The listener may be
	 * gone: NULL. */
	struct list early_link; /* struct tcp_listener.early */
	struct tcp_listener *early_of;
	struct tcp_accecn accecn;
	/* of a child whose listener keeps SYNs, until it is taken; else NULL */
	struct tcp_saved_syn *saved_syn;
};

/* The headers of a SYN, as they came. */
struct tcp_saved_syn {
	uint32_t len;
	uint8_t bytes[TCP_SAVED_SYN_MAX];
};

enum { TCP_LISTEN_BUCKETS = 256 };

struct tcp_table {
	struct tcp_params params;
	/* of who has not changed his */
	struct tcp_settings settings;
	const struct tcp_ops *ops;
	void *ctx;
	struct timer_wheel *wheel;
	struct pkt_pool *borrowers;
	uint64_t hash_seed;

	struct tcp_pcb **buckets;
	uint32_t bucket_cnt;
	/* being emptied while the table grows; NULL when it does not */
	struct tcp_pcb **old_buckets;
	uint32_t old_bucket_cnt;
	uint32_t old_next;
	uint32_t hashed_cnt;
	uint32_t pcb_cnt;
	/* the one found last, or NULL */
	struct tcp_pcb *recent;

	struct list listeners[TCP_LISTEN_BUCKETS];
	struct list events;
	/* all, by table_link */
	struct list pcbs;
	/* named with TCP_EV_GONE by the last tcp_event_next */
	struct tcp_pcb *gone;

	struct tcp_peers peers;
	struct tcp_tw_table *tw;
	struct tcp_limit challenge_limit;
	/* how many challenges may leave in this second */
	uint32_t challenge_budget;
	struct tcp_limit reset_limit;
	struct tcp_fastopen_keys fastopen_keys;
	/* pauses since the last success; until when the present one lasts, 0: none */
	uint32_t fastopen_pauses;
	uint64_t fastopen_pause_ns;
	struct tcp_counts counts;
	/* counts.out_segments when there last was room (tcp_ops.no_room_ns) */
	uint64_t had_room_at;
};

/* tcp.c */
struct tcp_pcb *tcp_pcb_create(struct tcp_table *table);
/* Frees the pcb at once and tells nobody. The caller knows that nobody holds it. */
void tcp_pcb_free(struct tcp_pcb *pcb);
void tcp_pcb_set_key(struct tcp_pcb *pcb, const struct flow_key *key,
		     uint32_t iss);
void tcp_event_raise(struct tcp_pcb *pcb, unsigned what);
/* The same for a pcb whose owner listens for events. */
static inline void tcp_event_mark(struct tcp_pcb *pcb, unsigned what)
{
	pcb->events |= what;
	if (!list_is_linked(&pcb->event_link))
		list_push_back(&pcb->table->events, &pcb->event_link);
}
/* The connection is over: the pcb leaves the table, its queues are freed and its
 * timers stop. The owner hears of `error`; a pcb without owner is freed. */
void tcp_pcb_die(struct tcp_pcb *pcb, int error);
/* Makes it if there is none; NULL without memory. */
struct tcp_extra *tcp_extra_get(struct tcp_pcb *pcb);
void tcp_pcb_established(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sets the algorithm of cc_id, in its initial state. */
void tcp_pcb_restore_cc(struct tcp_pcb *pcb);
/* Both FINs are through: a TIME_WAIT entry takes over (RFC 9293 3.10.7.4). */
void tcp_pcb_to_time_wait(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sets mss, buffers and options from the path and from the peer's SYN. */
void tcp_pcb_apply_syn(struct tcp_pcb *pcb, const struct tcp_segment *in,
		       uint64_t now_ns);
/* The longest segment, without options, that the pcb, or a connection of this listener, wants
 * on a path; and the one that its SYN offers to the peer. */
uint16_t tcp_own_mss(const struct tcp_pcb *pcb, const struct tcp_path *path,
		     const struct flow_key *key);
uint16_t tcp_syn_mss(const struct tcp_pcb *pcb, const struct tcp_path *path,
		     const struct flow_key *key);
uint16_t tcp_pcb_syn_mss(const struct tcp_pcb *pcb);
void tcp_pcb_update_mss(struct tcp_pcb *pcb);
/* Headers of an IP packet with data. */
uint32_t tcp_overhead(const struct tcp_pcb *pcb);
/* Whether one more of the limited kind may happen in this second; counts it if so. */
bool tcp_limit_allows(struct tcp_limit *limit, uint32_t per_sec,
		      uint64_t now_ns);
/* RFC 6528 */
uint32_t tcp_isn(const struct tcp_table *table, const struct flow_key *key,
		 uint64_t now_ns);

uint32_t tcp_ts_offset(const struct tcp_table *table,
		       const struct flow_key *key);
uint16_t tcp_path_mss(const struct tcp_params *params,
		      const struct tcp_path *path, const struct flow_key *key);
uint8_t tcp_rcv_scale(const struct tcp_pcb *pcb);

/* tcp_stats.c */
/* Half a round of sequence numbers may have gone by. */
void tcp_stats_note_halves(struct tcp_pcb *pcb);

/* Is called now and then, before 2^31 bytes have gone by. */
static inline void tcp_stats_note_bytes(struct tcp_pcb *pcb)
{
	uint32_t acked = (pcb->snd_una - pcb->iss - 1) >> 31;
	uint32_t received = (pcb->rcv_nxt - pcb->irs - 1) >> 31;

	if (UNLIKELY(((pcb->acked_halves ^ acked) |
		      (pcb->received_halves ^ received)) & 1))
		tcp_stats_note_halves(pcb);
}
/* From now on, time is counted as this kind. */
void tcp_stats_pass(struct tcp_pcb *pcb, enum tcp_chrono kind, uint64_t now_ns);

/* Something is under way. */
static inline void tcp_stats_begin(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (pcb->chrono != CHRONO_IDLE)
		return;
	pcb->chrono = CHRONO_BUSY;
	pcb->chrono_since = tcp_ticks(now_ns);
}

/* Decides what the time counts as, after as much was sent as may be. */
/* A timeout, before pcb->timeouts counts it, and the end of what it repaired. */
void tcp_stats_timeout(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_stats_repaired(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_stats_sent(struct tcp_pcb *pcb, uint64_t now_ns);

static inline void tcp_stats_set(struct tcp_pcb *pcb, enum tcp_chrono kind,
				 uint64_t now_ns)
{
	if (pcb->chrono != kind)
		tcp_stats_pass(pcb, kind, now_ns);
}

/* tcp_rate.c */
/* The next segment to be sent is looked at. */
void tcp_rate_mark(struct tcp_pcb *pcb, uint64_t now_ns);
/* Is called now and then when something was acknowledged. */
void tcp_rate_take(struct tcp_pcb *pcb, uint64_t now_ns);
/* For a model, which calls this for each ACK of something. Returns whether a round trip
 * is over. The rate stays as it is where none was measured. */
bool tcp_rate_round(struct tcp_pcb *pcb, uint64_t *rate_out,
		    uint32_t *delivered_out, uint64_t now_ns);

/* Whether so many bytes, the last that were under way, tell no higher rate than the known
 * one: for the path of a request and its answer, which no division shall burden. */
static inline bool tcp_rate_is_no_news(const struct tcp_pcb *pcb, uint32_t bytes,
				       uint64_t now_ns)
{
	uint64_t time_ns = now_ns - pcb->rate_mark_ns;

	/* the program limits the sender, not the window */
	return !pcb->unsent && pcb->cwnd >= pcb->mss &&
	       bytes * NS_PER_SEC <=
		       (unsigned __int128)pcb->delivery_rate * time_ns;
}

/* Nothing is under way, and a segment leaves: the first one to arrive tells a rate. */
static inline void tcp_rate_begin(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->rate_mark = pcb->rate_delivered = pcb->snd_una;
	pcb->rate_mark_ns = pcb->rate_sent_ns = now_ns;
	pcb->is_mark_taken = false;
}

/* tcp_accecn.c */
/* The three bits of ACE. */
uint8_t tcp_ace(const struct tcp_segment *in);
/* A SYN has come and we want ECN to be accurate, or it is the answer to ours that asked for
 * it. Returns whether it is. */
bool tcp_accecn_begin(struct tcp_pcb *pcb, const struct tcp_segment *in);
/* The answer to a SYN that asks for it. */
uint8_t tcp_accecn_answer(const struct tcp_pcb *pcb);
/* The ACK of our answer tells what became of its bits. */
void tcp_accecn_third(struct tcp_pcb *pcb, const struct tcp_segment *in);
/* Counts a segment. */
void tcp_accecn_count(struct tcp_pcb *pcb, const struct tcp_segment *in);
/* Takes what an ACK reports, which acknowledges so many packets. */
void tcp_accecn_take(struct tcp_pcb *pcb, const struct tcp_segment *in,
		     struct tcp_ack_sample *sample, uint32_t packets);
/* The bits of the next segment. */
uint8_t tcp_accecn_ace(struct tcp_pcb *pcb);
/* Whether a segment without payload has counters to tell; and what. */
bool tcp_accecn_is_due(const struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_accecn_fill(struct tcp_pcb *pcb, struct tcp_options *options,
		     uint64_t now_ns);

/* What we ask for in a SYN, and accept in another's. */
static inline bool tcp_asks_accurate(const struct tcp_params *params)
{
	return params->ecn == TCP_ECN_ACCURATE;
}

static inline bool tcp_asks_ecn(const struct tcp_params *params)
{
	return params->ecn == TCP_ECN_ON || params->ecn == TCP_ECN_ACCURATE ||
	       params->ecn == TCP_ECN_ACCURATE_ACCEPTED_ASKS;
}

static inline bool tcp_accepts_accurate(const struct tcp_params *params)
{
	return params->ecn >= TCP_ECN_ACCURATE;
}

/* tcp_fastopen.c */
void tcp_fastopen_init(struct tcp_table *table);
enum tcp_fastopen_verdict {
	FASTOPEN_NO,
	/* the answer has a cookie */
	FASTOPEN_GRANT,
	/* the SYN opens the connection, be it with a new cookie */
	FASTOPEN_EARLY,
	FASTOPEN_EARLY_AND_GRANT,
};
/* What a SYN for the listener is worth. */
enum tcp_fastopen_verdict
tcp_fastopen_judge(struct tcp_listener *listener, const struct flow_key *key,
		   const struct tcp_segment *in, uint64_t now_ns);
/* The child of such a SYN is open, and takes its data; false: there was no memory. */
bool tcp_fastopen_accept(struct tcp_pcb *child, struct tcp_segment *in,
			 uint64_t now_ns);
/* The handshake is over, or the child. */
void tcp_fastopen_settle(struct tcp_pcb *child);
/* A reset ends it before that. */
void tcp_fastopen_note_reset(struct tcp_pcb *child, uint64_t now_ns);
/* The listener goes. */
void tcp_fastopen_forget(struct tcp_listener *listener);
/* The options of an answer, and of a SYN. */
void tcp_fastopen_grant(const struct tcp_pcb *child,
			struct tcp_options *options);
void tcp_fastopen_ask(const struct tcp_pcb *pcb, struct tcp_options *options,
		      uint64_t now_ns);
enum tcp_fastopen_failure tcp_fastopen_failure(const struct tcp_pcb *pcb);
/* The first SYN is about to leave: decides what it carries of what is queued. */
void tcp_fastopen_begin(struct tcp_pcb *pcb, uint64_t now_ns);
/* Our SYN is acknowledged, with its data or without; false if the number is wrong. */
bool tcp_fastopen_answered(struct tcp_pcb *pcb, const struct tcp_segment *in,
			   uint64_t now_ns);
/* A SYN or data was not answered in time; before it is counted. */
void tcp_fastopen_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns);

static inline bool tcp_is_pending(const struct tcp_pcb *pcb)
{
	return pcb->fastopen & FASTOPEN_PENDING;
}

/* tcp_metrics.c */
void tcp_metrics_free(struct tcp_table *table);
/* The place of the peer, or NULL. */
struct tcp_peer *tcp_metrics_place(struct tcp_pcb *pcb, uint64_t now_ns);
/* The connection ends well. */
void tcp_metrics_save(struct tcp_pcb *pcb, uint64_t now_ns);
/* A router has said how much the path carries. */
void tcp_metrics_save_pmtu(struct tcp_pcb *pcb, uint64_t now_ns);
/* The connection is open: the first before the windows are set, the second behind. */
void tcp_metrics_use_pmtu(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_metrics_use(struct tcp_pcb *pcb, uint64_t now_ns);

/* tcp_settings.c */
void tcp_settings_init(struct tcp_table *table);
/* Gives the pcb the settings of the table again. */
void tcp_settings_put(struct tcp_pcb *pcb);
void tcp_settings_share(struct tcp_pcb *pcb, struct tcp_pcb *with);
/* Gives the pcb settings of its own, so that they can be changed; or -ENOMEM. */
int tcp_settings_own(struct tcp_pcb *pcb) MUST_CHECK;
/* Shares the settings again if they equal the table's after all. */
void tcp_settings_drop_usual(struct tcp_pcb *pcb);
/* Sets the size of the receive buffer, as far as the clamp allows. */
uint32_t tcp_rcv_buf_within(const struct tcp_pcb *pcb, uint64_t bytes);

/* tcp_export.c */
bool tcp_can_move(const struct tcp_pcb *pcb);

/* tcp_table.c */
void tcp_table_free_buckets(struct tcp_table *table);
struct tcp_pcb *tcp_table_look_up(struct tcp_table *table,
				  const struct flow_key *key);

/* Segments come in batches of one connection. */
static inline struct tcp_pcb *tcp_table_find(struct tcp_table *table,
					     const struct flow_key *key)
{
	struct tcp_pcb *recent = table->recent;

	if (LIKELY(recent && flow_key_eq(&recent->key, key)))
		return recent;
	return tcp_table_look_up(table, key);
}

int tcp_table_insert(struct tcp_table *table, struct tcp_pcb *pcb) MUST_CHECK;
void tcp_table_remove(struct tcp_table *table, struct tcp_pcb *pcb);
struct list *tcp_table_listeners(struct tcp_table *table, __be16 port);
/* Of several that share their port the one for this key. */
struct tcp_listener *tcp_table_find_listener(struct tcp_table *table,
					     const struct flow_key *key);

/* tcp_fast.c is tcp.h's tcp_input and tcp_input_batch */
/* Is called once the connection is established. */
void tcp_fast_init(struct tcp_pcb *pcb);
/* Sends what the plain rules allow; what stays in `unsent` needs the general code. */
void tcp_fast_push(struct tcp_pcb *pcb, uint64_t now_ns);
/* Is called after a change to anything that makes a connection unusual. */
void tcp_fast_update(struct tcp_pcb *pcb);

/* tcp_in.c */
/* Verifies the checksum where no verdict is given, and stores one. */
bool tcp_in_is_intact(const struct tcp_in *in);
/* Handles a segment by the general rules. Takes its packet. */
void tcp_in_segment(struct tcp_table *table, struct tcp_in *in,
		    uint64_t now_ns) COLD;

/* tcp_ack.c */
/* Handles the acknowledgment of a segment in a synchronised state. Returns false when
 * the segment is to be dropped. */
bool tcp_ack_in(struct tcp_pcb *pcb, struct tcp_segment *in, uint64_t now_ns);

/* What an ACK brought, collected while it is processed. */
struct tcp_ack_sample {
	uint32_t prior_una;
	/* sack_high before it */
	uint32_t prior_high;
	/* bytes newly known to have arrived, by ACK or SACK */
	uint32_t delivered;
	/* RTT of the latest segment among them; 0: none can tell */
	uint64_t rtt_ns;
	/* entries newly sacked */
	uint32_t sacked_cnt;
	/* bytes were delivered that had been sent only once */
	bool has_original;
	/* and bytes that had been sent again */
	bool has_resent;
	/* without SACK: one more of the same acknowledgment */
	bool is_duplicate;
	/* a DSACK block came */
	bool has_dsack;
	/* snd_una advanced */
	bool has_advanced;
	/* bytes were newly deemed lost */
	bool has_loss;
	/* congestion was experienced: so many bytes, the rest of the report if they are not
	 * counted */
	bool is_ece;
	uint32_t marked;
	uint32_t ts_ecr;
	bool has_ts;
	struct tcp_sack_block dsack;
};

/* tcp_sack.c */
/* Marks what the blocks of a segment report. */
void tcp_sack_in(struct tcp_pcb *pcb, const struct tcp_segment *in,
		 struct tcp_ack_sample *sample, uint64_t now_ns);
/* An entry has arrived, so its bytes leave the sums of the scoreboard. */
void tcp_sack_forget(struct tcp_pcb *pcb, struct pkt *pkt);
void tcp_sack_mark_lost(struct tcp_pcb *pcb, struct pkt *pkt);
/* The entry is no longer lost, because it is sent again. */
static inline void tcp_sack_unmark_one(struct tcp_pcb *pcb, struct pkt *pkt)
{
	if (!(tcp_seg(pkt)->flags & SEG_LOST))
		return;
	tcp_seg(pkt)->flags &= (uint8_t)~SEG_LOST;
	pcb->lost_bytes -= tcp_seg_len(pkt);
}
/* Everything not sacked is lost; what was sacked stays (RFC 8985 section 6.3). */
void tcp_sack_mark_all_lost(struct tcp_pcb *pcb);
/* Nothing is lost after all: a reduction was undone. */
void tcp_sack_unmark_lost(struct tcp_pcb *pcb);

/* Bytes under way: RFC 6675 section 4 "pipe". What was sent again is under way
 * again, and no longer counted as lost. */
static inline uint32_t tcp_pipe(const struct tcp_pcb *pcb)
{
	return pcb->snd_nxt - pcb->snd_una - pcb->sacked_bytes -
	       pcb->lost_bytes;
}

/* tcp_rack.c */
/* An entry was delivered: advances the most recent transmission known. */
void tcp_rack_delivered(struct tcp_pcb *pcb, struct pkt *pkt,
			struct tcp_ack_sample *sample, uint64_t now_ns);
/* Marks what must be lost by now. Returns the time until the next could be, or 0. */
uint64_t tcp_rack_detect(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_rack_on_dsack(struct tcp_pcb *pcb);
void tcp_rack_on_recovery_end(struct tcp_pcb *pcb);
void tcp_rack_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns);
/* Returns the time of a probe if one may be scheduled, or 0. */
uint64_t tcp_tlp_timeout_ns(const struct tcp_pcb *pcb);

/* A quarter more is granted, which is the 200 ms that the RFC has for a delayed
 * acknowledgment. */
enum { TCP_LONE_WAIT_MAX_US = 160000, LONE_WAIT_GRANT_NS = 1250 };

/* Shorter waits are all the same. Where round trips are as short, a probe would be needless
 * whenever the peer has to think. */
enum { TCP_LONE_WAIT_MIN_US = 4000 };

/* The same without the conditions. One segment alone may wait for a delayed
 * acknowledgment: as long as we have seen the peer take. */
static inline uint64_t tcp_tlp_after_ns(const struct tcp_pcb *pcb, bool is_lone)
{
	if (!is_lone)
		return 2 * pcb->srtt_ns + 2 * NS_PER_MS;
	return pcb->srtt_ns + pcb->srtt_ns / 2 + 2 * pcb->rttvar_ns +
	       (uint64_t)pcb->lone_wait_us * LONE_WAIT_GRANT_NS + 2 * NS_PER_MS;
}
void tcp_tlp_fire(struct tcp_pcb *pcb, uint64_t now_ns);
/* Handles what an ACK tells about the outstanding probe; sets has_loss if the probe
 * repaired a loss. */
void tcp_tlp_on_ack(struct tcp_pcb *pcb, const struct tcp_segment *in,
		    const struct tcp_ack_sample *sample, uint64_t now_ns);

/* tcp_recovery.c */
/* Updates state, window and undo. The scoreboard must be up to date. */
/* Returns the time until RACK wants to look again; 0: it need not. */
uint64_t tcp_recovery_on_ack(struct tcp_pcb *pcb,
			     struct tcp_ack_sample *sample, uint64_t now_ns);
void tcp_recovery_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns);
/* One reduction for a loss that a probe repaired, or an ECN echo. */
void tcp_recovery_enter_cwr(struct tcp_pcb *pcb, uint64_t now_ns);
/* Returns how much may be sent now, without news from the peer. */
void tcp_recovery_grant(struct tcp_pcb *pcb);
/* The size of the send buffer that a connection has when it opens. */
void tcp_recovery_begin_snd_buf(struct tcp_pcb *pcb);
/* `bytes` were acknowledged, from prior_una on, while the window may grow. It grows if
 * it was used in this round trip. */
void tcp_recovery_grow(struct tcp_pcb *pcb, uint32_t prior_una, uint32_t acked,
		       uint64_t now_ns);

/* So many bytes are newly deemed lost without news from the peer. */
static inline void tcp_recovery_note_lost(struct tcp_pcb *pcb, uint32_t bytes)
{
	if (pcb->cc_ops->model)
		pcb->cc_ops->model->lost(pcb, bytes);
}

/* The congestion window limits the sender. */
static inline void tcp_cwnd_note_used(struct tcp_pcb *pcb)
{
	pcb->flags |= TF_CWND_LIMITED;
	pcb->cwnd_used_end = pcb->snd_nxt;
}
/* RACK's timer found losses. */
void tcp_recovery_enter_fast(struct tcp_pcb *pcb, uint64_t now_ns);

/* tcp_rtt.c */
/* pcb.timed_srtt: the timeouts are to be set by the next round trip. */
#define TCP_NOT_TIMED (UINT32_MAX / 2)

void tcp_rtt_init(struct tcp_pcb *pcb);
void tcp_rtt_take(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns);
/* The handshake measured no round trip: RFC 6298 section 5.7. */
void tcp_rtt_be_careful(struct tcp_pcb *pcb);
/* The first timeout is one for this round trip. */
void tcp_rtt_expect(struct tcp_pcb *pcb, uint64_t rtt_ns);
void tcp_rtt_set_lone_wait(struct tcp_pcb *pcb);

/* What was under way is acknowledged, and it was a segment alone. How long it took beyond
 * the shortest round trip is, for the most part, the peer's: the longest wait counts, and
 * is forgotten by quarters. */
static inline void tcp_rtt_note_lone(struct tcp_pcb *pcb)
{
	/* `rack_rtt_ns` may be the shortest of all, and not be known as such yet */
	int64_t wait_ns = (int64_t)(pcb->rack_rtt_ns - pcb->min_rtt_ns);

	if (UNLIKELY(wait_ns > TCP_LONE_WAIT_MIN_US * (int64_t)NS_PER_US ||
		     pcb->lone_wait_us != TCP_LONE_WAIT_MIN_US))
		tcp_rtt_set_lone_wait(pcb);
}

/* A probe was needless: the peer may let lone segments wait after all. */
void tcp_rtt_expect_wait(struct tcp_pcb *pcb);
/* Returns the timeout with its backoff. */
uint64_t tcp_rto_ns(const struct tcp_pcb *pcb);

/* Whether this round trip is to be worked in, that of something that was sent once. */
static inline bool tcp_rtt_is_due(const struct tcp_pcb *pcb, uint64_t rtt_ns,
				  uint64_t now_ns)
{
	return now_ns >= pcb->rtt_due_ns || rtt_ns < pcb->min_rtt_ns;
}

static inline void tcp_rtt_sample(struct tcp_pcb *pcb, uint64_t rtt_ns,
				  uint64_t now_ns)
{
	if (tcp_rtt_is_due(pcb, rtt_ns, now_ns))
		tcp_rtt_take(pcb, MAX(rtt_ns, UINT64_C(1)), now_ns);
}

/* Nothing is under way any more, since what was has arrived. */
static inline void tcp_stats_note_flight(struct tcp_pcb *pcb, uint64_t now_ns)
{
	/* before the mark moves from which it is counted */
	uint32_t flight = pcb->snd_una - pcb->rate_delivered;

	if (flight && flight <= pcb->mss) {
		tcp_rtt_note_lone(pcb);
		if (LIKELY(tcp_rate_is_no_news(pcb, flight, now_ns)))
			return;
	}
	tcp_rate_take(pcb, now_ns);
}

/* The same with tcp_stats_pass. */
static inline void tcp_stats_end(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (UNLIKELY(pcb->chrono != CHRONO_BUSY)) {
		tcp_stats_pass(pcb, CHRONO_IDLE, now_ns);
		return;
	}
	tcp_stats_note_flight(pcb, now_ns);
	pcb->busy_ticks += tcp_ticks(now_ns) - pcb->chrono_since;
	pcb->chrono = CHRONO_IDLE;
	pcb->chrono_since = tcp_ticks(now_ns);
}

/* tcp_timer.c */
void tcp_timer_init(struct tcp_pcb *pcb);
/* Is called after any deadline changed. */
void tcp_timer_update(struct tcp_pcb *pcb);
/* The same after a deadline was set for a time before the timer's. No other deadline is
 * before that, so none has to be looked at. Where the timer had been stopped, while it
 * fires and while the connection is frozen, tcp_timer_update() follows. */
void tcp_timer_advance(struct tcp_pcb *pcb, uint64_t at_ns);
void tcp_timer_stop(struct tcp_pcb *pcb);
/* Starts, restarts or stops the retransmission timer as the queue demands. */
void tcp_timer_rearm_rtx(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_timer_set_reorder(struct tcp_pcb *pcb, uint64_t at_ns);
/* A SYN that nothing has been sent behind yet is sent again at once. */
void tcp_timer_hurry_syn(struct tcp_pcb *pcb, uint64_t now_ns);

/* Whether the timer is not pending, or set for later than that. */
static inline bool tcp_timer_is_later(const struct tcp_pcb *pcb,
				      uint64_t at_ns)
{
	/* 0, not pending, becomes the latest time there is */
	return pcb->armed_ns - 1 >= at_ns;
}

static inline void tcp_timer_set_quiet(struct tcp_pcb *pcb, uint8_t kind,
				       uint64_t at_ns)
{
	pcb->rtx_kind = kind;
	pcb->rtx_at_ns = at_ns;
	if (UNLIKELY(tcp_timer_is_later(pcb, at_ns)))
		tcp_timer_advance(pcb, at_ns);
}

/* tcp_timer_rearm_rtx for a quiet connection with something under way. */
static inline void tcp_timer_rearm_quiet(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (pcb->snd_nxt - pcb->snd_una <= pcb->mss)
		tcp_timer_set_quiet(pcb, pcb->quiet_lone_kind,
				    now_ns + pcb->quiet_lone_ns);
	else
		tcp_timer_set_quiet(pcb, pcb->quiet_kind,
				    now_ns + pcb->quiet_rtx_ns);
}

/* Whether new data moves the timer that runs. A probe moves further away, but not past the
 * timeout of the oldest data (RFC 8985 section 7.2). One that has waited for the delayed
 * acknowledgment of a segment alone moves nearer: with another one the peer answers at
 * once. */
static inline bool tcp_timer_may_move(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t at_ns = now_ns + pcb->quiet_rtx_ns;

	if (LIKELY(pcb->rtx_kind < RTX_TIMEOUT))
		return at_ns <= pcb->progress_ns + pcb->rto_ns;
	return pcb->snd_nxt - pcb->snd_una > pcb->mss && at_ns < pcb->rtx_at_ns;
}

static inline void tcp_timer_delay_ack_by(struct tcp_pcb *pcb, uint64_t now_ns,
					  uint64_t delay_ns)
{
	if (pcb->delack_at_ns)
		return;
	pcb->delack_at_ns = now_ns + delay_ns;
	if (UNLIKELY(tcp_timer_is_later(pcb, pcb->delack_at_ns)))
		tcp_timer_advance(pcb, pcb->delack_at_ns);
}

static inline void tcp_timer_delay_ack(struct tcp_pcb *pcb, uint64_t now_ns)
{
	tcp_timer_delay_ack_by(pcb, now_ns,
			       pcb->table->params.delayed_ack_ns);
}
/* Nobody owns the connection, and only the peer's FIN is missing. */
void tcp_timer_set_fin_wait_2(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_timer_restart_keepalive(struct tcp_pcb *pcb, uint64_t now_ns);
/* The idle time is another: it is that since the last segment. */
void tcp_timer_move_keepalive(struct tcp_pcb *pcb, uint64_t now_ns);

/* tcp_pmtu.c is tcp.h's tcp_icmp_in */
/* Nothing came back: perhaps the segments are too large, and nobody reports it. */
void tcp_pmtu_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns);
/* Returns the size that the path is believed to carry. */
uint16_t tcp_pmtu_present(const struct tcp_pcb *pcb);
/* Is called now and then while pcb.pmtu is set, because the path may have widened. */
void tcp_pmtu_refresh(struct tcp_pcb *pcb, uint64_t now_ns);

/* tcp_rx.c */
/* Takes the payload and FIN of an acceptable segment. */
void tcp_rx_data(struct tcp_pcb *pcb, struct tcp_segment *in, uint64_t now_ns);
/* The same for a packet in order without parts, when unread packets take more memory
 * than their bytes account for. Small packets are copied together; past twice the
 * buffer, a packet is copied whenever it fits behind the last one. Of two neighbours
 * one is then at least half full. This limits what a peer makes us hold: twice the
 * buffer, and beyond that as many buffers as its bytes fill by halves. */
void tcp_rx_append_wasteful(struct tcp_pcb *pcb, struct pkt *pkt);

static inline uint32_t tcp_pkt_memory(const struct pkt *pkt)
{
	return pkt->buf_size + (uint32_t)sizeof(*pkt);
}

static inline void tcp_rx_queue(struct tcp_pcb *pcb, struct pkt *pkt)
{
	pcb->rcv_unread += pkt->len;
	pcb->rcv_memory += tcp_pkt_memory(pkt);
	list_push_back(&pcb->rcv_queue, &pkt->link);
}

/* Bytes in order become readable. */
static inline void tcp_rx_append(struct tcp_pcb *pcb, struct pkt *pkt)
{
	if (UNLIKELY(pcb->rcv_memory > pcb->rcv_buf))
		tcp_rx_append_wasteful(pcb, pkt);
	else
		tcp_rx_queue(pcb, pkt);
}

/* The largest segment seen is taken for the peer's full size, but not less than this. So
 * small ones are acknowledged when there are 538 bytes of them, as Linux does. */
enum { TCP_RCV_MSS_LEAST = 269 };

static inline void tcp_rx_note_len(struct tcp_pcb *pcb, uint32_t len)
{
	if (UNLIKELY(len > pcb->rcv_mss))
		pcb->rcv_mss = MIN(len, pcb->mss);
}

/* The segment is acknowledged at once, whatever its length. */
void tcp_rx_ack_quickly(struct tcp_pcb *pcb, uint64_t now_ns);

/* RFC 9293 section 3.8.6.3: every second full segment is acknowledged at once, and
 * every one at the start; others after a while. */
static inline void tcp_rx_schedule_ack(struct tcp_pcb *pcb, uint32_t len,
				       uint64_t now_ns)
{
	pcb->unacked_rcvd += len;
	if (UNLIKELY(pcb->flags & TF_QUICK_ACK))
		tcp_rx_ack_quickly(pcb, now_ns);
	else if (pcb->unacked_rcvd >= 2 * pcb->rcv_mss)
		pcb->flags |= TF_ACK_NOW;
	if (!(pcb->flags & TF_ACK_NOW))
		tcp_timer_delay_ack(pcb, now_ns);
}

/* Quick acknowledgments begin, or begin again where they were ended early. */
static inline void tcp_rx_resume_quick_acks(struct tcp_pcb *pcb)
{
	pcb->is_talking = false;
	if (pcb->quick_acks_left)
		pcb->flags |= TF_QUICK_ACK;
}

/* They end for now: what is left of them may come later. */
static inline void tcp_rx_pause_quick_acks(struct tcp_pcb *pcb)
{
	if (!pcb->table->params.always_quick_acks)
		pcb->flags &= ~TF_QUICK_ACK;
	pcb->slow_out &= (uint8_t)~SLOW_REPLY;
}
/* Data leaves, and some came before it, see SLOW_REPLY. */
void tcp_rx_note_reply(struct tcp_pcb *pcb, uint64_t now_ns);

/* A round trip of reading is over: the buffer follows. */
void tcp_rx_tune(struct tcp_pcb *pcb, uint64_t now_ns);

/* Receiver's side of silly window avoidance (RFC 9293 section 3.8.6.2.2): the
 * edge moves by a worthwhile amount or not at all, and never back. */
static inline uint32_t tcp_rx_window(struct tcp_pcb *pcb)
{
	uint32_t room = pcb->rcv_buf - MIN(pcb->rcv_unread, pcb->rcv_buf);
	uint32_t edge = pcb->rcv_nxt + room;
	int32_t gain = (int32_t)(edge - pcb->rcv_edge);
	int32_t window;

	if (gain > 0 && (uint32_t)gain >= MIN(pcb->rcv_buf / 2, pcb->mss))
		pcb->rcv_edge = edge;
	window = (int32_t)(pcb->rcv_edge - pcb->rcv_nxt);
	return (uint32_t)MAX(window, 0);
}

/* Reports the duplicate by DSACK, RFC 2883. */
static inline bool tcp_reports_duplicates(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_SACK && pcb->table->params.with_dsack;
}

/* Writes the SACK blocks for the next ACK. */
void tcp_rx_sack_blocks(struct tcp_pcb *pcb, struct tcp_options *options);
void tcp_rx_free(struct tcp_pcb *pcb);
void tcp_rx_free_runs(struct tcp_pcb *pcb);
/* Brings the window back into the bounds that follow from the buffer's size. */
void tcp_rx_prune(struct tcp_pcb *pcb);
/* Adds a run of an imported connection, behind all runs that it has. */
void tcp_rx_restore_run(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t seq,
			bool has_fin);

/* Takes all bytes in order; tcp_take does this where nothing is urgent. */
uint32_t tcp_rx_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts);

/* tcp_urgent.c */
/* Handles a segment with an urgent pointer, or one that may hold the byte that an
 * earlier one has announced. It is called before the data is taken. */
void tcp_urgent_in(struct tcp_pcb *pcb, const struct tcp_segment *in);
/* Does the work of tcp_take while something is urgent. */
/* Not only the urgent byte itself, which is no part of the stream. */
/* Bytes before the mark. */
uint32_t tcp_urgent_ahead(const struct tcp_pcb *pcb);
bool tcp_urgent_has_more(const struct tcp_pcb *pcb);
uint32_t tcp_urgent_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts);
/* Marks what was written so far as urgent. */
void tcp_urgent_mark_end(struct tcp_pcb *pcb);
/* Returns the pointer of a segment that begins there; 0: the segment has none. */
uint16_t tcp_urgent_pointer(const struct tcp_pcb *pcb, uint32_t seq);

/* tcp_emit.c */
/* One segment on its way out. */
struct tcp_outgoing {
	uint32_t seq;
	uint8_t flags;
	/* queue entries it carries, from this one on */
	struct pkt *first;
	uint32_t cnt;
	uint32_t len;
	bool is_retransmission;
};
/* Returns the sum of the bytes; computes it where the writer did not bring it. */
uint32_t tcp_pkt_sum(struct pkt *pkt);
/* Sends a segment of a synchronised connection; sets ACK and, where due, ECE. */
void tcp_emit(struct tcp_pcb *pcb, struct tcp_outgoing *o, uint64_t now_ns);
void tcp_out_ack(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sends an empty segment one below snd_una, which makes the peer answer. */
void tcp_out_probe(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_out_syn(struct tcp_pcb *pcb, uint64_t now_ns);
void tcp_out_reset(struct tcp_pcb *pcb, uint64_t now_ns);
/* Answers a segment that belongs to no pcb. */
void tcp_out_stateless(struct tcp_table *table, const struct flow_key *key,
		       uint8_t flags, uint32_t seq, uint32_t ack,
		       uint16_t window, const struct tcp_options *options);

/* tcp_out.c */
/* Sends queued data and retransmissions as far as the windows allow. */
void tcp_out_push(struct tcp_pcb *pcb, uint64_t now_ns);
/* The same; what was written so far is held back no more by Nagle's rule or a cork. Linux
 * does so when either is switched off, too. */
void tcp_out_push_held(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sends one segment of new data although the congestion window is full. Returns false
 * if there is none or the peer has no room. */
bool tcp_out_push_one(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sends what fits a window that is open, though too small to be worth a segment: the
 * override timeout of RFC 9293 section 3.8.6.2.1. Returns false if the data waits for
 * something other than the window. */
bool tcp_out_override(struct tcp_pcb *pcb, uint64_t now_ns);
/* Sends one entry, whatever the windows are. */
void tcp_out_resend(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns);
void tcp_out_free(struct tcp_pcb *pcb);
/* The first `len` bytes of the queue, none of which was sent by the queue's rules, have
 * arrived with the SYN. */
void tcp_out_drop(struct tcp_pcb *pcb, uint32_t len);
/* The entry that begins there, if it and what was sent after it were sent once; NULL. */
struct pkt *tcp_out_sent_last(struct tcp_pcb *pcb, uint32_t seq);
/* It and what was sent after it, in the same segment, are not sent yet. */
void tcp_out_take_back(struct tcp_pcb *pcb, struct pkt *first);
/* The next entry in the queue, or NULL. */
struct pkt *tcp_out_next(const struct tcp_pcb *pcb, struct pkt *pkt);
bool tcp_out_split(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t len);

/* tcp_pace.c */
/* Is called after a change to who limits the rate. */
void tcp_pace_update(struct tcp_pcb *pcb);
/* Returns the rate at present, or TCP_NO_PACING. */
uint64_t tcp_pace_rate(const struct tcp_pcb *pcb);
/* Whether nothing may leave now because of the rate; the timer goes on then. */
bool tcp_pace_is_held(struct tcp_pcb *pcb, uint64_t now_ns);
/* Asks the owner; false: there is room. */
bool tcp_pace_look(struct tcp_pcb *pcb, uint64_t now_ns);
/* The same because nothing more could be sent. */
static ALWAYS_INLINE bool tcp_pace_is_stuck(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_table *table = pcb->table;

	return UNLIKELY(table->counts.out_segments - table->had_room_at >=
			TCP_EMITS_PER_LOOK) &&
	       tcp_pace_look(pcb, now_ns);
}
/* So much payload has left. */
void tcp_pace_note(struct tcp_pcb *pcb, uint32_t len, uint64_t now_ns);
/* Returns how much may be handed to a device at once that splits it. */
uint32_t tcp_pace_burst(const struct tcp_pcb *pcb);

/* tcp_stamp.c */
/* So many entries from this one on have come to a station. */
void tcp_stamp_run(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t cnt,
		   enum tcp_stamp what, uint64_t now_ns);
/* The same for one that has arrived. */
void tcp_stamp_acked(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns);

/* tcp_reply.c */
void tcp_reply_reset(struct tcp_table *table, const struct flow_key *key,
		     const struct tcp_segment *in, uint64_t now_ns);
/* Answers a segment that an attacker may have sent (RFC 5961). The answers are limited
 * for each connection and for all together. */
void tcp_reply_challenge(struct tcp_pcb *pcb, uint64_t now_ns);
/* Whether the connection may answer a segment without data once more; counts the
 * answer. */
bool tcp_reply_stray_allowed(struct tcp_pcb *pcb, uint64_t now_ns);

/* tcp_listen.c */
void tcp_listen_syn(struct tcp_table *table, struct tcp_listener *listener,
		    const struct flow_key *key, struct tcp_segment *in,
		    uint32_t isn, uint64_t now_ns);
/* Handles an ACK for a listener, which may answer a cookie. Returns the new pcb, or
 * NULL. */
struct tcp_pcb *tcp_listen_cookie(struct tcp_table *table,
				  struct tcp_listener *listener,
				  const struct flow_key *key,
				  struct tcp_segment *in, uint64_t now_ns);
/* Whether a segment that failed the check deserves another chance. */
bool tcp_listen_may_be_cookie(const struct tcp_listener *listener,
			      const struct tcp_segment *in, uint64_t now_ns);
/* The handshake of a child is complete; false when nobody has room for it. */
bool tcp_listen_promote(struct tcp_pcb *child);
void tcp_listen_forget(struct tcp_pcb *child);
void tcp_listen_close(struct tcp_pcb *listener, uint64_t now_ns);
/* Nobody has taken its SYN, and nobody will. */
void tcp_saved_syn_free(struct tcp_pcb *pcb);

/* tcp_tw.c */
struct tcp_tw_table *tcp_tw_create(struct tcp_table *table);
void tcp_tw_destroy(struct tcp_tw_table *tw);
void tcp_tw_add(struct tcp_table *table, const struct tcp_pcb *pcb,
		uint64_t now_ns);
/* Whether a TIME_WAIT entry has this key. If so, the segment was dealt with, or
 * *reopens_out says that it is a SYN which may open a new connection, and that
 * somebody listens. In that case the entry is gone, and the new connection's sequence
 * begins at *isn_out. */
bool tcp_tw_input(struct tcp_table *table, const struct flow_key *key,
		  const struct tcp_segment *in, bool *reopens_out,
		  uint32_t *isn_out, uint64_t now_ns);
/* The same for a connection that we open; false if the entry must stay. */
bool tcp_tw_take(struct tcp_table *table, const struct flow_key *key,
		 uint32_t *isn_out);
/* See tcp_may_choose. */
bool tcp_tw_may_choose(const struct tcp_table *table,
		       const struct flow_key *key, uint64_t now_ns);
bool tcp_tw_has(const struct tcp_table *table, const struct flow_key *key);
uint32_t tcp_tw_cnt(const struct tcp_table *table);

/* our time stamp clock: milliseconds with an offset of the connection */
static inline uint32_t tcp_ts_now(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	return (uint32_t)(now_ns / NS_PER_MS) + pcb->ts_offset;
}

static inline bool tcp_is_synchronised(const struct tcp_pcb *pcb)
{
	return pcb->state >= TCPS_ESTABLISHED;
}

/* May still send data or FIN that is queued. */
static inline bool tcp_may_send(const struct tcp_pcb *pcb)
{
	return pcb->state == TCPS_ESTABLISHED || pcb->state == TCPS_CLOSE_WAIT ||
	       pcb->state == TCPS_FIN_WAIT_1 || pcb->state == TCPS_CLOSING ||
	       pcb->state == TCPS_LAST_ACK;
}

/* Whether a third of the send buffer, rounded down, is free beside so many bytes. */
static inline bool tcp_is_third_free(const struct tcp_pcb *pcb, uint64_t queued)
{
	return 3 * queued <= 2 * (uint64_t)pcb->snd_buf + 2;
}

/* tcp_has_room, for each acknowledgment. */
static inline bool tcp_pcb_has_room(const struct tcp_pcb *pcb)
{
	return tcp_is_third_free(pcb, pcb->snd_end - pcb->snd_una) &&
	       pcb->snd_end - pcb->snd_nxt < pcb->settings->notsent_lowat;
}

#endif
