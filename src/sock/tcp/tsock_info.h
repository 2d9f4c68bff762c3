/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP_INFO of connections of ours. */
#ifndef SOCK_TCP_TSOCK_INFO_H
#define SOCK_TCP_TSOCK_INFO_H

#include <netinet/tcp.h>
#include <stdint.h>

#include "sock/tcp/tsock_priv.h"

/* The kernel's struct is longer than some C library's; this is the part that both have,
 * and what we know of the rest. */
struct tsock_info {
	struct tcp_info base;
	uint64_t pacing_rate, max_pacing_rate;
	uint64_t bytes_acked, bytes_received;
	uint32_t segs_out, segs_in;
	uint32_t notsent_bytes, min_rtt;
	uint32_t data_segs_in, data_segs_out;
	uint64_t delivery_rate;
	uint64_t busy_time, rwnd_limited, sndbuf_limited;
	uint32_t delivered, delivered_ce;
	uint64_t bytes_sent, bytes_retrans;
	uint32_t dsack_dups, reord_seen;
	uint32_t rcv_ooopack, snd_wnd;
	uint32_t rcv_wnd, rehash;
	uint16_t total_rto, total_rto_recoveries;
	uint32_t total_rto_time;
	/* of AccECN, whose bytes are not told */
	uint32_t accecn[7];
	uint16_t accecn_fail_mode, accecn_opt_seen;
};
void tsock_fill_info(struct tsock *t, struct tsock_info *out)
	REQUIRES(t->engine->stack->lock);

#endif
