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
