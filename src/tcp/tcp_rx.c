/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving: bytes in order, runs of bytes out of order, the window, and what SACK
 * reports of both.
 *
 * A run is a packet with further parts; the sequence numbers of all its bytes follow
 * from that of the first. Runs never touch. The limit on what an attacker makes us
 * keep counts the memory of the buffers, not the bytes in them. Small pieces are
 * copied together.
 */
#include "tcp/tcp_priv.h"
#include "tcp/tcp_rx_priv.h"

/* Up to this many bytes are copied to save a buffer. */
enum { SMALL_PIECE = 256 };

/* Copies a packet of up to `most` bytes behind another one's data, and frees it,
 * if it fits. */
static bool join(struct pkt *into, struct pkt *pkt, uint32_t most)
{
	if (pkt->len > most || pkt->next_part || into->refs != 1 ||
	    into->lender || pkt_tailroom(into) < pkt->len)
		return false;
	memcpy(pkt_append(into, pkt->len), pkt->data, pkt->len);
	/* as Linux has it: the latest; of a chain the first part alone has one */
	pkt_take_stamps(into, pkt);
	pkt_put(pkt);
	return true;
}

/* ---- in order ---- */

void tcp_rx_append_wasteful(struct tcp_pcb *pcb, struct pkt *pkt)
{
	uint32_t most = pcb->rcv_memory / 2 > pcb->rcv_buf ? UINT32_MAX
							   : SMALL_PIECE;
	uint32_t len = pkt->len;

	if (!list_is_empty(&pcb->rcv_queue) &&
	    join(pkt_from_link(pcb->rcv_queue.prev), pkt, most))
		pcb->rcv_unread += len;
	else
		tcp_rx_queue(pcb, pkt);
}

static void append_parts(struct tcp_pcb *pcb, struct pkt *pkt)
{
	while (pkt) {
		struct pkt *next = pkt->next_part;

		pkt->next_part = NULL;
		if (next && !next->time_ns)
			pkt_take_stamps(next, pkt);
		if (pkt->len)
			tcp_rx_append(pcb, pkt);
		else
			pkt_put(pkt);
		pkt = next;
	}
}

/* Takes `len` bytes off the front of a chain; returns its new head. */
static struct pkt *cut_front(struct pkt *pkt, uint32_t len)
{
	while (pkt->next_part && len >= pkt->len) {
		struct pkt *next = pkt->next_part;

		len -= pkt->len;
		if (!next->time_ns)
			pkt_take_stamps(next, pkt);
		pkt->next_part = NULL;
		pkt_put(pkt);
		pkt = next;
	}
	pkt_pull(pkt, MIN(len, pkt->len));
	return pkt;
}

/* Cuts a chain to its first `len` bytes. */
static void cut_back(struct pkt *pkt, uint32_t len)
{
	while (len > pkt->len) {
		len -= pkt->len;
		pkt = pkt->next_part;
	}
	pkt_trim(pkt, len);
	pkt_put(pkt->next_part);
	pkt->next_part = NULL;
}

static struct pkt *last_part(struct pkt *pkt)
{
	while (pkt->next_part)
		pkt = pkt->next_part;
	return pkt;
}

static uint32_t chain_memory(const struct pkt *pkt)
{
	uint32_t memory = 0;

	for (; pkt; pkt = pkt->next_part)
		memory += tcp_pkt_memory(pkt);
	return memory;
}

void tcp_rx_free_runs(struct tcp_pcb *pcb)
{
	pkt_put_list(&pcb->runs);
	pcb->ooo_bytes = pcb->ooo_memory = 0;
	pcb->run_hint = NULL;
	pcb->recent_cnt = 0;
}

/* Bytes that claim to lie behind the FIN do not belong to the stream. */
static void take_fin(struct tcp_pcb *pcb)
{
	pcb->flags |= TF_FIN_RCVD | TF_ACK_NOW;
	tcp_rx_free_runs(pcb);
}

/* ---- what SACK reports ---- */

static void forget_recent(struct tcp_pcb *pcb, uint32_t start, uint32_t end)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < pcb->recent_cnt; i++) {
		const struct tcp_sack_block *block = &pcb->recent[i];

		if (seq_before(block->start, end) &&
		    seq_after(block->end, start))
			continue;
		pcb->recent[kept++] = *block;
	}
	pcb->recent_cnt = kept;
}

/* RFC 2018 section 4: the run that changed last comes first. */
static void remember_recent(struct tcp_pcb *pcb, const struct tcp_run *run)
{
	forget_recent(pcb, run->seq, run->end);
	if (pcb->recent_cnt == TCP_SACK_BLOCKS_MAX)
		pcb->recent_cnt--;
	memmove(&pcb->recent[1], &pcb->recent[0],
		pcb->recent_cnt * sizeof(pcb->recent[0]));
	pcb->recent[0] = (struct tcp_sack_block){ run->seq, run->end };
	pcb->recent_cnt++;
}

/* RFC 2883: bytes that came twice are reported, once, in front. */
static void note_duplicate(struct tcp_pcb *pcb, uint32_t start, uint32_t end)
{
	pcb->flags |= TF_ACK_NOW;
	if (tcp_reports_duplicates(pcb) && seq_before(start, end))
		pcb->dsack = (struct tcp_sack_block){ start, end };
}

void tcp_rx_sack_blocks(struct tcp_pcb *pcb, struct tcp_options *options)
{
	/* 40 bytes of options hold four blocks, three beside a time stamp */
	uint8_t room = options->has_ts ? 3 : TCP_SACK_BLOCKS_MAX;
	uint8_t cnt = 0;

	if (pcb->dsack.start != pcb->dsack.end) {
		options->sack[cnt++] = pcb->dsack;
		pcb->dsack.start = pcb->dsack.end = 0;
	}
	for (uint8_t i = 0; i < pcb->recent_cnt && cnt < room; i++)
		options->sack[cnt++] = pcb->recent[i];
	options->sack_cnt = cnt;
}

/* ---- out of order ---- */

static void run_remove(struct tcp_pcb *pcb, struct pkt *pkt)
{
	struct tcp_run *run = tcp_run(pkt);

	list_remove(&pkt->link);
	pcb->ooo_bytes -= run->end - run->seq;
	pcb->ooo_memory -= run->memory;
	if (pcb->run_hint == pkt)
		pcb->run_hint = NULL;
}

static struct pkt *run_next(const struct tcp_pcb *pcb, struct list *link)
{
	return link->next == &pcb->runs ? NULL : pkt_from_link(link->next);
}

/* The link of the last run that begins at or before seq, or the list's head.
 * Most segments belong where the one before them went, or at the end. */
static struct list *find_run(struct tcp_pcb *pcb, uint32_t seq)
{
	struct list *link = pcb->run_hint ? &pcb->run_hint->link
					  : pcb->runs.prev;
	struct pkt *next;

	while (link != &pcb->runs &&
	       seq_after(tcp_run(pkt_from_link(link))->seq, seq))
		link = link->prev;
	while ((next = run_next(pcb, link)) &&
	       seq_at_most(tcp_run(next)->seq, seq))
		link = &next->link;
	return link;
}

/* The limit is twice the buffer: data out of order must not take memory that was never
 * granted. The highest run is dropped first, because it is needed last. The peer sends
 * again what SACK no longer reports (RFC 2018 section 8). */
void tcp_rx_prune(struct tcp_pcb *pcb)
{
	while (pcb->ooo_memory > 2 * (uint64_t)pcb->rcv_buf) {
		struct pkt *pkt = pkt_from_link(pcb->runs.prev);
		struct tcp_run *run = tcp_run(pkt);

		pcb->table->counts.ooo_pruned++;
		forget_recent(pcb, run->seq, run->end);
		run_remove(pcb, pkt);
		pkt_put(pkt);
	}
}

/* The size up to which a piece is copied to save its buffer. A peer whose buffers hold
 * few bytes each reaches the limit of memory long before it fills its window. As it
 * comes near the limit, every piece that fits is copied. */
static uint32_t worth_copying(const struct tcp_pcb *pcb)
{
	return pcb->ooo_memory > pcb->rcv_buf ? UINT32_MAX : SMALL_PIECE;
}

/* Copies the parts of a packet together. Otherwise a segment in buffers of a few bytes
 * could take more memory than everything out of order may, and would be dropped each
 * time it came. */
static void join_parts(const struct tcp_pcb *pcb, struct pkt *pkt)
{
	uint32_t most = worth_copying(pcb);

	while (pkt->next_part) {
		struct pkt *part = pkt->next_part;

		pkt->next_part = part->next_part;
		part->next_part = NULL;
		if (join(pkt, part, most))
			continue;
		part->next_part = pkt->next_part;
		pkt->next_part = part;
		pkt = part;
	}
}

/* Makes the packet a run behind `where`. Its cb is not filled in yet. */
static struct pkt *run_create(struct tcp_pcb *pcb, struct list *where,
			      struct pkt *pkt, uint32_t seq, bool has_fin)
{
	struct tcp_run *run = tcp_run(pkt);

	run->seq = seq;
	run->end = seq + pkt_total_len(pkt) + has_fin;
	run->last_part = last_part(pkt);
	run->memory = chain_memory(pkt);
	run->has_fin = has_fin;
	list_insert_after(where, &pkt->link);
	pcb->ooo_bytes += run->end - run->seq;
	pcb->ooo_memory += run->memory;
	return pkt;
}

/* Adds a packet that begins where the run ends. */
static void run_append(struct tcp_pcb *pcb, struct tcp_run *run,
		       struct pkt *pkt, bool has_fin)
{
	uint32_t len = pkt_total_len(pkt), memory = chain_memory(pkt);

	run->end += len + has_fin;
	run->has_fin = has_fin;
	pcb->ooo_bytes += len + has_fin;
	if (join(run->last_part, pkt, worth_copying(pcb)))
		return;
	run->last_part->next_part = pkt;
	run->last_part = last_part(pkt);
	run->memory += memory;
	pcb->ooo_memory += memory;
}

/* The next run begins where this one ends. */
static void run_join(struct tcp_pcb *pcb, struct tcp_run *run,
		     struct pkt *next)
{
	struct tcp_run *other = tcp_run(next);
	uint32_t bytes = other->end - other->seq, memory = other->memory;
	struct pkt *last = other->last_part;

	run->end = other->end;
	run->has_fin = other->has_fin;
	run->memory += memory;
	run_remove(pcb, next);
	pcb->ooo_bytes += bytes;
	pcb->ooo_memory += memory;
	run->last_part->next_part = next;
	run->last_part = last;
}

/* The stream ends here, whatever came before that said otherwise. */
static void drop_runs_behind(struct tcp_pcb *pcb, struct list *where)
{
	struct pkt *next;

	while ((next = run_next(pcb, where))) {
		struct tcp_run run = *tcp_run(next);

		run_remove(pcb, next);
		forget_recent(pcb, run.seq, run.end);
		pkt_put(next);
	}
}

/* Handles the bytes of [seq, end) that runs behind `where` already have. Runs that are
 * covered are freed, and the packet is cut where the first run begins that reaches
 * further. */
static void resolve_overlap(struct tcp_pcb *pcb, struct list *where,
			    struct pkt *pkt, uint32_t seq, bool *has_fin)
{
	uint32_t end = seq + pkt_total_len(pkt) + *has_fin;
	struct pkt *next;

	while ((next = run_next(pcb, where)) &&
	       seq_before(tcp_run(next)->seq, end)) {
		struct tcp_run *run = tcp_run(next);

		note_duplicate(pcb, run->seq, seq_min(run->end, end));
		if (seq_after(run->end, end) ||
		    (run->end == end && run->has_fin && !*has_fin)) {
			cut_back(pkt, run->seq - seq);
			*has_fin = false;
			return;
		}
		run_remove(pcb, next);
		pkt_put(next);
	}
}

static void keep_out_of_order(struct tcp_pcb *pcb, struct pkt *pkt,
			      uint32_t seq, bool has_fin)
{
	struct list *where = find_run(pcb, seq);
	uint32_t end = seq + pkt_total_len(pkt) + has_fin;
	struct tcp_run *run = NULL;
	struct pkt *head = NULL, *next;

	if (where != &pcb->runs) {
		head = pkt_from_link(where);
		run = tcp_run(head);
	}
	if (run && seq_at_most(end, run->end)) {
		note_duplicate(pcb, seq, end);
		remember_recent(pcb, run);
		pkt_put(pkt);
		return;
	}
	if (run && run->has_fin && seq_at_most(run->end, end) &&
	    seq_at_most(seq, run->end)) {
		/* These are bytes behind a FIN: either they or the FIN is wrong. */
		pkt_put(pkt);
		return;
	}
	if (run && seq_before(seq, run->end)) {
		note_duplicate(pcb, seq, run->end);
		pkt = cut_front(pkt, run->end - seq);
		seq = run->end;
	}
	resolve_overlap(pcb, where, pkt, seq, &has_fin);
	join_parts(pcb, pkt);
	if (run && run->end == seq)
		run_append(pcb, run, pkt, has_fin);
	else
		head = run_create(pcb, where, pkt, seq, has_fin);
	run = tcp_run(head);
	next = run_next(pcb, &head->link);
	if (UNLIKELY(run->has_fin))
		drop_runs_behind(pcb, &head->link);
	else if (next && tcp_run(next)->seq == run->end)
		run_join(pcb, run, next);
	pcb->run_hint = head;
	remember_recent(pcb, run);
	tcp_rx_prune(pcb);
}

/* Runs that the bytes in order have reached become bytes in order. */
static void drain_runs(struct tcp_pcb *pcb)
{
	while (!list_is_empty(&pcb->runs)) {
		struct pkt *pkt = pkt_from_link(pcb->runs.next);
		struct tcp_run run = *tcp_run(pkt);

		if (seq_after(run.seq, pcb->rcv_nxt))
			return;
		run_remove(pcb, pkt);
		forget_recent(pcb, run.seq, run.end);
		if (seq_at_most(run.end, pcb->rcv_nxt)) {
			note_duplicate(pcb, run.seq, run.end);
			pkt_put(pkt);
			continue;
		}
		if (run.seq != pcb->rcv_nxt) {
			note_duplicate(pcb, run.seq, pcb->rcv_nxt);
			pkt = cut_front(pkt, pcb->rcv_nxt - run.seq);
		}
		append_parts(pcb, pkt);
		pcb->rcv_nxt = run.end;
		if (run.has_fin) {
			take_fin(pcb);
			return;
		}
	}
}

/* ---- quick acknowledgments ---- */

static void await_reply(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->slow_out |= SLOW_REPLY;
	pcb->quick_at = (uint16_t)tcp_ticks(now_ns);
}

void tcp_rx_ack_quickly(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->flags |= TF_ACK_NOW;
	if (pcb->table->params.always_quick_acks)
		return;
	if (pcb->quick_acks_left)
		pcb->quick_acks_left--;
	if (!pcb->quick_acks_left) {
		tcp_rx_pause_quick_acks(pcb);
		return;
	}
	await_reply(pcb, now_ns);
}

/* Linux's rule: whoever sends data so soon is in a conversation, and the next answer can
 * carry the next acknowledgment. */
void tcp_rx_note_reply(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t delay_ns = pcb->table->params.delayed_ack_ns;

	pcb->slow_out &= (uint8_t)~SLOW_REPLY;
	if ((uint16_t)(tcp_ticks(now_ns) - pcb->quick_at) < tcp_ticks(delay_ns)) {
		tcp_rx_pause_quick_acks(pcb);
		pcb->is_talking = true;
	}
}

void tcp_rx_ack_read(struct tcp_pcb *pcb, uint64_t now_ns)
{
	tcp_out_ack(pcb, now_ns);
	if (!pcb->is_talking)
		await_reply(pcb, now_ns);
}

/* ---- segments ---- */

/* Reduces the segment to what is new and inside the window (RFC 9293 section
 * 3.10.7.4). Linux drops one that reaches beyond the window, unless nothing waits to
 * be read; but then a peer that sends it again and again would never get through.
 * Returns false when nothing is left. */
static bool trim_to_window(struct tcp_pcb *pcb, struct tcp_segment *in)
{
	uint32_t past, end = in->seq + in->len;

	if (seq_before(in->seq, pcb->rcv_nxt)) {
		past = pcb->rcv_nxt - in->seq;
		note_duplicate(pcb, in->seq, seq_min(pcb->rcv_nxt, end));
		if (past > in->len)
			return false;
		in->pkt = cut_front(in->pkt, past);
		in->seq += past;
		in->len -= past;
	}
	if (seq_after(end, pcb->rcv_edge)) {
		uint32_t over = end - pcb->rcv_edge;

		pcb->flags |= TF_ACK_NOW;
		if (over > in->len)
			return false;
		cut_back(in->pkt, in->len - over);
		in->len -= over;
		in->flags &= (uint8_t)~WIRE_TCP_FIN;
	}
	return in->len || in->flags & WIRE_TCP_FIN;
}

void tcp_rx_data(struct tcp_pcb *pcb, struct tcp_segment *in, uint64_t now_ns)
{
	bool has_fin, is_news;
	struct pkt *pkt;

	is_news = !(pcb->flags & TF_FIN_RCVD) && trim_to_window(pcb, in);
	pkt = in->pkt;
	in->pkt = NULL;
	if (!is_news) {
		pcb->flags |= TF_ACK_NOW;
		pkt_put(pkt);
		return;
	}
	has_fin = in->flags & WIRE_TCP_FIN;
	if (in->seq != pcb->rcv_nxt) {
		/* RFC 5681 section 4.2: we answer at once, for fast retransmit. */
		pcb->flags |= TF_ACK_NOW;
		pcb->out_of_order++;
		keep_out_of_order(pcb, pkt, in->seq, has_fin);
		return;
	}
	pcb->rcv_nxt += in->len + has_fin;
	append_parts(pcb, pkt);
	if (has_fin)
		take_fin(pcb);
	if (!list_is_empty(&pcb->runs)) {
		/* The gap may be closing, so this is also answered at once. */
		pcb->flags |= TF_ACK_NOW;
		if (!has_fin)
			drain_runs(pcb);
	}
	pcb->was_pushed = in->flags & WIRE_TCP_PSH;
	tcp_rx_note_len(pcb, in->len);
	tcp_rx_schedule_ack(pcb, in->len, now_ns);
	tcp_event_raise(pcb, TCP_EV_READABLE);
}

/* ---- reading ---- */

uint32_t tcp_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts)
{
	return pcb->urgent ? tcp_urgent_take(pcb, max, pkts)
			   : tcp_rx_take(pcb, max, pkts);
}

/* Moves the beginning of a packet, the rest of which stays. */
static uint32_t take_part(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t len,
			  struct list *pkts)
{
	struct pkt *part = pkt_borrow(pcb->table->borrowers, pkt, 0, len);

	if (!part)
		return 0;
	pkt_pull(pkt, len);
	list_push_back(pkts, &part->link);
	return len;
}

uint32_t tcp_rx_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts)
{
	struct list *link;
	uint32_t len = 0;

	while (len < max && (link = list_first(&pcb->rcv_queue))) {
		struct pkt *pkt = pkt_from_link(link);

		if (pkt->len > max - len)
			return len + take_part(pcb, pkt, max - len, pkts);
		len += pkt->len;
		pcb->rcv_memory -= tcp_pkt_memory(pkt);
		list_remove(link);
		list_push_back(pkts, link);
	}
	return len;
}

uint32_t tcp_take_bytes(struct tcp_pcb *pcb, uint32_t max, uint8_t *to)
{
	struct list *first = list_first(&pcb->rcv_queue);
	struct pkt *pkt;

	if (pcb->urgent)
		max = MIN(max, tcp_urgent_ahead(pcb));
	if (!first)
		return 0;
	pkt = pkt_from_link(first);
	/* a whole one is taken without a cut */
	INVARIANT(!max || max < pkt->len, "tcp_take takes whole packets");
	memcpy(to, pkt->data, max);
	pkt_pull(pkt, max);
	return max;
}

bool tcp_has_data(const struct tcp_pcb *pcb)
{
	return !list_is_empty(&pcb->rcv_queue) &&
	       (LIKELY(!pcb->urgent) || tcp_urgent_has_more(pcb));
}

bool tcp_at_end(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_FIN_RCVD && !tcp_has_data(pcb);
}

bool tcp_has_end(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_FIN_RCVD;
}

/* Dynamic right-sizing. A reader that takes, in one round trip, nearly all that the
 * window allows is limited by the window. The window then becomes four times what it
 * took: slow start doubles while we measure, and once more until the sender knows the
 * new window. A factor of two would end slow start. */
void tcp_rx_tune(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t wanted;

	wanted = 4 * (uint64_t)pcb->tune_taken + 16 * (uint64_t)pcb->mss;
	if (wanted > pcb->rcv_buf && !(pcb->flags & TF_RCV_BUF_FIXED) &&
	    pcb->table->params.tunes_rcv_buf)
		pcb->rcv_buf = tcp_rcv_buf_within(
			pcb, MIN(wanted,
				 (uint64_t)pcb->table->params.rcv_buf_max));
	tcp_stats_note_bytes(pcb);
	pcb->tune_start_ns = now_ns;
	pcb->tune_taken = 0;
}

void tcp_recved(struct tcp_pcb *pcb, uint32_t len, uint64_t now_ns)
{
	INVARIANT(len <= pcb->rcv_unread, "more read than was received");
	pcb->rcv_unread -= len;
	if (len)
		pcb->is_header_stale = true;
	if (!tcp_is_synchronised(pcb) || pcb->flags & TF_FIN_RCVD)
		return;
	tcp_rx_was_read(pcb, len, now_ns);
}

void tcp_rx_restore_run(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t seq,
			bool has_fin)
{
	run_create(pcb, pcb->runs.prev, pkt, seq, has_fin);
	remember_recent(pcb, tcp_run(pkt));
}

void tcp_rx_free(struct tcp_pcb *pcb)
{
	pkt_put_list(&pcb->rcv_queue);
	tcp_rx_free_runs(pcb);
}
