/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the card does, one behaviour at a time, in manual mode: two cards in one
 * process, mlx5_0 and mlx5_1, at the ends of one cable. Run by card.sh.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "rig.h"
#include "tests/support/test.h"

static const uint32_t ip_a = 0x0a090001, ip_b = 0x0a090002;
enum { PORT_A = 5001, PORT_B = 5000, DATA = 100 };

static const uint8_t zeros[64];

/* a sends, b receives. */
static struct rig a, b;

static void open_both(const struct rig_params *pa, const struct rig_params *pb)
{
	struct rig_params params_a = pa ? *pa : (struct rig_params){ 0 };
	struct rig_params params_b = pb ? *pb : (struct rig_params){ 0 };

	params_a.dev = "mlx5_0";
	params_b.dev = "mlx5_1";
	rig_open(&a, &params_a);
	rig_open(&b, &params_b);
}

static void close_both(void)
{
	rig_close(&a);
	rig_close(&b);
}

static struct rig_flow flow_to_b(void)
{
	struct rig_flow flow = {
		.src_ip = ip_a,
		.dst_ip = ip_b,
		.src_port = PORT_A,
		.dst_port = PORT_B,
		.proto = IPPROTO_UDP,
	};

	memcpy(flow.dst_mac, b.mac, 6);
	return flow;
}

static struct rig_frame frame_to_b(void)
{
	struct rig_frame frame = {
		.src_ip = ip_a,
		.dst_ip = ip_b,
		.src_port = PORT_A,
		.dst_port = PORT_B,
		.proto = IPPROTO_UDP,
	};

	memcpy(frame.dst_mac, b.mac, 6);
	memcpy(frame.src_mac, a.mac, 6);
	return frame;
}

/* Builds the frame in send slot `i` of a. */
static uint32_t put_frame(uint32_t i, const struct rig_frame *f, uint32_t len)
{
	uint8_t data[1600];

	for (uint32_t k = 0; k < len; k++)
		data[k] = (uint8_t)(k * 7 + i);
	return rig_build(rig_send_slot(&a, i), f, data, len);
}

static void send_to_b(uint32_t i, unsigned int flags)
{
	struct rig_frame f = frame_to_b();

	rig_post_send(&a, i, put_frame(i, &f, DATA), flags);
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	CHECK(n >= 0);
	return n == 1;
}

/* One completion of the CQ, stepping the card until it comes. */
static struct ibv_wc next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	CHECK(STEP_UNTIL(poll_one(cq, &wc)));
	return wc;
}

static void expect_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	rig_settle();
	CHECK(!poll_one(cq, &wc));
}

TEST(frame_arrives_whole)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	send_to_b(3, IBV_SEND_SIGNALED);
	wc = next_wc(a.send_cq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 3);
	wc = next_wc(b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 0);
	CHECK_EQ(wc.byte_len, 42 + DATA);
	CHECK_MEM(b.slots, rig_send_slot(&a, 3), wc.byte_len);
	expect_nothing(b.recv_cq);
	CHECK_EQ(ibv_destroy_flow(rule), 0);
	close_both();
}

TEST(short_frame_is_padded)
{
	struct rig_frame f;
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	rig_post_send(&a, 0, put_frame(0, &f, 1), 0);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 60);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(inline_data_is_taken_at_once)
{
	struct rig_params pa = { .max_inline = 256 };
	uint8_t sent[RIG_SLOT];
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(&pa, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	send_to_b(0, IBV_SEND_INLINE);
	memcpy(sent, rig_send_slot(&a, 0), sizeof(sent));
	memset(rig_send_slot(&a, 0), 0xee, RIG_SLOT);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 42 + DATA);
	CHECK_MEM(b.slots, sent, 42 + DATA);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(checksum_offload_both_ways)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	/* Not asked for: IPv4 checksum 0 arrives as it is, and is wrong. */
	send_to_b(0, 0);
	wc = next_wc(b.recv_cq);
	CHECK(!(wc.wc_flags & IBV_WC_IP_CSUM_OK));
	CHECK_EQ(b.slots[24] << 8 | b.slots[25], 0);
	send_to_b(1, IBV_SEND_IP_CSUM);
	wc = next_wc(b.recv_cq);
	CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	CHECK((b.slots[RIG_SLOT + 24] << 8 | b.slots[RIG_SLOT + 25]) != 0);
	CHECK((b.slots[RIG_SLOT + 40] << 8 | b.slots[RIG_SLOT + 41]) != 0);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(default_is_the_kernel)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	open_both(NULL, NULL);
	flow = flow_to_b();
	f = frame_to_b();
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	rule = rig_flow(&b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 1);
	f.dst_port++;
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	f.dst_port--;
	ibv_destroy_flow(rule);
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	close_both();
}

TEST(fragments_match_no_ports)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	f.fragment = 0x2000;
	len = rig_build(frame, &f, zeros, 64);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_steer_frame, "mlx5_1", frame, len), 0);
	ibv_destroy_flow(rule);
	close_both();
}

/* Both halves of steering, the kernel's and the card's, on random frames that
 * hit and miss a set of rules of several shapes. */
TEST(kernel_and_card_agree_on_frames)
{
	struct ibv_flow *rules[5];
	struct rig_flow flow;
	unsigned int n_hits = 0, n_refused = 0;
	struct rand rand;

	open_both(NULL, NULL);
	rand_init(&rand, test_seed);
	flow = flow_to_b();
	rules[0] = rig_flow(&b, &flow);
	flow.src_ip = flow.src_port = 0;
	flow.dst_port = 7000;
	rules[1] = rig_flow(&b, &flow);
	flow.proto = IPPROTO_TCP;
	rules[2] = rig_flow(&b, &flow);
	flow.is_ipv6 = true;
	rules[3] = rig_flow(&b, &flow);
	flow = flow_to_b();
	flow.proto = 0;
	flow.dst_mac[0] = 1;
	rules[4] = rig_flow(&b, &flow);
	for (int i = 0; i < 20000; i++) {
		struct rig_frame f = frame_to_b();
		uint8_t frame[256] = { 0 };
		int kernel, card;
		uint32_t len;

		f.proto = rand_below(&rand, 2) ? IPPROTO_TCP : IPPROTO_UDP;
		f.is_ipv6 = rand_below(&rand, 3) == 0;
		f.dst_port = rand_below(&rand, 2) ? 7000 : PORT_B;
		f.dst_mac[0] = rand_below(&rand, 8) ? b.mac[0] : 1;
		f.fragment = rand_below(&rand, 8) ? 0 : 0x2001;
		len = rig_build(frame, &f, zeros, 20);
		/* Damage anywhere in the headers, or cut short. */
		if (rand_below(&rand, 2))
			frame[rand_below(&rand, 64)] ^=
				(uint8_t)(1 << rand_below(&rand, 8));
		if (rand_below(&rand, 4) == 0)
			len = (uint32_t)rand_between(&rand, 15, len);
		/* In a frame from a wire the tag is not in the bytes. */
		if (frame[12] == 0x81 && frame[13] == 0)
			continue;
		kernel = SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len);
		card = SOFTCX_CALL(softcx_steer_frame, "mlx5_1", frame, len);
		/* A dry run wants whole IP headers. */
		if (kernel == -EINVAL && len < 54) {
			n_refused++;
			continue;
		}
		if (kernel != (card > 0))
			FAIL("frame %d of %u bytes: kernel %d, card %d", i, len,
			     kernel, card);
		n_hits += card > 0;
	}
	test_note("%u hits, %u frames refused by the dry run", n_hits,
		  n_refused);
	CHECK(n_hits > 1000 && n_hits < 19000 && n_refused < 5000);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ibv_destroy_flow(rules[i]), 0);
	close_both();
}

TEST(priority_then_detail_decides)
{
	struct rig_flow exact, wide;
	struct ibv_flow *rules[3];
	struct rig c;
	struct rig_params pc = { .dev = "mlx5_1" };

	open_both(NULL, NULL);
	rig_open(&c, &pc);
	exact = flow_to_b();
	wide = exact;
	wide.src_ip = wide.src_port = 0;
	rules[0] = rig_flow(&c, &wide);
	rules[1] = rig_flow(&b, &exact);
	send_to_b(0, 0);
	next_wc(b.recv_cq);
	expect_nothing(c.recv_cq);
	/* The same wide rule, but not of lower precedence. */
	ibv_destroy_flow(rules[1]);
	exact.priority = 2;
	rules[1] = rig_flow(&b, &exact);
	send_to_b(0, 0);
	next_wc(c.recv_cq);
	expect_nothing(b.recv_cq);
	/* Equal rules: both get it. */
	wide.priority = 0;
	rules[2] = rig_flow(&b, &wide);
	send_to_b(0, 0);
	next_wc(c.recv_cq);
	next_wc(b.recv_cq);
	for (int i = 0; i < 3; i++)
		ibv_destroy_flow(rules[i]);
	rig_close(&c);
	close_both();
}

TEST(multicast_by_mac_reaches_every_queue)
{
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 1, 2, 3 };
	struct ibv_flow *rules[2];
	struct rig_flow flow = { 0 };
	struct rig_frame f;
	struct rig c;
	struct rig_params pc = { .dev = "mlx5_1" };

	open_both(NULL, NULL);
	rig_open(&c, &pc);
	memcpy(flow.dst_mac, group, 6);
	rules[0] = rig_flow(&b, &flow);
	rules[1] = rig_flow(&c, &flow);
	f = frame_to_b();
	memcpy(f.dst_mac, group, 6);
	rig_post_send(&a, 0, put_frame(0, &f, DATA), 0);
	next_wc(b.recv_cq);
	next_wc(c.recv_cq);
	CHECK_MEM(c.slots, b.slots, 42 + DATA);
	for (int i = 0; i < 2; i++)
		ibv_destroy_flow(rules[i]);
	rig_close(&c);
	close_both();
}

TEST(ipv6_rule_matches)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.is_ipv6 = true;
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	f.is_ipv6 = true;
	rig_post_send(&a, 0, put_frame(0, &f, DATA), IBV_SEND_IP_CSUM);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 62 + DATA);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(drop_rule_drops)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.is_drop = true;
	rule = rig_flow(&b, &flow);
	send_to_b(0, 0);
	CHECK(STEP_UNTIL(rig_stats("mlx5_1").rx_dropped_by_rule == 1));
	expect_nothing(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(dont_trap_rule_leaves_the_kernel_its_copy)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.is_copy = true;
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	send_to_b(0, 0);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 42 + DATA);
	/* One match cannot both hide frames and leave them. */
	flow.is_copy = false;
	CHECK(!rig_flow_try(&b, &flow));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	ibv_destroy_flow(rule);
	rule = rig_flow(&b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 1);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(unknown_rules_are_refused)
{
	struct rig_flow flow;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.type = IBV_FLOW_ATTR_SNIFFER;
	CHECK(!rig_flow_try(&b, &flow));
	CHECK_EQ(errno, EOPNOTSUPP);
	close_both();
}

/* mlx5_cqe64 as the extended poll shows it. */
static struct ibv_cq_ex *open_cq_ex(struct rig *rig, uint64_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | flags,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(rig->ctx, &attr);

	CHECK(cq);
	return cq;
}

/* Opens b with an extended receive CQ. */
static struct ibv_cq_ex *open_b_ex(uint64_t flags, uint32_t create_flags)
{
	struct rig_params pb = { .is_idle = true, .is_unposted = true };
	struct ibv_cq_ex *cq;
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 64,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
		.create_flags = create_flags,
	};

	open_both(NULL, &pb);
	cq = open_cq_ex(&b, flags);
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	attr.pd = b.pd;
	attr.send_cq = b.send_cq;
	attr.recv_cq = ibv_cq_ex_to_cq(cq);
	b.qp = ibv_create_qp_ex(b.ctx, &attr);
	CHECK(b.qp);
	rig_modify(&b, IBV_QPS_INIT);
	rig_modify(&b, IBV_QPS_RTR);
	rig_modify(&b, IBV_QPS_RTS);
	for (uint32_t i = 0; i < 8; i++)
		rig_post_recv(&b, i);
	return cq;
}

static void close_b_ex(struct ibv_cq_ex *cq)
{
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ibv_destroy_cq(b.send_cq);
	ibv_destroy_cq(b.recv_cq);
	ibv_dereg_mr(b.mr);
	ibv_dealloc_pd(b.pd);
	CHECK_EQ(ibv_close_device(b.ctx), 0);
	free(b.slots);
	rig_close(&a);
}

static bool start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };

	return ibv_start_poll(cq, &attr) == 0;
}

TEST(flow_tag_is_in_the_completion)
{
	struct ibv_cq_ex *cq = open_b_ex(IBV_WC_EX_WITH_FLOW_TAG, 0);
	struct rig_flow flow = flow_to_b();
	struct ibv_flow *rule;

	flow.tag = 0xabcdef;
	rule = rig_flow(&b, &flow);
	send_to_b(0, 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	CHECK_EQ(ibv_wc_read_flow_tag(cq), 0xabcdef);
	ibv_end_poll(cq);
	ibv_destroy_flow(rule);
	close_b_ex(cq);
}

TEST(vlan_tag_is_stripped_on_request)
{
	struct ibv_cq_ex *cq = open_b_ex(IBV_WC_EX_WITH_CVLAN,
					 IBV_QP_CREATE_CVLAN_STRIPPING);
	struct rig_flow flow = flow_to_b();
	struct rig_frame f = frame_to_b();
	struct ibv_flow *rule;

	flow.vlan = 42;
	rule = rig_flow(&b, &flow);
	f.vlan = 42;
	rig_post_send(&a, 0, put_frame(0, &f, DATA), 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	CHECK_EQ(ibv_wc_read_cvlan(cq), 42);
	CHECK_EQ(ibv_wc_read_byte_len(cq), 42 + DATA);
	CHECK_MEM(b.slots + 12, "\x08\x00\x45", 3);
	ibv_end_poll(cq);
	ibv_destroy_flow(rule);
	close_b_ex(cq);
}

TEST(vlan_tag_arrives_in_the_frame_otherwise)
{
	struct rig_flow flow;
	struct rig_frame f;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.vlan = 42;
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	f.vlan = 42;
	rig_post_send(&a, 0, put_frame(0, &f, DATA), 0);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 46 + DATA);
	CHECK_MEM(b.slots, rig_send_slot(&a, 0), 46 + DATA);
	/* Another tag is not this rule's. */
	f.vlan = 43;
	rig_post_send(&a, 1, put_frame(1, &f, DATA), 0);
	expect_nothing(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(raw_time_stamps_follow_the_clock)
{
	struct ibv_cq_ex *cq =
		open_b_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	struct rig_flow flow = flow_to_b();
	struct ibv_flow *rule = rig_flow(&b, &flow);
	uint64_t now_ns = rig_now_ns(), first, second;

	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns), 0);
	send_to_b(0, 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	first = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns + NS_PER_SEC), 0);
	send_to_b(1, 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	second = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	CHECK_EQ(second - first, 78125000);
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns), -EINVAL);
	ibv_destroy_flow(rule);
	close_b_ex(cq);
}

TEST(clock_pages_agree_with_the_time)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct mlx5dv_clock_info info;
	uint64_t cycles, now_ns = rig_now_ns() + 10 * NS_PER_SEC, ns;

	open_both(NULL, NULL);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(a.ctx, &values), 0);
	cycles = (uint64_t)values.raw_clock.tv_sec * NS_PER_SEC +
		 (uint64_t)values.raw_clock.tv_nsec;
	CHECK_EQ(mlx5dv_get_clock_info(a.ctx, &info), 0);
	ns = mlx5dv_ts_to_ns(&info, cycles);
	SOFTCX_CALL(softcx_clock_set, now_ns + 100 * NS_PER_MS);
	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(a.ctx, &values), 0);
	CHECK_EQ(values.raw_clock.tv_nsec + values.raw_clock.tv_sec * 1000000000 -
			 (int64_t)cycles,
		 7812500);
	CHECK_EQ(mlx5dv_get_clock_info(a.ctx, &info), 0);
	CHECK_EQ((mlx5dv_ts_to_ns(&info, cycles + 7812500) - ns + 500000) /
			 NS_PER_MS,
		 100);
	close_both();
}

TEST(no_entry_leaves_without_a_doorbell)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	uint64_t before;

	open_both(NULL, NULL);
	before = rig_stats("mlx5_0").tx_entries;
	obj.qp.in = a.qp;
	obj.qp.out = &dv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	/* The record alone: entries posted, bell not rung. */
	dv.dbrec[MLX5_SND_DBR] = htobe32(1);
	rig_settle();
	CHECK_EQ(rig_stats("mlx5_0").tx_entries, before);
	dv.dbrec[MLX5_SND_DBR] = 0;
	close_both();
}

TEST(want_of_receive_entries_drops)
{
	struct rig_params pb = { .is_unposted = true };
	struct rig_flow flow;
	struct ibv_flow *rule;
	uint64_t before;

	open_both(NULL, &pb);
	before = rig_stats("mlx5_1").rx_no_buffer;
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	rig_post_recv(&b, 0);
	send_to_b(0, 0);
	send_to_b(1, 0);
	next_wc(b.recv_cq);
	CHECK(STEP_UNTIL(rig_stats("mlx5_1").rx_no_buffer == before + 1));
	expect_nothing(b.recv_cq);
	rig_post_recv(&b, 0);
	send_to_b(2, 0);
	next_wc(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(states_are_true_and_ordered)
{
	struct rig_params pa = { .is_idle = true, .is_unposted = true };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init;

	open_both(&pa, NULL);
	CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) != 0);
	CHECK_EQ(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RESET);
	rig_modify(&a, IBV_QPS_INIT);
	rig_modify(&a, IBV_QPS_RTR);
	rig_modify(&a, IBV_QPS_RTS);
	CHECK_EQ(ibv_query_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init),
		 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
	CHECK_EQ(attr.cap.max_recv_wr, 64);
	close_both();
}

TEST(error_state_flushes_both_queues)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	open_both(NULL, NULL);
	rig_modify(&b, IBV_QPS_ERR);
	CHECK(STEP_UNTIL(poll_one(b.recv_cq, &wc) &&
			 wc.status == IBV_WC_WR_FLUSH_ERR && ++n == 64));
	/* What is posted to a stopped queue comes back as well. */
	rig_post_recv(&b, 5);
	wc = next_wc(b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 5);
	rig_post_send(&b, 2, 60, 0);
	wc = next_wc(b.send_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 2);
	close_both();
}

TEST(reset_starts_over)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	for (uint32_t i = 0; i < 5; i++)
		send_to_b(i, IBV_SEND_SIGNALED);
	for (int i = 0; i < 5; i++)
		next_wc(b.recv_cq);
	rig_modify(&a, IBV_QPS_RESET);
	rig_modify(&a, IBV_QPS_INIT);
	rig_modify(&a, IBV_QPS_RTR);
	rig_modify(&a, IBV_QPS_RTS);
	send_to_b(7, IBV_SEND_SIGNALED);
	CHECK_EQ(next_wc(b.recv_cq).wr_id, 5);
	ibv_destroy_flow(rule);
	close_both();
}

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* Takes the event of `rig`'s channel and checks which CQ it names. */
static void take_event(struct rig *rig, struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(ibv_get_cq_event(rig->chan, &cq, &context), 0);
	CHECK(cq == expected);
	CHECK(context == rig);
	ibv_ack_cq_events(cq, 1);
}

TEST(armed_queue_raises_one_event)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, &pb);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	send_to_b(0, 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	/* There is a completion already: arming fires at once. */
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	next_wc(b.recv_cq);
	/* Not armed again: silence. */
	send_to_b(1, 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	next_wc(b.recv_cq);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	send_to_b(2, 0);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	next_wc(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

/* Their doorbells overwrite each other before the card has looked. */
TEST(two_queues_armed_at_once_both_fire)
{
	struct rig_params p = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;
	uint64_t before;

	open_both(NULL, &p);
	before = rig_stats("mlx5_1").bells_overtaken;
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(b.send_cq, 0), 0);
	rig_settle();
	CHECK_EQ(rig_stats("mlx5_1").bells_overtaken, before + 1);
	send_to_b(0, 0);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	rig_post_send(&b, 0, 60, IBV_SEND_SIGNALED);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.send_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(solicited_only_ignores_frames)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, &pb);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 1), 0);
	send_to_b(0, 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	/* Errors always count. */
	rig_modify(&b, IBV_QPS_ERR);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(moderation_waits_for_count_or_time)
{
	struct rig_params pb = { .has_channel = true };
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 3, .cq_period = 1000 },
	};
	uint64_t now_ns = rig_now_ns() + 60 * NS_PER_SEC;
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, &pb);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_modify_cq(b.recv_cq, &attr), 0);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	send_to_b(0, 0);
	send_to_b(1, 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	send_to_b(2, 0);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	for (int i = 0; i < 3; i++)
		next_wc(b.recv_cq);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	send_to_b(3, 0);
	rig_settle();
	CHECK(!is_readable(b.chan->fd));
	SOFTCX_CALL(softcx_clock_set, now_ns + NS_PER_MS);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	take_event(&b, b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

/* Tear-down waits for the events that were read, and for no others. */
TEST(unread_events_do_not_block_destroy)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, &pb);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
	send_to_b(0, 0);
	CHECK(STEP_UNTIL(is_readable(b.chan->fd)));
	ibv_destroy_flow(rule);
	close_both();
}

static enum ibv_event_type next_async(struct rig *rig)
{
	struct ibv_async_event event;
	enum ibv_event_type type;

	CHECK(STEP_UNTIL(is_readable(rig->ctx->async_fd)));
	CHECK_EQ(ibv_get_async_event(rig->ctx, &event), 0);
	type = event.event_type;
	if (type == IBV_EVENT_QP_FATAL)
		CHECK(event.element.qp == rig->qp);
	if (type == IBV_EVENT_CQ_ERR)
		CHECK(event.element.cq == rig->recv_cq);
	ibv_ack_async_event(&event);
	return type;
}

TEST(port_goes_down_and_up)
{
	struct ibv_port_attr attr;
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_port_set, "mlx5_1", 0), 0);
	CHECK_EQ(next_async(&b), IBV_EVENT_PORT_ERR);
	CHECK_EQ(ibv_query_port(b.ctx, 1, &attr), 0);
	CHECK_EQ(attr.state, IBV_PORT_DOWN);
	send_to_b(0, 0);
	expect_nothing(b.recv_cq);
	CHECK_EQ(SOFTCX_CALL(softcx_port_set, "mlx5_1", 1), 0);
	CHECK_EQ(next_async(&b), IBV_EVENT_PORT_ACTIVE);
	CHECK_EQ(ibv_query_port(b.ctx, 1, &attr), 0);
	CHECK_EQ(attr.state, IBV_PORT_ACTIVE);
	send_to_b(1, 0);
	next_wc(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(port_follows_the_interface)
{
	open_both(NULL, NULL);
	CHECK_EQ(system("LD_PRELOAD= ip link set eth0 down"), 0);
	CHECK_EQ(next_async(&a), IBV_EVENT_PORT_ERR);
	CHECK_EQ(system("LD_PRELOAD= ip link set eth0 up"), 0);
	CHECK_EQ(next_async(&a), IBV_EVENT_PORT_ACTIVE);
	/* The other end lost its carrier, and has it again. */
	CHECK_EQ(next_async(&b), IBV_EVENT_PORT_ERR);
	CHECK_EQ(next_async(&b), IBV_EVENT_PORT_ACTIVE);
	close_both();
}

TEST(failed_queue_pair_says_so)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	open_both(NULL, NULL);
	CHECK_EQ(SOFTCX_CALL(softcx_fail_qp, "mlx5_1", b.qp->qp_num), 0);
	CHECK_EQ(next_async(&b), IBV_EVENT_QP_FATAL);
	CHECK_EQ(ibv_query_qp(b.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	wc = next_wc(b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	close_both();
}

TEST(failed_completion_queue_says_so)
{
	struct mlx5dv_cq dv = { 0 };
	struct mlx5dv_obj obj = { 0 };

	open_both(NULL, NULL);
	obj.cq.in = b.recv_cq;
	obj.cq.out = &dv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_fail_cq, "mlx5_1", dv.cqn), 0);
	CHECK_EQ(next_async(&b), IBV_EVENT_CQ_ERR);
	close_both();
}

TEST(segmentation_cuts_and_numbers)
{
	enum { MSS = 500, TOTAL = 1400 };
	uint8_t header[54], *slot;
	struct ibv_sge sge = { .length = TOTAL };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_TSO,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_IP_CSUM,
		.tso = { .hdr = header, .hdr_sz = sizeof(header), .mss = MSS },
	};
	struct ibv_send_wr *bad;
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint32_t seq = 1000;

	open_both(NULL, NULL);
	flow = flow_to_b();
	flow.proto = IPPROTO_TCP;
	rule = rig_flow(&b, &flow);
	f = frame_to_b();
	f.proto = IPPROTO_TCP;
	rig_build(header, &f, "", 0);
	slot = rig_send_slot(&a, 0);
	for (int i = 0; i < TOTAL; i++)
		slot[i] = (uint8_t)i;
	sge.addr = (uintptr_t)slot;
	sge.lkey = a.mr->lkey;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	for (uint32_t i = 0, left = TOTAL; left; i++) {
		uint32_t part = MIN(left, (uint32_t)MSS), got;
		const uint8_t *frame = b.slots + i * RIG_SLOT;
		struct ibv_wc wc = next_wc(b.recv_cq);

		CHECK_EQ(wc.byte_len, sizeof(header) + part);
		CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
		memcpy(&got, frame + 38, 4);
		CHECK_EQ(ntohl(got), seq);
		CHECK_EQ(frame[19], i);
		CHECK_EQ(frame[47], left > MSS ? 0x10 : 0x18);
		CHECK_MEM(frame + 54, slot + TOTAL - left, part);
		seq += part;
		left -= part;
	}
	ibv_destroy_flow(rule);
	close_both();
}

TEST(device_memory_is_sent_from)
{
	/* libmlx5 reads the inline header through the pointer itself. */
	enum { HEADER = 18 };
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_sge sge[2] = {
		{ .length = HEADER },
		{ .addr = 64, .length = 42 + DATA - HEADER },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	dm = ibv_alloc_dm(a.ctx, &attr);
	CHECK(dm);
	mr = ibv_reg_dm_mr(a.pd, dm, 0, 4096,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	f = frame_to_b();
	put_frame(0, &f, DATA);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 64, rig_send_slot(&a, 0) + HEADER, 128),
		 0);
	sge[0].addr = (uintptr_t)rig_send_slot(&a, 0);
	sge[0].lkey = a.mr->lkey;
	sge[1].lkey = mr->lkey;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	CHECK_EQ(next_wc(b.recv_cq).byte_len, 42 + DATA);
	CHECK_MEM(b.slots, rig_send_slot(&a, 0), 42 + DATA);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_free_dm(dm), 0);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(pacing_spaces_frames)
{
	/* 142 bytes at 1000 kbit/s take 1.136 ms. */
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000 };
	uint64_t now_ns = rig_now_ns() + 120 * NS_PER_SEC;
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_modify_qp_rate_limit(a.qp, &attr), 0);
	send_to_b(0, 0);
	send_to_b(1, 0);
	next_wc(b.recv_cq);
	expect_nothing(b.recv_cq);
	SOFTCX_CALL(softcx_clock_set, now_ns + 1135 * NS_PER_US);
	expect_nothing(b.recv_cq);
	SOFTCX_CALL(softcx_clock_set, now_ns + 1137 * NS_PER_US);
	next_wc(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(busy_objects_are_not_destroyed)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(ibv_destroy_cq(b.recv_cq), EBUSY);
	CHECK_EQ(ibv_destroy_qp(b.qp), EBUSY);
	CHECK_EQ(ibv_dealloc_pd(b.pd), EBUSY);
	ibv_destroy_flow(rule);
	close_both();
}

TEST(what_the_card_lacks_is_refused)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1,
						   .max_sge = 1 } };

	open_both(NULL, NULL);
	attr.send_cq = attr.recv_cq = a.send_cq;
	CHECK(!ibv_create_qp(a.pd, &attr));
	CHECK(!ibv_create_srq(a.pd, &srq));
	close_both();
}

/* A child may use cards of its own, and the parent does not notice. */
TEST(fork_leaves_the_parent_its_card)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	int status;
	pid_t pid;

	open_both(NULL, NULL);
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	pid = fork();
	if (!pid) {
		struct rig_params params = { .dev = "mlx5_0" };
		struct rig c;

		rig_open(&c, &params);
		rig_close(&c);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	send_to_b(0, 0);
	next_wc(b.recv_cq);
	ibv_destroy_flow(rule);
	close_both();
}

/* Sends frames numbered in their first data bytes, one by one, under `params`;
 * tallies what arrives: whole, damaged, out of order. */
struct tally {
	uint32_t n_whole;
	uint32_t n_damaged;
	uint32_t n_twice;
	uint32_t n_behind; /* after one with a higher number */
	struct impair_counts counts;
	uint64_t n_strange;  /* damaged so that no rule matched */
};

enum { N_FAULTY = 3000 };

static void take_faulty(struct tally *t, uint8_t *seen, uint32_t *highest)
{
	struct ibv_wc wc;

	while (poll_one(b.recv_cq, &wc)) {
		const uint8_t *frame = b.slots + wc.wr_id * RIG_SLOT;
		uint32_t number;

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		memcpy(&number, frame + 42, 4);
		if (number >= N_FAULTY ||
		    memcmp(frame, rig_send_slot(&a, 0), 42) != 0 ||
		    memcmp(frame + 46, rig_send_slot(&a, 0) + 46, DATA - 4)) {
			t->n_damaged++;
		} else {
			t->n_whole++;
			t->n_twice += seen[number]++ > 0;
			t->n_behind += number < *highest;
			*highest = MAX(*highest, number);
		}
		rig_post_recv(&b, (uint32_t)wc.wr_id);
	}
}

static struct tally run_faulty(const struct impair_params *params)
{
	static uint8_t seen[N_FAULTY];
	static uint64_t now_ns;
	struct softcx_stats before;
	struct impair_counts old;
	struct tally t = { 0 };
	struct rig_flow flow;
	struct ibv_flow *rule;
	uint32_t highest = 0, len;
	struct rig_frame f;

	memset(seen, 0, sizeof(seen));
	open_both(NULL, NULL);
	if (!now_ns)
		now_ns = rig_now_ns() + 600 * NS_PER_SEC;
	flow = flow_to_b();
	rule = rig_flow(&b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_impair, "mlx5_1", params), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, "mlx5_1", &old), 0);
	before = rig_stats("mlx5_1");
	f = frame_to_b();
	len = put_frame(0, &f, DATA);
	for (uint32_t i = 0; i < N_FAULTY; i++) {
		memcpy(rig_send_slot(&a, 0) + 42, &i, 4);
		rig_post_send(&a, 0, len, IBV_SEND_SIGNALED);
		next_wc(a.send_cq);
		SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_US);
		SOFTCX_CALL(softcx_step);
		take_faulty(&t, seen, &highest);
	}
	/* What was held back comes in the end. */
	SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_SEC);
	rig_settle();
	take_faulty(&t, seen, &highest);
	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, "mlx5_1", &t.counts), 0);
	t.n_strange = rig_stats("mlx5_1").rx_no_rule - before.rx_no_rule;
	CHECK_EQ(t.counts.sent - old.sent, N_FAULTY);
	CHECK_EQ(t.n_whole + t.n_damaged + t.n_strange, t.counts.delivered);
	ibv_destroy_flow(rule);
	close_both();
	return t;
}

TEST(loss_is_exactly_what_was_injected)
{
	struct impair_params params = { .loss_ppm = 50000 };
	struct tally t = run_faulty(&params);

	CHECK(t.counts.lost > 50);
	CHECK_EQ(t.n_whole, N_FAULTY - t.counts.lost);
	CHECK_EQ(t.n_damaged + t.n_twice + t.n_behind, 0);
}

TEST(duplicates_are_exactly_what_was_injected)
{
	struct impair_params params = { .dup_ppm = 50000 };
	struct tally t = run_faulty(&params);

	CHECK(t.counts.duplicated > 50);
	CHECK_EQ(t.n_whole, N_FAULTY + t.counts.duplicated);
	CHECK_EQ(t.n_twice, t.counts.duplicated);
}

TEST(damage_is_exactly_what_was_injected)
{
	struct impair_params params = { .corrupt_ppm = 50000 };
	struct tally t = run_faulty(&params);

	CHECK(t.counts.corrupted > 50);
	/* A number may change into another valid one: seen twice. */
	CHECK_EQ(t.n_damaged + t.n_strange + t.n_twice, t.counts.corrupted);
}

TEST(reordering_is_exactly_what_was_injected)
{
	struct impair_params params = { .reorder_ppm = 50000,
					.reorder_cnt = 3 };
	struct tally t = run_faulty(&params);

	CHECK(t.counts.held > 50);
	CHECK_EQ(t.n_whole, N_FAULTY);
	CHECK(t.n_behind > 0 && t.n_behind <= t.counts.held);
}

TEST(removed_device_is_fatal)
{
	struct ibv_port_attr attr;
	struct rig_flow flow;

	open_both(NULL, NULL);
	flow = flow_to_b();
	CHECK_EQ(SOFTCX_CALL(softcx_remove, "mlx5_1"), 0);
	CHECK_EQ(next_async(&b), IBV_EVENT_DEVICE_FATAL);
	CHECK(ibv_query_port(b.ctx, 1, &attr) != 0);
	CHECK(!rig_flow_try(&b, &flow));
	CHECK_EQ(errno, EIO);
	rig_close(&a);
}
