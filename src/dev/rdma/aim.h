/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adaptive moderation of interrupts: how many packets an interrupt waits for, by what
 * came lately. Pure arithmetic. Few packets, or small ones, shall be heard of at once;
 * of many the program shall be told no more often than the wished rate.
 */
#ifndef DEV_RDMA_AIM_H
#define DEV_RDMA_AIM_H

#include <stdbool.h>
#include <stdint.h>

struct aim_params {
	/* 0: never adapts */
	uint64_t interval_ns;
	/* the most that it chooses */
	uint16_t max_cnt;
	uint16_t max_us;
	/* interrupts in a second; 0: as few as the most allows */
	uint32_t rate;
};

/* An interrupt waits for so many packets, for so long at most. 0, 0: for none. */
struct aim_choice {
	uint16_t cnt;
	uint16_t us;
};

/* All zero at the start, but for `now`. */
struct aim {
	struct aim_choice now;
	/* when it was last chosen, and what had come by then; 0: never */
	uint64_t since_ns;
	uint64_t pkts;
	uint64_t bytes;
};

/* Chooses anew if an interval is over. `pkts` and `bytes` are counters that run on; one
 * that was set to 0 begins a new interval. True: `now` has changed. */
bool aim_adapt(struct aim *aim, const struct aim_params *params, uint64_t now_ns,
	       uint64_t pkts, uint64_t bytes);

#endif
