/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scoreboard: it says which of the bytes under way have arrived, and which are
 * deemed lost (RFC 2018, 2883, 6675). It consists of the flags of the queue's entries
 * and of two sums.
 */
#include "tcp/tcp_priv.h"

void tcp_sack_forget(struct tcp_pcb *pcb, struct pkt *pkt)
{
	uint8_t flags = tcp_seg(pkt)->flags;

	if (flags & SEG_SACKED) {
		pcb->sacked_bytes -= tcp_seg_len(pkt);
		pcb->sacked_cnt--;
	}
	if (flags & SEG_LOST)
		pcb->lost_bytes -= tcp_seg_len(pkt);
}

void tcp_sack_mark_lost(struct tcp_pcb *pcb, struct pkt *pkt)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	if (seg->flags & (SEG_LOST | SEG_SACKED))
		return;
	seg->flags |= SEG_LOST;
	pcb->lost_bytes += tcp_seg_len(pkt);
	list_remove(&seg->order);
	list_push_back(&pcb->lost, &seg->order);
}

/* The first entry was reported and is still not acknowledged after a timeout:
 * the peer has thrown it away, as RFC 2018 section 8 allows. */
static void renege(struct tcp_pcb *pcb)
{
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pcb->snd_queue, link)
		tcp_seg(pkt)->flags &= (uint8_t)~SEG_SACKED;
	pcb->sacked_bytes = pcb->sacked_cnt = 0;
	pcb->sack_seen_cnt = 0;
}

void tcp_sack_mark_all_lost(struct tcp_pcb *pcb)
{
	struct pkt *pkt = pkt_from_link(pcb->snd_queue.next);

	if (!(pcb->flags & TF_SACK))
		pcb->sacked_bytes = 0;
	if (tcp_seg(pkt)->flags & SEG_SACKED)
		renege(pcb);
	/* We begin again at the start, so that `lost` is in order. */
	LIST_FOR_EACH(pkt, &pcb->snd_queue, link) {
		struct tcp_seg *seg = tcp_seg(pkt);

		if (!(seg->flags & SEG_SENT))
			break;
		if (seg->flags & SEG_SACKED)
			continue;
		if (seg->flags & SEG_LOST) {
			list_remove(&seg->order);
			list_push_back(&pcb->lost, &seg->order);
		}
		tcp_sack_mark_lost(pcb, pkt);
	}
}

void tcp_sack_unmark_lost(struct tcp_pcb *pcb)
{
	/* We go from the end, so that they stay in the order in which they were sent. */
	while (!list_is_empty(&pcb->lost)) {
		struct list *order = pcb->lost.prev;

		tcp_seg(tcp_seg_pkt(order))->flags &= (uint8_t)~SEG_LOST;
		list_remove(order);
		/* It was sent before everything that is still under way. */
		list_push_front(&pcb->in_flight, order);
	}
	pcb->lost_bytes = 0;
}

static void mark_sacked(struct tcp_pcb *pcb, struct pkt *pkt,
			struct tcp_ack_sample *sample, uint64_t now_ns)
{
	struct tcp_seg *seg = tcp_seg(pkt);
	uint32_t len = tcp_seg_len(pkt);

	if (seg->flags & SEG_LOST) {
		seg->flags &= (uint8_t)~SEG_LOST;
		pcb->lost_bytes -= len;
	}
	seg->flags |= SEG_SACKED;
	pcb->sacked_bytes += len;
	pcb->sacked_cnt++;
	list_remove(&seg->order);
	sample->delivered += len;
	sample->sacked_cnt++;
	pcb->delivered++;
	tcp_rack_delivered(pcb, pkt, sample, now_ns);
	if (seq_after(seg->seq + len, pcb->sack_high))
		pcb->sack_high = seg->seq + len;
}

/* The first sent entry that ends behind seq, or NULL. New blocks mostly continue
 * where the last one ended. */
static struct pkt *find_entry(struct tcp_pcb *pcb, uint32_t seq)
{
	struct pkt *pkt = pcb->sack_hint;
	struct list *link;

	if (!pkt)
		pkt = pkt_from_link(pcb->snd_queue.next);
	link = &pkt->link;
	while (link->prev != &pcb->snd_queue &&
	       seq_after(tcp_seg_end(pkt_from_link(link->prev)), seq))
		link = link->prev;
	while (link != &pcb->snd_queue &&
	       seq_at_most(tcp_seg_end(pkt_from_link(link)), seq))
		link = link->next;
	return link == &pcb->snd_queue ? NULL : pkt_from_link(link);
}

/* What of the block is news begins at `from`. An entry that the block covers only in part
 * stays as it is. If it must be sent again, it is sent whole. */
static void mark_range(struct tcp_pcb *pcb, const struct tcp_sack_block *block, uint32_t from,
		       struct tcp_ack_sample *sample, uint64_t now_ns)
{
	struct pkt *pkt = find_entry(pcb, from);

	for (; pkt && tcp_seg(pkt)->flags & SEG_SENT &&
	       seq_at_most(tcp_seg_end(pkt), block->end);
	     pkt = tcp_out_next(pcb, pkt)) {
		pcb->sack_hint = pkt;
		if (seq_before(tcp_seg(pkt)->seq, block->start) ||
		    tcp_seg(pkt)->flags & SEG_SACKED)
			continue;
		mark_sacked(pcb, pkt, sample, now_ns);
	}
}

/* Each ACK repeats the blocks of the earlier ones, a little longer. Only the new part
 * is looked up in the queue. */
static void mark_news(struct tcp_pcb *pcb, const struct tcp_sack_block *block,
		      struct tcp_ack_sample *sample, uint64_t now_ns)
{
	uint32_t start = block->start;

	for (uint8_t i = 0; i < pcb->sack_seen_cnt; i++) {
		const struct tcp_sack_block *seen = &pcb->sack_seen[i];

		if (seq_at_most(seen->start, start) &&
		    seq_after(seen->end, start))
			start = seq_min(seen->end, block->end);
	}
	if (start != block->end)
		mark_range(pcb, block, start, sample, now_ns);
}

/* RFC 2883 section 4: the first block lies below the acknowledgment, or within
 * the second block. */
static bool is_dsack(const struct tcp_segment *in)
{
	const struct tcp_sack_block *sack = in->options.sack;

	if (seq_at_most(sack[0].end, in->ack))
		return true;
	return in->options.sack_cnt > 1 &&
	       seq_at_most(sack[1].start, sack[0].start) &&
	       seq_at_most(sack[0].end, sack[1].end);
}

static void take_dsack(struct tcp_pcb *pcb, const struct tcp_sack_block *block,
		       struct tcp_ack_sample *sample)
{
	/* older than anything a peer may still speak of: not credible */
	if (seq_before(block->start, pcb->snd_una - pcb->snd_wnd_max) ||
	    seq_after(block->end, pcb->snd_nxt) ||
	    !seq_before(block->start, block->end))
		return;
	sample->has_dsack = true;
	pcb->duplicates++;
	sample->dsack = *block;
	tcp_rack_on_dsack(pcb);
	if (pcb->undo_cwnd && pcb->undo_resent &&
	    !seq_before(block->start, pcb->undo_una))
		pcb->undo_resent--;
}

/* Blocks must lie within what is under way. */
static bool is_credible(const struct tcp_pcb *pcb,
			const struct tcp_sack_block *block)
{
	return seq_before(block->start, block->end) &&
	       !seq_before(block->start, pcb->snd_una) &&
	       seq_at_most(block->end, pcb->snd_nxt);
}

void tcp_sack_in(struct tcp_pcb *pcb, const struct tcp_segment *in,
		 struct tcp_ack_sample *sample, uint64_t now_ns)
{
	struct tcp_sack_block fresh[TCP_SACK_BLOCKS_MAX];
	uint8_t cnt = in->options.sack_cnt, fresh_cnt = 0, first = 0;

	if (is_dsack(in)) {
		take_dsack(pcb, &in->options.sack[0], sample);
		first = 1;
	}
	for (uint8_t i = first; i < cnt; i++) {
		const struct tcp_sack_block *block = &in->options.sack[i];

		if (!is_credible(pcb, block))
			continue;
		mark_news(pcb, block, sample, now_ns);
		fresh[fresh_cnt++] = *block;
	}
	if (fresh_cnt)
		memcpy(pcb->sack_seen, fresh, fresh_cnt * sizeof(fresh[0]));
	pcb->sack_seen_cnt = fresh_cnt;
}
