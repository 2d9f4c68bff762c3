/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One engine against a peer that is the test: it sends any segment at any time, and
 * looks at each that the engine sends. One world at a time, in `peer`. Sequence
 * numbers are relative: `P + n` in the peer's stream, `U + n` in ours.
 */
#ifndef ENGINE_PEER_H
#define ENGINE_PEER_H

#include "pkt/wire.h"
#include "tcp/tcp.h"
#include "tcp/tcp_options.h"

enum { PEER_ISN = 5000, PEER_SENT_MAX = 64 };

enum {
	F = WIRE_TCP_FIN,
	S = WIRE_TCP_SYN,
	R = WIRE_TCP_RST,
	A = WIRE_TCP_ACK,
};

/* A segment the engine sent. */
struct peer_sent {
	uint32_t seq, ack, len;
	uint16_t to_port;
	uint16_t window, urgent;
	/* 0x100 is AE */
	uint16_t flags;
	uint8_t ecn;
	struct tcp_options options;
	/* see struct tcp_out */
	uint32_t segment_size, data_cnt;
	uint64_t at_ns;
};

/* What became of a byte, and how many segments had been sent before. */
struct peer_stamp {
	enum tcp_stamp what;
	uint32_t byte;
	unsigned sent_cnt;
};

extern struct peer {
	struct timer_wheel wheel;
	struct pkt_pool pool, borrowers;
	struct tcp_table *table;
	struct tcp_params params;
	/* of the engine's end */
	struct tcp_path path;
	bool is_ipv6;
	/* both ends have addresses of the machine itself */
	bool is_loopback;
	struct tcp_pcb *pcb, *listener;
	struct flow_key key;
	uint64_t now_ns;
	uint32_t iss; /* ours */
	uint32_t ts;  /* peer's clock; 0: no time stamps */
	uint8_t ecn;  /* what the IP headers of its segments say */
	struct peer_sent sent[PEER_SENT_MAX];
	unsigned sent_cnt, looked_at;
	struct peer_stamp stamps[16];
	unsigned stamp_cnt;
	size_t memory;
	/* somebody else takes strays; how many, and the last one's flags and length */
	bool has_strays;
	unsigned stray_cnt;
	uint8_t stray_flags;
	uint32_t stray_len;
	/* the device takes nothing more, and says so; how often it was asked. It refuses what
	 * it is given */
	bool is_full;
	unsigned look_cnt;
	bool refuses;
	/* allocations until one fails; 0: none does */
	unsigned allocs_left;
} peer;

#define P (PEER_ISN + 1)
#define U (peer.iss + 1)

/* A new world with the parameters' defaults, to be changed before the set-up; then
 * the engine, and at the end a check that everything was given back. */
void peer_defaults(void);
void peer_setup(void);
void peer_teardown(void);

/* The SYN of a connection that the engine opens; the set-up is included. */
const struct peer_sent *peer_syn(void);
/* An established connection that the engine opened; the set-up is included. */
extern const struct tcp_options peer_full_options;
void peer_connect(const struct tcp_options *offered);
/* The same with the defaults: SACK, a scale of 2, no time stamps. */
void peer_connected(void);

/* The peer sends a segment of `len` bytes. */
void peer_send_options(uint8_t flags, uint32_t seq, uint32_t ack,
		       uint16_t window, uint32_t len,
		       const struct tcp_options *options);
/* With a window of 1000 and, if there are any, time stamps. */
void peer_send(uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len);
/* The same, but the segment is only made: for batches and chains. */
struct tcp_in peer_make_options(uint8_t flags, uint32_t seq, uint32_t ack,
				uint16_t window, uint32_t len,
				const struct tcp_options *options);
struct tcp_in peer_make(uint8_t flags, uint32_t seq, uint32_t ack,
			uint32_t len);

/* The engine's `emit`, and who sends in its place. */
void peer_emit(void *ctx, struct tcp_pcb *pcb, const struct tcp_out *out);
/* The next segment the engine sent; the case fails if there is none, or one. */
const struct peer_sent *peer_next(void);
void peer_expect_silence(void);

void peer_advance_ms(uint64_t ms);
/* The program writes, and takes all there is to read. */
void peer_write(uint32_t len);
uint32_t peer_take_all(void);

#endif
