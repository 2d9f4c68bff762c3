/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bond of devices in memory: by which of them a frame leaves, whose frames count, and
 * that all of them have the same rules and regions. Each port hears what it sends. */
#include "config.h"

#include "dev/bond/bond.h"

#include <errno.h>
#include <linux/if_bonding.h>
#include <stdio.h>

#include "dev/bond/bond_hash.h"
#include "dev/fake/fake.h"
#include "tests/support/test.h"

enum { PORTS = 3, FRAMES = 100, FIRST_IFINDEX = 5, FIRST_FD = 20 };
enum { ALL = (1 << PORTS) - 1 };

static const uint8_t mac[6] = { 2, 0x11, 0x22, 0x33, 0x44, 0x55 };
static const uint8_t peer_mac[6] = { 2, 0x66, 0x77, 0x88, 0x99, 0xaa };

/* One of them, whose device and ring say what a case wants and keep count. */
struct port {
	struct fake_cable *cable;
	struct dev *dev;
	struct dev_ops dev_ops;
	const struct dev_ops *fake;
	struct ring *ring;
	struct ring_ops ring_ops;
	const struct ring_ops *fake_ring;

	/* what it was asked to drive */
	struct backend_request request;
	char name[16], lower_name[16];
	/* what it was told */
	uint32_t mtu;
	unsigned rules, wakes, quiets, acks, grown;
	struct region *shared;
	/* what has left by it, and what the last one was */
	unsigned sent;
	uint8_t frame[128];
	size_t len;

	/* what it says that it can do; NULL: the fake's */
	const struct dev_caps *caps;
	/* errors that it gives, or 0 */
	int open_err, rule_err, ring_err, region_err, health;
	enum ring_kick kick;
	uint32_t device_cnt;
	bool is_busy;
};

static struct {
	struct port ports[PORTS];
	unsigned asked, open_cnt, ring_cnt;
	uint32_t tx_max;
	bool sleeps;
	struct dev *dev;
	struct pkt_pool pool;
	struct ring *ring;
} world;

#define FOR_EACH_PORT(port) \
	for (struct port *port = world.ports; port < world.ports + PORTS; port++)

/* -- the ports ----------------------------------------------------------------------- */

static struct port *port_of(const struct dev *dev)
{
	FOR_EACH_PORT(port)
		if (port->dev == dev)
			return port;
	FAIL("no port's");
}

static enum ring_kick port_kick(struct ring *ring)
{
	struct port *port = port_of(ring->dev);

	(void)port->fake_ring->kick(ring);
	return port->kick;
}

static bool port_tx_is_done(struct ring *ring)
{
	return !port_of(ring->dev)->is_busy;
}

static void port_acknowledge(struct ring *ring)
{
	port_of(ring->dev)->acks++;
}

static uint32_t port_device_cnt(const struct ring *ring)
{
	return port_of(ring->dev)->device_cnt;
}

static void port_rx_grow(struct ring *ring)
{
	port_of(ring->dev)->grown++;
	ring->rx_post_max = 10;
}

static void port_ring_close(struct ring *ring)
{
	world.ring_cnt--;
	port_of(ring->dev)->fake_ring->close(ring);
}

static int port_ring_create(struct dev *dev, struct pkt_pool *pool,
			    struct ring **ring_out)
{
	struct port *port = port_of(dev);

	if (port->ring_err)
		return port->ring_err;
	CHECK_EQ(port->fake->ring_create(dev, pool, &port->ring), 0);
	port->fake_ring = port->ring->ops;
	port->ring_ops = *port->ring->ops;
	port->ring_ops.kick = port_kick;
	port->ring_ops.tx_is_done = port_tx_is_done;
	port->ring_ops.acknowledge = port_acknowledge;
	port->ring_ops.device_cnt = port_device_cnt;
	port->ring_ops.rx_grow = port_rx_grow;
	port->ring_ops.close = port_ring_close;
	port->ring->ops = &port->ring_ops;
	port->ring->needs_ack = port - world.ports == 1;
	world.ring_cnt++;
	*ring_out = port->ring;
	return 0;
}

static int port_flow_add(struct dev *dev, const struct flow_rule *rule,
			 struct ring *ring, uint32_t tag)
{
	struct port *port = port_of(dev);
	int err = port->rule_err;

	CHECK(ring == (rule->verdict == FLOW_TO_RING ? port->ring : NULL));
	if (!err && ring)
		err = port->fake->flow_add(dev, rule, ring, tag);
	port->rules += !err;
	return err;
}

static void port_flow_remove(struct dev *dev, const struct flow_rule *rule)
{
	port_of(dev)->rules--;
	port_of(dev)->fake->flow_remove(dev, rule);
}

static int port_region_share(struct dev *dev, struct region *region, uint32_t id)
{
	struct port *port = port_of(dev);

	CHECK_EQ(id, atomic_load(&dev->regions.cnt));
	if (region && port->region_err)
		return port->region_err;
	port->shared = region;
	return 0;
}

static int port_check(struct dev *dev)
{
	return port_of(dev)->health;
}

static int port_link_changed(struct dev *dev)
{
	port_of(dev)->mtu = dev->mtu;
	dev->caps.tx_len_max = dev->mtu + 14 - (dev == world.ports[1].dev);
	return port_of(dev)->health;
}

static void port_close(struct dev *dev)
{
	world.open_cnt--;
	port_of(dev)->fake->close(dev);
}

static void wake(void *ctx)
{
	((struct port *)ctx)->wakes++;
}

static void quiet(void *ctx)
{
	((struct port *)ctx)->quiets++;
}

static void note_frame(void *ctx, uint64_t now_ns UNUSED, const void *frame, size_t len)
{
	struct port *port = ctx;

	port->sent++;
	port->len = len;
	memcpy(port->frame, frame, MIN(len, sizeof(port->frame)));
}

/* What the device does otherwise than the fake. */
static void wrap(struct port *port)
{
	port->fake = port->dev->ops;
	port->dev_ops = *port->fake;
	port->dev_ops.ring_create = port_ring_create;
	port->dev_ops.flow_add = port_flow_add;
	port->dev_ops.flow_remove = port_flow_remove;
	port->dev_ops.region_share = port_region_share;
	port->dev_ops.check = port_check;
	port->dev_ops.link_changed = port_link_changed;
	port->dev_ops.close = port_close;
	port->dev->ops = &port->dev_ops;
	if (port->caps)
		port->dev->caps = *port->caps;
}

static int open_port(struct backend *backend UNUSED,
		     const struct backend_request *request, struct dev **dev_out,
		     struct dev_verdict *why_out)
{
	struct port *port = &world.ports[world.asked++];
	struct fake_params params = {
		.ifindex = request->ifindex,
		.mtu = request->mtu,
		.frame_cnt = request->frame_cnt,
		.frame_size = 2048,
		.regions = request->regions,
		.fd = world.sleeps ? FIRST_FD + (int)(port - world.ports) : -1,
		.wake = world.sleeps ? wake : NULL,
		.quiet = world.sleeps ? quiet : NULL,
		.wake_ctx = port,
		.tx_max = world.tx_max,
	};

	port->request = *request;
	snprintf(port->name, sizeof(port->name), "%s", request->name);
	snprintf(port->lower_name, sizeof(port->lower_name), "%s",
		 request->lower_name ? request->lower_name : "");
	if (port->open_err) {
		snprintf(why_out->text, sizeof(why_out->text), "it has no queues");
		why_out->refusal = DEV_REFUSED_ERROR;
		return port->open_err;
	}
	memcpy(params.mac, request->mac, sizeof(params.mac));
	CHECK_EQ(fake_dev_create_loop(port->cable, &params, &port->dev), 0);
	wrap(port);
	world.open_cnt++;
	*dev_out = port->dev;
	return 0;
}

/* -- a case -------------------------------------------------------------------------- */

static struct backend backend = { .name = "fakes", .shares_regions = true,
				  .open = open_port };

static struct backend_bond a_bond(uint8_t mode, uint8_t policy, uint32_t active)
{
	struct backend_bond bond = { .name = "bond0", .mode = mode, .policy = policy,
				     .active = active, .port_cnt = PORTS };

	for (int i = 0; i < PORTS; i++) {
		bond.ports[i].ifindex = FIRST_IFINDEX + i;
		snprintf(bond.ports[i].name, sizeof(bond.ports[i].name), "eth%d", i);
	}
	return bond;
}

static struct backend_request a_request(const struct backend_bond *bond)
{
	struct backend_request request = {
		.ifindex = 9,
		.name = "bond0",
		.mtu = 1500,
		.bond = bond,
		.sharer_cnt = bond->port_cnt,
		.frame_cnt = FRAMES,
	};

	memcpy(request.mac, mac, sizeof(mac));
	return request;
}

static void prepare(void)
{
	memset(&world, 0, sizeof(world));
	pkt_pool_init(&world.pool, 0);
	FOR_EACH_PORT(port) {
		struct fake_cable_params cable = { .seed = 1, .tap = note_frame,
						   .tap_ctx = port };

		port->cable = fake_cable_create(&cable);
		CHECK(port->cable);
	}
}

static void open_bond(uint8_t mode, uint8_t policy, uint32_t active)
{
	struct backend_bond bond = a_bond(mode, policy, active);
	struct backend_request request = a_request(&bond);
	struct dev_verdict why = { .text = "" };

	CHECK_EQ(bond_open(&backend, &request, &world.dev, &why), 0);
	CHECK_EQ(world.dev->ops->ring_create(world.dev, &world.pool, &world.ring), 0);
}

static void begin(uint8_t mode, uint8_t policy, uint32_t active)
{
	prepare();
	open_bond(mode, policy, active);
}

/* Nobody holds a frame. */
static void all_are_back(void)
{
	for (uint32_t i = atomic_load(&world.dev->regions.cnt); i-- > 0;) {
		struct region *region = world.dev->regions.regions[i];

		region_set_give(&world.dev->regions, &world.pool, UINT32_MAX);
		CHECK_EQ(world.pool.total_cnt, 0);
		CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	}
}

static void end_cables(void)
{
	CHECK_EQ(world.ring_cnt, 0);
	CHECK_EQ(world.open_cnt, 0);
	FOR_EACH_PORT(port)
		fake_cable_destroy(port->cable);
}

static void end(void)
{
	struct region *region = world.dev->region;

	world.ring->ops->close(world.ring);
	all_are_back();
	/* each port is a user of it, and the bond */
	CHECK_EQ(atomic_load(&region->user_cnt), PORTS + 1);
	region_get(region);
	world.dev->ops->close(world.dev);
	CHECK_EQ(atomic_load(&region->user_cnt), 1);
	region_put(region);
	end_cables();
}

static void use(uint32_t active)
{
	world.dev->ops->ports_changed(world.dev, active);
}

/* -- frames -------------------------------------------------------------------------- */

struct frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
} WIRE_PACKED;

static struct frame a_frame(uint16_t src_port)
{
	struct frame frame = {
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip.version_ihl = 0x45,
		.ip.total_len = htobe16(sizeof(frame) - sizeof(frame.eth)),
		.ip.proto = WIRE_PROTO_UDP,
		.ip.src = htobe32(0x0a010203),
		.ip.dst = htobe32(0xc0a80709),
		.udp = { htobe16(src_port), htobe16(0x5678), htobe16(8), 0 },
	};

	memcpy(frame.eth.src, mac, sizeof(mac));
	memcpy(frame.eth.dst, peer_mac, sizeof(mac));
	frame.ip.check = csum_fold(csum_words(&frame.ip, 5));
	return frame;
}

static void commit(uint16_t src_port)
{
	struct frame frame = a_frame(src_port);

	/* as the stack does */
	if (!world.ring->tx_frame)
		world.ring->ops->reap(world.ring);
	CHECK(world.ring->tx_frame);
	memcpy(world.ring->tx_frame, &frame, sizeof(frame));
	world.ring->ops->tx_commit(world.ring, sizeof(frame));
}

/* The frame's first bytes are a header, the others a payload. */
static int send_pkt(uint16_t src_port, size_t header_len)
{
	struct frame frame = a_frame(src_port);
	struct ring_tx tx = { .header = (const uint8_t *)&frame,
			      .header_len = (uint16_t)header_len };
	uint32_t len = (uint32_t)(sizeof(frame) - header_len);

	tx.payload = ring_pkt_alloc(world.ring);
	CHECK(tx.payload);
	memcpy(pkt_append(tx.payload, len), (const uint8_t *)&frame + header_len, len);
	return world.ring->ops->tx(world.ring, &tx);
}

static unsigned sent_by(unsigned port)
{
	unsigned cnt = world.ports[port].sent;

	world.ports[port].sent = 0;
	return cnt;
}

/* The number of the port by which it has just left. */
static unsigned left_by(uint16_t src_port)
{
	struct frame frame = a_frame(src_port);
	unsigned found = PORTS, cnt = 0;

	for (unsigned i = 0; i < PORTS; i++) {
		unsigned sent = sent_by(i);

		cnt += sent;
		if (!sent)
			continue;
		found = i;
		CHECK_EQ(world.ports[i].len, sizeof(frame));
		CHECK_MEM(world.ports[i].frame, &frame, sizeof(frame));
	}
	CHECK_EQ(cnt, 1);
	return found;
}

/* By which all the ways of sending send it. */
static unsigned way_of(uint16_t src_port)
{
	unsigned way;

	commit(src_port);
	way = left_by(src_port);
	CHECK_EQ(send_pkt(src_port, 0), 0);
	CHECK_EQ(left_by(src_port), way);
	CHECK_EQ(send_pkt(src_port, sizeof(struct frame) - 4), 0);
	return left_by(src_port);
}

static struct flow_rule a_rule(enum flow_verdict verdict)
{
	return (struct flow_rule){
		.dst = ip_addr_from_v4(htobe32(0xc0a80709)),
		.dst_port = htobe16(0x5678),
		.proto = WIRE_PROTO_UDP,
		.verdict = (uint8_t)verdict,
	};
}

static void add_rule(void)
{
	struct flow_rule rule = a_rule(FLOW_TO_RING);

	CHECK_EQ(world.dev->ops->flow_add(world.dev, &rule, world.ring, 0), 0);
}

/* A frame comes by this port. */
static void arrive(unsigned port, uint16_t src_port)
{
	use(1u << port);
	commit(src_port);
	CHECK_EQ(left_by(src_port), port);
}

/* How many packets a poll brings, all of which are put back. */
static unsigned poll_ring(unsigned max)
{
	struct pkt *batch[16];
	unsigned cnt = world.ring->ops->rx_poll(world.ring, batch, max);

	CHECK(cnt <= max);
	for (unsigned i = 0; i < cnt; i++) {
		CHECK_EQ(batch[i]->len, sizeof(struct frame));
		pkt_put(batch[i]);
	}
	return cnt;
}

/* -- to which port a frame goes -------------------------------------------------------- */

/* Worked out by the formulas of the kernel's document on bonding; words are those of a
 * little-endian machine, as in the kernel. */

enum {
	HASH_ETH = 0x8ff,       /* 55 ^ aa ^ 0800 */
	HASH_SRC = 0x315577,    /* 021122 ^ 334455 */
	HASH_L23 = 0x0a0fae9b,  /* 8ff ^ 0302010a ^ 0907a8c0, folded */
	HASH_L34 = 0x3910de32,  /* 78563412 ^ 0302010a ^ 0907a8c0, folded and halved */
	HASH_NO_PORTS = 0x0507d336,
};

static uint32_t hash(unsigned policy, size_t len)
{
	struct frame frame = a_frame(0x1234);

	return bond_hash(policy, &frame, len);
}

TEST(hash_by_each_policy)
{
	size_t len = sizeof(struct frame);

	CHECK_EQ(hash(BOND_LAYER2, len), HASH_ETH);
	CHECK_EQ(hash(BOND_LAYER23, len), HASH_L23);
	CHECK_EQ(hash(BOND_ENCAP23, len), HASH_L23);
	CHECK_EQ(hash(BOND_LAYER34, len), HASH_L34);
	CHECK_EQ(hash(BOND_ENCAP34, len), HASH_L34);
	CHECK_EQ(hash(BOND_VLAN_SRCMAC, len), HASH_SRC);
	/* one that a later kernel has */
	CHECK_EQ(hash(6, len), HASH_ETH);
}

TEST(pieces_have_no_ports)
{
	static const uint16_t frags[] = { WIRE_IPV4_MF, WIRE_IPV4_MF | 7, 7,
					  WIRE_IPV4_OFFSET };
	struct frame frame = a_frame(0x1234);

	for (size_t i = 0; i < ARRAY_LEN(frags); i++) {
		frame.ip.frag = htobe16(frags[i]);
		CHECK_EQ(bond_hash(BOND_LAYER34, &frame, sizeof(frame)), HASH_NO_PORTS);
		CHECK_EQ(bond_hash(BOND_LAYER23, &frame, sizeof(frame)), HASH_L23);
	}
	frame.ip.frag = htobe16(WIRE_IPV4_DF);
	CHECK_EQ(bond_hash(BOND_LAYER34, &frame, sizeof(frame)), HASH_L34);
}

TEST(ports_stand_behind_the_options)
{
	uint8_t bytes[sizeof(struct frame) + 40] = { 0 };
	struct frame frame = a_frame(0x1234);
	size_t head = sizeof(frame.eth) + sizeof(frame.ip);

	for (uint8_t words = 5; words <= 15; words++) {
		size_t at = sizeof(frame.eth) + words * 4u;

		frame.ip.version_ihl = (uint8_t)(0x40 | words);
		memset(bytes, 0x94, sizeof(bytes));
		memcpy(bytes, &frame, head);
		memcpy(bytes + at, &frame.udp, sizeof(frame.udp));
		CHECK_EQ(bond_hash(BOND_LAYER34, bytes, at + sizeof(frame.udp)), HASH_L34);
		/* they end behind the frame */
		CHECK_EQ(bond_hash(BOND_LAYER34, bytes, at + 3), HASH_NO_PORTS);
	}
}

TEST(short_frames_go_by_their_addresses)
{
	for (size_t len = sizeof(struct wire_eth); len < 34; len++) {
		CHECK_EQ(hash(BOND_LAYER23, len), HASH_ETH);
		CHECK_EQ(hash(BOND_LAYER34, len), HASH_ETH);
		CHECK_EQ(hash(BOND_VLAN_SRCMAC, len), HASH_SRC);
	}
	CHECK_EQ(hash(BOND_LAYER23, 34), HASH_L23);
	CHECK_EQ(hash(BOND_LAYER34, 34), HASH_NO_PORTS);
}

/* -- sending --------------------------------------------------------------------------- */

TEST(frames_leave_by_the_active_port)
{
	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1 << 1);
	CHECK_EQ(way_of(7), 1);
	CHECK_EQ(way_of(8), 1);
	use(1 << 2);
	CHECK_EQ(way_of(7), 2);
	use(1 << 0);
	CHECK_EQ(way_of(7), 0);
	end();
}

TEST(each_flow_stays_on_its_port)
{
	unsigned ways[64], cnt[PORTS] = { 0 };

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	for (uint16_t i = 0; i < 64; i++) {
		ways[i] = way_of(i);
		cnt[ways[i]]++;
	}
	for (uint16_t i = 0; i < 64; i++)
		CHECK_EQ(way_of(i), ways[i]);
	for (int i = 0; i < PORTS; i++)
		CHECK(cnt[i] > 8);
	/* 0x3910de32 % 3, 0x3910df33 % 3 */
	CHECK_EQ(way_of(0x1234), 0);
	CHECK_EQ(way_of(0x1236), 2);
	/* of two, the second is the third port */
	use(1 << 0 | 1 << 2);
	CHECK_EQ(way_of(0x1234), 0);
	CHECK_EQ(way_of(0x1236), 2);
	use(1 << 1 | 1 << 2);
	CHECK_EQ(way_of(0x1234), 1);
	CHECK_EQ(way_of(0x1236), 2);
	end();
}

TEST(flows_of_two_hosts_have_one_way_by_their_addresses)
{
	begin(BOND_MODE_8023AD, BOND_LAYER2, ALL);
	/* 0x8ff % 3 */
	for (uint16_t i = 0; i < 16; i++)
		CHECK_EQ(way_of(i), HASH_ETH % 3);
	end();
}

TEST(no_port_has_ever_been_active)
{
	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 0);
	CHECK(!world.ring->ops->tx_fits(world.ring, 1));
	CHECK_EQ(send_pkt(7, 0), -EAGAIN);
	CHECK_EQ(world.ring->counts->tx_full, 1);
	commit(7);
	CHECK_EQ(world.ring->counts->tx_full, 2);
	CHECK_EQ(world.ring->counts->tx_pkts, 0);
	all_are_back();
	use(1 << 1);
	CHECK(world.ring->ops->tx_fits(world.ring, 1));
	CHECK_EQ(way_of(7), 1);
	/* when none is, the last one stays */
	use(0);
	CHECK_EQ(way_of(7), 1);
	CHECK_EQ(world.ring->counts->tx_full, 2);
	end();
}

static void begin_narrow(uint8_t mode, uint32_t active, uint32_t tx_max)
{
	prepare();
	world.tx_max = tx_max;
	open_bond(mode, BOND_LAYER2, active);
}

/* A sender waits then, whatever room others have. A loop's frames are on their way until
 * they are polled. */
TEST(a_port_that_is_full)
{
	begin_narrow(BOND_MODE_ACTIVEBACKUP, 1, 2);
	commit(7);
	CHECK(world.ring->tx_frame);
	CHECK(world.ring->ops->tx_fits(world.ring, 1));
	CHECK(!world.ring->ops->tx_fits(world.ring, 2));
	commit(7);
	CHECK_EQ(sent_by(0), 2);
	CHECK(!world.ring->tx_frame);
	world.ring->ops->reap(world.ring);
	CHECK(!world.ring->tx_frame);
	CHECK_EQ(send_pkt(7, 0), -EAGAIN);
	CHECK_EQ(world.ring->counts->tx_full, 1);
	CHECK(!world.ring->ops->tx_fits(world.ring, 1));
	/* only those that send have to have room */
	use(1 << 1);
	CHECK(world.ring->ops->tx_fits(world.ring, 2));
	commit(7);
	CHECK_EQ(left_by(7), 1);
	CHECK_EQ(world.ring->counts->tx_full, 1);
	end();
}

/* By which one a frame leaves is known when it is written. */
TEST(one_of_several_ports_is_full)
{
	begin_narrow(BOND_MODE_8023AD, 1 << 1, 1);
	commit(7);
	CHECK_EQ(left_by(7), 1);
	use(ALL);
	world.ring->ops->reap(world.ring);
	CHECK(!world.ring->tx_frame);
	CHECK(!world.ring->ops->tx_fits(world.ring, 1));
	use(1 << 0 | 1 << 2);
	world.ring->ops->reap(world.ring);
	CHECK(world.ring->tx_frame);
	end();
}

/* It was another one's when the place for the frame was given. */
TEST(a_full_port_becomes_active)
{
	begin_narrow(BOND_MODE_ACTIVEBACKUP, 1, 1);
	commit(7);
	use(1 << 1);
	world.ring->ops->reap(world.ring);
	CHECK(world.ring->tx_frame);
	use(1 << 0);
	commit(7);
	CHECK_EQ(sent_by(0), 1);
	CHECK_EQ(sent_by(1), 0);
	CHECK_EQ(world.ring->counts->tx_full, 1);
	end();
}

TEST(a_port_that_has_room_again)
{
	begin_narrow(BOND_MODE_8023AD, 1 << 2, 1);
	commit(7);
	CHECK_EQ(sent_by(2), 1);
	use(ALL);
	CHECK_EQ(poll_ring(16), 0);
	CHECK(!world.ring->tx_frame);
	world.ring->ops->reap(world.ring);
	CHECK(world.ring->tx_frame);
	/* by HASH_ETH */
	commit(7);
	CHECK_EQ(left_by(7), 2);
	/* and when it was not looked at, it looks itself */
	use(1 << 0);
	CHECK_EQ(poll_ring(16), 0);
	CHECK(world.ring->tx_frame && !world.ports[2].ring->tx_frame);
	use(1 << 2);
	commit(7);
	CHECK_EQ(left_by(7), 2);
	CHECK_EQ(world.ring->counts->tx_full, 0);
	end();
}

/* -- receiving ------------------------------------------------------------------------- */

TEST(rules_are_on_all_ports)
{
	struct flow_rule rule = a_rule(FLOW_TO_RING);

	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	add_rule();
	for (unsigned i = 0; i < PORTS; i++) {
		CHECK_EQ(world.ports[i].rules, 1);
		arrive(i, 7);
		CHECK_EQ(poll_ring(16), 1);
	}
	world.dev->ops->flow_remove(world.dev, &rule);
	for (unsigned i = 0; i < PORTS; i++) {
		CHECK_EQ(world.ports[i].rules, 0);
		arrive(i, 7);
		CHECK_EQ(poll_ring(16), 0);
	}
	/* what is the kernel's is no ring's */
	rule = a_rule(FLOW_TO_KERNEL);
	CHECK_EQ(world.dev->ops->flow_add(world.dev, &rule, NULL, 0), 0);
	CHECK_EQ(world.ports[2].rules, 1);
	end();
}

TEST(a_rule_that_a_port_refuses_is_on_none)
{
	struct flow_rule rule = a_rule(FLOW_TO_RING);

	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	world.ports[1].rule_err = -ENOSPC;
	CHECK_EQ(world.dev->ops->flow_add(world.dev, &rule, world.ring, 0), -ENOSPC);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->rules, 0);
	arrive(0, 7);
	CHECK_EQ(poll_ring(16), 0);
	world.ports[1].rule_err = 0;
	add_rule();
	arrive(0, 7);
	CHECK_EQ(poll_ring(16), 1);
	end();
}

/* Its packets are there for others at once. */
TEST(what_comes_by_another_port_is_dropped)
{
	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	add_rule();
	for (uint16_t i = 0; i < 2 * FRAMES; i++) {
		arrive(1, i);
		use(1 << 0);
		CHECK_EQ(poll_ring(16), 0);
	}
	all_are_back();
	arrive(1, 7);
	arrive(0, 8);
	CHECK_EQ(poll_ring(16), 1);
	use(1 << 1);
	CHECK_EQ(poll_ring(16), 0);
	end();
}

TEST(what_comes_by_each_active_port_is_polled)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	add_rule();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < PORTS; i++)
			arrive(i, 7);
		use(ALL);
		CHECK_EQ(poll_ring(16), PORTS);
		CHECK_EQ(poll_ring(16), 0);
	}
	all_are_back();
	end();
}

/* None waits behind one that always has something. */
TEST(each_port_has_its_turn)
{
	unsigned cnt[PORTS] = { 0 };

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		for (unsigned n = 0; n < 12; n++)
			arrive(i, (uint16_t)i);
	use(ALL);
	for (int i = 0; i < PORTS; i++) {
		struct pkt *batch[4];
		struct frame *frame;

		CHECK_EQ(world.ring->ops->rx_poll(world.ring, batch, 4), 4);
		for (int n = 0; n < 4; n++) {
			frame = (void *)batch[n]->data;
			cnt[be16toh(frame->udp.src_port)]++;
			pkt_put(batch[n]);
		}
	}
	for (unsigned i = 0; i < PORTS; i++)
		CHECK_EQ(cnt[i], 4);
	end();
}

TEST(frames_are_shown_where_they_lie)
{
	struct ring_frame frame;
	uint16_t shown[3];

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	add_rule();
	CHECK(!world.ring->ops->rx_peek(world.ring).data);
	for (unsigned i = 0; i < PORTS; i++)
		arrive(i, (uint16_t)(100 + i));
	/* not those of the one in the middle */
	use(1 << 0 | 1 << 2);
	for (int i = 0; i < 2; i++) {
		frame = world.ring->ops->rx_peek(world.ring);
		CHECK(frame.data && frame.has_more);
		CHECK_EQ(frame.len, sizeof(struct frame));
		shown[i] = be16toh(((const struct frame *)frame.data)->udp.src_port);
		/* again and again */
		CHECK(world.ring->ops->rx_peek(world.ring).data == frame.data);
		world.ring->ops->rx_done(world.ring);
	}
	CHECK_EQ(shown[0] + shown[1], 100 + 102);
	CHECK(!world.ring->ops->rx_peek(world.ring).data);
	CHECK_EQ(world.ring->counts->rx_pkts, 2);
	/* a poll drops it */
	CHECK_EQ(poll_ring(16), 0);
	use(1 << 1);
	CHECK(!world.ring->ops->rx_peek(world.ring).data);
	end();
}

static unsigned port_shown(void)
{
	struct ring_frame frame = world.ring->ops->rx_peek(world.ring);

	CHECK(frame.data);
	return be16toh(((const struct frame *)frame.data)->udp.src_port);
}

/* A socket whose frames are all taken where they lie keeps none of the others waiting. */
TEST(each_port_has_its_turn_to_show)
{
	unsigned cnt[PORTS] = { 0 }, shown;
	struct pkt *pkt;

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		for (unsigned n = 0; n < 8; n++)
			arrive(i, (uint16_t)i);
	use(ALL);
	for (int i = 0; i < 2 * PORTS; i++) {
		cnt[port_shown()]++;
		world.ring->ops->rx_done(world.ring);
	}
	for (unsigned i = 0; i < PORTS; i++)
		CHECK_EQ(cnt[i], 2);
	/* what is shown is what a poll would bring */
	for (int i = 0; i < 2 * PORTS; i++) {
		shown = port_shown();
		CHECK_EQ(world.ring->ops->rx_poll(world.ring, &pkt, 1), 1);
		CHECK_EQ(be16toh(((struct frame *)pkt->data)->udp.src_port), shown);
		pkt_put(pkt);
	}
	end();
}

/* Wherever the stack wants them. */
TEST(what_ports_count_is_the_rings)
{
	struct stats_ring_counters elsewhere = { 0 };

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		arrive(i, 7);
	use(ALL);
	CHECK_EQ(poll_ring(16), PORTS);
	CHECK_EQ(world.ring->own_counts.tx_pkts, PORTS);
	CHECK_EQ(world.ring->own_counts.tx_bytes, PORTS * sizeof(struct frame));
	CHECK_EQ(world.ring->own_counts.rx_pkts, PORTS);
	world.ring->counts = &elsewhere;
	arrive(0, 7);
	CHECK_EQ(elsewhere.tx_pkts, 1);
	arrive(1, 7);
	CHECK_EQ(send_pkt(7, 0), 0);
	CHECK_EQ(elsewhere.tx_pkts, 3);
	use(ALL);
	CHECK_EQ(poll_ring(16), 3);
	CHECK_EQ(elsewhere.rx_pkts, 3);
	CHECK_EQ(world.ring->own_counts.tx_pkts, PORTS);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->ring->own_counts.tx_pkts, 0);
	end();
}

TEST(a_wish_for_stamps_goes_to_all_ports)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	world.ring->wants_stamps = true;
	CHECK_EQ(poll_ring(16), 0);
	FOR_EACH_PORT(port)
		CHECK(port->ring->wants_stamps);
	end();
}

/* -- regions --------------------------------------------------------------------------- */

static int add_region(uint32_t frame_cnt)
{
	return world.dev->ops->region_add(world.dev, frame_cnt);
}

/* Whichever port has it. */
static void is_found(const struct pkt *pkt)
{
	struct region *region = region_set_find(&world.dev->regions, pkt);

	CHECK(pkt->buf >= region->mem && pkt->buf < region->mem + region->mem_size);
	FOR_EACH_PORT(port)
		CHECK(region_set_find(&port->dev->regions, pkt) == region);
}

TEST(ports_have_the_regions_of_the_first)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(!world.ports[0].request.regions);
	FOR_EACH_PORT(port) {
		CHECK(port->dev->region == world.dev->region);
		CHECK_EQ(port->request.sharer_cnt, PORTS);
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 1);
	}
	end();
}

TEST(a_further_region_is_that_of_all_ports)
{
	struct pkt *pkts[FRAMES + 50];
	struct region *region;

	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK_EQ(add_region(50), 0);
	region = world.dev->regions.regions[1];
	FOR_EACH_PORT(port) {
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 2);
		CHECK(port->dev->regions.regions[1] == region);
		CHECK(port->shared == region);
	}
	for (int i = 0; i < FRAMES + 50; i++) {
		pkts[i] = ring_pkt_alloc(world.ports[i % PORTS].ring);
		CHECK(pkts[i]);
		is_found(pkts[i]);
	}
	CHECK(!ring_pkt_alloc(world.ring));
	for (int i = 0; i < FRAMES + 50; i++)
		pkt_put(pkts[i]);
	all_are_back();
	for (int i = 2; i < REGION_SET_MAX; i++)
		CHECK_EQ(add_region(10), 0);
	CHECK_EQ(add_region(10), -ENOSPC);
	end();
}

TEST(a_region_that_a_port_refuses_is_nobodys)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	world.ports[1].region_err = -ENOMEM;
	CHECK_EQ(add_region(50), -ENOMEM);
	CHECK_EQ(atomic_load(&world.dev->regions.cnt), 1);
	FOR_EACH_PORT(port) {
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 1);
		CHECK(!port->shared);
	}
	world.ports[1].region_err = 0;
	CHECK_EQ(add_region(50), 0);
	CHECK_EQ(atomic_load(&world.ports[2].dev->regions.cnt), 2);
	end();
}

/* What one port wishes for is given to all. */
TEST(a_ring_that_runs_out_grows_by_all_ports)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	world.ports[1].ring->wants_region = true;
	CHECK_EQ(poll_ring(16), 0);
	CHECK(world.ring->wants_region);
	world.ring->wants_region = false;
	world.ring->ops->rx_grow(world.ring);
	CHECK_EQ(world.ring->rx_post_max, 10 * PORTS);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->grown, 1);
	CHECK_EQ(poll_ring(16), 0);
	CHECK(!world.ring->wants_region);
	end();
}

/* -- sleeping -------------------------------------------------------------------------- */

static void begin_sleeping(void)
{
	prepare();
	world.sleeps = true;
	open_bond(BOND_MODE_8023AD, BOND_LAYER34, ALL);
}

TEST(all_ports_wake_a_sleeper)
{
	int fds[PORTS + 1] = { 0 };

	begin_sleeping();
	CHECK_EQ(world.ring->ops->fds(world.ring, NULL, 0), PORTS);
	CHECK_EQ(world.ring->ops->fds(world.ring, fds, PORTS - 1), PORTS);
	CHECK_EQ(fds[PORTS - 2], FIRST_FD + PORTS - 2);
	CHECK_EQ(fds[PORTS - 1], 0);
	CHECK_EQ(world.ring->ops->fds(world.ring, fds, PORTS + 1), PORTS);
	for (int i = 0; i < PORTS; i++)
		CHECK_EQ(fds[i], FIRST_FD + i);
	end();
}

TEST(all_ports_are_armed)
{
	begin_sleeping();
	add_rule();
	CHECK(world.ring->ops->arm(world.ring));
	for (unsigned i = 0; i < PORTS; i++) {
		arrive(i, 7);
		use(ALL);
		CHECK(!world.ring->ops->arm(world.ring));
		CHECK_EQ(poll_ring(16), 1);
	}
	FOR_EACH_PORT(port)
		CHECK_EQ(port->quiets, 1 + PORTS);
	/* of those that need it */
	CHECK(world.ring->needs_ack);
	world.ring->ops->acknowledge(world.ring);
	CHECK_EQ(world.ports[0].acks, 0);
	CHECK_EQ(world.ports[1].acks, 1);
	CHECK_EQ(world.ports[2].acks, 0);
	end();
}

TEST(all_ports_are_kicked)
{
	static const struct {
		enum ring_kick ports[PORTS], whole;
	} cases[] = {
		{ { RING_KICKED, RING_KICKED, RING_KICKED }, RING_KICKED },
		{ { RING_KICKED, RING_KICK_MORE, RING_KICKED }, RING_KICK_MORE },
		{ { RING_KICK_LATER, RING_KICKED, RING_KICKED }, RING_KICK_LATER },
		{ { RING_KICKED, RING_KICKED, RING_KICK_LATER }, RING_KICK_LATER },
		{ { RING_KICK_MORE, RING_KICKED, RING_KICK_LATER }, RING_KICK_MORE },
		{ { RING_KICK_LATER, RING_KICKED, RING_KICK_MORE }, RING_KICK_MORE },
	};

	begin_sleeping();
	CHECK(world.ring->needs_kick);
	CHECK_EQ(send_pkt(7, 0), 0);
	CHECK(world.ring->wants_kick);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int n = 0; n < PORTS; n++)
			world.ports[n].kick = cases[i].ports[n];
		CHECK_EQ(world.ring->ops->kick(world.ring), cases[i].whole);
	}
	FOR_EACH_PORT(port)
		CHECK_EQ(port->wakes, ARRAY_LEN(cases));
	/* a kick that was made is no wish any more */
	world.ring->wants_kick = false;
	CHECK_EQ(poll_ring(16), 0);
	CHECK(!world.ring->wants_kick);
	end();
}

TEST(all_ports_have_sent_what_they_had)
{
	begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(world.ring->ops->tx_is_done(world.ring));
	FOR_EACH_PORT(port) {
		port->is_busy = true;
		CHECK(!world.ring->ops->tx_is_done(world.ring));
		port->is_busy = false;
		port->device_cnt = 7;
	}
	CHECK_EQ(world.ring->ops->device_cnt(world.ring), 7 * PORTS);
	end();
}

/* -- the device ------------------------------------------------------------------------ */

TEST(what_ports_are_asked_for)
{
	prepare();
	open_bond(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	for (int i = 0; i < PORTS; i++) {
		const struct port *port = &world.ports[i];
		char name[16];

		snprintf(name, sizeof(name), "eth%d", i);
		CHECK_STR(port->name, name);
		CHECK_EQ(port->request.ifindex, FIRST_IFINDEX + i);
		CHECK_MEM(port->request.mac, mac, sizeof(mac));
		CHECK_EQ(port->request.mtu, 1500);
		CHECK_EQ(port->request.lower, 0);
	}
	CHECK_STR(world.dev->name, "bond0");
	CHECK_STR(world.dev->ops->name, "fake");
	CHECK_STR(world.dev->mode, "memory + memory + memory");
	CHECK_EQ(world.dev->ifindex, 9);
	CHECK_MEM(world.dev->mac, mac, sizeof(mac));
	CHECK_EQ(world.dev->mtu, 1500);
	CHECK(world.dev->caps.kernel_verdicts);
	end();
}

/* The interface stays the VLAN's; below it there is the port. */
TEST(a_vlan_on_a_bond)
{
	struct backend_bond bond = a_bond(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	struct backend_request request = a_request(&bond);
	struct dev_verdict why = { .text = "" };

	request.ifindex = 12;
	request.name = "bond0.100";
	request.vlan_id = 100;
	request.lower = 9;
	request.lower_name = "bond0";
	prepare();
	CHECK_EQ(bond_open(&backend, &request, &world.dev, &why), 0);
	for (int i = 0; i < PORTS; i++) {
		const struct port *port = &world.ports[i];

		CHECK_STR(port->name, "bond0.100");
		CHECK_EQ(port->request.ifindex, 12);
		CHECK_EQ(port->request.vlan_id, 100);
		CHECK_EQ(port->request.lower, FIRST_IFINDEX + i);
		CHECK_EQ(port->lower_name[3], '0' + i);
	}
	CHECK_EQ(world.dev->vlan_id, 100);
	CHECK_STR(world.dev->name, "bond0.100");
	world.dev->ops->close(world.dev);
	end_cables();
}

TEST(ports_follow_address_and_mtu)
{
	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	memcpy(world.dev->mac, peer_mac, sizeof(mac));
	world.dev->mtu = 9000;
	CHECK_EQ(world.dev->ops->link_changed(world.dev), 0);
	FOR_EACH_PORT(port) {
		CHECK_MEM(port->dev->mac, peer_mac, sizeof(mac));
		CHECK_EQ(port->mtu, 9000);
	}
	/* the least that any port sends */
	CHECK_EQ(world.dev->caps.tx_len_max, 9013);
	CHECK_EQ(world.dev->ops->check(world.dev), 0);
	world.ports[2].health = -EIO;
	CHECK_EQ(world.dev->ops->check(world.dev), -EIO);
	CHECK_EQ(world.dev->ops->link_changed(world.dev), -EIO);
	end();
}

/* And what any of them needs. */
TEST(a_bond_can_what_all_ports_can)
{
	static const struct dev_caps able = {
		.kernel_verdicts = true, .bears_vlans = true, .tx_len_max = 1600,
		.tso_max = 65000, .pace_min = 1, .pace_max = 1000,
	}, other = {
		.rx_partial_csum = true, .rules_outlast_failure = true, .needs_kick = true,
		.tx_len_max = 1514, .tso_max = 32000,
	};
	const struct dev_caps *caps;

	for (int i = 0; i < PORTS; i++) {
		prepare();
		FOR_EACH_PORT(port)
			port->caps = &able;
		open_bond(BOND_MODE_8023AD, BOND_LAYER2, ALL);
		caps = &world.dev->caps;
		CHECK(caps->kernel_verdicts && caps->bears_vlans);
		CHECK(!caps->rx_partial_csum && !caps->rules_outlast_failure);
		CHECK(!caps->needs_kick);
		CHECK_EQ(caps->tso_max, 65000);
		CHECK(!caps->pace_min && !caps->pace_max);
		end();

		prepare();
		FOR_EACH_PORT(port)
			port->caps = &able;
		world.ports[i].caps = &other;
		open_bond(BOND_MODE_8023AD, BOND_LAYER2, ALL);
		caps = &world.dev->caps;
		CHECK(!caps->kernel_verdicts && !caps->bears_vlans);
		CHECK(caps->rx_partial_csum && caps->rules_outlast_failure);
		CHECK(caps->needs_kick);
		CHECK_EQ(caps->tx_len_max, 1514);
		CHECK_EQ(caps->tso_max, 32000);
		end();
	}
}

TEST(what_a_bond_has_not)
{
	struct ring_pace pace = { .kbps = 1000 };
	struct pkt_pool pool;
	struct ring *ring;

	begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	CHECK_EQ(world.dev->caps.pace_max, 0);
	CHECK_EQ(world.dev->ops->paced_ring_create(world.dev, &pace, &pool, &ring),
		 -EOPNOTSUPP);
	CHECK_EQ(world.ring->ops->set_pace(world.ring, &pace), -EOPNOTSUPP);
	CHECK_EQ(world.dev->ops->give_back(world.dev, "", 1), -EOPNOTSUPP);
	CHECK_EQ(world.dev->ops->region_share(world.dev, NULL, 1), -EOPNOTSUPP);
	CHECK(!world.ring->follows_tx);
	end();
}

static void is_refused(struct backend_bond bond, int err, const char *text)
{
	struct backend_request request = a_request(&bond);
	struct dev_verdict why = { .text = "" };

	CHECK_EQ(bond_open(&backend, &request, &world.dev, &why), err);
	CHECK_STR(why.text, text);
	CHECK(why.refusal != DEV_REFUSED_NOT);
	CHECK_EQ(world.open_cnt, 0);
}

TEST(modes_and_ports_that_are_not_driven)
{
	static const uint8_t modes[] = { 0, 2, 3, 5, 6, 7, 255 };
	struct backend_bond bond = a_bond(BOND_MODE_8023AD, BOND_LAYER2, 1);

	prepare();
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "a bond of mode %u, and only 1 (active-backup) and 4 (802.3ad) are driven",
			 modes[i]);
		is_refused(a_bond(modes[i], BOND_LAYER2, 1), -EOPNOTSUPP, text);
	}
	bond.port_cnt = 0;
	is_refused(bond, -EOPNOTSUPP, "a bond with 0 ports, and 1 to 8 are driven");
	bond.port_cnt = 9;
	is_refused(bond, -EOPNOTSUPP, "a bond with 9 ports, and 1 to 8 are driven");
	CHECK_EQ(world.asked, 0);
	end_cables();
}

TEST(a_port_that_is_refused_is_named)
{
	for (int i = 0; i < PORTS; i++) {
		char text[64];

		prepare();
		world.ports[i].open_err = -ENODEV;
		snprintf(text, sizeof(text), "its port eth%d: it has no queues", i);
		is_refused(a_bond(BOND_MODE_8023AD, BOND_LAYER2, 1), -ENODEV, text);
		CHECK_EQ(world.asked, i + 1);
		end_cables();
	}
}

TEST(a_port_that_gives_no_ring)
{
	struct ring *other;

	begin(BOND_MODE_8023AD, BOND_LAYER2, 1);
	world.ring->ops->close(world.ring);
	world.ports[2].ring_err = -ENOBUFS;
	CHECK_EQ(world.dev->ops->ring_create(world.dev, &world.pool, &other), -ENOBUFS);
	CHECK_EQ(world.ring_cnt, 0);
	all_are_back();
	world.ports[2].ring_err = 0;
	CHECK_EQ(world.dev->ops->ring_create(world.dev, &world.pool, &world.ring), 0);
	CHECK_EQ(way_of(7), 0);
	end();
}
