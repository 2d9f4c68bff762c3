/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round-trip times and the retransmission timeout (RFC 6298), in nanoseconds, and
 * the smallest round trip of late, which RACK needs. Beside them, what the tail loss probe
 * has to know of a peer that answers late.
 */
#include "tcp/tcp_priv.h"

/* How long a smallest round trip is believed: paths change. */
#define MIN_RTT_LIFE_NS (300 * NS_PER_SEC)

/* The timeouts follow the round trips when those have moved by so much. They are a
 * thousand times as long; RFC 6298 calls this the granularity of the clock. */
enum { TIMED_SHIFT = 10, TIMED_GRAIN = (NS_PER_MS / 8) >> TIMED_SHIFT };

/* A delivery rate more often than that is of no use, and costs each packet something. */
#define RATE_PERIOD_NS NS_PER_MS

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

/* Samples are taken at most four times in a round trip: RFC 6298 section 3 asks for
 * one, and more tell little. Their weight is shared (RFC 7323 appendix G), so that
 * the averages do not lose their memory within a window. */
enum { SAMPLES_SHIFT = 2 };

/* The number of samples that a round trip can have, as a shift. */
static uint8_t samples_shift(const struct tcp_pcb *pcb)
{
	uint32_t flight = pcb->snd_nxt - pcb->snd_una;

	if (LIKELY(flight < 4 * pcb->mss))
		return 0;
	return flight >= 8 * pcb->mss ? SAMPLES_SHIFT : 1;
}

/* RFC 6298 sections 2.2 and 2.3 */
static void update_smoothed(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	uint8_t shift = samples_shift(pcb);
	int64_t off_ns = (int64_t)(rtt_ns - pcb->srtt_ns);

	if (!(pcb->flags & TF_HAS_RTT)) {
		pcb->flags |= TF_HAS_RTT;
		pcb->srtt_ns = rtt_ns;
		pcb->rttvar_ns = rtt_ns / 2;
		return;
	}
	pcb->srtt_ns += (uint64_t)(off_ns >> (3 + shift));
	off_ns = (off_ns < 0 ? -off_ns : off_ns) - (int64_t)pcb->rttvar_ns;
	pcb->rttvar_ns += (uint64_t)(off_ns >> (2 + shift));
}

static void set_quiet_rtx(struct tcp_pcb *pcb)
{
	const uint32_t needed = TF_SACK | TF_HAS_RTT;
	bool with_probes = (pcb->flags & needed) == needed &&
			   pcb->table->params.with_tlp;
	uint64_t rto_ns = pcb->rto_ns, probe_ns, lone_ns;

	if (UNLIKELY(!with_probes)) {
		pcb->quiet_rtx_ns = pcb->quiet_lone_ns = rto_ns;
		pcb->quiet_kind = pcb->quiet_lone_kind = RTX_TIMEOUT;
		return;
	}
	probe_ns = tcp_tlp_after_ns(pcb, false);
	lone_ns = tcp_tlp_after_ns(pcb, true);
	pcb->quiet_rtx_ns = MIN(probe_ns, rto_ns);
	pcb->quiet_kind = probe_ns < rto_ns ? RTX_PROBE : RTX_LATE_PROBE;
	pcb->quiet_lone_ns = MIN(lone_ns, rto_ns);
	pcb->quiet_lone_kind = lone_ns < rto_ns ? RTX_LONE_PROBE
						: RTX_LATE_PROBE;
}

static bool has_moved(uint64_t ns, uint32_t timed)
{
	return (uint32_t)(ns >> TIMED_SHIFT) - timed + TIMED_GRAIN >
	       2 * TIMED_GRAIN;
}

static COLD void set_timeouts(struct tcp_pcb *pcb)
{
	const struct tcp_params *params = &pcb->table->params;
	/* The floor applies to the margin, so that the timeout stays well above
	 * a round trip even where that is longer than the floor: delayed
	 * acknowledgments come on top of it. */
	uint64_t margin_ns = MAX(4 * pcb->rttvar_ns, params->rto_min_ns);

	pcb->timed_srtt = (uint32_t)(pcb->srtt_ns >> TIMED_SHIFT);
	pcb->timed_rttvar = (uint32_t)(pcb->rttvar_ns >> TIMED_SHIFT);
	pcb->rto_ns = MIN(pcb->srtt_ns + margin_ns, params->rto_max_ns);
	set_quiet_rtx(pcb);
}

void tcp_rtt_be_careful(struct tcp_pcb *pcb)
{
	pcb->timed_srtt = TCP_NOT_TIMED;
	pcb->rto_ns = MAX(pcb->rto_ns, 3 * NS_PER_SEC);
	set_quiet_rtx(pcb);
}

/* What we send is in the other half of the sequence space than when it was last counted.
 * What we receive is looked at when it is read (tcp_rx_tune). */
static bool has_passed_half(const struct tcp_pcb *pcb)
{
	return ((pcb->snd_una - pcb->iss - 1) >> 31 ^ pcb->acked_halves) & 1;
}

void tcp_rtt_take(struct tcp_pcb *pcb, uint64_t rtt_ns, uint64_t now_ns)
{
	update_smoothed(pcb, rtt_ns);
	if (!pcb->min_rtt_ns || rtt_ns <= pcb->min_rtt_ns ||
	    tcp_ticks(now_ns) - pcb->min_rtt_at >= tcp_ticks(MIN_RTT_LIFE_NS)) {
		pcb->min_rtt_ns = rtt_ns;
		pcb->min_rtt_at = tcp_ticks(now_ns);
	}
	if (UNLIKELY(has_moved(pcb->srtt_ns, pcb->timed_srtt) ||
		     has_moved(pcb->rttvar_ns, pcb->timed_rttvar)))
		set_timeouts(pcb);
	if (UNLIKELY(pcb->pmtu))
		tcp_pmtu_refresh(pcb, now_ns);
	if (UNLIKELY(has_passed_half(pcb)))
		tcp_stats_note_bytes(pcb);
	if (now_ns - pcb->rate_mark_ns >= RATE_PERIOD_NS)
		tcp_rate_take(pcb, now_ns);
	pcb->rtt_due_ns = now_ns + (pcb->srtt_ns >> SAMPLES_SHIFT);
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
	set_quiet_rtx(pcb);
}

void tcp_rtt_expect_wait(struct tcp_pcb *pcb)
{
	pcb->lone_wait_us = TCP_LONE_WAIT_MAX_US;
	set_quiet_rtx(pcb);
}

void tcp_rtt_expect(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	uint64_t margin_ns = MAX(2 * rtt_ns, params->rto_min_ns);

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
