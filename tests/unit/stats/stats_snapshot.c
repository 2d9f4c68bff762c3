/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stats/stats_snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "stats/reasons.h"
#include "stats/stats_process.h"
#include "tests/support/test.h"

static struct stats_region *make(uint32_t socket_max)
{
	size_t size = stats_region_size(socket_max);
	struct stats_region *r = aligned_alloc(CACHE_LINE, size);

	memset(r, 0, size);
	memcpy(r->magic, STATS_MAGIC, sizeof(r->magic));
	r->abi = STATS_ABI;
	r->layout = stats_layout();
	r->socket_max = socket_max;
	r->size = size;
	return r;
}

TEST(whole_regions_pass)
{
	struct stats_region *r = make(3);

	CHECK_EQ(stats_snapshot_check(r, r->size), 0);
	free(r);
	r = make(0);
	CHECK_EQ(stats_snapshot_check(r, r->size), 0);
	free(r);
}

TEST(what_is_not_whole_is_refused)
{
	struct stats_region *r = make(3);
	size_t size = r->size;

	CHECK_EQ(stats_snapshot_check(r, size - 1), -EBADMSG);
	CHECK_EQ(stats_snapshot_check(r, sizeof(*r) - 1), -EBADMSG);
	CHECK_EQ(stats_snapshot_check(r, 0), -EBADMSG);
	r->socket_max = 4;
	CHECK_EQ(stats_snapshot_check(r, size), -EBADMSG);
	r->socket_max = 2;
	CHECK_EQ(stats_snapshot_check(r, size), -EBADMSG);
	r->socket_max = UINT32_MAX;
	r->size = stats_region_size(r->socket_max);
	CHECK_EQ(stats_snapshot_check(r, size), -EBADMSG);
	free(r);
	r = make(1);
	r->magic[0] = 'x';
	CHECK_EQ(stats_snapshot_check(r, r->size), -EBADMSG);
	free(r);
	r = make(1);
	r->layout++;
	CHECK_EQ(stats_snapshot_check(r, r->size), -EPROTO);
	r->layout--;
	r->abi++;
	CHECK_EQ(stats_snapshot_check(r, r->size), -EPROTO);
	free(r);
}

TEST(lies_inside_are_made_harmless)
{
	struct stats_region *r = make(2);
	struct stats_socket *s = &r->sockets[1];

	memset(r->program, 'p', sizeof(r->program));
	memcpy(r->version, "1\033[2J\n", 7);
	memset(s, 0xff, sizeof(*s));
	memset(&r->rings[5], 0x80, sizeof(r->rings[5]));
	CHECK_EQ(stats_snapshot_check(r, r->size), 0);
	CHECK_EQ(strlen(r->program), sizeof(r->program) - 1);
	CHECK_STR(r->version, "1?[2J?");
	CHECK(s->rx.reason < REASON_COUNT && s->tx.reason < REASON_COUNT);
	CHECK(s->rx.decider < STATS_BY_COUNT);
	CHECK_EQ(strlen(s->tx.detail), STATS_DETAIL_SIZE - 1);
	CHECK_EQ(s->tx.detail[0], '?');
	CHECK_STR(r->rings[5].interface, "???????????????");
	free(r);
}

TEST(differences_follow_zeroes_and_new_sockets)
{
	struct stats_socket before = { .counters = { .rx_packets = 10,
						     .tx_packets = 10,
						     .rx_ready_pkt_max = 5 } };
	struct stats_socket now = before;
	struct stats_socket_counters diff;

	atomic_store(&before.id, 7);
	atomic_store(&now.id, 7);
	now.counters.rx_packets = 25;
	now.counters.tx_packets = 4;
	stats_snapshot_socket_diff(&before, &now, &diff);
	CHECK_EQ(diff.rx_packets, 15);
	CHECK_EQ(diff.tx_packets, 4);
	CHECK_EQ(diff.rx_ready_pkt_max, 5);
	stats_snapshot_socket_diff(NULL, &now, &diff);
	CHECK_EQ(diff.rx_packets, 25);
	atomic_store(&now.id, 8);
	stats_snapshot_socket_diff(&before, &now, &diff);
	CHECK_EQ(diff.rx_packets, 25);
}

TEST(readiness_is_never_negative)
{
	struct stats_socket s = { .counters = { .rx_queued_packets = 3,
						.rx_queued_bytes = 30,
						.rx_packets = 4,
						.rx_bytes = 10 } };

	CHECK_EQ(stats_socket_ready_pkts(&s), 0);
	CHECK_EQ(stats_socket_ready_bytes(&s), 20);
}

TEST(start_of_a_process_whatever_its_name)
{
	CHECK_EQ(stats_process_start_in(
			 "12 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 "
			 "18 4711 20 21"),
		 4711);
	CHECK_EQ(stats_process_start_in(
			 "12 (a) 3 4) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 "
			 "17 18 4711 20"),
		 4711);
	CHECK_EQ(stats_process_start_in("12 (a) S 1 2 3"), 0);
	CHECK_EQ(stats_process_start_in(""), 0);
}
