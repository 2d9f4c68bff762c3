/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queues by which an interface receives. The steering program drops TCP that comes
 * by a queue without a socket of ours, so there must be one on each.
 */
#ifndef DEV_XDP_QUEUES_H
#define DEV_XDP_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

struct queues_of {
	int ifindex;
	const uint8_t *mac;
	/* as in struct backend_request */
	uint32_t max;
	/* files have told, when they were counted last */
	bool is_in_sys;
};

/* How many there are now; counted no further than one above `limit`. 0: that cannot be
 * known. */
uint32_t queues_count(struct queues_of *of, uint32_t limit);
/* Whether it is worth counting them again. No number is opened meanwhile, which the program
 * might miss: `by` is a socket of ours. */
bool queues_may_be_more(const struct queues_of *of, int by, uint32_t cnt);

#endif
