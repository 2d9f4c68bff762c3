/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first lines of the log: version, process, machine, and the options in VMA's
 * format. Warnings follow about what would probably disappoint the user.
 */
#ifndef CONF_BANNER_H
#define CONF_BANNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct options;

enum { MEMLOCK_UNLIMITED = -1 };

/* What the caller found out. A text that is empty or NULL leaves its line out. */
struct banner_facts {
	const char *version; /* "10.0.0-0" */
	bool is_release;     /* else a development snapshot */
	const char *built;   /* date and time of the build */
	const char *commit;  /* built from */
	const char *cmdline; /* arguments separated by blanks */
	const char *time;    /* of now, as text */
	pid_t pid;
	const char *arch; /* uname -m */
	const char *node; /* uname -n */
	const char *system; /* uname -r */
	const char *ofed; /* version of the RDMA stack */
	bool will_lock_memory; /* packet memory is going to be locked */
	int64_t memlock_limit; /* RLIMIT_MEMLOCK, or MEMLOCK_UNLIMITED */
};

/* Writes the banner to the log of base/log.h. */
void banner_print(const struct options *opts, const struct banner_facts *facts);

#endif
