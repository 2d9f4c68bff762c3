/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways to TCP's peers, one for all connections between two addresses that send in
 * the same manner. A way is looked up outside the lock (net/dst_lookup.h), anew when
 * routes or neighbours change, and then its connections are told. Until the answer is
 * there they use the old one.
 *
 * All of it is under the stack's lock.
 */
#ifndef SOCK_TCP_TCP_WAY_H
#define SOCK_TCP_TCP_WAY_H

#include "base/checksum.h"
#include "net/dst_lookup.h"
#include "tcp/tcp.h"

struct tcp_engine;

struct tcp_way {
	struct list link; /* of the engine's with the same hash */
	/* connections, and ports that keep it for answers */
	unsigned refs;
	/* it has been looked up once */
	bool is_known;
	/* the ring of `dst` leaves the checksums of short frames to us (ring.fills_csum) */
	bool needs_csum;
	struct dst dst;
	/* of the latest ring that led there; 0: none has */
	int ifindex;
	struct dst_lookup lookup;
	/* connections (tsock.by_way) */
	struct list users;
	/* SYNs of a peer to whom the way is not known yet, and how many */
	struct list syns;
	unsigned syn_cnt;
	struct tcp_engine *engine;
	/* The sum of the IP header without length and identification. */
	uint32_t ip_sum;
};

/* The way for this query, whose ports do not count, with a reference; makes one, which is
 * known if its peer is behind the same gateway as another one's. NULL: no memory. */
struct tcp_way *tcp_way_get(struct tcp_engine *engine,
			    const struct dst_query *query) MUST_CHECK;
/* That of a peer who has connected to us, for connections without a socket; borrowed.
 * NULL: there is none. */
struct tcp_way *tcp_way_find(struct tcp_engine *engine,
			     const struct dst_query *query) MUST_CHECK;
/* Any way between the query's addresses; the same. */
struct tcp_way *tcp_way_between(struct tcp_engine *engine,
				const struct dst_query *query) MUST_CHECK;
void tcp_way_put(struct tcp_way *way);

/* It was looked up by the caller, who had no lock, or is as that of a peer whose answer
 * serves this one, too (dst_serves). */
void tcp_way_learn(struct tcp_way *way, const struct dst *dst);
/* Asks for it, unless somebody has. */
void tcp_way_ask(struct tcp_way *way);

/* Whether a ring leads there. One that is out of date is asked for anew, and used
 * meanwhile if its ring is still there. */
bool tcp_way_is_open_slow(struct tcp_way *way);
static inline bool tcp_way_is_open(struct tcp_way *way, const struct stack *stack)
{
	if (UNLIKELY(!dst_is_valid(&way->dst, stack)))
		return tcp_way_is_open_slow(way);
	return way->dst.ring;
}
/* The connections whose way leads over the interface are to go back to the kernel, if they
 * have not begun to. How many there are, and those that a program has still to accept: who
 * is accepted can leave. Under the lock. */
unsigned tcp_ways_leave(struct tcp_engine *engine, int ifindex);
/* The ring that leads there; NULL: there is none, or it is gone. */
struct ring *tcp_way_ring(const struct tcp_way *way);
/* What the engine wants to know of it. */
struct tcp_path tcp_way_path(const struct tcp_way *way);
/* Writes the headers for a packet of so many bytes behind IP's header. Who has it cut into
 * several takes the identifications of the others (tcp_way_skip_ids). */
static inline void tcp_way_write(struct tcp_way *way, uint8_t *to, uint32_t len,
				 uint8_t ecn)
{
	struct dst_header *header = (struct dst_header *)to;
	uint32_t sum = way->ip_sum;

	*header = way->dst.header;
	header->ip.id = htobe16(way->dst.next_id++);
	header->ip.total_len =
		htobe16((uint16_t)(sizeof(header->ip) + len));
	sum += header->ip.id;
	sum += header->ip.total_len;
	if (ecn) {
		header->ip.tos |= ecn;
		sum += htobe16(ecn);
	}
	header->ip.check = csum_fold(sum);
}

static inline void tcp_way_skip_ids(struct tcp_way *way, uint32_t cnt)
{
	way->dst.next_id = (uint16_t)(way->dst.next_id + cnt);
}

#endif
