/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What connections leave behind for the next one to the same peer: round trips, the
 * threshold of slow start, the size that the path carries, the peer's cookie. A table of limited size
 * without clock or memory of its own; tcp_metrics.c fills and asks it.
 */
#ifndef TCP_TCP_PEERS_H
#define TCP_TCP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"

/* Of one peer, seen from one of our addresses. 0: not known. */
struct tcp_peer {
	struct ip_addr local;
	struct ip_addr remote;
	/* when it was last written; 0: the place is free */
	uint64_t written_ns;
	uint64_t rtt_ns;
	uint64_t rttvar_ns;
	/* when pmtu was learned */
	uint64_t pmtu_ns;
	uint32_t ssthresh;
	uint16_t pmtu;
	/* Fast Open: its cookie and the MSS that came with it; SYNs with data that were
	 * lost one after the other, and when the last one was */
	uint16_t syn_mss;
	uint8_t syn_losses;
	uint8_t cookie_len;
	uint8_t cookie[16];
	uint64_t syn_loss_ns;
};

/* How a connection ended. */
struct tcp_peer_sample {
	/* 0: no round trip was measured, so that older ones are not believed any
	 * more */
	uint64_t srtt_ns;
	uint64_t rttvar_ns;
	uint32_t cwnd;
	uint32_t ssthresh;
	/* the threshold is still the one of the start; slow start goes on at it;
	 * nothing is being repaired */
	bool is_at_start, is_in_slow_start, is_open;
};

/* Places are found in sets of so many, in which the oldest one gives way. */
enum { TCP_PEERS_WAYS = 4 };

struct tcp_peers {
	struct tcp_peer *places; /* all 0 at first */
	/* a multiple of TCP_PEERS_WAYS */
	uint32_t cnt;
	uint64_t hash_seed;
};

/* NULL where nothing is known that is less than an hour old. */
struct tcp_peer *tcp_peers_find(const struct tcp_peers *peers,
				const struct ip_addr *local,
				const struct ip_addr *remote, uint64_t now_ns);
/* The same, or a fresh place. NULL only in a table without places. */
struct tcp_peer *tcp_peers_take(struct tcp_peers *peers,
				const struct ip_addr *local,
				const struct ip_addr *remote, uint64_t now_ns);
/* A connection has ended. The threshold is only kept if wanted. */
void tcp_peer_learn(struct tcp_peer *peer, const struct tcp_peer_sample *sample,
		    bool with_ssthresh);

#endif
