/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/test.h"

static char seen[LOG_LINE_SIZE];
static size_t seen_len;
static int seen_level, seen_cnt;

static void keep(void *ctx, enum log_level level, const char *line, size_t len)
{
	CHECK(ctx == &seen);
	CHECK(strlen(line) == len);
	memcpy(seen, line, len + 1);
	seen_len = len;
	seen_level = level;
	seen_cnt++;
	errno = EIO;
}

static void start(int level, int details, bool has_colors)
{
	seen_cnt = 0;
	seen[0] = '\0';
	log_config.level = level;
	log_config.details = details;
	log_config.has_colors = has_colors;
	log_set_sink(keep, &seen);
}

TEST(line_has_the_documented_prefix)
{
	start(LOG_LEVEL_INFO, 0, false);
	log_info("%s %d", "frames", 7);
	CHECK_STR(seen, " VMA INFO: frames 7\n");
	log_warn("w");
	CHECK_STR(seen, " VMA WARNING: w\n");
	CHECK_EQ(seen_level, LOG_LEVEL_WARNING);
}

TEST(details_put_time_pid_and_tid_first)
{
	char want[64];
	double ms;

	start(LOG_LEVEL_INFO, LOG_DETAILS_TID, false);
	log_info("x");
	snprintf(want, sizeof(want), " Tid: %5u VMA INFO: x\n",
		 (unsigned)gettid());
	CHECK_STR(seen, want);
	log_config.details = LOG_DETAILS_PID;
	log_info("x");
	snprintf(want, sizeof(want), " Pid: %5u Tid: %5u VMA INFO: x\n",
		 (unsigned)getpid(), (unsigned)gettid());
	CHECK_STR(seen, want);
	log_config.details = LOG_DETAILS_TIME;
	log_info("x");
	CHECK_EQ(sscanf(seen, " Time: %lf Pid:", &ms), 1);
}

TEST(level_decides_what_is_made)
{
	start(LOG_LEVEL_WARNING, 0, false);
	log_info("no");
	CHECK_EQ(seen_cnt, 0);
	log_warn("yes");
	CHECK_EQ(seen_cnt, 1);
	log_config.level = LOG_LEVEL_NONE;
	log_panic("no");
	CHECK_EQ(seen_cnt, 1);
}

TEST(only_bad_news_is_coloured)
{
	start(LOG_LEVEL_INFO, 0, true);
	log_info("plain");
	CHECK_STR(seen, " VMA INFO: plain\n");
	log_err("red");
	CHECK(seen[0] == '\033');
	CHECK(strstr(seen, " VMA ERROR: red\033[0m\n"));
}

TEST(long_line_is_cut_but_complete)
{
	char text[2 * LOG_LINE_SIZE];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	start(LOG_LEVEL_INFO, 0, true);
	log_err("%s", text);
	CHECK(seen_len < LOG_LINE_SIZE);
	CHECK(seen_len > LOG_LINE_SIZE - 16);
	CHECK_STR(seen + seen_len - 5, "\033[0m\n");
}

TEST(one_newline_at_the_end)
{
	start(LOG_LEVEL_INFO, 0, false);
	log_info("text\n");
	CHECK_STR(seen, " VMA INFO: text\n");
}

TEST(errno_is_untouched)
{
	start(LOG_LEVEL_INFO, 0, false);
	errno = ENOENT;
	log_info("x");
	CHECK_EQ(errno, ENOENT);
}

TEST(once_is_once)
{
	start(LOG_LEVEL_INFO, 0, false);
	for (int i = 0; i < 3; i++)
		LOG_ONCE(LOG_LEVEL_INFO, "x");
	CHECK_EQ(seen_cnt, 1);
}

TEST(names_of_levels)
{
	CHECK_STR(log_level_name(LOG_LEVEL_DETAILS), "DETAILS");
	CHECK_STR(log_level_name(LOG_LEVEL_NONE), "NONE");
	CHECK_STR(log_level_name(99), "NONE");
}
