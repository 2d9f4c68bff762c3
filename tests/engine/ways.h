/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All ways through a model. A run makes one choice after another; the next run makes
 * another one at the last place where there is one, until all have been made.
 */
#ifndef ENGINE_WAYS_H
#define ENGINE_WAYS_H

#include "tests/support/test.h"

enum { CHOICES_MAX = 128 };

/* Of this run: what was chosen, out of how many; the first `given` ones are. */
static struct {
	unsigned choices[CHOICES_MAX], widths[CHOICES_MAX];
	unsigned given, cnt;
} way;

static unsigned choose(unsigned width)
{
	CHECK(way.cnt < CHOICES_MAX);
	if (way.cnt >= way.given)
		way.choices[way.cnt] = 0;
	way.widths[way.cnt] = width;
	return way.choices[way.cnt++];
}

/* The next one in the order of the alphabet; false after the last. */
static bool next_way(void)
{
	while (way.cnt && way.choices[way.cnt - 1] + 1 == way.widths[way.cnt - 1])
		way.cnt--;
	if (!way.cnt)
		return false;
	way.choices[way.cnt - 1]++;
	way.given = way.cnt;
	return true;
}

/* For who reads of a failure. */
static inline void note_way(void)
{
	for (unsigned j = 0; j < way.cnt; j++)
		test_note("choice %u: %u of %u", j, way.choices[j],
			  way.widths[j]);
}

#endif
