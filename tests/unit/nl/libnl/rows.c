/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages to rows: those of a kernel, and those that no kernel sends. */
#include "nl/libnl/rows.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <netinet/in.h>

#include "base/rand.h"
#include "nl/net_feed.h"
#include "tests/unit/nl/build.h"
#include "tests/unit/nl/libnl/read.h"

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

static bool is_addr(const struct ip_addr *a, const char *text)
{
	struct ip_addr want = addr(text);

	return ip_addr_eq(a, &want);
}

TEST(an_address_with_a_peer)
{
	const struct addr_info *info = &room.row.addr;

	CHECK_EQ(read_row(MSG(addr_msg), NET_ROW_ADDR), 0);
	CHECK(is_addr(&info->local, "10.3.0.1"));
	CHECK(is_addr(&info->prefix, "10.3.0.2"));
	CHECK_EQ(info->prefix_len, IP_PREFIX_MAX);
	CHECK_EQ(info->ifindex, 3);
	CHECK_EQ(info->scope, RT_SCOPE_UNIVERSE);
}

TEST(a_route_with_metrics)
{
	const struct route *r = &room.row.route;

	CHECK_EQ(read_row(MSG(route_msg), NET_ROW_ROUTE), 0);
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
	CHECK_EQ(read_row(MSG(multipath_msg), NET_ROW_ROUTE), 0);
	CHECK_EQ(room.row.route.hop_cnt, 2);
	CHECK(is_addr(&room.hops[0].gateway, "10.0.0.2"));
	CHECK_EQ(room.hops[0].weight, 3);
	CHECK(is_addr(&room.hops[1].gateway, "fe80::1"));
	CHECK_EQ(room.hops[1].weight, 1);
	CHECK_EQ(room.hops[1].ifindex, 3);
}

TEST(a_rule_with_everything)
{
	struct policy p;

	CHECK_EQ(read_row(MSG(rule_msg), NET_ROW_POLICY), 0);
	p = room.row.policy;
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

	CHECK_EQ(read_row(MSG(neigh_msg), NET_ROW_NEIGH), 0);
	info = room.row.neigh;
	CHECK(is_addr(&info.addr, "10.0.0.2"));
	CHECK_EQ(info.ifindex, 3);
	CHECK_EQ(info.state, NUD_REACHABLE);
	CHECK_EQ(info.hw_len, 6);
	CHECK_MEM(info.hw_addr, mac, 6);
}

static void begin_route(uint8_t len, uint8_t type)
{
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_dst_len = len,
			      .rtm_type = type, .rtm_table = 254 };

	msg_begin(&m, RTM_NEWROUTE, &head, sizeof(head));
}

static int parse_route(void)
{
	return read_row(&m.head, NET_ROW_ROUTE);
}

TEST(routes_that_are_no_news)
{
	struct rtmsg v6 = { .rtm_family = AF_INET6 };
	struct rtmsg clone = { .rtm_family = AF_INET,
			       .rtm_flags = RTM_F_CLONED };

	msg_begin(&m, RTM_NEWROUTE, &v6, sizeof(v6));
	CHECK_EQ(parse_route(), ROWS_NONE);
	msg_begin(&m, RTM_NEWROUTE, &clone, sizeof(clone));
	CHECK_EQ(parse_route(), ROWS_NONE);
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

static int parse_path(void)
{
	return read_row(&m.head, NET_ROW_PATH_MTU);
}

TEST(what_the_kernel_has_learned_of_a_path)
{
	const struct path_mtu_info *info = &room.row.path_mtu;

	begin_answer(552, 1u << RTAX_MTU, 6000);
	CHECK_EQ(parse_path(), 0);
	CHECK(is_addr(&info->dst, "10.5.0.1"));
	CHECK(is_addr(&info->src, "10.0.0.1"));
	CHECK_EQ(info->ifindex, 3);
	CHECK_EQ(info->mtu, 552);
	CHECK(info->is_locked);
	/* the route's own */
	begin_answer(1400, 0, 0);
	CHECK_EQ(parse_path(), 0);
	CHECK_EQ(info->mtu, 0);
	for (uint32_t len = m.head.nlmsg_len - 1; len >= NLMSG_HDRLEN; len--) {
		m.head.nlmsg_len = len;
		CHECK(parse_path() <= 0);
	}
}

TEST(routes_we_cannot_follow)
{
	uint16_t encap = 1;

	begin_route(0, RTN_UNICAST);
	CHECK_EQ(parse_route(), 0);
	CHECK(room.row.route.is_foreign);
	begin_route(0, RTN_UNICAST);
	msg_put_u32(&m, RTA_OIF, 3);
	msg_put(&m, RTA_ENCAP_TYPE, &encap, sizeof(encap));
	CHECK_EQ(parse_route(), 0);
	CHECK(room.row.route.is_foreign);
	begin_route(0, RTN_BLACKHOLE);
	CHECK_EQ(parse_route(), 0);
	CHECK(!room.row.route.is_foreign);
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
	CHECK_EQ(read_row(&big.m.head, NET_ROW_ROUTE), 0);
	CHECK_EQ(room.row.route.hop_cnt, ROUTE_HOPS_MAX);
	CHECK(room.row.route.is_foreign);
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
	CHECK_EQ(room.row.route.hop_cnt, 2);
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
	CHECK(is_addr(&room.row.route.dst, "10.0.0.0"));
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
	int rc = read_row(&m.head, NET_ROW_POLICY);

	policy = room.row.policy;
	return rc;
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

	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(read_row(&m.head, NET_ROW_ADDR), -EBADMSG);
	head.ifa_prefixlen = 24;
	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(read_row(&m.head, NET_ROW_ADDR), -EBADMSG);
	head.ifa_family = AF_UNIX;
	msg_begin(&m, RTM_NEWADDR, &head, sizeof(head));
	CHECK_EQ(read_row(&m.head, NET_ROW_ADDR), ROWS_NONE);
	msg_begin(&m, RTM_NEWNEIGH, &proxy, sizeof(proxy));
	msg_put_v4(&m, NDA_DST, "10.0.0.1");
	CHECK_EQ(read_row(&m.head, NET_ROW_NEIGH), ROWS_NONE);
	proxy.ndm_flags = 0;
	msg_begin(&m, RTM_NEWNEIGH, &proxy, sizeof(proxy));
	CHECK_EQ(read_row(&m.head, NET_ROW_NEIGH), -EBADMSG);
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
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		for (size_t len = NLMSG_HDRLEN; len < whole[i].len; len++) {
			struct nlmsghdr *cut = malloc(len);
			int rc;

			CHECK(cut);
			memcpy(cut, whole[i].bytes, len);
			cut->nlmsg_len = (uint32_t)len;
			rc = read_as(cut, false);
			CHECK(rc == 0 || rc == -EBADMSG);
			if (len < NLMSG_HDRLEN + 8)
				CHECK_EQ(rc, -EBADMSG);
			free(cut);
		}
	}
}

/* -- messages and the view ------------------------------------------------------ */

static struct net_view view;
static unsigned stale;

static int apply(bool is_dump)
{
	int rc = read_as(&m.head, is_dump);

	stale = 0;
	return rc ? rc : net_feed_take(&view, &room.row, &stale);
}

static void make_link(uint16_t type, unsigned flags)
{
	struct ifinfomsg head = { .ifi_index = 3, .ifi_flags = flags };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_text(&m, IFLA_IFNAME, "eth3");
	msg_put_u32(&m, IFLA_MTU, 1500);
}

static void make_addr(uint16_t type)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 3,
				  .ifa_prefixlen = 24 };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_v4(&m, IFA_LOCAL, "10.0.0.1");
}

static void make_route(uint16_t type, uint16_t flags, const char *gateway)
{
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_table = 254,
			      .rtm_type = RTN_UNICAST };

	msg_begin(&m, type, &head, sizeof(head));
	m.head.nlmsg_flags = flags;
	msg_put_u32(&m, RTA_OIF, 3);
	msg_put_v4(&m, RTA_GATEWAY, gateway);
}

static void make_rule(uint16_t type)
{
	struct fib_rule_hdr head = { .family = AF_INET, .table = 254,
				     .action = FR_ACT_TO_TBL };

	msg_begin(&m, type, &head, sizeof(head));
}

static void make_neigh(uint16_t type, uint16_t state)
{
	struct ndmsg head = { .ndm_family = AF_INET, .ndm_ifindex = 3,
			      .ndm_state = state };

	msg_begin(&m, type, &head, sizeof(head));
	msg_put_v4(&m, NDA_DST, "10.0.0.2");
	msg_put(&m, NDA_LLADDR, "\2\0\0\0\0\2", 6);
}

static void make_netconf(uint16_t type, int ifindex, uint32_t rp_filter)
{
	struct netconfmsg conf = { .ncm_family = AF_INET };

	msg_begin(&m, type, &conf, sizeof(conf));
	msg_put_u32(&m, NETCONFA_IFINDEX, (uint32_t)ifindex);
	if (type == RTM_NEWNETCONF)
		msg_put_u32(&m, NETCONFA_RP_FILTER, rp_filter);
}


TEST(settings_of_an_interface)
{
	const struct netconf_info *conf = &room.row.netconf;

	make_netconf(RTM_NEWNETCONF, 2, 1);
	CHECK_EQ(read_row(&m.head, NET_ROW_NETCONF), 0);
	CHECK_EQ(conf->ifindex, 2);
	CHECK_EQ(conf->rp_filter, 1);
	CHECK(!conf->has_linkdown && !room.row.is_gone);
	msg_put_u32(&m, NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, 1);
	CHECK_EQ(read_row(&m.head, NET_ROW_NETCONF), 0);
	CHECK(conf->has_linkdown);
	make_netconf(RTM_DELNETCONF, NETCONFA_IFINDEX_ALL, 0);
	CHECK_EQ(read_row(&m.head, NET_ROW_NETCONF), 0);
	CHECK_EQ(conf->ifindex, RPF_ALL);
	CHECK_EQ(conf->rp_filter, -1);
	CHECK(room.row.is_gone);
	msg_begin(&m, RTM_NEWNETCONF, "", 0);
	CHECK_EQ(read_as(&m.head, false), -EBADMSG);
	msg_begin(&m, RTM_NEWNETCONF, "\x0a\0\0", 4);
	CHECK_EQ(read_as(&m.head, false), ROWS_NONE);
}

TEST(messages_about_something_else)
{
	msg_begin(&m, RTM_NEWQDISC, "abc", 3);
	CHECK_EQ(read_as(&m.head, false), ROWS_NONE);
	msg_begin(&m, RTM_DELNEXTHOP, "", 0);
	CHECK_EQ(read_row(&m.head, NET_ROW_NEXTHOP), 0);
	CHECK(room.row.is_gone);
}

static char order[128];

static void add_gateway(void *ctx UNUSED, const struct route *route)
{
	char text[IP_ADDR_TEXT_SIZE];

	strcat(order, ip_addr_format(&route->hops[0].gateway, text));
	strcat(order, " ");
}

static const char *order_of_routes(void)
{
	order[0] = '\0';
	route_tab_visit(&view.routes, add_gateway, NULL);
	return order;
}

TEST(flags_of_a_route_say_where_it_went)
{
	net_view_init(&view, 0);
	make_route(RTM_NEWROUTE, NLM_F_CREATE, "10.0.0.1");
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, NLM_F_CREATE, "10.0.0.2");
	CHECK_EQ(apply(false), 0);
	make_route(RTM_NEWROUTE, NLM_F_APPEND, "10.0.0.3");
	CHECK_EQ(apply(false), 0);
	CHECK_STR(order_of_routes(), "10.0.0.2 10.0.0.1 10.0.0.3 ");
	make_route(RTM_NEWROUTE, NLM_F_REPLACE, "10.0.0.4");
	CHECK_EQ(apply(false), 0);
	CHECK_STR(order_of_routes(), "10.0.0.4 10.0.0.1 10.0.0.3 ");
	make_route(RTM_NEWROUTE, NLM_F_MULTI, "10.0.0.5");
	CHECK_EQ(apply(true), 0);
	CHECK_STR(order_of_routes(), "10.0.0.4 10.0.0.1 10.0.0.3 10.0.0.5 ");
	net_view_destroy(&view);
}

/* One of the messages that a kernel may send. */
static void make_any(unsigned which)
{
	bool is_new = which % 2;

	switch (which / 2) {
	case 0:
		make_link(is_new ? RTM_NEWLINK : RTM_DELLINK, IFF_UP);
		break;
	case 1:
		make_addr(is_new ? RTM_NEWADDR : RTM_DELADDR);
		break;
	case 2:
		make_route(is_new ? RTM_NEWROUTE : RTM_DELROUTE, 0,
			   "10.0.0.2");
		break;
	case 3:
		make_rule(is_new ? RTM_NEWRULE : RTM_DELRULE);
		break;
	default:
		make_neigh(is_new ? RTM_NEWNEIGH : RTM_DELNEIGH,
			   NUD_REACHABLE);
	}
}

enum { ANY_CNT = 10 };

/* Everything once, as after an overrun. */
static void read_all(void)
{
	static const unsigned news[] = { 1, 7, 3, 5, 9 };

	for (int part = 0; part < NET_PARTS; part++)
		net_feed_begin(&view, (enum net_part)part);
	for (size_t i = 0; i < ARRAY_LEN(news); i++) {
		make_any(news[i]);
		CHECK_EQ(apply(true), 0);
	}
	for (int part = 0; part < NET_PARTS; part++)
		net_feed_end(&view, (enum net_part)part);
}

/* Whatever came in whatever order, whole or cut: the next reading counts. */
TEST(disorder_is_forgotten_at_the_next_reading)
{
	struct net_flow flow = { .dst = addr("10.9.9.9"), .proto = 17 };
	struct net_path path;
	struct rand rand;

	rand_init(&rand, test_seed);
	for (int round = 0; round < 2000; round++) {
		net_view_init(&view, 0);
		for (int i = 0; i < 30; i++) {
			make_any((unsigned)rand_below(&rand, ANY_CNT));
			if (rand_below(&rand, 4) == 0)
				m.head.nlmsg_len = (uint32_t)rand_between(
					&rand, NLMSG_HDRLEN, m.head.nlmsg_len);
			(void)!apply(rand_below(&rand, 4) == 0);
		}
		read_all();
		CHECK_EQ(view.links.by_index.cnt, 1);
		CHECK_EQ(view.addrs.by_local.cnt, 1);
		CHECK_EQ(view.routes.route_cnt, 1);
		CHECK_EQ(view.policies.policy_cnt, 1);
		CHECK_EQ(net_view_route(&view, &flow, &path), 0);
		CHECK_EQ(path.ifindex, 3);
		CHECK(path.has_gateway);
		net_view_destroy(&view);
	}
}

