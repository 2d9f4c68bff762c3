/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP in one stack (tcp_engine.h). */
#include "config.h"

#include "sock/tcp/tcp_engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/pages.h"
#include "ip/ip_icmp.h"
#include "pkt/wire.h"
#include "sock/tcp/tsock_priv.h"

enum {
	/* the longest header of TCP */
	TCP_HEADER_MAX = 60,
	HEADERS_MAX = sizeof(struct dst_header) + TCP_HEADER_MAX,
	/* So many at first, and more whenever few are left; not too many at a time, since
	 * they are added under the lock. */
	BORROWERS = 4096,
	BORROWERS_FEW = BORROWERS / 4,
	BORROWERS_MORE = BORROWERS / 8,
	BORROWERS_MAX = 256 * BORROWERS,
	/* SYNs that wait until the way to their sender is known, for each of them */
	SYNS_MAX = 16,
	/* segments that wait to be given to the kernel */
	FOREIGN_MAX = 1024,
};

/* How long frames of a connection may be under way inside this machine after its rule
 * has changed. */
#define GHOST_NS (2 * NS_PER_SEC)

static struct tcp_engine *engine_of(struct stack_engine *base)
{
	return CONTAINER_OF(base, struct tcp_engine, base);
}

/* -- out ------------------------------------------------------------------------- */

/* Who is met for the first time is answered by the next time. */
static struct tcp_way *meet(struct tcp_engine *engine,
			    const struct dst_query *query)
{
	struct tcp_way *way = tcp_way_get(engine, query);

	tcp_way_put(way);
	if (way && !way->is_known)
		tcp_way_ask(way);
	return way;
}

/* The way of a connection that no socket has, or of an answer to nobody. */
static struct tcp_way *way_of_key(struct tcp_engine *engine,
				  const struct tcp_user *user,
				  const struct flow_key *key)
{
	struct tcp_port *port =
		user ? CONTAINER_OF(user, struct tcp_port, user) : NULL;
	struct dst_query query = tcp_port_query(engine, port, key);
	struct tcp_way *way = port ? tcp_way_find(engine, &query) :
				     tcp_way_between(engine, &query);

	return LIKELY(way) ? way : meet(engine, &query);
}

static struct tcp_way *way_of(struct tcp_engine *engine,
			      const struct tcp_pcb *pcb,
			      const struct tcp_out *out)
{
	struct tcp_user *user = pcb ? tcp_user(pcb) : NULL;

	if (LIKELY(user && !user->is_port))
		return CONTAINER_OF(user, struct tsock, user)->way;
	return way_of_key(engine, user, out->key);
}

/* Writes it to where the ring has its next frame. Returns its length. */
static size_t write_short(struct tcp_way *way, uint8_t *frame,
			  const struct tcp_out *out)
{
	struct tcp_header header = { out->header, out->header_len };
	uint8_t *at = tcp_engine_write_headers(way, frame, header,
					       out->data_len, out->ecn);
	struct pkt *pkt = out->data;

	for (uint32_t i = 0; i < out->data_cnt; i++) {
		memcpy(at, pkt->data, pkt->len);
		at += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	return (size_t)(at - frame);
}

COLD void tcp_engine_refused(struct tcp_engine *engine, struct tcp_pcb *pcb,
			     const uint8_t *header, uint32_t data_len)
{
	engine->is_refused = true;
	tcp_emit_failed(engine->table, pcb, header, data_len, tcp_engine_now(engine));
	engine->is_refused = false;
}

static void send_short(struct tcp_engine *engine, struct tcp_way *way,
		       struct tcp_pcb *pcb, const struct tcp_out *out)
	REQUIRES(engine->stack->lock)
{
	uint8_t *frame = stack_tx_frame_locked(engine->stack, way->dst.ring);

	if (LIKELY(frame))
		stack_tx_commit_locked(engine->stack, way->dst.ring,
				       write_short(way, frame, out));
	else
		tcp_engine_refused(engine, pcb, out->header, out->data_len);
}

/* Writes all headers of what is sent. Returns their length. */
static uint16_t write_headers(struct tcp_way *way, const struct tcp_out *out,
			      uint32_t data_len, uint8_t header[HEADERS_MAX])
{
	tcp_way_write(way, header, out->header_len + data_len, out->ecn);
	memcpy(header + sizeof(struct dst_header), out->header,
	       out->header_len);
	return (uint16_t)(sizeof(struct dst_header) + out->header_len);
}

static void send_long(struct tcp_engine *engine, struct tcp_way *way,
		      struct tcp_pcb *pcb, const struct tcp_out *out)
	REQUIRES(engine->stack->lock)
{
	uint8_t header[HEADERS_MAX];
	struct ring_tx tx = {
		.header = header,
		.header_len = write_headers(way, out, out->data_len, header),
		.payload = out->data,
	};

	pkt_get(out->data);
	if (UNLIKELY(stack_tx_locked(engine->stack, way->dst.ring, &tx) != 0))
		tcp_engine_refused(engine, pcb, out->header, out->data_len);
}

static void send_one(struct tcp_engine *engine, struct tcp_way *way,
		     struct tcp_pcb *pcb, const struct tcp_out *out)
	REQUIRES(engine->stack->lock)
{
	if (out->header_len + out->data_len + sizeof(struct dst_header) <=
	    RING_TX_FRAME_LEN)
		send_short(engine, way, pcb, out);
	else
		send_long(engine, way, pcb, out);
}

/* Makes the header of one of several segments, which begins `at` bytes into them and has
 * `len` bytes. Returns the sum that is the checksum's beginning. */
static uint32_t cut_header(const struct tcp_out *out, uint32_t at, uint32_t len,
			   struct wire_tcp *header)
{
	const struct flow_key *key = out->key;
	bool is_first = !at, is_last = at + len == out->data_len;

	header->seq = htobe32(be32toh(header->seq) + at);
	header->check = 0;
	if (!is_last)
		header->flags &= (uint8_t)~(WIRE_TCP_FIN | WIRE_TCP_PSH);
	if (!is_first)
		header->flags &= (uint8_t)~WIRE_TCP_CWR;
	return csum_partial(header, out->header_len,
			    wire_pseudo_sum(&key->local, &key->remote,
					    WIRE_PROTO_TCP,
					    out->header_len + len));
}

/* One by one: where the ring has no room for all of them, or the way has come to lead over an
 * interface that makes none of one, and the connection has not heard of it yet. */
static COLD void send_each(struct tcp_engine *engine, struct tcp_way *way,
			   struct tcp_pcb *pcb, const struct tcp_out *out)
	REQUIRES(engine->stack->lock)
{
	uint8_t header[HEADERS_MAX];
	struct pkt *pkt = out->data;
	uint32_t at = 0;

	for (uint32_t i = 0; i < out->data_cnt; i++) {
		struct ring_tx tx = {
			.header = header,
			.header_len = write_headers(way, out, pkt->len, header),
			.payload = pkt,
			.flags = RING_TX_CSUM,
			.csum_at = sizeof(struct dst_header) +
				   offsetof(struct wire_tcp, check),
		};

		tx.csum_sum = cut_header(
			out, at, pkt->len,
			(void *)(header + sizeof(struct dst_header)));
		pkt_get(pkt);
		if (stack_tx_locked(engine->stack, way->dst.ring, &tx) != 0) {
			/* with all that would follow */
			tcp_engine_refused(engine, pcb, header + sizeof(struct dst_header),
					   out->data_len - at);
			return;
		}
		at += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
}

/* Several segments, which the card makes of one. */
static void send_run(struct tcp_engine *engine, struct tcp_way *way,
		     struct tcp_pcb *pcb, const struct tcp_out *out)
	REQUIRES(engine->stack->lock)
{
	uint8_t header[HEADERS_MAX];
	struct ring_tx tx = {
		.header = header,
		.header_len = write_headers(way, out, out->data_len, header),
		.segment_len = (uint16_t)out->segment_size,
		.run = out->data,
		.run_cnt = out->data_cnt,
		.run_len = out->data_len,
	};

	if (LIKELY(stack_tx_locked(engine->stack, way->dst.ring, &tx) == 0))
		tcp_way_skip_ids(way, out->data_cnt - 1);
	else
		send_each(engine, way, pcb, out);
}

/* The lock is the caller's; the analysis does not see it through the engine. */
NO_LOCK_ANALYSIS static void emit(void *ctx, struct tcp_pcb *pcb,
				  const struct tcp_out *out)
{
	struct tcp_engine *engine = ctx;
	struct tcp_way *way = way_of(engine, pcb, out);

	if (UNLIKELY(!way || !tcp_way_is_open(way, engine->stack)))
		return;
	if (!out->segment_size)
		send_one(engine, way, pcb, out);
	else if (LIKELY(out->data_len <= way->dst.ring->dev->caps.tso_max))
		send_run(engine, way, pcb, out);
	else
		send_each(engine, way, pcb, out);
}

/* -- what else the engine asks for ------------------------------------------------- */

static void *alloc(void *ctx, size_t size)
{
	struct tcp_engine *engine = ctx;

	return mem_pool_get(&engine->memory, size);
}

static void release(void *ctx, void *mem, size_t size)
{
	struct tcp_engine *engine = ctx;

	mem_pool_put(&engine->memory, mem, size);
}

/* The way to who has sent us this SYN is known: see is_for_later(). That to who answers a
 * cookie may have been forgotten meanwhile. */
static bool path(void *ctx, const struct flow_key *key,
		 struct tcp_path *path_out)
{
	struct tcp_engine *engine = ctx;
	struct tcp_port *port = tcp_port_find(engine, key);
	struct dst_query query = tcp_port_query(engine, port, key);
	struct tcp_way *way = tcp_way_find(engine, &query);

	if (UNLIKELY(!way))
		way = meet(engine, &query);
	if (!way || !way->dst.ring)
		return false;
	*path_out = tcp_way_path(way);
	return true;
}

static bool is_ghost(const struct tcp_engine *engine, const struct flow_key *key)
{
	uint64_t now = tcp_engine_now(engine);

	for (unsigned i = 0; i < engine->ghost_cnt; i++)
		if (engine->ghosts[i].until_ns > now &&
		    flow_key_eq(&engine->ghosts[i].key, key))
			return true;
	return false;
}

/* What is too much is lost, which costs no connection. */
static void take_foreign(struct tcp_engine *engine, struct pkt *pkt)
{
	if (engine->foreign_cnt >= FOREIGN_MAX) {
		pkt_put(pkt);
		return;
	}
	list_push_back(&engine->foreign, &pkt->link);
	engine->foreign_cnt++;
	stack_note_guests(engine->stack);
	stack_engine_tidy(engine->stack);
}

/* The kernel may have the connection: one that has gone back a moment ago, or one of a
 * port on which both of us listen. It is given the segment, and knows what to answer. */
static bool stray(void *ctx, const struct flow_key *key, uint8_t flags,
		  struct pkt *pkt)
{
	struct tcp_engine *engine = ctx;

	if (!is_ghost(engine, key) && !tcp_port_lets_pass(engine, key, flags))
		return false;
	take_foreign(engine, pkt);
	return true;
}

static void stamped(void *ctx UNUSED, struct tcp_pcb *pcb, enum tcp_stamp what,
		    uint32_t byte, uint64_t now_ns UNUSED)
{
	struct tcp_user *user = tcp_user(pcb);

	if (user && !user->is_port)
		tsock_stamped(CONTAINER_OF(user, struct tsock, user), what, byte);
}

/* The frames of a run of segments that a card cuts take as much room as several. */
enum { ROOM_OF_A_RUN = 8 };

/* How long a full ring gets to make room, if nothing else comes meanwhile, and for how long
 * it is waited for. One that has had none for longer sends nothing any more, as without a
 * cable, or sends what others are quicker to put there: what leaves then may be lost, which
 * the timeouts count, and somebody hears of it in the end. */
#define ROOM_LOOK_NS (NS_PER_MS / 4)
#define ROOM_WAIT_NS (200 * NS_PER_MS)

static COLD uint64_t wait_for_room(struct tcp_room *room, uint64_t now_ns)
{
	/* nobody has looked for long: it is another jam */
	if (!room->full_since_ns || now_ns - room->looked_ns > 10 * ROOM_WAIT_NS)
		room->full_since_ns = now_ns;
	room->looked_ns = now_ns;
	return now_ns - room->full_since_ns < ROOM_WAIT_NS ? ROOM_LOOK_NS : 0;
}

/* A way that is none now keeps nothing back. */
NO_LOCK_ANALYSIS static uint64_t no_room_ns(void *ctx, const struct tcp_pcb *pcb,
					    uint64_t now_ns)
{
	struct tcp_engine *engine = ctx;
	const struct tcp_out out = { .key = tcp_key(pcb) };
	struct tcp_way *way = way_of(engine, pcb, &out);
	uint32_t cnt = TCP_EMITS_PER_LOOK;
	struct tcp_room *room;
	struct ring *ring;
	bool fits;

	if (!way || !tcp_way_is_open(way, engine->stack))
		return 0;
	ring = way->dst.ring;
	room = &engine->rooms[ring->slot];
	if (ring->dev->caps.tso_max)
		cnt *= ROOM_OF_A_RUN;
	if (ring->tx_fits_max)
		cnt = MIN(cnt, ring->tx_fits_max);
	/* without frames it has no room, however short its queue is */
	if (UNLIKELY(!ring->tx_frame))
		ring->ops->reap(ring);
	/* One is to be copied, not all: others may have nearly all frames for long, and what
	 * finds none is taken back. */
	fits = ring->tx_frame && ring->ops->tx_fits(ring, cnt, 1);
	/* what it has may wait for a kick that failed */
	if (!fits)
		ring->ops->reap(ring);
	stack_note_kick(engine->stack, ring);
	if (UNLIKELY(!fits))
		return wait_for_room(room, now_ns);
	room->full_since_ns = 0;
	/* It had none a moment ago, and what it has refused is not lost for that. */
	return engine->is_refused ? ROOM_LOOK_NS : 0;
}

static const struct tcp_ops ops = { emit, alloc, release, path, stamped, stray, no_room_ns };

/* -- in -------------------------------------------------------------------------- */

/* A connection that moves gets its frames later, or the kernel does. */
static bool is_kept(struct tcp_engine *engine, const struct tcp_in *in)
{
	struct tcp_handed *h;
	struct tsock *t;

	LIST_FOR_EACH(t, &engine->moving, moving) {
		if (!flow_key_eq(&t->key, &in->key))
			continue;
		list_push_back(&t->held, &in->pkt->link);
		return true;
	}
	LIST_FOR_EACH(h, &engine->handed, link) {
		if (!flow_key_eq(&h->key, &in->key))
			continue;
		list_push_back(&h->held, &in->pkt->link);
		return true;
	}
	return false;
}

/* VMA_TCP_MAX_SYN_RATE, counted by seconds. What is too much is lost: the peer tries
 * again. */
static COLD bool is_too_many(struct tcp_engine *engine, struct tcp_port *port)
{
	uint64_t second = tcp_engine_now(engine) / NS_PER_SEC;

	if (port->syn_second != second) {
		port->syn_second = second;
		port->syn_cnt = 0;
	}
	return port->syn_cnt++ >= sock_params.tcp.syn_rate;
}

/* A SYN of somebody to whom we know no way yet waits until we do: its answer could not
 * be sent. Or there are too many of them, or it is the kernel's who listens. */
static bool is_for_later(struct tcp_engine *engine, const struct tcp_in *in)
{
	const struct wire_tcp *tcp = (const void *)in->pkt->data;
	struct tcp_port *port;
	struct dst_query query;
	struct tcp_way *way;

	if (LIKELY(!(tcp->flags & WIRE_TCP_SYN) || tcp->flags & WIRE_TCP_ACK))
		return false;
	port = tcp_port_find(engine, &in->key);
	if (!port)
		return false;
	if (UNLIKELY(port->is_kernels) && !tcp_find(engine->table, &in->key)) {
		take_foreign(engine, in->pkt);
		return true;
	}
	if (UNLIKELY(sock_params.tcp.syn_rate) && is_too_many(engine, port)) {
		pkt_put(in->pkt);
		return true;
	}
	query = tcp_port_query(engine, port, &in->key);
	way = tcp_way_get(engine, &query);
	if (!way)
		return false;
	tcp_way_put(way);
	if (way->is_known && dst_is_valid(&way->dst, engine->stack) &&
	    way->dst.ring)
		return false;
	tcp_way_ask(way);
	if (way->syn_cnt >= SYNS_MAX)
		return false;
	list_push_back(&way->syns, &in->pkt->link);
	way->syn_cnt++;
	return true;
}

/* Takes out what the engine does not get, or not now. */
static void sift(struct tcp_engine *engine)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < engine->batch_cnt; i++) {
		struct tcp_in *in = &engine->batch[i];

		if (in->pkt->len >= sizeof(struct wire_tcp) &&
		    (is_kept(engine, in) || is_for_later(engine, in)))
			continue;
		engine->batch[kept++] = *in;
	}
	engine->batch_cnt = kept;
}

static void run_batch(struct tcp_engine *engine)
{
	unsigned cnt;

	sift(engine);
	cnt = engine->batch_cnt;
	engine->batch_cnt = 0;
	if (cnt)
		tcp_input_batch(engine->table, engine->batch, cnt,
				tcp_engine_now(engine));
}

static void tell(const struct tcp_event *event)
{
	struct tcp_user *user = event->user;

	if (UNLIKELY(!user))
		return;
	if (UNLIKELY(user->is_port))
		tcp_port_event(CONTAINER_OF(user, struct tcp_port, user),
			       event->what);
	else
		tsock_event(CONTAINER_OF(user, struct tsock, user), event->what);
}

/* Who waits for a packet to cut with waits for the acknowledgments of others. */
static bool has_few_borrowers(const struct tcp_engine *engine)
{
	return engine->borrowers.free_cnt < BORROWERS_FEW &&
	       engine->borrowers.total_cnt < BORROWERS_MAX;
}

void tcp_engine_tidy(struct tcp_engine *engine)
{
	struct pkt_slab *slab;
	bool is_wanted;

	stack_lock(engine->stack);
	is_wanted = has_few_borrowers(engine);
	stack_unlock(engine->stack);
	slab = is_wanted ? pkt_slab_create(BORROWERS_MORE, 0, NULL) : NULL;
	if (!slab)
		return;
	stack_lock(engine->stack);
	pkt_pool_add(&engine->borrowers, slab);
	stack_unlock(engine->stack);
}

static void run(struct stack_engine *base, struct stack *stack UNUSED)
{
	struct tcp_engine *engine = engine_of(base);
	struct tcp_event event;

	if (engine->batch_cnt)
		run_batch(engine);
	while (tcp_event_next(engine->table, &event))
		tell(&event);
	if (UNLIKELY(has_few_borrowers(engine)))
		stack_engine_tidy(engine->stack);
	/* acknowledgments and ends give packets back */
	if (UNLIKELY(!list_is_empty(&engine->starved)))
		tsocks_feed(engine);
}

static void take_icmp(struct stack_engine *base, struct stack *stack UNUSED,
		      const struct ip_icmp *icmp)
{
	struct tcp_engine *engine = engine_of(base);
	const struct tcp_icmp message = {
		.key = icmp->key,
		.seq = icmp->seq,
		.quoted_len = icmp->quoted_len,
		.error = icmp->error,
		.mtu = icmp->mtu,
	};

	tcp_icmp_in(engine->table, &message, tcp_engine_now(engine));
}

/* On a link without a wire, the sender's kernel may have left the checksum to a card: then
 * it is the sum of the pseudo header alone. A sum of words is 0 when 2^16 - 1 divides
 * it. */
static bool is_partial(const struct rx_info *info, const struct wire_ipv4 *ip,
		       const struct wire_tcp *tcp)
{
	uint64_t sum = (uint64_t)csum_words(&ip->src, 2) +
		       htobe16(WIRE_PROTO_TCP) + htobe16((uint16_t)info->len);

	return (sum + 0xffff - tcp->check) % 0xffff == 0;
}

/* Whoever processes a packet has the lock of its stack. */
NO_LOCK_ANALYSIS void tcp_engine_take(struct tcp_engine *engine,
				      struct pkt *pkt)
{
	const struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const struct wire_ipv4 *ip = (const void *)(pkt->buf + info->ip_at);
	const struct wire_tcp *tcp = (const void *)pkt->data;

	if (UNLIKELY(engine->batch_cnt == STACK_BATCH))
		run_batch(engine);
	if (UNLIKELY(atomic_load_explicit(&engine->takes_stamps,
					  memory_order_relaxed)) &&
	    !pkt->time_ns)
		pkt->time_ns = clock_realtime_ns();
	/* behind the segment there may be padding */
	demux_trim(pkt, info->len);
	if (info->may_be_partial && pkt->csum_verdict == PKT_CSUM_UNKNOWN &&
	    is_partial(info, ip, tcp))
		pkt->csum_verdict = PKT_CSUM_GOOD;
	engine->batch[engine->batch_cnt++] = (struct tcp_in){
		.pkt = pkt,
		.key = {
			.local = ip_addr_from_v4(ip->dst),
			.remote = ip_addr_from_v4(ip->src),
			.local_port = tcp->dst_port,
			.remote_port = tcp->src_port,
		},
		.ecn = ip->tos & 3,
	};
	tcp_engine_due_locked(engine);
}

void tcp_engine_take_list(struct tcp_engine *engine, struct list *pkts)
{
	struct list *link;

	while ((link = list_pop_front(pkts)))
		tcp_engine_take(engine, pkt_from_link(link));
}

void tcp_engine_give_list(struct tcp_engine *engine, struct list *pkts)
{
	struct list *link;

	while ((link = list_pop_front(pkts)))
		take_foreign(engine, pkt_from_link(link));
}

void tcp_engine_add_ghost(struct tcp_engine *engine, const struct flow_key *key)
{
	engine->ghosts[engine->next_ghost] = (struct tcp_ghost){
		.key = *key,
		.until_ns = tcp_engine_now(engine) + GHOST_NS,
	};
	engine->next_ghost = (engine->next_ghost + 1) % TCP_GHOSTS;
	engine->ghost_cnt = MAX(engine->ghost_cnt, engine->next_ghost);
	if (!engine->next_ghost)
		engine->ghost_cnt = TCP_GHOSTS;
}

static unsigned leave(struct stack_engine *base, int ifindex)
{
	return tcp_ways_leave(CONTAINER_OF(base, struct tcp_engine, base),
			      ifindex);
}

/* -- life -------------------------------------------------------------------------- */

static struct tcp_engine *make(struct stack *stack)
{
	size_t size = sizeof(struct tcp_engine);
	struct tcp_engine *engine = pages_map(size);
	struct tcp_params params;

	if (!engine)
		return NULL;
	stack_engine_init(&engine->base, run);
	engine->base.tidy = tsocks_tidy;
	engine->base.icmp = take_icmp;
	engine->base.leave = leave;
	engine->stack = stack;
	engine->memory.arena.is_not_inherited = true;
	for (int i = 0; i < TCP_WAY_BUCKETS; i++)
		list_init(&engine->ways[i]);
	list_init(&engine->orphans);
	list_init(&engine->untidy);
	timer_init(&engine->patience, tsocks_lose_patience);
	list_init(&engine->stayed);
	timer_init(&engine->again, tsocks_try_again);
	list_init(&engine->unused_ports);
	list_init(&engine->ports);
	list_init(&engine->foreign);
	list_init(&engine->moving);
	list_init(&engine->handed);
	list_init(&engine->shown);
	list_init(&engine->guarded);
	list_init(&engine->starved);
	pkt_pool_init(&engine->borrowers, 0);
	if (pkt_pool_grow(&engine->borrowers, BORROWERS, 0) != 0)
		goto err_unmap;
	tcp_sysctl_read(&params);
	engine->way_seed = hash_sip(&params.secret, "ways", 4);
	params.always_quick_acks = sock_params.tcp.quickack;
	params.merges_max = sock_params.tcp.merges_max;
	if (sock_params.tcp.timestamps != 2)
		params.with_timestamps = sock_params.tcp.timestamps;
	engine->table = tcp_table_create(&params, &ops, engine, &stack->timers,
					 &engine->borrowers);
	if (engine->table)
		return engine;
	(void)!pkt_pool_destroy(&engine->borrowers);
err_unmap:
	munmap(engine, size);
	return NULL;
}

static void unmake(struct tcp_engine *engine)
{
	tcp_table_destroy(engine->table);
	(void)!pkt_pool_destroy(&engine->borrowers);
	munmap(engine, sizeof(*engine));
}

static struct tcp_engine *find(const struct stack *stack)
{
	struct stack_engine *base =
		/* acquire pairs with the release in tcp_engine_of */
		atomic_load_explicit(&stack->tcp, memory_order_acquire);

	return base ? engine_of(base) : NULL;
}

struct tcp_engine *tcp_engine_of(struct stack *stack)
{
	struct tcp_engine *engine = find(stack);
	struct stack_engine *none = NULL;

	if (engine)
		return engine;
	engine = make(stack);
	sock_params.hold_conversations();
	if (!engine || atomic_compare_exchange_strong_explicit(
			       &stack->tcp, &none, &engine->base,
			       memory_order_release, memory_order_relaxed))
		return engine;
	/* another thread was faster */
	unmake(engine);
	return find(stack);
}

void tcp_engines_visit(void (*each)(struct tcp_engine *engine, void *ctx), void *ctx)
{
	struct net *net = sock_params.net_if_made();

	for (unsigned i = 0; net && i < net_stack_cnt(net); i++) {
		struct tcp_engine *engine = find(net->stacks[i]);

		if (engine)
			each(engine, ctx);
	}
}
