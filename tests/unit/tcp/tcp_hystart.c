/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tcp/tcp_hystart.h"

#include "base/clock.h"
#include "tests/support/test.h"

enum { ROUND = 100000, SEGMENT = 1000 };

static struct tcp_hystart hystart;
static uint32_t una;
static bool has_ended;

static void begin(void)
{
	/* where sequence numbers wrap */
	una = UINT32_MAX - 2 * ROUND;
	tcp_hystart_init(&hystart, una + ROUND);
	has_ended = false;
}

/* A round of so many ACKs; returns what the window grew by. */
static uint32_t play_round(unsigned acks, uint64_t rtt_us)
{
	uint32_t end = hystart.round_end, growth = 0, bytes = ROUND / acks;
	bool ends;

	for (unsigned i = 1; i <= acks; i++) {
		una = i == acks ? end : una + bytes;
		CHECK(!has_ended);
		growth += tcp_hystart_acked(&hystart, una, una + ROUND,
					    rtt_us * NS_PER_US, SEGMENT, &ends);
		has_ended |= ends;
		CHECK(!ends || i == acks);
	}
	return growth;
}

TEST(equal_round_trips_never_end_it)
{
	begin();
	for (int i = 0; i < 50; i++)
		CHECK_EQ(play_round(10, 20000), 10 * SEGMENT);
	CHECK(!hystart.is_conservative && !has_ended);
}

/* An eighth of the last round, 4 ms at least, 16 at most. */
TEST(longer_ones_make_it_conservative)
{
	static const struct {
		uint64_t first_us, second_us;
		bool is_queue;
	} cases[] = {
		{ 1000, 4999, false },	  { 1000, 5000, true },
		{ 80000, 89999, false },  { 80000, 90000, true },
		{ 800000, 815999, false }, { 800000, 816000, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin();
		play_round(10, cases[i].first_us);
		play_round(10, cases[i].second_us);
		CHECK_EQ(hystart.is_conservative, cases[i].is_queue);
	}
}

TEST(few_samples_say_nothing)
{
	begin();
	play_round(10, 10000);
	play_round(7, 50000);
	CHECK(!hystart.is_conservative);
	/* and the seven are the last round now */
	play_round(8, 50000);
	CHECK(!hystart.is_conservative);
	play_round(8, 60000);
	CHECK(hystart.is_conservative);
}

TEST(conservative_rounds_grow_by_a_quarter_and_end)
{
	begin();
	play_round(10, 10000);
	/* the round in which it is found is the first; its first seven ACKs count
	 * whole, and the eighth, which decides, does as well */
	CHECK_EQ(play_round(10, 20000), 8 * SEGMENT + 2 * SEGMENT / 4);
	for (int i = 0; i < 4; i++) {
		CHECK(!has_ended);
		CHECK_EQ(play_round(10, 20000), 10 * SEGMENT / 4);
	}
	CHECK(has_ended);
}

TEST(shorter_ones_resume_slow_start)
{
	begin();
	play_round(10, 10000);
	play_round(10, 20000);
	play_round(10, 20000);
	CHECK(hystart.is_conservative);
	/* one sample is not enough */
	play_round(7, 19999);
	CHECK(hystart.is_conservative);
	play_round(10, 19999);
	CHECK(!hystart.is_conservative);
	CHECK_EQ(play_round(10, 20000), 10 * SEGMENT);
	/* and it can be found again, with five rounds of its own */
	play_round(10, 30000);
	CHECK(hystart.is_conservative);
	for (int i = 0; i < 4; i++) {
		CHECK(!has_ended);
		play_round(10, 30000);
	}
	CHECK(has_ended);
}

/* A program that writes little does not ask for long: half the sequence numbers later, the
 * end of the last round still lies behind. */
TEST(a_round_of_long_ago_is_over)
{
	begin();
	play_round(10, 10000);
	play_round(10, 20000);
	CHECK(hystart.is_conservative);
	una += (UINT32_C(1) << 31) + 2 * ROUND;
	tcp_hystart_acked(&hystart, una, una + ROUND, 20000 * NS_PER_US, SEGMENT,
			  &has_ended);
	CHECK_EQ(hystart.round_end, una + ROUND);
	for (int i = 0; i < 3; i++)
		play_round(10, 20000);
	CHECK(has_ended);
}
