/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* VMA_EXCEPTION_HANDLING: what becomes of a socket whose program asks for what only
 * the kernel does. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "sock/udp/udp_priv.h"

/* Whether there is something to say, once for each socket, and whether the socket is
 * still one that could be accelerated. */
static bool is_ours(struct udp *u, bool *is_news_out)
{
	bool result;

	mutex_acquire(&u->config);
	result = !u->has_left;
	*is_news_out = !u->has_exceeded;
	u->has_exceeded = true;
	mutex_release(&u->config);
	return result;
}

static void tell(int fd, const char *what, int number, const char *outcome)
{
	bool is_error = udp_params.exception_mode >= UDP_EXCEPTION_LEAVE_LOUDLY;

	LOG_AT(is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
	       "fd %d: %s (%#x) is beyond this library; %s (VMA_EXCEPTION_HANDLING=%d)",
	       fd, what, (unsigned)number, outcome,
	       (int)udp_params.exception_mode);
}

COLD int udp_exception(struct udp *u, int fd, enum reason reason,
		       enum stats_decider decider, const char *what,
		       int number)
{
	bool is_news;

	if (!is_ours(u, &is_news))
		return 0;
	switch (udp_params.exception_mode) {
	case UDP_EXCEPTION_LEAVE:
	case UDP_EXCEPTION_LEAVE_LOUDLY:
		if (is_news)
			tell(fd, what, number, "the socket is the kernel's now");
		udp_leave(&u->obj, fd, reason, decider);
		return 0;
	case UDP_EXCEPTION_REFUSE:
		if (is_news)
			tell(fd, what, number, "the call fails");
		return -EINVAL;
	case UDP_EXCEPTION_ABORT:
		tell(fd, what, number, "the process ends");
		abort();
	default:
		if (is_news)
			tell(fd, what, number, "the kernel does it");
		return 0;
	}
}
