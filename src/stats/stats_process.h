/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Telling a process from a later one of the same number. */
#ifndef STATS_STATS_PROCESS_H
#define STATS_STATS_PROCESS_H

#include <stdint.h>

/* When a process began, in clock ticks after the machine did, from the text of
 * its /proc/PID/stat; 0: the text has none. */
uint64_t stats_process_start_in(const char *text);

#endif
