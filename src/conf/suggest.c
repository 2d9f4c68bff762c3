/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The distance between two words, in mistakes of a typist. */
#include "config.h"

#include "conf/suggest.h"

#include <string.h>

#include "base/compiler.h"

/* Longer words are not compared; no known one is. */
enum { WORD_MAX = 64 };

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/*
 * How many letters must be changed, added, left out or swapped with their
 * neighbour to make one word the other. Dynamic programming by rows: row[j] is
 * the distance of the first i letters of a to the first j of b; swaps look two
 * rows back.
 */
static unsigned distance(const char *a, size_t a_len, const char *b,
			 size_t b_len)
{
	unsigned rows[3][WORD_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *oldest = before;

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			char x = upper(a[i - 1]), y = upper(b[j - 1]);
			unsigned best = last[j - 1] + (x != y);

			best = MIN(best, last[j] + 1);
			best = MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && x == upper(b[j - 2]) &&
			    upper(a[i - 2]) == y)
				best = MIN(best, before[j - 2] + 1);
			row[j] = best;
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

void suggest_try(struct suggest *s, const char *known)
{
	size_t len = strlen(known);
	unsigned d;

	if (s->len > WORD_MAX || len > WORD_MAX)
		return;
	d = distance(s->word, s->len, known, len);
	if (d > MAX(s->len, len) / 3 || (s->best && d >= s->distance))
		return;
	s->best = known;
	s->distance = d;
}
