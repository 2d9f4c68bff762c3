/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header prediction: nearly all segments, in and out, pass through this file. On a
 * connection where nothing unusual is going on, the next segment in order that has no
 * other option than a time stamp passes every check of tcp_in.c and changes only a few
 * numbers. Segments of a batch that continue each other are handled as one. Whether a
 * connection is unusual is decided when its state changes (tcp_fast_update). Whether a
 * segment is unusual is decided before anything is changed, so that the general code
 * can take over. What remains is one straight path, which must change the pcb exactly
 * as the general code would.
 */
#include <errno.h>

#include "tcp/tcp_rtt_priv.h"
#include "tcp/tcp_rx_priv.h"

/* ---- connections ---- */

/* The connection is established; nothing is lost or missing, and there is nothing to
 * report or to undo. */
static bool is_quiet(const struct tcp_pcb *pcb)
{
	const uint32_t unusual = TF_ECN | TF_ORPHAN | TF_FIN_RCVD | TF_UNSEEN |
				 TF_URGENT_OUT;

	return pcb->state == TCPS_ESTABLISHED &&
	       pcb->recovery == RECOVERY_OPEN && !(pcb->flags & unusual) &&
	       pcb->rtx_kind <= RTX_LATE_PROBE && !pcb->sacked_bytes &&
	       list_is_empty(&pcb->lost) && !pcb->has_tlp && !pcb->undo_cwnd &&
	       !pcb->backoff && !pcb->timeouts && !pcb->dup_acks &&
	       list_is_empty(&pcb->runs) &&
	       pcb->dsack.start == pcb->dsack.end && !pcb->soft_error &&
	       !pcb->is_frozen && !pcb->is_calm && !pcb->stamp_cnt && !tcp_is_pending(pcb) &&
	       pcb->urgent != TCP_URGENT_COMING;
}

void tcp_fast_update(struct tcp_pcb *pcb)
{
	pcb->is_quiet = is_quiet(pcb);
}

/* ---- plain segments out ---- */

/* The header of a plain segment is kept; only the fields that change are written. */
void tcp_fast_init(struct tcp_pcb *pcb)
{
	struct wire_tcp *header = &pcb->plain.header;
	uint32_t len = sizeof(*header) + (pcb->flags & TF_TS ? 12 : 0);

	header->src_port = pcb->key.local_port;
	header->dst_port = pcb->key.remote_port;
	header->offset_ae = (uint8_t)(len << 2);
	header->urgent = 0;
	pcb->is_header_stale = true;
	header->seq = header->ack = 0;
	header->flags = 0;
	header->window = header->check = 0;
	pcb->plain.ts_head = htobe32(TCP_OPTION_TS_PLAIN);
	pcb->plain.ts_val = pcb->plain.ts_ecr = 0;
	pcb->plain_len = (uint8_t)len;
	pcb->plain_sum = csum_partial(header, len, pcb->pseudo_sum);
	pcb->plain_word = htobe16((uint16_t)(len << 10 | WIRE_TCP_ACK));
}

/* The sum of what is the same in all plain segments is kept; here are the other fields. */
static ALWAYS_INLINE void put_checksum(struct tcp_pcb *pcb, uint8_t flags,
				       struct pkt *pkt, uint32_t len)
{
	struct wire_tcp *header = &pcb->plain.header;
	__be16 total_len = htobe16((uint16_t)(pcb->plain_len + len));
	uint64_t sum;

	if (pcb->path.with_checksum) {
		header->check = (uint16_t)~csum_fold(
			csum_add(pcb->pseudo_sum, total_len));
		return;
	}
	sum = (uint64_t)pcb->plain_sum + total_len + header->seq + header->ack +
	      header->window + htobe16(flags);
	if (pcb->plain_len != sizeof(*header))
		sum += (uint64_t)pcb->plain.ts_val + pcb->plain.ts_ecr;
	if (pkt && pkt->flags & PKT_HAS_SUM)
		sum += pkt->csum_sum;
	else if (pkt)
		sum = csum_bytes64(NULL, pkt->data, len, sum, false);
	header->check = csum_fold(csum_fold64(sum));
}

/* The fields that acknowledge. They change only when something was received or read. */
static ALWAYS_INLINE void refresh_header(struct tcp_pcb *pcb)
{
	struct wire_tcp *header = &pcb->plain.header;
	uint32_t window = tcp_rx_window(pcb) >> pcb->rcv_scale;

	header->ack = htobe32(pcb->rcv_nxt);
	header->window = htobe16((uint16_t)MIN(window, (uint32_t)UINT16_MAX));
	pcb->plain.ts_ecr = htobe32(pcb->ts_recent);
	pcb->last_ack_sent = pcb->rcv_nxt;
	pcb->unacked_rcvd = 0;
	pcb->delack_at_ns = 0;
	pcb->flags &= ~TF_ACK_NOW;
	pcb->is_header_stale = false;
}

/* Completes the header of a segment that leaves now. */
static ALWAYS_INLINE void build(struct tcp_pcb *pcb, uint32_t seq,
				uint8_t flags, struct pkt *pkt, uint32_t len,
				bool with_checksum, uint64_t now_ns)
{
	struct wire_tcp *header = &pcb->plain.header;

	if (pcb->is_header_stale)
		refresh_header(pcb);
	INVARIANT(header->ack == htobe32(pcb->rcv_nxt) &&
			  pcb->plain.ts_ecr == htobe32(pcb->ts_recent) &&
			  !pcb->delack_at_ns && !(pcb->flags & TF_ACK_NOW),
		  "whoever receives or reads says so");
	header->seq = htobe32(seq);
	header->flags = flags;
	/* header_len excludes time stamps where they were not negotiated. */
	pcb->plain.ts_val = htobe32(tcp_ts_now(pcb, now_ns));
	if (with_checksum)
		put_checksum(pcb, flags, pkt, len);
	pcb->table->counts.out_segments++;
	pcb->segs_out++;
}

static ALWAYS_INLINE void emit(struct tcp_pcb *pcb, uint32_t seq, uint8_t flags,
			       struct pkt *pkt, uint32_t len, uint64_t now_ns)
{
	struct tcp_out out = {
		.key = &pcb->key,
		.header = (const uint8_t *)&pcb->plain.header,
		.header_len = pcb->plain_len,
		.data = pkt,
		.data_cnt = pkt != NULL,
		.data_len = len,
	};

	build(pcb, seq, flags, pkt, len, true, now_ns);
	pcb->table->ops->emit(pcb->table->ctx, pcb, &out);
}

static void emit_ack(struct tcp_pcb *pcb, uint64_t now_ns)
{
	refresh_header(pcb);
	emit(pcb, tcp_bare_seq(pcb), WIRE_TCP_ACK, NULL, 0, now_ns);
}

/* ---- sending ---- */

/* Whether a segment that is not full may be sent: it is the last one, and Nagle's rule
 * (with Minshall's change) allows it. */
static ALWAYS_INLINE bool may_be_small(const struct tcp_pcb *pcb,
				       uint8_t seg_flags, bool is_last)
{
	return is_last && !(seg_flags & SEG_MORE) && (pcb->flags & TF_NODELAY ||
			   !seq_after(pcb->snd_small_end, pcb->snd_una));
}

static bool is_last(const struct tcp_pcb *pcb, const struct pkt *pkt)
{
	return pkt->link.next == &pcb->snd_queue;
}

/* Where a device splits what is long, several packets may leave as one. */
static ALWAYS_INLINE bool is_one(const struct tcp_pcb *pcb)
{
	return !(pcb->slow_out & SLOW_SPLIT) || is_last(pcb, pcb->unsent);
}

/* Pacing, cork, the answer to an ECN echo, and the window after a
 * pause have rules of their own. */
static ALWAYS_INLINE bool is_plain_out(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	return pcb->is_quiet && !(pcb->slow_out & ~SLOW_SPLIT) &&
	       !(pcb->flags & (TF_CORK | TF_CWR_OUT | TF_DUE)) &&
	       (pcb->snd_una != pcb->snd_nxt ||
		now_ns - pcb->last_sent_ns <= pcb->rto_ns);
}

static ALWAYS_INLINE bool may_push(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	return pcb->unsent && is_plain_out(pcb, now_ns);
}

/* What is under way begins now, by one segment. RFC 6298 section 5.1, RFC 8985 section
 * 7.2 */
static ALWAYS_INLINE void begin_flight(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->progress_ns = now_ns;
	tcp_stats_begin(pcb, now_ns);
	tcp_rate_begin(pcb, now_ns);
	tcp_timer_set_quiet(pcb, pcb->quiet_lone_kind,
			    now_ns + pcb->quiet_lone_ns);
}

/* From now on the packet is under way. */
static ALWAYS_INLINE void note_sent(struct tcp_pcb *pcb, struct pkt *pkt,
				    uint8_t seg_flags, uint64_t now_ns)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	seg->flags = seg_flags | SEG_SENT;
	seg->sent_cnt = 1;
	seg->sent_ns = now_ns;
	list_push_back(&pcb->in_flight, &seg->order);
	pcb->data_segs_out++;
	pcb->last_sent_ns = now_ns;
}

enum { PUSH_TO_PSH = SEG_PUSH / WIRE_TCP_PSH };

/* Sends a full segment or the last one, as far as the windows allow. Returns false if
 * the general rules must decide. The packet is handed over as the last step, unless the
 * caller does that, to whom it may be all the same what the checksum is. */
static ALWAYS_INLINE bool push_one(struct tcp_pcb *pcb, struct pkt *pkt,
				   uint8_t seg_flags, bool is_last,
				   uint64_t now_ns, bool emits,
				   bool with_checksum)
{
	uint32_t len = pkt->len, seq = pcb->snd_nxt, end = seq + len;
	uint32_t flight = seq - pcb->snd_una;
	uint8_t flags = (uint8_t)(WIRE_TCP_ACK |
				  (seg_flags & SEG_PUSH) / PUSH_TO_PSH);

	if (UNLIKELY(flight + len > MIN(pcb->snd_wnd, pcb->cwnd) ||
		     len > pcb->mss))
		return false;
	if (len < pcb->mss) {
		if (!may_be_small(pcb, seg_flags, is_last))
			return false;
		pcb->snd_small_end = end;
	}
	pcb->unsent = is_last ? NULL : pkt_from_link(pkt->link.next);
	pcb->snd_nxt = end;
	note_sent(pcb, pkt, seg_flags, now_ns);
	if (!flight)
		begin_flight(pcb, now_ns);
	else if (tcp_timer_may_move(pcb, now_ns))
		tcp_timer_rearm_quiet(pcb, now_ns);
	if (emits)
		emit(pcb, seq, flags, pkt, len, now_ns);
	else
		build(pcb, seq, flags, pkt, len, with_checksum, now_ns);
	return true;
}

void tcp_fast_push(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!may_push(pcb, now_ns) || !is_one(pcb))
		return;
	while (pcb->unsent && !tcp_pace_is_stuck(pcb, now_ns) &&
	       push_one(pcb, pcb->unsent, tcp_seg(pcb->unsent)->flags,
			is_last(pcb, pcb->unsent), now_ns, true, true) &&
	       !(pcb->flags & TF_DUE)) /* it was not taken back */
		;
}

struct tcp_header tcp_send_now(struct tcp_pcb *pcb, struct pkt *pkt,
			       bool with_checksum, uint64_t now_ns)
{
	uint32_t len = pkt->len, seq = pcb->snd_nxt;

	/* All before it has been sent, and the program finds room after it, so that nobody
	 * has to hear of that. */
	if (UNLIKELY(pcb->snd_end != seq ||
		     !tcp_is_third_free(pcb, seq - pcb->snd_una + len) ||
		     !is_plain_out(pcb, now_ns)))
		return (struct tcp_header){ NULL, 0 };
	INVARIANT(!pcb->unsent, "what is not sent has a byte at least");
	if (UNLIKELY(!push_one(pcb, pkt, SEG_PUSH, true, now_ns, false,
			       with_checksum)))
		return (struct tcp_header){ NULL, 0 };
	tcp_seg(pkt)->seq = seq;
	list_push_back(&pcb->snd_queue, &pkt->link);
	pcb->snd_end = seq + len;
	return (struct tcp_header){ (const uint8_t *)&pcb->plain.header,
				    pcb->plain_len };
}

/* Mostly only one packet waits. */
void tcp_output(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (LIKELY(may_push(pcb, now_ns) && is_last(pcb, pcb->unsent)) &&
	    !tcp_pace_is_stuck(pcb, now_ns) &&
	    push_one(pcb, pcb->unsent, tcp_seg(pcb->unsent)->flags, true, now_ns,
		     true, true))
		return;
	pcb->flags |= TF_MORE_FOLLOWS;
	tcp_out_push(pcb, now_ns);
	pcb->flags &= ~TF_MORE_FOLLOWS;
}

/* ---- acknowledgments in ---- */

/* The packets that one ACK covers, from the head of the queue. */
struct covered {
	struct pkt *first;
	struct pkt *last;
	uint32_t cnt;
	/* the reasons why they cannot go back to their pool as they are */
	uintptr_t obstacles;
};

/* Returns false unless the ACK covers whole entries that were sent once. Such entries
 * are also the first on in_flight. */
static ALWAYS_INLINE bool find_covered(const struct tcp_pcb *pcb, uint32_t ack,
				       struct covered *covered_out)
{
	struct list *link = pcb->snd_queue.next;
	struct covered covered = { .first = pkt_from_link(link) };
	const struct pkt_pool *pool = covered.first->pool;
	uint32_t end = pcb->snd_una;

	do {
		covered.last = pkt_from_link(link);
		covered.cnt++;
		covered.obstacles |= pkt_put_obstacles(covered.last, pool);
		end += covered.last->len;
		if (tcp_seg(covered.last)->sent_cnt != 1)
			return false;
		link = link->next;
	} while (seq_before(end, ack));
	*covered_out = covered;
	return end == ack;
}

/* The list begins behind `last`. */
static ALWAYS_INLINE void cut_off(struct list *head, struct list *last)
{
	head->next = last->next;
	last->next->prev = head;
}

/* The packets are freed one by one, because somebody still reads one of them, or it
 * has parts, or it was lent. */
static COLD void put_each(struct pkt *first, struct pkt *last)
{
	struct list *link = &first->link, *end = last->link.next;

	while (link != end) {
		struct pkt *pkt = pkt_from_link(link);

		link = link->next;
		pkt_put(pkt);
	}
}

static ALWAYS_INLINE void free_covered(struct tcp_pcb *pcb,
				       const struct covered *covered)
{
	INVARIANT(pcb->in_flight.next == &tcp_seg(covered->first)->order,
		  "what was sent once and is not lost flies in order");
	cut_off(&pcb->snd_queue, &covered->last->link);
	cut_off(&pcb->in_flight, &tcp_seg(covered->last)->order);
	pcb->sack_hint = NULL;
	if (LIKELY(!covered->obstacles))
		pkt_pool_give_back(covered->first->pool, covered->first,
				   covered->last, covered->cnt);
	else
		put_each(covered->first, covered->last);
}

/* Whether tcp_stats_end() will look at the rate of what was under way. It does so in fewer
 * steps where that was a segment alone. */
static ALWAYS_INLINE bool has_rate_at_end(const struct tcp_pcb *pcb)
{
	return pcb->snd_una == pcb->snd_nxt && !pcb->unsent &&
	       pcb->rack_sent_ns <= pcb->rate_mark_ns;
}

/* The peer has acknowledged more of our data. Returns false when the ACK is not as
 * expected. `had_room`: the program had room to write before. */
static ALWAYS_INLINE bool take_ack(struct tcp_pcb *pcb, uint32_t ack,
				   bool had_room, uint64_t now_ns)
{
	uint32_t prior_una = pcb->snd_una, acked = ack - prior_una;
	uint32_t flight = pcb->snd_nxt - prior_una;
	struct covered covered;
	uint64_t rtt_ns;

	if (UNLIKELY(acked > flight ||
		     !find_covered(pcb, ack, &covered)))
		return false;
	rtt_ns = now_ns - tcp_seg(covered.first)->sent_ns;
	pcb->snd_una = ack;
	pcb->progress_ns = now_ns;
	/* RFC 8985 section 6.2: the newest; RFC 6298 section 3: the oldest */
	pcb->rack_sent_ns = tcp_seg(covered.last)->sent_ns;
	pcb->rack_end = ack;
	pcb->rack_rtt_ns = now_ns - pcb->rack_sent_ns;
	if (tcp_rtt_is_due(pcb, rtt_ns, now_ns))
		tcp_rtt_take_inline(pcb, MAX(rtt_ns, UINT64_C(1)),
				    !has_rate_at_end(pcb), now_ns);
	pcb->delivered += covered.cnt;
	free_covered(pcb, &covered);
	/* it asks more exactly, and out of line */
	if (pcb->flags & TF_CWND_LIMITED || pcb->cwnd < 2 * flight)
		tcp_recovery_grow(pcb, prior_una, acked, now_ns);
	/* If more data waits to be sent, tcp_out_push starts the timer again. */
	if (ack == pcb->snd_nxt || pcb->unsent) {
		pcb->rtx_kind = RTX_NONE;
		pcb->rtx_at_ns = 0;
		if (!pcb->unsent)
			tcp_stats_end(pcb, now_ns);
	} else {
		tcp_timer_rearm_quiet(pcb, now_ns);
	}
	if (!had_room)
		tcp_event_mark(pcb, TCP_EV_WRITABLE);
	return true;
}

/* ---- plain segments in ---- */

/* Neighbours in a batch that continue each other, as one segment. */
struct run {
	struct tcp_pcb *pcb;
	unsigned cnt;
	uint32_t seq;
	uint32_t len;
	/* of the latest */
	uint32_t last_seq;
	uint32_t ack;
	uint32_t window;
	/* what TS.Recent becomes */
	uint32_t ts_recent;
};

static ALWAYS_INLINE struct run run_begin(struct tcp_pcb *pcb)
{
	return (struct run){
		.pcb = pcb,
		.seq = pcb->rcv_nxt,
		.ack = pcb->snd_una,
		.window = pcb->snd_wnd,
		.ts_recent = pcb->ts_recent,
	};
}

/* RFC 7323 section 5.3: a time stamp, alone, that is not older; R3 says which one
 * is remembered. */
static ALWAYS_INLINE bool take_ts(struct run *run, const uint8_t *options,
				  uint32_t seq)
{
	uint32_t ts_val = wire_get_u32(options + 4);

	if (run->pcb->plain_len == sizeof(struct wire_tcp))
		return true;
	if (wire_get_u32(options) != TCP_OPTION_TS_PLAIN ||
	    seq_before(ts_val, run->ts_recent))
		return false;
	if (seq_at_most(seq, run->pcb->last_ack_sent))
		run->ts_recent = ts_val;
	return true;
}

/* Adds a segment if it looks as nearly all do, is the next in order and lies inside
 * the window. Acknowledgments that go back, and empty segments that acknowledge
 * nothing new, are left to the general rules. */
static ALWAYS_INLINE bool run_add(struct run *run, const uint8_t *segment,
				  uint32_t segment_len)
{
	const struct wire_tcp *header = (const void *)segment;
	const struct tcp_pcb *pcb = run->pcb;
	uint32_t seq = run->seq + run->len, ack = be32toh(header->ack);
	uint32_t len = segment_len - pcb->plain_len;
	uint32_t window = (uint32_t)be16toh(header->window) << pcb->snd_scale;
	__be16 word;

	memcpy(&word, &header->offset_ae, sizeof(word));
	word &= ~htobe16(WIRE_TCP_PSH);
	if (UNLIKELY(word != pcb->plain_word || segment_len < pcb->plain_len ||
		     be32toh(header->seq) != seq || len > pcb->rcv_edge - seq))
		return false;
	if (ack == run->ack ? !len || window != run->window
			    : seq_before(ack, run->ack))
		return false;
	if (UNLIKELY(!take_ts(run, (const uint8_t *)(header + 1), seq)))
		return false;
	run->last_seq = seq;
	run->len += len;
	run->ack = ack;
	run->window = window;
	run->cnt++;
	return true;
}

static ALWAYS_INLINE bool has_push(const uint8_t *segment)
{
	return ((const struct wire_tcp *)segment)->flags & WIRE_TCP_PSH;
}

static ALWAYS_INLINE void take_data(const struct run *run, struct tcp_in *in,
				    uint64_t now_ns)
{
	struct tcp_pcb *pcb = run->pcb;

	pcb->is_header_stale = true;
	pcb->table->counts.fast_path_data += run->cnt;
	pcb->rcv_nxt += run->len;
	for (unsigned i = 0; i < run->cnt; i++) {
		struct pkt *pkt = in[i].pkt;
		bool is_pushed = has_push(pkt->data);

		pkt_pull(pkt, pcb->plain_len);
		if (UNLIKELY(!pkt->len)) {
			pkt_put_quick(pkt);
			continue;
		}
		pcb->was_pushed = is_pushed;
		pcb->data_segs_in++;
		tcp_rx_note_len(pcb, pkt->len);
		tcp_rx_append(pcb, pkt);
	}
	tcp_rx_schedule_ack(pcb, run->len, now_ns);
	tcp_event_mark(pcb, TCP_EV_READABLE);
}

/* The part of run_take that is about acknowledgments and time stamps. Returns false when
 * the acknowledgment is not as expected; nothing has been changed then. */
static ALWAYS_INLINE bool run_take_header(const struct run *run, bool had_room,
					  uint64_t now_ns)
{
	struct tcp_pcb *pcb = run->pcb;

	if (run->ack != pcb->snd_una) {
		if (UNLIKELY(!take_ack(pcb, run->ack, had_room, now_ns)))
			return false;
		pcb->snd_wnd = run->window;
		pcb->snd_wnd_max = MAX(pcb->snd_wnd_max, run->window);
	}
	pcb->segs_in += run->cnt;
	pcb->snd_wl1 = run->last_seq;
	pcb->last_rcvd_ns = now_ns;
	if (seq_at_most(run->seq, pcb->last_ack_sent)) {
		pcb->ts_recent = run->ts_recent;
		pcb->ts_recent_ns = now_ns;
	}
	return true;
}

static ALWAYS_INLINE bool run_take(const struct run *run, struct tcp_in *in,
				   uint64_t now_ns)
{
	struct tcp_pcb *pcb = run->pcb;

	if (UNLIKELY(!run_take_header(run, tcp_pcb_has_room(pcb), now_ns)))
		return false;
	if (run->len) {
		take_data(run, in, now_ns);
	} else {
		if (pcb->plain.ts_ecr != htobe32(pcb->ts_recent))
			pcb->is_header_stale = true;
		for (unsigned i = 0; i < run->cnt; i++)
			pkt_put_quick(in[i].pkt);
	}
	if (pcb->unsent)
		tcp_out_push(pcb, now_ns);
	if (pcb->flags & TF_ACK_NOW)
		emit_ack(pcb, now_ns);
	return true;
}

/* Returns false unless it is a plain segment with data, nothing comes before it, and nobody
 * waits for room to write, which it may make. */
static ALWAYS_INLINE bool run_of_one(struct run *run, struct tcp_pcb *pcb,
				     const uint8_t *segment, uint32_t len)
{
	if (UNLIKELY(!pcb->is_quiet || pcb->unsent || pcb->urgent ||
		     !list_is_empty(&pcb->rcv_queue) ||
		     !tcp_is_third_free(pcb, pcb->snd_end - pcb->snd_una) ||
		     len < sizeof(struct wire_tcp)))
		return false;
	*run = run_begin(pcb);
	return run_add(run, segment, len) && run->len;
}

bool tcp_would_take_direct(struct tcp_pcb *pcb, const uint8_t *segment,
			   uint32_t len)
{
	struct run run;

	return run_of_one(&run, pcb, segment, len) &&
	       seq_at_most(run.ack, pcb->snd_nxt);
}

long tcp_input_direct(struct tcp_pcb *pcb, const uint8_t *segment, uint32_t len,
		      void *buf, uint32_t room, uint64_t now_ns)
{
	struct run run;

	if (UNLIKELY(!run_of_one(&run, pcb, segment, len) || run.len > room))
		return -EAGAIN;
	/* first, because it may be a fault */
	memcpy(buf, segment + pcb->plain_len, OPAQUE((size_t)run.len));
	if (UNLIKELY(!run_take_header(&run, true, now_ns)))
		return -EAGAIN;
	pcb->table->counts.in_segments++;
	pcb->table->counts.fast_path_data++;
	pcb->is_header_stale = true;
	pcb->rcv_nxt += run.len;
	pcb->was_pushed = has_push(segment);
	pcb->data_segs_in++;
	tcp_rx_note_len(pcb, run.len);
	tcp_rx_schedule_ack(pcb, run.len, now_ns);
	/* it is read already */
	tcp_rx_was_read(pcb, run.len, now_ns);
	if (pcb->flags & TF_ACK_NOW)
		emit_ack(pcb, now_ns);
	return (long)run.len;
}

/* The packet has one buffer, a whole header and a good checksum. */
static ALWAYS_INLINE bool is_readable(struct tcp_in *in)
{
	const struct pkt *pkt = in->pkt;

	return LIKELY(pkt->len >= sizeof(struct wire_tcp) &&
		      !pkt->next_part) &&
	       (pkt->csum_verdict == PKT_CSUM_GOOD || tcp_in_is_intact(in));
}

/* The source and destination ports, to be compared in one step. */
static ALWAYS_INLINE uint32_t ports_of(const struct tcp_in *in)
{
	uint32_t ports;

	memcpy(&ports, in->pkt->data, sizeof(ports));
	return ports;
}

static ALWAYS_INLINE void complete_key(struct tcp_in *in)
{
	const struct wire_tcp *header = (const void *)in->pkt->data;

	in->key.local_port = header->dst_port;
	in->key.remote_port = header->src_port;
}

/* The segment can be read and belongs to the same connection as the one before. */
static ALWAYS_INLINE bool continues(struct tcp_in *in)
{
	return is_readable(in) && ports_of(in) == ports_of(in - 1) &&
	       ip_addr_eq(&in->key.remote, &in[-1].key.remote) &&
	       ip_addr_eq(&in->key.local, &in[-1].key.local);
}

/* Takes as many segments as continue each other. Returns 0 when the first is not
 * plain. */
static ALWAYS_INLINE unsigned take_run(struct tcp_table *table,
				       struct tcp_in *in, unsigned cnt,
				       uint64_t now_ns)
{
	struct tcp_pcb *pcb;
	struct run run;

	if (!is_readable(in))
		return 0;
	complete_key(in);
	pcb = tcp_table_find(table, &in->key);
	if (UNLIKELY(!pcb || !pcb->is_quiet))
		return 0;
	INVARIANT(is_quiet(pcb), "whoever changes that says so");
	run = run_begin(pcb);
	if (!run_add(&run, in->pkt->data, in->pkt->len))
		return 0;
	while (run.cnt < cnt && continues(&in[run.cnt]) &&
	       run_add(&run, in[run.cnt].pkt->data, in[run.cnt].pkt->len))
		;
	return run_take(&run, in, now_ns) ? run.cnt : 0;
}

void tcp_input_batch(struct tcp_table *table, struct tcp_in *in, unsigned cnt,
		     uint64_t now_ns)
{
	uint32_t merges = table->params.merges_max;
	unsigned taken;

	table->counts.in_segments += cnt;
	for (; cnt; cnt -= taken, in += taken) {
		taken = take_run(table, in, merges ? cnt : 1, now_ns);
		merges -= taken > 1;
		if (LIKELY(taken))
			continue;
		tcp_in_segment(table, in, now_ns);
		taken = 1;
	}
}

void tcp_input(struct tcp_table *table, struct tcp_in *in, uint64_t now_ns)
{
	table->counts.in_segments++;
	if (UNLIKELY(!take_run(table, in, 1, now_ns)))
		tcp_in_segment(table, in, now_ns);
}
