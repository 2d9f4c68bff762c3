/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What vma_stats prints. Each report takes checked copies of a process's file and
 * has no other source, so that a test can give it any.
 */
#ifndef VMA_STATS_REPORT_H
#define VMA_STATS_REPORT_H

#include <stdio.h>

#include "args.h"
#include "stats/stats_snapshot.h"

struct report {
	FILE *out;
	const struct args *args;
	const struct stats_region *now;
	/* NULL: totals are wanted. Of the same size as `now`. */
	const struct stats_region *before;
	/* printed since the last header of views 1 and 2 */
	unsigned line_cnt;
};

/* What one line or block of a report is about: counters, as totals or as what was
 * added each second. */
struct report_socket {
	const struct stats_socket *socket;
	struct stats_socket_counters counters;
};

/* The next socket with a slot, from *at on, that was asked for; false: there are
 * no more. */
bool report_next_socket(const struct report *report, uint32_t *at,
			struct report_socket *out);

/* Views 1 and 2: a table. */
void report_basic(struct report *report);
/* View 3. */
void report_full(struct report *report);
/* View 4: once. */
void report_groups(struct report *report);
/* View 5: its header, and the sockets of one process. */
void report_list_header(FILE *out);
void report_list(struct report *report, const char *program);
/* --why and --raw: once. */
void report_why(struct report *report);
void report_raw(struct report *report);

/* How much of the time was spent polling, in percent. */
unsigned report_polling(const struct stats_mux *mux);
/* Rates of select, poll and epoll, `name` with its brackets; false: nothing has
 * happened. */
bool report_mux(const struct report *report, const struct stats_mux *now,
		const struct stats_mux *before,
		struct stats_mux_counters *out);

/* Per second, whatever the interval. */
uint64_t report_rate(const struct report *report, uint64_t value);

#endif
