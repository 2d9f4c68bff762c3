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

/* RFC 6298 sections 2.2 and 2.3, with the weight of a sample shared among those of
 * one round trip (RFC 7323 appendix G): the averages would otherwise lose their
 * memory within a window. Once in a round trip we look how many there are. */
static void begin_round(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	uint32_t samples = (pcb->snd_nxt - pcb->snd_una) / (2 * pcb->mss);

	pcb->rtt_shift = (uint8_t)(31 - __builtin_clz(samples | 1));
	pcb->rtt_round_end = pcb->snd_nxt;
	if (now_ns - pcb->min_rtt_at_ns >= MIN_RTT_LIFE_NS)
		pcb->min_rtt_ns = rtt_ns;
}

static void take_first(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	pcb->flags |= TF_HAS_RTT;
	pcb->srtt_ns = rtt_ns;
	pcb->rttvar_ns = rtt_ns / 2;
	pcb->min_rtt_ns = rtt_ns;
}

void tcp_rtt_sample(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	uint64_t margin_ns;
	int64_t off_ns;

	if (UNLIKELY(!(pcb->flags & TF_HAS_RTT)))
		take_first(pcb, rtt_ns);
	if (!seq_before(pcb->snd_una, pcb->rtt_round_end))
		begin_round(pcb, rtt_ns, now_ns);
	if (rtt_ns <= pcb->min_rtt_ns) {
		pcb->min_rtt_ns = rtt_ns;
		pcb->min_rtt_at_ns = now_ns;
	}
	off_ns = (int64_t)(rtt_ns - pcb->srtt_ns);
	pcb->srtt_ns += (uint64_t)(off_ns >> (3 + pcb->rtt_shift));
	off_ns = (off_ns < 0 ? -off_ns : off_ns) - (int64_t)pcb->rttvar_ns;
	pcb->rttvar_ns += (uint64_t)(off_ns >> (2 + pcb->rtt_shift));
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
