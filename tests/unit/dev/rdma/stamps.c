/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time stamps as the user has chosen, of devices that can do it all or less. The test is
 * the driver. */
#include "config.h"

#include "dev/rdma/stamps.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>

#include "tests/support/test.h"

enum { KHZ = 100000, TICK_NS = 10 };

static struct device {
	struct verbs_context verbs;
	bool has_counter;
	/* the counter is brought up to date by nobody while it is read */
	bool is_coarse;
	/* or every so often, last so long before it is first read */
	uint64_t step_ns, age_ns;
	bool has_ptp;
	uint64_t start_ns;
	unsigned read_cnt;
} device;

static uint64_t ticks_at(uint64_t real_ns)
{
	return (real_ns - device.start_ns) / TICK_NS;
}

static int query_rt_values(struct ibv_context *ctx UNUSED,
			   struct ibv_values_ex *values)
{
	uint64_t now = device.is_coarse ? device.start_ns + NS_PER_SEC :
					  clock_realtime_ns();

	if (device.step_ns)
		now -= (now - device.start_ns) % device.step_ns;
	device.read_cnt++;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)ticks_at(now);
	return 0;
}

bool mlx5dv_is_supported(struct ibv_device *dev UNUSED)
{
	return true;
}

/* PTP has set the card's clock to 1000 seconds when the counter was at 0. */
int mlx5dv_get_clock_info(struct ibv_context *ctx UNUSED,
			  struct mlx5dv_clock_info *info)
{
	*info = (struct mlx5dv_clock_info){
		.nsec = 1000 * NS_PER_SEC,
		.mult = TICK_NS << 8,
		.shift = 8,
		.mask = UINT64_MAX >> 1,
	};
	return device.has_ptp ? 0 : EOPNOTSUPP;
}

static struct stamps open_stamps(enum rdma_stamps wish)
{
	struct ibv_device_attr_ex attr = {
		.completion_timestamp_mask = UINT64_MAX >> 1,
		.hca_core_clock = KHZ,
	};
	struct stamps stamps = { .kind = RDMA_STAMPS_OFF };

	device.verbs = (struct verbs_context){
		.sz = sizeof(device.verbs),
		.query_rt_values = device.has_counter ? query_rt_values : NULL,
		.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
	};
	device.start_ns = clock_realtime_ns() - 5 * NS_PER_SEC - device.age_ns;
	stamps_open(&stamps, &device.verbs.context, &attr, wish, "v0");
	return stamps;
}

static enum rdma_stamps kind_of(enum rdma_stamps wish)
{
	return open_stamps(wish).kind;
}

TEST(device_that_can_do_all)
{
	device = (struct device){ .has_counter = true, .has_ptp = true };
	CHECK_EQ(kind_of(RDMA_STAMPS_OFF), RDMA_STAMPS_OFF);
	CHECK_EQ(kind_of(RDMA_STAMPS_RAW), RDMA_STAMPS_RAW);
	CHECK_EQ(kind_of(RDMA_STAMPS_BEST), RDMA_STAMPS_SYSTEM);
	CHECK_EQ(kind_of(RDMA_STAMPS_SYSTEM), RDMA_STAMPS_SYSTEM);
	CHECK_EQ(kind_of(RDMA_STAMPS_PTP), RDMA_STAMPS_PTP);
}

TEST(device_without_ptp)
{
	device = (struct device){ .has_counter = true };
	CHECK_EQ(kind_of(RDMA_STAMPS_PTP), RDMA_STAMPS_SYSTEM);
}

TEST(device_whose_counter_cannot_be_read)
{
	device = (struct device){ .has_counter = false };
	CHECK_EQ(kind_of(RDMA_STAMPS_RAW), RDMA_STAMPS_RAW);
	CHECK_EQ(kind_of(RDMA_STAMPS_BEST), RDMA_STAMPS_RAW);
	CHECK_EQ(kind_of(RDMA_STAMPS_SYSTEM), RDMA_STAMPS_OFF);
	CHECK_EQ(kind_of(RDMA_STAMPS_PTP), RDMA_STAMPS_OFF);
}

TEST(device_without_stamps)
{
	struct ibv_device_attr_ex none = { .hca_core_clock = KHZ };
	struct stamps stamps = { .kind = RDMA_STAMPS_OFF };

	stamps_open(&stamps, &device.verbs.context, &none, RDMA_STAMPS_RAW, "v0");
	CHECK_EQ(stamps.kind, RDMA_STAMPS_OFF);
	CHECK_EQ(stamps_ns(&stamps, 1000), 0);
	none = (struct ibv_device_attr_ex){ .completion_timestamp_mask = 7 };
	stamps_open(&stamps, &device.verbs.context, &none, RDMA_STAMPS_RAW, "v0");
	CHECK_EQ(stamps.kind, RDMA_STAMPS_OFF);
}

TEST(each_kind_in_ns)
{
	struct stamps stamps;
	uint64_t now, ns;

	device = (struct device){ .has_counter = true, .has_ptp = true };
	stamps = open_stamps(RDMA_STAMPS_RAW);
	CHECK_EQ(stamps_ns(&stamps, 7), 7 * TICK_NS);
	stamps = open_stamps(RDMA_STAMPS_PTP);
	CHECK_EQ(stamps_ns(&stamps, 7), 1000 * NS_PER_SEC + 7 * TICK_NS);
	stamps = open_stamps(RDMA_STAMPS_SYSTEM);
	now = clock_realtime_ns();
	ns = stamps_ns(&stamps, ticks_at(now));
	CHECK(ns + NS_PER_MS > now && ns < now + NS_PER_MS);
}

/* One in half a second is enough, whoever asks for more; other kinds need none. */
TEST(counter_is_read_now_and_then)
{
	struct stamps stamps;
	unsigned cnt;

	device = (struct device){ .has_counter = true };
	stamps = open_stamps(RDMA_STAMPS_SYSTEM);
	cnt = device.read_cnt;
	for (int i = 0; i < 100; i++)
		stamps_keep(&stamps);
	CHECK_EQ(device.read_cnt, cnt);
	stamps.sampled_ns -= NS_PER_SEC;
	stamps_keep(&stamps);
	CHECK(device.read_cnt > cnt);
	stamps = open_stamps(RDMA_STAMPS_RAW);
	cnt = device.read_cnt;
	stamps.sampled_ns -= NS_PER_SEC;
	stamps_keep(&stamps);
	CHECK_EQ(device.read_cnt, cnt);
}

/* One that stands still while we look may be old, which the sample says. */
TEST(coarse_counter_is_not_believed)
{
	struct stamps stamps;

	device = (struct device){ .has_counter = true };
	stamps = open_stamps(RDMA_STAMPS_SYSTEM);
	CHECK(stamps.clock.samples[0].error_ns < 100 * NS_PER_US);
	device.is_coarse = true;
	stamps = open_stamps(RDMA_STAMPS_SYSTEM);
	CHECK(stamps.clock.samples[0].error_ns >= 500 * NS_PER_US);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* However old its value was at the first look, it is right when it moves. This thread may be
 * interrupted just then, which the sample says. */
TEST(counter_that_moves_by_steps_is_sampled_at_one)
{
	enum { TRIES_MAX = 100 };
	const struct card_clock_sample *sample;
	struct stamps stamps;
	int tries = 0;

	device = (struct device){ .has_counter = true, .step_ns = 10 * NS_PER_MS,
				  .age_ns = 9 * NS_PER_MS };
	do {
		stamps = open_stamps(RDMA_STAMPS_SYSTEM);
		sample = &stamps.clock.samples[0];
		CHECK(distance(sample->ns, device.start_ns + sample->ticks * TICK_NS) <=
		      sample->error_ns + TICK_NS);
	} while (sample->error_ns > NS_PER_MS && ++tries < TRIES_MAX);
	CHECK(tries < TRIES_MAX);
}
