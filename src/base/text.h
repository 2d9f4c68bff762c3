/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text put together piece by piece in a buffer of fixed size. What does not fit
 * is cut; there is always a NUL.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct text {
	char *buf;
	size_t size; /* of buf, at least 1 */
	size_t len;  /* without the NUL */
	bool is_cut; /* something did not fit */
};

/* Starts an empty text in `buf`. */
static inline struct text text_in(char *buf, size_t size)
{
	buf[0] = '\0';
	return (struct text){ .buf = buf, .size = size };
}

void text_add(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_vadd(struct text *t, const char *fmt, va_list args)
	PRINTF_LIKE(2, 0);

/* Adds up to `len` bytes from outside between double quotes, with '?' for those
 * that a terminal should not see, and at most `max` of them ("..." follows). */
void text_add_quoted(struct text *t, const char *s, size_t len, size_t max);

#endif
