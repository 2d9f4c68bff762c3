/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUBIC (RFC 9438) in whole numbers: windows in bytes, times in milliseconds.
 * beta is 0.7, C is 0.4 segments per second cubed.
 */
#include "tcp/tcp_cc.h"

/* Beyond this the cube would not fit, and no epoch lasts so long. */
enum { EPOCH_MAX_MS = 150000 };

static void cubic_init(struct tcp_pcb *pcb)
{
	memset(&pcb->cc.cubic, 0, sizeof(pcb->cc.cubic));
	tcp_hystart_init(&pcb->cc.cubic.hystart, pcb->snd_nxt);
}

/* The whole cube root, by bits. */
static uint32_t cube_root(uint64_t x)
{
	uint64_t root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		uint64_t wider = root | UINT64_C(1) << bit;

		if (wider * wider * wider <= x)
			root = wider;
	}
	return (uint32_t)root;
}

/* Section 4.6, with fast convergence (4.7): a flow that had to give way before it was
 * back at its old window leaves room for others. */
static uint32_t cubic_ssthresh(struct tcp_pcb *pcb, uint64_t now_ns UNUSED)
{
	struct tcp_cubic *c = &pcb->cc.cubic;

	c->epoch_ns = 0;
	if (pcb->cwnd < c->w_max)
		c->w_max = (uint32_t)((uint64_t)pcb->cwnd * 17 / 20);
	else
		c->w_max = pcb->cwnd;
	return MAX((uint32_t)((uint64_t)pcb->cwnd * 7 / 10), 2 * pcb->mss);
}

/* Section 4.2: K is where the curve comes back to w_max. */
static void begin_epoch(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_cubic *c = &pcb->cc.cubic;
	uint64_t missing;

	c->epoch_ns = now_ns;
	c->w_est = pcb->cwnd;
	if (pcb->cwnd >= c->w_max) {
		c->origin = pcb->cwnd;
		c->k_ms = 0;
		return;
	}
	c->origin = c->w_max;
	missing = (c->w_max - pcb->cwnd) / pcb->mss;
	/* K^3 = missing / C in seconds cubed */
	c->k_ms = cube_root(missing * 5 / 2 * UINT64_C(1000000000));
}

/* Equation 1, one round trip ahead as section 4.4 has it. */
static uint32_t cubic_target(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_cubic *c = &pcb->cc.cubic;
	uint64_t t_ms = (now_ns - c->epoch_ns + pcb->srtt_ns) / NS_PER_MS;
	int64_t off_ms = (int64_t)MIN(t_ms, (uint64_t)EPOCH_MAX_MS) - c->k_ms;
	int64_t bytes = off_ms * off_ms * off_ms / 1000000 *
			(int64_t)pcb->mss * 2 / 5000;
	int64_t target = (int64_t)c->origin + bytes;
	int64_t most = (int64_t)pcb->cwnd + pcb->cwnd / 2;

	target = MIN(target, most);
	return (uint32_t)MAX(target, (int64_t)pcb->cwnd);
}

/* Section 4.3: what Reno would have reached, in expectation; equation 4 with
 * alpha = 3 (1 - beta) / (1 + beta) = 9 / 17, and 1 once w_max is passed. */
static void grow_reno_estimate(struct tcp_pcb *pcb, uint32_t bytes)
{
	struct tcp_cubic *c = &pcb->cc.cubic;
	uint64_t grown = (uint64_t)bytes * pcb->mss / MAX(c->w_est, 1u);

	if (c->w_est < c->w_max)
		grown = grown * 9 / 17;
	c->w_est += (uint32_t)grown;
}

/* RFC 9406 section 4.2: only in the slow start of the beginning, because a later one
 * knows its threshold. */
static void slow_start_first(struct tcp_pcb *pcb, uint32_t bytes)
{
	bool ends;

	bytes = tcp_hystart_acked(&pcb->cc.cubic.hystart, pcb->snd_una,
				  pcb->snd_nxt, pcb->rack_rtt_ns, bytes, &ends);
	tcp_cc_slow_start(pcb, bytes);
	if (ends)
		pcb->ssthresh = pcb->cwnd;
}

static void cubic_acked(struct tcp_pcb *pcb, uint32_t bytes, uint64_t now_ns)
{
	struct tcp_cubic *c = &pcb->cc.cubic;
	uint32_t target;

	if (pcb->ssthresh == TCP_SSTHRESH_NONE &&
	    pcb->table->params.with_hystart) {
		slow_start_first(pcb, bytes);
		return;
	}
	bytes = tcp_cc_slow_start(pcb, bytes);
	if (!bytes)
		return;
	if (!c->epoch_ns)
		begin_epoch(pcb, now_ns);
	grow_reno_estimate(pcb, bytes);
	target = MAX(cubic_target(pcb, now_ns), c->w_est);
	if (target <= pcb->cwnd)
		return;
	/* reach the target within one window of acknowledgments */
	pcb->cwnd += (uint32_t)((uint64_t)(target - pcb->cwnd) * bytes /
				pcb->cwnd);
}

static void cubic_restarted(struct tcp_pcb *pcb, uint64_t idle_ns)
{
	/* the curve must not have grown while nothing was sent */
	pcb->cc.cubic.epoch_ns = 0;
	tcp_cc_restart(pcb, idle_ns);
}

/* Section 4.9 */
static void cubic_undone(struct tcp_pcb *pcb)
{
	pcb->cc.cubic.w_max = MAX(pcb->cc.cubic.w_max, pcb->cwnd);
	pcb->cc.cubic.epoch_ns = 0;
}

const struct tcp_cc_ops tcp_cc_cubic = {
	.name = "cubic",
	.init = cubic_init,
	.ssthresh = cubic_ssthresh,
	.acked = cubic_acked,
	.restarted = cubic_restarted,
	.undone = cubic_undone,
};
