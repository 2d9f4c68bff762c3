/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Adaptive moderation of interrupts (aim.h). */
#include "config.h"

#include "dev/rdma/aim.h"

#include "base/clock.h"
#include "base/compiler.h"

/* Below both, who sends waits for answers, and an interrupt that waits delays them. The
 * numbers are VMA's. */
enum { QUICK_PKTS_PER_SEC = 450000, QUICK_PKT_BYTES = 1024 };

enum { US_PER_SEC = 1000000 };

static struct aim_choice choose(const struct aim_params *params, uint64_t pkts,
				uint64_t bytes, uint64_t ns)
{
	uint64_t pkts_per_sec = pkts * NS_PER_SEC / ns;
	bool is_quick = pkts_per_sec < QUICK_PKTS_PER_SEC &&
			bytes < pkts * QUICK_PKT_BYTES;

	if (!pkts || is_quick || pkts_per_sec <= params->rate)
		return (struct aim_choice){ 0, 0 };
	if (!params->rate)
		return (struct aim_choice){ params->max_cnt, params->max_us };
	return (struct aim_choice){
		(uint16_t)MIN(pkts_per_sec / params->rate, params->max_cnt),
		(uint16_t)MIN((uint32_t)US_PER_SEC / params->rate,
			      params->max_us),
	};
}

static void begin(struct aim *aim, uint64_t now_ns, uint64_t pkts, uint64_t bytes)
{
	aim->since_ns = now_ns;
	aim->pkts = pkts;
	aim->bytes = bytes;
}

bool aim_adapt(struct aim *aim, const struct aim_params *params, uint64_t now_ns,
	       uint64_t pkts, uint64_t bytes)
{
	struct aim_choice before = aim->now;

	if (!params->interval_ns)
		return false;
	if (!aim->since_ns || pkts < aim->pkts || bytes < aim->bytes) {
		begin(aim, now_ns, pkts, bytes);
		return false;
	}
	if (now_ns - aim->since_ns < params->interval_ns)
		return false;
	aim->now = choose(params, pkts - aim->pkts, bytes - aim->bytes,
			  now_ns - aim->since_ns);
	begin(aim, now_ns, pkts, bytes);
	return aim->now.cnt != before.cnt || aim->now.us != before.us;
}
