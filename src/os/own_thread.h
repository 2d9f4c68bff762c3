/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads of the library in the program's process. The program must not notice
 * them. No handler of the program runs in them, and they are ordinary threads
 * whatever scheduling policy the program gives itself. They do not keep the process
 * alive: when the last thread of the program ends, the process ends, as it would
 * without us.
 */
#ifndef OS_OWN_THREAD_H
#define OS_OWN_THREAD_H

#include <sched.h>
#include <stdbool.h>

#include "base/compiler.h"

struct own_thread_params {
	const char *name; /* at most 15 characters */
	/* where it may run; NULL, or none of them can be had: where the program was started
	 * to run */
	const cpu_set_t *cpus;
	/* runs inside the bracket */
	void (*run)(void);
};

/* Whether the program has one thread; ours does not count. False where nobody knows. */
bool own_thread_is_program_single(void);

/* Called when the library is loaded: remembers where the program may run, before it
 * changes that itself. */
void own_thread_load(void);

/* 0 or negative errno. There is one such thread at a time. */
int own_thread_start(const struct own_thread_params *params) MUST_CHECK;

/* Returns when the thread has ended; `run` ends it by returning. No cancellation
 * point. */
void own_thread_join(void);

/* Runs `fn` in a further thread, and returns when that has ended. What it opens has numbers
 * of its own, which the program and its children never meet; of what is open it has the
 * standard streams alone. For a thread of the library. Negative errno: it has not run. */
int own_thread_run_apart(void (*fn)(void *arg), void *arg) MUST_CHECK;

/* After a join: returns when the kernel does not count it among the process's threads any
 * more, which is a little later. */
void own_thread_await_end(void);

/*
 * With some C libraries, our thread cannot be taken out of the number of threads.
 * Then it has to look now and then whether all other threads have ended. If they
 * have, it calls own_thread_end_process(), which does what libc would have done.
 */
bool own_thread_has_to_look(void);
bool own_thread_is_last(void);
_Noreturn void own_thread_end_process(void);

#endif
