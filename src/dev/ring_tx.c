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

/* Appends bytes to the last part of a packet, and to further ones. The last part; NULL:
 * there is no frame for more. */
static struct pkt *append_to_parts(struct ring *ring, struct pkt *last,
				   const uint8_t *bytes, uint32_t len)
{
	while (len) {
		uint32_t part = MIN(len, pkt_tailroom(last));

		if (part) {
			memcpy(pkt_append(last, part), bytes, part);
			bytes += part;
			len -= part;
			continue;
		}
		last->next_part = ring_pkt_alloc(ring);
		last = last->next_part;
		if (!last)
			return NULL;
	}
	return last;
}

struct pkt *ring_tx_copy_run(struct ring *ring, const struct ring_tx *tx)
{
	struct pkt *first = ring_pkt_alloc(ring), *last = first;
	struct pkt *pkt = tx->run;

	for (uint32_t i = 0; i < tx->run_cnt && last; i++) {
		last = append_to_parts(ring, last, pkt->data, pkt->len);
		pkt = pkt_from_link(pkt->link.next);
	}
	if (last)
		return first;
	pkt_put(first);
	return NULL;
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
