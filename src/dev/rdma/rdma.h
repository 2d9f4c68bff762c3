/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RDMA back end drives Ethernet cards through queues of the process's own:
 * ConnectX by work queues that it writes and reads itself (mlx5), others by what
 * libibverbs has for all of them (verbs). It is a module; core gives it these
 * parameters at the start.
 */
#ifndef DEV_RDMA_RDMA_H
#define DEV_RDMA_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/rdma/aim.h"

enum rdma_wish {
	RDMA_WISH_BEST,
	RDMA_WISH_MLX5,
	RDMA_WISH_VERBS,
};

/* How time stamps of the card become the program's, as VMA_HW_TS_CONVERSION has it. */
enum rdma_stamps {
	RDMA_STAMPS_OFF = 0,
	/* the counter's own time, since it was 0 */
	RDMA_STAMPS_RAW = 1,
	/* system time if the counter can be read, else its own */
	RDMA_STAMPS_BEST = 2,
	RDMA_STAMPS_SYSTEM = 3,
	/* what the driver publishes, as PTP corrects it; without that, system time */
	RDMA_STAMPS_PTP = 4,
};

struct rdma_params {
	enum rdma_wish wish;
	/* The most frames that are posted to receive into, and how many are
	 * given to the card at once. */
	uint32_t rx_max;
	uint32_t rx_batch;
	/* When there are no frames left, one that was received is posted again, and
	 * its packet is dropped, so that the queue does not run dry. */
	bool is_kept_full;
	/* How deep the queue for sending is, and in how many sends a completion is
	 * asked for once. */
	uint32_t tx_max;
	uint32_t tx_batch;
	/* Frames up to this length are copied into the queue. */
	uint32_t inline_max;
	/* Bytes of the card's memory for each ring, from which longer ones are sent. */
	uint32_t dev_mem;
	/* What TCP sends at once is cut into segments by cards that can. */
	bool has_tso;
	/* Entries are written into the card's registers where it has them. */
	bool has_blue_flame;
	/* How an interrupt waits for packets at first, and how that changes. */
	struct aim_choice moderation;
	struct aim_params aim;
	enum rdma_stamps stamps;
	/* The program may fork. */
	bool may_fork;
};

#endif
