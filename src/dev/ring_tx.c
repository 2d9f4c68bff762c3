/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies and completes frames (ring_tx.h). */
#include "config.h"

#include "dev/ring_tx.h"

#include <string.h>

#include "base/checksum.h"

struct pkt *ring_tx_copy(struct ring *ring, const struct ring_tx *tx)
{
	struct pkt *copy = ring_pkt_alloc(ring);

	if (!copy || tx->header_len + pkt_total_len(tx->payload) >
			     pkt_tailroom(copy)) {
		pkt_put(copy);
		return NULL;
	}
	if (tx->header_len)
		memcpy(pkt_append(copy, tx->header_len), tx->header,
		       tx->header_len);
	for (const struct pkt *part = tx->payload; part; part = part->next_part)
		memcpy(pkt_append(copy, part->len), part->data, part->len);
	return copy;
}

static bool has_room_for_header(const struct ring *ring, const struct ring_tx *tx)
{
	const struct pkt *pkt = tx->payload;

	return pkt->pool == ring->pool && pkt->refs == 1 && !pkt->next_part &&
	       pkt_headroom(pkt) >= tx->header_len;
}

struct pkt *ring_tx_wrap(struct ring *ring, const struct ring_tx *tx, bool fills)
{
	bool has_csum = fills && tx->flags & RING_TX_CSUM;
	uint16_t check = has_csum ? ring_tx_csum(tx) : 0;
	struct pkt *pkt = tx->payload;

	if (!has_room_for_header(ring, tx)) {
		pkt = ring_tx_copy(ring, tx);
		pkt_put(tx->payload);
		if (!pkt)
			return NULL;
	} else if (tx->header_len) {
		memcpy(pkt_push(pkt, tx->header_len), tx->header,
		       tx->header_len);
	}
	if (has_csum)
		memcpy(pkt->data + tx->csum_at, &check, sizeof(check));
	return pkt;
}

uint16_t ring_tx_csum(const struct ring_tx *tx)
{
	uint32_t sum = tx->csum_sum;
	size_t at = 0;

	for (const struct pkt *part = tx->payload; part; part = part->next_part) {
		sum = csum_block_add(sum, csum_partial(part->data, part->len, 0),
				     at);
		at += part->len;
	}
	return tx->flags & RING_TX_CSUM_NOT_ZERO ? csum_fold_not_zero(sum) :
						   csum_fold(sum);
}
