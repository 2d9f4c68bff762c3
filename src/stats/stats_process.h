/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes by their numbers: whose file it is, and whether a process is a later one of
 * the same number. */
#ifndef STATS_STATS_PROCESS_H
#define STATS_STATS_PROCESS_H

#include <stdint.h>

/* When a process began, in clock ticks after the machine did, from the text of
 * its /proc/PID/stat; 0: the text has none. */
uint64_t stats_process_start_in(const char *text);
/* The same of a process; 0: it cannot be known. */
uint64_t stats_process_start(int pid);

/* The process in a file's name, "vmastat.PID"; 0: it is no such name. */
int stats_process_of_file(const char *name);

#endif
