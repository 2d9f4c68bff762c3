/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection of the engine to a peer on another kernel stack. This program is the
 * wire between two namespaces:
 *
 *	engine ------+
 *	             |-- this program -- tun -- kernel of the peer (10.79.0.2)
 *	kernel - tun +   (10.79.0.1)
 *
 * A frame of the peer goes to the engine or, once the connection has gone back, to
 * the kernel beside it. Both streams are checked byte by byte.
 */
#ifndef SYSTEM_TCP_WIRE_H
#define SYSTEM_TCP_WIRE_H

#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/ipaddr.h"
#include "base/rand.h"
#include "tcp/tcp.h"
#include "tests/support/test.h"

enum { OWN_PORT = 7001, PEER_PORT = 7000 };

#define PATIENCE_NS (30 * NS_PER_SEC)

struct wire {
	/* nothing passes to the peer; one frame of the peer with data is lost */
	bool is_cut, loses_one;
	/* the kernel has the connection; until then: frames wait for it */
	bool is_open, is_holding;
	/* how many wait; how many of those that waited were given to the kernel */
	unsigned held_cnt, given_cnt;
};

/* Of a million frames each way, so many are lost, so many come twice, and so many are
 * overtaken by others; 0: it is a good wire again. After the set-up of a case. */
void wire_spoil(uint32_t ppm, uint64_t seed);

/* Bytes that have been written and read. */
struct stream {
	uint64_t written, read;
	bool is_at_end;
};

extern struct wire wire;
extern struct stream to_peer, from_peer;
extern struct ip_addr own_addr, peer_addr;
/* the engine's connection, until it has gone back; then own_fd is the kernel's */
extern struct tcp_pcb *pcb;
extern int own_fd, peer_fd;

/* -- a case --------------------------------------------------------------------- */

/* Make the lab, and a connection that we have opened, or the peer. */
void connect_as_usual(void);
void connect_with(const struct tcp_params *params);
void accept_one(void);
void end(void);

/* Of the kernel beside the engine. */
int bound_socket(const struct ip_addr *addr, uint16_t port);
struct tcp_info kernel_info(int fd);

/* -- what happens on it ---------------------------------------------------------- */

/* Moves what there is; waits a little when there is nothing. */
void pump(void);
void pump_for(unsigned ms);

#define PUMP_UNTIL(condition)                                              \
	do {                                                               \
		uint64_t end_ns_ = clock_monotonic_ns() + PATIENCE_NS;     \
                                                                           \
		while (!(condition)) {                                     \
			if (clock_monotonic_ns() > end_ns_)                \
				FAIL("never so: %s", #condition);          \
			pump();                                            \
		}                                                          \
	} while (0)

/* As much of it as there is room for. */
void write_to_peer(uint32_t len);
void write_from_peer(uint32_t len);
/* What is there. */
void read_from_peer(void);
void read_to_peer(void);
/* Until everything that was written has been read. */
void deliver_all(void);
/* So many bytes each way. */
void exchange(uint32_t len);
void close_stream_to_peer(void);
/* As read_to_peer() does it. */
void check_bytes(uint64_t from, const uint8_t *bytes, size_t len);

/* -- who gets the frames of the peer ---------------------------------------------- */

/* From now on they wait. */
void wire_hold(void);
/* Those that waited and all others are the engine's again; those that come are the kernel's,
 * or those that waited. */
void wire_to_engine(void);
void wire_to_kernel(void);
void wire_held_to_kernel(void);
/* Takes what the peer has sent, and moves nothing else. */
void wire_take(void);
/* The kernel gets this segment, as if the peer had sent it. 0 or -EMSGSIZE. */
int wire_give(const uint8_t *header, size_t header_len, const struct pkt *data);

#endif
