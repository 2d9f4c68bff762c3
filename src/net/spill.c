/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of received packets (spill.h). */
#include "config.h"

#include "net/spill.h"

#include <string.h>

/* These fit a short datagram, a frame, and a large frame. What is longer, or lies in
 * several frames, is copied to several. */
static const uint32_t buf_sizes[SPILL_SIZES] = { 256, 2048, 4096 };

void spill_init(struct spill *spill)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		pkt_stock_init(&spill->stocks[i], buf_sizes[i], UINT32_MAX);
}

static uint32_t piece_len(uint32_t rest)
{
	return MIN(rest, buf_sizes[SPILL_SIZES - 1]);
}

/* The stock for a piece. */
static struct pkt_stock *stock_for(struct spill *spill, uint32_t len)
{
	int i = 0;

	while (buf_sizes[i] < len)
		i++;
	return &spill->stocks[i];
}

bool spill_prepare(struct spill *spill, const struct pkt *pkt)
{
	bool is_wanted = false;

	for (; pkt; pkt = pkt->next_part)
		for (uint32_t done = 0; done < pkt->len;) {
			uint32_t len = piece_len(pkt->len - done);
			struct pkt_stock *stock = stock_for(spill, len);

			pkt_stock_prepare(stock);
			is_wanted |= stock->is_wanted;
			done += len;
		}
	return is_wanted;
}

struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt)
{
	struct pkt *copy = NULL, **end = &copy;

	for (const struct pkt *part = pkt; part; part = part->next_part)
		for (uint32_t done = 0; done < part->len;) {
			uint32_t len = piece_len(part->len - done);
			struct pkt *piece =
				pkt_alloc(&stock_for(spill, len)->pool);

			if (!piece) {
				pkt_put(copy);
				return NULL;
			}
			memcpy(pkt_append(piece, len), part->data + done, len);
			*end = piece;
			end = &piece->next_part;
			done += len;
		}
	if (!copy)
		return NULL;
	copy->csum_verdict = pkt->csum_verdict;
	copy->flags = pkt->flags;
	copy->flow_tag = pkt->flow_tag;
	copy->time_ns = pkt->time_ns;
	copy->card_ns = pkt->card_ns;
	return copy;
}
