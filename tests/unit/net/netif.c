/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which interfaces are driven, why others are not, and when one is given up. */
#include "config.h"

#include "net/netif.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>

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
	net->params.frame_cnt = 100;
	net->params.frame_max = 299;
	netif = get();
	CHECK_EQ(nic.frame_cnt, 100);
	check_wishing(netif);
	CHECK_EQ(nic.region_adds, 1);
	CHECK(!nic.ring.wants_region);
	check_wishing(netif);
	check_wishing(netif);
	CHECK_EQ(nic.region_adds, 1);
	nic_end();

	/* fewer than an interface begins with, but some */
	nic_begin("all");
	net->params.frame_cnt = 100;
	net->params.frame_max = 80;
	get();
	CHECK_EQ(nic.frame_cnt, 80);
	nic_end();
	nic_begin("all");
	net->params.frame_cnt = 100;
	net->params.frame_max = 1;
	get();
	CHECK_EQ(nic.frame_cnt, 64);
	nic_end();
}
