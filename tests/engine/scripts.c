/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The scripts of tests/engine/segments, with the engine as the TCP. */
#include "tests/engine/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/engine/peer.h"
#include "tests/support/test.h"

enum { TOGETHER_MAX = 16 };

/* Segments that wait for others to arrive in one poll. */
static struct tcp_in poll[TOGETHER_MAX];
static unsigned poll_cnt, poll_size;
static uint64_t keep_interval_ns;

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void choose_params(const struct script_setup *setup)
{
	const uint32_t *param = setup->param;
	struct tcp_params *p = &peer.params;

	p->ecn = setup->accepts_ecn	    ? TCP_ECN_ACCEPTED
		 : setup->with_accurate_ecn ? TCP_ECN_ACCURATE
		 : setup->with_ecn	    ? TCP_ECN_ON
					    : TCP_ECN_OFF;
	p->retries = (uint8_t)or_default(param[SCRIPT_RETRIES], p->retries);
	p->orphan_retries = (uint8_t)or_default(param[SCRIPT_ORPHAN_RETRIES],
						p->orphan_retries);
	p->syn_retries = (uint8_t)or_default(param[SCRIPT_SYN_RETRIES],
					     p->syn_retries);
	p->synack_retries = (uint8_t)or_default(param[SCRIPT_SYNACK_RETRIES],
						p->synack_retries);
	if (param[SCRIPT_FIN_WAIT_2])
		p->fin_wait_2_ns = param[SCRIPT_FIN_WAIT_2] * NS_PER_SEC;
	p->quick_acks = (uint8_t)param[SCRIPT_QUICK_ACKS];
	if (param[SCRIPT_COOKIES])
		p->half_open_max = 0;
	p->restarts_when_idle = !param[SCRIPT_NO_IDLE_RESTART];
	p->with_tlp = !param[SCRIPT_NO_TLP];
	p->with_frto = !param[SCRIPT_NO_FRTO];
	p->finds_black_holes = param[SCRIPT_MTU_PROBING];
	p->with_dsack = !param[SCRIPT_NO_DSACK];
	if (param[SCRIPT_NO_LINEAR_SYNS])
		p->syn_linear_timeouts = 0;
	p->saves_metrics = !param[SCRIPT_NO_METRICS];
	p->fastopen = param[SCRIPT_FASTOPEN];
	p->fastopen_pause_ns = param[SCRIPT_FASTOPEN_PAUSE] * NS_PER_SEC;
	p->protects_time_wait = param[SCRIPT_RFC1337];
	p->resets_on_overflow = param[SCRIPT_OVERFLOW_RESETS];
	p->syns_per_sec = param[SCRIPT_SYNS];
	p->challenge_acks_per_sec = or_default(param[SCRIPT_CHALLENGES],
					       p->challenge_acks_per_sec);
	p->resets_per_sec = or_default(param[SCRIPT_RESETS],
				       p->resets_per_sec);
	if (param[SCRIPT_RCV_BUF])
		p->rcv_buf = p->rcv_buf_max = param[SCRIPT_RCV_BUF];
	keep_interval_ns = or_default(param[SCRIPT_KEEP_INTERVAL], 1) *
			   NS_PER_SEC;
	peer.path.segment_max = param[SCRIPT_SPLIT];
}

/* What a program would set before it connects or listens. */
static void choose_settings(struct tcp_pcb *pcb, const uint32_t *param)
{
	struct tcp_settings s;

	tcp_get_settings(pcb, &s);
	s.mss_max = (uint16_t)param[SCRIPT_MAXSEG];
	s.syn_retries = (uint8_t)param[SCRIPT_SYNCNT];
	s.defer_accept = tcp_defer_accept_timeouts(
		&peer.params, param[SCRIPT_DEFER] * NS_PER_SEC);
	s.window_clamp = param[SCRIPT_CLAMP];
	s.thin_linear_timeouts = param[SCRIPT_THIN];
	s.fastopen_max = param[SCRIPT_FASTOPEN_MAX];
	s.fastopen_no_cookie = param[SCRIPT_FASTOPEN_NO_COOKIE];
	if (param[SCRIPT_PACE])
		s.max_pacing_rate = param[SCRIPT_PACE];
	if (param[SCRIPT_LINGER2] == UINT32_MAX)
		s.fin_wait_2_ns = TCP_NO_FIN_WAIT_2;
	else if (param[SCRIPT_LINGER2])
		s.fin_wait_2_ns = param[SCRIPT_LINGER2] * NS_PER_SEC;
	CHECK_EQ(tcp_set_settings(pcb, &s, peer.now_ns), 0);
}

static struct tcp_pcb *make_pcb(const struct script_setup *setup)
{
	struct tcp_pcb *pcb = tcp_new(peer.table);

	CHECK(pcb != NULL);
	choose_settings(pcb, setup->param);
	CHECK_EQ(tcp_bind(pcb, &peer.key.local, peer.key.local_port), 0);
	return pcb;
}

/* As a send with MSG_FASTOPEN that does not wait: it takes the bytes if they leave. */
static void open_fast(const struct script_setup *setup)
{
	struct tcp_pcb *pcb = make_pcb(setup);
	__be16 port = htobe16((uint16_t)(be16toh(peer.key.remote_port) +
					 setup->fast_port));
	bool is_sent = setup->param[SCRIPT_FASTOPEN_NO_COOKIE] ||
		       tcp_knows_cookie(peer.table, &peer.key.local,
					&peer.key.remote, peer.now_ns);
	struct pkt *pkt = is_sent ? pkt_alloc(&peer.pool) : NULL;

	if (pkt)
		memset(pkt_append(pkt, setup->fast_len), 'f', setup->fast_len);
	CHECK_EQ(tcp_connect_fast(pcb, &peer.key.remote, port, &peer.path, pkt,
				  peer.now_ns), 0);
	peer.pcb = pcb;
}

static void engine_open(const struct script_setup *setup)
{
	struct tcp_pcb *pcb;

	poll_cnt = poll_size = 0;
	peer_defaults();
	peer.is_ipv6 = setup->is_ipv6;
	choose_params(setup);
	peer_setup();
	if (setup->is_fast) {
		open_fast(setup);
		return;
	}
	pcb = make_pcb(setup);
	if (setup->is_passive) {
		CHECK_EQ(tcp_listen(pcb, or_default(setup->param[SCRIPT_BACKLOG],
						    4)), 0);
		peer.listener = pcb;
	} else {
		CHECK_EQ(tcp_connect(pcb, &peer.key.remote,
				     peer.key.remote_port, &peer.path,
				     peer.now_ns), 0);
		peer.pcb = pcb;
	}
}

/* Bytes in place of the options. */
static struct tcp_in make_raw(const struct script_segment *s)
{
	const struct tcp_options none = { 0 };
	struct tcp_in in = peer_make_options((uint8_t)s->flags, P + s->seq,
					     U + s->ack,
					     (uint16_t)s->win,
					     s->raw_len + s->len, &none);
	struct wire_tcp *header = (void *)in.pkt->data;

	memcpy(header + 1, s->raw, s->raw_len);
	header->offset_ae = (uint8_t)((sizeof(*header) + s->raw_len) << 2);
	return in;
}

static struct tcp_in make_plain(const struct script_segment *s)
{
	struct tcp_options options = s->options;

	for (uint8_t i = 0; i < options.sack_cnt; i++) {
		options.sack[i].start += U;
		options.sack[i].end += U;
	}
	return peer_make_options((uint8_t)s->flags, P + s->seq, U + s->ack,
				 (uint16_t)s->win, s->len, &options);
}

static struct tcp_in make(const struct script_segment *s)
{
	struct tcp_in in = s->raw_len ? make_raw(s) : make_plain(s);
	struct wire_tcp *header = (void *)in.pkt->data;

	header->urgent = htobe16((uint16_t)s->urg);
	header->offset_ae |= s->flags & SCRIPT_AE ? 1 : 0;
	return in;
}

static void engine_send(const struct script_segment *s)
{
	__be16 port = peer.key.remote_port;
	struct tcp_in in;

	/* the way there and back takes a moment */
	if (!poll_cnt)
		peer_advance_ms(1);
	peer.ecn = s->ecn;
	peer.key.remote_port = htobe16((uint16_t)(be16toh(port) + s->port));
	in = make(s);
	peer.key.remote_port = port;
	if (!poll_size) {
		tcp_input(peer.table, &in, peer.now_ns);
		return;
	}
	poll[poll_cnt++] = in;
	if (poll_cnt == poll_size) {
		tcp_input_batch(peer.table, poll, poll_cnt, peer.now_ns);
		poll_cnt = poll_size = 0;
	}
}

static void engine_icmp(const struct script_icmp *icmp)
{
	const struct tcp_icmp message = {
		.key = peer.key,
		.seq = U + icmp->seq,
		.quoted_len = icmp->len,
		.error = icmp->is_too_big ? -EMSGSIZE : -EHOSTUNREACH,
		.mtu = icmp->mtu,
	};

	peer_advance_ms(1);
	tcp_icmp_in(peer.table, &message, peer.now_ns);
}

/* Until a timer is due, of so many milliseconds that are left. */
static uint64_t ms_of_silence(uint64_t left_ms)
{
	uint64_t at_ns = timer_wheel_next_ns(&peer.wheel);
	uint64_t ms = at_ns > peer.now_ns ? (at_ns - peer.now_ns) / NS_PER_MS : 0;

	return MIN(ms + 1, left_ms);
}

static bool engine_next(uint32_t within_ms, struct script_segment *s,
			uint32_t *after_ms_out)
{
	uint64_t since_ns = peer.now_ns, until_ns = since_ns + within_ms * NS_PER_MS;
	const struct peer_sent *sent;

	while (peer.looked_at == peer.sent_cnt) {
		if (peer.now_ns >= until_ns)
			return false;
		peer_advance_ms(ms_of_silence((until_ns - peer.now_ns) / NS_PER_MS));
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
	s->port = sent->to_port - be16toh(peer.key.remote_port);
	s->ecn = sent->ecn;
	s->urg = sent->urgent;
	s->options = sent->options;
	for (uint8_t i = 0; i < s->options.sack_cnt; i++) {
		s->options.sack[i].start -= P;
		s->options.sack[i].end -= P;
	}
	return true;
}

/* In pieces that fit a buffer, sent when all are there. */
static void write_all(uint32_t len, unsigned flags)
{
	while (len) {
		struct pkt *pkt = pkt_alloc(&peer.pool);
		uint32_t piece = MIN(len, tcp_mss(peer.pcb));

		memset(pkt_append(pkt, piece), 'y', piece);
		len -= piece;
		CHECK_EQ(tcp_write_with(peer.pcb, pkt, len ? TCP_WRITE_MORE : flags), 0);
	}
	tcp_output(peer.pcb, peer.now_ns);
}

/* What it is told is forgotten: only segments count here. */
static void move(void)
{
	size_t size = tcp_export_size(peer.pcb);
	uint8_t *bytes = malloc(size);

	CHECK(size && bytes);
	CHECK_EQ(tcp_export(peer.pcb, bytes, size, peer.now_ns), 0);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	free(bytes);
}

static void engine_act(enum script_act act, uint32_t value)
{
	switch (act) {
	case SCRIPT_WRITE:
		write_all(value, 0);
		break;
	case SCRIPT_URGENT:
		write_all(value, TCP_WRITE_URGENT);
		break;
	case SCRIPT_MORE:
		write_all(value, TCP_WRITE_MORE);
		break;
	case SCRIPT_EOR:
		write_all(value, TCP_WRITE_EOR);
		break;
	case SCRIPT_QUICKACK:
		tcp_set_quick_ack(peer.pcb, value, peer.now_ns);
		break;
	case SCRIPT_INLINE:
		tcp_set_oob_inline(peer.pcb, value);
		break;
	case SCRIPT_MARK:
		CHECK_EQ(tcp_at_mark(peer.pcb), value);
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
		CHECK_EQ(tcp_set_user_timeout(peer.pcb, value * NS_PER_MS), 0);
		break;
	case SCRIPT_KEEPALIVE:
		CHECK_EQ(tcp_set_keepalive(peer.pcb, true, value * NS_PER_SEC,
					   keep_interval_ns, 3, peer.now_ns),
			 0);
		break;
	case SCRIPT_MOVE:
		move();
		break;
	case SCRIPT_TOGETHER:
		CHECK(value <= TOGETHER_MAX);
		poll_size = value;
		break;
	}
}

static int engine_error(void)
{
	return tcp_error(peer.pcb);
}

static int engine_oob(void)
{
	uint8_t byte;

	return tcp_take_urgent(peer.pcb, &byte, false);
}

static const struct script_target engine = {
	.open = engine_open,
	.open_again = open_fast,
	.send = engine_send,
	.icmp = engine_icmp,
	.next = engine_next,
	.act = engine_act,
	.error = engine_error,
	.oob = engine_oob,
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
#define SCRIPT(name) TEST(name) { run(#name); }
#include "tests/engine/scripts.def"
