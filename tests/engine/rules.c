/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Single rules, segment by segment: an engine against a peer that is this file.
 * Sequence numbers are relative: `P + n` in the peer's stream, `U + n` in ours.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tcp/tcp.h"
#include "tcp/tcp_options.h"
#include "tests/support/test.h"

enum { PEER_ISN = 5000, SENT_MAX = 64, BUF_SIZE = 2048 };

/* A segment the engine sent. */
struct sent {
	uint32_t seq, ack, len;
	uint16_t window;
	uint8_t flags, ecn;
	struct tcp_options options;
	uint64_t at_ns;
};

static struct {
	struct timer_wheel wheel;
	struct pkt_pool pool, borrowers;
	struct tcp_table *table;
	struct tcp_params params;
	struct tcp_pcb *pcb, *listener;
	struct flow_key key;
	uint64_t now_ns;
	uint32_t iss; /* ours */
	uint32_t ts;  /* peer's clock; 0: no time stamps */
	struct sent sent[SENT_MAX];
	unsigned sent_cnt, looked_at;
	size_t memory;
} t;

#define P (PEER_ISN + 1)
#define U (t.iss + 1)

static void emit(void *ctx UNUSED, struct tcp_pcb *pcb UNUSED,
		 const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;
	struct sent *sent = &t.sent[t.sent_cnt++ % SENT_MAX];

	sent->seq = be32toh(header->seq);
	sent->ack = be32toh(header->ack);
	sent->len = out->data_len;
	sent->window = be16toh(header->window);
	sent->flags = header->flags;
	sent->ecn = out->ecn;
	sent->at_ns = t.now_ns;
	tcp_options_parse(out->header + 20, out->header_len - 20,
			  header->flags & WIRE_TCP_SYN, &sent->options);
	if (header->flags & WIRE_TCP_SYN)
		t.iss = sent->seq;
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	t.memory += size;
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size)
{
	t.memory -= size;
	free(mem);
}

static bool path(void *ctx UNUSED, const struct flow_key *key UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = (struct tcp_path){ .mtu = 1500 };
	return true;
}

static const struct tcp_ops ops = { emit, alloc, release, path };

static void defaults(void)
{
	memset(&t, 0, sizeof(t));
	tcp_params_init(&t.params);
	t.params.quick_acks = 0;
	t.now_ns = 1000 * NS_PER_SEC;
}

static void setup(void)
{
	t.params.secret.word[0] = test_seed;
	timer_wheel_init(&t.wheel, t.now_ns);
	pkt_pool_init(&t.pool, 0);
	pkt_pool_init(&t.borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&t.pool, 512, BUF_SIZE), 0);
	CHECK_EQ(pkt_pool_grow(&t.borrowers, 64, 0), 0);
	t.table = tcp_table_create(&t.params, &ops, NULL, &t.wheel,
				   &t.borrowers);
	CHECK(t.table != NULL);
	t.key.local = ip_addr_from_v4(htobe32(0x0a000001));
	t.key.remote = ip_addr_from_v4(htobe32(0x0a000002));
	t.key.local_port = htobe16(1000);
	t.key.remote_port = htobe16(2000);
}

static void teardown(void)
{
	struct tcp_event event;

	if (t.pcb)
		tcp_abort(t.pcb, t.now_ns);
	if (t.listener)
		tcp_close(t.listener, t.now_ns);
	while (tcp_event_next(t.table, &event))
		;
	CHECK_EQ(tcp_pcb_cnt(t.table), 0);
	tcp_table_destroy(t.table);
	CHECK_EQ(t.memory, 0);
	CHECK_EQ(timer_wheel_pending_cnt(&t.wheel), 0);
	CHECK_EQ(pkt_pool_destroy(&t.pool), 0);
	CHECK_EQ(pkt_pool_destroy(&t.borrowers), 0);
}

/* The peer sends a segment with these options. */
static void recv_options(uint8_t flags, uint32_t seq, uint32_t ack,
			 uint16_t window, uint32_t len,
			 const struct tcp_options *options)
{
	struct tcp_in in = { .pkt = pkt_alloc(&t.pool), .key = t.key };
	struct wire_tcp *header;
	size_t header_len;

	CHECK(in.pkt != NULL);
	header = (void *)in.pkt->data;
	header_len = 20 + tcp_options_build(in.pkt->data + 20, options);
	*header = (struct wire_tcp){
		.src_port = t.key.remote_port,
		.dst_port = t.key.local_port,
		.seq = htobe32(seq),
		.ack = htobe32(ack),
		.offset_ae = (uint8_t)(header_len << 2),
		.flags = flags,
		.window = htobe16(window),
	};
	pkt_append(in.pkt, (uint32_t)header_len + len);
	memset(in.pkt->data + header_len, 'x', len);
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	tcp_input(t.table, &in, t.now_ns);
}

static void recv_segment(uint8_t flags, uint32_t seq, uint32_t ack,
			 uint32_t len)
{
	struct tcp_options options = { .has_ts = t.ts != 0, .ts_val = t.ts };

	recv_options(flags, seq, ack, 1000, len, &options);
}

enum { F = WIRE_TCP_FIN, S = WIRE_TCP_SYN, R = WIRE_TCP_RST, A = WIRE_TCP_ACK };

/* The next segment the engine sent; fails if there is none. */
static const struct sent *next_sent(void)
{
	if (t.looked_at == t.sent_cnt)
		FAIL("nothing was sent");
	return &t.sent[t.looked_at++ % SENT_MAX];
}

static void expect_silence(void)
{
	if (t.looked_at != t.sent_cnt)
		FAIL("%u segments too many, flags %#x", t.sent_cnt - t.looked_at,
		     t.sent[t.looked_at % SENT_MAX].flags);
}

static void advance_ms(uint64_t ms)
{
	uint64_t until_ns = t.now_ns + ms * NS_PER_MS;

	while (timer_wheel_next_ns(&t.wheel) <= until_ns) {
		t.now_ns = MAX(t.now_ns, timer_wheel_next_ns(&t.wheel));
		timer_wheel_advance(&t.wheel, t.now_ns);
	}
	t.now_ns = until_ns;
	timer_wheel_advance(&t.wheel, t.now_ns);
}

static const struct tcp_options full_options = {
	.mss = 1460, .has_scale = true, .scale = 2, .has_sack_ok = true,
};

/* An established connection that we opened. */
static void connect_with(const struct tcp_options *offered)
{
	struct tcp_path way = { .mtu = 1500 };

	setup();
	t.pcb = tcp_new(t.table);
	CHECK(t.pcb != NULL);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port, &way,
			     t.now_ns), 0);
	CHECK_EQ(next_sent()->flags & (S | A), S);
	advance_ms(10);
	t.ts = offered->has_ts ? offered->ts_val : 0;
	recv_options(S | A, PEER_ISN, U, 20000, 0, offered);
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	CHECK_EQ(next_sent()->ack, P);
	expect_silence();
}

static void connected(void)
{
	defaults();
	connect_with(&full_options);
}

static void write_bytes(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&t.pool);

	memset(pkt_append(pkt, len), 'y', len);
	CHECK_EQ(tcp_write(t.pcb, pkt), 0);
	tcp_output(t.pcb, t.now_ns);
}

static uint32_t take_all(void)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(t.pcb, &pkts);

	pkt_put_list(&pkts);
	return len;
}

/* ---- RFC 5961 ---- */

TEST(reset_counts_only_at_the_exact_number)
{
	connected();
	recv_segment(R, P + 10, 0, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	CHECK_EQ(next_sent()->flags, A);
	recv_segment(R, P - 1, 0, 0);
	expect_silence();
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	recv_segment(R, P, 0, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_CLOSED);
	CHECK_EQ(tcp_error(t.pcb), -ECONNRESET);
	teardown();
}

TEST(syn_in_a_connection_is_challenged)
{
	connected();
	recv_segment(S, P + 5, 0, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	CHECK_EQ(next_sent()->ack, P);
	CHECK_EQ(tcp_counts(t.table)->challenge_acks, 1);
	teardown();
}

TEST(ack_outside_the_range_is_challenged)
{
	connected();
	recv_segment(A, P, U + 1, 1);
	CHECK_EQ(next_sent()->ack, P);
	recv_segment(A, P, U - 200000, 1);
	CHECK_EQ(next_sent()->ack, P);
	CHECK_EQ(tcp_counts(t.table)->bad_ack, 2);
	teardown();
}

TEST(challenges_are_limited)
{
	defaults();
	t.params.challenge_acks_per_sec = 3;
	connect_with(&full_options);
	for (int i = 0; i < 10; i++)
		recv_segment(S, P + 5, 0, 0);
	CHECK_EQ(tcp_counts(t.table)->challenge_acks, 3);
	CHECK_EQ(tcp_counts(t.table)->challenge_acks_limited, 7);
	advance_ms(1001);
	recv_segment(S, P + 5, 0, 0);
	CHECK_EQ(tcp_counts(t.table)->challenge_acks, 4);
	teardown();
}

/* ---- RFC 9293 ---- */

TEST(window_follows_the_newest_acknowledgment)
{
	struct tcp_options none = { 0 };
	struct tcp_info info;

	connected();
	write_bytes(1000);
	write_bytes(1000);
	/* a later segment shrinks the window; an older one that comes after it
	 * acknowledges more */
	recv_options(A, P + 100, U, 300, 0, &none);
	recv_options(A, P, U, 200, 0, &none);
	tcp_get_info(t.pcb, &info);
	CHECK_EQ(info.snd_wnd, 1200);
	recv_options(A, P, U + 1000, 100, 0, &none);
	tcp_get_info(t.pcb, &info);
	CHECK_EQ(info.snd_una, U + 1000);
	CHECK_EQ(info.snd_wnd, 400);
	teardown();
}

TEST(full_window_takes_not_one_byte)
{
	struct tcp_options none = { 0 };

	connected();
	tcp_set_nodelay(t.pcb, true, t.now_ns);
	recv_options(A, P, U, 1460 / 4, 0, &none);
	write_bytes(1460);
	CHECK_EQ(next_sent()->len, 1460);
	write_bytes(1);
	expect_silence();
	recv_options(A, P, U + 1460, 1460 / 4, 0, &none);
	CHECK_EQ(next_sent()->len, 1);
	teardown();
}

TEST(shrunk_window_holds_what_is_beyond)
{
	struct tcp_options none = { 0 };

	connected();
	write_bytes(1460);
	write_bytes(1460);
	CHECK_EQ(next_sent()->len, 1460);
	CHECK_EQ(next_sent()->len, 1460);
	recv_options(A, P + 1, U, 365, 0, &none);
	write_bytes(1460);
	expect_silence();
	teardown();
}

TEST(bytes_beyond_our_window_are_cut)
{
	struct tcp_options options = full_options;

	defaults();
	t.params.rcv_buf = t.params.rcv_buf_max = 2000;
	options.has_ts = true;
	options.ts_val = 7;
	connect_with(&options);
	recv_segment(A, P, U, 1448);
	recv_segment(A, P + 1448, U, 1448);
	CHECK_EQ(take_all(), 2000);
	teardown();
}

TEST(unknown_connection_is_reset)
{
	const struct sent *sent;

	defaults();
	setup();
	recv_segment(A, P, 777, 5);
	sent = next_sent();
	CHECK_EQ(sent->flags, R);
	CHECK_EQ(sent->seq, 777);
	recv_segment(S, P, 0, 0);
	sent = next_sent();
	CHECK_EQ(sent->flags, R | A);
	CHECK_EQ(sent->ack, P + 1);
	recv_segment(R, P, 0, 0);
	expect_silence();
	teardown();
}

TEST(refused_connection_tells)
{
	struct tcp_path way = { .mtu = 1500 };

	defaults();
	setup();
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port, &way,
			     t.now_ns), 0);
	/* with a wrong acknowledgment it is not for us */
	recv_segment(R | A, 0, U + 5, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_SYN_SENT);
	recv_segment(R | A, 0, U, 0);
	CHECK_EQ(tcp_error(t.pcb), -ECONNREFUSED);
	teardown();
}

TEST(simultaneous_open_connects)
{
	struct tcp_path way = { .mtu = 1500 };

	defaults();
	setup();
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port, &way,
			     t.now_ns), 0);
	next_sent();
	recv_options(S, PEER_ISN, 0, 1000, 0, &full_options);
	CHECK_EQ(tcp_state(t.pcb), TCP_SYN_RCVD);
	CHECK_EQ(next_sent()->flags & (S | A), S | A);
	recv_options(S | A, PEER_ISN, U, 1000, 0, &full_options);
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	teardown();
}

TEST(simultaneous_close_ends_in_time_wait)
{
	connected();
	CHECK_EQ(tcp_shutdown(t.pcb, t.now_ns), 0);
	CHECK_EQ(next_sent()->flags & F, F);
	recv_segment(F | A, P, U, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_CLOSING);
	CHECK_EQ(next_sent()->ack, P + 1);
	recv_segment(A, P + 1, U + 1, 0);
	CHECK_EQ(tcp_state(t.pcb), TCP_TIME_WAIT);
	CHECK_EQ(tcp_time_wait_cnt(t.table), 1);
	/* nothing answers an empty segment, or two of us would for ever */
	recv_segment(A, P + 1, U + 1, 0);
	expect_silence();
	recv_segment(R, P + 1, 0, 0);
	CHECK_EQ(tcp_time_wait_cnt(t.table), 1);
	/* FIN again: answered, and the wait begins again */
	advance_ms(50000);
	recv_segment(F | A, P, U + 1, 0);
	CHECK_EQ(next_sent()->ack, P + 1);
	advance_ms(50000);
	CHECK_EQ(tcp_time_wait_cnt(t.table), 1);
	advance_ms(11000);
	CHECK_EQ(tcp_time_wait_cnt(t.table), 0);
	teardown();
}

TEST(data_after_close_is_reset)
{
	connected();
	tcp_close(t.pcb, t.now_ns);
	t.pcb = NULL;
	CHECK_EQ(next_sent()->flags & F, F);
	recv_segment(A, P, U + 1, 100);
	CHECK_EQ(next_sent()->flags & R, R);
	teardown();
}

TEST(close_with_unread_data_resets)
{
	connected();
	recv_segment(A, P, U, 100);
	tcp_close(t.pcb, t.now_ns);
	t.pcb = NULL;
	CHECK_EQ(next_sent()->flags & R, R);
	teardown();
}

/* ---- acknowledgments ---- */

TEST(every_second_full_segment_is_acknowledged)
{
	connected();
	recv_segment(A, P, U, 1460);
	expect_silence();
	recv_segment(A, P + 1460, U, 1460);
	CHECK_EQ(next_sent()->ack, P + 2920);
	recv_segment(A, P + 2920, U, 1460);
	expect_silence();
	advance_ms(39);
	expect_silence();
	advance_ms(2);
	CHECK_EQ(next_sent()->ack, P + 4380);
	teardown();
}

TEST(gap_is_reported_at_once)
{
	const struct sent *sent;

	connected();
	recv_segment(A, P + 1000, U, 500);
	sent = next_sent();
	CHECK_EQ(sent->ack, P);
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P + 1000);
	CHECK_EQ(sent->options.sack[0].end, P + 1500);
	/* the newest run comes first */
	recv_segment(A, P + 3000, U, 100);
	sent = next_sent();
	CHECK_EQ(sent->options.sack_cnt, 2);
	CHECK_EQ(sent->options.sack[0].start, P + 3000);
	CHECK_EQ(sent->options.sack[1].start, P + 1000);
	recv_segment(A, P, U, 1000);
	sent = next_sent();
	CHECK_EQ(sent->ack, P + 1500);
	CHECK_EQ(sent->options.sack_cnt, 1);
	teardown();
}

TEST(duplicate_is_reported_by_dsack)
{
	const struct sent *sent;

	connected();
	recv_segment(A, P, U, 500);
	recv_segment(A, P, U, 500);
	sent = next_sent();
	CHECK_EQ(sent->ack, P + 500);
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P);
	CHECK_EQ(sent->options.sack[0].end, P + 500);
	/* once */
	recv_segment(A, P + 900, U, 10);
	CHECK_EQ(next_sent()->options.sack[0].start, P + 900);
	/* part of one */
	recv_segment(A, P + 200, U, 600);
	sent = next_sent();
	CHECK_EQ(sent->ack, P + 800);
	CHECK_EQ(sent->options.sack[0].start, P + 200);
	CHECK_EQ(sent->options.sack[0].end, P + 500);
	teardown();
}

/* The same bytes in other segments than before, as after a retransmission on a
 * narrower path. */
TEST(overlapping_segments_count_once)
{
	const struct sent *sent;

	connected();
	recv_segment(A, P + 1000, U, 500);
	recv_segment(A, P + 500, U, 700);
	sent = &t.sent[(t.sent_cnt - 1) % SENT_MAX];
	CHECK_EQ(sent->options.sack[1].start, P + 500);
	CHECK_EQ(sent->options.sack[1].end, P + 1500);
	recv_segment(A, P, U, 600);
	CHECK_EQ(take_all(), 1500);
	recv_segment(A, P + 2000, U, 500);
	recv_segment(A, P + 1500, U, 700);
	CHECK_EQ(take_all(), 1000);
	recv_segment(A, P + 2600, U, 100);
	recv_segment(A, P + 2550, U, 300);
	recv_segment(A, P + 2500, U, 50);
	CHECK_EQ(take_all(), 350);
	t.looked_at = t.sent_cnt;
	recv_segment(A, P + 2850, U, 1460);
	recv_segment(A, P + 4310, U, 1460);
	CHECK_EQ(next_sent()->ack, P + 5770);
	teardown();
}

TEST(runs_that_meet_become_one)
{
	const struct sent *sent;

	connected();
	recv_segment(A, P + 1000, U, 100);
	recv_segment(A, P + 1200, U, 100);
	recv_segment(A, P + 1100, U, 100);
	t.looked_at = t.sent_cnt - 1;
	sent = next_sent();
	CHECK_EQ(sent->options.sack_cnt, 1);
	CHECK_EQ(sent->options.sack[0].start, P + 1000);
	CHECK_EQ(sent->options.sack[0].end, P + 1300);
	teardown();
}

TEST(reader_reopens_a_closed_window)
{
	uint32_t at = 0;

	defaults();
	t.params.rcv_buf = t.params.rcv_buf_max = 14600;
	connect_with(&full_options);
	for (int i = 0; i < 10; i++, at += 1460)
		recv_segment(A, P + at, U, 1460);
	CHECK_EQ(t.sent[(t.sent_cnt - 1) % SENT_MAX].window, 0);
	t.looked_at = t.sent_cnt;
	CHECK_EQ(take_all(), 14600);
	expect_silence();
	tcp_recved(t.pcb, 14600, t.now_ns);
	CHECK(next_sent()->window > 0);
	teardown();
}

TEST(window_is_never_taken_back)
{
	struct tcp_info before, after;

	connected();
	tcp_get_info(t.pcb, &before);
	tcp_set_rcv_buf(t.pcb, 4000, t.now_ns);
	recv_segment(A, P, U, 1460);
	recv_segment(A, P + 1460, U, 1460);
	next_sent();
	tcp_get_info(t.pcb, &after);
	CHECK_EQ(after.rcv_edge, before.rcv_edge);
	/* what was granted is still taken */
	recv_segment(A, P + 2920, U, 1460);
	recv_segment(A, P + 4380, U, 1460);
	CHECK_EQ(take_all(), 5840);
	teardown();
}

TEST(impossible_sack_blocks_are_ignored)
{
	struct tcp_options options = { .sack_cnt = 1 };
	struct tcp_info info;

	connected();
	for (int i = 0; i < 3; i++)
		write_bytes(1460);
	options.sack[0] = (struct tcp_sack_block){ U - 10, U + 1460 };
	recv_options(A, P, U, 5000, 0, &options);
	options.sack[0] = (struct tcp_sack_block){ U + 1460, U + 9000 };
	recv_options(A, P, U, 5000, 0, &options);
	options.sack[0] = (struct tcp_sack_block){ U + 2920, U + 1460 };
	recv_options(A, P, U, 5000, 0, &options);
	tcp_get_info(t.pcb, &info);
	CHECK_EQ(info.in_flight, 3 * 1460);
	options.sack[0] = (struct tcp_sack_block){ U + 1460, U + 2920 };
	recv_options(A, P, U, 5000, 0, &options);
	tcp_get_info(t.pcb, &info);
	CHECK_EQ(info.in_flight, 2 * 1460);
	teardown();
}

TEST(out_of_order_memory_is_bounded)
{
	struct tcp_info info;

	defaults();
	t.params.rcv_buf = 100000;
	t.params.rcv_buf_max = 100000;
	connect_with(&full_options);
	for (uint32_t i = 0; i < 400; i++)
		recv_segment(A, P + 100 + 3 * i, U, 1);
	tcp_get_info(t.pcb, &info);
	CHECK(info.ooo_memory <= 200000);
	CHECK(tcp_counts(t.table)->ooo_pruned > 0);
	t.looked_at = t.sent_cnt;
	teardown();
}

TEST(old_time_stamp_is_refused)
{
	struct tcp_options options = full_options;

	defaults();
	options.has_ts = true;
	options.ts_val = 1000;
	connect_with(&options);
	t.ts = 999;
	recv_segment(A, P, U, 100);
	CHECK_EQ(next_sent()->ack, P);
	CHECK_EQ(tcp_counts(t.table)->paws_drops, 1);
	t.ts = 1000;
	recv_segment(A, P, U, 100);
	advance_ms(50);
	CHECK_EQ(next_sent()->ack, P + 100);
	/* the same where everything else is as predicted */
	t.ts = 999;
	recv_segment(A, P + 100, U, 100);
	CHECK_EQ(next_sent()->ack, P + 100);
	CHECK_EQ(tcp_counts(t.table)->paws_drops, 2);
	/* negotiated, so one without is not ours */
	t.ts = 0;
	recv_segment(A, P + 100, U, 100);
	expect_silence();
	CHECK_EQ(tcp_counts(t.table)->paws_drops, 3);
	teardown();
}

/* ---- sending ---- */

TEST(small_segment_waits_for_a_small_one)
{
	connected();
	write_bytes(10);
	CHECK_EQ(next_sent()->len, 10);
	write_bytes(20);
	expect_silence();
	recv_segment(A, P, U + 10, 0);
	CHECK_EQ(next_sent()->len, 20);
	recv_segment(A, P, U + 30, 0);
	/* but not for a full one */
	write_bytes(1460);
	CHECK_EQ(next_sent()->len, 1460);
	write_bytes(30);
	CHECK_EQ(next_sent()->len, 30);
	tcp_set_nodelay(t.pcb, true, t.now_ns);
	write_bytes(40);
	CHECK_EQ(next_sent()->len, 40);
	teardown();
}

TEST(cork_holds_for_two_hundred_milliseconds)
{
	connected();
	tcp_set_cork(t.pcb, true, t.now_ns);
	write_bytes(10);
	advance_ms(199);
	expect_silence();
	advance_ms(2);
	CHECK_EQ(next_sent()->len, 10);
	recv_segment(A, P, U + 10, 0);
	write_bytes(20);
	expect_silence();
	tcp_set_cork(t.pcb, false, t.now_ns);
	CHECK_EQ(next_sent()->len, 20);
	teardown();
}

/* Without SACK, so that no probe comes before the timeout. */
TEST(timeout_doubles_each_time)
{
	struct tcp_options options = { .mss = 1460 };
	uint64_t at_ns, last_ns, gap_ns = 0;

	defaults();
	connect_with(&options);
	write_bytes(10);
	last_ns = next_sent()->at_ns;
	advance_ms(10000);
	for (int i = 0; i < 5; i++) {
		at_ns = next_sent()->at_ns;
		if (i == 0)
			CHECK(at_ns - last_ns >= 200 * NS_PER_MS &&
			      at_ns - last_ns < 300 * NS_PER_MS);
		else
			CHECK((at_ns - last_ns + NS_PER_MS) / (2 * NS_PER_MS) ==
			      gap_ns / NS_PER_MS);
		gap_ns = at_ns - last_ns;
		last_ns = at_ns;
	}
	expect_silence();
	teardown();
}

TEST(retries_end_in_etimedout)
{
	defaults();
	t.params.retries = 3;
	connect_with(&full_options);
	write_bytes(10);
	advance_ms(60000);
	CHECK_EQ(tcp_state(t.pcb), TCP_CLOSED);
	CHECK_EQ(tcp_error(t.pcb), -ETIMEDOUT);
	/* the segment and three retransmissions */
	CHECK_EQ(t.sent_cnt - t.looked_at, 4);
	teardown();
}

TEST(user_timeout_ends_in_etimedout)
{
	connected();
	tcp_set_user_timeout(t.pcb, 2 * NS_PER_SEC);
	write_bytes(10);
	advance_ms(1900);
	CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	advance_ms(200);
	CHECK_EQ(tcp_error(t.pcb), -ETIMEDOUT);
	/* at 0.21, 0.42, 0.84 and 1.68 seconds */
	CHECK_EQ(t.sent_cnt - t.looked_at, 1 + 3);
	teardown();
}

TEST(zero_window_is_probed_for_ever)
{
	struct tcp_options none = { 0 };

	connected();
	recv_options(A, P, U, 0, 0, &none);
	write_bytes(10);
	expect_silence();
	for (int i = 0; i < 30; i++) {
		advance_ms(130000);
		CHECK_EQ(next_sent()->seq, U - 1);
		t.looked_at = t.sent_cnt;
		recv_options(A, P, U, 0, 0, &none);
		CHECK_EQ(tcp_state(t.pcb), TCP_ESTABLISHED);
	}
	recv_options(A, P, U, 1000, 0, &none);
	CHECK_EQ(next_sent()->len, 10);
	teardown();
}

TEST(silent_peer_is_found_by_keepalive)
{
	connected();
	tcp_set_keepalive(t.pcb, true, 10 * NS_PER_SEC, NS_PER_SEC, 3,
			  t.now_ns);
	advance_ms(9900);
	expect_silence();
	advance_ms(200);
	CHECK_EQ(next_sent()->seq, U - 1);
	recv_segment(A, P, U, 0);
	advance_ms(9000);
	expect_silence();
	advance_ms(10000);
	CHECK_EQ(tcp_error(t.pcb), -ETIMEDOUT);
	CHECK_EQ(t.sent_cnt - t.looked_at, 3 + 1);
	CHECK_EQ(t.sent[(t.sent_cnt - 1) % SENT_MAX].flags & R, R);
	teardown();
}

/* ---- opening ---- */

TEST(syn_offers_and_accepts_options)
{
	struct tcp_path way = { .mtu = 1500 };
	struct tcp_options answer = full_options;
	const struct sent *sent;
	struct tcp_info info;

	defaults();
	setup();
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port, &way,
			     t.now_ns), 0);
	sent = next_sent();
	CHECK_EQ(sent->options.mss, 1460);
	CHECK(sent->options.has_scale && sent->options.has_sack_ok &&
	      sent->options.has_ts);
	CHECK_EQ(sent->options.scale, 7);
	answer.mss = 1000;
	recv_options(S | A, PEER_ISN, U, 1000, 0, &answer);
	tcp_get_info(t.pcb, &info);
	CHECK(info.has_sack && info.has_window_scale && !info.has_timestamps);
	CHECK_EQ(info.mss, 1000);
	CHECK_EQ(info.snd_scale, 2);
	/* the window of a SYN is not scaled */
	CHECK_EQ(info.snd_wnd, 1000);
	teardown();
}

TEST(syn_is_sent_again_and_given_up)
{
	struct tcp_path way = { .mtu = 1500 };

	defaults();
	t.params.syn_retries = 2;
	setup();
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port, &way,
			     t.now_ns), 0);
	advance_ms(60000);
	CHECK_EQ(tcp_error(t.pcb), -ETIMEDOUT);
	CHECK_EQ(t.sent_cnt, 3);
	CHECK_EQ((t.sent[1].at_ns - t.sent[0].at_ns) / (10 * NS_PER_MS), 100);
	CHECK_EQ((t.sent[2].at_ns - t.sent[1].at_ns) / (10 * NS_PER_MS), 200);
	teardown();
}

static void listening(uint32_t backlog)
{
	setup();
	t.listener = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.listener, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_listen(t.listener, backlog), 0);
}

TEST(cookie_opens_what_the_syn_asked_for)
{
	struct tcp_options offer = full_options;
	const struct sent *sent;
	struct tcp_info info;

	defaults();
	t.params.half_open_max = 0;
	listening(4);
	offer.has_ts = true;
	offer.ts_val = 50;
	recv_options(S, PEER_ISN, 0, 1000, 0, &offer);
	CHECK_EQ(tcp_counts(t.table)->cookies_sent, 1);
	CHECK_EQ(tcp_pcb_cnt(t.table), 1);
	sent = next_sent();
	CHECK_EQ(sent->flags, S | A);
	offer = (struct tcp_options){ .has_ts = true, .ts_val = 51,
				      .ts_ecr = sent->options.ts_val };
	/* a guess does not do */
	recv_options(A, P, U + (1 << 20), 1000, 0, &offer);
	CHECK_EQ(tcp_counts(t.table)->cookies_bad, 1);
	t.looked_at = t.sent_cnt;
	recv_options(A, P, U, 1000, 0, &offer);
	CHECK_EQ(tcp_counts(t.table)->cookies_accepted, 1);
	t.pcb = tcp_accept(t.listener);
	CHECK(t.pcb != NULL);
	tcp_get_info(t.pcb, &info);
	CHECK(info.has_sack && info.has_window_scale && info.has_timestamps);
	CHECK_EQ(info.snd_scale, 2);
	CHECK_EQ(info.mss, 1460 - 12);
	teardown();
}

TEST(syns_are_limited_by_rate)
{
	defaults();
	t.params.syns_per_sec = 2;
	listening(100);
	for (int i = 0; i < 5; i++) {
		t.key.remote_port++;
		recv_options(S, PEER_ISN, 0, 1000, 0, &full_options);
	}
	CHECK_EQ(tcp_counts(t.table)->syn_dropped, 3);
	CHECK_EQ(t.sent_cnt, 2);
	teardown();
}

TEST(full_accept_queue_drops_syns)
{
	defaults();
	listening(1);
	recv_options(S, PEER_ISN, 0, 1000, 0, &full_options);
	recv_segment(A, P, U, 0);
	t.key.remote_port++;
	recv_options(S, PEER_ISN, 0, 1000, 0, &full_options);
	CHECK_EQ(tcp_counts(t.table)->syn_dropped, 1);
	t.pcb = tcp_accept(t.listener);
	CHECK(t.pcb != NULL);
	recv_options(S, PEER_ISN, 0, 1000, 0, &full_options);
	CHECK_EQ(tcp_counts(t.table)->syn_dropped, 1);
	teardown();
}

TEST(time_wait_gives_way_to_a_later_syn)
{
	connected();
	CHECK_EQ(tcp_shutdown(t.pcb, t.now_ns), 0);
	recv_segment(F | A, P, U + 1, 0);
	CHECK_EQ(tcp_time_wait_cnt(t.table), 1);
	tcp_close(t.pcb, t.now_ns);
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_listen(t.pcb, 1), 0);
	t.listener = t.pcb;
	t.pcb = NULL;
	t.looked_at = t.sent_cnt;
	/* an old one is answered for the old connection */
	recv_segment(S, PEER_ISN, 0, 0);
	CHECK_EQ(next_sent()->flags, A);
	recv_segment(S, P + 100000, 0, 0);
	CHECK_EQ(next_sent()->flags & (S | A), S | A);
	CHECK_EQ(tcp_counts(t.table)->tw_reused, 1);
	teardown();
}

/* ---- ECN, RFC 3168 ---- */

TEST(ecn_echo_lasts_until_cwr)
{
	struct tcp_in in;
	const struct sent *sent;
	struct tcp_info info;

	defaults();
	t.params.with_ecn = true;
	setup();
	t.pcb = tcp_new(t.table);
	CHECK_EQ(tcp_bind(t.pcb, &t.key.local, t.key.local_port), 0);
	CHECK_EQ(tcp_connect(t.pcb, &t.key.remote, t.key.remote_port,
			     &(struct tcp_path){ .mtu = 1500 }, t.now_ns), 0);
	CHECK_EQ(next_sent()->flags, S | WIRE_TCP_ECE | WIRE_TCP_CWR);
	advance_ms(10);
	recv_options(S | A | WIRE_TCP_ECE, PEER_ISN, U, 20000, 0,
		     &full_options);
	tcp_get_info(t.pcb, &info);
	CHECK(info.has_ecn);
	next_sent();
	write_bytes(1000);
	sent = next_sent();
	CHECK_EQ(sent->ecn, 2);
	/* the peer echoes a mark: slow down, and say so */
	recv_segment(A | WIRE_TCP_ECE, P, U + 1000, 0);
	write_bytes(1000);
	CHECK(next_sent()->flags & WIRE_TCP_CWR);
	/* a marked segment is echoed until CWR */
	memset(&in, 0, sizeof(in));
	in.key = t.key;
	in.ecn = 3;
	in.pkt = pkt_alloc(&t.pool);
	*(struct wire_tcp *)(void *)pkt_append(in.pkt, 20) = (struct wire_tcp){
		.src_port = t.key.remote_port,
		.dst_port = t.key.local_port,
		.seq = htobe32(P),
		.ack = htobe32(U + 1000),
		.offset_ae = 0x50,
		.flags = A,
		.window = htobe16(1000),
	};
	pkt_append(in.pkt, 100);
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	tcp_input(t.table, &in, t.now_ns);
	CHECK(next_sent()->flags & WIRE_TCP_ECE);
	recv_segment(A, P + 100, U + 1000, 1460);
	recv_segment(A, P + 1560, U + 1000, 1460);
	CHECK(next_sent()->flags & WIRE_TCP_ECE);
	recv_segment(A | WIRE_TCP_CWR, P + 3020, U + 1000, 1460);
	recv_segment(A, P + 4480, U + 1000, 1460);
	CHECK(!(next_sent()->flags & WIRE_TCP_ECE));
	teardown();
}
