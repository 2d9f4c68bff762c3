/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP_INFO: what the engine knows of a connection, as Linux tells it. */
#include "config.h"

#include "sock/tcp/tsock_info.h"

#include <string.h>

#include "base/clock.h"

/* The states by the kernel's numbers. */
static uint8_t kernel_state(enum tcp_state state)
{
	static const uint8_t states[] = {
		[TCPS_CLOSED] = TCP_CLOSE,
		[TCPS_LISTEN] = TCP_LISTEN,
		[TCPS_SYN_SENT] = TCP_SYN_SENT,
		[TCPS_SYN_RCVD] = TCP_SYN_RECV,
		[TCPS_ESTABLISHED] = TCP_ESTABLISHED,
		[TCPS_FIN_WAIT_1] = TCP_FIN_WAIT1,
		[TCPS_FIN_WAIT_2] = TCP_FIN_WAIT2,
		[TCPS_CLOSE_WAIT] = TCP_CLOSE_WAIT,
		[TCPS_CLOSING] = TCP_CLOSING,
		[TCPS_LAST_ACK] = TCP_LAST_ACK,
		/* a socket of Linux is done with it then */
		[TCPS_TIME_WAIT] = TCP_CLOSE,
	};

	return states[state];
}

static uint32_t us(uint64_t ns)
{
	return (uint32_t)(ns / NS_PER_US);
}

static uint32_t ms_since(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns ? (uint32_t)((now_ns - then_ns) / NS_PER_MS) : 0;
}

_Static_assert(sizeof(struct tsock_info) == 280, "as Linux 6.18 has it");

/* Where Linux has tcpi_delivery_rate_app_limited (a bit) and tcpi_fastopen_client_fail
 * (two), which the C library's struct does not know. */
enum { FLAGS_AT = 7 };
_Static_assert(offsetof(struct tcp_info, tcpi_rto) == FLAGS_AT + 1, "behind the flags");

enum { OPT_TIMESTAMPS = 1, OPT_SACK = 2, OPT_WSCALE = 4, OPT_ECN = 8, OPT_SYN_DATA = 32 };

static void fill_base(struct tcp_info *out, const struct tcp_pcb_info *i,
		      const struct tcp_flight *flight, uint64_t now)
{
	out->tcpi_state = kernel_state(i->state);
	out->tcpi_ca_state = i->is_recovering ? 3 : 0;
	out->tcpi_retransmits = i->timeouts;
	out->tcpi_probes = i->probes;
	out->tcpi_backoff = i->backoff;
	out->tcpi_options = (uint8_t)((i->has_timestamps ? OPT_TIMESTAMPS : 0) |
				      (i->has_sack ? OPT_SACK : 0) |
				      (i->has_window_scale ? OPT_WSCALE : 0) |
				      (i->has_ecn ? OPT_ECN : 0) |
				      (i->has_syn_data ? OPT_SYN_DATA : 0));
	out->tcpi_snd_wscale = i->snd_scale & 15;
	out->tcpi_rcv_wscale = i->rcv_scale & 15;
	out->tcpi_rto = us(i->rto_ns);
	out->tcpi_ato = us(40 * NS_PER_MS);
	out->tcpi_snd_mss = i->mss;
	out->tcpi_rcv_mss = i->rcv_mss ? i->rcv_mss : 536;
	out->tcpi_unacked = flight->unacked;
	out->tcpi_sacked = flight->sacked;
	out->tcpi_lost = flight->lost;
	out->tcpi_retrans = flight->resent;
	out->tcpi_last_data_sent = ms_since(i->last_sent_ns, now);
	out->tcpi_last_data_recv = ms_since(i->last_rcvd_ns, now);
	out->tcpi_last_ack_recv = ms_since(i->last_rcvd_ns, now);
	out->tcpi_pmtu = i->pmtu;
	out->tcpi_rtt = us(i->srtt_ns);
	out->tcpi_rttvar = us(i->rttvar_ns);
	out->tcpi_snd_ssthresh = i->mss ? i->ssthresh / i->mss : 0;
	out->tcpi_snd_cwnd = i->mss ? i->cwnd / i->mss : 0;
	out->tcpi_advmss = i->mss_offered;
	out->tcpi_rcv_space = i->rcv_buf;
	out->tcpi_total_retrans = (uint32_t)i->retransmitted;
}

static void fill_rest(struct tsock_info *out, const struct tcp_pcb_info *i,
		      const struct tcp_pcb_stats *s,
		      const struct tcp_settings *settings)
{
	uint8_t flags;

	out->base.tcpi_reordering = s->reordering;
	out->pacing_rate = i->pacing_rate;
	out->max_pacing_rate = settings->max_pacing_rate;
	out->bytes_acked = s->bytes_acked;
	out->bytes_received = s->bytes_received;
	out->segs_out = s->segs_out;
	out->segs_in = s->segs_in;
	out->notsent_bytes = i->unsent;
	out->min_rtt = us(i->min_rtt_ns);
	out->data_segs_in = s->data_segs_in;
	out->data_segs_out = s->data_segs_out;
	out->delivery_rate = s->delivery_rate;
	out->busy_time = us(s->busy_ns);
	out->rwnd_limited = us(s->window_limited_ns);
	out->sndbuf_limited = us(s->buffer_limited_ns);
	out->delivered = s->delivered;
	out->delivered_ce = s->delivered_ce;
	out->bytes_sent = s->bytes_sent;
	out->bytes_retrans = s->bytes_resent;
	out->dsack_dups = s->duplicates;
	out->reord_seen = s->reorderings;
	out->rcv_ooopack = s->out_of_order;
	out->snd_wnd = i->snd_wnd;
	out->rcv_wnd = i->rcv_edge - i->rcv_nxt;
	out->total_rto = s->timeouts;
	out->total_rto_recoveries = s->timeout_runs;
	out->total_rto_time = (uint32_t)(s->timeout_ns / NS_PER_MS);
	/* two members that the C library's struct does not have, between those it has */
	flags = (uint8_t)(s->is_app_limited | i->fastopen_failure << 1);
	memcpy((uint8_t *)&out->base + FLAGS_AT, &flags, 1);
}

void tsock_fill_info(struct tsock *t, struct tsock_info *out)
{
	uint64_t now = tsock_now(t);
	struct tcp_settings settings;
	struct tcp_pcb_stats stats;
	struct tcp_flight flight;
	struct tcp_pcb_info i;

	memset(out, 0, sizeof(*out));
	out->base.tcpi_state = TCP_CLOSE;
	if (!t->pcb)
		return;
	tcp_get_info(t->pcb, &i);
	tcp_get_stats(t->pcb, &stats, now);
	tcp_get_flight(t->pcb, &flight);
	tcp_get_settings(t->pcb, &settings);
	fill_base(&out->base, &i, &flight, now);
	fill_rest(out, &i, &stats, &settings);
	/* Linux counts the SYN of who has connected, and leaves the time stamps' room
	 * out of what it advertises. */
	if (!t->port && t->was_open)
		out->bytes_acked++;
	if (i.has_timestamps)
		out->base.tcpi_advmss -= 12;
	if (i.state == TCPS_SYN_SENT)
		out->base.tcpi_options = 0;
}
