/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The acknowledgment of a segment: whether it is credible, what has arrived, how long
 * that took, and what may be sent now.
 */
#include "tcp/tcp_priv.h"

/* RFC 9293 section 3.10.7.4: older segments must not change the window. A segment that
 * acknowledges more is newer, whatever its sequence number, because a retransmission
 * carries an old one. Without this rule the edge would move with snd_una past what the
 * peer has granted. Of two with the same numbers, nobody knows which is newer; a closed
 * window is believed, as Linux does, since a peer that has lost its memory says no more
 * than that. Returns true if the window changed. */
static bool update_window(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	uint32_t window = (uint32_t)in->window << pcb->snd_scale;
	bool has_changed = window != pcb->snd_wnd;
	bool is_newer = seq_after(in->ack, pcb->snd_una) ||
			seq_after(in->seq, pcb->snd_wl1) ||
			(in->seq == pcb->snd_wl1 &&
			 (window > pcb->snd_wnd || !window));

	if (!is_newer)
		return false;
	pcb->snd_wl1 = in->seq;
	pcb->snd_wnd = window;
	pcb->snd_wnd_max = MAX(pcb->snd_wnd_max, window);
	return has_changed;
}

/* The head of the queue has arrived whole. */
static void free_head(struct tcp_pcb *pcb, struct pkt *pkt,
		      struct tcp_ack_sample *sample, uint64_t now_ns)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	if (!(seg->flags & SEG_SACKED)) {
		sample->delivered += tcp_seg_len(pkt);
		pcb->delivered++;
		tcp_rack_delivered(pcb, pkt, sample, now_ns);
		/* Karn: RFC 6298 section 3; the oldest one, so that the delay
		 * of the acknowledgment counts */
		if (seg->sent_cnt == 1 && !sample->rtt_ns)
			sample->rtt_ns = MAX(now_ns - seg->sent_ns,
					     (uint64_t)1);
	}
	if (seg->sent_cnt > 1)
		sample->has_resent = true;
	tcp_stamp_acked(pcb, pkt, now_ns);
	tcp_sack_forget(pcb, pkt);
	if (pcb->sack_hint == pkt)
		pcb->sack_hint = NULL;
	list_remove(&seg->order);
	list_remove(&pkt->link);
	if (pkt != &pcb->fin)
		pkt_put(pkt);
}

/* An ACK in the middle of an entry: the path split the segment, or the peer
 * misbehaves. */
static void cut_head(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t len,
		     struct tcp_ack_sample *sample)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	if (seg->flags & SEG_SACKED)
		pcb->sacked_bytes -= len;
	else
		sample->delivered += len;
	if (seg->flags & SEG_LOST)
		pcb->lost_bytes -= len;
	pkt_pull(pkt, len);
	pkt->flags &= (uint8_t)~PKT_HAS_SUM;
	seg->seq += len;
}

static void free_acked(struct tcp_pcb *pcb, uint32_t ack,
		       struct tcp_ack_sample *sample, uint64_t now_ns)
{
	while (!list_is_empty(&pcb->snd_queue)) {
		struct pkt *pkt = pkt_from_link(pcb->snd_queue.next);
		struct tcp_seg *seg = tcp_seg(pkt);

		if (seq_at_most(tcp_seg_end(pkt), ack)) {
			free_head(pcb, pkt, sample, now_ns);
			continue;
		}
		if (seq_before(seg->seq, ack))
			cut_head(pcb, pkt, ack - seg->seq, sample);
		return;
	}
}

/* RTTM (RFC 7323 section 4) where retransmission leaves nothing else: the echo
 * tells which transmission is answered, to a millisecond. */
static void sample_rtt(struct tcp_pcb *pcb, struct tcp_ack_sample *sample,
		       uint64_t now_ns)
{
	uint32_t ms;

	if (!sample->rtt_ns && sample->has_advanced && sample->has_ts &&
	    sample->ts_ecr) {
		ms = tcp_ts_now(pcb, now_ns) - sample->ts_ecr;
		if (ms < 60000)
			sample->rtt_ns = MAX(ms, 1u) * NS_PER_MS;
	}
	if (sample->rtt_ns) {
		tcp_rtt_sample(pcb, sample->rtt_ns, now_ns);
		/* RFC 6298 section 5.7 */
		pcb->backoff = 0;
	}
}

static void advance(struct tcp_pcb *pcb, uint32_t ack,
		    struct tcp_ack_sample *sample, uint64_t now_ns)
{
	pcb->snd_una = ack;
	pcb->progress_ns = now_ns;
	pcb->soft_error = 0;
	sample->has_advanced = true;
	free_acked(pcb, ack, sample, now_ns);
	if (seq_at_most(pcb->urgent_end, ack))
		pcb->flags &= ~TF_URGENT_OUT;
}

/* RFC 5681 section 2 */
static bool is_duplicate(const struct tcp_pcb *pcb,
			 const struct tcp_segment *in, bool window_changed)
{
	return in->ack == pcb->snd_una && !in->len && !window_changed &&
	       pcb->snd_una != pcb->snd_nxt && !(in->flags & WIRE_TCP_FIN);
}

/* Old or impossible acknowledgments: RFC 9293 section 3.10.7.4 with the range of
 * RFC 5961 section 5.2. */
static bool is_acceptable(struct tcp_pcb *pcb, const struct tcp_segment *in,
			  uint64_t now_ns)
{
	if (seq_between(pcb->snd_una - pcb->snd_wnd_max, in->ack,
			pcb->snd_nxt))
		return true;
	pcb->table->counts.bad_ack++;
	tcp_reply_challenge(pcb, now_ns);
	return false;
}

/* RFC 9293 section 3.8.6.1: a peer that answers may keep its window closed, but not to
 * hold a connection that nobody owns any more. */
static bool may_stay_closed(const struct tcp_pcb *pcb)
{
	return !pcb->snd_wnd && !(pcb->flags & TF_ORPHAN);
}

/* The peer is alive. The count of probes starts again; for a connection without owner
 * it does so only when the window has room. */
static void note_probe_answered(struct tcp_pcb *pcb)
{
	bool has_room = pcb->snd_wnd && pcb->unsent;

	if (has_room)
		pcb->backoff = 0;
	if (has_room || !(pcb->flags & TF_ORPHAN))
		pcb->probes = 0;
}

static void restart_timers(struct tcp_pcb *pcb,
			   const struct tcp_ack_sample *sample,
			   bool ends_backoff, uint64_t reorder_ns,
			   uint64_t now_ns)
{
	if (reorder_ns) {
		tcp_timer_set_reorder(pcb, now_ns + reorder_ns);
		return;
	}
	/* RFC 6298 section 5.2 and 5.3; a probe also counts from SACKs. A timer that was
	 * set for many times the timeout would let the connection stand still. */
	if (sample->has_advanced || ends_backoff || pcb->rtx_kind == RTX_REORDER ||
	    (sample->sacked_cnt && (pcb->rtx_kind == RTX_PROBE ||
				    pcb->rtx_kind == RTX_LONE_PROBE)))
		tcp_timer_rearm_rtx(pcb, now_ns);
}

bool tcp_ack_in(struct tcp_pcb *pcb, struct tcp_segment *in, uint64_t now_ns)
{
	struct tcp_ack_sample sample = {
		.prior_una = pcb->snd_una,
		.prior_high = pcb->sack_high,
		.is_ece = pcb->flags & TF_ECN && !pcb->is_accurate &&
			  in->flags & WIRE_TCP_ECE,
		.marked = UINT32_MAX,
		.has_ts = in->options.has_ts && pcb->flags & TF_TS,
		.ts_ecr = in->options.ts_ecr,
	};
	uint32_t prior_delivered = pcb->delivered;
	uint8_t prior_backoff = pcb->backoff;
	uint64_t reorder_ns;
	bool window_changed = false;

	if (UNLIKELY(!is_acceptable(pcb, in, now_ns)))
		return false;
	if (!tcp_is_under_way(pcb, pcb->sack_high))
		pcb->sack_high = sample.prior_high = pcb->snd_una;
	if (!seq_before(in->ack, pcb->snd_una))
		window_changed = update_window(pcb, in);
	if (in->options.sack_cnt && pcb->flags & TF_SACK)
		tcp_sack_in(pcb, in, &sample, now_ns);
	if (seq_after(in->ack, pcb->snd_una))
		advance(pcb, in->ack, &sample, now_ns);
	else
		sample.is_duplicate = is_duplicate(pcb, in, window_changed);
	if (sample.delivered || may_stay_closed(pcb))
		pcb->timeouts = 0;
	if (pcb->is_accurate)
		tcp_accecn_take(pcb, in, &sample,
				pcb->delivered - prior_delivered);
	else if (sample.is_ece)
		pcb->delivered_ce += pcb->delivered - prior_delivered;
	sample_rtt(pcb, &sample, now_ns);
	if (pcb->snd_una == pcb->snd_end)
		tcp_stats_set(pcb, CHRONO_IDLE, now_ns);
	if (pcb->has_tlp)
		tcp_tlp_on_ack(pcb, in, &sample, now_ns);
	reorder_ns = tcp_recovery_on_ack(pcb, &sample, now_ns);
	if (pcb->rtx_kind == RTX_PERSIST)
		note_probe_answered(pcb);
	restart_timers(pcb, &sample, prior_backoff && !pcb->backoff, reorder_ns,
		       now_ns);
	if (sample.has_advanced)
		tcp_event_raise(pcb, TCP_EV_WRITABLE);
	return true;
}
