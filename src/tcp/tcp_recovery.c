/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the sender does about losses: when it slows down, how much it may send
 * while it repairs (RFC 6937), and when it finds out that nothing was lost (Eifel
 * RFC 3522/4015, F-RTO RFC 5682, DSACK RFC 3708) and takes the reduction back.
 */
#include "tcp/tcp_priv.h"

enum { DUP_THRESHOLD = 3 };

/* ---- the window during recovery ---- */

static void begin_reduction(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->prr_delivered = pcb->prr_out = 0;
	pcb->prr_flight = MAX(pcb->snd_nxt - pcb->snd_una, (uint32_t)1);
	pcb->recovery_point = pcb->snd_nxt;
	pcb->ssthresh = pcb->cc_ops->ssthresh(pcb, now_ns);
	pcb->has_tlp = false;
	/* RFC 3168 section 6.1.2 */
	if (pcb->flags & TF_ECN && !pcb->is_accurate)
		pcb->flags |= TF_CWR_OUT;
}

static void remember_for_undo(struct tcp_pcb *pcb)
{
	pcb->undo_cwnd = pcb->cwnd;
	pcb->undo_ssthresh = pcb->ssthresh;
	pcb->undo_una = pcb->snd_una;
	pcb->undo_resent = 0;
	pcb->undo_has_resent = false;
}

void tcp_recovery_enter_fast(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->table->counts.fast_recoveries++;
	if (pcb->recovery == RECOVERY_CWR) {
		/* The sender has slowed down already in this window, so it only
		 * repairs. */
		pcb->undo_cwnd = 0;
	} else {
		remember_for_undo(pcb);
		begin_reduction(pcb, now_ns);
	}
	if (pcb->cc_ops->model)
		pcb->cc_ops->model->recovers(pcb, false);
	pcb->recovery = RECOVERY_FAST;
}

void tcp_recovery_enter_cwr(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (pcb->recovery > RECOVERY_DISORDER)
		return;
	pcb->undo_cwnd = 0;
	begin_reduction(pcb, now_ns);
	pcb->recovery = RECOVERY_CWR;
}

/* RFC 6937 section 3, with the slow-start reduction bound while nothing else is
 * found to be lost. */
static void reduce_proportionally(struct tcp_pcb *pcb, uint32_t delivered,
				  bool is_safe)
{
	uint32_t pipe = tcp_pipe(pcb);
	int64_t quota;

	if (pcb->cc_ops->model)
		return;
	pcb->prr_delivered += delivered;
	if (pipe > pcb->ssthresh) {
		uint64_t wanted = (uint64_t)pcb->prr_delivered * pcb->ssthresh +
				  pcb->prr_flight - 1;

		quota = (int64_t)(wanted / pcb->prr_flight) - pcb->prr_out;
	} else {
		int64_t limit = (int64_t)pcb->prr_delivered - pcb->prr_out;

		limit = MAX(limit, (int64_t)delivered);
		if (is_safe)
			limit += pcb->mss;
		quota = MIN((int64_t)pcb->ssthresh - pipe, limit);
	}
	/* The first retransmission is sent at once. */
	if (!pcb->prr_out)
		quota = MAX(quota, (int64_t)pcb->mss);
	quota = MAX(quota, INT64_C(0));
	pcb->cwnd = MAX(pipe + (uint32_t)quota, pcb->mss);
}

void tcp_recovery_grant(struct tcp_pcb *pcb)
{
	if (pcb->recovery == RECOVERY_FAST || pcb->recovery == RECOVERY_CWR)
		reduce_proportionally(pcb, 0, false);
}

static void end_recovery(struct tcp_pcb *pcb)
{
	if (pcb->cc_ops->model)
		pcb->cc_ops->model->recovered(pcb);
	else if (pcb->recovery == RECOVERY_FAST || pcb->recovery == RECOVERY_CWR)
		pcb->cwnd = MAX(pcb->ssthresh, pcb->mss);
	if (pcb->recovery >= RECOVERY_FAST)
		tcp_rack_on_recovery_end(pcb);
	pcb->recovery = RECOVERY_OPEN;
	/* A report that the reduction was a mistake may still arrive for a round trip. */
	pcb->recovery_point = pcb->snd_nxt;
	pcb->dup_acks = 0;
	pcb->flags &= ~(TF_FRTO | TF_FRTO_NEW);
}

/* ---- mistakes ---- */

static void undo(struct tcp_pcb *pcb)
{
	pcb->table->counts.undone++;
	pcb->cwnd = MAX(pcb->cwnd, pcb->undo_cwnd);
	pcb->ssthresh = MAX(pcb->ssthresh, pcb->undo_ssthresh);
	pcb->undo_cwnd = 0;
	pcb->backoff = 0;
	tcp_sack_unmark_lost(pcb);
	pcb->cc_ops->undone(pcb);
	pcb->recovery = RECOVERY_OPEN;
	pcb->dup_acks = 0;
	pcb->flags &= ~(TF_FRTO | TF_FRTO_NEW);
}

/* The ACK was caused by the original and not by the retransmission: its time stamp is
 * older (RFC 3522), or every retransmission was reported as a duplicate. */
static bool is_mistake(const struct tcp_pcb *pcb,
		       const struct tcp_ack_sample *sample)
{
	if (!pcb->undo_cwnd || !pcb->undo_has_resent)
		return false;
	if (sample->has_advanced && sample->has_ts && sample->ts_ecr &&
	    seq_before(sample->ts_ecr, pcb->undo_ts))
		return true;
	return sample->has_dsack && pcb->undo_resent == 0;
}

/* ---- timeouts ---- */

void tcp_recovery_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool is_first = pcb->recovery != RECOVERY_LOSS;
	uint32_t lost;

	/* RFC 5681 section 4.3: this is done once for each window, and never from the
	 * value that proportional reduction has set meanwhile. */
	if (pcb->recovery <= RECOVERY_DISORDER) {
		remember_for_undo(pcb);
		begin_reduction(pcb, now_ns);
	}
	if (pcb->cc_ops->model)
		pcb->cc_ops->model->recovers(pcb, true);
	pcb->has_tlp = false;
	pcb->flags &= ~(TF_FRTO | TF_FRTO_NEW);
	if (is_first && pcb->table->params.with_frto)
		pcb->flags |= TF_FRTO;
	pcb->recovery = RECOVERY_LOSS;
	pcb->recovery_point = pcb->snd_nxt;
	/* RFC 5681 section 3.1: the window is one segment. That is less than there is
	 * to send again, so its acknowledgment makes it two. */
	pcb->cwnd = pcb->mss;
	tcp_cwnd_note_used(pcb);
	pcb->dup_acks = 0;
	lost = pcb->lost_bytes;
	tcp_sack_mark_all_lost(pcb);
	tcp_recovery_note_lost(pcb, pcb->lost_bytes - lost);
}

/* F-RTO, RFC 5682 section 3.1. True if the timeout was found to be needless. */
static bool try_frto(struct tcp_pcb *pcb, const struct tcp_ack_sample *sample)
{
	if (!(pcb->flags & TF_FRTO))
		return false;
	if (sample->has_original && !sample->has_resent && pcb->undo_cwnd) {
		undo(pcb);
		return true;
	}
	if (pcb->flags & TF_FRTO_NEW || !sample->has_advanced ||
	    !pcb->unsent || !seq_before(pcb->snd_una, pcb->recovery_point)) {
		/* Step 3a, or there is nothing new to send: we repair as usual. A
		 * duplicate alone is of before the timeout until new data is under way. */
		if (sample->has_advanced || sample->sacked_cnt ||
		    (sample->is_duplicate && pcb->flags & TF_FRTO_NEW))
			pcb->flags &= ~(TF_FRTO | TF_FRTO_NEW);
		return false;
	}
	/* Step 2b: we send two new segments and see what ACKs they bring. */
	pcb->flags |= TF_FRTO_NEW;
	pcb->cwnd = MAX(pcb->cwnd, 2 * pcb->mss);
	return false;
}

/* ---- without SACK: RFC 5681 section 3.2 and RFC 6582 ---- */

/* Each duplicate says that one more segment has arrived, but not which one. */
static uint32_t count_duplicates(struct tcp_pcb *pcb,
				 const struct tcp_ack_sample *sample)
{
	uint32_t flight = pcb->snd_nxt - pcb->snd_una;
	uint32_t delivered = sample->delivered;

	if (sample->is_duplicate) {
		pcb->dup_acks += pcb->dup_acks < UINT16_MAX;
		if (pcb->sacked_bytes + pcb->lost_bytes + 2 * pcb->mss <=
		    flight) {
			pcb->sacked_bytes += pcb->mss;
			delivered += pcb->mss;
		}
		return delivered;
	}
	if (sample->has_advanced) {
		/* A part of what arrives now was counted before. */
		uint32_t counted = MIN(pcb->sacked_bytes, delivered);

		pcb->sacked_bytes -= counted;
		if (pcb->sacked_bytes + pcb->lost_bytes > flight)
			pcb->sacked_bytes = flight - MIN(flight,
							 pcb->lost_bytes);
		delivered -= counted;
		if (pcb->recovery < RECOVERY_FAST) {
			pcb->dup_acks = 0;
			pcb->sacked_bytes = 0;
		}
	}
	return delivered;
}

static void mark_head_lost(struct tcp_pcb *pcb)
{
	struct pkt *pkt;

	if (list_is_empty(&pcb->snd_queue))
		return;
	pkt = pkt_from_link(pcb->snd_queue.next);
	if (!(tcp_seg(pkt)->flags & SEG_SENT))
		return;
	/* Bytes that arrived or are lost are at most the whole flight. */
	if (pcb->sacked_bytes)
		pcb->sacked_bytes -= MIN(pcb->sacked_bytes, tcp_seg_len(pkt));
	tcp_sack_mark_lost(pcb, pkt);
}

static void detect_by_duplicates(struct tcp_pcb *pcb,
				 const struct tcp_ack_sample *sample)
{
	bool is_partial = pcb->recovery == RECOVERY_FAST &&
			  sample->has_advanced &&
			  seq_before(pcb->snd_una, pcb->recovery_point);
	bool is_third = pcb->recovery < RECOVERY_FAST && sample->is_duplicate &&
			pcb->dup_acks >= DUP_THRESHOLD;

	if (is_partial || is_third)
		mark_head_lost(pcb);
}

/* ---- the send buffer ---- */

static uint32_t power_of_two_above(uint32_t n)
{
	return n < 2 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/*
 * Linux begins with room for twice the first window, of segments as large as they are in
 * its memory, where tcp_wmem has less: 87040 bytes on Ethernet. Programs write replies of
 * tens of kilobytes at once, and expect them to go in whole.
 */
void tcp_recovery_begin_snd_buf(struct tcp_pcb *pcb)
{
	enum { HEADERS = 640, BESIDE = 256, SEGMENTS = 10 };
	uint32_t segment = power_of_two_above(pcb->mss + HEADERS) + BESIDE;
	uint32_t segments = MAX(pcb->cwnd / pcb->mss, (uint32_t)SEGMENTS);
	uint32_t bytes = MIN(2 * segments * segment,
			     pcb->table->params.snd_buf_max);

	if (!(pcb->flags & TF_SND_BUF_FIXED))
		pcb->snd_buf = MAX(pcb->snd_buf, bytes);
}


/* The writer must be able to stay ahead of the window. The buffer holds two windows,
 * so that one can be filled while the other is under way. */
static void tune_snd_buf(struct tcp_pcb *pcb)
{
	uint32_t most = pcb->table->params.snd_buf_max;

	if (pcb->snd_buf / 2 < pcb->cwnd && !(pcb->flags & TF_SND_BUF_FIXED))
		pcb->snd_buf = MAX(pcb->snd_buf,
				   pcb->cwnd < most / 2 ? 2 * pcb->cwnd : most);
}

/* ---- each ACK ---- */

/* In slow start half of it is enough, since the window doubles in the time that
 * the flight needs to tell. */
static bool is_window_full(const struct tcp_pcb *pcb, uint32_t flight)
{
	if (pcb->cwnd < pcb->ssthresh)
		return pcb->cwnd < 2 * flight;
	return pcb->cwnd < flight + pcb->mss;
}

/* RFC 7661 gives the reason: a window that was not used proves nothing. */
static void grow(struct tcp_pcb *pcb, uint32_t prior_una, uint32_t acked,
		 uint64_t now_ns)
{
	if (!acked || pcb->cc_ops->model)
		return;
	if (is_window_full(pcb, pcb->snd_nxt - prior_una))
		tcp_cwnd_note_used(pcb);
	else if (!seq_before(prior_una, pcb->cwnd_used_end))
		pcb->flags &= ~TF_CWND_LIMITED;
	if (!(pcb->flags & TF_CWND_LIMITED))
		return;
	pcb->cc_ops->acked(pcb, acked, now_ns);
	tune_snd_buf(pcb);
}

void tcp_recovery_grow(struct tcp_pcb *pcb, uint32_t prior_una, uint32_t acked,
		       uint64_t now_ns)
{
	const struct tcp_ack_sample sample = { .prior_una = prior_una };

	if (LIKELY(!pcb->cc_ops->model)) {
		grow(pcb, prior_una, acked, now_ns);
		return;
	}
	pcb->cc_ops->model->acked(pcb, &sample, acked, now_ns);
	tune_snd_buf(pcb);
}

static void on_ack_in_loss(struct tcp_pcb *pcb,
			   const struct tcp_ack_sample *sample,
			   uint64_t now_ns)
{
	if (try_frto(pcb, sample))
		return;
	/* The window does not grow beyond the two segments that F-RTO has just
	 * granted. */
	if (sample->has_advanced && !(pcb->flags & TF_FRTO_NEW))
		grow(pcb, sample->prior_una, sample->delivered, now_ns);
	if (!seq_before(pcb->snd_una, pcb->recovery_point))
		end_recovery(pcb);
}

static void on_ack_in_fast(struct tcp_pcb *pcb,
			   const struct tcp_ack_sample *sample,
			   uint32_t delivered)
{
	if (!seq_before(pcb->snd_una, pcb->recovery_point)) {
		end_recovery(pcb);
		return;
	}
	reduce_proportionally(pcb, delivered,
			      sample->has_advanced && !sample->has_loss);
}

static void on_ack_in_open(struct tcp_pcb *pcb,
			   const struct tcp_ack_sample *sample,
			   uint32_t delivered, uint64_t now_ns)
{
	if (!list_is_empty(&pcb->lost)) {
		tcp_recovery_enter_fast(pcb, now_ns);
		reduce_proportionally(pcb, delivered, false);
		return;
	}
	if (sample->is_ece)
		tcp_recovery_enter_cwr(pcb, now_ns);
	if (pcb->recovery == RECOVERY_CWR) {
		on_ack_in_fast(pcb, sample, delivered);
		return;
	}
	pcb->recovery = pcb->sacked_bytes ? RECOVERY_DISORDER : RECOVERY_OPEN;
	if (!seq_before(pcb->snd_una, pcb->recovery_point))
		pcb->undo_cwnd = 0;
	grow(pcb, sample->prior_una, pcb->snd_una - sample->prior_una, now_ns);
}

uint64_t tcp_recovery_on_ack(struct tcp_pcb *pcb,
			     struct tcp_ack_sample *sample, uint64_t now_ns)
{
	uint32_t lost_before = pcb->lost_bytes;
	uint32_t delivered = sample->delivered;
	uint64_t reorder_ns = 0;

	if (is_mistake(pcb, sample))
		undo(pcb);
	if (pcb->flags & TF_SACK) {
		if (pcb->sacked_bytes || sample->sacked_cnt ||
		    pcb->recovery >= RECOVERY_FAST)
			reorder_ns = tcp_rack_detect(pcb, now_ns);
	} else {
		delivered = count_duplicates(pcb, sample);
		detect_by_duplicates(pcb, sample);
	}
	sample->has_loss = pcb->lost_bytes > lost_before;
	if (sample->has_loss)
		tcp_recovery_note_lost(pcb, pcb->lost_bytes - lost_before);
	switch ((enum tcp_recovery)pcb->recovery) {
	case RECOVERY_LOSS:
		on_ack_in_loss(pcb, sample, now_ns);
		break;
	case RECOVERY_FAST:
		on_ack_in_fast(pcb, sample, delivered);
		break;
	case RECOVERY_OPEN:
	case RECOVERY_DISORDER:
	case RECOVERY_CWR:
		on_ack_in_open(pcb, sample, delivered, now_ns);
		break;
	}
	if (pcb->timeout_since && pcb->recovery != RECOVERY_LOSS)
		tcp_stats_repaired(pcb, now_ns);
	if (pcb->cc_ops->model) {
		pcb->cc_ops->model->acked(pcb, sample, delivered, now_ns);
		tune_snd_buf(pcb);
	}
	return reorder_ns;
}
