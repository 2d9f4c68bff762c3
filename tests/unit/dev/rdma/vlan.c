/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames of a VLAN's ring, byte by byte: what the card has and sends, and what others
 * see. */
#include "config.h"

#include "dev/rdma/vlan.c"
#include "tests/support/test.h"

enum { FRAME = 64, HEADROOM = 32, VLAN = 100 };

#define ADDRS 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2

/* -- the ring of the kind ----------------------------------------------------------- */

static struct rdma_dev dev;
static struct rdma_ring own;
static uint8_t memory[4 * FRAME];
static struct pkt pkts[4];
static struct pkt_pool pool;
static unsigned waiting;
static struct {
	uint8_t bytes[FRAME];
	size_t len;
	struct ring_tx tx;
	unsigned cnt;
} sent;

static unsigned poll_all(struct ring *ring UNUSED, struct pkt **batch, unsigned cnt)
{
	unsigned got = MIN(cnt, waiting);

	for (unsigned i = 0; i < got; i++)
		batch[i] = &pkts[i];
	waiting = 0;
	return got;
}

static struct ring_frame peek_first(struct ring *ring UNUSED)
{
	if (!waiting)
		return RING_NO_FRAME;
	return (struct ring_frame){ pkts[0].data, pkts[0].len, PKT_CSUM_GOOD, true };
}

static int send_frame(struct ring *ring UNUSED, const struct ring_tx *tx)
{
	sent.tx = *tx;
	sent.len = tx->header_len;
	memcpy(sent.bytes, tx->header, tx->header_len);
	sent.cnt++;
	return 0;
}

static void commit(struct ring *ring, size_t len)
{
	memcpy(sent.bytes, ring->tx_frame, len);
	sent.len = len;
	sent.cnt++;
}

static const struct ring_ops ops = {
	.rx_poll = poll_all, .rx_peek = peek_first, .tx = send_frame, .tx_commit = commit,
};

static struct ring *begin(void)
{
	struct ring *ring = &own.ring;

	memset(&own, 0, sizeof(own));
	memset(&sent, 0, sizeof(sent));
	memset(pkts, 0, sizeof(pkts));
	waiting = 0;
	pkt_pool_init(&pool, HEADROOM);
	dev.dev.vlan_id = VLAN;
	ring->ops = &ops;
	ring->dev = &dev.dev;
	ring->counts = &ring->own_counts;
	own.dev = &dev;
	rdma_ring_add_vlan(ring);
	return ring;
}

static void receive(const uint8_t *bytes, uint32_t len)
{
	struct pkt *pkt = &pkts[waiting];

	/* a reference more, so that a packet that is dropped stays */
	*pkt = (struct pkt){
		.buf = memory + waiting * FRAME,
		.buf_size = FRAME,
		.pool = &pool,
		.refs = 2,
		.len = len,
	};
	pkt->data = pkt->buf + HEADROOM;
	memcpy(pkt->data, bytes, len);
	waiting++;
}

/* -- receiving --------------------------------------------------------------------- */

static const uint8_t tagged[] = { ADDRS, 0x81, 0, 0, VLAN, 8, 0, 0x45, 1, 2 };
static const uint8_t bare[] = { ADDRS, 8, 0, 0x45, 1, 2 };

TEST(the_tag_is_taken_off)
{
	static const uint8_t urgent[] = { ADDRS, 0x81, 0, 0xf0, VLAN, 8, 0, 0x45 };
	struct ring *ring = begin();
	struct pkt *batch[4];

	receive(tagged, sizeof(tagged));
	receive(urgent, sizeof(urgent));
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 4), 2);
	CHECK(batch[0] == &pkts[0] && batch[1] == &pkts[1]);
	CHECK_EQ(pkts[0].len, sizeof(bare));
	CHECK_MEM(pkts[0].data, bare, sizeof(bare));
	CHECK_EQ(pkts[0].flags & PKT_PCP, 0);
	/* priority 7, and a bit that says nothing about the priority */
	CHECK_EQ(pkts[1].flags & PKT_PCP, 7 << 5);
	CHECK_EQ(pkts[1].flags, 7 << 5);
	CHECK_MEM(pkts[1].data, bare, pkts[1].len);
}

TEST(a_frame_is_shown_without_tag_again_and_again)
{
	struct ring *ring = begin();
	struct pkt *batch[4];

	CHECK(!ring->ops->rx_peek(ring).data);
	receive(tagged, sizeof(tagged));
	for (int i = 0; i < 2; i++) {
		struct ring_frame frame = ring->ops->rx_peek(ring);

		CHECK_EQ(frame.len, sizeof(bare));
		CHECK_MEM(frame.data + 12, bare + 12, sizeof(bare) - 12);
		CHECK(frame.has_more && frame.csum_verdict == PKT_CSUM_GOOD);
	}
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 4), 1);
	CHECK_MEM(pkts[0].data, bare, sizeof(bare));
}

TEST(other_tags_and_none_are_dropped)
{
	static const uint8_t other[] = { ADDRS, 0x81, 0, 0, VLAN + 1, 8, 0, 0x45 };
	static const uint8_t high[] = { ADDRS, 0x81, 0, 1, VLAN, 8, 0, 0x45 };
	static const uint8_t service[] = { ADDRS, 0x88, 0xa8, 0, VLAN, 8, 0, 0x45 };
	struct ring *ring = begin();
	struct pkt *batch[4];

	receive(other, sizeof(other));
	CHECK(!ring->ops->rx_peek(ring).data);
	receive(high, sizeof(high));
	receive(service, sizeof(service));
	receive(bare, sizeof(bare));
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 4), 0);
	CHECK_EQ(ring->counts->rx_errors, 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pkts[i].refs, 1);
	/* too short to have one */
	receive(tagged, 17);
	CHECK(!ring->ops->rx_peek(ring).data);
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 4), 0);
}

TEST(one_of_its_own_among_others)
{
	struct ring *ring = begin();
	struct pkt *batch[4];

	receive(bare, sizeof(bare));
	receive(tagged, sizeof(tagged));
	receive(bare, sizeof(bare));
	CHECK_EQ(ring->ops->rx_poll(ring, batch, 4), 1);
	CHECK(batch[0] == &pkts[1]);
}

/* -- sending ----------------------------------------------------------------------- */

static const uint8_t given[] = { ADDRS, 0xa0, VLAN, 0x45, 1, 2, 3, 4 };
static const uint8_t expected[] = { ADDRS, 0x81, 0, 0xa0, VLAN, 8, 0, 0x45, 1, 2, 3, 4 };

TEST(the_tag_is_put_into_a_header)
{
	struct ring *ring = begin();
	struct pkt payload = { .refs = 1 };
	struct ring_tx tx = {
		.header = given, .header_len = sizeof(given), .payload = &payload,
		.flags = RING_TX_CSUM, .csum_at = 16, .csum_sum = 77,
	};

	CHECK_EQ(ring->ops->tx(ring, &tx), 0);
	CHECK_EQ(sent.len, sizeof(expected));
	CHECK_MEM(sent.bytes, expected, sizeof(expected));
	CHECK_EQ(sent.tx.csum_at, 20);
	CHECK_EQ(sent.tx.csum_sum, 77);
	CHECK_EQ(sent.tx.flags, RING_TX_CSUM);
	CHECK(sent.tx.payload == &payload);
}

TEST(the_tag_is_put_into_a_frame_in_place)
{
	uint8_t frame[sizeof(given) + RDMA_VLAN_LEN];
	struct ring *ring = begin();

	memcpy(frame, given, sizeof(given));
	ring->tx_frame = frame;
	ring->ops->tx_commit(ring, sizeof(given));
	CHECK_EQ(sent.len, sizeof(expected));
	CHECK_MEM(sent.bytes, expected, sizeof(expected));
}

TEST(headers_that_are_none)
{
	struct ring *ring = begin();
	static const uint8_t header[RDMA_TSO_HEADER_MAX];
	struct pkt payload = { .pool = &pool, .refs = 3 };
	struct ring_tx tx = { .header = header, .header_len = 13, .payload = &payload };

	CHECK_EQ(ring->ops->tx(ring, &tx), -EAGAIN);
	tx.header_len = RDMA_TSO_HEADER_MAX - RDMA_VLAN_LEN + 1;
	CHECK_EQ(ring->ops->tx(ring, &tx), -EAGAIN);
	CHECK_EQ(payload.refs, 1);
	CHECK_EQ(sent.cnt, 0);
	CHECK_EQ(ring->counts->tx_full, 2);
}
