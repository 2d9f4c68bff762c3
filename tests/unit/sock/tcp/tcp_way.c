/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the ways to TCP's peers are kept. */
#include "config.h"

#include "sock/tcp/tcp_way.h"

#include <string.h>

#include "base/hash.h"
#include "sock/tcp/tcp_engine.h"
#include "tests/support/test.h"

enum { SENDERS = 4000 };

static struct tcp_engine engine;

static void setup(uint64_t seed)
{
	memset(&engine, 0, sizeof(engine));
	engine.way_seed = seed;
	for (int i = 0; i < TCP_WAY_BUCKETS; i++)
		list_init(&engine.ways[i]);
}

static unsigned longest(void)
{
	unsigned most = 0;

	for (int i = 0; i < TCP_WAY_BUCKETS; i++) {
		const struct list *link;
		unsigned cnt = 0;

		for (link = engine.ways[i].next; link != &engine.ways[i];
		     link = link->next)
			cnt++;
		most = MAX(most, cnt);
	}
	return most;
}

static struct dst_query from(uint32_t remote)
{
	return (struct dst_query){
		.local = ip_addr_from_v4(htobe32(0x0a000001)),
		.remote = ip_addr_from_v4(htobe32(remote)),
	};
}

/* The place of whoever does not know the seed, and supposes that it is this. */
static uint64_t supposed_place(const struct dst_query *query, uint64_t seed)
{
	uint64_t addrs = (uint64_t)ip_addr_v4(&query->remote) << 32 |
			 ip_addr_v4(&query->local);

	return hash_u64(seed, addrs) % TCP_WAY_BUCKETS;
}

/* Senders who would all be in one list with another seed. */
static void meet_chosen_senders(uint64_t supposed_seed)
{
	unsigned cnt = 0;

	for (uint32_t remote = 0x0b000000; cnt < SENDERS; remote++) {
		struct dst_query query = from(remote);
		struct tcp_way *way;

		if (supposed_place(&query, supposed_seed))
			continue;
		way = tcp_way_get(&engine, &query);
		CHECK(way != NULL);
		CHECK(tcp_way_find(&engine, &query) == way);
		tcp_way_put(way);
		cnt++;
	}
}

TEST(senders_cannot_choose_their_list)
{
	setup(UINT64_C(0x6a09e667f3bcc908));
	meet_chosen_senders(0);
	CHECK(longest() < 40);
}

/* The same where they know it, so that the test above can fail. */
TEST(who_knows_the_seed_fills_a_list)
{
	setup(UINT64_C(0x6a09e667f3bcc908));
	meet_chosen_senders(engine.way_seed);
	CHECK(longest() == SENDERS);
}
