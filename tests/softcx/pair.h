/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two cards in one process, at the ends of one cable, in manual mode: mlx5_0,
 * which sends, and mlx5_1, which receives; and the frames between them. For the
 * test programs that lab_one runs.
 */
#ifndef SOFTCX_PAIR_H
#define SOFTCX_PAIR_H

#include "rig.h"

enum { PAIR_PORT_A = 5001, PAIR_PORT_B = 5000, PAIR_DATA = 100 };

static const uint32_t pair_ip_a = 0x0a090001, pair_ip_b = 0x0a090002;

extern struct rig pair_a, pair_b;

/* NULL: as rig_open() does by itself. */
void pair_open(const struct rig_params *pa, const struct rig_params *pb);
void pair_close(void);

/* UDP from a to b: the rule for it, and a frame. */
struct rig_flow pair_flow(void);
struct rig_frame pair_frame(void);
/* Builds a frame with `len` bytes of data in send slot `i` of a; its length. */
uint32_t pair_put(uint32_t i, const struct rig_frame *f, uint32_t len);
/* Sends a frame with PAIR_DATA bytes from slot `i`. */
void pair_send(uint32_t i, unsigned int flags);

#endif
