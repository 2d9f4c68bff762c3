/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pkt/flow_key.h"

#include "tests/support/test.h"

static struct flow_key key_of(uint32_t remote, uint16_t port)
{
	return (struct flow_key){
		.local = ip_addr_from_v4((__be32)0x0100000a),
		.remote = ip_addr_from_v4((__be32)remote),
		.local_port = 80,
		.remote_port = port,
	};
}

TEST(every_member_counts)
{
	struct flow_key a = key_of(7, 1000), b = a;

	CHECK(flow_key_eq(&a, &b));
	CHECK(flow_key_hash(&a, 5) == flow_key_hash(&b, 5));
	CHECK(flow_key_hash(&a, 5) != flow_key_hash(&a, 6));
	b.remote_port++;
	CHECK(!flow_key_eq(&a, &b));
	CHECK(flow_key_hash(&a, 5) != flow_key_hash(&b, 5));
	b = a;
	b.local_port++;
	CHECK(!flow_key_eq(&a, &b));
	CHECK(flow_key_hash(&a, 5) != flow_key_hash(&b, 5));
	b = a;
	b.remote.byte[0] = 1;
	CHECK(!flow_key_eq(&a, &b));
	CHECK(flow_key_hash(&a, 5) != flow_key_hash(&b, 5));
	b = a;
	b.local.byte[15] ^= 1;
	CHECK(!flow_key_eq(&a, &b));
	CHECK(flow_key_hash(&a, 5) != flow_key_hash(&b, 5));
}

/* Neighbouring addresses and ports, as clients have them, fill a table evenly. */
TEST(neighbours_spread)
{
	unsigned buckets[1024] = { 0 };

	for (uint32_t host = 0; host < 64; host++) {
		for (uint16_t port = 0; port < 1024; port++) {
			struct flow_key key = key_of(host << 24, port);

			buckets[flow_key_hash(&key, test_seed) & 1023]++;
		}
	}
	/* 64 on average; chance alone goes from about 36 to 96 */
	for (size_t i = 0; i < ARRAY_LEN(buckets); i++)
		CHECK(buckets[i] > 20 && buckets[i] < 120);
}
