/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes with the library in them, and what their files say. */
#ifndef VMA_STATS_PROCESS_H
#define VMA_STATS_PROCESS_H

#include "stats/stats_abi.h"

/* A checked copy of the process's file, to be freed. -ENOENT: there is none;
 * -ESRCH: the process is gone, or is another program by now; as
 * stats_snapshot_check; or another negative errno. */
int process_read(const char *dir, int pid, struct stats_region **region_out)
	MUST_CHECK;

/* Calls `fn` for the pid of each file in the directory, in its order, until it
 * returns false. Negative errno when it cannot be read. */
int process_visit(const char *dir, bool (*fn)(void *ctx, const char *dir,
					      int pid),
		  void *ctx) MUST_CHECK;

/* The first live process, of this program if it is not NULL; 0: none. */
int process_find(const char *dir, const char *program);

/* The base name of what it runs, or of what its file says. */
void process_name(const struct stats_region *region, char *name, size_t size);

/* Writes a request to the process's file and waits for the answer: 0 or a negative
 * errno, -ETIMEDOUT when there is none, -ESRCH when the process ends meanwhile. */
int process_request(const char *dir, int pid,
		    const struct stats_request *request) MUST_CHECK;

#endif
