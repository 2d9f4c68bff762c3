/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/udp/udp_cut.h"

#include <errno.h>

#include "base/rand.h"
#include "dev/fake/fake.h"
#include "ip/ip_frag.h"
#include "tests/support/test.h"

enum { MTU = 1500, FRAME_CNT = 2048, PAYLOAD_MAX = 65507 };

static struct fake_cable *cable;
static struct dev *dev;
static struct stack *stack;
static struct ring *ring;
static struct udp_way way;
static struct udp_cut cut;

static uint8_t payload[PAYLOAD_MAX];

/* What the receiver makes of the frames that were sent. */
static struct {
	unsigned frame_cnt;
	uint16_t id;
	uint32_t len;
	bool has_last;
	uint8_t bytes[PAYLOAD_MAX + 8];
} received;

/* One fragment, as a receiver looks at it. */
static void take_frame(void *ctx, uint64_t now_ns, const void *frame,
		       size_t len)
{
	const struct wire_eth *eth = frame;
	const struct wire_ipv4 *ip = (const void *)(eth + 1);
	uint16_t field = be16toh(ip->frag);
	uint32_t at = (field & WIRE_IPV4_OFFSET) * 8u;
	uint32_t size = be16toh(ip->total_len) - (uint32_t)sizeof(*ip);

	(void)ctx, (void)now_ns;
	CHECK_EQ(len, sizeof(*eth) + sizeof(*ip) + size);
	CHECK(len <= sizeof(*eth) + cut.mtu);
	CHECK_MEM(eth, &way.header.eth, sizeof(*eth));
	CHECK_EQ(csum_fold(csum_partial(ip, sizeof(*ip), 0)), 0);
	CHECK_EQ(ip->ttl, way.header.ip.ttl);
	CHECK_EQ(ip->tos, way.header.ip.tos);
	CHECK_EQ(field & WIRE_IPV4_DF, 0);
	if (received.frame_cnt++)
		CHECK_EQ(be16toh(ip->id), received.id);
	received.id = be16toh(ip->id);
	CHECK_EQ(at, received.len);
	CHECK(at + size <= sizeof(received.bytes));
	memcpy(received.bytes + at, ip + 1, size);
	received.len = at + size;
	received.has_last = !(field & WIRE_IPV4_MF);
}

static void begin(uint32_t mtu)
{
	struct fake_cable_params cable_params = { .tap = take_frame };
	struct fake_params params = {
		.ifindex = 7,
		.mtu = MTU,
		.frame_cnt = FRAME_CNT,
		.frame_size = 2048,
		.fd = -1,
	};
	struct stack_params stack_params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = 1,
		.seed = 1,
	};
	struct demux_from from = { .ifindex = 7 };

	cable = fake_cable_create(&cable_params);
	CHECK(cable);
	CHECK_EQ(fake_dev_create(cable, 0, &params, &dev), 0);
	CHECK_EQ(stack_create(&stack_params, &stack), 0);
	CHECK_EQ(stack_add_ring(stack, dev, &from, &ring), 0);
	way = (struct udp_way){
		.dst = {
			.ring = ring,
			.cut_mtu = mtu,
		},
		.header = {
			.eth = { .dst = "peer", .src = "me",
				 .type = htobe16(WIRE_ETH_IPV4) },
			.ip = { .version_ihl = 0x45, .tos = 0x20, .ttl = 9,
				.frag = htobe16(WIRE_IPV4_DF),
				.proto = WIRE_PROTO_UDP,
				.src = htobe32(0x0a000001),
				.dst = htobe32(0x0a000002) },
			.udp = { .src_port = htobe16(7),
				 .dst_port = htobe16(8) },
		},
	};
	memset(&received, 0, sizeof(received));
}

/* All frames have come back. */
static void end(void)
{
	stack_remove_ring(stack, ring);
	dev->ops->close(dev);
	stack_destroy(stack);
	fake_cable_destroy(cable);
}

static void fill(void)
{
	struct pkt *pkt;
	size_t done = 0;

	LIST_FOR_EACH(pkt, &cut.pieces, link) {
		memcpy(pkt->data, payload + done, pkt->len);
		done += pkt->len;
	}
	CHECK_EQ(done, cut.len);
	udp_cut_sum(&cut);
}

static int send_datagram(uint32_t len)
{
	int err;

	memset(&received, 0, offsetof(typeof(received), bytes));
	stack_lock(stack);
	err = udp_cut_begin(&cut, &way, len);
	if (!err) {
		fill();
		err = udp_cut_send(&cut, &way, stack);
	}
	stack_unlock(stack);
	return err;
}

static void check_received(uint32_t len)
{
	const struct wire_udp *udp = (const void *)received.bytes;
	struct ip_addr src = ip_addr_from_v4(way.header.ip.src);
	struct ip_addr remote = ip_addr_from_v4(way.header.ip.dst);
	uint32_t pseudo = wire_pseudo_sum(&src, &remote, WIRE_PROTO_UDP,
					  received.len);

	CHECK(received.has_last);
	CHECK_EQ(received.len, len + sizeof(*udp));
	CHECK_EQ(received.frame_cnt, cut.piece_cnt);
	CHECK_EQ(udp->src_port, way.header.udp.src_port);
	CHECK_EQ(udp->dst_port, way.header.udp.dst_port);
	CHECK_EQ(be16toh(udp->len), received.len);
	CHECK(udp->check);
	CHECK_EQ(csum_fold(csum_partial(received.bytes, received.len, pseudo)),
		 0);
	CHECK_MEM(received.bytes + sizeof(*udp), payload, len);
}

TEST(fragments_make_the_datagram)
{
	static const uint32_t lens[] = { 1473, 1474,  1479, 1480,  1481,
					 2952, 2953, 9000, 65506, PAYLOAD_MAX };
	struct rand rand;

	rand_init(&rand, test_seed);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)rand_u32(&rand);
	begin(MTU);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		CHECK_EQ(send_datagram(lens[i]), 0);
		check_received(lens[i]);
	}
	for (int i = 0; i < 300; i++) {
		uint32_t len = (uint32_t)rand_between(&rand, 1500, PAYLOAD_MAX);

		way.dst.cut_mtu = (uint32_t)rand_between(&rand, 576, MTU);
		CHECK_EQ(send_datagram(len), 0);
		check_received(len);
	}
	end();
}

TEST(identifications_are_used_up_before_they_repeat)
{
	static bool is_used[65536];
	unsigned cnt = 0;

	begin(MTU);
	/* two sockets that send to one host */
	while (cnt < ARRAY_LEN(is_used)) {
		way.header.udp.src_port = htobe16((uint16_t)(cnt & 1));
		CHECK_EQ(send_datagram(1473), 0);
		CHECK(!is_used[received.id]);
		is_used[received.id] = true;
		cnt++;
	}
	end();
}

TEST(a_frame_too_few_sends_nothing)
{
	struct pkt *taken[FRAME_CNT];
	unsigned cnt = 0;

	begin(MTU);
	while (cnt < FRAME_CNT - 2)
		taken[cnt++] = ring_pkt_alloc(ring);
	CHECK_EQ(send_datagram(1480 * 3 - 8), -EAGAIN);
	CHECK_EQ(received.frame_cnt, 0);
	CHECK_EQ(send_datagram(1480 * 2 - 8), 0);
	check_received(1480 * 2 - 8);
	while (cnt)
		pkt_put(taken[--cnt]);
	CHECK_EQ(send_datagram(1480 * 3 - 8), 0);
	check_received(1480 * 3 - 8);
	end();
}

/* The pieces lie in frames already, and perhaps in the last ones. */
static bool fits_two(struct ring *unused, uint32_t cnt, uint32_t copied)
{
	(void)unused;
	return cnt <= 2 && !copied;
}

TEST(a_full_ring_sends_nothing)
{
	const struct ring_ops *real_ops;
	struct ring_ops ops;

	begin(MTU);
	real_ops = ring->ops;
	ops = *real_ops;
	ops.tx_fits = fits_two;
	ring->ops = &ops;
	CHECK_EQ(send_datagram(1480 * 3 - 8), -EAGAIN);
	CHECK_EQ(received.frame_cnt, 0);
	CHECK_EQ(send_datagram(1480 * 2 - 8), 0);
	CHECK_EQ(received.frame_cnt, 2);
	ring->ops = real_ops;
	end();
}

TEST(too_many_pieces_are_refused)
{
	begin(68);
	CHECK_EQ(send_datagram(48 * UDP_CUT_PIECES_MAX - 8), 0);
	check_received(48 * UDP_CUT_PIECES_MAX - 8);
	CHECK_EQ(send_datagram(48 * UDP_CUT_PIECES_MAX - 7), -EMSGSIZE);
	CHECK_EQ(send_datagram(PAYLOAD_MAX), -EMSGSIZE);
	CHECK_EQ(received.frame_cnt, 0);
	end();
}

/* However empty it was, it would never have room. */
TEST(more_than_the_ring_ever_takes_is_refused)
{
	begin(MTU);
	ring->tx_fits_max = 3;
	CHECK_EQ(send_datagram(1480 * 3 - 8), 0);
	CHECK_EQ(received.frame_cnt, 3);
	CHECK_EQ(send_datagram(1480 * 3 - 7), -EMSGSIZE);
	CHECK_EQ(received.frame_cnt, 0);
	end();
}

TEST(a_way_that_has_changed_is_noticed)
{
	begin(MTU);
	stack_lock(stack);
	CHECK_EQ(udp_cut_begin(&cut, &way, 3000), 0);
	CHECK(udp_cut_suits(&cut, &way));
	way.dst.cut_mtu = 1400;
	CHECK(!udp_cut_suits(&cut, &way));
	udp_cut_drop(&cut);
	stack_unlock(stack);
	end();
}
