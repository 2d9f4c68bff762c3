/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device of a bond: rules, regions, and what it asks of its ports. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "tests/support/test.h"
#include "tests/unit/dev/bond_lab.h"

/* -- rules --------------------------------------------------------------------------- */

TEST(rules_are_on_all_ports)
{
	struct flow_rule rule = lab_rule(FLOW_TO_RING);

	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	lab_add_rule();
	for (unsigned i = 0; i < PORTS; i++) {
		CHECK_EQ(lab.ports[i].rules, 1);
		lab_arrive(i, 7);
		CHECK_EQ(lab_poll(16), 1);
	}
	lab.dev->ops->flow_remove(lab.dev, &rule);
	for (unsigned i = 0; i < PORTS; i++) {
		CHECK_EQ(lab.ports[i].rules, 0);
		lab_arrive(i, 7);
		CHECK_EQ(lab_poll(16), 0);
	}
	/* what is the kernel's is no ring's */
	rule = lab_rule(FLOW_TO_KERNEL);
	CHECK_EQ(lab.dev->ops->flow_add(lab.dev, &rule, NULL, 0), 0);
	CHECK_EQ(lab.ports[2].rules, 1);
	lab_end();
}

TEST(a_rule_that_a_port_refuses_is_on_none)
{
	struct flow_rule rule = lab_rule(FLOW_TO_RING);

	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	lab.ports[1].rule_err = -ENOSPC;
	CHECK_EQ(lab.dev->ops->flow_add(lab.dev, &rule, lab.ring, 0), -ENOSPC);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->rules, 0);
	lab_arrive(0, 7);
	CHECK_EQ(lab_poll(16), 0);
	lab.ports[1].rule_err = 0;
	lab_add_rule();
	lab_arrive(0, 7);
	CHECK_EQ(lab_poll(16), 1);
	lab_end();
}

/* -- regions --------------------------------------------------------------------------- */

static int add_region(uint32_t frame_cnt)
{
	return lab.dev->ops->region_add(lab.dev, frame_cnt);
}

/* Whichever port has it. */
static void is_found(const struct pkt *pkt)
{
	struct region *region = region_set_find(&lab.dev->regions, pkt);

	CHECK(pkt->buf >= region->mem && pkt->buf < region->mem + region->mem_size);
	FOR_EACH_PORT(port)
		CHECK(region_set_find(&port->dev->regions, pkt) == region);
}

TEST(ports_have_the_regions_of_the_first)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(!lab.ports[0].request.regions);
	FOR_EACH_PORT(port) {
		CHECK(port->dev->region == lab.dev->region);
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 1);
	}
	lab_end();
}

TEST(a_further_region_is_that_of_all_ports)
{
	struct pkt *pkts[FRAMES + 50];
	struct region *region;

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK_EQ(add_region(50), 0);
	region = lab.dev->regions.regions[1];
	FOR_EACH_PORT(port) {
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 2);
		CHECK(port->dev->regions.regions[1] == region);
		CHECK(port->shared == region);
	}
	for (int i = 0; i < FRAMES + 50; i++) {
		pkts[i] = ring_pkt_alloc(lab.ports[i % PORTS].ring);
		CHECK(pkts[i]);
		is_found(pkts[i]);
	}
	CHECK(!ring_pkt_alloc(lab.ring));
	for (int i = 0; i < FRAMES + 50; i++)
		pkt_put(pkts[i]);
	lab_all_are_back();
	for (int i = 2; i < REGION_SET_MAX; i++)
		CHECK_EQ(add_region(10), 0);
	CHECK_EQ(add_region(10), -ENOSPC);
	lab_end();
}

TEST(a_region_that_a_port_refuses_is_nobodys)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab.ports[1].region_err = -ENOMEM;
	CHECK_EQ(add_region(50), -ENOMEM);
	CHECK_EQ(atomic_load(&lab.dev->regions.cnt), 1);
	FOR_EACH_PORT(port) {
		CHECK_EQ(atomic_load(&port->dev->regions.cnt), 1);
		CHECK(!port->shared);
	}
	lab.ports[1].region_err = 0;
	CHECK_EQ(add_region(50), 0);
	CHECK_EQ(atomic_load(&lab.ports[2].dev->regions.cnt), 2);
	lab_end();
}

/* -- the device ------------------------------------------------------------------------ */

TEST(what_ports_are_asked_for)
{
	lab_prepare();
	lab_open(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	for (int i = 0; i < PORTS; i++) {
		const struct lab_port *port = &lab.ports[i];
		char name[16];

		snprintf(name, sizeof(name), "eth%d", i);
		CHECK_STR(port->name, name);
		CHECK_EQ(port->request.ifindex, FIRST_IFINDEX + i);
		CHECK_MEM(port->request.mac, lab_mac, sizeof(lab_mac));
		CHECK_EQ(port->request.mtu, 1500);
		CHECK_EQ(port->request.lower, 0);
	}
	CHECK_STR(lab.dev->name, "bond0");
	CHECK_STR(lab.dev->ops->name, "fake");
	CHECK_STR(lab.dev->mode, "memory + memory + memory");
	CHECK_EQ(lab.dev->ifindex, 9);
	CHECK_MEM(lab.dev->mac, lab_mac, sizeof(lab_mac));
	CHECK_EQ(lab.dev->mtu, 1500);
	CHECK(lab.dev->caps.kernel_verdicts);
	lab_end();
}

/* The interface stays the VLAN's; below it there is the port. */
TEST(a_vlan_on_a_bond)
{
	struct backend_bond bond = lab_bond(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	struct backend_request request = lab_request(&bond);
	struct dev_verdict why = { .text = "" };

	request.ifindex = 12;
	request.name = "bond0.100";
	request.vlan_id = 100;
	request.lower = 9;
	request.lower_name = "bond0";
	lab_prepare();
	CHECK_EQ(bond_open(&lab_backend, &request, &lab.dev, &why), 0);
	for (int i = 0; i < PORTS; i++) {
		const struct lab_port *port = &lab.ports[i];

		CHECK_STR(port->name, "bond0.100");
		CHECK_EQ(port->request.ifindex, 12);
		CHECK_EQ(port->request.vlan_id, 100);
		CHECK_EQ(port->request.lower, FIRST_IFINDEX + i);
		CHECK_EQ(port->lower_name[3], '0' + i);
	}
	CHECK_EQ(lab.dev->vlan_id, 100);
	CHECK_STR(lab.dev->name, "bond0.100");
	lab.dev->ops->close(lab.dev);
	lab_end_cables();
}

TEST(ports_follow_address_and_mtu)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	memcpy(lab.dev->mac, lab_peer_mac, sizeof(lab_mac));
	lab.dev->mtu = 9000;
	CHECK_EQ(lab.dev->rx_mtu, 1600);
	lab.dev->rx_mtu = 9100;
	CHECK_EQ(lab.dev->ops->link_changed(lab.dev), 0);
	FOR_EACH_PORT(port) {
		CHECK_MEM(port->dev->mac, lab_peer_mac, sizeof(lab_mac));
		CHECK_EQ(port->mtu, 9000);
		CHECK_EQ(port->dev->rx_mtu, 9100);
	}
	/* the least that any port sends */
	CHECK_EQ(lab.dev->caps.tx_len_max, 9013);
	CHECK_EQ(lab.dev->ops->check(lab.dev), 0);
	lab.ports[2].health = -EIO;
	CHECK_EQ(lab.dev->ops->check(lab.dev), -EIO);
	CHECK_EQ(lab.dev->ops->link_changed(lab.dev), -EIO);
	lab_end();
}

TEST(ports_hear_of_the_end_of_the_process)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	lab.dev->ops->rights_go(lab.dev);
	lab.dev->ops->ending(lab.dev, DEV_ENDS);
	FOR_EACH_PORT(port)
		CHECK(port->is_ending && port->rights_gone == 1);
	lab.dev->ops->ending(lab.dev, DEV_GOES_ON);
	FOR_EACH_PORT(port)
		CHECK(!port->is_ending);
	lab_end();
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
		lab_prepare();
		FOR_EACH_PORT(port)
			port->caps = &able;
		lab_open(BOND_MODE_8023AD, BOND_LAYER2, ALL);
		caps = &lab.dev->caps;
		CHECK(caps->kernel_verdicts && caps->bears_vlans);
		CHECK(!caps->rx_partial_csum && !caps->rules_outlast_failure);
		CHECK(!caps->needs_kick);
		CHECK_EQ(caps->tso_max, 65000);
		CHECK(!caps->pace_min && !caps->pace_max);
		lab_end();

		lab_prepare();
		FOR_EACH_PORT(port)
			port->caps = &able;
		lab.ports[i].caps = &other;
		lab_open(BOND_MODE_8023AD, BOND_LAYER2, ALL);
		caps = &lab.dev->caps;
		CHECK(!caps->kernel_verdicts && !caps->bears_vlans);
		CHECK(caps->rx_partial_csum && caps->rules_outlast_failure);
		CHECK(caps->needs_kick);
		CHECK_EQ(caps->tx_len_max, 1514);
		CHECK_EQ(caps->tso_max, 32000);
		lab_end();
	}
}

TEST(what_a_bond_has_not)
{
	struct ring_pace pace = { .kbps = 1000 };
	struct pkt_pool pool;
	struct ring *ring;

	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	CHECK_EQ(lab.dev->caps.pace_max, 0);
	CHECK_EQ(lab.dev->ops->paced_ring_create(lab.dev, &pace, &pool, &ring),
		 -EOPNOTSUPP);
	CHECK_EQ(lab.ring->ops->set_pace(lab.ring, &pace), -EOPNOTSUPP);
	CHECK_EQ(lab.dev->ops->give_back(lab.dev, "", 1), -EOPNOTSUPP);
	CHECK_EQ(lab.dev->ops->region_share(lab.dev, NULL, 1), -EOPNOTSUPP);
	CHECK(!lab.ring->follows_tx);
	lab_end();
}

static void is_refused(struct backend_bond bond, int err, const char *text)
{
	struct backend_request request = lab_request(&bond);
	struct dev_verdict why = { .text = "" };

	CHECK_EQ(bond_open(&lab_backend, &request, &lab.dev, &why), err);
	CHECK_STR(why.text, text);
	CHECK(why.refusal != DEV_REFUSED_NOT);
	CHECK_EQ(lab.open_cnt, 0);
}

TEST(modes_and_ports_that_are_not_driven)
{
	static const uint8_t modes[] = { 0, 2, 3, 5, 6, 7, 255 };
	struct backend_bond bond = lab_bond(BOND_MODE_8023AD, BOND_LAYER2, 1);

	lab_prepare();
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "a bond of mode %u, and only 1 (active-backup) and 4 (802.3ad) are driven",
			 modes[i]);
		is_refused(lab_bond(modes[i], BOND_LAYER2, 1), -EOPNOTSUPP, text);
	}
	bond.port_cnt = 0;
	is_refused(bond, -EOPNOTSUPP, "a bond with 0 ports, and 1 to 8 are driven");
	bond.port_cnt = 9;
	is_refused(bond, -EOPNOTSUPP, "a bond with 9 ports, and 1 to 8 are driven");
	CHECK_EQ(lab.asked, 0);
	lab_end_cables();
}

TEST(a_port_that_is_refused_is_named)
{
	for (int i = 0; i < PORTS; i++) {
		char text[64];

		lab_prepare();
		lab.ports[i].open_err = -ENODEV;
		snprintf(text, sizeof(text), "its port eth%d: it has no queues", i);
		is_refused(lab_bond(BOND_MODE_8023AD, BOND_LAYER2, 1), -ENODEV, text);
		CHECK_EQ(lab.asked, i + 1);
		lab_end_cables();
	}
}
