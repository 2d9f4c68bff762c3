/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes VMA_STATS_FILE (stats_file.h). The file is opened for each block, so that
 * no fd of ours stays open in the program. */
#include "config.h"

#include "stats/stats_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "os/file.h"
#include "stats/stats_text.h"

/* Absolute, for programs that change their directory; empty: none. */
static char path[PATH_MAX];

static void complain(int err)
{
	LOG_ONCE(LOG_LEVEL_WARNING,
		 "cannot write %s (%s); going on without it (VMA_STATS_FILE)",
		 path, strerror(-err));
}

void stats_file_start(const char *wanted)
{
	char here[PATH_MAX] = "";
	int err;

	path[0] = '\0';
	if (!wanted[0])
		return;
	if (wanted[0] != '/' && !getcwd(here, sizeof(here)))
		here[0] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", here,
			     here[0] ? "/" : "", wanted) >= sizeof(path))
		path[0] = '\0';
	err = file_make_empty(path);
	if (!err)
		return;
	complain(err);
	path[0] = '\0';
}

bool stats_file_is_wanted(void)
{
	return path[0];
}

static void append(const struct text *t)
{
	int err = file_append(path, t->buf, t->len);

	if (err)
		complain(err);
}

void stats_file_add_socket(const struct stats_socket *s)
{
	char buf[STATS_TEXT_SIZE];
	struct text t = text_in(buf, sizeof(buf));
	struct stats_socket copy;

	if (!stats_file_is_wanted())
		return;
	/* The shared memory may be changed while we print it, so we take the
	 * numbers once. */
	memcpy(&copy, s, sizeof(copy));
	stats_text_socket(&t, &copy, &copy.counters, false);
	append(&t);
}

void stats_file_end(void)
{
	char line[] = STATS_TEXT_SEPARATOR;
	struct text t = { line, sizeof(line), sizeof(line) - 1, false };

	append(&t);
}
