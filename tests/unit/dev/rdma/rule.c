/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flow rules against the bytes of the command. */
#include "config.h"

#include <errno.h>

#include "dev/rdma/rule.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

static const uint8_t mac[6] = { 0x02, 1, 2, 3, 4, 5 };
static struct rule_attr attr;

static struct flow_rule to_port(uint16_t port)
{
	return (struct flow_rule){
		.dst = ip_addr_from_v4(htobe32(0x0a4e0001)),
		.dst_port = htobe16(port),
		.proto = WIRE_PROTO_UDP,
	};
}

TEST(rule_of_a_port)
{
	static const uint8_t expected[] = {
		/* Ethernet: type, size; to, from, type, tag; the same as masks */
		0x20, 0, 0, 0, 40, 0,
		2, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0x08, 0x00, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff,
		0xff, 0, 0, 0, 0,
		/* IPv4: from, to */
		0x30, 0, 0, 0, 24, 0, 0, 0,
		0, 0, 0, 0, 10, 78, 0, 1,
		0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
		/* UDP: to, from */
		0x41, 0, 0, 0, 16, 0, 0x1b, 0x58, 0, 0, 0xff, 0xff, 0, 0, 0, 0,
		/* the tag */
		0x00, 0x10, 0, 0, 12, 0, 0, 0, 0x56, 0x34, 0x12, 0,
	};
	struct flow_rule rule = to_port(7000);

	CHECK_EQ(rule_build(&rule, mac, 2, 0, 0x123456, &attr), 0);
	CHECK_EQ(attr.head.type, IBV_FLOW_ATTR_NORMAL);
	CHECK_EQ(attr.head.size, sizeof(attr));
	CHECK_EQ(attr.head.num_of_specs, 4);
	CHECK_EQ(attr.head.port, 2);
	CHECK_EQ(attr.head.priority, 3);
	CHECK_EQ(sizeof(expected), sizeof(attr) - sizeof(attr.head));
	CHECK_MEM(&attr.eth, expected, sizeof(expected));
}

/* What names more goes first. */
TEST(connected_goes_first)
{
	struct flow_rule rule = to_port(80);

	rule.src = ip_addr_from_v4(htobe32(0x0a4e0002));
	rule.src_port = htobe16(5000);
	rule.proto = WIRE_PROTO_TCP;
	CHECK_EQ(rule_build(&rule, mac, 1, 0, 1, &attr), 0);
	CHECK_EQ(attr.head.priority, 2);
	CHECK_EQ(attr.ports.type, IBV_FLOW_SPEC_TCP);
	CHECK_EQ(attr.ports.val.src_port, htobe16(5000));
	CHECK_EQ(attr.ports.mask.src_port, 0xffff);
	CHECK_EQ(attr.ipv4.val.src_ip, htobe32(0x0a4e0002));
	CHECK_EQ(attr.ipv4.mask.src_ip, UINT32_MAX);
}

TEST(without_a_tag)
{
	struct flow_rule rule = to_port(80);

	CHECK_EQ(rule_build(&rule, mac, 1, 0, 0, &attr), 0);
	CHECK_EQ(attr.head.num_of_specs, 3);
	CHECK_EQ(attr.head.size, sizeof(attr) - sizeof(attr.tag));
}

TEST(what_a_card_cannot_say)
{
	struct flow_rule rule = to_port(80);

	rule.verdict = FLOW_TO_KERNEL;
	CHECK_EQ(rule_build(&rule, mac, 1, 0, 1, &attr), -EOPNOTSUPP);
	rule = to_port(80);
	rule.proto = WIRE_PROTO_ICMP;
	CHECK_EQ(rule_build(&rule, mac, 1, 0, 1, &attr), -EOPNOTSUPP);
	rule = to_port(80);
	rule.dst.byte[0] = 0x20;
	CHECK_EQ(rule_build(&rule, mac, 1, 0, 1, &attr), -EOPNOTSUPP);
	rule = to_port(80);
	rule.src.byte[0] = 0x20;
	CHECK_EQ(rule_build(&rule, mac, 1, 0, 1, &attr), -EOPNOTSUPP);
}

/* The id of the tag, whatever its priority. */
TEST(rule_of_a_vlan)
{
	static const uint8_t expected[] = {
		2, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0x08, 0x00, 0x0f, 0xfe,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff,
		0xff, 0x0f, 0xff,
	};
	struct flow_rule rule = to_port(7000);

	CHECK_EQ(rule_build(&rule, mac, 1, 4094, 1, &attr), 0);
	CHECK_MEM(&attr.eth.val, expected, sizeof(expected));
	/* before any rule without a tag, which takes such frames, too */
	CHECK_EQ(attr.head.priority, 1);
	rule.src = rule.dst;
	CHECK_EQ(rule_build(&rule, mac, 1, 4094, 1, &attr), 0);
	CHECK_EQ(attr.head.priority, 0);
}
