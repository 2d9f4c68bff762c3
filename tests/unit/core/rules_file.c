/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which files of rules are read, and what is said of the others. */
#include "core/rules_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/rules.h"
#include "tests/support/test.h"

static char dir[] = "/tmp/vma-rules-XXXXXX", path[64];
static struct rules *rules;

/* What was logged. */
static char said[4096];

static void keep(void *ctx UNUSED, enum log_level level UNUSED, const char *line,
		 size_t len)
{
	size_t at = strlen(said);

	CHECK(at + len < sizeof(said));
	memcpy(said + at, line, len);
	said[at + len] = '\0';
}

static void begin(const char *text)
{
	int fd;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/conf", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	rules = rules_create();
	CHECK(rules);
	said[0] = '\0';
	log_set_sink(keep, NULL);
}

static void end(void)
{
	log_set_sink(NULL, NULL);
	rules_destroy(rules);
	remove(path);
	CHECK_EQ(rmdir(dir), 0);
}

TEST(a_file_is_read)
{
	begin("use os udp_connect *:53\n");
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	CHECK_EQ(rules_rule_cnt(rules), 1);
	CHECK_STR(said, "");
	end();
}

TEST(what_is_wrong_in_it_is_said_with_its_place)
{
	begin("use os udp_connect *:53\nuse os nobody *:53\n");
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	CHECK_EQ(rules_rule_cnt(rules), 1);
	CHECK(strstr(said, "WARNING") && strstr(said, "/conf:2:8: "));
	end();
}

/* The one of the installation need not be there. */
TEST(a_missing_file_is_said_if_the_user_has_named_it)
{
	begin("");
	remove(path);
	CHECK_EQ(rules_file_read(rules, path, false), 0);
	CHECK_STR(said, "");
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	CHECK(strstr(said, "No such file or directory; no rules are in force"));
	end();
}

/* The call must not wait for a pipe, nor read a gigabyte by mistake. */
TEST(what_is_no_file_of_rules)
{
	begin("");
	remove(path);
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(rules_file_read(rules, path, false), 0);
	CHECK(strstr(said, "not a regular file"));
	said[0] = '\0';
	remove(path);
	CHECK_EQ(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	CHECK_EQ(truncate(path, (16 << 20) + 1), 0);
	CHECK_EQ(rules_file_read(rules, path, false), 0);
	CHECK(strstr(said, "too large"));
	CHECK_EQ(rules_rule_cnt(rules), 0);
	end();
}

TEST(an_empty_name_means_no_rules)
{
	begin("");
	CHECK_EQ(rules_file_read(rules, "", true), 0);
	CHECK_STR(said, "");
	end();
}

TEST(rules_are_logged_if_the_file_says_so)
{
	begin("log min-level 1\nuse os udp_connect *:53\n");
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	rules_file_echo(rules);
	CHECK(strstr(said, "use os udp_connect *:53"));
	end();

	begin("use os udp_connect *:53\n");
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	rules_file_echo(rules);
	CHECK_STR(said, "");
	end();
}
