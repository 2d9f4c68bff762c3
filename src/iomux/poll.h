/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What select (select.c) has from poll: it is one over the fds of its sets. */
#ifndef IOMUX_POLL_H
#define IOMUX_POLL_H

#include <poll.h>
#include <sys/single_threaded.h>

#include "fd/fd_table.h"
#include "iomux/mux_wait.h"

/* The events that Linux's select counts for each of its three sets. */
enum {
	SELECT_IN = POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR |
		    POLLNVAL,
	SELECT_OUT = POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR | POLLNVAL,
	SELECT_EXCEPT = POLLPRI | POLLNVAL,
};

/* Whether sets that have nothing of ours are to be heeded: they may get something while
 * the call sleeps. */
static inline bool poll_asks_for_sets(bool does_wait)
{
	return does_wait && !__libc_single_threaded &&
	       atomic_load_explicit(&mux_has_noted, memory_order_relaxed);
}

static inline bool poll_is_heeded(int fd, bool with_sets)
{
	return fd_table_has(fd) || (with_sets && mux_is_noted(fd));
}

/* As mux_poll(), for a select: only what it counts ends it. *has_waited becomes true if what it
 * finds has come during the call. */
long poll_select(struct pollfd *fds, nfds_t cnt, const struct timespec *timeout,
		 const struct signals_mark *mark, bool *has_waited);

#endif
