/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "Did you mean": which of the known words a mistyped one is closest to. */
#ifndef CONF_SUGGEST_H
#define CONF_SUGGEST_H

#include <stddef.h>

/* The best so far; start with { .word = ..., .len = ... }. */
struct suggest {
	const char *word; /* what was typed; needs no NUL */
	size_t len;
	const char *best; /* the closest known word, or NULL if none is close */
	unsigned distance; /* how far it is */
};

/* Consider one more known word. Letter case does not count; nor do words that
 * differ in more than a third of their letters. The first of equals wins. */
void suggest_try(struct suggest *s, const char *known);

#endif
