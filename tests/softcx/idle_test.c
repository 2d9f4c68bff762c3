/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How soon a card that has had nothing to do hears its user: with its thread, as
 * programs have it. Run by idle.sh.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "pair.h"
#include "tests/support/test.h"

enum { TRIES = 60 };

/* Longer than the card takes to go to sleep for long. */
static const struct timespec silence = { .tv_nsec = 12 * NS_PER_MS };

/* The time from a doorbell to the completion of its entry. */
static uint64_t ring_once(uint32_t i)
{
	uint64_t start_ns = rig_now_ns();
	struct ibv_wc wc;

	pair_send(i, IBV_SEND_SIGNALED);
	while (!rig_poll(pair_a.send_cq, &wc))
		CHECK(rig_now_ns() - start_ns < 10 * NS_PER_SEC);
	return rig_now_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* That it ended the card's sleep, nine of ten times, is what can be asked on any
 * machine; how long that takes is a note. */
TEST(doorbell_after_silence_wakes_the_card)
{
	uint64_t took_ns[TRIES];

	pair_open(NULL, NULL);
	for (uint32_t i = 0; i < TRIES; i++) {
		nanosleep(&silence, NULL);
		took_ns[i] = ring_once(i);
	}
	qsort(took_ns, TRIES, sizeof(*took_ns), compare);
	test_note("median %.0f us, 9 of 10 %.0f us, longest %.0f us",
		  (double)took_ns[TRIES / 2] / NS_PER_US,
		  (double)took_ns[TRIES * 9 / 10] / NS_PER_US,
		  (double)took_ns[TRIES - 1] / NS_PER_US);
	CHECK(rig_stats("mlx5_0").bells_waking >= TRIES * 9 / 10);
	pair_close();
}
