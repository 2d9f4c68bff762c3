/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's own thread. It follows the kernel's news, hears of events of the
 * sockets' twins, and processes packets when nobody else does. It starts with the
 * first socket that is attached, has all signals blocked, and keeps no process alive
 * (os/own_thread.h). While the program polls, it looks in from time to time.
 * Otherwise it sleeps until the next packet or timer.
 */
#ifndef CORE_PROGRESS_H
#define CORE_PROGRESS_H

#include <sched.h>

#include "fd/fd_ops.h"
#include "net/net.h"

struct progress_params {
	struct net *net;
	/* how long packets may wait while nobody polls; 0: until somebody does */
	unsigned interval_ms;
	/* Each packet wakes it, whether somebody polls or not, and interval_ms counts for
	 * nothing. */
	bool is_woken;
	/* how many packets it processes before other threads may have the lock */
	unsigned batch_max;
	/* the CPUs that the thread may use; NULL: those that the program was started
	 * with */
	const cpu_set_t *cpus;
	/* called before the process ends by a signal */
	void (*before_end)(void);
	/* called once a second, or every two and a half while nothing happens */
	void (*each_second)(void);
};

/* Starts the thread. Returns 0 or a negative errno. */
int progress_start(const struct progress_params *params) MUST_CHECK;

/* Ends the thread for good, and returns when it has ended. The caller holds no lock
 * of ours. */
void progress_stop(void);

/* Ends the thread for a while, in which the kernel finds none but the program's. True: it
 * has run, and is to be resumed, which may fail. The caller holds no lock of ours. */
bool progress_pause(void);
bool progress_resume(void);

/* This is stack_params.sooner. */
void progress_timer_is_sooner(struct stack *stack);

/* This is sock_params.watch_twin. */
void progress_watch_twin(int fd, struct fd_object *obj);
/* This is sock_params.forget_twin. */
void progress_forget_twin(int fd);

/* The process is about to end: has the thread call before_end. Returns when that is done,
 * or after so long. May be called from a signal handler. */
void progress_before_end(uint64_t patience_ns);

/* Called in the child of a fork, which has no such thread. */
void progress_forked(void);

#endif
