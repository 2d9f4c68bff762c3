/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/udp/udp_way.h"

#include "base/rand.h"
#include "tests/support/test.h"

enum { PAYLOAD_MAX = 256 };

static struct ring ring; /* that leaves checksums to us */
static struct udp_way way = { .dst.ring = &ring };
static uint8_t payload[PAYLOAD_MAX];
static uint8_t frame[sizeof(struct udp_header) + PAYLOAD_MAX];

/* Word by word, as RFC 1071 has it. */
static uint32_t add_words(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t udp_sum(const struct udp_header *header, size_t len)
{
	uint32_t sum = WIRE_PROTO_UDP + (uint32_t)(sizeof(header->udp) + len);

	sum = add_words(sum, &header->ip.src, 8);
	return add_words(sum, &header->udp, sizeof(header->udp) + len);
}

static const struct udp_header *write_one(size_t len)
{
	const struct udp_header *header = (const void *)frame;

	memset(frame, 0xee, sizeof(frame));
	CHECK_EQ(udp_way_write(&way, way.dst.ring, payload, len, frame), sizeof(*header) + len);
	CHECK_EQ(be16toh(header->ip.total_len),
		 sizeof(header->ip) + sizeof(header->udp) + len);
	CHECK_EQ(be16toh(header->udp.len), sizeof(header->udp) + len);
	CHECK_MEM(header + 1, payload, len);
	CHECK_EQ(add_words(0, &header->ip, sizeof(header->ip)), 0xffff);
	CHECK_EQ(udp_sum(header, len), 0xffff);
	CHECK(header->udp.check != 0);
	return header;
}

/* What a way to one peer becomes is what a look-up of the other makes. */
TEST(a_way_turns_to_another_peer)
{
	__be32 other = htobe32(0x0a500102);
	struct udp_way turned;

	way = (struct udp_way){
		.dst.ring = &ring,
		.header = { .ip = { .version_ihl = 0x45,
				    .proto = WIRE_PROTO_UDP,
				    .src = htobe32(0x0a4f0001),
				    .dst = htobe32(0x0a500101) },
			    .udp = { .src_port = htobe16(7001),
				     .dst_port = htobe16(7000) } },
	};
	way.dst.query.remote = ip_addr_from_v4(way.header.ip.dst);
	udp_way_set_len(&way, 64);
	turned = way;
	udp_way_turn(&turned, other, htobe16(53));
	CHECK_EQ(ip_addr_v4(&turned.dst.query.remote), other);
	CHECK_EQ(turned.dst.query.remote_port, htobe16(53));
	way.header.ip.dst = other;
	way.header.udp.dst_port = htobe16(53);
	udp_way_set_len(&way, 64);
	CHECK_MEM(&turned.header, &way.header, sizeof(way.header));
	way = turned;
	for (size_t len = 1; len <= 64; len++)
		CHECK_EQ(write_one(len)->ip.dst, other);
}

/* Lengths one after the other, and all numbers that a datagram can have. */
TEST(sums_are_right)
{
	struct rand rand;
	uint16_t last;

	rand_init(&rand, test_seed);
	for (size_t i = 0; i < sizeof(way.header); i++)
		((uint8_t *)&way.header)[i] = (uint8_t)rand_u32(&rand);
	way.header.ip.proto = WIRE_PROTO_UDP;
	way.header.udp.check = 0;
	udp_way_set_len(&way, 0);
	for (unsigned i = 0; i < 3 * 65536; i++) {
		uint16_t id = way.dst.next_id;
		size_t len = 1 + i % PAYLOAD_MAX;

		payload[rand_u32(&rand) % PAYLOAD_MAX] ^=
			(uint8_t)rand_u32(&rand);
		CHECK_EQ(write_one(len)->ip.id, id);
		CHECK_EQ(way.dst.next_id, (uint16_t)(id + 1));
	}
	/* the two bytes that make the sum 0: it is sent as 0xffff */
	memset(payload, 0, sizeof(payload));
	last = write_one(2)->udp.check;
	memcpy(payload, &last, sizeof(last));
	CHECK_EQ(write_one(2)->udp.check, 0xffff);
}
