/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When what is written leaves, and when that is given up, segment by segment. */
#include "tests/engine/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/test.h"

static void check_nagle(uint32_t segment_max)
{
	peer_defaults();
	peer.path.segment_max = segment_max;
	peer_connect(&peer_full_options);
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_write(20);
	peer_expect_silence();
	peer_send(A, P, U + 10, 0);
	CHECK_EQ(peer_next()->len, 20);
	peer_send(A, P, U + 30, 0);
	/* but not for a full one */
	peer_write(1460);
	CHECK_EQ(peer_next()->len, 1460);
	peer_write(30);
	CHECK_EQ(peer_next()->len, 30);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_write(40);
	CHECK_EQ(peer_next()->len, 40);
	peer_teardown();
}

TEST(small_segment_waits_for_a_small_one)
{
	check_nagle(0);
	/* where a device splits what is longer, too */
	check_nagle(60000);
}

/* So many bytes, or a little more, go through, with nothing unusual on the way and a
 * round trip of 40 ms. */
static void send_through(uint64_t bytes, uint32_t *sent)
{
	for (uint64_t done = 0; done < bytes; done += 1460) {
		peer_write(1460);
		CHECK_EQ(peer_next()->len, 1460);
		*sent += 1460;
		peer_advance_ms(40);
		peer_send(A, P, U + *sent, 0);
	}
}

/* The connection has sent something already, to a peer that takes much. */
static void begin_before_a_full_device(void)
{
	struct tcp_options none = { .sack_cnt = 0 };

	peer_connected();
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_send_options(A, P, U + 10, 20000, 0, &none);
	peer.is_full = true;
	tcp_emit_failed(peer.table, NULL, NULL, 0, peer.now_ns);
}

/* It is not lost there. */
TEST(what_a_full_device_would_refuse_waits)
{
	begin_before_a_full_device();
	for (int i = 0; i < 5; i++)
		peer_write(1460);
	peer_expect_silence();
	peer_advance_ms(300);
	peer_expect_silence();
	peer.is_full = false;
	peer_advance_ms(1);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(peer_next()->seq, U + 10 + 1460 * (unsigned)i);
	peer_expect_silence();
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 0);
	peer_teardown();
}

/* What is written when there is room again waits for no timer. */
TEST(what_waits_for_a_device_leaves_with_what_follows)
{
	begin_before_a_full_device();
	peer_write(1460);
	peer_expect_silence();
	peer.is_full = false;
	peer_write(1460);
	CHECK_EQ(peer_next()->seq, U + 10);
	CHECK_EQ(peer_next()->seq, U + 1470);
	peer_teardown();
}

TEST(a_repair_waits_for_a_full_device_and_for_no_timeout)
{
	struct tcp_options options = { .sack_cnt = 1 };

	begin_before_a_full_device();
	peer.is_full = false;
	for (int i = 0; i < 8; i++) {
		peer_write(1460);
		CHECK_EQ(peer_next()->len, 1460);
	}
	peer.is_full = true;
	tcp_emit_failed(peer.table, NULL, NULL, 0, peer.now_ns);
	options.sack[0].start = U + 1470;
	options.sack[0].end = U + 10 + 8 * 1460;
	peer_send_options(A, P, U + 10, 20000, 0, &options);
	peer_advance_ms(20);
	peer_expect_silence();
	peer.is_full = false;
	peer_advance_ms(1);
	CHECK_EQ(peer_next()->seq, U + 10);
	peer_expect_silence();
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 0);
	peer_teardown();
}

/* The question costs little where there is always room. */
TEST(a_device_is_asked_before_each_few_segments)
{
	uint32_t sent = 0;

	peer_connected();
	send_through(64 * 1460, &sent);
	CHECK(peer.look_cnt >= 2);
	CHECK(peer.look_cnt <= 64 / TCP_EMITS_PER_LOOK + 1);
	peer_teardown();
}

/* More than half the sequence numbers have gone by since the last small one, which is
 * not ahead for that. */
TEST(small_segment_does_not_wait_for_one_of_long_ago)
{
	uint32_t sent = 10;

	peer_connected();
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_send(A, P, U + 10, 0);
	send_through((UINT32_C(1) << 31) + 3000, &sent);
	peer_write(20);
	CHECK_EQ(peer_next()->len, 20);
	peer_teardown();
}

/* The peer says that it has so many segments behind the first. */
static void report_behind_first(uint32_t sent, uint32_t cnt)
{
	struct tcp_options options = { .sack_cnt = 1 };

	options.sack[0].start = U + sent + 1000;
	options.sack[0].end = U + sent + 1000 + 1000 * cnt;
	peer_send_options(A, P, U + sent, 20000, 0, &options);
}

static void write_four(uint32_t sent)
{
	for (uint32_t i = 0; i < 4; i++) {
		peer_write(1000);
		CHECK_EQ(peer_next()->seq, U + sent + 1000 * i);
	}
	peer_advance_ms(40);
	peer_expect_silence();
}

/* Nor does what arrives then look as if it had been overtaken. */
TEST(loss_does_not_look_late_for_what_arrived_long_ago)
{
	struct tcp_pcb_stats stats;
	uint32_t sent = 0;

	peer_connected();
	send_through((UINT32_C(1) << 31) + 3000, &sent);
	peer_send_options(A, P, U + sent, 20000, 0, &(struct tcp_options){ 0 });
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	write_four(sent);
	report_behind_first(sent, 3);
	CHECK_EQ(peer_next()->seq, U + sent);
	peer_send(A, P, U + sent + 4000, 0);
	tcp_get_stats(peer.pcb, &stats, peer.now_ns);
	CHECK_EQ(stats.reorderings, 0);
	peer_teardown();
}

/* A needless repair makes the next one wait longer (RFC 8985 section 6.2), whatever was
 * counted when so much less had been sent. */
TEST(needless_repair_is_noted_after_long)
{
	struct tcp_options twice = { .sack_cnt = 1 };
	uint32_t sent = 0;

	peer_connected();
	send_through((UINT32_C(1) << 31) + 3000, &sent);
	peer_send_options(A, P, U + sent, 20000, 0, &(struct tcp_options){ 0 });
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	/* it is late, and then it is not */
	write_four(sent);
	report_behind_first(sent, 2);
	peer_send(A, P, U + sent + 3000, 0);
	sent += 4000;
	peer_send(A, P, U + sent, 0);
	write_four(sent);
	report_behind_first(sent, 2);
	peer_expect_silence();
	peer_advance_ms(11);
	CHECK_EQ(peer_next()->seq, U + sent);
	twice.sack[0].start = U + sent;
	twice.sack[0].end = U + sent + 1000;
	sent += 4000;
	peer_send_options(A, P, U + sent, 20000, 0, &twice);
	write_four(sent);
	report_behind_first(sent, 2);
	peer_advance_ms(15);
	peer_expect_silence();
	peer_advance_ms(10);
	CHECK_EQ(peer_next()->seq, U + sent);
	peer_teardown();
}

/* What waited for the window leaves as one, whoever looks first. */
TEST(waiting_segments_leave_as_a_run)
{
	uint32_t sent = 0;

	peer_defaults();
	peer.path.segment_max = 5000;
	peer_connect(&peer_full_options);
	for (int i = 0; i < 15; i++)
		peer_write(1460);
	while (peer.looked_at < peer.sent_cnt)
		sent += peer_next()->len;
	CHECK(sent < 12 * 1460);
	peer_send(A, P, U + sent, 0);
	CHECK(peer_next()->len > 1460);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* Who writes as much as there is room for leaves no stumps. */
TEST(room_is_for_full_segments)
{
	uint32_t mss;

	peer_connected();
	mss = tcp_mss(peer.pcb);
	tcp_set_snd_buf(peer.pcb, 4 * mss + 1);
	for (int i = 0; i < 4; i++)
		peer_write(mss);
	CHECK_EQ(tcp_sndbuf(peer.pcb), mss);
	peer_write(mss);
	CHECK_EQ(tcp_sndbuf(peer.pcb), 0);
	peer_teardown();
}

static void extend(uint32_t len, unsigned flags)
{
	memset(tcp_extend(peer.pcb, len, flags), 'z', len);
	tcp_output(peer.pcb, peer.now_ns);
}

/* What waits takes more until it is a full segment. */
TEST(last_packet_is_extended)
{
	const struct peer_sent *sent;
	uint32_t mss;

	peer_connected();
	mss = tcp_mss(peer.pcb);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	/* that one is under way */
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_write(20);
	CHECK_EQ(tcp_extend_room(peer.pcb), mss - 20);
	extend(5, 0);
	CHECK_EQ(tcp_extend_room(peer.pcb), mss - 25);
	peer_expect_silence();
	peer_send(A, P, U + 10, 0);
	sent = peer_next();
	CHECK_EQ(sent->len, 25);
	CHECK(sent->flags & WIRE_TCP_PSH);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_write(30);
	extend(mss - 30, 0);
	/* it is full, and leaves at once */
	CHECK_EQ(peer_next()->len, mss);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_teardown();
}

/* A record ends where it ended, and the end of the last one decides. */
TEST(records_and_corks_of_what_is_extended)
{
	struct pkt *pkt;

	peer_connected();
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_write(20);
	extend(5, TCP_WRITE_MORE);
	extend(6, TCP_WRITE_EOR);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_send(A, P, U + 10, 0);
	CHECK_EQ(peer_next()->len, 31);
	pkt = pkt_alloc(&peer.pool);
	memset(pkt_append(pkt, 7), 'r', 7);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_EOR), 0);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_teardown();
}

/* Neither the part that a window has cut off nor what it was cut from: they share
 * their bytes. */
TEST(what_was_split_is_not_extended)
{
	struct tcp_options options = { .mss = 1460 };

	peer_defaults();
	peer_connect(&options);
	peer_send_options(A, P, U, 600, 0, &(struct tcp_options){ 0 });
	peer_write(900);
	CHECK_EQ(tcp_extend_room(peer.pcb), tcp_mss(peer.pcb) - 900);
	peer_expect_silence();
	/* what fits in the small window, after a while */
	peer_advance_ms(2000);
	CHECK_EQ(peer_next()->len, 600);
	CHECK_EQ(tcp_extend_room(peer.pcb), 0);
	peer_send_options(A, P, U + 600, 60000, 0, &(struct tcp_options){ 0 });
	peer_teardown();
}

TEST(cork_holds_for_two_hundred_milliseconds)
{
	peer_connected();
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	peer_write(10);
	peer_advance_ms(199);
	peer_expect_silence();
	peer_advance_ms(2);
	CHECK_EQ(peer_next()->len, 10);
	peer_send(A, P, U + 10, 0);
	peer_write(20);
	peer_expect_silence();
	tcp_set_cork(peer.pcb, false, peer.now_ns);
	CHECK_EQ(peer_next()->len, 20);
	peer_teardown();
}

/* Without SACK, so that no probe comes before the timeout. */
TEST(timeout_doubles_each_time)
{
	struct tcp_options options = { .mss = 1460 };
	uint64_t at_ns, last_ns, gap_ns = 0;

	peer_defaults();
	peer_connect(&options);
	peer_write(10);
	last_ns = peer_next()->at_ns;
	peer_advance_ms(10000);
	for (int i = 0; i < 5; i++) {
		at_ns = peer_next()->at_ns;
		if (i == 0)
			CHECK(at_ns - last_ns >= 200 * NS_PER_MS &&
			      at_ns - last_ns < 300 * NS_PER_MS);
		else
			CHECK((at_ns - last_ns + NS_PER_MS) / (2 * NS_PER_MS) ==
			      gap_ns / NS_PER_MS);
		gap_ns = at_ns - last_ns;
		last_ns = at_ns;
	}
	peer_expect_silence();
	peer_teardown();
}

TEST(retries_end_in_etimedout)
{
	peer_defaults();
	peer.params.retries = 3;
	peer_connect(&peer_full_options);
	peer_write(10);
	peer_advance_ms(60000);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_CLOSED);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	/* the segment, a probe in place of the first timeout, and three
	 * retransmissions */
	CHECK_EQ(peer.sent_cnt - peer.looked_at, 1 + 1 + 3);
	peer_teardown();
}

/* Without time stamps a repaired hole tells no round trip, so the timeout stays
 * doubled; a peer that takes a segment each time is none the less alive. */
TEST(progress_is_not_given_up)
{
	struct tcp_options options = { .mss = 1460 }, none = { 0 };
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.retries = 3;
	peer_connect(&options);
	peer_send_options(A, P, U, 20000, 0, &none);
	for (int i = 0; i < 8; i++)
		peer_write(1460);
	for (uint32_t i = 1; i <= 6; i++) {
		tcp_get_info(peer.pcb, &info);
		peer_advance_ms(info.rto_ns / NS_PER_MS + 2);
		CHECK_EQ(tcp_counts(peer.table)->rto_fired, i);
		peer_send_options(A, P, U + 1460 * i, 20000, 0, &none);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	}
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.backoff, 6);
	/* nor is the path a black hole */
	CHECK_EQ(info.mss, 1460);
	CHECK_EQ(tcp_counts(peer.table)->black_holes, 0);
	/* three more without any, and it is */
	peer.looked_at = peer.sent_cnt;
	peer_advance_ms(1000000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 6 + 3);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* A peer without memory drops what is under way and closes its window; as long as
 * it answers, it may open it again. */
TEST(closed_window_is_not_given_up)
{
	struct tcp_options none = { 0 };
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.retries = 3;
	peer_connect(&peer_full_options);
	peer_write(100);
	peer.looked_at = peer.sent_cnt;
	for (int i = 0; i < 8; i++) {
		tcp_get_info(peer.pcb, &info);
		peer_advance_ms(info.rto_ns / NS_PER_MS + 2);
		CHECK_EQ(peer_next()->seq, U);
		peer.looked_at = peer.sent_cnt;
		peer_send_options(A, P, U, 0, 0, &none);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	}
	peer_advance_ms(1000000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(user_timeout_ends_in_etimedout)
{
	peer_connected();
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, 2 * NS_PER_SEC), 0);
	peer_write(10);
	peer_advance_ms(1900);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	peer_advance_ms(200);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	/* the probe at 0.2, timeouts at 0.4, 0.8 and 1.6 seconds */
	CHECK_EQ(peer.sent_cnt - peer.looked_at, 1 + 1 + 3);
	peer_teardown();
}

TEST(zero_window_is_probed_for_ever)
{
	struct tcp_options none = { 0 };

	peer_connected();
	peer_send_options(A, P, U, 0, 0, &none);
	peer_write(10);
	peer_expect_silence();
	for (int i = 0; i < 30; i++) {
		peer_advance_ms(130000);
		CHECK_EQ(peer_next()->seq, U - 1);
		peer.looked_at = peer.sent_cnt;
		peer_send_options(A, P, U, 0, 0, &none);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	}
	peer_send_options(A, P, U, 1000, 0, &none);
	CHECK_EQ(peer_next()->len, 10);
	peer_teardown();
}

/* The program's time ends it, though the peer answers. */
TEST(zero_window_is_probed_for_the_users_time)
{
	struct tcp_options none = { 0 };

	peer_connected();
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, 5 * NS_PER_SEC), 0);
	peer_send_options(A, P, U, 0, 0, &none);
	peer_write(10);
	for (int ms = 0; ms < 5000; ms += 100) {
		peer_advance_ms(100);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
		if (peer.sent_cnt != peer.looked_at)
			peer_send_options(A, P, U, 0, 0, &none);
		peer.looked_at = peer.sent_cnt;
	}
	peer_advance_ms(400);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer_teardown();
}

/* It is counted from the first probe of each time, and not while data are taken. */
TEST(window_that_opens_begins_the_users_time_anew)
{
	struct tcp_options none = { 0 };

	peer_connected();
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, 2 * NS_PER_SEC), 0);
	for (int i = 0; i < 5; i++) {
		peer_send_options(A, P, U + 10 * (uint32_t)i, 0, 0, &none);
		peer_write(10);
		peer_advance_ms(1500);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
		peer_send_options(A, P, U + 10 * (uint32_t)i, 10, 0, &none);
	}
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	peer_teardown();
}

/* What nobody owns is not held for ever by a peer who never reads. */
TEST(orphan_does_not_wait_for_ever)
{
	struct tcp_options none = { 0 };
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.orphan_retries = 4;
	peer_connect(&peer_full_options);
	peer_send_options(A, P, U, 0, 0, &none);
	peer_write(10);
	tcp_close(peer.pcb, peer.now_ns);
	for (int i = 0; i < 4; i++) {
		tcp_get_info(peer.pcb, &info);
		CHECK_EQ(info.state, TCPS_FIN_WAIT_1);
		peer_advance_ms(info.rto_ns / NS_PER_MS + 2);
		CHECK_EQ(peer_next()->seq, U - 1);
		peer_send_options(A, P, U, 0, 0, &none);
	}
	tcp_get_info(peer.pcb, &info);
	peer_advance_ms(info.rto_ns / NS_PER_MS + 2);
	peer_expect_silence();
	/* which finds nothing left */
	peer.pcb = NULL;
	peer_teardown();
}

/* Of a closed window the probes are few and far between, and find a dead peer late; the
 * much earlier end by keepalive is for connections with nothing to say. */
TEST(closed_window_is_not_for_keepalive)
{
	struct tcp_options none = { 0 };
	unsigned probes;

	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, NS_PER_SEC, NS_PER_SEC, 2,
				   peer.now_ns), 0);
	peer_send_options(A, P, U, 0, 0, &none);
	peer_write(10);
	peer_advance_ms(60000);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	probes = peer.sent_cnt - peer.looked_at;
	CHECK(probes > 4 && probes < 12);
	/* which does not begin their count again */
	peer_advance_ms(3600000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(keepalive_that_is_on_is_not_begun_anew)
{
	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, 10 * NS_PER_SEC, NS_PER_SEC, 3,
			  peer.now_ns), 0);
	for (int i = 0; i < 30 && !tcp_error(peer.pcb); i++) {
		peer_advance_ms(500);
		CHECK_EQ(tcp_set_keepalive(peer.pcb, true, 0, 0, 0, peer.now_ns), 0);
	}
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer_teardown();
}

/* A program that changes it all the time finds a silent peer, too. */
TEST(keepalive_with_another_time_goes_on)
{
	struct tcp_settings settings;

	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, 10 * NS_PER_SEC, NS_PER_SEC, 3,
				   peer.now_ns), 0);
	tcp_get_settings(peer.pcb, &settings);
	for (int i = 0; i < 30 && !tcp_error(peer.pcb); i++) {
		peer_advance_ms(500);
		settings.keep_idle_ns = (uint64_t)(9 + i % 2) * NS_PER_SEC;
		CHECK_EQ(tcp_set_settings(peer.pcb, &settings, peer.now_ns), 0);
	}
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer_teardown();
}

TEST(silent_peer_is_found_by_keepalive)
{
	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, 10 * NS_PER_SEC, NS_PER_SEC, 3,
			  peer.now_ns), 0);
	peer_advance_ms(9900);
	peer_expect_silence();
	peer_advance_ms(200);
	CHECK_EQ(peer_next()->seq, U - 1);
	peer_send(A, P, U, 0);
	peer_advance_ms(9000);
	peer_expect_silence();
	peer_advance_ms(10000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	CHECK_EQ(peer.sent_cnt - peer.looked_at, 3 + 1);
	CHECK_EQ(peer.sent[(peer.sent_cnt - 1) % PEER_SENT_MAX].flags & R, R);
	peer_teardown();
}
