/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round-trip times and the retransmission timeout (RFC 6298), in nanoseconds, and
 * the smallest round trip of late, which RACK needs. Beside them, what the tail loss probe
 * has to know of a peer that answers late.
 */
#include "tcp/tcp_rtt_priv.h"

void tcp_rtt_init(struct tcp_pcb *pcb)
{
	pcb->flags &= ~TF_HAS_RTT;
	pcb->srtt_ns = 0;
	pcb->rttvar_ns = 0;
	pcb->min_rtt_ns = 0;
	pcb->lone_wait_us = TCP_LONE_WAIT_MAX_US;
	pcb->timed_srtt = TCP_NOT_TIMED;
	/* RFC 6298 section 2.1 */
	pcb->rto_ns = pcb->table->params.rto_initial_ns;
}

/* Whether what is under way is probed for before it times out. */
static inline bool has_probes(const struct tcp_pcb *pcb)
{
	const uint32_t needed = TF_SACK | TF_HAS_RTT;

	return (pcb->flags & needed) == needed && pcb->table->params.with_tlp;
}

static inline void set_quiet_lone(struct tcp_pcb *pcb)
{
	uint64_t rto_ns = pcb->rto_ns, lone_ns = tcp_tlp_after_ns(pcb, true);

	pcb->quiet_lone_ns = MIN(lone_ns, rto_ns);
	pcb->quiet_lone_kind = lone_ns < rto_ns ? RTX_LONE_PROBE
						: RTX_LATE_PROBE;
}

static void set_quiet_rtx(struct tcp_pcb *pcb)
{
	uint64_t rto_ns = pcb->rto_ns, probe_ns;

	if (UNLIKELY(!has_probes(pcb))) {
		pcb->quiet_rtx_ns = pcb->quiet_lone_ns = rto_ns;
		pcb->quiet_kind = pcb->quiet_lone_kind = RTX_TIMEOUT;
		return;
	}
	probe_ns = tcp_tlp_after_ns(pcb, false);
	pcb->quiet_rtx_ns = MIN(probe_ns, rto_ns);
	pcb->quiet_kind = probe_ns < rto_ns ? RTX_PROBE : RTX_LATE_PROBE;
	set_quiet_lone(pcb);
}

static uint64_t rto_min_ns(const struct tcp_pcb *pcb)
{
	return pcb->path.rto_min_ms ? pcb->path.rto_min_ms * NS_PER_MS :
				      pcb->table->params.rto_min_ns;
}

void tcp_rtt_set_timeouts(struct tcp_pcb *pcb)
{
	const struct tcp_params *params = &pcb->table->params;
	/* The floor applies to the margin, so that the timeout stays well above
	 * a round trip even where that is longer than the floor: delayed
	 * acknowledgments come on top of it. */
	uint64_t margin_ns = MAX(4 * pcb->rttvar_ns, rto_min_ns(pcb));

	pcb->timed_srtt = (uint32_t)(pcb->srtt_ns >> TCP_TIMED_SHIFT);
	pcb->timed_rttvar = (uint32_t)(pcb->rttvar_ns >> TCP_TIMED_SHIFT);
	pcb->rto_ns = MIN(pcb->srtt_ns + margin_ns, params->rto_max_ns);
	set_quiet_rtx(pcb);
}

void tcp_rtt_take(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	tcp_rtt_take_inline(pcb, rtt_ns, true, now_ns);
}

void tcp_rtt_be_careful(struct tcp_pcb *pcb)
{
	pcb->timed_srtt = TCP_NOT_TIMED;
	pcb->rto_ns = MAX(pcb->rto_ns, 3 * NS_PER_SEC);
	set_quiet_rtx(pcb);
}

void tcp_rtt_set_lone_wait(struct tcp_pcb *pcb)
{
	uint64_t wait_us = 0;

	if (pcb->rack_rtt_ns > pcb->min_rtt_ns)
		wait_us = (pcb->rack_rtt_ns - pcb->min_rtt_ns) / NS_PER_US;
	wait_us = MIN(wait_us, (uint64_t)TCP_LONE_WAIT_MAX_US);
	wait_us = MAX(wait_us, (uint64_t)TCP_LONE_WAIT_MIN_US);
	if (wait_us >= pcb->lone_wait_us)
		pcb->lone_wait_us = (uint32_t)wait_us;
	else
		/* rounded up, so that it arrives */
		pcb->lone_wait_us -= (pcb->lone_wait_us - (uint32_t)wait_us + 3) / 4;
	if (has_probes(pcb))
		set_quiet_lone(pcb);
}

void tcp_rtt_expect_wait(struct tcp_pcb *pcb)
{
	pcb->lone_wait_us = TCP_LONE_WAIT_MAX_US;
	set_quiet_rtx(pcb);
}

void tcp_rtt_expect(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	uint64_t margin_ns = MAX(2 * rtt_ns, rto_min_ns(pcb));

	pcb->timed_srtt = TCP_NOT_TIMED;
	pcb->rto_ns = MIN(rtt_ns + margin_ns, params->rto_max_ns);
	set_quiet_rtx(pcb);
}

/* RFC 6298 section 5.5 */
uint64_t tcp_rto_ns(const struct tcp_pcb *pcb)
{
	uint64_t max_ns = pcb->table->params.rto_max_ns;

	if (LIKELY(!pcb->backoff))
		return pcb->rto_ns;
	if (pcb->backoff > 20 || pcb->rto_ns > max_ns >> pcb->backoff)
		return max_ns;
	return pcb->rto_ns << pcb->backoff;
}
