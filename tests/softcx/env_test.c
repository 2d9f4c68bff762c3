/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the environment asks of the card, seen through its ordinary interface, in
 * manual mode. Each case wants variables of its own and is run by env.sh, which
 * sets them.
 */
#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/pcap.h"
#include "pair.h"
#include "tests/support/test.h"

enum { PORT = 5000, N_FRAMES = 400, DATA = 80, FRAME = 42 + DATA };

static struct ibv_flow *rule;
static uint64_t now_ns;

static void open_both(bool has_time_stamps)
{
	struct rig_params pb = { .has_time_stamps = has_time_stamps };
	struct rig_flow flow = { .proto = IPPROTO_UDP, .dst_port = PORT };

	pair_open(NULL, &pb);
	memcpy(flow.dst_mac, pair_b.mac, 6);
	rule = rig_flow(&pair_b, &flow);
	now_ns = rig_now_ns() + NS_PER_SEC;
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns), 0);
}

static void close_both(void)
{
	CHECK_EQ(ibv_destroy_flow(rule), 0);
	pair_close();
}

static void build(uint8_t *frame, uint32_t number)
{
	struct rig_frame f = { .proto = IPPROTO_UDP, .src_ip = 0x0a090001,
			       .dst_ip = 0x0a090002, .src_port = PORT,
			       .dst_port = PORT };
	uint32_t data[DATA / 4];

	for (uint32_t i = 0; i < DATA / 4; i++)
		data[i] = number + (i << 16);
	memcpy(f.src_mac, pair_a.mac, 6);
	memcpy(f.dst_mac, pair_b.mac, 6);
	CHECK_EQ(rig_build(frame, &f, data, DATA), FRAME);
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	bool has_one = rig_poll(cq, wc);

	CHECK(!has_one || wc->status == IBV_WC_SUCCESS);
	return has_one;
}

static void send_number(uint32_t number)
{
	struct ibv_wc wc;

	build(rig_send_slot(&pair_a, 0), number);
	rig_post_send(&pair_a, 0, FRAME, IBV_SEND_SIGNALED);
	CHECK(STEP_UNTIL(poll_one(pair_a.send_cq, &wc)));
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_US), 0);
	SOFTCX_CALL(softcx_step);
}

/* Takes what has arrived: how many frames, and a hash of them in their order. */
static uint32_t take(uint64_t *hash)
{
	struct ibv_wc wc;
	uint32_t n = 0;

	for (; poll_one(pair_b.recv_cq, &wc); n++) {
		*hash = hash_bytes(*hash, pair_b.slots + wc.wr_id * RIG_SLOT,
				   wc.byte_len);
		rig_post_recv(&pair_b, (uint32_t)wc.wr_id);
	}
	return n;
}

static uint32_t send_all(uint64_t *hash)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_FRAMES; i++) {
		send_number(i);
		n += take(hash);
	}
	/* What was held back comes in the end. */
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set, now_ns += NS_PER_SEC), 0);
	rig_settle();
	return n + take(hash);
}

/* One card sees a frame go, the other sees it come. */
TEST(pcap_has_exactly_the_frames)
{
	static uint8_t file[N_FRAMES * 2 * (FRAME + 16) + 1024];
	uint8_t seen[N_FRAMES] = { 0 }, frame[FRAME];
	struct pcap_reader reader;
	struct pcap_record record;
	uint64_t hash = 0;
	uint32_t number;
	size_t len;
	FILE *f;
	int ret;

	open_both(false);
	CHECK_EQ(send_all(&hash), N_FRAMES);
	CHECK(getenv("SOFTCX_PCAP"));
	f = fopen(getenv("SOFTCX_PCAP"), "rb");
	CHECK(f);
	len = fread(file, 1, sizeof(file), f);
	fclose(f);
	CHECK_EQ(pcap_reader_init(&reader, file, len), 0);
	CHECK_EQ(reader.link_type, PCAP_ETHERNET);
	while ((ret = pcap_read(&reader, &record)) == 1) {
		CHECK_EQ(record.len, FRAME);
		CHECK_EQ(record.full_len, FRAME);
		memcpy(&number, record.data + 42, sizeof(number));
		CHECK(number < N_FRAMES);
		build(frame, number);
		CHECK_MEM(record.data, frame, FRAME);
		seen[number]++;
	}
	CHECK_EQ(ret, 0);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		CHECK_EQ(seen[i], 2);
	close_both();
}

/* The line it notes is what env.sh compares between seeds. */
TEST(faults)
{
	struct impair_counts counts;
	uint64_t hash = 0;
	uint32_t n;

	open_both(false);
	n = send_all(&hash);
	CHECK_EQ(SOFTCX_CALL(softcx_impair_counts, "mlx5_1", &counts), 0);
	CHECK_EQ(counts.sent, N_FRAMES);
	CHECK(counts.lost && counts.duplicated && counts.corrupted &&
	      counts.held);
	CHECK_EQ(counts.delivered,
		 N_FRAMES - counts.lost + counts.duplicated);
	/* A damaged address or port is no longer the rule's. */
	CHECK_EQ(n + rig_stats("mlx5_1").rx_no_rule, counts.delivered);
	test_note("FAULTS lost %" PRIu64 " dup %" PRIu64 " corrupt %" PRIu64
		  " held %" PRIu64 " hash %" PRIx64, counts.lost,
		  counts.duplicated, counts.corrupted, counts.held, hash);
	close_both();
}

static uint64_t raw_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	SOFTCX_CALL(softcx_step);
	CHECK_EQ(ibv_query_rt_values_ex(pair_a.ctx, &values), 0);
	return (uint64_t)values.raw_clock.tv_sec * NS_PER_SEC +
	       (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t received_at(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t cycles;

	CHECK(STEP_UNTIL(ibv_start_poll(pair_b.recv_cq_ex, &attr) == 0));
	cycles = ibv_wc_read_completion_ts(pair_b.recv_cq_ex);
	ibv_end_poll(pair_b.recv_cq_ex);
	return cycles;
}

static uint64_t in_ns(uint64_t cycles)
{
	struct mlx5dv_clock_info info;

	CHECK_EQ(mlx5dv_get_clock_info(pair_a.ctx, &info), 0);
	return mlx5dv_ts_to_ns(&info, cycles);
}

/* 100 MHz, 200 ppm fast, started at five million: ten seconds are a billion
 * cycles and 200000 more, which convert at the nominal rate. */
TEST(clock_drifts_as_configured)
{
	uint64_t raw, stamp, ns, cycles = 1000200000;

	open_both(true);
	raw = raw_clock();
	CHECK(raw > 5000000 + 90000000 && raw < 5000000 + 1000000000);
	ns = in_ns(raw);
	send_number(0);
	stamp = received_at();
	CHECK_EQ(SOFTCX_CALL(softcx_clock_set,
			     now_ns += 10 * NS_PER_SEC - NS_PER_US), 0);
	CHECK(raw_clock() - raw - cycles <= 1);
	CHECK(in_ns(raw + cycles) - ns - 10002 * NS_PER_MS + 100 <= 200);
	send_number(1);
	/* The time moves on by a microsecond behind the first frame, or before
	 * it was looked at. */
	CHECK(received_at() - stamp - cycles + 101 <= 202);
	close_both();
}

/* MLX5_CQE_SIZE=128; more frames than either ring has entries. */
TEST(completions_of_128_bytes)
{
	struct mlx5dv_cq send = { 0 }, recv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	uint64_t hash = 0;

	open_both(false);
	obj.cq.in = pair_a.send_cq;
	obj.cq.out = &send;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	obj.cq.in = pair_b.recv_cq;
	obj.cq.out = &recv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	CHECK_EQ(send.cqe_size, 128);
	CHECK_EQ(recv.cqe_size, 128);
	CHECK(send.cqe_cnt < N_FRAMES && recv.cqe_cnt < N_FRAMES);
	CHECK_EQ(send_all(&hash), N_FRAMES);
	close_both();
}

/* Raw packet queues have no inline scatter on hardware either, whatever libmlx5
 * asks for: the shortest frame is in its buffer, and the completion says so. */
TEST(short_frames_stay_in_their_buffers)
{
	struct mlx5dv_cq recv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	struct rig_flow flow;
	struct rig_frame f;
	const uint8_t *cqe;

	pair_open(NULL, NULL);
	obj.cq.in = pair_b.recv_cq;
	obj.cq.out = &recv;
	CHECK_EQ(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	CHECK_EQ(recv.cqe_size, 128);
	flow = pair_flow();
	rule = rig_flow(&pair_b, &flow);
	f = pair_frame();
	rig_post_send(&pair_a, 0, pair_put(0, &f, 18), 0);
	cqe = (const uint8_t *)recv.buf + 64;
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).byte_len, 60);
	CHECK_EQ(cqe[63] >> 4, MLX5_CQE_RESP_SEND);
	CHECK_EQ(cqe[63] & (MLX5_INLINE_SCATTER_32 | MLX5_INLINE_SCATTER_64),
		 0);
	CHECK_MEM(pair_b.slots, rig_send_slot(&pair_a, 0), 60);
	ibv_destroy_flow(rule);
	pair_close();
}

static int entries_of(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* Preloaded without SOFTCX: no device, no thread, no descriptor, no other view of
 * the machine. */
TEST(nothing_happens_without_the_variable)
{
	int n = -1, fds = entries_of("/proc/self/fd");
	struct ibv_device **list;
	struct softcx_stats stats;

	CHECK(!getenv("SOFTCX"));
	CHECK(dlsym(RTLD_DEFAULT, "softcx_step"));
	list = ibv_get_device_list(&n);
	CHECK(!list || n == 0);
	if (list)
		ibv_free_device_list(list);
	CHECK(access("/sys/class/infiniband/mlx5_0", F_OK) != 0);
	CHECK(access("/dev/infiniband/uverbs0", F_OK) != 0);
	CHECK_EQ(SOFTCX_CALL(softcx_step), -ENODEV);
	CHECK_EQ(SOFTCX_CALL(softcx_stats, "mlx5_0", &stats), -ENODEV);
	CHECK_EQ(entries_of("/proc/self/task"), 1);
	CHECK_EQ(entries_of("/proc/self/fd"), fds);
}
