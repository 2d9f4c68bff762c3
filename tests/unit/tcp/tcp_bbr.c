/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tcp/tcp_bbr.h"

#include "base/clock.h"
#include "tests/support/test.h"

/* A path of 10 ms; at RATE it holds BDP, a hundred segments. */
enum { MSS = 1000, RTT_MS = 10, BDP = 100 * MSS };
#define RATE (UINT64_C(10000000))
#define NONE UINT64_MAX

static struct tcp_bbr bbr;
static struct tcp_bbr_control control;
static struct tcp_bbr_ack ack;

static void begin(void)
{
	tcp_bbr_init(&bbr, 1);
	control.cwnd = 10 * MSS;
	control.pacing_rate = tcp_bbr_first_rate(control.cwnd,
						 RTT_MS * NS_PER_MS);
	ack = (struct tcp_bbr_ack){
		.now_ns = 1000 * NS_PER_SEC,
		.rtt_ns = RTT_MS * NS_PER_MS,
		.tx_in_flight = BDP,
		.acked = MSS,
		.in_flight = BDP,
		.mss = MSS,
	};
}

/* A round trip that ends with an ACK of this rate. */
static void round_trip(uint64_t rate)
{
	ack.now_ns += RTT_MS * NS_PER_MS;
	ack.rate = rate;
	ack.delivered = (uint32_t)(rate * RTT_MS / 1000);
	ack.ends_round = true;
	tcp_bbr_acked(&bbr, &ack, &control);
	ack.lost = 0;
}

/* Within one. */
static void lose(uint32_t bytes)
{
	ack.rate = 0;
	ack.lost = bytes;
	ack.ends_round = false;
	tcp_bbr_acked(&bbr, &ack, &control);
	ack.lost = 0;
}

static void rounds(unsigned cnt, uint64_t rate)
{
	while (cnt--)
		round_trip(rate);
}

/* The bandwidth is found, and the queue of the start is gone. */
static void fill_path(void)
{
	begin();
	ack.in_flight = 2 * BDP;
	rounds(4, RATE);
	ack.in_flight = BDP;
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_CRUISE);
}

static void until(enum tcp_bbr_state state, unsigned most)
{
	while (bbr.state != state && most--)
		round_trip(RATE);
	CHECK_EQ(bbr.state, state);
}

static uint64_t paced(unsigned percent)
{
	return RATE * percent / 100 * 99 / 100;
}

TEST(first_rate_is_the_window_in_a_round_trip)
{
	CHECK_EQ(tcp_bbr_first_rate(10 * MSS, 10 * NS_PER_MS), 2770000);
	/* nothing was measured: a millisecond */
	CHECK_EQ(tcp_bbr_first_rate(10 * MSS, 0), 27700000);
}

/* Section 5.3.1.2: a quarter more in a round trip is growth; three without are the end. */
TEST(start_ends_where_bandwidth_grows_no_more)
{
	begin();
	ack.in_flight = 2 * BDP;
	for (uint64_t rate = RATE / 4; rate <= RATE; rate *= 2) {
		round_trip(rate);
		CHECK_EQ(control.pacing_rate, rate * 277 / 100 * 99 / 100);
		CHECK_EQ(bbr.state, BBR_STARTUP);
	}
	round_trip(RATE * 124 / 100);
	round_trip(RATE * 124 / 100);
	CHECK_EQ(bbr.state, BBR_STARTUP);
	round_trip(RATE * 124 / 100);
	CHECK_EQ(bbr.state, BBR_DRAIN);
	CHECK_EQ(control.pacing_rate,
		 RATE * 124 / 100 * 50 / 100 * 99 / 100);
}

TEST(growth_by_a_quarter_goes_on)
{
	uint64_t rate = RATE;

	begin();
	for (int i = 0; i < 20; i++, rate = rate * 5 / 4 + 10)
		round_trip(rate);
	CHECK_EQ(bbr.state, BBR_STARTUP);
}

/* A program that writes little says nothing about the path. */
TEST(limited_samples_do_not_end_the_start)
{
	begin();
	ack.is_app_limited = true;
	rounds(20, RATE);
	CHECK_EQ(bbr.state, BBR_STARTUP);
	round_trip(RATE / 2);
	CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), RATE);
	round_trip(2 * RATE);
	CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), 2 * RATE);
}

/* Section 5.3.1.3: more than one in fifty, in six places. */
TEST(losses_end_the_start)
{
	for (unsigned places = 5; places <= 6; places++) {
		begin();
		ack.in_flight = 3 * BDP;
		round_trip(RATE);
		for (unsigned i = 0; i < places; i++)
			lose(MSS);
		round_trip(2 * RATE);
		CHECK_EQ(bbr.state, places == 6 ? BBR_DRAIN : BBR_STARTUP);
		CHECK_EQ(bbr.inflight_hi, places == 6 ? 2 * BDP : UINT32_MAX);
	}
}

TEST(few_losses_do_not)
{
	begin();
	round_trip(RATE);
	for (int i = 0; i < 6; i++)
		lose(BDP / 50 / 6);
	round_trip(2 * RATE);
	CHECK_EQ(bbr.state, BBR_STARTUP);
}

/* Section 5.3.2: DRAIN lasts until what is under way is what the path holds. */
TEST(queue_of_the_start_is_drained)
{
	begin();
	ack.in_flight = 2 * BDP;
	rounds(10, RATE);
	CHECK_EQ(bbr.state, BBR_DRAIN);
	ack.in_flight = BDP + 1;
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_DRAIN);
	ack.in_flight = BDP;
	round_trip(RATE);
	/* by way of DOWN, which has nothing left to do */
	CHECK_EQ(bbr.state, BBR_CRUISE);
	CHECK_EQ(control.pacing_rate, paced(100));
}

/* Section 5.3.3: CRUISE until it is time, a round trip of REFILL, then UP while
 * the bandwidth grows, and DOWN. */
TEST(bandwidth_is_probed_in_cycles)
{
	fill_path();
	CHECK_EQ(control.pacing_rate, paced(100));
	until(BBR_REFILL, 63);
	CHECK_EQ(control.pacing_rate, paced(100));
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_UP);
	CHECK_EQ(control.pacing_rate, paced(125));
	rounds(2, RATE);
	CHECK_EQ(bbr.state, BBR_UP);
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_DOWN);
	CHECK_EQ(control.pacing_rate, paced(90));
}

/* The wait is two to three seconds where a round trip is long. */
TEST(probe_comes_after_seconds)
{
	uint64_t began_ns, waited_ns;

	fill_path();
	began_ns = bbr.cycle_ns;
	while (bbr.state == BBR_CRUISE) {
		bbr.rounds_since_probe = 0;
		round_trip(RATE);
	}
	waited_ns = ack.now_ns - began_ns;
	CHECK_EQ(bbr.state, BBR_REFILL);
	CHECK(waited_ns > 2 * NS_PER_SEC);
	CHECK(waited_ns < 3 * NS_PER_SEC + 20 * NS_PER_MS);
}

/* Section 5.5.10.2 */
TEST(losses_of_a_probe_bound_what_is_under_way)
{
	fill_path();
	until(BBR_UP, 70);
	ack.tx_in_flight = ack.in_flight = BDP * 5 / 4;
	lose(BDP / 50);
	CHECK_EQ(bbr.state, BBR_UP);
	lose(BDP / 100);
	CHECK_EQ(bbr.state, BBR_DOWN);
	CHECK_EQ(bbr.inflight_hi, BDP * 5 / 4);
	/* CRUISE leaves room for others */
	ack.tx_in_flight = ack.in_flight = BDP;
	ack.acked = BDP;
	until(BBR_CRUISE, 3);
	CHECK_EQ(control.cwnd, (uint32_t)(BDP * 5 / 4) * 85 / 100);
}

/* Section 5.3.3.6: the bound rises by 1, 2, 4 ... segments a round trip while the window
 * is at it. */
TEST(bound_rises_while_it_is_reached)
{
	uint32_t before;

	fill_path();
	until(BBR_UP, 70);
	ack.tx_in_flight = BDP;
	lose(BDP / 30);
	until(BBR_UP, 70);
	CHECK(bbr.inflight_hi < UINT32_MAX);
	ack.is_cwnd_limited = true;
	ack.acked = control.cwnd = bbr.inflight_hi;
	before = bbr.inflight_hi;
	round_trip(RATE);
	CHECK_EQ(bbr.inflight_hi, before + MSS);
	ack.acked = control.cwnd = bbr.inflight_hi;
	before = bbr.inflight_hi;
	round_trip(RATE);
	CHECK(bbr.inflight_hi >= before + 2 * MSS);
	/* who does not use it learns nothing */
	ack.is_cwnd_limited = false;
	before = bbr.inflight_hi;
	round_trip(RATE);
	CHECK_EQ(bbr.inflight_hi, before);
}

/* Section 5.5.10.3: losses outside a probe lower the bounds for a cycle, not below what
 * was delivered. */
TEST(losses_lower_the_bounds_until_the_next_probe)
{
	fill_path();
	control.cwnd = 2 * BDP;
	lose(MSS);
	CHECK_EQ(bbr.bw_lo, NONE);
	round_trip(RATE / 2);
	CHECK_EQ(bbr.bw_lo, RATE * 7 / 10);
	CHECK_EQ(bbr.inflight_lo, (2 * BDP + MSS) * 7 / 10);
	CHECK_EQ(control.pacing_rate, paced(70));
	CHECK(control.cwnd <= bbr.inflight_lo);
	lose(MSS);
	round_trip(RATE * 6 / 10);
	CHECK_EQ(bbr.bw_lo, RATE * 6 / 10);
	until(BBR_REFILL, 70);
	CHECK_EQ(bbr.bw_lo, NONE);
	CHECK_EQ(bbr.inflight_lo, UINT32_MAX);
	CHECK_EQ(control.pacing_rate, paced(100));
}

/* RFC 3168: as good as lost */
TEST(marks_lower_the_bounds)
{
	fill_path();
	ack.marked = MSS;
	round_trip(RATE / 2);
	CHECK_EQ(bbr.bw_lo, RATE * 7 / 10);
}

/* A rate is forgotten when the probe of the next cycle has not seen it again. */
TEST(bandwidth_is_that_of_two_cycles)
{
	fill_path();
	while (bbr.state != BBR_UP)
		round_trip(RATE / 2);
	CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), RATE);
	while (bbr.state != BBR_DOWN) {
		CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), RATE);
		round_trip(RATE / 2);
	}
	/* its acknowledgments are still coming */
	CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), RATE);
	round_trip(RATE / 2);
	CHECK_EQ(MAX(bbr.max_bw[0], bbr.max_bw[1]), RATE / 2);
}

/* Section 5.3.4: every five seconds, unless a shorter round trip came meanwhile, half of
 * what the path holds for 200 ms and a round trip. */
TEST(shortest_round_trip_is_measured_again)
{
	uint64_t began_ns;
	uint32_t before = 0;

	fill_path();
	ack.rtt_ns = RTT_MS * NS_PER_MS + NS_PER_MS;
	while (bbr.state != BBR_PROBE_RTT) {
		before = control.cwnd;
		CHECK(ack.now_ns < 1006 * NS_PER_SEC);
		round_trip(RATE);
	}
	CHECK(ack.now_ns > 1005 * NS_PER_SEC);
	CHECK_EQ(control.cwnd, BDP / 2);
	CHECK_EQ(bbr.min_rtt_ns, RTT_MS * NS_PER_MS);
	began_ns = ack.now_ns;
	rounds(20, RATE);
	/* too much is still under way */
	CHECK_EQ(bbr.state, BBR_PROBE_RTT);
	ack.in_flight = BDP / 2;
	ack.rtt_ns = RTT_MS * NS_PER_MS + NS_PER_MS / 2;
	began_ns = ack.now_ns;
	until(BBR_CRUISE, 30);
	CHECK(ack.now_ns - began_ns > 200 * NS_PER_MS);
	CHECK(ack.now_ns - began_ns <= 230 * NS_PER_MS);
	CHECK(control.cwnd >= before);
}

TEST(idle_connection_needs_no_probe_for_the_round_trip)
{
	fill_path();
	ack.now_ns += 60 * NS_PER_SEC;
	tcp_bbr_restarted(&bbr, ack.now_ns, &control);
	round_trip(RATE);
	CHECK(bbr.state != BBR_PROBE_RTT);
}

/* Section 5.6.4.4: as much as arrives leaves, for a round trip; the window returns. */
TEST(recovery_keeps_to_what_arrives)
{
	uint32_t before;

	fill_path();
	control.cwnd = before = 2 * BDP;
	tcp_bbr_recovers(&bbr, BDP - MSS, MSS, &control);
	CHECK_EQ(control.cwnd, BDP);
	ack.in_flight = BDP - MSS;
	ack.acked = 2 * MSS;
	lose(MSS);
	CHECK_EQ(control.cwnd, BDP + MSS);
	tcp_bbr_recovered(&bbr, &control);
	CHECK_EQ(control.cwnd, before);
	tcp_bbr_timed_out(&bbr, MSS, &control);
	CHECK_EQ(control.cwnd, MSS);
	tcp_bbr_recovered(&bbr, &control);
	CHECK_EQ(control.cwnd, before);
}

TEST(needless_reduction_is_forgotten)
{
	fill_path();
	lose(MSS);
	round_trip(RATE / 2);
	CHECK_EQ(bbr.bw_lo, RATE * 7 / 10);
	tcp_bbr_undone(&bbr);
	round_trip(RATE);
	CHECK_EQ(bbr.bw_lo, NONE);
	CHECK_EQ(control.pacing_rate, paced(100));
}

/* Never less than four segments, whatever the model says. */
TEST(window_holds_four_segments)
{
	fill_path();
	ack.tx_in_flight = MSS;
	control.cwnd = MSS;
	for (int i = 0; i < 30; i++) {
		lose(MSS);
		round_trip(MSS);
		CHECK(control.cwnd >= 4 * MSS);
	}
}

/* ---- windows, and what samples count ---- */

/* Section 5.6.4.2: twice what the path holds, a little more while it is probed; with what
 * comes in bunches, which is nothing here. In the start it grows up to that. */
TEST(window_of_the_start_grows_to_two)
{
	begin();
	ack.acked = 0;
	rounds(2, RATE);
	control.cwnd = BDP * 3 / 2;
	ack.acked = MSS;
	round_trip(RATE);
	CHECK_EQ(control.cwnd, BDP * 3 / 2 + MSS);
}

TEST(window_of_a_probe_is_wider)
{
	fill_path();
	until(BBR_UP, 70);
	bbr.extra_acked[0] = bbr.extra_acked[1] = 0;
	bbr.bunch_ns = ack.now_ns + RTT_MS * NS_PER_MS;
	bbr.bunch_acked = 0;
	ack.acked = 0;
	control.cwnd = 10 * BDP;
	bbr.is_full_now = false;
	bbr.full_cnt = 0;
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_UP);
	CHECK_EQ(control.cwnd, BDP * 225 / 100 + 2 * MSS);
}

/* Section 5.5.5: who writes little has no rate to tell, unless it is a high one. */
TEST(rates_of_a_limited_program_only_raise)
{
	fill_path();
	bbr.max_bw[0] = bbr.max_bw[1] = 0;
	bbr.max_bw[0] = RATE;
	ack.is_app_limited = true;
	round_trip(RATE / 2);
	CHECK_EQ(bbr.max_bw[1], 0);
	round_trip(RATE);
	CHECK_EQ(bbr.max_bw[1], RATE);
}

/* A cycle of which nothing was measured leaves the rate as it was. */
TEST(silent_cycle_forgets_nothing)
{
	fill_path();
	bbr.max_bw[0] = RATE;
	bbr.max_bw[1] = 0;
	bbr.feedback = BBR_OF_PROBE_STILL;
	ack.rate = 0;
	round_trip(0);
	CHECK_EQ(bbr.max_bw[0], RATE);
}

/* Section 5.5.9: a bunch counts for ten round trips at most. */
TEST(bunches_are_forgotten)
{
	fill_path();
	bbr.extra_acked[0] = bbr.extra_acked[1] = 50 * MSS;
	ack.acked = 0;
	for (int i = 0; i < 11; i++) {
		bbr.rounds_since_probe = 0;
		round_trip(RATE);
	}
	CHECK_EQ(bbr.extra_acked[0], 0);
	CHECK_EQ(bbr.extra_acked[1], 0);
}

/* Section 5.5.10.2: losses of who writes little say nothing of the path. */
TEST(losses_of_a_limited_program_bound_nothing)
{
	fill_path();
	until(BBR_UP, 70);
	ack.is_app_limited = true;
	lose(BDP / 10);
	CHECK_EQ(bbr.inflight_hi, UINT32_MAX);
	CHECK(bbr.state != BBR_UP);
}

/* Section 5.3.3.5.3: not before what is under way fits the path, with room left. */
TEST(queue_of_a_probe_is_drained)
{
	fill_path();
	until(BBR_UP, 70);
	ack.in_flight = BDP * 5 / 4;
	until(BBR_DOWN, 10);
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_DOWN);
	ack.in_flight = BDP;
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_CRUISE);
}

/* ---- the shortest round trip ---- */

static void begin_probe_rtt(void)
{
	fill_path();
	ack.rtt_ns = 2 * RTT_MS * NS_PER_MS;
	ack.now_ns += 5 * NS_PER_SEC + 1;
	bbr.rounds_since_probe = 0;
	bbr.cycle_ns = ack.now_ns;
	ack.in_flight = 2 * BDP;
	control.cwnd = 2 * BDP;
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_PROBE_RTT);
}

/* Section 5.3.4.3: 200 ms and a round trip from when half of what the path holds is under
 * way, no sooner. */
TEST(short_window_lasts_for_its_time)
{
	uint64_t began_ns;

	begin_probe_rtt();
	CHECK_EQ(control.cwnd, BDP / 2);
	rounds(30, RATE);
	CHECK_EQ(bbr.state, BBR_PROBE_RTT);
	CHECK_EQ(bbr.probe_rtt_done_ns, 0);
	ack.in_flight = BDP / 2;
	round_trip(RATE);
	began_ns = ack.now_ns;
	while (bbr.state == BBR_PROBE_RTT)
		round_trip(RATE);
	CHECK(ack.now_ns - began_ns > 200 * NS_PER_MS);
	CHECK(ack.now_ns - began_ns <= 220 * NS_PER_MS);
	CHECK(control.cwnd >= BDP);
}

TEST(short_window_lasts_for_a_round_trip)
{
	begin_probe_rtt();
	ack.in_flight = BDP / 2;
	round_trip(RATE);
	ack.now_ns += NS_PER_SEC;
	lose(0);
	CHECK_EQ(bbr.state, BBR_PROBE_RTT);
	round_trip(RATE);
	CHECK(bbr.state != BBR_PROBE_RTT);
}

/* One whose path is not filled goes on to fill it. */
TEST(short_window_may_interrupt_the_start)
{
	begin();
	round_trip(RATE);
	ack.now_ns += 5 * NS_PER_SEC + 1;
	ack.in_flight = 0;
	rounds(2, RATE);
	CHECK_EQ(bbr.state, BBR_PROBE_RTT);
	for (uint64_t rate = RATE; bbr.state == BBR_PROBE_RTT; rate *= 2)
		round_trip(MIN(rate, RATE << 20));
	CHECK_EQ(bbr.state, BBR_STARTUP);
}

/* One who comes back from a pause has probed it by being silent. */
TEST(pause_ends_the_short_window)
{
	begin_probe_rtt();
	ack.in_flight = BDP / 2;
	round_trip(RATE);
	tcp_bbr_restarted(&bbr, ack.now_ns + NS_PER_SEC, &control);
	CHECK_EQ(bbr.state, BBR_CRUISE);
}

/* Section 5.3.3.4: REFILL is a round trip, at the rate that is known. */
TEST(refill_lasts_for_a_round_trip)
{
	fill_path();
	until(BBR_REFILL, 70);
	lose(0);
	CHECK_EQ(bbr.state, BBR_REFILL);
	round_trip(RATE);
	CHECK_EQ(bbr.state, BBR_UP);
}

/* Section 5.3.4.2: the shortest round trip is believed for ten seconds, and then the
 * shortest of late. */
TEST(shortest_round_trip_ages)
{
	uint64_t began_ns;

	fill_path();
	began_ns = bbr.min_rtt_at_ns;
	ack.rtt_ns = 2 * RTT_MS * NS_PER_MS;
	ack.in_flight = 0;
	while (ack.now_ns < began_ns + 10 * NS_PER_SEC - NS_PER_SEC) {
		round_trip(RATE);
		CHECK_EQ(bbr.min_rtt_ns, RTT_MS * NS_PER_MS);
	}
	ack.now_ns += 2 * NS_PER_SEC;
	round_trip(RATE);
	CHECK_EQ(bbr.min_rtt_ns, 2 * RTT_MS * NS_PER_MS);
}

/* Section 5.4.1: what waits behind a pause leaves at the rate, not above it. */
TEST(restart_has_no_gain)
{
	fill_path();
	until(BBR_UP, 70);
	CHECK_EQ(control.pacing_rate, paced(125));
	tcp_bbr_restarted(&bbr, ack.now_ns, &control);
	CHECK_EQ(control.pacing_rate, paced(100));
}

/* ---- recovery ---- */

/* Section 5.6.4.4: for a round trip what arrives makes room for as much, and no longer. */
TEST(recovery_conserves_for_a_round_trip)
{
	fill_path();
	ack.in_flight = BDP / 2;
	tcp_bbr_recovers(&bbr, BDP / 2, MSS, &control);
	lose(MSS);
	CHECK_EQ(control.cwnd, BDP / 2 + MSS);
	round_trip(RATE);
	CHECK(!bbr.conserves);
}

TEST(timeout_leaves_one_segment)
{
	fill_path();
	tcp_bbr_timed_out(&bbr, MSS, &control);
	CHECK_EQ(control.cwnd, MSS);
}

/* Recovery does not end the short window of a probe, nor does its end. */
TEST(recovery_leaves_a_short_window_short)
{
	begin_probe_rtt();
	bbr.prior_cwnd = 2 * BDP;
	control.cwnd = BDP / 2;
	tcp_bbr_recovered(&bbr, &control);
	CHECK_EQ(control.cwnd, BDP / 2);
}

/* Section 5.6.4.2: bursts that leave at once need room in a short path. */
TEST(window_has_room_for_bursts)
{
	begin();
	ack.rtt_ns = 10 * NS_PER_US;
	ack.in_flight = 0;
	for (int i = 0; i < 8; i++) {
		ack.now_ns += NS_PER_MS;
		ack.rate = 100 * RATE;
		ack.delivered = MSS;
		ack.ends_round = true;
		ack.acked = 10 * BDP;
		tcp_bbr_acked(&bbr, &ack, &control);
	}
	bbr.extra_acked[0] = bbr.extra_acked[1] = 0;
	ack.acked = 0;
	control.cwnd = 100 * BDP;
	ack.ends_round = false;
	bbr.bunch_ns = ack.now_ns;
	tcp_bbr_acked(&bbr, &ack, &control);
	CHECK_EQ(control.cwnd, 3 * (uint32_t)(control.pacing_rate >> 10));
}
