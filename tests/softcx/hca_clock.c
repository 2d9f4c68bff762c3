/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The card's counter and its published conversion; see hca_clock.h. */
#include "config.h"

#include "hca_clock.h"

#include <endian.h>
#include <rdma/mlx5-abi.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

enum { SHIFT = 21, MASK_BITS = 41, PPM = 1000000 };

static const uint64_t mask = (UINT64_C(1) << MASK_BITS) - 1;

void hca_clock_init(struct hca_clock *clock, uint64_t khz, int64_t ppm,
		    uint64_t offset, uint64_t now_ns, uint64_t real_ns)
{
	*clock = (struct hca_clock){
		.khz = khz,
		.ppm = ppm,
		.offset = offset,
		.start_ns = now_ns,
		.start_real_ns = real_ns,
		.info_cycles = offset,
		.info_ns = real_ns,
	};
}

uint64_t hca_clock_cycles(const struct hca_clock *clock, uint64_t now_ns)
{
	uint64_t elapsed = now_ns - clock->start_ns;
	unsigned __int128 cycles = (unsigned __int128)elapsed * clock->khz;

	cycles = cycles * (uint64_t)(PPM + clock->ppm) / PPM / NS_PER_MS;
	return clock->offset + (uint64_t)cycles;
}

void hca_clock_publish(const struct hca_clock *clock, uint64_t now_ns,
		       void *page)
{
	uint64_t cycles = hca_clock_cycles(clock, now_ns);
	_Atomic uint32_t *words = page;

	/* The reader takes high, low, high; low must not be seen to wrap under
	 * the old high word, so high goes first. */
	atomic_store_explicit(&words[0], htobe32((uint32_t)(cycles >> 32)),
			      memory_order_release);
	atomic_store_explicit(&words[1], htobe32((uint32_t)cycles),
			      memory_order_release);
}

static uint32_t mult(const struct hca_clock *clock)
{
	return (uint32_t)(((NS_PER_MS << SHIFT) + clock->khz / 2) / clock->khz);
}

void hca_clock_advance_info(struct hca_clock *clock, uint64_t now_ns)
{
	uint64_t cycles = hca_clock_cycles(clock, now_ns);
	uint64_t delta = cycles - clock->info_cycles;
	unsigned __int128 ns = (unsigned __int128)delta * mult(clock) +
			       clock->info_frac;

	clock->info_ns += (uint64_t)(ns >> SHIFT);
	clock->info_frac = (uint64_t)ns & ((1u << SHIFT) - 1);
	clock->info_cycles = cycles;
}

void hca_clock_publish_info(const struct hca_clock *clock, void *page)
{
	struct mlx5_ib_clock_info *info = page;
	_Atomic uint32_t *sign = (_Atomic uint32_t *)&info->sign;
	uint32_t seq = atomic_load_explicit(sign, memory_order_relaxed);

	/* Readers wait while the lowest bit is set, and start again when the
	 * sign has changed. */
	atomic_store_explicit(sign, seq | MLX5_IB_CLOCK_INFO_KERNEL_UPDATING,
			      memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	info->nsec = clock->info_ns;
	info->cycles = clock->info_cycles;
	info->frac = clock->info_frac;
	info->mult = mult(clock);
	info->shift = SHIFT;
	info->mask = mask;
	info->overflow_period = 10 * NS_PER_SEC;
	atomic_store_explicit(sign, (seq | 1) + 1, memory_order_release);
}
