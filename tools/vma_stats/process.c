/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the files of processes (process.h). They are another process's to change
 * or cut short at any moment, so they are read, never mapped.
 */
#include "config.h"

#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "stats/stats_process.h"
#include "stats/stats_snapshot.h"

enum { PATH_SIZE = PATH_MAX };

static void path_of(const char *dir, int pid, char *path, size_t size)
{
	snprintf(path, size, "%s/" STATS_FILE_PREFIX "%d", dir, pid);
}

/* -- one file -------------------------------------------------------------- */

static int read_file(int fd, struct stats_region **region_out)
{
	struct stats_region *region;
	struct stat st;
	size_t size;
	int err;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size > stats_region_size(STATS_SOCKETS_MAX))
		return -EBADMSG;
	size = (size_t)st.st_size;
	region = aligned_alloc(CACHE_LINE, (size + CACHE_LINE) &
						   ~(size_t)(CACHE_LINE - 1));
	if (!region)
		return -ENOMEM;
	/* what is not there any more makes it incomplete */
	err = pread(fd, region, size, 0) == (ssize_t)size ?
		      stats_snapshot_check(region, size) :
		      -EBADMSG;
	if (err)
		free(region);
	else
		*region_out = region;
	return err;
}

static int open_file(const char *dir, int pid, int flags)
{
	char path[PATH_SIZE];
	int fd;

	path_of(dir, pid, path, sizeof(path));
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static bool is_alive(int pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

/* Whether the process that wrote this still runs the program it ran then. */
static bool is_current(const struct stats_region *region)
{
	return is_alive(region->pid) && !region->has_ended &&
	       stats_process_is_of_our_namespace(region->pid_namespace) &&
	       !stats_process_is_successor(region->pid, region->start_time,
					   region->pid_namespace);
}

int process_read(const char *dir, int pid, struct stats_region **region_out)
{
	int fd = open_file(dir, pid, O_RDONLY), err;

	if (fd < 0)
		return fd;
	err = read_file(fd, region_out);
	close(fd);
	if (err)
		return err;
	if ((*region_out)->pid != pid)
		err = -EBADMSG;
	else if (!is_current(*region_out))
		err = -ESRCH;
	if (err)
		free(*region_out);
	return err;
}

void process_name(const struct stats_region *region, char *name, size_t size)
{
	static const char deleted[] = " (deleted)";
	char link[64], path[PATH_MAX];
	const char *base;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", region->pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0) {
		snprintf(name, size, "%s", region->program);
		return;
	}
	path[len] = '\0';
	/* what Linux says of a program that was removed, or replaced by a newer one */
	if (len > (ssize_t)strlen(deleted) &&
	    strcmp(path + len - strlen(deleted), deleted) == 0)
		path[len - (ssize_t)strlen(deleted)] = '\0';
	base = strrchr(path, '/');
	snprintf(name, size, "%s", base ? base + 1 : path);
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* -- all of them ----------------------------------------------------------- */

int process_visit(const char *dir,
		  bool (*fn)(void *ctx, const char *dir, int pid), void *ctx)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;
	int pid;

	if (!handle)
		return -errno;
	while ((entry = readdir(handle))) {
		pid = stats_process_of_file(entry->d_name);
		if (pid && !fn(ctx, dir, pid))
			break;
	}
	closedir(handle);
	return 0;
}

struct search {
	const char *program;
	int found;
};

static bool try_process(void *ctx, const char *dir, int pid)
{
	struct search *search = ctx;
	struct stats_region *region;
	char name[NAME_MAX + 1];

	if (process_read(dir, pid, &region) != 0)
		return true;
	process_name(region, name, sizeof(name));
	free(region);
	if (search->program && strcmp(name, search->program) != 0)
		return true;
	search->found = pid;
	return false;
}

int process_find(const char *dir, const char *program)
{
	struct search search = { .program = program };

	(void)!process_visit(dir, try_process, &search);
	return search.found;
}

/* -- requests -------------------------------------------------------------- */

/* The library looks every two and a half seconds at least, or some time later on a busy
 * machine, and does nothing that was asked for five seconds ago. Its answer may take a
 * moment. Several who ask take turns. */
#define DONE_NS (5 * NS_PER_SEC)
#define ANSWER_NS (NS_PER_SEC / 2)
enum { TURN_TRIES = 1000, NAP_MS = 20 };
static const struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

static bool write_at(int fd, const void *from, size_t len, size_t at)
{
	return pwrite(fd, from, len,
		      (off_t)(offsetof(struct stats_region, request) + at)) ==
	       (ssize_t)len;
}

static bool read_request(int fd, struct stats_request *request)
{
	return pread(fd, request, sizeof(*request),
		     offsetof(struct stats_region, request)) == sizeof(*request);
}

/* The number comes last: with it the request is complete. */
static int write_request(int fd, const struct stats_request *request,
			 uint64_t until_ns, uint32_t number)
{
	size_t until = offsetof(struct stats_request, until_ns);

	if (write_at(fd, request, until, 0) &&
	    write_at(fd, &until_ns, sizeof(until_ns), until) &&
	    write_at(fd, &number, sizeof(number), offsetof(struct stats_request, asked)))
		return 0;
	return errno ? -errno : -EIO;
}

static int wait_for_answer(int fd, int pid, uint32_t number, uint64_t until_ns,
			   int *result_out)
{
	struct stats_request request;

	do {
		if (!read_request(fd, &request))
			return -EBADMSG;
		if (atomic_load(&request.answered) == number) {
			*result_out = MIN(atomic_load(&request.result), 0);
			return 0;
		}
		if (!is_alive(pid))
			return -ESRCH;
		nanosleep(&nap, NULL);
	} while (clock_monotonic_ns() < until_ns + ANSWER_NS);
	return -ETIMEDOUT;
}

/* There is room for one request. The turn ends with the fd, so also with who has it. */
static int await_turn(int fd)
{
	for (int i = 0; i < TURN_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&nap, NULL);
	}
	return -EBUSY;
}

/* Who asked before may have gone without an answer. The library may be about to read that
 * request, so nothing is written over it. A process with another clock is not told until
 * when. */
static int ask(int fd, int pid, const struct stats_request *request)
{
	uint64_t until_ns = clock_monotonic_ns() + DONE_NS;
	struct stats_request last;
	uint32_t number;
	int err, result;

	if (!read_request(fd, &last))
		return -EBADMSG;
	number = atomic_load(&last.asked);
	err = number == atomic_load(&last.answered) ?
		      0 :
		      wait_for_answer(fd, pid, number, until_ns, &result);
	if (err)
		return err;
	until_ns = clock_monotonic_ns() + DONE_NS;
	number = number + 1 ? number + 1 : 1;
	err = write_request(fd, request, stats_process_has_our_clock(pid) ? until_ns : 0,
			    number);
	if (!err)
		err = wait_for_answer(fd, pid, number, until_ns, &result);
	return err ? err : result;
}

int process_request(const char *dir, int pid,
		    const struct stats_request *request)
{
	int fd = open_file(dir, pid, O_RDWR), err;

	if (fd < 0)
		return fd;
	err = await_turn(fd);
	if (!err)
		err = ask(fd, pid, request);
	close(fd);
	return err;
}
