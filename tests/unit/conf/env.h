/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of options: parse("VMA_A=1", "VMA_B=2") fills `opts` from just these
 * variables and keeps what was reported.
 */
#ifndef UNIT_CONF_ENV_H
#define UNIT_CONF_ENV_H

#include <stdio.h>

#include "conf/option_info.h"
#include "tests/support/test.h"

static struct options opts;
static struct options_facts facts = {
	.pid = 4711,
	.log_level_max = LOG_LEVEL_ALL,
};
static char reports[64][512];
static int report_cnt;

static void keep_report(void *ctx, const char *line)
{
	CHECK(ctx == &opts);
	CHECK(strchr(line, '\n') == NULL);
	if (report_cnt < (int)ARRAY_LEN(reports))
		snprintf(reports[report_cnt], sizeof(reports[0]), "%s", line);
	report_cnt++;
}

static inline void parse_env(const char *const *env)
{
	report_cnt = 0;
	CHECK_EQ(options_parse(&opts, (char *const *)env, &facts, keep_report,
			       &opts),
		 report_cnt);
}

#define parse(...) parse_env((const char *const[]){ __VA_ARGS__, NULL })

/* Nothing to complain about. */
#define parse_quietly(...)                                              \
	do {                                                            \
		parse(__VA_ARGS__);                                     \
		if (report_cnt)                                         \
			FAIL("reported without need: %s", reports[0]); \
	} while (0)

/* What the only report is. */
static inline const char *only_report(void)
{
	if (report_cnt != 1)
		FAIL("%d reports, the first: %s", report_cnt,
		     report_cnt ? reports[0] : "-");
	return reports[0];
}

#endif
