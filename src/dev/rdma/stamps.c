/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time stamps of cards (stamps.h). */
#include "config.h"

#include "dev/rdma/stamps.h"

#ifdef RDMA_HAS_MLX5
#include <infiniband/mlx5dv.h>
#endif

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"

enum {
	/* An interruption between the two looks at the system's clock makes them
	 * useless, so there are several tries. */
	TRIES = 8,
	/* such a look is as good as it gets */
	GOOD_NS = 500,
};

/* A counter that stands still between two looks is brought up to date by somebody now and
 * then. A step that we have seen so well is good enough; and for so long we wait for one, since
 * that somebody may have to wait for a processor. */
#define GOOD_STEP_NS (100 * NS_PER_US)
#define STILL_NS (20 * NS_PER_MS)

#define SAMPLE_INTERVAL_NS (NS_PER_SEC / 2)

static bool read_counter(struct ibv_context *ctx, uint64_t *ticks_out)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(ctx, &values) != 0 ||
	    !(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return false;
	*ticks_out = (uint64_t)values.raw_clock.tv_sec * NS_PER_SEC +
		     (uint64_t)values.raw_clock.tv_nsec;
	return true;
}

/* The counter had this value at some time between the two. */
static void keep_better(struct card_clock_sample *best, uint64_t ticks, uint64_t from_ns,
			uint64_t to_ns)
{
	/* one that seems to be negative is large here */
	uint64_t error_ns = (to_ns - from_ns) / 2;

	if (error_ns < best->error_ns)
		*best = (struct card_clock_sample){
			.ticks = ticks,
			.ns = from_ns + error_ns,
			.error_ns = error_ns,
		};
}

/* Of a counter that moves by steps: its value is right when it has just moved. At any other
 * time nobody knows how old it is. */
static bool await_step(struct ibv_context *ctx, struct card_clock_sample *best)
{
	uint64_t began_ns = clock_monotonic_ns(), last_ns = clock_realtime_ns(), last;

	if (!read_counter(ctx, &last))
		return false;
	best->error_ns = STILL_NS;
	do {
		uint64_t now_ns = clock_realtime_ns(), ticks;

		if (!read_counter(ctx, &ticks))
			return false;
		if (ticks != last)
			keep_better(best, ticks, last_ns, clock_realtime_ns());
		last = ticks;
		last_ns = now_ns;
	} while (best->error_ns > GOOD_STEP_NS && clock_monotonic_ns() - began_ns < STILL_NS);
	return true;
}

/* The best of some looks. */
static bool take_sample(struct ibv_context *ctx, struct card_clock_sample *best)
{
	uint64_t last = 0;

	best->error_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = clock_realtime_ns(), ticks;

		if (!read_counter(ctx, &ticks))
			return false;
		if (i && ticks == last)
			return await_step(ctx, best);
		keep_better(best, ticks, before, clock_realtime_ns());
		/* one step may have come just between two looks */
		if (i > 1 && best->error_ns <= GOOD_NS / 2)
			return true;
		last = ticks;
	}
	return true;
}

static bool has_ptp(struct ibv_context *ctx)
{
#ifdef RDMA_HAS_MLX5
	struct mlx5dv_clock_info info;

	return mlx5dv_is_supported(ctx->device) &&
	       mlx5dv_get_clock_info(ctx, &info) == 0;
#else
	(void)ctx;
	return false;
#endif
}

/* The system's time is worth more than the card's own, and a clock that PTP keeps is not
 * to be had everywhere. */
static enum rdma_stamps settle(struct ibv_context *ctx, enum rdma_stamps wish)
{
	uint64_t ticks;

	switch (wish) {
	case RDMA_STAMPS_PTP:
		if (has_ptp(ctx))
			return RDMA_STAMPS_PTP;
		/* fall through */
	case RDMA_STAMPS_SYSTEM:
		return read_counter(ctx, &ticks) ? RDMA_STAMPS_SYSTEM :
						   RDMA_STAMPS_OFF;
	case RDMA_STAMPS_BEST:
		return read_counter(ctx, &ticks) ? RDMA_STAMPS_SYSTEM :
						   RDMA_STAMPS_RAW;
	default:
		return wish;
	}
}

static void tell(const struct stamps *stamps, enum rdma_stamps wish,
		 const char *name)
{
	static const char *const kinds[] = {
		[RDMA_STAMPS_OFF] = "none",
		[RDMA_STAMPS_RAW] = "the card's own time",
		[RDMA_STAMPS_SYSTEM] = "system time",
		[RDMA_STAMPS_PTP] = "the card's clock, kept by PTP",
	};
	/* "best" is whatever there is, and the default nobody has chosen */
	bool is_refused = stamps->kind != wish && wish != RDMA_STAMPS_BEST &&
			  wish != RDMA_STAMPS_SYSTEM;

	if (is_refused)
		log_info("%s: time stamps of the card: %s; it cannot do what VMA_HW_TS_CONVERSION=%d wants",
			 name, kinds[stamps->kind], wish);
	else
		log_dbg("%s: time stamps of the card: %s", name,
			kinds[stamps->kind]);
}

void stamps_open(struct stamps *stamps, struct ibv_context *ctx,
		 const struct ibv_device_attr_ex *attr, enum rdma_stamps wish,
		 const char *name)
{
	uint64_t khz = attr->hca_core_clock, mask = attr->completion_timestamp_mask;

	stamps->ctx = ctx;
	if (khz && khz <= UINT32_MAX && mask) {
		card_clock_init(&stamps->clock, (uint32_t)khz, mask);
		stamps->kind = settle(ctx, wish);
	}
	tell(stamps, wish, name);
	stamps_keep(stamps);
}

void stamps_keep(struct stamps *stamps)
{
	uint64_t now = clock_monotonic_ns();
	struct card_clock_sample sample;

	if (stamps->kind != RDMA_STAMPS_SYSTEM ||
	    (stamps->sampled_ns && now - stamps->sampled_ns < SAMPLE_INTERVAL_NS) ||
	    !take_sample(stamps->ctx, &sample))
		return;
	stamps->sampled_ns = now;
	card_clock_add(&stamps->clock, &sample);
}

#ifdef RDMA_HAS_MLX5
/* The page that this reads is the kernel's, which changes it when PTP corrects the
 * clock. */
static uint64_t ptp_ns(struct ibv_context *ctx, uint64_t ticks)
{
	struct mlx5dv_clock_info info;

	return mlx5dv_get_clock_info(ctx, &info) == 0 ?
		       mlx5dv_ts_to_ns(&info, ticks) :
		       0;
}
#else
static uint64_t ptp_ns(struct ibv_context *ctx UNUSED, uint64_t ticks UNUSED)
{
	return 0;
}
#endif

uint64_t stamps_ns(const struct stamps *stamps, uint64_t ticks)
{
	switch (stamps->kind) {
	case RDMA_STAMPS_RAW:
		return card_clock_raw_ns(&stamps->clock, ticks);
	case RDMA_STAMPS_SYSTEM:
		return card_clock_ns(&stamps->clock, ticks);
	case RDMA_STAMPS_PTP:
		return ptp_ns(stamps->ctx, ticks);
	default:
		return 0;
	}
}
