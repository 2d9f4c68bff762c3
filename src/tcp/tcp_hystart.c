/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rules of RFC 9406 section 4.2, with its constants of section 4.3. L, a limit of
 * what one ACK may add, is not one of them here: those of a batch come as one ACK. */
#include "tcp/tcp_hystart.h"

#include "base/clock.h"
#include "base/compiler.h"

enum {
	MIN_RTT_THRESH_US = 4000,
	MAX_RTT_THRESH_US = 16000,
	MIN_RTT_DIVISOR = 8,
	N_RTT_SAMPLE = 8,
	CSS_GROWTH_DIVISOR = 4,
	CSS_ROUNDS = 5,
};

static void begin_round(struct tcp_hystart *h, uint32_t snd_nxt)
{
	h->round_end = snd_nxt;
	h->last_us = h->current_us;
	h->current_us = HYSTART_NO_RTT;
	h->samples = 0;
}

void tcp_hystart_init(struct tcp_hystart *h, uint32_t snd_nxt)
{
	*h = (struct tcp_hystart){ .current_us = HYSTART_NO_RTT };
	begin_round(h, snd_nxt);
}

static void take_rtt(struct tcp_hystart *h, uint64_t rtt_ns)
{
	uint64_t rtt_us = MIN(rtt_ns / NS_PER_US, UINT64_C(1000000000));

	h->current_us = MIN(h->current_us, (uint32_t)rtt_us);
	h->samples += h->samples < N_RTT_SAMPLE;
}

/* Whether this round's trips are so much longer than those of the last. */
static bool has_queue(const struct tcp_hystart *h)
{
	uint32_t thresh_us = MIN(h->last_us / MIN_RTT_DIVISOR,
				 (uint32_t)MAX_RTT_THRESH_US);

	if (h->samples < N_RTT_SAMPLE || h->last_us == HYSTART_NO_RTT)
		return false;
	thresh_us = MAX(thresh_us, (uint32_t)MIN_RTT_THRESH_US);
	return h->current_us >= h->last_us + thresh_us;
}

/* What looked like a queue was jitter. */
static bool was_mistaken(const struct tcp_hystart *h)
{
	return h->samples >= N_RTT_SAMPLE && h->current_us < h->baseline_us;
}

static void look(struct tcp_hystart *h)
{
	if (h->is_conservative) {
		if (was_mistaken(h))
			h->is_conservative = false;
	} else if (has_queue(h)) {
		h->is_conservative = true;
		h->baseline_us = h->current_us;
		h->rounds = 0;
	}
}

uint32_t tcp_hystart_acked(struct tcp_hystart *h, uint32_t snd_una,
			   uint32_t snd_nxt, uint64_t rtt_ns, uint32_t bytes,
			   bool *ends_out)
{
	uint32_t growth = h->is_conservative ? bytes / CSS_GROWTH_DIVISOR
					     : bytes;

	*ends_out = false;
	take_rtt(h, rtt_ns);
	look(h);
	/* The last round may have ended long ago, since nobody asks while the window is
	 * not used: its end is ahead only where it is under way. */
	if (h->round_end - snd_una - 1 < snd_nxt - snd_una)
		return growth;
	if (h->is_conservative && ++h->rounds >= CSS_ROUNDS)
		*ends_out = true;
	begin_round(h, snd_nxt);
	return growth;
}
