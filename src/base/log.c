/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making one log line and handing it to the sink. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

struct log_config log_config = {
	.level = LOG_LEVEL_INFO,
};

static log_sink_fn *log_sink;
static void *log_sink_ctx;

struct level_look {
	const char *name;
	const char *color;
};

/* The escape sequences that make severities stand out on a terminal. */
#define RED "\033[0;31m"
#define MAGENTA "\033[2;35m"
#define PLAIN "\033[0m"

static const struct level_look level_looks[] = {
	[LOG_LEVEL_PANIC] = { "PANIC", RED },
	[LOG_LEVEL_ERROR] = { "ERROR", RED },
	[LOG_LEVEL_WARNING] = { "WARNING", MAGENTA },
	[LOG_LEVEL_INFO] = { "INFO", "" },
	[LOG_LEVEL_DETAILS] = { "DETAILS", "" },
	[LOG_LEVEL_DEBUG] = { "DEBUG", "" },
	[LOG_LEVEL_FINE] = { "FINE", "" },
	[LOG_LEVEL_FINER] = { "FINER", "" },
	[LOG_LEVEL_ALL] = { "ALL", "" },
};

static bool is_level(int level)
{
	return level >= 0 && level < (int)ARRAY_LEN(level_looks);
}

/* A line under construction. Text that does not fit is cut. */
struct line {
	char text[LOG_LINE_SIZE];
	size_t len;
	size_t room; /* how far len may grow; the rest is kept for the end */
};

static void line_vadd(struct line *line, const char *fmt, va_list args)
{
	size_t room = line->room - line->len;
	int n = vsnprintf(line->text + line->len, room, fmt, args);

	if (n > 0)
		line->len += MIN((size_t)n, room - 1);
}

static void PRINTF_LIKE(2, 3) line_add(struct line *line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_vadd(line, fmt, args);
	va_end(args);
}

static void line_add_prefix(struct line *line, enum log_level level)
{
	int details = atomic_load_explicit(&log_config.details,
					   memory_order_relaxed);

	if (details >= LOG_DETAILS_TIME)
		line_add(line, " Time: %9.3f",
			 (double)clock_monotonic_ns() / 1e6);
	if (details >= LOG_DETAILS_PID)
		line_add(line, " Pid: %5u", (unsigned)getpid());
	if (details >= LOG_DETAILS_TID)
		line_add(line, " Tid: %5u", (unsigned)gettid());
	line_add(line, " VMA %s: ", log_level_name(level));
}

void log_set_sink(log_sink_fn *sink, void *ctx)
{
	log_sink = sink;
	log_sink_ctx = ctx;
}

const char *log_level_name(int level)
{
	return is_level(level) ? level_looks[level].name : "NONE";
}

void log_vwrite(enum log_level level, const char *fmt, va_list args)
{
	static const char tail[] = PLAIN "\n";
	int saved_errno = errno;
	const char *color = "";
	struct line line;

	if (!log_sink)
		return;
	line.len = 0;
	line.room = sizeof(line.text) - sizeof(tail) + 1;
	if (atomic_load_explicit(&log_config.has_colors, memory_order_relaxed) &&
	    is_level(level))
		color = level_looks[level].color;

	line_add(&line, "%s", color);
	line_add_prefix(&line, level);
	line_vadd(&line, fmt, args);
	while (line.len > 0 && line.text[line.len - 1] == '\n')
		line.len--;
	line.room = sizeof(line.text);
	line_add(&line, "%s\n", *color ? PLAIN : "");
	log_sink(log_sink_ctx, level, line.text, line.len);
	errno = saved_errno;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vwrite(level, fmt, args);
	va_end(args);
}
