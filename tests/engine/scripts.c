/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The scripts of tests/engine/scripts, with the engine as the TCP. */
#include "tests/engine/script.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/engine/peer.h"
#include "tests/support/test.h"

static void open_passive(const struct tcp_options *offered)
{
	peer_setup();
	peer.listener = tcp_new(peer.table);
	CHECK(peer.listener != NULL);
	CHECK_EQ(tcp_bind(peer.listener, &peer.key.local, peer.key.local_port),
		 0);
	CHECK_EQ(tcp_listen(peer.listener, 4), 0);
	peer_send_options(S, PEER_ISN, 0, 20000, 0, offered);
	CHECK_EQ(peer_next()->flags & (S | A), S | A);
	peer_send(A, P, U, 0);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
}

static void engine_open(bool is_passive, const struct tcp_options *offered)
{
	peer_defaults();
	if (is_passive)
		open_passive(offered);
	else
		peer_connect(offered);
}

static void engine_send(const struct script_segment *s)
{
	struct tcp_options options = { .sack_cnt = s->sack_cnt };

	/* the way there and back takes a moment */
	peer_advance_ms(1);
	for (uint8_t i = 0; i < s->sack_cnt; i++) {
		options.sack[i].start = U + s->sack[i].start;
		options.sack[i].end = U + s->sack[i].end;
	}
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
	s->sack_cnt = sent->options.sack_cnt;
	for (uint8_t i = 0; i < s->sack_cnt; i++) {
		s->sack[i].start = sent->options.sack[i].start - P;
		s->sack[i].end = sent->options.sack[i].end - P;
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
TEST(ack_rides_on_data) { run("ack_rides_on_data"); }
TEST(active_close) { run("active_close"); }
TEST(bytes_in_the_middle) { run("bytes_in_the_middle"); }
TEST(close_with_unread) { run("close_with_unread"); }
TEST(cork) { run("cork"); }
TEST(data_after_close) { run("data_after_close"); }
TEST(data_beyond_window) { run("data_beyond_window"); }
TEST(delayed_ack) { run("delayed_ack"); }
TEST(duplicate_data) { run("duplicate_data"); }
TEST(fast_retransmit) { run("fast_retransmit"); }
TEST(fin_out_of_order) { run("fin_out_of_order"); }
TEST(fin_with_data) { run("fin_with_data"); }
TEST(gap_then_repair) { run("gap_then_repair"); }
TEST(half_close_by_peer) { run("half_close_by_peer"); }
TEST(initial_window) { run("initial_window"); }
TEST(lost_fin) { run("lost_fin"); }
TEST(nagle) { run("nagle"); }
TEST(old_ack) { run("old_ack"); }
TEST(old_segment) { run("old_segment"); }
TEST(reset_in_window) { run("reset_in_window"); }
TEST(reset_when_closing) { run("reset_when_closing"); }
TEST(simultaneous_close) { run("simultaneous_close"); }
TEST(small_mss) { run("small_mss"); }
TEST(syn_in_window) { run("syn_in_window"); }
TEST(tail_loss_probe) { run("tail_loss_probe"); }
TEST(three_duplicates) { run("three_duplicates"); }
TEST(timeout_doubles) { run("timeout_doubles"); }
TEST(two_holes) { run("two_holes"); }
TEST(window_limits) { run("window_limits"); }
TEST(zero_window) { run("zero_window"); }
