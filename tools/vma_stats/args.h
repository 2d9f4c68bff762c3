/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arguments of vma_stats. */
#ifndef VMA_STATS_ARGS_H
#define VMA_STATS_ARGS_H

#include <stdbool.h>
#include <stddef.h>

enum view {
	VIEW_BASIC = 1,
	VIEW_MEDIUM = 2,
	VIEW_FULL = 3,
	VIEW_GROUPS = 4,
	VIEW_LIST = 5,
	/* ours */
	VIEW_WHY,
	VIEW_RAW,
};

enum details { DETAILS_TOTALS = 1, DETAILS_DELTAS = 2 };

enum { ARGS_RANGES_MAX = 64, ARGS_UNSET = -2, ARGS_ALL = -1 };

/* Fds, both ends included. */
struct fd_range {
	int first, last;
};

struct args {
	int pid; /* 0: to be found */
	/* NULL: where the library makes its files by default */
	const char *dir;
	/* where the process's file is, when that is known */
	const char *home;
	const char *program; /* NULL: any */
	bool keeps_dead_files;
	unsigned interval; /* seconds */
	unsigned cycles;   /* 0: for ever */
	enum view view;
	enum details details;
	bool zeroes;
	int log_level;   /* ARGS_UNSET: as it is */
	int log_details; /* ARGS_UNSET: as it is */
	int kernel_fd;   /* which the kernel shall have; ARGS_UNSET: none; ARGS_ALL */
	/* which sockets; none: all */
	struct fd_range ranges[ARGS_RANGES_MAX];
	size_t range_cnt;
};

enum args_verdict { ARGS_RUN, ARGS_DONE, ARGS_WRONG };

/* ARGS_DONE: everything has been said; ARGS_WRONG: so has what is wrong. */
enum args_verdict args_parse(struct args *args, int argc, char **argv);

void args_usage(void);

/* Whether `fd` is among those asked for. */
bool args_wants(const struct args *args, int fd);

#endif
