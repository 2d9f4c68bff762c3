/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Forms of send entries that a card has which needs no inline headers: whole
 * frames by pointer, tags put in by the card, several frames in one entry. Run by
 * wqe.sh, with SOFTCX_MIN_INLINE=0; see card_test.c.
 */
#include "config.h"

#include <arpa/inet.h>

#include "direct.h"
#include "pair.h"
#include "tests/support/test.h"

enum {
	SEGMENT = 16,
	ETH_SEGMENT = 16, /* offset of the Ethernet segment, and of its fields */
	CS_FLAGS = ETH_SEGMENT + 4,
	INSERT = ETH_SEGMENT + 12,
	INSERT_VLAN = 0x8000,
	OPCODE_MULTI = 0x29,
	LEN = 42 + PAIR_DATA,
};

static struct direct d;
static struct ibv_flow *rule;

static void set_up(uint16_t vlan)
{
	struct rig_flow flow;

	pair_open(NULL, NULL);
	direct_init(&d, &pair_a);
	flow = pair_flow();
	flow.vlan = vlan;
	rule = rig_flow(&pair_b, &flow);
}

static void tear_down(void)
{
	ibv_destroy_flow(rule);
	pair_close();
}

/* Control and Ethernet segment. */
static struct direct_entry begin(uint8_t opcode)
{
	struct direct_entry e = { .len = 2 * SEGMENT, .index = d.sq_pi };

	mlx5dv_set_ctrl_seg((void *)e.bytes, e.index, opcode, 0, d.qpn,
			    MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, 0);
	return e;
}

static void put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* The count of segments is the last byte of the control segment's second word. */
static void add_pointer(struct direct_entry *e, const void *at, uint32_t len)
{
	struct mlx5_wqe_data_seg seg;

	mlx5dv_set_data_seg(&seg, len, pair_a.mr->lkey, (uintptr_t)at);
	memcpy(e->bytes + e->len, &seg, sizeof(seg));
	e->len += SEGMENT;
	e->bytes[7] = (uint8_t)(e->len / SEGMENT);
}

static void add_inline(struct direct_entry *e, const void *at, uint32_t len)
{
	uint32_t head = htonl(len | MLX5_INLINE_SEG);

	memcpy(e->bytes + e->len, &head, sizeof(head));
	memcpy(e->bytes + e->len + sizeof(head), at, len);
	e->len += (uint32_t)(sizeof(head) + len + SEGMENT - 1) / SEGMENT *
		  SEGMENT;
	e->bytes[7] = (uint8_t)(e->len / SEGMENT);
}

static void send_entry(const struct direct_entry *e)
{
	struct direct_wc wc = { 0 };

	direct_put(&d, e);
	direct_ring(&d, e, false);
	CHECK(STEP_UNTIL(direct_poll_send(&d, &wc)));
	CHECK_EQ(wc.opcode, MLX5_CQE_REQ);
	CHECK_EQ(wc.index, e->index);
}

/* The next frame that came, in slot `i` of b, is that of slot `from` of a. */
static void expect_frame(uint32_t i, uint32_t from)
{
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, LEN);
	CHECK_MEM(pair_b.slots + (size_t)i * RIG_SLOT,
		  rig_send_slot(&pair_a, from), LEN);
}

TEST(frame_without_an_inline_header)
{
	struct direct_entry e;
	struct rig_frame f;

	set_up(0);
	f = pair_frame();
	CHECK_EQ(pair_put(0, &f, PAIR_DATA), LEN);
	e = begin(MLX5_OPCODE_SEND);
	add_pointer(&e, rig_send_slot(&pair_a, 0), LEN);
	send_entry(&e);
	expect_frame(0, 0);
	tear_down();
}

/* libmlx5 asks the card, and then leaves the header where it is. */
TEST(library_writes_no_inline_headers)
{
	const uint8_t *ring;

	set_up(0);
	ring = d.qp.sq.buf;
	pair_send(0, 0);
	expect_frame(0, 0);
	CHECK_EQ(ring[INSERT] << 8 | ring[INSERT + 1], 0);
	CHECK_EQ(ring[7], 3);
	tear_down();
}

static struct direct_entry tagged(uint16_t tag)
{
	struct direct_entry e = begin(MLX5_OPCODE_SEND);

	put16(e.bytes + INSERT, INSERT_VLAN);
	put16(e.bytes + INSERT + 2, tag);
	return e;
}

TEST(vlan_tag_is_inserted)
{
	const uint16_t tag = 5 << 13 | 42;
	struct direct_entry e;
	struct rig_frame f;
	uint8_t expected[LEN + 4];

	set_up(42);
	f = pair_frame();
	pair_put(0, &f, PAIR_DATA);
	f.vlan = tag;
	CHECK_EQ(rig_build(expected, &f, rig_send_slot(&pair_a, 0) + 42,
			   PAIR_DATA), LEN + 4);
	e = tagged(tag);
	add_pointer(&e, rig_send_slot(&pair_a, 0), LEN);
	send_entry(&e);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, LEN + 4);
	CHECK_MEM(pair_b.slots, expected, LEN + 4);
	/* Inline data, and the checksums behind the tag. */
	e = tagged(42);
	e.bytes[CS_FLAGS] = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
	add_inline(&e, rig_send_slot(&pair_a, 0), LEN);
	send_entry(&e);
	CHECK(rig_next_wc(pair_b.recv_cq).wc_flags & IBV_WC_IP_CSUM_OK);
	CHECK_EQ(pair_b.slots[RIG_SLOT + 14] << 8 | pair_b.slots[RIG_SLOT + 15],
		 42);
	tear_down();
}

TEST(several_frames_in_one_entry)
{
	struct mlx5dv_context dv = { 0 };
	struct softcx_stats before;
	struct direct_entry e;
	struct direct_wc wc;
	struct rig_frame f;

	set_up(0);
	CHECK_EQ(mlx5dv_query_device(pair_a.ctx, &dv), 0);
	CHECK(dv.flags & MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW);
	f = pair_frame();
	for (uint32_t i = 0; i < 4; i++)
		pair_put(i, &f, PAIR_DATA);
	before = rig_stats("mlx5_0");
	e = begin(OPCODE_MULTI);
	add_pointer(&e, rig_send_slot(&pair_a, 0), LEN);
	add_inline(&e, rig_send_slot(&pair_a, 1), LEN);
	add_pointer(&e, rig_send_slot(&pair_a, 2), LEN);
	add_inline(&e, rig_send_slot(&pair_a, 3), LEN);
	send_entry(&e);
	for (uint32_t i = 0; i < 4; i++)
		expect_frame(i, i);
	/* One completion for all. */
	rig_settle();
	CHECK(!direct_poll_send(&d, &wc));
	CHECK_EQ(rig_stats("mlx5_0").tx_wire - before.tx_wire, 4);
	CHECK_EQ(rig_stats("mlx5_0").tx_entries - before.tx_entries, 1);
	/* The flags are for each of them. */
	e = begin(OPCODE_MULTI);
	e.bytes[CS_FLAGS] = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
	for (uint32_t i = 0; i < 40; i++)
		add_pointer(&e, rig_send_slot(&pair_a, i % 4), LEN);
	send_entry(&e);
	for (uint32_t i = 0; i < 40; i++)
		CHECK(rig_next_wc(pair_b.recv_cq).wc_flags & IBV_WC_IP_CSUM_OK);
	tear_down();
}
