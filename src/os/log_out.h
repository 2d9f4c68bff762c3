/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the lines of base/log.h go: the terminal, a file, syslog, or a function
 * of the program. A line is one write(), so lines of several processes in one
 * file do not mix. Nothing here trusts an fd number that the program could have
 * closed and used again.
 */
#ifndef OS_LOG_OUT_H
#define OS_LOG_OUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum log_out_to {
	LOG_OUT_STDERR,
	LOG_OUT_FILE,
	LOG_OUT_SYSLOG,
	LOG_OUT_CALLBACK,
};

/* VMA_LOG_CB_FUNC_PTR: an entire line, without a newline. */
typedef void log_out_fn(int level, const char *line);

struct log_out_params {
	enum log_out_to to;
	const char *path; /* the file's, or the syslog daemon's socket; stays the caller's, for good */
	log_out_fn *callback;
	bool want_colors; /* used on terminals only */
};

/* Once, before the program can open a file. */
void log_out_load(void);

/* Whether the process can run what is at the address, which may be another process's: children
 * and other programs inherit the variable. True as well where it cannot be known. */
bool log_out_is_code(uintptr_t address);

/* Writes the line to the standard error output, and makes no other system call: not to a pipe,
 * which might have no reader. */
void log_out_bare(const char *line);

/*
 * Sends the log there from now on. -errno when the file cannot be opened; lines
 * then go to stderr. Called at start, before other threads log.
 */
int log_out_start(const struct log_out_params *params) MUST_CHECK;

/* The fd of the log file or of the socket to the daemon, -1 for other targets, for its owner to keep out of the
 * program's way. When it is found closed the file is opened again. */
_Atomic int *log_out_fd(void);

#endif
