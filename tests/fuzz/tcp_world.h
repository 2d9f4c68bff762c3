/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An engine for the TCP fuzz targets, with pools that are made once, and the checks
 * that everything comes back. */
#ifndef FUZZ_TCP_WORLD_H
#define FUZZ_TCP_WORLD_H

#include "pkt/wire.h"
#include "tcp/tcp.h"

extern struct tcp_world {
	struct timer_wheel wheel;
	struct pkt_pool pool, borrowers;
	struct tcp_table *table;
	struct tcp_params params;
	struct tcp_path path;
	uint64_t now_ns;
	size_t memory;
	/* the last segment that left */
	uint32_t out_seq, out_end, out_ack;
} world;

/* The defaults, to be changed before the table is made. */
void tcp_world_init(void);
void tcp_world_open(void);
/* Frees the table; all packets, timers and memory must be back. */
void tcp_world_close(void);
void tcp_world_advance(uint64_t ns);
/* The laws that every pcb obeys. */
void tcp_world_check(const struct tcp_pcb *pcb);

#endif
