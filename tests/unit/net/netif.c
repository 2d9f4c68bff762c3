/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which interfaces are driven, why others are not, and when one is given up; and of what
 * a bond is made. */
#include "config.h"

#include "net/netif.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>

#include "dev/fake/fake.h"
#include "nl/net_feed.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

/* Something happens to the interface that routes depend on, too. */
static void news(struct link_info link)
{
	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	net_view_routes_changed(&net->view);
}

static struct netif *get(void)
{
	struct netif *netif;

	mutex_acquire(&net->control);
	netif = netif_get(net, NIC_IFINDEX);
	mutex_release(&net->control);
	return netif;
}

/* As net_check() does with one that is to be given up. */
static bool check_and_close(struct netif *netif)
{
	bool is_over;

	mutex_acquire(&net->control);
	is_over = netif_check(net, netif);
	if (is_over)
		netif_close(net, netif);
	mutex_release(&net->control);
	return is_over;
}

static enum reason reason_for(struct link_info link)
{
	news(link);
	return get()->reason;
}

TEST(one_is_driven)
{
	struct netif *netif;

	nic_begin("eth6,eth7");
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(netif->reason, REASON_NONE);
	CHECK_EQ(nic.rings, 1);
	/* once for all who use it */
	CHECK(get() == netif);
	CHECK_EQ(nic.ask_cnt, 1);
	nic_end();
}

TEST(there_is_none_of_that_number)
{
	nic_begin("all");
	mutex_acquire(&net->control);
	CHECK(!netif_get(net, NIC_IFINDEX + 1));
	CHECK(!netif_get_local(net));
	mutex_release(&net->control);
	nic_end();
}

TEST(names_are_compared_as_a_whole)
{
	static const char *const lists[] = { "eth", "eth70", "xeth7,eth", "eth7x",
					     ",", "al" };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		nic_begin(lists[i]);
		CHECK_EQ(get()->reason, REASON_NOT_ALLOWED);
		CHECK_EQ(nic.ask_cnt, 0);
		nic_end();
	}
}

TEST(links_that_no_back_end_is_asked_about)
{
	struct link_info link = nic_link();
	struct link_info upper = { .ifindex = 9, .lower = NIC_IFINDEX,
				   .name = "eth7.5", .kind = LINK_MACVLAN };

	nic_begin("all");
	link.flags |= IFF_LOOPBACK;
	CHECK_EQ(reason_for(link), REASON_LOCAL);
	link = nic_link();
	link.hw_type = ARPHRD_INFINIBAND;
	CHECK_EQ(reason_for(link), REASON_INTERFACE_KIND);
	link = nic_link();
	link.addr_len = 20;
	CHECK_EQ(reason_for(link), REASON_INTERFACE_KIND);
	link = nic_link();
	link.master = 3;
	link.master_kind = LINK_BRIDGE;
	CHECK_EQ(reason_for(link), REASON_INTERFACE_KIND);
	CHECK_EQ(link_tab_set(&net->view.links, &upper), 1);
	CHECK_EQ(reason_for(nic_link()), REASON_INTERFACE_KIND);
	CHECK_EQ(nic.ask_cnt, 0);
	/* what stood in the way goes */
	CHECK(link_tab_remove(&net->view.links, upper.ifindex));
	net_view_routes_changed(&net->view);
	CHECK(netif_is_driven(get()));
	/* a VRF takes no frames */
	link = nic_link();
	link.master = 4;
	link.master_kind = LINK_VRF;
	news(link);
	CHECK(!check_and_close(get()));
	nic_end();
}

/* What it is asked about it says itself, and later its device does. */
TEST(vlans_on_an_interface)
{
	struct link_info upper = { .ifindex = 9, .lower = NIC_IFINDEX,
				   .name = "eth7.5", .kind = LINK_VLAN };

	nic_begin("all");
	nic.bears_vlans = true;
	CHECK(netif_is_driven(get()));
	CHECK(!nic.has_vlans);
	news(upper);
	CHECK(!check_and_close(get()));
	nic.dev.caps.bears_vlans = false;
	CHECK(check_and_close(get()));
	net_view_routes_changed(&net->view);
	CHECK(netif_is_driven(get()));
	CHECK(nic.has_vlans);
	nic_end();
}

TEST(a_vlan)
{
	struct link_info link;
	struct netif *netif;

	nic_begin("all");
	news(nic_vlan());
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(nic.vlan_id, 100);
	CHECK_EQ(nic.lower, 3);
	CHECK_STR(nic.lower_name, "eth3");
	CHECK(!check_and_close(netif));
	/* another one has its number */
	link = nic_vlan();
	link.vlan_id = 200;
	news(link);
	CHECK(check_and_close(netif));
	net_view_routes_changed(&net->view);
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(nic.vlan_id, 200);
	/* the interface below goes */
	CHECK(link_tab_remove(&net->view.links, 3));
	CHECK(check_and_close(netif));
	nic_end();
}

static void is_refused(struct link_info link, const char *why)
{
	CHECK_EQ(reason_for(link), REASON_INTERFACE_KIND);
	CHECK_STR(get()->why, why);
}

TEST(vlans_that_are_the_kernels)
{
	struct link_info link, lower = nic_link();
	struct link_info upper = { .ifindex = 9, .name = "eth7.5", .kind = LINK_VLAN };

	nic_begin("all");
	upper.lower = NIC_IFINDEX;
	CHECK_EQ(link_tab_set(&net->view.links, &upper), 1);
	is_refused(nic_vlan(), "eth7, a VLAN with VLANs on it");
	CHECK(link_tab_remove(&net->view.links, upper.ifindex));
	link = nic_vlan();
	link.lower = 0;
	is_refused(link, "eth7, the interface below the VLAN is in another network namespace");
	link = nic_vlan();
	link.vlan_proto = 0x88a8;
	is_refused(link, "eth7, a VLAN that is not of 802.1Q");
	link = nic_vlan();
	link.vlan_id = 0;
	is_refused(link, "eth7, a VLAN without number");
	link = nic_vlan();
	link.has_far_priorities = 1;
	is_refused(link, "eth7, a VLAN whose egress map has priorities above 15");
	link = nic_vlan();
	lower.ifindex = link.lower;
	lower.kind = LINK_VLAN;
	CHECK_EQ(link_tab_set(&net->view.links, &lower), 1);
	is_refused(link, "eth7, a VLAN on a VLAN");
	lower.kind = LINK_PLAIN;
	lower.master = 9;
	lower.master_kind = LINK_BOND;
	CHECK_EQ(link_tab_set(&net->view.links, &lower), 1);
	link.mtu = 1400;
	is_refused(link, "eth7, a VLAN on a port of a bridge, bond or team");
	CHECK_EQ(nic.ask_cnt, 0);
	nic_end();
}

TEST(what_a_back_end_says_becomes_a_reason)
{
	static const struct {
		enum dev_refusal refusal;
		enum reason reason;
	} cases[] = {
		{ DEV_REFUSED_IN_USE, REASON_INTERFACE_IN_USE },
		{ DEV_REFUSED_FOREIGN_PROGRAM, REASON_FOREIGN_PROGRAM },
		{ DEV_REFUSED_KIND, REASON_INTERFACE_KIND },
		{ DEV_REFUSED_RIGHTS, REASON_RIGHTS },
		{ DEV_REFUSED_MEMORY, REASON_MEMORY },
		{ DEV_REFUSED_ERROR, REASON_INTERFACE_ERROR },
	};

	nic_begin("all");
	nic.health = -EBUSY;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct netif *netif;

		nic.verdict = (struct dev_verdict){
			.refusal = cases[i].refusal,
			.text = "by pid 7",
		};
		net_view_routes_changed(&net->view);
		netif = get();
		CHECK_EQ(netif->reason, cases[i].reason);
		CHECK_STR(netif->why, "eth7, by pid 7");
		CHECK(!netif_is_driven(netif));
		CHECK_EQ(nic.ask_cnt, i + 1);
		/* not again before something has changed */
		CHECK(get() == netif);
		CHECK_EQ(nic.ask_cnt, i + 1);
	}
	nic_end();
}

static int refuse(struct backend *other UNUSED,
		  const struct backend_request *request UNUSED,
		  struct dev **dev_out UNUSED, struct dev_verdict *why_out)
{
	*why_out = (struct dev_verdict){ .refusal = DEV_REFUSED_MEMORY };
	return -ENOMEM;
}

static struct backend refuser = { .name = "none", .open = refuse };

TEST(the_next_back_end_is_asked)
{
	nic_begin("all");
	net->params.backends[1] = net->params.backends[0];
	net->params.backends[0] = &refuser;
	net->params.backend_cnt = 2;
	CHECK(netif_is_driven(get()));
	nic_end();

	/* the last one's word counts */
	nic_begin("all");
	net->params.backends[1] = &refuser;
	net->params.backend_cnt = 2;
	nic.health = -EBUSY;
	CHECK_EQ(get()->reason, REASON_MEMORY);
	nic_end();
}

TEST(no_back_end)
{
	nic_begin("all");
	net->params.backend_cnt = 0;
	CHECK_EQ(get()->reason, REASON_NO_BACK_END);
	nic_end();
}

/* It is left as it was found. */
TEST(a_device_that_gives_no_ring)
{
	nic_begin("all");
	nic.ring_err = -ENOSPC;
	CHECK_EQ(get()->reason, REASON_INTERFACE_ERROR);
	CHECK_EQ(nic.ask_cnt, 1);
	CHECK_EQ(nic.open_cnt, 0);
	nic_end();
}

/* -- bonds ------------------------------------------------------------------------- */

/* A back end whose devices share regions: it can drive the interfaces 20 to 22, and says
 * what it was told of them. */

enum { PORTS = 3, FIRST_PORT = 20, BOND = 30 };
enum { ACTIVE_BACKUP = 1, LACP = 4 };

static struct {
	struct fake_cable *cables[PORTS];
	/* what has left by each */
	unsigned sent[PORTS];
	struct dev_ops ops;
	void (*fake_close)(struct dev *dev);
	unsigned ask_cnt, open_cnt;
	/* by the last request for a port */
	struct backend_request request;
	struct backend_bond bond;
	char name[16], lower_name[16];
} sharer;

static void note_frame(void *ctx, uint64_t now_ns UNUSED, const void *frame UNUSED,
		       size_t len UNUSED)
{
	++*(unsigned *)ctx;
}

static void close_port(struct dev *dev)
{
	sharer.open_cnt--;
	sharer.fake_close(dev);
}

static int open_port(struct backend *own UNUSED, const struct backend_request *request,
		     struct dev **dev_out, struct dev_verdict *why_out UNUSED)
{
	int port = (request->vlan_id ? request->lower : request->ifindex) - FIRST_PORT;
	struct fake_params params = { .mtu = request->mtu,
				      .frame_cnt = request->frame_cnt,
				      .frame_size = 2048,
				      .regions = request->regions,
				      .fd = -1 };

	CHECK(port >= 0 && port < PORTS);
	sharer.ask_cnt++;
	sharer.request = *request;
	sharer.bond = *request->bond;
	snprintf(sharer.name, sizeof(sharer.name), "%s", request->name);
	snprintf(sharer.lower_name, sizeof(sharer.lower_name), "%s",
		 request->lower_name ? request->lower_name : "");
	CHECK_EQ(fake_dev_create_loop(sharer.cables[port], &params, dev_out), 0);
	sharer.ops = *(*dev_out)->ops;
	sharer.fake_close = sharer.ops.close;
	sharer.ops.close = close_port;
	(*dev_out)->ops = &sharer.ops;
	(*dev_out)->caps.bears_vlans = true;
	sharer.open_cnt++;
	return 0;
}

static struct backend sharing = { .name = "sharer", .shares_regions = true,
				  .open = open_port };

/* The kernel says this of a link. */
static void hear(struct link_info link)
{
	struct net_row row = { .kind = NET_ROW_LINK, .link = link };
	unsigned stale;

	CHECK_EQ(net_feed_take(&net->view, &row, &stale), 0);
}

static struct link_info a_bond(uint8_t mode, uint8_t policy)
{
	struct link_info link = nic_link();

	link.kind = LINK_BOND;
	link.bond_mode = mode;
	link.bond_policy = policy;
	return link;
}

static struct link_info a_port(int nr, int bond, bool is_active)
{
	struct link_info link = nic_link();

	link.ifindex = FIRST_PORT + nr;
	snprintf(link.name, sizeof(link.name), "port%d", nr);
	if (bond) {
		link.master = bond;
		link.master_kind = LINK_BOND;
	}
	link.is_active_port = is_active;
	return link;
}

/* The interface is a bond of the first two ports, which the sharer is offered first. */
static void bond_begin(uint8_t mode, uint8_t policy, bool first, bool second)
{
	memset(&sharer, 0, sizeof(sharer));
	for (int i = 0; i < PORTS; i++) {
		struct fake_cable_params params = { .seed = 1, .tap = note_frame,
						    .tap_ctx = &sharer.sent[i] };

		sharer.cables[i] = fake_cable_create(&params);
		CHECK(sharer.cables[i]);
	}
	nic_begin("all");
	net->params.backends[1] = net->params.backends[0];
	net->params.backends[0] = &sharing;
	net->params.backend_cnt = 2;
	hear(a_bond(mode, policy));
	hear(a_port(1, NIC_IFINDEX, second));
	hear(a_port(0, NIC_IFINDEX, first));
	/* one of another bond */
	hear(a_port(2, BOND, true));
}

static void bond_end(void)
{
	nic_end();
	CHECK_EQ(sharer.open_cnt, 0);
	for (int i = 0; i < PORTS; i++)
		fake_cable_destroy(sharer.cables[i]);
}

/* The number of the port by which a frame leaves; the ring of the process's stack is the
 * bond's. */
static int way(struct netif *netif)
{
	struct ring *ring = netif->rings[0];
	int found = -1;

	memset(sharer.sent, 0, sizeof(sharer.sent));
	CHECK(ring && ring->tx_frame);
	memset(ring->tx_frame, 0, 60);
	ring->ops->tx_commit(ring, 60);
	for (int i = 0; i < PORTS; i++) {
		CHECK(sharer.sent[i] <= (found < 0));
		if (sharer.sent[i])
			found = i;
	}
	return found;
}

TEST(a_bond_is_its_ports)
{
	struct netif *netif;

	bond_begin(ACTIVE_BACKUP, 3, false, true);
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(sharer.ask_cnt, 2);
	CHECK_EQ(nic.ask_cnt, 0);
	CHECK_EQ(sharer.bond.port_cnt, 2);
	for (int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof(name), "port%d", i);
		CHECK_STR(sharer.bond.ports[i].name, name);
		CHECK_EQ(sharer.bond.ports[i].ifindex, FIRST_PORT + i);
	}
	CHECK_EQ(sharer.bond.mode, ACTIVE_BACKUP);
	CHECK_EQ(sharer.bond.policy, 3);
	CHECK_EQ(sharer.bond.active, 1 << 1);
	CHECK_EQ(sharer.request.ifindex, FIRST_PORT + 1);
	CHECK_STR(sharer.name, "port1");
	CHECK(sharer.request.regions);
	CHECK_EQ(netif->dev->ifindex, NIC_IFINDEX);
	CHECK_STR(netif->dev->name, "eth7");
	CHECK_EQ(way(netif), 1);
	bond_end();
}

/* As AF_XDP, who drives what the kernel has made of the ports. */
TEST(a_bond_by_who_shares_nothing)
{
	struct netif *netif;

	bond_begin(ACTIVE_BACKUP, 0, true, false);
	net->params.backends[0] = net->params.backends[1];
	net->params.backend_cnt = 1;
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(nic.ask_cnt, 1);
	CHECK(!nic.has_bond);
	CHECK_EQ(nic.dev.ifindex, NIC_IFINDEX);
	/* it is the kernel's business who its ports are */
	hear(a_port(0, NIC_IFINDEX, false));
	hear(a_port(2, NIC_IFINDEX, true));
	hear(a_bond(LACP, 1));
	net_check(net);
	CHECK(netif_is_driven(netif));
	CHECK_EQ(nic.ask_cnt, 1);
	bond_end();
}

/* By those that share, but not by the next one. */
TEST(a_bond_whose_mode_is_refused)
{
	struct netif *netif;

	bond_begin(0, 0, true, true);
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(sharer.ask_cnt, 0);
	CHECK_EQ(nic.ask_cnt, 1);
	CHECK(!nic.has_bond);
	hear(a_bond(2, 0));
	net_check(net);
	CHECK(netif_is_driven(netif));
	bond_end();

	bond_begin(0, 0, true, true);
	net->params.backend_cnt = 1;
	netif = get();
	CHECK_EQ(netif->reason, REASON_INTERFACE_KIND);
	CHECK_STR(netif->why,
		  "eth7, a bond of mode 0, and only 1 (active-backup) and 4 (802.3ad) are driven");
	/* and then it has another one */
	hear(a_bond(LACP, 0));
	CHECK(netif_is_driven(get()));
	bond_end();
}

TEST(a_vlan_on_a_bond_is_one_on_its_ports)
{
	struct link_info lower = a_bond(ACTIVE_BACKUP, 0);
	struct netif *netif;

	bond_begin(ACTIVE_BACKUP, 0, true, false);
	news(nic_vlan());
	lower.ifindex = nic_vlan().lower;
	strcpy(lower.name, "bond3");
	hear(lower);
	hear(a_port(0, lower.ifindex, true));
	hear(a_port(1, lower.ifindex, false));
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_EQ(sharer.ask_cnt, 2);
	CHECK_EQ(sharer.request.vlan_id, 100);
	CHECK_EQ(sharer.request.ifindex, NIC_IFINDEX);
	CHECK_EQ(sharer.request.lower, FIRST_PORT + 1);
	CHECK_STR(sharer.lower_name, "port1");
	CHECK_EQ(netif->dev->vlan_id, 100);
	CHECK_EQ(way(netif), 0);
	CHECK_EQ(sharer.request.rx_mtu, lower.mtu);
	/* it follows the bond below */
	hear(a_port(0, lower.ifindex, false));
	hear(a_port(1, lower.ifindex, true));
	net_check(net);
	CHECK_EQ(way(netif), 1);
	CHECK_EQ(sharer.ask_cnt, 2);
	lower.kind = LINK_PLAIN;
	hear(lower);
	net_check(net);
	CHECK(!netif_is_driven(netif));
	CHECK_EQ(sharer.open_cnt, 0);
	bond_end();
}

/* The kernel gives a bond's MTU to its ports, but lets them have another one later. */
TEST(a_port_with_a_larger_mtu_than_the_bond)
{
	struct link_info port = a_port(1, NIC_IFINDEX, false);
	struct netif *netif;

	bond_begin(ACTIVE_BACKUP, 0, true, false);
	port.mtu = 9000;
	hear(port);
	netif = get();
	CHECK_EQ(sharer.request.mtu, nic_link().mtu);
	CHECK_EQ(sharer.request.rx_mtu, 9000);
	CHECK_EQ(netif->dev->rx_mtu, 9000);
	bond_end();
}

TEST(a_bond_follows_its_ports)
{
	struct netif *netif;

	bond_begin(ACTIVE_BACKUP, 0, true, false);
	netif = get();
	CHECK_EQ(way(netif), 0);
	hear(a_port(0, NIC_IFINDEX, false));
	hear(a_port(1, NIC_IFINDEX, true));
	net_check(net);
	CHECK_EQ(way(netif), 1);
	/* none is: it stays as it was */
	hear(a_port(1, NIC_IFINDEX, false));
	net_check(net);
	CHECK_EQ(way(netif), 1);
	hear(a_port(0, NIC_IFINDEX, true));
	net_check(net);
	CHECK_EQ(way(netif), 0);
	/* that of another bond */
	hear(a_port(2, BOND, false));
	net_check(net);
	CHECK_EQ(way(netif), 0);
	CHECK(netif_is_driven(netif));
	CHECK_EQ(sharer.ask_cnt, 2);
	bond_end();
}

/* What is heard ends the device that there is, and the next one has so many ports. */
static void is_made_anew(struct link_info link, unsigned port_cnt)
{
	struct netif *netif = get();

	CHECK(netif_is_driven(netif));
	hear(link);
	net_check(net);
	CHECK(!netif_is_driven(netif));
	CHECK_EQ(sharer.open_cnt, 0);
	sharer.ask_cnt = 0;
	CHECK(netif_is_driven(get()));
	CHECK_EQ(sharer.ask_cnt, port_cnt);
	CHECK_EQ(sharer.open_cnt, port_cnt);
}

TEST(a_bond_of_other_ports_is_made_anew)
{
	bond_begin(ACTIVE_BACKUP, 0, true, false);
	is_made_anew(a_port(2, NIC_IFINDEX, false), 3);
	CHECK_EQ(way(get()), 0);
	is_made_anew(a_port(0, 0, false), 2);
	/* one comes as another goes */
	hear(a_port(1, BOND, true));
	is_made_anew(a_port(0, NIC_IFINDEX, true), 2);
	CHECK_EQ(sharer.bond.ports[1].ifindex, FIRST_PORT + 2);
	bond_end();
}

TEST(a_bond_in_another_way_is_made_anew)
{
	bond_begin(ACTIVE_BACKUP, 0, true, false);
	is_made_anew(a_bond(LACP, 0), 2);
	CHECK_EQ(sharer.bond.mode, LACP);
	is_made_anew(a_bond(LACP, 1), 2);
	CHECK_EQ(sharer.bond.policy, 1);
	/* it is none any more, and goes to the next one as every interface */
	hear(nic_link());
	net_check(net);
	CHECK_EQ(sharer.open_cnt, 0);
	net->params.backends[0] = net->params.backends[1];
	CHECK(netif_is_driven(get()));
	CHECK_EQ(nic.open_cnt, 1);
	bond_end();
}

/* -- what changes ------------------------------------------------------------------- */

TEST(address_and_mtu_are_followed)
{
	struct link_info link = nic_link();
	struct netif *netif;

	nic_begin("all");
	netif = get();
	CHECK(!check_and_close(netif));
	CHECK_EQ(nic.changes, 0);
	link.addr[5] = 9;
	news(link);
	CHECK(!check_and_close(netif));
	CHECK_EQ(nic.changes, 1);
	CHECK_EQ(nic.dev.mac[5], 9);
	link.mtu = 9000;
	news(link);
	CHECK(!check_and_close(netif));
	CHECK_EQ(nic.changes, 2);
	CHECK_EQ(nic.dev.mtu, 9000);
	nic_end();
}

/* What is below may let through more than the interface sends, and then frames have to hold
 * that. */
TEST(mtu_below_is_followed)
{
	struct link_info link, lower = nic_link();

	nic_begin("all");
	link = nic_vlan();
	lower.ifindex = link.lower;
	lower.mtu = 9000;
	news(lower);
	news(link);
	CHECK(!check_and_close(get()));
	CHECK_EQ(nic.dev.mtu, link.mtu);
	CHECK_EQ(nic.dev.rx_mtu, 9000);
	CHECK_EQ(nic.changes, 0);
	lower.mtu = 9500;
	news(lower);
	CHECK(!check_and_close(get()));
	CHECK_EQ(nic.dev.rx_mtu, 9500);
	CHECK_EQ(nic.changes, 1);
	lower.mtu = link.mtu - 1;
	news(lower);
	CHECK(!check_and_close(get()));
	CHECK_EQ(nic.dev.rx_mtu, link.mtu);
	CHECK_EQ(nic.changes, 2);
	nic_end();
}

TEST(one_is_given_up)
{
	struct link_info port = nic_link();
	struct netif *netif;

	/* it becomes another's */
	port.master = 3;
	port.master_kind = LINK_BOND;
	nic_begin("all");
	netif = get();
	news(port);
	CHECK(check_and_close(netif));
	CHECK_EQ(netif->reason, REASON_INTERFACE_ERROR);
	CHECK_EQ(nic.open_cnt, 0);
	CHECK(!check_and_close(netif));
	nic_end();

	/* it goes */
	nic_begin("all");
	netif = get();
	CHECK(link_tab_remove(&net->view.links, NIC_IFINDEX));
	CHECK(check_and_close(netif));
	CHECK_STR(netif->why, "eth7, No such device");
	nic_end();

	/* its device ceases to work */
	nic_begin("all");
	netif = get();
	nic.health = -EIO;
	CHECK(check_and_close(netif));
	CHECK_STR(netif->why, "eth7, Input/output error");
	nic_end();
}

/* A back end finds queues and devices by the name. */
TEST(a_new_name_is_followed)
{
	struct link_info link = nic_link();
	struct netif *netif;

	nic_begin("all");
	nic.health = -EIO;
	CHECK_EQ(get()->reason, REASON_INTERFACE_ERROR);
	nic.health = 0;
	snprintf(link.name, sizeof(link.name), "lan0");
	news(link);
	netif = get();
	CHECK(netif_is_driven(netif));
	CHECK_STR(nic.name, "lan0");
	/* one that is driven goes on */
	snprintf(link.name, sizeof(link.name), "lan1");
	news(link);
	CHECK(!check_and_close(netif));
	nic.health = -EIO;
	CHECK(check_and_close(netif));
	CHECK_STR(netif->why, "lan1, Input/output error");
	nic_end();
}

static void check_wishing(struct netif *netif)
{
	nic.ring.wants_region = true;
	CHECK(!check_and_close(netif));
}

/* Of all interfaces together; those that a ring gets later count, too. */
TEST(frames_have_a_limit)
{
	struct netif *netif;

	nic_begin("all");
	net->params.frame_cnt = 200;
	net->params.frame_max = 599;
	netif = get();
	CHECK_EQ(nic.frame_cnt, 200);
	check_wishing(netif);
	CHECK_EQ(nic.region_adds, 1);
	CHECK(!nic.ring.wants_region);
	check_wishing(netif);
	check_wishing(netif);
	CHECK_EQ(nic.region_adds, 1);
	nic_end();

	/* fewer than an interface begins with, but some */
	nic_begin("all");
	net->params.frame_cnt = 200;
	net->params.frame_max = 160;
	get();
	CHECK_EQ(nic.frame_cnt, 160);
	nic_end();
	nic_begin("all");
	net->params.frame_cnt = 200;
	net->params.frame_max = 1;
	get();
	CHECK_EQ(nic.frame_cnt, 128);
	nic_end();
}
