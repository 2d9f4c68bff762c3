/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the counter of a card means in system time. Somebody reads both clocks about
 * once a second; between two of these samples, and after the last one, time is a
 * straight line over the counter. Pure arithmetic.
 *
 * The line never jumps, so that a later packet never has an earlier time: each sample
 * bends it, and it meets the system's clock after CARD_CLOCK_BEND_NS. Only a clock that
 * is CARD_CLOCK_STEP_NS away was set by somebody, and is followed at once.
 */
#ifndef DEV_RDMA_CARD_CLOCK_H
#define DEV_RDMA_CARD_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define CARD_CLOCK_BEND_NS (250 * NS_PER_MS)
#define CARD_CLOCK_STEP_NS (10 * NS_PER_MS)

enum { CARD_CLOCK_SAMPLES = 8 };

/* Both clocks at one moment. The system's may be wrong by error_ns. */
struct card_clock_sample {
	uint64_t ticks;
	uint64_t ns;
	uint64_t error_ns;
};

/* Time over the counter: from one point on, with one rate for so many ticks, and with
 * another one after them and before the point. Rates are ns in a tick, times 2^32. */
struct card_clock_line {
	uint64_t ticks;
	uint64_t ns;
	int64_t bend_ticks;
	int64_t bend_rate;
	int64_t rate;
};

enum { CARD_CLOCK_WORDS = 2 * sizeof(struct card_clock_line) / sizeof(uint64_t) };

struct card_clock {
	/* fixed */
	uint64_t mask;
	uint32_t khz;

	/* for who adds samples, one thread at a time */
	struct card_clock_sample samples[CARD_CLOCK_SAMPLES];
	unsigned sample_cnt;
	/* the rate, and by how much of 10^9 it may be wrong */
	int64_t rate;
	uint64_t rate_error;
	struct card_clock_line lines[2];

	/* The lines for everybody else: the present one, and the one that it has
	 * replaced, which counts for what was received before. They are written beside
	 * those that are in force, so that nobody waits for a writer who is interrupted.
	 * In force are the words by the lowest bit of the number. */
	_Atomic uint32_t change_cnt;
	_Atomic uint64_t words[2][CARD_CLOCK_WORDS];
};

/* A counter of nominally so many kHz, of which the bits of the mask count. */
void card_clock_init(struct card_clock *clock, uint32_t khz, uint64_t mask);

/* Two samples are less than half a lap of the counter apart. */
void card_clock_add(struct card_clock *clock,
		    const struct card_clock_sample *sample);

/* The system time at which the counter had this value, which it had less than half a
 * lap ago. 0: there is no sample yet. By any thread. */
uint64_t card_clock_ns(const struct card_clock *clock, uint64_t ticks);

/* The counter's own time: since it was 0, at its nominal rate. */
uint64_t card_clock_raw_ns(const struct card_clock *clock, uint64_t ticks);

#endif
