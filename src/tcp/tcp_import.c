/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a connection from bytes that tcp_export.c wrote, or that somebody else forged.
 * Nothing that the engine relies on is believed. What can be derived is not read; what
 * cannot is checked, or brought into its bounds.
 */
#include "tcp/tcp_export_priv.h"
#include "tcp/tcp_priv.h"

#include <errno.h>

/* These are larger than any window (RFC 7323 section 2.3), an hour, and six years. */
#define SPAN_MAX (UINT32_C(1) << 30)
#define SHORT_MAX_NS (UINT64_C(1) << 42)
#define LONG_MAX_NS (UINT64_C(1) << 57)

/* The flags that say where a pcb hangs are set by others. */
enum {
	FLAGS_KEPT = TF_NODELAY | TF_CORK | TF_QUICK_ACK | TF_KEEPALIVE |
		     TF_SACK | TF_TS | TF_SCALE | TF_ECN | TF_ACK_NOW |
		     TF_FIN_RCVD | TF_FIN_QUEUED | TF_ECE_OUT | TF_CWR_OUT |
		     TF_RCV_BUF_FIXED | TF_SND_BUF_FIXED | TF_PASSIVE |
		     TF_CWND_LIMITED | TF_REORDERS | TF_TLP_NEW | TF_FRTO |
		     TF_HAS_RTT | TF_FRTO_NEW | TF_OOB_INLINE |
		     TF_URGENT_OUT | TF_DUE,
};

/* ---- reading ---- */

/* The bytes that are left. Once something was missing, everything reads as 0. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool has_failed;
	uint64_t now_ns;
	struct pkt_pool *pool;
	/* there was no packet left */
	bool is_pool_dry;
};

static const uint8_t *take(struct reader *r, size_t len)
{
	const uint8_t *at = r->at;

	if (r->has_failed || len > r->left) {
		r->has_failed = true;
		return NULL;
	}
	r->at += len;
	r->left -= len;
	return at;
}

static uint64_t get(struct reader *r, unsigned bytes)
{
	const uint8_t *at = take(r, bytes);
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && at; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* The value is at least 1, because 0 means none. */
static uint64_t get_at(struct reader *r)
{
	uint64_t value = get(r, 8);
	int64_t off_ns = (int64_t)(value - TCP_EXPORT_NOW);

	if (!value)
		return 0;
	off_ns = MAX(off_ns, -(int64_t)r->now_ns + 1);
	return r->now_ns + (uint64_t)MIN(off_ns, (int64_t)LONG_MAX_NS);
}

static struct pkt *get_empty(struct reader *r)
{
	struct pkt *pkt = pkt_alloc(r->pool);

	r->is_pool_dry = !pkt;
	return pkt;
}

/* Returns a packet with as many of the next `len` bytes as fit, or NULL. */
static struct pkt *get_pkt(struct reader *r, uint32_t len)
{
	struct pkt *pkt = get_empty(r);
	const uint8_t *at;

	if (!pkt)
		return NULL;
	len = MIN(len, pkt_tailroom(pkt));
	at = take(r, len);
	if (!at || !len) {
		r->has_failed = true;
		pkt_put(pkt);
		return NULL;
	}
	memcpy(pkt_append(pkt, len), at, len);
	return pkt;
}

/* The reason why there was no packet. */
static int why_not(const struct reader *r)
{
	return r->is_pool_dry ? -ENOBUFS : -EINVAL;
}

static void get_members(struct reader *r, struct tcp_pcb *pcb)
{
	uint32_t ts_now;

#define U8(member) pcb->member = (uint8_t)get(r, 1);
#define U16(member) pcb->member = (uint16_t)get(r, 2);
#define S16(member) pcb->member = (int16_t)get(r, 2);
#define U32(member) pcb->member = (uint32_t)get(r, 4);
#define U64(member) pcb->member = get(r, 8);
#define AT(member) pcb->member = get_at(r);
#define TICK(member) \
	pcb->member = tcp_ticks(r->now_ns) - (uint32_t)get(r, 4);
#include "tcp/tcp_export.def"
#undef U8
#undef U16
#undef S16
#undef U32
#undef U64
#undef AT
#undef TICK
	pcb->flags &= FLAGS_KEPT;
	ts_now = (uint32_t)get(r, 4);
	pcb->ts_offset += ts_now - tcp_ts_now(pcb, r->now_ns);
}

/* Bits that make no sense are brought into their bounds. */
static int get_accecn(struct reader *r, struct tcp_pcb *pcb)
{
	struct tcp_accecn *a;

	pcb->is_accurate = get(r, 1) && pcb->flags & TF_ECN;
	if (!pcb->is_accurate)
		return 0;
	if (!tcp_extra_get(pcb)) {
		pcb->is_accurate = false;
		return -ENOMEM;
	}
	a = &pcb->extra->accecn;
#define U8(member) a->member = (uint8_t)get(r, 1) & 3;
#define U32(member) a->member = (uint32_t)get(r, 4);
#define FLAG(member) a->member = get(r, 1);
#define AT(member) a->member = MIN(get_at(r), r->now_ns);
#include "tcp/tcp_export_accecn.def"
#undef U8
#undef U32
#undef FLAG
#undef AT
	return 0;
}

/* ---- checks ---- */

static bool has_state(const struct tcp_pcb *pcb, unsigned states)
{
	return states >> pcb->state & 1;
}

/* The state says who has sent a FIN and who has received one. */
static bool is_state_sound(const struct tcp_pcb *pcb)
{
	const unsigned opening = 1 << TCPS_SYN_SENT | 1 << TCPS_SYN_RCVD;
	const unsigned open = 1 << TCPS_ESTABLISHED | 1 << TCPS_CLOSE_WAIT;
	const unsigned fin_sent = 1 << TCPS_FIN_WAIT_1 | 1 << TCPS_FIN_WAIT_2 |
				  1 << TCPS_CLOSING | 1 << TCPS_LAST_ACK;
	const unsigned fin_rcvd = 1 << TCPS_CLOSE_WAIT | 1 << TCPS_CLOSING |
				  1 << TCPS_LAST_ACK;
	bool has_sent = pcb->flags & TF_FIN_QUEUED;

	if (pcb->state > TCPS_LAST_ACK ||
	    !has_state(pcb, opening | open | fin_sent))
		return false;
	if (!!(pcb->flags & TF_FIN_RCVD) != has_state(pcb, fin_rcvd))
		return false;
	if (has_state(pcb, opening))
		return pcb->snd_una == pcb->iss &&
		       pcb->snd_nxt == pcb->iss + 1;
	return has_sent == has_state(pcb, fin_sent) &&
	       (pcb->state != TCPS_FIN_WAIT_2 || pcb->snd_una == pcb->snd_end);
}

static bool is_window_sound(const struct tcp_pcb *pcb)
{
	return pcb->snd_nxt - pcb->snd_una <= SPAN_MAX &&
	       pcb->snd_end - pcb->snd_nxt <= SPAN_MAX &&
	       pcb->rcv_edge + 1 - pcb->rcv_nxt <= SPAN_MAX &&
	       pcb->snd_wnd <= SPAN_MAX && pcb->snd_wnd_max <= SPAN_MAX &&
	       pcb->rcv_buf <= SPAN_MAX && pcb->snd_buf <= SPAN_MAX &&
	       pcb->rcv_unread <= SPAN_MAX && pcb->unacked_rcvd <= SPAN_MAX &&
	       pcb->rcv_buf;
}

static bool is_sound(const struct tcp_pcb *pcb)
{
	return pcb->key.local_port && pcb->key.remote_port &&
	       is_state_sound(pcb) && is_window_sound(pcb) &&
	       pcb->cc_id < TCP_CC_CNT && pcb->recovery <= RECOVERY_LOSS &&
	       pcb->rtx_kind <= RTX_PERSIST &&
	       pcb->urgent <= TCP_URGENT_READ &&
	       pcb->chrono <= CHRONO_BUFFER &&
	       pcb->snd_scale <= TCP_SCALE_MAX &&
	       pcb->rcv_scale <= TCP_SCALE_MAX && pcb->mss_peer >= 64;
}

static uint64_t clamp(uint64_t low, uint64_t value, uint64_t high)
{
	value = MIN(value, high);
	return MAX(low, value);
}

static void bound_settings(struct tcp_settings *s)
{
	s->user_timeout_ns = MIN(s->user_timeout_ns, LONG_MAX_NS);
	s->keep_idle_ns = MIN(s->keep_idle_ns, LONG_MAX_NS);
	s->keep_interval_ns = MIN(s->keep_interval_ns, LONG_MAX_NS);
	if (s->fin_wait_2_ns != TCP_NO_FIN_WAIT_2)
		s->fin_wait_2_ns = MIN(s->fin_wait_2_ns, LONG_MAX_NS);
	if (s->mss_max)
		s->mss_max = MAX(s->mss_max, TCP_MSS_LEAST);
}

/* Bytes that left with the SYN are in the queue until it is acknowledged. */
static void bound_fastopen(struct tcp_pcb *pcb)
{
	uint32_t queued = pcb->snd_end - pcb->snd_nxt;
	bool has_fin = pcb->flags & TF_FIN_QUEUED;

	pcb->fastopen &= FASTOPEN_ASKS | FASTOPEN_OPTIONLESS |
			 FASTOPEN_GRANTS | FASTOPEN_HAD_DATA |
			 3 << FASTOPEN_FAILURE_SHIFT;
	if (tcp_is_synchronised(pcb) || !pcb->fastopen || !queued)
		pcb->syn_data = 0;
	else
		pcb->syn_data = MIN(pcb->syn_data, queued - has_fin);
}

/* Brings values into their bounds that only make the connection slow when they are
 * wrong. */
static void bound(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->path.mtu = MAX(pcb->path.mtu, 68);
	if (pcb->urgent_seq + SPAN_MAX - pcb->rcv_nxt > 2 * SPAN_MAX)
		pcb->urgent = TCP_URGENT_NONE;
	if (!seq_after(pcb->urgent_end, pcb->snd_una) ||
	    seq_after(pcb->urgent_end, pcb->snd_end))
		pcb->flags &= ~TF_URGENT_OUT;
	pcb->cwnd = MIN(pcb->cwnd, SPAN_MAX);
	pcb->ssthresh = MIN(pcb->ssthresh, UINT32_MAX / 4);
	pcb->undo_cwnd = MIN(pcb->undo_cwnd, SPAN_MAX);
	pcb->undo_ssthresh = MIN(pcb->undo_ssthresh, UINT32_MAX / 4);
	if (pcb->recovery == RECOVERY_CWR || pcb->recovery == RECOVERY_FAST)
		pcb->prr_flight = MAX(pcb->prr_flight, 1u);
	pcb->srtt_ns = MIN(pcb->srtt_ns, SHORT_MAX_NS);
	pcb->rttvar_ns = MIN(pcb->rttvar_ns, SHORT_MAX_NS);
	pcb->min_rtt_ns = MIN(pcb->min_rtt_ns, SHORT_MAX_NS);
	pcb->lone_wait_us = MIN(pcb->lone_wait_us,
				(uint32_t)TCP_LONE_WAIT_MAX_US);
	pcb->rack_rtt_ns = MIN(pcb->rack_rtt_ns, SHORT_MAX_NS);
	pcb->rto_ns = clamp(NS_PER_MS, pcb->rto_ns,
			    pcb->table->params.rto_max_ns);
	pcb->pace_at_ns = MIN(pcb->pace_at_ns, now_ns + SHORT_MAX_NS);
	/* a negative errno */
	if (pcb->soft_error > 0 || pcb->soft_error < -4095)
		pcb->soft_error = 0;
	bound_settings(pcb->settings);
	bound_fastopen(pcb);
	pcb->rcv_buf = tcp_rcv_buf_within(pcb, pcb->rcv_buf);
}

/* ---- queues ---- */

/* An entry as it was described. */
struct entry {
	uint32_t len;
	uint8_t flags;
	uint8_t sent_cnt;
	uint64_t sent_ns;
};

/* Inserts the entry in the order of transmission, which is mostly that of the queue. */
static void fly(struct tcp_pcb *pcb, struct tcp_seg *seg)
{
	struct list *where = pcb->in_flight.prev;

	while (where != &pcb->in_flight &&
	       tcp_seg(tcp_seg_pkt(where))->sent_ns > seg->sent_ns)
		where = where->prev;
	list_insert_after(where, &seg->order);
}

static void append_entry(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t seq,
			 const struct entry *entry)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	memset(seg, 0, sizeof(*seg));
	list_init(&seg->order);
	seg->seq = seq;
	seg->flags = entry->flags;
	seg->sent_cnt = entry->sent_cnt;
	seg->sent_ns = entry->sent_ns;
	list_push_back(&pcb->snd_queue, &pkt->link);
	pcb->stamp_cnt += !!(seg->flags & SEG_STAMP);
	if (!(seg->flags & SEG_SENT)) {
		if (!pcb->unsent)
			pcb->unsent = pkt;
	} else if (seg->flags & SEG_SACKED) {
		pcb->sacked_bytes += tcp_seg_len(pkt);
		pcb->sacked_cnt++;
	} else if (seg->flags & SEG_LOST) {
		pcb->lost_bytes += tcp_seg_len(pkt);
		list_push_back(&pcb->lost, &seg->order);
	} else {
		fly(pcb, seg);
	}
}

/* Refuses flags that cannot be set together, and an order that cannot occur. */
static bool is_entry_sound(const struct tcp_pcb *pcb, const struct entry *e,
			   uint32_t seq, bool is_last)
{
	uint32_t end = seq + e->len + !!(e->flags & SEG_FIN);
	bool is_sent = e->flags & SEG_SENT;
	const uint8_t both = SEG_SACKED | SEG_LOST;

	if (e->flags & ~(SEG_SENT | SEG_SACKED | SEG_LOST | SEG_FIN |
			 SEG_OF_END) ||
	    (e->flags & both) == both || (e->flags & both && !is_sent) ||
	    (e->flags & SEG_SACKED && !(pcb->flags & TF_SACK)) ||
	    is_sent != !!e->sent_cnt || is_sent != !!e->sent_ns)
		return false;
	if (e->flags & SEG_FIN ? e->len || !is_last : !e->len)
		return false;
	if (e->flags & SEG_FIN && e->flags & SEG_STAMP)
		return false;
	/* The entries are marked as sent up to snd_nxt, and no further. */
	return e->len <= pcb->snd_end - seq &&
	       (is_sent ? seq_at_most(end, pcb->snd_nxt)
			: !seq_before(seq, pcb->snd_nxt));
}

static bool get_entry_bytes(struct reader *bytes, struct tcp_pcb *pcb,
			    uint32_t seq, const struct entry *entry)
{
	struct entry part = *entry;
	uint32_t left = entry->len;

	if (entry->flags & SEG_FIN) {
		pcb->fin.refs = 1;
		append_entry(pcb, &pcb->fin, seq, entry);
		return true;
	}
	while (left) {
		struct pkt *pkt = get_pkt(bytes, left);

		if (!pkt)
			return false;
		left -= pkt->len;
		if (left)
			part.flags = entry->flags & (uint8_t)~SEG_OF_END;
		else
			part.flags = entry->flags;
		append_entry(pcb, pkt, seq, &part);
		seq += pkt->len;
	}
	return true;
}

/* The descriptions come from `r`, and the data that they describe from `bytes`. */
static int get_entries(struct reader *r, struct reader *bytes, uint32_t cnt,
		       struct tcp_pcb *pcb)
{
	uint32_t seq = pcb->snd_una + !tcp_is_synchronised(pcb);
	bool has_fin = false;

	for (uint32_t i = 0; i < cnt; i++) {
		struct entry e = { .len = (uint32_t)get(r, 4) };

		e.flags = (uint8_t)get(r, 1);
		e.sent_cnt = (uint8_t)get(r, 1);
		e.sent_ns = get_at(r);
		if (r->has_failed ||
		    !is_entry_sound(pcb, &e, seq, i == cnt - 1))
			return -EINVAL;
		if (!get_entry_bytes(bytes, pcb, seq, &e))
			return why_not(bytes);
		has_fin |= e.flags & SEG_FIN;
		seq += e.len + !!(e.flags & SEG_FIN);
	}
	/* In FIN_WAIT_2 the FIN is acknowledged; in other states it is still in the
	 * queue. */
	if (seq != pcb->snd_end ||
	    has_fin != (pcb->flags & TF_FIN_QUEUED &&
			pcb->state != TCPS_FIN_WAIT_2))
		return -EINVAL;
	return 0;
}

/* Returns a chain of `len` bytes, or NULL. A FIN alone has no bytes. */
static struct pkt *get_chain(struct reader *bytes, uint32_t len)
{
	struct pkt *first = NULL, *last = NULL;

	if (!len)
		return get_empty(bytes);
	while (len) {
		struct pkt *pkt = get_pkt(bytes, len);

		if (!pkt) {
			pkt_put(first);
			return NULL;
		}
		if (last)
			last->next_part = pkt;
		else
			first = pkt;
		last = pkt;
		len -= pkt->len;
	}
	return first;
}

/* Runs lie above the data in order, do not touch each other, and lie within the
 * window. */
static int get_runs(struct reader *r, struct reader *bytes, uint32_t cnt,
		    struct tcp_pcb *pcb)
{
	uint32_t behind = pcb->rcv_nxt;

	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t seq = (uint32_t)get(r, 4), len = (uint32_t)get(r, 4);
		uint8_t has_fin = (uint8_t)get(r, 1);
		struct pkt *pkt;

		if (r->has_failed || !(len || has_fin) || len > SPAN_MAX ||
		    !seq_after(seq, behind) || has_fin > 1 ||
		    seq - pcb->rcv_nxt > SPAN_MAX ||
		    seq_after(seq + len, pcb->rcv_edge) ||
		    pcb->flags & TF_FIN_RCVD)
			return -EINVAL;
		pkt = get_chain(bytes, len);
		if (!pkt)
			return why_not(bytes);
		tcp_rx_restore_run(pcb, pkt, seq, has_fin);
		behind = seq + len + has_fin;
	}
	return 0;
}

static int get_received(struct reader *bytes, uint32_t len,
			struct tcp_pcb *pcb)
{
	uint32_t unread = pcb->rcv_unread;

	if (len > unread)
		return -EINVAL;
	while (len) {
		struct pkt *pkt = get_pkt(bytes, len);

		if (!pkt)
			return why_not(bytes);
		len -= pkt->len;
		tcp_rx_queue(pcb, pkt);
	}
	/* Data that the reader has taken and not yet reported counts as well. */
	pcb->rcv_unread = unread;
	return 0;
}

/* The descriptions of a kind, which `r` then stands behind. */
static struct reader skip(struct reader *r, uint32_t cnt, size_t size)
{
	struct reader descriptions = *r;

	take(r, cnt * size);
	return descriptions;
}

/* Sizes of a description: see tcp_export_priv.h. */
enum { ENTRY_SIZE = 4 + 1 + 1 + 8, RUN_SIZE = 4 + 4 + 1 };

static int get_queues(struct reader *r, struct tcp_pcb *pcb)
{
	uint32_t estimate = pcb->sacked_bytes, unread, entry_cnt, run_cnt;
	struct reader entries, runs;
	int rc;

	entry_cnt = (uint32_t)get(r, 4);
	entries = skip(r, entry_cnt, ENTRY_SIZE);
	run_cnt = (uint32_t)get(r, 4);
	runs = skip(r, run_cnt, RUN_SIZE);
	unread = (uint32_t)get(r, 4);
	if (r->has_failed)
		return -EINVAL;
	pcb->sacked_bytes = 0;
	rc = get_entries(&entries, r, entry_cnt, pcb);
	if (!rc)
		rc = get_runs(&runs, r, run_cnt, pcb);
	if (!rc)
		rc = get_received(r, unread, pcb);
	if (!rc && r->left)
		rc = -EINVAL;
	/* Without SACK this is an estimate, which the queue does not show. */
	if (!(pcb->flags & TF_SACK) && tcp_is_synchronised(pcb))
		pcb->sacked_bytes = MIN(estimate, pcb->snd_nxt - pcb->snd_una -
							  pcb->lost_bytes);
	return rc;
}

/* ---- what follows ---- */

/* The retransmission timer follows the queue, whatever was written. */
static void restore_timers(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool is_held = pcb->unsent && pcb->pace_at_ns > now_ns;
	bool is_flying = pcb->snd_una != pcb->snd_nxt;
	bool fits = is_flying ? pcb->rtx_kind != RTX_NONE &&
					pcb->rtx_kind != RTX_PERSIST
			      : pcb->rtx_kind == RTX_PERSIST && pcb->unsent;
	/* What has no timer of its own has waited for its time, or for a device. */
	bool is_stuck = pcb->unsent && !is_flying && pcb->rtx_kind == RTX_NONE &&
			tcp_may_send(pcb);
	bool owes_ack = pcb->flags & TF_ACK_NOW && tcp_is_synchronised(pcb);

	if (is_held && pcb->slow_out & SLOW_PACED)
		pcb->pace_wait_ns = pcb->pace_at_ns;
	else if (is_stuck || owes_ack)
		pcb->pace_wait_ns = now_ns + 1;
	/* both are part of RFC 8985, which needs SACK */
	if (pcb->rtx_kind == RTX_PROBE || pcb->rtx_kind == RTX_LONE_PROBE ||
	    pcb->rtx_kind == RTX_LATE_PROBE || pcb->rtx_kind == RTX_REORDER)
		fits &= !!(pcb->flags & TF_SACK);
	if (!tcp_is_synchronised(pcb))
		fits = pcb->rtx_kind == RTX_TIMEOUT;
	if (!fits || !pcb->rtx_at_ns) {
		pcb->rtx_kind = RTX_NONE;
		pcb->rtx_at_ns = 0;
		tcp_timer_rearm_rtx(pcb, now_ns);
	}
	if (!(pcb->flags & TF_KEEPALIVE))
		pcb->keep_at_ns = 0;
	tcp_timer_update(pcb);
}

static int restore(struct tcp_pcb *pcb, uint32_t w_max, uint64_t now_ns)
{
	uint32_t cwnd = pcb->cwnd;

	pcb->pseudo_sum = wire_pseudo_sum(&pcb->key.local, &pcb->key.remote,
					  WIRE_PROTO_TCP, 0);
	tcp_pcb_update_mss(pcb);
	tcp_pcb_restore_cc(pcb);
	pcb->cwnd = tcp_is_synchronised(pcb) ? MAX(cwnd, pcb->mss) : cwnd;
	if (pcb->cc_id == TCP_CC_CUBIC)
		pcb->cc.cubic.w_max = MIN(w_max, SPAN_MAX);
	tcp_pace_update(pcb);
	pcb->rtt_due_ns = now_ns;
	pcb->cwnd_used_end = pcb->snd_nxt;
	/* a little more than was, perhaps */
	pcb->due_end = pcb->snd_end;
	pcb->quiet_kind = pcb->quiet_lone_kind = RTX_TIMEOUT;
	pcb->quiet_rtx_ns = pcb->quiet_lone_ns = pcb->rto_ns;
	pcb->timed_srtt = TCP_NOT_TIMED;
	if (tcp_is_synchronised(pcb))
		tcp_fast_init(pcb);
	return tcp_table_insert(pcb->table, pcb);
}

static int fill(struct tcp_pcb *pcb, struct reader *r)
{
	uint64_t len = r->left;
	const uint8_t *key;
	uint32_t w_max;
	int rc;

	if (get(r, 4) != TCP_EXPORT_MAGIC || get(r, 4) != TCP_EXPORT_VERSION ||
	    get(r, 8) != len)
		return -EINVAL;
	key = take(r, offsetof(struct flow_key, zero));
	if (!key)
		return -EINVAL;
	memcpy(&pcb->key, key, offsetof(struct flow_key, zero));
	get_members(r, pcb);
	w_max = (uint32_t)get(r, 4);
	rc = get_accecn(r, pcb);
	if (rc)
		return rc;
	if (r->has_failed || !is_sound(pcb))
		return -EINVAL;
	bound(pcb, r->now_ns);
	if (tcp_table_find(pcb->table, &pcb->key) ||
	    tcp_tw_has(pcb->table, &pcb->key))
		return -EADDRINUSE;
	rc = get_queues(r, pcb);
	if (rc)
		return rc;
	tcp_rate_mark(pcb, r->now_ns);
	return restore(pcb, w_max, r->now_ns);
}

int tcp_import(struct tcp_table *table, const uint8_t *data, size_t len,
	       struct pkt_pool *pool, uint64_t now_ns,
	       struct tcp_pcb **pcb_out)
{
	struct reader r = { .at = data, .left = len, .now_ns = now_ns,
			    .pool = pool };
	struct tcp_pcb *pcb = tcp_pcb_create(table);
	int rc;

	if (!pcb)
		return -ENOMEM;
	rc = tcp_settings_own(pcb);
	if (!rc)
		rc = fill(pcb, &r);
	if (rc) {
		pcb->state = TCPS_CLOSED;
		tcp_pcb_free(pcb);
		return rc;
	}
	tcp_settings_drop_usual(pcb);
	/* The exporter may have had a larger buffer. */
	tcp_rx_prune(pcb);
	restore_timers(pcb, now_ns);
	tcp_fast_update(pcb);
	if (!list_is_empty(&pcb->rcv_queue) || pcb->flags & TF_FIN_RCVD)
		tcp_event_raise(pcb, TCP_EV_READABLE);
	if (tcp_is_synchronised(pcb))
		tcp_event_raise(pcb, TCP_EV_WRITABLE);
	*pcb_out = pcb;
	return 0;
}
