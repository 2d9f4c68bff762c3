/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The world of tcp_world.h. */
#include "tests/fuzz/tcp_world.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tcp/tcp_seq.h"
#include "tests/support/fuzz.h"

enum { PACKETS = 1024, BUF_SIZE = 2048 };

struct tcp_world world;

static void emit(void *ctx UNUSED, struct tcp_pcb *pcb UNUSED,
		 const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;
	struct pkt *pkt = out->data;
	uint32_t len = 0;

	FUZZ_CHECK(out->header_len >= 20 && out->header_len <= 60);
	for (uint32_t i = 0; i < out->data_cnt; i++) {
		len += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	FUZZ_CHECK(len == out->data_len);
	world.out_seq = be32toh(header->seq);
	world.out_ack = be32toh(header->ack);
	world.out_end = world.out_seq + len +
			!!(header->flags & (WIRE_TCP_SYN | WIRE_TCP_FIN));
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	world.memory += size;
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size)
{
	world.memory -= size;
	free(mem);
}

static bool path(void *ctx UNUSED, const struct flow_key *key UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = world.path;
	return true;
}

static const struct tcp_ops ops = { emit, alloc, release, path,
				    tcp_stamp_ignore, tcp_stray_refuse, tcp_room_always };

static void make_pools(void)
{
	pkt_pool_init(&world.pool, 0);
	pkt_pool_init(&world.borrowers, 0);
	FUZZ_CHECK(pkt_pool_grow(&world.pool, PACKETS, BUF_SIZE) == 0);
	FUZZ_CHECK(pkt_pool_grow(&world.borrowers, PACKETS, 0) == 0);
}

void tcp_world_init(void)
{
	if (!world.pool.total_cnt)
		make_pools();
	tcp_params_init(&world.params);
	world.params.time_wait_max = 8;
	/* whatever a SYN brings is tried, with and without a cookie */
	world.params.fastopen = TCP_FASTOPEN_CLIENT | TCP_FASTOPEN_SERVER |
				TCP_FASTOPEN_LISTENERS;
	world.path = (struct tcp_path){ .mtu = 1500 };
	world.now_ns = 1000 * NS_PER_SEC;
	timer_wheel_init(&world.wheel, world.now_ns);
}

void tcp_world_open(void)
{
	world.table = tcp_table_create(&world.params, &ops, NULL, &world.wheel,
				       &world.borrowers);
	FUZZ_CHECK(world.table);
}

void tcp_world_close(void)
{
	tcp_table_destroy(world.table);
	FUZZ_CHECK(world.memory == 0);
	FUZZ_CHECK(timer_wheel_pending_cnt(&world.wheel) == 0);
	FUZZ_CHECK(pkt_pool_is_full(&world.pool));
	FUZZ_CHECK(pkt_pool_is_full(&world.borrowers));
}

/* One at a time, as the owner would be woken; not for ever. */
void tcp_world_advance(uint64_t ns)
{
	uint64_t until_ns = world.now_ns + ns;

	for (int i = 0; i < 64; i++) {
		uint64_t next_ns = timer_wheel_next_ns(&world.wheel);

		if (next_ns > until_ns)
			break;
		world.now_ns = MAX(world.now_ns, next_ns);
		timer_wheel_advance(&world.wheel, world.now_ns);
	}
	world.now_ns = until_ns;
	timer_wheel_advance(&world.wheel, world.now_ns);
}

void tcp_world_check(const struct tcp_pcb *pcb)
{
	struct tcp_pcb_info i;

	tcp_get_info(pcb, &i);
	if (i.state < TCPS_ESTABLISHED || i.state == TCPS_TIME_WAIT)
		return;
	FUZZ_CHECK(seq_at_most(i.snd_una, i.snd_nxt));
	FUZZ_CHECK(seq_at_most(i.snd_nxt, i.snd_end));
	FUZZ_CHECK(i.in_flight <= i.snd_nxt - i.snd_una);
	FUZZ_CHECK(i.snd_una == i.snd_end || i.has_timer);
	FUZZ_CHECK(i.cwnd >= 1);
	FUZZ_CHECK(i.mss >= 16);
	FUZZ_CHECK(i.ooo_memory <= 2 * (uint64_t)i.rcv_buf + 4096);
	FUZZ_CHECK(seq_at_most(i.rcv_nxt, i.rcv_edge + 1));
}
