/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of frames that a card is to stamp (tx_followed.h). */
#include "config.h"

#include "sock/tx_followed.h"

/* The scratch room of a record that waits. */
struct tx_followed {
	struct ring_followed ring;
	/* NULL: nobody waits for it, or its caller has not left it yet */
	struct tx_stamps *stamps;
	struct tx_stamp what;
} __attribute__((may_alias));
_Static_assert(sizeof(struct tx_followed) <= PKT_CB_SIZE, "fits");

static struct tx_followed *followed_of(struct pkt *record)
{
	return PKT_CB(record, struct tx_followed);
}

void tx_follow(struct ring *ring, struct pkt *record, void (*told)(struct pkt *record))
{
	*followed_of(record) = (struct tx_followed){ .ring = { told } };
	ring->ops->tx_follow(ring, record);
}

bool tx_is_followed(const struct pkt *record)
{
	return record->refs > 1 || pkt_card_ns(record);
}

struct pkt *tx_followed_leave(struct pkt *record, struct tx_stamps *stamps,
			      const struct tx_stamp *what)
{
	if (pkt_card_ns(record))
		return record;
	if (tx_is_followed(record)) {
		followed_of(record)->what = *what;
		followed_of(record)->stamps = stamps;
		stamps->waiting++;
	}
	pkt_put(record);
	return NULL;
}

struct tx_stamps *tx_followed_told(struct pkt *record, struct tx_stamp *what_out)
{
	struct tx_stamps *stamps = followed_of(record)->stamps;

	*what_out = followed_of(record)->what;
	if (stamps)
		stamps->waiting--;
	if (stamps && pkt_card_ns(record))
		return stamps;
	pkt_put(record);
	return NULL;
}

void tx_followed_look(const struct tx_stamps *stamps, struct stack *stack)
{
	for (unsigned i = 0; stamps->waiting && i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (!ring || !ring_has_followed(ring))
			continue;
		ring->ops->reap(ring);
		stack_note_kick(stack, ring);
	}
}

void tx_followed_forget(struct tx_stamps *stamps, struct stack *stack)
{
	for (unsigned i = 0; stamps->waiting && i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];
		struct pkt *record;

		if (!ring || !ring_has_followed(ring))
			continue;
		LIST_FOR_EACH(record, &ring->followed, link)
			if (followed_of(record)->stamps == stamps)
				followed_of(record)->stamps = NULL;
	}
	stamps->waiting = 0;
}
