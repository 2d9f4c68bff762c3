/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flow rules: which queue pairs get a frame. The rule of the highest precedence
 * that matches decides, together with all others that say the same match: each
 * gets a copy. What no rule claims is the kernel's.
 */
#ifndef SOFTCX_STEER_H
#define SOFTCX_STEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "frame.h"
#include "obj.h"

struct ctx;
struct dev;
struct qp;
struct ib_uverbs_flow_attr;

struct rule {
	struct obj obj;
	struct list link;       /* dev->rules */
	struct ctx *ctx;
	struct qp *qp;
	struct frame_key value; /* nothing outside the mask */
	struct frame_key mask;
	unsigned int rank;      /* 0: ordinary rules; 1: defaults */
	uint16_t priority;      /* lower goes first */
	unsigned int n_bits;    /* of the mask; more goes first */
	uint32_t tag;
	bool is_drop;
	bool is_trap;           /* the kernel does not see the frame */
	bool is_ended;          /* no further frame is hidden for it */
};

/* Understands a create_flow command. -EINVAL, -EOPNOTSUPP. */
MUST_CHECK int rule_parse(const struct ib_uverbs_flow_attr *attr, size_t size,
			  struct rule *rule_out);
MUST_CHECK int rule_create(struct ctx *ctx, struct qp *qp,
			   const struct rule *params, struct rule **rule_out);
/* From now on the rule hides no frame from the kernel. What it has hidden, and is on the
 * wire, is still for its queue. */
void rule_end(struct rule *rule);
void rule_destroy(struct rule *rule);

/* Gives the frame to whoever the rules say; returns how many got it. With
 * `is_dry` only counts. */
unsigned int steer_frame(struct dev *dev, const uint8_t *frame, size_t len,
			 bool is_dry);

#endif
