/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sequence of anything: segments near the numbers that matter, with any flags and
 * options, alone or in batches; time, ICMP, and what a program does. Whatever
 * comes, the laws of tcp_world.h hold, and everything is given back.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tcp/tcp_options.h"
#include "tests/fuzz/tcp_world.h"
#include "tests/support/fuzz.h"

enum { OPS_MAX = 300, PCBS_MAX = 4, BATCH_MAX = 5 };

/* What is left of the input; 0 behind its end. */
static const uint8_t *at, *end;

static struct tcp_pcb *pcbs[PCBS_MAX], *listener;
static struct flow_key key;

static uint8_t byte(void)
{
	return at < end ? *at++ : 0;
}

static uint16_t word(void)
{
	uint8_t high = byte();

	return (uint16_t)(high << 8 | byte());
}

/* Mostly small. */
static uint32_t delta(void)
{
	uint8_t kind = byte();

	if (kind < 128)
		return (uint32_t)(int8_t)(kind << 1) >> 0;
	if (kind < 250)
		return (uint32_t)((int32_t)(int16_t)word());
	return (uint32_t)word() << 16 | word();
}

static struct tcp_pcb *some_pcb(uint8_t which)
{
	return pcbs[which % PCBS_MAX];
}

static void info_of(const struct tcp_pcb *pcb, struct tcp_pcb_info *info_out)
{
	memset(info_out, 0, sizeof(*info_out));
	if (pcb)
		tcp_get_info(pcb, info_out);
}

static uint32_t pick_seq(uint8_t how, const struct tcp_pcb_info *info)
{
	switch (how & 3) {
	case 0:
		return info->rcv_nxt;
	case 1:
		return world.out_ack;
	case 2:
		return info->rcv_nxt + delta();
	default:
		return info->rcv_edge + delta();
	}
}

static uint32_t pick_ack(uint8_t how, const struct tcp_pcb_info *info)
{
	switch (how >> 2 & 3) {
	case 0:
		return world.out_end;
	case 1:
		return info->snd_una;
	case 2:
		return info->snd_una + delta();
	default:
		return info->snd_nxt + delta();
	}
}

/* Sane ones, or any bytes. */
static size_t put_options(uint8_t *to, uint8_t how,
			  const struct tcp_pcb_info *info)
{
	struct tcp_options o = { .has_ts = how & 1 };
	size_t len = 0;

	if (how & 0x80) {
		for (len = 0; len < (how & 40u); len++)
			to[len] = byte();
		return len & ~3u;
	}
	o.ts_val = (uint32_t)(world.now_ns / NS_PER_MS) +
		   (how & 2 ? delta() : 0);
	o.ts_ecr = (uint32_t)(world.now_ns / NS_PER_MS);
	o.mss = how & 4 ? word() : 0;
	o.has_scale = how & 8;
	o.scale = how & 8 ? byte() : 0;
	o.has_sack_ok = how & 16;
	if (how & 32)
		o.sack_cnt = 1 + (byte() & 3);
	for (uint8_t i = 0; i < o.sack_cnt; i++) {
		o.sack[i].start = info->snd_una + delta();
		o.sack[i].end = o.sack[i].start + delta();
	}
	return tcp_options_build(to, &o);
}

/* Cuts a packet in two behind its header. */
static void split(struct pkt *pkt, uint32_t header_len)
{
	struct pkt *part = pkt_alloc(&world.pool);
	uint32_t kept = header_len + (pkt->len - header_len) / 3;
	uint32_t len = pkt->len - kept;

	if (!part)
		return;
	memcpy(pkt_append(part, len), pkt->data + kept, len);
	pkt_trim(pkt, kept);
	pkt->next_part = part;
}

static bool make_segment(struct tcp_in *in)
{
	static const uint8_t usual[8] = { 0x10, 0x10, 0x18, 0x02,
					  0x12, 0x11, 0x14, 0x04 };
	uint8_t how = byte(), options = byte(), flags = byte();
	struct wire_tcp *header;
	struct tcp_pcb_info info;
	uint32_t len, header_len;

	memset(in, 0, sizeof(*in));
	in->pkt = pkt_alloc(&world.pool);
	if (!in->pkt)
		return false;
	in->key = key;
	info_of(some_pcb(how >> 4), &info);
	if (some_pcb(how >> 4))
		in->key = *tcp_key(some_pcb(how >> 4));
	header = (void *)in->pkt->data;
	header_len = 20 + (uint32_t)put_options(in->pkt->data + 20, options,
						&info);
	*header = (struct wire_tcp){
		.src_port = in->key.remote_port,
		.dst_port = in->key.local_port,
		.seq = htobe32(pick_seq(how, &info)),
		.ack = htobe32(pick_ack(how, &info)),
		.offset_ae = (uint8_t)(header_len << 2 | (flags >> 6 & 1)),
		.flags = flags < 200 ? usual[flags & 7] : byte(),
		.window = htobe16(how & 0x80 ? word() : 8000),
	};
	if (header->flags & WIRE_TCP_URG)
		header->urgent = htobe16(byte());
	len = how & 0x40 ? byte() * 6u : 0;
	memset(pkt_append(in->pkt, header_len + len) + header_len, 0, len);
	in->pkt->csum_verdict = PKT_CSUM_GOOD;
	in->ecn = flags >> 3 & 3;
	if (flags & 32 && len)
		split(in->pkt, header_len);
	return true;
}

static void do_segments(unsigned cnt)
{
	struct tcp_in in[BATCH_MAX];
	unsigned made = 0;

	while (made < cnt && make_segment(&in[made]))
		made++;
	if (made == 1)
		tcp_input(world.table, in, world.now_ns);
	else
		tcp_input_batch(world.table, in, made, world.now_ns);
}

/* Bytes that need not look like a segment. */
static void do_raw(void)
{
	struct tcp_in in = { .pkt = pkt_alloc(&world.pool), .key = key };
	uint32_t len = byte() & 127;

	if (!in.pkt)
		return;
	pkt_append(in.pkt, len);
	for (uint32_t i = 0; i < len; i++)
		in.pkt->data[i] = byte();
	in.pkt->csum_verdict = byte() % 3;
	tcp_input(world.table, &in, world.now_ns);
}

static void do_icmp(void)
{
	struct tcp_icmp icmp = { .key = key, .error = -EMSGSIZE };
	struct tcp_pcb *pcb = some_pcb(byte());
	struct tcp_pcb_info info;

	info_of(pcb, &info);
	if (pcb)
		icmp.key = *tcp_key(pcb);
	icmp.seq = info.snd_una + delta();
	icmp.quoted_len = word();
	icmp.mtu = word();
	if (byte() & 1)
		icmp.error = -EHOSTUNREACH;
	tcp_icmp_in(world.table, &icmp, world.now_ns);
}

static void do_write(struct tcp_pcb *pcb)
{
	struct pkt *pkt = pkt_alloc(&world.pool);
	uint32_t len = byte() * 8u;

	if (!pkt)
		return;
	memset(pkt_append(pkt, len), 0, len);
	if (tcp_write_with(pcb, pkt, len % 56 ? 0 : TCP_WRITE_URGENT))
		pkt_put(pkt);
	tcp_output(pcb, world.now_ns);
}

static void do_read(struct tcp_pcb *pcb)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t readable = tcp_readable(pcb), len = tcp_take(pcb, UINT32_MAX, &pkts);
	uint8_t urgent, some[100];
	int rc;

	/* there was no packet to cut one with */
	if (!len && readable)
		len = tcp_take_bytes(pcb, sizeof(some), some);
	FUZZ_CHECK(len || !readable);
	rc = tcp_take_urgent(pcb, &urgent, len & 1);
	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -EAGAIN || rc == -ENOTCONN);
	pkt_put_list(&pkts);
	tcp_recved(pcb, len, world.now_ns);
}

static void do_settings(struct tcp_pcb *pcb)
{
	struct tcp_path path = { .mtu = word() };
	uint8_t what = byte(), value = byte();

	switch (what & 7) {
	case 0:
		tcp_set_nodelay(pcb, value & 1, world.now_ns);
		break;
	case 1:
		tcp_set_cork(pcb, value & 1, world.now_ns);
		tcp_set_oob_inline(pcb, value & 2);
		break;
	case 2:
		tcp_set_quick_ack(pcb, value & 1, world.now_ns);
		break;
	case 3:
		FUZZ_CHECK(tcp_set_keepalive(pcb, value & 1, NS_PER_SEC * value,
					     NS_PER_SEC, 3, world.now_ns) == 0);
		break;
	case 4:
		FUZZ_CHECK(tcp_set_user_timeout(pcb, NS_PER_SEC * value) == 0);
		break;
	case 5:
		tcp_set_rcv_buf(pcb, 1 + value * 100u, world.now_ns);
		break;
	case 6:
		tcp_set_snd_buf(pcb, value * 100u);
		break;
	default:
		tcp_set_path(pcb, &path, world.now_ns);
		break;
	}
}

static void do_end(struct tcp_pcb **pcb, uint8_t how)
{
	if ((how & 3) == 0) {
		tcp_abort(*pcb, world.now_ns);
		*pcb = NULL;
	} else if ((how & 3) == 1) {
		tcp_close(*pcb, world.now_ns);
		*pcb = NULL;
	} else if (tcp_shutdown(*pcb, world.now_ns)) {
		FUZZ_CHECK(tcp_state(*pcb) != TCPS_ESTABLISHED);
	}
}

static void do_move(struct tcp_pcb **pcb)
{
	size_t size = tcp_export_size(*pcb);
	uint8_t *bytes;
	int rc;

	if (!size)
		return;
	bytes = malloc(size);
	FUZZ_CHECK(bytes);
	FUZZ_CHECK(tcp_export(*pcb, bytes, size, world.now_ns) == 0);
	tcp_drop(*pcb);
	rc = tcp_import(world.table, bytes, size, &world.pool, world.now_ns,
			pcb);
	FUZZ_CHECK(rc == 0 || rc == -ENOBUFS);
	if (rc)
		*pcb = NULL;
	free(bytes);
}

static void take_events(void)
{
	struct tcp_event event;
	struct tcp_pcb *child;

	while (tcp_event_next(world.table, &event)) {
		if (event.pcb != listener)
			continue;
		for (int i = 0; i < PCBS_MAX; i++) {
			if (pcbs[i] || !(child = tcp_accept(listener)))
				continue;
			pcbs[i] = child;
		}
	}
}

static void do_time(void)
{
	static const uint64_t spans_ns[8] = {
		NS_PER_US, NS_PER_MS, 10 * NS_PER_MS, 50 * NS_PER_MS,
		250 * NS_PER_MS, NS_PER_SEC, 30 * NS_PER_SEC, 700 * NS_PER_SEC,
	};

	tcp_world_advance(spans_ns[byte() & 7]);
}

static void do_one(void)
{
	uint8_t op = byte();
	struct tcp_pcb **pcb = &pcbs[op >> 4 & 3];

	switch (op & 15) {
	case 0:
		do_time();
		break;
	case 1:
		do_raw();
		break;
	case 2:
		do_icmp();
		break;
	case 3:
		do_segments(2 + (op >> 6));
		break;
	case 4:
		if (*pcb)
			do_settings(*pcb);
		break;
	case 5:
		if (*pcb)
			do_end(pcb, byte());
		break;
	case 6:
		if (*pcb)
			do_move(pcb);
		break;
	case 7:
	case 8:
		if (*pcb)
			do_write(*pcb);
		break;
	case 9:
		if (*pcb)
			do_read(*pcb);
		break;
	default:
		do_segments(1);
		break;
	}
}

static void choose_params(uint8_t how, uint8_t more)
{
	struct tcp_params *p = &world.params;

	p->with_sack = how & 1;
	p->with_timestamps = how & 2;
	p->with_window_scale = how & 4;
	p->ecn = more & 8 ? TCP_ECN_ACCURATE
		 : how & 8 ? TCP_ECN_ON
			   : TCP_ECN_ACCEPTED;
	p->cc = (enum tcp_cc_algorithm)((how >> 4) % TCP_CC_CNT);
	p->half_open_max = how & 64 ? 1 : 16;
	p->rcv_buf = how & 128 ? 3000 : 65536;
	p->rcv_buf_max = 2 * p->rcv_buf;
	world.path.segment_max = more & 1 ? 8000 : 0;
	world.path.with_checksum = more & 3;
	p->quick_acks = more & 4 ? 16 : 0;
}

static void open_ends(bool is_client)
{
	key.local = ip_addr_from_v4(htobe32(0x0a000001));
	key.remote = ip_addr_from_v4(htobe32(0x0a000002));
	key.local_port = htobe16(80);
	key.remote_port = htobe16(2000);
	listener = tcp_new(world.table);
	FUZZ_CHECK(listener);
	FUZZ_CHECK(tcp_bind(listener, &key.local, key.local_port) == 0);
	FUZZ_CHECK(tcp_listen(listener, 2) == 0);
	if (!is_client)
		return;
	pcbs[0] = tcp_new(world.table);
	FUZZ_CHECK(pcbs[0]);
	FUZZ_CHECK(tcp_bind(pcbs[0], &key.local, htobe16(81)) == 0);
	FUZZ_CHECK(tcp_connect(pcbs[0], &key.remote, key.remote_port,
			       &world.path, world.now_ns) == 0);
}

static void close_all(void)
{
	for (int i = 0; i < PCBS_MAX; i++) {
		if (pcbs[i])
			tcp_abort(pcbs[i], world.now_ns);
		pcbs[i] = NULL;
	}
	tcp_close(listener, world.now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how, more;

	at = data;
	end = data + size;
	how = byte();
	more = byte();
	tcp_world_init();
	choose_params(how, more);
	tcp_world_open();
	open_ends(more & 8);
	for (int i = 0; i < OPS_MAX && at < end; i++) {
		do_one();
		take_events();
		for (int j = 0; j < PCBS_MAX; j++)
			if (pcbs[j])
				tcp_world_check(pcbs[j]);
	}
	close_all();
	tcp_world_close();
	return 0;
}
