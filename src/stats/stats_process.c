/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads /proc/PID/stat, and names of files (stats_process.h). */
#include "config.h"

#include "stats/stats_process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "stats/stats_abi.h"

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

uint64_t stats_process_start(int pid)
{
	char path[64], text[1024];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	len = file_peek(path, text, sizeof(text) - 1);
	text[MAX(len, 0)] = '\0';
	return stats_process_start_in(text);
}

static ino_t namespace_of(int pid, const char *kind)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	return file_inode(path);
}

bool stats_process_has_our_clock(int pid)
{
	ino_t theirs = namespace_of(pid, "time");

	return theirs && theirs == file_inode("/proc/self/ns/time");
}

bool stats_process_is_of_our_namespace(uint64_t pid_namespace)
{
	ino_t ours = file_inode("/proc/self/ns/pid");

	return !pid_namespace || !ours || pid_namespace == ours;
}

bool stats_process_is_successor(int pid, uint64_t start, uint64_t pid_namespace)
{
	uint64_t its_start = stats_process_start(pid);

	return start && its_start && its_start != start &&
	       namespace_of(pid, "pid") == pid_namespace &&
	       stats_process_has_our_clock(pid);
}

const char *const stats_default_dirs[] = { "/tmp/", "/dev/shm/", NULL };

/* Pages of a file on a disk are protected while they are written back, and the next counter
 * then waits for the file system, with a lock of the data path. */
const char *stats_default_dir(void)
{
	const char *usual = stats_default_dirs[0], *memory = stats_default_dirs[1];

	return !file_is_in_memory(usual) && file_is_in_memory(memory) &&
			       file_may_make(memory) ?
		       memory :
		       usual;
}

int stats_process_of_file(const char *name)
{
	size_t prefix = strlen(STATS_FILE_PREFIX);
	char *rest;
	long pid;

	if (strncmp(name, STATS_FILE_PREFIX, prefix) != 0 ||
	    name[prefix] < '1' || name[prefix] > '9')
		return 0;
	pid = strtol(name + prefix, &rest, 10);
	return !*rest && pid <= INT_MAX ? (int)pid : 0;
}
