/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What readers of the statistics see of TCP. The data path counts packets and bytes alone;
 * how a connection stands is looked up here, once a second, by the library's thread.
 */
#include "config.h"

#include "net/net.h"
#include "sock/tcp/tsock_priv.h"

/* So many sockets are looked at before the lock is given up in between. */
enum { AT_ONCE = 16 };

_Static_assert(STATS_TCP_CLOSED + (TCPS_TIME_WAIT - TCPS_CLOSED) ==
		       STATS_TCP_TIME_WAIT,
	       "the states of the statistics are those of the engine");
_Static_assert(sizeof(struct tcp_counts) == sizeof(struct stats_tcp_counters),
	       "of one list");

static uint32_t us(uint64_t ns)
{
	return (uint32_t)MIN(ns / NS_PER_US, (uint64_t)UINT32_MAX);
}

void tsock_tell_figures(struct tsock *t)
{
	struct stats_socket *at = t->sock.stats.at;
	struct tcp_pcb_info info;

	if (!t->pcb)
		return;
	tcp_get_info(t->pcb, &info);
	at->tcp_state = (uint8_t)(STATS_TCP_CLOSED + info.state);
	at->tcp = (struct stats_tcp_gauges){
		.send_queue = info.snd_queued,
		.unsent = info.unsent,
		.in_flight = info.in_flight,
		.out_of_order = info.ooo_bytes,
		.send_window = info.snd_wnd,
		.receive_window = info.rcv_edge - info.rcv_nxt,
		.congestion_window = info.cwnd,
		.segment_size = info.mss,
		.path_mtu = info.pmtu,
		.rtt_us = us(info.srtt_ns),
		.rtt_var_us = us(info.rttvar_ns),
		.rtt_min_us = us(info.min_rtt_ns),
		.rto_us = us(info.rto_ns),
	};
	at->rx_limit = info.rcv_buf;
	/* What the program takes from now on leaves the queue at once. */
	at->counters.rx_queued_bytes = at->counters.rx_bytes + info.rcv_unread;
	at->counters.tx_retransmits += info.retransmitted - t->told_retransmitted;
	t->told_retransmitted = info.retransmitted;
}

void tsock_show(struct tsock *t)
{
	t->told_retransmitted = 0;
	tsock_tell_figures(t);
	if (stats_is_shown(&t->sock.stats) && !list_is_linked(&t->shown))
		list_push_back(&t->engine->shown, &t->shown);
	t->show_round = t->engine->show_round;
}

/* False: all have been shown in this round. */
static bool show_next_locked(struct tcp_engine *engine)
{
	struct tsock *t;

	if (list_is_empty(&engine->shown))
		return false;
	t = LIST_ENTRY(engine->shown.next, struct tsock, shown);
	if (t->show_round == engine->show_round)
		return false;
	list_remove(&t->shown);
	if (!tsock_is_ours(t))
		return true;
	t->show_round = engine->show_round;
	list_push_back(&engine->shown, &t->shown);
	tsock_tell_figures(t);
	return true;
}

/* Adds what was counted since the last time, so that somebody may set the sums to zero.
 * False: nothing has moved. */
static bool publish_counts_locked(struct tcp_engine *engine,
				  struct stats_tcp_counters *sums)
{
	const struct tcp_counts *now = tcp_counts(engine->table);
	struct tcp_counts *old = &engine->published;
	bool has_moved = now->in_segments != old->in_segments ||
			 now->out_segments != old->out_segments;

#define TCP_COUNTER(name, how, what) sums->name += now->name - old->name;
#include "stats/counters.def"
	*old = *now;
	return has_moved;
}

static void publish(struct tcp_engine *engine, void *ctx)
{
	struct stats_tcp_counters *sums = ctx;
	bool is_going_on;

	stack_lock(engine->stack);
	is_going_on = publish_counts_locked(engine, sums);
	engine->show_round++;
	stack_unlock(engine->stack);
	while (is_going_on) {
		stack_lock(engine->stack);
		for (int i = 0; i < AT_ONCE && is_going_on; i++)
			is_going_on = show_next_locked(engine);
		stack_unlock(engine->stack);
	}
}

void tsocks_publish(void)
{
	struct stats_tcp_counters *sums = stats_tcp();

	if (sums)
		tcp_engines_visit(publish, sums);
}
