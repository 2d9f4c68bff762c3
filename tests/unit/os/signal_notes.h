/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of signals share: a handler that counts, and the end of a bracket. */
#ifndef TESTS_UNIT_OS_SIGNAL_NOTES_H
#define TESTS_UNIT_OS_SIGNAL_NOTES_H

#include <signal.h>
#include <unistd.h>

#include "os/signals.h"
#include "os/thread.h"
#include "tests/support/test.h"

static volatile int runs, seen_depth;

static inline void note(int sig)
{
	(void)sig;
	runs++;
	seen_depth = os_thread.depth;
}

/* Ends the bracket. The thread sanitizer holds the handlers that are due until the
 * next call it knows. */
static inline void leave(void)
{
	os_leave();
	if (HAS_THREAD_SANITIZER)
		usleep(0);
}

static inline void install(int sig, void (*fn)(int), int flags)
{
	struct sigaction act = { .sa_handler = fn, .sa_flags = flags };

	runs = 0;
	CHECK_EQ(signals_sigaction(sig, &act, NULL), 0);
}

#endif
