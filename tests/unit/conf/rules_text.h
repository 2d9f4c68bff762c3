/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of rules: a rule set that is made from text and freed by done(). */
#ifndef UNIT_CONF_RULES_TEXT_H
#define UNIT_CONF_RULES_TEXT_H

#include <stdio.h>

#include "conf/rules.h"
#include "tests/support/test.h"

static struct rules *rules;
static char errors[32][512];
static int error_cnt;

static inline void keep_error(void *ctx, const char *line)
{
	CHECK(ctx == &rules);
	CHECK(strchr(line, '\n') == NULL);
	if (error_cnt < (int)ARRAY_LEN(errors))
		snprintf(errors[error_cnt], sizeof(errors[0]), "%s", line);
	error_cnt++;
}

static inline void done(void)
{
	rules_destroy(rules);
	rules = NULL;
}

/* More statements for the current set; returns the number of errors. */
static inline int add(const char *text)
{
	return rules_parse(rules, "add_conf_rule", text, strlen(text),
			   RULES_PREPEND, keep_error, &rules);
}

/* A new set from the text of a file. A case that fails leaves its set behind;
 * the next one frees it. */
static inline int read_len(const char *text, size_t len)
{
	done();
	error_cnt = 0;
	rules = rules_create();
	CHECK(rules);
	return rules_parse(rules, "x.conf", text, len, RULES_APPEND, keep_error,
			   &rules);
}

static inline int read_text(const char *text)
{
	return read_len(text, strlen(text));
}

/* A set from text that must be right. */
static inline void read_good(const char *text)
{
	if (read_text(text))
		FAIL("%s", errors[0]);
}

/* All groups and rules, each on a line. */
static char printed[4096];

static inline void add_printed(void *ctx, const char *line)
{
	(void)ctx;
	CHECK(strlen(printed) + strlen(line) + 2 < sizeof(printed));
	strcat(strcat(printed, line), "\n");
}

static inline const char *print(void)
{
	printed[0] = '\0';
	rules_print(rules, add_printed, NULL);
	return printed;
}

#endif
