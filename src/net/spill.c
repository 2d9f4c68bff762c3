/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of received packets (spill.h). */
#include "config.h"

#include "net/spill.h"

#include <string.h>

/* These fit a short datagram, a frame, and a large frame. */
static const uint32_t buf_sizes[SPILL_SIZES] = { 256, 2048, 4096 };

void spill_init(struct spill *spill)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		pkt_stock_init(&spill->stocks[i], buf_sizes[i], UINT32_MAX);
}

/* Chooses the stock for a copy. NULL: such a packet is not copied. */
static struct pkt_stock *stock_for(struct spill *spill, const struct pkt *pkt)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		if (!pkt->next_part && pkt->len <= buf_sizes[i])
			return &spill->stocks[i];
	return NULL;
}

bool spill_prepare(struct spill *spill, const struct pkt *pkt)
{
	struct pkt_stock *stock = stock_for(spill, pkt);

	if (!stock)
		return false;
	pkt_stock_prepare(stock);
	return stock->is_wanted;
}

struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt)
{
	struct pkt_stock *stock = stock_for(spill, pkt);
	struct pkt *copy = stock ? pkt_alloc(&stock->pool) : NULL;

	if (!copy)
		return NULL;
	memcpy(pkt_append(copy, pkt->len), pkt->data, pkt->len);
	copy->csum_verdict = pkt->csum_verdict;
	copy->flags = pkt->flags;
	copy->flow_tag = pkt->flow_tag;
	copy->time_ns = pkt->time_ns;
	copy->card_ns = pkt->card_ns;
	return copy;
}
