/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steering program of an interface decides which frames go to which of our
 * queues. Its map types are here, shared by the program (steer.bpf.c) and the code
 * that fills the maps (steer.c).
 */
#ifndef DEV_XDP_STEER_H
#define DEV_XDP_STEER_H

#include <linux/types.h>

/* Limits on hardware queues and on rules of an interface. The table of rules begins
 * small, since the kernel takes milliseconds to make a large one, and grows when it
 * is full. That of a process without rights cannot grow: it becomes larger before the
 * rights go, and what a helper makes is so from the beginning. */
enum {
	STEER_QUEUES_MAX = 64,
	STEER_RULES_FIRST = 4096,
	STEER_RULES_GROWTH = 8,
	STEER_RULES_FIXED = 4096 * 8 * 8,
	STEER_RULES_MAX = 4096 * 8 * 8 * 8,
};

/* A rule; `src` and `sport` are 0 in one that takes any peer. No padding, since
 * keys are compared as bytes. */
struct steer_key {
	__be32 dst;
	__be32 src;
	__be16 dport;
	__be16 sport;
	__u32 proto;
};

/* What becomes of the frames that a rule names. */
enum steer_verdict { STEER_TO_KERNEL, STEER_TO_RING };

/* What the program reads of each frame's surroundings. */
struct steer_config {
	__u8 mac[6];
	__u16 zero;
	/* there are rules that name a peer; 0 spares the program the first look */
	__u32 has_connected;
};

/* What the program counts. */
struct steer_counts {
	/* first fragments of TCP that a rule names, dropped */
	__u64 tcp_fragments;
	/* frames of which the driver did not say whether they had a tag */
	__u64 untold;
};

/* The beginnings of the kernel's struct xdp_buff and struct skb_shared_info.
 * kernel_btf.c checks whether those of the running kernel are the same. */
struct steer_xdp_buff {
	void *data;
	void *data_end;
	void *data_meta;
	void *data_hard_start;
	void *rxq;
	void *txq;
	__u32 frame_sz;
	__u32 flags;
};

struct steer_shared_info {
	__u8 flags;
	__u8 meta_len;
	__u8 nr_frags;
	__u8 tx_flags;
	__u16 gso_size;
	__u16 gso_segs;
};

/* As in ring.h: the frame comes from us. */
enum { STEER_GIVEN_BACK_META = 12 };

/* Blanks: numbers in the compiled program that stand for what only the running
 * kernel knows: functions of the kernel, a type, and its size. */
enum steer_blank {
	STEER_BLANK_KERN_CTX = 0x7e000001,
	STEER_BLANK_RDONLY_CAST,
	STEER_BLANK_RX_VLAN_TAG,
	STEER_BLANK_SHARED_INFO,
	STEER_BLANK_SHARED_INFO_SIZE,
};

/* What the program looks at. There is a program for each of these. */
enum steer_sight {
	/* at its bytes alone */
	STEER_SIGHT_BYTES,
	/* In generic mode: also whether it is several datagrams in one, which a
	 * sender on this host has left for a card to split; those of UDP are the
	 * kernel's, who splits them. And whether it is one that we have given back
	 * to the kernel. */
	STEER_SIGHT_GSO,
	/* In native mode: also whether the device has taken a tag off. */
	STEER_SIGHT_TAG,
};

#ifndef __bpf__

#include <stdbool.h>
#include <stdint.h>

#include "dev/ring.h"

struct steer;

struct steer_params {
	int ifindex;
	uint8_t mac[6];
	bool is_native;
	/* A packet of several buffers is put into one before the program sees it;
	 * in native mode long ones are then impossible. */
	bool is_single;
	enum steer_sight sight;
};

/* Loads program and maps. -EOPNOTSUPP: the kernel does not offer this sight; -EPERM
 * and the like. */
int steer_create(const struct steer_params *params,
		 struct steer **steer_out) MUST_CHECK;
/* Detaches and unloads. NULL is a no-op. */
void steer_destroy(struct steer *steer);

/* Sends frames of the queue to the AF_XDP socket. */
int steer_set_queue(struct steer *steer, uint32_t queue, int xsk_fd) MUST_CHECK;

/* -EBUSY: another program is there. -EOPNOTSUPP: not in this mode. */
int steer_attach(struct steer *steer) MUST_CHECK;
/* 0, -ENODEV: the interface is gone, -EBUSY: somebody put another program in our
 * place. -EOPNOTSUPP: the driver does not say what STEER_SIGHT_TAG is to tell. */
int steer_check(const struct steer *steer) MUST_CHECK;

/* First fragments of TCP that were dropped so far. */
uint64_t steer_fragments(const struct steer *steer);

int steer_set_mac(struct steer *steer, const uint8_t *mac) MUST_CHECK;
/* -EEXIST: it is there; -ENOSPC: the table is full and cannot grow. */
int steer_add(struct steer *steer, const struct flow_rule *rule) MUST_CHECK;
/* The table cannot grow any more from now on. */
void steer_rights_go(struct steer *steer);
void steer_remove(struct steer *steer, const struct flow_rule *rule);

#endif
#endif
