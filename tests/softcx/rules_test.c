/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every rule that the card holds its user to, broken once: a child does so, and
 * must end with the rule's line and an abort. Run by rules.sh.
 */
#include "config.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "direct.h"
#include "rig.h"
#include "tests/support/test.h"

static struct rig r;
static struct direct d;

static void set_up(void)
{
	struct rig_params params = { .dev = "mlx5_0", .max_inline = 128 };

	rig_open(&r, &params);
	direct_init(&d, &r);
	d.rq_pi = (uint16_t)r.n_recv;
}

static struct direct_entry entry(void)
{
	struct direct_entry e;

	direct_build(&d, &e, rig_send_slot(&r, 0), 100, r.mr->lkey, 0);
	return e;
}

/* What the child does; it is not to come back. */
static void send_entry(const struct direct_entry *e)
{
	direct_put(&d, e);
	direct_ring(&d, e, false);
	rig_settle();
}

static size_t read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return len;
}

/* Runs `misuse` in a child of its own card; expects the line of `rule`. */
static void expect_violation(const char *rule, void (*misuse)(void))
{
	char text[1024], expected[64];
	int fds[2], status;
	pid_t pid;

	CHECK_EQ(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 2);
		close(fds[0]);
		alarm(10);
		set_up();
		misuse();
		_exit(0);
	}
	close(fds[1]);
	read_all(fds[0], text, sizeof(text));
	close(fds[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	snprintf(expected, sizeof(expected), "softcx: %s: ", rule);
	if (!strstr(text, expected))
		FAIL("no \"%s\" in: %s (status %#x)", expected, text, status);
	test_note("%.*s", (int)strcspn(text, "\n"), text);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void use_unknown_key(void)
{
	struct direct_entry e;

	direct_build(&d, &e, rig_send_slot(&r, 0), 100, 0x7777705c, 0);
	send_entry(&e);
}
TEST(unknown_key)
{
	expect_violation("bad-key", use_unknown_key);
}

static void use_key_of_other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(r.ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, r.slots, 4096, 0);
	struct direct_entry e;

	direct_build(&d, &e, r.slots, 100, mr->lkey, 0);
	send_entry(&e);
}
TEST(key_of_another_protection_domain)
{
	expect_violation("bad-key", use_key_of_other_pd);
}

static void use_dead_key(void)
{
	struct direct_entry e = entry();

	ibv_dereg_mr(r.mr);
	send_entry(&e);
}
TEST(key_after_deregistration)
{
	expect_violation("use-after-destroy", use_dead_key);
}

static void send_beyond_region(void)
{
	struct direct_entry e;

	direct_build(&d, &e, rig_send_slot(&r, r.n_send) - 50, 100,
		     r.mr->lkey, 0);
	send_entry(&e);
}
TEST(range_beyond_the_region)
{
	expect_violation("bad-range", send_beyond_region);
}

/* What is to go away between registration and use, or NULL. */
static uint8_t *passing;

/* A frame for ourselves over the cable: the other card sends it. */
static void receive_at(uint32_t lkey, const uint8_t *at)
{
	struct rig_params params = { .dev = "mlx5_1" };
	struct rig_frame f = { .src_ip = 1, .dst_ip = 2, .src_port = 3,
			       .dst_port = 4, .proto = IPPROTO_UDP };
	struct rig_flow flow = { 0 };
	struct rig sender;

	rig_open(&sender, &params);
	memcpy(flow.dst_mac, r.mac, 6);
	rig_flow(&r, &flow);
	rig_modify(&r, IBV_QPS_RESET);
	rig_modify(&r, IBV_QPS_INIT);
	rig_modify(&r, IBV_QPS_RTR);
	d.rq_pi = 0;
	direct_post_recv(&d, at, RIG_SLOT, lkey);
	memcpy(f.dst_mac, r.mac, 6);
	if (passing)
		munmap(passing, 4096);
	rig_post_send(&sender, 0,
		      rig_build(rig_send_slot(&sender, 0), &f, "x", 1), 0);
	rig_settle();
}

static void receive_read_only(void)
{
	receive_at(ibv_reg_mr(r.pd, r.slots, 4096, 0)->lkey, r.slots);
}
TEST(receiving_into_read_only_memory)
{
	expect_violation("bad-access", receive_read_only);
}

static void receive_unknown_key(void)
{
	receive_at(0x12345600, r.slots);
}
TEST(receiving_with_an_unknown_key)
{
	expect_violation("bad-key", receive_unknown_key);
}

/* A page of its own, registered. */
static uint32_t register_passing(void)
{
	uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(at != MAP_FAILED);
	mr = ibv_reg_mr(r.pd, at, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	passing = at;
	return mr->lkey;
}

static void send_from_nowhere(void)
{
	struct mlx5_wqe_data_seg seg;
	struct direct_entry e = entry();
	uint32_t lkey = register_passing();

	mlx5dv_set_data_seg(&seg, 82, lkey, (uintptr_t)passing);
	munmap(passing, 4096);
	memcpy(e.bytes + 48, &seg, sizeof(seg));
	send_entry(&e);
}
TEST(sending_from_memory_unmapped_later)
{
	expect_violation("memory-gone", send_from_nowhere);
}

static void receive_into_nowhere(void)
{
	uint32_t lkey = register_passing();

	receive_at(lkey, passing);
}
TEST(receiving_into_memory_unmapped_later)
{
	expect_violation("memory-gone", receive_into_nowhere);
}

static void name_other_qp(void)
{
	struct direct_entry e = entry();

	d.qpn++;
	direct_build(&d, &e, rig_send_slot(&r, 0), 100, r.mr->lkey, 0);
	direct_put(&d, &e);
	direct_set_record(&d, d.sq_pi);
	/* The doorbell names the right queue, the entry does not. */
	d.qpn--;
	d.sq_pi--;
	e = entry();
	direct_bell(&d, &e, false);
	rig_settle();
}
TEST(entry_of_another_queue_pair)
{
	expect_violation("wrong-qp", name_other_qp);
}

static void name_other_index(void)
{
	struct direct_entry e;

	d.sq_pi = 7;
	e = entry();
	d.sq_pi = 0;
	direct_put(&d, &e);
	direct_set_record(&d, d.sq_pi);
	d.sq_pi = 0;
	e = entry();
	direct_bell(&d, &e, false);
	rig_settle();
}
TEST(entry_with_another_index)
{
	expect_violation("wrong-index", name_other_index);
}

static void exceed_record(void)
{
	struct direct_entry e = entry();

	e.bytes[7] = 20; /* segments: five blocks, of which one is posted */
	send_entry(&e);
}
TEST(entry_longer_than_what_is_posted)
{
	expect_violation("bad-size", exceed_record);
}

static void exceed_inline(void)
{
	struct direct_entry e = entry();

	e.bytes[48] = 0x80; /* inline data of 400 bytes in 16 */
	e.bytes[50] = 400 >> 8;
	e.bytes[51] = 400 & 0xff;
	send_entry(&e);
}
TEST(inline_data_longer_than_the_entry)
{
	expect_violation("bad-size", exceed_inline);
}

static void use_bad_opcode(void)
{
	struct direct_entry e = entry();

	e.bytes[3] = MLX5_OPCODE_RDMA_WRITE;
	send_entry(&e);
}
TEST(opcode_of_another_transport)
{
	expect_violation("bad-opcode", use_bad_opcode);
}

/* A segment of `mss` bytes and its header, of 40000. */
static void segment_by(uint16_t mss)
{
	struct direct_entry e;

	direct_build(&d, &e, r.slots, 40000, r.mr->lkey, 0);
	e.bytes[3] = MLX5_OPCODE_TSO;
	e.bytes[22] = (uint8_t)(mss >> 8);
	e.bytes[23] = (uint8_t)mss;
	send_entry(&e);
}

static void make_long_segments(void)
{
	/* With its header of 18, a byte more than a frame may have. */
	segment_by(16384 - 18 + 1);
}
TEST(segments_longer_than_a_frame)
{
	expect_violation("bad-size", make_long_segments);
}

/* What is to be cut, right but for what a case does to it. */
struct cut {
	uint8_t header[60];
	uint32_t header_len;
	uint32_t len;
	unsigned int flags;
};

static struct cut cut(void)
{
	struct rig_frame f = { .src_ip = 1, .dst_ip = 2, .src_port = 3,
			       .dst_port = 4, .proto = IPPROTO_TCP };
	struct cut c = { .header_len = 54, .len = 3000,
			 .flags = IBV_SEND_IP_CSUM };

	rig_build(c.header, &f, "", 0);
	return c;
}

static void send_cut(struct cut *c)
{
	struct ibv_sge sge = { (uintptr_t)r.slots, c->len, r.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_TSO,
		.sg_list = &sge,
		.num_sge = c->len != 0,
		.send_flags = c->flags,
		.tso = { .hdr = c->header, .hdr_sz = (uint16_t)c->header_len,
			 .mss = 1000 },
	};

	CHECK_EQ(ibv_post_send(r.qp, &wr, &bad), 0);
	rig_settle();
}

static void cut_udp(void)
{
	struct cut c = cut();

	c.header[23] = IPPROTO_UDP;
	send_cut(&c);
}
static void cut_fragment(void)
{
	struct cut c = cut();

	c.header[20] = 0x20; /* more follow */
	send_cut(&c);
}
/* Options follow, the card is told, but they are in the payload. */
static void cut_without_options(void)
{
	struct cut c = cut();

	c.header[46] = 8 << 4;
	send_cut(&c);
}
static void cut_with_payload_inline(void)
{
	struct cut c = cut();

	c.header_len += 4;
	send_cut(&c);
}
static void cut_syn(void)
{
	struct cut c = cut();

	c.header[47] |= 2;
	send_cut(&c);
}
static void cut_urgent(void)
{
	struct cut c = cut();

	c.header[47] |= 0x20;
	send_cut(&c);
}
static void cut_without_checksums(void)
{
	struct cut c = cut();

	c.flags = 0;
	send_cut(&c);
}
static void cut_nothing(void)
{
	struct cut c = cut();

	c.len = 0;
	send_cut(&c);
}
TEST(segmentation_of_what_cannot_be_cut)
{
	expect_violation("bad-segmentation", cut_udp);
	expect_violation("bad-segmentation", cut_fragment);
	expect_violation("bad-segmentation", cut_without_options);
	expect_violation("bad-segmentation", cut_with_payload_inline);
	expect_violation("bad-segmentation", cut_syn);
	expect_violation("bad-segmentation", cut_urgent);
	expect_violation("bad-segmentation", cut_without_checksums);
	expect_violation("bad-segmentation", cut_nothing);
}

static void use_short_header(void)
{
	struct direct_entry e = entry();

	e.bytes[29] = 14; /* low byte of the header's size */
	send_entry(&e);
}
TEST(inline_header_too_short)
{
	expect_violation("inline-header", use_short_header);
}

/* The tag takes the place of the inline header that this card needs. */
static void insert_tag(void)
{
	struct direct_entry e = entry();

	e.bytes[28] = 0x80;
	e.bytes[29] = 0;
	send_entry(&e);
}
TEST(vlan_insertion_beside_inline_headers)
{
	expect_violation("inline-header", insert_tag);
}

static void send_several(void)
{
	struct direct_entry e = entry();

	e.bytes[3] = 0x29;
	send_entry(&e);
}
TEST(several_frames_beside_inline_headers)
{
	expect_violation("bad-opcode", send_several);
}

/* An entry of 100 bytes inline, with another byte in the register. */
static void write_other_bytes(uint32_t at)
{
	struct direct_entry e;

	direct_build(&d, &e, rig_send_slot(&r, 0), 100, r.mr->lkey,
		     DIRECT_INLINE);
	direct_put(&d, &e);
	direct_set_record(&d, d.sq_pi);
	e.bytes[at] ^= 1;
	direct_bell(&d, &e, true);
	rig_settle();
}

static void write_other_data(void)
{
	write_other_bytes(130);
}
TEST(blueflame_with_other_bytes)
{
	expect_violation("blueflame", write_other_data);
}

static void write_half_an_entry(void)
{
	struct direct_entry e;

	rig_send_slot(&r, 0)[99] = 1;
	direct_build(&d, &e, rig_send_slot(&r, 0), 100, r.mr->lkey,
		     DIRECT_INLINE);
	direct_put(&d, &e);
	direct_set_record(&d, d.sq_pi);
	e.len = 64;
	direct_bell(&d, &e, true);
	rig_settle();
}
TEST(blueflame_with_half_an_entry)
{
	expect_violation("blueflame", write_half_an_entry);
}

/* Registers are used in turn, by entries of several lengths and doorbells. */
TEST(blueflame_with_the_same_bytes)
{
	struct direct_entry e;

	set_up();
	for (uint32_t i = 0; i < 40; i++) {
		memset(rig_send_slot(&r, 0), (int)i, RIG_SLOT);
		direct_build(&d, &e, rig_send_slot(&r, 0), 60 + i * 3,
			     r.mr->lkey, DIRECT_INLINE);
		direct_put(&d, &e);
		direct_ring(&d, &e, i % 3);
		rig_settle();
	}
	CHECK_EQ(rig_stats("mlx5_0").bf_entries, 26);
	CHECK_EQ(rig_stats("mlx5_0").tx_wire, 40);
	rig_close(&r);
}

/* Three entries, of which only the first one is written to the register, and the last one's
 * doorbell comes to the same half. `is_overtaken`: the card knows of the first one by the
 * second one's doorbell, and has never seen its own. Otherwise it looks when all are there. */
static void overwrite(bool is_overtaken)
{
	struct direct_entry e;
	uint64_t before;

	set_up();
	before = rig_stats("mlx5_0").tx_wire;
	for (uint32_t i = 0; i < 3; i++) {
		memset(rig_send_slot(&r, 0), (int)i + 1, RIG_SLOT);
		direct_build(&d, &e, rig_send_slot(&r, 0), 100, r.mr->lkey,
			     DIRECT_INLINE);
		direct_put(&d, &e);
		direct_ring(&d, &e, i == 0);
		if (is_overtaken && i == 0)
			*(volatile uint64_t *)d.qp.bf.reg = 0;
		else if (is_overtaken)
			rig_settle();
	}
	rig_settle();
	CHECK_EQ(rig_stats("mlx5_0").tx_wire - before, 3);
	rig_close(&r);
}
TEST(blueflame_that_is_overwritten)
{
	overwrite(false);
}
TEST(blueflame_that_is_overtaken)
{
	overwrite(true);
}

static void ring_before_record(void)
{
	struct direct_entry e = entry();

	direct_put(&d, &e);
	direct_bell(&d, &e, false);
	rig_settle();
}
TEST(doorbell_without_the_record)
{
	expect_violation("doorbell-before-record", ring_before_record);
}

static void overrun_sq(void)
{
	struct direct_entry e = entry();

	for (uint32_t i = 0; i <= d.qp.sq.wqe_cnt; i++) {
		e = entry();
		direct_put(&d, &e);
	}
	direct_ring(&d, &e, false);
	rig_settle();
}
TEST(send_ring_overrun)
{
	expect_violation("sq-overrun", overrun_sq);
}

static void overrun_rq(void)
{
	struct rig_params params = { .dev = "mlx5_1" };
	struct rig_frame f = { .dst_port = 4, .proto = IPPROTO_UDP };
	struct rig_flow flow = { 0 };
	struct rig sender;

	rig_open(&sender, &params);
	memcpy(flow.dst_mac, r.mac, 6);
	rig_flow(&r, &flow);
	d.qp.dbrec[MLX5_RCV_DBR] = htobe32(d.qp.rq.wqe_cnt + 1);
	memcpy(f.dst_mac, r.mac, 6);
	rig_post_send(&sender, 0,
		      rig_build(rig_send_slot(&sender, 0), &f, "x", 1), 0);
	rig_settle();
}
TEST(receive_ring_overrun)
{
	expect_violation("rq-overrun", overrun_rq);
}

static void overrun_cq(void)
{
	struct rig_params params = { .dev = "mlx5_0", .n_cqes = 4 };
	struct rig small;

	rig_open(&small, &params);
	for (uint32_t i = 0; i < 60; i++)
		rig_post_send(&small, i, 100, IBV_SEND_SIGNALED);
	rig_settle();
}
TEST(completion_ring_overrun)
{
	expect_violation("cq-overrun", overrun_cq);
}

static void send_too_early(void)
{
	struct direct_entry e = entry();

	rig_modify(&r, IBV_QPS_RESET);
	rig_modify(&r, IBV_QPS_INIT);
	send_entry(&e);
}
TEST(sending_before_rts)
{
	expect_violation("bad-state", send_too_early);
}

/* A page of its own, which outlives queue pairs. */
static void ring_number(uint32_t qpn)
{
	struct mlx5dv_devx_uar *uar =
		mlx5dv_devx_alloc_uar(r.ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	uint64_t bell = htobe64((uint64_t)MLX5_OPCODE_SEND << 32 | qpn << 8 | 4);

	CHECK(uar);
	*(volatile uint64_t *)uar->reg_addr = bell;
	rig_settle();
}

static void ring_dead_qp(void)
{
	uint32_t qpn = r.qp->qp_num;

	ibv_destroy_qp(r.qp);
	ring_number(qpn);
}
TEST(doorbell_of_a_destroyed_queue_pair)
{
	expect_violation("use-after-destroy", ring_dead_qp);
}

static void ring_no_qp(void)
{
	ring_number(0x4321);
}
TEST(doorbell_of_no_queue_pair)
{
	expect_violation("bad-number", ring_no_qp);
}

static void arm_silently(void)
{
	uint64_t now_ns = rig_now_ns() + 1000 * NS_PER_SEC;

	SOFTCX_CALL(softcx_clock_set, now_ns);
	rig_settle();
	*(volatile uint32_t *)&d.recv_cq.dbrec[1] = 0;
	rig_settle();
	SOFTCX_CALL(softcx_clock_set, now_ns + 10 * NS_PER_SEC);
	rig_settle();
}
TEST(arming_without_a_doorbell)
{
	expect_violation("arm-without-doorbell", arm_silently);
}

/* Two threads arm, as they may: the record is of one, and the doorbell that the card sees
 * that of the other. */
static void arm_twice(void)
{
	uint64_t now_ns = rig_now_ns() + 1000 * NS_PER_SEC;
	volatile uint32_t *record = (volatile uint32_t *)&d.recv_cq.dbrec[1];

	SOFTCX_CALL(softcx_clock_set, now_ns);
	CHECK_EQ(ibv_req_notify_cq(r.recv_cq, 0), 0);
	*record ^= htobe32(1);
	rig_settle();
	SOFTCX_CALL(softcx_clock_set, now_ns + 10 * NS_PER_SEC);
	rig_settle();
	CHECK_EQ(*record, UINT32_MAX);
}
TEST(two_threads_arm_a_queue)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(10);
		set_up();
		arm_twice();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* Without strictness the same misuse is what it is on a card: an error
 * completion, and a queue pair that stopped. */
TEST(lenient_card_completes_with_an_error)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		SOFTCX_CALL(softcx_strict_set, 0);
		set_up();
		rig_send_slot(&r, 0)[0] = 2;
		r.mr->lkey ^= 0x100;
		rig_post_send(&r, 0, 100, 0);
		rig_post_send(&r, 1, 100, 0);
		rig_settle();
		if (ibv_poll_cq(r.send_cq, 1, &wc) != 1 ||
		    wc.status != IBV_WC_LOC_PROT_ERR || wc.wr_id != 0)
			_exit(1);
		if (ibv_poll_cq(r.send_cq, 1, &wc) != 1 ||
		    wc.status != IBV_WC_WR_FLUSH_ERR || wc.wr_id != 1)
			_exit(2);
		ibv_query_qp(r.qp, &attr, IBV_QP_STATE, &init);
		_exit(attr.qp_state == IBV_QPS_ERR ? 0 : 3);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}
