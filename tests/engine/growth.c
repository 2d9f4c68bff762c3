/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the congestion window grows, acknowledgment by acknowledgment, on a path of
 * one round trip and no queue: against the formulas, computed apart.
 */
#include "tests/engine/peer.h"

#include "base/clock.h"
#include "tests/support/test.h"

enum { MSS = 1460, WINDOW = 65535, BEFORE_LOSS = 80 };

static unsigned rtt_ms;

static uint32_t cwnd(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info.cwnd;
}

static double segments(void)
{
	return (double)cwnd() / MSS;
}

/* A writer who is never what limits it. */
static void stay_ahead(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	while (info.snd_queued < info.cwnd + 2 * MSS) {
		peer_write(MSS);
		info.snd_queued += MSS;
	}
	peer.looked_at = peer.sent_cnt;
}

static void acknowledge(uint32_t ack)
{
	const struct tcp_options none = { 0 };

	peer_send_options(A, P, ack, WINDOW, 0, &none);
}

/* All that is under way is acknowledged a round trip later. */
static void round_trip(void)
{
	struct tcp_pcb_info info;

	stay_ahead();
	peer_advance_ms(rtt_ms);
	tcp_get_info(peer.pcb, &info);
	acknowledge(info.snd_nxt);
}

/* The first segment of those under way is lost and repaired. */
static void lose_one(void)
{
	struct tcp_options gap = { .sack_cnt = 1 };
	struct tcp_pcb_info info;

	stay_ahead();
	peer_advance_ms(rtt_ms);
	tcp_get_info(peer.pcb, &info);
	gap.sack[0].start = info.snd_una + MSS;
	gap.sack[0].end = info.snd_una + 4 * MSS;
	peer_send_options(A, P, info.snd_una, WINDOW, 0, &gap);
	CHECK_EQ(tcp_counts(peer.table)->fast_recoveries, 1);
	peer_advance_ms(rtt_ms);
	tcp_get_info(peer.pcb, &info);
	acknowledge(info.snd_nxt);
	tcp_get_info(peer.pcb, &info);
	CHECK(!info.is_recovering);
}

/* The handshake took less, and a probe would come too early. */
static void learn_round_trip(void)
{
	struct tcp_pcb_info info;

	for (int i = 0; i < 40; i++) {
		peer_write(1);
		peer_advance_ms(rtt_ms);
		tcp_get_info(peer.pcb, &info);
		acknowledge(info.snd_nxt);
	}
	CHECK_EQ(tcp_counts(peer.table)->tlp_sent, 0);
}

/* Slow start up to a window of BEFORE_LOSS, and the loss. */
static void begin(enum tcp_cc_algorithm cc, unsigned path_ms)
{
	rtt_ms = path_ms;
	peer_defaults();
	peer.params.cc = cc;
	peer.params.snd_buf = peer.params.snd_buf_max = 4 << 20;
	peer_connect(&peer_full_options);
	acknowledge(U);
	learn_round_trip();
	for (int expected = 10; expected < BEFORE_LOSS; expected *= 2) {
		CHECK_EQ(cwnd(), expected * MSS);
		round_trip();
	}
	CHECK_EQ(cwnd(), BEFORE_LOSS * MSS);
	lose_one();
}

/* RFC 5681 section 3.1 */
TEST(newreno_grows_by_a_segment_each_round_trip)
{
	begin(TCP_CC_NEWRENO, 200);
	CHECK_EQ(cwnd(), BEFORE_LOSS / 2 * MSS);
	for (int i = 1; i <= 30; i++) {
		round_trip();
		CHECK(segments() >= BEFORE_LOSS / 2 + i - 1);
		CHECK(segments() <= BEFORE_LOSS / 2 + i);
	}
	peer_teardown();
}

/* RFC 9438: equation 1 with C = 0.4, and equation 4 where it is more. */
static void check_cubic(unsigned path_ms, int rounds)
{
	/* the cube root of 80 * (1 - 0.7) / 0.4 */
	const double k = 3.9149;
	double estimate = BEFORE_LOSS * 0.7, least = 1e9, most = -1e9;

	begin(TCP_CC_CUBIC, path_ms);
	CHECK_EQ(cwnd(), BEFORE_LOSS * 7 / 10 * MSS);
	for (int i = 1; i <= rounds; i++) {
		/* the epoch begins with the first acknowledgment, and looks a
		 * round trip ahead */
		double t = i * (double)path_ms / 1000 - k;
		double cubic = 0.4 * t * t * t + BEFORE_LOSS, off;

		estimate += estimate < BEFORE_LOSS ? 9.0 / 17 : 1;
		round_trip();
		off = segments() - (cubic > estimate ? cubic : estimate);
		least = off < least ? off : least;
		most = off > most ? off : most;
	}
	test_note("%u ms: from %.2f to %.2f segments off", path_ms, least,
		  most);
	CHECK(least >= -1.5);
	CHECK(most <= 1.5);
	peer_teardown();
}

TEST(cubic_follows_its_curve)
{
	check_cubic(200, 30);
}

/* On a short path Reno would have more. */
TEST(cubic_is_no_slower_than_reno)
{
	check_cubic(20, 60);
}

/* The peer's window alone. */
TEST(none_knows_no_congestion)
{
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.cc = TCP_CC_NONE;
	peer.params.snd_buf = peer.params.snd_buf_max = 4 << 20;
	peer_connect(&peer_full_options);
	acknowledge(U);
	for (int i = 0; i < 200; i++)
		peer_write(MSS);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.in_flight / MSS, WINDOW * 4 / MSS);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* The window and threshold of a connection that ends in congestion avoidance. */
static struct tcp_pcb_info end_after_a_loss(bool peer_is_first)
{
	struct tcp_pcb_info info;

	peer_connect(&peer_full_options);
	rtt_ms = 20;
	learn_round_trip();
	lose_one();
	for (int i = 0; i < 3; i++)
		round_trip();
	tcp_get_info(peer.pcb, &info);
	peer_advance_ms(rtt_ms);
	acknowledge(info.snd_end);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_queued, 0);
	if (peer_is_first) {
		peer_send(F | A, P, info.snd_nxt, 0);
		tcp_close(peer.pcb, peer.now_ns);
		peer_send(A, P + 1, info.snd_nxt + 1, 0);
	} else {
		tcp_close(peer.pcb, peer.now_ns);
		peer_send(F | A, P, info.snd_nxt + 1, 0);
	}
	CHECK_EQ(tcp_time_wait_cnt(peer.table), !peer_is_first);
	return info;
}

static uint32_t threshold_of_the_next(void)
{
	struct tcp_pcb_info info;

	peer.looked_at = peer.sent_cnt;
	peer.key.remote_port = htobe16(3000);
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	peer_send_options(S | A, PEER_ISN, U, 20000, 0, &peer_full_options);
	tcp_get_info(peer.pcb, &info);
	peer.looked_at = peer.sent_cnt;
	return info.ssthresh;
}

TEST(threshold_is_taken_over)
{
	struct tcp_pcb_info last;

	peer_defaults();
	last = end_after_a_loss(false);
	CHECK(last.cwnd >= last.ssthresh);
	CHECK_EQ(threshold_of_the_next(), UINT32_MAX / 4);
	peer_teardown();
	for (int is_first = 0; is_first < 2; is_first++) {
		peer_defaults();
		peer.params.saves_ssthresh = true;
		last = end_after_a_loss(is_first);
		CHECK_EQ(threshold_of_the_next(),
			 MAX(last.ssthresh, last.cwnd / 2));
		peer_teardown();
	}
}

/* The same, with an ACK for each segment. */
static void round_trip_by_segments(void)
{
	struct tcp_pcb_info info;
	uint32_t end;

	stay_ahead();
	peer_advance_ms(rtt_ms);
	tcp_get_info(peer.pcb, &info);
	end = info.snd_nxt;
	for (uint32_t ack = info.snd_una + MSS; ack != end; ack += MSS)
		acknowledge(ack);
	acknowledge(end);
	peer.looked_at = peer.sent_cnt;
}

static uint32_t ssthresh(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info.ssthresh;
}

static void grow_to_forty(bool with_hystart)
{
	peer_defaults();
	peer.params.with_hystart = with_hystart;
	/* a longer round trip would bring a probe */
	peer.params.with_tlp = false;
	peer_connect(&peer_full_options);
	rtt_ms = 20;
	acknowledge(U);
	round_trip_by_segments();
	round_trip_by_segments();
	CHECK_EQ(cwnd(), 40 * MSS);
}

/* RFC 9406: half as long a round trip more is a queue. Two ACKs still belong to the round
 * before, whose end was sent with them; eight show it; all others count for a quarter.
 * With the fifth such round, counting the part of the first, slow start is over. */
TEST(slow_start_ends_where_a_queue_builds_up)
{
	uint32_t before;

	grow_to_forty(true);
	rtt_ms = 30;
	round_trip_by_segments();
	CHECK_EQ(cwnd(), (40 + 10) * MSS + 30 * (MSS / 4));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ssthresh(), UINT32_MAX / 4);
		before = cwnd();
		round_trip_by_segments();
		CHECK_EQ(cwnd(), before + before / MSS * (MSS / 4));
	}
	before = cwnd();
	round_trip_by_segments();
	CHECK(ssthresh() > before && ssthresh() < before + 4 * MSS);
	/* in congestion avoidance */
	CHECK(cwnd() < ssthresh() + 2 * MSS);
	peer_teardown();
}

TEST(slow_start_goes_on_where_it_was_jitter)
{
	grow_to_forty(true);
	rtt_ms = 30;
	round_trip_by_segments();
	rtt_ms = 20;
	/* nine ACKs until that is known */
	round_trip_by_segments();
	CHECK(segments() > 56 + 45);
	round_trip_by_segments();
	CHECK(segments() > 170);
	CHECK_EQ(ssthresh(), UINT32_MAX / 4);
	peer_teardown();
}

TEST(slow_start_doubles_without_hystart)
{
	grow_to_forty(false);
	rtt_ms = 30;
	round_trip_by_segments();
	CHECK_EQ(cwnd(), 80 * MSS);
	peer_teardown();
}

/* -- the send buffer ------------------------------------------------------------------ */

static uint32_t snd_buf_at_first(uint32_t snd_buf, uint32_t snd_buf_max)
{
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.snd_buf = snd_buf;
	peer.params.snd_buf_max = snd_buf_max;
	peer_connect(&peer_full_options);
	tcp_get_info(peer.pcb, &info);
	peer_teardown();
	return info.snd_buf;
}

/* As Linux has it with the tcp_wmem that it comes with. */
TEST(send_buffer_begins_with_two_windows)
{
	CHECK_EQ(snd_buf_at_first(16384, 4 << 20), 87040);
	CHECK_EQ(snd_buf_at_first(16384, 50000), 50000);
	CHECK_EQ(snd_buf_at_first(100000, 4 << 20), 100000);
}
