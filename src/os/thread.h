/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library knows of each thread, and the bracket around its critical
 * sections.
 *
 * Between os_enter() and os_leave() a thread may hold our locks, so no handler of
 * the program runs there (signals.h defers it to os_leave), and every call that
 * reaches one of our wrappers comes from ourselves or from a library that we use
 * and goes straight to libc. The bracket is left before libc is entered on behalf
 * of the program, and before any wait.
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct os_thread {
	union {
		struct {
			/* The number of open brackets. Only this thread writes it,
			 * but handlers that interrupt it read it. */
			volatile int depth;
			/* The number of waits that this thread has begun. If it is
			 * not 0 outside of them, a handler may have jumped out of
			 * one, which the next call has to look at (fd/fd_wait.h). */
			int wait_cnt;
		};
		/* not 0: one of the two is not 0 */
		uint64_t is_odd;
	};
	/* A signal came inside the bracket: `deferred` holds it. */
	volatile bool has_deferred;
	/* Handlers that ran in this thread, and those among them that want
	 * interrupted calls to fail with EINTR (no SA_RESTART). A wait compares
	 * with the value at its start. */
	volatile unsigned handler_cnt;
	volatile unsigned interrupt_cnt;
	/* In a sleep, or just before it: what a handler changes so that the sleep ends
	 * (signals.c). NULL: no sleep, or a handler has done so. */
	volatile int *volatile sleep_fd;
	/* Where libc has this thread's errno, which only a call can tell; NULL: nobody has
	 * asked yet (fd/fd_quick.h). */
	int *errno_at;
	/* One of the library's own threads. */
	bool is_internal;
	/* Counts waits, in the upper bits (sock-redirect/mux_calls.c). */
	uint8_t sixteenths;
	siginfo_t deferred;
	sigset_t deferred_mask; /* the thread's mask when it came */
};

extern _Thread_local struct os_thread os_thread;

/* Delivers what was deferred; from os_leave alone. */
COLD void os_deliver_deferred(void);

static inline bool os_is_inside(void)
{
	return os_thread.depth > 0;
}

static inline void os_enter(void)
{
	os_thread.depth++;
	/* A handler in this thread must see the bracket before anything that
	 * happens inside it. */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void os_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (--os_thread.depth == 0 && UNLIKELY(os_thread.has_deferred))
		os_deliver_deferred();
}

/* Does the same for a thread that is known to be outside of any bracket; for the
 * data path. */
static inline void os_enter_first(void)
{
	os_thread.depth = 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void os_leave_last(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	os_thread.depth = 0;
	if (UNLIKELY(os_thread.has_deferred))
		os_deliver_deferred();
}

#endif
