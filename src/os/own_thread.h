/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads of the library in the program's process. The program must not notice them:
 * no handler runs in them, they are ordinary whatever scheduling policy the program
 * gives itself, and they keep no process alive: when the last thread of the program
 * ends, the process does, as it would without us.
 */
#ifndef OS_OWN_THREAD_H
#define OS_OWN_THREAD_H

#include <sched.h>
#include <stdbool.h>

#include "base/compiler.h"

struct own_thread_params {
	const char *name; /* at most 15 characters */
	/* where it may run; NULL: where the program was started to run */
	const cpu_set_t *cpus;
	/* runs inside the bracket */
	void (*run)(void);
};

/* At load: where the program may run, before it changes that itself. */
void own_thread_load(void);

/* 0 or negative errno. There is one such thread at a time. */
int own_thread_start(const struct own_thread_params *params) MUST_CHECK;

/* Returns when the thread has ended, which `run` does by returning. No cancellation
 * point. */
void own_thread_join(void);

/*
 * Where libc does not let itself be told that a thread is not the program's, the
 * thread itself has to look now and then: whether all others have ended. Then
 * own_thread_end_process() is due, which does what libc would have done.
 */
bool own_thread_has_to_look(void);
bool own_thread_is_last(void);
_Noreturn void own_thread_end_process(void);

#endif
