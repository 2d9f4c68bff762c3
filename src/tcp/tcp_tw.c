/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TIME_WAIT: the part of a connection that remains when both FINs are through. Entries
 * have 64 bytes, lie in slabs and are named by index. All stay equally long, so they
 * form one queue ordered by time, and one timer serves the table. When a segment makes
 * an entry stay longer, the entry moves to the end of the queue.
 */
#include "tcp/tcp_priv.h"

enum {
	SLAB_ENTRIES = 1024,
	BUCKETS_MIN = 256,
	BUCKETS_MAX = 1 << 16,
	/* index 0 means no entry */
	NOBODY = 0,
};

struct tcp_tw {
	struct ip_addr local;
	struct ip_addr remote;
	__be16 local_port;
	__be16 remote_port;
	uint32_t snd_nxt;
	uint32_t rcv_nxt;
	uint32_t ts_recent;
	/* in milliseconds, modulo 2^32 */
	uint32_t expires_ms;
	/* in the bucket, or in the list of free ones */
	uint32_t hash_next;
	/* by expiry */
	uint32_t later;
	/* and back, with TW_HAS_TS in the highest bit */
	uint32_t earlier_flags;
};
_Static_assert(sizeof(struct tcp_tw) <= 64, "compact");

#define TW_HAS_TS UINT32_C(0x80000000)

struct tcp_tw_table {
	struct tcp_table *table;
	struct timer timer;
	struct tcp_tw **slabs;
	uint32_t slab_cnt;
	uint32_t slab_room;
	uint32_t free;
	uint32_t cnt;
	uint32_t first;
	uint32_t last;
	uint32_t *buckets;
	uint32_t bucket_cnt;
};

static struct tcp_tw *entry(const struct tcp_tw_table *tw, uint32_t index)
{
	return &tw->slabs[index / SLAB_ENTRIES][index % SLAB_ENTRIES];
}

static uint32_t earlier(const struct tcp_tw *e)
{
	return e->earlier_flags & ~TW_HAS_TS;
}

static void set_earlier(struct tcp_tw *e, uint32_t index)
{
	e->earlier_flags = (e->earlier_flags & TW_HAS_TS) | index;
}

static void *tw_alloc(struct tcp_tw_table *tw, size_t size)
{
	return tw->table->ops->alloc(tw->table->ctx, size);
}

static void tw_release(struct tcp_tw_table *tw, void *mem, size_t size)
{
	if (mem)
		tw->table->ops->release(tw->table->ctx, mem, size);
}

/* ---- storage ---- */

static bool add_slab(struct tcp_tw_table *tw)
{
	uint32_t room = MAX(8u, 2 * tw->slab_room), base;
	struct tcp_tw *slab, **slabs;

	if (tw->slab_cnt == tw->slab_room) {
		slabs = tw_alloc(tw, room * sizeof(*slabs));
		if (!slabs)
			return false;
		if (tw->slab_cnt)
			memcpy(slabs, tw->slabs,
			       tw->slab_cnt * sizeof(*slabs));
		tw_release(tw, tw->slabs, tw->slab_room * sizeof(*slabs));
		tw->slabs = slabs;
		tw->slab_room = room;
	}
	slab = tw_alloc(tw, SLAB_ENTRIES * sizeof(*slab));
	if (!slab)
		return false;
	base = tw->slab_cnt * SLAB_ENTRIES;
	tw->slabs[tw->slab_cnt++] = slab;
	for (uint32_t i = SLAB_ENTRIES; i-- > 0;) {
		if (base + i == NOBODY)
			continue;
		slab[i].hash_next = tw->free;
		tw->free = base + i;
	}
	return true;
}

static uint32_t *bucket_of(const struct tcp_tw_table *tw,
			   const struct flow_key *key)
{
	uint64_t hash = flow_key_hash(key, tw->table->hash_seed);

	return &tw->buckets[hash & (tw->bucket_cnt - 1)];
}

static struct flow_key key_of(const struct tcp_tw *e)
{
	return (struct flow_key){ e->local, e->remote, e->local_port,
				  e->remote_port, 0 };
}

/* Allocates this with the first entry, for as many entries as there may be. It costs a
 * byte each, and the end of a connection never waits until all others are moved. */
static void make_buckets(struct tcp_tw_table *tw, uint32_t entries_max)
{
	uint32_t cnt = BUCKETS_MIN;

	while (cnt < entries_max / 4 && cnt < BUCKETS_MAX)
		cnt *= 2;
	tw->buckets = tw_alloc(tw, cnt * sizeof(*tw->buckets));
	tw->bucket_cnt = tw->buckets ? cnt : 0;
}

static void queue_append(struct tcp_tw_table *tw, uint32_t index)
{
	struct tcp_tw *e = entry(tw, index);

	e->later = NOBODY;
	set_earlier(e, tw->last);
	if (tw->last != NOBODY)
		entry(tw, tw->last)->later = index;
	else
		tw->first = index;
	tw->last = index;
}

static void queue_remove(struct tcp_tw_table *tw, uint32_t index)
{
	struct tcp_tw *e = entry(tw, index);

	if (earlier(e) != NOBODY)
		entry(tw, earlier(e))->later = e->later;
	else
		tw->first = e->later;
	if (e->later != NOBODY)
		set_earlier(entry(tw, e->later), earlier(e));
	else
		tw->last = earlier(e);
}

static uint32_t find(const struct tcp_tw_table *tw, const struct flow_key *key)
{
	uint32_t i;

	if (!tw->cnt)
		return NOBODY;
	for (i = *bucket_of(tw, key); i != NOBODY; i = entry(tw, i)->hash_next) {
		const struct tcp_tw *e = entry(tw, i);

		if (e->local_port == key->local_port &&
		    e->remote_port == key->remote_port &&
		    ip_addr_eq(&e->remote, &key->remote) &&
		    ip_addr_eq(&e->local, &key->local))
			break;
	}
	return i;
}

static void drop(struct tcp_tw_table *tw, uint32_t index)
{
	struct tcp_tw *e = entry(tw, index);
	struct flow_key key = key_of(e);
	uint32_t *link = bucket_of(tw, &key);

	while (*link != index)
		link = &entry(tw, *link)->hash_next;
	*link = e->hash_next;
	queue_remove(tw, index);
	e->hash_next = tw->free;
	tw->free = index;
	tw->cnt--;
}

/* ---- time ---- */

static uint32_t ms_of(uint64_t now_ns)
{
	return (uint32_t)(now_ns / NS_PER_MS);
}

static void arm(struct tcp_tw_table *tw, uint64_t now_ns)
{
	uint32_t left_ms;

	if (tw->first == NOBODY) {
		timer_cancel(tw->table->wheel, &tw->timer);
		return;
	}
	left_ms = entry(tw, tw->first)->expires_ms - ms_of(now_ns);
	timer_set(tw->table->wheel, &tw->timer,
		  now_ns + (uint64_t)MAX((int32_t)left_ms, 1) * NS_PER_MS);
}

static void expire(struct timer *timer, uint64_t now_ns)
{
	struct tcp_tw_table *tw = CONTAINER_OF(timer, struct tcp_tw_table,
					       timer);

	while (tw->first != NOBODY &&
	       seq_at_most(entry(tw, tw->first)->expires_ms, ms_of(now_ns)))
		drop(tw, tw->first);
	arm(tw, now_ns);
}

static void stay(struct tcp_tw_table *tw, uint32_t index, uint64_t now_ns)
{
	entry(tw, index)->expires_ms =
		ms_of(now_ns + tw->table->params.time_wait_ns);
	queue_append(tw, index);
	if (!timer_is_pending(&tw->timer))
		arm(tw, now_ns);
}

/* ---- interface ---- */

struct tcp_tw_table *tcp_tw_create(struct tcp_table *table)
{
	struct tcp_tw_table *tw = table->ops->alloc(table->ctx, sizeof(*tw));

	if (!tw)
		return NULL;
	tw->table = table;
	timer_init(&tw->timer, expire);
	return tw;
}

void tcp_tw_destroy(struct tcp_tw_table *tw)
{
	if (!tw)
		return;
	timer_cancel(tw->table->wheel, &tw->timer);
	for (uint32_t i = 0; i < tw->slab_cnt; i++)
		tw_release(tw, tw->slabs[i],
			   SLAB_ENTRIES * sizeof(struct tcp_tw));
	tw_release(tw, tw->slabs, tw->slab_room * sizeof(*tw->slabs));
	tw_release(tw, tw->buckets, tw->bucket_cnt * sizeof(*tw->buckets));
	tw_release(tw, tw, sizeof(*tw));
}

/* Past the limit, or without memory, a connection gets no TIME_WAIT. The kernel does
 * the same. We count it. */
void tcp_tw_add(struct tcp_table *table, const struct tcp_pcb *pcb,
		uint64_t now_ns)
{
	struct tcp_tw_table *tw = table->tw;
	struct tcp_tw *e;
	uint32_t index;

	if (!tw->bucket_cnt)
		make_buckets(tw, table->params.time_wait_max);
	if (tw->cnt >= table->params.time_wait_max || !tw->bucket_cnt ||
	    (tw->free == NOBODY && !add_slab(tw))) {
		table->counts.tw_dropped++;
		return;
	}
	table->counts.tw_entered++;
	index = tw->free;
	e = entry(tw, index);
	tw->free = e->hash_next;
	*e = (struct tcp_tw){
		.local = pcb->key.local,
		.remote = pcb->key.remote,
		.local_port = pcb->key.local_port,
		.remote_port = pcb->key.remote_port,
		.snd_nxt = pcb->snd_nxt,
		.rcv_nxt = pcb->rcv_nxt,
		.ts_recent = pcb->ts_recent,
		.earlier_flags = pcb->flags & TF_TS ? TW_HAS_TS : 0,
		.hash_next = *bucket_of(tw, &pcb->key),
	};
	*bucket_of(tw, &pcb->key) = index;
	tw->cnt++;
	stay(tw, index, now_ns);
}

static uint32_t stamp(const struct tcp_table *table, const struct flow_key *key,
		      uint64_t now_ns)
{
	return ms_of(now_ns) + tcp_ts_offset(table, key);
}

static void answer(struct tcp_table *table, const struct flow_key *key,
		   const struct tcp_tw *e, uint64_t now_ns)
{
	struct tcp_options options = {
		.has_ts = e->earlier_flags & TW_HAS_TS,
		.ts_val = stamp(table, key, now_ns),
		.ts_ecr = e->ts_recent,
	};

	tcp_out_stateless(table, key, WIRE_TCP_ACK, e->snd_nxt, e->rcv_nxt, 0,
			  &options);
}

/* RFC 6191: a SYN may open a new connection if it cannot be an old duplicate, because
 * its time stamp is later or its sequence number is above all we have seen. */
static bool may_reopen(const struct tcp_tw *e, const struct tcp_segment *in)
{
	if ((in->flags & (WIRE_TCP_SYN | WIRE_TCP_ACK | WIRE_TCP_RST)) !=
	    WIRE_TCP_SYN)
		return false;
	if (e->earlier_flags & TW_HAS_TS && in->options.has_ts &&
	    in->options.ts_val != e->ts_recent)
		return seq_after(in->options.ts_val, e->ts_recent);
	return seq_after(in->seq, e->rcv_nxt);
}

/* RFC 9293 section 3.10.7.4 lets a reset end the wait, if it is the very next segment,
 * and RFC 1337 tells what is lost by that. */
static bool may_end(const struct tcp_table *table, const struct tcp_tw *e,
		    const struct tcp_segment *in)
{
	bool is_old = e->earlier_flags & TW_HAS_TS && in->options.has_ts &&
		      seq_before(in->options.ts_val, e->ts_recent);

	return !table->params.protects_time_wait && in->seq == e->rcv_nxt &&
	       !is_old;
}

bool tcp_tw_input(struct tcp_table *table, const struct flow_key *key,
		  const struct tcp_segment *in, bool *reopens_out,
		  uint32_t *isn_out, uint64_t now_ns)
{
	struct tcp_tw_table *tw = table->tw;
	uint32_t index = find(tw, key);
	struct tcp_tw *e;

	*reopens_out = false;
	if (index == NOBODY)
		return false;
	e = entry(tw, index);
	if (may_reopen(e, in) && tcp_table_find_listener(table, key)) {
		*reopens_out = true;
		/* This is above everything that the old connection sent. */
		*isn_out = e->snd_nxt + 65535 + 2;
		table->counts.tw_reused++;
		drop(tw, index);
		return true;
	}
	if (in->flags & WIRE_TCP_RST) {
		if (may_end(table, e, in))
			drop(tw, index);
		return true;
	}
	/* An empty segment needs no answer: two ends that both wait would answer each
	 * other for ever. */
	if (tcp_segment_end(in) == in->seq)
		return true;
	answer(table, key, e, now_ns);
	/* RFC 9293 section 3.10.7.4: when the peer's FIN comes again, the wait starts
	 * again. */
	if (in->flags & WIRE_TCP_FIN) {
		queue_remove(tw, index);
		stay(tw, index, now_ns);
	}
	return true;
}

bool tcp_tw_take(struct tcp_table *table, const struct flow_key *key,
		 uint32_t *isn_out)
{
	uint32_t index = find(table->tw, key);
	const struct tcp_tw *e;

	if (index == NOBODY)
		return false;
	e = entry(table->tw, index);
	/* Only time stamps let the peer tell old segments from new ones. */
	if (!(e->earlier_flags & TW_HAS_TS))
		return false;
	*isn_out = e->snd_nxt + 65535 + 2;
	table->counts.tw_reused++;
	drop(table->tw, index);
	return true;
}

static bool is_loopback(const struct ip_addr *addr)
{
	static const struct ip_addr one = { .byte = { [15] = 1 } };

	if (ip_addr_is_v4(addr))
		return (be32toh(ip_addr_v4(addr)) >> 24) == 127;
	return ip_addr_eq(addr, &one);
}

bool tcp_tw_may_choose(const struct tcp_table *table,
		       const struct flow_key *key, uint64_t now_ns)
{
	const struct tcp_params *params = &table->params;
	uint32_t index = find(table->tw, key);
	const struct tcp_tw *e;
	uint32_t left_ms;

	if (index == NOBODY)
		return true;
	if (params->tw_reuse == TCP_TW_REUSE_NEVER ||
	    (params->tw_reuse == TCP_TW_REUSE_LOOPBACK &&
	     !is_loopback(&key->local) && !is_loopback(&key->remote)))
		return false;
	e = entry(table->tw, index);
	left_ms = e->expires_ms - ms_of(now_ns);
	return e->earlier_flags & TW_HAS_TS &&
	       left_ms + params->tw_reuse_delay_ns / NS_PER_MS <
		       params->time_wait_ns / NS_PER_MS;
}

bool tcp_tw_has(const struct tcp_table *table, const struct flow_key *key)
{
	return find(table->tw, key) != NOBODY;
}

bool tcp_is_waiting(const struct tcp_table *table, const struct flow_key *key)
{
	return tcp_tw_has(table, key);
}

/* Nobody reads or writes any more; windows have to be such as the kernel takes. */
static void tell(const struct tcp_table *table, const struct tcp_tw *e,
		 struct tcp_waiting *out, uint64_t now_ns)
{
	uint32_t rcv_nxt = e->rcv_nxt - 1;

	*out = (struct tcp_waiting){
		.key = key_of(e),
		.repair = {
			.snd_una = e->snd_nxt - 1,
			.fin = TCP_FIN_ACKED,
			.rcv_nxt = rcv_nxt,
			.has_fin = true,
			.mss_peer = 536,
			.has_timestamps = e->earlier_flags & TW_HAS_TS,
			.ts_recent = e->ts_recent,
			.snd_wl1 = rcv_nxt,
			.snd_wnd = 1,
			.snd_wnd_max = 1,
			.rcv_wnd = UINT16_MAX,
			.rcv_wup = rcv_nxt,
		},
	};
	out->repair.ts_next = (stamp(table, &out->key, now_ns) + 1) & ~UINT32_C(1);
}

unsigned tcp_get_waiting(const struct tcp_table *table, struct tcp_waiting *out, unsigned max,
			 uint64_t age_ns, uint64_t now_ns)
{
	const struct tcp_tw_table *tw = table->tw;
	uint32_t from_ms = ms_of(now_ns - age_ns + table->params.time_wait_ns);
	uint32_t index = tw->last;
	unsigned cnt;

	for (cnt = 0; cnt < max && index != NOBODY; cnt++) {
		const struct tcp_tw *e = entry(tw, index);

		if (seq_before(e->expires_ms, from_ms))
			break;
		tell(table, e, &out[cnt], now_ns);
		index = earlier(e);
	}
	return cnt;
}

bool tcp_find_waiting(const struct tcp_table *table, const struct flow_key *key,
		      struct tcp_waiting *out, uint64_t now_ns)
{
	uint32_t index = find(table->tw, key);

	if (index == NOBODY)
		return false;
	tell(table, entry(table->tw, index), out, now_ns);
	return true;
}

void tcp_forget_waiting(struct tcp_table *table, const struct flow_key *key)
{
	uint32_t index = find(table->tw, key);

	if (index != NOBODY)
		drop(table->tw, index);
}

uint32_t tcp_tw_cnt(const struct tcp_table *table)
{
	return table->tw->cnt;
}
