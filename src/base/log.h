/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log core: levels, and a line in VMA's format handed to a sink. Where lines
 * go (terminal, file, callback) is the sink's business; src/os has the real one.
 * Any thread may log at any moment, in a signal handler too; errno is preserved.
 * Nothing above DEBUG is logged on the data path.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* The numbers are VMA's; VMA_TRACELEVEL's digit spellings are not these. */
enum log_level {
	LOG_LEVEL_NONE = -1,
	LOG_LEVEL_PANIC = 0,
	LOG_LEVEL_ERROR = 1,
	LOG_LEVEL_WARNING = 2,
	LOG_LEVEL_INFO = 3,
	LOG_LEVEL_DETAILS = 4,
	LOG_LEVEL_DEBUG = 5,
	LOG_LEVEL_FINE = 6,
	LOG_LEVEL_FINER = 7,
	LOG_LEVEL_ALL = 8,
};

/* The highest level this build contains; more verbose calls compile to
 * nothing. */
#if defined(VMA_DEBUG) || !defined(VMA_LOG_LEVEL_MAX)
#define LOG_LEVEL_COMPILED LOG_LEVEL_ALL
#else
#define LOG_LEVEL_COMPILED VMA_LOG_LEVEL_MAX
#endif

/* What precedes the text of a line; the numbers are VMA_LOG_DETAILS'. */
enum log_details {
	LOG_DETAILS_NONE = 0,
	LOG_DETAILS_TID = 1,
	LOG_DETAILS_PID = 2,
	LOG_DETAILS_TIME = 3,
};

/* Longest line including the newline; longer ones are cut. */
enum { LOG_LINE_SIZE = 1024 };

/* Takes one complete line that ends in a newline and a NUL (not in len). May be
 * called concurrently. */
typedef void log_sink_fn(void *ctx, enum log_level level, const char *line,
			 size_t len);

struct log_config {
	_Atomic int level;   /* lines above it are not made */
	_Atomic int details; /* enum log_details, or higher: everything */
	_Atomic bool has_colors;
};

extern struct log_config log_config;

/* Until a sink is set, lines are dropped. Not to be called while others log. */
void log_set_sink(log_sink_fn *sink, void *ctx);

/* "INFO" and so on; "NONE" for numbers that are no level. */
const char *log_level_name(int level);

void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_vwrite(enum log_level level, const char *fmt, va_list args)
	PRINTF_LIKE(2, 0);

static inline bool log_is_on(enum log_level level)
{
	return (int)level <= (int)LOG_LEVEL_COMPILED &&
	       (int)level <= atomic_load_explicit(&log_config.level,
						  memory_order_relaxed);
}

#define LOG_AT(level, ...)                          \
	do {                                        \
		if (UNLIKELY(log_is_on(level)))     \
			log_write(level, __VA_ARGS__); \
	} while (0)

/* As LOG_AT, but only the first time this line of code is reached. */
#define LOG_ONCE(level, ...)                                     \
	do {                                                     \
		static atomic_flag said_ = ATOMIC_FLAG_INIT;     \
		if (!atomic_flag_test_and_set(&said_))           \
			LOG_AT(level, __VA_ARGS__);              \
	} while (0)

#define log_panic(...) LOG_AT(LOG_LEVEL_PANIC, __VA_ARGS__)
#define log_err(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_details(...) LOG_AT(LOG_LEVEL_DETAILS, __VA_ARGS__)
#define log_dbg(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_fine(...) LOG_AT(LOG_LEVEL_FINE, __VA_ARGS__)
#define log_finer(...) LOG_AT(LOG_LEVEL_FINER, __VA_ARGS__)

#endif
