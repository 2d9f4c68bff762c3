/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What takes rights of the program of net/hand_over.h: loading it, with its map, and attaching
 * it. A process that has the rights does it itself; for one that has given them up, the
 * process that keeps them does (tools/vma_way_back). Everything else is done by fd.
 */
#ifndef DEV_HAND_OVER_LOAD_H
#define DEV_HAND_OVER_LOAD_H

#include <stdint.h>

#include "base/compiler.h"

/* The key in the map: the beginning of the kernel's struct bpf_sock_tuple, and of a frame's
 * addresses and ports, the peer's first. */
struct offer_key {
	uint32_t src, dst;
	uint16_t src_port, dst_port;
};

/* The kernel's struct bpf_tcp_req_attrs. */
struct offer_options {
	uint32_t rcv_tsval, rcv_tsecr;
	uint16_t mss;
	uint8_t rcv_wscale, snd_wscale, ecn_ok, wscale_ok, sack_ok, tstamp_ok, usec_ts_ok;
	uint8_t reserved[3];
};

enum offer_state { OFFER_MADE, OFFER_TAKEN, OFFER_NEW };

/* The value in the map, which has room for one. */
struct offer {
	struct offer_options options;
	/* enum offer_state, or the kernel's refusal */
	int32_t state;
	uint32_t rcv_nxt;
};

enum hand_over_fd { HAND_OVER_FD_MAP, HAND_OVER_FD_LINK, HAND_OVER_FD_CNT };

/* Opens what a load reads beside the kernel's types (os/kernel_types.h), for a process that
 * can open no file later. */
void hand_over_load_prepare(void);

/* KEEPER_HAND_OVER. On success the caller owns `fds`; by the end of the link the program is
 * gone. -EOPNOTSUPP: this kernel makes no connections so, or is told not to. */
int hand_over_load(int ifindex, int fds[HAND_OVER_FD_CNT]) MUST_CHECK;

#endif
