/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of tcp_rx.c about what was read, which tcp_fast.c does for each segment. */
#ifndef TCP_TCP_RX_PRIV_H
#define TCP_TCP_RX_PRIV_H

#include "tcp/tcp_priv.h"

/* Whether the peer may wait for what the delayed acknowledgment says, as Linux sees it: for
 * more than a segment, or for all that it has written, if we have nothing to say to it. One
 * without TCP_NODELAY sends no second small segment before. */
static inline bool tcp_rx_owes_ack(const struct tcp_pcb *pcb)
{
	bool is_all = !pcb->is_talking && pcb->was_pushed && !pcb->rcv_unread;

	return pcb->unacked_rcvd > (is_all ? 0 : pcb->rcv_mss);
}

/* What was read is acknowledged; if an answer follows at once, the next one rides on that. */
void tcp_rx_ack_read(struct tcp_pcb *pcb, uint64_t now_ns);

/* The part of tcp_recved that is left for a synchronised connection. */
static inline void tcp_rx_was_read(struct tcp_pcb *pcb, uint32_t len, uint64_t now_ns)
{
	uint32_t half = pcb->rcv_buf / 2, room, window, step;

	if (UNLIKELY(tcp_rx_owes_ack(pcb)))
		tcp_rx_ack_read(pcb, now_ns);
	pcb->tune_taken += len;
	if (UNLIKELY(now_ns - pcb->tune_start_ns >= MAX(pcb->srtt_ns, NS_PER_MS)))
		tcp_rx_tune(pcb, now_ns);
	window = seq_after(pcb->rcv_edge, pcb->rcv_nxt)
			 ? pcb->rcv_edge - pcb->rcv_nxt
			 : 0;
	/* We tell the peer when it gains a lot, or when it may be stuck. Neither can be
	 * while it knows of more than half of the buffer. */
	if (LIKELY(window > half + 1 && window >= 2 * pcb->mss))
		return;
	room = pcb->rcv_buf - MIN(pcb->rcv_unread, pcb->rcv_buf);
	step = window < 2 * pcb->mss ? MIN(half, pcb->mss) : half;
	if (UNLIKELY(room >= window + step))
		tcp_out_ack(pcb, now_ns);
}

#endif
