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
