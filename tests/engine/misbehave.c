/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine against the reference endpoint, over links with some loss: first with
 * good manners, then with each of the bad ones, then with any of them. Whatever the
 * peer does, every byte arrives once, none goes beyond what was granted, and the
 * connection ends.
 */
#include "tests/engine/reference.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/engine/sim.h"
#include "tests/support/test.h"

enum { SEEDS = 60, MIXED_SEEDS = 400 };

static struct sim sim;

static bool is_over(const struct reference *ref, const struct sim_host *engine)
{
	struct sim_conn *conn;

	LIST_FOR_EACH(conn, &engine->conns, link)
		if (!conn->is_gone)
			return false;
	return !list_is_empty(&engine->conns) &&
	       (reference_is_done(ref) || engine->conns.next == NULL);
}

static void run_until_over(const struct reference *ref,
			   const struct sim_host *engine, uint64_t seed)
{
	uint64_t until_ns = sim.now_ns + 3000 * NS_PER_SEC;

	while (!is_over(ref, engine))
		if (!sim_step(&sim, until_ns) || sim.now_ns >= until_ns)
			FAIL("seed %" PRIu64 ": no end, %" PRIu64
			     " bytes received", seed, reference_received(ref));
}

static void draw_links(struct rand *rand, struct impair_params link[2])
{
	for (int i = 0; i < 2; i++) {
		link[i] = sim_link(10000000, rand_between(rand, NS_PER_MS,
							  30 * NS_PER_MS));
		link[i].loss_ppm = (uint32_t)rand_below(rand, 20000);
		link[i].reorder_ppm = (uint32_t)rand_below(rand, 20000);
		link[i].reorder_cnt = 3;
		link[i].dup_ppm = (uint32_t)rand_below(rand, 10000);
	}
}

static void run_seed(uint64_t seed, struct reference_manners manners)
{
	struct impair_params link[2];
	struct tcp_params params;
	struct sim_app app = { .to_send = 0 };
	struct reference *ref;
	struct sim_host *engine;
	struct rand rand;
	uint64_t to_send;
	int index;

	rand_init(&rand, seed);
	draw_links(&rand, link);
	tcp_params_init(&params);
	params.with_sack = rand_below(&rand, 4) != 0;
	params.with_timestamps = rand_below(&rand, 2);
	params.cc = (enum tcp_cc_algorithm)rand_below(&rand, 2);
	params.retries = params.orphan_retries = 60;
	params.syn_retries = params.synack_retries = 30;
	params.rto_max_ns = 5 * NS_PER_SEC;
	index = (int)rand_below(&rand, 2);
	app.to_send = rand_below(&rand, 60000);
	app.closes_last = rand_below(&rand, 2);
	to_send = rand_below(&rand, 30000);
	if (!manners.window)
		manners.window = (uint32_t)rand_between(&rand, 2000, 60000);

	sim_init(&sim, seed, &params, link);
	ref = reference_create(&sim, index, &manners, to_send, app.to_send);
	engine = &sim.host[!index];
	if (index)
		sim_connect(&sim, &app);
	else
		sim_listen(&sim, &app);
	run_until_over(ref, engine, seed);
	CHECK_EQ(reference_received(ref), app.to_send);
	CHECK_EQ(LIST_ENTRY(engine->conns.next, struct sim_conn,
			    link)->received, to_send);
	/* what is left of it is the engine's TIME_WAIT */
	sim_run(&sim, sim.now_ns + 70 * NS_PER_SEC);
	reference_destroy(ref);
	sim_finish(&sim, false);
}

static void run_seeds(const struct reference_manners *manners)
{
	for (uint64_t i = 0; i < SEEDS; i++)
		run_seed(test_seed + i, *manners);
}

TEST(another_tcp_is_understood)
{
	struct reference_manners manners = { .renege_ppm = 0 };

	run_seeds(&manners);
	manners.without_sack = manners.without_ts = true;
	run_seeds(&manners);
}

TEST(reneging_peer_gets_it_again)
{
	struct reference_manners manners = { .renege_ppm = 200000 };

	run_seeds(&manners);
}

TEST(split_and_stretched_acknowledgments_are_taken)
{
	struct reference_manners manners = { .split_ppm = 300000,
					     .stretch_ppm = 500000,
					     .repeat_ppm = 100000 };

	run_seeds(&manners);
}

TEST(shrinking_windows_are_survived)
{
	struct reference_manners manners = { .shrink_ppm = 100000 };

	run_seeds(&manners);
}

TEST(lies_about_the_segment_size_are_survived)
{
	static const uint16_t sizes[] = { 1, 63, 64, 100, 9000, 65535 };
	struct reference_manners manners = { .window = 30000 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		manners.mss = sizes[i];
		for (uint64_t j = 0; j < 10; j++)
			run_seed(test_seed + j, manners);
	}
}

TEST(garbage_changes_nothing)
{
	struct reference_manners manners = { .garbage_ppm = 500000 };

	run_seeds(&manners);
}

TEST(pauses_are_survived)
{
	struct reference_manners manners = { .silence_ppm = 30000 };

	run_seeds(&manners);
}

/* A peer that is gone: the connection dies in its time, and nothing is left. */
TEST(silence_for_ever_ends_the_connection)
{
	struct reference_manners manners = { .dies_after = 5000,
					     .window = 20000 };
	struct impair_params link[2] = { sim_link(10000000, NS_PER_MS),
					 sim_link(10000000, NS_PER_MS) };
	struct sim_app app = { .to_send = 40000, .stays_open = true };
	struct tcp_params params;
	struct reference *ref;
	struct sim_conn *conn;

	tcp_params_init(&params);
	params.retries = 5;
	sim_init(&sim, test_seed, &params, link);
	ref = reference_create(&sim, 1, &manners, 0, app.to_send);
	conn = sim_connect(&sim, &app);
	sim_run(&sim, sim.now_ns + 60 * NS_PER_SEC);
	CHECK_EQ(conn->error, -ETIMEDOUT);
	reference_destroy(ref);
	sim_finish(&sim, false);
}

/* ---- all together ---- */

static unsigned drawn[8];

static uint32_t maybe(struct rand *rand, unsigned kind, uint32_t most)
{
	if (rand_below(rand, 3))
		return 0;
	drawn[kind]++;
	return (uint32_t)rand_between(rand, 1, most);
}

TEST(any_manners_are_survived)
{
	const char *text = getenv("SIM_SEEDS");
	uint64_t cnt = text ? strtoull(text, NULL, 0) / 10 : MIXED_SEEDS;

	memset(drawn, 0, sizeof(drawn));
	for (uint64_t i = 0; i < cnt; i++) {
		struct reference_manners m = { .window = 0 };
		struct rand rand;

		rand_init(&rand, ~(test_seed + i));
		m.renege_ppm = maybe(&rand, 0, 300000);
		m.split_ppm = maybe(&rand, 1, 500000);
		m.stretch_ppm = maybe(&rand, 2, 800000);
		m.repeat_ppm = maybe(&rand, 3, 300000);
		m.shrink_ppm = maybe(&rand, 4, 200000);
		m.garbage_ppm = maybe(&rand, 5, 500000);
		m.silence_ppm = maybe(&rand, 6, 20000);
		m.mss = (uint16_t)maybe(&rand, 7, 65535);
		m.without_sack = rand_below(&rand, 4) == 0;
		m.without_ts = rand_below(&rand, 2);
		run_seed(test_seed + i, m);
	}
	for (size_t i = 0; i < ARRAY_LEN(drawn) && cnt >= 100; i++)
		CHECK(drawn[i] * 10 >= cnt);
}
