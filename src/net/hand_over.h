/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that nobody has accepted yet, for a listener of the kernel's. No call puts a
 * connection into its queue. But the kernel lets a program at the way in of an interface say,
 * of a segment that acknowledges what the kernel has never sent, which options that
 * connection has (bpf_sk_assign_tcp_reqsk, made for cookies of SYNs that others check), and
 * makes the connection then. So such a program is attached for the time of the move, and the
 * kernel is given the peer's acknowledgment once more (net_give_frame), and what followed it.
 */
#ifndef NET_HAND_OVER_H
#define NET_HAND_OVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "net/flow.h"

/* As in tcp_repair. */
struct hand_over_options {
	uint32_t ts_recent, ts_next;
	uint16_t mss_peer;
	uint8_t snd_scale, rcv_scale;
	bool has_scale, has_sack, has_timestamps, has_ecn;
};

/* The program, attached to one interface. -1: not open. */
struct hand_over {
	_Atomic int map, link;
};

/* -EOPNOTSUPP: this kernel (before Linux 6.9, or told by net.ipv4.tcp_syncookies not to) makes
 * no connections so. Needs CAP_NET_ADMIN and CAP_BPF. */
int hand_over_open(struct hand_over *door, int ifindex) MUST_CHECK;
void hand_over_close(struct hand_over *door);

/* From now on, a segment of that connection makes it, if a listener takes it; until then
 * none of its segments that come to the kernel is answered. Takes the place of the one before.
 * 0, or a negative errno. */
int hand_over_offer(struct hand_over *door, const struct flow_key *key,
		    const struct hand_over_options *options) MUST_CHECK;
/* Whether the kernel had that connection when the latest segment of it came, and which byte it
 * wanted next then. */
bool hand_over_is_taken(struct hand_over *door, const struct flow_key *key,
			uint32_t *rcv_nxt_out);

#endif
