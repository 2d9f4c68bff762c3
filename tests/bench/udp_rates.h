/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What udp_rates.c measures alike on sockets and on bare AF_XDP: one end of two
 * that are connected to each other, and datagrams of one length.
 */
#ifndef BENCH_UDP_RATES_H
#define BENCH_UDP_RATES_H

#include <netinet/in.h>
#include <stdint.h>

/* Long ones have no checksum of the payload, as TCP has none over a link without a wire. */
#ifndef RATES_LEN
#define RATES_LEN 64
#endif
enum {
	RATES_SUMMED = RATES_LEN > 64 ? 0 : RATES_LEN,
	RATES_BATCH_MAX = 32,
	RATES_PORT = 7300,
};

/* The interface, in either namespace. */
#define RATES_INTERFACE "v0"

struct rates_payload {
	uint64_t number;
	uint8_t rest[RATES_LEN - sizeof(uint64_t)];
};

struct rates_ends {
	struct in_addr own, peer;
	uint8_t peer_mac[6];
};

struct rates_way {
	const char *name;
	/* Connects RATES_PORT with the peer's. Does not return if that fails. */
	void (*open)(const struct rates_ends *ends);
	/* Sends them in one go. Returns how many that were. */
	unsigned (*send)(struct rates_payload *batch, unsigned cnt);
	/* Takes what has come, at most `cnt`; 0: there is nothing. */
	unsigned (*receive)(struct rates_payload *batch, unsigned cnt);
};

/* The calls of a program: send and recv for one datagram, sendmmsg and recvmmsg for
 * more. The one looks again and again, the other waits in the call. */
extern const struct rates_way rates_spin, rates_block;

/* Rings of AF_XDP and the steering program of the library, and nothing else. */
extern const struct rates_way rates_raw;

_Noreturn void rates_die(const char *what);

#endif
