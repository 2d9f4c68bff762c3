/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vma_stats: what the library does in a running process, from the file that it
 * keeps for that (stats_abi.h).
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

#include "args.h"
#include "process.h"
#include "report.h"
#include "stats/reasons.h"
#include "stats/stats_clean.h"
#include "stats/stats_process.h"

static volatile sig_atomic_t is_interrupted;

static void interrupt(int sig UNUSED)
{
	is_interrupted = 1;
}

static void complain(int pid, int err)
{
	switch (-err) {
	case ENOENT:
		fprintf(stderr,
			"vmastat: VMA statistics data for process id %d not found\n",
			pid);
		break;
	case ESRCH:
		fprintf(stderr, "vmastat: Proccess %d ended - exiting\n", pid);
		break;
	case EPROTO:
		fprintf(stderr,
			"vmastat: process %d runs another build of libvma, whose statistics this vma_stats cannot read\n",
			pid);
		break;
	case EBADMSG:
		fprintf(stderr,
			"vmastat: the statistics of process %d are damaged\n",
			pid);
		break;
	case ETIMEDOUT:
		fprintf(stderr,
			"vmastat: process %d does not answer: it has no accelerated socket yet, or is stopped\n",
			pid);
		break;
	case ERANGE:
		fprintf(stderr,
			"vmastat: process %d logs as before: its libvma was built without lines of that level (--enable-opt-log)\n",
			pid);
		break;
	case EBUSY:
		fprintf(stderr,
			"vmastat: another vma_stats is asking process %d for something, or is stopped\n",
			pid);
		break;
	case EBADF:
		fprintf(stderr,
			"vmastat: process %d has no such socket with the library\n",
			pid);
		break;
	default:
		fprintf(stderr, "vmastat: process %d: %s\n", pid,
			strerror(-err));
	}
}

/* -- requests -------------------------------------------------------------- */

static int request(const struct args *args, int pid, enum stats_wish wish,
		   int value, const struct stats_region *region)
{
	struct stats_request wanted = { .wish = wish, .value = value };
	int err;

	for (uint32_t i = 0; i < region->socket_max; i++)
		if (args_wants(args, region->sockets[i].fd))
			wanted.sockets[i / 64] |= UINT64_C(1) << i % 64;
	err = process_request(args->home, pid, &wanted);
	if (err)
		complain(pid, err);
	return err;
}

static int request_all(const struct args *args, int pid,
		       const struct stats_region *region)
{
	int err = 0;

	if (args->log_level != ARGS_UNSET)
		err = request(args, pid, STATS_WISH_LOG_LEVEL, args->log_level,
			      region);
	if (!err && args->log_details != ARGS_UNSET)
		err = request(args, pid, STATS_WISH_LOG_DETAILS,
			      args->log_details, region);
	if (!err && args->zeroes)
		err = request(args, pid, STATS_WISH_ZERO, 0, region);
	if (!err && args->kernel_fd != ARGS_UNSET)
		err = request(args, pid, STATS_WISH_KERNEL, args->kernel_fd,
			      region);
	return err;
}

static bool has_requests(const struct args *args)
{
	return args->zeroes || args->log_level != ARGS_UNSET ||
	       args->log_details != ARGS_UNSET || args->kernel_fd != ARGS_UNSET;
}

/* -- reports --------------------------------------------------------------- */

static bool list_process(void *ctx, const char *dir, int pid)
{
	const struct args *args = ctx;
	struct report report = { .out = stdout, .args = args };
	struct stats_region *region;
	char name[NAME_MAX + 1];

	if ((args->pid && args->pid != pid) ||
	    process_read(dir, pid, &region) != 0)
		return true;
	process_name(region, name, sizeof(name));
	if (!args->program || strcmp(name, args->program) == 0) {
		report.now = region;
		report_list(&report, name);
	}
	free(region);
	return true;
}

/* In which files are looked for. */
static const char *const *dirs_of(const struct args *args)
{
	static const char *named[2];

	named[0] = args->dir;
	return args->dir ? named : stats_default_dirs;
}

static int list_all(const struct args *args)
{
	report_list_header(stdout);
	for (const char *const *dir = dirs_of(args); *dir; dir++)
		(void)!process_visit(*dir, list_process, (void *)args);
	return EXIT_SUCCESS;
}

/* True when there is no more to show. */
static bool show(struct report *report)
{
	switch (report->args->view) {
	case VIEW_FULL:
		report_full(report);
		return false;
	case VIEW_GROUPS:
		report_groups(report);
		return true;
	case VIEW_WHY:
		report_why(report);
		return true;
	case VIEW_RAW:
		report_raw(report);
		return true;
	default:
		report_basic(report);
		return false;
	}
}

/* False: somebody wants us to stop, perhaps already before the sleep. */
static bool nap(unsigned seconds)
{
	struct timespec left = { .tv_sec = seconds };
	sigset_t ours, before;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigprocmask(SIG_BLOCK, &ours, &before);
	if (!is_interrupted)
		pselect(0, NULL, NULL, NULL, &left, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return !is_interrupted;
}

/* False: nobody can read what we write, or there is no room for it. */
static bool is_written(void)
{
	return fflush(stdout) == 0 && !ferror(stdout);
}

/* A copy that goes with the one before; a file that was made anew does not. */
static int read_next(const struct args *args, int pid, struct report *report,
		     struct stats_region **now)
{
	struct stats_region *next;
	int err = process_read(args->home, pid, &next);

	if (err)
		return err;
	if (args->details == DETAILS_DELTAS && next->size != (*now)->size) {
		free(next);
		return -EBADMSG;
	}
	free((void *)report->before);
	report->before = NULL;
	if (args->details == DETAILS_DELTAS)
		report->before = *now;
	else
		free(*now);
	*now = next;
	report->now = next;
	return 0;
}

static int watch(const struct args *args, int pid, struct stats_region *now)
{
	struct report report = { .out = stdout, .args = args, .now = now };
	/* what a second adds can be shown at its end only */
	bool has_report = args->details == DETAILS_TOTALS ||
			  args->view >= VIEW_GROUPS;
	unsigned shown = 0;
	int err = 0;

	for (;;) {
		if (has_report && (show(&report) || ++shown == args->cycles))
			break;
		if (!is_written() && !is_interrupted)
			break;
		if (!nap(args->interval)) {
			printf("Got Ctrl-C (interrupted by user)\n");
			break;
		}
		err = read_next(args, pid, &report, &now);
		if (err) {
			complain(pid, err);
			break;
		}
		has_report = true;
	}
	free((void *)report.before);
	free(now);
	return err && err != -ESRCH && err != -ENOENT ? EXIT_FAILURE :
							EXIT_SUCCESS;
}

/* Says which sockets the library could not give to the kernel, and its log why. */
static bool has_left_over(const struct args *args, int pid,
			  const struct stats_region *region)
{
	bool result = false;

	for (uint32_t i = 0; i < region->socket_max; i++) {
		const struct stats_socket *s = &region->sockets[i];

		if (args->kernel_fd == ARGS_UNSET || !stats_socket_is_used(s) ||
		    (args->kernel_fd != ARGS_ALL && args->kernel_fd != s->fd) ||
		    s->rx.reason != REASON_NONE)
			continue;
		fprintf(stderr,
			"vmastat: process %d: fd %d stays with the library, or came later; its log says why\n",
			pid, s->fd);
		result = true;
	}
	return result;
}

static int report(const struct args *args, int pid, struct stats_region *region)
{
	char name[NAME_MAX + 1];

	if (args->view == VIEW_LIST) {
		free(region);
		return list_all(args);
	}
	process_name(region, name, sizeof(name));
	if (args->view != VIEW_RAW)
		printf("vmastat: stats for application: %s  with pid: %d\n",
		       name[0] ? name : "proccess", pid);
	return watch(args, pid, region);
}

static int attach(const struct args *args, int pid)
{
	struct stats_region *region;
	bool has_failed;
	int err = process_read(args->home, pid, &region);

	if (!err && request_all(args, pid, region) != 0) {
		free(region);
		return EXIT_FAILURE;
	}
	if (!err && has_requests(args)) {
		/* as it is now */
		free(region);
		err = process_read(args->home, pid, &region);
	}
	if (err) {
		complain(pid, err);
		return EXIT_FAILURE;
	}
	has_failed = has_left_over(args, pid, region);
	err = report(args, pid, region);
	return has_failed ? EXIT_FAILURE : err;
}

/* The process that is asked for, or the first one that there is; 0: none. */
static int find(const struct args *args, const char **home_out)
{
	const char *const *dir = dirs_of(args);
	struct stats_region *region;
	int pid, err;

	*home_out = *dir;
	for (; *dir; dir++) {
		if (!args->pid) {
			pid = process_find(*dir, args->program);
			if (!pid)
				continue;
			*home_out = *dir;
			return pid;
		}
		err = process_read(*dir, args->pid, &region);
		/* there is something to say of it, unless it is elsewhere */
		if (err != -ENOENT)
			*home_out = *dir;
		if (err)
			continue;
		free(region);
		break;
	}
	return args->pid;
}

static int run(struct args *args)
{
	int pid;

	for (const char *const *dir = dirs_of(args); !args->keeps_dead_files && *dir; dir++)
		stats_clean_dead(*dir);
	if (args->view == VIEW_LIST && !has_requests(args))
		return list_all(args);
	pid = find(args, &args->home);
	if (!pid) {
		fputs("vmastat: Failed to identify process please provide pid of active proccess...\n",
		      stderr);
		args_usage();
		return EXIT_FAILURE;
	}
	return attach(args, pid);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = interrupt };
	int status = EXIT_SUCCESS;
	struct args args;

	switch (args_parse(&args, argc, argv)) {
	case ARGS_DONE:
		break;
	case ARGS_WRONG:
		args_usage();
		return EXIT_FAILURE;
	default:
		sigaction(SIGINT, &action, NULL);
		status = run(&args);
		break;
	}
	if (is_written())
		return status;
	fputs("vmastat: the report could not be written\n", stderr);
	return EXIT_FAILURE;
}
