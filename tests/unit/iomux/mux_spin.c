/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a wait that brings nothing polls less the next time. */
#include "config.h"

#include "iomux/mux_spin.h"

#include "tests/support/test.h"

enum { FULL_NS = 100000 };

static struct mux_spin after(unsigned waits_in_vain)
{
	struct mux_spin spin = { 0 };

	while (waits_in_vain--)
		mux_spin_learn(&spin, false);
	return spin;
}

static uint64_t ns_after(unsigned waits_in_vain)
{
	struct mux_spin spin = after(waits_in_vain);

	return mux_spin_ns(&spin, FULL_NS);
}

TEST(few_waits_in_vain_change_nothing)
{
	for (unsigned n = 0; n <= MUX_SPIN_PATIENCE; n++)
		CHECK_EQ(ns_after(n), FULL_NS);
}

TEST(each_further_one_halves)
{
	for (unsigned n = 1; n < 16; n++)
		CHECK_EQ(ns_after(MUX_SPIN_PATIENCE + n), FULL_NS >> n);
}

/* For ever, whatever the longest poll is. */
TEST(comes_down_to_nothing)
{
	struct mux_spin spin = after(MUX_SPIN_PATIENCE + 64);

	CHECK_EQ(ns_after(MUX_SPIN_PATIENCE + 20), 0);
	CHECK_EQ(mux_spin_ns(&spin, UINT64_MAX), 0);
	for (int i = 0; i < 1000; i++)
		mux_spin_learn(&spin, false);
	CHECK_EQ(mux_spin_ns(&spin, UINT64_MAX), 0);
}

TEST(something_of_ours_brings_it_back)
{
	struct mux_spin spin = after(1000);

	mux_spin_learn(&spin, true);
	CHECK_EQ(mux_spin_ns(&spin, FULL_NS), FULL_NS);
	for (int i = 0; i < MUX_SPIN_PATIENCE; i++)
		mux_spin_learn(&spin, false);
	CHECK_EQ(mux_spin_ns(&spin, FULL_NS), FULL_NS);
	mux_spin_learn(&spin, false);
	CHECK_EQ(mux_spin_ns(&spin, FULL_NS), FULL_NS / 2);
}
