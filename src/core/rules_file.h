/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rules file. It is read as a whole and parsed by conf/rules.h. Mistakes are
 * reported in the log. */
#ifndef CORE_RULES_FILE_H
#define CORE_RULES_FILE_H

#include <stdbool.h>

#include "base/compiler.h"

struct rules;

/* Adds the rules of the file at `path`. It is no error if the file is missing or
 * cannot be read. The log mentions it; a missing file only if the user named it.
 * -ENOMEM. In the bracket. */
int rules_file_read(struct rules *rules, const char *path,
		    bool is_named_by_user) MUST_CHECK;

/* Logs the rules as they were understood, when the file asks for that
 * (log min-level 1). */
void rules_file_echo(const struct rules *rules);

#endif
