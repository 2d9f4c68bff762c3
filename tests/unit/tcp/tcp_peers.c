/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tcp/tcp_peers.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "tests/support/test.h"

enum { PLACES = 64 };

static struct tcp_peer places[PLACES];
static struct tcp_peers peers;
static struct ip_addr local;

static void begin(void)
{
	memset(places, 0, sizeof(places));
	peers = (struct tcp_peers){ .places = places, .cnt = PLACES,
				    .hash_seed = test_seed };
	local = ip_addr_from_v4(htobe32(0x0a000001));
}

static struct ip_addr addr(uint32_t number)
{
	return ip_addr_from_v4(htobe32(0x0b000000 + number));
}

static struct tcp_peer *take(uint32_t number, uint64_t now_ns)
{
	struct ip_addr remote = addr(number);

	return tcp_peers_take(&peers, &local, &remote, now_ns);
}

static struct tcp_peer *find(uint32_t number, uint64_t now_ns)
{
	struct ip_addr remote = addr(number);

	return tcp_peers_find(&peers, &local, &remote, now_ns);
}

TEST(peer_is_found_for_an_hour)
{
	const uint64_t start_ns = 5 * NS_PER_SEC, hour_ns = 3600 * NS_PER_SEC;
	struct ip_addr other = addr(77), remote = addr(1);
	struct tcp_peer *peer;

	begin();
	CHECK(!find(1, start_ns));
	peer = take(1, start_ns);
	CHECK(peer != NULL);
	peer->rtt_ns = 7;
	CHECK(find(1, start_ns + hour_ns - 1) == peer);
	CHECK(!find(2, start_ns));
	/* the same peer from another address of ours is another one */
	CHECK(!tcp_peers_find(&peers, &other, &remote, start_ns));
	CHECK(!find(1, start_ns + hour_ns));
	/* writing begins another hour; what is too old is not taken over */
	CHECK(take(1, start_ns + hour_ns - 1) == peer);
	CHECK_EQ(peer->rtt_ns, 7);
	CHECK(find(1, start_ns + hour_ns) == peer);
	CHECK_EQ(take(1, start_ns + 3 * hour_ns)->rtt_ns, 0);
}

/* However many there are: the table stays as large as it is, and the latest of each set
 * are in it. */
TEST(oldest_of_a_set_gives_way)
{
	uint32_t found = 0;

	begin();
	for (uint32_t i = 0; i < 10000; i++) {
		take(i, NS_PER_SEC + i)->ssthresh = i;
		CHECK(find(i, NS_PER_SEC + i) != NULL);
		/* three more fit beside the one before */
		if (i)
			CHECK(find(i - 1, NS_PER_SEC + i) != NULL);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		const struct tcp_peer *peer = find(i, NS_PER_SEC + 10000);

		if (!peer)
			continue;
		CHECK_EQ(peer->ssthresh, i);
		/* a set has filled up from the end: of the last thousand */
		CHECK(i >= 9000);
		found++;
	}
	CHECK_EQ(found, PLACES);
}

TEST(table_without_places_knows_nobody)
{
	begin();
	peers.cnt = 0;
	CHECK(!take(1, NS_PER_SEC));
	CHECK(!find(1, NS_PER_SEC));
}

static struct tcp_peer learned;

static void learn(uint64_t srtt_ns, uint64_t rttvar_ns)
{
	const struct tcp_peer_sample sample = { .srtt_ns = srtt_ns,
						.rttvar_ns = rttvar_ns };

	tcp_peer_learn(&learned, &sample, false);
}

/* Longer ones count at once, shorter ones for an eighth. */
TEST(round_trips_are_learned)
{
	learned = (struct tcp_peer){ .pmtu = 1000 };
	learn(8000, 100);
	CHECK_EQ(learned.rtt_ns, 8000);
	/* half of the distance from what was known is variation, too */
	CHECK_EQ(learned.rttvar_ns, 4000);
	learn(16000, 100);
	CHECK_EQ(learned.rtt_ns, 16000);
	CHECK_EQ(learned.rttvar_ns, 4000);
	learn(8000, 100);
	CHECK_EQ(learned.rtt_ns, 15000);
	CHECK_EQ(learned.rttvar_ns, 4000);
	learn(15000, 400);
	CHECK_EQ(learned.rtt_ns, 15000);
	CHECK_EQ(learned.rttvar_ns, 4000 - 3600 / 4);
	learn(15000, 9000);
	CHECK_EQ(learned.rttvar_ns, 9000);
	/* nobody came back: what is known is no longer true */
	learn(0, 0);
	CHECK_EQ(learned.rtt_ns, 0);
	CHECK_EQ(learned.pmtu, 1000);
}

static uint32_t threshold(uint32_t known, uint32_t cwnd, uint32_t ssthresh,
			  bool is_at_start, bool is_open)
{
	const struct tcp_peer_sample sample = {
		.srtt_ns = 1, .cwnd = cwnd, .ssthresh = ssthresh,
		.is_at_start = is_at_start,
		.is_in_slow_start = cwnd < ssthresh, .is_open = is_open,
	};

	learned = (struct tcp_peer){ .ssthresh = known };
	tcp_peer_learn(&learned, &sample, true);
	return learned.ssthresh;
}

TEST(thresholds_are_learned)
{
	/* slow start has not ended: only more than is known */
	CHECK_EQ(threshold(0, 50000, 1 << 30, true, true), 0);
	CHECK_EQ(threshold(20000, 50000, 1 << 30, true, true), 25000);
	CHECK_EQ(threshold(30000, 50000, 1 << 30, true, true), 30000);
	/* in congestion avoidance the window is the path's */
	CHECK_EQ(threshold(90000, 50000, 20000, false, true), 25000);
	CHECK_EQ(threshold(90000, 50000, 40000, false, true), 40000);
	CHECK_EQ(threshold(0, 50000, 40000, false, true), 40000);
	/* in a repair, or in slow start after one, it is not */
	CHECK_EQ(threshold(0, 50000, 40000, false, false), 0);
	CHECK_EQ(threshold(30000, 50000, 40000, false, false), 40000);
	CHECK_EQ(threshold(30000, 10000, 20000, false, true), 30000);
	/* and unasked, nothing is */
	learned = (struct tcp_peer){ .ssthresh = 0 };
	tcp_peer_learn(&learned,
		       &(struct tcp_peer_sample){ .srtt_ns = 1, .cwnd = 9000,
						  .ssthresh = 5000,
						  .is_open = true },
		       false);
	CHECK_EQ(learned.ssthresh, 0);
}
