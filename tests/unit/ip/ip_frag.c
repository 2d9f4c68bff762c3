/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ip/ip_frag.h"

#include <errno.h>

#include "base/rand.h"
#include "tests/support/test.h"

static struct wire_ipv4 header = {
	.version_ihl = 0x45,
	.tos = 0x10,
	.ttl = 64,
	.proto = WIRE_PROTO_UDP,
};
static struct ip_frag_walk walk;
static struct ip_frag frag;

static uint16_t frag_field(void)
{
	return be16toh(frag.header.frag);
}

static void set_up(void)
{
	header.src = htobe32(0x0a000001);
	header.dst = htobe32(0x0a000002);
	header.id = htobe16(0x1234);
	header.frag = 0;
}

/* The fragments of `len` bytes cover them once, in order, and each header is one a
 * receiver takes. */
static void check_all(uint32_t len, uint32_t mtu)
{
	uint32_t at = 0, cnt = 0;

	CHECK_EQ(ip_frag_begin(&walk, &header, len, mtu), 0);
	while (ip_frag_next(&walk, &frag)) {
		bool is_last = at + frag.len == len;

		CHECK_EQ(frag.offset, at);
		CHECK_EQ(be16toh(frag.header.total_len), 20 + frag.len);
		CHECK(20 + frag.len <= mtu);
		CHECK_EQ(frag_field() & WIRE_IPV4_OFFSET, at / 8);
		CHECK_EQ(at % 8, 0);
		CHECK_EQ(!!(frag_field() & WIRE_IPV4_MF), !is_last);
		CHECK_EQ(csum_fold(csum_partial(&frag.header, 20, 0)), 0);
		CHECK_EQ(frag.header.id, header.id);
		CHECK_EQ(frag.header.tos, header.tos);
		CHECK_EQ(frag.header.src, header.src);
		at += frag.len;
		cnt++;
	}
	CHECK_EQ(at, len);
	CHECK_EQ(cnt, ip_frag_cnt(&walk));
}

TEST(what_fits_stays_whole)
{
	set_up();
	check_all(1480, 1500);
	CHECK_EQ(ip_frag_cnt(&walk), 1);
	header.frag = htobe16(WIRE_IPV4_DF);
	check_all(1480, 1500);
	CHECK_EQ(frag_field(), WIRE_IPV4_DF);
}

TEST(nothing_is_one_packet)
{
	set_up();
	check_all(0, 1500);
	CHECK_EQ(ip_frag_begin(&walk, &header, 0, 1500), 0);
	CHECK(ip_frag_next(&walk, &frag));
	CHECK(!ip_frag_next(&walk, &frag));
}

TEST(one_byte_more_makes_two)
{
	set_up();
	check_all(1481, 1500);
	CHECK_EQ(ip_frag_cnt(&walk), 2);
	CHECK_EQ(ip_frag_begin(&walk, &header, 1481, 1500), 0);
	CHECK(ip_frag_next(&walk, &frag));
	CHECK_EQ(frag.len, 1480);
	CHECK_EQ(frag_field(), WIRE_IPV4_MF);
	CHECK(ip_frag_next(&walk, &frag));
	CHECK_EQ(frag.len, 1);
	CHECK_EQ(frag_field(), 1480 / 8);
}

TEST(pieces_are_multiples_of_eight)
{
	set_up();
	CHECK_EQ(ip_frag_begin(&walk, &header, 3000, 1501), 0);
	CHECK(ip_frag_next(&walk, &frag));
	CHECK_EQ(frag.len, 1480);
	check_all(3000, 1501);
}

TEST(longest_datagram_and_shortest_link)
{
	set_up();
	check_all(65515, 68);
	CHECK_EQ(ip_frag_begin(&walk, &header, 65516, 1500), -EMSGSIZE);
	CHECK_EQ(ip_frag_begin(&walk, &header, 100, 67), -EINVAL);
	/* Larger than any packet can be, on a link that could carry it. */
	CHECK_EQ(ip_frag_begin(&walk, &header, 65516, 70000), -EMSGSIZE);
}

TEST(what_may_not_be_cut_is_not)
{
	set_up();
	header.frag = htobe16(WIRE_IPV4_DF);
	CHECK_EQ(ip_frag_begin(&walk, &header, 1481, 1500), -EMSGSIZE);
}

TEST(random_lengths_and_links)
{
	struct rand dice;

	set_up();
	rand_init(&dice, test_seed);
	for (int i = 0; i < 5000; i++)
		check_all((uint32_t)rand_below(&dice, 65516),
			  (uint32_t)rand_between(&dice, 68, 9100));
}

/* The example of a checksum that can be done by hand. */
TEST(udp_checksum)
{
	static const uint8_t payload[] = { 1, 2, 3 };
	struct wire_udp udp = {
		.src_port = htobe16(1000), .dst_port = htobe16(2000),
		.len = htobe16(sizeof(udp) + sizeof(payload)),
		.check = 0x7777, /* is not looked at */
	};
	uint32_t sum = csum_partial(payload, sizeof(payload), 0);
	/* both addresses, protocol, length twice, ports, payload */
	uint32_t words = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 11 + 11 +
			 1000 + 2000 + 0x0102 + 0x0300;

	set_up();
	CHECK_EQ(be16toh(ip_udp_check(&header, &udp, sum)),
		 (uint16_t)~words);
}

TEST(udp_checksum_is_never_none)
{
	struct wire_udp udp = { .len = htobe16(10) };
	uint16_t word;
	uint32_t zeros = 0;

	set_up();
	for (uint32_t i = 0; i < 0x10000; i++) {
		word = (uint16_t)i;
		zeros += ip_udp_check(&header, &udp,
				      csum_partial(&word, 2, 0)) == 0xffff;
		CHECK(ip_udp_check(&header, &udp, csum_partial(&word, 2, 0)));
	}
	CHECK_EQ(zeros, 1);
}
