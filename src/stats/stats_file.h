/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* VMA_STATS_FILE: what sockets have counted by the time they close. */
#ifndef STATS_STATS_FILE_H
#define STATS_STATS_FILE_H

#include <stdbool.h>

#include "stats/stats_abi.h"

/* Empties the file. `path` outlives the process; "" means none. */
void stats_file_start(const char *path);

bool stats_file_is_wanted(void);

/* Appends a socket's block, in one piece. Any thread. */
void stats_file_add_socket(const struct stats_socket *s);

/* The line at the end of the process. */
void stats_file_end(void);

#endif
