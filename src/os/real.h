/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libc's own versions of the calls that libvma.so takes over. Inside the library
 * the plain names are our wrappers, so whoever wants the kernel says real.read().
 *
 * Usable at every moment, before our constructor too: each member starts out as
 * a resolver that finds the function on first use. A function this C library
 * does not have fails with ENOSYS.
 */
#ifndef OS_REAL_H
#define OS_REAL_H

#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* What sigvec() takes; no longer in the C library's headers, still in its
 * symbols. */
struct sigvec_compat {
	void (*handler)(int sig);
	int mask;  /* bit n-1: signal n */
	int flags; /* 1: alternate stack, 2: interrupts calls, 4: once */
};

struct aiocb;
struct aiocb64;

struct real_calls {
#define CALL_REAL(ret, name, params, args) ret (*name) params;
#define CALL_REAL_VA(ret, name, va_params, params, args) ret (*name) va_params;
#include "os/calls.def"
};

extern struct real_calls real;

/* Finds all of them at once. Called by the constructor, so that no later first
 * use has to, from a signal handler for example. Repeating it is harmless. */
void real_resolve(void);

#endif
