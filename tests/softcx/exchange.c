/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two of these, one at each end of a cable, send each other frames of random
 * size and check every byte of what arrives: none may be corrupt, lost, doubled,
 * out of order or from elsewhere. What is outstanding is kept within the peer's
 * receive queue by acknowledgements inside the frames, so nothing is ever sent
 * twice. Over plain verbs, or over the queues themselves (mlx5dv). Run by
 * exchange.sh; prints one line of sums.
 *
 * With -F the card has been told to lose, double, damage or delay frames
 * (SOFTCX_IMPAIR). Every frame has a number then, nothing is repeated, and what
 * is missing, twice, damaged or late must be what the card says it did.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/rand.h"
#include "direct.h"
#include "rig.h"
#include "tests/support/test.h"

enum {
	MAX_QPS = 8,
	N_RECV = 1024,
	N_SEND = 256,
	WINDOW = 256,      /* data frames not yet acknowledged */
	ACK_EVERY = 64,
	SIGNAL_EVERY = 16,
	MIN_FRAME = 42 + 56,
	MAX_FRAME = 1514,
	MAX_INLINE_FRAME = 400,
	STALL_MS = 10000,
	/* with -F */
	PROBE_MS = 20,
	LINGER_MS = 500,
	MAX_NUMBERS = 1 << 20, /* beside data and its acknowledgements */
};

/* PROBE and ANSWER with -F alone. */
enum kind { DATA, ACK, FIN, PROBE, ANSWER };

/* Behind the UDP header; little-endian, both ends are one machine. */
struct message {
	uint64_t hash;    /* of all that follows, to the end of the frame */
	uint32_t magic;
	uint32_t kind;
	uint64_t seq;     /* of this data frame; of the next in a PROBE, and in
			     the ANSWER to it */
	uint64_t n_received; /* data frames the sender of this got */
	uint64_t number;  /* of this frame, whatever its kind */
	uint32_t len;     /* of the frame */
	uint16_t stream;
	uint16_t is_done; /* its sender has sent all, and knows what became of it */
};

static const uint32_t magic = 0x50f7c6a3;

static struct options {
	const char *dev;
	uint64_t n_frames;  /* in each direction, of each queue pair */
	unsigned int n_qps;
	uint16_t port;
	uint8_t peer_mac[6];
	uint64_t seed;
	bool is_direct;
	bool is_inline;
	bool has_csum;
	bool has_events;
	bool has_faults;
} opt = { .dev = "mlx5_0", .n_frames = 1000, .n_qps = 1, .port = 6000 };

struct stream {
	struct rig rig;
	struct direct direct;
	struct ibv_flow *rule;
	struct rand rand;
	struct rig_frame header;
	struct rig_frame peer_header;
	uint32_t number;
	/* Send slots are used in a ring; those before the tail are free. */
	uint64_t slot_head, slot_tail;
	uint64_t slot_of[65536]; /* direct: by entry, the head behind it */
	uint64_t n_sent;     /* data frames */
	uint64_t n_acked;
	uint64_t n_received;
	uint64_t n_told;     /* n_received as last told to the peer */
	uint64_t n_corrupt, n_stray, n_disorder, n_bad_csum;
	bool fin_sent, fin_received;
	/* With faults: what was seen of the peer's frames, by their numbers. */
	uint8_t *seen;
	uint64_t seen_size;
	uint64_t n_unique, n_twice, n_behind;
	uint64_t highest;    /* number */
	uint64_t heard_ns;   /* when the last frame came */
	uint64_t probed_ns;
	uint64_t asked_seq;  /* of the probe to answer, or 0 */
	bool is_peer_done;
};

static struct stream streams[MAX_QPS];

static void fill(struct stream *s, uint8_t *frame, enum kind kind, uint32_t len)
{
	struct message m = {
		.magic = magic,
		.kind = kind,
		.seq = kind == ANSWER ? s->asked_seq : s->n_sent,
		.n_received = s->n_received,
		.number = s->slot_head,
		.len = len,
		.stream = (uint16_t)s->number,
		.is_done = s->n_acked == opt.n_frames,
	};
	uint8_t payload[MAX_FRAME];
	size_t n = len - 42;

	memcpy(payload, &m, sizeof(m));
	for (size_t i = sizeof(m); i < n; i += 8) {
		uint64_t word = rand_u64(&s->rand);

		memcpy(payload + i, &word, MIN((size_t)8, n - i));
	}
	m.hash = hash_bytes(magic, payload + 8, n - 8);
	memcpy(payload, &m.hash, sizeof(m.hash));
	rig_build(frame, &s->header, payload, (uint32_t)n);
	s->n_told = s->n_received;
}

static void post_direct(struct stream *s, uint8_t *frame, uint32_t len,
			bool is_signaled)
{
	bool is_inline = opt.is_inline && len <= MAX_INLINE_FRAME;
	struct direct_entry e;

	direct_build(&s->direct, &e, frame, len, s->rig.mr->lkey,
		     (is_signaled ? DIRECT_SIGNALED : 0u) |
			     (opt.has_csum ? DIRECT_CSUM : 0u) |
			     (is_inline ? DIRECT_INLINE : 0u));
	s->slot_of[e.index] = s->slot_head + 1;
	direct_put(&s->direct, &e);
	direct_ring(&s->direct, &e, is_inline);
}

static void send_frame(struct stream *s, enum kind kind)
{
	uint32_t slot = (uint32_t)(s->slot_head % N_SEND);
	uint8_t *frame = rig_send_slot(&s->rig, slot);
	bool is_signaled = s->slot_head % SIGNAL_EVERY == SIGNAL_EVERY - 1 ||
			   kind == FIN;
	uint32_t len = MIN_FRAME;

	if (kind == DATA)
		len = (uint32_t)rand_between(&s->rand, MIN_FRAME, MAX_FRAME);
	fill(s, frame, kind, len);
	if (opt.is_direct)
		post_direct(s, frame, len, is_signaled);
	else
		rig_post_send(&s->rig, slot, len,
			      (is_signaled ? IBV_SEND_SIGNALED : 0u) |
				      (opt.has_csum ? IBV_SEND_IP_CSUM : 0u) |
				      (opt.is_inline &&
						       len <= MAX_INLINE_FRAME ?
					       IBV_SEND_INLINE : 0u));
	s->slot_head++;
}

static bool reap_one(struct stream *s)
{
	struct direct_wc dwc;
	struct ibv_wc wc;

	if (opt.is_direct) {
		if (!direct_poll_send(&s->direct, &dwc))
			return false;
		CHECK_EQ(dwc.opcode, MLX5_CQE_REQ);
		s->slot_tail = s->slot_of[dwc.index];
		return true;
	}
	if (ibv_poll_cq(s->rig.send_cq, 1, &wc) != 1)
		return false;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	/* The slots up to the one that was signaled. */
	while (s->slot_tail % N_SEND != wc.wr_id)
		s->slot_tail++;
	s->slot_tail++;
	return true;
}

/* The headers as the peer made them; checksums are the cards' business. */
static bool has_good_headers(const struct stream *s, const uint8_t *frame,
			     uint32_t len)
{
	enum { IP_CSUM = 24, UDP_CSUM = 40, CSUM = 2 };
	uint8_t expected[MAX_FRAME];

	rig_build(expected, &s->peer_header, frame + 42, len - 42);
	if (opt.has_csum) {
		memcpy(expected + IP_CSUM, frame + IP_CSUM, CSUM);
		memcpy(expected + UDP_CSUM, frame + UDP_CSUM, CSUM);
	}
	return memcmp(expected, frame, 42) == 0;
}

/* A whole frame where some are lost, doubled and late. An acknowledgement names
 * the highest; the answer to a probe, all that was sent before the probe. */
static void note_numbered(struct stream *s, const struct message *m)
{
	if (m->number >= s->seen_size) {
		s->n_stray++;
		return;
	}
	s->n_twice += s->seen[m->number];
	s->n_unique += !s->seen[m->number];
	s->n_behind += !s->seen[m->number] && m->number < s->highest;
	s->seen[m->number] = 1;
	s->highest = MAX(s->highest, m->number);
	s->n_acked = MAX(s->n_acked, m->n_received);
	s->is_peer_done |= m->is_done;
	if (m->kind == DATA)
		s->n_received = MAX(s->n_received, m->seq + 1);
	else if (m->kind == PROBE)
		s->asked_seq = MAX(s->asked_seq, m->seq);
	else if (m->kind == ANSWER)
		s->n_acked = MAX(s->n_acked, m->seq);
}

static void check_frame(struct stream *s, const uint8_t *frame, uint32_t len,
			bool csum_is_ok)
{
	struct message m;

	s->heard_ns = rig_now_ns();
	if (len < MIN_FRAME) {
		s->n_stray++;
		return;
	}
	memcpy(&m, frame + 42, sizeof(m));
	if (!opt.has_faults && (m.magic != magic || m.stream != s->number)) {
		s->n_stray++;
		return;
	}
	if (m.len != len || len > MAX_FRAME ||
	    !has_good_headers(s, frame, len) ||
	    m.hash != hash_bytes(magic, frame + 50, len - 50)) {
		s->n_corrupt++;
		return;
	}
	if (opt.has_faults) {
		note_numbered(s, &m);
		return;
	}
	s->n_bad_csum += opt.has_csum && !csum_is_ok;
	s->n_acked = MAX(s->n_acked, m.n_received);
	if (m.kind == FIN)
		s->fin_received = true;
	if (m.kind != DATA)
		return;
	s->n_disorder += m.seq != s->n_received;
	s->n_received++;
}

static bool receive_one(struct stream *s)
{
	struct direct_wc dwc;
	uint32_t slot, len;
	struct ibv_wc wc;
	bool csum_is_ok;
	uint8_t *at;

	if (opt.is_direct) {
		if (!direct_poll_recv(&s->direct, &dwc))
			return false;
		CHECK_EQ(dwc.opcode, MLX5_CQE_RESP_SEND);
		slot = dwc.index % N_RECV;
		len = dwc.len;
		csum_is_ok = dwc.csum_is_ok;
	} else {
		if (ibv_poll_cq(s->rig.recv_cq, 1, &wc) != 1)
			return false;
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		slot = (uint32_t)wc.wr_id;
		len = wc.byte_len;
		csum_is_ok = wc.wc_flags & IBV_WC_IP_CSUM_OK;
	}
	at = s->rig.slots + (size_t)slot * RIG_SLOT;
	check_frame(s, at, len, csum_is_ok);
	if (opt.is_direct)
		direct_post_recv(&s->direct, at, RIG_SLOT, s->rig.mr->lkey);
	else
		rig_post_recv(&s->rig, slot);
	return true;
}

static bool has_slot(const struct stream *s)
{
	return s->slot_head - s->slot_tail < N_SEND;
}

/* One round of one stream; whether anything was done. */
static bool turn(struct stream *s)
{
	bool is_busy = false;

	while (reap_one(s))
		is_busy = true;
	for (int i = 0; i < 64 && receive_one(s); i++)
		is_busy = true;
	for (int i = 0; i < 64 && has_slot(s) && s->n_sent < opt.n_frames &&
			s->n_sent - s->n_acked < WINDOW; i++) {
		send_frame(s, DATA);
		s->n_sent++;
		is_busy = true;
	}
	if (has_slot(s) && (s->n_received - s->n_told >= ACK_EVERY ||
			    (s->n_received > s->n_told &&
			     s->n_received == opt.n_frames))) {
		send_frame(s, ACK);
		is_busy = true;
	}
	if (has_slot(s) && !s->fin_sent && !opt.has_faults && s->n_acked == opt.n_frames &&
	    s->n_received == opt.n_frames) {
		send_frame(s, FIN);
		s->fin_sent = true;
		is_busy = true;
	}
	return is_busy;
}

/* One round where frames are lost, acknowledgements as well: in silence the peer is
 * asked what it has. */
static void turn_faulty(struct stream *s, bool is_done)
{
	uint64_t now_ns;

	turn(s);
	if (s->asked_seq && has_slot(s)) {
		send_frame(s, ANSWER);
		s->asked_seq = 0;
	}
	now_ns = rig_now_ns();
	if (now_ns - MAX(s->heard_ns, s->probed_ns) > PROBE_MS * NS_PER_MS &&
	    has_slot(s) && !is_done) {
		send_frame(s, PROBE);
		s->probed_ns = now_ns;
	}
}

/* A queue pair that is destroyed takes along what it has not sent. */
static bool is_done(const struct stream *s)
{
	return s->fin_sent && s->fin_received && s->slot_tail == s->slot_head;
}

static void arm(struct stream *s)
{
	if (opt.is_direct) {
		direct_arm(&s->direct);
		return;
	}
	CHECK_EQ(ibv_req_notify_cq(s->rig.send_cq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(s->rig.recv_cq, 0), 0);
}

static void take_event(struct stream *s)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(ibv_get_cq_event(s->rig.chan, &cq, &context), 0);
	CHECK(context == &s->rig);
	ibv_ack_cq_events(cq, 1);
	if (cq == s->rig.send_cq)
		s->direct.send_sn++;
	else
		s->direct.recv_sn++;
}

/* Arm, look once more, sleep. Returns whether the look found something. */
static bool sleep_until_event(void)
{
	struct pollfd fds[MAX_QPS];
	bool is_busy = false;
	int n;

	for (unsigned int i = 0; i < opt.n_qps; i++)
		arm(&streams[i]);
	for (unsigned int i = 0; i < opt.n_qps; i++)
		is_busy |= turn(&streams[i]);
	for (unsigned int i = 0; i < opt.n_qps; i++)
		fds[i] = (struct pollfd){ .fd = streams[i].rig.chan->fd,
					  .events = POLLIN };
	n = poll(fds, opt.n_qps, is_busy ? 0 : STALL_MS);
	for (unsigned int i = 0; i < opt.n_qps; i++) {
		if (fds[i].revents & POLLIN)
			take_event(&streams[i]);
	}
	return is_busy || n > 0;
}

static void open_stream(unsigned int i)
{
	struct rig_params params = {
		.dev = opt.dev,
		.n_send = N_SEND,
		.n_recv = N_RECV,
		.max_inline = opt.is_inline ? MAX_INLINE_FRAME : 0,
		.has_channel = opt.has_events,
	};
	struct stream *s = &streams[i];
	struct rig_flow flow = {
		.proto = IPPROTO_UDP,
		.src_ip = 0x0a0900fe,
		.dst_ip = 0x0a0900fe,
		.src_port = (uint16_t)(opt.port + i),
		.dst_port = (uint16_t)(opt.port + i),
	};

	rig_open(&s->rig, &params);
	direct_init(&s->direct, &s->rig);
	s->direct.rq_pi = N_RECV;
	s->number = opt.port + i;
	rand_init(&s->rand, opt.seed + i);
	s->seen_size = 2 * opt.n_frames + MAX_NUMBERS;
	s->seen = calloc(s->seen_size, 1);
	CHECK(s->seen);
	memcpy(flow.dst_mac, s->rig.mac, 6);
	s->rule = rig_flow(&s->rig, &flow);
	s->header = (struct rig_frame){
		.proto = flow.proto,
		.src_ip = flow.src_ip,
		.dst_ip = flow.dst_ip,
		.src_port = flow.src_port,
		.dst_port = flow.dst_port,
	};
	memcpy(s->header.dst_mac, opt.peer_mac, 6);
	memcpy(s->header.src_mac, s->rig.mac, 6);
	s->peer_header = s->header;
	memcpy(s->peer_header.dst_mac, s->rig.mac, 6);
	memcpy(s->peer_header.src_mac, opt.peer_mac, 6);
}

static void close_stream(struct stream *s)
{
	CHECK_EQ(ibv_destroy_flow(s->rule), 0);
	rig_close(&s->rig);
	free(s->seen);
}

/* Until both ends are done; then a while for the peer to hear of it, and for the
 * last frames held back. */
static bool run_faulty(struct stream *s)
{
	uint64_t done_ns = 0;

	s->heard_ns = rig_now_ns();
	while (!done_ns || rig_now_ns() - done_ns < LINGER_MS * NS_PER_MS) {
		turn_faulty(s, done_ns);
		if (!done_ns && s->is_peer_done && s->n_acked == opt.n_frames)
			done_ns = rig_now_ns();
		if (rig_now_ns() - s->heard_ns > STALL_MS * NS_PER_MS)
			return false;
	}
	return true;
}

/* Exactly what was injected, of whichever kinds. */
static int report_faulty(const struct stream *s)
{
	struct softcx_stats stats = rig_stats(opt.dev);
	struct impair_counts did;
	uint64_t whole = s->n_unique + s->n_twice, damaged, missing;

	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, opt.dev, &did), 0);
	damaged = s->n_corrupt + stats.rx_no_rule;
	missing = did.sent - s->n_unique;
	printf("sent %" PRIu64 " wire %" PRIu64 " missing %" PRIu64
	       " twice %" PRIu64 " damaged %" PRIu64 " behind %" PRIu64
	       " injected: lost %" PRIu64 " duplicated %" PRIu64
	       " corrupted %" PRIu64 " held %" PRIu64 "\n",
	       s->slot_head, did.sent, missing, s->n_twice, damaged,
	       s->n_behind, did.lost, did.duplicated, did.corrupted, did.held);
	CHECK_EQ(stats.rx_no_buffer + stats.rx_overrun + s->n_stray, 0);
	CHECK_EQ(whole + damaged, did.delivered);
	CHECK_EQ(did.delivered, did.sent - did.lost + did.duplicated);
	CHECK(did.lost + did.duplicated + did.corrupted + did.held > 0);
	/* Where kinds mix, a damaged frame may also be doubled. */
	if (!did.corrupted) {
		CHECK_EQ(missing, did.lost);
		CHECK_EQ(s->n_twice, did.duplicated);
		CHECK_EQ(damaged, 0);
	} else if (!did.lost && !did.duplicated) {
		CHECK_EQ(missing, did.corrupted);
		CHECK_EQ(damaged, did.corrupted);
	}
	CHECK(s->n_behind <= did.held);
	CHECK(!did.held || s->n_behind > 0);
	return 0;
}

static int main_faulty(void)
{
	int ret;

	CHECK(run_faulty(&streams[0]));
	ret = report_faulty(&streams[0]);
	close_stream(&streams[0]);
	return ret;
}

/* False when nothing has come for a long time. */
static bool run(void)
{
	uint64_t quiet_since = rig_now_ns();

	for (;;) {
		unsigned int n_done = 0;
		bool is_busy = false;

		for (unsigned int i = 0; i < opt.n_qps; i++) {
			is_busy |= turn(&streams[i]);
			n_done += is_done(&streams[i]);
		}
		if (n_done == opt.n_qps)
			return true;
		if (!is_busy && opt.has_events)
			is_busy = sleep_until_event();
		if (is_busy)
			quiet_since = rig_now_ns();
		else if (rig_now_ns() - quiet_since > STALL_MS * 1000000ull)
			return false;
	}
}

static int report(bool is_complete)
{
	uint64_t sent = 0, received = 0, corrupt = 0, stray = 0, disorder = 0;
	uint64_t bad_csum = 0, lost;

	for (unsigned int i = 0; i < opt.n_qps; i++) {
		const struct stream *s = &streams[i];

		sent += s->n_sent;
		received += s->n_received;
		corrupt += s->n_corrupt;
		stray += s->n_stray;
		disorder += s->n_disorder;
		bad_csum += s->n_bad_csum;
	}
	lost = opt.n_qps * opt.n_frames - received;
	printf("sent %" PRIu64 " received %" PRIu64 " lost %" PRIu64
	       " corrupt %" PRIu64 " stray %" PRIu64 " disorder %" PRIu64
	       " bad_csum %" PRIu64 "\n",
	       sent, received, lost, corrupt, stray, disorder, bad_csum);
	return !is_complete || lost || corrupt || stray || disorder || bad_csum;
}

static void parse_mac(const char *text)
{
	uint8_t *m = opt.peer_mac;

	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &m[0], &m[1], &m[2],
		   &m[3], &m[4], &m[5]) != 6) {
		fprintf(stderr, "%s is no MAC\n", text);
		exit(2);
	}
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:n:q:p:m:s:DICEF")) != -1) {
		switch (c) {
		case 'd': opt.dev = optarg; break;
		case 'n': opt.n_frames = strtoull(optarg, NULL, 0); break;
		case 'q': opt.n_qps = (unsigned int)atoi(optarg); break;
		case 'p': opt.port = (uint16_t)atoi(optarg); break;
		case 'm': parse_mac(optarg); break;
		case 's': opt.seed = strtoull(optarg, NULL, 0); break;
		case 'D': opt.is_direct = true; break;
		case 'I': opt.is_inline = true; break;
		case 'C': opt.has_csum = true; break;
		case 'E': opt.has_events = true; break;
		case 'F': opt.has_faults = true; break;
		default: exit(2);
		}
	}
	if (!opt.n_qps || opt.n_qps > MAX_QPS) {
		fprintf(stderr, "-q: 1 to %d queue pairs\n", MAX_QPS);
		exit(2);
	}
	if (opt.has_faults && (opt.has_events || opt.n_qps > 1)) {
		fprintf(stderr, "-F: one queue pair, polled\n");
		exit(2);
	}
}

/* The checks of the rig end a test case; here the whole program is one. */
void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(1);
}

int main(int argc, char **argv)
{
	bool is_complete;

	parse(argc, argv);
	for (unsigned int i = 0; i < opt.n_qps; i++)
		open_stream(i);
	/* Whoever runs us says when the peer has its rules, too. */
	printf("ready\n");
	fflush(stdout);
	(void)!getchar();
	if (opt.has_faults)
		return main_faulty();
	is_complete = run();
	for (unsigned int i = 0; is_complete && i < opt.n_qps; i++)
		close_stream(&streams[i]);
	return report(is_complete);
}
