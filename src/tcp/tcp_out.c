/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending: this file decides which bytes may be sent now (windows, Nagle, cork, silly
 * windows). tcp_emit.c builds the segments.
 */
#include "tcp/tcp_priv.h"

struct pkt *tcp_out_next(const struct tcp_pcb *pcb, struct pkt *pkt)
{
	return pkt->link.next == &pcb->snd_queue
		       ? NULL
		       : pkt_from_link(pkt->link.next);
}

/* ---- the send queue ---- */

/* The packet's data now begin `len` bytes later. */
static void cut_front(struct pkt *pkt, uint32_t len)
{
	pkt_pull(pkt, len);
	pkt->flags &= (uint8_t)~PKT_HAS_SUM;
	tcp_seg(pkt)->seq += len;
}

bool tcp_out_split(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t len)
{
	struct tcp_seg *seg = tcp_seg(pkt), *tail_seg;
	struct pkt *tail = pkt_borrow(pcb->table->borrowers, pkt, len,
				      pkt->len - len);

	if (!tail)
		return false;
	tail_seg = tcp_seg(tail);
	*tail_seg = *seg;
	tail_seg->seq += len;
	list_insert_after(&pkt->link, &tail->link);
	if (list_is_linked(&seg->order))
		list_insert_after(&seg->order, &tail_seg->order);
	else
		list_init(&tail_seg->order);
	seg->flags &= (uint8_t)~SEG_OF_END;
	pkt_trim(pkt, len);
	pkt->flags &= (uint8_t)~PKT_HAS_SUM;
	return true;
}

/* Moves bytes of the packets that follow into the room behind an unsent one, up
 * to a full segment, so that small writes do not become small segments. */
static void fill_up(struct tcp_pcb *pcb, struct pkt *pkt)
{
	struct pkt *next;

	while (pkt->len < pcb->mss && pkt->refs == 1 && pkt_tailroom(pkt) &&
	       !(tcp_seg(pkt)->flags & (SEG_EOR | SEG_STAMP)) &&
	       (next = tcp_out_next(pcb, pkt)) && next->len) {
		uint32_t len = MIN(next->len, pkt_tailroom(pkt));

		len = MIN(len, pcb->mss - pkt->len);
		memcpy(pkt_append(pkt, len), next->data, len);
		pkt->flags &= (uint8_t)~PKT_HAS_SUM;
		/* The packet may now end in the middle of a write. */
		tcp_seg(pkt)->flags &= (uint8_t)~SEG_OF_END;
		if (len < next->len) {
			cut_front(next, len);
			return;
		}
		tcp_seg(pkt)->flags |= tcp_seg(next)->flags & SEG_OF_END;
		list_remove(&next->link);
		pkt_put(next);
	}
}

static void note_sent(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	seg->flags |= SEG_SENT;
	seg->sent_ns = now_ns;
	seg->sent_cnt += seg->sent_cnt < UINT8_MAX;
	list_remove(&seg->order);
	list_push_back(&pcb->in_flight, &seg->order);
	pcb->prr_out += tcp_seg_len(pkt);
}

/* The FIN, if it follows the packet and was sent as well, goes in the same segment. */
static struct pkt *sent_fin_after(const struct tcp_pcb *pcb, struct pkt *pkt)
{
	struct pkt *next = tcp_out_next(pcb, pkt);

	if (!next || (tcp_seg(next)->flags & (SEG_FIN | SEG_SENT | SEG_SACKED)) !=
			     (SEG_FIN | SEG_SENT))
		return NULL;
	return next;
}

void tcp_out_resend(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns)
{
	struct tcp_seg *seg = tcp_seg(pkt);
	struct tcp_outgoing o = {
		.seq = seg->seq,
		.first = pkt,
		.cnt = 1,
		.is_retransmission = true,
	};
	struct pkt *fin;

	/* the path may have become narrower */
	if (pkt->len > pcb->mss && !tcp_out_split(pcb, pkt, pcb->mss))
		return;
	o.len = pkt->len;
	fin = sent_fin_after(pcb, pkt);
	if (seg->flags & SEG_FIN || fin)
		o.flags |= WIRE_TCP_FIN;
	if (seg->flags & SEG_PUSH)
		o.flags |= WIRE_TCP_PSH;
	tcp_sack_unmark_one(pcb, pkt);
	if (pcb->undo_cwnd) {
		if (!pcb->undo_has_resent)
			pcb->undo_ts = tcp_ts_now(pcb, now_ns);
		pcb->undo_has_resent = true;
		pcb->undo_resent++;
	}
	pcb->retransmitted++;
	pcb->bytes_resent += pkt->len;
	pcb->table->counts.retransmitted++;
	note_sent(pcb, pkt, now_ns);
	if (fin) {
		tcp_sack_unmark_one(pcb, fin);
		note_sent(pcb, fin, now_ns);
	}
	pcb->last_sent_ns = now_ns;
	tcp_emit(pcb, &o, now_ns);
	tcp_pace_note(pcb, o.len, now_ns);
}

/* Lost data is sent before new data, as far as the window allows. */
static void resend_lost(struct tcp_pcb *pcb, uint64_t now_ns)
{
	while (!list_is_empty(&pcb->lost)) {
		struct pkt *pkt = tcp_seg_pkt(pcb->lost.next);
		uint32_t pipe = tcp_pipe(pcb);

		if (pipe + MIN(pkt->len, pcb->mss) > pcb->cwnd && pipe) {
			tcp_cwnd_note_used(pcb);
			return;
		}
		if (tcp_pace_is_held(pcb, now_ns) || tcp_pace_is_stuck(pcb, now_ns))
			return;
		tcp_out_resend(pcb, pkt, now_ns);
		/* There is no packet to split it with, so we try later. */
		if (tcp_seg(pkt)->flags & SEG_LOST)
			return;
		/* RFC 6675 section 6: the oldest data gets a whole timeout. Otherwise
		 * a path whose round trip is more than half the timeout would never be
		 * repaired in time. */
		if (tcp_seg(pkt)->seq == pcb->snd_una &&
		    (pcb->rtx_kind == RTX_TIMEOUT ||
		     pcb->rtx_kind == RTX_LATE_PROBE))
			tcp_timer_rearm_rtx(pcb, now_ns);
	}
}

/* ---- new data ---- */

/* Held by TCP_CORK, or by MSG_MORE, which holds data only until a later push. */
static bool is_corked(const struct tcp_pcb *pcb, struct pkt *pkt)
{
	return pcb->flags & TF_CORK || (pcb->flags & TF_MORE_FOLLOWS &&
					tcp_seg(pkt)->flags & SEG_MORE);
}

/* See TF_DUE. */
static bool is_due(const struct tcp_pcb *pcb, struct pkt *pkt)
{
	return pcb->flags & TF_DUE && seq_before(tcp_seg(pkt)->seq, pcb->due_end);
}

static void become_due(struct tcp_pcb *pcb, uint32_t end)
{
	if (!(pcb->flags & TF_DUE) || seq_after(end, pcb->due_end))
		pcb->due_end = end;
	pcb->flags |= TF_DUE;
}

/* Whether a segment that is not full must wait. */
static bool is_held_back(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns)
{
	const struct pkt *next = tcp_out_next(pcb, pkt);

	/* The last one leaves with the FIN. One that others follow and that could not
	 * be filled up is as full as it can be. */
	if (next || !pkt->len || pcb->flags & TF_URGENT_OUT ||
	    is_due(pcb, pkt))
		return false;
	if (is_corked(pcb, pkt)) {
		if (!pcb->cork_ns) {
			pcb->cork_ns = now_ns + 200 * NS_PER_MS;
			tcp_timer_update(pcb);
		}
		return true;
	}
	/* RFC 9293 section 3.7.4 with Minshall's change: wait only for the ACK
	 * of a segment that was small too */
	return !(pcb->flags & TF_NODELAY) &&
	       tcp_is_under_way(pcb, pcb->snd_small_end);
}

/* Sender's side of silly window avoidance (RFC 9293 section 3.8.6.2.1): a part of
 * a segment goes only if it is a good part of the peer's largest window. */
static bool is_worth_splitting(const struct tcp_pcb *pcb, uint32_t room)
{
	return room && room >= pcb->snd_wnd_max / 2;
}

/* Makes the first unsent entry one that may be sent now; false if none may. */
static bool prepare_next(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct pkt *pkt = pcb->unsent;
	uint32_t room = pcb->snd_una + pcb->snd_wnd - tcp_seg(pkt)->seq;
	uint32_t pipe = tcp_pipe(pcb), len;

	if ((int32_t)room <= 0)
		return false;
	fill_up(pcb, pkt);
	if (pkt->len < pcb->mss && is_held_back(pcb, pkt, now_ns))
		return false;
	len = MIN(tcp_seg_len(pkt), pcb->mss);
	if (pipe && pipe + len > pcb->cwnd) {
		tcp_cwnd_note_used(pcb);
		return false;
	}
	if (len > room) {
		if (!is_worth_splitting(pcb, room))
			return false;
		len = room;
	}
	return pkt->len <= len || tcp_out_split(pcb, pkt, len);
}

/* The number of further full entries, and one that is not full, that the device may
 * take in the same call (segmentation offload). FIN goes with the last. */
static void gather_run(struct tcp_pcb *pcb, struct tcp_outgoing *o,
		       uint64_t now_ns)
{
	/* Each segment has an urgent pointer of its own. Devices know CWR as a flag of the
	 * first segment alone. */
	bool may_split = !(pcb->flags & TF_URGENT_OUT) && !pcb->is_accurate;
	uint32_t max = may_split ? pcb->path.segment_max : 0;
	struct pkt *pkt = o->first;

	if (max)
		max = MIN(max, tcp_pace_burst(pcb));
	while (max && pkt->len == pcb->mss && o->len + pcb->mss <= max) {
		struct pkt *next = tcp_out_next(pcb, pkt);

		if (!next || !next->len)
			break;
		pcb->unsent = next;
		/* the state as if the ones before it had been sent already */
		pcb->snd_nxt += pkt->len;
		if (!prepare_next(pcb, now_ns))
			break;
		pkt = next;
		o->len += pkt->len;
		o->cnt++;
	}
}

/* Takes the FIN along if it is next and fits the window. Where only the bytes before
 * it fit, they are sent without it. Linux holds both back, but there is nothing to
 * wait for. */
static bool takes_fin(struct tcp_pcb *pcb, struct pkt *last)
{
	struct pkt *next = tcp_out_next(pcb, last);

	return next && tcp_seg(next)->flags & SEG_FIN &&
	       seq_before(tcp_seg(next)->seq, pcb->snd_una + pcb->snd_wnd);
}

/* Returns false if some of it was taken back. */
static bool send_run(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct pkt *pkt = pcb->unsent;
	struct tcp_outgoing o = {
		.seq = tcp_seg(pkt)->seq,
		.first = pkt,
		.cnt = 1,
		.len = pkt->len,
	};
	uint32_t entries, end;

	gather_run(pcb, &o, now_ns);
	for (uint32_t i = 1; i < o.cnt; i++)
		pkt = tcp_out_next(pcb, pkt);
	entries = o.cnt;
	if (tcp_seg(pkt)->flags & SEG_FIN)
		o.flags |= WIRE_TCP_FIN;
	if (tcp_seg(pkt)->flags & SEG_PUSH)
		o.flags |= WIRE_TCP_PSH;
	if (o.len && takes_fin(pcb, pkt)) {
		o.flags |= WIRE_TCP_FIN | WIRE_TCP_PSH;
		entries++;
	}
	/* RFC 3168 section 6.1.2 */
	if (o.len && pcb->flags & TF_CWR_OUT) {
		o.flags |= WIRE_TCP_CWR;
		pcb->flags &= ~TF_CWR_OUT;
	}
	if (pcb->snd_una == o.seq) {
		pcb->progress_ns = now_ns;
		tcp_rate_begin(pcb, now_ns);
	}
	tcp_stats_begin(pcb, now_ns);
	pkt = o.first;
	for (uint32_t i = 0; i < entries; i++) {
		note_sent(pcb, pkt, now_ns);
		pcb->snd_nxt = tcp_seg_end(pkt);
		pkt = tcp_out_next(pcb, pkt);
	}
	pcb->unsent = pkt;
	pcb->cork_ns = 0;
	if (pcb->flags & TF_DUE && !seq_before(pcb->snd_nxt, pcb->due_end))
		pcb->flags &= ~TF_DUE;
	if (o.len && pcb->slow_out & SLOW_REPLY)
		tcp_rx_note_reply(pcb, now_ns);
	if (o.len && o.len % pcb->mss)
		pcb->snd_small_end = pcb->snd_nxt;
	pcb->last_sent_ns = now_ns;
	end = pcb->snd_nxt;
	tcp_emit(pcb, &o, now_ns);
	if (LIKELY(tcp_seg(o.first)->flags & SEG_SENT))
		tcp_pace_note(pcb, o.len, now_ns);
	return pcb->snd_nxt == end;
}

/* RFC 9293 section 3.8.2 (RFC 5681 section 4.1): after a pause the window no longer
 * describes the path. */
static void restart_if_idle(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t idle_ns = now_ns - pcb->last_sent_ns;

	if (pcb->snd_una == pcb->snd_nxt && pcb->last_sent_ns &&
	    idle_ns > pcb->rto_ns && pcb->table->params.restarts_when_idle)
		pcb->cc_ops->restarted(pcb, idle_ns);
}

bool tcp_out_push_one(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint32_t cwnd = pcb->cwnd;
	bool is_ready;

	if (!pcb->unsent)
		return false;
	pcb->cwnd = tcp_pipe(pcb) + pcb->mss;
	is_ready = prepare_next(pcb, now_ns);
	if (is_ready)
		(void)send_run(pcb, now_ns);
	pcb->cwnd = cwnd;
	return is_ready;
}

bool tcp_out_override(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct pkt *pkt = pcb->unsent;
	uint32_t room;

	if (!pkt || !tcp_may_send(pcb))
		return false;
	room = pcb->snd_una + pcb->snd_wnd - tcp_seg(pkt)->seq;
	if ((int32_t)room <= 0 || room >= MIN(tcp_seg_len(pkt), pcb->mss) ||
	    !tcp_out_split(pcb, pkt, room))
		return false;
	(void)send_run(pcb, now_ns);
	return true;
}

/* RFC 6298 section 5.1, RFC 8985 section 7.2 */
static bool new_data_moves_timer(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	switch ((enum tcp_rtx_kind)pcb->rtx_kind) {
	case RTX_NONE:
	case RTX_PERSIST:
		return true;
	case RTX_PROBE:
		return tcp_timer_may_move(pcb, now_ns);
	case RTX_LONE_PROBE:
	case RTX_LATE_PROBE:
		return tcp_tlp_timeout_ns(pcb) && tcp_timer_may_move(pcb, now_ns);
	case RTX_TIMEOUT:
	case RTX_REORDER:
		break;
	}
	return false;
}

/* The new data that shall test a timeout does not leave by any rule. */
static bool has_nothing_to_test(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_FRTO_NEW && pcb->snd_nxt == pcb->recovery_point &&
	       !pcb->pace_wait_ns;
}

/* Sends repairs, and new data by all the rules. */
static void push_by_rules(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool has_sent = false, repairs_first = !(pcb->flags & TF_FRTO_NEW);

	if (!list_is_empty(&pcb->lost) && repairs_first)
		resend_lost(pcb, now_ns);
	if (pcb->unsent)
		restart_if_idle(pcb, now_ns);
	while (pcb->unsent && (list_is_empty(&pcb->lost) || !repairs_first) &&
	       prepare_next(pcb, now_ns) && !tcp_pace_is_held(pcb, now_ns) &&
	       !tcp_pace_is_stuck(pcb, now_ns)) {
		has_sent = true;
		/* a device that seems to have room would go on refusing it under the lock */
		if (!send_run(pcb, now_ns))
			break;
	}
	if (has_nothing_to_test(pcb)) {
		pcb->flags &= ~(TF_FRTO | TF_FRTO_NEW);
		resend_lost(pcb, now_ns);
	}
	tcp_stats_sent(pcb, now_ns);
	/* What was just sent also makes room. */
	if (has_sent && pcb->settings->notsent_lowat != UINT32_MAX)
		tcp_event_raise(pcb, TCP_EV_WRITABLE);
	if ((has_sent && new_data_moves_timer(pcb, now_ns)) ||
	    (pcb->unsent && pcb->rtx_kind == RTX_NONE))
		tcp_timer_rearm_rtx(pcb, now_ns);
}

void tcp_out_push(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (pcb->is_frozen)
		return;
	tcp_fast_push(pcb, now_ns);
	if (tcp_may_send(pcb) && !pcb->is_calm)
		push_by_rules(pcb, now_ns);
	if (pcb->flags & TF_ACK_NOW && !tcp_pace_is_stuck(pcb, now_ns))
		tcp_out_ack(pcb, now_ns);
}

void tcp_out_push_held(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->cork_ns = 0;
	if (pcb->unsent)
		become_due(pcb, pcb->snd_end);
	tcp_out_push(pcb, now_ns);
}

/* ---- what a device has refused ---- */

struct pkt *tcp_out_sent_last(struct tcp_pcb *pcb, uint32_t seq)
{
	struct list *link = pcb->unsent ? &pcb->unsent->link : &pcb->snd_queue;

	while ((link = link->prev) != &pcb->snd_queue) {
		struct pkt *pkt = pkt_from_link(link);
		const struct tcp_seg *seg = tcp_seg(pkt);

		if (seg->sent_cnt != 1 || seq_before(seg->seq, seq))
			return NULL;
		if (seg->seq == seq)
			return pkt;
	}
	return NULL;
}

void tcp_out_take_back(struct tcp_pcb *pcb, struct pkt *first)
{
	struct pkt *end = pcb->unsent;

	become_due(pcb, pcb->snd_nxt);
	pcb->snd_nxt = tcp_seg(first)->seq;
	pcb->unsent = first;
	for (struct pkt *pkt = first; pkt != end; pkt = tcp_out_next(pcb, pkt)) {
		struct tcp_seg *seg = tcp_seg(pkt);

		seg->flags &= (uint8_t)~SEG_SENT;
		seg->sent_cnt = 0;
		list_remove(&seg->order);
		/* the short path does not count it */
		if (pcb->recovery != RECOVERY_OPEN)
			pcb->prr_out -= MIN(pcb->prr_out, tcp_seg_len(pkt));
	}
	/* It was not held back for one before it. */
	if (seq_after(pcb->snd_small_end, pcb->snd_nxt))
		pcb->snd_small_end = pcb->snd_una;
}

void tcp_out_drop(struct tcp_pcb *pcb, uint32_t len)
{
	while (len) {
		struct pkt *pkt = pcb->unsent;
		uint32_t part = MIN(len, pkt->len);

		len -= part;
		if (part < pkt->len) {
			cut_front(pkt, part);
			return;
		}
		pcb->unsent = tcp_out_next(pcb, pkt);
		list_remove(&pkt->link);
		pkt_put(pkt);
	}
}

void tcp_out_free(struct tcp_pcb *pcb)
{
	struct list *link;

	while ((link = list_pop_front(&pcb->snd_queue))) {
		struct pkt *pkt = pkt_from_link(link);

		list_remove(&tcp_seg(pkt)->order);
		if (pkt != &pcb->fin)
			pkt_put(pkt);
	}
	pcb->unsent = NULL;
	pcb->stamp_cnt = 0;
	pcb->sack_hint = NULL;
	pcb->sacked_bytes = pcb->sacked_cnt = pcb->lost_bytes = 0;
}
