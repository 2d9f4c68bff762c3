/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of segments that a full device refuses, though nobody had asked it. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

static const struct tcp_options none = { .sack_cnt = 0 };

static void fill_device(void)
{
	peer.is_full = peer.refuses = true;
}

static void empty_device(void)
{
	peer.is_full = peer.refuses = false;
}

/* A round trip of 10 ms has been seen, so that tails are probed. */
static void begin_with(uint32_t segment_max)
{
	peer_defaults();
	peer.path.segment_max = segment_max;
	peer_connect(&peer_full_options);
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_advance_ms(10);
	peer_send_options(A, P, U + 10, 20000, 0, &none);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
}

static void begin(void)
{
	begin_with(0);
}

static void end(void)
{
	peer_expect_silence();
	peer_teardown();
}

static uint32_t under_way(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info.snd_nxt - info.snd_una;
}

static void check_nothing_is_lost(void)
{
	CHECK_EQ(tcp_counts(peer.table)->retransmitted, 0);
	CHECK_EQ(tcp_counts(peer.table)->tlp_sent, 0);
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 0);
}

static void check_next(uint32_t at, uint32_t len)
{
	const struct peer_sent *sent = peer_next();

	CHECK_EQ(sent->seq, U + at);
	CHECK_EQ(sent->len, len);
}

/* It is an order, perhaps, and must not wait for a probe. */
TEST(a_refused_segment_leaves_as_soon_as_there_is_room)
{
	begin();
	fill_device();
	peer_write(64);
	CHECK_EQ(under_way(), 0);
	peer_advance_ms(400);
	CHECK_EQ(under_way(), 0);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	CHECK_EQ(under_way(), 64);
	check_nothing_is_lost();
	end();
}

/* By tcp_send_now, as the owner does it. */
static void send_now(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&peer.pool);
	struct tcp_header header;

	memset(pkt_append(pkt, len), 'y', len);
	header = tcp_send_now(peer.pcb, pkt, true, peer.now_ns);
	CHECK(header.bytes != NULL);
	tcp_emit_failed(peer.table, peer.pcb, header.bytes, len, peer.now_ns);
}

TEST(what_is_sent_at_once_waits_in_the_same_way)
{
	struct pkt *pkt;

	begin();
	fill_device();
	send_now(64);
	CHECK_EQ(under_way(), 0);
	/* and nothing passes it */
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 32);
	CHECK(tcp_send_now(peer.pcb, pkt, true, peer.now_ns).bytes == NULL);
	pkt_put(pkt);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	peer_send_options(A, P, U + 74, 20000, 0, &none);
	/* the connection is as quick as before */
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 32);
	CHECK(tcp_send_now(peer.pcb, pkt, true, peer.now_ns).bytes != NULL);
	CHECK_EQ(under_way(), 32);
	check_nothing_is_lost();
	end();
}

/* What was sent before keeps its timer. */
TEST(what_is_under_way_is_not_taken_back)
{
	begin();
	peer_write(100);
	check_next(10, 100);
	fill_device();
	peer_write(200);
	peer_write(300);
	CHECK_EQ(under_way(), 100);
	/* nor by an acknowledgment that is refused */
	peer_send_options(A, P, U + 10, 20000, 50, &none);
	peer_advance_ms(3);
	CHECK_EQ(under_way(), 100);
	peer_send_options(A, P + 50, U + 110, 20000, 0, &none);
	CHECK_EQ(under_way(), 0);
	empty_device();
	peer_advance_ms(1);
	check_next(110, 500);
	check_nothing_is_lost();
	end();
}

TEST(nagle_does_not_wait_for_one_that_was_refused)
{
	begin();
	tcp_set_nodelay(peer.pcb, false, peer.now_ns);
	peer_write(1460);
	check_next(10, 1460);
	fill_device();
	peer_write(64);
	CHECK_EQ(under_way(), 1460);
	empty_device();
	peer_advance_ms(1);
	check_next(1470, 64);
	/* but for this one now */
	peer_write(64);
	end();
}

TEST(a_refused_run_waits_as_a_whole)
{
	const struct peer_sent *sent;

	begin_with(60000);
	fill_device();
	for (int i = 0; i < 4; i++) {
		struct pkt *pkt = pkt_alloc(&peer.pool);

		pkt_append(pkt, 1460);
		CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
	}
	tcp_output(peer.pcb, peer.now_ns);
	CHECK_EQ(under_way(), 0);
	empty_device();
	peer_advance_ms(1);
	sent = peer_next();
	CHECK_EQ(sent->seq, U + 10);
	CHECK_EQ(sent->len, 4 * 1460);
	CHECK_EQ(sent->data_cnt, 4);
	check_nothing_is_lost();
	end();
}

static void check_fin(uint32_t len)
{
	const struct peer_sent *sent;

	begin();
	fill_device();
	if (len) {
		struct pkt *pkt = pkt_alloc(&peer.pool);

		pkt_append(pkt, len);
		CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
	}
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	CHECK_EQ(under_way(), 0);
	empty_device();
	peer_advance_ms(1);
	sent = peer_next();
	CHECK_EQ(sent->seq, U + 10);
	CHECK_EQ(sent->len, len);
	CHECK(sent->flags & F);
	CHECK_EQ(under_way(), len + 1);
	peer_send_options(A, P, U + 11 + len, 20000, 0, &none);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_FIN_WAIT_2);
	check_nothing_is_lost();
	end();
}

TEST(a_refused_fin_waits_with_its_bytes_and_without)
{
	check_fin(0);
	check_fin(100);
}

/* The owner waits no longer: it is lost, as any may be, and repaired by its timeout. */
TEST(a_device_that_is_not_waited_for_loses_what_it_refuses)
{
	begin();
	peer.refuses = true;
	peer_write(64);
	peer_write(64);
	CHECK_EQ(under_way(), 128);
	peer.refuses = false;
	peer_advance_ms(1000);
	CHECK_EQ(peer_next()->seq, U + 74);
	CHECK(tcp_counts(peer.table)->retransmitted > 0);
	while (peer.looked_at != peer.sent_cnt)
		peer_next();
	end();
}

/* A probe that the device loses would be taken for one that the network lost. */
TEST(a_probe_waits_for_a_full_device)
{
	begin();
	peer_write(64);
	check_next(10, 64);
	fill_device();
	peer_advance_ms(500);
	check_nothing_is_lost();
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	CHECK_EQ(tcp_counts(peer.table)->tlp_sent, 1);
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 0);
	end();
}

/* Nor does the next timeout double for it. */
TEST(a_timeout_waits_for_a_full_device)
{
	begin();
	peer_write(64);
	check_next(10, 64);
	/* the probe is lost */
	while (!tcp_counts(peer.table)->tlp_sent)
		peer_advance_ms(1);
	check_next(10, 64);
	fill_device();
	peer_advance_ms(600);
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 0);
	empty_device();
	peer_advance_ms(1);
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 1);
	check_next(10, 64);
	end();
}

/* It has not used the time that a pace gives to what is sent. */
TEST(a_pace_does_not_count_what_was_refused)
{
	struct tcp_settings settings;
	struct pkt *pkt;
	uint32_t at = 10;

	begin();
	/* the first segments of a connection are not paced */
	for (; at < 150; at += 10) {
		peer_write(10);
		check_next(at, 10);
		peer_advance_ms(10);
		peer_send_options(A, P, U + at + 10, 20000, 0, &none);
	}
	/* 100 ms for it */
	tcp_get_settings(peer.pcb, &settings);
	settings.max_pacing_rate = 10000;
	CHECK_EQ(tcp_set_settings(peer.pcb, &settings, peer.now_ns), 0);
	peer_advance_ms(1000);
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 1000);
	fill_device();
	CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
	tcp_output(peer.pcb, peer.now_ns);
	CHECK_EQ(under_way(), 0);
	empty_device();
	peer_advance_ms(1);
	check_next(at, 1000);
	end();
}

/* The connection becomes another table's. */
static void move(void)
{
	uint8_t bytes[8192];
	size_t size = tcp_export_size(peer.pcb);

	CHECK(size > 0 && size <= sizeof(bytes));
	CHECK_EQ(tcp_export(peer.pcb, bytes, size, peer.now_ns), 0);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns, &peer.pcb), 0);
	peer_advance_ms(3);
}

/* It asks the device there. */
static void check_move(bool is_refused)
{
	begin();
	fill_device();
	if (!is_refused)
		tcp_emit_failed(peer.table, NULL, NULL, 0, peer.now_ns);
	peer_write(64);
	if (is_refused)
		tcp_set_cork(peer.pcb, true, peer.now_ns);
	move();
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	check_nothing_is_lost();
	end();
}

TEST(what_waits_for_a_device_goes_on_after_a_move)
{
	check_move(false);
	check_move(true);
}

/* ---- acknowledgments ---- */

/* The peer sends so much from there on. */
static void receive(uint32_t at, uint32_t len)
{
	peer_send_options(A, P + at, U + 10, 20000, len, &none);
}

static void check_ack(uint32_t ack)
{
	const struct peer_sent *sent = peer_next();

	CHECK_EQ(sent->ack, P + ack);
	CHECK_EQ(sent->len, 0);
	CHECK_EQ(sent->flags, A);
}

/* The peer waits for it, and its timeout takes it for lost. */
TEST(a_refused_acknowledgment_leaves_as_soon_as_there_is_room)
{
	begin();
	fill_device();
	receive(0, 1000);
	receive(1000, 1000);
	peer_advance_ms(100);
	empty_device();
	peer_advance_ms(1);
	check_ack(2000);
	/* so does one that was late */
	fill_device();
	receive(2000, 10);
	peer_advance_ms(100);
	empty_device();
	peer_advance_ms(1);
	check_ack(2010);
	peer_advance_ms(1000);
	end();
}

/* One that is due while a device is known to be full is not given to it. */
TEST(an_acknowledgment_asks_for_room_behind_one_that_was_refused)
{
	begin();
	fill_device();
	receive(0, 1000);
	receive(1000, 1000);
	peer.refuses = false;
	peer_advance_ms(100);
	peer_expect_silence();
	/* out of order, which the general rules answer */
	peer.is_full = false;
	receive(3000, 1000);
	check_ack(2000);
	peer_advance_ms(1);
	end();
}

TEST(a_refused_acknowledgment_rides_on_what_is_sent_meanwhile)
{
	begin();
	fill_device();
	receive(0, 1000);
	receive(1000, 1000);
	empty_device();
	peer_write(64);
	CHECK_EQ(peer_next()->ack, P + 2000);
	peer_advance_ms(1);
	end();
}

TEST(a_refused_window_leaves_as_soon_as_there_is_room)
{
	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = 3000;
	peer_connect(&peer_full_options);
	peer_send_options(A, P, U, 20000, 1500, &none);
	peer_send_options(A, P + 1500, U, 20000, 1500, &none);
	CHECK_EQ(peer_next()->window, 0);
	peer_expect_silence();
	fill_device();
	CHECK_EQ(peer_take_all(), 3000);
	tcp_recved(peer.pcb, 3000, peer.now_ns);
	peer_advance_ms(100);
	empty_device();
	peer_advance_ms(1);
	CHECK(peer_next()->window >= 2900 >> 2);
	end();
}

/* Its bytes cannot leave any more. */
TEST(the_acknowledgment_of_a_refused_segment_waits_for_no_window)
{
	begin();
	receive(0, 10);
	fill_device();
	peer_write(64);
	peer_send_options(A, P + 10, U + 10, 0, 0, &none);
	peer_advance_ms(1);
	empty_device();
	peer_advance_ms(1);
	check_ack(10);
	peer_expect_silence();
	peer_send_options(A, P + 10, U + 10, 20000, 0, &none);
	check_next(10, 64);
	end();
}

TEST(an_acknowledgment_that_is_not_waited_for_is_lost)
{
	begin();
	peer.refuses = true;
	receive(0, 1000);
	receive(1000, 1000);
	peer.refuses = false;
	peer_advance_ms(1000);
	peer_expect_silence();
	/* the next one is not */
	receive(2000, 10);
	peer_advance_ms(100);
	check_ack(2010);
	end();
}

/* The last one of all is the peer's to ask for, from who is in TIME_WAIT. */
TEST(nothing_waits_for_a_device_behind_the_end)
{
	begin();
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	CHECK_EQ(peer_next()->flags, F | A);
	peer_send_options(A, P, U + 11, 20000, 0, &none);
	fill_device();
	peer_send_options(F | A, P, U + 11, 20000, 0, &none);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_TIME_WAIT);
	tcp_set_path(peer.pcb, &peer.path, peer.now_ns);
	empty_device();
	peer_advance_ms(1);
	peer_expect_silence();
	peer_send_options(F | A, P, U + 11, 20000, 0, &none);
	check_ack(1);
	end();
}

TEST(an_acknowledgment_that_waits_for_a_device_goes_on_after_a_move)
{
	begin();
	fill_device();
	receive(0, 1000);
	receive(1000, 1000);
	move();
	empty_device();
	peer_advance_ms(1);
	check_ack(2000);
	end();
}

/* ---- what is held back ---- */

/* It was sent once, under Linux for good. */
TEST(a_cork_does_not_hold_what_was_refused)
{
	begin();
	fill_device();
	peer_write(64);
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	peer_send_options(A, P, U + 74, 20000, 0, &none);
	/* but what is written then */
	peer_write(64);
	peer_advance_ms(190);
	end();
}

/* Not even together with it, by a device that would cut both. */
TEST(a_cork_holds_what_follows_one_that_was_refused)
{
	begin_with(60000);
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	fill_device();
	peer_write(1460);
	peer_write(64);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 1460);
	peer_send_options(A, P, U + 1470, 20000, 0, &none);
	peer_advance_ms(190);
	end();
}

TEST(a_cork_whose_time_is_over_holds_for_no_second_time)
{
	begin();
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	peer_write(64);
	peer_advance_ms(190);
	peer_expect_silence();
	fill_device();
	peer_advance_ms(20);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	peer_send_options(A, P, U + 74, 20000, 0, &none);
	peer_write(64);
	peer_advance_ms(190);
	end();
}

/* Nor where a longer one before it waits for the device. */
TEST(a_cork_whose_time_is_over_holds_nothing_behind_what_waits_for_a_device)
{
	begin();
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	peer_write(64);
	peer_advance_ms(190);
	fill_device();
	tcp_emit_failed(peer.table, NULL, NULL, 0, peer.now_ns);
	peer_write(1460);
	peer_advance_ms(20);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 1460);
	check_next(1470, 64);
	end();
}

/* Nor by Nagle's rule, where that was switched off. */
TEST(what_was_let_go_and_refused_is_not_held_again)
{
	begin();
	tcp_set_nodelay(peer.pcb, false, peer.now_ns);
	peer_write(64);
	check_next(10, 64);
	peer_write(64);
	peer_expect_silence();
	fill_device();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	tcp_set_nodelay(peer.pcb, false, peer.now_ns);
	empty_device();
	peer_advance_ms(1);
	check_next(74, 64);
	peer_write(64);
	end();
}

/* ---- others ---- */

/* The next one would leave after a second. */
TEST(a_refused_syn_leaves_as_soon_as_there_is_room)
{
	const struct peer_sent *syn;
	struct tcp_pcb_info info;

	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	fill_device();
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	peer_advance_ms(100);
	empty_device();
	peer_advance_ms(1);
	syn = peer_next();
	CHECK_EQ(syn->flags & (S | A), S);
	peer_advance_ms(10);
	peer_send_options(S | A, PEER_ISN, U, 20000, 0, &peer_full_options);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	check_ack(0);
	/* the wait is no part of the way */
	tcp_get_info(peer.pcb, &info);
	CHECK(info.srtt_ns < 12 * NS_PER_MS);
	check_nothing_is_lost();
	end();
}

/* The program is not told that it has left when it has not. */
TEST(a_byte_that_is_followed_is_sent_when_it_leaves)
{
	static const enum tcp_stamp stamps[] = { TCP_STAMP_SCHEDULED, TCP_STAMP_REFUSED,
						 TCP_STAMP_SCHEDULED, TCP_STAMP_SENT };
	struct pkt *pkt;

	begin();
	fill_device();
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 64);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_STAMP), 0);
	tcp_output(peer.pcb, peer.now_ns);
	empty_device();
	peer_advance_ms(1);
	check_next(10, 64);
	CHECK_EQ(peer.stamp_cnt, ARRAY_LEN(stamps));
	for (unsigned i = 0; i < ARRAY_LEN(stamps); i++) {
		CHECK_EQ(peer.stamps[i].what, stamps[i]);
		CHECK_EQ(peer.stamps[i].byte, 73);
	}
	end();
}

/* It would be one that the peer has not answered. */
TEST(a_keepalive_probe_waits_for_a_full_device)
{
	begin();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, NS_PER_SEC, NS_PER_SEC, 1, peer.now_ns), 0);
	fill_device();
	peer_advance_ms(2500);
	CHECK_EQ(tcp_counts(peer.table)->keepalive_probes, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	empty_device();
	peer_advance_ms(1);
	CHECK_EQ(peer_next()->seq, U + 9);
	/* nobody answers */
	peer_advance_ms(990);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	peer_advance_ms(10);
	CHECK_EQ(peer_next()->flags, R | A);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_CLOSED);
	end();
}
