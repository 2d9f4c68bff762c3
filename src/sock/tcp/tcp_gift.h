/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that the kernel is given as if a peer had sent them: of a connection that goes back,
 * what no repair of its twin can say (tcp_way_back_ops.give).
 */
#ifndef SOCK_TCP_TCP_GIFT_H
#define SOCK_TCP_TCP_GIFT_H

#include <stdint.h>

#include "net/dst.h"
#include "net/net.h"

struct tcp_gift_frame {
	uint8_t bytes[sizeof(struct dst_header) + UINT16_MAX];
};

struct tcp_gift {
	struct net *net;
	const struct flow_key *key;
	/* of the way to the peer, and where it leads */
	struct dst_header header;
	int ifindex;
	/* memory for a frame; NULL: it is mapped for the first one */
	struct tcp_gift_frame *frame;
};

/* 0, or a negative errno. */
int tcp_gift_give(struct tcp_gift *gift, const uint8_t *header, size_t header_len,
		  const struct pkt *data) MUST_CHECK;

/* Gives back what was mapped. */
void tcp_gift_end(struct tcp_gift *gift);

#endif
