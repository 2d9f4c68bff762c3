/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The history of a connection in numbers, for TCP_INFO. Most are counted where it
 * happens; what follows from others is put together here. */
#include "tcp/tcp_priv.h"

/* The bytes that went by, in 64 bits. The low half is a difference of sequence
 * numbers. For the rest, every half of a round was counted; the lowest bit of that
 * count is the highest bit of the low half. */
static uint64_t stretch(uint32_t low, uint32_t *halves)
{
	*halves += (low >> 31) ^ (*halves & 1);
	return (uint64_t)(*halves >> 1) << 32 | low;
}

static uint64_t acked(const struct tcp_pcb *pcb, uint32_t *halves)
{
	bool has_fin = pcb->flags & TF_FIN_QUEUED && pcb->snd_una == pcb->snd_end;

	if (!tcp_is_synchronised(pcb) || tcp_is_pending(pcb))
		return 0;
	return stretch(pcb->snd_una - pcb->iss - 1 - has_fin, halves);
}

static uint64_t received(const struct tcp_pcb *pcb, uint32_t *halves)
{
	if (!tcp_is_synchronised(pcb))
		return 0;
	return stretch(pcb->rcv_nxt - pcb->irs - 1 -
			       !!(pcb->flags & TF_FIN_RCVD), halves);
}

void tcp_stats_note_halves(struct tcp_pcb *pcb)
{
	acked(pcb, &pcb->acked_halves);
	received(pcb, &pcb->received_halves);
}

/* ---- how the time was spent ---- */

void tcp_stats_pass(struct tcp_pcb *pcb, enum tcp_chrono kind, uint64_t now_ns)
{
	uint32_t ticks = tcp_ticks(now_ns) - pcb->chrono_since;

	if (kind == CHRONO_IDLE)
		tcp_stats_note_flight(pcb, now_ns);
	if (pcb->chrono != CHRONO_IDLE)
		pcb->busy_ticks += ticks;
	if (pcb->chrono == CHRONO_WINDOW)
		pcb->window_ticks += ticks;
	if (pcb->chrono == CHRONO_BUFFER)
		pcb->buffer_ticks += ticks;
	pcb->chrono = (uint8_t)kind;
	pcb->chrono_since = tcp_ticks(now_ns);
}

/* Nothing more may be sent, whatever the congestion window is. */
static bool is_window_full(const struct tcp_pcb *pcb)
{
	return seq_at_most(pcb->snd_una + pcb->snd_wnd,
			   tcp_seg(pcb->unsent)->seq);
}

static bool is_buffer_full(const struct tcp_pcb *pcb)
{
	return pcb->snd_end - pcb->snd_una >= pcb->snd_buf;
}

void tcp_stats_sent(struct tcp_pcb *pcb, uint64_t now_ns)
{
	enum tcp_chrono kind = CHRONO_BUSY;

	/* Who has written since had room. */
	if (!is_buffer_full(pcb) || pcb->snd_end != pcb->wanted_end)
		pcb->slow_out &= (uint8_t)~SLOW_WANTED;
	if (pcb->unsent && is_window_full(pcb))
		kind = CHRONO_WINDOW;
	else if (!pcb->unsent && pcb->slow_out & SLOW_WANTED)
		kind = CHRONO_BUFFER;
	if (pcb->unsent || pcb->chrono != CHRONO_IDLE)
		tcp_stats_set(pcb, kind, now_ns);
}

/* An acknowledgment that makes room leaves this as it is, so that its path need not ask.
 * It ends with the next push: when the woken writer has written. */
void tcp_wants_room(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!tcp_may_send(pcb) || !is_buffer_full(pcb))
		return;
	pcb->slow_out |= SLOW_WANTED;
	pcb->wanted_end = pcb->snd_end;
	tcp_stats_sent(pcb, now_ns);
}

void tcp_stats_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!pcb->timeouts) {
		pcb->timeout_runs += pcb->timeout_runs < UINT16_MAX;
		pcb->timeout_since = tcp_ticks(now_ns) | 1;
	}
	pcb->timeouts_ever += pcb->timeouts_ever < UINT16_MAX;
}

void tcp_stats_repaired(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->timeout_ticks += tcp_ticks(now_ns) - pcb->timeout_since;
	pcb->timeout_since = 0;
}

void tcp_get_stats(const struct tcp_pcb *pcb, struct tcp_pcb_stats *stats_out,
		   uint64_t now_ns)
{
	uint32_t acked_halves = pcb->acked_halves;
	uint32_t received_halves = pcb->received_halves;
	uint32_t ticks = tcp_ticks(now_ns) - pcb->chrono_since;
	uint32_t busy = pcb->chrono != CHRONO_IDLE ? ticks : 0;
	uint32_t window = pcb->chrono == CHRONO_WINDOW ? ticks : 0;
	uint32_t buffer = pcb->chrono == CHRONO_BUFFER ? ticks : 0;

	*stats_out = (struct tcp_pcb_stats){
		.segs_in = pcb->segs_in,
		.segs_out = pcb->segs_out,
		.data_segs_in = pcb->data_segs_in,
		.data_segs_out = pcb->data_segs_out,
		.delivered = pcb->delivered,
		.delivered_ce = pcb->delivered_ce,
		.bytes_acked = acked(pcb, &acked_halves),
		.bytes_received = received(pcb, &received_halves),
		.bytes_resent = pcb->bytes_resent,
		.duplicates = pcb->duplicates,
		.reorderings = pcb->reorderings,
		.reordering = MAX(pcb->reordering, TCP_REORDERING_LEAST),
		.out_of_order = pcb->out_of_order,
		.timeouts = pcb->timeouts_ever,
		.timeout_runs = pcb->timeout_runs,
		.timeout_ns = (uint64_t)pcb->timeout_ticks << TICK_SHIFT,
		.busy_ns = (uint64_t)(pcb->busy_ticks + busy) << TICK_SHIFT,
		.window_limited_ns = (uint64_t)(pcb->window_ticks + window)
				     << TICK_SHIFT,
		.buffer_limited_ns = (uint64_t)(pcb->buffer_ticks + buffer)
				     << TICK_SHIFT,
		.delivery_rate = pcb->delivery_rate,
		.is_app_limited = pcb->is_rate_app_limited,
	};
	stats_out->bytes_sent = stats_out->bytes_acked + stats_out->bytes_resent;
	if (tcp_is_synchronised(pcb))
		stats_out->bytes_sent += pcb->snd_nxt - pcb->snd_una;
}
