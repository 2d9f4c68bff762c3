/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How connections begin, on both sides, segment by segment. */
#include "tests/engine/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/support/test.h"

TEST(syn_offers_and_accepts_options)
{
	struct tcp_options answer = peer_full_options;
	const struct peer_sent *sent;
	struct tcp_pcb_info info;

	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	sent = peer_next();
	CHECK_EQ(sent->options.mss, 1460);
	CHECK(sent->options.has_scale && sent->options.has_sack_ok &&
	      sent->options.has_ts);
	CHECK_EQ(sent->options.scale, 7);
	answer.mss = 1000;
	peer_send_options(S | A, PEER_ISN, U, 1000, 0, &answer);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.has_sack && info.has_window_scale && !info.has_timestamps);
	CHECK_EQ(info.mss, 1000);
	CHECK_EQ(info.snd_scale, 2);
	/* the window of a SYN is not scaled */
	CHECK_EQ(info.snd_wnd, 1000);
	peer_teardown();
}

TEST(syn_is_sent_again_and_given_up)
{

	peer_defaults();
	peer.params.syn_retries = 2;
	peer.params.syn_linear_timeouts = 0;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	peer_advance_ms(60000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	CHECK_EQ(peer.sent_cnt, 3);
	CHECK_EQ((peer.sent[1].at_ns - peer.sent[0].at_ns) / (10 * NS_PER_MS), 100);
	CHECK_EQ((peer.sent[2].at_ns - peer.sent[1].at_ns) / (10 * NS_PER_MS), 200);
	peer_teardown();
}

static void check_first_data_after_a_lost_syn(uint64_t begin_ns)
{
	peer_defaults();
	peer.now_ns = begin_ns;
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	peer_advance_ms(1500);
	peer.looked_at = peer.sent_cnt;
	peer_send_options(S | A, PEER_ISN, U, 20000, 0, &peer_full_options);
	CHECK_EQ(peer_next()->ack, P);
	peer_write(10);
	CHECK_EQ(peer_next()->len, 10);
	peer_advance_ms(2900);
	peer_expect_silence();
	peer_advance_ms(200);
	CHECK_EQ(peer_next()->len, 10);
	peer_teardown();
}

/* Found by fuzzing: nothing timed what was sent first after a lost SYN, when the
 * clock was so young that nothing seemed to have paused. */
TEST(first_data_after_a_lost_syn_is_sent_again)
{
	check_first_data_after_a_lost_syn(NS_PER_MS);
	check_first_data_after_a_lost_syn(1000 * NS_PER_SEC);
}

static void listening(uint32_t backlog)
{
	peer_setup();
	peer.listener = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.listener, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(peer.listener, backlog), 0);
}

TEST(cookie_opens_what_the_syn_asked_for)
{
	struct tcp_options offer = peer_full_options;
	const struct peer_sent *sent;
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.half_open_max = 0;
	listening(4);
	offer.has_ts = true;
	offer.ts_val = 50;
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &offer);
	CHECK_EQ(tcp_counts(peer.table)->cookies_sent, 1);
	CHECK_EQ(tcp_pcb_cnt(peer.table), 1);
	sent = peer_next();
	CHECK_EQ(sent->flags, S | A);
	offer = (struct tcp_options){ .has_ts = true, .ts_val = 51,
				      .ts_ecr = sent->options.ts_val };
	/* a guess does not do */
	peer_send_options(A, P, U + (1 << 20), 1000, 0, &offer);
	CHECK_EQ(tcp_counts(peer.table)->cookies_bad, 1);
	peer.looked_at = peer.sent_cnt;
	peer_send_options(A, P, U, 1000, 0, &offer);
	CHECK_EQ(tcp_counts(peer.table)->cookies_accepted, 1);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.has_sack && info.has_window_scale && info.has_timestamps);
	CHECK_EQ(info.snd_scale, 2);
	CHECK_EQ(info.mss, 1460 - 12);
	peer_teardown();
}

/* Found by random --seed 3002422: the window was closed until our first ACK. */
TEST(cookie_grants_what_its_answer_did)
{
	const struct tcp_options offer = { .mss = 1460 };
	struct tcp_pcb_info info;

	peer_defaults();
	peer.params.half_open_max = 0;
	listening(4);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &offer);
	CHECK_EQ(peer_next()->window, 65535);
	peer_send(A, P, U, 100);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.rcv_edge, P + 65535);
	CHECK_EQ(peer_take_all(), 100);
	peer_teardown();
}

/* -- SYNs that are kept -- */

enum { FRONT = 34 };

static void keep_syns(uint8_t front)
{
	struct tcp_settings settings;

	tcp_get_settings(peer.listener, &settings);
	settings.saved_syn_front = front;
	CHECK_EQ(tcp_set_settings(peer.listener, &settings, peer.now_ns), 0);
}

/* The SYN with so much in front of it, as frames have it; `bytes` are all of it. */
static uint32_t send_syn_behind(uint32_t front, uint8_t *bytes)
{
	struct tcp_in in = peer_make_options(S, PEER_ISN, 0, 1000, 5,
					     &peer_full_options);
	struct pkt *pkt = in.pkt;
	uint32_t len = pkt->len;

	memmove(pkt->data + front, pkt->data, len);
	for (uint32_t i = 0; i < front; i++)
		pkt->data[i] = (uint8_t)(i + 1);
	memcpy(bytes, pkt->data, front + len);
	pkt->data += front;
	tcp_input(peer.table, &in, peer.now_ns);
	return front + len - 5;
}

static struct tcp_pcb *accept_next(void)
{
	peer.looked_at = peer.sent_cnt;
	peer_send(A, P, U, 0);
	return tcp_accept(peer.listener);
}

TEST(saved_syn_is_told_once)
{
	uint8_t sent[256], saved[TCP_SAVED_SYN_MAX] = { 0 };
	uint32_t len;

	peer_defaults();
	listening(4);
	keep_syns(FRONT);
	len = send_syn_behind(FRONT, sent);
	peer.pcb = accept_next();
	CHECK(peer.pcb != NULL);
	CHECK_EQ(tcp_take_saved_syn(peer.pcb, saved), len);
	CHECK(len > FRONT + 20 && memcmp(saved, sent, len) == 0);
	CHECK_EQ(tcp_take_saved_syn(peer.pcb, saved), 0);
	peer_teardown();
}

/* Memory only where it is asked for, and none is left behind by who takes nothing. */
TEST(syn_is_saved_when_it_is_wanted)
{
	uint8_t sent[256], saved[TCP_SAVED_SYN_MAX];
	size_t usual, with_it;

	peer_defaults();
	listening(4);
	/* the table has its buckets from here on */
	(void)send_syn_behind(FRONT, sent);
	usual = peer.memory;
	peer.key.remote_port++;
	(void)send_syn_behind(FRONT, sent);
	usual = peer.memory - usual;
	keep_syns(FRONT);
	with_it = peer.memory;
	peer.key.remote_port++;
	(void)send_syn_behind(FRONT, sent);
	with_it = peer.memory - with_it;
	CHECK(with_it > usual);
	keep_syns(0);
	/* the settings at the time of the SYN count */
	peer.pcb = accept_next();
	CHECK(peer.pcb != NULL);
	CHECK(tcp_take_saved_syn(peer.pcb, saved) > 0);
	peer_teardown();
}

/* The front is not in the packet's buffer, or there is no memory for it. */
TEST(syn_that_cannot_be_saved_opens_all_the_same)
{
	uint8_t sent[256], saved[TCP_SAVED_SYN_MAX];

	peer_defaults();
	listening(4);
	keep_syns(FRONT);
	(void)send_syn_behind(FRONT - 1, sent);
	peer.pcb = accept_next();
	CHECK(peer.pcb != NULL);
	CHECK_EQ(tcp_take_saved_syn(peer.pcb, saved), 0);
	tcp_abort(peer.pcb, peer.now_ns);
	/* the pcb, what few need, and then the SYN */
	for (unsigned n = 2; n <= 3; n++) {
		peer.key.remote_port++;
		peer.allocs_left = n;
		(void)send_syn_behind(FRONT, sent);
		peer.allocs_left = 0;
		peer.pcb = accept_next();
		CHECK(peer.pcb != NULL);
		CHECK_EQ(tcp_take_saved_syn(peer.pcb, saved), 0);
		tcp_abort(peer.pcb, peer.now_ns);
	}
	peer.pcb = NULL;
	peer_teardown();
}

TEST(no_syn_is_saved_behind_a_cookie)
{
	uint8_t sent[256], saved[TCP_SAVED_SYN_MAX];

	peer_defaults();
	peer.params.half_open_max = 0;
	listening(4);
	keep_syns(FRONT);
	(void)send_syn_behind(FRONT, sent);
	CHECK_EQ(tcp_counts(peer.table)->cookies_sent, 1);
	peer.pcb = accept_next();
	CHECK(peer.pcb != NULL);
	CHECK_EQ(tcp_take_saved_syn(peer.pcb, saved), 0);
	peer_teardown();
}

TEST(saved_front_has_a_limit)
{
	struct tcp_settings settings;

	peer_defaults();
	listening(4);
	tcp_get_settings(peer.listener, &settings);
	settings.saved_syn_front = TCP_SAVED_FRONT_MAX + 1;
	CHECK_EQ(tcp_set_settings(peer.listener, &settings, peer.now_ns), -EINVAL);
	peer_teardown();
}

TEST(syns_are_limited_by_rate)
{
	peer_defaults();
	peer.params.syns_per_sec = 2;
	listening(100);
	for (int i = 0; i < 5; i++) {
		peer.key.remote_port++;
		peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	}
	CHECK_EQ(tcp_counts(peer.table)->syn_dropped, 3);
	CHECK_EQ(peer.sent_cnt, 2);
	peer_teardown();
}

TEST(full_accept_queue_drops_syns)
{
	peer_defaults();
	listening(1);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	peer_send(A, P, U, 0);
	peer.key.remote_port++;
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	CHECK_EQ(tcp_counts(peer.table)->syn_dropped, 1);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
	CHECK_EQ(tcp_counts(peer.table)->syn_dropped, 1);
	peer_teardown();
}

TEST(time_wait_gives_way_to_a_later_syn)
{
	peer_connected();
	CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
	peer_send(F | A, P, U + 1, 0);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	tcp_close(peer.pcb, peer.now_ns);
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(peer.pcb, 1), 0);
	peer.listener = peer.pcb;
	peer.pcb = NULL;
	peer.looked_at = peer.sent_cnt;
	/* an old one is answered for the old connection */
	peer_send(S, PEER_ISN, 0, 0);
	CHECK_EQ(peer_next()->flags, A);
	peer_send(S, P + 100000, 0, 0);
	CHECK_EQ(peer_next()->flags & (S | A), S | A);
	CHECK_EQ(tcp_counts(peer.table)->tw_reused, 1);
	peer_teardown();
}
