/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Putting text together without overrunning its buffer. */
#include "config.h"

#include "base/text.h"

#include <stdio.h>

void text_vadd(struct text *t, const char *fmt, va_list args)
{
	size_t room = t->size - t->len;
	int n = vsnprintf(t->buf + t->len, room, fmt, args);

	if (n < 0)
		return;
	if ((size_t)n >= room) {
		t->is_cut = true;
		t->len = t->size - 1;
		return;
	}
	t->len += (size_t)n;
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text_vadd(t, fmt, args);
	va_end(args);
}

void text_add_quoted(struct text *t, const char *s, size_t len, size_t max)
{
	text_add(t, "\"");
	for (size_t i = 0; i < len && i < max; i++) {
		bool is_plain = s[i] >= ' ' && s[i] <= '~';

		text_add(t, "%c", is_plain ? s[i] : '?');
	}
	text_add(t, len > max ? "...\"" : "\"");
}
