/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The simple endpoint of reference.h. Positions are offsets in the streams, of
 * which FIN is one more. */
#include "tests/engine/reference.h"

#include <stdlib.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tcp/tcp_options.h"
#include "tests/engine/sim.h"
#include "tests/support/test.h"

#define TICK_NS (20 * NS_PER_MS)
#define RESEND_NS (400 * NS_PER_MS)

enum { MSS = 1000, IN_FLIGHT = 6, SCALE = 4 };

enum state {
	CLOSED,
	SYN_SENT,
	SYN_RCVD,
	OPEN,
};

struct reference {
	struct sim *sim;
	struct sim_host *host;
	struct reference_manners manners;
	struct rand rand;
	enum state state;
	__be16 port, peer_port;
	uint8_t in_mark, out_mark;
	uint64_t next_tick_ns;
	uint64_t silent_until_ns;
	bool owes_ack;

	/* receiving */
	uint32_t irs;
	uint64_t expected;
	uint8_t *has; /* a byte for each position */
	uint64_t next;
	/* the farthest position ever granted */
	uint64_t granted;
	bool is_closed_window;
	uint64_t fin_at; /* UINT64_MAX: not known yet */
	bool has_sack, has_ts;
	uint32_t ts_recent;

	/* sending */
	uint32_t iss;
	uint64_t to_send;
	uint64_t acked;
	uint64_t sent;
	uint64_t sent_most;
	uint64_t window;
	uint8_t window_scale;
	uint64_t resend_ns;
};

#define REF_CHECK(ref, cond)                                              \
	do {                                                              \
		if (!(cond))                                              \
			FAIL("seed %" PRIu64 ": the peer sees: not so: %s", \
			     (ref)->sim->seed, #cond);                    \
	} while (0)

static bool wants(struct reference *ref, uint32_t ppm)
{
	return rand_chance(&ref->rand, ppm);
}

struct reference *reference_create(struct sim *sim, int index,
				   const struct reference_manners *manners,
				   uint64_t to_send, uint64_t expected)
{
	struct reference *ref = calloc(1, sizeof(*ref));

	CHECK(ref != NULL);
	ref->sim = sim;
	ref->host = &sim->host[index];
	ref->host->reference = ref;
	ref->manners = *manners;
	rand_init(&ref->rand, rand_u64(&sim->rand));
	ref->port = htobe16(index ? 80 : 10000);
	ref->peer_port = htobe16(index ? 10000 : 80);
	/* as the simulator marks the streams of its own ends */
	ref->in_mark = (uint8_t)(2 * 10000 + index);
	ref->out_mark = (uint8_t)(2 * 10000 + !index);
	ref->iss = rand_u32(&ref->rand);
	ref->to_send = to_send;
	ref->expected = expected;
	ref->has = calloc(1, expected + 1);
	CHECK(ref->has != NULL);
	ref->fin_at = UINT64_MAX;
	ref->state = index ? CLOSED : SYN_SENT;
	ref->next_tick_ns = sim->now_ns;
	return ref;
}

void reference_destroy(struct reference *ref)
{
	ref->host->reference = NULL;
	free(ref->has);
	free(ref);
}

bool reference_is_done(const struct reference *ref)
{
	return ref->next == ref->expected + 1 &&
	       ref->acked == ref->to_send + 1;
}

uint64_t reference_received(const struct reference *ref)
{
	return MIN(ref->next, ref->expected);
}

/* ---- out ---- */

static void send_bytes(struct reference *ref, struct wire_tcp *header,
		       size_t len)
{
	struct wire_ip ip = {
		.src = ref->host->addr,
		.dst = ref->host->peer->addr,
		.proto = WIRE_PROTO_TCP,
		.ttl = 64,
		.payload_len = (uint16_t)len,
	};
	uint8_t packet[2048];
	size_t ip_len = wire_build_ip(packet, &ip, 0);
	uint32_t sum = wire_pseudo_sum(&ip.src, &ip.dst, WIRE_PROTO_TCP,
				       (uint32_t)len);

	header->check = csum_fold(csum_partial(header, len, sum));
	memcpy(packet + ip_len, header, len);
	sim_send_packet(ref->host, packet, ip_len + len);
}

/* The runs of bytes above `next`, the first ones. */
static void find_blocks(const struct reference *ref, struct tcp_options *o)
{
	uint64_t at = ref->next;

	while (at < ref->expected && o->sack_cnt < 3) {
		uint64_t end;

		while (at < ref->expected && !ref->has[at])
			at++;
		for (end = at; end < ref->expected && ref->has[end];)
			end++;
		if (end > at)
			o->sack[o->sack_cnt++] = (struct tcp_sack_block){
				ref->irs + 1 + (uint32_t)at,
				ref->irs + 1 + (uint32_t)end,
			};
		at = end;
	}
}

static uint64_t window_to_grant(struct reference *ref)
{
	uint64_t window = ref->manners.window;

	if (wants(ref, ref->manners.shrink_ppm))
		ref->is_closed_window = rand_below(&ref->rand, 2);
	if (ref->is_closed_window)
		return 0;
	if (wants(ref, ref->manners.shrink_ppm))
		window /= 1 + rand_below(&ref->rand, 8);
	return window;
}

/* A segment with `len` bytes of the stream from `at` on, acknowledging `next`. */
static void send_segment(struct reference *ref, uint8_t flags, uint64_t at,
			 uint32_t len, uint64_t next)
{
	uint8_t bytes[60 + MSS];
	struct wire_tcp *header = (void *)bytes;
	struct tcp_options o = { .has_ts = ref->has_ts };
	uint64_t window = window_to_grant(ref) >> SCALE;
	size_t header_len;

	o.ts_val = (uint32_t)(ref->sim->now_ns / NS_PER_MS);
	o.ts_ecr = ref->ts_recent;
	if (ref->has_sack)
		find_blocks(ref, &o);
	header_len = 20 + tcp_options_build(bytes + 20, &o);
	*header = (struct wire_tcp){
		.src_port = ref->port,
		.dst_port = ref->peer_port,
		.seq = htobe32(ref->iss + 1 + (uint32_t)at),
		.ack = htobe32(ref->irs + 1 + (uint32_t)next),
		.offset_ae = (uint8_t)(header_len << 2),
		.flags = flags | WIRE_TCP_ACK,
		.window = htobe16((uint16_t)MIN(window, UINT64_C(65535))),
	};
	ref->granted = MAX(ref->granted,
			   next + (be16toh(header->window) << SCALE));
	for (uint32_t i = 0; i < len; i++)
		bytes[header_len + i] = sim_stream_byte(ref->out_mark, at + i);
	send_bytes(ref, header, header_len + len);
}

static void send_syn(struct reference *ref)
{
	uint8_t bytes[60];
	struct wire_tcp *header = (void *)bytes;
	const struct reference_manners *m = &ref->manners;
	struct tcp_options o = {
		.mss = m->mss ? m->mss : 1460,
		.has_scale = true,
		.scale = SCALE,
		.has_sack_ok = !m->without_sack,
		.has_ts = !m->without_ts,
		.ts_val = (uint32_t)(ref->sim->now_ns / NS_PER_MS),
		.ts_ecr = ref->ts_recent,
	};
	size_t len = 20 + tcp_options_build(bytes + 20, &o);
	bool is_answer = ref->state == SYN_RCVD;

	*header = (struct wire_tcp){
		.src_port = ref->port,
		.dst_port = ref->peer_port,
		.seq = htobe32(ref->iss),
		.ack = is_answer ? htobe32(ref->irs + 1) : 0,
		.offset_ae = (uint8_t)(len << 2),
		.flags = is_answer ? WIRE_TCP_SYN | WIRE_TCP_ACK : WIRE_TCP_SYN,
		.window = htobe16(1000),
	};
	ref->granted = MAX(ref->granted, UINT64_C(1000));
	send_bytes(ref, header, len);
}

static void acknowledge(struct reference *ref)
{
	unsigned times = 1;

	ref->owes_ack = false;
	if (wants(ref, ref->manners.repeat_ppm))
		times += (unsigned)rand_below(&ref->rand, 5);
	while (times--)
		send_segment(ref, 0, ref->sent, 0, ref->next);
}

/* Nothing of this may change a stream: numbers far away, an acknowledgment of what
 * was never sent, blocks that cannot be, a checksum that is wrong. */
static void send_garbage(struct reference *ref)
{
	uint8_t bytes[120];
	struct wire_tcp *header = (void *)bytes;
	unsigned kind = (unsigned)rand_below(&ref->rand, 4);
	uint32_t far = 1u << 30;
	size_t len = 40 + rand_below(&ref->rand, 20) * 4;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand_u32(&ref->rand);
	*header = (struct wire_tcp){
		.src_port = ref->port,
		.dst_port = ref->peer_port,
		.seq = htobe32(ref->iss + 1 + (uint32_t)ref->sent),
		.ack = htobe32(ref->irs + 1 + (uint32_t)ref->next),
		.offset_ae = 10 << 4,
		.flags = WIRE_TCP_ACK,
	};
	if (kind == 0) {
		header->seq = htobe32(ref->iss + far + rand_u32(&ref->rand) % far);
		header->flags = (uint8_t)rand_u32(&ref->rand);
		/* where the connection may have ended, a SYN opens another */
		if (ref->next > ref->expected)
			header->flags &= (uint8_t)~WIRE_TCP_SYN;
	} else if (kind == 1) {
		header->ack = htobe32(ref->irs + far + rand_u32(&ref->rand) % far);
	} else if (kind == 2) {
		/* blocks anywhere, behind a time stamp that is not old */
		struct tcp_options o = { .has_ts = ref->has_ts, .sack_cnt = 3 };

		o.ts_val = (uint32_t)(ref->sim->now_ns / NS_PER_MS);
		for (int i = 0; i < 3; i++) {
			o.sack[i].start = ref->irs + rand_u32(&ref->rand) % far +
					  far;
			o.sack[i].end = o.sack[i].start +
					rand_u32(&ref->rand) % 3000;
		}
		len = 20 + tcp_options_build(bytes + 20, &o);
		header->offset_ae = (uint8_t)(len << 2);
		header->window = htobe16(100);
		ref->granted = MAX(ref->granted, ref->next + (100 << SCALE));
	} else {
		/* no header that fits */
		header->offset_ae = (uint8_t)(rand_below(&ref->rand, 5) << 4);
	}
	send_bytes(ref, header, len);
}

static void send_more(struct reference *ref)
{
	uint64_t limit = MIN(ref->acked + IN_FLIGHT * MSS,
			     ref->acked + ref->window);

	while (ref->sent < ref->to_send && ref->sent < limit) {
		uint64_t len = MIN(ref->to_send - ref->sent, limit - ref->sent);

		len = MIN(len, (uint64_t)MSS);
		send_segment(ref, 0, ref->sent, (uint32_t)len, ref->next);
		ref->sent += len;
	}
	if (ref->sent == ref->to_send) {
		send_segment(ref, WIRE_TCP_FIN, ref->sent, 0, ref->next);
		ref->sent++;
	}
	ref->sent_most = MAX(ref->sent_most, ref->sent);
}

/* ---- in ---- */

static void take_options(struct reference *ref, const struct tcp_options *o)
{
	ref->has_sack = o->has_sack_ok && !ref->manners.without_sack;
	ref->has_ts = o->has_ts && !ref->manners.without_ts;
	ref->window_scale = o->has_scale ? o->scale : 0;
	ref->ts_recent = o->ts_val;
}

static void take_ack(struct reference *ref, const struct wire_tcp *header)
{
	uint32_t off = be32toh(header->ack) - (ref->iss + 1) -
		       (uint32_t)ref->acked;

	/* an older one */
	if ((int32_t)off < 0)
		return;
	REF_CHECK(ref, ref->acked + off <= ref->sent_most);
	ref->window = (uint64_t)be16toh(header->window) << ref->window_scale;
	if (!off)
		return;
	ref->acked += off;
	ref->sent = MAX(ref->sent, ref->acked);
	ref->resend_ns = ref->sim->now_ns + RESEND_NS;
}

/* Position of a sequence number near what is expected. */
static int64_t position(const struct reference *ref, uint32_t seq)
{
	int32_t off = (int32_t)(seq - (ref->irs + 1 + (uint32_t)ref->next));

	return (int64_t)ref->next + off;
}

static void forget_some(struct reference *ref)
{
	if (ref->next < ref->expected)
		memset(ref->has + ref->next, 0, ref->expected - ref->next);
}

static void take_bytes(struct reference *ref, const uint8_t *data, uint32_t len,
		       int64_t at)
{
	for (uint32_t i = 0; i < len; i++, at++) {
		if (at < 0)
			continue;
		REF_CHECK(ref, (uint64_t)at < ref->expected);
		REF_CHECK(ref, data[i] == sim_stream_byte(ref->in_mark,
							  (uint64_t)at));
		ref->has[at] = 1;
	}
	while (ref->next < ref->expected && ref->has[ref->next])
		ref->next++;
}

static void take_data(struct reference *ref, const struct wire_tcp *header,
		      const uint8_t *data, uint32_t len)
{
	int64_t at = position(ref, be32toh(header->seq));
	uint64_t before = ref->next, pieces = 1;

	if (!len && !(header->flags & WIRE_TCP_FIN)) {
		/* a probe below what is expected wants an answer */
		ref->owes_ack |= at < (int64_t)ref->next;
		return;
	}
	REF_CHECK(ref, at + (int64_t)len <= (int64_t)ref->granted);
	take_bytes(ref, data, len, at);
	if (header->flags & WIRE_TCP_FIN)
		ref->fin_at = (uint64_t)(at + len);
	if (ref->next == ref->fin_at) {
		REF_CHECK(ref, ref->next == ref->expected);
		ref->next++;
	}
	if (wants(ref, ref->manners.renege_ppm))
		forget_some(ref);
	ref->owes_ack = true;
	if (wants(ref, ref->manners.stretch_ppm))
		return;
	if (wants(ref, ref->manners.split_ppm))
		pieces += rand_below(&ref->rand, 4);
	for (uint64_t i = 1; i < pieces && ref->next > before; i++)
		send_segment(ref, 0, ref->sent, 0,
			     before + (ref->next - before) * i / pieces);
	acknowledge(ref);
}

static void take_syn(struct reference *ref, const struct wire_tcp *header,
		     const struct tcp_options *o)
{
	bool has_ack = header->flags & WIRE_TCP_ACK;

	if (ref->state == SYN_SENT && has_ack) {
		REF_CHECK(ref, be32toh(header->ack) == ref->iss + 1);
		ref->irs = be32toh(header->seq);
		take_options(ref, o);
		ref->state = OPEN;
		ref->window = be16toh(header->window);
	} else if (!has_ack && ref->state == CLOSED) {
		ref->irs = be32toh(header->seq);
		take_options(ref, o);
		ref->state = SYN_RCVD;
		ref->window = be16toh(header->window);
	}
	if (ref->state == SYN_RCVD)
		send_syn(ref);
	else if (ref->state == OPEN)
		acknowledge(ref);
}

static bool is_dead(const struct reference *ref)
{
	return ref->manners.dies_after &&
	       ref->next >= ref->manners.dies_after;
}

static void take_segment(struct reference *ref, const uint8_t *segment,
			 size_t len)
{
	const struct wire_tcp *header = (const void *)segment;
	uint32_t header_len = 4u * (header->offset_ae >> 4);
	struct tcp_options o;

	REF_CHECK(ref, header_len >= 20 && header_len <= len);
	tcp_options_parse(segment + 20, header_len - 20,
			  header->flags & WIRE_TCP_SYN, &o);
	/* what arrives late at one that has closed is none of its business */
	REF_CHECK(ref, !(header->flags & WIRE_TCP_RST) ||
			       reference_is_done(ref) ||
			       ref->state <= SYN_RCVD);
	if (header->flags & (WIRE_TCP_SYN | WIRE_TCP_RST)) {
		if (header->flags & WIRE_TCP_SYN)
			take_syn(ref, header, &o);
		return;
	}
	if (ref->state == SYN_RCVD &&
	    be32toh(header->ack) == ref->iss + 1 + (uint32_t)ref->acked)
		ref->state = OPEN;
	if (ref->state != OPEN)
		return;
	if (o.has_ts && (int32_t)(o.ts_val - ref->ts_recent) > 0)
		ref->ts_recent = o.ts_val;
	take_ack(ref, header);
	take_data(ref, header, segment + header_len,
		  (uint32_t)(len - header_len));
	send_more(ref);
}

void reference_input(struct reference *ref, const uint8_t *packet, size_t len)
{
	struct wire_ip ip;
	const uint8_t *segment;
	uint32_t sum;

	if (wire_parse_ip(packet, len, &ip) || ip.proto != WIRE_PROTO_TCP ||
	    ip.payload_len < 20 || !ip_addr_eq(&ip.dst, &ref->host->addr) ||
	    ref->sim->now_ns < ref->silent_until_ns || is_dead(ref))
		return;
	segment = packet + ip.header_len;
	sum = wire_pseudo_sum(&ip.src, &ip.dst, WIRE_PROTO_TCP, ip.payload_len);
	if (csum_fold(csum_partial(segment, ip.payload_len, sum)))
		return;
	if (wants(ref, ref->manners.garbage_ppm) && ref->state == OPEN)
		send_garbage(ref);
	if (wants(ref, ref->manners.silence_ppm))
		ref->silent_until_ns = ref->sim->now_ns +
				       rand_below(&ref->rand, 2 * NS_PER_SEC);
	take_segment(ref, segment, ip.payload_len);
}

/* ---- time ---- */

void reference_tick(struct reference *ref)
{
	uint64_t now_ns = ref->sim->now_ns;

	if (now_ns < ref->next_tick_ns)
		return;
	ref->next_tick_ns = now_ns + TICK_NS;
	if (now_ns < ref->silent_until_ns || is_dead(ref))
		return;
	if (ref->state == SYN_SENT && now_ns >= ref->resend_ns) {
		ref->resend_ns = now_ns + RESEND_NS;
		send_syn(ref);
	}
	if (ref->state != OPEN)
		return;
	if (ref->is_closed_window && rand_below(&ref->rand, 4) == 0) {
		ref->is_closed_window = false;
		ref->owes_ack = true;
	}
	if (ref->owes_ack)
		acknowledge(ref);
	if (ref->acked < ref->sent && now_ns >= ref->resend_ns) {
		ref->resend_ns = now_ns + RESEND_NS;
		ref->sent = ref->acked;
	}
	send_more(ref);
}

uint64_t reference_next_ns(const struct reference *ref)
{
	return ref->next_tick_ns;
}
