/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine tells of a connection: the numbers that TCP_INFO is made of. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

static struct tcp_pcb_info info(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info;
}

static struct tcp_flight flight(void)
{
	struct tcp_flight flight;

	tcp_get_flight(peer.pcb, &flight);
	return flight;
}

TEST(sizes_are_told)
{
	struct tcp_options offered = { .mss = 1000, .has_ts = true,
				       .ts_val = 7 };
	struct tcp_icmp too_big = { .error = -EMSGSIZE, .mtu = 900 };

	peer_defaults();
	peer_connect(&offered);
	CHECK_EQ(info().mss, 988);
	CHECK_EQ(info().mss_offered, 1460);
	CHECK_EQ(info().pmtu, 1500);
	peer_send(A, P, U, 600);
	CHECK_EQ(info().rcv_mss, 600);
	peer_write(988);
	too_big.key = peer.key;
	too_big.seq = U;
	tcp_icmp_in(peer.table, &too_big, peer.now_ns);
	CHECK_EQ(info().pmtu, 900);
	CHECK_EQ(info().mss, 900 - 52);
	peer_teardown();
}

TEST(the_route_bounds_what_is_offered)
{
	struct tcp_options offered = { .mss = 1000 };

	peer_defaults();
	peer.path.adv_mss = 500;
	peer_connect(&offered);
	CHECK_EQ(info().mss_offered, 500);
	CHECK_EQ(info().mss, 1000);
	peer_teardown();
	peer_defaults();
	peer.path.adv_mss = 5000;
	peer_connect(&offered);
	CHECK_EQ(info().mss_offered, 1460);
	peer_teardown();
}

TEST(the_route_says_how_a_connection_begins)
{
	peer_defaults();
	peer.path.initial_window = 33;
	peer.path.rto_min_ms = 30;
	peer_connect(&(struct tcp_options){ .mss = 1000 });
	CHECK_EQ(info().cwnd, 33 * info().mss);
	CHECK(info().rto_ns < 200 * NS_PER_MS);
	CHECK(info().rto_ns >= 30 * NS_PER_MS);
	peer_teardown();
	peer_defaults();
	peer_connect(&(struct tcp_options){ .mss = 1000 });
	CHECK_EQ(info().cwnd, 10 * info().mss);
	CHECK(info().rto_ns >= 200 * NS_PER_MS);
	peer_teardown();
}

TEST(flight_is_counted_in_segments)
{
	struct tcp_options sack = { .sack_cnt = 1 };

	peer_connected();
	peer_send_options(A, P, U, 20000, 0, &(struct tcp_options){ 0 });
	for (int i = 0; i < 6; i++)
		peer_write(1460);
	CHECK_EQ(flight().unacked, 6);
	CHECK_EQ(flight().sacked + flight().lost + flight().resent, 0);
	/* two behind a gap have arrived: no loss yet */
	peer_advance_ms(10);
	sack.sack[0] = (struct tcp_sack_block){ U + 3 * 1460, U + 5 * 1460 };
	peer_send_options(A, P, U, 20000, 0, &sack);
	CHECK_EQ(flight().unacked, 6);
	CHECK_EQ(flight().sacked, 2);
	CHECK_EQ(flight().lost, 0);
	/* a third one, and the gap is lost; the window lets some go again */
	sack.sack[0].end += 1460;
	peer_send_options(A, P, U, 20000, 0, &sack);
	CHECK_EQ(flight().sacked, 3);
	CHECK_EQ(flight().lost + flight().resent, 3);
	CHECK(flight().resent >= 1);
	CHECK_EQ(info().retransmitted, flight().resent);
	peer_send_options(A, P, U + 6 * 1460, 20000, 0,
			  &(struct tcp_options){ 0 });
	CHECK_EQ(flight().unacked, 0);
	peer_teardown();
}

TEST(silence_is_told)
{
	struct tcp_options none = { 0 };
	uint64_t last_ns;

	peer_connected();
	last_ns = peer.now_ns;
	CHECK_EQ(info().last_rcvd_ns, last_ns);
	peer_advance_ms(5);
	peer_write(100);
	CHECK_EQ(info().last_sent_ns, peer.now_ns);
	CHECK_EQ(info().last_rcvd_ns, last_ns);
	CHECK_EQ(info().timeouts, 0);
	while (info().timeouts < 2)
		peer_advance_ms(10);
	CHECK_EQ(info().backoff, 2);
	CHECK(info().rto_ns >= 800 * NS_PER_MS);
	peer_send_options(A, P, U + 100, 0, 0, &none);
	CHECK_EQ(info().timeouts, 0);
	CHECK_EQ(info().last_rcvd_ns, peer.now_ns);
	/* the window is closed: probes */
	peer_write(100);
	CHECK_EQ(info().probes, 0);
	while (info().probes < 2)
		peer_advance_ms(10);
	peer_send_options(A, P, U + 100, 0, 0, &none);
	CHECK_EQ(info().probes, 0);
	peer_teardown();
}

/* A segment from there on is acknowledged after that time. */
static void go_round(uint32_t *seq, uint64_t rtt_us)
{
	peer_write(100);
	*seq += 100;
	peer.now_ns += rtt_us * NS_PER_US;
	peer_send_options(A, P, *seq, 20000, 0, &(struct tcp_options){ 0 });
}

/* RFC 6298 section 2.3, to a millisecond of the round trip and of the variance. */
static void check_rto(void)
{
	struct tcp_pcb_info now = info();
	uint64_t rto_ns = now.srtt_ns +
			  MAX(4 * now.rttvar_ns, 200 * NS_PER_MS);

	CHECK(now.rto_ns + 5 * NS_PER_MS >= rto_ns);
	CHECK(now.rto_ns <= rto_ns + 5 * NS_PER_MS);
}

TEST(timeouts_follow_round_trips)
{
	uint32_t seq;

	peer_connected();
	seq = U;
	/* a little at a time, up and down again */
	for (uint64_t us = 20; us < 20000; us += 50) {
		go_round(&seq, us);
		check_rto();
	}
	CHECK(info().srtt_ns > 19 * NS_PER_MS);
	for (uint64_t us = 20000; us > 100; us -= 50) {
		go_round(&seq, us);
		check_rto();
	}
	/* round trips of the same mean, more and more different */
	for (uint64_t us = 0; us < 60000; us += 1000) {
		go_round(&seq, 100000 + us);
		check_rto();
		go_round(&seq, 100000 - us);
		check_rto();
	}
	CHECK(info().rttvar_ns > 30 * NS_PER_MS);
	peer_teardown();
}

static struct tcp_pcb_stats stats(void)
{
	struct tcp_pcb_stats stats;

	tcp_get_stats(peer.pcb, &stats, peer.now_ns);
	return stats;
}

TEST(segments_and_bytes_are_counted)
{
	struct tcp_pcb_stats s;

	peer_connected();
	s = stats();
	CHECK_EQ(s.data_segs_in + s.data_segs_out, 0);
	CHECK_EQ(s.bytes_acked + s.bytes_received + s.bytes_sent, 0);
	peer_send_options(A, P, U, 20000, 100, &(struct tcp_options){ 0 });
	peer_send_options(A, P + 100, U, 20000, 50, &(struct tcp_options){ 0 });
	for (int i = 0; i < 3; i++)
		peer_write(1000);
	peer_advance_ms(10);
	peer_send(A, P + 150, U + 1000, 0);
	s = stats();
	CHECK_EQ(s.data_segs_in, 2);
	CHECK_EQ(s.bytes_received, 150);
	CHECK_EQ(s.bytes_acked, 1000);
	CHECK_EQ(s.delivered, 1);
	peer_send(A, P + 150, U + 3000, 0);
	s = stats();
	CHECK_EQ(s.data_segs_out, 3);
	CHECK_EQ(s.bytes_acked, 3000);
	CHECK_EQ(s.bytes_sent, 3000);
	CHECK_EQ(s.delivered, 3);
	/* SYN-ACK, two with data, two without */
	CHECK_EQ(s.segs_in, 5);
	CHECK_EQ(s.bytes_resent, 0);
	/* FINs have no bytes */
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	peer_send(A | F, P + 150, U + 3001, 0);
	s = stats();
	CHECK_EQ(s.bytes_acked, 3000);
	CHECK_EQ(s.bytes_received, 150);
	peer_teardown();
}

TEST(repairs_are_counted_in_bytes)
{
	struct tcp_options dsack = { .sack_cnt = 1 };
	struct tcp_pcb_stats s;

	peer_connected();
	peer_write(700);
	peer_advance_ms(1000);
	s = stats();
	CHECK(s.bytes_resent >= 700);
	CHECK_EQ(s.bytes_resent % 700, 0);
	CHECK_EQ(s.bytes_sent, 700 + s.bytes_resent);
	CHECK_EQ(s.duplicates, 0);
	dsack.sack[0] = (struct tcp_sack_block){ U, U + 700 };
	peer_send_options(A, P, U + 700, 1000, 0, &dsack);
	CHECK_EQ(stats().duplicates, 1);
	peer_teardown();
}

/* Two timeouts of one segment, then one of the next; the time is that until each was
 * through. */
TEST(timeouts_are_counted)
{
	struct tcp_pcb_stats s;

	peer_connected();
	peer_write(700);
	while (stats().timeouts < 2)
		peer_advance_ms(10);
	CHECK_EQ(stats().timeout_runs, 1);
	CHECK_EQ(stats().timeout_ns, 0);
	peer_advance_ms(50);
	peer_send(A, P, U + 700, 0);
	s = stats();
	CHECK_EQ(s.timeouts, 2);
	CHECK_EQ(s.timeout_runs, 1);
	CHECK(s.timeout_ns >= 200 * NS_PER_MS && s.timeout_ns < 3 * NS_PER_SEC);
	peer_write(700);
	while (stats().timeouts < 3)
		peer_advance_ms(10);
	CHECK_EQ(stats().timeout_runs, 2);
	peer_teardown();
}

/* A lost SYN is one, too. */
TEST(timeouts_of_a_syn_are_counted)
{
	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	peer_advance_ms(1100);
	CHECK_EQ(stats().timeouts, 1);
	CHECK_EQ(stats().timeout_runs, 1);
	peer_advance_ms(100);
	peer_send_options(S | A, PEER_ISN, U, 1000, 0,
			  &(struct tcp_options){ .mss = 1460 });
	CHECK(stats().timeout_ns >= 100 * NS_PER_MS &&
	      stats().timeout_ns < 1000 * NS_PER_MS);
	peer_teardown();
}

TEST(segments_out_of_order_are_counted)
{
	peer_connected();
	peer_send(A, P + 200, U, 100);
	peer_send(A, P + 400, U, 100);
	CHECK_EQ(stats().out_of_order, 2);
	peer_send(A, P, U, 200);
	peer_send(A, P + 300, U, 100);
	CHECK_EQ(stats().out_of_order, 2);
	peer_teardown();
}

TEST(reordering_is_told_in_segments)
{
	struct tcp_options sack = { .sack_cnt = 1 };

	peer_connected();
	peer_send_options(A, P, U, 20000, 0, &(struct tcp_options){ 0 });
	for (int i = 0; i < 8; i++)
		peer_write(1460);
	CHECK_EQ(stats().reordering, 3);
	peer_advance_ms(10);
	sack.sack[0] = (struct tcp_sack_block){ U + 7 * 1460, U + 8 * 1460 };
	peer_send_options(A, P, U, 20000, 0, &sack);
	/* the first comes late, behind seven others */
	peer_send_options(A, P, U + 1460, 20000, 0, &sack);
	CHECK_EQ(stats().reorderings, 1);
	CHECK_EQ(stats().reordering, 8);
	peer_teardown();
}

TEST(echoes_are_counted)
{
	peer_defaults();
	peer.params.ecn = TCP_ECN_ACCEPTED;
	peer_setup();
	peer.listener = tcp_new(peer.table);
	CHECK(peer.listener != NULL);
	CHECK_EQ(tcp_bind(peer.listener, &peer.key.local, peer.key.local_port),
		 0);
	CHECK_EQ(tcp_listen(peer.listener, 5), 0);
	peer_send_options(S | WIRE_TCP_ECE | WIRE_TCP_CWR, PEER_ISN, 0, 9000, 0,
			  &peer_full_options);
	peer_send(A, P, U, 0);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_write(1000);
	peer_write(1000);
	peer_send(A, P, U + 1000, 0);
	CHECK_EQ(stats().delivered_ce, 0);
	peer_write(1000);
	peer_send(A | WIRE_TCP_ECE, P, U + 3000, 0);
	CHECK_EQ(stats().delivered, 3);
	CHECK_EQ(stats().delivered_ce, 2);
	peer_teardown();
}

/* To a tick of a millisecond, or two. */
static bool is_about(uint64_t ns, uint64_t ms)
{
	return ns + 3 * NS_PER_MS >= ms * NS_PER_MS &&
	       ns <= (ms + 3) * NS_PER_MS;
}

TEST(busy_and_limited_times_are_told)
{
	peer_connected();
	peer_advance_ms(500);
	CHECK_EQ(stats().busy_ns, 0);
	/* 50 ms until it is acknowledged */
	peer_write(1000);
	peer_advance_ms(30);
	CHECK(is_about(stats().busy_ns, 30));
	peer_advance_ms(20);
	peer_send_options(A, P, U + 1000, 0, 0, &(struct tcp_options){ 0 });
	peer_advance_ms(300);
	CHECK(is_about(stats().busy_ns, 50));
	CHECK(is_about(stats().window_limited_ns, 0));
	/* a closed window for 100 ms */
	peer_write(1000);
	peer_advance_ms(100);
	CHECK(is_about(stats().window_limited_ns, 100));
	peer_send_options(A, P + 1, U + 1000, 5000, 0,
			  &(struct tcp_options){ 0 });
	peer_send_options(A, P, U + 1000, 5000, 0, &(struct tcp_options){ 0 });
	peer_advance_ms(40);
	CHECK(is_about(stats().window_limited_ns, 100));
	CHECK(is_about(stats().busy_ns, 190));
	peer_send_options(A, P, U + 2000, 5000, 0, &(struct tcp_options){ 0 });
	peer_advance_ms(40);
	CHECK(is_about(stats().busy_ns, 190));
	/* what was sent again is busy until it is acknowledged, too */
	peer_write(1000);
	peer_advance_ms(1000);
	peer_send_options(A, P, U + 3000, 5000, 0, &(struct tcp_options){ 0 });
	peer_advance_ms(300);
	CHECK(is_about(stats().busy_ns, 1190));
	peer_teardown();
}

/* What is acknowledged in so many steps of 1460 bytes at the same moment. */
static void acknowledge(uint32_t from, unsigned segments)
{
	for (unsigned i = 1; i <= segments; i++)
		peer_send_options(A, P, U + from + i * 1460, 30000, 0,
				  &(struct tcp_options){ 0 });
}

TEST(delivery_rate_is_told)
{
	peer_connected();
	peer_send_options(A, P, U, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(stats().delivery_rate, 0);
	/* four in 20 ms, and nothing waits: the path may carry more */
	for (int i = 0; i < 4; i++)
		peer_write(1460);
	peer_advance_ms(20);
	acknowledge(0, 4);
	CHECK_EQ(stats().delivery_rate, 4 * 1460 * 50);
	CHECK(stats().is_app_limited);
	/* less of the same says nothing */
	peer_advance_ms(100);
	peer_write(1460);
	peer_advance_ms(20);
	acknowledge(4 * 1460, 1);
	CHECK_EQ(stats().delivery_rate, 4 * 1460 * 50);
	/* a window of 10, and more waits: that is what the path carries */
	for (int i = 0; i < 40; i++)
		peer_write(1460);
	peer_advance_ms(25);
	acknowledge(5 * 1460, 1);
	peer_advance_ms(15);
	acknowledge(14 * 1460, 1);
	CHECK(!stats().is_app_limited);
	CHECK_EQ(stats().delivery_rate, 10 * 1460 * 25);
	/* what left then is not counted with the time before */
	peer_advance_ms(20);
	acknowledge(25 * 1460, 1);
	CHECK_EQ(stats().delivery_rate, 10 * 1460 * 25);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

static void acknowledge_with(uint32_t segments, uint32_t window)
{
	/* the number moves, so that the window is taken from it */
	peer_send_options(A, P, U + segments * 1460, (uint16_t)(window * 365), 0,
			  &(struct tcp_options){ 0 });
}

/* Acknowledgments that were held up tell nothing of a path: no more has arrived in a
 * time than was sent in it. */
TEST(delivery_rate_is_not_of_acknowledgments_alone)
{
	peer_connected();
	acknowledge_with(0, 10);
	for (int i = 0; i < 30; i++)
		peer_write(1460);
	peer_advance_ms(60);
	acknowledge_with(5, 10);
	/* five more have left; now nothing does until the window opens again */
	peer_advance_ms(60);
	acknowledge_with(11, 4);
	peer_advance_ms(5);
	acknowledge_with(11, 9);
	peer_advance_ms(10);
	acknowledge_with(20, 9);
	CHECK_EQ(stats().delivery_rate, 9 * 1460 * UINT64_C(1000) / 65);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* A peer that throws away what it has reported (RFC 2018 section 8) gets it again. A model
 * takes a rate in each round trip, and in that one less has arrived than nothing. */
TEST(delivery_rate_is_not_of_what_was_thrown_away)
{
	struct tcp_options sack = { .sack_cnt = 1 };
	uint64_t most = 10 * 1460 * UINT64_C(50), paced;

	peer_defaults();
	peer.params.cc = TCP_CC_BBR;
	peer_connect(&peer_full_options);
	peer_send_options(A, P, U, 30000, 0, &(struct tcp_options){ 0 });
	peer_write(1460);
	peer_advance_ms(20);
	for (int i = 0; i < 9; i++)
		peer_write(1460);
	peer_advance_ms(20);
	sack.sack[0] = (struct tcp_sack_block){ U + 1460, U + 10 * 1460 };
	peer_send_options(A, P, U, 30000, 0, &sack);
	peer_advance_ms(20);
	peer_send_options(A, P, U + 1460, 30000, 0, &(struct tcp_options){ 0 });
	CHECK(stats().delivery_rate && stats().delivery_rate <= most);
	paced = info().pacing_rate;
	/* the timeout finds that the first of them is missing */
	peer_advance_ms(3000);
	CHECK(flight().resent >= 1 && info().backoff);
	peer_send_options(A, P, U + 2 * 1460, 30000, 0, &(struct tcp_options){ 0 });
	CHECK(stats().delivery_rate <= most);
	CHECK(info().pacing_rate <= paced);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(time_without_room_is_told)
{
	struct tcp_options none = { 0 };
	struct tcp_in ack;

	peer_defaults();
	/* a probe would end the quick path */
	peer.params.with_tlp = false;
	peer_connect(&peer_full_options);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	tcp_set_snd_buf(peer.pcb, 4000);
	peer_send_options(A, P, U, 30000, 0, &none);
	/* no room, but nobody wants any */
	for (int i = 0; i < 4; i++)
		peer_write(1000);
	peer_advance_ms(50);
	CHECK(is_about(stats().buffer_limited_ns, 0));
	tcp_wants_room(peer.pcb, peer.now_ns);
	peer_advance_ms(50);
	CHECK(is_about(stats().buffer_limited_ns, 50));
	/* on the quick path, which does not ask whether somebody waits */
	ack = peer_make_options(A, P, U + 1000, 30000, 0, &none);
	tcp_input_batch(peer.table, &ack, 1, peer.now_ns);
	peer_write(1000);
	peer_advance_ms(50);
	CHECK(is_about(stats().buffer_limited_ns, 50));
	CHECK(is_about(stats().busy_ns, 150));
	/* behind a closed window it is the window's time */
	peer_send_options(A, P, U + 5000, 500, 0, &none);
	peer_send_options(A, P + 1, U + 5000, 500, 0, &none);
	for (int i = 0; i < 4; i++)
		peer_write(1000);
	tcp_wants_room(peer.pcb, peer.now_ns);
	peer_advance_ms(100);
	CHECK(is_about(stats().buffer_limited_ns, 50));
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

static void write_stamped(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&peer.pool);

	pkt_append(pkt, len);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_STAMP), 0);
	tcp_output(peer.pcb, peer.now_ns);
}

static void expect_stamp(unsigned index, enum tcp_stamp what, uint32_t byte,
			 unsigned sent_cnt)
{
	CHECK(index < peer.stamp_cnt);
	CHECK_EQ(peer.stamps[index].what, what);
	CHECK_EQ(peer.stamps[index].byte, byte);
	CHECK_EQ(peer.stamps[index].sent_cnt, sent_cnt);
}

TEST(bytes_are_followed)
{
	unsigned sent;

	peer_connected();
	peer_send_options(A, P, U, 30000, 0, &(struct tcp_options){ 0 });
	sent = peer.sent_cnt;
	peer_write(100);
	CHECK_EQ(peer.stamp_cnt, 0);
	/* It waits for the first, and stays apart from what is written behind, which
	 * ends the wait. */
	write_stamped(50);
	CHECK_EQ(peer.stamp_cnt, 0);
	write_stamped(10);
	CHECK_EQ(peer.stamp_cnt, 2);
	peer_write(20);
	CHECK_EQ(peer.stamp_cnt, 4);
	peer_send_options(A, P, U + 100, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(peer.stamp_cnt, 4);
	expect_stamp(0, TCP_STAMP_SCHEDULED, 149, sent + 1);
	expect_stamp(1, TCP_STAMP_SENT, 149, sent + 2);
	expect_stamp(2, TCP_STAMP_SCHEDULED, 159, sent + 2);
	expect_stamp(3, TCP_STAMP_SENT, 159, sent + 3);
	/* in the middle of one, and then all */
	peer_send_options(A, P, U + 155, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(peer.stamp_cnt, 5);
	expect_stamp(4, TCP_STAMP_ACKED, 149, peer.sent_cnt);
	sent = peer.sent_cnt;
	peer_send_options(A, P, U + 160, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(peer.stamp_cnt, 6);
	expect_stamp(5, TCP_STAMP_ACKED, 159, sent);
	/* the connection is as quick as before */
	peer_send_options(A, P, U + 180, 30000, 0, &(struct tcp_options){ 0 });
	peer_write(100);
	peer_send(A, P, U + 280, 0);
	CHECK_EQ(peer.stamp_cnt, 6);
	CHECK_EQ(tcp_counts(peer.table)->fast_path_data, 0);
	peer_send(A, P, U + 280, 10);
	CHECK_EQ(tcp_counts(peer.table)->fast_path_data, 1);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* Whoever has written asks for the last byte before he sends it, and finds it by its place. */
TEST(last_byte_is_followed)
{
	struct tcp_stamp_places places;
	uint32_t byte = 0;
	struct pkt *pkt;

	peer_connected();
	peer_send_options(A, P, U, 30000, 0, &(struct tcp_options){ 0 });
	places = tcp_stamp_places(peer.pcb);
	CHECK_EQ(places.unacked, 0);
	CHECK_EQ(places.unwritten, 0);
	CHECK(!tcp_stamp_last(peer.pcb, &byte));
	peer_write(100);
	/* it has been sent */
	CHECK(!tcp_stamp_last(peer.pcb, &byte));
	places = tcp_stamp_places(peer.pcb);
	CHECK_EQ(places.unacked, 0);
	CHECK_EQ(places.unsent, 100);
	CHECK_EQ(places.unwritten, 100);
	peer_write(50);
	CHECK(tcp_stamp_last(peer.pcb, &byte));
	CHECK_EQ(byte, 149);
	CHECK(!tcp_stamp_last(peer.pcb, &byte));
	/* nothing joins it */
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	CHECK_EQ(peer.stamp_cnt, 0);
	peer_send_options(A, P, U + 100, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(peer.stamp_cnt, 2);
	CHECK_EQ(peer.stamps[1].byte, 149);
	peer_send_options(A, P, U + 150, 30000, 0, &(struct tcp_options){ 0 });
	CHECK_EQ(peer.stamp_cnt, 3);
	CHECK_EQ(peer.stamps[2].what, TCP_STAMP_ACKED);
	/* whoever writes so takes no short way past it */
	tcp_set_stamped(peer.pcb, true);
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 10);
	CHECK(!tcp_send_now(peer.pcb, pkt, true, peer.now_ns).bytes);
	tcp_set_stamped(peer.pcb, false);
	CHECK(tcp_send_now(peer.pcb, pkt, true, peer.now_ns).bytes);
	peer_send(A, P, U + 160, 0);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(repairs_are_followed_too)
{
	unsigned cnt;

	peer_connected();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	write_stamped(700);
	CHECK_EQ(peer.stamp_cnt, 2);
	/* not those of others beside it */
	peer_write(100);
	CHECK_EQ(peer.stamp_cnt, 2);
	peer_advance_ms(1000);
	cnt = peer.stamp_cnt;
	CHECK(cnt >= 4);
	CHECK_EQ(peer.stamps[cnt - 1].what, TCP_STAMP_SENT);
	CHECK_EQ(peer.stamps[cnt - 1].byte, 699);
	peer_send(A, P, U + 800, 0);
	CHECK_EQ(peer.stamp_cnt, cnt + 1);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}
