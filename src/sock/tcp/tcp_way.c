/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ways to TCP's peers (tcp_way.h). */
#include "config.h"

#include "sock/tcp/tcp_way.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "pkt/wire.h"
#include "sock/tcp/tcp_engine.h"
#include "sock/tcp/tsock_priv.h"

/* Ways that nobody uses are forgotten when there are more. */
enum { IDLE_WAYS_MAX = 4096 };

static bool is_for(const struct tcp_way *way, const struct dst_query *query)
{
	return dst_query_eq(&way->dst.query, query);
}

/* Ports do not count, except for rules by port, which are not followed here. */
static struct dst_query without_ports(const struct dst_query *query)
{
	struct dst_query q = *query;

	q.local_port = 0;
	q.remote_port = 0;
	return q;
}

static struct list *bucket_of(struct tcp_engine *engine,
			      const struct dst_query *query)
{
	uint64_t addrs = (uint64_t)ip_addr_v4(&query->remote) << 32 |
			 ip_addr_v4(&query->local);

	return &engine->ways[hash_u64(engine->way_seed, addrs) % TCP_WAY_BUCKETS];
}

struct tcp_way *tcp_way_find(struct tcp_engine *engine,
			     const struct dst_query *query)
{
	struct dst_query wanted = without_ports(query);
	struct tcp_way *way;

	LIST_FOR_EACH(way, bucket_of(engine, &wanted), link)
		if (is_for(way, &wanted))
			return way;
	return NULL;
}

struct tcp_way *tcp_way_between(struct tcp_engine *engine,
				const struct dst_query *query)
{
	struct tcp_way *way;

	LIST_FOR_EACH(way, bucket_of(engine, query), link)
		if (ip_addr_eq(&way->dst.query.local, &query->local) &&
		    ip_addr_eq(&way->dst.query.remote, &query->remote))
			return way;
	return NULL;
}

/* -- answers ------------------------------------------------------------------ */

static void note_dst(struct tcp_way *way)
{
	struct wire_ipv4 *ip = &way->dst.header.ip;

	way->is_known = true;
	if (!way->dst.ring)
		return;
	way->ifindex = way->dst.ring->dev->ifindex;
	way->needs_csum = !way->dst.ring->fills_csum;
	ip->total_len = 0;
	ip->id = 0;
	ip->check = 0;
	way->ip_sum = (uint16_t)~csum_fold(csum_words(ip, sizeof(*ip) / 4));
}

/* As in Linux, a connection whose SYN is under way ends when the kernel has asked for the
 * neighbour in vain. It would only ask once more. False: it is no such one. */
static bool refuse(const struct tcp_way *way, struct tsock *t, uint64_t now)
{
	struct tcp_pcb_info info;
	struct tcp_icmp unreachable = { .key = t->key, .error = -EHOSTUNREACH };

	if (way->dst.reason != REASON_NO_NEIGHBOUR || !way->lookup.has_asked ||
	    tcp_state(t->pcb) != TCPS_SYN_SENT || tcp_is_early(t->pcb) || t->is_orphan)
		return false;
	tcp_get_info(t->pcb, &info);
	if (info.snd_una == info.snd_nxt)
		return false;
	unreachable.seq = info.snd_una;
	tcp_icmp_in(t->engine->table, &unreachable, now);
	return true;
}

/* As in Linux, a SYN is repeated while no route leads there, and one may come. Only where it
 * has to become the kernel's meanwhile it fails, as the kernel does not begin without a route. */
static bool is_patient(const struct tcp_way *way, const struct tsock *t)
{
	return way->dst.reason == REASON_NO_ROUTE && tcp_state(t->pcb) == TCPS_SYN_SENT &&
	       !t->is_orphan;
}

/* The frames of an accepted connection come by the rule of its port, which is on the
 * interface that has the address. If the way has moved to another one, the peer's frames
 * probably come by that, too. */
static void tell_users(struct tcp_way *way, bool has_moved)
{
	uint64_t now = tcp_engine_now(way->engine);
	struct tcp_path path = tcp_way_path(way);
	struct tsock *t;

	LIST_FOR_EACH(t, &way->users, by_way) {
		/* it becomes the kernel's, or is asked for again when it does not */
		if (!t->pcb || tsock_is_moving(t)) {
			if (t->pcb && has_moved && t->port)
				t->lost_way = REASON_OTHER_WAY;
			continue;
		}
		if (!way->dst.ring) {
			if (!refuse(way, t, now) && !is_patient(way, t))
				tsock_lost_way_locked(t, way->dst.reason);
		} else if (has_moved && t->port) {
			tsock_lost_way_locked(t, REASON_OTHER_WAY);
		} else if (!tsock_stamps_fit(t, way->dst.ring)) {
			tsock_lost_way_locked(t, REASON_OPTION);
		} else {
			tcp_set_path(t->pcb, &path, now);
			tcp_output(t->pcb, now);
		}
	}
}

/* The stack is the way's own, which the analysis does not see. */
NO_LOCK_ANALYSIS static void answered(struct dst_lookup *lookup, struct stack *stack UNUSED)
{
	struct tcp_way *way = CONTAINER_OF(lookup, struct tcp_way, lookup);
	struct list syns = LIST_INIT(syns);
	int before = way->ifindex;

	note_dst(way);
	if (way->dst.ring && way->dst.serves.first < way->dst.serves.last)
		way->engine->like = way->dst;
	tell_users(way, before && way->ifindex != before);
	list_splice_back(&syns, &way->syns);
	way->syn_cnt = 0;
	if (way->dst.ring)
		tcp_engine_take_list(way->engine, &syns);
	else if (!lookup->has_asked)
		/* no ring of ours leads there, or we have no right to ask for the
		 * neighbour: the kernel's listener answers by itself */
		tcp_engine_give_list(way->engine, &syns);
	pkt_put_list(&syns);
	tcp_engine_due_locked(way->engine);
}

/* -- life ----------------------------------------------------------------------- */

/* As to the lock and the analysis, here and below, see answered(). */
NO_LOCK_ANALYSIS static void free_way(struct tcp_way *way)
{
	struct tcp_engine *engine = way->engine;

	dst_lookup_cancel_locked(engine->stack, &way->lookup);
	list_remove(&way->link);
	pkt_put_list(&way->syns);
	engine->way_cnt--;
	mem_pool_put(&engine->memory, way, sizeof(*way));
}

/* Frees the oldest in this list that is not used. */
static void make_room(struct list *bucket)
{
	struct tcp_way *way, *following;

	LIST_FOR_EACH_SAFE(way, following, bucket, link)
		if (!way->refs) {
			free_way(way);
			return;
		}
}

/* A peer behind a gateway that is known needs no look-up. */
static void learn_from_another(struct tcp_way *way)
{
	const struct dst *like = &way->engine->like;
	struct dst_query query = way->dst.query;

	query.remote = like->query.remote;
	if (dst_serves(like, way->engine->stack,
		       ip_addr_v4(&way->dst.query.remote)) &&
	    dst_query_eq(&query, &like->query))
		tcp_way_learn(way, like);
}

struct tcp_way *tcp_way_get(struct tcp_engine *engine,
			    const struct dst_query *query)
{
	struct tcp_way *way = tcp_way_find(engine, query);
	struct list *bucket;

	if (way) {
		way->refs++;
		return way;
	}
	bucket = bucket_of(engine, query);
	if (engine->way_cnt >= IDLE_WAYS_MAX)
		make_room(bucket);
	way = mem_pool_get(&engine->memory, sizeof(*way));
	if (!way)
		return NULL;
	way->refs = 1;
	way->engine = engine;
	list_init(&way->users);
	list_init(&way->syns);
	way->dst.query = without_ports(query);
	dst_lookup_init(&way->lookup, &way->dst, answered);
	learn_from_another(way);
	list_push_back(bucket, &way->link);
	engine->way_cnt++;
	return way;
}

/* It stays for the next connection. */
void tcp_way_put(struct tcp_way *way)
{
	if (!way)
		return;
	INVARIANT(way->refs > 0, "put more often than got");
	way->refs--;
}

void tcp_way_learn(struct tcp_way *way, const struct dst *dst)
{
	struct dst_query query = way->dst.query;
	uint16_t id = way->dst.next_id;

	way->dst = *dst;
	way->dst.query = query;
	way->dst.next_id = id;
	way->dst.header.ip.dst = ip_addr_v4(&query.remote);
	note_dst(way);
}

NO_LOCK_ANALYSIS void tcp_way_ask(struct tcp_way *way)
{
	way->dst.query.ask = DST_ASK_ANEW;
	dst_lookup_begin_locked(way->engine->stack, &way->lookup);
}

/* -- use ------------------------------------------------------------------------- */

/* The ring of an old answer may be gone, and its memory another's. */
struct ring *tcp_way_ring(const struct tcp_way *way)
{
	const struct stack *stack = way->engine->stack;

	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i] && stack->rings[i] == way->dst.ring)
			return stack->rings[i];
	return NULL;
}

COLD bool tcp_way_is_open_slow(struct tcp_way *way)
{
	const struct ring *ring;

	tcp_way_ask(way);
	ring = tcp_way_ring(way);
	return ring && memcmp(way->dst.header.eth.src, ring->dev->mac, 6) == 0;
}

/* On whatever interface: no way says so yet. */
static unsigned unaccepted_cnt(const struct tcp_engine *engine)
{
	const struct tcp_port *port;
	unsigned cnt = 0;

	LIST_FOR_EACH(port, &engine->ports, link)
		if (port->pcb)
			cnt += tcp_accept_cnt(port->pcb);
	return cnt;
}

unsigned tcp_ways_leave(struct tcp_engine *engine, int ifindex)
{
	unsigned left = unaccepted_cnt(engine);
	struct tcp_way *way;
	struct tsock *t;

	for (unsigned i = 0; i < TCP_WAY_BUCKETS; i++)
		LIST_FOR_EACH(way, &engine->ways[i], link) {
			if (way->ifindex != ifindex)
				continue;
			LIST_FOR_EACH(t, &way->users, by_way) {
				if (!t->pcb)
					continue;
				left++;
				if (!tsock_is_moving(t) && t->lost_way == REASON_NONE)
					tsock_lost_way_locked(t, REASON_INTERFACE_ERROR);
			}
		}
	return left;
}

static uint16_t at_most_16_bits(uint32_t value)
{
	return (uint16_t)MIN(value, (uint32_t)UINT16_MAX);
}

struct tcp_path tcp_way_path(const struct tcp_way *way)
{
	const struct ring *ring = tcp_way_ring(way);

	return (struct tcp_path){
		.mtu = at_most_16_bits(way->dst.packet_max),
		.adv_mss = at_most_16_bits(way->dst.tcp.adv_mss),
		.initial_window = at_most_16_bits(way->dst.tcp.initial_window),
		.rto_min_ms = at_most_16_bits(way->dst.tcp.rto_min_ms),
		.segment_max = ring ? ring->dev->caps.tso_max : 0,
	};
}
