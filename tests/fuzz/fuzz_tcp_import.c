/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as an exported connection. What was taken must obey the laws of a
 * connection, live through time, data and acknowledgments, and be exported again
 * as bytes that are taken again. The head is put right, so that the fuzzer need
 * not find magic and length.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/fuzz/tcp_world.h"
#include "tests/support/fuzz.h"

enum { HEAD_SIZE = 16 };

static struct tcp_pcb *import(const uint8_t *bytes, size_t size)
{
	struct tcp_pcb *pcb = NULL;
	int rc = tcp_import(world.table, bytes, size, &world.pool, world.now_ns,
			    &pcb);

	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ENOBUFS ||
		   rc == -EADDRINUSE);
	FUZZ_CHECK(!rc == !!pcb);
	return pcb;
}

/* Everything that is outstanding is acknowledged, and a little more comes. */
static void send_to(const struct tcp_pcb *pcb, uint32_t seq_off, uint32_t len)
{
	struct tcp_in in = { .pkt = pkt_alloc(&world.pool) };
	struct wire_tcp *header;
	struct tcp_pcb_info info;

	if (!in.pkt)
		return;
	tcp_get_info(pcb, &info);
	in.key = *tcp_key(pcb);
	header = (void *)pkt_append(in.pkt, 20 + 12 + len);
	memset(header, 0, 32 + len);
	*header = (struct wire_tcp){
		.src_port = in.key.remote_port,
		.dst_port = in.key.local_port,
		.seq = htobe32(info.rcv_nxt + seq_off),
		.ack = htobe32(info.snd_nxt),
		.offset_ae = 8 << 4,
		.flags = WIRE_TCP_ACK,
		.window = htobe16(30000),
	};
	memcpy(header + 1, "\1\1\10\12", 4);
	wire_put_u32((uint8_t *)(header + 1) + 4,
		     (uint32_t)(world.now_ns / NS_PER_MS));
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	tcp_input(world.table, &in, world.now_ns);
}

static struct tcp_pcb *move(struct tcp_pcb *pcb)
{
	size_t size = tcp_export_size(pcb);
	uint8_t *bytes;

	if (!size)
		return pcb;
	bytes = malloc(size);
	FUZZ_CHECK(bytes);
	FUZZ_CHECK(tcp_export(pcb, bytes, size, world.now_ns) == 0);
	tcp_drop(pcb);
	pcb = import(bytes, size);
	FUZZ_CHECK(pcb || world.pool.free_cnt < 64 || size > 1000000);
	free(bytes);
	return pcb;
}

static void live(struct tcp_pcb *pcb)
{
	struct list pkts = LIST_INIT(pkts);
	struct tcp_event event;
	uint32_t len;

	pcb = move(pcb);
	if (!pcb)
		return;
	tcp_output(pcb, world.now_ns);
	tcp_world_check(pcb);
	tcp_world_advance(50 * NS_PER_MS);
	tcp_world_check(pcb);
	send_to(pcb, 10, 5);
	tcp_world_check(pcb);
	send_to(pcb, 0, 10);
	tcp_world_advance(3 * NS_PER_SEC);
	tcp_world_check(pcb);
	len = tcp_take(pcb, UINT32_MAX, &pkts);
	pkt_put_list(&pkts);
	tcp_recved(pcb, len, world.now_ns);
	tcp_close(pcb, world.now_ns);
	tcp_world_advance(100 * NS_PER_SEC);
	while (tcp_event_next(world.table, &event))
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tcp_pcb *pcb;
	uint8_t *bytes;

	if (size < HEAD_SIZE)
		return 0;
	tcp_world_init();
	tcp_world_open();
	bytes = malloc(size);
	FUZZ_CHECK(bytes);
	memcpy(bytes, data, size);
	memcpy(bytes, "vTCP", 4);
	for (int i = 0; i < 4; i++)
		bytes[4 + i] = (uint8_t)(TCP_EXPORT_VERSION >> 8 * i);
	for (int i = 0; i < 8; i++)
		bytes[8 + i] = (uint8_t)(size >> 8 * i);
	pcb = import(bytes, size);
	free(bytes);
	if (pcb) {
		tcp_world_check(pcb);
		live(pcb);
	}
	tcp_world_close();
	return 0;
}
