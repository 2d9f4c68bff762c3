/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steering program of an interface: which frames go to which of our queues.
 * Its map types are here, shared by the program (steer.bpf.c) and by who fills
 * the maps (steer.c).
 */
#ifndef DEV_XDP_STEER_H
#define DEV_XDP_STEER_H

#include <linux/types.h>

/* Hardware queues of an interface, and rules of it. */
enum { STEER_QUEUES_MAX = 64, STEER_RULES_MAX = 65536 };

/* A rule; `src` and `sport` are 0 in one that takes any peer. No padding, since
 * keys are compared as bytes. */
struct steer_key {
	__be32 dst;
	__be32 src;
	__be16 dport;
	__be16 sport;
	__u32 proto;
};

/* What the program reads of each frame's surroundings. */
struct steer_config {
	__u8 mac[6];
	__u16 zero;
	/* rules that name a peer; 0 spares the program the first look */
	__u32 connected_cnt;
};

#ifndef __bpf__

#include <stdbool.h>
#include <stdint.h>

#include "dev/ring.h"

struct steer;

/* Loads program and maps. `is_single`: a packet of several buffers is put into one
 * before the program sees it; in native mode long ones are then impossible. -EPERM
 * and the like. */
int steer_create(const uint8_t *mac, bool is_single,
		 struct steer **steer_out) MUST_CHECK;
/* Detaches and unloads. NULL is a no-op. */
void steer_destroy(struct steer *steer);

/* Frames of the queue go to the AF_XDP socket. */
int steer_set_queue(struct steer *steer, uint32_t queue, int xsk_fd) MUST_CHECK;

/* -EBUSY: another program is there. -EOPNOTSUPP: not in this mode. */
int steer_attach(struct steer *steer, int ifindex, bool is_native) MUST_CHECK;
/* Without what it does; it can be attached again. */
void steer_detach(struct steer *steer);
/* 0, -ENODEV: the interface is gone, -EBUSY: somebody put another program in our
 * place. */
int steer_check(const struct steer *steer) MUST_CHECK;

/* Lets a frame into the kernel's stack as if it had come by the interface.
 * -EINVAL: Linux before 5.18 cannot, or it is longer than a page. */
int steer_pass(struct steer *steer, const void *frame, uint32_t len) MUST_CHECK;

int steer_set_mac(struct steer *steer, const uint8_t *mac) MUST_CHECK;
int steer_add(struct steer *steer, const struct flow_rule *rule) MUST_CHECK;
void steer_remove(struct steer *steer, const struct flow_rule *rule);

#endif
#endif
