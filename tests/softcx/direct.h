/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rig's queues driven by hand, as the mlx5 ring will: entries, doorbells and
 * completions without libmlx5 in between (mlx5dv). One thread.
 */
#ifndef SOFTCX_DIRECT_H
#define SOFTCX_DIRECT_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig.h"

enum {
	DIRECT_SIGNALED = 1 << 0,
	DIRECT_CSUM = 1 << 1,
	DIRECT_INLINE = 1 << 2,
	DIRECT_MAX_INLINE = 512,
};

struct direct {
	struct mlx5dv_qp qp;
	struct mlx5dv_cq send_cq;
	struct mlx5dv_cq recv_cq;
	uint32_t qpn;
	uint16_t sq_pi;     /* next block */
	uint16_t rq_pi;     /* next entry */
	uint32_t send_ci;
	uint32_t recv_ci;
	uint8_t send_sn;
	uint8_t recv_sn;
	unsigned int bf_offset;
};

/* What one entry is made of. Tests of rules make wrong ones. */
struct direct_entry {
	uint8_t bytes[1024];
	uint32_t len;       /* a multiple of 16 */
	uint16_t index;
};

struct direct_wc {
	uint16_t index;     /* entry */
	uint32_t len;
	uint8_t opcode;
	bool csum_is_ok;
};

void direct_init(struct direct *d, struct rig *rig);
void direct_build(struct direct *d, struct direct_entry *e, const void *frame,
		  uint32_t len, uint32_t lkey, unsigned int flags);
/* Copies the entry into the ring. */
void direct_put(struct direct *d, const struct direct_entry *e);
/* Record, then doorbell: plain, or the whole entry through BlueFlame. */
void direct_ring(struct direct *d, const struct direct_entry *e, bool is_bf);
void direct_set_record(struct direct *d, uint16_t pi);
void direct_bell(struct direct *d, const struct direct_entry *e, bool is_bf);

void direct_post_recv(struct direct *d, const void *at, uint32_t len,
		      uint32_t lkey);
/* False: nothing there. */
bool direct_poll_send(struct direct *d, struct direct_wc *wc);
bool direct_poll_recv(struct direct *d, struct direct_wc *wc);
/* Asks for an event of both queues. */
void direct_arm(struct direct *d);

#endif
