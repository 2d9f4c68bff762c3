/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the rules file. */
#include "config.h"

#include "core/rules_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf/rules.h"
#include "os/file.h"

/* This is more than anybody's rules need. A mistyped path must not use up the
 * memory. */
enum { FILE_MAX = 16 << 20 };

static void warn(void *ctx UNUSED, const char *line)
{
	log_warn("%s", line);
}

static void inform(void *ctx UNUSED, const char *line)
{
	log_info("%s", line);
}

static const char *why(int err)
{
	switch (err) {
	case -EINVAL:
		return "not a regular file";
	case -EFBIG:
		return "too large";
	default:
		return strerror(-err);
	}
}

int rules_file_read(struct rules *rules, const char *path,
		    bool is_named_by_user)
{
	size_t len;
	char *text;
	int err;

	if (!path[0])
		return 0; /* an empty name says that no rules are wanted */
	err = file_read(path, FILE_MAX, &text, &len);
	if (err == -ENOMEM)
		return err;
	if (err) {
		if (err != -ENOENT || is_named_by_user)
			log_warn("rules file %s: %s; no rules are in force",
				 path, why(err));
		return 0;
	}
	err = rules_parse(rules, path, text, len, RULES_APPEND, warn, NULL);
	free(text);
	return err < 0 ? err : 0;
}

void rules_file_echo(const struct rules *rules)
{
	if (rules_log(rules)->min_level <= 1)
		rules_print(rules, inform, NULL);
}
