/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What several congestion control algorithms do the same way. */
#ifndef TCP_TCP_CC_H
#define TCP_TCP_CC_H

#include "tcp/tcp_priv.h"

/* RFC 5681 section 3.1: a byte for each byte. Returns those that were left when
 * the threshold was reached. */
static inline uint32_t tcp_cc_slow_start(struct tcp_pcb *pcb, uint32_t bytes)
{
	uint32_t used;

	if (pcb->cwnd >= pcb->ssthresh)
		return bytes;
	used = MIN(bytes, pcb->ssthresh - pcb->cwnd);
	pcb->cwnd += used;
	return bytes - used;
}

/* What a connection may send in its beginning: by the route, or RFC 6928. */
static inline uint32_t tcp_cc_initial_window(const struct tcp_pcb *pcb)
{
	enum { MOST = 1 << 30 };
	uint64_t segments = pcb->path.initial_window;

	if (!segments)
		segments = pcb->table->params.initial_window;
	return (uint32_t)MIN(segments * pcb->mss, (uint64_t)MOST);
}

/* RFC 5681 section 4.1, softened as RFC 2861 does: half for each timeout that has
 * passed in silence, not below what a new connection may send. */
static inline void tcp_cc_restart(struct tcp_pcb *pcb, uint64_t idle_ns)
{
	uint32_t floor = tcp_cc_initial_window(pcb);

	pcb->ssthresh = MAX(pcb->ssthresh, pcb->cwnd / 4 * 3);
	while (idle_ns > pcb->rto_ns && pcb->cwnd > floor) {
		idle_ns -= pcb->rto_ns;
		pcb->cwnd = MAX(pcb->cwnd / 2, floor);
	}
}

#endif
