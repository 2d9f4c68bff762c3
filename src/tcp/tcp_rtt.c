/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round-trip times and the retransmission timeout (RFC 6298), in nanoseconds, and
 * the smallest round trip of late, which RACK needs.
 */
#include "tcp/tcp_priv.h"

/* How long a smallest round trip is believed: paths change. */
#define MIN_RTT_LIFE_NS (300 * NS_PER_SEC)

void tcp_rtt_init(struct tcp_pcb *pcb)
{
	pcb->flags &= ~TF_HAS_RTT;
	pcb->srtt_ns = 0;
	pcb->rttvar_ns = 0;
	pcb->min_rtt_ns = 0;
	/* RFC 6298 section 2.1 */
	pcb->rto_ns = pcb->table->params.rto_initial_ns;
}

static void update_min(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	if (pcb->min_rtt_ns && rtt_ns > pcb->min_rtt_ns &&
	    now_ns - pcb->min_rtt_at_ns < MIN_RTT_LIFE_NS)
		return;
	pcb->min_rtt_ns = rtt_ns;
	pcb->min_rtt_at_ns = now_ns;
}

/* RFC 6298 sections 2.2 and 2.3; the variance falls no faster than once for each
 * round trip would make it, because with many samples in one (RFC 7323 appendix
 * G) it would otherwise lose its memory within a window. */
static void update_smoothed(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	uint64_t off_ns, samples;

	if (!(pcb->flags & TF_HAS_RTT)) {
		pcb->flags |= TF_HAS_RTT;
		pcb->srtt_ns = rtt_ns;
		pcb->rttvar_ns = rtt_ns / 2;
		return;
	}
	off_ns = rtt_ns > pcb->srtt_ns ? rtt_ns - pcb->srtt_ns
				       : pcb->srtt_ns - rtt_ns;
	samples = MAX((uint64_t)1, (pcb->snd_nxt - pcb->snd_una) /
					   (2 * (uint64_t)pcb->mss));
	if (off_ns < pcb->rttvar_ns)
		pcb->rttvar_ns -= (pcb->rttvar_ns - off_ns) / (4 * samples);
	else
		pcb->rttvar_ns += (off_ns - pcb->rttvar_ns) / (4 * samples);
	if (rtt_ns < pcb->srtt_ns)
		pcb->srtt_ns -= (pcb->srtt_ns - rtt_ns) / (8 * samples);
	else
		pcb->srtt_ns += (rtt_ns - pcb->srtt_ns) / (8 * samples);
}

void tcp_rtt_sample(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	uint64_t margin_ns;

	rtt_ns = MAX(rtt_ns, (uint64_t)1);
	update_min(pcb, rtt_ns, now_ns);
	update_smoothed(pcb, rtt_ns);
	/* The floor applies to the margin, so that the timeout stays well above
	 * a round trip even where that is longer than the floor: delayed
	 * acknowledgments come on top of it. */
	margin_ns = MAX(4 * pcb->rttvar_ns, params->rto_min_ns);
	pcb->rto_ns = MIN(pcb->srtt_ns + margin_ns, params->rto_max_ns);
	pcb->backoff = 0;
}

/* RFC 6298 section 5.5 */
uint64_t tcp_rto_ns(const struct tcp_pcb *pcb)
{
	uint64_t max_ns = pcb->table->params.rto_max_ns;

	if (pcb->backoff > 20 || pcb->rto_ns > max_ns >> pcb->backoff)
		return max_ns;
	return pcb->rto_ns << pcb->backoff;
}
