/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pkt/wire.h"

#include <errno.h>

#include "tests/support/test.h"

static const uint8_t v4_packet[] = {
	0x45, 0x08, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00,
	0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
	0x00, 0x35, 0x04, 0xd2, 0x00, 0x08, 0x00, 0x00,
};

static const uint8_t v6_packet[] = {
	0x60, 0x20, 0x00, 0x00, 0x00, 0x02, 0x06, 0x3f,
	0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
	0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02,
	0xaa, 0xbb,
};

/* A sound copy of v4_packet. */
static void copy_v4(uint8_t *to)
{
	uint16_t check;

	memcpy(to, v4_packet, sizeof(v4_packet));
	check = csum_fold(csum_partial(to, 20, 0));
	memcpy(to + 10, &check, 2);
}

TEST(ipv4_is_read)
{
	uint8_t packet[sizeof(v4_packet) + 4] = { 0 };
	struct wire_ip ip;

	copy_v4(packet);
	/* four bytes of padding follow, as after short Ethernet frames */
	CHECK_EQ(wire_parse_ip(packet, sizeof(packet), &ip), 0);
	CHECK(ip_addr_is_v4(&ip.src));
	CHECK_MEM(&ip.src.byte[12], v4_packet + 12, 4);
	CHECK_MEM(&ip.dst.byte[12], v4_packet + 16, 4);
	CHECK_EQ(ip.proto, WIRE_PROTO_UDP);
	CHECK_EQ(ip.tos, 8);
	CHECK_EQ(ip.ttl, 64);
	CHECK_EQ(ip.header_len, 20);
	CHECK_EQ(ip.payload_len, 8);
	CHECK(!ip.is_fragment);
}

TEST(ipv4_is_built_byte_by_byte)
{
	uint8_t want[sizeof(v4_packet)], got[20];
	struct wire_ip ip;

	copy_v4(want);
	CHECK_EQ(wire_parse_ip(want, sizeof(want), &ip), 0);
	CHECK_EQ(wire_build_ip(got, &ip, 0x1234), 20);
	CHECK_MEM(got, want, 20);
}

TEST(unsound_ipv4_is_refused)
{
	uint8_t packet[sizeof(v4_packet)];
	struct wire_ip ip;

	copy_v4(packet);
	for (size_t len = 0; len < sizeof(packet); len++)
		CHECK_EQ(wire_parse_ip(packet, len, &ip), -EINVAL);
	packet[8]--; /* time to live, so that the checksum is wrong */
	CHECK_EQ(wire_parse_ip(packet, sizeof(packet), &ip), -EINVAL);
	CHECK_EQ(wire_parse_quoted_ip(packet, 20, &ip), 0);
	packet[0] = 0x44; /* a header of 16 bytes */
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), -EINVAL);
	packet[0] = 0x4f; /* one that is longer than the packet */
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), -EINVAL);
	packet[0] = 0x55;
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), -EINVAL);
	packet[0] = 0x45;
	packet[3] = 19; /* shorter than its header */
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), -EINVAL);
}

TEST(fragments_and_options_are_noticed)
{
	uint8_t packet[24 + 4] = { 0x46, 0, 0, 28, 0, 0, 0x20, 0x00, 1, 6 };
	uint16_t check = csum_fold(csum_partial(packet, 24, 0));
	struct wire_ip ip;

	memcpy(packet + 10, &check, 2);
	CHECK_EQ(wire_parse_ip(packet, sizeof(packet), &ip), 0);
	CHECK_EQ(ip.header_len, 24);
	CHECK_EQ(ip.payload_len, 4);
	CHECK(ip.is_fragment);
	wire_put_u16(packet + 6, 0x0001);
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), 0);
	CHECK(ip.is_fragment);
	wire_put_u16(packet + 6, WIRE_IPV4_DF);
	CHECK_EQ(wire_parse_quoted_ip(packet, sizeof(packet), &ip), 0);
	CHECK(!ip.is_fragment);
}

TEST(ipv6_is_read_and_built)
{
	struct wire_ip ip;
	uint8_t got[40];

	CHECK_EQ(wire_parse_ip(v6_packet, sizeof(v6_packet), &ip), 0);
	CHECK_EQ(ip.proto, WIRE_PROTO_TCP);
	CHECK_EQ(ip.tos, 2);
	CHECK_EQ(ip.ttl, 63);
	CHECK_EQ(ip.payload_len, 2);
	CHECK_MEM(ip.src.byte, v6_packet + 8, 16);
	CHECK_MEM(ip.dst.byte, v6_packet + 24, 16);
	CHECK_EQ(wire_build_ip(got, &ip, 9), 40);
	CHECK_MEM(got, v6_packet, 40);
	for (size_t len = 0; len < sizeof(v6_packet); len++)
		CHECK_EQ(wire_parse_ip(v6_packet, len, &ip), -EINVAL);
}

TEST(pseudo_headers_sum_as_specified)
{
	/* RFC 9293 section 3.1: source, destination, zero, protocol, length */
	static const uint8_t v4[] = { 192, 168, 0, 1, 192, 168, 0, 199, 0, 6,
				      0, 25 };
	/* RFC 8200 section 8.1 has length and next header in 32 bits */
	uint8_t v6[40] = { 0 };
	struct ip_addr src, dst;
	__be32 word;

	memcpy(&word, v4, 4);
	src = ip_addr_from_v4(word);
	memcpy(&word, v4 + 4, 4);
	dst = ip_addr_from_v4(word);
	CHECK_EQ(csum_fold(wire_pseudo_sum(&src, &dst, WIRE_PROTO_TCP, 25)),
		 csum_fold(csum_partial(v4, sizeof(v4), 0)));

	memcpy(v6, v6_packet + 8, 32);
	wire_put_u32(v6 + 32, 70000);
	v6[39] = WIRE_PROTO_UDP;
	src = ip_addr_from_v6(v6);
	dst = ip_addr_from_v6(v6 + 16);
	CHECK_EQ(csum_fold(wire_pseudo_sum(&src, &dst, WIRE_PROTO_UDP, 70000)),
		 csum_fold(csum_partial(v6, sizeof(v6), 0)));
}

TEST(structs_lie_over_the_bytes)
{
	static const uint8_t tcp[20] = {
		0x01, 0xbb, 0xc0, 0x01, 1, 2, 3, 4, 5, 6, 7, 8,
		0x50, 0x12, 0xff, 0xfe, 0xab, 0xcd, 0, 9,
	};
	static const uint8_t arp[28] = {
		0, 1, 8, 0, 6, 4, 0, 2, 0, 1, 2, 3, 4, 5, 10, 0, 0, 1,
		6, 7, 8, 9, 10, 11, 10, 0, 0, 2,
	};
	static const uint8_t frame[18] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0x00,
		0x20, 0x05, 0x08, 0x00,
	};
	const struct wire_tcp *t = (const void *)tcp;
	const struct wire_arp *a = (const void *)arp;
	const struct wire_eth *e = (const void *)frame;
	const struct wire_vlan *v = (const void *)(frame + 14);

	CHECK_EQ(be16toh(t->src_port), 443);
	CHECK_EQ(be32toh(t->seq), 0x01020304);
	CHECK_EQ(be32toh(t->ack), 0x05060708);
	CHECK_EQ(t->offset_ae >> 4, 5);
	CHECK_EQ(t->flags, WIRE_TCP_SYN | WIRE_TCP_ACK);
	CHECK_EQ(be16toh(t->window), 0xfffe);
	CHECK_EQ(be16toh(t->urgent), 9);
	CHECK_EQ(be16toh(a->op), 2);
	CHECK_EQ(be32toh(a->target_ip), 0x0a000002);
	CHECK_EQ(be16toh(e->type), WIRE_ETH_VLAN);
	CHECK_EQ(be16toh(v->tci) & 0xfff, 5);
	CHECK_EQ(be16toh(v->type), WIRE_ETH_IPV4);
	CHECK_EQ(wire_get_u16(tcp), 443);
	CHECK_EQ(wire_get_u32(tcp + 4), 0x01020304);
}
