/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pacing: segments leave no faster than a rate, which is the smaller one of what the
 * program allows (SO_MAX_PACING_RATE) and what the congestion control asks for. What
 * leaves in one go is what Linux would send in one, so that the timer is not set for
 * each segment: a thousandth of a second's worth, and two segments at least.
 *
 * Nor do they leave while the device takes no more (tcp_ops.no_room_ns): what it refuses
 * would be a loss, for which the window shrinks, and a refused repair waits for a timeout.
 * New data that it refuses all the same, since others were faster, or because it was so short
 * that nobody had asked, is taken back, and the acknowledgment in it is owed.
 */
#include "tcp/tcp_priv.h"

/* The window of the start leaves at once, as with Linux. */
enum { FREE_SEGMENTS = 10 };

#define BURST_NS (NS_PER_SEC >> 10)

/* What Linux derives for algorithms that do not pace of their own: the window in a
 * round trip, with room to double it in slow start and to grow later. */
static uint64_t rate_of_window(const struct tcp_pcb *pcb)
{
	uint64_t percent = pcb->cwnd < pcb->ssthresh / 2 ? 200 : 120;
	uint64_t window = MAX(pcb->cwnd, pcb->snd_nxt - pcb->snd_una);

	if (!(pcb->flags & TF_HAS_RTT))
		return TCP_NO_PACING;
	return window * percent / 100 * NS_PER_SEC / MAX(pcb->srtt_ns, UINT64_C(1));
}

uint64_t tcp_pace_rate(const struct tcp_pcb *pcb)
{
	uint64_t most = pcb->settings->max_pacing_rate;
	uint64_t rate = pcb->pacing_rate;

	if (!rate && most != TCP_NO_PACING)
		rate = rate_of_window(pcb);
	return rate ? MIN(rate, most) : TCP_NO_PACING;
}

void tcp_pace_update(struct tcp_pcb *pcb)
{
	bool is_paced = pcb->pacing_rate ||
			pcb->settings->max_pacing_rate != TCP_NO_PACING;

	if (is_paced) {
		pcb->slow_out |= SLOW_PACED;
		return;
	}
	pcb->slow_out &= (uint8_t)~SLOW_PACED;
	pcb->pace_at_ns = 0;
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
	return bytes * NS_PER_SEC / MAX(rate, UINT64_C(1));
}

bool tcp_pace_is_held(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool has_begun = pcb->pace_begun_ns == now_ns;

	pcb->pace_wait_ns = 0;
	if (!(pcb->slow_out & SLOW_PACED))
		return false;
	if (!has_begun && pcb->pace_at_ns <= now_ns) {
		pcb->pace_begun_ns = now_ns;
		pcb->pace_burst = 0;
		return false;
	}
	/* What was begun just now goes on until it is a burst; then all of its time
	 * is waited for. */
	if (has_begun && pcb->pace_burst < tcp_pace_burst(pcb))
		return false;
	pcb->pace_wait_ns = MAX(pcb->pace_at_ns, now_ns + 1);
	tcp_timer_update(pcb);
	return true;
}

uint64_t tcp_room_always(void *ctx UNUSED, const struct tcp_pcb *pcb UNUSED,
			 uint64_t now_ns UNUSED)
{
	return 0;
}

bool tcp_pace_look(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;
	uint64_t wait_ns = table->ops->no_room_ns(table->ctx, pcb, now_ns);

	if (!wait_ns) {
		table->had_room_at = table->counts.out_segments;
		return false;
	}
	pcb->pace_wait_ns = now_ns + wait_ns;
	tcp_timer_update(pcb);
	return true;
}

/* The last step of sending is to give it away, so that all of it can be taken back. */
COLD void tcp_emit_failed(struct tcp_table *table, struct tcp_pcb *pcb,
			  const uint8_t *header, uint32_t data_len, uint64_t now_ns)
{
	const struct wire_tcp *tcp = (const void *)header;
	struct pkt *first = NULL;

	table->had_room_at = table->counts.out_segments - TCP_EMITS_PER_LOOK;
	if (!pcb || tcp->flags & WIRE_TCP_RST)
		return;
	/* The timer sends our SYN once more. Answers to those of others, who may be many and
	 * false, are lost. */
	if (pcb->state == TCPS_SYN_SENT)
		(void)tcp_pace_look(pcb, now_ns);
	if (!tcp_is_synchronised(pcb) || tcp->flags & WIRE_TCP_SYN ||
	    !tcp_pace_look(pcb, now_ns))
		return;
	/* What it acknowledges, or a window that it opens, the peer shall hear of as soon as
	 * there is room, whether or not its bytes can leave then. */
	pcb->flags |= TF_ACK_NOW;
	pcb->is_header_stale = true;
	if (data_len || tcp->flags & WIRE_TCP_FIN)
		first = tcp_out_sent_last(pcb, be32toh(tcp->seq));
	if (!first)
		return;
	/* RFC 3168 section 6.1.2; in the bits of accurate ECN it is a part of a number */
	if (tcp->flags & WIRE_TCP_CWR && !pcb->is_accurate)
		pcb->flags |= TF_CWR_OUT;
	tcp_out_take_back(pcb, first);
	if (pcb->snd_una == pcb->snd_nxt)
		tcp_timer_rearm_rtx(pcb, now_ns);
}

/* What a timer fires late is made good, up to half a burst. */
void tcp_pace_note(struct tcp_pcb *pcb, uint32_t len, uint64_t now_ns)
{
	uint64_t rate;

	if (!(pcb->slow_out & SLOW_PACED) ||
	    pcb->data_segs_out < FREE_SEGMENTS)
		return;
	rate = tcp_pace_rate(pcb);
	if (rate == TCP_NO_PACING)
		return;
	pcb->pace_burst += len;
	pcb->pace_at_ns = MAX(pcb->pace_at_ns, now_ns - BURST_NS / 2) +
			  time_of(len, rate);
}

uint32_t tcp_pace_burst(const struct tcp_pcb *pcb)
{
	uint64_t bytes;

	if (!(pcb->slow_out & SLOW_PACED))
		return UINT32_MAX;
	bytes = tcp_pace_rate(pcb) >> 10;
	bytes = MIN(bytes, (uint64_t)UINT32_MAX);
	return MAX((uint32_t)bytes, 2 * pcb->mss);
}
