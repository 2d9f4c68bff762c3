/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bond of devices in memory, which do what a case says. */
#include "config.h"

#include "tests/unit/dev/bond_lab.h"

#include <stdio.h>

#include "tests/support/test.h"

const uint8_t lab_mac[6] = { 2, 0x11, 0x22, 0x33, 0x44, 0x55 };
const uint8_t lab_peer_mac[6] = { 2, 0x66, 0x77, 0x88, 0x99, 0xaa };

struct lab lab;

/* -- the ports ----------------------------------------------------------------------- */

static struct lab_port *port_of(const struct dev *dev)
{
	FOR_EACH_PORT(port)
		if (port->dev == dev)
			return port;
	FAIL("no port's");
}

static enum ring_kick port_kick(struct ring *ring)
{
	struct lab_port *port = port_of(ring->dev);

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
	lab.ring_cnt--;
	port_of(ring->dev)->fake_ring->close(ring);
}

static int port_ring_create(struct dev *dev, struct pkt_pool *pool,
			    struct ring **ring_out)
{
	struct lab_port *port = port_of(dev);

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
	port->ring->needs_ack = port - lab.ports == 1;
	port->ring->has_tags &= !port->has_no_tags;
	lab.ring_cnt++;
	*ring_out = port->ring;
	return 0;
}

static int port_flow_add(struct dev *dev, const struct flow_rule *rule,
			 struct ring *ring, uint32_t tag)
{
	struct lab_port *port = port_of(dev);
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
	struct lab_port *port = port_of(dev);

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

static void port_rights_go(struct dev *dev)
{
	port_of(dev)->rights_gone++;
}

static void port_ending(struct dev *dev, enum dev_end how_far)
{
	port_of(dev)->is_ending = how_far == DEV_ENDS;
}

static int port_link_changed(struct dev *dev)
{
	port_of(dev)->mtu = dev->mtu;
	dev->caps.tx_len_max = dev->mtu + 14 - (dev == lab.ports[1].dev);
	return port_of(dev)->health;
}

static void port_close(struct dev *dev)
{
	lab.open_cnt--;
	port_of(dev)->fake->close(dev);
}

static void wake(void *ctx)
{
	((struct lab_port *)ctx)->wakes++;
}

static void quiet(void *ctx)
{
	((struct lab_port *)ctx)->quiets++;
}

static void note_frame(void *ctx, uint64_t now_ns UNUSED, const void *frame, size_t len)
{
	struct lab_port *port = ctx;

	port->sent++;
	port->len = len;
	memcpy(port->frame, frame, MIN(len, sizeof(port->frame)));
}

/* What the device does otherwise than the fake. */
static void wrap(struct lab_port *port)
{
	port->fake = port->dev->ops;
	port->dev_ops = *port->fake;
	port->dev_ops.ring_create = port_ring_create;
	port->dev_ops.flow_add = port_flow_add;
	port->dev_ops.flow_remove = port_flow_remove;
	port->dev_ops.region_share = port_region_share;
	port->dev_ops.check = port_check;
	port->dev_ops.link_changed = port_link_changed;
	port->dev_ops.rights_go = port_rights_go;
	port->dev_ops.ending = port_ending;
	port->dev_ops.close = port_close;
	port->dev->ops = &port->dev_ops;
	if (port->caps)
		port->dev->caps = *port->caps;
}

static int open_port(struct backend *backend UNUSED,
		     const struct backend_request *request, struct dev **dev_out,
		     struct dev_verdict *why_out)
{
	struct lab_port *port = &lab.ports[lab.asked++];
	struct fake_params params = {
		.ifindex = request->ifindex,
		.mtu = request->mtu,
		.frame_cnt = request->frame_cnt,
		.frame_size = 2048,
		.regions = request->regions,
		.fd = lab.sleeps ? FIRST_FD + (int)(port - lab.ports) : -1,
		.wake = lab.sleeps ? wake : NULL,
		.quiet = lab.sleeps ? quiet : NULL,
		.wake_ctx = port,
		.tx_max = lab.tx_max,
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
	lab.open_cnt++;
	*dev_out = port->dev;
	return 0;
}

/* -- a case -------------------------------------------------------------------------- */

struct backend lab_backend = { .name = "fakes", .shares_regions = true,
			       .open = open_port };

struct backend_bond lab_bond(uint8_t mode, uint8_t policy, uint32_t active)
{
	struct backend_bond bond = { .name = "bond0", .mode = mode, .policy = policy,
				     .active = active, .port_cnt = PORTS };

	for (int i = 0; i < PORTS; i++) {
		bond.ports[i].ifindex = FIRST_IFINDEX + i;
		snprintf(bond.ports[i].name, sizeof(bond.ports[i].name), "eth%d", i);
	}
	return bond;
}

struct backend_request lab_request(const struct backend_bond *bond)
{
	struct backend_request request = {
		.ifindex = 9,
		.name = "bond0",
		.mtu = 1500,
		.rx_mtu = 1600,
		.bond = bond,
		.frame_cnt = FRAMES,
	};

	memcpy(request.mac, lab_mac, sizeof(lab_mac));
	return request;
}

void lab_prepare(void)
{
	memset(&lab, 0, sizeof(lab));
	pkt_pool_init(&lab.pool, 0);
	FOR_EACH_PORT(port) {
		struct fake_cable_params cable = { .seed = 1, .tap = note_frame,
						   .tap_ctx = port };

		port->cable = fake_cable_create(&cable);
		CHECK(port->cable);
	}
}

void lab_open(uint8_t mode, uint8_t policy, uint32_t active)
{
	struct backend_bond bond = lab_bond(mode, policy, active);
	struct backend_request request = lab_request(&bond);
	struct dev_verdict why = { .text = "" };

	CHECK_EQ(bond_open(&lab_backend, &request, &lab.dev, &why), 0);
	CHECK_EQ(lab.dev->ops->ring_create(lab.dev, &lab.pool, &lab.ring), 0);
}

void lab_begin(uint8_t mode, uint8_t policy, uint32_t active)
{
	lab_prepare();
	lab_open(mode, policy, active);
}

void lab_all_are_back(void)
{
	for (uint32_t i = atomic_load(&lab.dev->regions.cnt); i-- > 0;) {
		struct region *region = lab.dev->regions.regions[i];

		region_set_give(&lab.dev->regions, &lab.pool, UINT32_MAX);
		CHECK_EQ(lab.pool.total_cnt, 0);
		CHECK_EQ(region_free_cnt(region), region->frame_cnt);
	}
}

void lab_end_cables(void)
{
	CHECK_EQ(lab.ring_cnt, 0);
	CHECK_EQ(lab.open_cnt, 0);
	FOR_EACH_PORT(port)
		fake_cable_destroy(port->cable);
}

void lab_end(void)
{
	struct region *region = lab.dev->region;

	ring_end(lab.ring);
	lab_all_are_back();
	/* each port is a user of it, and the bond */
	CHECK_EQ(atomic_load(&region->user_cnt), PORTS + 1);
	region_get(region);
	lab.dev->ops->close(lab.dev);
	CHECK_EQ(atomic_load(&region->user_cnt), 1);
	region_put(region);
	lab_end_cables();
}

void lab_use(uint32_t active)
{
	lab.dev->ops->ports_changed(lab.dev, active);
}

/* -- frames -------------------------------------------------------------------------- */

struct lab_frame lab_make_frame(uint16_t src_port)
{
	struct lab_frame frame = {
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip.version_ihl = 0x45,
		.ip.total_len = htobe16(sizeof(frame) - sizeof(frame.eth)),
		.ip.proto = WIRE_PROTO_UDP,
		.ip.src = htobe32(0x0a010203),
		.ip.dst = htobe32(0xc0a80709),
		.udp = { htobe16(src_port), htobe16(0x5678), htobe16(8), 0 },
	};

	memcpy(frame.eth.src, lab_mac, sizeof(lab_mac));
	memcpy(frame.eth.dst, lab_peer_mac, sizeof(lab_mac));
	frame.ip.check = csum_fold(csum_words(&frame.ip, 5));
	return frame;
}

void lab_commit(uint16_t src_port)
{
	struct lab_frame frame = lab_make_frame(src_port);

	/* as the stack does */
	if (!lab.ring->tx_frame)
		lab.ring->ops->reap(lab.ring);
	CHECK(lab.ring->tx_frame);
	memcpy(lab.ring->tx_frame, &frame, sizeof(frame));
	lab.ring->ops->tx_commit(lab.ring, sizeof(frame));
}

int lab_send(uint16_t src_port, size_t header_len)
{
	struct lab_frame frame = lab_make_frame(src_port);
	struct ring_tx tx = { .header = (const uint8_t *)&frame,
			      .header_len = (uint16_t)header_len };
	uint32_t len = (uint32_t)(sizeof(frame) - header_len);

	tx.payload = ring_pkt_alloc(lab.ring);
	CHECK(tx.payload);
	memcpy(pkt_append(tx.payload, len), (const uint8_t *)&frame + header_len, len);
	return lab.ring->ops->tx(lab.ring, &tx);
}

unsigned lab_sent_by(unsigned port)
{
	unsigned cnt = lab.ports[port].sent;

	lab.ports[port].sent = 0;
	return cnt;
}

unsigned lab_left_by(uint16_t src_port)
{
	struct lab_frame frame = lab_make_frame(src_port);
	unsigned found = PORTS, cnt = 0;

	for (unsigned i = 0; i < PORTS; i++) {
		unsigned sent = lab_sent_by(i);

		cnt += sent;
		if (!sent)
			continue;
		found = i;
		CHECK_EQ(lab.ports[i].len, sizeof(frame));
		CHECK_MEM(lab.ports[i].frame, &frame, sizeof(frame));
	}
	CHECK_EQ(cnt, 1);
	return found;
}

unsigned lab_way_of(uint16_t src_port)
{
	unsigned way;

	lab_commit(src_port);
	way = lab_left_by(src_port);
	CHECK_EQ(lab_send(src_port, 0), 0);
	CHECK_EQ(lab_left_by(src_port), way);
	CHECK_EQ(lab_send(src_port, sizeof(struct lab_frame) - 4), 0);
	return lab_left_by(src_port);
}

struct flow_rule lab_rule(enum flow_verdict verdict)
{
	return (struct flow_rule){
		.dst = ip_addr_from_v4(htobe32(0xc0a80709)),
		.dst_port = htobe16(0x5678),
		.proto = WIRE_PROTO_UDP,
		.verdict = (uint8_t)verdict,
	};
}

void lab_add_rule(void)
{
	struct flow_rule rule = lab_rule(FLOW_TO_RING);

	CHECK_EQ(lab.dev->ops->flow_add(lab.dev, &rule, lab.ring, 0), 0);
}

void lab_arrive(unsigned port, uint16_t src_port)
{
	lab_use(1u << port);
	lab_commit(src_port);
	CHECK_EQ(lab_left_by(src_port), port);
}

unsigned lab_poll(unsigned max)
{
	struct pkt *batch[16];
	unsigned cnt = lab.ring->ops->rx_poll(lab.ring, batch, max);

	CHECK(cnt <= max);
	for (unsigned i = 0; i < cnt; i++) {
		CHECK_EQ(batch[i]->len, sizeof(struct lab_frame));
		pkt_put(batch[i]);
	}
	return cnt;
}
