/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Single rules, segment by segment. */
#include "tests/engine/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/support/test.h"

/* ---- RFC 5961 ---- */

TEST(reset_counts_only_at_the_exact_number)
{
	peer_connected();
	peer_send(R, P + 10, 0, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	CHECK_EQ(peer_next()->flags, A);
	peer_send(R, P - 1, 0, 0);
	peer_expect_silence();
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	peer_send(R, P, 0, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_CLOSED);
	CHECK_EQ(tcp_error(peer.pcb), -ECONNRESET);
	peer_teardown();
}

TEST(syn_in_a_connection_is_challenged)
{
	peer_connected();
	peer_send(S, P + 5, 0, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	CHECK_EQ(peer_next()->ack, P);
	CHECK_EQ(tcp_counts(peer.table)->challenge_acks, 1);
	peer_teardown();
}

TEST(ack_outside_the_range_is_challenged)
{
	peer_connected();
	peer_send(A, P, U + 1, 1);
	CHECK_EQ(peer_next()->ack, P);
	peer_advance_ms(501);
	peer_send(A, P, U - 200000, 1);
	CHECK_EQ(peer_next()->ack, P);
	CHECK_EQ(tcp_counts(peer.table)->bad_ack, 2);
	peer_teardown();
}

TEST(challenges_are_limited)
{
	peer_connected();
	for (int i = 0; i < 10; i++)
		peer_send(S, P + 5, 0, 0);
	CHECK_EQ(tcp_counts(peer.table)->challenge_acks, 1);
	CHECK_EQ(tcp_counts(peer.table)->challenge_acks_limited, 9);
	peer_advance_ms(501);
	peer_send(S, P + 5, 0, 0);
	CHECK_EQ(tcp_counts(peer.table)->challenge_acks, 2);
	peer_teardown();
}

/* Answers in a second, to as many challenges as there may be. */
static uint64_t challenge_for_a_second(void)
{
	uint64_t before = tcp_counts(peer.table)->challenge_acks;

	for (int i = 0; i < 100; i++)
		peer_send(S, P + 5, 0, 0);
	peer_advance_ms(1000);
	return tcp_counts(peer.table)->challenge_acks - before;
}

/* CVE-2016-5696: who can count on the limit learns of other connections. */
TEST(budget_of_challenges_is_nobodys_knowledge)
{
	uint64_t sum = 0, least = UINT64_MAX, most = 0;

	peer_defaults();
	peer.params.challenge_acks_per_sec = 20;
	peer.params.stray_interval_ns = 0;
	peer_connect(&peer_full_options);
	for (int i = 0; i < 50; i++) {
		uint64_t cnt = challenge_for_a_second();

		CHECK(cnt >= 10 && cnt < 30);
		least = MIN(least, cnt);
		most = MAX(most, cnt);
		sum += cnt;
	}
	CHECK(most - least >= 10);
	CHECK(sum >= 50 * 16 && sum <= 50 * 24);
	peer_teardown();
}

/* ---- RFC 9293 ---- */

TEST(window_follows_the_newest_acknowledgment)
{
	struct tcp_options none = { 0 };
	struct tcp_pcb_info info;

	peer_connected();
	peer_write(1000);
	peer_write(1000);
	/* a later segment shrinks the window; an older one that comes after it
	 * acknowledges more */
	peer_send_options(A, P + 100, U, 300, 0, &none);
	peer_send_options(A, P, U, 200, 0, &none);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_wnd, 1200);
	peer_send_options(A, P, U + 1000, 100, 0, &none);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_una, U + 1000);
	CHECK_EQ(info.snd_wnd, 400);
	peer_teardown();
}

TEST(full_window_takes_not_one_byte)
{
	struct tcp_options none = { 0 };

	peer_connected();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_send_options(A, P, U, 1460 / 4, 0, &none);
	peer_write(1460);
	CHECK_EQ(peer_next()->len, 1460);
	peer_write(1);
	peer_expect_silence();
	peer_send_options(A, P, U + 1460, 1460 / 4, 0, &none);
	CHECK_EQ(peer_next()->len, 1);
	peer_teardown();
}

TEST(shrunk_window_holds_what_is_beyond)
{
	struct tcp_options none = { 0 };

	peer_connected();
	peer_write(1460);
	peer_write(1460);
	CHECK_EQ(peer_next()->len, 1460);
	CHECK_EQ(peer_next()->len, 1460);
	peer_send_options(A, P + 1, U, 365, 0, &none);
	peer_write(1460);
	peer_expect_silence();
	peer_teardown();
}

TEST(bytes_beyond_our_window_are_cut)
{
	struct tcp_options options = peer_full_options;

	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = 2000;
	options.has_ts = true;
	options.ts_val = 7;
	peer_connect(&options);
	peer_send(A, P, U, 1448);
	peer_send(A, P + 1448, U, 1448);
	CHECK_EQ(peer_take_all(), 2000);
	peer_teardown();
}

TEST(unknown_connection_is_reset)
{
	const struct peer_sent *sent;

	peer_defaults();
	peer_setup();
	peer_send(A, P, 777, 5);
	sent = peer_next();
	CHECK_EQ(sent->flags, R);
	CHECK_EQ(sent->seq, 777);
	peer_send(S, P, 0, 0);
	sent = peer_next();
	CHECK_EQ(sent->flags, R | A);
	CHECK_EQ(sent->ack, P + 1);
	peer_send(R, P, 0, 0);
	peer_expect_silence();
	peer_teardown();
}

/* Another owner of the port may have the connection: it is asked before a reset is sent,
 * for resets, too, and never about a SYN that a listener takes. */
TEST(segment_of_an_unknown_connection_may_be_somebody_elses)
{
	static const uint8_t flags[] = { A, F | A, R, R | A, S | A };

	for (int has_listener = 0; has_listener < 2; has_listener++) {
		peer_defaults();
		peer_setup();
		peer.has_strays = true;
		if (has_listener) {
			peer.listener = tcp_new(peer.table);
			CHECK_EQ(tcp_bind(peer.listener, &peer.key.local,
					  peer.key.local_port),
				 0);
			CHECK_EQ(tcp_listen(peer.listener, 4), 0);
		}
		for (unsigned i = 0; i < ARRAY_LEN(flags); i++) {
			peer_send(flags[i], P, 77, i ? 0 : 10);
			peer_expect_silence();
			CHECK_EQ(peer.stray_cnt, i + 1);
			CHECK_EQ(peer.stray_flags, flags[i]);
			CHECK_EQ(peer.stray_len, i ? 0 : 10);
		}
		peer_send(S, PEER_ISN, 0, 0);
		CHECK_EQ(peer.stray_cnt, ARRAY_LEN(flags) + !has_listener);
		if (has_listener)
			CHECK_EQ(peer_next()->flags, S | A);
		peer_expect_silence();
		peer_teardown();
	}
}

TEST(refused_connection_tells)
{

	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	/* with a wrong acknowledgment it is not for us */
	peer_send(R | A, 0, U + 5, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_SYN_SENT);
	peer_send(R | A, 0, U, 0);
	CHECK_EQ(tcp_error(peer.pcb), -ECONNREFUSED);
	peer_teardown();
}

TEST(simultaneous_open_connects)
{

	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	peer_next();
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_SYN_RCVD);
	CHECK_EQ(peer_next()->flags & (S | A), S | A);
	peer_send_options(S | A, PEER_ISN, U, 1000, 0, &peer_full_options);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	peer_teardown();
}

TEST(simultaneous_close_ends_in_time_wait)
{
	peer_defaults();
	peer.params.protects_time_wait = true;
	peer_connect(&peer_full_options);
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	CHECK_EQ(peer_next()->flags & F, F);
	peer_send(F | A, P, U, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_CLOSING);
	CHECK_EQ(peer_next()->ack, P + 1);
	peer_send(A, P + 1, U + 1, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_TIME_WAIT);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	/* nothing answers an empty segment, or two of us would for ever */
	peer_send(A, P + 1, U + 1, 0);
	peer_expect_silence();
	peer_send(R, P + 1, 0, 0);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	/* FIN again: answered, and the wait begins again */
	peer_advance_ms(50000);
	peer_send(F | A, P, U + 1, 0);
	CHECK_EQ(peer_next()->ack, P + 1);
	peer_advance_ms(50000);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	peer_advance_ms(11000);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 0);
	peer_teardown();
}

TEST(data_after_close_is_reset)
{
	peer_connected();
	tcp_close(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	CHECK_EQ(peer_next()->flags & F, F);
	peer_send(A, P, U + 1, 100);
	CHECK_EQ(peer_next()->flags & R, R);
	peer_teardown();
}

/* The answer to a probe may be a little faster than any before: a short segment was
 * measured then, or a long one. It is no answer to the first copy, which came to nothing. */
TEST(answer_to_a_probe_may_be_the_fastest)
{
	struct tcp_options sack = { .sack_cnt = 1 };
	const struct peer_sent *probe;

	/* 10 ms */
	peer_connected();
	peer_send_options(A, P, U, 20000, 0, &(struct tcp_options){ 0 });
	peer_write(1460);
	peer_write(1460);
	peer.looked_at = peer.sent_cnt;
	for (int ms = 0; ms < 400 && peer.looked_at == peer.sent_cnt; ms++)
		peer_advance_ms(1);
	probe = peer_next();
	CHECK_EQ(probe->seq, U + 1460);
	peer_advance_ms(2);
	peer.now_ns = probe->at_ns + 9700 * NS_PER_US;
	sack.sack[0] = (struct tcp_sack_block){ U + 1460, U + 2 * 1460 };
	peer_send_options(A, P, U, 20000, 0, &sack);
	CHECK_EQ(peer_next()->seq, U);
	peer_teardown();
}

/* With probes further apart than idle time each answer is older than that when the
 * next one is due. */
TEST(answered_probes_are_not_counted)
{
	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, NS_PER_SEC, 5 * NS_PER_SEC, 3,
			  peer.now_ns), 0);
	for (int i = 0; i < 8; i++) {
		peer_advance_ms(i ? 5000 : 1100);
		CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
		CHECK(peer.sent_cnt != peer.looked_at);
		peer.looked_at = peer.sent_cnt;
		peer_send(A, P, U, 0);
	}
	/* and silence still ends it */
	peer_advance_ms(30000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(close_with_unread_data_resets)
{
	peer_connected();
	peer_send(A, P, U, 100);
	tcp_close(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	CHECK_EQ(peer_next()->flags & R, R);
	peer_teardown();
}

/* ---- acknowledgments ---- */

TEST(every_second_full_segment_is_acknowledged)
{
	peer_connected();
	peer_send(A, P, U, 1460);
	peer_expect_silence();
	peer_send(A, P + 1460, U, 1460);
	CHECK_EQ(peer_next()->ack, P + 2920);
	peer_send(A, P + 2920, U, 1460);
	peer_expect_silence();
	peer_advance_ms(39);
	peer_expect_silence();
	peer_advance_ms(2);
	CHECK_EQ(peer_next()->ack, P + 4380);
	peer_teardown();
}

/* As under Linux: nine of 60 bytes are 538 and more. */
TEST(small_segments_are_acknowledged_by_their_bytes)
{
	uint32_t seq = P;

	peer_connected();
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 8; j++, seq += 60)
			peer_send(A, seq, U, 60);
		peer_expect_silence();
		peer_send(A, seq, U, 60);
		seq += 60;
		CHECK_EQ(peer_next()->ack, seq);
	}
	/* fewer of them wait for the delay, not longer */
	peer_send(A, seq, U, 60);
	peer_advance_ms(39);
	peer_expect_silence();
	peer_advance_ms(2);
	CHECK_EQ(peer_next()->ack, seq + 60);
	peer_teardown();
}

TEST(gap_is_reported_at_once)
{
	const struct peer_sent *sent;

	peer_connected();
	peer_send(A, P + 1000, U, 500);
	sent = peer_next();
	CHECK_EQ(sent->ack, P);
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P + 1000);
	CHECK_EQ(sent->options.sack[0].end, P + 1500);
	/* the newest run comes first */
	peer_send(A, P + 3000, U, 100);
	sent = peer_next();
	CHECK_EQ(sent->options.sack_cnt, 2);
	CHECK_EQ(sent->options.sack[0].start, P + 3000);
	CHECK_EQ(sent->options.sack[1].start, P + 1000);
	peer_send(A, P, U, 1000);
	sent = peer_next();
	CHECK_EQ(sent->ack, P + 1500);
	CHECK_EQ(sent->options.sack_cnt, 1);
	peer_teardown();
}

TEST(duplicate_is_reported_by_dsack)
{
	const struct peer_sent *sent;

	peer_connected();
	peer_send(A, P, U, 500);
	peer_send(A, P, U, 500);
	sent = peer_next();
	CHECK_EQ(sent->ack, P + 500);
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P);
	CHECK_EQ(sent->options.sack[0].end, P + 500);
	/* once */
	peer_send(A, P + 900, U, 10);
	CHECK_EQ(peer_next()->options.sack[0].start, P + 900);
	/* part of one */
	peer_send(A, P + 200, U, 600);
	sent = peer_next();
	CHECK_EQ(sent->ack, P + 800);
	CHECK_EQ(sent->options.sack[0].start, P + 200);
	CHECK_EQ(sent->options.sack[0].end, P + 500);
	peer_teardown();
}

/* The same bytes in other segments than before, as after a retransmission on a
 * narrower path. */
TEST(overlapping_segments_count_once)
{
	const struct peer_sent *sent;

	peer_connected();
	peer_send(A, P + 1000, U, 500);
	peer_send(A, P + 500, U, 700);
	sent = &peer.sent[(peer.sent_cnt - 1) % PEER_SENT_MAX];
	CHECK_EQ(sent->options.sack[1].start, P + 500);
	CHECK_EQ(sent->options.sack[1].end, P + 1500);
	peer_send(A, P, U, 600);
	CHECK_EQ(peer_take_all(), 1500);
	peer_send(A, P + 2000, U, 500);
	peer_send(A, P + 1500, U, 700);
	CHECK_EQ(peer_take_all(), 1000);
	peer_send(A, P + 2600, U, 100);
	peer_send(A, P + 2550, U, 300);
	peer_send(A, P + 2500, U, 50);
	CHECK_EQ(peer_take_all(), 350);
	peer.looked_at = peer.sent_cnt;
	peer_send(A, P + 2850, U, 1460);
	peer_send(A, P + 4310, U, 1460);
	CHECK_EQ(peer_next()->ack, P + 5770);
	peer_teardown();
}

TEST(runs_that_meet_become_one)
{
	const struct peer_sent *sent;

	peer_connected();
	peer_send(A, P + 1000, U, 100);
	peer_send(A, P + 1200, U, 100);
	peer_send(A, P + 1100, U, 100);
	peer.looked_at = peer.sent_cnt - 1;
	sent = peer_next();
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P + 1000);
	CHECK_EQ(sent->options.sack[0].end, P + 1300);
	peer_teardown();
}

TEST(reader_reopens_a_closed_window)
{
	uint32_t at = 0;

	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = 14600;
	peer_connect(&peer_full_options);
	for (int i = 0; i < 10; i++, at += 1460)
		peer_send(A, P + at, U, 1460);
	CHECK_EQ(peer.sent[(peer.sent_cnt - 1) % PEER_SENT_MAX].window, 0);
	peer.looked_at = peer.sent_cnt;
	CHECK_EQ(peer_take_all(), 14600);
	peer_expect_silence();
	tcp_recved(peer.pcb, 14600, peer.now_ns);
	CHECK(peer_next()->window > 0);
	peer_teardown();
}

TEST(window_is_never_taken_back)
{
	struct tcp_pcb_info before, after;

	peer_connected();
	tcp_get_info(peer.pcb, &before);
	tcp_set_rcv_buf(peer.pcb, 4000, peer.now_ns);
	peer_send(A, P, U, 1460);
	peer_send(A, P + 1460, U, 1460);
	peer_next();
	tcp_get_info(peer.pcb, &after);
	CHECK_EQ(after.rcv_edge, before.rcv_edge);
	/* what was granted is still taken */
	peer_send(A, P + 2920, U, 1460);
	peer_send(A, P + 4380, U, 1460);
	CHECK_EQ(peer_take_all(), 5840);
	peer_teardown();
}

TEST(impossible_sack_blocks_are_ignored)
{
	struct tcp_options options = { .sack_cnt = 1 };
	struct tcp_pcb_info info;

	peer_connected();
	for (int i = 0; i < 3; i++)
		peer_write(1460);
	options.sack[0] = (struct tcp_sack_block){ U - 10, U + 1460 };
	peer_send_options(A, P, U, 5000, 0, &options);
	options.sack[0] = (struct tcp_sack_block){ U + 1460, U + 9000 };
	peer_send_options(A, P, U, 5000, 0, &options);
	options.sack[0] = (struct tcp_sack_block){ U + 2920, U + 1460 };
	peer_send_options(A, P, U, 5000, 0, &options);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.in_flight, 3 * 1460);
	options.sack[0] = (struct tcp_sack_block){ U + 1460, U + 2920 };
	peer_send_options(A, P, U, 5000, 0, &options);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.in_flight, 2 * 1460);
	peer_teardown();
}

TEST(out_of_order_memory_is_bounded)
{
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.rcv_buf = 100000;
	peer.params.rcv_buf_max = 100000;
	peer_connect(&peer_full_options);
	for (uint32_t i = 0; i < 400; i++)
		peer_send(A, P + 100 + 3 * i, U, 1);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.ooo_memory <= 200000);
	CHECK(tcp_counts(peer.table)->ooo_pruned > 0);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* The same for bytes in order that nobody takes, however they are cut. */
TEST(unread_memory_is_bounded)
{
	static const uint32_t sizes[] = { 1, 200, 257, 400, 700, 900, 1460 };
	const uint32_t buf = 100000;
	struct tcp_pcb_info info;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint32_t cnt = MIN(buf / sizes[i], 3000u);

		peer_defaults();
		peer.params.rcv_buf = peer.params.rcv_buf_max = buf;
		peer_connect(&peer_full_options);
		for (uint32_t j = 0; j < cnt; j++)
			peer_send(A, P + j * sizes[i], U, sizes[i]);
		tcp_get_info(peer.pcb, &info);
		CHECK_EQ(info.rcv_unread, cnt * sizes[i]);
		CHECK(info.rcv_memory <= 4 * buf);
		CHECK_EQ(peer_take_all(), cnt * sizes[i]);
		peer_teardown();
	}
}

TEST(old_time_stamp_is_refused)
{
	struct tcp_options options = peer_full_options;

	peer_defaults();
	options.has_ts = true;
	options.ts_val = 1000;
	peer_connect(&options);
	peer.ts = 999;
	peer_send(A, P, U, 100);
	CHECK_EQ(peer_next()->ack, P);
	CHECK_EQ(tcp_counts(peer.table)->paws_drops, 1);
	peer.ts = 1000;
	peer_send(A, P, U, 100);
	peer_advance_ms(50);
	CHECK_EQ(peer_next()->ack, P + 100);
	/* the same where everything else is as predicted */
	peer.ts = 999;
	peer_send(A, P + 100, U, 100);
	CHECK_EQ(peer_next()->ack, P + 100);
	CHECK_EQ(tcp_counts(peer.table)->paws_drops, 2);
	/* negotiated, so one without is not ours */
	peer.ts = 0;
	peer_send(A, P + 100, U, 100);
	peer_expect_silence();
	CHECK_EQ(tcp_counts(peer.table)->paws_drops, 3);
	peer_teardown();
}

/* ---- ECN, RFC 3168 ---- */

TEST(ecn_echo_lasts_until_cwr)
{
	struct tcp_in in;
	const struct peer_sent *sent;
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.ecn = TCP_ECN_ON;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &(struct tcp_path){ .mtu = 1500 }, peer.now_ns), 0);
	CHECK_EQ(peer_next()->flags, S | WIRE_TCP_ECE | WIRE_TCP_CWR);
	peer_advance_ms(10);
	peer_send_options(S | A | WIRE_TCP_ECE, PEER_ISN, U, 20000, 0,
		     &peer_full_options);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.has_ecn);
	peer_next();
	peer_write(1000);
	sent = peer_next();
	CHECK_EQ(sent->ecn, 2);
	/* the peer echoes a mark: slow down, and say so */
	peer_send(A | WIRE_TCP_ECE, P, U + 1000, 0);
	peer_write(1000);
	CHECK(peer_next()->flags & WIRE_TCP_CWR);
	/* a marked segment is echoed until CWR */
	memset(&in, 0, sizeof(in));
	in.key = peer.key;
	in.ecn = 3;
	in.pkt = pkt_alloc(&peer.pool);
	*(struct wire_tcp *)(void *)pkt_append(in.pkt, 20) = (struct wire_tcp){
		.src_port = peer.key.remote_port,
		.dst_port = peer.key.local_port,
		.seq = htobe32(P),
		.ack = htobe32(U + 1000),
		.offset_ae = 0x50,
		.flags = A,
		.window = htobe16(1000),
	};
	pkt_append(in.pkt, 100);
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	tcp_input(peer.table, &in, peer.now_ns);
	CHECK(peer_next()->flags & WIRE_TCP_ECE);
	peer_send(A, P + 100, U + 1000, 1460);
	peer_send(A, P + 1560, U + 1000, 1460);
	CHECK(peer_next()->flags & WIRE_TCP_ECE);
	peer_send(A | WIRE_TCP_CWR, P + 3020, U + 1000, 1460);
	peer_send(A, P + 4480, U + 1000, 1460);
	CHECK(!(peer_next()->flags & WIRE_TCP_ECE));
	peer_teardown();
}

/* ---- settings ---- */

/* TCP_NOTSENT_LOWAT: no room while so much waits, and an event when it has left. */
TEST(room_ends_with_what_was_not_sent)
{
	struct tcp_settings s;
	struct tcp_event event;

	peer_connected();
	tcp_get_settings(peer.pcb, &s);
	s.notsent_lowat = 1000;
	CHECK_EQ(tcp_set_settings(peer.pcb, &s, peer.now_ns), 0);
	peer_send_options(A, P, U, 0, 0, &(struct tcp_options){ 0 });
	CHECK(tcp_sndbuf(peer.pcb) > 0);
	peer_write(999);
	CHECK(tcp_sndbuf(peer.pcb) > 0);
	peer_write(1);
	CHECK_EQ(tcp_sndbuf(peer.pcb), 0);
	while (tcp_event_next(peer.table, &event))
		;
	/* the window opens, and nothing is acknowledged */
	peer_send_options(A, P + 10, U, 5000, 0, &(struct tcp_options){ 0 });
	CHECK(tcp_sndbuf(peer.pcb) > 0);
	CHECK(tcp_event_next(peer.table, &event));
	CHECK(event.what & TCP_EV_WRITABLE);
	peer_teardown();
}

/* SO_RCVLOWAT: a reader who waits for so much must be able to get it. */
TEST(buffer_has_room_for_the_low_water_mark)
{
	struct tcp_pcb_info info;

	peer_connected();
	tcp_set_rcv_lowat(peer.pcb, 300000, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.rcv_buf >= 300000);
	/* at most the largest, and never one that was fixed */
	tcp_set_rcv_lowat(peer.pcb, UINT32_MAX, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_buf, peer.params.rcv_buf_max);
	tcp_set_rcv_buf(peer.pcb, 5000, peer.now_ns);
	tcp_set_rcv_lowat(peer.pcb, 300000, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_buf, 5000);
	peer_teardown();
}

/* With TCP_USER_TIMEOUT. */
static struct tcp_pcb *listening_for_users_time(uint64_t timeout_ns)
{
	struct tcp_pcb *listener;

	peer_defaults();
	peer_setup();
	listener = tcp_new(peer.table);
	CHECK(listener != NULL);
	peer.listener = listener;
	CHECK_EQ(tcp_bind(listener, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_set_user_timeout(listener, timeout_ns), 0);
	CHECK_EQ(tcp_listen(listener, 5), 0);
	return listener;
}

/* A listener's settings are its children's, until one of the two changes its own. */
TEST(settings_are_inherited_and_then_apart)
{
	struct tcp_settings s, child;
	struct tcp_pcb *listener;

	listener = listening_for_users_time(NS_PER_SEC);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	peer_next();
	peer_send(A, P, U, 0);
	peer.pcb = tcp_accept(listener);
	CHECK(peer.pcb != NULL);
	tcp_get_settings(peer.pcb, &child);
	CHECK_EQ(child.user_timeout_ns, NS_PER_SEC);
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, 2 * NS_PER_SEC), 0);
	tcp_get_settings(listener, &s);
	CHECK_EQ(s.user_timeout_ns, NS_PER_SEC);
	CHECK_EQ(tcp_set_user_timeout(listener, 3 * NS_PER_SEC), 0);
	tcp_get_settings(peer.pcb, &child);
	CHECK_EQ(child.user_timeout_ns, 2 * NS_PER_SEC);
	s.mss_max = TCP_MSS_LEAST - 1;
	CHECK_EQ(tcp_set_settings(listener, &s, peer.now_ns), -EINVAL);
	/* without memory nothing changes */
	tcp_abort(peer.pcb, peer.now_ns);
	peer.pcb = tcp_new(peer.table);
	peer.allocs_left = 1;
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, NS_PER_SEC), -ENOMEM);
	tcp_get_settings(peer.pcb, &s);
	CHECK_EQ(s.user_timeout_ns, 0);
	peer_teardown();
}

/* The program's time is none of the handshake's that it does not see. */
TEST(user_timeout_rules_no_half_open_child)
{
	struct tcp_options none = { 0 };

	listening_for_users_time(900 * NS_PER_MS);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &none);
	peer_next();
	peer_advance_ms(1100);
	CHECK_EQ(peer_next()->flags, S | A);
	peer_teardown();
	listening_for_users_time(1800 * NS_PER_SEC);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &none);
	peer_advance_ms(100000);
	peer.looked_at = peer.sent_cnt;
	peer_send(A, P, U, 0);
	CHECK_EQ(peer_next()->flags, R);
	peer_teardown();
}

/* A peer without window scaling reads the reset of a child that it takes for open. */
TEST(reset_of_a_half_open_child_is_read)
{
	struct tcp_options none = { 0 };
	struct tcp_pcb *listener = listening_for_users_time(0);
	uint32_t iss;

	peer_send_options(S, PEER_ISN, 0, 1000, 0, &none);
	iss = peer_next()->seq;
	tcp_abort(listener, peer.now_ns);
	peer.listener = NULL;
	CHECK_EQ(peer_next()->seq, iss + 1);
	peer_teardown();
}

/* A small buffer and a large scale: what rounding takes off the window is never all of it. */
TEST(small_buffer_is_not_scaled_away)
{
	struct tcp_options full = peer_full_options;
	uint32_t window, got = 0;

	peer_defaults();
	peer.params.rcv_buf_max = 1u << 30;
	peer_connect(&full);
	tcp_set_rcv_buf(peer.pcb, 5000, peer.now_ns);
	peer.looked_at = peer.sent_cnt;
	for (int i = 0; i < 200; i++) {
		peer_send(A, P + got, U, 1000);
		got += 1000;
		peer_advance_ms(50);
		window = peer.sent[(peer.sent_cnt - 1) % ARRAY_LEN(peer.sent)].window;
		if (!window)
			break;
	}
	peer.looked_at = peer.sent_cnt;
	tcp_recved(peer.pcb, peer_take_all(), peer.now_ns);
	CHECK(peer_next()->window);
	peer_teardown();
}

/* The peer goes by what our SYN has said, whatever becomes of the buffer afterwards. */
TEST(scale_of_the_syn_stays)
{
	uint8_t scale;

	peer_defaults();
	scale = peer_syn()->options.scale;
	CHECK(scale);
	tcp_set_rcv_buf(peer.pcb, 40000, peer.now_ns);
	peer_send_options(S | A, PEER_ISN, U, 20000, 0, &peer_full_options);
	CHECK((uint32_t)peer_next()->window << scale <= 40000);
	peer_teardown();
}

/* TCP_QUICKACK of Linux: what waits is acknowledged, and what comes next may wait. */
TEST(quick_ack_is_for_once)
{
	peer_connected();
	peer_send(A, P, U, 10);
	peer_expect_silence();
	tcp_set_quick_ack(peer.pcb, true, peer.now_ns);
	CHECK_EQ(peer_next()->ack, P + 10);
	peer_send(A, P + 10, U, 10);
	peer_expect_silence();
	tcp_set_quick_ack(peer.pcb, false, peer.now_ns);
	peer_expect_silence();
	peer_teardown();
}

/* tcp_moderate_rcvbuf */
TEST(buffer_stays_where_it_is_not_to_grow)
{
	struct tcp_pcb_info info;

	for (int tunes = 0; tunes < 2; tunes++) {
		peer_defaults();
		peer.params.rcv_buf = 5000;
		peer.params.tunes_rcv_buf = tunes;
		peer_connect(&peer_full_options);
		for (uint32_t i = 0; i < 4; i++)
			peer_send(A, P + 1000 * i, U, 1000);
		peer_advance_ms(100);
		tcp_recved(peer.pcb, peer_take_all(), peer.now_ns);
		tcp_get_info(peer.pcb, &info);
		CHECK_EQ(info.rcv_buf > 5000, tunes);
		peer_teardown();
	}
}

/* Takes the packets that the engine cuts with; those are given back at the end. */
static void hold_borrowers(struct list *held)
{
	struct pkt *pkt;

	while ((pkt = pkt_alloc(&peer.borrowers)))
		list_push_back(held, &pkt->link);
}

/* A reader who wants a part of a packet gets bytes while there is nothing to cut it with. */
TEST(part_is_copied_without_a_cut)
{
	struct list held = LIST_INIT(held), pkts = LIST_INIT(pkts);
	uint8_t bytes[200];

	peer_connected();
	peer_send(A, P, U, 300);
	hold_borrowers(&held);
	CHECK_EQ(tcp_take(peer.pcb, 100, &pkts), 0);
	CHECK_EQ(tcp_take_bytes(peer.pcb, 100, bytes), 100);
	CHECK(bytes[0] == 'x' && bytes[99] == 'x');
	tcp_recved(peer.pcb, 100, peer.now_ns);
	CHECK_EQ(tcp_readable(peer.pcb), 200);
	/* the rest is whole */
	CHECK_EQ(tcp_take(peer.pcb, 200, &pkts), 200);
	tcp_recved(peer.pcb, 200, peer.now_ns);
	CHECK_EQ(tcp_take_bytes(peer.pcb, 100, bytes), 0);
	pkt_put_list(&pkts);
	pkt_put_list(&held);
	peer_teardown();
}

/* Nor does it get the bytes behind the mark of an urgent one. */
TEST(copied_part_ends_at_the_mark)
{
	struct list held = LIST_INIT(held), pkts = LIST_INIT(pkts);
	struct tcp_in in;
	uint8_t bytes[200];

	peer_connected();
	in = peer_make(A | WIRE_TCP_URG, P, U, 100);
	((struct wire_tcp *)(void *)in.pkt->data)->urgent = htobe16(31);
	tcp_input(peer.table, &in, peer.now_ns);
	hold_borrowers(&held);
	CHECK_EQ(tcp_take(peer.pcb, 200, &pkts), 0);
	CHECK_EQ(tcp_take_bytes(peer.pcb, 200, bytes), 30);
	tcp_recved(peer.pcb, 30, peer.now_ns);
	CHECK(tcp_at_mark(peer.pcb));
	CHECK_EQ(tcp_take(peer.pcb, 10, &pkts), 0);
	CHECK_EQ(tcp_take_bytes(peer.pcb, 10, bytes), 10);
	tcp_recved(peer.pcb, 10, peer.now_ns);
	CHECK_EQ(tcp_take(peer.pcb, 200, &pkts), 59);
	tcp_recved(peer.pcb, 59, peer.now_ns);
	pkt_put_list(&pkts);
	pkt_put_list(&held);
	peer_teardown();
}
