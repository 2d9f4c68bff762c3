/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two engines exchange streams over links of known faults. */
#include "tests/engine/sim.h"

#include <errno.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

static struct sim sim;
static struct tcp_params params;

static void begin(const struct impair_params *forth,
		  const struct impair_params *back)
{
	struct impair_params link[2] = { *forth, *back };

	sim_init(&sim, test_seed, &params, link);
}

static void begin_clean(void)
{
	struct impair_params link = sim_link(1000000000, NS_PER_MS);

	/* nothing is lost, however much slow start sends */
	link.queue_bytes = 0;
	tcp_params_init(&params);
	begin(&link, &link);
}

TEST(opens_and_closes_without_data)
{
	struct sim_app app = { .to_send = 0 };
	struct sim_conn *conn;

	begin_clean();
	sim_listen(&sim, &app);
	conn = sim_connect(&sim, &app);
	CHECK(sim_run_to_end(&sim, sim.now_ns + 10 * NS_PER_SEC));
	CHECK(conn->is_connected);
	CHECK_EQ(conn->error, 0);
	CHECK_EQ(sim.host[0].retransmissions, 0);
	sim_finish(&sim, false);
}

TEST(carries_a_megabyte_each_way)
{
	struct sim_app app = { .to_send = 1 << 20 };
	struct sim_conn *conn;

	begin_clean();
	sim_listen(&sim, &app);
	conn = sim_connect(&sim, &app);
	CHECK(sim_run_to_end(&sim, sim.now_ns + 10 * NS_PER_SEC));
	CHECK_EQ(conn->received, 1 << 20);
	CHECK_EQ(sim_other_end(conn)->received, 1 << 20);
	CHECK_EQ(sim.host[0].retransmissions + sim.host[1].retransmissions, 0);
	sim_finish(&sim, false);
}

TEST(survives_loss_both_ways)
{
	struct impair_params link = sim_link(100000000, 5 * NS_PER_MS);
	struct sim_app app = { .to_send = 1 << 20 };
	struct sim_conn *conn;

	tcp_params_init(&params);
	link.loss_ppm = 30000;
	begin(&link, &link);
	sim_listen(&sim, &app);
	conn = sim_connect(&sim, &app);
	CHECK(sim_run_to_end(&sim, sim.now_ns + 600 * NS_PER_SEC));
	CHECK_EQ(conn->received, 1 << 20);
	CHECK_EQ(sim_other_end(conn)->received, 1 << 20);
	CHECK(sim.host[0].retransmissions > 0);
	sim_finish(&sim, false);
}

/* From buffers of 64 KB to a path that holds 1.25 MB. */
TEST(buffers_grow_with_the_path)
{
	struct impair_params link = sim_link(100000000, 50 * NS_PER_MS);
	struct sim_app client = { .to_send = 60 << 20 }, server = { 0 };
	struct tcp_pcb_info info;
	struct sim_conn *conn;
	uint64_t start_ns;

	tcp_params_init(&params);
	params.rcv_buf = params.snd_buf = 65536;
	begin(&link, &link);
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + 4 * NS_PER_SEC);
	tcp_get_info(conn->pcb, &info);
	CHECK(info.snd_buf > 1250000);
	CHECK(info.snd_buf <= params.snd_buf_max);
	tcp_get_info(sim_other_end(conn)->pcb, &info);
	CHECK(info.rcv_buf > 1250000);
	CHECK(info.rcv_buf <= params.rcv_buf_max);
	start_ns = sim_other_end(conn)->connected_ns;
	CHECK(sim_run_to_end(&sim, sim.now_ns + 60 * NS_PER_SEC));
	CHECK(sim_other_end(conn)->done_ns - start_ns < 8 * NS_PER_SEC);
	sim_finish(&sim, false);
}

/* The sender doubles for nine round trips, and nobody else ends that. */
TEST(slow_start_is_not_ended_by_the_window)
{
	struct impair_params link = sim_link(1000000000, 50 * NS_PER_MS);
	struct sim_app client = { .to_send = 60 << 20 }, server = { 0 };
	uint64_t doubled = UINT64_C(10) * ((1 << 9) - 1) * 1448;
	struct sim_conn *conn;

	tcp_params_init(&params);
	link.queue_bytes = 0;
	begin(&link, &link);
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	/* the handshake, nine round trips, and what came with the last one */
	sim_run(&sim, sim.now_ns + 1090 * NS_PER_MS);
	CHECK(sim_other_end(conn)->received >= doubled / 10 * 9);
	CHECK(sim_run_to_end(&sim, sim.now_ns + 60 * NS_PER_SEC));
	sim_finish(&sim, false);
}
