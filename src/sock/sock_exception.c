/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* VMA_EXCEPTION_HANDLING: what becomes of a socket when its program asks for
 * something that only the kernel does. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "sock/sock.h"

/* Whether the socket could still be accelerated. *is_news_out: the log has to say
 * something, once for each socket. */
static bool is_ours(struct sock *s, bool *is_news_out)
{
	bool result;

	mutex_acquire(&s->config);
	result = !s->has_left;
	*is_news_out = !s->has_exceeded;
	s->has_exceeded = true;
	mutex_release(&s->config);
	return result;
}

static void tell(int fd, const char *what, int number, const char *outcome)
{
	bool is_error =
		sock_params.exception_mode >= SOCK_EXCEPTION_LEAVE_LOUDLY;

	LOG_AT(is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
	       "fd %d: %s (%#x) is beyond this library; %s (VMA_EXCEPTION_HANDLING=%d)",
	       fd, what, (unsigned)number, outcome,
	       (int)sock_params.exception_mode);
}

COLD int sock_exception(struct sock *s, int fd, enum reason reason,
			enum stats_decider decider, const char *what,
			int number)
{
	bool is_news;

	if (!is_ours(s, &is_news))
		return 0;
	switch (sock_params.exception_mode) {
	case SOCK_EXCEPTION_LEAVE:
	case SOCK_EXCEPTION_LEAVE_LOUDLY:
		if (is_news)
			tell(fd, what, number, "the socket is the kernel's now");
		s->obj.ops->leave(&s->obj, fd, reason, decider);
		return 0;
	case SOCK_EXCEPTION_REFUSE:
		if (is_news)
			tell(fd, what, number, "the call fails");
		return -EINVAL;
	case SOCK_EXCEPTION_ABORT:
		tell(fd, what, number, "the process ends");
		abort();
	default:
		if (is_news)
			tell(fd, what, number, "the kernel does it");
		return 0;
	}
}

COLD int sock_leave_for(struct sock *s, int fd, enum reason reason,
			enum stats_decider decider, const char *what,
			int number)
{
	int err = sock_exception(s, fd, reason, decider, what, number);

	if (!err)
		s->obj.ops->leave(&s->obj, fd, reason, decider);
	return err;
}
