/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arithmetic on sequence numbers, modulo 2^32 (RFC 9293 section 3.4). */
#ifndef TCP_TCP_SEQ_H
#define TCP_TCP_SEQ_H

#include <stdbool.h>
#include <stdint.h>

static inline bool seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool seq_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline bool seq_at_most(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}

static inline uint32_t seq_min(uint32_t a, uint32_t b)
{
	return seq_before(a, b) ? a : b;
}

static inline uint32_t seq_max(uint32_t a, uint32_t b)
{
	return seq_after(a, b) ? a : b;
}

/* low <= seq <= high */
static inline bool seq_between(uint32_t low, uint32_t seq, uint32_t high)
{
	return high - low >= seq - low;
}

#endif
