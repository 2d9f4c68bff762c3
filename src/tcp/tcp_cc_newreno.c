/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slow start and congestion avoidance of RFC 5681, counting bytes (RFC 3465). */
#include "tcp/tcp_cc.h"

static void newreno_init(struct tcp_pcb *pcb)
{
	pcb->cc.acked = 0;
}

/* RFC 5681 equation 4 */
static uint32_t newreno_ssthresh(struct tcp_pcb *pcb, uint64_t now_ns UNUSED)
{
	uint32_t flight = MIN(pcb->cwnd, pcb->snd_nxt - pcb->snd_una);

	return MAX(flight / 2, 2 * pcb->mss);
}

static void newreno_acked(struct tcp_pcb *pcb, uint32_t bytes,
			  uint64_t now_ns UNUSED)
{
	bytes = tcp_cc_slow_start(pcb, bytes);
	pcb->cc.acked += bytes;
	while (pcb->cc.acked >= pcb->cwnd) {
		pcb->cc.acked -= pcb->cwnd;
		pcb->cwnd += pcb->mss;
	}
}

static void newreno_undone(struct tcp_pcb *pcb UNUSED)
{
}

const struct tcp_cc_ops tcp_cc_newreno = {
	.name = "newreno",
	.init = newreno_init,
	.ssthresh = newreno_ssthresh,
	.acked = newreno_acked,
	.restarted = tcp_cc_restart,
	.undone = newreno_undone,
};
