/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of processes that a signal has ended, which could not remove theirs. */
#ifndef STATS_STATS_CLEAN_H
#define STATS_STATS_CLEAN_H

/* Removes the files of dead processes of this user and this pid namespace from the
 * directory. A file that may be a living process's stays, and so does one of
 * another build or one that nobody can read. */
void stats_clean_dead(const char *dir);

#endif
