/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A socket's ways (udp_ways.h). */
#include "config.h"

#include "sock/udp/udp_ways.h"

#include <errno.h>

#include "base/clock.h"

/* What the way of a call depends on. False: there is nowhere to send to. Under the
 * stack's lock. */
static bool make_query(struct udp *u, const struct tx_call *call,
		       struct dst_query *out)
{
	const struct dst_query *peer = &u->ways[UDP_WAY_CONNECTED].dst.query;
	const struct user_name *to = call->to;
	const struct tx_control *control = call->control;

	*out = (struct dst_query){
		.proto = WIRE_PROTO_UDP,
		.stack = sock_stack(&u->sock),
		.paced = udp_is_paced(u) ? &u->paced : NULL,
		.pace_gen = u->pace_gen,
		.local = u->sock.local,
		.local_port = u->sock.local_port,
		.remote = to ? to->addr : peer->remote,
		.remote_port = to ? to->port : peer->remote_port,
		.ifindex = u->sock.set.ifindex,
		.mark = u->sock.set.mark,
		.uid = u->sock.uid,
		.priority = u->sock.set.priority,
		.tos = u->sock.set.tos,
		.ttl = u->sock.set.ttl,
		.has_own_ttl = u->sock.set.has_own_ttl,
		.df = u->sock.set.df,
		.may_cut = u->sock.set.may_cut,
		.is_mtu_of_link = u->sock.set.is_mtu_of_link,
		.is_on_link_only = u->sock.set.is_on_link_only,
	};
	if (control && control->has_source)
		out->local = control->source;
	if (control && control->ifindex)
		out->ifindex = control->ifindex;
	if (control && control->tos >= 0) {
		out->tos = (uint8_t)control->tos;
		out->priority = tx_control_priority(out->tos);
	}
	if (control && control->ttl) {
		out->ttl = (uint8_t)control->ttl;
		out->has_own_ttl = true;
	}
	return to || u->sock.is_connected;
}

COLD struct udp_way *udp_way_controlled(struct udp *u,
					const struct tx_call *call)
{
	struct dst_query query;

	if (!make_query(u, call, &query))
		return NULL;
	for (int i = 0; i < UDP_CONTROLLED_WAYS; i++)
		if (dst_query_eq(&u->controlled[i].dst.query, &query))
			return &u->controlled[i];
	return NULL;
}

/* Where a new destination is remembered; the connected one stays. */
static struct udp_way *choose_slot(struct udp *u, const struct tx_call *call)
{
	struct udp_way *way = udp_way_find(u, call);

	if (way)
		return way;
	if (call->control)
		return &u->controlled[u->next_way++ % UDP_CONTROLLED_WAYS];
	return call->to ? &u->ways[1 + u->next_way++ % (UDP_WAYS - 1)] : NULL;
}

static bool is_by_rule(const struct dst_query *query,
		       char detail[STATS_DETAIL_SIZE])
{
	struct sock_end local = { query->local, query->local_port };
	struct sock_end remote = { query->remote, query->remote_port };

	return sock_params.is_kernel_by_rule(SOCK_UDP_SENDER, &local, &remote,
					    detail);
}

/* Where the socket sends now. Under the stack's lock. */
static void show_dst(struct udp *u, const struct dst *dst,
		     struct stats_way *way)
{
	struct stats_socket *s = u->sock.stats.at;

	way->reason = (uint16_t)dst->reason;
	way->rings = dst->ring ? stats_ring_bit(dst->ring->stats) : 0;
	s->tx = *way;
	s->tx_addr = dst->query.remote;
	s->tx_port = be16toh(dst->query.remote_port);
}

struct udp_way *udp_way_derive(struct udp *u, const struct stack *stack,
			       __be32 remote, __be16 port)
{
	struct stats_way said = { .decider = STATS_BY_SEND };
	const struct udp_way *like;
	struct udp_way *way;

	if (sock_params.has_sender_rules || !port)
		return NULL;
	for (like = u->ways; !dst_serves(&like->dst, stack, remote);)
		if (++like == &u->ways[UDP_WAYS])
			return NULL;
	way = &u->ways[1 + u->next_way++ % (UDP_WAYS - 1)];
	if (way != like)
		*way = *like;
	udp_way_turn(way, remote, port);
	way->dst.next_id = (uint16_t)clock_monotonic_ns();
	show_dst(u, &way->dst, &said);
	return way;
}

COLD int udp_way_look_up(struct udp *u, const struct tx_call *call)
{
	struct stack *stack;
	struct udp_way *slot, found = { .dst = { .view_gen = 0 } };
	struct stats_way said = { .decider = STATS_BY_SEND };
	struct dst_query now;
	bool has_name;

	sock_lock(&u->sock, &stack);
	has_name = make_query(u, call, &found.dst.query);
	slot = udp_way_find(u, call);
	found.dst.next_id = slot ? slot->dst.next_id : (uint16_t)clock_monotonic_ns();
	stack_unlock(stack);
	if (!has_name)
		return -ENOTCONN;

	udp_way_resolve(&found, stack->net);
	if (found.dst.ring && is_by_rule(&found.dst.query, said.detail))
		udp_way_refuse(&found, REASON_RULE);

	sock_lock(&u->sock, &stack);
	/* What another thread has changed meanwhile, as the peer or an option, may lead
	 * elsewhere, and another pace to a ring that is gone; the caller asks again. */
	slot = make_query(u, call, &now) && dst_query_eq(&now, &found.dst.query) ?
		       choose_slot(u, call) :
		       NULL;
	if (slot) {
		*slot = found;
		show_dst(u, &found.dst, &said);
	}
	stack_unlock(stack);
	return 0;
}
