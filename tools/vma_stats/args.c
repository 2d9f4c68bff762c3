/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the arguments of vma_stats. */
#include "config.h"

#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/log.h"

static const char usage[] =
	"Usage: vma_stats [-p pid] [-k directory] [-v view] [-d details] [-i interval]\n"
	"       vma_stats [-p pid] [-k directory] --why\n"
	"       vma_stats [-p pid] [-k directory] --kernel=<fd|all>\n"
	"\n"
	"Defaults: find_pid=enabled, directory=\"/tmp/\" and \"/dev/shm/\", view=1, details=1, interval=1\n"
	"\n"
	"  -p, --pid=<pid>               Show the process with this pid\n"
	"  -k, --directory=<directory>   Where the library makes its files (VMA_STATS_SHMEM_DIR)\n"
	"  -n, --name=<application>      Show the process of this program\n"
	"  -f, --find_pid                Show the first process found (default)\n"
	"  -F, --forbid_clean            Leave the files of dead processes where they are\n"
	"  -i, --interval=<n>            Report every <n> seconds\n"
	"  -c, --cycles=<n>              Report <n> times and exit; 0: for ever (default)\n"
	"  -v, --view=<1|2|3|4|5>        1 basic, 2 with queues, 3 full, 4 multicast groups,\n"
	"                                5 all sockets of all processes, as netstat -tunaep\n"
	"  -d, --details=<1|2>           1 totals, 2 what was added each second\n"
	"  -z, --zero                    Zero the counters first\n"
	"  -l, --log_level=<level>       Set the log level: none, panic, error, warn, info,\n"
	"                                details, debug, fine, finer, all, or its number\n"
	"  -D, --details_level=<level>   Set the log details, 0 to 3\n"
	"  -s, --sockets=<list|range>    Only these fds: 4-16 or 1,9 or both\n"
	"  -w, --why                     Why each socket is accelerated or is not\n"
	"      --kernel=<fd|all>         The kernel shall have the socket, or all; then as --why\n"
	"  -r, --raw                     Every counter that is not zero, one on each line\n"
	"  -V, --version                 Print the version\n"
	"  -h, --help                    Print this\n"
	"\n"
	"See vma_stats(8).\n";

/* without a letter */
enum { OPT_KERNEL = 256 };

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "directory", required_argument, NULL, 'k' },
	{ "name", required_argument, NULL, 'n' },
	{ "find_pid", no_argument, NULL, 'f' },
	{ "forbid_clean", no_argument, NULL, 'F' },
	{ "interval", required_argument, NULL, 'i' },
	{ "cycles", required_argument, NULL, 'c' },
	{ "view", required_argument, NULL, 'v' },
	{ "details", required_argument, NULL, 'd' },
	{ "zero", no_argument, NULL, 'z' },
	{ "log_level", required_argument, NULL, 'l' },
	{ "fd_dump", required_argument, NULL, 'S' },
	{ "details_level", required_argument, NULL, 'D' },
	{ "sockets", required_argument, NULL, 's' },
	{ "why", no_argument, NULL, 'w' },
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "raw", no_argument, NULL, 'r' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

void args_usage(void)
{
	fputs(usage, stdout);
}

/* A whole number in any of C's notations, and nothing behind it. */
static bool parse_number(const char *text, long min, long max, long *out)
{
	char *rest;

	errno = 0;
	*out = strtol(text, &rest, 0);
	return rest != text && !*rest && !errno && *out >= min && *out <= max;
}

/* The number of an option, or ARGS_WRONG after a complaint. */
static enum args_verdict take_number(const char *what, long min, long max,
				     long *out)
{
	if (parse_number(optarg, min, max, out))
		return ARGS_RUN;
	fprintf(stderr, "vmastat: '-%s' %s: a number from %ld to %ld is expected\n",
		what, optarg, min, max);
	return ARGS_WRONG;
}

static const struct {
	const char *name;
	int level;
} levels[] = {
	{ "none", LOG_LEVEL_NONE },       { "panic", LOG_LEVEL_PANIC },
	{ "error", LOG_LEVEL_ERROR },     { "warn", LOG_LEVEL_WARNING },
	{ "warning", LOG_LEVEL_WARNING }, { "info", LOG_LEVEL_INFO },
	{ "details", LOG_LEVEL_DETAILS }, { "debug", LOG_LEVEL_DEBUG },
	{ "fine", LOG_LEVEL_FINE },       { "func", LOG_LEVEL_FINE },
	{ "finer", LOG_LEVEL_FINER },     { "all", LOG_LEVEL_ALL },
	/* as in VMA_TRACELEVEL, where DETAILS has none */
	{ "0", LOG_LEVEL_PANIC },         { "1", LOG_LEVEL_ERROR },
	{ "2", LOG_LEVEL_WARNING },       { "3", LOG_LEVEL_INFO },
	{ "4", LOG_LEVEL_DEBUG },         { "5", LOG_LEVEL_FINE },
	{ "6", LOG_LEVEL_FINER },         { "7", LOG_LEVEL_ALL },
};

static enum args_verdict take_level(struct args *args)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (strcasecmp(optarg, levels[i].name) != 0)
			continue;
		args->log_level = levels[i].level;
		return ARGS_RUN;
	}
	fprintf(stderr, "vmastat: '-l' %s: not a log level\n", optarg);
	return ARGS_WRONG;
}

static enum args_verdict take_kernel(struct args *args)
{
	long fd = ARGS_ALL;

	if (strcmp(optarg, "all") != 0 && !parse_number(optarg, 0, INT_MAX, &fd)) {
		fprintf(stderr, "vmastat: '--kernel' %s: an fd or \"all\" is expected\n",
			optarg);
		return ARGS_WRONG;
	}
	args->kernel_fd = (int)fd;
	args->view = VIEW_WHY;
	return ARGS_RUN;
}

/* "4", "4-16" or "16-4" */
static bool parse_range(char *text, struct fd_range *range)
{
	char *dash = strchr(text, '-');
	long first, last;

	if (dash)
		*dash++ = '\0';
	if (!parse_number(text, 0, INT_MAX, &first) ||
	    !parse_number(dash ? dash : text, 0, INT_MAX, &last))
		return false;
	range->first = (int)MIN(first, last);
	range->last = (int)MAX(first, last);
	return true;
}

static enum args_verdict take_ranges(struct args *args)
{
	char *at = optarg, *part;

	while ((part = strsep(&at, ","))) {
		if (args->range_cnt < ARGS_RANGES_MAX &&
		    parse_range(part, &args->ranges[args->range_cnt++]))
			continue;
		fprintf(stderr, "vmastat: '-s' %s: not a list of fds and ranges\n",
			part);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

static void print_version(void)
{
	printf("vmastat: Linked with VMA version: %d.%d.%d.%d\n", VMA_MAJOR,
	       VMA_MINOR, VMA_REVISION, VMA_RELEASE);
	printf("vmastat: Build Date: %s\n", VMA_BUILT);
}

static enum args_verdict take_plain(struct args *args, int option)
{
	switch (option) {
	case 'k':
		args->dir = optarg;
		break;
	case 'n':
		args->program = optarg;
		break;
	case 'f':
		args->pid = 0;
		break;
	case 'F':
		args->keeps_dead_files = true;
		break;
	case 'z':
		args->zeroes = true;
		break;
	case 'w':
		args->view = VIEW_WHY;
		break;
	case 'r':
		args->view = VIEW_RAW;
		break;
	case 'V':
		print_version();
		return ARGS_DONE;
	case 'S':
		fputs("vmastat: dumping an fd into the log (-S) comes with vma_extra.h's dump_fd_stats; '-v 3 -s FD' shows the same counters\n",
		      stderr);
		return ARGS_WRONG;
	default:
		args_usage();
		return ARGS_DONE;
	}
	return ARGS_RUN;
}

static enum args_verdict take(struct args *args, int option)
{
	enum args_verdict verdict;
	long n = 0;

	switch (option) {
	case 'p':
		verdict = take_number("p", 1, INT_MAX, &n);
		args->pid = (int)n;
		return verdict;
	case 'i':
		verdict = take_number("i", 0, INT_MAX, &n);
		args->interval = (unsigned)n;
		return verdict;
	case 'c':
		verdict = take_number("c", 0, INT_MAX, &n);
		args->cycles = (unsigned)n;
		return verdict;
	case 'v':
		verdict = take_number("v", VIEW_BASIC, VIEW_LIST, &n);
		args->view = (enum view)n;
		return verdict;
	case 'd':
		verdict = take_number("d", DETAILS_TOTALS, DETAILS_DELTAS, &n);
		args->details = (enum details)n;
		return verdict;
	case 'D':
		verdict = take_number("D", 0, 3, &n);
		args->log_details = (int)n;
		return verdict;
	case 'l':
		return take_level(args);
	case 's':
		return take_ranges(args);
	case OPT_KERNEL:
		return take_kernel(args);
	default:
		return take_plain(args, option);
	}
}

enum args_verdict args_parse(struct args *args, int argc, char **argv)
{
	enum args_verdict verdict = ARGS_RUN;
	int option;

	*args = (struct args){
		.interval = 1,
		.view = VIEW_BASIC,
		.details = DETAILS_TOTALS,
		.log_level = ARGS_UNSET,
		.log_details = ARGS_UNSET,
		.kernel_fd = ARGS_UNSET,
	};
	while (verdict == ARGS_RUN &&
	       (option = getopt_long(argc, argv, "i:c:v:d:p:k:s:Vzl:S:D:n:fFwrh?",
				     long_options, NULL)) != -1)
		verdict = take(args, option);
	if (verdict == ARGS_RUN && optind < argc) {
		fprintf(stderr, "vmastat: '%s': only options are expected; -p names a process\n",
			argv[optind]);
		verdict = ARGS_WRONG;
	}
	return verdict;
}

bool args_wants(const struct args *args, int fd)
{
	for (size_t i = 0; i < args->range_cnt; i++)
		if (fd >= args->ranges[i].first && fd <= args->ranges[i].last)
			return true;
	return args->range_cnt == 0;
}
