/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BBR: what its rules (tcp_bbr.c) have to know of a connection. */
#include "tcp/tcp_priv.h"

static struct tcp_bbr_control present(const struct tcp_pcb *pcb)
{
	return (struct tcp_bbr_control){
		.pacing_rate = pcb->pacing_rate,
		.cwnd = pcb->cwnd,
	};
}

/* The smallest window is not spread over more than a round trip: after an outage the
 * measured rate would hold for longer than a timeout what the window allows. */
static uint64_t least_rate(const struct tcp_pcb *pcb)
{
	uint64_t bytes = TCP_BBR_MIN_SEGMENTS * (uint64_t)pcb->mss;

	return bytes * NS_PER_SEC / MAX(pcb->srtt_ns, NS_PER_US);
}

static void keep_to(struct tcp_pcb *pcb, const struct tcp_bbr_control *control)
{
	pcb->pacing_rate = MAX(control->pacing_rate, least_rate(pcb));
	pcb->cwnd = control->cwnd;
}

static void bbr_init(struct tcp_pcb *pcb)
{
	memset(&pcb->cc.bbr, 0, sizeof(pcb->cc.bbr));
	tcp_bbr_init(&pcb->cc.bbr.rules, pcb->iss);
	pcb->pacing_rate = tcp_bbr_first_rate(pcb->cwnd, pcb->srtt_ns);
	tcp_pace_update(pcb);
}

/* The window follows from the model alone. */
static uint32_t bbr_ssthresh(struct tcp_pcb *pcb, uint64_t now_ns UNUSED)
{
	return pcb->ssthresh;
}

static void bbr_modelled(struct tcp_pcb *pcb, const struct tcp_ack_sample *sample,
			 uint32_t acked, uint64_t now_ns)
{
	struct tcp_bbr_control control = present(pcb);
	struct tcp_bbr_ack ack = {
		.now_ns = now_ns,
		.rtt_ns = acked ? pcb->rack_rtt_ns : 0,
		.tx_in_flight = pcb->cc.bbr.tx_in_flight,
		.is_cwnd_limited = seq_at_most(sample->prior_una,
					       pcb->cwnd_used_end),
		.acked = acked,
		.lost = pcb->cc.bbr.lost,
		.marked = sample->is_ece ? MIN(sample->marked, acked) : 0,
		.in_flight = tcp_pipe(pcb),
		.mss = pcb->mss,
	};

	if (acked)
		ack.ends_round = tcp_rate_round(pcb, &ack.rate, &ack.delivered,
						now_ns);
	ack.is_app_limited = pcb->is_rate_app_limited;
	pcb->cc.bbr.lost = 0;
	tcp_bbr_acked(&pcb->cc.bbr.rules, &ack, &control);
	keep_to(pcb, &control);
	if (ack.ends_round)
		pcb->cc.bbr.tx_in_flight = ack.in_flight + pcb->mss;
	/* keeps the mark within half the sequence space */
	if (!ack.is_cwnd_limited)
		pcb->cwnd_used_end = sample->prior_una - 1;
}

static void bbr_restarted(struct tcp_pcb *pcb, uint64_t idle_ns)
{
	struct tcp_bbr_control control = present(pcb);

	tcp_bbr_restarted(&pcb->cc.bbr.rules, pcb->last_sent_ns + idle_ns,
			  &control);
	keep_to(pcb, &control);
}

static void bbr_lost(struct tcp_pcb *pcb, uint32_t bytes)
{
	pcb->cc.bbr.lost += bytes;
}

static void bbr_recovers(struct tcp_pcb *pcb, bool is_timeout)
{
	struct tcp_bbr_control control = present(pcb);

	if (is_timeout)
		tcp_bbr_timed_out(&pcb->cc.bbr.rules, pcb->mss, &control);
	else
		tcp_bbr_recovers(&pcb->cc.bbr.rules, tcp_pipe(pcb), pcb->mss,
				 &control);
	keep_to(pcb, &control);
}

static void bbr_recovered(struct tcp_pcb *pcb)
{
	struct tcp_bbr_control control = present(pcb);

	tcp_bbr_recovered(&pcb->cc.bbr.rules, &control);
	keep_to(pcb, &control);
}

static void bbr_undone(struct tcp_pcb *pcb)
{
	tcp_bbr_undone(&pcb->cc.bbr.rules);
}

static void bbr_acked(struct tcp_pcb *pcb UNUSED, uint32_t bytes UNUSED,
		      uint64_t now_ns UNUSED)
{
}

static const struct tcp_model_ops model = {
	.acked = bbr_modelled,
	.lost = bbr_lost,
	.recovers = bbr_recovers,
	.recovered = bbr_recovered,
};

const struct tcp_cc_ops tcp_cc_bbr = {
	.name = "bbr",
	.init = bbr_init,
	.ssthresh = bbr_ssthresh,
	.acked = bbr_acked,
	.restarted = bbr_restarted,
	.undone = bbr_undone,
	.model = &model,
};
