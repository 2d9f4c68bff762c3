/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time stamps that a card gives to what it receives, and how they become the program's:
 * as the user has chosen, and as far as the device can. */
#ifndef DEV_RDMA_STAMPS_H
#define DEV_RDMA_STAMPS_H

#include <infiniband/verbs.h>

#include "dev/rdma/card_clock.h"
#include "dev/rdma/rdma.h"

struct stamps {
	/* RDMA_STAMPS_OFF: the device has none, or they are not wanted. Fixed when the
	 * device is open. */
	enum rdma_stamps kind;
	struct ibv_context *ctx;
	struct card_clock clock;
	uint64_t sampled_ns;
};

/* Asks the device, whose name is for the log. */
void stamps_open(struct stamps *stamps, struct ibv_context *ctx,
		 const struct ibv_device_attr_ex *attr, enum rdma_stamps wish,
		 const char *name);

/* To be called about once a second, by one thread at a time; what comes too soon is left
 * out. */
void stamps_keep(struct stamps *stamps);

/* What the value of the counter means to the program; 0: nobody knows. No system
 * call. */
uint64_t stamps_ns(const struct stamps *stamps, uint64_t ticks);

#endif
