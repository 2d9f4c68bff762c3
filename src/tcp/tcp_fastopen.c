/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fast Open (RFC 7413): data in SYNs. A listener knows the addresses of who was there
 * before by a cookie that it has given them and can compute again; who connects keeps
 * the cookies of others with what else is known of them (tcp_peers.h). Cookies are as
 * Linux makes them, so that with the same key both know each other's.
 */
#include "tcp/tcp_cc.h"
#include "tcp/tcp_priv.h"

#include <errno.h>

/* What is lost with data in it is not sent so again for this long, and twice as long after
 * each further loss (RFC 7413 section 4.1.3.1). */
#define LOSS_PAUSE_NS (60 * NS_PER_SEC)
/* The limit of pending children counts one that was reset for so long: a reset must not
 * make room for the next SYN of a flood (RFC 7413 section 5.1). */
#define RESET_LIFE_NS (60 * NS_PER_SEC)

enum {
	/* of ours */
	COOKIE_LEN = 8,
	/* a path is not tried again after the third timeout in a row */
	BLACK_HOLE_TIMEOUTS = 2,
	LOSSES_MAX = 16,
	PAUSE_DOUBLINGS_MAX = 6,
};

/* ---- keys and cookies ---- */

void tcp_fastopen_init(struct tcp_table *table)
{
	const struct hash_key *secret = &table->params.secret;
	const struct hash_key key = {
		{ hash_sip(secret, "fast open 0", 11),
		  hash_sip(secret, "fast open 1", 11) },
	};

	tcp_set_fastopen_keys(table, &key, 1);
}

static void set_keys(struct tcp_fastopen_keys *to, const struct hash_key *keys,
		     unsigned cnt)
{
	to->cnt = MIN(cnt, (unsigned)TCP_FASTOPEN_KEYS);
	for (unsigned i = 0; i < to->cnt; i++)
		to->key[i] = keys[i];
}

void tcp_set_fastopen_keys(struct tcp_table *table, const struct hash_key *keys,
			   unsigned cnt)
{
	set_keys(&table->fastopen_keys, keys, cnt);
}

void tcp_set_listener_keys(struct tcp_pcb *listener, const struct hash_key *keys,
			   unsigned cnt)
{
	INVARIANT(listener->state == TCPS_LISTEN, "it listens");
	set_keys(&listener->listener->keys, keys, cnt);
}

/* `listener` may be gone: NULL. */
static const struct tcp_fastopen_keys *keys_of(const struct tcp_table *table,
					       const struct tcp_listener *listener)
{
	return listener && listener->keys.cnt ? &listener->keys
					      : &table->fastopen_keys;
}

static void make_cookie(const struct hash_key *hash_key,
			const struct flow_key *key, uint8_t *to)
{
	uint8_t input[2 * sizeof(struct ip_addr)];
	bool is_v4 = ip_addr_is_v4(&key->remote);
	size_t size = is_v4 ? 4 : sizeof(struct ip_addr);
	uint64_t hash;

	memcpy(input, key->remote.byte + sizeof(key->remote) - size, size);
	memcpy(input + size, key->local.byte + sizeof(key->local) - size, size);
	hash = htole64(hash_sip(hash_key, input, 2 * size));
	memcpy(to, &hash, COOKIE_LEN);
}

/* Returns the index of the key that made the cookie, or -1. */
static int check_cookie(const struct tcp_fastopen_keys *keys,
			const struct flow_key *key,
			const struct tcp_options *options)
{
	uint8_t cookie[COOKIE_LEN];

	if (options->cookie_len != COOKIE_LEN)
		return -1;
	for (unsigned i = 0; i < keys->cnt; i++) {
		make_cookie(&keys->key[i], key, cookie);
		if (memcmp(cookie, options->cookie, COOKIE_LEN) == 0)
			return (int)i;
	}
	return -1;
}

/* ---- listeners ---- */

static uint32_t pending_max(const struct tcp_listener *listener)
{
	uint32_t switches = listener->pcb->table->params.fastopen;
	uint32_t max = listener->pcb->settings->fastopen_max;

	if (!(switches & TCP_FASTOPEN_SERVER))
		return 0;
	return max || !(switches & TCP_FASTOPEN_LISTENERS) ? max
							   : listener->backlog;
}

static bool may_be_one_more(struct tcp_listener *listener, uint64_t now_ns)
{
	uint32_t max = pending_max(listener);

	if (now_ns - listener->early_reset_ns >= RESET_LIFE_NS)
		listener->early_resets = 0;
	if (!max || listener->early_cnt + listener->early_resets < max)
		return max;
	listener->pcb->table->counts.fastopen_overflows++;
	return false;
}

enum tcp_fastopen_verdict
tcp_fastopen_judge(struct tcp_listener *listener, const struct flow_key *key,
		   const struct tcp_segment *in, uint64_t now_ns)
{
	struct tcp_table *table = listener->pcb->table;
	bool needs_none =
		table->params.fastopen & TCP_FASTOPEN_SERVER_NO_COOKIE ||
		listener->pcb->settings->fastopen_no_cookie;
	int index;

	if ((!in->len && !in->options.has_cookie) ||
	    !may_be_one_more(listener, now_ns))
		return FASTOPEN_NO;
	if (needs_none)
		return FASTOPEN_EARLY;
	if (!in->options.has_cookie)
		return FASTOPEN_NO;
	if (!in->options.cookie_len)
		return FASTOPEN_GRANT;
	index = check_cookie(keys_of(table, listener), key, &in->options);
	if (index < 0) {
		table->counts.fastopen_refused++;
		return FASTOPEN_GRANT;
	}
	/* who comes with a cookie of the old key gets one of the new */
	return index ? FASTOPEN_EARLY_AND_GRANT : FASTOPEN_EARLY;
}

static bool make_pending(struct tcp_pcb *child)
{
	struct tcp_extra *extra = tcp_extra_get(child);

	if (!extra)
		return false;
	extra->early_of = child->listener;
	list_push_back(&child->listener->early, &extra->early_link);
	child->listener->early_cnt++;
	child->fastopen |= FASTOPEN_PENDING;
	return true;
}

bool tcp_fastopen_accept(struct tcp_pcb *child, struct tcp_segment *in,
			 uint64_t now_ns)
{
	struct tcp_table *table = child->table;

	if (!make_pending(child))
		return false;
	table->counts.fastopen_accepted++;
	child->state = TCPS_ESTABLISHED;
	tcp_metrics_use_pmtu(child, now_ns);
	tcp_fast_init(child);
	child->cwnd = tcp_cc_initial_window(child);
	child->ssthresh = TCP_SSTHRESH_NONE;
	tcp_recovery_begin_snd_buf(child);
	tcp_pcb_restore_cc(child);
	child->snd_wnd = child->snd_wnd_max = in->window;
	child->snd_wl1 = in->seq;
	child->tune_start_ns = child->last_rcvd_ns = now_ns;
	if (!in->len)
		return true;
	/* what we grant is said in the answer only */
	tcp_rx_window(child);
	in->seq++;
	in->flags &= (uint8_t)~WIRE_TCP_SYN;
	child->data_segs_in++;
	child->fastopen |= FASTOPEN_HAD_DATA;
	tcp_rx_data(child, in, now_ns);
	return true;
}

void tcp_fastopen_settle(struct tcp_pcb *child)
{
	struct tcp_extra *extra = child->extra;

	child->fastopen &= (uint8_t)~FASTOPEN_PENDING;
	if (!extra || !extra->early_of)
		return;
	extra->early_of->early_cnt--;
	list_remove(&extra->early_link);
	extra->early_of = NULL;
}

void tcp_fastopen_note_reset(struct tcp_pcb *child, uint64_t now_ns)
{
	struct tcp_listener *listener = child->extra ? child->extra->early_of
						     : NULL;

	if (!listener)
		return;
	listener->early_resets += listener->early_resets < UINT32_MAX / 2;
	listener->early_reset_ns = now_ns;
}

void tcp_fastopen_forget(struct tcp_listener *listener)
{
	struct list *link;

	while ((link = list_pop_front(&listener->early)))
		LIST_ENTRY(link, struct tcp_extra, early_link)->early_of = NULL;
	listener->early_cnt = 0;
}

void tcp_fastopen_grant(const struct tcp_pcb *child, struct tcp_options *options)
{
	const struct tcp_listener *listener = child->listener;

	if (!listener && child->extra)
		listener = child->extra->early_of;
	options->has_cookie = true;
	options->cookie_len = COOKIE_LEN;
	make_cookie(&keys_of(child->table, listener)->key[0], &child->key,
		    options->cookie);
}

/* ---- who connects ---- */

static bool is_paused(const struct tcp_table *table, uint64_t now_ns)
{
	return table->fastopen_pause_ns && now_ns < table->fastopen_pause_ns;
}

static bool has_lost(const struct tcp_peer *peer, uint64_t now_ns)
{
	return peer && peer->syn_losses > 1 &&
	       now_ns - peer->syn_loss_ns < LOSS_PAUSE_NS << peer->syn_losses;
}

bool tcp_knows_cookie(struct tcp_table *table, const struct ip_addr *local,
		      const struct ip_addr *remote, uint64_t now_ns)
{
	const struct tcp_peer *peer =
		tcp_peers_find(&table->peers, local, remote, now_ns);

	if (!(table->params.fastopen & TCP_FASTOPEN_CLIENT) ||
	    is_paused(table, now_ns) || has_lost(peer, now_ns))
		return false;
	return table->params.fastopen & TCP_FASTOPEN_CLIENT_NO_COOKIE ||
	       (peer && peer->cookie_len);
}

/* RFC 7413 section 4.1.2: what the peer takes is what it said with the cookie. There is
 * room for the longest options. */
static uint32_t syn_room(const struct tcp_pcb *pcb, const struct tcp_peer *peer)
{
	uint32_t mss = ip_addr_is_v4(&pcb->key.remote) ? 536 : 1220;

	if (peer && peer->syn_mss)
		mss = peer->syn_mss;
	mss = MIN(mss, (uint32_t)tcp_own_mss(pcb, &pcb->path, &pcb->key));
	return mss - MIN(mss, (uint32_t)TCP_OPTIONS_MAX);
}

static bool needs_no_cookie(const struct tcp_pcb *pcb)
{
	return pcb->table->params.fastopen & TCP_FASTOPEN_CLIENT_NO_COOKIE ||
	       pcb->settings->fastopen_no_cookie;
}

uint32_t tcp_fast_room(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_table *table = pcb->table;
	const struct tcp_peer *peer = tcp_peers_find(
		&table->peers, &pcb->key.local, &pcb->key.remote, now_ns);

	if (is_paused(table, now_ns) || has_lost(peer, now_ns) ||
	    (!needs_no_cookie(pcb) && !(peer && peer->cookie_len)))
		return 0;
	return syn_room(pcb, peer);
}

static void fail(struct tcp_pcb *pcb, enum tcp_fastopen_failure why)
{
	pcb->fastopen &= (uint8_t)((1 << FASTOPEN_FAILURE_SHIFT) - 1);
	pcb->fastopen |= (uint8_t)(why << FASTOPEN_FAILURE_SHIFT);
}

enum tcp_fastopen_failure tcp_fastopen_failure(const struct tcp_pcb *pcb)
{
	return (enum tcp_fastopen_failure)(pcb->fastopen >> FASTOPEN_FAILURE_SHIFT);
}

void tcp_fastopen_begin(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;
	const struct tcp_peer *peer = tcp_peers_find(
		&table->peers, &pcb->key.local, &pcb->key.remote, now_ns);
	bool needs_none = needs_no_cookie(pcb);
	struct pkt *pkt = pcb->unsent;
	uint32_t room = syn_room(pcb, peer);

	if (is_paused(table, now_ns) || has_lost(peer, now_ns))
		return;
	pcb->fastopen |= needs_none ? FASTOPEN_OPTIONLESS : FASTOPEN_ASKS;
	if (!needs_none && !(peer && peer->cookie_len)) {
		fail(pcb, TCP_FASTOPEN_FAIL_COOKIE);
		table->counts.fastopen_asked++;
		return;
	}
	if (!pkt || !pkt->len || !room ||
	    (pkt->len > room && !tcp_out_split(pcb, pkt, room)))
		return;
	pcb->syn_data = pkt->len;
}

void tcp_fastopen_ask(const struct tcp_pcb *pcb, struct tcp_options *options,
		      uint64_t now_ns)
{
	const struct tcp_peer *peer = tcp_peers_find(&pcb->table->peers,
						     &pcb->key.local,
						     &pcb->key.remote, now_ns);

	options->has_cookie = true;
	if (!peer || !peer->cookie_len)
		return;
	options->cookie_len = peer->cookie_len;
	memcpy(options->cookie, peer->cookie, peer->cookie_len);
}

/* The answer came only after the SYN was sent once more, and knows nothing of a cookie or
 * the data: SYNs with data are lost on this path. */
static void learn(struct tcp_pcb *pcb, const struct tcp_segment *in,
		  uint64_t now_ns)
{
	const struct tcp_options *o = &in->options;
	bool is_loss = pcb->timeouts && pcb->syn_data && !o->has_cookie &&
		       in->ack == pcb->iss + 1;
	struct tcp_peer *peer;

	if (!(pcb->fastopen & FASTOPEN_ASKS) ||
	    (!is_loss && !o->cookie_len && !pcb->syn_data))
		return;
	peer = tcp_metrics_place(pcb, now_ns);
	if (!peer)
		return;
	if (o->mss)
		peer->syn_mss = o->mss;
	if (o->cookie_len) {
		peer->cookie_len = o->cookie_len;
		memcpy(peer->cookie, o->cookie, o->cookie_len);
	}
	if (is_loss) {
		peer->syn_losses += peer->syn_losses < LOSSES_MAX;
		peer->syn_loss_ns = now_ns;
	} else {
		peer->syn_losses = 0;
	}
}

bool tcp_fastopen_answered(struct tcp_pcb *pcb, const struct tcp_segment *in,
			   uint64_t now_ns)
{
	uint32_t acked = in->ack - pcb->snd_nxt;

	if (acked > pcb->syn_data)
		return false;
	if (LIKELY(!pcb->fastopen))
		return true;
	if (in->flags & WIRE_TCP_SYN)
		learn(pcb, in, now_ns);
	if (acked) {
		tcp_out_drop(pcb, acked);
		pcb->snd_nxt = pcb->snd_small_end = pcb->sack_high = in->ack;
		pcb->delivered++;
		pcb->fastopen |= FASTOPEN_HAD_DATA;
		pcb->table->counts.fastopen_opened++;
		pcb->table->fastopen_pauses = 0;
	} else if (pcb->syn_data) {
		fail(pcb, pcb->timeouts ? TCP_FASTOPEN_FAIL_SYN
					: TCP_FASTOPEN_FAIL_DATA);
		pcb->table->counts.fastopen_failed++;
	}
	pcb->syn_data = 0;
	return true;
}

/* Some boxes on the way let nothing pass any more behind a SYN that they do not like. */
void tcp_fastopen_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;
	uint64_t pause_ns = table->params.fastopen_pause_ns;

	if (LIKELY(!(pcb->fastopen & (FASTOPEN_ASKS | FASTOPEN_OPTIONLESS))) ||
	    pcb->timeouts != BLACK_HOLE_TIMEOUTS)
		return;
	table->counts.fastopen_black_holes++;
	if (!pause_ns)
		return;
	table->fastopen_pause_ns =
		now_ns + (pause_ns << MIN(table->fastopen_pauses,
					  (uint32_t)PAUSE_DOUBLINGS_MAX));
	table->fastopen_pauses += table->fastopen_pauses < UINT32_MAX;
}
