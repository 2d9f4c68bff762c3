/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes wrong when it is asked to: events, and frames lost, doubled, damaged
 * and late. See card_test.c. */
#include "config.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pair.h"
#include "tests/support/test.h"

TEST(port_goes_down_and_up)
{
	struct ibv_port_attr attr;
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_port_set, "mlx5_1", 0), 0);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_PORT_ERR);
	CHECK_EQ(ibv_query_port(pair_b.ctx, 1, &attr), 0);
	CHECK_EQ(attr.state, IBV_PORT_DOWN);
	pair_send(0, 0);
	rig_expect_nothing(pair_b.recv_cq);
	CHECK_EQ(SOFTCX_CALL(softcx_port_set, "mlx5_1", 1), 0);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_PORT_ACTIVE);
	CHECK_EQ(ibv_query_port(pair_b.ctx, 1, &attr), 0);
	CHECK_EQ(attr.state, IBV_PORT_ACTIVE);
	pair_send(1, 0);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(port_follows_the_interface)
{
	pair_open(NULL, NULL);
	CHECK_EQ(system("LD_PRELOAD= ip link set eth0 down"), 0);
	CHECK_EQ(rig_next_async(&pair_a), IBV_EVENT_PORT_ERR);
	/* The other end's carrier follows from a work queue of the kernel: one
	 * that comes back before the queue ran was never lost. */
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_PORT_ERR);
	CHECK_EQ(system("LD_PRELOAD= ip link set eth0 up"), 0);
	CHECK_EQ(rig_next_async(&pair_a), IBV_EVENT_PORT_ACTIVE);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_PORT_ACTIVE);
	pair_close();
}

TEST(failed_queue_pair_says_so)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	pair_open(NULL, NULL);
	CHECK_EQ(SOFTCX_CALL(softcx_fail_qp, "mlx5_1", pair_b.qp->qp_num), 0);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_QP_FATAL);
	CHECK_EQ(ibv_query_qp(pair_b.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	pair_close();
}

TEST(failed_completion_queue_says_so)
{
	struct mlx5dv_cq dv = { 0 };
	struct mlx5dv_obj obj = { 0 };

	pair_open(NULL, NULL);
	obj.cq.in = pair_b.recv_cq;
	obj.cq.out = &dv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_fail_cq, "mlx5_1", dv.cqn), 0);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_CQ_ERR);
	pair_close();
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

	while (rig_poll(pair_b.recv_cq, &wc)) {
		const uint8_t *frame = pair_b.slots + wc.wr_id * RIG_SLOT;
		uint32_t number;

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		memcpy(&number, frame + 42, 4);
		if (number >= N_FAULTY ||
		    memcmp(frame, rig_send_slot(&pair_a, 0), 42) != 0 ||
		    memcmp(frame + 46, rig_send_slot(&pair_a, 0) + 46, PAIR_DATA - 4)) {
			t->n_damaged++;
		} else {
			t->n_whole++;
			t->n_twice += seen[number]++ > 0;
			t->n_behind += number < *highest;
			*highest = MAX(*highest, number);
		}
		rig_post_recv(&pair_b, (uint32_t)wc.wr_id);
	}
}

/* A device that an earlier case could not close has counted before. */
static struct impair_counts counts_since(const struct impair_counts *old)
{
	struct impair_counts n;

	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, "mlx5_1", &n), 0);
	n.sent -= old->sent;
	n.delivered -= old->delivered;
	n.lost -= old->lost;
	n.duplicated -= old->duplicated;
	n.corrupted -= old->corrupted;
	n.held -= old->held;
	return n;
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
	pair_open(NULL, NULL);
	if (!now_ns)
		now_ns = rig_now_ns() + 600 * NS_PER_SEC;
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_impair, "mlx5_1", params), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, "mlx5_1", &old), 0);
	before = rig_stats("mlx5_1");
	f = pair_frame();
	len = pair_put(0, &f, PAIR_DATA);
	for (uint32_t i = 0; i < N_FAULTY; i++) {
		memcpy(rig_send_slot(&pair_a, 0) + 42, &i, 4);
		rig_post_send(&pair_a, 0, len, IBV_SEND_SIGNALED);
		rig_next_wc(pair_a.send_cq);
		SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_US);
		SOFTCX_CALL(softcx_step);
		take_faulty(&t, seen, &highest);
	}
	/* What was held back comes in the end. */
	SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_SEC);
	rig_settle();
	take_faulty(&t, seen, &highest);
	t.counts = counts_since(&old);
	t.n_strange = rig_stats("mlx5_1").rx_no_rule - before.rx_no_rule;
	CHECK_EQ(t.counts.sent, N_FAULTY);
	CHECK_EQ(t.n_whole + t.n_damaged + t.n_strange, t.counts.delivered);
	ibv_destroy_flow(rule);
	pair_close();
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

	pair_open(NULL, NULL);
	flow = pair_flow();
	CHECK_EQ(SOFTCX_CALL(softcx_remove, "mlx5_1"), 0);
	CHECK_EQ(rig_next_async(&pair_b), IBV_EVENT_DEVICE_FATAL);
	CHECK(ibv_query_port(pair_b.ctx, 1, &attr) != 0);
	CHECK(!rig_flow_try(&pair_b, &flow));
	CHECK_EQ(errno, EIO);
	rig_close(&pair_a);
}
