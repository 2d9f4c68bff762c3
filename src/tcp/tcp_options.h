/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP options in bytes and in a struct, with no state of their own. */
#ifndef TCP_TCP_OPTIONS_H
#define TCP_TCP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
	TCP_OPTIONS_MAX = 40,
	TCP_HEADER_MAX = 60,
	TCP_SACK_BLOCKS_MAX = 4,
	/* RFC 7323 section 2.3 */
	TCP_SCALE_MAX = 14,
	/* RFC 7413 section 4.1.1 */
	TCP_FO_COOKIE_MIN = 4,
	TCP_FO_COOKIE_MAX = 16,
};

/* How a time stamp alone begins: two NOPs, kind, length (RFC 7323 appendix A). */
#define TCP_OPTION_TS_PLAIN UINT32_C(0x0101080a)

/* end is exclusive */
struct tcp_sack_block {
	uint32_t start;
	uint32_t end;
};

struct tcp_options {
	/* 0: none */
	uint16_t mss;
	uint8_t scale;
	bool has_scale;
	bool has_sack_ok;
	bool has_ts;
	/* Fast Open; a cookie of no bytes asks for one */
	bool has_cookie;
	uint8_t cookie_len;
	/* Accurate ECN: so many counters, each of 24 bits */
	uint8_t counter_cnt;
	uint8_t sack_cnt;
	uint32_t ts_val;
	uint32_t ts_ecr;
	struct tcp_sack_block sack[TCP_SACK_BLOCKS_MAX];
	uint8_t cookie[TCP_FO_COOKIE_MAX];
	/* bytes that came with CE, with ECT(0), with ECT(1); only the CE counter is of any
	 * use when there are fewer than three */
	uint32_t ce_bytes;
	uint32_t ect0_bytes;
	uint32_t ect1_bytes;
};

/* Reads options as RFC 9293 section 3.1 has them: unknown ones are skipped by
 * their length, and one whose length is impossible ends the reading: what was
 * read before it counts. MSS, scale, SACK-permitted and Fast Open count only in a
 * SYN. */
void tcp_options_parse(const uint8_t *data, size_t len, bool is_syn,
		       struct tcp_options *options_out);
/* Writes options padded to a multiple of four; returns their length, at most
 * TCP_OPTIONS_MAX. SACK blocks that do not fit are left out. */
size_t tcp_options_build(uint8_t *data, const struct tcp_options *options);

#endif
