/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contract of rings on a device in memory: rules and their verdicts, further
 * regions, and what stands in for ops that are not there. */
#include "config.h"

#include "dev/fake/fake.h"

#include <errno.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

static struct {
	struct fake_cable *cable;
	struct dev *dev;
	struct pkt_pool pool;
	struct ring *ring;
} world;

static void begin(void)
{
	static const struct fake_cable_params cable = { .seed = 1 };
	struct fake_params params = {
		.ifindex = 7,
		.mtu = 1500,
		.frame_cnt = 100,
		.frame_size = 2048,
		.fd = -1,
	};

	memcpy(params.mac, mac, sizeof(mac));
	pkt_pool_init(&world.pool, 0);
	world.cable = fake_cable_create(&cable);
	CHECK_EQ(fake_dev_create_loop(world.cable, &params, &world.dev), 0);
	CHECK_EQ(world.dev->ops->ring_create(world.dev, &world.pool,
					     &world.ring),
		 0);
}

static void end(void)
{
	ring_end(world.ring);
	region_set_give(&world.dev->regions, &world.pool, UINT32_MAX);
	CHECK_EQ(world.pool.total_cnt, 0);
	world.dev->ops->close(world.dev);
	fake_cable_destroy(world.cable);
}

/* -- rules ----------------------------------------------------------------------- */

struct frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
} WIRE_PACKED;

/* Sends one to itself, from port 7 to 80. Whether the ring got it. */
static bool is_received(void)
{
	struct frame *frame = (void *)world.ring->tx_frame;
	struct pkt *batch[2];
	unsigned cnt;

	*frame = (struct frame){
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip.version_ihl = 0x45,
		.ip.total_len = htobe16(sizeof(*frame) - sizeof(frame->eth)),
		.ip.proto = WIRE_PROTO_UDP,
		.ip.src = htobe32(0x0a000002),
		.ip.dst = htobe32(0x0a000001),
		.udp = { htobe16(7), htobe16(80), htobe16(8), 0 },
	};
	memcpy(frame->eth.dst, mac, sizeof(mac));
	frame->ip.check = csum_fold(csum_words(&frame->ip, 5));
	world.ring->ops->tx_commit(world.ring, sizeof(*frame));
	cnt = world.ring->ops->rx_poll(world.ring, batch, 2);
	for (unsigned i = 0; i < cnt; i++)
		pkt_put(batch[i]);
	return cnt;
}

static struct flow_rule rule(bool is_connected, enum flow_verdict verdict)
{
	struct flow_rule rule = {
		.dst = ip_addr_from_v4(htobe32(0x0a000001)),
		.dst_port = htobe16(80),
		.proto = WIRE_PROTO_UDP,
		.verdict = (uint8_t)verdict,
	};

	if (is_connected) {
		rule.src = ip_addr_from_v4(htobe32(0x0a000002));
		rule.src_port = htobe16(7);
	}
	return rule;
}

static int add(const struct flow_rule *rule)
{
	return world.dev->ops->flow_add(world.dev, rule, world.ring, 0);
}

TEST(the_more_specific_rule_decides)
{
	struct flow_rule wide = rule(false, FLOW_TO_RING);
	struct flow_rule narrow = rule(true, FLOW_TO_KERNEL);

	begin();
	CHECK(world.dev->caps.kernel_verdicts);
	CHECK(!is_received());
	CHECK_EQ(add(&wide), 0);
	CHECK(is_received());
	CHECK_EQ(add(&narrow), 0);
	CHECK(!is_received());
	CHECK_EQ(fake_dev_unmatched_cnt(world.dev), 2);
	/* the verdict does not make it another rule */
	narrow.verdict = FLOW_TO_RING;
	CHECK_EQ(add(&narrow), -EEXIST);
	world.dev->ops->flow_remove(world.dev, &narrow);
	CHECK(is_received());
	end();
}

/* -- regions ----------------------------------------------------------------------- */

TEST(a_further_region_has_further_frames)
{
	struct pkt *pkts[150];

	begin();
	for (int i = 0; i < 100; i++)
		pkts[i] = ring_pkt_alloc(world.ring);
	CHECK(!ring_pkt_alloc(world.ring));
	CHECK_EQ(world.dev->ops->region_add(world.dev, 50), 0);
	for (int i = 100; i < 150; i++)
		pkts[i] = ring_pkt_alloc(world.ring);
	CHECK(!ring_pkt_alloc(world.ring));
	for (int i = 0; i < 150; i++) {
		struct region *region =
			region_set_find(&world.dev->regions, pkts[i]);

		CHECK(pkts[i]->buf >= region->mem &&
		      pkts[i]->buf < region->mem + region->mem_size);
		CHECK(region_pkt(region, region_offset(region, pkts[i])) ==
		      pkts[i]);
	}
	/* each goes back to its own, in whatever order */
	for (int i = 0; i < 150; i++)
		pkt_put(pkts[i * 77 % 150]);
	CHECK_EQ(region_set_give(&world.dev->regions, &world.pool, UINT32_MAX),
		 150);
	CHECK_EQ(region_free_cnt(world.dev->regions.regions[0]), 100);
	CHECK_EQ(region_free_cnt(world.dev->regions.regions[1]), 50);
	end();
}

TEST(there_is_an_end_to_regions)
{
	begin();
	for (int i = 1; i < REGION_SET_MAX; i++)
		CHECK_EQ(world.dev->ops->region_add(world.dev, 10), 0);
	CHECK_EQ(world.dev->ops->region_add(world.dev, 10), -ENOSPC);
	end();
}

/* -- gaps ---------------------------------------------------------------------------- */

static struct ring_ops small_ring;
static struct dev_ops small_dev;

TEST(what_a_small_ring_leaves_out_is_there)
{
	struct ring ring = { .ops = &small_ring };
	struct dev dev = { .ops = &small_dev };
	struct pkt *pkt;
	int fd;

	ring_ops_fill(&small_ring);
	CHECK_EQ(ring.ops->rx_poll(&ring, &pkt, 1), 0);
	CHECK(!ring.ops->rx_peek(&ring).data);
	ring.ops->rx_done(&ring);
	ring.ops->tx_commit(&ring, 60);
	CHECK(ring.ops->tx_fits(&ring, 1000, 0));
	ring.ops->reap(&ring);
	CHECK_EQ(ring.ops->kick(&ring), RING_KICKED);
	CHECK_EQ(ring.ops->fds(&ring, &fd, 1), 0);
	CHECK(ring.ops->arm(&ring));
	ring.ops->acknowledge(&ring);
	CHECK_EQ(ring.ops->device_cnt(&ring), 0);
	/* what it must have is its own */
	CHECK(!ring.ops->tx && !ring.ops->close);
	dev_ops_fill(&small_dev);
	CHECK_EQ(dev.ops->give_back(&dev, "", 1), -EOPNOTSUPP);
	CHECK_EQ(dev.ops->check(&dev), 0);
	CHECK_EQ(dev.ops->link_changed(&dev), 0);
	CHECK_EQ(dev.ops->region_add(&dev, 1), -EOPNOTSUPP);
}

TEST(what_a_ring_has_stays)
{
	struct ring_ops mine;

	begin();
	mine = *world.ring->ops;
	ring_ops_fill(&mine);
	CHECK(memcmp(&mine, world.ring->ops, sizeof(mine)) == 0);
	end();
}
