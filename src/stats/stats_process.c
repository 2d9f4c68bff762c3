/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading /proc/PID/stat (stats_process.h). */
#include "config.h"

#include "stats/stats_process.h"

#include <stdlib.h>
#include <string.h>

/* The second field is the program's name in parentheses, and may contain any of
 * the characters that separate fields. */
enum { FIELD_AFTER_NAME = 3, FIELD_START = 22 };

uint64_t stats_process_start_in(const char *text)
{
	const char *at = strrchr(text, ')');

	for (int field = FIELD_AFTER_NAME; at && field <= FIELD_START; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}
