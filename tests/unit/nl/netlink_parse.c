/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/netlink_parse.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <netinet/in.h>

#include "tests/unit/nl/build.h"

#define ALIGNED __attribute__((aligned(4)))

/* As a kernel sends them (6.18), but for the port. */

/* ip addr add 10.3.0.1 peer 10.3.0.2 dev v0 */
static const uint8_t addr_msg[] ALIGNED = {
	0x4c, 0x00, 0x00, 0x00, 0x14, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x20, 0x80, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x01, 0x00, 0x0a, 0x03, 0x00, 0x02, 0x08, 0x00, 0x02, 0x00,
	0x0a, 0x03, 0x00, 0x01, 0x07, 0x00, 0x03, 0x00, 0x76, 0x30, 0x00, 0x00,
	0x08, 0x00, 0x08, 0x00, 0x80, 0x00, 0x00, 0x00, 0x14, 0x00, 0x06, 0x00,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xd4, 0x40, 0x17, 0x00,
	0xd4, 0x40, 0x17, 0x00,
};

/* ip route add 10.5.0.0/16 via 10.0.0.2 mtu lock 1300 src 10.0.0.1 metric 7
 * tos 0x10 table 1000 */
static const uint8_t route_msg[] ALIGNED = {
	0x60, 0x00, 0x00, 0x00, 0x18, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x10, 0x00, 0x10, 0xfc, 0x03, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0f, 0x00, 0xe8, 0x03, 0x00, 0x00,
	0x08, 0x00, 0x01, 0x00, 0x0a, 0x05, 0x00, 0x00, 0x08, 0x00, 0x06, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x14, 0x00, 0x08, 0x00, 0x08, 0x00, 0x01, 0x00,
	0x04, 0x00, 0x00, 0x00, 0x08, 0x00, 0x02, 0x00, 0x14, 0x05, 0x00, 0x00,
	0x08, 0x00, 0x07, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x08, 0x00, 0x05, 0x00,
	0x0a, 0x00, 0x00, 0x02, 0x08, 0x00, 0x04, 0x00, 0x03, 0x00, 0x00, 0x00,
};

/* ip route add 10.6.0.0/16 nexthop via 10.0.0.2 weight 3
 * nexthop via inet6 fe80::1 dev v0 */
static const uint8_t multipath_msg[] ALIGNED = {
	0x60, 0x00, 0x00, 0x00, 0x18, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x10, 0x00, 0x00, 0xfe, 0x03, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0f, 0x00, 0xfe, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x01, 0x00, 0x0a, 0x06, 0x00, 0x00, 0x34, 0x00, 0x09, 0x00,
	0x10, 0x00, 0x00, 0x02, 0x03, 0x00, 0x00, 0x00, 0x08, 0x00, 0x05, 0x00,
	0x0a, 0x00, 0x00, 0x02, 0x20, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x16, 0x00, 0x12, 0x00, 0x0a, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
};

/* ip rule add not from 10.1.0.0/16 to 10.2.0.0/24 fwmark 5/7 tos 0x08 iif lo
 * oif v0 uidrange 3-9 ipproto udp sport 5 dport 10-20 pref 100 table 1000 */
static const uint8_t rule_msg[] ALIGNED = {
	0x98, 0x00, 0x00, 0x00, 0x20, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x18, 0x10, 0x08, 0xfc, 0x00, 0x00, 0x01,
	0x02, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0f, 0x00, 0xe8, 0x03, 0x00, 0x00,
	0x08, 0x00, 0x0e, 0x00, 0xff, 0xff, 0xff, 0xff, 0x05, 0x00, 0x15, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x03, 0x00, 0x6c, 0x6f, 0x00, 0x00,
	0x07, 0x00, 0x11, 0x00, 0x76, 0x30, 0x00, 0x00, 0x08, 0x00, 0x06, 0x00,
	0x64, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0a, 0x00, 0x05, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x10, 0x00, 0x07, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x14, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x08, 0x00, 0x17, 0x00,
	0x05, 0x00, 0x05, 0x00, 0x06, 0x00, 0x1c, 0x00, 0xff, 0xff, 0x00, 0x00,
	0x08, 0x00, 0x18, 0x00, 0x0a, 0x00, 0x14, 0x00, 0x05, 0x00, 0x16, 0x00,
	0x11, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00, 0x0a, 0x02, 0x00, 0x00,
	0x08, 0x00, 0x02, 0x00, 0x0a, 0x01, 0x00, 0x00,
};

/* ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:22 dev v0 nud reachable */
static const uint8_t neigh_msg[] ALIGNED = {
	0x4c, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x02, 0x00, 0x00, 0x01, 0x08, 0x00, 0x01, 0x00, 0x0a, 0x00, 0x00, 0x02,
	0x0a, 0x00, 0x02, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x22, 0x00, 0x00,
	0x08, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x03, 0x00,
	0x17, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00,
};

#define MSG(bytes) ((const struct nlmsghdr *)(bytes))

static bool is_addr(const struct ip_addr *a, const char *text)
{
	struct ip_addr want = addr(text);

	return ip_addr_eq(a, &want);
}

TEST(an_address_with_a_peer)
{
	struct addr_info info;

	CHECK_EQ(netlink_parse_addr(MSG(addr_msg), &info), 0);
	CHECK(is_addr(&info.local, "10.3.0.1"));
	CHECK(is_addr(&info.prefix, "10.3.0.2"));
	CHECK_EQ(info.prefix_len, IP_PREFIX_MAX);
	CHECK_EQ(info.ifindex, 3);
	CHECK_EQ(info.scope, RT_SCOPE_UNIVERSE);
}

TEST(a_route_with_metrics)
{
	struct netlink_route out;
	const struct route *r = &out.route;

	CHECK_EQ(netlink_parse_route(MSG(route_msg), &out), 0);
	CHECK(is_addr(&r->dst, "10.5.0.0"));
	CHECK_EQ(r->prefix_len, IP_PREFIX_V4 + 16);
	CHECK_EQ(r->table, 1000);
	CHECK_EQ(r->tos, 0x10);
	CHECK_EQ(r->priority, 7);
	CHECK_EQ(r->type, RTN_UNICAST);
	CHECK_EQ(r->mtu, 1300);
	CHECK(r->is_mtu_locked && !r->is_foreign);
	CHECK(is_addr(&r->prefsrc, "10.0.0.1"));
	CHECK_EQ(r->hop_cnt, 1);
	CHECK(is_addr(&r->hops[0].gateway, "10.0.0.2"));
	CHECK_EQ(r->hops[0].ifindex, 3);
}

TEST(a_route_with_several_hops)
{
	struct netlink_route out;

	CHECK_EQ(netlink_parse_route(MSG(multipath_msg), &out), 0);
	CHECK_EQ(out.route.hop_cnt, 2);
	CHECK(is_addr(&out.hops[0].gateway, "10.0.0.2"));
	CHECK_EQ(out.hops[0].weight, 3);
	CHECK(is_addr(&out.hops[1].gateway, "fe80::1"));
	CHECK_EQ(out.hops[1].weight, 1);
	CHECK_EQ(out.hops[1].ifindex, 3);
}

TEST(a_rule_with_everything)
{
	struct policy p;

	CHECK_EQ(netlink_parse_policy(MSG(rule_msg), &p), 0);
	CHECK(p.is_inverted && !p.is_foreign && !p.is_l3mdev);
	CHECK(is_addr(&p.src, "10.1.0.0") && is_addr(&p.dst, "10.2.0.0"));
	CHECK_EQ(p.src_len, IP_PREFIX_V4 + 16);
	CHECK_EQ(p.dst_len, IP_PREFIX_V4 + 24);
	CHECK_EQ(p.mark, 5);
	CHECK_EQ(p.mark_mask, 7);
	CHECK_EQ(p.tos, 8);
	CHECK_STR(p.iif, "lo");
	CHECK_STR(p.oif, "v0");
	CHECK_EQ(p.uid_first, 3);
	CHECK_EQ(p.uid_last, 9);
	CHECK_EQ(p.proto, IPPROTO_UDP);
	CHECK_EQ(p.sport.first, 5);
	CHECK_EQ(p.sport.last, 5);
	CHECK_EQ(p.sport.mask, 0xffff);
	CHECK_EQ(p.dport.first, 10);
	CHECK_EQ(p.dport.last, 20);
	CHECK_EQ(p.dport.mask, 0);
	CHECK_EQ(p.priority, 100);
	CHECK_EQ(p.table, 1000);
	CHECK_EQ(p.action, FR_ACT_TO_TBL);
	CHECK_EQ(p.suppress_len, -1);
	CHECK_EQ(p.suppress_group, -1);
}

TEST(a_neighbour)
{
	static const uint8_t mac[] = { 2, 0, 0, 0, 0, 0x22 };
	struct neigh_info info;

	CHECK_EQ(netlink_parse_neigh(MSG(neigh_msg), &info), 0);
	CHECK(is_addr(&info.addr, "10.0.0.2"));
	CHECK_EQ(info.ifindex, 3);
	CHECK_EQ(info.state, NUD_REACHABLE);
	CHECK_EQ(info.hw_len, 6);
	CHECK_MEM(info.hw_addr, mac, 6);
}

static struct message m;
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
	return netlink_parse_link(&m.head, &link);
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

TEST(kinds_nobody_heard_of)
{
	begin_link(RTM_NEWLINK, 7);
	msg_put_u32(&m, IFLA_MASTER, 4);
	put_kind("a_kind_with_a_very_long_name", NULL, 0);
	CHECK_EQ(parse_link(), 0);
	CHECK_EQ(link.kind, LINK_OTHER);
	CHECK_EQ(link.master_kind, LINK_OTHER);
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
	CHECK_EQ(parse_link(), NETLINK_NOT_OURS);
	/* A wireless event. */
	msg_begin(&m, RTM_NEWLINK, &bare, sizeof(bare));
	msg_put_text(&m, IFLA_IFNAME, "wlan0");
	CHECK_EQ(parse_link(), NETLINK_NOT_OURS);
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

static struct netlink_route out;

static void begin_route(uint8_t len, uint8_t type)
{
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_dst_len = len,
			      .rtm_type = type, .rtm_table = 254 };

	msg_begin(&m, RTM_NEWROUTE, &head, sizeof(head));
}

static int parse_route(void)
{
	return netlink_parse_route(&m.head, &out);
}

TEST(routes_that_are_no_news)
{
	struct rtmsg v6 = { .rtm_family = AF_INET6 };
	struct rtmsg clone = { .rtm_family = AF_INET,
			       .rtm_flags = RTM_F_CLONED };

	msg_begin(&m, RTM_NEWROUTE, &v6, sizeof(v6));
	CHECK_EQ(parse_route(), NETLINK_NOT_OURS);
	msg_begin(&m, RTM_NEWROUTE, &clone, sizeof(clone));
	CHECK_EQ(parse_route(), NETLINK_NOT_OURS);
}

/* What RTM_GETROUTE answers. */
static void begin_answer(uint32_t mtu, uint32_t locks, int expires)
{
	struct rtmsg clone = { .rtm_family = AF_INET, .rtm_dst_len = 32,
			       .rtm_type = RTN_UNICAST,
			       .rtm_flags = RTM_F_CLONED };
	struct rta_cacheinfo info = { .rta_expires = expires };
	struct nlattr *nest;

	msg_begin(&m, RTM_NEWROUTE, &clone, sizeof(clone));
	msg_put_v4(&m, RTA_DST, "10.5.0.1");
	msg_put_v4(&m, RTA_PREFSRC, "10.0.0.1");
	msg_put_u32(&m, RTA_OIF, 3);
	nest = msg_put(&m, RTA_METRICS, NULL, 0);
	msg_put_u32(&m, RTAX_LOCK, locks);
	msg_put_u32(&m, RTAX_MTU, mtu);
	msg_nest_end(&m, nest);
	msg_put(&m, RTA_CACHEINFO, &info, sizeof(info));
}

TEST(what_the_kernel_has_learned_of_a_path)
{
	struct path_mtu_info info;

	begin_answer(552, 1u << RTAX_MTU, 6000);
	CHECK_EQ(netlink_parse_path_mtu(&m.head, &info), 0);
	CHECK(is_addr(&info.dst, "10.5.0.1") && is_addr(&info.src, "10.0.0.1"));
	CHECK_EQ(info.ifindex, 3);
	CHECK_EQ(info.mtu, 552);
	CHECK(info.is_locked);
	/* the route's own */
	begin_answer(1400, 0, 0);
	CHECK_EQ(netlink_parse_path_mtu(&m.head, &info), 0);
	CHECK_EQ(info.mtu, 0);
	CHECK_EQ(netlink_parse_path_mtu(MSG(route_msg), &info),
		 NETLINK_NOT_OURS);
	for (uint32_t len = m.head.nlmsg_len - 1; len >= NLMSG_HDRLEN; len--) {
		m.head.nlmsg_len = len;
		CHECK(netlink_parse_path_mtu(&m.head, &info) <= 0);
	}
}

TEST(routes_we_cannot_follow)
{
	uint16_t encap = 1;

	begin_route(0, RTN_UNICAST);
	CHECK_EQ(parse_route(), 0);
	CHECK(out.route.is_foreign);
	begin_route(0, RTN_UNICAST);
	msg_put_u32(&m, RTA_OIF, 3);
	msg_put(&m, RTA_ENCAP_TYPE, &encap, sizeof(encap));
	CHECK_EQ(parse_route(), 0);
	CHECK(out.route.is_foreign);
	begin_route(0, RTN_BLACKHOLE);
	CHECK_EQ(parse_route(), 0);
	CHECK(!out.route.is_foreign);
}

static void put_hops(unsigned cnt, const struct rtnexthop *hop)
{
	static uint8_t list[(ROUTE_HOPS_MAX + 1) * sizeof(*hop)];

	CHECK(cnt * sizeof(*hop) <= sizeof(list));
	for (unsigned i = 0; i < cnt; i++)
		memcpy(list + i * sizeof(*hop), hop, sizeof(*hop));
	msg_put(&m, RTA_MULTIPATH, list, cnt * sizeof(*hop));
}

TEST(more_hops_than_we_keep)
{
	static struct {
		struct message m;
		uint8_t room[4096];
	} big;
	struct rtnexthop hop = { .rtnh_len = sizeof(hop), .rtnh_ifindex = 3 };
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_type = RTN_UNICAST };
	struct nlattr *attr;
	uint8_t *at;

	msg_begin(&big.m, RTM_NEWROUTE, &head, sizeof(head));
	attr = msg_put(&big.m, RTA_MULTIPATH, NULL, 0);
	at = (uint8_t *)(attr + 1);
	for (int i = 0; i <= ROUTE_HOPS_MAX; i++, at += sizeof(hop))
		memcpy(at, &hop, sizeof(hop));
	attr->nla_len = (uint16_t)(at - (uint8_t *)attr);
	big.m.head.nlmsg_len = (uint32_t)(at - (uint8_t *)&big);
	CHECK_EQ(netlink_parse_route(&big.m.head, &out), 0);
	CHECK_EQ(out.route.hop_cnt, ROUTE_HOPS_MAX);
	CHECK(out.route.is_foreign);
}

TEST(bad_routes)
{
	struct rtnexthop hop = { .rtnh_len = sizeof(hop), .rtnh_ifindex = 3 };

	begin_route(33, RTN_UNICAST);
	CHECK_EQ(parse_route(), -EBADMSG);
	begin_route(8, RTN_UNICAST);
	CHECK_EQ(parse_route(), -EBADMSG);
	msg_put(&m, RTA_DST, "12345", 5);
	CHECK_EQ(parse_route(), -EBADMSG);
	begin_route(0, RTN_UNICAST);
	put_hops(2, &hop);
	CHECK_EQ(parse_route(), 0);
	CHECK_EQ(out.route.hop_cnt, 2);
	hop.rtnh_len = sizeof(hop) + 1;
	begin_route(0, RTN_UNICAST);
	put_hops(1, &hop);
	CHECK_EQ(parse_route(), -EBADMSG);
	hop.rtnh_len = 0;
	begin_route(0, RTN_UNICAST);
	put_hops(1, &hop);
	CHECK_EQ(parse_route(), -EBADMSG);
	begin_route(0, RTN_UNICAST);
	msg_put_u32(&m, RTA_OIF, 3);
	msg_put(&m, RTA_VIA, "\x0a", 1);
	CHECK_EQ(parse_route(), -EBADMSG);
}

TEST(bits_beyond_the_prefix_do_not_count)
{
	begin_route(8, RTN_UNICAST);
	msg_put_v4(&m, RTA_DST, "10.1.2.3");
	msg_put_u32(&m, RTA_OIF, 3);
	CHECK_EQ(parse_route(), 0);
	CHECK(is_addr(&out.route.dst, "10.0.0.0"));
}

static struct policy policy;

static void begin_rule(uint8_t src_len)
{
	struct fib_rule_hdr head = { .family = AF_INET, .src_len = src_len,
				     .table = 254, .action = FR_ACT_TO_TBL };

	msg_begin(&m, RTM_NEWRULE, &head, sizeof(head));
}

static int parse_rule(void)
{
	return netlink_parse_policy(&m.head, &policy);
}

TEST(rules_of_newer_kernels)
{
	uint8_t dscp = 0x2e, mask = 0x0f;

	begin_rule(0);
	msg_put(&m, 25, &dscp, 1);
	CHECK_EQ(parse_rule(), 0);
	CHECK_EQ(policy.dscp, 0xb8);
	CHECK_EQ(policy.dscp_mask, 0xfc);
	msg_put(&m, 30, &mask, 1);
	CHECK_EQ(parse_rule(), 0);
	CHECK_EQ(policy.dscp_mask, 0x3c);
	CHECK(!policy.is_foreign);
	msg_put_u32(&m, 31, 1);
	CHECK_EQ(parse_rule(), 0);
	CHECK(policy.is_foreign);
}

TEST(suppressors)
{
	begin_rule(0);
	msg_put_u32(&m, FRA_SUPPRESS_PREFIXLEN, 0);
	msg_put_u32(&m, FRA_SUPPRESS_IFGROUP, 3);
	CHECK_EQ(parse_rule(), 0);
	CHECK_EQ(policy.suppress_len, IP_PREFIX_V4);
	CHECK_EQ(policy.suppress_group, 3);
	begin_rule(0);
	msg_put_u32(&m, FRA_SUPPRESS_PREFIXLEN, 0x7fffffff);
	CHECK_EQ(parse_rule(), 0);
	CHECK_EQ(policy.suppress_len, IP_PREFIX_MAX);
}

TEST(a_mark_without_a_mask)
{
	begin_rule(0);
	msg_put_u32(&m, FRA_FWMARK, 5);
	CHECK_EQ(parse_rule(), 0);
	CHECK_EQ(policy.mark_mask, UINT32_MAX);
}

TEST(bad_rules)
{
	begin_rule(33);
	CHECK_EQ(parse_rule(), -EBADMSG);
	begin_rule(8);
	CHECK_EQ(parse_rule(), -EBADMSG);
	begin_rule(0);
	msg_put(&m, FRA_SPORT_RANGE, "123", 3);
	CHECK_EQ(parse_rule(), -EBADMSG);
	begin_rule(0);
	msg_put(&m, FRA_UID_RANGE, "1234", 4);
	CHECK_EQ(parse_rule(), -EBADMSG);
	begin_rule(0);
	msg_put(&m, 25, "\x40", 1);
	CHECK_EQ(parse_rule(), -EBADMSG);
}

TEST(bad_addresses_and_neighbours)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 3,
				  .ifa_prefixlen = 33 };
	struct ndmsg proxy = { .ndm_family = AF_INET, .ndm_ifindex = 3,
			       .ndm_flags = NTF_PROXY };
	struct addr_info info;
	struct neigh_info neigh;

	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(netlink_parse_addr(&m.head, &info), -EBADMSG);
	head.ifa_prefixlen = 24;
	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(netlink_parse_addr(&m.head, &info), -EBADMSG);
	head.ifa_family = AF_UNIX;
	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(netlink_parse_addr(&m.head, &info), NETLINK_NOT_OURS);
	msg_begin(&m, RTM_NEWNEIGH, &proxy, sizeof(proxy));
	msg_put_v4(&m, NDA_DST, "10.0.0.1");
	CHECK_EQ(netlink_parse_neigh(&m.head, &neigh), NETLINK_NOT_OURS);
	proxy.ndm_flags = 0;
	msg_begin(&m, RTM_NEWNEIGH, &proxy, sizeof(proxy));
	CHECK_EQ(netlink_parse_neigh(&m.head, &neigh), -EBADMSG);
}

/* Whatever is cut off, nothing behind the end is looked at: a sanitizer would
 * see it in the copy. */
TEST(every_cut_of_every_message)
{
	static const struct {
		const uint8_t *bytes;
		size_t len;
	} whole[] = {
		{ addr_msg, sizeof(addr_msg) },
		{ route_msg, sizeof(route_msg) },
		{ multipath_msg, sizeof(multipath_msg) },
		{ rule_msg, sizeof(rule_msg) },
		{ neigh_msg, sizeof(neigh_msg) },
	};
	struct neigh_info neigh;
	struct addr_info info;

	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		for (size_t len = NLMSG_HDRLEN; len < whole[i].len; len++) {
			struct nlmsghdr *cut = malloc(len);
			int rc;

			CHECK(cut);
			memcpy(cut, whole[i].bytes, len);
			cut->nlmsg_len = (uint32_t)len;
			rc = i == 0   ? netlink_parse_addr(cut, &info)
			     : i < 3  ? netlink_parse_route(cut, &out)
			     : i == 3 ? netlink_parse_policy(cut, &policy)
				      : netlink_parse_neigh(cut, &neigh);
			CHECK(rc == 0 || rc == -EBADMSG);
			if (len < NLMSG_HDRLEN + 8)
				CHECK_EQ(rc, -EBADMSG);
			free(cut);
		}
	}
}
