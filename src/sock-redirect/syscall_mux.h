/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* select, poll and epoll by their numbers (syscall_call.c). */
#ifndef SOCK_REDIRECT_SYSCALL_MUX_H
#define SOCK_REDIRECT_SYSCALL_MUX_H

#include <stdbool.h>

/* Whether it is one of these calls, and about sockets of ours: then it has been made,
 * with *result_out and errno as syscall() has them. */
bool syscall_on_set(long number, long a, long b, long c, long d, long e, long f,
		    long *result_out);

#endif
