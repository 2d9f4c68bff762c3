/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners: half-open connections, the queue for tcp_accept, limits on both, and
 * SYN cookies (RFC 4987 section 3.6) when the half-open ones are too many. The cookies of
 * Fast Open are others (tcp_fastopen.c).
 *
 * A cookie is our initial sequence number: 5 bits of a counter of 64 seconds, 3
 * bits of an index of segment sizes, 24 bits of a keyed hash of everything. Where
 * the peer has time stamps, the six low bits of ours carry what else the SYN
 * offered, since the echo brings them back.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

static const uint16_t cookie_mss[8] = { 216, 536,  1220, 1300,
					1360, 1400, 1440, 1460 };

enum {
	COOKIE_PERIOD_SHIFT = 36, /* nanoseconds: about 69 seconds */
	COOKIE_HASH_BITS = 24,
	COOKIE_TS_BITS = 6,
	COOKIE_TS_MASK = (1 << COOKIE_TS_BITS) - 1,
	COOKIE_TS_SACK = 1 << 4,
	COOKIE_TS_ECN = 1 << 5,
	COOKIE_TS_NO_SCALE = 15,
};

/* ---- life of a listener ---- */

static bool is_of_same_name(const struct tcp_listener *listener,
			    const struct tcp_pcb *pcb)
{
	return listener->pcb->key.local_port == pcb->key.local_port &&
	       ip_addr_eq(&listener->pcb->key.local, &pcb->key.local);
}

static int listen_as(struct tcp_pcb *pcb, uint32_t backlog, bool is_shared,
		     bool yields)
{
	struct tcp_table *table = pcb->table;
	struct list *bucket = tcp_table_listeners(table, pcb->key.local_port);
	struct tcp_listener *listener;

	if (pcb->state != TCPS_CLOSED || !pcb->key.local_port || pcb->error)
		return -EINVAL;
	LIST_FOR_EACH(listener, bucket, link)
		if (is_of_same_name(listener, pcb) &&
		    !(is_shared && listener->is_shared))
			return -EADDRINUSE;
	listener = table->ops->alloc(table->ctx, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->pcb = pcb;
	listener->backlog = MAX(backlog, 1u);
	listener->is_shared = is_shared;
	listener->yields = yields;
	list_init(&listener->half_open);
	list_init(&listener->accept_queue);
	list_init(&listener->early);
	list_push_back(bucket, &listener->link);
	pcb->listener = listener;
	pcb->state = TCPS_LISTEN;
	return 0;
}

int tcp_listen(struct tcp_pcb *pcb, uint32_t backlog)
{
	return listen_as(pcb, backlog, false, false);
}

int tcp_listen_shared(struct tcp_pcb *pcb, uint32_t backlog, bool yields)
{
	return listen_as(pcb, backlog, true, yields);
}

void tcp_set_backlog(struct tcp_pcb *pcb, uint32_t backlog)
{
	if (pcb->state == TCPS_LISTEN)
		pcb->listener->backlog = MAX(backlog, 1u);
}

uint32_t tcp_accept_cnt(const struct tcp_pcb *pcb)
{
	return pcb->state == TCPS_LISTEN ? pcb->listener->accept_cnt : 0;
}

uint32_t tcp_child_cnt(const struct tcp_pcb *pcb)
{
	return pcb->state != TCPS_LISTEN ? 0 :
					   pcb->listener->accept_cnt +
						   pcb->listener->half_open_cnt;
}

struct tcp_pcb *tcp_accept(struct tcp_pcb *pcb)
{
	struct tcp_listener *listener = pcb->listener;
	struct tcp_pcb *child;
	struct list *link;

	if (pcb->state != TCPS_LISTEN)
		return NULL;
	link = list_pop_front(&listener->accept_queue);
	if (!link)
		return NULL;
	child = LIST_ENTRY(link, struct tcp_pcb, child_link);
	listener->accept_cnt--;
	child->listener = NULL;
	child->flags &= ~(TF_IN_ACCEPT_QUEUE | TF_UNSEEN);
	tcp_fast_update(child);
	/* Nobody was told of what happened while it waited. */
	if (!list_is_empty(&child->rcv_queue) || child->flags & TF_FIN_RCVD)
		tcp_event_raise(child, TCP_EV_READABLE);
	if (child->error)
		tcp_event_raise(child, TCP_EV_ERROR);
	return child;
}

void tcp_accept_undo(struct tcp_pcb *pcb, struct tcp_pcb *child)
{
	struct tcp_listener *listener = pcb->listener;

	INVARIANT(pcb->state == TCPS_LISTEN, "it was accepted from a listener");
	child->listener = listener;
	child->flags |= TF_IN_ACCEPT_QUEUE | TF_UNSEEN;
	tcp_fast_update(child);
	list_push_back(&listener->accept_queue, &child->child_link);
	listener->accept_cnt++;
}

/* Another listener of the same name, of those that share it, for a child of one that is
 * not in the table any more, or NULL. */
static struct tcp_listener *heir_of(const struct tcp_listener *listener,
				    const struct tcp_pcb *child)
{
	struct tcp_table *table = child->table;
	struct tcp_listener *heir = NULL;

	if (listener->is_shared && table->params.migrates_children)
		heir = tcp_table_find_listener(table, &child->key);
	return heir && is_of_same_name(heir, listener->pcb) &&
			       heir->yields == listener->yields ?
		       heir :
		       NULL;
}

/* As in Linux, however many wait there. */
static bool migrate(struct tcp_listener *listener, struct tcp_pcb *child)
{
	struct tcp_listener *heir = heir_of(listener, child);

	if (!heir)
		return false;
	child->listener = heir;
	child->user = heir->pcb->user;
	if (!(child->flags & TF_IN_ACCEPT_QUEUE)) {
		list_push_back(&heir->half_open, &child->child_link);
		heir->half_open_cnt++;
		return true;
	}
	list_push_back(&heir->accept_queue, &child->child_link);
	heir->accept_cnt++;
	tcp_event_raise(heir->pcb, TCP_EV_ACCEPT);
	return true;
}

static void end_children(struct tcp_listener *listener, struct list *children,
			 uint64_t now_ns)
{
	struct list *link;

	while ((link = list_pop_front(children))) {
		struct tcp_pcb *child = LIST_ENTRY(link, struct tcp_pcb,
						   child_link);

		if (migrate(listener, child))
			continue;
		child->listener = NULL;
		child->flags &= ~TF_IN_ACCEPT_QUEUE;
		tcp_abort(child, now_ns);
	}
}

/* What it has sent may come back to those with whom it shared the port. */
static void leave_cookies(const struct tcp_listener *listener)
{
	const struct tcp_pcb *pcb = listener->pcb;
	struct tcp_listener *other;

	LIST_FOR_EACH(other, tcp_table_listeners(pcb->table, pcb->key.local_port),
		      link)
		if (is_of_same_name(other, pcb))
			other->cookie_ns = MAX(other->cookie_ns,
					       listener->cookie_ns);
}

void tcp_listen_close(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_listener *listener = pcb->listener;
	struct tcp_table *table = pcb->table;

	list_remove(&listener->link);
	leave_cookies(listener);
	tcp_fastopen_forget(listener);
	end_children(listener, &listener->half_open, now_ns);
	end_children(listener, &listener->accept_queue, now_ns);
	pcb->listener = NULL;
	table->ops->release(table->ctx, listener, sizeof(*listener));
}

/* ---- children ---- */

void tcp_listen_forget(struct tcp_pcb *child)
{
	struct tcp_listener *listener = child->listener;

	if (child->flags & TF_IN_ACCEPT_QUEUE)
		listener->accept_cnt--;
	else
		listener->half_open_cnt--;
	list_remove(&child->child_link);
	child->flags &= ~TF_IN_ACCEPT_QUEUE;
	child->listener = NULL;
}

static bool has_room(const struct tcp_listener *listener)
{
	return listener->accept_cnt < listener->backlog;
}

bool tcp_listen_promote(struct tcp_pcb *child)
{
	struct tcp_listener *listener = child->listener;

	if (!has_room(listener))
		return false;
	list_remove(&child->child_link);
	listener->half_open_cnt--;
	listener->accept_cnt++;
	list_push_back(&listener->accept_queue, &child->child_link);
	child->flags |= TF_IN_ACCEPT_QUEUE;
	tcp_event_raise(listener->pcb, TCP_EV_ACCEPT);
	return true;
}

static void inherit(struct tcp_pcb *child, struct tcp_pcb *listener)
{
	child->flags |= listener->flags &
			(TF_NODELAY | TF_CORK | TF_QUICK_ACK | TF_KEEPALIVE |
			 TF_RCV_BUF_FIXED | TF_SND_BUF_FIXED | TF_OOB_INLINE);
	child->rcv_buf = listener->rcv_buf;
	child->snd_buf = listener->snd_buf;
	tcp_settings_share(child, listener);
	child->cc_id = listener->cc_id;
	child->user = listener->user;
}

/* Makes a pcb for a peer's SYN. It is in the table, but not yet on any list of the
 * listener. */
static struct tcp_pcb *child_create(struct tcp_listener *listener,
				    const struct flow_key *key, uint32_t iss,
				    struct tcp_segment *syn, uint64_t now_ns)
{
	struct tcp_table *table = listener->pcb->table;
	struct tcp_path path;
	struct tcp_pcb *child;

	if (!table->ops->path(table->ctx, key, &path))
		return NULL;
	child = tcp_pcb_create(table);
	if (!child)
		return NULL;
	inherit(child, listener->pcb);
	child->flags |= TF_PASSIVE | TF_UNSEEN;
	child->path = path;
	tcp_pcb_set_key(child, key, iss);
	child->state = TCPS_SYN_RCVD;
	child->progress_ns = now_ns;
	tcp_pcb_apply_syn(child, syn, now_ns);
	if (tcp_table_insert(table, child)) {
		tcp_pcb_free(child);
		return NULL;
	}
	child->listener = listener;
	return child;
}

/* As in Linux, a connection for whose SYN there is no memory goes without. */
static void save_syn(struct tcp_pcb *child, const struct tcp_segment *in)
{
	uint32_t front = child->settings->saved_syn_front;
	uint32_t len = front + in->header_len;
	struct tcp_table *table = child->table;
	struct tcp_saved_syn *syn;

	if (LIKELY(!front) || pkt_headroom(in->pkt) < len ||
	    !tcp_extra_get(child))
		return;
	syn = table->ops->alloc(table->ctx, sizeof(*syn));
	if (!syn)
		return;
	syn->len = len;
	memcpy(syn->bytes, in->pkt->data - len, len);
	child->extra->saved_syn = syn;
}

uint32_t tcp_take_saved_syn(struct tcp_pcb *pcb, uint8_t to[TCP_SAVED_SYN_MAX])
{
	const struct tcp_saved_syn *syn = pcb->extra ? pcb->extra->saved_syn :
						       NULL;
	uint32_t len = 0;

	if (syn) {
		len = syn->len;
		memcpy(to, syn->bytes, len);
		tcp_saved_syn_free(pcb);
	}
	return len;
}

void tcp_saved_syn_free(struct tcp_pcb *pcb)
{
	struct tcp_table *table = pcb->table;

	if (LIKELY(!pcb->extra || !pcb->extra->saved_syn))
		return;
	table->ops->release(table->ctx, pcb->extra->saved_syn,
			    sizeof(*pcb->extra->saved_syn));
	pcb->extra->saved_syn = NULL;
}

static bool is_over_rate(struct tcp_listener *listener, uint64_t now_ns)
{
	return !tcp_limit_allows(&listener->syn_limit,
				 listener->pcb->table->params.syns_per_sec,
				 now_ns);
}

static void send_cookie(struct tcp_listener *listener,
			const struct flow_key *key, struct tcp_segment *in,
			uint64_t now_ns);

void tcp_listen_syn(struct tcp_table *table, struct tcp_listener *listener,
		    const struct flow_key *key, struct tcp_segment *in,
		    uint32_t isn, uint64_t now_ns)
{
	enum tcp_fastopen_verdict verdict;
	struct tcp_pcb *child;

	if (is_over_rate(listener, now_ns) || !has_room(listener)) {
		table->counts.syn_dropped++;
		return;
	}
	verdict = tcp_fastopen_judge(listener, key, in, now_ns);
	if (verdict < FASTOPEN_EARLY &&
	    listener->half_open_cnt >= table->params.half_open_max) {
		if (table->params.with_syn_cookies)
			send_cookie(listener, key, in, now_ns);
		else
			table->counts.syn_dropped++;
		return;
	}
	child = child_create(listener, key, isn, in, now_ns);
	if (!child) {
		table->counts.syn_dropped++;
		return;
	}
	save_syn(child, in);
	list_push_back(&listener->half_open, &child->child_link);
	listener->half_open_cnt++;
	if (verdict == FASTOPEN_GRANT || verdict == FASTOPEN_EARLY_AND_GRANT)
		child->fastopen |= FASTOPEN_GRANTS;
	/* there is room in the queue, see above */
	if (verdict >= FASTOPEN_EARLY && tcp_fastopen_accept(child, in, now_ns))
		(void)!tcp_listen_promote(child);
	tcp_out_syn(child, now_ns);
	tcp_timer_rearm_rtx(child, now_ns);
}

/* ---- cookies ---- */

static uint32_t cookie_hash(const struct tcp_table *table,
			    const struct flow_key *key, uint32_t peer_isn,
			    uint64_t period, unsigned mss_index)
{
	struct {
		struct flow_key key;
		uint64_t period;
		uint32_t peer_isn;
		uint32_t mss_index;
	} input = { *key, period, peer_isn, mss_index };

	return (uint32_t)hash_sip(&table->params.secret, &input,
				  sizeof(input)) &
	       ((1u << COOKIE_HASH_BITS) - 1);
}

static uint32_t cookie_make(const struct tcp_table *table,
			    const struct flow_key *key, uint32_t peer_isn,
			    uint64_t period, unsigned mss_index)
{
	return (uint32_t)(period & 31) << 27 |
	       mss_index << COOKIE_HASH_BITS |
	       cookie_hash(table, key, peer_isn, period, mss_index);
}

/* The largest size of the table that the peer can take. */
static unsigned mss_index_of(uint16_t mss)
{
	unsigned index = ARRAY_LEN(cookie_mss) - 1;

	while (index && cookie_mss[index] > mss)
		index--;
	return index;
}

/* Our clock, with the SYN's offers in the low bits. It never runs ahead of itself. */
static uint32_t cookie_ts(uint32_t ts_now, const struct tcp_options *offered,
			  const struct tcp_params *params, bool wants_ecn)
{
	uint32_t bits = COOKIE_TS_NO_SCALE, ts;

	if (offered->has_scale && params->with_window_scale)
		bits = offered->scale;
	if (offered->has_sack_ok && params->with_sack)
		bits |= COOKIE_TS_SACK;
	if (wants_ecn && params->ecn)
		bits |= COOKIE_TS_ECN;
	ts = (ts_now & ~(uint32_t)COOKIE_TS_MASK) | bits;
	return seq_after(ts, ts_now) ? ts - COOKIE_TS_MASK - 1 : ts;
}

/* The options that a SYN-ACK with a cookie grants. */
static uint16_t cookie_window(const struct tcp_pcb *pcb)
{
	return (uint16_t)MIN(pcb->rcv_buf, (uint32_t)UINT16_MAX);
}

static void send_cookie(struct tcp_listener *listener,
			const struct flow_key *key, struct tcp_segment *in,
			uint64_t now_ns)
{
	struct tcp_table *table = listener->pcb->table;
	const struct tcp_params *params = &table->params;
	const struct tcp_options *offered = &in->options;
	uint16_t mss = offered->mss ? offered->mss : cookie_mss[1];
	bool wants_ecn = (in->flags & (WIRE_TCP_ECE | WIRE_TCP_CWR)) ==
			 (WIRE_TCP_ECE | WIRE_TCP_CWR);
	uint32_t ts_now = (uint32_t)(now_ns / NS_PER_MS) +
			  tcp_ts_offset(table, key);
	struct tcp_options options = { 0 };
	uint8_t flags = WIRE_TCP_SYN | WIRE_TCP_ACK;
	struct tcp_path path;

	if (!table->ops->path(table->ctx, key, &path))
		return;
	options.mss = tcp_syn_mss(listener->pcb, &path, key);
	if (offered->has_ts && params->with_timestamps) {
		options.has_ts = true;
		options.ts_val = cookie_ts(ts_now, offered, params, wants_ecn);
		options.ts_ecr = offered->ts_val;
		options.has_sack_ok = offered->has_sack_ok && params->with_sack;
		options.has_scale = offered->has_scale &&
				    params->with_window_scale;
		options.scale = tcp_rcv_scale(listener->pcb);
		if (wants_ecn && params->ecn)
			flags |= WIRE_TCP_ECE;
	}
	listener->cookie_ns = now_ns;
	table->counts.cookies_sent++;
	tcp_out_stateless(table, key, flags,
			  cookie_make(table, key, in->seq,
				      now_ns >> COOKIE_PERIOD_SHIFT,
				      mss_index_of(mss)),
			  in->seq + 1,
			  cookie_window(listener->pcb),
			  &options);
}

/* Returns the index of the segment size, or -1 if we never sent this cookie. */
static int cookie_check(const struct tcp_table *table,
			const struct flow_key *key, uint32_t cookie,
			uint32_t peer_isn, uint64_t now_ns)
{
	unsigned mss_index = cookie >> COOKIE_HASH_BITS & 7;
	uint64_t period = now_ns >> COOKIE_PERIOD_SHIFT;

	for (uint64_t age = 0; age < 2 && age <= period; age++)
		if (cookie == cookie_make(table, key, peer_isn, period - age,
					  mss_index))
			return (int)mss_index;
	return -1;
}

/* Restores the SYN as it must have been. */
static void rebuild_syn(const struct tcp_segment *ack, int mss_index,
			struct tcp_segment *syn)
{
	uint32_t bits = ack->options.ts_ecr & COOKIE_TS_MASK;

	memset(syn, 0, sizeof(*syn));
	syn->seq = ack->seq - 1;
	syn->flags = WIRE_TCP_SYN;
	syn->options.mss = cookie_mss[mss_index];
	if (!ack->options.has_ts)
		return;
	syn->options.has_ts = true;
	syn->options.ts_val = ack->options.ts_val;
	syn->options.has_sack_ok = bits & COOKIE_TS_SACK;
	syn->options.has_scale = (bits & 15) != COOKIE_TS_NO_SCALE;
	syn->options.scale = bits & 15;
	if (bits & COOKIE_TS_ECN)
		syn->flags |= WIRE_TCP_ECE | WIRE_TCP_CWR;
}

/* As in Linux, any of those that share the port may have sent it. */
static bool has_open_cookies(const struct tcp_listener *listener,
			     uint64_t now_ns)
{
	const struct tcp_pcb *pcb = listener->pcb;
	const struct tcp_listener *other;

	LIST_FOR_EACH(other, tcp_table_listeners(pcb->table, pcb->key.local_port),
		      link)
		if (other->cookie_ns && is_of_same_name(other, pcb) &&
		    now_ns - other->cookie_ns <=
			    UINT64_C(2) << COOKIE_PERIOD_SHIFT)
			return true;
	return false;
}

/* The cookie is bound to the peer's initial sequence number, so only the first
 * segments behind it can be checked. Where those were lost or late, others come
 * first; a reset would end a connection that the peer believes in, while its
 * retransmission will pass. One stray segment in sixteen looks like this. */
bool tcp_listen_may_be_cookie(const struct tcp_listener *listener,
			      const struct tcp_segment *in, uint64_t now_ns)
{
	uint64_t period = now_ns >> COOKIE_PERIOD_SHIFT;
	uint32_t counter = (in->ack - 1) >> 27;

	return has_open_cookies(listener, now_ns) &&
	       (counter == (period & 31) || counter == ((period - 1) & 31));
}

struct tcp_pcb *tcp_listen_cookie(struct tcp_table *table,
				  struct tcp_listener *listener,
				  const struct flow_key *key,
				  struct tcp_segment *in, uint64_t now_ns)
{
	struct tcp_segment syn;
	struct tcp_pcb *child;
	int mss_index;

	if (!has_open_cookies(listener, now_ns) || in->flags & WIRE_TCP_SYN)
		return NULL;
	mss_index = cookie_check(table, key, in->ack - 1, in->seq - 1, now_ns);
	if (mss_index < 0 || !has_room(listener)) {
		table->counts.cookies_bad++;
		return NULL;
	}
	rebuild_syn(in, mss_index, &syn);
	child = child_create(listener, key, in->ack - 1, &syn, now_ns);
	if (!child)
		return NULL;
	table->counts.cookies_accepted++;
	/* No round trip was measured, because we no longer know when the SYN-ACK left. */
	child->backoff = 1;
	child->rcv_edge += cookie_window(child);
	list_push_back(&listener->half_open, &child->child_link);
	listener->half_open_cnt++;
	return child;
}
