/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP in one stack: the engine (tcp/tcp.h) with what it needs of the stack, and the ways
 * to its peers. Endpoints of TCP give it their packets, which it processes at the end of
 * a batch; then its events go to the sockets (tsock.h).
 */
#ifndef SOCK_TCP_TCP_ENGINE_H
#define SOCK_TCP_TCP_ENGINE_H

#include <string.h>

#include "base/mem_pool.h"
#include "net/stack.h"
#include "pkt/wire.h"
#include "sock/tcp/tcp_way.h"
#include "tcp/tcp.h"

enum { TCP_WAY_BUCKETS = 1024, TCP_GHOSTS = 64 };

/* What stands behind a pcb of the engine (tcp_user). */
struct tcp_user {
	/* it is a port on which somebody listens, and its connections that were not
	 * accepted yet; else a socket */
	bool is_port;
};

/* A connection that has gone back to the kernel, which gets those of its frames that
 * were under way, too. */
struct tcp_ghost {
	struct flow_key key;
	uint64_t until_ns;
};

/* While a segment is emitted whose last byte a card is to stamp (tsock_stamps.c): the record,
 * and the ring that was told. */
struct tcp_wish {
	struct pkt *record; /* NULL: it is not so */
	struct ring *ring;
	uint32_t byte;
};

/* A connection that nobody has accepted yet, which moves to the kernel: what comes for it
 * meanwhile (tsock_hand_over.c). */
struct tcp_handed {
	struct list link;
	struct flow_key key;
	struct list held;
};

/* Since when a ring takes no more segments, 0: it does; and when that was last seen. */
struct tcp_room {
	uint64_t full_since_ns, looked_ns;
};

struct tcp_engine {
	struct stack_engine base;
	struct stack *stack; /* fixed */

	/* the stack's lock */
	struct tcp_table *table;
	/* the child of a fork, which leaves the network to its parent, has nothing of it, but for
	 * ports, whose fds it closes */
	struct mem_pool memory, port_memory;
	/* packets without buffers, by which the engine splits others */
	struct pkt_pool borrowers;
	struct tcp_in batch[STACK_BATCH];
	unsigned batch_cnt;
	/* Secret: a flood of SYNs chooses its senders, and must not know which lists they
	 * are in. */
	uint64_t way_seed;
	struct list ways[TCP_WAY_BUCKETS];
	unsigned way_cnt;
	/* the latest answer that serves more than one peer */
	struct dst like;
	/* sockets that nobody has any more, and whose conversation goes on; how many is
	 * read without the lock, too */
	struct list orphans;
	_Atomic uint32_t orphan_cnt;
	/* how many of them may keep an fd, and when the limit of fds was last asked for that; by
	 * anybody, without the lock */
	_Atomic uint32_t keepers_max;
	_Atomic uint64_t keepers_ns;
	/* sockets and ports for `tidy` (tsock.tidy, tcp_port.tidy) */
	struct list untidy, unused_ports;
	/* how many of them can wait a while, and until when they do */
	unsigned patient_cnt;
	struct timer patience;
	/* what the kernel may have of those in TIME_WAIT is used up to here (tsock_tw.c) */
	uint64_t left_ns;
	/* sockets that could not go back to the kernel just now (tsock.tidy), and when they
	 * try again */
	struct list stayed;
	struct timer again;
	/* all ports; how often they were asked whether they have to be lent */
	struct list ports;
	unsigned lend_round;
	/* segments that may be the kernel's, for `tidy` */
	struct list foreign;
	unsigned foreign_cnt;
	struct tcp_wish wish;
	/* connections that stand still while they go back to the kernel */
	struct list moving;
	/* the same, of those that nobody has accepted (struct tcp_handed) */
	struct list handed;
	struct tcp_ghost ghosts[TCP_GHOSTS];
	unsigned ghost_cnt, next_ghost;
	/* Somebody wishes for time stamps of what is received; all packets have them from
	 * then on, as under Linux. Anybody sets it. */
	_Atomic bool takes_stamps;
	/* of each ring of the stack */
	struct tcp_room rooms[STACK_RINGS_MAX];
	/* in tcp_engine_refused */
	bool is_refused;
	/* sockets that wait for a packet to send (tsock.starved) */
	struct list starved;
	/* sockets that readers of the statistics see, the one whose figures are the
	 * oldest first; how often we went round; what was published so far */
	struct list shown;
	uint32_t show_round;
	struct tcp_counts published;
	/* sockets whose twins guard them, the one that was asked longest ago first; those
	 * that are to be asked, and the segments up to now, when they were (tsock_guard.c) */
	struct list guarded;
	unsigned guard_cnt, guards_left;
	uint64_t guard_moved;
};

/* The engine of a stack, which is made if it is the first time. NULL: no memory. Without
 * the lock. */
struct tcp_engine *tcp_engine_of(struct stack *stack) MUST_CHECK;

/* Those of all stacks. Without the lock. */
void tcp_engines_visit(void (*each)(struct tcp_engine *engine, void *ctx), void *ctx);

/* The present time for the engine's calls. Under the lock; the analysis does not see that
 * what the engine calls is under it, too. */
static inline uint64_t tcp_engine_now(const struct tcp_engine *engine)
	NO_LOCK_ANALYSIS
{
	return stack_now_locked_ns(engine->stack);
}

/* Called after each call of the engine: its events are taken before the unlock. */
static inline void tcp_engine_due_locked(struct tcp_engine *engine)
	REQUIRES(engine->stack->lock)
{
	stack_engine_due_locked(engine->stack, &engine->base);
}

/* Writes the headers of a short segment with so many bytes of payload to where the ring has
 * its next frame. Returns where the payload goes. */
static inline uint8_t *tcp_engine_write_headers(struct tcp_way *way,
						uint8_t *frame,
						struct tcp_header header,
						uint32_t data_len, uint8_t ecn)
{
	/* of nearly all segments: the header with time stamps */
	enum { USUAL = sizeof(struct wire_tcp) + 12 };
	uint8_t *at = frame + sizeof(struct dst_header);

	tcp_way_write(way, frame, header.len + data_len, ecn);
	if (LIKELY(header.len == USUAL))
		memcpy(at, header.bytes, USUAL);
	else
		memcpy(at, header.bytes, header.len);
	return at + header.len;
}

/* The ring had no place for a segment: see tcp_emit_failed. */
void tcp_engine_refused(struct tcp_engine *engine, struct tcp_pcb *pcb,
			const uint8_t *header, uint32_t data_len);

/* What needs memory and is not done under the lock. */
void tcp_engine_tidy(struct tcp_engine *engine);

/* A packet for an endpoint of TCP. */
void tcp_engine_take(struct tcp_engine *engine, struct pkt *pkt);
/* Sends what was kept from the engine to it after all: a list of packets. */
void tcp_engine_take_list(struct tcp_engine *engine, struct list *pkts);
/* Leaves them to the kernel. */
void tcp_engine_give_list(struct tcp_engine *engine, struct list *pkts);

/* Late frames of this connection are the kernel's. */
void tcp_engine_add_ghost(struct tcp_engine *engine, const struct flow_key *key);

#endif
