/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that stand still, and what is told of them to whoever takes them over. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/engine/peer.h"
#include "tests/support/test.h"

static struct tcp_repair repair(void)
{
	struct tcp_repair r;

	CHECK_EQ(tcp_get_repair(peer.pcb, &r, peer.now_ns), 0);
	/* what the kernel would refuse: EINVAL */
	CHECK(r.snd_wnd_max >= r.snd_wnd);
	CHECK((int32_t)(r.snd_wl1 - (r.rcv_nxt + r.rcv_wnd)) <= 0);
	CHECK((int32_t)(r.rcv_wup - r.rcv_nxt) <= 0);
	CHECK_EQ(r.ts_next & 1, 0);
	return r;
}

static void freeze(void)
{
	/* what has left just now need not leave again */
	peer_advance_ms(1);
	CHECK_EQ(tcp_freeze(peer.pcb, peer.now_ns, peer.now_ns), 0);
}

TEST(what_is_under_way_leaves_once_more)
{
	peer_connected();
	peer_send_options(A, P, U, 5000, 100, &(struct tcp_options){ 0 });
	peer_expect_silence();
	peer_write(1000);
	CHECK_EQ(peer_next()->ack, P + 100);
	peer_write(500);
	peer_send_options(A, P + 100, U, 5000, 100, &(struct tcp_options){ 0 });
	peer_expect_silence();
	freeze();
	/* the ACK that waited, and all that was sent; not what Nagle holds */
	CHECK_EQ(peer_next()->ack, P + 200);
	CHECK_EQ(peer_next()->len, 1000);
	peer_expect_silence();
	CHECK_EQ(tcp_freeze(peer.pcb, peer.now_ns, peer.now_ns), -EALREADY);
	peer_teardown();
}

/* An acknowledgment makes room in the window and lets Nagle go on, and nothing is sent for
 * it: who takes over sends all of it. */
TEST(before_it_stands_still)
{
	peer_connected();
	peer_write(1000);
	CHECK_EQ(peer_next()->len, 1000);
	peer_write(500);
	peer_expect_silence();
	tcp_calm(peer.pcb);
	peer_send(A, P, U + 1000, 0);
	peer_write(1000);
	peer_expect_silence();
	peer_send(A, P, U + 1000, 100);
	peer_send(A, P + 100, U + 1000, 900);
	peer_send(A, P + 1000, U + 1000, 900);
	CHECK_EQ(peer_next()->ack, P + 1900);
	peer_expect_silence();
	freeze();
	peer_expect_silence();
	CHECK_EQ(repair().unacked, 0);
	CHECK_EQ(repair().unsent, 1500);
	CHECK_EQ(repair().unread, 1900);
	tcp_thaw(peer.pcb, peer.now_ns);
	CHECK_EQ(peer_next()->seq, U + 1000);
	peer_teardown();
}

/* It does not become quick again by what it takes. */
TEST(calm_connection_stays_calm)
{
	peer_connected();
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	for (int i = 0; i < 3; i++) {
		peer_write(900);
		peer_next();
	}
	tcp_calm(peer.pcb);
	peer_write(600);
	for (uint32_t i = 1; i <= 3; i++) {
		peer_send(A, P, U + i * 900, 0);
		peer_expect_silence();
	}
	tcp_thaw(peer.pcb, peer.now_ns);
	CHECK_EQ(peer_next()->len, 600);
	peer_teardown();
}

/* The last segment alone; what was sent since then does not leave again. */
TEST(asks_before_it_stands_still)
{
	uint64_t since_ns;

	peer_connected();
	CHECK(!tcp_ask(peer.pcb, peer.now_ns));
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_write(900);
	peer_write(800);
	peer_write(700);
	for (int i = 0; i < 3; i++)
		peer_next();
	peer_advance_ms(1);
	tcp_calm(peer.pcb);
	since_ns = peer.now_ns;
	CHECK(tcp_ask(peer.pcb, peer.now_ns));
	CHECK_EQ(peer_next()->len, 700);
	peer_expect_silence();
	peer_send(A, P, U + 900, 0);
	peer_advance_ms(1);
	CHECK_EQ(tcp_freeze(peer.pcb, since_ns, peer.now_ns), 0);
	CHECK_EQ(peer_next()->len, 800);
	peer_expect_silence();
	tcp_thaw(peer.pcb, peer.now_ns);
	peer_send(A, P, U + 2400, 0);
	CHECK(!tcp_ask(peer.pcb, peer.now_ns));
	peer_teardown();
}

TEST(frozen_connection_does_nothing)
{
	struct tcp_pcb_info info;
	struct tcp_repair before, after;

	peer_connected();
	CHECK_EQ(tcp_set_keepalive(peer.pcb, true, NS_PER_SEC, NS_PER_SEC, 3,
				   peer.now_ns), 0);
	peer_write(1000);
	peer_next();
	peer_write(10);
	freeze();
	CHECK_EQ(peer_next()->len, 1000);
	before = repair();
	tcp_get_info(peer.pcb, &info);
	CHECK(!info.has_timer);
	peer_send(A, P, U + 1000, 100);
	peer_send(R, P, 0, 0);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	peer_advance_ms(100 * 1000);
	peer_expect_silence();
	after = repair();
	CHECK_EQ(after.snd_una, before.snd_una);
	CHECK_EQ(after.rcv_nxt, before.rcv_nxt);
	tcp_get_info(peer.pcb, &info);
	CHECK(!info.has_timer);
	CHECK_EQ(tcp_counts(peer.table)->frozen_drops, 2);
	/* and goes on: what is lost is repaired, what waited leaves */
	tcp_thaw(peer.pcb, peer.now_ns);
	peer_advance_ms(1000);
	CHECK(peer_next()->flags & A);
	peer_send(A, P, U + 1000, 100);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_una, U + 1000);
	CHECK_EQ(info.rcv_nxt, P + 100);
	peer_teardown();
}

TEST(repair_names_bytes_and_windows)
{
	struct tcp_options full = peer_full_options;
	struct tcp_repair r;
	struct pkt *pkt = NULL;
	uint32_t len = 0;

	peer_defaults();
	full.has_ts = true;
	full.ts_val = 900;
	peer_connect(&full);
	peer_send(A, P, U, 100);
	peer_write(1400);
	peer_write(10);
	r = repair();
	CHECK_EQ(r.snd_una, U);
	CHECK_EQ(r.unacked, 1400);
	CHECK_EQ(r.unsent, 10);
	CHECK_EQ(r.fin, TCP_FIN_NONE);
	CHECK_EQ(r.rcv_nxt, P + 100);
	CHECK_EQ(r.unread, 100);
	CHECK_EQ(r.mss_peer, 1460);
	CHECK(r.has_scale && r.has_sack && r.has_timestamps && !r.has_ecn);
	CHECK_EQ(r.snd_scale, 2);
	CHECK_EQ(r.ts_recent, 900);
	CHECK_EQ(r.snd_wnd, 4000);
	CHECK_EQ(r.snd_wnd_max, 20000);
	CHECK_EQ(r.snd_wl1, P);
	CHECK_EQ(r.rcv_wup, P + 100);
	CHECK_EQ(r.rcv_wup + r.rcv_wnd, P + peer.params.rcv_buf);
	while ((pkt = tcp_queued_next(peer.pcb, pkt)))
		len += pkt->len;
	CHECK_EQ(len, r.unacked + r.unsent);
	peer_teardown();
}

/* Neither FIN has a byte in the queues. */
TEST(repair_counts_no_fin)
{
	struct tcp_repair r;

	peer_connected();
	peer_send(A | F, P, U, 10);
	peer_next();
	r = repair();
	CHECK_EQ(r.rcv_nxt, P + 10);
	CHECK_EQ(r.unread, 10);
	CHECK(r.has_fin);
	peer_write(100);
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	r = repair();
	CHECK_EQ(r.fin, TCP_FIN_SENT);
	CHECK_EQ(r.unacked, 100);
	CHECK_EQ(r.unsent, 0);
	peer_send(A, P + 11, U + 100, 0);
	r = repair();
	CHECK_EQ(r.snd_una, U + 100);
	CHECK_EQ(r.unacked, 0);
	CHECK_EQ(r.fin, TCP_FIN_SENT);
	peer_teardown();
}

TEST(repair_knows_a_fin_that_waits_and_one_that_arrived)
{
	struct tcp_repair r;

	peer_connected();
	peer_send_options(A, P, U, 0, 0, &(struct tcp_options){ 0 });
	peer_write(100);
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	r = repair();
	CHECK_EQ(r.fin, TCP_FIN_QUEUED);
	CHECK_EQ(r.unacked, 0);
	CHECK_EQ(r.unsent, 100);
	peer_send(A, P, U, 0);
	peer_send(A, P, U + 101, 0);
	r = repair();
	CHECK_EQ(r.fin, TCP_FIN_ACKED);
	CHECK_EQ(r.snd_una, U + 100);
	CHECK_EQ(r.unacked + r.unsent, 0);
	peer_teardown();
}

/* Runs and a FIN are received by the kernel as the peer's segments. */
TEST(runs_are_told_with_a_header_of_the_peer)
{
	struct tcp_options full = peer_full_options, o;
	uint8_t bytes[TCP_HEADER_MAX];
	struct wire_tcp *header = (void *)bytes;
	struct pkt *run;
	bool has_fin;
	uint32_t seq;
	size_t len;

	peer_defaults();
	full.has_ts = true;
	full.ts_val = 900;
	peer_connect(&full);
	peer_send(A, P + 100, U, 50);
	peer_send(A | F, P + 200, U, 10);
	run = tcp_run_next(peer.pcb, NULL, &seq, &has_fin);
	CHECK(run != NULL);
	CHECK_EQ(seq, P + 100);
	CHECK_EQ(pkt_total_len(run), 50);
	CHECK(!has_fin);
	run = tcp_run_next(peer.pcb, run, &seq, &has_fin);
	CHECK(run != NULL);
	CHECK_EQ(seq, P + 200);
	CHECK(has_fin);
	CHECK(tcp_run_next(peer.pcb, run, &seq, &has_fin) == NULL);
	len = tcp_build_of_peer(peer.pcb, bytes, P + 200, true, peer.now_ns);
	CHECK_EQ(len, 32);
	CHECK_EQ(header->src_port, peer.key.remote_port);
	CHECK_EQ(header->dst_port, peer.key.local_port);
	CHECK_EQ(be32toh(header->seq), P + 200);
	CHECK_EQ(be32toh(header->ack), U);
	CHECK_EQ(header->flags, A | F);
	CHECK_EQ(be16toh(header->window), 1000);
	tcp_options_parse(bytes + 20, len - 20, false, &o);
	CHECK(o.has_ts);
	CHECK_EQ(o.ts_val, 900);
	peer_teardown();
}

/* In segments as long as they can be; taken at once. */
static void receive(uint64_t len, uint32_t *seq)
{
	enum { SEGMENT = 30 * 2000, PART = 2000 };

	for (uint64_t at = 0; at < len; at += SEGMENT) {
		struct tcp_in in = peer_make(A, *seq, U, 0);
		struct pkt *last = in.pkt;

		for (int i = 0; i < SEGMENT / PART; i++) {
			last->next_part = pkt_alloc(&peer.pool);
			last = last->next_part;
			CHECK(last != NULL);
			(void)pkt_append(last, PART);
		}
		*seq += SEGMENT;
		tcp_input(peer.table, &in, peer.now_ns);
		CHECK_EQ(peer_take_all(), SEGMENT);
		tcp_recved(peer.pcb, SEGMENT, peer.now_ns);
		peer.looked_at = peer.sent_cnt;
		/* 60 MB in a second */
		peer_advance_ms(1);
	}
}

/* Then the kernel has to know the peer's time stamp from the first segment on. */
TEST(repair_knows_that_numbers_may_come_again)
{
	struct tcp_options full = peer_full_options;
	uint32_t seq = P;

	full.has_ts = true;
	full.ts_val = 900;
	peer_defaults();
	peer.ts = 900;
	peer_connect(&full);
	receive(1000, &seq);
	CHECK(!repair().needs_paws);
	receive((UINT32_C(1) << 31) - 3000000, &seq);
	CHECK(!repair().needs_paws);
	receive(3000000, &seq);
	CHECK(repair().needs_paws);
	/* also later */
	receive((UINT32_C(1) << 31) + 3000000, &seq);
	CHECK(repair().needs_paws);
	peer_teardown();
}

/* -- what came while it stood still ---------------------------------------------------- */

/* Segments that wait, and what is left of them for the kernel. */
static struct list waiting = LIST_INIT(waiting);

static struct pkt *wait_options(uint8_t flags, uint32_t seq, uint32_t ack,
				uint16_t window, uint32_t len,
				const struct tcp_options *options)
{
	struct tcp_in in = peer_make_options(flags, seq, ack, window, len, options);

	list_push_back(&waiting, &in.pkt->link);
	return in.pkt;
}

static struct pkt *wait(uint32_t ack, uint16_t window)
{
	return wait_options(A, P, ack, window, 0, &(struct tcp_options){ 0 });
}

static struct pkt *wait_sack(uint32_t ack, uint32_t start, uint32_t end)
{
	return wait_options(A, P, ack, 1000, 0,
			    &(struct tcp_options){
				    .sack_cnt = 1,
				    .sack = { { start, end } },
			    });
}

static struct pkt *wait_stamped(uint32_t ack, uint32_t ts_val)
{
	return wait_options(A, P, ack, 1000, 0,
			    &(struct tcp_options){ .has_ts = true,
						   .ts_val = ts_val });
}

/* These are left, in this order; NULL ends them. */
static void expect_left(struct pkt *first, struct pkt *second)
{
	struct pkt *expected[] = { first, second, NULL };
	unsigned cnt = 0;
	struct pkt *pkt;

	tcp_drop_superseded(peer.pcb, &waiting);
	LIST_FOR_EACH(pkt, &waiting, link) {
		CHECK(cnt < 2);
		CHECK(pkt == expected[cnt]);
		cnt++;
	}
	CHECK(!expected[cnt]);
	pkt_put_list(&waiting);
}

/* 3000 bytes are under way. */
static void stand_still_with(const struct tcp_options *offered)
{
	peer_connect(offered);
	peer_send_options(A, P, U, 1000, 0,
			  &(struct tcp_options){ .has_ts = offered->has_ts,
						 .ts_val = offered->ts_val });
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	for (int i = 0; i < 3; i++)
		peer_write(1000);
	freeze();
}

static void stand_still(void)
{
	peer_defaults();
	stand_still_with(&peer_full_options);
}

TEST(of_acknowledgments_the_kernel_gets_the_last)
{
	struct pkt *last, *other;

	stand_still();
	wait(U + 1000, 1000);
	wait(U + 1000, 1000);
	wait(U + 2000, 900);
	last = wait(U + 3000, 700);
	expect_left(last, NULL);
	/* one that was overtaken is not the last one */
	last = wait(U + 2000, 500);
	other = wait(U + 1000, 1000);
	expect_left(last, other);
	peer_teardown();
}

TEST(whatever_else_a_segment_says_the_kernel_gets)
{
	static const uint8_t flags[] = { A | F, A | R, R, A | S, A | WIRE_TCP_URG,
					 A | WIRE_TCP_PSH, A | WIRE_TCP_ECE,
					 A | WIRE_TCP_CWR };
	const struct tcp_options none = { 0 };
	struct pkt *last, *other;

	stand_still();
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		other = wait_options(flags[i], P, U + 1000, 1000, 0, &none);
		last = wait(U + 2000, 1000);
		expect_left(other, last);
		/* nor does it stand for one before */
		other = wait(U + 1000, 1000);
		last = wait_options(flags[i], P, U + 2000, 1000, 0, &none);
		expect_left(other, last);
	}
	other = wait_options(A, P, U + 1000, 1000, 10, &none);
	last = wait(U + 2000, 1000);
	expect_left(other, last);
	/* the third bit of Accurate ECN */
	other = wait(U + 1000, 1000);
	((struct wire_tcp *)(void *)other->data)->offset_ae |= 1;
	last = wait(U + 2000, 1000);
	expect_left(other, last);
	/* a probe wants an answer */
	other = wait_options(A, P - 1, U + 1000, 1000, 0, &none);
	last = wait(U + 2000, 1000);
	expect_left(other, last);
	peer_teardown();
}

TEST(an_acknowledgment_that_does_not_count_stands_for_none)
{
	struct pkt *last, *other;

	stand_still();
	/* of what was not sent */
	other = wait(U + 1000, 1000);
	last = wait(U + 3001, 1000);
	expect_left(other, last);
	other = wait(U + 1000, 1000);
	last = wait(U - 1, 1000);
	expect_left(other, last);
	/* damaged */
	other = wait(U + 1000, 1000);
	last = wait(U + 2000, 1000);
	last->csum_verdict = PKT_CSUM_UNKNOWN;
	expect_left(other, last);
	/* cut off, or with a header that lies */
	other = wait(U + 1000, 1000);
	last = wait(U + 2000, 1000);
	last->len = 19;
	expect_left(other, last);
	other = wait(U + 1000, 1000);
	last = wait(U + 2000, 1000);
	last->data[12] = 4 << 4;
	expect_left(other, last);
	peer_teardown();
}

TEST(a_window_that_shrinks_is_told_as_it_was)
{
	struct pkt *last, *other;

	stand_still();
	other = wait(U + 1000, 1000);
	/* the scale is 2 */
	last = wait(U + 2000, 749);
	expect_left(other, last);
	wait(U + 1000, 1000);
	last = wait(U + 2000, 750);
	expect_left(last, NULL);
	wait(U, 0);
	last = wait(U, 1000);
	expect_left(last, NULL);
	peer_teardown();
}

/* Bytes that the peer has are sent again only if it has not said so. */
TEST(no_block_of_sack_is_kept_from_the_kernel)
{
	struct pkt *last, *other;

	stand_still();
	wait_sack(U, U + 1000, U + 2000);
	last = wait_sack(U, U + 1000, U + 3000);
	expect_left(last, NULL);
	other = wait_sack(U, U + 1000, U + 2000);
	last = wait_sack(U, U + 2000, U + 3000);
	expect_left(other, last);
	other = wait_sack(U, U + 1000, U + 2000);
	last = wait(U + 1999, 1000);
	expect_left(other, last);
	/* it has arrived, or came twice */
	wait_sack(U, U + 1000, U + 2000);
	last = wait(U + 2000, 1000);
	expect_left(last, NULL);
	wait_sack(U + 2000, U, U + 1000);
	last = wait_sack(U + 2000, U + 1000, U + 2000);
	expect_left(last, NULL);
	peer_teardown();
}

/* Without SACK three of them are a loss. */
TEST(duplicates_are_counted_where_there_is_no_sack)
{
	struct tcp_options plain = peer_full_options;
	struct pkt *last, *other;

	plain.has_sack_ok = false;
	peer_defaults();
	stand_still_with(&plain);
	other = wait(U + 1000, 1000);
	last = wait(U + 1000, 1000);
	expect_left(other, last);
	wait(U + 1000, 1000);
	wait(U + 1000, 1000);
	last = wait(U + 2000, 1000);
	expect_left(last, NULL);
	wait(U + 1000, 1000);
	last = wait(U + 1000, 1001);
	expect_left(last, NULL);
	peer_teardown();
}

/* The kernel would not take it (PAWS). */
TEST(a_time_stamp_that_goes_back_is_not_the_last)
{
	struct tcp_options full = peer_full_options;
	struct pkt *last, *other;

	full.has_ts = true;
	full.ts_val = 900;
	peer_defaults();
	stand_still_with(&full);
	wait_stamped(U + 1000, 900);
	last = wait_stamped(U + 2000, 900);
	expect_left(last, NULL);
	other = wait_stamped(U + 1000, 901);
	last = wait_stamped(U + 2000, 900);
	expect_left(other, last);
	other = wait_stamped(U + 1000, UINT32_MAX);
	last = wait(U + 2000, 1000);
	expect_left(other, last);
	other = wait(U + 1000, 1000);
	last = wait_stamped(U + 2000, 900);
	expect_left(other, last);
	peer_teardown();
}

/* The kernel sends our FIN after it has heard what came. */
TEST(the_acknowledgment_of_a_fin_stands_for_none)
{
	struct pkt *last, *other;

	peer_connected();
	peer_write(1000);
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	freeze();
	other = wait(U + 1000, 1000);
	last = wait(U + 1001, 1000);
	expect_left(other, last);
	peer_teardown();
}

static void *export(size_t *size_out)
{
	void *bytes;

	*size_out = tcp_export_size(peer.pcb);
	CHECK(*size_out > 0);
	bytes = malloc(*size_out);
	CHECK(bytes != NULL);
	CHECK_EQ(tcp_export(peer.pcb, bytes, *size_out, peer.now_ns), 0);
	return bytes;
}

/* What a program has closed still has to be delivered when the program ends. */
TEST(what_nobody_owns_can_be_moved)
{
	struct tcp_pcb *orphan;
	struct tcp_repair r;
	size_t size;
	void *bytes;

	peer_connected();
	orphan = peer.pcb;
	peer_send_options(A, P, U, 0, 0, &(struct tcp_options){ 0 });
	peer_write(100);
	CHECK(!tcp_is_orphan(orphan));
	tcp_close(orphan, peer.now_ns);
	CHECK(tcp_pcb_next(peer.table, NULL) == orphan);
	CHECK(tcp_is_orphan(orphan));
	freeze();
	r = repair();
	CHECK_EQ(r.unsent, 100);
	CHECK_EQ(r.fin, TCP_FIN_QUEUED);
	bytes = export(&size);
	tcp_drop(orphan);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	free(bytes);
	CHECK(!tcp_is_orphan(peer.pcb));
	peer_send(A, P, U, 0);
	CHECK_EQ(peer_next()->flags & (F | A), F | A);
	peer_send(A, P, U + 101, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_FIN_WAIT_2);
	peer_teardown();
}

TEST(what_is_not_open_cannot_be_frozen)
{
	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK(peer.pcb != NULL);
	CHECK_EQ(tcp_freeze(peer.pcb, peer.now_ns, peer.now_ns), -ENOTCONN);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	CHECK_EQ(tcp_freeze(peer.pcb, peer.now_ns, peer.now_ns), -ENOTCONN);
	peer_teardown();
}

/* Settings and states that few connections have travel with the others. */
TEST(settings_move_along)
{
	struct tcp_settings s, t;
	size_t size;
	void *bytes;

	peer_connected();
	tcp_get_settings(peer.pcb, &s);
	s.keep_idle_ns = 11 * NS_PER_SEC;
	s.keep_interval_ns = 12 * NS_PER_SEC;
	s.user_timeout_ns = 13 * NS_PER_SEC;
	s.fin_wait_2_ns = TCP_NO_FIN_WAIT_2;
	s.mss_max = 1000;
	s.keep_probes = 3;
	s.syn_retries = 4;
	s.defer_accept = 5;
	s.window_clamp = 60000;
	s.notsent_lowat = 7000;
	s.thin_linear_timeouts = true;
	s.max_pacing_rate = 123456;
	CHECK_EQ(tcp_set_settings(peer.pcb, &s, peer.now_ns), 0);
	bytes = export(&size);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	free(bytes);
	tcp_get_settings(peer.pcb, &t);
	CHECK_EQ(t.keep_idle_ns, s.keep_idle_ns);
	CHECK_EQ(t.keep_interval_ns, s.keep_interval_ns);
	CHECK_EQ(t.user_timeout_ns, s.user_timeout_ns);
	CHECK_EQ(t.fin_wait_2_ns, s.fin_wait_2_ns);
	CHECK_EQ(t.mss_max, s.mss_max);
	CHECK_EQ(t.keep_probes, s.keep_probes);
	CHECK_EQ(t.syn_retries, s.syn_retries);
	CHECK_EQ(t.defer_accept, s.defer_accept);
	CHECK_EQ(t.window_clamp, s.window_clamp);
	CHECK_EQ(t.notsent_lowat, s.notsent_lowat);
	CHECK_EQ(t.thin_linear_timeouts, s.thin_linear_timeouts);
	CHECK_EQ(t.max_pacing_rate, s.max_pacing_rate);
	peer_teardown();
}

static bool can_be_repaired(void)
{
	struct tcp_repair r;
	int rc = tcp_get_repair(peer.pcb, &r, peer.now_ns);

	CHECK(rc == 0 || rc == -EOPNOTSUPP);
	return rc == 0;
}

static bool can_be_received(void)
{
	struct tcp_repair r;
	int rc = tcp_get_unread(peer.pcb, &r, peer.now_ns);

	CHECK(rc == 0 || rc == -EOPNOTSUPP);
	return rc == 0;
}

/* 0: none. */
static unsigned pointer_at(uint32_t seq)
{
	uint8_t bytes[60];
	struct wire_tcp *header = (void *)bytes;

	(void)tcp_build_of_peer(peer.pcb, bytes, seq, false, peer.now_ns);
	CHECK_EQ(!(header->flags & WIRE_TCP_URG), !header->urgent);
	return be16toh(header->urgent);
}

TEST(urgent_mark_is_told_by_segments)
{
	struct pkt *pkt;
	struct tcp_in in;
	uint8_t byte;

	peer_connected();
	CHECK_EQ(pointer_at(P), 0);
	in = peer_make_options(A | WIRE_TCP_URG, P, U, 5000, 3,
			       &(struct tcp_options){ 0 });
	((struct wire_tcp *)(void *)in.pkt->data)->urgent = htobe16(2);
	tcp_input(peer.table, &in, peer.now_ns);
	CHECK(can_be_received());
	CHECK_EQ(pointer_at(P), 2);
	CHECK_EQ(pointer_at(P + 1), 1);
	CHECK_EQ(pointer_at(P + 2), 0);
	CHECK_EQ(pointer_at(P + 1 - 65534), 65535);
	CHECK_EQ(pointer_at(P + 1 - 65535), 0);
	/* who has read the byte must not get it twice */
	CHECK_EQ(tcp_take_urgent(peer.pcb, &byte, false), 0);
	CHECK(!can_be_received());
	CHECK_EQ(peer_take_all(), 1);
	CHECK_EQ(peer_take_all(), 1);
	CHECK(can_be_received());
	tcp_recved(peer.pcb, 2, peer.now_ns);
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 10);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_URGENT), 0);
	CHECK(!can_be_received());
	tcp_output(peer.pcb, peer.now_ns);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(urgent_mark_keeps_a_connection)
{
	struct pkt *pkt;
	struct tcp_in in;
	uint8_t byte;

	peer_connected();
	/* the second byte of three is urgent */
	in = peer_make_options(A | WIRE_TCP_URG, P, U, 5000, 3,
			       &(struct tcp_options){ 0 });
	((struct wire_tcp *)(void *)in.pkt->data)->urgent = htobe16(2);
	tcp_input(peer.table, &in, peer.now_ns);
	CHECK(!can_be_repaired());
	CHECK_EQ(tcp_take_urgent(peer.pcb, &byte, false), 0);
	CHECK(!can_be_repaired());
	CHECK_EQ(peer_take_all(), 1);
	/* the reader stands before the mark, with the byte */
	CHECK(can_be_repaired());
	CHECK_EQ(peer_take_all(), 1);
	CHECK(can_be_repaired());
	tcp_recved(peer.pcb, 2, peer.now_ns);
	/* and ours, until the peer has it */
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 10);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_URGENT), 0);
	tcp_output(peer.pcb, peer.now_ns);
	CHECK(!can_be_repaired());
	peer_next();
	peer_send(A, P + 3, U + 10, 0);
	CHECK(can_be_repaired());
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

TEST(soft_error_moves_along)
{
	struct tcp_icmp icmp = { .error = -EHOSTUNREACH };
	size_t size;
	void *bytes;

	peer_connected();
	CHECK_EQ(tcp_set_user_timeout(peer.pcb, NS_PER_SEC), 0);
	peer_write(100);
	icmp.key = peer.key;
	icmp.seq = U;
	tcp_icmp_in(peer.table, &icmp, peer.now_ns);
	bytes = export(&size);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	free(bytes);
	peer_advance_ms(5000);
	CHECK_EQ(tcp_error(peer.pcb), -EHOSTUNREACH);
	peer_teardown();
}

/* Into packets that are smaller: the last byte of a write stays one. */
TEST(followed_bytes_move_along)
{
	struct pkt *pkt;
	struct pkt_pool small;
	size_t size;
	void *bytes;

	peer_connected();
	pkt_pool_init(&small, 0);
	CHECK_EQ(pkt_pool_grow(&small, 16, 512), 0);
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 1000);
	memset(pkt->data, 'y', pkt->len);
	CHECK_EQ(tcp_write_with(peer.pcb, pkt, TCP_WRITE_STAMP), 0);
	tcp_output(peer.pcb, peer.now_ns);
	CHECK_EQ(peer.stamp_cnt, 2);
	bytes = export(&size);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &small, peer.now_ns,
			    &peer.pcb), 0);
	free(bytes);
	peer_send(A, P, U + 600, 0);
	CHECK_EQ(peer.stamp_cnt, 2);
	peer_send(A, P, U + 1000, 0);
	CHECK_EQ(peer.stamp_cnt, 3);
	CHECK_EQ(peer.stamps[2].what, TCP_STAMP_ACKED);
	CHECK_EQ(peer.stamps[2].byte, 999);
	peer.looked_at = peer.sent_cnt;
	tcp_abort(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	CHECK_EQ(pkt_pool_destroy(&small), 0);
	peer_teardown();
}
