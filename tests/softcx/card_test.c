/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the card does, one behaviour at a time, in manual mode, with a pair of
 * cards in one process (pair.h): frames, queue states, events. Run by card.sh;
 * steering, offloads, faults and refusals have programs of their own.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "pair.h"
#include "tests/support/test.h"

TEST(frame_arrives_whole)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	pair_send(3, IBV_SEND_SIGNALED);
	wc = rig_next_wc(pair_a.send_cq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 3);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 0);
	CHECK_EQ(wc.byte_len, 42 + PAIR_DATA);
	CHECK_MEM(pair_b.slots, rig_send_slot(&pair_a, 3), wc.byte_len);
	rig_expect_nothing(pair_b.recv_cq);
	CHECK_EQ(ibv_destroy_flow(rule), 0);
	pair_close();
}

TEST(short_frame_is_padded)
{
	struct rig_frame f;
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	rig_post_send(&pair_a, 0, pair_put(0, &f, 1), 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 60);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(inline_data_is_taken_at_once)
{
	struct rig_params pa = { .max_inline = 256 };
	uint8_t sent[RIG_SLOT];
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(&pa, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	pair_send(0, IBV_SEND_INLINE);
	memcpy(sent, rig_send_slot(&pair_a, 0), sizeof(sent));
	memset(rig_send_slot(&pair_a, 0), 0xee, RIG_SLOT);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 42 + PAIR_DATA);
	CHECK_MEM(pair_b.slots, sent, 42 + PAIR_DATA);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(no_entry_leaves_without_a_doorbell)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	uint64_t before;

	pair_open(NULL, NULL);
	before = rig_stats("mlx5_0").tx_entries;
	obj.qp.in = pair_a.qp;
	obj.qp.out = &dv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	/* The record alone: entries posted, bell not rung. */
	dv.dbrec[MLX5_SND_DBR] = htobe32(1);
	rig_settle();
	CHECK_EQ(rig_stats("mlx5_0").tx_entries, before);
	dv.dbrec[MLX5_SND_DBR] = 0;
	pair_close();
}

TEST(want_of_receive_entries_drops)
{
	struct rig_params pb = { .is_unposted = true };
	struct rig_flow flow;
	struct ibv_flow *rule;
	uint64_t before;

	pair_open(NULL, &pb);
	before = rig_stats("mlx5_1").rx_no_buffer;
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	rig_post_recv(&pair_b, 0);
	pair_send(0, 0);
	pair_send(1, 0);
	rig_next_wc(pair_b.recv_cq);
	CHECK(STEP_UNTIL(rig_stats("mlx5_1").rx_no_buffer == before + 1));
	rig_expect_nothing(pair_b.recv_cq);
	rig_post_recv(&pair_b, 0);
	pair_send(2, 0);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* Posts a receive entry of two pieces: of `first` bytes in slot 0, and slot 1. */
static void post_pieces(uint32_t first, uint32_t second)
{
	struct ibv_sge sges[2] = {
		{ .addr = (uintptr_t)pair_b.slots, .length = first },
		{ .addr = (uintptr_t)pair_b.slots + RIG_SLOT, .length = second },
	};
	struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = sges,
				  .num_sge = second ? 2 : 1 };
	struct ibv_recv_wr *bad;

	sges[0].lkey = sges[1].lkey = pair_b.mr->lkey;
	CHECK_EQ(ibv_post_recv(pair_b.qp, &wr, &bad), 0);
}

TEST(frame_is_scattered)
{
	struct rig_params pb = { .is_unposted = true };
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	pair_open(NULL, &pb);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	post_pieces(50, RIG_SLOT);
	pair_send(0, 0);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 77);
	CHECK_EQ(wc.byte_len, 42 + PAIR_DATA);
	CHECK_MEM(pair_b.slots, rig_send_slot(&pair_a, 0), 50);
	CHECK_EQ(pair_b.slots[50], 0);
	CHECK_MEM(pair_b.slots + RIG_SLOT, rig_send_slot(&pair_a, 0) + 50,
		  42 + PAIR_DATA - 50);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(entry_too_short_ends_the_queue_pair)
{
	struct rig_params pb = { .is_unposted = true };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct ibv_wc wc;

	pair_open(NULL, &pb);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	post_pieces(50, 42 + PAIR_DATA - 50);
	post_pieces(50, 42 + PAIR_DATA - 51);
	rig_post_recv(&pair_b, 5);
	pair_send(0, 0);
	pair_send(1, 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).status, IBV_WC_SUCCESS);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).status, IBV_WC_LOC_LEN_ERR);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 5);
	CHECK_EQ(ibv_query_qp(pair_b.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(states_are_true_and_ordered)
{
	struct rig_params pa = { .is_idle = true, .is_unposted = true };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init;

	pair_open(&pa, NULL);
	CHECK(ibv_modify_qp(pair_a.qp, &attr, IBV_QP_STATE) != 0);
	CHECK_EQ(ibv_query_qp(pair_a.qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RESET);
	rig_modify(&pair_a, IBV_QPS_INIT);
	rig_modify(&pair_a, IBV_QPS_RTR);
	rig_modify(&pair_a, IBV_QPS_RTS);
	CHECK_EQ(ibv_query_qp(pair_a.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init),
		 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
	CHECK_EQ(attr.cap.max_recv_wr, 64);
	pair_close();
}

TEST(error_state_flushes_both_queues)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	pair_open(NULL, NULL);
	rig_modify(&pair_b, IBV_QPS_ERR);
	CHECK(STEP_UNTIL(rig_poll(pair_b.recv_cq, &wc) &&
			 wc.status == IBV_WC_WR_FLUSH_ERR && ++n == 64));
	/* What is posted to a stopped queue comes back as well. */
	rig_post_recv(&pair_b, 5);
	wc = rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 5);
	rig_post_send(&pair_b, 2, 60, 0);
	wc = rig_next_wc(pair_b.send_cq);
	CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 2);
	pair_close();
}

TEST(reset_starts_over)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	for (uint32_t i = 0; i < 5; i++)
		pair_send(i, IBV_SEND_SIGNALED);
	for (int i = 0; i < 5; i++)
		rig_next_wc(pair_b.recv_cq);
	rig_modify(&pair_a, IBV_QPS_RESET);
	rig_modify(&pair_a, IBV_QPS_INIT);
	rig_modify(&pair_a, IBV_QPS_RTR);
	rig_modify(&pair_a, IBV_QPS_RTS);
	pair_send(7, IBV_SEND_SIGNALED);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).wr_id, 5);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(armed_queue_raises_one_event)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, &pb);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	pair_send(0, 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	/* There is a completion already: arming fires at once. */
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	rig_next_wc(pair_b.recv_cq);
	/* Not armed again: silence. */
	pair_send(1, 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	pair_send(2, 0);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* Their doorbells overwrite each other before the card has looked. */
TEST(two_queues_armed_at_once_both_fire)
{
	struct rig_params p = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;
	uint64_t before;

	pair_open(NULL, &p);
	before = rig_stats("mlx5_1").bells_overtaken;
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(pair_b.send_cq, 0), 0);
	rig_settle();
	CHECK_EQ(rig_stats("mlx5_1").bells_overtaken, before + 1);
	pair_send(0, 0);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	rig_post_send(&pair_b, 0, 60, IBV_SEND_SIGNALED);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.send_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(solicited_only_ignores_frames)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, &pb);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 1), 0);
	pair_send(0, 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	/* Errors always count. */
	rig_modify(&pair_b, IBV_QPS_ERR);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
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

	pair_open(NULL, &pb);
	SOFTCX_CALL(softcx_clock_set, now_ns);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_modify_cq(pair_b.recv_cq, &attr), 0);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	pair_send(0, 0);
	pair_send(1, 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	pair_send(2, 0);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	for (int i = 0; i < 3; i++)
		rig_next_wc(pair_b.recv_cq);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	pair_send(3, 0);
	rig_settle();
	CHECK(!rig_is_readable(pair_b.chan->fd));
	SOFTCX_CALL(softcx_clock_set, now_ns + NS_PER_MS);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	rig_take_event(&pair_b, pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* Tear-down waits for the events that were read, and for no others. */
TEST(unread_events_do_not_block_destroy)
{
	struct rig_params pb = { .has_channel = true };
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, &pb);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_req_notify_cq(pair_b.recv_cq, 0), 0);
	pair_send(0, 0);
	CHECK(STEP_UNTIL(rig_is_readable(pair_b.chan->fd)));
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(busy_objects_are_not_destroyed)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(ibv_destroy_cq(pair_b.recv_cq), EBUSY);
	CHECK_EQ(ibv_destroy_qp(pair_b.qp), EBUSY);
	CHECK_EQ(ibv_dealloc_pd(pair_b.pd), EBUSY);
	ibv_destroy_flow(rule);
	pair_close();
}

/* A library may move its descriptors out of the program's way, and give the old
 * numbers back by calls that the card does not see. */
static void move_away(int *fd)
{
	int old = *fd, other;

	*fd = fcntl(old, F_DUPFD_CLOEXEC, 500);
	CHECK(*fd >= 500);
	CHECK_EQ(syscall(SYS_close, old), 0);
	other = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CHECK_EQ(other, old);
	CHECK_EQ(write(other, "no command", 10), 10);
}

TEST(descriptors_may_be_moved)
{
	struct rig_params pb = { .has_channel = true };
	struct ibv_cq *cq;
	int old_cmd, old_chan;

	pair_open(NULL, &pb);
	old_cmd = pair_b.ctx->cmd_fd;
	old_chan = pair_b.chan->fd;
	move_away(&pair_b.ctx->cmd_fd);
	move_away(&pair_b.chan->fd);
	cq = ibv_create_cq(pair_b.ctx, 16, NULL, pair_b.chan, 0);
	CHECK(cq);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	pair_close();
	close(old_cmd);
	close(old_chan);
}

/* A child may use cards of its own, and the parent does not notice. */
TEST(fork_leaves_the_parent_its_card)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	int status;
	pid_t pid;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
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
	pair_send(0, 0);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

/* Which of the calls on a parent's context did not fail with EIO; 0: all did. */
static int use_parents_context(void)
{
	struct ibv_port_attr port;
	struct rig_flow flow = pair_flow();
	struct ibv_flow *rule;

	errno = 0;
	if (ibv_alloc_pd(pair_a.ctx) || errno != EIO)
		return 1;
	errno = 0;
	if (ibv_reg_mr(pair_a.pd, pair_a.slots, 64, 0) || errno != EIO)
		return 2;
	errno = 0;
	if (ibv_create_cq(pair_a.ctx, 16, NULL, NULL, 0) || errno != EIO)
		return 3;
	errno = 0;
	rule = rig_flow_try(&pair_b, &flow);
	if (rule || errno != EIO)
		return 4;
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, pair_a.ctx->cmd_fd, 0) !=
		    MAP_FAILED)
		return 5;
	if (ibv_query_port(pair_a.ctx, 1, &port) != EIO ||
	    ibv_dealloc_pd(pair_a.pd) != EIO)
		return 6;
	/* Closing gives the number back, for a card of the child's own. */
	close(pair_a.ctx->cmd_fd);
	close(pair_b.ctx->cmd_fd);
	pair_open(NULL, NULL);
	rig_flow(&pair_b, &flow);
	pair_send(0, 0);
	rig_next_wc(pair_b.recv_cq);
	return 0;
}

TEST(parents_context_fails_in_a_child)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	int status;
	pid_t pid;

	pair_open(NULL, NULL);
	pid = fork();
	if (!pid)
		_exit(use_parents_context());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	pair_send(0, 0);
	rig_next_wc(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}
