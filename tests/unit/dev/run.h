/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A run of bytes that a device is to cut (dev/ring.h): in packets of memory that is none of
 * its, as TCP has them. */
#ifndef TESTS_UNIT_DEV_RUN_H
#define TESTS_UNIT_DEV_RUN_H

#include <stdlib.h>

#include "dev/ring.h"
#include "tests/support/test.h"

enum { RUN_SEGMENT = 1448, RUN_HEADER = 66 };

struct run {
	struct pkt_pool pool;
	struct list pkts;
	uint8_t header[RUN_HEADER];
	uint8_t *bytes; /* all of them */
	struct ring_tx tx;
};

/* Full segments, and bytes of one that is not. */
static inline void run_make(struct run *run, uint32_t full_cnt, uint32_t rest)
{
	uint32_t len = full_cnt * RUN_SEGMENT + rest;

	pkt_pool_init(&run->pool, 0);
	CHECK_EQ(pkt_pool_grow(&run->pool, full_cnt + 1, 2048), 0);
	list_init(&run->pkts);
	run->bytes = malloc(len);
	for (uint32_t i = 0; i < len; i++)
		run->bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t i = 0; i < RUN_HEADER; i++)
		run->header[i] = (uint8_t)(i + 1);
	run->tx = (struct ring_tx){
		.header = run->header,
		.header_len = RUN_HEADER,
		.segment_len = RUN_SEGMENT,
		.run_len = len,
	};
	for (uint32_t at = 0; at < len; run->tx.run_cnt++) {
		uint32_t part = MIN(len - at, (uint32_t)RUN_SEGMENT);
		struct pkt *pkt = pkt_alloc(&run->pool);

		memcpy(pkt_append(pkt, part), run->bytes + at, part);
		list_push_back(&run->pkts, &pkt->link);
		at += part;
	}
	run->tx.run = pkt_from_link(run->pkts.next);
}

/* Nobody else has its packets any more. */
static inline void run_end(struct run *run)
{
	pkt_put_list(&run->pkts);
	CHECK_EQ(pkt_pool_destroy(&run->pool), 0);
	free(run->bytes);
}

#endif
