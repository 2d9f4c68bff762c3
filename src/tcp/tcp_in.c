/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This file handles a segment that tcp_fast.c did not expect. It follows RFC 9293
 * section 3.10.7 in its order, with the checks of RFC 5961 and 7323. tcp_ack.c handles
 * the acknowledgment, tcp_rx.c the payload.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* A time stamp can be compared for so long: RFC 7323 section 5.5. After that, any new
 * one replaces it. */
#define TS_RECENT_LIFE_NS (24 * 86400 * NS_PER_SEC)
/* The ACK of a SYN-ACK waits for so long where data is sure to follow. */
#define DEFERRED_ACK_NS (200 * NS_PER_MS)

/* ---- checks ---- */

static bool is_older_ts(const struct tcp_pcb *pcb,
			const struct tcp_segment *in, uint64_t now_ns)
{
	return seq_before(in->options.ts_val, pcb->ts_recent) &&
	       now_ns - pcb->ts_recent_ns < TS_RECENT_LIFE_NS;
}

/* PAWS, RFC 7323 section 5.3 R1. An empty segment that is only late changes no
 * sequence numbers. Where the path reorders, we still use its acknowledgment. */
static bool is_old_duplicate(const struct tcp_pcb *pcb,
			     const struct tcp_segment *in, uint64_t now_ns)
{
	bool is_late_ack = tcp_segment_end(in) == in->seq &&
			   in->seq == pcb->rcv_nxt &&
			   pcb->ts_recent - in->options.ts_val <=
				   pcb->rto_ns / NS_PER_MS;

	return pcb->flags & TF_TS && in->options.has_ts && !is_late_ack &&
	       is_older_ts(pcb, in, now_ns);
}

/* RFC 7323 section 5.3 R3 */
static void update_ts_recent(struct tcp_pcb *pcb, const struct tcp_segment *in,
			     uint64_t now_ns)
{
	if (!(pcb->flags & TF_TS) || !in->options.has_ts ||
	    seq_after(in->seq, pcb->last_ack_sent) ||
	    is_older_ts(pcb, in, now_ns))
		return;
	pcb->ts_recent = in->options.ts_val;
	pcb->ts_recent_ns = now_ns;
}

/* RFC 9293 table 6. A segment that begins at rcv_nxt is accepted even when the window
 * is closed, because we need its acknowledgment; its bytes are cut off later. An empty
 * segment may stand at the very edge, since the peer may have filled the window. */
static bool is_in_window(const struct tcp_pcb *pcb,
			 const struct tcp_segment *in)
{
	uint32_t end = tcp_segment_end(in);
	uint32_t edge = seq_max(pcb->rcv_edge, pcb->rcv_nxt);

	if (end == in->seq)
		return seq_between(pcb->rcv_nxt, in->seq, edge);
	return in->seq == pcb->rcv_nxt ||
	       (seq_after(end, pcb->rcv_nxt) && seq_before(in->seq, edge));
}

/* RFC 9293 section 3.10.7.4. Two ends that disagree could answer each other's empty
 * segments for ever. They cannot do so with data. */
static void answer_stray(struct tcp_pcb *pcb, const struct tcp_segment *in,
			 uint64_t now_ns)
{
	if (in->flags & WIRE_TCP_RST)
		return;
	if (in->flags & WIRE_TCP_SYN) {
		tcp_reply_challenge(pcb, now_ns);
		return;
	}
	if (!in->len && !(in->flags & WIRE_TCP_FIN)) {
		if (!tcp_reply_stray_allowed(pcb, now_ns))
			return;
	} else if (tcp_reports_duplicates(pcb) && in->len &&
		   seq_before(in->seq, pcb->rcv_nxt)) {
		/* RFC 2883: the peer sent it again needlessly */
		pcb->dsack.start = in->seq;
		pcb->dsack.end = seq_min(in->seq + in->len, pcb->rcv_nxt);
	}
	tcp_out_ack(pcb, now_ns);
}

/* Some peers send a reset with the number of their FIN, because they did not count it. */
static bool is_reset_at_fin(const struct tcp_pcb *pcb,
			    const struct tcp_segment *in)
{
	return in->flags & WIRE_TCP_RST && pcb->flags & TF_FIN_RCVD &&
	       in->seq == pcb->rcv_nxt - 1;
}

/* A peer that has lost the connection resets at the number behind the last byte that
 * SACK reported, and not at the one we wait for. */
static bool is_behind_sacks(const struct tcp_pcb *pcb, uint32_t seq)
{
	uint32_t last = pcb->rcv_nxt;

	if (!(pcb->flags & TF_SACK))
		return false;
	for (uint8_t i = 0; i < pcb->recent_cnt; i++)
		last = seq_max(last, pcb->recent[i].end);
	return seq == last;
}

/* RFC 5961 section 3.2, and the other places where Linux accepts a reset. */
static void take_reset(struct tcp_pcb *pcb, const struct tcp_segment *in,
		       uint64_t now_ns)
{
	int error = -ECONNRESET;

	if (in->seq != pcb->rcv_nxt && !is_behind_sacks(pcb, in->seq) &&
	    !is_reset_at_fin(pcb, in)) {
		tcp_reply_challenge(pcb, now_ns);
		return;
	}
	tcp_fastopen_note_reset(pcb, now_ns);
	if (pcb->state == TCPS_SYN_RCVD && !(pcb->flags & TF_PASSIVE))
		error = -ECONNREFUSED;
	else if (pcb->state == TCPS_CLOSE_WAIT)
		error = -EPIPE;
	tcp_pcb_die(pcb, error);
}

/* The steps before the acknowledgment. Returns false when nothing more is to be done
 * with the segment. */
static bool passes_checks(struct tcp_pcb *pcb, struct tcp_segment *in,
			  uint64_t now_ns)
{
	struct tcp_counts *counts = &pcb->table->counts;

	if (!(in->flags & WIRE_TCP_RST) && is_old_duplicate(pcb, in, now_ns)) {
		counts->paws_drops++;
		answer_stray(pcb, in, now_ns);
		return false;
	}
	/* RFC 7323 section 3.2: negotiated, so every segment has it */
	if (pcb->flags & TF_TS && !in->options.has_ts &&
	    !(in->flags & WIRE_TCP_RST)) {
		counts->paws_drops++;
		return false;
	}
	if (!is_in_window(pcb, in) && !is_reset_at_fin(pcb, in)) {
		counts->out_of_window++;
		answer_stray(pcb, in, now_ns);
		return false;
	}
	if (in->flags & WIRE_TCP_RST) {
		take_reset(pcb, in, now_ns);
		return false;
	}
	/* RFC 5961 section 4.2 */
	if (in->flags & WIRE_TCP_SYN) {
		tcp_reply_challenge(pcb, now_ns);
		return false;
	}
	return in->flags & WIRE_TCP_ACK;
}

/* ---- states ---- */

/* Our FIN has arrived. */
static void on_fin_acked(struct tcp_pcb *pcb, const struct tcp_segment *in,
			 uint64_t now_ns)
{
	switch ((enum tcp_state)pcb->state) {
	case TCPS_FIN_WAIT_1:
		pcb->state = TCPS_FIN_WAIT_2;
		if (!(pcb->flags & TF_ORPHAN))
			break;
		if (pcb->settings->fin_wait_2_ns != TCP_NO_FIN_WAIT_2) {
			tcp_timer_set_fin_wait_2(pcb, now_ns);
			break;
		}
		tcp_reply_reset(pcb->table, &pcb->key, in, now_ns);
		tcp_pcb_die(pcb, 0);
		break;
	case TCPS_CLOSING:
		tcp_pcb_to_time_wait(pcb, now_ns);
		break;
	case TCPS_LAST_ACK:
		tcp_metrics_save(pcb, now_ns);
		tcp_pcb_die(pcb, 0);
		break;
	default:
		break;
	}
}

/* The peer's FIN is in order. */
static void on_fin_received(struct tcp_pcb *pcb, uint64_t now_ns)
{
	switch ((enum tcp_state)pcb->state) {
	case TCPS_ESTABLISHED:
		pcb->state = TCPS_CLOSE_WAIT;
		break;
	case TCPS_FIN_WAIT_1:
		pcb->state = TCPS_CLOSING;
		break;
	case TCPS_FIN_WAIT_2:
		tcp_out_ack(pcb, now_ns);
		tcp_pcb_to_time_wait(pcb, now_ns);
		break;
	default:
		return;
	}
	tcp_event_raise(pcb, TCP_EV_READABLE);
}

/* RFC 3168 section 6.1.3: repeat the echo until the peer says it has slowed. */
static void take_ecn(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	if (in->flags & WIRE_TCP_CWR) {
		pcb->flags &= ~TF_ECE_OUT;
		/* The window may now be one segment, and that segment must not wait
		 * until a second one is to be acknowledged. */
		if (in->len)
			pcb->flags |= TF_ACK_NOW;
	}
	if (in->ecn == 3)
		pcb->flags |= TF_ECE_OUT | TF_ACK_NOW;
}

static void take_payload(struct tcp_pcb *pcb, struct tcp_segment *in,
			 uint64_t now_ns)
{
	bool had_fin = pcb->flags & TF_FIN_RCVD;

	if (!in->len && !(in->flags & WIRE_TCP_FIN))
		return;
	/* Nobody will read this data: RFC 9293 section 3.10.4, RFC 2525 section 2.17 */
	if (pcb->flags & TF_ORPHAN && in->len &&
	    seq_after(in->seq + in->len, pcb->rcv_nxt)) {
		tcp_out_reset(pcb, now_ns);
		tcp_pcb_die(pcb, -ECONNRESET);
		return;
	}
	tcp_rx_data(pcb, in, now_ns);
	if (!had_fin && pcb->flags & TF_FIN_RCVD)
		on_fin_received(pcb, now_ns);
}

/* The listener accepts a child that has sent data, or that has sent none for too long. A
 * child from a cookie is accepted at once, because it has no timer that would ask again. */
static bool is_deferred(const struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	return pcb->listener && pcb->rtx_kind == RTX_TIMEOUT &&
	       pcb->backoff < pcb->settings->defer_accept &&
	       tcp_segment_end(in) == in->seq;
}

/* The same where a SYN alone has opened the connection. Our SYN is acknowledged as data
 * would be, be it with data behind it. */
static bool complete_early(struct tcp_pcb *pcb, const struct tcp_segment *in,
			   uint64_t now_ns)
{
	if (!seq_between(pcb->iss + 1, in->ack, pcb->snd_nxt)) {
		tcp_reply_reset(pcb->table, &pcb->key, in, now_ns);
		return false;
	}
	if (pcb->is_accurate)
		tcp_accecn_third(pcb, in);
	tcp_pcb_established(pcb, now_ns);
	tcp_fastopen_settle(pcb);
	return true;
}

/* The ACK that completes a handshake. Returns false when nothing more is to be done
 * with the segment. */
static bool complete_handshake(struct tcp_pcb *pcb, struct tcp_segment *in,
			       uint64_t now_ns)
{
	if (tcp_is_pending(pcb))
		return complete_early(pcb, in, now_ns);
	if (!tcp_fastopen_answered(pcb, in, now_ns)) {
		tcp_reply_reset(pcb->table, &pcb->key, in, now_ns);
		return false;
	}
	if (is_deferred(pcb, in)) {
		pcb->flags |= TF_DEFERRED;
		return false;
	}
	if (pcb->listener && !tcp_listen_promote(pcb)) {
		pcb->table->counts.accept_overflows++;
		if (pcb->table->params.resets_on_overflow) {
			tcp_reply_reset(pcb->table, &pcb->key, in, now_ns);
			tcp_pcb_die(pcb, 0);
		}
		return false;
	}
	if (pcb->is_accurate)
		tcp_accecn_third(pcb, in);
	pcb->snd_wnd = (uint32_t)in->window << pcb->snd_scale;
	pcb->snd_wnd_max = pcb->snd_wnd;
	pcb->snd_wl1 = in->seq;
	pcb->snd_una = in->ack;
	tcp_pcb_established(pcb, now_ns);
	return true;
}

/* The handshake is not over. */
static bool is_opening(const struct tcp_pcb *pcb)
{
	return pcb->state == TCPS_SYN_RCVD || tcp_is_pending(pcb);
}

static void in_synchronised(struct tcp_pcb *pcb, struct tcp_segment *in,
			    uint64_t now_ns)
{
	/* A SYN came again: our answer was lost, or both sides opened. */
	if (is_opening(pcb) && in->flags & WIRE_TCP_SYN &&
	    in->seq == pcb->irs && !(in->flags & WIRE_TCP_RST)) {
		if (!(in->flags & WIRE_TCP_ACK)) {
			tcp_out_syn(pcb, now_ns);
			return;
		}
		in->flags &= (uint8_t)~WIRE_TCP_SYN;
		in->seq++;
	}
	if (!passes_checks(pcb, in, now_ns))
		return;
	if (is_opening(pcb) && !complete_handshake(pcb, in, now_ns))
		return;
	if (!tcp_ack_in(pcb, in, now_ns))
		return;
	/* We do this only now: a sender that does not know what we sent
	 * must change nothing. */
	update_ts_recent(pcb, in, now_ns);
	pcb->last_rcvd_ns = now_ns;
	if (pcb->is_accurate)
		tcp_accecn_count(pcb, in);
	else if (pcb->flags & TF_ECN)
		take_ecn(pcb, in);
	if (pcb->flags & TF_FIN_QUEUED && pcb->snd_una == pcb->snd_end)
		on_fin_acked(pcb, in, now_ns);
	if (pcb->state < TCPS_ESTABLISHED || pcb->state > TCPS_LAST_ACK)
		return;
	if (in->flags & WIRE_TCP_URG || pcb->urgent == TCP_URGENT_COMING)
		tcp_urgent_in(pcb, in);
	take_payload(pcb, in, now_ns);
}

/* RFC 9293 section 3.10.7.3 */
static void in_syn_sent(struct tcp_pcb *pcb, struct tcp_segment *in,
			uint64_t now_ns)
{
	bool has_ack = in->flags & WIRE_TCP_ACK;

	if (has_ack && in->ack - pcb->snd_nxt > pcb->syn_data) {
		tcp_reply_reset(pcb->table, &pcb->key, in, now_ns);
		tcp_timer_hurry_syn(pcb, now_ns);
		return;
	}
	if (in->flags & WIRE_TCP_RST) {
		if (has_ack)
			tcp_pcb_die(pcb, -ECONNREFUSED);
		return;
	}
	if (!(in->flags & WIRE_TCP_SYN))
		return;
	tcp_pcb_apply_syn(pcb, in, now_ns);
	pcb->last_rcvd_ns = now_ns;
	if (!has_ack) {
		/* both sides opened */
		pcb->state = TCPS_SYN_RCVD;
		tcp_out_syn(pcb, now_ns);
		return;
	}
	(void)!tcp_fastopen_answered(pcb, in, now_ns);
	pcb->snd_una = in->ack;
	pcb->snd_wnd = in->window;
	pcb->snd_wnd_max = pcb->snd_wnd;
	pcb->snd_wl1 = in->seq;
	tcp_pcb_established(pcb, now_ns);
	/* Data is about to follow and can carry the ACK. */
	if (pcb->settings->defer_accept)
		tcp_timer_delay_ack_by(pcb, now_ns, DEFERRED_ACK_NS);
	else
		pcb->flags |= TF_ACK_NOW;
	in->seq++;
	in->flags &= (uint8_t)~WIRE_TCP_SYN;
	take_payload(pcb, in, now_ns);
}

static void dispatch(struct tcp_pcb *pcb, struct tcp_segment *in,
		     uint64_t now_ns)
{
	if (pcb->is_frozen) {
		pcb->table->counts.frozen_drops++;
		return;
	}
	pcb->segs_in++;
	pcb->data_segs_in += in->len > 0;
	pcb->is_quiet = false;
	pcb->is_header_stale = true;
	switch ((enum tcp_state)pcb->state) {
	case TCPS_CLOSED:
	case TCPS_LISTEN:
	case TCPS_TIME_WAIT:
		/* No pcb in these states is in the table of connections. */
		return;
	case TCPS_SYN_SENT:
		in_syn_sent(pcb, in, now_ns);
		break;
	default:
		in_synchronised(pcb, in, now_ns);
		break;
	}
	if (pcb->state != TCPS_CLOSED && pcb->state != TCPS_TIME_WAIT)
		tcp_out_push(pcb, now_ns);
	tcp_fast_update(pcb);
}

bool tcp_stray_refuse(void *ctx UNUSED, const struct flow_key *key UNUSED,
		      uint8_t flags UNUSED, struct pkt *pkt UNUSED)
{
	return false;
}

static void in_stray(struct tcp_table *table, const struct flow_key *key,
		     struct tcp_segment *in, uint64_t now_ns)
{
	if (table->ops->stray(table->ctx, key, in->flags, in->pkt)) {
		in->pkt = NULL;
		return;
	}
	tcp_reply_reset(table, key, in, now_ns);
}

/* RFC 9293 sections 3.10.7.1 and 3.10.7.2: no connection has this key. */
static void in_unknown(struct tcp_table *table, const struct flow_key *key,
		       struct tcp_segment *in, uint64_t now_ns)
{
	struct tcp_listener *listener;
	struct tcp_pcb *pcb;
	bool reopens;
	uint32_t isn;

	if (tcp_tw_input(table, key, in, &reopens, &isn, now_ns) && !reopens)
		return;
	listener = tcp_table_find_listener(table, key);
	if (!listener) {
		table->counts.no_connection++;
		in_stray(table, key, in, now_ns);
		return;
	}
	if (in->flags & WIRE_TCP_RST) {
		in_stray(table, key, in, now_ns);
	} else if (in->flags & WIRE_TCP_ACK) {
		pcb = tcp_listen_cookie(table, listener, key, in, now_ns);
		if (pcb)
			dispatch(pcb, in, now_ns);
		else if (!tcp_listen_may_be_cookie(listener, in, now_ns))
			in_stray(table, key, in, now_ns);
	} else if ((in->flags & (WIRE_TCP_SYN | WIRE_TCP_FIN)) ==
		   WIRE_TCP_SYN) {
		if (!reopens)
			isn = tcp_isn(table, key, now_ns);
		tcp_listen_syn(table, listener, key, in, isn, now_ns);
	}
}

/* ---- bytes ---- */

/* The checksum over all parts. Any part may have an odd length. */
static uint32_t sum_of(const struct pkt *pkt)
{
	uint32_t sum = 0;
	size_t offset = 0;

	for (; pkt; pkt = pkt->next_part) {
		sum = csum_block_add(sum, csum_partial(pkt->data, pkt->len, 0),
				     offset);
		offset += pkt->len;
	}
	return sum;
}

bool tcp_in_is_intact(const struct tcp_in *in)
{
	struct pkt *pkt = in->pkt;
	uint32_t sum;
	bool is_good;

	if (pkt->csum_verdict == PKT_CSUM_UNKNOWN) {
		sum = wire_pseudo_sum(&in->key.remote, &in->key.local,
				      WIRE_PROTO_TCP, pkt_total_len(pkt));
		is_good = csum_fold(csum_add(sum, sum_of(pkt))) == 0;
		pkt->csum_verdict = is_good ? PKT_CSUM_GOOD : PKT_CSUM_BAD;
	}
	return pkt->csum_verdict == PKT_CSUM_GOOD;
}

/* Reads the header and removes it from the packet. Returns false if it is malformed. */
static bool parse(struct tcp_in *in, struct tcp_segment *segment)
{
	const struct wire_tcp *header = (const void *)in->pkt->data;
	uint32_t header_len;

	if (in->pkt->len < sizeof(*header))
		return false;
	header_len = 4u * (header->offset_ae >> 4);
	if (header_len < sizeof(*header) || header_len > in->pkt->len)
		return false;
	in->key.local_port = header->dst_port;
	in->key.remote_port = header->src_port;
	segment->pkt = in->pkt;
	segment->seq = be32toh(header->seq);
	segment->ack = be32toh(header->ack);
	segment->window = be16toh(header->window);
	segment->urgent = be16toh(header->urgent);
	segment->flags = header->flags;
	segment->has_ae = header->offset_ae & 1;
	segment->ecn = in->ecn;
	segment->header_len = (uint8_t)header_len;
	tcp_options_parse(in->pkt->data + sizeof(*header),
			  header_len - sizeof(*header),
			  header->flags & WIRE_TCP_SYN, &segment->options);
	pkt_pull(in->pkt, header_len);
	segment->len = pkt_total_len(in->pkt);
	return true;
}

void tcp_in_segment(struct tcp_table *table, struct tcp_in *in, uint64_t now_ns)
{
	struct tcp_segment segment;
	struct tcp_pcb *pcb;

	if (!tcp_in_is_intact(in)) {
		table->counts.bad_checksum++;
		pkt_put(in->pkt);
		return;
	}
	if (!parse(in, &segment)) {
		table->counts.malformed++;
		pkt_put(in->pkt);
		return;
	}
	pcb = tcp_table_find(table, &in->key);
	if (pcb)
		dispatch(pcb, &segment, now_ns);
	else
		in_unknown(table, &in->key, &segment, now_ns);
	/* It is NULL where a queue has taken the packet. */
	pkt_put(segment.pkt);
}
