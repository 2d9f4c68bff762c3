/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of which somebody wants to know when they have left (ring_ops.tx_follow). Each
 * asks for a completion of its own, so their records wait in the order in which the
 * completions come. Until a record has its stamp, the number of its completion stands in
 * card_ns.
 */
#include "config.h"

#include "dev/rdma/rdma_priv.h"

static void set_followed(struct rdma_ring *own, bool has_followed)
{
	if (has_followed)
		own->busy |= RDMA_FOLLOWS;
	else
		own->busy &= (uint8_t)~RDMA_FOLLOWS;
	atomic_store_explicit(&own->has_followed, has_followed,
			      memory_order_relaxed);
}

COLD void rdma_follow(struct rdma_ring *own, uint32_t number)
{
	own->wish->card_ns = number;
	list_push_back(&own->ring.followed, &own->wish->link);
	own->wish = NULL;
	set_followed(own, true);
}

COLD void rdma_unwish(struct rdma_ring *own)
{
	pkt_put(own->wish);
	own->wish = NULL;
}

/* Most completions are of other frames. */
COLD void rdma_has_left(struct rdma_ring *own, uint32_t number, uint64_t ticks)
{
	struct list *followed = &own->ring.followed;
	struct pkt *record;

	if (list_is_empty(followed) ||
	    pkt_from_link(list_first(followed))->card_ns != number)
		return;
	record = pkt_from_link(list_pop_front(followed));
	set_followed(own, !list_is_empty(followed));
	rdma_stamp_left(own, record, ticks);
	PKT_CB(record, struct ring_followed)->told(record);
}
