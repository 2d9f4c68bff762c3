/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of tcp_rtt.c that works in a round trip, which tcp_fast.c does for nearly every
 * answer to a request.
 */
#ifndef TCP_TCP_RTT_PRIV_H
#define TCP_TCP_RTT_PRIV_H

#include "tcp/tcp_priv.h"

/* How long a smallest round trip is believed: paths change. */
#define TCP_MIN_RTT_LIFE_NS (300 * NS_PER_SEC)

/* The timeouts follow the round trips when those have moved by so much (RFC 6298 calls it
 * the granularity of the clock). They are 200 ms longer than a round trip at least, and
 * that of a probe is longer than two by twice this, so that none comes too early. */
enum { TCP_TIMED_SHIFT = 10, TCP_TIMED_GRAIN = NS_PER_MS >> TCP_TIMED_SHIFT };

/* A delivery rate more often than that is of no use, and costs each packet something. */
#define TCP_RATE_PERIOD_NS NS_PER_MS

/* Samples are taken at most four times in a round trip: RFC 6298 section 3 asks for
 * one, and more tell little. Their weight is shared (RFC 7323 appendix G), so that
 * the averages do not lose their memory within a window. */
enum { TCP_SAMPLES_SHIFT = 2 };

/* The number of samples that a round trip can have, as a shift. */
static inline uint8_t tcp_rtt_samples_shift(const struct tcp_pcb *pcb)
{
	uint32_t flight = pcb->snd_nxt - pcb->snd_una;

	if (LIKELY(flight < 4 * pcb->mss))
		return 0;
	return flight >= 8 * pcb->mss ? TCP_SAMPLES_SHIFT : 1;
}

/* RFC 6298 sections 2.2 and 2.3 */
static inline void tcp_rtt_smooth(struct tcp_pcb *pcb, uint64_t rtt_ns)
{
	uint8_t shift = tcp_rtt_samples_shift(pcb);
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

static inline bool tcp_rtt_has_moved(uint64_t ns, uint32_t timed)
{
	return (uint32_t)(ns >> TCP_TIMED_SHIFT) - timed + TCP_TIMED_GRAIN >
	       2 * TCP_TIMED_GRAIN;
}

/* Sets the timeouts for the round trips of now. */
COLD void tcp_rtt_set_timeouts(struct tcp_pcb *pcb);

/* What we send is in the other half of the sequence space than when it was last counted.
 * What we receive is looked at when it is read (tcp_rx_tune). */
static inline bool tcp_rtt_has_passed_half(const struct tcp_pcb *pcb)
{
	return ((pcb->snd_una - pcb->iss - 1) >> 31 ^ pcb->acked_halves) & 1;
}

/* Without `with_rate` the caller takes the delivery rate. */
static ALWAYS_INLINE void tcp_rtt_take_inline(struct tcp_pcb *pcb,
					      uint64_t rtt_ns, bool with_rate,
					      uint64_t now_ns)
{
	tcp_rtt_smooth(pcb, rtt_ns);
	if (!pcb->min_rtt_ns || rtt_ns <= pcb->min_rtt_ns ||
	    tcp_ticks(now_ns) - pcb->min_rtt_at >= tcp_ticks(TCP_MIN_RTT_LIFE_NS)) {
		pcb->min_rtt_ns = rtt_ns;
		pcb->min_rtt_at = tcp_ticks(now_ns);
	}
	if (UNLIKELY(tcp_rtt_has_moved(pcb->srtt_ns, pcb->timed_srtt) ||
		     tcp_rtt_has_moved(pcb->rttvar_ns, pcb->timed_rttvar)))
		tcp_rtt_set_timeouts(pcb);
	if (UNLIKELY(pcb->pmtu))
		tcp_pmtu_refresh(pcb, now_ns);
	if (UNLIKELY(tcp_rtt_has_passed_half(pcb)))
		tcp_stats_note_bytes(pcb);
	if (with_rate && now_ns - pcb->rate_mark_ns >= TCP_RATE_PERIOD_NS)
		tcp_rate_take(pcb, now_ns);
	pcb->rtt_due_ns = now_ns + (pcb->srtt_ns >> TCP_SAMPLES_SHIFT);
}

#endif
