/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calls that do several steps in one (tcp_input_direct, tcp_send_now): they do what
 * the steps would have done, or nothing. */
#include "tests/engine/peer.h"

#include <errno.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

enum { LEN = 64, ROOM = 1000 };

static void connected_with_ts(void)
{
	struct tcp_options offered = peer_full_options;

	offered.has_ts = true;
	offered.ts_val = 700;
	peer_defaults();
	peer_connect(&offered);
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
}

static long input_direct(uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len,
			 uint32_t room)
{
	struct tcp_in in = peer_make(flags, seq, ack, len);
	uint8_t buf[ROOM], expected[ROOM];
	long n;

	memcpy(expected, in.pkt->data + in.pkt->len - len, len);
	n = tcp_input_direct(peer.pcb, in.pkt->data, in.pkt->len, buf, room,
			     peer.now_ns);
	if (n > 0)
		CHECK(memcmp(buf, expected, (size_t)n) == 0);
	pkt_put(in.pkt);
	return n;
}

static void receive(bool is_direct, uint32_t seq, uint32_t ack, uint32_t len)
{
	if (is_direct) {
		CHECK_EQ(input_direct(A, seq, ack, len, ROOM), len);
		return;
	}
	peer_send(A, seq, ack, len);
	CHECK_EQ(peer_take_all(), len);
	tcp_recved(peer.pcb, len, peer.now_ns);
}

/* Whether it could be sent at once; otherwise nothing was done. */
static bool may_send_now(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&peer.pool);
	struct tcp_header header;

	memset(pkt_append(pkt, len), 'y', len);
	header = tcp_send_now(peer.pcb, pkt, true, peer.now_ns);
	if (!header.bytes) {
		pkt_put(pkt);
		return false;
	}
	peer_emit(NULL, peer.pcb, &(struct tcp_out){
		.header = header.bytes,
		.header_len = header.len,
		.data = pkt,
		.data_cnt = 1,
		.data_len = len,
	});
	return true;
}

/* The first segment brings news of the window, and the first one that we send comes after
 * a pause: neither is plain. */
static void begun(void)
{
	connected_with_ts();
	peer_write(LEN);
	receive(false, P, U + LEN, LEN);
}

/* Whether the engine knows what it has known, to the last byte. */
static bool is_same(const struct tcp_pcb_info *before)
{
	struct tcp_pcb_info after;

	memset(&after, 0, sizeof(after));
	tcp_get_info(peer.pcb, &after);
	return memcmp(before, &after, sizeof(after)) == 0;
}

/* What it sent, and what it knows, in a conversation of requests and answers, answers
 * alone, and a pause. */
struct record {
	struct tcp_pcb_info info;
	struct tcp_pcb_stats stats;
	struct peer_sent sent[PEER_SENT_MAX];
	unsigned sent_cnt;
};

static void converse(bool is_direct, struct record *out)
{
	uint32_t at = LEN, sent = LEN;

	memset(out, 0, sizeof(*out));
	begun();
	for (unsigned i = 0; i < 12; i++) {
		/* after a pause the window is not what it was */
		if (i == 8 && is_direct)
			CHECK(!may_send_now(LEN));
		if (i == 8 || !is_direct)
			peer_write(LEN);
		else
			CHECK(may_send_now(LEN));
		sent += LEN;
		peer_advance_ms(2);
		receive(is_direct, P + at, U + sent, LEN);
		at += LEN;
		if (i % 3 == 0) {
			receive(is_direct, P + at, U + sent, 3 * LEN);
			at += 3 * LEN;
		}
		if (i == 7)
			peer_advance_ms(500);
	}
	CHECK(peer.sent_cnt < PEER_SENT_MAX);
	memcpy(out->sent, peer.sent, sizeof(out->sent));
	out->sent_cnt = peer.sent_cnt;
	tcp_get_info(peer.pcb, &out->info);
	tcp_get_stats(peer.pcb, &out->stats, peer.now_ns);
	peer_teardown();
}

TEST(one_step_is_as_several)
{
	static struct record direct, usual;

	converse(true, &direct);
	converse(false, &usual);
	CHECK_EQ(direct.sent_cnt, usual.sent_cnt);
	for (unsigned i = 0; i < usual.sent_cnt; i++) {
		const struct peer_sent *a = &direct.sent[i], *b = &usual.sent[i];

		CHECK_EQ(a->seq, b->seq);
		CHECK_EQ(a->ack, b->ack);
		CHECK_EQ(a->len, b->len);
		CHECK_EQ(a->flags, b->flags);
		CHECK_EQ(a->window, b->window);
		CHECK_EQ(a->at_ns, b->at_ns);
		CHECK_EQ(a->options.ts_ecr, b->options.ts_ecr);
	}
	CHECK(memcmp(&direct.info, &usual.info, sizeof(usual.info)) == 0);
	CHECK(memcmp(&direct.stats, &usual.stats, sizeof(usual.stats)) == 0);
}

TEST(only_the_next_plain_segment_goes_directly)
{
	struct tcp_pcb_info before;

	begun();
	memset(&before, 0, sizeof(before));
	tcp_get_info(peer.pcb, &before);
	CHECK_EQ(input_direct(A, P + LEN + 1, U + LEN, LEN, ROOM), -EAGAIN);
	CHECK_EQ(input_direct(A, P, U + LEN, LEN, ROOM), -EAGAIN);
	CHECK_EQ(input_direct(A, P + LEN, U + LEN, LEN, LEN - 1), -EAGAIN);
	CHECK_EQ(input_direct(A, P + LEN, U + LEN, 0, ROOM), -EAGAIN);
	CHECK_EQ(input_direct(A | F, P + LEN, U + LEN, LEN, ROOM), -EAGAIN);
	CHECK_EQ(input_direct(A | R, P + LEN, U + LEN, LEN, ROOM), -EAGAIN);
	CHECK_EQ(input_direct(A, P + LEN, U + LEN + 1, LEN, ROOM), -EAGAIN);
	CHECK(is_same(&before));
	/* what came before is read first */
	peer_send(A, P + LEN, U + LEN, LEN);
	CHECK_EQ(input_direct(A, P + 2 * LEN, U + LEN, LEN, ROOM), -EAGAIN);
	CHECK_EQ(peer_take_all(), LEN);
	CHECK_EQ(input_direct(A, P + 2 * LEN, U + LEN, LEN, ROOM), LEN);
	peer_teardown();
}

/* Where there was room before, nobody has to be told; else that is done in several steps. */
TEST(acknowledgment_tells_of_room_that_was_made)
{
	struct tcp_pcb_info before;
	struct tcp_event event;

	begun();
	while (tcp_event_next(peer.table, &event))
		;
	CHECK(may_send_now(LEN));
	CHECK_EQ(input_direct(A, P + LEN, U + 2 * LEN, LEN, ROOM), LEN);
	CHECK(!tcp_event_next(peer.table, &event));
	tcp_set_snd_buf(peer.pcb, 3 * LEN);
	for (int i = 0; i < 2; i++)
		CHECK(may_send_now(LEN));
	CHECK(tcp_has_room(peer.pcb));
	memset(&before, 0, sizeof(before));
	tcp_get_info(peer.pcb, &before);
	CHECK(!may_send_now(LEN));
	CHECK(is_same(&before));
	peer_write(LEN);
	CHECK(!tcp_has_room(peer.pcb));
	tcp_get_info(peer.pcb, &before);
	CHECK_EQ(input_direct(A, P + 2 * LEN, U + 4 * LEN, LEN, ROOM), -EAGAIN);
	CHECK(is_same(&before));
	receive(false, P + 2 * LEN, U + 4 * LEN, LEN);
	CHECK(tcp_event_next(peer.table, &event));
	CHECK(event.what & TCP_EV_WRITABLE);
	peer_teardown();
}

TEST(what_may_not_leave_at_once_is_not_taken)
{
	struct tcp_pcb_info before;

	begun();
	tcp_set_nodelay(peer.pcb, false, peer.now_ns);
	CHECK(may_send_now(LEN));
	memset(&before, 0, sizeof(before));
	tcp_get_info(peer.pcb, &before);
	/* Nagle */
	CHECK(!may_send_now(LEN));
	CHECK(is_same(&before));
	tcp_set_nodelay(peer.pcb, true, peer.now_ns);
	/* no room behind it */
	tcp_set_snd_buf(peer.pcb, 3 * LEN);
	CHECK(!may_send_now(2 * LEN));
	CHECK(may_send_now(LEN));
	/* corked */
	peer_send(A, P + LEN, U + 3 * LEN, 0);
	tcp_set_cork(peer.pcb, true, peer.now_ns);
	CHECK(!may_send_now(LEN));
	tcp_set_cork(peer.pcb, false, peer.now_ns);
	CHECK(may_send_now(LEN));
	/* behind something that waits */
	peer_send(A, P + LEN, U + 4 * LEN, 0);
	tcp_set_nodelay(peer.pcb, false, peer.now_ns);
	peer_write(LEN);
	peer_write(LEN);
	CHECK(!may_send_now(LEN));
	peer_teardown();
}

/* Whether the checksum is that of the segment. */
static bool is_intact(struct tcp_header header, const struct pkt *pkt)
{
	uint32_t sum = wire_pseudo_sum(&peer.key.local, &peer.key.remote,
				       WIRE_PROTO_TCP, header.len + pkt->len);

	sum = csum_partial(header.bytes, header.len, sum);
	return csum_fold(csum_partial(pkt->data, pkt->len, sum)) == 0;
}

/* With it and without, nothing else is different. */
TEST(checksum_is_left_to_who_computes_it)
{
	struct wire_tcp headers[2];

	begun();
	for (uint32_t i = 0; i < 2; i++) {
		struct pkt *pkt = pkt_alloc(&peer.pool);
		struct tcp_header header;

		memset(pkt_append(pkt, LEN), 'a' + (int)i, LEN);
		header = tcp_send_now(peer.pcb, pkt, !i, peer.now_ns);
		CHECK(header.bytes != NULL);
		CHECK_EQ(is_intact(header, pkt), !i);
		memcpy(&headers[i], header.bytes, sizeof(headers[i]));
		headers[i].seq = htobe32(be32toh(headers[i].seq) - i * LEN);
		headers[i].check = 0;
	}
	CHECK(memcmp(&headers[0], &headers[1], sizeof(headers[0])) == 0);
	peer_send(A, P + LEN, U + 3 * LEN, 0);
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}
