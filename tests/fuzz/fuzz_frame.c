/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a frame for the demultiplexer. The first byte says into how many
 * buffers it is cut and what is known of it; the rest is the frame. Whatever comes
 * of it, every packet is back in its pool, and what is delivered lies within the
 * frame.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "net/demux.h"
#include "pkt/pkt_pool.h"
#include "pkt/wire.h"
#include "tests/support/fuzz.h"

enum { BUFFERS = 8, BUFFER_SIZE = 2048 };

static struct demux demux;
static struct pkt_pool pool;
static struct endpoint wild, bound, connected;
static size_t frame_len;

static void input(struct endpoint *end, struct pkt *pkt)
{
	const struct rx_info *info = PKT_CB(pkt, struct rx_info);

	(void)end;
	if (pkt_total_len(pkt) != info->len || info->len + 42 > frame_len)
		abort();
	pkt_put(pkt);
}

static void add(struct endpoint *end, uint32_t local, uint32_t remote,
		uint16_t remote_port)
{
	endpoint_init(end, input);
	end->key.local = ip_addr_from_v4(htobe32(local));
	end->key.local_port = htobe16(5);
	if (remote_port)
		end->key.remote = ip_addr_from_v4(htobe32(remote));
	end->key.remote_port = htobe16(remote_port);
	if (demux_add(&demux, end) != 0)
		abort();
}

static void begin(void)
{
	if (demux.connected)
		return;
	pkt_pool_init(&pool, 64);
	if (demux_init(&demux, 1) != 0 ||
	    pkt_pool_grow(&pool, BUFFERS, BUFFER_SIZE) != 0)
		abort();
	add(&wild, 0, 0, 0);
	add(&bound, 0x0a000001, 0, 0);
	add(&connected, 0x0a000001, 0x0a0000fe, 9);
}

/* In `cnt` buffers of nearly the same length. */
static struct pkt *cut(const uint8_t *data, size_t len, size_t cnt)
{
	struct pkt *first = NULL, **at = &first;
	size_t done = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint32_t n = (uint32_t)(i + 1 == cnt ? len - done : len / cnt);

		*at = pkt_alloc(&pool);
		memcpy(pkt_append(*at, n), data + done, n);
		done += n;
		at = &(*at)->next_part;
	}
	return first;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct demux_from from = { .ifindex = 7 };
	struct pkt *pkt;

	if (size < 1 || size > 1500)
		return 0;
	begin();
	from.rx_partial_csum = data[0] & 8;
	from.is_local = data[0] & 16;
	frame_len = size - 1;
	pkt = cut(data + 1, size - 1, 1 + data[0] % 4);
	/* most inputs would end at a checksum */
	if (data[0] & 32)
		pkt->csum_verdict = PKT_CSUM_GOOD;
	demux_input(&demux, pkt, &from);
	if (!pkt_pool_is_full(&pool))
		abort();
	return 0;
}
