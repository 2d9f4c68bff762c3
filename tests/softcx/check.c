/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device's one line of complaint; see check.h. */
#include "config.h"

#include "check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "sys.h"

enum { LINE_SIZE = 512 };

static _Atomic bool is_lenient;
static _Atomic unsigned int n_violations;

static void say(const char *rule, const char *fmt, va_list args)
{
	char line[LINE_SIZE];
	int len = snprintf(line, sizeof(line), rule ? "softcx: %s: " : "softcx: ",
			   rule);

	len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, args);
	len = MIN(len, LINE_SIZE - 2);
	line[len++] = '\n';
	sys_write(2, line, (size_t)len);
}

void check_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(NULL, fmt, args);
	va_end(args);
}

void check_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(NULL, fmt, args);
	va_end(args);
	abort();
}

void check_violation(const char *rule, const char *fmt, ...)
{
	va_list args;

	atomic_fetch_add_explicit(&n_violations, 1, memory_order_relaxed);
	if (atomic_load_explicit(&is_lenient, memory_order_relaxed))
		return;
	va_start(args, fmt);
	say(rule, fmt, args);
	va_end(args);
	abort();
}

void check_set_strict(bool is_strict)
{
	atomic_store_explicit(&is_lenient, !is_strict, memory_order_relaxed);
}

unsigned int check_violations(void)
{
	return atomic_load_explicit(&n_violations, memory_order_relaxed);
}
