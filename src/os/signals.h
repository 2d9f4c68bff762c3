/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program's signal handlers, kept out of our critical sections.
 *
 * From the moment there is an accelerated socket, a handler for an asynchronous
 * signal is installed as our trampoline, which runs it at once when the thread is
 * outside the bracket (thread.h) and otherwise lets os_leave hand the signal back
 * to the kernel, which then delivers it again: mask, alternate stack, siginfo and
 * context are the kernel's own work. Handlers of synchronous faults are never
 * touched. Before that moment everything here is libc's.
 *
 * The program sees its own handlers only, whatever it asks.
 */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "os/real.h"

/* Puts the trampoline in front of every handler that there is and will be. May be
 * called again, by any thread, outside our locks. */
void signals_activate(void);
/* From now on everything is libc's again, for good: each handler is the kernel's own. In the
 * bracket. */
void signals_deactivate(void);

/* Around a fork, in the bracket. Other threads may change handlers in between: the child has
 * those from before. It calls signals_forked() in place of the second one: with `is_filtered`
 * it makes no system call. */
void signals_before_fork(void);
void signals_after_fork(void);
void signals_forked(bool is_filtered);

/* Sets the function that is called before each handler of the program that runs
 * outside the bracket, in the same thread and on the same stack. There is one such
 * function. */
void signals_set_before_handler(void (*fn)(void));

/* From now on `fn` is called before a signal ends the process that the program does not
 * catch, in the thread that has got it, outside our brackets. The rest of the process
 * goes on meanwhile; then it ends as it would have. `fn` may do what a handler may. The
 * program still sees that it does not catch these signals. */
void signals_before_end(void (*fn)(void));

/* The calls of the same name, with their errno semantics. */
int signals_sigaction(int sig, const struct sigaction *act,
		      struct sigaction *old);
sighandler_t signals_signal(int sig, sighandler_t handler);
sighandler_t signals_sysv_signal(int sig, sighandler_t handler);
sighandler_t signals_sigset(int sig, sighandler_t disposition);
int signals_siginterrupt(int sig, int is_interrupting);
int signals_sigvec(int sig, const struct sigvec_compat *vec,
		   struct sigvec_compat *old);

/* Blocks all signals in this thread, across a fork if need be. */
struct signals_hold {
	bool is_held;
	sigset_t mask; /* as it was */
};

void signals_hold(struct signals_hold *hold);
/* Does it for a bracket, which keeps no handler out until there is a trampoline: one that
 * forks would wait for what its own thread has. */
void signals_hold_until_active(struct signals_hold *hold);
void signals_unhold(const struct signals_hold *hold);

/*
 * Between these two, what the library writes to files brings no signal to this thread: a
 * program that writes nothing does not expect to end because nobody reads its standard
 * error output any more (SIGPIPE), because a file may not grow (SIGXFSZ), or to be stopped
 * because it is in the background of its terminal (SIGTTOU). The write fails instead, or
 * succeeds. Other signals come as ever.
 */
struct signals_quiet {
	sigset_t mask; /* as it was */
	uint64_t had; /* what waited for the program before */
};

void signals_quiet_begin(struct signals_quiet *quiet);
void signals_quiet_end(const struct signals_quiet *quiet);

/* A point in the life of this thread, to ask later which handlers ran since. */
struct signals_mark {
	unsigned handler_cnt;
	unsigned interrupt_cnt;
};

struct signals_mark signals_mark(void);

/* Whether a call that started at `mark` is to end with EINTR: because a handler
 * without SA_RESTART ran, or, for calls that never restart, any handler. */
bool signals_is_interrupted(const struct signals_mark *mark, bool may_restart);

/*
 * Sleeps as ppoll() does, never past a handler that ran since `mark`: no signal is lost
 * between the look and the sleep. Called in a single bracket, which is left for the
 * sleep alone. Returns what ppoll does or -EINTR, also if a handler ran when the sleep was
 * over already; with `may_restart`, handlers with SA_RESTART do not end the sleep
 * (`timeout` is then counted from the restart). More than 16 fds are in memory that
 * outlives a jump out of a handler, until fd_wait_collect().
 */
int signals_sleep(struct pollfd *fds, nfds_t cnt,
		  const struct timespec *timeout,
		  const struct signals_mark *mark, bool may_restart);

#endif
