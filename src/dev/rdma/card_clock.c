/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the counter of a card to system time (card_clock.h). */
#include "config.h"

#include "dev/rdma/card_clock.h"

#include <string.h>

#include "base/compiler.h"

enum {
	RATE_BITS = 32,
	PRESENT = 0,
	REPLACED = 1,
};

/* Parts of 10^9: by how much the nominal rate may be wrong, where the system's clock is
 * just being slowed down, too; and by how much a rate may change between two samples. */
#define NOMINAL_ERROR UINT64_C(1000000)
#define DRIFT UINT64_C(1000)

/* What is further away than we can explain is a system clock that was set. */
#define UNEXPLAINED_NS (50 * NS_PER_US)

/* From one value of the counter to another, which may be the earlier one. */
static int64_t ticks_between(const struct card_clock *clock, uint64_t from,
			     uint64_t to)
{
	uint64_t ahead = (to - from) & clock->mask;

	return ahead > clock->mask / 2 ?
		       -(int64_t)((from - to) & clock->mask) :
		       (int64_t)ahead;
}

static int64_t scale(int64_t ticks, int64_t rate)
{
	return (int64_t)(((__int128)ticks * rate) >> RATE_BITS);
}

static uint64_t line_ns(const struct card_clock_line *line, int64_t ticks)
{
	int64_t bent = ticks < 0 ? 0 : MIN(ticks, line->bend_ticks);

	return line->ns + (uint64_t)(scale(bent, line->bend_rate) +
				     scale(ticks - bent, line->rate));
}

static uint64_t lines_ns(const struct card_clock *clock,
			 const struct card_clock_line *lines, uint64_t ticks)
{
	int64_t after = ticks_between(clock, lines[PRESENT].ticks, ticks);

	if (after >= 0)
		return line_ns(&lines[PRESENT], after);
	return line_ns(&lines[REPLACED],
		       ticks_between(clock, lines[REPLACED].ticks, ticks));
}

void card_clock_init(struct card_clock *clock, uint32_t khz, uint64_t mask)
{
	memset(clock, 0, sizeof(*clock));
	clock->mask = mask;
	clock->khz = khz;
	clock->rate = (int64_t)((NS_PER_MS << RATE_BITS) / khz);
	clock->rate_error = NOMINAL_ERROR;
}

/* -- samples ------------------------------------------------------------------------- */

static void keep(struct card_clock *clock, const struct card_clock_sample *sample)
{
	if (clock->sample_cnt == CARD_CLOCK_SAMPLES) {
		clock->sample_cnt--;
		memmove(&clock->samples[0], &clock->samples[1],
			clock->sample_cnt * sizeof(*sample));
	}
	clock->samples[clock->sample_cnt++] = *sample;
}

/* By the oldest sample and a new one, if that is no worse than what we know. */
static void measure(struct card_clock *clock, const struct card_clock_sample *sample)
{
	const struct card_clock_sample *oldest = &clock->samples[0];
	int64_t ticks = ticks_between(clock, oldest->ticks, sample->ticks);
	int64_t ns = (int64_t)(sample->ns - oldest->ns);
	uint64_t error;

	clock->rate_error = MIN(clock->rate_error + DRIFT, NOMINAL_ERROR);
	if (!clock->sample_cnt || ticks <= 0 || ns <= 0)
		return;
	error = (uint64_t)((unsigned __int128)(oldest->error_ns + sample->error_ns) *
			   NS_PER_SEC / (uint64_t)ns);
	if (error > clock->rate_error)
		return;
	clock->rate = (int64_t)(((__int128)ns << RATE_BITS) / ticks);
	clock->rate_error = error;
}

/* By how much the present line is behind the sample, as far as the sample knows. */
static int64_t lag(const struct card_clock *clock,
		   const struct card_clock_sample *sample)
{
	int64_t error = (int64_t)sample->error_ns;
	int64_t by = (int64_t)(sample->ns -
			       lines_ns(clock, clock->lines, sample->ticks));

	if (by > error)
		return by - error;
	return by < -error ? by + error : 0;
}

/* Whether the rate, as well as we know it, may have led so far astray. */
static bool is_explained(const struct card_clock *clock,
			 const struct card_clock_sample *sample, int64_t by)
{
	const struct card_clock_sample *last =
		&clock->samples[clock->sample_cnt - 1];
	int64_t ns = scale(ticks_between(clock, last->ticks, sample->ticks),
			   clock->rate);
	uint64_t most = UNEXPLAINED_NS + 2 * last->error_ns;

	if (ns > 0)
		most += (uint64_t)((unsigned __int128)ns * clock->rate_error /
				   NS_PER_SEC) * 2;
	return (uint64_t)(by < 0 ? -by : by) <= most;
}

/* -- lines ----------------------------------------------------------------------------- */

static void step_to(struct card_clock *clock, const struct card_clock_sample *sample)
{
	clock->lines[PRESENT] = (struct card_clock_line){
		.ticks = sample->ticks, .ns = sample->ns, .rate = clock->rate,
	};
	clock->lines[REPLACED] = clock->lines[PRESENT];
}

/* Goes on from where the present line is now. */
static void bend_to(struct card_clock *clock, const struct card_clock_sample *sample,
		    int64_t by)
{
	int64_t bend_ticks = (int64_t)(CARD_CLOCK_BEND_NS * clock->khz / NS_PER_MS);
	struct card_clock_line line = {
		.ticks = sample->ticks,
		.ns = lines_ns(clock, clock->lines, sample->ticks),
		.bend_ticks = bend_ticks,
		.bend_rate = clock->rate +
			     (int64_t)((__int128)by * (INT64_C(1) << RATE_BITS) / bend_ticks),
		.rate = clock->rate,
	};

	clock->lines[REPLACED] = clock->lines[PRESENT];
	clock->lines[PRESENT] = line;
}

static void publish(struct card_clock *clock)
{
	uint32_t cnt = atomic_load_explicit(&clock->change_cnt,
					    memory_order_relaxed);
	_Atomic uint64_t *to = clock->words[(cnt + 1) & 1];
	uint64_t words[CARD_CLOCK_WORDS];

	memcpy(words, clock->lines, sizeof(words));
	for (unsigned i = 0; i < CARD_CLOCK_WORDS; i++)
		/* release: who still reads these words, which were in force before
		 * the last change, sees that change behind them */
		atomic_store_explicit(&to[i], words[i], memory_order_release);
	atomic_store_explicit(&clock->change_cnt, cnt + 1, memory_order_release);
}

void card_clock_add(struct card_clock *clock, const struct card_clock_sample *given)
{
	bool is_first = !atomic_load_explicit(&clock->change_cnt,
					      memory_order_relaxed);
	struct card_clock_sample sample = *given;
	int64_t by;

	/* what is worse is worth as little, and sums of errors stay small numbers */
	sample.error_ns = MIN(sample.error_ns, NS_PER_SEC);
	by = is_first ? 0 : lag(clock, &sample);
	if (!is_first && !is_explained(clock, &sample, by)) {
		clock->sample_cnt = 0;
		clock->rate_error = NOMINAL_ERROR;
	}
	measure(clock, &sample);
	keep(clock, &sample);
	if (is_first || by > (int64_t)CARD_CLOCK_STEP_NS ||
	    by < -(int64_t)CARD_CLOCK_STEP_NS)
		step_to(clock, &sample);
	else
		bend_to(clock, &sample, by);
	publish(clock);
}

/* -- asking ----------------------------------------------------------------------------- */

uint64_t card_clock_ns(const struct card_clock *clock, uint64_t ticks)
{
	uint64_t words[CARD_CLOCK_WORDS];
	struct card_clock_line lines[2];
	uint32_t cnt;

	do {
		/* acquire pairs with the release of whoever has published */
		cnt = atomic_load_explicit(&clock->change_cnt,
					   memory_order_acquire);
		if (!cnt)
			return 0;
		for (unsigned i = 0; i < CARD_CLOCK_WORDS; i++)
			words[i] = atomic_load_explicit(&clock->words[cnt & 1][i],
							memory_order_acquire);
	} while (UNLIKELY(atomic_load_explicit(&clock->change_cnt,
					       memory_order_relaxed) != cnt));
	memcpy(lines, words, sizeof(lines));
	return lines_ns(clock, lines, ticks & clock->mask);
}

uint64_t card_clock_raw_ns(const struct card_clock *clock, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)(ticks & clock->mask) * NS_PER_MS /
			  clock->khz);
}
