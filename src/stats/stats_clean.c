/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Removes the files that dead processes have left (stats_clean.h). */
#include "config.h"

#include "stats/stats_clean.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "os/file.h"
#include "stats/stats_abi.h"
#include "stats/stats_process.h"

/* The directory is often /tmp, and others may have filled it. So the start looks at
 * no more names than these. */
enum { NAMES_MAX = 20000 };

/* The part that tells whose file it is. It is the same in all builds of one ABI. */
struct head {
	char bytes[offsetof(struct stats_region, program)];
};

static int32_t pid_in(const struct head *head)
{
	int32_t pid;

	memcpy(&pid, head->bytes + offsetof(struct stats_region, pid),
	       sizeof(pid));
	return pid;
}

static uint64_t number_in(const struct head *head, size_t offset)
{
	uint64_t number;

	memcpy(&number, head->bytes + offset, sizeof(number));
	return number;
}

static bool is_of_this_abi(const struct head *head)
{
	uint32_t abi;

	memcpy(&abi, head->bytes + offsetof(struct stats_region, abi),
	       sizeof(abi));
	return memcmp(head->bytes, STATS_MAGIC,
		      sizeof(((struct stats_region *)0)->magic)) == 0 &&
	       abi == STATS_ABI;
}

static bool is_dead(const struct head *head, int pid)
{
	uint64_t namespace = number_in(
		head, offsetof(struct stats_region, pid_namespace));
	uint64_t start =
		number_in(head, offsetof(struct stats_region, start_time));

	if (!is_of_this_abi(head) || pid_in(head) != pid || !namespace ||
	    namespace != file_inode("/proc/self/ns/pid"))
		return false;
	if (kill(pid, 0) != 0 && errno == ESRCH)
		return true;
	return stats_process_is_successor(pid, start, namespace);
}

static void clean(void *dir, const char *name)
{
	int pid = stats_process_of_file(name);
	char path[PATH_MAX];
	struct file_id id;
	struct head head;

	if (!pid || pid == getpid())
		return;
	snprintf(path, sizeof(path), "%s/%s", (const char *)dir, name);
	/* A new process of that number may make its own file between the look and
	 * the removal. For that, all numbers would have to be used once in between;
	 * nobody can prevent it, and it need not be feared. */
	if (file_read_own(path, &head, sizeof(head), &id) &&
	    is_dead(&head, pid) && file_remove_same(path, &id))
		log_dbg("removed %s, whose process is dead", path);
}

void stats_clean_dead(const char *dir)
{
	file_for_names(dir, NAMES_MAX, clean, (void *)dir);
}
