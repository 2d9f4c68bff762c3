/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The smallest use of the engine: two tables, an array of frames, a clock that is a
 * variable. The client says hello, the server says it back. Builds against
 * libvma-tcp.a and src/ alone; without test support, on purpose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp/tcp.h"

enum { FRAMES = 64, FRAME_SIZE = 2048 };
static struct end {
	struct ip_addr addr;
	struct timer_wheel wheel;
	struct tcp_table *table;
	char heard[32];
} client, server;

/* A frame is a TCP segment; where it goes tells the addresses. */
static struct frame {
	struct end *to;
	uint32_t len;
	uint8_t data[FRAME_SIZE];
} frames[FRAMES], *frame_end = frames;

static struct pkt_pool pool, borrowers;
static uint64_t now_ns;

static void emit(void *ctx, struct tcp_pcb *pcb UNUSED,
		 const struct tcp_out *out)
{
	struct frame *frame = frame_end++;

	frame->to = ctx == &client ? &server : &client;
	frame->len = out->header_len + out->data_len;
	memcpy(frame->data, out->header, out->header_len);
	if (out->data) /* one packet, unless the path splits segments */
		memcpy(frame->data + out->header_len, out->data->data,
		       out->data_len);
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size UNUSED)
{
	free(mem);
}

static const struct tcp_path ethernet = { .mtu = 1500 };

static bool path(void *ctx UNUSED, const struct flow_key *key UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = ethernet;
	return true;
}

static const struct tcp_ops ops = { emit, alloc, release, path,
				    tcp_stamp_ignore, tcp_stray_refuse, tcp_room_always };

static void end_init(struct end *end, uint32_t addr)
{
	struct tcp_params params;

	tcp_params_init(&params); /* and a secret from getrandom() */
	end->addr = ip_addr_from_v4(htobe32(addr));
	timer_wheel_init(&end->wheel, now_ns);
	end->table = tcp_table_create(&params, &ops, end, &end->wheel,
				      &borrowers);
}

static void say(struct tcp_pcb *pcb, const char *text)
{
	struct pkt *pkt = pkt_alloc(&pool);

	memcpy(pkt_append(pkt, (uint32_t)strlen(text)), text, strlen(text));
	if (!tcp_write(pcb, pkt))
		tcp_output(pcb, now_ns);
}

static void hear(struct end *end, struct tcp_pcb *pcb)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(pcb, UINT32_MAX, &pkts);

	if (len)
		memcpy(end->heard, pkt_from_link(pkts.next)->data, len);
	pkt_put_list(&pkts);
	tcp_recved(pcb, len, now_ns);
	if (len && end == &server)
		say(pcb, end->heard);
	if (end == &client ? len > 0 : tcp_at_end(pcb))
		tcp_close(pcb, now_ns);
}

static void run(struct end *end)
{
	struct tcp_event event;

	timer_wheel_advance(&end->wheel, now_ns);
	while (tcp_event_next(end->table, &event)) {
		if (event.what & TCP_EV_CONNECTED)
			say(event.pcb, "hello");
		if (event.what & TCP_EV_ACCEPT)
			hear(end, tcp_accept(event.pcb));
		else if (event.what & TCP_EV_READABLE)
			hear(end, event.pcb);
	}
}

static void deliver(const struct frame *frame)
{
	struct tcp_in in = { .pkt = pkt_alloc(&pool) };

	memcpy(pkt_append(in.pkt, frame->len), frame->data, frame->len);
	in.key.local = frame->to->addr;
	in.key.remote = frame->to == &client ? server.addr : client.addr;
	tcp_input(frame->to->table, &in, now_ns);
}

int main(void)
{
	struct tcp_pcb *listener, *pcb;

	end_init(&client, 0x0a000001);
	end_init(&server, 0x0a000002);
	pcb = tcp_new(client.table);
	listener = tcp_new(server.table);
	if (pkt_pool_grow(&pool, 16, FRAME_SIZE) ||
	    pkt_pool_grow(&borrowers, 16, 0) ||
	    tcp_bind(listener, &server.addr, htobe16(7)) ||
	    tcp_listen(listener, 4) ||
	    tcp_bind(pcb, &client.addr, htobe16(4711)) ||
	    tcp_connect(pcb, &server.addr, htobe16(7), &ethernet, now_ns))
		abort();
	for (struct frame *next = frames; next != frame_end; next++) {
		deliver(next);
		now_ns += 1000000; /* a millisecond */
		run(&client);
		run(&server);
	}
	tcp_table_destroy(client.table);
	tcp_table_destroy(server.table);
	puts("1..1\nok 1 - hello_comes_back");
	return strcmp(client.heard, "hello") || pkt_pool_destroy(&pool) ||
	       pkt_pool_destroy(&borrowers);
}
