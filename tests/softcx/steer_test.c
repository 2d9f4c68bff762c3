/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which frames the card takes: flow rules, and what stays with the kernel. See
 * card_test.c. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "pair.h"
#include "tests/support/test.h"

static const uint8_t zeros[64];

TEST(default_is_the_kernel)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	pair_open(NULL, NULL);
	flow = pair_flow();
	f = pair_frame();
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 1);
	f.dst_port++;
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	f.dst_port--;
	ibv_destroy_flow(rule);
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	pair_close();
}

/* Sends a frame from b and steps the card until it is on its way to a, which has had
 * its turn by then. */
static void send_from_b(void)
{
	struct rig_frame f = pair_frame();
	uint32_t len;

	memcpy(f.dst_mac, pair_a.mac, 6);
	memcpy(f.src_mac, pair_b.mac, 6);
	len = rig_build(rig_send_slot(&pair_b, 0), &f, zeros, 60);
	rig_post_send(&pair_b, 0, len, 0);
	CHECK(STEP_UNTIL(rig_stats("mlx5_1").tx_wire == 1));
}

/* A rule ends when destroy_flow has returned, and not earlier: what came before that,
 * and the kernel did not see, is not lost. */
TEST(frames_before_the_end_of_a_rule_arrive)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	memcpy(flow.dst_mac, pair_a.mac, 6);
	rule = rig_flow(&pair_a, &flow);
	send_from_b();
	ibv_destroy_flow(rule);
	CHECK_EQ(rig_next_wc(pair_a.recv_cq).byte_len, 42 + 60);
	CHECK_EQ(rig_stats("mlx5_0").rx_no_rule, 0);
	pair_close();
}

TEST(fragments_match_no_ports)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	pair_open(NULL, NULL);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	f.fragment = 0x2000;
	len = rig_build(frame, &f, zeros, 64);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	CHECK_EQ(SOFTCX_CALL(softcx_steer_frame, "mlx5_1", frame, len), 0);
	ibv_destroy_flow(rule);
	pair_close();
}

/* Both halves of steering, the kernel's and the card's, on random frames that
 * hit and miss a set of rules of several shapes. */
TEST(kernel_and_card_agree_on_frames)
{
	struct ibv_flow *rules[5];
	struct rig_flow flow;
	unsigned int n_hits = 0, n_refused = 0;
	struct rand rand;

	pair_open(NULL, NULL);
	rand_init(&rand, test_seed);
	flow = pair_flow();
	rules[0] = rig_flow(&pair_b, &flow);
	flow.src_ip = flow.src_port = 0;
	flow.dst_port = 7000;
	rules[1] = rig_flow(&pair_b, &flow);
	flow.proto = IPPROTO_TCP;
	rules[2] = rig_flow(&pair_b, &flow);
	flow.is_ipv6 = true;
	rules[3] = rig_flow(&pair_b, &flow);
	flow = pair_flow();
	flow.proto = 0;
	flow.dst_mac[0] = 1;
	rules[4] = rig_flow(&pair_b, &flow);
	for (int i = 0; i < 20000; i++) {
		struct rig_frame f = pair_frame();
		uint8_t frame[256] = { 0 };
		int kernel, card;
		uint32_t len;

		f.proto = rand_below(&rand, 2) ? IPPROTO_TCP : IPPROTO_UDP;
		f.is_ipv6 = rand_below(&rand, 3) == 0;
		f.dst_port = rand_below(&rand, 2) ? 7000 : PAIR_PORT_B;
		f.dst_mac[0] = rand_below(&rand, 8) ? pair_b.mac[0] : 1;
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
	pair_close();
}

TEST(priority_then_detail_decides)
{
	struct rig_flow exact, wide;
	struct ibv_flow *rules[3];
	struct rig c;
	struct rig_params pc = { .dev = "mlx5_1" };

	pair_open(NULL, NULL);
	rig_open(&c, &pc);
	exact = pair_flow();
	wide = exact;
	wide.src_ip = wide.src_port = 0;
	rules[0] = rig_flow(&c, &wide);
	rules[1] = rig_flow(&pair_b, &exact);
	pair_send(0, 0);
	rig_next_wc(pair_b.recv_cq);
	rig_expect_nothing(c.recv_cq);
	/* The same wide rule, but not of lower precedence. */
	ibv_destroy_flow(rules[1]);
	exact.priority = 2;
	rules[1] = rig_flow(&pair_b, &exact);
	pair_send(0, 0);
	rig_next_wc(c.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	/* Equal rules: both get it. */
	wide.priority = 0;
	rules[2] = rig_flow(&pair_b, &wide);
	pair_send(0, 0);
	rig_next_wc(c.recv_cq);
	rig_next_wc(pair_b.recv_cq);
	for (int i = 0; i < 3; i++)
		ibv_destroy_flow(rules[i]);
	rig_close(&c);
	pair_close();
}

/* Frames that no other rule claims, and groups that none does. */
TEST(default_rules_come_last)
{
	struct rig_flow all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT };
	struct rig_flow groups = { .type = IBV_FLOW_ATTR_MC_DEFAULT };
	struct rig_params p = { .dev = "mlx5_1" };
	struct rig_frame f;
	struct ibv_flow *rules[3];
	struct rig_flow flow;
	struct rig c, d;

	pair_open(NULL, NULL);
	rig_open(&c, &p);
	rig_open(&d, &p);
	flow = pair_flow();
	flow.priority = 7;
	rules[0] = rig_flow(&c, &all);
	rules[1] = rig_flow(&d, &groups);
	rules[2] = rig_flow(&pair_b, &flow);
	pair_send(0, 0);
	rig_next_wc(pair_b.recv_cq);
	f = pair_frame();
	f.dst_port++;
	rig_post_send(&pair_a, 1, pair_put(1, &f, PAIR_DATA), 0);
	rig_next_wc(c.recv_cq);
	f.dst_mac[0] |= 1;
	rig_post_send(&pair_a, 2, pair_put(2, &f, PAIR_DATA), 0);
	rig_next_wc(d.recv_cq);
	rig_expect_nothing(pair_b.recv_cq);
	rig_expect_nothing(c.recv_cq);
	rig_expect_nothing(d.recv_cq);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(ibv_destroy_flow(rules[i]), 0);
	rig_close(&c);
	rig_close(&d);
	pair_close();
}

TEST(multicast_by_mac_reaches_every_queue)
{
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 1, 2, 3 };
	struct ibv_flow *rules[2];
	struct rig_flow flow = { 0 };
	struct rig_frame f;
	struct rig c;
	struct rig_params pc = { .dev = "mlx5_1" };

	pair_open(NULL, NULL);
	rig_open(&c, &pc);
	memcpy(flow.dst_mac, group, 6);
	rules[0] = rig_flow(&pair_b, &flow);
	rules[1] = rig_flow(&c, &flow);
	f = pair_frame();
	memcpy(f.dst_mac, group, 6);
	rig_post_send(&pair_a, 0, pair_put(0, &f, PAIR_DATA), 0);
	rig_next_wc(pair_b.recv_cq);
	rig_next_wc(c.recv_cq);
	CHECK_MEM(c.slots, pair_b.slots, 42 + PAIR_DATA);
	for (int i = 0; i < 2; i++)
		ibv_destroy_flow(rules[i]);
	rig_close(&c);
	pair_close();
}

TEST(ipv6_rule_matches)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;

	pair_open(NULL, NULL);
	flow = pair_flow();
	flow.is_ipv6 = true;
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	f.is_ipv6 = true;
	rig_post_send(&pair_a, 0, pair_put(0, &f, PAIR_DATA), IBV_SEND_IP_CSUM);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 62 + PAIR_DATA);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(drop_rule_drops)
{
	struct rig_flow flow;
	struct ibv_flow *rule;

	pair_open(NULL, NULL);
	flow = pair_flow();
	flow.is_drop = true;
	rule = rig_flow(&pair_b, &flow);
	pair_send(0, 0);
	CHECK(STEP_UNTIL(rig_stats("mlx5_1").rx_dropped_by_rule == 1));
	rig_expect_nothing(pair_b.recv_cq);
	ibv_destroy_flow(rule);
	pair_close();
}

TEST(dont_trap_rule_leaves_the_kernel_its_copy)
{
	struct rig_flow flow;
	struct ibv_flow *rule;
	struct rig_frame f;
	uint8_t frame[256];
	uint32_t len;

	pair_open(NULL, NULL);
	flow = pair_flow();
	flow.is_copy = true;
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	len = rig_build(frame, &f, zeros, 20);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	pair_send(0, 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 42 + PAIR_DATA);
	/* One match cannot both hide frames and leave them. */
	flow.is_copy = false;
	CHECK(!rig_flow_try(&pair_b, &flow));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 0);
	ibv_destroy_flow(rule);
	rule = rig_flow(&pair_b, &flow);
	CHECK_EQ(SOFTCX_CALL(softcx_try_frame, "mlx5_1", frame, len), 1);
	ibv_destroy_flow(rule);
	pair_close();
}

/* A frame from card a to itself. */
static void send_to_self(uint32_t i)
{
	struct rig_frame f = pair_frame();

	memcpy(f.dst_mac, pair_a.mac, 6);
	rig_post_send(&pair_a, i, pair_put(i, &f, PAIR_DATA), 0);
}

static struct rig_flow flow_to_self(void)
{
	struct rig_flow flow = pair_flow();

	memcpy(flow.dst_mac, pair_a.mac, 6);
	return flow;
}

/* Within the port, and not over the cable. */
TEST(own_mac_reaches_queues_of_the_port)
{
	struct rig_params params = { .dev = "mlx5_0" };
	struct rig_flow all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT }, flow;
	struct ibv_flow *rules[3];
	struct rig other;

	pair_open(NULL, NULL);
	rig_open(&other, &params);
	rules[0] = rig_flow(&pair_b, &all);
	flow = flow_to_self();
	rules[1] = rig_flow(&other, &flow);
	send_to_self(0);
	CHECK_EQ(rig_next_wc(other.recv_cq).byte_len, 42 + PAIR_DATA);
	CHECK_MEM(other.slots, rig_send_slot(&pair_a, 0), 42 + PAIR_DATA);
	rig_expect_nothing(pair_b.recv_cq);
	/* Whoever has a rule for it gets it, the sender as well. */
	rules[2] = rig_flow(&pair_a, &flow);
	send_to_self(1);
	rig_next_wc(other.recv_cq);
	rig_next_wc(pair_a.recv_cq);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		CHECK_EQ(ibv_destroy_flow(rules[i]), 0);
	rig_close(&other);
	pair_close();
}

/* In a child, with a card of its own on the same port: 0 when the frame came. */
static int receive_one(int ready_fd, const struct rig_flow *flow)
{
	struct rig_params params = { .dev = "mlx5_0" };
	struct ibv_wc wc;
	struct rig own;

	rig_open(&own, &params);
	rig_flow(&own, flow);
	if (write(ready_fd, "", 1) != 1)
		return 1;
	return STEP_UNTIL(rig_poll(own.recv_cq, &wc)) ? 0 : 2;
}

TEST(own_mac_reaches_another_process)
{
	struct rig_flow flow;
	int fds[2], status;
	char ready;
	pid_t pid;

	pair_open(NULL, NULL);
	flow = flow_to_self();
	CHECK_EQ(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(receive_one(fds[1], &flow));
	CHECK_EQ(read(fds[0], &ready, 1), 1);
	send_to_self(0);
	rig_settle();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	close(fds[0]);
	close(fds[1]);
	pair_close();
}

/* A group's frames are for the cable and for the port's own queues. */
TEST(group_frames_come_back_as_well)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
	struct rig_params params = { .dev = "mlx5_0" };
	struct rig_flow flow = { 0 };
	struct ibv_flow *rules[2];
	struct rig_frame f;
	struct rig other;

	pair_open(NULL, NULL);
	rig_open(&other, &params);
	memcpy(flow.dst_mac, group, 6);
	rules[0] = rig_flow(&pair_b, &flow);
	rules[1] = rig_flow(&other, &flow);
	f = pair_frame();
	memcpy(f.dst_mac, group, 6);
	rig_post_send(&pair_a, 0, pair_put(0, &f, PAIR_DATA), 0);
	rig_next_wc(pair_b.recv_cq);
	rig_next_wc(other.recv_cq);
	/* Once each. */
	rig_expect_nothing(pair_b.recv_cq);
	rig_expect_nothing(other.recv_cq);
	ibv_destroy_flow(rules[0]);
	ibv_destroy_flow(rules[1]);
	rig_close(&other);
	pair_close();
}
