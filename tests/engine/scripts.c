/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The scripts of tests/engine/segments, with the engine as the TCP. */
#include "tests/engine/script.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/engine/peer.h"
#include "tests/support/test.h"

static void engine_open(bool is_passive, bool with_ecn)
{
	struct tcp_pcb *pcb;

	peer_defaults();
	peer.params.with_ecn = with_ecn;
	peer_setup();
	pcb = tcp_new(peer.table);
	CHECK(pcb != NULL);
	CHECK_EQ(tcp_bind(pcb, &peer.key.local, peer.key.local_port), 0);
	if (is_passive) {
		CHECK_EQ(tcp_listen(pcb, 4), 0);
		peer.listener = pcb;
	} else {
		CHECK_EQ(tcp_connect(pcb, &peer.key.remote,
				     peer.key.remote_port, &peer.path,
				     peer.now_ns), 0);
		peer.pcb = pcb;
	}
}

static void engine_send(const struct script_segment *s)
{
	struct tcp_options options = s->options;

	/* the way there and back takes a moment */
	peer_advance_ms(1);
	for (uint8_t i = 0; i < options.sack_cnt; i++) {
		options.sack[i].start += U;
		options.sack[i].end += U;
	}
	peer.ecn = s->ecn;
	peer_send_options(s->flags, P + s->seq, U + s->ack, (uint16_t)s->win,
			  s->len, &options);
}

static bool engine_next(uint32_t within_ms, struct script_segment *s,
			uint32_t *after_ms_out)
{
	uint64_t since_ns = peer.now_ns;
	const struct peer_sent *sent;

	while (peer.looked_at == peer.sent_cnt) {
		if (peer.now_ns - since_ns >= within_ms * NS_PER_MS)
			return false;
		peer_advance_ms(1);
	}
	sent = peer_next();
	*after_ms_out = sent->at_ns > since_ns
				? (uint32_t)((sent->at_ns - since_ns) /
					     NS_PER_MS)
				: 0;
	s->flags = sent->flags;
	s->seq = sent->seq - U;
	s->ack = sent->ack - P;
	s->len = sent->len;
	s->win = sent->window;
	s->ecn = sent->ecn;
	s->options = sent->options;
	for (uint8_t i = 0; i < s->options.sack_cnt; i++) {
		s->options.sack[i].start -= P;
		s->options.sack[i].end -= P;
	}
	return true;
}

/* In pieces that fit a buffer, sent when all are there. */
static void write_all(uint32_t len)
{
	while (len) {
		struct pkt *pkt = pkt_alloc(&peer.pool);
		uint32_t piece = MIN(len, tcp_mss(peer.pcb));

		memset(pkt_append(pkt, piece), 'y', piece);
		CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
		len -= piece;
	}
	tcp_output(peer.pcb, peer.now_ns);
}

static void engine_act(enum script_act act, uint32_t value)
{
	switch (act) {
	case SCRIPT_WRITE:
		write_all(value);
		break;
	case SCRIPT_READ:
		CHECK_EQ(peer_take_all(), value);
		tcp_recved(peer.pcb, value, peer.now_ns);
		break;
	case SCRIPT_SHUTDOWN:
		CHECK_EQ(tcp_shutdown(peer.pcb, peer.now_ns), 0);
		break;
	case SCRIPT_CLOSE:
		tcp_close(peer.pcb, peer.now_ns);
		peer.pcb = NULL;
		break;
	case SCRIPT_NODELAY:
		tcp_set_nodelay(peer.pcb, value, peer.now_ns);
		break;
	case SCRIPT_CORK:
		tcp_set_cork(peer.pcb, value, peer.now_ns);
		break;
	case SCRIPT_ACCEPT:
		peer.pcb = tcp_accept(peer.listener);
		CHECK(peer.pcb != NULL);
		break;
	case SCRIPT_USER_TIMEOUT:
		tcp_set_user_timeout(peer.pcb, value * NS_PER_MS);
		break;
	case SCRIPT_KEEPALIVE:
		tcp_set_keepalive(peer.pcb, true, value * NS_PER_SEC, NS_PER_SEC,
				  3, peer.now_ns);
		break;
	}
}

static int engine_error(void)
{
	return tcp_error(peer.pcb);
}

static const struct script_target engine = {
	.open = engine_open,
	.send = engine_send,
	.next = engine_next,
	.act = engine_act,
	.error = engine_error,
};

static void run(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[1024], why[128];

	snprintf(path, sizeof(path), "%s/tests/engine/segments/%s.tcp",
		 srcdir ? srcdir : ".", name);
	script_run(path, &engine, why);
	peer_expect_silence();
	if (!peer.pcb) {
		/* what has no owner any more */
		peer_send_options(R, P, 0, 0, 0, &(struct tcp_options){ 0 });
		peer_advance_ms(200 * 1000);
	}
	peer_teardown();
}

/* A case for each script. */
TEST(accepts_and_talks) { run("accepts_and_talks"); }
TEST(ack_beyond) { run("ack_beyond"); }
TEST(ack_rides_on_data) { run("ack_rides_on_data"); }
TEST(active_close) { run("active_close"); }
TEST(bytes_in_the_middle) { run("bytes_in_the_middle"); }
TEST(close_with_unread) { run("close_with_unread"); }
TEST(cork) { run("cork"); }
TEST(data_after_close) { run("data_after_close"); }
TEST(data_beyond_window) { run("data_beyond_window"); }
TEST(data_is_no_duplicate) { run("data_is_no_duplicate"); }
TEST(delayed_ack) { run("delayed_ack"); }
TEST(duplicate_data) { run("duplicate_data"); }
TEST(echo_of_delayed) { run("echo_of_delayed"); }
TEST(echo_undoes_timeout) { run("echo_undoes_timeout"); }
TEST(ecn_is_echoed) { run("ecn_is_echoed"); }
TEST(ecn_slows_down) { run("ecn_slows_down"); }
TEST(fast_retransmit) { run("fast_retransmit"); }
TEST(fin_out_of_order) { run("fin_out_of_order"); }
TEST(fin_with_data) { run("fin_with_data"); }
TEST(gap_then_repair) { run("gap_then_repair"); }
TEST(half_close_by_peer) { run("half_close_by_peer"); }
TEST(impossible_sack) { run("impossible_sack"); }
TEST(initial_window) { run("initial_window"); }
TEST(keepalive) { run("keepalive"); }
TEST(lone_segment) { run("lone_segment"); }
TEST(lost_fin) { run("lost_fin"); }
TEST(missing_time_stamp) { run("missing_time_stamp"); }
TEST(nagle) { run("nagle"); }
TEST(newreno) { run("newreno"); }
TEST(no_ecn) { run("no_ecn"); }
TEST(old_ack) { run("old_ack"); }
TEST(old_segment) { run("old_segment"); }
TEST(old_time_stamp) { run("old_time_stamp"); }
TEST(open_options) { run("open_options"); }
TEST(overlap) { run("overlap"); }
TEST(plain_syn) { run("plain_syn"); }
TEST(reset_in_window) { run("reset_in_window"); }
TEST(reset_when_closing) { run("reset_when_closing"); }
TEST(shrunk_window) { run("shrunk_window"); }
TEST(simultaneous_close) { run("simultaneous_close"); }
TEST(simultaneous_open) { run("simultaneous_open"); }
TEST(small_mss) { run("small_mss"); }
TEST(syn_again) { run("syn_again"); }
TEST(syn_backs_off) { run("syn_backs_off"); }
TEST(syn_in_window) { run("syn_in_window"); }
TEST(syn_refused) { run("syn_refused"); }
TEST(syn_window) { run("syn_window"); }
TEST(tail_loss_probe) { run("tail_loss_probe"); }
TEST(three_duplicates) { run("three_duplicates"); }
TEST(time_wait) { run("time_wait"); }
TEST(time_wait_and_reset) { run("time_wait_and_reset"); }
TEST(timeout_doubles) { run("timeout_doubles"); }
TEST(two_holes) { run("two_holes"); }
TEST(unknown_reset) { run("unknown_reset"); }
TEST(user_timeout) { run("user_timeout"); }
TEST(window_anchor) { run("window_anchor"); }
TEST(window_limits) { run("window_limits"); }
TEST(wrong_refusal) { run("wrong_refusal"); }
TEST(zero_window) { run("zero_window"); }
