/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accurate ECN, where segments/accecn_*.tcp do not reach: counts that go round, windows,
 * moving, want of memory. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum { E = WIRE_TCP_ECE, W = WIRE_TCP_CWR, MSS = 1000 };

static const struct tcp_options none;
/* bytes that the peer has sent */
static uint32_t sent_by_peer;

/* A segment of the peer with these bits of ACE. */
static void send_ace(uint8_t ace, uint32_t ack, uint32_t len,
		     const struct tcp_options *options)
{
	uint8_t flags = (uint8_t)(A | (ace & 2 ? W : 0) | (ace & 1 ? E : 0));
	struct tcp_in in = peer_make_options(flags, P + sent_by_peer, ack,
					     60000, len, options);
	struct wire_tcp *header = (void *)in.pkt->data;

	header->offset_ae |= ace >> 2 & 1;
	tcp_input(peer.table, &in, peer.now_ns);
}

static void send_marked_syn(uint8_t flags, uint32_t ack, bool has_ae)
{
	const struct tcp_options options = { .mss = MSS, .has_sack_ok = true };
	struct tcp_in in = peer_make_options(flags, PEER_ISN, ack, 60000, 0,
					     &options);
	struct wire_tcp *header = (void *)in.pkt->data;

	header->offset_ae |= has_ae;
	tcp_input(peer.table, &in, peer.now_ns);
}

static void start(uint32_t window)
{
	sent_by_peer = 0;
	peer_defaults();
	peer.params.ecn = TCP_ECN_ACCURATE;
	peer.params.initial_window = (uint8_t)window;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	CHECK_EQ(peer_next()->flags, S | E | W | 0x100);
	peer_advance_ms(10);
}

static void begin(uint32_t window)
{
	start(window);
	send_marked_syn(S | A | W, U, false);
	CHECK_EQ(peer_next()->flags, A | W);
}

static struct tcp_pcb_info info(void)
{
	struct tcp_pcb_info i;

	tcp_get_info(peer.pcb, &i);
	return i;
}

static uint32_t marks(void)
{
	struct tcp_pcb_stats stats;

	tcp_get_stats(peer.pcb, &stats, peer.now_ns);
	return stats.delivered_ce;
}

static struct tcp_options counted(uint32_t ect0_bytes, uint32_t ce_bytes)
{
	return (struct tcp_options){ .counter_cnt = 3, .ect0_bytes = ect0_bytes,
				     .ce_bytes = ce_bytes, .ect1_bytes = 1 };
}

static void write_segments(uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		peer_write(MSS);
	peer.looked_at = peer.sent_cnt;
}

/* Three bits are not enough for one ACK of twelve packets: the bytes say how many came
 * with a mark. */
TEST(bytes_tell_how_often_it_went_round)
{
	struct tcp_options options = counted(1, 12 * MSS);

	begin(20);
	CHECK(info().has_accurate_ecn && info().has_ecn);
	write_segments(12);
	send_ace((5 + 12) & 7, U + 12 * MSS, 0, &options);
	CHECK_EQ(marks(), 12);
	peer_teardown();
}

TEST(bytes_tell_that_it_did_not)
{
	struct tcp_options options = counted(1 + 8 * MSS, 4 * MSS);

	begin(20);
	write_segments(12);
	send_ace((5 + 4) & 7, U + 12 * MSS, 0, &options);
	CHECK_EQ(marks(), 4);
	peer_teardown();
}

/* Without bytes, eight marks do not come out of nothing; where there were marks in this
 * round trip, as many as there can be are taken for true. */
TEST(without_bytes_we_are_careful_in_congestion)
{
	begin(30);
	write_segments(30);
	send_ace(5, U + 12 * MSS, 0, &none);
	CHECK_EQ(marks(), 0);
	send_ace(6, U + 13 * MSS, 0, &none);
	CHECK_EQ(marks(), 1);
	send_ace(6, U + 25 * MSS, 0, &none);
	CHECK_EQ(marks(), 9);
	peer_teardown();
}

/* Counters of zero are no counters: somebody has cleared them, and later ones are not
 * believed either. */
TEST(cleared_options_are_ignored)
{
	struct tcp_options zero = { .counter_cnt = 3 };
	struct tcp_options options = counted(1, 24 * MSS);

	begin(40);
	write_segments(24);
	send_ace(5, U + 12 * MSS, 0, &zero);
	send_ace(5, U + 24 * MSS, 0, &options);
	CHECK_EQ(marks(), 0);
	peer_teardown();
}

/* An ACK that was overtaken has an old count. */
TEST(overtaken_ack_is_no_news)
{
	begin(20);
	write_segments(12);
	send_ace(6, U + 2 * MSS, 0, &none);
	CHECK_EQ(marks(), 1);
	send_ace(5, U + MSS, 0, &none);
	send_ace(5, U + 2 * MSS, 0, &none);
	CHECK_EQ(marks(), 1);
	peer_teardown();
}

/* Marks of one round trip are one reason to slow down, those of the next another. */
TEST(window_shrinks_once_in_a_round_trip)
{
	uint32_t before, after;

	begin(10);
	write_segments(10);
	before = info().cwnd;
	send_ace(6, U + 2 * MSS, 0, &none);
	send_ace(7, U + 4 * MSS, 0, &none);
	send_ace(0, U + 8 * MSS, 0, &none);
	send_ace(0, U + 10 * MSS, 0, &none);
	after = info().cwnd;
	CHECK_EQ(after, before * 7 / 10);
	CHECK(!info().is_recovering);
	write_segments(7);
	send_ace(1, U + 17 * MSS, 0, &none);
	CHECK(info().is_recovering || info().cwnd < after);
	peer_teardown();
}

/* Who writes into the bits of our packets makes marks mean nothing. */
TEST(mangled_path_does_not_slow_down)
{
	start(10);
	/* our SYN came as ECT(0) */
	send_marked_syn(S | A, U, true);
	CHECK_EQ(peer_next()->flags, A | W);
	write_segments(4);
	CHECK_EQ(peer.sent[peer.sent_cnt - 1].ecn, 0);
	send_ace(6, U + 4 * MSS, 0, &none);
	CHECK(!info().is_recovering);
	CHECK_EQ(info().ssthresh, UINT32_MAX / 4);
	peer_teardown();
}

/* The peer's first segment behind the handshake has no bit set: that cannot be. */
TEST(first_count_of_zero_is_a_lie)
{
	begin(10);
	write_segments(1);
	send_ace(0, U + MSS, 0, &none);
	write_segments(1);
	CHECK_EQ(peer.sent[peer.sent_cnt - 1].ecn, 0);
	CHECK(!info().is_recovering);
	peer_teardown();
}

TEST(without_memory_there_is_no_ecn)
{
	start(10);
	peer.allocs_left = 1;
	send_marked_syn(S | A | W, U, false);
	CHECK_EQ(peer_next()->flags, A);
	CHECK(!info().has_ecn && !info().has_accurate_ecn);
	peer_teardown();
}

/* What was counted goes along; a socket of the kernel cannot take it. */
TEST(counts_move)
{
	struct tcp_repair repair;
	uint8_t bytes[8192];
	size_t size;
	struct tcp_in in;

	begin(10);
	in = peer_make(A, P, U, MSS);
	in.ecn = 3;
	((struct wire_tcp *)(void *)in.pkt->data)->offset_ae |= 1;
	((struct wire_tcp *)(void *)in.pkt->data)->flags |= E;
	tcp_input(peer.table, &in, peer.now_ns);
	sent_by_peer = MSS;
	CHECK_EQ(peer_next()->flags, A | W | 0x100);
	CHECK_EQ(tcp_get_repair(peer.pcb, &repair, peer.now_ns), 0);
	CHECK(repair.has_ecn);
	size = tcp_export_size(peer.pcb);
	CHECK(size && size <= sizeof(bytes));
	CHECK_EQ(tcp_export(peer.pcb, bytes, size, peer.now_ns), 0);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	CHECK(info().has_accurate_ecn);
	write_segments(1);
	CHECK_EQ(peer.sent[peer.sent_cnt - 1].flags & ~8, A | W | 0x100);
	send_ace(7, U + MSS, 0, &none);
	CHECK_EQ(marks(), 2);
	peer_teardown();
}

/* Options are told to who asks for them alone. */
TEST(options_can_be_off)
{
	peer_defaults();
	peer.params.ecn = TCP_ECN_ACCURATE;
	peer.params.with_ecn_option = false;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	peer_next();
	send_marked_syn(S | A | W, U, false);
	CHECK_EQ(peer_next()->options.counter_cnt, 0);
	peer_teardown();
}

/* What a listener takes beside what it asks for. */
static uint16_t answer_by(enum tcp_ecn ecn, uint8_t flags, bool has_ae)
{
	uint16_t answer;

	peer_defaults();
	peer.params.ecn = ecn;
	peer_setup();
	peer.listener = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.listener, &peer.key.local,
			  peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(peer.listener, 4), 0);
	send_marked_syn(flags, 0, has_ae);
	answer = peer_next()->flags;
	peer_teardown();
	return answer;
}

static uint16_t asked_by(enum tcp_ecn ecn)
{
	uint16_t flags;

	peer_defaults();
	peer.params.ecn = ecn;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	flags = peer_next()->flags;
	peer_teardown();
	return flags;
}

TEST(modes_ask_and_accept)
{
	CHECK_EQ(asked_by(TCP_ECN_ACCURATE), S | E | W | 0x100);
	CHECK_EQ(asked_by(TCP_ECN_ACCURATE_ACCEPTED_ASKS), S | E | W);
	CHECK_EQ(asked_by(TCP_ECN_ACCURATE_ACCEPTED), S);
	for (int ecn = TCP_ECN_ACCURATE; ecn <= TCP_ECN_ACCURATE_ACCEPTED; ecn++) {
		CHECK_EQ(answer_by((enum tcp_ecn)ecn, S | E | W, true), S | A | W);
		CHECK_EQ(answer_by((enum tcp_ecn)ecn, S | E | W, false), S | A | E);
	}
	CHECK_EQ(answer_by(TCP_ECN_ACCEPTED, S | E | W, true), S | A | E);
	CHECK_EQ(answer_by(TCP_ECN_OFF, S | E | W, true), S | A);
}
