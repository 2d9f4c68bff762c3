/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the card does for its user beside moving bytes: checksums, tags, time
 * stamps, segmentation, memory of its own, pacing. See card_test.c. */
#include "config.h"

#include <arpa/inet.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pair.h"
#include "tests/support/test.h"

static uint64_t time_of_day_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* What the pages make of the counter's value is the time at which it was read.
 * The first case, for those below set the clock. */
TEST(clock_info_is_the_time_of_day)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct mlx5dv_clock_info info;
	uint64_t before_ns, ns;

	pair_open(NULL, NULL);
	before_ns = time_of_day_ns();
	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(pair_a.ctx, &values), 0);
	CHECK_EQ(mlx5dv_get_clock_info(pair_a.ctx, &info), 0);
	ns = mlx5dv_ts_to_ns(&info, (uint64_t)values.raw_clock.tv_sec *
						NS_PER_SEC +
					    (uint64_t)values.raw_clock.tv_nsec);
	CHECK(ns + 20 * NS_PER_US > before_ns);
	CHECK(ns < time_of_day_ns() + 20 * NS_PER_US);
	pair_close();
}

TEST(checksum_offload_both_ways)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	/* Not asked for: IPv4 checksum 0 arrives as it is, and is wrong. */
	pair_send(0, 0);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK(!(wc.wc_flags & IBV_WC_IP_CSUM_OK));
	CHECK_EQ(pair_b.slots[24] << 8 | pair_b.slots[25], 0);
	pair_send(1, IBV_SEND_IP_CSUM);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	CHECK((pair_b.slots[RIG_SLOT + 24] << 8 | pair_b.slots[RIG_SLOT + 25]) != 0);
	CHECK((pair_b.slots[RIG_SLOT + 40] << 8 | pair_b.slots[RIG_SLOT + 41]) != 0);
	ibv_destroy_flow(rule);
	pair_close();
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

/* Gives b, which is open and idle, a queue pair that receives by `cq`. */
static void put_cq_to_b(struct ibv_cq_ex *cq, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 64,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
		.create_flags = create_flags,
	};

	CHECK_EQ(ibv_destroy_qp(pair_b.qp), 0);
	attr.pd = pair_b.pd;
	attr.send_cq = pair_b.send_cq;
	attr.recv_cq = ibv_cq_ex_to_cq(cq);
	pair_b.qp = ibv_create_qp_ex(pair_b.ctx, &attr);
	CHECK(pair_b.qp);
	rig_modify(&pair_b, IBV_QPS_INIT);
	rig_modify(&pair_b, IBV_QPS_RTR);
	rig_modify(&pair_b, IBV_QPS_RTS);
	for (uint32_t i = 0; i < 8; i++)
		rig_post_recv(&pair_b, i);
}

/* Opens b with an extended receive CQ. */
static struct ibv_cq_ex *open_b_ex(uint64_t flags, uint32_t create_flags)
{
	struct rig_params pb = { .is_idle = true, .is_unposted = true };
	struct ibv_cq_ex *cq;

	pair_open(NULL, &pb);
	cq = open_cq_ex(&pair_b, flags);
	put_cq_to_b(cq, create_flags);
	return cq;
}

static void close_b_ex(struct ibv_cq_ex *cq)
{
	CHECK_EQ(ibv_destroy_qp(pair_b.qp), 0);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ibv_destroy_cq(pair_b.send_cq);
	ibv_destroy_cq(pair_b.recv_cq);
	ibv_dereg_mr(pair_b.mr);
	ibv_dealloc_pd(pair_b.pd);
	CHECK_EQ(ibv_close_device(pair_b.ctx), 0);
	free(pair_b.slots);
	rig_close(&pair_a);
}

static bool start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };

	return ibv_start_poll(cq, &attr) == 0;
}

TEST(flow_tag_is_in_the_completion)
{
	struct ibv_cq_ex *cq = open_b_ex(IBV_WC_EX_WITH_FLOW_TAG, 0);
	struct rig_flow flow = pair_flow();
	struct ibv_flow *rule;

	flow.tag = 0xabcdef;
	rule = rig_flow(&pair_b, &flow);
	pair_send(0, 0);
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
	struct rig_flow flow = pair_flow();
	struct rig_frame f = pair_frame();
	struct ibv_flow *rule;

	flow.vlan = 42;
	rule = rig_flow(&pair_b, &flow);
	f.vlan = 42;
	rig_post_send(&pair_a, 0, pair_put(0, &f, PAIR_DATA), 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	CHECK_EQ(ibv_wc_read_cvlan(cq), 42);
	CHECK_EQ(ibv_wc_read_byte_len(cq), 42 + PAIR_DATA);
	CHECK_MEM(pair_b.slots + 12, "\x08\x00\x45", 3);
	ibv_end_poll(cq);
	ibv_destroy_flow(rule);
	close_b_ex(cq);
}

TEST(vlan_tag_arrives_in_the_frame_otherwise)
{
	struct rig_flow flow;
	struct rig_frame f;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	flow.vlan = 42;
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	f.vlan = 42;
	rig_post_send(&pair_a, 0, pair_put(0, &f, PAIR_DATA), 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 46 + PAIR_DATA);
	CHECK_MEM(pair_b.slots, rig_send_slot(&pair_a, 0), 46 + PAIR_DATA);
	/* Another tag is not this rule's. */
	f.vlan = 43;
	rig_post_send(&pair_a, 1, pair_put(1, &f, PAIR_DATA), 0);
	rig_expect_nothing(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(raw_time_stamps_follow_the_clock)
{
	struct ibv_cq_ex *cq =
		open_b_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	struct rig_flow flow = pair_flow();
	struct ibv_flow *rule = rig_flow(&pair_b, &flow);
	uint64_t now_ns = rig_now_ns(), first, second;

	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns), 0);
	pair_send(0, 0);
	CHECK(STEP_UNTIL(start_poll(cq)));
	first = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns + NS_PER_SEC), 0);
	pair_send(1, 0);
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

	pair_open(NULL, NULL);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(pair_a.ctx, &values), 0);
	cycles = (uint64_t)values.raw_clock.tv_sec * NS_PER_SEC +
		 (uint64_t)values.raw_clock.tv_nsec;
	CHECK_EQ(mlx5dv_get_clock_info(pair_a.ctx, &info), 0);
	ns = mlx5dv_ts_to_ns(&info, cycles);
	SOFTCX_CALL(softcx_clock_set, now_ns + 100 * NS_PER_MS);
	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(pair_a.ctx, &values), 0);
	CHECK_EQ(values.raw_clock.tv_nsec + values.raw_clock.tv_sec * 1000000000 -
			 (int64_t)cycles,
		 7812500);
	CHECK_EQ(mlx5dv_get_clock_info(pair_a.ctx, &info), 0);
	CHECK_EQ((mlx5dv_ts_to_ns(&info, cycles + 7812500) - ns + 500000) /
			 NS_PER_MS,
		 100);
	pair_close();
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

	pair_open(NULL, NULL);
	flow = pair_flow();
	flow.proto = IPPROTO_TCP;
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	f.proto = IPPROTO_TCP;
	rig_build(header, &f, "", 0);
	/* the length is each segment's; CWR, FIN, PSH, ACK */
	header[16] = header[17] = 0;
	header[18] = 0x12, header[19] = 0xfe;
	header[47] = 0x99;
	slot = rig_send_slot(&pair_a, 0);
	for (int i = 0; i < TOTAL; i++)
		slot[i] = (uint8_t)i;
	sge.addr = (uintptr_t)slot;
	sge.lkey = pair_a.mr->lkey;
	CHECK_EQ(ibv_post_send(pair_a.qp, &wr, &bad), 0);
	for (uint32_t i = 0, left = TOTAL; left; i++) {
		uint32_t part = MIN(left, (uint32_t)MSS), got;
		const uint8_t *frame = pair_b.slots + i * RIG_SLOT;
		struct ibv_wc wc = rig_next_wc(pair_b.recv_cq);

		CHECK_EQ(wc.byte_len, sizeof(header) + part);
		CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
		memcpy(&got, frame + 38, 4);
		CHECK_EQ(ntohl(got), seq);
		CHECK_EQ(frame[18] << 8 | frame[19], 0x12fe + i);
		CHECK_EQ(frame[16] << 8 | frame[17], 40 + part);
		CHECK_EQ(frame[47], (i ? 0 : 0x80) | (left > MSS ? 0x10 : 0x19));
		CHECK_MEM(frame + 54, slot + TOTAL - left, part);
		seq += part;
		left -= part;
	}
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(device_memory_is_sent_from)
{
	/* libmlx5 reads the inline header through the pointer itself. */
	enum { HEADER = 18 };
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_sge sge[2] = {
		{ .length = HEADER },
		{ .addr = 64, .length = 42 + PAIR_DATA - HEADER },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	dm = ibv_alloc_dm(pair_a.ctx, &attr);
	CHECK(dm);
	mr = ibv_reg_dm_mr(pair_a.pd, dm, 0, 4096,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	f = pair_frame();
	pair_put(0, &f, PAIR_DATA);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 64, rig_send_slot(&pair_a, 0) + HEADER, 128),
		 0);
	sge[0].addr = (uintptr_t)rig_send_slot(&pair_a, 0);
	sge[0].lkey = pair_a.mr->lkey;
	sge[1].lkey = mr->lkey;
	CHECK_EQ(ibv_post_send(pair_a.qp, &wr, &bad), 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 42 + PAIR_DATA);
	CHECK_MEM(pair_b.slots, rig_send_slot(&pair_a, 0), 42 + PAIR_DATA);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_free_dm(dm), 0);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(pacing_spaces_frames)
{
	/* 142 bytes at 1000 kbit/s take 1.136 ms. */
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000 };
	uint64_t now_ns = rig_now_ns() + 120 * NS_PER_SEC;
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_modify_qp_rate_limit(pair_a.qp, &attr), 0);
	pair_send(0, 0);
	pair_send(1, 0);
	rig_next_wc(pair_b.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	SOFTCX_CALL(softcx_clock_set, now_ns + 1135 * NS_PER_US);
	rig_expect_nothing(pair_b.recv_cq);
	SOFTCX_CALL(softcx_clock_set, now_ns + 1137 * NS_PER_US);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* A burst leaves at once, and counts as sent. */
TEST(pacing_allows_bursts)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = 1000,
		.max_burst_sz = 3 * (42 + PAIR_DATA),
		.typical_pkt_sz = 42 + PAIR_DATA,
	};
	uint64_t now_ns = rig_now_ns() + 240 * NS_PER_SEC;
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_modify_qp_rate_limit(pair_a.qp, &attr), 0);
	for (uint32_t i = 0; i < 5; i++)
		pair_send(i, 0);
	for (uint32_t i = 0; i < 3; i++)
		rig_next_wc(pair_b.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	/* One frame's time later there is room for one more. */
	SOFTCX_CALL(softcx_clock_set, now_ns + 1136 * NS_PER_US);
	rig_next_wc(pair_b.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	SOFTCX_CALL(softcx_clock_set, now_ns + 2 * 1136 * NS_PER_US);
	rig_next_wc(pair_b.recv_cq);
	/* A limit without bursts again. */
	attr.max_burst_sz = attr.typical_pkt_sz = 0;
	CHECK_EQ(ibv_modify_qp_rate_limit(pair_a.qp, &attr), 0);
	SOFTCX_CALL(softcx_clock_set, now_ns + NS_PER_SEC);
	pair_send(0, 0);
	pair_send(1, 0);
	rig_next_wc(pair_b.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* One of the eight in a compressed entry. */
struct mini {
	uint32_t hash_be;
	uint32_t byte_cnt_be;
};

/* A completion queue read as the kernel's driver reads it. */
struct reader {
	struct mlx5dv_cq cq;
	uint32_t ci;
	uint32_t n_compressed;
};

static struct mlx5_cqe64 *slot_of(struct reader *r, uint32_t i)
{
	uint8_t *ring = r->cq.buf;

	return (void *)(ring + (size_t)(i & (r->cq.cqe_cnt - 1)) * 64);
}

/* Entries that nothing was written to would look new in the lap after the next. */
static void take(struct reader *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, r->ci++)
		slot_of(r, r->ci)->op_own = (uint8_t)(
			MLX5_CQE_INVALID << 4 | !!(r->ci & r->cq.cqe_cnt));
	*(volatile uint32_t *)&r->cq.dbrec[0] = htobe32(r->ci & 0xffffff);
}

/* The lengths of the next completions; how many. */
static uint32_t read_some(struct reader *r, uint32_t lens[64],
			  uint16_t *index_out)
{
	struct mlx5_cqe64 *title = slot_of(r, r->ci);
	uint32_t n = be32toh(title->byte_cnt);
	uint8_t op_own = *(volatile uint8_t *)&title->op_own;

	if (op_own >> 4 == MLX5_CQE_INVALID ||
	    (op_own & 1) != !!(r->ci & r->cq.cqe_cnt))
		return 0;
	*index_out = be16toh(title->wqe_counter);
	if ((op_own >> 2 & 3) != 3) {
		lens[0] = n;
		take(r, 1);
		return 1;
	}
	CHECK(n > 1 && n <= 64);
	for (uint32_t i = 0; i < n; i++) {
		struct mini minis[8];
		uint32_t at = r->ci + (i < 8 ? 1 : i / 8 * 8);

		memcpy(minis, slot_of(r, at), sizeof(minis));
		CHECK_EQ(minis[i % 8].hash_be, 0);
		lens[i] = be32toh(minis[i % 8].byte_cnt_be);
	}
	r->n_compressed += n;
	take(r, n);
	return n;
}

/* Several laps of the ring, in bursts of all sizes. */
TEST(completions_are_compressed_on_request)
{
	struct rig_params pb = { .is_idle = true, .is_unposted = true };
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 63, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN,
	};
	struct mlx5dv_cq_init_attr dv = {
		.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
		.cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH,
	};
	struct mlx5dv_obj obj = { 0 };
	struct reader r = { 0 };
	struct mlx5dv_qp qp;
	struct ibv_cq_ex *cq;
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint32_t expected = 0;

	pair_open(NULL, &pb);
	cq = mlx5dv_create_cq(pair_b.ctx, &attr, &dv);
	CHECK(cq);
	put_cq_to_b(cq, 0);
	for (uint32_t i = 8; i < 64; i++)
		rig_post_recv(&pair_b, i);
	obj.cq.in = ibv_cq_ex_to_cq(cq);
	obj.cq.out = &r.cq;
	obj.qp.in = pair_b.qp;
	obj.qp.out = &qp;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP), 0);
	CHECK_EQ(r.cq.cqe_cnt, 64);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	for (uint32_t burst = 1; burst < 40; burst++) {
		uint32_t lens[64], n, got = 0;
		uint16_t index;

		for (uint32_t i = 0; i < burst; i++)
			rig_post_send(&pair_a, i,
				      pair_put(i, &f, PAIR_DATA + i),
				      i == burst - 1 ? IBV_SEND_SIGNALED : 0);
		while (got < burst) {
			CHECK(STEP_UNTIL((n = read_some(&r, lens, &index))));
			for (uint32_t i = 0; i < n; i++, got++, expected++) {
				CHECK_EQ(lens[i], 42 + PAIR_DATA + got);
				CHECK_EQ((index + i) & 0xffff,
					 expected & 0xffff);
			}
		}
		/* The same buffers once more, past libmlx5, which has seen no
		 * completion of theirs. */
		*(volatile uint32_t *)&qp.dbrec[MLX5_RCV_DBR] =
			htobe32((expected + 64) & 0xffff);
		CHECK_EQ(rig_next_wc(pair_a.send_cq).status, IBV_WC_SUCCESS);
	}
	CHECK(r.n_compressed > 500);
	CHECK_EQ(rig_stats("mlx5_1").cqes_compressed, r.n_compressed);
	ibv_destroy_flow(rule);
	close_b_ex(cq);
}
