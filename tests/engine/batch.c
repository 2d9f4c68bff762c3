/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine does with many packets at once: batches of a poll, segments in
 * several buffers, segments for a device that splits. */
#include "tests/engine/peer.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "tests/support/test.h"

static void connected_with_ts(void)
{
	struct tcp_options offered = peer_full_options;

	offered.has_ts = true;
	offered.ts_val = 700;
	peer_defaults();
	peer_connect(&offered);
}

/* ---- batches ---- */

TEST(neighbours_are_taken_as_one)
{
	struct tcp_in in[3];

	connected_with_ts();
	peer_send(A, P, U, 300); /* the largest the peer sends */
	for (uint32_t i = 0; i < 3; i++)
		in[i] = peer_make(A, P + 300 * (i + 1), U, 300);
	tcp_input_batch(peer.table, in, 3, peer.now_ns);
	/* not the first, whose window is news */
	CHECK_EQ(tcp_counts(peer.table)->fast_path_data, 3);
	CHECK_EQ(peer_next()->ack, P + 1200);
	peer_expect_silence();
	CHECK_EQ(peer_take_all(), 1200);
	peer_teardown();
}

/* Full segments in a row, read at once: an acknowledgment for two of them, and one for a
 * batch, however many it has. */
TEST(bulk_is_acknowledged_by_twos_and_by_batches)
{
	struct tcp_in in[8];
	uint32_t seq = P;

	connected_with_ts();
	for (int i = 0; i < 4; i++, seq += 300)
		peer_send(A, seq, U, 300);
	CHECK_EQ(peer_take_all(), 1200);
	peer.looked_at = peer.sent_cnt;
	for (int i = 0; i < 100; i++, seq += 300) {
		peer_send(A, seq, U, 300);
		CHECK_EQ(peer_take_all(), 300);
	}
	CHECK_EQ(peer.sent_cnt - peer.looked_at, 50);
	peer.looked_at = peer.sent_cnt;
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 8; j++, seq += 300)
			in[j] = peer_make(A, seq, U, 300);
		tcp_input_batch(peer.table, in, 8, peer.now_ns);
		CHECK_EQ(peer_take_all(), 2400);
	}
	CHECK_EQ(peer.sent_cnt - peer.looked_at, 20);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* Two times four in a row, with a damaged one between them: how many acknowledgments. */
static unsigned acks_for_two_runs(uint32_t merges_max)
{
	struct tcp_in in[9];
	unsigned before, cnt;
	uint32_t seq = P;

	peer_defaults();
	peer.params.merges_max = merges_max;
	peer_connect(&peer_full_options);
	for (int i = 0; i < 4; i++, seq += 300)
		peer_send(A, seq, U, 300);
	CHECK_EQ(peer_take_all(), 1200);
	for (int i = 0; i < 9; i++) {
		in[i] = peer_make(A, seq, U, 300);
		if (i == 4) {
			in[i].pkt->csum_verdict = PKT_CSUM_UNKNOWN;
			in[i].pkt->data[in[i].pkt->len - 1] ^= 1;
		} else {
			seq += 300;
		}
	}
	before = peer.sent_cnt;
	tcp_input_batch(peer.table, in, 9, peer.now_ns);
	cnt = peer.sent_cnt - before;
	CHECK_EQ(peer_take_all(), 2400);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
	return cnt;
}

TEST(neighbours_are_taken_as_one_so_many_times)
{
	CHECK_EQ(acks_for_two_runs(2), 2);
	CHECK_EQ(acks_for_two_runs(1), 3);
	CHECK_EQ(acks_for_two_runs(0), 4);
}

TEST(acknowledgments_of_a_batch_count_as_the_last)
{
	struct tcp_pcb_info info;
	struct tcp_in in[3];

	connected_with_ts();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	for (int i = 0; i < 3; i++) {
		peer_write(100);
		CHECK_EQ(peer_next()->len, 100);
	}
	for (uint32_t i = 0; i < 3; i++)
		in[i] = peer_make(A, P, U + 100 * (i + 1), 0);
	tcp_input_batch(peer.table, in, 3, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_una, U + 300);
	CHECK_EQ(info.snd_wnd, 4000);
	CHECK_EQ(info.snd_queued, 0);
	peer_expect_silence();
	peer_teardown();
}

/* What is acknowledged on the quick path reaches a model of the path, too. */
TEST(acknowledgments_of_a_batch_are_told_to_a_model)
{
	struct tcp_pcb_stats stats;
	struct tcp_in ack;

	peer_defaults();
	peer.params.cc = TCP_CC_BBR;
	peer_connect(&peer_full_options);
	for (uint32_t i = 1; i <= 3; i++) {
		peer_write(100);
		CHECK_EQ(peer_next()->len, 100);
		peer_advance_ms(20);
		ack = peer_make(A, P, U + 100 * i, 0);
		tcp_input_batch(peer.table, &ack, 1, peer.now_ns);
		tcp_get_stats(peer.pcb, &stats, peer.now_ns);
		CHECK_EQ(stats.delivery_rate, 100 * 50);
	}
	peer_teardown();
}

/* A gap, a reset at the wrong place and an old time stamp in the middle of a batch
 * meet their own rules; what is around them is taken. */
TEST(odd_ones_in_a_batch_meet_their_rules)
{
	struct tcp_pcb_info info;
	struct tcp_in in[5];

	connected_with_ts();
	in[0] = peer_make(A, P, U, 10);
	in[1] = peer_make(R, P + 50, U, 0);
	in[2] = peer_make(A, P + 20, U, 10);
	in[3] = peer_make(A, P + 10, U, 10);
	peer.ts -= 5000;
	in[4] = peer_make(A, P + 30, U, 10);
	tcp_input_batch(peer.table, in, 5, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + 30);
	CHECK_EQ(info.ooo_bytes, 0);
	CHECK_EQ(tcp_counts(peer.table)->challenge_acks, 1);
	CHECK_EQ(tcp_counts(peer.table)->paws_drops, 1);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	CHECK_EQ(peer_take_all(), 30);
	peer_teardown();
}

TEST(batch_of_two_connections_reaches_both)
{
	struct flow_key other_key;
	struct tcp_pcb *other;
	struct tcp_in in[4];

	connected_with_ts();
	other = peer.pcb;
	other_key = peer.key;
	peer.key.local_port = htobe16(1001);
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	CHECK_EQ(peer_next()->flags & (S | A), S);
	peer_send(S | A, PEER_ISN, U, 0);
	/* both expect the same numbers next from the peer */
	for (uint32_t i = 0; i < 4; i++) {
		in[i] = peer_make(A, P + 10 * (i / 2), U, 10);
		if (i & 1)
			in[i].key = other_key;
		memcpy(in[i].pkt->data + 2, &in[i].key.local_port, 2);
	}
	tcp_input_batch(peer.table, in, 4, peer.now_ns);
	CHECK_EQ(peer_take_all(), 20);
	tcp_abort(peer.pcb, peer.now_ns);
	peer.pcb = other;
	/* an acknowledgment of the other's numbers is not one of ours */
	CHECK(tcp_counts(peer.table)->in_segments >= 6);
	peer_teardown();
}

/* What was read in between widens the window of the next segment, which is built
 * from the header of the last. */
/* It continues the numbers of the one before, but not its connection. */
static void check_stranger(uint16_t port, uint8_t host)
{
	struct tcp_pcb_info info;
	struct tcp_in in[2];
	struct wire_tcp *header;

	connected_with_ts();
	/* whose window is news */
	peer_send(A, P, U, 100);
	in[0] = peer_make(A, P + 100, U, 100);
	in[1] = peer_make(A, P + 200, U, 100);
	header = (void *)in[1].pkt->data;
	header->src_port = htobe16(port);
	in[1].key.remote.byte[15] = host;
	tcp_input_batch(peer.table, in, 2, peer.now_ns);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + 200);
	CHECK_EQ(tcp_counts(peer.table)->no_connection, 1);
	peer_teardown();
}

TEST(stranger_in_a_batch_stays_one)
{
	check_stranger(2001, 2);
	check_stranger(2000, 3);
}

TEST(window_rides_on_data)
{
	uint16_t window;

	connected_with_ts();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	for (uint32_t i = 0; i < 4; i++)
		peer_send(A, P + 1000 * i, U, 1000);
	while (peer.looked_at != peer.sent_cnt)
		peer_next();
	peer_write(10);
	window = peer_next()->window;
	peer_write(10);
	CHECK_EQ(peer_next()->window, window);
	CHECK_EQ(peer_take_all(), 4000);
	tcp_recved(peer.pcb, 4000, peer.now_ns);
	peer_expect_silence();
	peer_write(10);
	CHECK(peer_next()->window > window);
	peer_teardown();
}

/* ---- several buffers ---- */

/* Cuts what a segment carries into parts of `size` bytes, the header excepted. */
static void split(struct tcp_in *in, uint32_t size)
{
	uint32_t header_len = 4u * (in->pkt->data[12] >> 4);
	uint8_t *from = in->pkt->data + header_len;
	uint32_t left = in->pkt->len - header_len;
	struct pkt *last = in->pkt;

	pkt_trim(in->pkt, header_len);
	while (left) {
		uint32_t len = MIN(size, left);
		struct pkt *part = pkt_alloc(&peer.pool);

		memcpy(pkt_append(part, len), from, len);
		from += len;
		left -= len;
		last->next_part = part;
		last = part;
	}
}

static struct tcp_in make_split(uint8_t flags, uint32_t seq, uint32_t len)
{
	struct tcp_in in = peer_make(flags, seq, U, len);

	split(&in, 7);
	return in;
}

static void send_split(uint8_t flags, uint32_t seq, uint32_t len)
{
	struct tcp_in in = make_split(flags, seq, len);

	tcp_input(peer.table, &in, peer.now_ns);
}

TEST(parts_in_order_are_read_in_order)
{
	struct tcp_pcb_info info;

	peer_connected();
	send_split(A, P, 100);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + 100);
	CHECK_EQ(peer_take_all(), 100);
	peer_teardown();
}

static void send_at(uint32_t seq, uint32_t len, bool in_parts, uint64_t time_ns)
{
	struct tcp_in in = in_parts ? make_split(A, seq, len) :
				      peer_make(A, seq, U, len);

	in.pkt->time_ns = time_ns;
	in.pkt->card_ns = time_ns + 1000;
	in.pkt->flags |= PKT_CARD_STAMPED;
	tcp_input(peer.table, &in, peer.now_ns);
}

/* Reads everything; what the last packet says, and how many there are. */
static uint64_t time_of_last(unsigned *cnt_out)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(peer.pcb, UINT32_MAX, &pkts);
	uint64_t time_ns = 0;
	struct pkt *pkt;

	*cnt_out = 0;
	LIST_FOR_EACH(pkt, &pkts, link) {
		time_ns = pkt->time_ns;
		CHECK_EQ(pkt_card_ns(pkt), time_ns + 1000);
		++*cnt_out;
	}
	pkt_put_list(&pkts);
	tcp_recved(peer.pcb, len, peer.now_ns);
	peer.looked_at = peer.sent_cnt;
	return time_ns;
}

TEST(bytes_keep_the_time_when_they_came)
{
	enum { CNT = 50 };
	uint32_t seq = P;
	unsigned cnt;

	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = 20000;
	peer_connect(&peer_full_options);
	send_at(seq, 100, true, 5);
	CHECK_EQ(time_of_last(&cnt), 5);
	CHECK(cnt > 1);
	seq += 100;
	/* behind a hole */
	send_at(seq + 100, 100, true, 6);
	send_at(seq, 100, false, 7);
	CHECK_EQ(time_of_last(&cnt), 6);
	seq += 200;
	/* most of it is known: its first parts go */
	send_at(seq - 80, 100, true, 8);
	CHECK_EQ(time_of_last(&cnt), 8);
	seq += 20;
	/* so small that they are copied together */
	for (int i = 0; i < CNT; i++, seq += 10)
		send_at(seq, 10, false, 100 + (uint64_t)i);
	CHECK_EQ(time_of_last(&cnt), 100 + CNT - 1);
	CHECK(cnt < CNT);
	peer_teardown();
}

TEST(parts_are_cut_at_both_ends)
{
	struct tcp_pcb_info info;

	peer_connected();
	/* a run, then what overlaps it in front, behind, and is inside */
	send_split(A, P + 50, 50);
	send_split(A, P + 90, 40);
	send_split(A, P + 30, 45);
	send_split(A, P + 60, 20);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.ooo_bytes, 100);
	send_split(A, P, 40);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + 130);
	CHECK_EQ(info.ooo_bytes, 0);
	CHECK_EQ(info.ooo_memory, 0);
	/* known in front, new behind */
	send_split(A | F, P + 100, 60);
	CHECK_EQ(peer_take_all(), 160);
	CHECK(tcp_at_end(peer.pcb));
	peer_teardown();
}

/* All of a window but its first segment, in segments of `len` bytes: none of
 * them may be dropped for the memory they lie in. */
static void fill_behind_a_hole(uint32_t window, uint32_t len, bool in_parts)
{
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = window;
	peer_connect(&peer_full_options);
	for (uint32_t at = len; at < window; at += len) {
		if (in_parts)
			send_split(A, P + at, len);
		else
			peer_send(A, P + at, U, len);
		peer.looked_at = peer.sent_cnt;
	}
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(tcp_counts(peer.table)->ooo_pruned, 0);
	CHECK_EQ(info.ooo_bytes, window - len);
	CHECK(info.ooo_memory <= 2 * window);
	peer_send(A, P, U, len);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + window);
	CHECK_EQ(peer_take_all(), window);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(thin_buffers_leave_the_window_whole)
{
	fill_behind_a_hole(14000, 1400, true);
}

TEST(small_segments_leave_the_window_whole)
{
	fill_behind_a_hole(53600, 536, false);
}

TEST(parts_beyond_the_window_are_cut)
{
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.rcv_buf = peer.params.rcv_buf_max = 2000;
	peer_connect(&peer_full_options);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_edge, P + 2000);
	send_split(A, P, 1450);
	send_split(A | F, P + 1450, 600);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_nxt, P + 2000);
	CHECK_EQ(peer_take_all(), 2000);
	CHECK(!tcp_at_end(peer.pcb));
	peer_teardown();
}

TEST(checksum_goes_over_parts_of_odd_length)
{
	struct tcp_in in;
	uint32_t sum;

	peer_connected();
	in = peer_make(A, P, U, 100);
	in.pkt->csum_verdict = PKT_CSUM_UNKNOWN;
	for (uint32_t i = 0; i < 100; i++)
		in.pkt->data[20 + i] = (uint8_t)(i * 37);
	sum = wire_pseudo_sum(&peer.key.remote, &peer.key.local, WIRE_PROTO_TCP,
			      in.pkt->len);
	((struct wire_tcp *)(void *)in.pkt->data)->check =
		csum_fold(csum_partial(in.pkt->data, in.pkt->len, sum));
	split(&in, 7);
	tcp_input(peer.table, &in, peer.now_ns);
	CHECK_EQ(tcp_counts(peer.table)->bad_checksum, 0);
	CHECK_EQ(peer_take_all(), 100);

	in = make_split(A, P + 100, 50);
	in.pkt->csum_verdict = PKT_CSUM_UNKNOWN;
	tcp_input(peer.table, &in, peer.now_ns);
	CHECK_EQ(tcp_counts(peer.table)->bad_checksum, 1);
	CHECK_EQ(peer_take_all(), 0);
	peer_teardown();
}

/* ---- segmentation offload ---- */

TEST(device_that_splits_gets_large_segments)
{
	struct tcp_options none = { 0 };
	const struct peer_sent *sent;

	peer_defaults();
	peer.path.segment_max = 5000;
	peer_connect(&peer_full_options);
	peer_write(1460);
	CHECK_EQ(peer_next()->segment_size, 0);
	peer_send_options(A, P, U + 1460, 0, 0, &none);
	for (int i = 0; i < 4; i++)
		peer_write(1460);
	peer_write(700);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_expect_silence();
	peer_send_options(A, P, U + 1460, 20000, 0, &none);
	sent = peer_next();
	CHECK_EQ(sent->len, 3 * 1460);
	CHECK_EQ(sent->segment_size, 1460);
	CHECK_EQ(sent->data_cnt, 3);
	/* a full one and the rest */
	sent = peer_next();
	CHECK_EQ(sent->len, 1460 + 700);
	CHECK_EQ(sent->segment_size, 1460);
	CHECK_EQ(sent->flags, A | WIRE_TCP_PSH);
	peer_expect_silence();
	/* each of them is one by itself when it has to be sent again */
	peer_advance_ms(1000);
	CHECK_EQ(peer_next()->len, 700);
	CHECK_EQ(peer_next()->len, 1460);
	peer_teardown();
}
