/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a frame for the demultiplexer. The first byte says into how many
 * buffers it is cut and what is known of it; the rest is the frame, or how it
 * differs from the last one of a connection. Whatever comes of it, every packet is
 * back in its pool, and what is delivered lies within the frame; and what is known
 * for the connection's next frame at a glance is delivered to it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "ip/ip_udp.h"
#include "net/demux.h"
#include "pkt/pkt_pool.h"
#include "pkt/wire.h"
#include "tests/support/fuzz.h"

enum { BUFFERS = 8, BUFFER_SIZE = 2048, TAG = 1 };

static struct demux demux;
static struct pkt_pool pool;
static struct endpoint wild, bound, connected;
static size_t frame_len;

/* What demux_peek has promised. */
static struct {
	struct endpoint *end;
	struct ring_frame payload;
} promised;

struct good_frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
	char payload[8];
} __attribute__((packed, aligned(2)));

/* As a UDP socket does it. */
static void input(struct endpoint *end, struct pkt *pkt)
{
	struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const struct wire_udp *udp = (const void *)pkt->data;

	if (pkt_total_len(pkt) < info->len || info->len + 34 > frame_len)
		abort();
	if (ip_udp_judge((const void *)(pkt->buf + info->ip_at), pkt, info->len,
			 info->may_be_partial) != IP_UDP_GOOD) {
		demux_drop(&demux, pkt, DEMUX_CSUM);
		return;
	}
	info->len = be16toh(udp->len) - (uint32_t)sizeof(*udp);
	pkt_pull(pkt, sizeof(*udp));
	demux_trim(pkt, info->len);
	if (pkt_total_len(pkt) != info->len || info->len + 42 > frame_len)
		abort();
	if (promised.payload.data) {
		if (end != promised.end || info->len != promised.payload.len ||
		    memcmp(pkt->data, promised.payload.data, info->len) != 0)
			abort();
		promised.payload.data = NULL;
	}
	pkt_put(pkt);
}

static void add(struct endpoint *end, uint32_t local, uint32_t remote,
		uint16_t remote_port)
{
	endpoint_init(end, input);
	end->proto = WIRE_PROTO_UDP;
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
	if (demux_tag_add(&demux) != TAG)
		abort();
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

/* Of the connection. */
static struct good_frame make_good(void)
{
	struct good_frame f = {
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip = {
			.version_ihl = 0x45,
			.total_len = htobe16(sizeof(f) - sizeof(f.eth)),
			.ttl = 64,
			.proto = WIRE_PROTO_UDP,
			.src = htobe32(0x0a0000fe),
			.dst = htobe32(0x0a000001),
		},
		.udp = {
			.src_port = htobe16(9),
			.dst_port = htobe16(5),
			.len = htobe16(sizeof(f.udp) + sizeof(f.payload)),
		},
		.payload = "payload",
	};
	uint32_t pseudo = csum_add(htobe16(WIRE_PROTO_UDP), f.udp.len);

	f.ip.check = csum_fold(csum_partial(&f.ip, sizeof(f.ip), 0));
	pseudo = csum_partial(&f.ip.src, 8, pseudo);
	f.udp.check = csum_fold(csum_partial(
		&f.udp, sizeof(f.udp) + sizeof(f.payload), pseudo));
	return f;
}

static void deliver(const void *frame, size_t len, size_t parts,
		    enum pkt_csum verdict, const struct demux_from *from)
{
	struct pkt *pkt = cut(frame, len, parts);

	frame_len = len;
	pkt->csum_verdict = verdict;
	pkt->flow_tag = TAG;
	demux_input(&demux, pkt, from);
	if (!pkt_pool_is_full(&pool))
		abort();
}

/* What a UDP socket takes straight from the frame. */
static struct ring_frame peek(struct ring_frame frame,
			      const struct demux_from *from)
{
	struct ring_frame segment = demux_peek(&demux, frame, from);
	const struct wire_udp *udp = (const void *)segment.data;

	if (!udp || !ip_udp_is_good(udp, segment.len, demux.last.pseudo_sum,
				    from->rx_partial_csum))
		return RING_NO_FRAME;
	return (struct ring_frame){ (const uint8_t *)(udp + 1),
				    segment.len - (uint32_t)sizeof(*udp),
				    PKT_CSUM_UNKNOWN, false };
}

/* The next frame of a connection, which differs from its last by the bits that are
 * given. */
static void take_next(const uint8_t *bits, size_t len,
		      const struct demux_from *from)
{
	struct good_frame good = make_good();
	/* no byte longer, for the sanitizer */
	uint8_t *frame = malloc(len ? len : 1);

	deliver(&good, sizeof(good), 1, PKT_CSUM_UNKNOWN, from);
	if (!frame || demux.last.end != &connected)
		abort();
	for (size_t i = 0; i < len; i++)
		frame[i] = bits[i] ^ (i < sizeof(good) ?
					      ((uint8_t *)&good)[i] :
					      0);
	promised.end = demux.last.end;
	promised.payload = peek((struct ring_frame){ frame, (uint32_t)len,
						      PKT_CSUM_UNKNOWN, false },
				 from);
	deliver(frame, len, 1, PKT_CSUM_UNKNOWN, from);
	if (promised.payload.data)
		abort();
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct demux_from from = { .ifindex = 7 };

	if (size < 1 || size > 1500)
		return 0;
	begin();
	from.rx_partial_csum = data[0] & 8;
	from.is_local = data[0] & 16;
	from.has_tags = data[0] & 128;
	if (data[0] & 64) {
		take_next(data + 1, size - 1, &from);
		return 0;
	}
	/* most inputs would end at a checksum */
	deliver(data + 1, size - 1, 1 + data[0] % 4,
		data[0] & 32 ? PKT_CSUM_GOOD : PKT_CSUM_UNKNOWN, &from);
	return 0;
}
