/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ip/ip_icmp.h"

#include <errno.h>
#include <stdlib.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

/* Fragmentation needed, next hop 1400, about a segment 10.0.0.1:1000 ->
 * 10.0.0.2:80, sequence number 0x01020304. Checksums are filled in. */
static const uint8_t example[] = {
	3, 4, 0, 0, 0, 0, 0x05, 0x78,
	0x45, 0, 0x05, 0xdc, 0, 1, 0x40, 0, 64, 6, 0, 0,
	10, 0, 0, 1, 10, 0, 0, 2,
	0x03, 0xe8, 0, 80, 1, 2, 3, 4,
};
static uint8_t msg[sizeof(example) + 8];
static struct ip_icmp icmp;

static int parse(size_t len)
{
	uint16_t check;

	msg[2] = msg[3] = 0;
	check = csum_fold(csum_partial(msg, len, 0));
	memcpy(&msg[2], &check, sizeof(check));
	return ip_icmp_parse(msg, len, &icmp);
}

static void set_up(uint8_t type, uint8_t code)
{
	memset(msg, 0, sizeof(msg));
	memcpy(msg, example, sizeof(example));
	msg[0] = type;
	msg[1] = code;
}

static int error_of(uint8_t type, uint8_t code)
{
	set_up(type, code);
	CHECK_EQ(parse(sizeof(example)), 0);
	return icmp.error;
}

TEST(fragmentation_needed)
{
	set_up(3, 4);
	CHECK_EQ(parse(sizeof(example)), 0);
	CHECK_EQ(icmp.error, -EMSGSIZE);
	CHECK_EQ(icmp.mtu, 1400);
	CHECK(!icmp.is_hard);
	CHECK_EQ(icmp.proto, WIRE_PROTO_TCP);
	CHECK_EQ(icmp.seq, 0x01020304);
	CHECK_EQ(icmp.quoted_len, 1500);
	CHECK_EQ(be32toh(ip_addr_v4(&icmp.key.local)), 0x0a000001);
	CHECK_EQ(be32toh(ip_addr_v4(&icmp.key.remote)), 0x0a000002);
	CHECK_EQ(be16toh(icmp.key.local_port), 1000);
	CHECK_EQ(be16toh(icmp.key.remote_port), 80);
	CHECK_EQ(icmp.key.zero, 0);
}

TEST(errors_are_linuxs)
{
	CHECK_EQ(error_of(3, 0), -ENETUNREACH);
	CHECK(!icmp.is_hard);
	CHECK_EQ(error_of(3, 1), -EHOSTUNREACH);
	CHECK_EQ(error_of(3, 2), -ENOPROTOOPT);
	CHECK(icmp.is_hard);
	CHECK_EQ(error_of(3, 3), -ECONNREFUSED);
	CHECK(icmp.is_hard);
	CHECK_EQ(icmp.mtu, 0);
	CHECK_EQ(error_of(3, 13), -EHOSTUNREACH);
	CHECK(icmp.is_hard);
	CHECK_EQ(error_of(11, 0), -EHOSTUNREACH);
	CHECK(!icmp.is_hard);
	CHECK_EQ(error_of(12, 0), -EPROTO);
}

TEST(what_is_no_error)
{
	static const uint8_t types[] = { 0, 4, 5, 8, 9, 10, 13 };

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		set_up(types[i], 0);
		CHECK_EQ(parse(sizeof(example)), -ENOMSG);
	}
	set_up(3, 16);
	CHECK_EQ(parse(sizeof(example)), -ENOMSG);
}

TEST(about_udp)
{
	set_up(3, 3);
	msg[17] = WIRE_PROTO_UDP;
	CHECK_EQ(parse(sizeof(example)), 0);
	CHECK_EQ(icmp.proto, WIRE_PROTO_UDP);
	CHECK_EQ(icmp.seq, 0);
}

TEST(about_something_else)
{
	set_up(3, 3);
	msg[17] = WIRE_PROTO_ICMP;
	CHECK_EQ(parse(sizeof(example)), -ENOMSG);
	/* A fragment without ports. */
	set_up(3, 3);
	msg[15] = 1;
	CHECK_EQ(parse(sizeof(example)), -ENOMSG);
	/* The first one has them. */
	set_up(3, 3);
	msg[14] = 0x20;
	CHECK_EQ(parse(sizeof(example)), 0);
}

TEST(quoted_options_are_skipped)
{
	set_up(3, 3);
	msg[8] = 0x46;
	memmove(&msg[32], &msg[28], 8);
	CHECK_EQ(parse(sizeof(example) + 4), 0);
	CHECK_EQ(be16toh(icmp.key.local_port), 1000);
}

TEST(nonsense_is_refused)
{
	set_up(3, 4);
	CHECK_EQ(parse(sizeof(example)), 0);
	msg[5] ^= 1;
	CHECK_EQ(ip_icmp_parse(msg, sizeof(example), &icmp), -EINVAL);
	/* A header longer than what is quoted, or than itself. */
	set_up(3, 4);
	msg[8] = 0x4f;
	CHECK_EQ(parse(sizeof(example)), -EINVAL);
	msg[8] = 0x44;
	CHECK_EQ(parse(sizeof(example)), -EINVAL);
	set_up(3, 4);
	msg[8] = 0x15;
	CHECK_EQ(parse(sizeof(example)), -EINVAL);
	/* A packet that had no room for ports. */
	set_up(3, 4);
	msg[10] = 0;
	msg[11] = 27;
	CHECK_EQ(parse(sizeof(example)), -EINVAL);
}

TEST(every_cut)
{
	for (size_t len = 0; len < sizeof(example); len++) {
		uint8_t *cut = malloc(len + 1);
		uint16_t check;

		CHECK(cut);
		memcpy(cut, example, len);
		if (len >= 4) {
			check = csum_fold(csum_partial(cut, len, 0));
			memcpy(&cut[2], &check, sizeof(check));
		}
		CHECK(ip_icmp_parse(cut, len, &icmp) == -EINVAL);
		free(cut);
	}
}
