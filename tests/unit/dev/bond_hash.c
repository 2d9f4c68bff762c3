/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* To which port of a bond a frame goes. */
#include "config.h"

#include "dev/bond/bond_hash.h"

#include "tests/support/test.h"
#include "tests/unit/dev/bond_lab.h"

/* Worked out by the formulas of the kernel's document on bonding; words are those of a
 * little-endian machine, as in the kernel. */

enum {
	HASH_ETH = 0x8ff,       /* 55 ^ aa ^ 0800 */
	HASH_SRC = 0x315577,    /* 021122 ^ 334455 */
	HASH_L23 = 0x0a0fae9b,  /* 8ff ^ 0302010a ^ 0907a8c0, folded */
	HASH_L34 = 0x3910de32,  /* 78563412 ^ 0302010a ^ 0907a8c0, folded and halved */
	HASH_NO_PORTS = 0x0507d336,
};

static uint32_t hash(unsigned policy, size_t len)
{
	struct lab_frame frame = lab_make_frame(0x1234);

	return bond_hash(policy, &frame, len);
}

TEST(hash_by_each_policy)
{
	size_t len = sizeof(struct lab_frame);

	CHECK_EQ(hash(BOND_LAYER2, len), HASH_ETH);
	CHECK_EQ(hash(BOND_LAYER23, len), HASH_L23);
	CHECK_EQ(hash(BOND_ENCAP23, len), HASH_L23);
	CHECK_EQ(hash(BOND_LAYER34, len), HASH_L34);
	CHECK_EQ(hash(BOND_ENCAP34, len), HASH_L34);
	CHECK_EQ(hash(BOND_VLAN_SRCMAC, len), HASH_SRC);
	/* one that a later kernel has */
	CHECK_EQ(hash(6, len), HASH_ETH);
}

TEST(pieces_have_no_ports)
{
	static const uint16_t frags[] = { WIRE_IPV4_MF, WIRE_IPV4_MF | 7, 7,
					  WIRE_IPV4_OFFSET };
	struct lab_frame frame = lab_make_frame(0x1234);

	for (size_t i = 0; i < ARRAY_LEN(frags); i++) {
		frame.ip.frag = htobe16(frags[i]);
		CHECK_EQ(bond_hash(BOND_LAYER34, &frame, sizeof(frame)), HASH_NO_PORTS);
		CHECK_EQ(bond_hash(BOND_LAYER23, &frame, sizeof(frame)), HASH_L23);
	}
	frame.ip.frag = htobe16(WIRE_IPV4_DF);
	CHECK_EQ(bond_hash(BOND_LAYER34, &frame, sizeof(frame)), HASH_L34);
}

TEST(ports_stand_behind_the_options)
{
	uint8_t bytes[sizeof(struct lab_frame) + 40] = { 0 };
	struct lab_frame frame = lab_make_frame(0x1234);
	size_t head = sizeof(frame.eth) + sizeof(frame.ip);

	for (uint8_t words = 5; words <= 15; words++) {
		size_t at = sizeof(frame.eth) + words * 4u;

		frame.ip.version_ihl = (uint8_t)(0x40 | words);
		memset(bytes, 0x94, sizeof(bytes));
		memcpy(bytes, &frame, head);
		memcpy(bytes + at, &frame.udp, sizeof(frame.udp));
		CHECK_EQ(bond_hash(BOND_LAYER34, bytes, at + sizeof(frame.udp)), HASH_L34);
		/* they end behind the frame */
		CHECK_EQ(bond_hash(BOND_LAYER34, bytes, at + 3), HASH_NO_PORTS);
	}
}

TEST(short_frames_go_by_their_addresses)
{
	for (size_t len = sizeof(struct wire_eth); len < 34; len++) {
		CHECK_EQ(hash(BOND_LAYER23, len), HASH_ETH);
		CHECK_EQ(hash(BOND_LAYER34, len), HASH_ETH);
		CHECK_EQ(hash(BOND_VLAN_SRCMAC, len), HASH_SRC);
	}
	CHECK_EQ(hash(BOND_LAYER23, 34), HASH_L23);
	CHECK_EQ(hash(BOND_LAYER34, 34), HASH_NO_PORTS);
}
