/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as an environment: lines are variables, and a line whose first byte
 * is the number of an option is a value for that option. Whatever they say, all
 * options end up within their limits, each complaint is one line, and the banner
 * can be printed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "conf/banner.h"
#include "conf/cpus.h"
#include "conf/option_info.h"
#include "tests/support/fuzz.h"

enum { VARIABLES_MAX = 32 };

static const struct options_facts facts = {
	.pid = 4711,
	.log_level_max = LOG_LEVEL_DEBUG,
};

static void see_line(void *ctx, const char *line)
{
	int *cnt = ctx;

	FUZZ_CHECK(strlen(line) > 0 && strlen(line) < 512);
	for (; *line; line++)
		FUZZ_CHECK(*line >= ' ' && *line <= '~');
	++*cnt;
}

static void see_log(void *ctx, enum log_level level, const char *line,
		    size_t len)
{
	(void)ctx;
	(void)level;
	FUZZ_CHECK(len <= LOG_LINE_SIZE && strlen(line) == len);
}

static char *make_variable(const uint8_t *line, size_t len)
{
	const char *name = "";
	char *text;

	if (len > 0 && line[0] < OPTION_CNT && line[0] != '\t') {
		name = option_infos[line[0]].name;
		line++;
		len--;
	}
	text = malloc(strlen(name) + len + 2);
	FUZZ_CHECK(text);
	sprintf(text, "%s%s", name, *name ? "=" : "");
	memcpy(strchr(text, '\0'), line, len);
	text[strlen(name) + (*name != '\0') + len] = '\0';
	return text;
}

static void check_option(const struct options *opts, enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	char value[OPTION_TEXT_MAX + 1];
	struct cpus cpus;

	FUZZ_CHECK(option_value(opts, id, value, sizeof(value)));
	if (option_is_text(id)) {
		const char *text = option_text(opts, id);
		size_t len = strlen(text);

		FUZZ_CHECK(len >= (size_t)info->min);
		FUZZ_CHECK(len <= (size_t)info->max);
		FUZZ_CHECK(strcmp(text, value) == 0);
		if (info->kind == OPTION_KIND_cpus)
			FUZZ_CHECK(cpus_parse(text, &cpus) == 0);
	} else if (info->kind == OPTION_KIND_choice ||
		   info->kind == OPTION_KIND_word) {
		FUZZ_CHECK(option_choice_of(id, option_number(opts, id)));
	} else if (info->max > 0) {
		int n = option_number(opts, id);

		FUZZ_CHECK(n == 0 || (n >= info->min && n <= info->max));
	}
}

/* What a string means does not depend on what stands next to it. */
static void check_options(char *const *env)
{
	static struct options opts;
	int line_cnt = 0, silent_cnt;

	silent_cnt = options_parse(&opts, env, &facts, NULL, NULL);
	FUZZ_CHECK(options_parse(&opts, env, &facts, see_line, &line_cnt) ==
		   silent_cnt);
	FUZZ_CHECK(line_cnt == silent_cnt);
	for (enum option_id id = 0; id < OPTION_CNT; id++)
		check_option(&opts, id);

	if (line_cnt % 8 == 0) {
		struct banner_facts with = { .version = "10.0.0-0",
					     .built = "now",
					     .cmdline = opts.log_file };

		log_set_sink(see_log, NULL);
		log_config.level = opts.log_level;
		banner_print(&opts, &with);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *env[VARIABLES_MAX + 1];
	size_t cnt = 0;

	while (size > 0 && cnt < VARIABLES_MAX) {
		const uint8_t *newline = memchr(data, '\n', size);
		size_t len = newline ? (size_t)(newline - data) : size;

		env[cnt++] = make_variable(data, len);
		data += len;
		size -= len;
		if (newline) {
			data++;
			size--;
		}
	}
	env[cnt] = NULL;
	check_options(env);
	while (cnt > 0)
		free(env[--cnt]);
	return 0;
}
