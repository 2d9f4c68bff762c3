/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a segment costs in instructions: receives 10,000 segments, or sends them
 * with a given number under way, while callgrind counts the engine's functions
 * (tests/bench/tcp_instructions.sh). Release build of the engine alone; SACK and
 * time stamps on, checksum verdict given, ACK every second segment.
 * Usage: tcp_instructions receive|send SEGMENTS_UNDER_WAY SEGMENTS_IN_A_POLL
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tcp/tcp.h"
#include "tcp/tcp_options.h"

enum {
	SEGMENTS = 10000,
	PAYLOAD = 64,
	BATCH = 2,
	BUF_SIZE = 2048,
	POLL_MAX = 16,
};

static struct timer_wheel wheel;
static struct pkt_pool pool, borrowers;
static struct tcp_table *table;
static struct tcp_pcb *pcb;
static struct flow_key key;
static uint64_t now_ns = NS_PER_SEC;
static uint32_t iss, peer_ts = 1, our_ts, acked_end;
static unsigned emitted;

/* Not the engine's: the script does not count it. */
static void take_segment(void *ctx UNUSED, struct tcp_pcb *from UNUSED,
			 const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;

	emitted++;
	if (header->flags & WIRE_TCP_SYN)
		iss = be32toh(header->seq);
	else
		our_ts = wire_get_u32(out->header + 24);
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size UNUSED)
{
	free(mem);
}

static bool path(void *ctx UNUSED, const struct flow_key *of UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = (struct tcp_path){ .mtu = 1500, .with_checksum = true };
	return true;
}

static const struct tcp_ops ops = { take_segment, alloc, release, path,
				    tcp_stamp_ignore, tcp_stray_refuse, tcp_room_always };

/* A packet as the ring would hand it over. */
static struct pkt *make(uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len,
			const struct tcp_options *options)
{
	struct pkt *pkt = pkt_alloc(&pool);
	struct wire_tcp *header = (void *)pkt->data;
	size_t header_len = 20 + tcp_options_build(pkt->data + 20, options);

	*header = (struct wire_tcp){
		.src_port = key.remote_port, .dst_port = key.local_port,
		.seq = htobe32(seq), .ack = htobe32(ack),
		.offset_ae = (uint8_t)(header_len << 2), .flags = flags,
		.window = htobe16(65000),
	};
	pkt_append(pkt, (uint32_t)header_len + len);
	pkt->csum_verdict = PKT_CSUM_GOOD;
	return pkt;
}

/* What a poll found so far. */
static struct tcp_in poll[POLL_MAX];
static unsigned poll_cnt, poll_size = 1;

static void flush(void)
{
	if (poll_size == 1 && poll_cnt)
		tcp_input(table, poll, now_ns);
	else
		tcp_input_batch(table, poll, poll_cnt, now_ns);
	poll_cnt = 0;
}

static void input(uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len)
{
	struct tcp_options options = { .has_ts = true, .ts_val = peer_ts,
				       .ts_ecr = our_ts };
	struct tcp_in *in = &poll[poll_cnt++];

	*in = (struct tcp_in){ .key = key };
	in->pkt = make(flags, seq, ack, len, &options);
	if (poll_cnt == poll_size)
		flush();
}

static void drain(void)
{
	struct list pkts = LIST_INIT(pkts);
	struct tcp_event event;

	while (tcp_event_next(table, &event))
		;
	tcp_recved(pcb, tcp_take(pcb, UINT32_MAX, &pkts), now_ns);
	pkt_put_list(&pkts);
}

static void connect_up(void)
{
	struct tcp_options options = { .mss = 1460, .has_scale = true,
				       .scale = 7, .has_sack_ok = true,
				       .has_ts = true, .ts_val = 1 };
	struct tcp_path way = { .mtu = 1500, .with_checksum = true };
	struct tcp_in in;

	if (tcp_bind(pcb, &key.local, key.local_port) ||
	    tcp_connect(pcb, &key.remote, key.remote_port, &way, now_ns))
		abort();
	now_ns += 10 * NS_PER_US;
	in = (struct tcp_in){ .key = key };
	in.pkt = make(WIRE_TCP_SYN | WIRE_TCP_ACK, 999, iss + 1, 0, &options);
	tcp_input(table, &in, now_ns);
	tcp_set_nodelay(pcb, true, now_ns);
}

static void send_one(void)
{
	struct pkt *pkt = pkt_alloc(&pool);

	memset(pkt_append(pkt, PAYLOAD), 0, PAYLOAD);
	if (tcp_write(pcb, pkt))
		abort();
	tcp_output(pcb, now_ns);
}

/* The ACK of the oldest batch under way. */
static void take_ack(uint32_t seq)
{
	acked_end += BATCH * PAYLOAD;
	input(WIRE_TCP_ACK, seq, acked_end, 0);
}

int main(int argc, char **argv)
{
	bool is_receive = argc > 1 && strcmp(argv[1], "receive") == 0;
	int under_way = argc > 2 ? atoi(argv[2]) : BATCH;
	struct tcp_params params;
	uint32_t seq = 1000;

	tcp_params_init(&params);
	params.quick_acks = 0;
	timer_wheel_init(&wheel, now_ns);
	pkt_pool_init(&pool, 0);
	pkt_pool_init(&borrowers, 0);
	if (pkt_pool_grow(&pool, 256, BUF_SIZE) ||
	    pkt_pool_grow(&borrowers, 8, 0))
		return 1;
	table = tcp_table_create(&params, &ops, NULL, &wheel, &borrowers);
	key.local = ip_addr_from_v4(htobe32(0x0a000001));
	key.remote = ip_addr_from_v4(htobe32(0x0a000002));
	key.local_port = htobe16(1000);
	key.remote_port = htobe16(2000);
	pcb = tcp_new(table);
	connect_up();
	if (argc > 3)
		poll_size = (unsigned)atoi(argv[3]);
	emitted = 0;
	acked_end = iss + 1;
	for (int i = 0; i < SEGMENTS; i += BATCH) {
		now_ns += 2 * NS_PER_US;
		timer_wheel_advance(&wheel, now_ns);
		for (int j = 0; j < BATCH; j++) {
			if (is_receive)
				input(WIRE_TCP_ACK, seq, iss + 1, PAYLOAD);
			else
				send_one();
			seq += is_receive ? PAYLOAD : 0;
		}
		if (!is_receive && i + BATCH >= under_way)
			take_ack(seq);
		drain();
	}
	flush();
	printf("%u segments sent\n", emitted);
	return 0;
}
