/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HyStart++ (RFC 9406): slow start ends when round trips become longer, before the
 * queue on the path overflows. State and rules alone; the algorithm that uses it knows
 * the connection.
 */
#ifndef TCP_TCP_HYSTART_H
#define TCP_TCP_HYSTART_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_hystart {
	/* the round ends when this is acknowledged */
	uint32_t round_end;
	/* shortest round trips, in microseconds, of the last round and this one;
	 * HYSTART_NO_RTT: none was measured */
	uint32_t last_us;
	uint32_t current_us;
	/* where conservative slow start began */
	uint32_t baseline_us;
	uint8_t samples;
	bool is_conservative;
	/* of conservative slow start, complete */
	uint8_t rounds;
};

#define HYSTART_NO_RTT UINT32_MAX

void tcp_hystart_init(struct tcp_hystart *h, uint32_t snd_nxt);
/* An ACK in slow start has acknowledged `bytes`, up to snd_una, after `rtt_ns`. Returns
 * by how many the window grows. *ends_out: slow start is over behind them. */
uint32_t tcp_hystart_acked(struct tcp_hystart *h, uint32_t snd_una,
			   uint32_t snd_nxt, uint64_t rtt_ns, uint32_t bytes,
			   bool *ends_out);

#endif
