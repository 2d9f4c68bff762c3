/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of a VLAN. The tag is put on and taken off here, around the ops of either kind of
 * rings, so that those, and the stack above, know frames without tags alone. ConnectX could
 * put it on only where no header is inline, and not all devices could take it off; a queue
 * pair that is not asked to (IBV_QP_CREATE_CVLAN_STRIPPING) leaves it in the frame.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "dev/rdma/rdma_priv.h"
#include "pkt/wire.h"

enum {
	/* what stays in front of a tag */
	ADDRS_LEN = offsetof(struct wire_eth, type),
	/* the longest header that is sent: up to TCP's last option, without the tag */
	HEADER_MAX = RDMA_TSO_HEADER_MAX - RDMA_VLAN_LEN,
};
_Static_assert(sizeof(struct wire_vlan) == RDMA_VLAN_LEN, "a tag is so long");

static struct rdma_ring *ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct rdma_ring, ring);
}

/* -- receiving --------------------------------------------------------------------- */

/* Whether the frame has this VLAN's tag, of whatever priority. The rules name it, so a
 * card that does what they say brings no other frame. */
static bool is_tagged(const struct ring *ring, const uint8_t *frame, uint32_t len)
{
	const struct wire_vlan_eth *tagged = (const void *)frame;

	return len >= sizeof(*tagged) &&
	       tagged->eth.type == htobe16(WIRE_ETH_VLAN) &&
	       (be16toh(tagged->tag.tci) & WIRE_VLAN_ID) == ring->dev->vlan_id;
}

/* The addresses move over the tag. */
static void take_tag_off(struct pkt *pkt)
{
	uint8_t *frame = pkt->data;
	uint8_t tci_high = frame[offsetof(struct wire_vlan_eth, tag.tci)];

	pkt->flags |= tci_high & PKT_PCP;
	memmove(frame + RDMA_VLAN_LEN, frame, ADDRS_LEN);
	pkt_pull(pkt, RDMA_VLAN_LEN);
}

static unsigned vlan_rx_poll(struct ring *ring, struct pkt **batch, unsigned cnt)
{
	unsigned got = ring_of(ring)->kind_ops->rx_poll(ring, batch, cnt), left = 0;

	for (unsigned i = 0; i < got; i++) {
		struct pkt *pkt = batch[i];

		if (UNLIKELY(!is_tagged(ring, pkt->data, pkt->len))) {
			ring->counts->rx_errors++;
			pkt_put(pkt);
			continue;
		}
		take_tag_off(pkt);
		batch[left++] = pkt;
	}
	return left;
}

/* The frame stays as it is, since it may be shown again. Who peeks looks at nothing in
 * front of Ethernet's type. */
static struct ring_frame vlan_rx_peek(struct ring *ring)
{
	struct ring_frame frame = ring_of(ring)->kind_ops->rx_peek(ring);

	if (!frame.data || UNLIKELY(!is_tagged(ring, frame.data, frame.len)))
		return RING_NO_FRAME;
	frame.data += RDMA_VLAN_LEN;
	frame.len -= RDMA_VLAN_LEN;
	return frame;
}

/* -- sending ----------------------------------------------------------------------- */

/* Writes the rest of Ethernet's header behind the addresses. `tci` lies where the type
 * would be in a header without tag. */
static void put_tag(uint8_t *frame, __be16 tci)
{
	struct wire_vlan_eth *tagged = (void *)frame;

	tagged->eth.type = htobe16(WIRE_ETH_VLAN);
	tagged->tag.tci = tci;
	tagged->tag.type = htobe16(WIRE_ETH_IPV4);
}

static int vlan_tx(struct ring *ring, const struct ring_tx *given)
{
	const struct wire_eth *eth = (const void *)given->header;
	uint8_t header[HEADER_MAX + RDMA_VLAN_LEN];
	struct ring_tx tx = *given;

	if (UNLIKELY(given->header_len < sizeof(*eth) ||
		     given->header_len > HEADER_MAX)) {
		pkt_put(given->payload);
		ring->counts->tx_full++;
		return -EAGAIN;
	}
	memcpy(header, eth, ADDRS_LEN);
	put_tag(header, eth->type);
	memcpy(header + sizeof(struct wire_vlan_eth), eth + 1,
	       given->header_len - sizeof(*eth));
	tx.header = header;
	tx.header_len = (uint16_t)(given->header_len + RDMA_VLAN_LEN);
	tx.csum_at = (uint16_t)(given->csum_at + RDMA_VLAN_LEN);
	return ring_of(ring)->kind_ops->tx(ring, &tx);
}

/* There is room behind the frame. */
static void vlan_tx_commit(struct ring *ring, size_t len)
{
	uint8_t *frame = ring->tx_frame;
	const struct wire_eth *eth = (const void *)frame;
	__be16 tci = eth->type;

	memmove(frame + sizeof(struct wire_vlan_eth), frame + sizeof(*eth),
		len - sizeof(*eth));
	put_tag(frame, tci);
	ring_of(ring)->kind_ops->tx_commit(ring, len + RDMA_VLAN_LEN);
}

/* -- life -------------------------------------------------------------------------- */

void rdma_ring_add_vlan(struct ring *ring)
{
	struct rdma_ring *own = ring_of(ring);

	own->kind_ops = ring->ops;
	own->vlan_ops = *ring->ops;
	own->vlan_ops.rx_poll = vlan_rx_poll;
	own->vlan_ops.rx_peek = vlan_rx_peek;
	own->vlan_ops.tx = vlan_tx;
	own->vlan_ops.tx_commit = vlan_tx_commit;
	ring->ops = &own->vlan_ops;
}
