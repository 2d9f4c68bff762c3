/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner's side of the engine: tables, the life of a pcb, reading and writing,
 * settings, events. What segments do to a pcb begins in tcp_in.c.
 */
#include "tcp/tcp.h"

#include "tcp/tcp_cc.h"
#include "tcp/tcp_priv.h"

#include <errno.h>

static const struct tcp_cc_ops *const algorithms[TCP_CC_CNT] = {
	[TCP_CC_CUBIC] = &tcp_cc_cubic,
	[TCP_CC_NEWRENO] = &tcp_cc_newreno,
	[TCP_CC_NONE] = &tcp_cc_none,
	[TCP_CC_BBR] = &tcp_cc_bbr,
};

/* ---- tables ---- */

void tcp_params_init(struct tcp_params *params)
{
	*params = (struct tcp_params){
		.rcv_buf = 131072,
		.rcv_buf_max = 6 << 20,
		.snd_buf = 87380,
		.snd_buf_max = 4 << 20,
		.with_sack = true,
		.with_timestamps = true,
		.with_window_scale = true,
		.with_dsack = true,
		.with_tlp = true,
		.with_frto = true,
		.with_ecn_option = true,
		.restarts_when_idle = true,
		.tunes_rcv_buf = true,
		.saves_metrics = true,
		.peers_max = 1024,
		.notsent_lowat = UINT32_MAX,
		.cc = TCP_CC_CUBIC,
		.with_hystart = true,
		.initial_window = 10,
		.rto_initial_ns = NS_PER_SEC,
		.rto_min_ns = 200 * NS_PER_MS,
		.rto_max_ns = 120 * NS_PER_SEC,
		.delayed_ack_ns = 40 * NS_PER_MS,
		.quick_acks = 16,
		.merges_max = UINT32_MAX,
		.syn_retries = 6,
		.syn_linear_timeouts = 4,
		.synack_retries = 5,
		.retries = 15,
		.orphan_retries = 8,
		.fin_wait_2_ns = 60 * NS_PER_SEC,
		.time_wait_ns = 60 * NS_PER_SEC,
		.time_wait_max = 65536,
		.tw_reuse = TCP_TW_REUSE_LOOPBACK,
		.tw_reuse_delay_ns = NS_PER_SEC,
		.keepalive_idle_ns = 7200 * NS_PER_SEC,
		.keepalive_interval_ns = 75 * NS_PER_SEC,
		.keepalive_probes = 9,
		.stray_interval_ns = 500 * NS_PER_MS,
		.resets_per_sec = 1000,
		.half_open_max = 1024,
		.with_syn_cookies = true,
	};
}

struct tcp_table *tcp_table_create(const struct tcp_params *params,
				   const struct tcp_ops *ops, void *ctx,
				   struct timer_wheel *wheel,
				   struct pkt_pool *borrowers)
{
	struct tcp_table *table = ops->alloc(ctx, sizeof(*table));

	if (!table)
		return NULL;
	table->params = *params;
	table->ops = ops;
	table->ctx = ctx;
	table->wheel = wheel;
	table->borrowers = borrowers;
	tcp_settings_init(table);
	tcp_fastopen_init(table);
	table->hash_seed = hash_sip(&params->secret, "table", 5);
	list_init(&table->events);
	list_init(&table->pcbs);
	for (int i = 0; i < TCP_LISTEN_BUCKETS; i++)
		list_init(&table->listeners[i]);
	table->tw = tcp_tw_create(table);
	if (!table->tw) {
		ops->release(ctx, table, sizeof(*table));
		return NULL;
	}
	return table;
}

void tcp_table_destroy(struct tcp_table *table)
{
	if (!table)
		return;
	while (!list_is_empty(&table->pcbs))
		tcp_pcb_free(LIST_ENTRY(table->pcbs.next, struct tcp_pcb,
					table_link));
	tcp_tw_destroy(table->tw);
	tcp_metrics_free(table);
	tcp_table_free_buckets(table);
	table->ops->release(table->ctx, table, sizeof(*table));
}

const struct tcp_counts *tcp_counts(const struct tcp_table *table)
{
	return &table->counts;
}

uint32_t tcp_pcb_cnt(const struct tcp_table *table)
{
	return table->pcb_cnt;
}

uint32_t tcp_time_wait_cnt(const struct tcp_table *table)
{
	return tcp_tw_cnt(table);
}

struct tcp_pcb *tcp_pcb_next(const struct tcp_table *table,
			     const struct tcp_pcb *pcb)
{
	struct list *next = pcb ? pcb->table_link.next : table->pcbs.next;

	return next == &table->pcbs
		       ? NULL
		       : LIST_ENTRY(next, struct tcp_pcb, table_link);
}

/* RFC 6528: the sum of a clock of 4 microseconds and a keyed hash of the connection. */
uint32_t tcp_isn(const struct tcp_table *table, const struct flow_key *key,
		 uint64_t now_ns)
{
	return (uint32_t)hash_sip(&table->params.secret, key, sizeof(*key)) +
	       (uint32_t)(now_ns / (4 * NS_PER_US));
}

/* RFC 7323 section 7.1: a peer shall not learn from one connection the clock of
 * another. */
uint32_t tcp_ts_offset(const struct tcp_table *table,
		       const struct flow_key *key)
{
	struct hash_key other = { { ~table->params.secret.word[0],
				    table->params.secret.word[1] } };

	return (uint32_t)hash_sip(&other, key, sizeof(*key));
}

/* ---- events ---- */

void tcp_event_raise(struct tcp_pcb *pcb, unsigned what)
{
	if (pcb->flags & TF_UNSEEN ||
	    (pcb->flags & TF_ORPHAN && what != TCP_EV_GONE))
		return;
	tcp_event_mark(pcb, what);
}

bool tcp_event_next(struct tcp_table *table, struct tcp_event *event_out)
{
	struct tcp_pcb *pcb;
	struct list *link;

	if (table->gone) {
		tcp_pcb_free(table->gone);
		table->gone = NULL;
	}
	while ((link = list_pop_front(&table->events))) {
		pcb = LIST_ENTRY(link, struct tcp_pcb, event_link);
		/* The owner never saw this connection. */
		if (pcb->flags & TF_UNSEEN) {
			tcp_pcb_free(pcb);
			continue;
		}
		event_out->pcb = pcb;
		event_out->user = pcb->user;
		event_out->what = pcb->events;
		pcb->events = 0;
		if (event_out->what & TCP_EV_GONE)
			table->gone = pcb;
		return true;
	}
	return false;
}

/* ---- life of a pcb ---- */

struct tcp_pcb *tcp_pcb_create(struct tcp_table *table)
{
	const struct tcp_params *params = &table->params;
	struct tcp_pcb *pcb = table->ops->alloc(table->ctx, sizeof(*pcb));

	if (!pcb)
		return NULL;
	pcb->table = table;
	pcb->cc_id = (uint8_t)params->cc;
	/* until it is open */
	pcb->cc_ops = &tcp_cc_none;
	pcb->rcv_buf = params->rcv_buf;
	pcb->snd_buf = params->snd_buf;
	pcb->settings = &table->settings;
	pcb->flags = params->always_quick_acks ? TF_QUICK_ACK : 0;
	pcb->mss = 536;
	list_init(&pcb->rcv_queue);
	list_init(&pcb->snd_queue);
	list_init(&pcb->in_flight);
	list_init(&pcb->lost);
	list_init(&pcb->runs);
	list_init(&pcb->event_link);
	list_init(&pcb->child_link);
	tcp_timer_init(pcb);
	tcp_rtt_init(pcb);
	list_push_back(&table->pcbs, &pcb->table_link);
	table->pcb_cnt++;
	return pcb;
}

struct tcp_extra *tcp_extra_get(struct tcp_pcb *pcb)
{
	struct tcp_table *table = pcb->table;

	if (pcb->extra)
		return pcb->extra;
	pcb->extra = table->ops->alloc(table->ctx, sizeof(*pcb->extra));
	if (pcb->extra)
		list_init(&pcb->extra->early_link);
	return pcb->extra;
}

struct tcp_pcb *tcp_new(struct tcp_table *table)
{
	return tcp_pcb_create(table);
}

void tcp_pcb_free(struct tcp_pcb *pcb)
{
	struct tcp_table *table = pcb->table;

	if (pcb->state == TCPS_LISTEN) {
		tcp_fastopen_forget(pcb->listener);
		list_remove(&pcb->listener->link);
		table->ops->release(table->ctx, pcb->listener,
				    sizeof(*pcb->listener));
	}
	tcp_table_remove(table, pcb);
	tcp_timer_stop(pcb);
	tcp_out_free(pcb);
	tcp_rx_free(pcb);
	tcp_fastopen_settle(pcb);
	tcp_saved_syn_free(pcb);
	if (pcb->extra)
		table->ops->release(table->ctx, pcb->extra,
				    sizeof(*pcb->extra));
	tcp_settings_put(pcb);
	list_remove(&pcb->event_link);
	list_remove(&pcb->child_link);
	list_remove(&pcb->table_link);
	table->pcb_cnt--;
	table->ops->release(table->ctx, pcb, sizeof(*pcb));
}

void tcp_pcb_set_key(struct tcp_pcb *pcb, const struct flow_key *key,
		     uint32_t iss)
{
	pcb->key = *key;
	pcb->iss = iss;
	pcb->snd_una = pcb->snd_small_end = pcb->sack_high = iss;
	pcb->recovery_point = pcb->rack_round_end = iss;
	pcb->snd_nxt = pcb->snd_end = iss + 1;
	pcb->ts_offset = tcp_ts_offset(pcb->table, key);
	pcb->pseudo_sum = wire_pseudo_sum(&key->local, &key->remote,
					  WIRE_PROTO_TCP, 0);
}

/* Frees what a pcb no longer needs when the connection is over. Received data stays
 * for its owner. */
static void wind_up(struct tcp_pcb *pcb)
{
	pcb->is_quiet = false;
	/* an acknowledgment that waits for room in a device is for nobody now */
	pcb->flags &= ~TF_ACK_NOW;
	tcp_table_remove(pcb->table, pcb);
	tcp_timer_stop(pcb);
	tcp_out_free(pcb);
	tcp_rx_free_runs(pcb);
	tcp_fastopen_settle(pcb);
	pcb->syn_data = 0;
}

/* The event list also serves to free a pcb later, because a function up the call chain
 * may still hold it. */
static void let_go(struct tcp_pcb *pcb)
{
	tcp_rx_free(pcb);
	if (pcb->flags & TF_UNSEEN) {
		if (!list_is_linked(&pcb->event_link))
			list_push_back(&pcb->table->events, &pcb->event_link);
		return;
	}
	pcb->flags |= TF_ORPHAN;
	pcb->events = 0;
	tcp_event_raise(pcb, TCP_EV_GONE);
}

void tcp_pcb_die(struct tcp_pcb *pcb, int error)
{
	if (pcb->state == TCPS_CLOSED)
		return;
	wind_up(pcb);
	pcb->state = TCPS_CLOSED;
	/* RFC 1122 section 4.2.3.9 */
	if (error == -ETIMEDOUT && pcb->soft_error)
		error = pcb->soft_error;
	pcb->error = (int16_t)error;
	if (pcb->flags & TF_ORPHAN) {
		let_go(pcb);
	} else if (pcb->flags & TF_UNSEEN) {
		/* A child that is in the queue can still be accepted. */
		if (pcb->flags & TF_IN_ACCEPT_QUEUE)
			return;
		if (pcb->listener)
			tcp_listen_forget(pcb);
		let_go(pcb);
	} else if (error) {
		tcp_event_raise(pcb, TCP_EV_ERROR);
	}
}

void tcp_pcb_to_time_wait(struct tcp_pcb *pcb, uint64_t now_ns)
{
	tcp_metrics_save(pcb, now_ns);
	tcp_tw_add(pcb->table, pcb, now_ns);
	wind_up(pcb);
	pcb->state = TCPS_TIME_WAIT;
	if (pcb->flags & TF_ORPHAN) {
		pcb->state = TCPS_CLOSED;
		let_go(pcb);
	}
}

static ALWAYS_INLINE void enqueue(struct tcp_pcb *pcb, struct pkt *pkt, uint8_t flags)
{
	struct tcp_seg *seg = tcp_seg(pkt);

	list_init(&seg->order);
	seg->seq = pcb->snd_end;
	seg->flags = flags;
	seg->sent_cnt = 0;
	list_push_back(&pcb->snd_queue, &pkt->link);
	pcb->snd_end += pkt->len + !!(flags & SEG_FIN);
	if (!pcb->unsent)
		pcb->unsent = pkt;
}

static void queue_fin(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->fin.refs = 1;
	list_init(&pcb->fin.link);
	enqueue(pcb, &pcb->fin, SEG_FIN);
	pcb->flags |= TF_FIN_QUEUED;
	pcb->is_quiet = false;
	if (pcb->state == TCPS_ESTABLISHED)
		pcb->state = TCPS_FIN_WAIT_1;
	else if (pcb->state == TCPS_CLOSE_WAIT)
		pcb->state = TCPS_LAST_ACK;
	tcp_out_push(pcb, now_ns);
}

void tcp_close(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool has_unread = !list_is_empty(&pcb->rcv_queue);

	switch ((enum tcp_state)pcb->state) {
	case TCPS_LISTEN:
		tcp_listen_close(pcb, now_ns);
		pcb->state = TCPS_CLOSED;
		let_go(pcb);
		return;
	case TCPS_CLOSED:
	case TCPS_SYN_SENT:
	case TCPS_TIME_WAIT:
		pcb->flags |= TF_ORPHAN;
		if (pcb->state == TCPS_SYN_SENT)
			tcp_pcb_die(pcb, 0);
		else
			let_go(pcb);
		return;
	default:
		break;
	}
	/* RFC 1122 section 4.2.2.13: the peer learns that data was lost */
	if (has_unread) {
		tcp_abort(pcb, now_ns);
		return;
	}
	pcb->flags |= TF_ORPHAN;
	pcb->is_quiet = false;
	pcb->events = 0;
	list_remove(&pcb->event_link);
	if (pcb->state == TCPS_FIN_WAIT_2) {
		if (pcb->settings->fin_wait_2_ns == TCP_NO_FIN_WAIT_2)
			tcp_abort(pcb, now_ns);
		else
			tcp_timer_set_fin_wait_2(pcb, now_ns);
	} else if (!(pcb->flags & TF_FIN_QUEUED)) {
		queue_fin(pcb, now_ns);
	}
}

void tcp_abort(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (tcp_is_synchronised(pcb) && pcb->state != TCPS_TIME_WAIT)
		tcp_out_reset(pcb, now_ns);
	else if (pcb->state == TCPS_SYN_RCVD)
		tcp_out_reset(pcb, now_ns);
	if (pcb->state == TCPS_LISTEN) {
		tcp_close(pcb, now_ns);
		return;
	}
	wind_up(pcb);
	pcb->state = TCPS_CLOSED;
	let_go(pcb);
}

void tcp_drop(struct tcp_pcb *pcb)
{
	wind_up(pcb);
	pcb->state = TCPS_CLOSED;
	pcb->flags |= TF_UNSEEN;
	let_go(pcb);
}

/* ---- opening ---- */

int tcp_bind(struct tcp_pcb *pcb, const struct ip_addr *addr, __be16 port)
{
	if (pcb->state != TCPS_CLOSED || pcb->error || !port ||
	    pcb->key.local_port)
		return -EINVAL;
	pcb->key.local = *addr;
	pcb->key.local_port = port;
	return 0;
}

void tcp_pcb_restore_cc(struct tcp_pcb *pcb)
{
	pcb->cc_ops = algorithms[pcb->cc_id];
	pcb->cc_ops->init(pcb);
	/* It hears of each acknowledgment: see tcp_recovery_grow. */
	if (pcb->cc_ops->model && tcp_is_synchronised(pcb))
		pcb->flags |= TF_CWND_LIMITED;
}

void tcp_pcb_established(struct tcp_pcb *pcb, uint64_t now_ns)
{
	/* with a cookie no SYN was lost, and no round trip measured */
	bool is_careful = pcb->backoff || pcb->timeouts, was_lost = pcb->timeouts;

	tcp_metrics_use_pmtu(pcb, now_ns);
	tcp_rate_begin(pcb, now_ns);
	/* RFC 6298 section 5.7, RFC 5681 section 3.1: after a lost SYN we start
	 * carefully. */
	if (is_careful) {
		pcb->backoff = pcb->timeouts = 0;
		if (pcb->timeout_since)
			tcp_stats_repaired(pcb, now_ns);
		tcp_rtt_be_careful(pcb);
	} else {
		tcp_rtt_take(pcb, MAX(now_ns - pcb->progress_ns, UINT64_C(1)),
			     now_ns);
	}
	pcb->state = TCPS_ESTABLISHED;
	tcp_fast_init(pcb);
	pcb->cwnd = was_lost ? pcb->mss : tcp_cc_initial_window(pcb);
	pcb->ssthresh = TCP_SSTHRESH_NONE;
	tcp_metrics_use(pcb, now_ns);
	tcp_recovery_begin_snd_buf(pcb);
	tcp_pcb_restore_cc(pcb);
	pcb->quick_acks_left = pcb->table->params.quick_acks;
	tcp_rx_resume_quick_acks(pcb);
	tcp_rx_note_len(pcb, TCP_RCV_MSS_LEAST);
	pcb->tune_start_ns = now_ns;
	pcb->progress_ns = now_ns;
	pcb->rtx_kind = RTX_NONE;
	pcb->rtx_at_ns = 0;
	tcp_timer_restart_keepalive(pcb, now_ns);
	/* The connection was closed, or shut down, before it was open. */
	if (pcb->flags & TF_FIN_QUEUED)
		pcb->state = TCPS_FIN_WAIT_1;
	tcp_event_raise(pcb, TCP_EV_CONNECTED | TCP_EV_WRITABLE);
}

struct tcp_pcb *tcp_find(struct tcp_table *table, const struct flow_key *key)
{
	return tcp_table_find(table, key);
}

struct tcp_pcb *tcp_find_listener(struct tcp_table *table,
				  const struct flow_key *key)
{
	struct tcp_listener *listener = tcp_table_find_listener(table, key);

	return listener ? listener->pcb : NULL;
}

bool tcp_may_choose(struct tcp_table *table, const struct flow_key *key,
		    uint64_t now_ns)
{
	return !tcp_table_find(table, key) &&
	       tcp_tw_may_choose(table, key, now_ns);
}

/* Reserves the four-tuple and makes the pcb ready to send a SYN. */
static int open_key(struct tcp_pcb *pcb, const struct ip_addr *addr,
		    __be16 port, const struct tcp_path *path, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	struct flow_key key = pcb->key;
	uint32_t isn;
	int rc;

	if (pcb->state != TCPS_CLOSED || pcb->error || !key.local_port || !port)
		return -EINVAL;
	key.remote = *addr;
	key.remote_port = port;
	if (tcp_table_find(pcb->table, &key))
		return -EADDRINUSE;
	isn = tcp_isn(pcb->table, &key, now_ns);
	if (tcp_tw_has(pcb->table, &key) &&
	    !tcp_tw_take(pcb->table, &key, &isn))
		return -EADDRINUSE;
	tcp_pcb_set_key(pcb, &key, isn);
	rc = tcp_table_insert(pcb->table, pcb);
	if (rc)
		return rc;
	pcb->path = *path;
	pcb->mss_peer = UINT16_MAX;
	pcb->flags |= (params->with_sack ? TF_SACK : 0) |
		      (params->with_timestamps ? TF_TS : 0) |
		      (params->with_window_scale ? TF_SCALE : 0);
	pcb->rcv_scale = params->with_window_scale ? tcp_rcv_scale(pcb) : 0;
	tcp_pcb_update_mss(pcb);
	pcb->state = TCPS_SYN_SENT;
	pcb->progress_ns = now_ns;
	return 0;
}

static void send_syn(struct tcp_pcb *pcb, uint64_t now_ns)
{
	tcp_out_syn(pcb, now_ns);
	tcp_timer_rearm_rtx(pcb, now_ns);
}

int tcp_connect(struct tcp_pcb *pcb, const struct ip_addr *addr, __be16 port,
		const struct tcp_path *path, uint64_t now_ns)
{
	int rc = open_key(pcb, addr, port, path, now_ns);

	if (!rc)
		send_syn(pcb, now_ns);
	return rc;
}

int tcp_connect_held(struct tcp_pcb *pcb, const struct ip_addr *addr,
		     __be16 port, const struct tcp_path *path, uint64_t now_ns)
{
	int rc = -EOPNOTSUPP;

	if (pcb->table->params.fastopen & TCP_FASTOPEN_CLIENT)
		rc = open_key(pcb, addr, port, path, now_ns);
	if (!rc)
		pcb->fastopen |= FASTOPEN_HELD;
	return rc;
}

void tcp_open_held(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns)
{
	pcb->fastopen &= (uint8_t)~FASTOPEN_HELD;
	if (pkt && pkt->len)
		enqueue(pcb, pkt, SEG_PUSH);
	else
		pkt_put(pkt);
	if (UNLIKELY(pcb->state != TCPS_SYN_SENT)) {
		tcp_out_push(pcb, now_ns);
		return;
	}
	pcb->progress_ns = now_ns;
	tcp_fastopen_begin(pcb, now_ns);
	send_syn(pcb, now_ns);
}

int tcp_connect_fast(struct tcp_pcb *pcb, const struct ip_addr *addr,
		     __be16 port, const struct tcp_path *path, struct pkt *pkt,
		     uint64_t now_ns)
{
	int rc = tcp_connect_held(pcb, addr, port, path, now_ns);

	if (!rc)
		tcp_open_held(pcb, pkt, now_ns);
	return rc;
}

bool tcp_is_early(const struct tcp_pcb *pcb)
{
	bool is_opening = pcb->state == TCPS_SYN_SENT ||
			  pcb->state == TCPS_SYN_RCVD;

	return tcp_is_pending(pcb) ||
	       (is_opening && pcb->unsent && pcb->unsent->len);
}

/* ---- writing ---- */

static uint32_t queued(const struct tcp_pcb *pcb)
{
	return pcb->snd_end - pcb->snd_una;
}

static int check_writable(const struct tcp_pcb *pcb)
{
	if (pcb->flags & TF_FIN_QUEUED)
		return -EPIPE;
	switch ((enum tcp_state)pcb->state) {
	case TCPS_SYN_SENT:
	case TCPS_SYN_RCVD:
	case TCPS_ESTABLISHED:
	case TCPS_CLOSE_WAIT:
		return 0;
	default:
		return pcb->error ? pcb->error : -ENOTCONN;
	}
}

static ALWAYS_INLINE int write_pkt(struct tcp_pcb *pcb, struct pkt *pkt,
				   uint8_t seg_flags)
{
	int rc;

	if (UNLIKELY(pcb->state != TCPS_ESTABLISHED)) {
		rc = check_writable(pcb);
		if (rc)
			return rc;
	}
	if (UNLIKELY(queued(pcb) >= pcb->snd_buf))
		return -ENOBUFS;
	if (UNLIKELY(!pkt->len)) {
		pkt_put(pkt);
		return 0;
	}
	enqueue(pcb, pkt, seg_flags);
	return 0;
}

int tcp_write(struct tcp_pcb *pcb, struct pkt *pkt)
{
	return write_pkt(pcb, pkt, SEG_PUSH);
}

/* SEG_OF_END of what is written so, but for SEG_STAMP. */
static uint8_t end_flags(unsigned flags)
{
	return (uint8_t)((flags & TCP_WRITE_MORE ? SEG_MORE : SEG_PUSH) |
			 (flags & TCP_WRITE_EOR ? SEG_EOR : 0));
}

int tcp_write_with(struct tcp_pcb *pcb, struct pkt *pkt, unsigned flags)
{
	bool is_stamped = flags & TCP_WRITE_STAMP && pkt->len;
	uint8_t seg_flags = end_flags(flags);
	int rc;

	if (is_stamped)
		seg_flags |= SEG_STAMP;
	rc = write_pkt(pcb, pkt, seg_flags);
	if (rc)
		return rc;
	if (is_stamped) {
		pcb->stamp_cnt++;
		pcb->is_quiet = false;
	}
	if (flags & TCP_WRITE_URGENT)
		tcp_urgent_mark_end(pcb);
	return 0;
}

uint32_t tcp_extend_room(const struct tcp_pcb *pcb)
{
	const unsigned ends = SEG_SENT | SEG_FIN | SEG_EOR | SEG_STAMP;
	struct pkt *last;

	if (!pcb->unsent || check_writable(pcb))
		return 0;
	last = pkt_from_link(pcb->snd_queue.prev);
	/* a borrower shows other bytes behind its end, and so does who borrows it */
	if (tcp_seg(last)->flags & ends || last->refs != 1 || last->lender ||
	    last->len >= pcb->mss)
		return 0;
	return MIN(pkt_tailroom(last), pcb->mss - last->len);
}

uint8_t *tcp_extend(struct tcp_pcb *pcb, uint32_t len, unsigned flags)
{
	struct pkt *last = pkt_from_link(pcb->snd_queue.prev);
	struct tcp_seg *seg = tcp_seg(last);

	INVARIANT(len <= tcp_extend_room(pcb), "longer than there is room");
	INVARIANT(!(flags & TCP_WRITE_STAMP), "who follows a byte asks with a packet");
	last->flags &= (uint8_t)~PKT_HAS_SUM;
	seg->flags = (uint8_t)((seg->flags & ~SEG_OF_END) | end_flags(flags));
	pcb->snd_end += len;
	if (flags & TCP_WRITE_URGENT)
		tcp_urgent_mark_end(pcb);
	return pkt_append(last, len);
}

uint32_t tcp_sndbuf(const struct tcp_pcb *pcb)
{
	uint32_t used = queued(pcb);

	if (check_writable(pcb) || used >= pcb->snd_buf ||
	    pcb->snd_end - pcb->snd_nxt >= pcb->settings->notsent_lowat)
		return 0;
	return MAX(pcb->snd_buf - used, pcb->mss);
}

bool tcp_has_room(const struct tcp_pcb *pcb)
{
	return tcp_pcb_has_room(pcb);
}

bool tcp_is_split(const struct tcp_pcb *pcb)
{
	return pcb->slow_out & SLOW_SPLIT;
}

uint32_t tcp_mss(const struct tcp_pcb *pcb)
{
	return pcb->mss;
}

int tcp_shutdown(struct tcp_pcb *pcb, uint64_t now_ns)
{
	int rc = check_writable(pcb);

	if (rc)
		return rc == -EPIPE ? 0 : rc;
	queue_fin(pcb, now_ns);
	return 0;
}

/* ---- looking ---- */

void tcp_set_user(struct tcp_pcb *pcb, void *user)
{
	pcb->user = user;
}

void *tcp_user(const struct tcp_pcb *pcb)
{
	return pcb->user;
}

int tcp_error(const struct tcp_pcb *pcb)
{
	return pcb->error;
}

enum tcp_state tcp_state(const struct tcp_pcb *pcb)
{
	return pcb->state;
}

const struct flow_key *tcp_key(const struct tcp_pcb *pcb)
{
	return &pcb->key;
}

void tcp_get_info(const struct tcp_pcb *pcb, struct tcp_pcb_info *info_out)
{
	/* Linux assumes this before it has seen a larger one */
	uint32_t rcv_mss_least = MIN(pcb->mss, 536u);

	*info_out = (struct tcp_pcb_info){
		.state = pcb->state,
		.snd_una = pcb->snd_una,
		.snd_nxt = pcb->snd_nxt,
		.snd_end = pcb->snd_end,
		.snd_wnd = pcb->snd_wnd,
		.rcv_nxt = pcb->rcv_nxt,
		.rcv_edge = pcb->rcv_edge,
		.cwnd = pcb->cwnd,
		.ssthresh = pcb->ssthresh,
		.in_flight = tcp_pipe(pcb),
		.mss = pcb->mss,
		.rcv_mss = MAX(pcb->rcv_mss, rcv_mss_least),
		.mss_offered = tcp_pcb_syn_mss(pcb),
		.pmtu = tcp_pmtu_present(pcb),
		.snd_buf = pcb->snd_buf,
		.rcv_buf = pcb->rcv_buf,
		.snd_queued = queued(pcb),
		.unsent = pcb->snd_end - pcb->snd_nxt,
		.rcv_unread = pcb->rcv_unread,
		.ooo_bytes = pcb->ooo_bytes,
		.rcv_memory = pcb->rcv_memory,
		.ooo_memory = pcb->ooo_memory,
		.urgent = pcb->urgent,
		.srtt_ns = pcb->srtt_ns,
		.rttvar_ns = pcb->rttvar_ns,
		.rto_ns = tcp_rto_ns(pcb),
		.min_rtt_ns = pcb->min_rtt_ns,
		.pacing_rate = tcp_pace_rate(pcb),
		.has_sack = pcb->flags & TF_SACK,
		.has_timestamps = pcb->flags & TF_TS,
		.has_window_scale = pcb->flags & TF_SCALE,
		.has_ecn = pcb->flags & TF_ECN,
		.has_accurate_ecn = pcb->is_accurate,
		.has_syn_data = pcb->fastopen & FASTOPEN_HAD_DATA,
		.is_opened_early = tcp_is_pending(pcb),
		.fastopen_failure = tcp_fastopen_failure(pcb),
		.has_timer = timer_is_pending(&pcb->timer),
		.is_recovering = pcb->recovery >= RECOVERY_CWR,
		.snd_scale = pcb->snd_scale,
		.rcv_scale = pcb->rcv_scale,
		.backoff = pcb->backoff,
		.timeouts = pcb->timeouts,
		.probes = pcb->probes,
		.retransmitted = pcb->retransmitted,
		.last_sent_ns = pcb->last_sent_ns,
		.last_rcvd_ns = pcb->last_rcvd_ns,
	};
}

void tcp_get_flight(struct tcp_pcb *pcb, struct tcp_flight *flight_out)
{
	struct pkt *pkt;

	memset(flight_out, 0, sizeof(*flight_out));
	LIST_FOR_EACH(pkt, &pcb->snd_queue, link) {
		const struct tcp_seg *seg = tcp_seg(pkt);

		if (!(seg->flags & SEG_SENT))
			break;
		flight_out->unacked++;
		if (seg->flags & SEG_SACKED)
			flight_out->sacked++;
		else if (seg->flags & SEG_LOST)
			flight_out->lost++;
		else if (seg->sent_cnt > 1)
			flight_out->resent++;
	}
}

/* ---- settings ---- */

static void set_flag(struct tcp_pcb *pcb, uint32_t flag, bool on)
{
	pcb->flags = on ? pcb->flags | flag : pcb->flags & ~flag;
}

void tcp_set_nodelay(struct tcp_pcb *pcb, bool on, uint64_t now_ns)
{
	set_flag(pcb, TF_NODELAY, on);
	if (on)
		tcp_out_push_held(pcb, now_ns);
}

void tcp_set_cork(struct tcp_pcb *pcb, bool on, uint64_t now_ns)
{
	set_flag(pcb, TF_CORK, on);
	if (!on)
		tcp_out_push_held(pcb, now_ns);
}

bool tcp_has_nodelay(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_NODELAY;
}

bool tcp_has_cork(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_CORK;
}

void tcp_set_quick_ack(struct tcp_pcb *pcb, bool on, uint64_t now_ns)
{
	if (!on) {
		tcp_rx_pause_quick_acks(pcb);
		pcb->is_talking = true;
		return;
	}
	tcp_rx_resume_quick_acks(pcb);
	if (pcb->delack_at_ns)
		tcp_out_ack(pcb, now_ns);
}

void tcp_set_rcv_lowat(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns)
{
	uint32_t most = pcb->table->params.rcv_buf_max;
	/* There must be room for two segments more. Otherwise the last bytes would
	 * wait for a window that is too small to be announced. */
	uint64_t wanted = (uint64_t)bytes + 2 * pcb->mss;

	if (pcb->flags & TF_RCV_BUF_FIXED || wanted <= pcb->rcv_buf)
		return;
	pcb->rcv_buf = tcp_rcv_buf_within(pcb, MIN(wanted, (uint64_t)most));
	pcb->is_header_stale = true;
	tcp_recved(pcb, 0, now_ns);
}

void tcp_set_rcv_buf(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns)
{
	pcb->flags |= TF_RCV_BUF_FIXED;
	pcb->rcv_buf = tcp_rcv_buf_within(pcb, bytes);
	pcb->is_header_stale = true;
	tcp_rx_prune(pcb);
	/* There is more room, and the peer should know. */
	tcp_recved(pcb, 0, now_ns);
}

void tcp_set_snd_buf(struct tcp_pcb *pcb, uint32_t bytes)
{
	pcb->flags |= TF_SND_BUF_FIXED;
	pcb->snd_buf = bytes;
}

int tcp_set_cc(struct tcp_pcb *pcb, enum tcp_cc_algorithm cc)
{
	if (cc >= TCP_CC_CNT)
		return -EINVAL;
	if (pcb->cc_id == cc)
		return 0;
	pcb->cc_id = (uint8_t)cc;
	if (!tcp_is_synchronised(pcb))
		return 0;
	/* the window is what the one before has left; the rate is no other's */
	pcb->pacing_rate = 0;
	tcp_pcb_restore_cc(pcb);
	tcp_pace_update(pcb);
	return 0;
}

void tcp_set_path(struct tcp_pcb *pcb, const struct tcp_path *path,
		  uint64_t now_ns)
{
	pcb->path = *path;
	pcb->pmtu = 0;
	if (pcb->state == TCPS_CLOSED || pcb->state == TCPS_LISTEN)
		return;
	tcp_pcb_update_mss(pcb);
	tcp_out_push(pcb, now_ns);
}
