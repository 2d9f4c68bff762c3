/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The card's counter by itself: rate, drift, start, and what is published. */
#include "config.h"

#include "hca_clock.h"

#include <endian.h>
#include <rdma/mlx5-abi.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum { KHZ = 78125 };
static const uint64_t start_ns = 5 * NS_PER_SEC;

TEST(counts_at_its_rate_from_its_start)
{
	struct hca_clock clock;

	hca_clock_init(&clock, KHZ, 0, 1000, start_ns, 0);
	CHECK_EQ(hca_clock_cycles(&clock, start_ns), 1000);
	CHECK_EQ(hca_clock_cycles(&clock, start_ns + NS_PER_SEC),
		 1000 + KHZ * 1000);
	/* Ten days: no product may overflow. */
	CHECK_EQ(hca_clock_cycles(&clock, start_ns + 864000 * NS_PER_SEC),
		 1000 + UINT64_C(864000) * KHZ * 1000);
}

TEST(drifts_by_parts_per_million)
{
	struct hca_clock fast, slow;

	hca_clock_init(&fast, KHZ, 100, 0, start_ns, 0);
	hca_clock_init(&slow, KHZ, -100, 0, start_ns, 0);
	CHECK_EQ(hca_clock_cycles(&fast, start_ns + 10 * NS_PER_SEC),
		 KHZ * 10000 + KHZ);
	CHECK_EQ(hca_clock_cycles(&slow, start_ns + 10 * NS_PER_SEC),
		 KHZ * 10000 - KHZ);
}

TEST(core_clock_page_is_big_endian_high_first)
{
	struct hca_clock clock;
	uint32_t page[2] = { 0 };

	hca_clock_init(&clock, KHZ, 0, UINT64_C(0x123456789a), start_ns, 0);
	hca_clock_publish(&clock, start_ns, page);
	CHECK_EQ(be32toh(page[0]), 0x12);
	CHECK_EQ(be32toh(page[1]), 0x3456789a);
}

/* The conversion knows the nominal rate: a fast card's time runs ahead. */
TEST(clock_info_converts_at_the_nominal_rate)
{
	struct mlx5_ib_clock_info info = { 0 };
	struct hca_clock clock;
	uint64_t ns;

	hca_clock_init(&clock, KHZ, 1000, 0, start_ns, 7 * NS_PER_SEC);
	for (int i = 1; i <= 100; i++)
		hca_clock_advance_info(&clock, start_ns + (uint64_t)i *
							  10 * NS_PER_MS);
	hca_clock_publish_info(&clock, &info);
	CHECK_EQ(info.sign, 2);
	CHECK_EQ(info.cycles, KHZ * 1001);
	ns = info.nsec - 7 * NS_PER_SEC;
	CHECK(ns > 1000900 * NS_PER_US && ns < 1001100 * NS_PER_US);
}

/* However often it is published: no fraction of a nanosecond gets lost. */
TEST(clock_info_keeps_fractions)
{
	enum { STEP_NS = 7013, STEPS = 100000 };
	struct hca_clock clock;

	hca_clock_init(&clock, KHZ, 0, 0, start_ns, 0);
	for (uint64_t i = 1; i <= STEPS; i++)
		hca_clock_advance_info(&clock, start_ns + i * STEP_NS);
	CHECK(clock.info_ns + 100 > (uint64_t)STEPS * STEP_NS);
	CHECK(clock.info_ns < (uint64_t)STEPS * STEP_NS + 100);
}

/* What is published has the fraction, which libmlx5 adds before it shifts. */
TEST(clock_info_publishes_the_fraction)
{
	struct mlx5_ib_clock_info info = { 0 };
	struct hca_clock clock;

	hca_clock_init(&clock, KHZ, 0, 0, start_ns, 0);
	hca_clock_advance_info(&clock, start_ns + 13);
	hca_clock_publish_info(&clock, &info);
	/* One cycle is 12.8 ns. */
	CHECK_EQ(info.cycles, 1);
	CHECK_EQ(info.nsec, 12);
	CHECK_EQ(info.frac * 10 >> info.shift, 8);
	CHECK_EQ((info.frac + info.mult) >> info.shift, 13);
}
