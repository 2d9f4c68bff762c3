/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's own thread. It follows the kernel's news, hears of the sockets'
 * twins, and processes packets when nobody else does. It runs from the first
 * attached socket on, with all signals blocked, keeps no process alive
 * (os/own_thread.h), and sleeps when there is nothing
 * to do: while the program polls it looks in from time to time, otherwise the
 * next packet or timer wakes it.
 */
#ifndef CORE_PROGRESS_H
#define CORE_PROGRESS_H

#include <sched.h>

#include "fd/fd_ops.h"
#include "net/net.h"

struct progress_params {
	struct net *net;
	/* how long packets may wait while nobody polls; 0: as long as it takes
	 * until somebody does */
	unsigned interval_ms;
	/* packets at a time, before others may have the lock */
	unsigned batch_max;
	/* where the thread may run; NULL: where the program was started to */
	const cpu_set_t *cpus;
	/* called once a second; every two while nothing happens */
	void (*each_second)(void);
};

/* Starts the thread. 0 or negative errno. */
int progress_start(const struct progress_params *params) MUST_CHECK;

/* Returns when the thread has ended, for good. Without a lock of ours. */
void progress_stop(void);

/* stack_params.sooner. */
void progress_timer_is_sooner(struct stack *stack);

/* sock_params.watch_twin. */
void progress_watch_twin(int fd, struct fd_object *obj);

/* In the child of a fork, which has no such thread. */
void progress_forked(void);

#endif
