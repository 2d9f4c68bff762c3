/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loss detection by time (RACK) and the tail loss probe, RFC 8985. A segment is
 * lost when one that was sent later has arrived and as much time as reordering
 * takes has gone by. Where no reordering was ever seen and three segments have
 * arrived, that time is none, which is the rule of RFC 6675.
 */
#include "tcp/tcp_priv.h"

enum { DUP_THRESHOLD = 3, PERSIST_RECOVERIES = 16 };

/* Whether the transmission (a_ns, a_end) was later than (b_ns, b_end): RFC 8985
 * section 6.2, step 2. */
static bool is_sent_after(uint64_t a_ns, uint32_t a_end, uint64_t b_ns,
			  uint32_t b_end)
{
	return a_ns > b_ns || (a_ns == b_ns && seq_after(a_end, b_end));
}

/* An ACK of something sent twice may answer the first transmission. Then it came too
 * soon for the second, or its time stamp is older. The echo says so only for bytes in
 * order: with SACK it belongs to the last segment before the gap. */
static bool is_of_earlier_copy(const struct tcp_pcb *pcb,
			       const struct tcp_seg *seg,
			       const struct tcp_ack_sample *sample,
			       uint64_t now_ns)
{
	if (seg->sent_cnt < 2)
		return false;
	if (sample->has_ts && sample->has_advanced &&
	    seq_before(sample->ts_ecr, tcp_ts_now(pcb, seg->sent_ns)))
		return true;
	/* The bound is a little less than the smallest, because a short segment may be
	 * the fastest so far. */
	return now_ns - seg->sent_ns <
	       pcb->min_rtt_ns - pcb->min_rtt_ns / 16;
}

static void note_reordering(struct tcp_pcb *pcb, uint32_t bytes)
{
	uint32_t segments = MIN(bytes / pcb->mss + 1, (uint32_t)UINT16_MAX);

	pcb->flags |= TF_REORDERS;
	pcb->reorderings++;
	pcb->reordering = MAX(pcb->reordering, (uint16_t)segments);
}

void tcp_rack_delivered(struct tcp_pcb *pcb, struct pkt *pkt,
			struct tcp_ack_sample *sample, uint64_t now_ns)
{
	const struct tcp_seg *seg = tcp_seg(pkt);
	uint32_t end = seg->seq + tcp_seg_len(pkt);

	if (seg->sent_cnt == 1) {
		/* what followed a timeout says nothing about it */
		sample->has_original |= seq_at_most(end, pcb->recovery_point);
		/* Section 6.2, step 3: this one was never sent again, and still lies
		 * behind what earlier ACKs reported. Reports of one ACK say nothing
		 * about the order. */
		if (seq_before(end, sample->prior_high))
			note_reordering(pcb, sample->prior_high - end);
	}
	if (is_of_earlier_copy(pcb, seg, sample, now_ns))
		return;
	pcb->rack_rtt_ns = now_ns - seg->sent_ns;
	if (is_sent_after(seg->sent_ns, end, pcb->rack_sent_ns, pcb->rack_end)) {
		pcb->rack_sent_ns = seg->sent_ns;
		pcb->rack_end = end;
	}
}

/* Section 6.2, step 4. */
static uint64_t reorder_window_ns(const struct tcp_pcb *pcb)
{
	uint64_t window_ns;

	if (!(pcb->flags & TF_REORDERS) &&
	    (pcb->recovery >= RECOVERY_FAST ||
	     pcb->sacked_cnt >= DUP_THRESHOLD))
		return 0;
	window_ns = (uint64_t)(pcb->rack_mult + 1) * pcb->min_rtt_ns / 4;
	return MIN(window_ns, pcb->srtt_ns);
}

/* Section 6.2, step 5. */
uint64_t tcp_rack_detect(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t wait_ns = pcb->rack_rtt_ns + reorder_window_ns(pcb);
	uint64_t left_ns = 0;
	struct list *order, *following;

	for (order = pcb->in_flight.next; order != &pcb->in_flight;
	     order = following) {
		struct pkt *pkt = tcp_seg_pkt(order);
		const struct tcp_seg *seg = tcp_seg(pkt);

		following = order->next;
		if (!is_sent_after(pcb->rack_sent_ns, pcb->rack_end,
				   seg->sent_ns, tcp_seg_end(pkt)))
			break;
		if (seg->sent_ns + wait_ns <= now_ns)
			tcp_sack_mark_lost(pcb, pkt);
		else
			left_ns = MAX(left_ns,
				      seg->sent_ns + wait_ns - now_ns);
	}
	return left_ns;
}

/* Section 6.2, step 4: a retransmission was needless, so reordering takes longer than
 * we thought. This is counted once in a round trip. */
void tcp_rack_on_dsack(struct tcp_pcb *pcb)
{
	if (tcp_is_under_way(pcb, pcb->rack_round_end))
		return;
	pcb->rack_round_end = pcb->snd_nxt;
	pcb->rack_mult += pcb->rack_mult < UINT8_MAX - 1;
	pcb->rack_persist = PERSIST_RECOVERIES;
}

void tcp_rack_on_recovery_end(struct tcp_pcb *pcb)
{
	if (pcb->rack_persist && --pcb->rack_persist == 0)
		pcb->rack_mult = 0;
}

void tcp_rack_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint32_t lost = pcb->lost_bytes;
	uint64_t left_ns = tcp_rack_detect(pcb, now_ns);

	tcp_recovery_note_lost(pcb, pcb->lost_bytes - lost);
	if (!list_is_empty(&pcb->lost)) {
		if (pcb->recovery < RECOVERY_FAST)
			tcp_recovery_enter_fast(pcb, now_ns);
		tcp_recovery_grant(pcb);
		tcp_out_push(pcb, now_ns);
	}
	if (left_ns)
		tcp_timer_set_reorder(pcb, now_ns + left_ns);
	else
		tcp_timer_rearm_rtx(pcb, now_ns);
}

/* ---- tail loss probe ---- */

/* Section 7.2 */
uint64_t tcp_tlp_timeout_ns(const struct tcp_pcb *pcb)
{
	if (!(pcb->flags & TF_SACK) || pcb->has_tlp ||
	    pcb->recovery > RECOVERY_DISORDER || pcb->sacked_bytes ||
	    !(pcb->flags & TF_HAS_RTT) || !pcb->table->params.with_tlp)
		return 0;
	return tcp_tlp_after_ns(pcb, pcb->snd_nxt - pcb->snd_una <= pcb->mss);
}

/* The FIN left with the bytes before it, which are still under way. */
static bool is_fin_of(struct pkt *fin, struct pkt *pkt)
{
	return tcp_seg(fin)->flags & SEG_FIN &&
	       tcp_seg(fin)->sent_ns == tcp_seg(pkt)->sent_ns &&
	       !(tcp_seg(pkt)->flags & SEG_SACKED);
}

/* The first entry of the segment sent last by sequence. */
static struct pkt *last_sent(struct tcp_pcb *pcb)
{
	struct list *link = pcb->unsent ? pcb->unsent->link.prev
					: pcb->snd_queue.prev;
	struct pkt *pkt;

	if (link == &pcb->snd_queue)
		return NULL;
	pkt = pkt_from_link(link);
	if (link->prev != &pcb->snd_queue &&
	    is_fin_of(pkt, pkt_from_link(link->prev)))
		return pkt_from_link(link->prev);
	return pkt;
}

/* Section 7.3: sends new data if there is any and the peer has room, otherwise the
 * last segment once more. */
void tcp_tlp_fire(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct pkt *pkt;

	pcb->has_tlp = true;
	pcb->flags &= ~TF_TLP_NEW;
	pcb->table->counts.tlp_sent++;
	if (tcp_out_push_one(pcb, now_ns)) {
		pcb->flags |= TF_TLP_NEW;
	} else {
		pkt = last_sent(pcb);
		if (pkt && !(tcp_seg(pkt)->flags & SEG_SACKED))
			tcp_out_resend(pcb, pkt, now_ns);
	}
	pcb->tlp_end = pcb->snd_nxt;
	tcp_timer_rearm_rtx(pcb, now_ns);
}

/* Section 7.4.2 */
void tcp_tlp_on_ack(struct tcp_pcb *pcb, const struct tcp_segment *in,
		    const struct tcp_ack_sample *sample, uint64_t now_ns)
{
	bool is_plain_duplicate = !sample->has_advanced && !in->len &&
				  !sample->sacked_cnt;

	if (!pcb->has_tlp || seq_before(in->ack, pcb->tlp_end))
		return;
	/* It was needless: the peer is not as quick as it seemed. */
	if (sample->has_dsack || is_plain_duplicate)
		tcp_rtt_expect_wait(pcb);
	if (pcb->flags & TF_TLP_NEW || sample->has_dsack) {
		pcb->has_tlp = false;
	} else if (seq_after(in->ack, pcb->tlp_end)) {
		/* the probe arrived, and the original did not */
		pcb->has_tlp = false;
		tcp_recovery_enter_cwr(pcb, now_ns);
	} else if (is_plain_duplicate) {
		/* both arrived */
		pcb->has_tlp = false;
	}
}
