/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How losses are repaired: what should not need a timeout does not. */
#include "tests/engine/sim.h"

#include <stdlib.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

static struct sim sim;
static struct tcp_params params;

static void begin(const struct impair_params *link)
{
	struct impair_params links[2] = { *link, *link };

	sim_init(&sim, test_seed, &params, links);
}

/* Loses the data segments of host 0 numbered [first, first + cnt), each once. */
struct hole {
	unsigned first;
	unsigned cnt;
	unsigned seen;
};

static uint32_t payload_len(const uint8_t *packet, size_t len)
{
	return (uint32_t)(len - 20 - 4u * (packet[20 + 12] >> 4));
}

static bool loses_hole(struct sim_host *host UNUSED, const uint8_t *packet,
		       size_t len, void *ctx)
{
	struct hole *hole = ctx;

	if (!payload_len(packet, len))
		return false;
	hole->seen++;
	return hole->seen > hole->first &&
	       hole->seen <= hole->first + hole->cnt;
}

/* Sends `bytes` from host 0 with a hole; returns the time it took. */
static uint64_t send_with_hole(uint64_t bytes, struct hole *hole)
{
	struct sim_app client = { .to_send = bytes }, server = { 0 };
	struct sim_conn *conn;
	uint64_t start_ns;

	sim_listen(&sim, &server);
	sim.host[0].loses = hole ? loses_hole : NULL;
	sim.host[0].loses_ctx = hole;
	conn = sim_connect(&sim, &client);
	start_ns = sim.now_ns;
	CHECK(sim_run_to_end(&sim, sim.now_ns + 60 * NS_PER_SEC));
	CHECK_EQ(sim_other_end(conn)->received, bytes);
	return sim_other_end(conn)->done_ns - start_ns;
}

static uint64_t timeouts(void)
{
	return tcp_counts(sim.host[0].table)->rto_fired;
}

TEST(single_loss_is_repaired_without_timeout)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct hole hole = { .first = 20, .cnt = 1 };

	tcp_params_init(&params);
	begin(&link);
	send_with_hole(300000, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK_EQ(sim.host[0].retransmissions, 1);
	CHECK_EQ(tcp_counts(sim.host[0].table)->fast_recoveries, 1);
	sim_finish(&sim, false);
}

/* RFC 6937: the window arrives at the threshold, not below it. */
TEST(recovery_ends_at_the_threshold)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct sim_app client = { .to_send = 300000, .stays_open = true };
	struct sim_app server = { 0 };
	struct hole hole = { .first = 60, .cnt = 1 };
	struct tcp_pcb_info info = { .is_recovering = false };
	struct sim_conn *conn;

	tcp_params_init(&params);
	begin(&link);
	sim.host[0].loses = loses_hole;
	sim.host[0].loses_ctx = &hole;
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	while (!tcp_counts(sim.host[0].table)->fast_recoveries ||
	       info.is_recovering) {
		CHECK(sim_step(&sim, sim.now_ns + NS_PER_SEC));
		CHECK(conn->pcb != NULL);
		tcp_get_info(conn->pcb, &info);
	}
	CHECK(info.ssthresh < 100000);
	CHECK(info.cwnd >= info.ssthresh);
	sim_finish(&sim, true);
}

TEST(burst_of_twenty_is_repaired_without_timeout)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct hole hole = { .first = 60, .cnt = 20 };

	tcp_params_init(&params);
	begin(&link);
	send_with_hole(400000, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK_EQ(sim.host[0].retransmissions, 20);
	sim_finish(&sim, false);
}

TEST(lost_tail_is_repaired_by_a_probe)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	/* 30 segments of 1448 bytes; the last three are lost */
	struct hole hole = { .first = 27, .cnt = 3 };

	tcp_params_init(&params);
	begin(&link);
	send_with_hole(30 * 1448, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK(tcp_counts(sim.host[0].table)->tlp_sent >= 1);
	sim_finish(&sim, false);
}

enum { EXCHANGES = 2000 };

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A request of one segment, and an answer of one. */
static uint64_t exchange(struct sim_conn *client)
{
	struct sim_conn *server = sim_other_end(client);
	uint64_t start_ns = sim.now_ns;

	client->app.to_send += 500;
	sim_more(client);
	while (server->received < client->app.to_send)
		CHECK(sim_step(&sim, start_ns + 60 * NS_PER_SEC));
	server->app.to_send += 500;
	sim_more(server);
	while (client->received < server->app.to_send)
		CHECK(sim_step(&sim, start_ns + 60 * NS_PER_SEC));
	return sim.now_ns - start_ns;
}

/* The request or the answer is lost now and then: the probe does not wait for a delayed
 * acknowledgment that was never seen. */
TEST(lone_loss_costs_two_round_trips)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct sim_app app = { .stays_open = true };
	static uint64_t times[EXCHANGES];
	struct sim_conn *client;

	tcp_params_init(&params);
	link.loss_ppm = 10000;
	begin(&link);
	sim_listen(&sim, &app);
	client = sim_connect(&sim, &app);
	while (!client->is_connected || !sim_other_end(client))
		CHECK(sim_step(&sim, sim.now_ns + 60 * NS_PER_SEC));
	for (int i = 0; i < EXCHANGES; i++) {
		times[i] = exchange(client);
		sim_run(&sim, sim.now_ns + 5 * NS_PER_MS);
	}
	qsort(times, EXCHANGES, sizeof(times[0]), compare_times);
	test_note("median %" PRIu64 " us, p99 %" PRIu64 " us, most %" PRIu64
		  " us; %" PRIu64 " probes",
		  times[EXCHANGES / 2] / 1000, times[EXCHANGES * 99 / 100] / 1000,
		  times[EXCHANGES - 1] / 1000,
		  tcp_counts(sim.host[0].table)->tlp_sent);
	CHECK(times[EXCHANGES * 99 / 100] <= 60 * NS_PER_MS);
	sim_finish(&sim, true);
}

TEST(single_loss_without_sack_needs_three_duplicates)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct hole hole = { .first = 20, .cnt = 1 };

	tcp_params_init(&params);
	params.with_sack = false;
	begin(&link);
	send_with_hole(300000, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK_EQ(sim.host[0].retransmissions, 1);
	sim_finish(&sim, false);
}

TEST(newreno_repairs_one_hole_each_round_trip)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct hole hole = { .first = 60, .cnt = 4 };

	tcp_params_init(&params);
	params.with_sack = false;
	params.cc = TCP_CC_NEWRENO;
	begin(&link);
	send_with_hole(400000, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK_EQ(sim.host[0].retransmissions, 4);
	sim_finish(&sim, false);
}

/* What waits behind the hole comes in buffers of three bytes. */
TEST(thin_buffers_do_not_slow_the_repair)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct impair_params links[2] = { link, link };
	struct sim_setup setup = { .rx_part = 3 };
	struct hole hole = { .first = 20, .cnt = 1 };

	tcp_params_init(&params);
	params.with_sack = params.with_timestamps = false;
	sim_init_with(&sim, test_seed, &params, links, &setup);
	send_with_hole(300000, &hole);
	CHECK_EQ(timeouts(), 0);
	CHECK_EQ(sim.host[0].retransmissions, 1);
	sim_finish(&sim, false);
}

static uint64_t resent;

/* Bytes per second of ten megabytes; `resent` tells what it took. */
static double goodput(const struct impair_params *link)
{
	uint64_t took_ns;

	tcp_params_init(&params);
	/* fills path and queue, and no more, so that nothing is lost */
	params.rcv_buf = params.rcv_buf_max = 300000;
	params.snd_buf = 4 << 20;
	begin(link);
	took_ns = send_with_hole(10 << 20, NULL);
	resent = sim.host[0].retransmissions;
	sim_finish(&sim, false);
	return (10 << 20) * 1e9 / (double)took_ns;
}

TEST(clean_link_is_filled)
{
	struct impair_params link = sim_link(100000000, 5 * NS_PER_MS);
	double rate;

	link.queue_bytes = 250000;
	rate = goodput(&link);
	test_note("%.1f of 100 Mbit/s", rate * 8e-6);
	CHECK(rate * 8 > 0.85 * 100e6);
}

TEST(reordering_costs_less_than_a_tenth)
{
	struct impair_params link = sim_link(100000000, 5 * NS_PER_MS);
	double clean, reordered;

	link.queue_bytes = 250000;
	clean = goodput(&link);
	link.reorder_ppm = 100000;
	link.reorder_cnt = 5;
	reordered = goodput(&link);
	test_note("%.1f Mbit/s, in order %.1f, %" PRIu64 " sent again",
		  reordered * 8e-6, clean * 8e-6, resent);
	CHECK(reordered >= 0.9 * clean);
	/* of some seven thousand, a tenth of them late */
	CHECK(resent < 30);
}

TEST(one_loss_in_a_thousand_leaves_most)
{
	struct impair_params link = sim_link(100000000, 5 * NS_PER_MS);
	double rate;

	link.queue_bytes = 250000;
	link.loss_ppm = 1000;
	rate = goodput(&link);
	test_note("%.1f of 100 Mbit/s", rate * 8e-6);
	CHECK(rate * 8 >= 0.5 * 100e6);
}

static void check_fairness(enum tcp_cc_algorithm cc)
{
	struct impair_params link = sim_link(50000000, 10 * NS_PER_MS);
	struct sim_app client = { .to_send = 1 << 30 }, server = { 0 };
	struct sim_conn *conn[2];
	double got[2], jain;

	tcp_params_init(&params);
	params.cc = cc;
	params.rcv_buf = params.snd_buf = 2 << 20;
	link.queue_bytes = 125000;
	begin(&link);
	sim_listen(&sim, &server);
	conn[0] = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + NS_PER_SEC);
	conn[1] = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + 10 * NS_PER_SEC);
	for (int i = 0; i < 2; i++)
		got[i] = -(double)sim_other_end(conn[i])->received;
	sim_run(&sim, sim.now_ns + 30 * NS_PER_SEC);
	for (int i = 0; i < 2; i++)
		got[i] += (double)sim_other_end(conn[i])->received;
	jain = (got[0] + got[1]) * (got[0] + got[1]) /
	       (2 * (got[0] * got[0] + got[1] * got[1]));
	test_note("%.1f and %.1f Mbit/s, Jain %.3f", got[0] * 8e-6 / 30,
		  got[1] * 8e-6 / 30, jain);
	CHECK(jain >= 0.9);
	CHECK(got[0] + got[1] >= 0.9 * 30 * 50e6 / 8);
	sim_finish(&sim, true);
}

TEST(two_cubic_flows_share_fairly)
{
	check_fairness(TCP_CC_CUBIC);
}

TEST(two_newreno_flows_share_fairly)
{
	check_fairness(TCP_CC_NEWRENO);
}

TEST(two_bbr_flows_share_fairly)
{
	check_fairness(TCP_CC_BBR);
}

/* One segment in a hundred is lost, which is no congestion: CUBIC keeps an eighth. */
TEST(bbr_keeps_its_rate_under_random_loss)
{
	struct impair_params link = sim_link(100000000, 5 * NS_PER_MS);
	struct sim_app client = { .to_send = 1 << 30 }, server = { 0 };
	double mbit[2];

	link.queue_bytes = 125000;
	link.loss_ppm = 10000;
	for (int i = 0; i < 2; i++) {
		struct sim_conn *conn;

		tcp_params_init(&params);
		params.cc = i ? TCP_CC_BBR : TCP_CC_CUBIC;
		begin(&link);
		sim_listen(&sim, &server);
		conn = sim_connect(&sim, &client);
		sim_run(&sim, sim.now_ns + 20 * NS_PER_SEC);
		mbit[i] = (double)sim_other_end(conn)->received * 8e-6 / 20;
		sim_finish(&sim, true);
	}
	test_note("CUBIC %.1f, BBR %.1f of 100 Mbit/s", mbit[0], mbit[1]);
	CHECK(mbit[1] >= 3 * mbit[0]);
}

/* Over a queue of four round trips BBR leaves it nearly empty, and is hardly slower. */
TEST(bbr_leaves_the_queue_empty)
{
	struct impair_params link = sim_link(50000000, 10 * NS_PER_MS);
	struct sim_app client = { .to_send = 1 << 30 }, server = { 0 };
	uint64_t sum_ns = 0, start;
	struct tcp_pcb_info info;
	struct sim_conn *conn;

	tcp_params_init(&params);
	params.cc = TCP_CC_BBR;
	link.queue_bytes = 500000;
	begin(&link);
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + 2 * NS_PER_SEC);
	start = sim_other_end(conn)->received;
	for (int i = 0; i < 800; i++) {
		sim_run(&sim, sim.now_ns + 10 * NS_PER_MS);
		tcp_get_info(conn->pcb, &info);
		sum_ns += info.srtt_ns;
	}
	start = sim_other_end(conn)->received - start;
	test_note("%.1f Mbit/s, %.1f ms", (double)start * 8e-6 / 8,
		  (double)sum_ns / 800 / NS_PER_MS);
	CHECK(start * 8 / 8 >= 42000000);
	CHECK(sum_ns / 800 <= 30 * NS_PER_MS);
	sim_finish(&sim, true);
}

/* Everything stands still for a second, then goes on: nothing was lost. */
TEST(needless_timeout_is_undone)
{
	struct impair_params link = sim_link(100000000, 10 * NS_PER_MS);
	struct sim_app client = { .to_send = 3000000 }, server = { 0 };
	struct impair_params slow = link;
	uint32_t cwnd_before;
	struct tcp_pcb_info info;
	struct sim_conn *conn;

	tcp_params_init(&params);
	begin(&link);
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + 150 * NS_PER_MS);
	tcp_get_info(conn->pcb, &info);
	cwnd_before = info.cwnd;
	slow.delay_ns = NS_PER_SEC;
	impair_set_params(sim.host[1].out, &slow);
	sim_run(&sim, sim.now_ns + 12 * NS_PER_MS);
	impair_set_params(sim.host[1].out, &link);
	sim_run(&sim, sim.now_ns + 1500 * NS_PER_MS);
	CHECK(timeouts() >= 1);
	CHECK(tcp_counts(sim.host[0].table)->undone >= 1);
	if (conn->pcb) {
		tcp_get_info(conn->pcb, &info);
		CHECK(info.cwnd >= cwnd_before);
	}
	CHECK(sim_run_to_end(&sim, sim.now_ns + 60 * NS_PER_SEC));
	sim_finish(&sim, false);
}
