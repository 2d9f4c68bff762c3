/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The peer of peer.h. */
#include "tests/engine/peer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum { BUF_SIZE = 2048 };

struct peer peer;

void peer_emit(void *ctx UNUSED, struct tcp_pcb *pcb, const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;
	struct peer_sent *sent;

	if (peer.refuses) {
		tcp_emit_failed(peer.table, pcb, out->header, out->data_len, peer.now_ns);
		return;
	}
	sent = &peer.sent[peer.sent_cnt++ % PEER_SENT_MAX];
	sent->seq = be32toh(header->seq);
	sent->ack = be32toh(header->ack);
	sent->to_port = be16toh(header->dst_port);
	sent->len = out->data_len;
	sent->window = be16toh(header->window);
	sent->urgent = be16toh(header->urgent);
	sent->flags = (uint16_t)(header->flags | (header->offset_ae & 1) << 8);
	sent->ecn = out->ecn;
	sent->segment_size = out->segment_size;
	sent->data_cnt = out->data_cnt;
	sent->at_ns = peer.now_ns;
	tcp_options_parse(out->header + 20, out->header_len - 20,
			  header->flags & WIRE_TCP_SYN, &sent->options);
	if (header->flags & WIRE_TCP_SYN)
		peer.iss = sent->seq;
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	if (peer.allocs_left && !--peer.allocs_left)
		return NULL;
	peer.memory += size;
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size)
{
	peer.memory -= size;
	free(mem);
}

static bool path(void *ctx UNUSED, const struct flow_key *key UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = peer.path;
	return true;
}

static void stamped(void *ctx UNUSED, struct tcp_pcb *pcb, enum tcp_stamp what,
		    uint32_t byte, uint64_t now_ns)
{
	struct peer_stamp *stamp =
		&peer.stamps[peer.stamp_cnt++ % ARRAY_LEN(peer.stamps)];

	CHECK(pcb == peer.pcb);
	CHECK_EQ(now_ns, peer.now_ns);
	*stamp = (struct peer_stamp){ what, byte, peer.sent_cnt };
}

static bool stray(void *ctx UNUSED, const struct flow_key *key, uint8_t flags,
		  struct pkt *pkt)
{
	if (!peer.has_strays)
		return false;
	CHECK_EQ(key->remote_port, peer.key.remote_port);
	peer.stray_cnt++;
	peer.stray_flags = flags;
	peer.stray_len = pkt_total_len(pkt);
	pkt_put(pkt);
	return true;
}

static uint64_t no_room_ns(void *ctx UNUSED, const struct tcp_pcb *pcb UNUSED,
			   uint64_t now_ns)
{
	CHECK_EQ(now_ns, peer.now_ns);
	peer.look_cnt++;
	return peer.is_full ? NS_PER_MS / 4 : 0;
}

static const struct tcp_ops ops = { peer_emit, alloc, release, path, stamped, stray,
				    no_room_ns };

void peer_defaults(void)
{
	memset(&peer, 0, sizeof(peer));
	tcp_params_init(&peer.params);
	peer.params.quick_acks = 0;
	peer.path.mtu = 1500;
	peer.now_ns = 1000 * NS_PER_SEC;
}

void peer_setup(void)
{
	struct ip_addr v6 = { .byte = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };

	peer.params.secret.word[0] = test_seed;
	timer_wheel_init(&peer.wheel, peer.now_ns);
	pkt_pool_init(&peer.pool, 0);
	pkt_pool_init(&peer.borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&peer.pool, 512, BUF_SIZE), 0);
	CHECK_EQ(pkt_pool_grow(&peer.borrowers, 64, 0), 0);
	peer.table = tcp_table_create(&peer.params, &ops, NULL, &peer.wheel,
				   &peer.borrowers);
	CHECK(peer.table != NULL);
	peer.key.local = peer.is_ipv6 ? v6 : ip_addr_from_v4(
						     htobe32(0x0a000001));
	if (peer.is_loopback)
		peer.key.local = ip_addr_from_v4(htobe32(0x7f000001));
	peer.key.remote = peer.key.local;
	peer.key.remote.byte[15] = 2;
	peer.key.local_port = htobe16(1000);
	peer.key.remote_port = htobe16(2000);
}

void peer_teardown(void)
{
	struct tcp_event event;

	if (peer.pcb)
		tcp_abort(peer.pcb, peer.now_ns);
	if (peer.listener)
		tcp_close(peer.listener, peer.now_ns);
	while (tcp_event_next(peer.table, &event))
		;
	CHECK_EQ(tcp_pcb_cnt(peer.table), 0);
	tcp_table_destroy(peer.table);
	CHECK_EQ(peer.memory, 0);
	CHECK_EQ(timer_wheel_pending_cnt(&peer.wheel), 0);
	CHECK_EQ(pkt_pool_destroy(&peer.pool), 0);
	CHECK_EQ(pkt_pool_destroy(&peer.borrowers), 0);
}

struct tcp_in peer_make_options(uint8_t flags, uint32_t seq, uint32_t ack,
				uint16_t window, uint32_t len,
				const struct tcp_options *options)
{
	struct tcp_in in = { .pkt = pkt_alloc(&peer.pool), .key = peer.key,
			     .ecn = peer.ecn };
	struct wire_tcp *header;
	size_t header_len;

	CHECK(in.pkt != NULL);
	header = (void *)in.pkt->data;
	header_len = 20 + tcp_options_build(in.pkt->data + 20, options);
	*header = (struct wire_tcp){
		.src_port = peer.key.remote_port,
		.dst_port = peer.key.local_port,
		.seq = htobe32(seq),
		.ack = htobe32(ack),
		.offset_ae = (uint8_t)(header_len << 2),
		.flags = flags,
		.window = htobe16(window),
	};
	pkt_append(in.pkt, (uint32_t)header_len + len);
	memset(in.pkt->data + header_len, 'x', len);
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	return in;
}

void peer_send_options(uint8_t flags, uint32_t seq, uint32_t ack,
		       uint16_t window, uint32_t len,
		       const struct tcp_options *options)
{
	struct tcp_in in = peer_make_options(flags, seq, ack, window, len,
					     options);

	tcp_input(peer.table, &in, peer.now_ns);
}

struct tcp_in peer_make(uint8_t flags, uint32_t seq, uint32_t ack,
			uint32_t len)
{
	struct tcp_options options = { .has_ts = peer.ts != 0,
				       .ts_val = peer.ts };

	return peer_make_options(flags, seq, ack, 1000, len, &options);
}

void peer_send(uint8_t flags, uint32_t seq, uint32_t ack,
			 uint32_t len)
{
	struct tcp_in in = peer_make(flags, seq, ack, len);

	tcp_input(peer.table, &in, peer.now_ns);
}


/* The next segment the engine sent; fails if there is none. */
const struct peer_sent *peer_next(void)
{
	if (peer.looked_at == peer.sent_cnt)
		FAIL("nothing was sent");
	return &peer.sent[peer.looked_at++ % PEER_SENT_MAX];
}

void peer_expect_silence(void)
{
	if (peer.looked_at != peer.sent_cnt)
		FAIL("%u segments too many, flags %#x", peer.sent_cnt - peer.looked_at,
		     peer.sent[peer.looked_at % PEER_SENT_MAX].flags);
}

void peer_advance_ms(uint64_t ms)
{
	uint64_t until_ns = peer.now_ns + ms * NS_PER_MS;

	while (timer_wheel_next_ns(&peer.wheel) <= until_ns) {
		peer.now_ns = MAX(peer.now_ns, timer_wheel_next_ns(&peer.wheel));
		timer_wheel_advance(&peer.wheel, peer.now_ns);
	}
	peer.now_ns = until_ns;
	timer_wheel_advance(&peer.wheel, peer.now_ns);
}

const struct tcp_options peer_full_options = {
	.mss = 1460, .has_scale = true, .scale = 2, .has_sack_ok = true,
};

const struct peer_sent *peer_syn(void)
{
	const struct peer_sent *syn;

	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK(peer.pcb != NULL);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), 0);
	syn = peer_next();
	CHECK_EQ(syn->flags & (S | A), S);
	return syn;
}

/* An established connection that we opened. */
void peer_connect(const struct tcp_options *offered)
{
	peer_syn();
	peer_advance_ms(10);
	peer.ts = offered->has_ts ? offered->ts_val : 0;
	peer_send_options(S | A, PEER_ISN, U, 20000, 0, offered);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	CHECK_EQ(peer_next()->ack, P);
	peer_expect_silence();
}

void peer_connected(void)
{
	peer_defaults();
	peer_connect(&peer_full_options);
}

void peer_write(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&peer.pool);

	memset(pkt_append(pkt, len), 'y', len);
	CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
	tcp_output(peer.pcb, peer.now_ns);
}

uint32_t peer_take_all(void)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(peer.pcb, UINT32_MAX, &pkts);

	pkt_put_list(&pkts);
	return len;
}
