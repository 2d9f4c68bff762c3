/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program was started with (origin.h). */
#include "config.h"

#include "core/origin.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "os/own_thread.h"

static struct {
	/* our variables; NULL: not known */
	char *const *environment;
	char program[NAME_MAX + 1];
} origin;

static bool is_ours(const char *variable)
{
	return strncmp(variable, "VMA_", 4) == 0;
}

static bool has_variables_of_ours(char *const *env)
{
	for (; env && *env; env++)
		if (is_ours(*env))
			return true;
	return false;
}

/*
 * Daemons clear their environment, often before their first socket, so that those whom they
 * start get nothing of it: then there is none at all, or one without our variables. What the
 * program was started with counts then.
 *
 * A program may run with more rights than its caller. Then the environment is the
 * word of the caller, who could use it to write files with the program's rights.
 */
char *const *origin_environment(void)
{
	static char *const nothing[] = { NULL };

	if (getauxval(AT_SECURE))
		return nothing;
	/* a thread that sets a variable may be about to free what we read */
	if (origin.environment && (!own_thread_is_program_single() ||
				      !has_variables_of_ours(environ)))
		return origin.environment;
	return environ ? environ : nothing;
}

/* A copy of our variables. Where the kernel has put them, daemons write titles
 * (setproctitle()). */
static char *const *copy_of_ours(char *const *env)
{
	static char *none[] = { NULL };
	size_t cnt = 0, size = 0;
	char **copy, *at;

	for (char *const *e = env; *e; e++)
		if (is_ours(*e)) {
			cnt++;
			size += strlen(*e) + 1;
		}
	copy = cnt ? malloc((cnt + 1) * sizeof(*copy) + size) : none;
	if (!copy)
		return env;
	at = (char *)(copy + cnt + 1);
	cnt = 0;
	for (char *const *e = env; *e; e++)
		if (is_ours(*e)) {
			copy[cnt++] = at;
			at = stpcpy(at, *e) + 1;
		}
	copy[cnt] = NULL;
	return copy;
}

void origin_keep(char *const *env)
{
	origin.environment = copy_of_ours(env);
	snprintf(origin.program, sizeof(origin.program), "%s",
		 program_invocation_short_name);
}

const char *origin_program(void)
{
	/* a constructor before ours has made a socket */
	return *origin.program ? origin.program : program_invocation_short_name;
}
