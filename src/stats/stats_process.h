/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes by their numbers: whose file it is, and whether a process is a later one of
 * the same number. */
#ifndef STATS_STATS_PROCESS_H
#define STATS_STATS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* When a process began, in clock ticks after the machine did, from the text of
 * its /proc/PID/stat; 0: the text has none. */
uint64_t stats_process_start_in(const char *text);
/* The same of a process; 0: it cannot be known. */
uint64_t stats_process_start(int pid);

/* Whether the process's clocks are ours, too: in another time namespace they have another
 * zero. */
bool stats_process_has_our_clock(int pid);

/* Whether processes of that pid namespace have the numbers that we know them by; true as well
 * where it cannot be known. */
bool stats_process_is_of_our_namespace(uint64_t pid_namespace);

/* Whether the living process of that number is surely not the one that had this start in this
 * pid namespace. /proc may be that of another one, where the number is another process's. */
bool stats_process_is_successor(int pid, uint64_t start, uint64_t pid_namespace);

/* Where the files are if no directory is named: the first, or the second if that is in memory
 * and the first is not. NULL at the end. */
extern const char *const stats_default_dirs[];
const char *stats_default_dir(void);

/* The process in a file's name, "vmastat.PID"; 0: it is no such name. */
int stats_process_of_file(const char *name);

#endif
