/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The smallest use of the engine: two tables, an array of frames between them, a
 * clock that is a variable. The client says hello, the server says it back. Builds
 * against libvma-tcp.a and src/ alone; without test support, on purpose.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp/tcp.h"

enum { FRAMES = 64, FRAME_SIZE = 2048, MILLISECOND = 1000000 };

/* A frame is a TCP segment; who sent it tells the addresses. */
static struct frame {
	int to;
	uint32_t len;
	uint8_t data[FRAME_SIZE];
} frames[FRAMES];
static unsigned frame_first, frame_end;

static struct end {
	int index;
	struct ip_addr addr;
	struct timer_wheel wheel;
	struct pkt_pool pool;
	struct pkt_pool borrowers;
	struct tcp_table *table;
	char said[32];
} ends[2];

static uint64_t now_ns = MILLISECOND;

static void emit(void *ctx, struct tcp_pcb *pcb UNUSED,
		 const struct tcp_out *out)
{
	struct end *from = ctx;
	struct frame *frame = &frames[frame_end++ % FRAMES];
	struct pkt *pkt = out->data;

	frame->to = !from->index;
	frame->len = out->header_len;
	memcpy(frame->data, out->header, out->header_len);
	for (uint32_t i = 0; i < out->data_cnt; i++) {
		memcpy(frame->data + frame->len, pkt->data, pkt->len);
		frame->len += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
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

static const struct tcp_ops ops = { emit, alloc, release, path };

static void end_init(struct end *end, int index)
{
	struct tcp_params params;

	tcp_params_init(&params);
	params.secret.word[0] = 1; /* a real one comes from getrandom() */
	end->index = index;
	end->addr = ip_addr_from_v4(htobe32(0x0a000001u + (uint32_t)index));
	timer_wheel_init(&end->wheel, now_ns);
	pkt_pool_init(&end->pool, 0);
	pkt_pool_init(&end->borrowers, 0);
	if (pkt_pool_grow(&end->pool, 16, FRAME_SIZE) ||
	    pkt_pool_grow(&end->borrowers, 16, 0))
		abort();
	end->table = tcp_table_create(&params, &ops, end, &end->wheel,
				      &end->borrowers);
}

static void say(struct end *end, struct tcp_pcb *pcb, const char *text)
{
	struct pkt *pkt = pkt_alloc(&end->pool);

	memcpy(pkt_append(pkt, (uint32_t)strlen(text)), text, strlen(text));
	if (tcp_write(pcb, pkt))
		abort();
	tcp_output(pcb, now_ns);
}

static void hear(struct end *end, struct tcp_pcb *pcb)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(pcb, &pkts);

	if (len)
		memcpy(end->said, pkt_from_link(pkts.next)->data, len);
	pkt_put_list(&pkts);
	tcp_recved(pcb, len, now_ns);
	if (len && end->index == 1)
		say(end, pcb, end->said);
	if (end->index == 0 ? len > 0 : tcp_at_end(pcb))
		tcp_close(pcb, now_ns);
}

static void run_events(struct end *end)
{
	struct tcp_event event;

	while (tcp_event_next(end->table, &event)) {
		if (event.what & TCP_EV_CONNECTED)
			say(end, event.pcb, "hello");
		if (event.what & TCP_EV_ACCEPT)
			hear(end, tcp_accept(event.pcb));
		else if (event.what & TCP_EV_READABLE)
			hear(end, event.pcb);
	}
}

static void deliver(const struct frame *frame)
{
	struct end *to = &ends[frame->to];
	struct tcp_in in = { .pkt = pkt_alloc(&to->pool) };

	memcpy(pkt_append(in.pkt, frame->len), frame->data, frame->len);
	in.key.local = to->addr;
	in.key.remote = ends[!to->index].addr;
	tcp_input(to->table, &in, now_ns);
}

int main(void)
{
	struct tcp_pcb *listener, *client;
	bool is_ok;

	end_init(&ends[0], 0);
	end_init(&ends[1], 1);
	listener = tcp_new(ends[1].table);
	client = tcp_new(ends[0].table);
	if (tcp_bind(listener, &ends[1].addr, htobe16(7)) ||
	    tcp_listen(listener, 4) ||
	    tcp_bind(client, &ends[0].addr, htobe16(4711)) ||
	    tcp_connect(client, &ends[1].addr, htobe16(7), &ethernet, now_ns))
		abort();
	for (int i = 0; i < 1000; i++, now_ns += MILLISECOND) {
		while (frame_first != frame_end)
			deliver(&frames[frame_first++ % FRAMES]);
		for (int j = 0; j < 2; j++) {
			timer_wheel_advance(&ends[j].wheel, now_ns);
			run_events(&ends[j]);
		}
	}
	is_ok = strcmp(ends[0].said, "hello") == 0 &&
		tcp_pcb_cnt(ends[0].table) == 0;
	printf("1..1\n%sok 1 - hello_comes_back\n", is_ok ? "" : "not ");
	for (int j = 0; j < 2; j++) {
		tcp_table_destroy(ends[j].table);
		is_ok &= !pkt_pool_destroy(&ends[j].pool) &&
			 !pkt_pool_destroy(&ends[j].borrowers);
	}
	return !is_ok;
}
