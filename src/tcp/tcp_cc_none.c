/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* No congestion control, for networks that have their own: the peer's window is
 * the only limit. */
#include "tcp/tcp_priv.h"

static void open_wide(struct tcp_pcb *pcb)
{
	pcb->cwnd = UINT32_MAX / 4;
}

static uint32_t none_ssthresh(struct tcp_pcb *pcb UNUSED,
			      uint64_t now_ns UNUSED)
{
	return UINT32_MAX / 4;
}

static void none_acked(struct tcp_pcb *pcb, uint32_t bytes UNUSED,
		       uint64_t now_ns UNUSED)
{
	open_wide(pcb);
}

static void none_restarted(struct tcp_pcb *pcb, uint64_t idle_ns UNUSED)
{
	open_wide(pcb);
}

const struct tcp_cc_ops tcp_cc_none = {
	.name = "none",
	.init = open_wide,
	.ssthresh = none_ssthresh,
	.acked = none_acked,
	.restarted = none_restarted,
	.undone = open_wide,
};
