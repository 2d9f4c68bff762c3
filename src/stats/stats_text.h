/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A socket and its counters in words, as view 3 of vma_stats and VMA_STATS_FILE
 * have them. */
#ifndef STATS_STATS_TEXT_H
#define STATS_STATS_TEXT_H

#include <stdbool.h>

#include "base/text.h"
#include "stats/stats_abi.h"

/* The line between blocks, with its newline. */
#define STATS_TEXT_SEPARATOR \
	"======================================================\n"

/* Room for a block. */
enum { STATS_TEXT_SIZE = 2048 };

/* "10.0.0.1:53" */
void stats_text_end(struct text *t, const struct ip_addr *addr, uint16_t port);

/* "UDP" */
const char *stats_text_protocol(uint8_t protocol);

/* "ESTABLISHED"; empty for STATS_TCP_UNKNOWN. */
const char *stats_text_state(uint8_t tcp_state);

/* The block of a socket, whose counters are `c`: totals, or those of the last
 * second. */
void stats_text_socket(struct text *t, const struct stats_socket *s,
		       const struct stats_socket_counters *c, bool is_rate);

/* How many of 100 receive calls or waits that polled found something. */
double stats_text_percent(uint64_t hit, uint64_t miss);

#endif
