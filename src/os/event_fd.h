/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Eventfds, which wake a thread that sleeps in poll. None of these functions is a
 * cancellation point, and the last two are system calls and nothing else. */
#ifndef OS_EVENT_FD_H
#define OS_EVENT_FD_H

#include "base/compiler.h"

/* A new one, non-blocking and closed by exec; or a negative errno. */
int event_fd_open(void) MUST_CHECK;
/* Makes it readable. */
void event_fd_signal(int fd);
/* Makes it unreadable again. */
void event_fd_clear(int fd);

#endif
