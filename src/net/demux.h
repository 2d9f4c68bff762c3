/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a received frame to the endpoint that it is for. All under the lock of
 * the stack that owns it.
 */
#ifndef NET_DEMUX_H
#define NET_DEMUX_H

#include "dev/ring.h"
#include "net/endpoint.h"
#include "stats/stats_abi.h"

/* Why a frame was not delivered. */
enum demux_drop {
#define DROP_COUNTER(name, how, what) DEMUX_##name,
#include "stats/counters.def"
	DEMUX_DROP_CNT
};

enum { DEMUX_BUCKETS = 1024 };

/* Endpoints by local port, in the order of Linux's preference where it matters,
 * and the connected ones of a crowded port by all four parts of the key. */
struct demux_bucket {
	struct list ends; /* those that are not connected */
	unsigned connected_cnt;
};

/* What decides, as it lies in a frame, and where that came from. */
struct demux_flow {
	uint64_t addrs;
	uint32_t ports;
	uint32_t ifindex;
	/* Ethernet's type, IP's version, header length and TOS; its fragment
	 * word, TTL and protocol */
	uint32_t kind;
	uint32_t transport;
};

struct rpf;

struct demux {
	uint64_t seed;
	struct demux_bucket ports[DEMUX_BUCKETS];
	/* connected endpoints by key; grows with their number */
	struct list *connected;
	unsigned connected_bits;
	unsigned connected_cnt;
	/* This host's addresses, ascending as numbers: nobody else sends from them. */
	const __be32 *own;
	unsigned own_cnt;
	/* sources that interfaces admit; NULL: all */
	const struct rpf *rpf;
	/* The last packet's endpoint, which is usually the next one's too, and
	 * what found it; NULL: none. */
	struct endpoint *last;
	struct demux_flow last_flow;
	/* What all its packets have in common of their checksums: of the IP
	 * header, and of the pseudo header without the length. */
	uint64_t last_ip_sum;
	uint64_t last_pseudo_sum;
	/* by enum demux_drop; in the shared region, if there is one */
	uint64_t *drops;
	uint64_t own_drops[STATS_DROP_COUNT];
};

/* What the demultiplexer has to know of where a frame came from. */
struct demux_from {
	uint32_t ifindex;
	bool rx_partial_csum;
	/* a device within this machine, on which loopback addresses are right */
	bool is_local;
};

int demux_init(struct demux *demux, uint64_t seed) MUST_CHECK;
/* No endpoint is left. */
void demux_destroy(struct demux *demux);

/* The addresses that are this host's from now on, in ascending order as numbers.
 * The array is the caller's, and is used until the next call. */
void demux_set_own(struct demux *demux, const __be32 *own, unsigned cnt);

/* What rp_filter admits from now on; the caller's until the next call. */
void demux_set_rpf(struct demux *demux, const struct rpf *rpf);

/* Makes the endpoint reachable by its key. -ENOMEM. */
int demux_add(struct demux *demux, struct endpoint *end) MUST_CHECK;
/* Harmless when it is not reachable. */
void demux_remove(struct demux *demux, struct endpoint *end);

/* What follows the IP header in a frame for the endpoint of the last packet, demux.last,
 * which there is: right before it are its headers, IPv4's without options. No data:
 * demux_input has to look at it, or there was none. */
struct ring_frame demux_peek(const struct demux *demux, struct ring_frame frame,
			     const struct demux_from *from);

/* Delivers the packet, or drops and counts it; takes it either way. */
void demux_input(struct demux *demux, struct pkt *pkt,
		 const struct demux_from *from);

/* The endpoint that a packet with these ends would reach, or NULL. `key` is seen from
 * the receiver. */
struct endpoint *demux_find(struct demux *demux, const struct flow_key *key,
			    uint8_t proto, uint32_t ifindex);

/* For endpoints: a packet that they do not take; and all but its first `len` bytes, of
 * which there are as many, go. */
void demux_drop(struct demux *demux, struct pkt *pkt, enum demux_drop why);
void demux_trim(struct pkt *pkt, uint32_t len);

#endif
