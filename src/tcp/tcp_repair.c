/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Freezes a connection, and collects what a kernel's socket must be told to continue
 * it (TCP_REPAIR). Nothing is taken from the connection: if the kernel refuses, it
 * continues here.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* ---- standing still ---- */

/* The kernel would wait for a second and more before it repairs, since it knows no
 * round trip, and its probe acknowledges nothing. */
static void send_once_more(struct tcp_pcb *pcb, uint64_t since_ns, uint64_t now_ns)
{
	struct pkt *pkt, *next;

	for (pkt = pkt_from_link(pcb->snd_queue.next);
	     &pkt->link != &pcb->snd_queue; pkt = next) {
		uint8_t flags = tcp_seg(pkt)->flags;

		next = tcp_out_next(pcb, pkt);
		if (!(flags & SEG_SENT) || tcp_seg(pkt)->sent_ns >= since_ns)
			flags |= SEG_SACKED;
		if (!(flags & SEG_SACKED))
			tcp_out_resend(pcb, pkt, now_ns);
		if (!next)
			return;
	}
}

void tcp_calm(struct tcp_pcb *pcb)
{
	pcb->is_calm = true;
	pcb->is_quiet = false;
}

/* What was sent is in front of what was not. */
static struct pkt *last_sent(const struct tcp_pcb *pcb)
{
	struct list *last = pcb->unsent ? pcb->unsent->link.prev : pcb->snd_queue.prev;

	return last == &pcb->snd_queue ? NULL : pkt_from_link(last);
}

bool tcp_ask(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct pkt *pkt = tcp_is_synchronised(pcb) ? last_sent(pcb) : NULL;

	if (!pkt || !(tcp_seg(pkt)->flags & SEG_SENT) || tcp_seg(pkt)->flags & SEG_SACKED)
		return false;
	tcp_out_resend(pcb, pkt, now_ns);
	return true;
}

int tcp_freeze(struct tcp_pcb *pcb, uint64_t since_ns, uint64_t now_ns)
{
	if (!tcp_can_move(pcb) || !tcp_is_synchronised(pcb))
		return -ENOTCONN;
	if (pcb->is_frozen)
		return -EALREADY;
	if (pcb->delack_at_ns || pcb->flags & TF_ACK_NOW)
		tcp_out_ack(pcb, now_ns);
	send_once_more(pcb, since_ns, now_ns);
	pcb->is_frozen = true;
	pcb->is_quiet = false;
	/* The deadlines stay, and count again when the connection continues. */
	timer_cancel(pcb->table->wheel, &pcb->timer);
	pcb->armed_ns = 0;
	return 0;
}

void tcp_thaw(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!pcb->is_frozen && !pcb->is_calm)
		return;
	pcb->is_frozen = pcb->is_calm = false;
	tcp_timer_update(pcb);
	tcp_out_push(pcb, now_ns);
	tcp_fast_update(pcb);
}

bool tcp_is_orphan(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_ORPHAN;
}

/* ---- what the kernel must know ---- */

static enum tcp_fin own_fin(const struct tcp_pcb *pcb)
{
	if (!(pcb->flags & TF_FIN_QUEUED))
		return TCP_FIN_NONE;
	if (pcb->snd_una == pcb->snd_end)
		return TCP_FIN_ACKED;
	return pcb->snd_nxt == pcb->snd_end ? TCP_FIN_SENT : TCP_FIN_QUEUED;
}

/* Bytes from `seq` on, of which the FIN at the end is none. */
static uint32_t bytes_up_to(const struct tcp_pcb *pcb, uint32_t seq,
			    uint32_t end)
{
	bool has_fin = pcb->flags & TF_FIN_QUEUED && end == pcb->snd_end;

	return end == seq ? 0 : end - seq - has_fin;
}

/* With less than half a round and any window there is no such segment. */
static bool may_meet_itself(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_pcb_stats stats;

	tcp_get_stats(pcb, &stats, now_ns);
	return stats.bytes_received >= UINT32_C(1) << 31;
}

static void describe(const struct tcp_pcb *pcb, struct tcp_repair *repair_out,
		     uint64_t now_ns)
{
	bool has_fin = pcb->flags & TF_FIN_RCVD;
	uint32_t rcv_nxt = pcb->rcv_nxt - has_fin;
	uint32_t rcv_wup = seq_min(pcb->last_ack_sent, rcv_nxt);
	enum tcp_fin fin = own_fin(pcb);

	*repair_out = (struct tcp_repair){
		.snd_una = pcb->snd_una - (fin == TCP_FIN_ACKED),
		.unacked = bytes_up_to(pcb, pcb->snd_una, pcb->snd_nxt),
		.fin = fin,
		.rcv_nxt = rcv_nxt,
		.has_fin = has_fin,
		.mss_peer = pcb->mss_peer,
		.has_scale = pcb->flags & TF_SCALE,
		.snd_scale = pcb->snd_scale,
		.rcv_scale = pcb->rcv_scale,
		.has_sack = pcb->flags & TF_SACK,
		.has_timestamps = pcb->flags & TF_TS,
		.has_ecn = pcb->flags & TF_ECN,
		/* The kernel reads an odd value as one in microseconds. */
		.ts_next = (tcp_ts_now(pcb, now_ns) + 1) & ~UINT32_C(1),
		.ts_recent = pcb->ts_recent,
		.needs_paws = pcb->flags & TF_TS && may_meet_itself(pcb, now_ns),
		.snd_wl1 = seq_min(pcb->snd_wl1, pcb->rcv_edge),
		.snd_wnd = pcb->snd_wnd,
		.snd_wnd_max = MAX(pcb->snd_wnd_max, pcb->snd_wnd),
		.rcv_wup = rcv_wup,
		.rcv_wnd = seq_after(pcb->rcv_edge, rcv_wup)
				   ? pcb->rcv_edge - rcv_wup
				   : 0,
	};
	repair_out->unsent = bytes_up_to(pcb, pcb->snd_una, pcb->snd_end) -
			     repair_out->unacked;
}

/* The reader has the byte, and stands before the mark. */
static bool is_urgent_done(const struct tcp_pcb *pcb)
{
	return pcb->urgent == TCP_URGENT_READ && tcp_at_mark(pcb);
}

int tcp_get_repair(const struct tcp_pcb *pcb, struct tcp_repair *repair_out,
		   uint64_t now_ns)
{
	if ((pcb->urgent != TCP_URGENT_NONE && !is_urgent_done(pcb)) ||
	    pcb->flags & TF_URGENT_OUT)
		return -EOPNOTSUPP;
	describe(pcb, repair_out, now_ns);
	repair_out->unread = tcp_unread_len(pcb, &repair_out->urgent_at);
	return 0;
}

int tcp_get_unread(const struct tcp_pcb *pcb, struct tcp_repair *repair_out,
		   uint64_t now_ns)
{
	struct pkt *pkt = NULL;

	if (pcb->urgent == TCP_URGENT_READ || pcb->flags & TF_URGENT_OUT)
		return -EOPNOTSUPP;
	describe(pcb, repair_out, now_ns);
	repair_out->urgent_at = UINT32_MAX;
	while ((pkt = tcp_unread_next(pcb, pkt)))
		repair_out->unread += pkt->len;
	return 0;
}

/* ---- the bytes ---- */

static struct pkt *next_in(const struct list *queue, const struct pkt *pkt)
{
	struct list *next = pkt ? pkt->link.next : queue->next;

	return next == queue ? NULL : pkt_from_link(next);
}

struct pkt *tcp_unread_next(const struct tcp_pcb *pcb, const struct pkt *pkt)
{
	return next_in(&pcb->rcv_queue, pkt);
}

struct pkt *tcp_queued_next(const struct tcp_pcb *pcb, const struct pkt *pkt)
{
	struct pkt *next = next_in(&pcb->snd_queue, pkt);

	/* the last one may be the FIN */
	return next && next->len ? next : NULL;
}

struct pkt *tcp_run_next(const struct tcp_pcb *pcb, const struct pkt *pkt,
			 uint32_t *seq_out, bool *has_fin_out)
{
	struct pkt *next = next_in(&pcb->runs, pkt);

	if (next) {
		*seq_out = tcp_run(next)->seq;
		*has_fin_out = tcp_run(next)->has_fin;
	}
	return next;
}

/* As in Linux, each segment up to the urgent byte points to what is behind that, as far as a
 * pointer reaches. */
static void point_to_mark(const struct tcp_pcb *pcb, struct wire_tcp *header, uint32_t seq)
{
	uint32_t ahead = pcb->urgent_seq - seq;

	if (pcb->urgent == TCP_URGENT_NONE || ahead >= UINT16_MAX)
		return;
	header->flags |= WIRE_TCP_URG;
	header->urgent = htobe16((uint16_t)(ahead + 1));
}

size_t tcp_build_of_peer(const struct tcp_pcb *pcb, uint8_t *to, uint32_t seq,
			 bool has_fin, uint64_t now_ns)
{
	struct tcp_options options = {
		.has_ts = pcb->flags & TF_TS,
		.ts_val = pcb->ts_recent,
		.ts_ecr = tcp_ts_now(pcb, now_ns),
	};
	struct wire_tcp *header = (void *)to;
	size_t len = sizeof(*header);
	uint32_t window = MIN(pcb->snd_wnd >> pcb->snd_scale,
			      (uint32_t)UINT16_MAX);

	len += tcp_options_build(to + len, &options);
	*header = (struct wire_tcp){
		.src_port = pcb->key.remote_port,
		.dst_port = pcb->key.local_port,
		.seq = htobe32(seq),
		.ack = htobe32(pcb->snd_una),
		.offset_ae = (uint8_t)(len << 2),
		.flags = has_fin ? WIRE_TCP_ACK | WIRE_TCP_FIN : WIRE_TCP_ACK,
		.window = htobe16((uint16_t)window),
	};
	point_to_mark(pcb, header, seq);
	return len;
}

size_t tcp_build_end_of_peer(const struct tcp_waiting *waiting, uint8_t *to)
{
	const struct tcp_repair *r = &waiting->repair;
	struct tcp_options options = {
		.has_ts = r->has_timestamps,
		.ts_val = r->ts_recent,
		.ts_ecr = r->ts_next,
	};
	struct wire_tcp *header = (void *)to;
	size_t len = sizeof(*header);

	len += tcp_options_build(to + len, &options);
	*header = (struct wire_tcp){
		.src_port = waiting->key.remote_port,
		.dst_port = waiting->key.local_port,
		.seq = htobe32(r->rcv_nxt),
		.ack = htobe32(r->snd_una + 1),
		.offset_ae = (uint8_t)(len << 2),
		.flags = WIRE_TCP_ACK | WIRE_TCP_FIN,
	};
	return len;
}

/* ---- what came meanwhile ---- */

/* A segment that acknowledges, and does nothing else. */
struct lone_ack {
	uint32_t seq, ack, edge;
	uint16_t window;
	struct tcp_options options;
};

/* False: it is something else, or damaged. */
static bool read_lone_ack(const struct tcp_pcb *pcb, struct pkt *pkt,
			  struct lone_ack *out)
{
	const struct wire_tcp *header = (const void *)pkt->data;
	const struct tcp_in in = { .pkt = pkt, .key = pcb->key };

	if (pkt->next_part || pkt->len < sizeof(*header) ||
	    header->flags != WIRE_TCP_ACK || header->offset_ae & 1 ||
	    pkt->len != 4u * (header->offset_ae >> 4) || !tcp_in_is_intact(&in))
		return false;
	out->seq = be32toh(header->seq);
	out->ack = be32toh(header->ack);
	out->window = be16toh(header->window);
	out->edge = out->ack + ((uint32_t)out->window << pcb->snd_scale);
	tcp_options_parse(pkt->data + sizeof(*header),
			  pkt->len - sizeof(*header), false, &out->options);
	return true;
}

/* All that it says of what has arrived beyond the later one's acknowledgment. What was
 * received twice (RFC 2883) has been repaired by us, and is no news to the kernel. */
static bool has_blocks_of(const struct lone_ack *later, const struct lone_ack *ack)
{
	const struct tcp_options *have = &later->options;
	unsigned at;

	for (unsigned i = 0; i < ack->options.sack_cnt; i++) {
		const struct tcp_sack_block *block = &ack->options.sack[i];

		if (seq_at_most(block->end, later->ack))
			continue;
		for (at = 0; at < have->sack_cnt; at++)
			if (seq_at_most(have->sack[at].start, block->start) &&
			    seq_at_most(block->end, have->sack[at].end))
				break;
		if (at == have->sack_cnt)
			return false;
	}
	return true;
}

/* The kernel would not take one that is older (PAWS). */
static bool is_stamped_as(const struct lone_ack *ack, const struct lone_ack *later)
{
	const struct tcp_options *o = &ack->options, *l = &later->options;

	return o->has_ts == l->has_ts &&
	       (!o->has_ts || seq_at_most(o->ts_val, l->ts_val));
}

/* Without SACK they are counted, and the third one repairs. */
static bool is_counted(const struct tcp_pcb *pcb, const struct lone_ack *ack,
		       const struct lone_ack *later)
{
	return !(pcb->flags & TF_SACK) && later->ack == ack->ack &&
	       later->window == ack->window;
}

/* A probe, which wants an answer, has another sequence number. */
static bool is_superseded(const struct tcp_pcb *pcb, const struct lone_ack *ack,
			  const struct lone_ack *later)
{
	return later->seq == ack->seq && seq_at_most(ack->ack, later->ack) &&
	       seq_at_most(ack->edge, later->edge) &&
	       !is_counted(pcb, ack, later) && is_stamped_as(ack, later) &&
	       has_blocks_of(later, ack);
}

/* One that acknowledges what the kernel has not sent is not believed, so it stands for
 * no other. */
static bool will_count(const struct tcp_repair *r, const struct lone_ack *ack)
{
	return seq_between(r->snd_una, ack->ack, r->snd_una + r->unacked);
}

void tcp_drop_superseded(const struct tcp_pcb *pcb, struct list *segments)
{
	struct lone_ack ack, later = { 0 };
	struct list *link, *previous;
	struct tcp_repair repair;
	bool has_later = false;

	if (tcp_get_repair(pcb, &repair, 0) != 0)
		return;
	for (link = segments->prev; link != segments; link = previous) {
		struct pkt *pkt = pkt_from_link(link);

		previous = link->prev;
		if (!read_lone_ack(pcb, pkt, &ack))
			continue;
		if (has_later && is_superseded(pcb, &ack, &later)) {
			list_remove(link);
			pkt_put(pkt);
		} else if (will_count(&repair, &ack)) {
			later = ack;
			has_later = true;
		}
	}
}
