/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the endpoint that a received frame is for. All of it runs under the lock of
 * the stack that owns it.
 */
#ifndef NET_DEMUX_H
#define NET_DEMUX_H

#include "dev/ring.h"
#include "net/endpoint.h"
#include "pkt/wire.h"
#include "stats/stats_abi.h"

/* Why a frame was not delivered. */
enum demux_drop {
#define DROP_COUNTER(name, how, what) DEMUX_##name,
#include "stats/counters.def"
	DEMUX_DROP_CNT
};

enum { DEMUX_BUCKETS = 1024 };

/* The endpoints of some local ports. Those that are not connected are in the order
 * in which Linux looks at them. The connected ones are in another table, by all four
 * parts of the key, and are only counted here. */
struct demux_bucket {
	struct list ends; /* those that are not connected */
	unsigned connected_cnt;
	/* counts what has come and gone; what was known of these ports is not any more */
	uint32_t changes;
};

/* The fields that decide where a frame goes, as they lie in it, and the interface
 * that it came from. */
struct demux_flow {
	uint64_t addrs;
	uint32_t ports;
	uint32_t ifindex;
	/* `kind`: Ethernet's type, IP's version, header length and TOS. `transport`:
	 * IP's fragment word, TTL and protocol. */
	uint32_t kind;
	uint32_t transport;
};

/* Where a flow leads, and what all its packets have in common. */
struct demux_route {
	struct endpoint *end; /* NULL: nothing is known */
	struct demux_flow flow;
	/* The part of the checksums that is the same in all packets of the flow: of
	 * the IP header, and of the pseudo header without the length. */
	uint64_t ip_sum;
	uint64_t pseudo_sum;
};

/* Where the last packet with some tag of a flow rule went. */
struct demux_tag {
	struct demux_route route;
	/* those that had been when it was found */
	uint32_t changes;
	/* of a free one */
	uint32_t next_free;
} CACHE_ALIGNED;

struct rpf;

struct demux {
	uint64_t seed;
	struct demux_bucket ports[DEMUX_BUCKETS];
	/* connected endpoints by key; grows with their number */
	struct list *connected;
	unsigned connected_bits;
	unsigned connected_cnt;
	/* The addresses of this host, in ascending order as numbers. Nobody else
	 * sends from them. */
	const __be32 *own;
	unsigned own_cnt;
	/* the sources that interfaces admit; NULL: they admit all */
	const struct rpf *rpf;
	/* Takes over a frame with a tag, which is in one buffer; its rx_info says of which
	 * interface it is. NULL: such frames are dropped. */
	void (*take_tagged)(struct demux *demux, struct pkt *pkt);
	/* that of the last packet, which is usually that of the next one too */
	struct demux_route last;
	/* From tag 1 on. Where only one flow comes by a rule, its packets need no look-up,
	 * also if they come in turns with others'. */
	struct demux_tag *tags;
	uint32_t tag_room;
	uint32_t tag_cnt; /* that somebody has or has had */
	uint32_t free_tag; /* of these; 0: none */
	/* (demux_bucket.changes), of all ports */
	uint32_t changes;
	/* indexed by enum demux_drop; in the shared statistics file if there is one,
	 * else own_drops */
	uint64_t *drops;
	uint64_t own_drops[STATS_DROP_COUNT];
};

/* What the demultiplexer has to know about the origin of a frame. */
struct demux_from {
	uint32_t ifindex;
	bool rx_partial_csum;
	/* a device inside this machine, on which loopback addresses are valid */
	bool is_local;
	/* packets say which rule has brought them (ring.has_tags) */
	bool has_tags;
};

int demux_init(struct demux *demux, uint64_t seed) MUST_CHECK;
/* The caller has removed all endpoints before. */
void demux_destroy(struct demux *demux);

/* The addresses that are this host's from now on, in ascending order as numbers.
 * The array is the caller's, and is used until the next call. */
void demux_set_own(struct demux *demux, const __be32 *own, unsigned cnt);

/* What rp_filter admits from now on. `rpf` stays the caller's, and is used until the
 * next call. */
void demux_set_rpf(struct demux *demux, const struct rpf *rpf);

/* Makes the endpoint reachable by its key. -ENOMEM. */
int demux_add(struct demux *demux, struct endpoint *end) MUST_CHECK;
/* Does nothing if the endpoint is not reachable. */
void demux_remove(struct demux *demux, struct endpoint *end);

/* A tag for the packets that one flow rule brings, at most FLOW_TAG_MAX; 0: there is no
 * memory for one, and they do without. */
uint32_t demux_tag_add(struct demux *demux);
/* Packets may still come with it. */
void demux_tag_remove(struct demux *demux, uint32_t tag);

/* The headers that we look at. Both protocols that we take begin with their ports. */
struct demux_frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	__be16 src_port;
	__be16 dst_port;
} WIRE_PACKED;

static inline struct demux_flow
demux_flow_of(const struct demux_frame *frame, const struct demux_from *from)
{
	struct demux_flow flow = { .ifindex = from->ifindex };

	memcpy(&flow.addrs, &frame->ip.src, sizeof(flow.addrs));
	memcpy(&flow.ports, &frame->src_port, sizeof(flow.ports));
	memcpy(&flow.kind, &frame->eth.type, sizeof(flow.kind));
	memcpy(&flow.transport, &frame->ip.frag, sizeof(flow.transport));
	return flow;
}

/* Whether the frame differs from those of this flow in its lengths and checksums alone. */
static inline bool demux_is_like(const struct demux_flow *known,
				 const struct demux_frame *frame, size_t len,
				 const struct demux_from *from)
{
	struct demux_flow flow;

	if (UNLIKELY(len < sizeof(*frame)))
		return false;
	flow = demux_flow_of(frame, from);
	/* in one: comparisons one by one are joined into wider ones by compilers, which
	 * then go through memory */
	return LIKELY(!((flow.addrs ^ known->addrs) | (flow.ports ^ known->ports) |
			(flow.kind ^ known->kind) | (flow.transport ^ known->transport) |
			(flow.ifindex ^ known->ifindex)));
}

/* Looks at a frame that has not been taken yet. If it is for the endpoint of the
 * last packet, which must exist (demux.last.end), returns what follows its IP header.
 * The headers lie right before that; IPv4's has no options. NULL data: demux_input
 * has to look at the frame, or there is no frame. */
static ALWAYS_INLINE struct ring_frame
demux_peek(const struct demux *demux, struct ring_frame in,
	   const struct demux_from *from)
{
	const struct demux_frame *frame = (const void *)in.data;
	uint32_t len_id;
	size_t len;

	if (UNLIKELY(!demux_is_like(&demux->last.flow, frame, in.len, from)))
		return RING_NO_FRAME;
	len = (size_t)be16toh(frame->ip.total_len) - sizeof(frame->ip);
	memcpy(&len_id, &frame->ip.total_len, sizeof(len_id));
	/* The comparison also fails if total_len is too small, since `len` wraps around
	 * then. */
	if (UNLIKELY(len > in.len - sizeof(frame->eth) - sizeof(frame->ip)))
		return RING_NO_FRAME;
	/* The sum is right when 2^16 - 1 divides it. */
	if (in.csum_verdict != PKT_CSUM_GOOD &&
	    UNLIKELY((demux->last.ip_sum + len_id + frame->ip.check) % 0xffff))
		return RING_NO_FRAME;
	return (struct ring_frame){ (const uint8_t *)(&frame->ip + 1),
				    (uint32_t)len, in.csum_verdict,
				    in.has_more };
}

/* Delivers the packet, or drops and counts it. Takes it over in both cases. */
void demux_input(struct demux *demux, struct pkt *pkt,
		 const struct demux_from *from);

/* The next frame is looked up anew, or known by its tag, also when it is like the last one.
 * Nobody takes one from its ring before another has come to an endpoint. */
static inline void demux_forget_last(struct demux *demux)
{
	demux->last.end = NULL;
}

/* Whether packets are distributed among this endpoint and others (endpoint.is_shared). */
bool demux_has_others(struct demux *demux, const struct endpoint *end);

/* The endpoint that a packet with this key would reach, or NULL. `key` is seen from
 * the receiver. */
struct endpoint *demux_find(struct demux *demux, const struct flow_key *key,
			    uint8_t proto, uint32_t ifindex);

/* For the use of endpoints. demux_drop frees and counts a packet that the endpoint
 * does not take. demux_trim cuts a packet to its first `len` bytes; it has at least
 * that many. */
void demux_drop(struct demux *demux, struct pkt *pkt, enum demux_drop why);
void demux_trim(struct pkt *pkt, uint32_t len);

#endif
