/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages about links, VLANs and bonds among them, and those that no kernel sends. */
#include "nl/libnl/rows.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_bonding.h>
#include <linux/if_link.h>

#include "tests/unit/nl/build.h"
#include "tests/unit/nl/libnl/read.h"

/* As a kernel sends it (6.18), but for the port. */

/* ip link add link eth0 name eth0.100 type vlan id 100 egress 0:1 3:5 6:7 */
static const uint8_t vlan_msg[] ALIGNED = {
	0xa4, 0x00, 0x00, 0x00, 0x10, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x09, 0x00, 0x00, 0x00,
	0x43, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0d, 0x00, 0x03, 0x00,
	0x65, 0x74, 0x68, 0x30, 0x2e, 0x31, 0x30, 0x30, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x04, 0x00, 0xdc, 0x05, 0x00, 0x00, 0x08, 0x00, 0x05, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x00, 0x22, 0x00, 0x00, 0x58, 0x00, 0x12, 0x00, 0x09, 0x00, 0x01, 0x00,
	0x76, 0x6c, 0x61, 0x6e, 0x00, 0x00, 0x00, 0x00, 0x48, 0x00, 0x02, 0x00,
	0x06, 0x00, 0x05, 0x00, 0x81, 0x00, 0x00, 0x00, 0x06, 0x00, 0x01, 0x00,
	0x64, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0xff, 0xff, 0xff, 0xff, 0x28, 0x00, 0x03, 0x00, 0x0c, 0x00, 0x01, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x01, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x01, 0x00,
	0x06, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
};
/* Where it says these. */
enum { VLAN_PROTO_AT = 100, VLAN_FIRST_LINE_AT = 128 };

static struct link_info link;

static void begin_link(uint16_t type, int ifindex)
{
	struct ifinfomsg head = { .ifi_index = ifindex,
				  .ifi_type = ARPHRD_ETHER,
				  .ifi_flags = IFF_UP | IFF_RUNNING };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_text(&m, IFLA_IFNAME, "eth7");
	msg_put_u32(&m, IFLA_MTU, 9000);
}

static int parse_link(void)
{
	int rc = read_row(&m.head, NET_ROW_LINK);

	link = room.row.link;
	return rc;
}

static void put_kind(const char *kind, const char *slave_kind, uint16_t vlan_id)
{
	struct nlattr *info = msg_put(&m, IFLA_LINKINFO, NULL, 0), *data;

	if (kind)
		msg_put_text(&m, IFLA_INFO_KIND, kind);
	data = msg_put(&m, IFLA_INFO_DATA | NLA_F_NESTED, NULL, 0);
	msg_put(&m, IFLA_VLAN_ID, &vlan_id, sizeof(vlan_id));
	msg_nest_end(&m, data);
	if (slave_kind)
		msg_put_text(&m, IFLA_INFO_SLAVE_KIND, slave_kind);
	msg_nest_end(&m, info);
}

TEST(a_plain_link)
{
	static const uint8_t mac[] = { 2, 3, 4, 5, 6, 7 };

	begin_link(RTM_NEWLINK, 7);
	msg_put(&m, IFLA_ADDRESS, mac, sizeof(mac));
	msg_put_u32(&m, IFLA_GROUP, 5);
	msg_put_u32(&m, IFLA_LINK, 7);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.ifindex, 7);
	CHECK_STR(link.name, "eth7");
	CHECK_EQ(link.mtu, 9000);
	CHECK_EQ(link.kind, LINK_PLAIN);
	CHECK_EQ(link.hw_type, ARPHRD_ETHER);
	CHECK_EQ(link.flags, IFF_UP | IFF_RUNNING);
	CHECK_EQ(link.group, 5);
	CHECK_EQ(link.lower, 0);
	CHECK_EQ(link.addr_len, 6);
	CHECK_MEM(link.addr, mac, 6);
}

TEST(a_vlan_that_is_a_port)
{
	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_LINK, 3);
	msg_put_u32(&m, IFLA_MASTER, 4);
	put_kind("vlan", "bond", 42);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.kind, LINK_VLAN);
	CHECK_EQ(link.vlan_id, 42);
	CHECK_EQ(link.lower, 3);
	CHECK_EQ(link.master, 4);
	CHECK_EQ(link.master_kind, LINK_BOND);
}

TEST(a_vlan_with_an_egress_map)
{
	static const uint8_t pcps[LINK_VLAN_PRIORITIES] = { [0] = 1, [3] = 5, [6] = 7 };

	CHECK_EQ(read_row(MSG(vlan_msg), NET_ROW_LINK), 0);
	link = room.row.link;
	CHECK_STR(link.name, "eth0.100");
	CHECK_EQ(link.kind, LINK_VLAN);
	CHECK_EQ(link.vlan_id, 100);
	CHECK_EQ(link.vlan_proto, 0x8100);
	CHECK_EQ(link.lower, 3);
	CHECK_MEM(link.vlan_pcps, pcps, sizeof(pcps));
	CHECK_EQ(link.has_far_priorities, 0);
}

TEST(vlans_of_other_kinds)
{
	uint8_t msg[sizeof(vlan_msg)] ALIGNED;

	/* 802.1ad */
	memcpy(msg, vlan_msg, sizeof(msg));
	msg[VLAN_PROTO_AT] = 0x88;
	msg[VLAN_PROTO_AT + 1] = 0xa8;
	CHECK_EQ(read_row(MSG(msg), NET_ROW_LINK), 0);
	CHECK_EQ(room.row.link.vlan_proto, 0x88a8);
	/* a line for a class of tc */
	memcpy(msg, vlan_msg, sizeof(msg));
	msg[VLAN_FIRST_LINE_AT + 6] = 1;
	CHECK_EQ(read_row(MSG(msg), NET_ROW_LINK), 0);
	CHECK_EQ(room.row.link.has_far_priorities, 1);
	CHECK_EQ(room.row.link.vlan_pcps[0], 0);
	/* lines that lie about their length */
	for (uint8_t len = 0; len < 12; len++) {
		msg[VLAN_FIRST_LINE_AT] = len;
		CHECK_EQ(read_row(MSG(msg), NET_ROW_LINK), -EBADMSG);
	}
}

TEST(kinds_nobody_heard_of)
{
	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_MASTER, 4);
	put_kind("a_kind_with_a_very_long_name", NULL, 0);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.kind, LINK_OTHER);
	CHECK_EQ(link.master_kind, LINK_OTHER);
}

/* Of a bond whose message says these; < 0: it does not. */
static int read_bond(int mode, int policy)
{
	uint8_t mode_byte = (uint8_t)mode, policy_byte = (uint8_t)policy;
	struct nlattr *info, *data;

	begin_link(RTM_NEWLINK, 7);
	info = msg_put(&m, IFLA_LINKINFO, NULL, 0);
	msg_put_text(&m, IFLA_INFO_KIND, "bond");
	data = msg_put(&m, IFLA_INFO_DATA | NLA_F_NESTED, NULL, 0);
	if (mode >= 0)
		msg_put(&m, IFLA_BOND_MODE, &mode_byte, 1);
	/* one of the many others */
	msg_put_u32(&m, IFLA_BOND_MIIMON, 100);
	if (policy >= 0)
		msg_put(&m, IFLA_BOND_XMIT_HASH_POLICY, &policy_byte, 1);
	msg_put_u32(&m, IFLA_BOND_RESEND_IGMP, 1);
	msg_nest_end(&m, data);
	msg_nest_end(&m, info);
	return parse_link();
}

TEST(a_bond)
{
	struct nlattr *info;

	CHECK_EQ(read_bond(4, 1), 0);
	CHECK_EQ(link.kind, LINK_BOND);
	CHECK_EQ(link.bond_mode, 4);
	CHECK_EQ(link.bond_policy, 1);
	CHECK_EQ(link.is_active_port, 0);
	CHECK_EQ(read_bond(1, -1), 0);
	CHECK_EQ(link.bond_mode, 1);
	CHECK_EQ(link.bond_policy, 0);
	CHECK_EQ(read_bond(-1, 5), 0);
	CHECK_EQ(link.bond_mode, 0);
	CHECK_EQ(link.bond_policy, 5);
	/* nothing but its kind */
	begin_link(RTM_NEWLINK, 7);
	info = msg_put(&m, IFLA_LINKINFO, NULL, 0);
	msg_put_text(&m, IFLA_INFO_KIND, "bond");
	msg_nest_end(&m, info);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.kind, LINK_BOND);
	CHECK_EQ(link.bond_mode, 0);
}

/* Begins the message of a port of this kind of interface. Returns the nest of its kinds. */
static struct nlattr *begin_port(const char *kind)
{
	struct nlattr *info;

	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_MASTER, 4);
	info = msg_put(&m, IFLA_LINKINFO, NULL, 0);
	msg_put_text(&m, IFLA_INFO_SLAVE_KIND, kind);
	return info;
}

/* One whose message says these; < 0: it does not. */
static int read_port(const char *kind, int state, int mii)
{
	uint8_t state_byte = (uint8_t)state, mii_byte = (uint8_t)mii;
	struct nlattr *info = begin_port(kind), *data;

	data = msg_put(&m, IFLA_INFO_SLAVE_DATA, NULL, 0);
	if (state >= 0)
		msg_put(&m, IFLA_BOND_SLAVE_STATE, &state_byte, 1);
	if (mii >= 0)
		msg_put(&m, IFLA_BOND_SLAVE_MII_STATUS, &mii_byte, 1);
	msg_put_u32(&m, IFLA_BOND_SLAVE_LINK_FAILURE_COUNT, 3);
	msg_nest_end(&m, data);
	msg_nest_end(&m, info);
	return parse_link();
}

TEST(a_port_of_a_bond)
{
	static const struct {
		int state, mii;
		bool is_active;
	} cases[] = {
		{ BOND_STATE_ACTIVE, BOND_LINK_UP, true },
		{ BOND_STATE_ACTIVE, BOND_LINK_FAIL, true },
		{ BOND_STATE_ACTIVE, BOND_LINK_DOWN, false },
		{ BOND_STATE_ACTIVE, BOND_LINK_BACK, false },
		{ BOND_STATE_BACKUP, BOND_LINK_UP, false },
		{ BOND_STATE_BACKUP, BOND_LINK_DOWN, false },
		/* it does not say */
		{ BOND_STATE_ACTIVE, -1, true },
		{ BOND_STATE_BACKUP, -1, false },
		{ -1, BOND_LINK_UP, false },
		{ -1, -1, false },
		{ 2, BOND_LINK_UP, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_EQ(read_port("bond", cases[i].state, cases[i].mii), 0);
		CHECK_EQ(link.master, 4);
		CHECK_EQ(link.master_kind, LINK_BOND);
		CHECK_EQ(link.is_active_port, cases[i].is_active);
	}
	/* nothing of its state */
	msg_nest_end(&m, begin_port("bond"));
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.master_kind, LINK_BOND);
	CHECK_EQ(link.is_active_port, 0);
}

/* The same numbers mean something else there. */
TEST(a_port_of_something_else_is_not_active)
{
	CHECK_EQ(read_port("bridge", BOND_STATE_ACTIVE, BOND_LINK_UP), 0);
	CHECK_EQ(link.master_kind, LINK_BRIDGE);
	CHECK_EQ(link.is_active_port, 0);
	CHECK_EQ(read_port("team", BOND_STATE_ACTIVE, BOND_LINK_UP), 0);
	CHECK_EQ(link.is_active_port, 0);
}

/* A message whose nest has an attribute without its byte, or one that lies about its
 * length. */
static int read_bad(bool is_port, uint16_t type, uint16_t len)
{
	struct nlattr *info, *data, *bad;

	if (is_port) {
		info = begin_port("bond");
		data = msg_put(&m, IFLA_INFO_SLAVE_DATA, NULL, 0);
	} else {
		begin_link(RTM_NEWLINK, 7);
		info = msg_put(&m, IFLA_LINKINFO, NULL, 0);
		msg_put_text(&m, IFLA_INFO_KIND, "bond");
		data = msg_put(&m, IFLA_INFO_DATA, NULL, 0);
	}
	bad = msg_put(&m, type, NULL, 0);
	msg_nest_end(&m, data);
	msg_nest_end(&m, info);
	bad->nla_len = len;
	return parse_link();
}

TEST(bonds_and_ports_that_lie)
{
	static const uint16_t lens[] = { 0, NLA_HDRLEN - 1, NLA_HDRLEN, 100 };

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		CHECK_EQ(read_bad(false, IFLA_BOND_MODE, lens[i]), -EBADMSG);
		CHECK_EQ(read_bad(false, IFLA_BOND_XMIT_HASH_POLICY, lens[i]), -EBADMSG);
		CHECK_EQ(read_bad(true, IFLA_BOND_SLAVE_STATE, lens[i]), -EBADMSG);
		CHECK_EQ(read_bad(true, IFLA_BOND_SLAVE_MII_STATUS, lens[i]), -EBADMSG);
	}
	/* cut in the middle */
	CHECK_EQ(read_bond(4, 1), 0);
	for (uint32_t len = m.head.nlmsg_len - 1; len >= NLMSG_HDRLEN; len--) {
		m.head.nlmsg_len = len;
		CHECK(parse_link() != 0 || link.kind != LINK_BOND);
	}
	CHECK_EQ(read_port("bond", BOND_STATE_ACTIVE, BOND_LINK_UP), 0);
	for (uint32_t len = m.head.nlmsg_len - 1; len >= NLMSG_HDRLEN; len--) {
		m.head.nlmsg_len = len;
		CHECK(parse_link() != 0 || link.master_kind != LINK_BOND);
	}
}

TEST(below_is_elsewhere)
{
	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_LINK, 3);
	msg_put_u32(&m, IFLA_LINK_NETNSID, 0);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.lower, 0);
}

TEST(xdp_programs)
{
	struct nlattr *nest;
	uint8_t mode = XDP_ATTACHED_SKB;

	begin_link(RTM_NEWLINK, 7);
	nest = msg_put(&m, IFLA_XDP, NULL, 0);
	msg_put(&m, IFLA_XDP_ATTACHED, &mode, 1);
	msg_put_u32(&m, IFLA_XDP_PROG_ID, 77);
	msg_nest_end(&m, nest);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.xdp_mode, LINK_XDP_GENERIC);
	CHECK_EQ(link.xdp_prog_id, 77);
}

TEST(links_that_are_no_news)
{
	struct ifinfomsg bridge = { .ifi_family = AF_BRIDGE, .ifi_index = 7 };
	struct ifinfomsg bare = { .ifi_index = 7 };

	msg_begin(&m, RTM_DELLINK, &bridge, sizeof(bridge));
	CHECK_EQ(parse_link(), ROWS_NONE);
	/* A wireless event. */
	msg_begin(&m, RTM_NEWLINK, &bare, sizeof(bare));
	msg_put_text(&m, IFLA_IFNAME, "wlan0");
	CHECK_EQ(parse_link(), ROWS_NONE);
	msg_begin(&m, RTM_DELLINK, &bare, sizeof(bare));
	CHECK_EQ(parse_link(), 0);
}

TEST(bad_links)
{
	uint8_t bytes[LINK_ADDR_MAX + 1] = { 0 };

	begin_link(RTM_NEWLINK, 0);
	CHECK_EQ(parse_link(), -EBADMSG);
	begin_link(RTM_NEWLINK, 7);
	msg_put_text(&m, IFLA_IFNAME, "a_name_of_16_byt");
	CHECK_EQ(parse_link(), -EBADMSG);
	begin_link(RTM_NEWLINK, 7);
	msg_put(&m, IFLA_ADDRESS, bytes, sizeof(bytes));
	CHECK_EQ(parse_link(), -EBADMSG);
	begin_link(RTM_NEWLINK, 7);
	msg_put(&m, IFLA_MTU, bytes, 3);
	CHECK_EQ(parse_link(), -EBADMSG);
	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_MASTER, 0x80000000);
	CHECK_EQ(parse_link(), -EBADMSG);
	begin_link(RTM_NEWLINK, 7);
	msg_put(&m, IFLA_LINKINFO, "\x09\0\1\0x", 5);
	CHECK_EQ(parse_link(), -EBADMSG);
}
