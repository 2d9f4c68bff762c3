/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * setsockopt() for sockets of every kind. The twin has all options, with the
 * kernel's limits and defaults. Linux is asked first, and an option that Linux
 * refuses changes nothing for us. For an option that Linux takes, the table
 * (sock_options.def) says what we have to do.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/inside.h"
#include "sock/sock.h"
#include "sock/sock_options.h"

/* -- timeouts ------------------------------------------------------------------------ */

/* A negative time is over at once. It reads back as 0, which would mean no limit. So we
 * look at what the program has asked for. */
enum { TIMEOUT_AT_ONCE_NS = 1 };

/* Linux takes seconds for which our time has no room. With no more than this, which is nearly
 * 300 years, the sum with a clock's time does not wrap either. */
#define TIMEOUT_MAX_SEC (INT64_MAX / (int64_t)NS_PER_SEC - 1)

/* The timeout that the program asks for; 0: none. */
static uint64_t wished_timeout_ns(int fd, int name, const void *value)
{
	struct timeval tv = { 0 };
	socklen_t len = sizeof(tv);

	memcpy(&tv, value, sizeof(tv));
	if (tv.tv_sec < 0)
		return TIMEOUT_AT_ONCE_NS;
	if (real.getsockopt(fd, SOL_SOCKET, name, &tv, &len) != 0)
		return 0;
	return (uint64_t)MIN((int64_t)tv.tv_sec, TIMEOUT_MAX_SEC) * NS_PER_SEC +
	       (uint64_t)tv.tv_usec * NS_PER_US;
}

void sock_follow_timeout(struct sock *s, int fd, int level, int name,
			 const void *value)
{
	if (level != SOL_SOCKET)
		return;
	if (name == SO_RCVTIMEO || name == SO_RCVTIMEO_NEW)
		atomic_store(&s->rx_timeout_ns,
			     wished_timeout_ns(fd, SO_RCVTIMEO, value));
	else if (name == SO_SNDTIMEO || name == SO_SNDTIMEO_NEW)
		atomic_store(&s->tx_timeout_ns,
			     wished_timeout_ns(fd, SO_SNDTIMEO, value));
}

/* -- TTL ----------------------------------------------------------------------------- */

/* Gives the choice back to routes and the system. */
enum { TTL_UNSET = -1 };

void sock_follow_ttl(struct sock *s, int level, int name, const void *value,
		     socklen_t len)
{
	int ttl = 0;

	if (level != IPPROTO_IP || name != IP_TTL)
		return;
	/* of fewer bytes Linux takes the first, which has no sign */
	if (len >= sizeof(ttl))
		memcpy(&ttl, value, sizeof(ttl));
	atomic_store(&s->has_own_ttl, ttl != TTL_UNSET);
}

/* -- what only the kernel does --------------------------------------------------------- */

static const char *level_text(int level)
{
	switch (level) {
	case SOL_SOCKET:
		return "an option of SOL_SOCKET";
	case IPPROTO_IP:
		return "an option of IPPROTO_IP";
	case IPPROTO_IPV6:
		return "an option of IPPROTO_IPV6";
	case IPPROTO_TCP:
		return "an option of IPPROTO_TCP";
	case IPPROTO_UDP:
		return "an option of IPPROTO_UDP";
	default:
		return "an option of another level";
	}
}

/* Whether Linux would take a filter, asked of a socket that is made for the question:
 * the socket itself must be without it while it gives back what waits. The answer
 * may be wrong where it depends on more than the value. Then a socket whose filter is
 * refused loses its acceleration, or a filter sees what came before it. */
static bool would_be_taken(const struct sock *s, int level, int name,
			   const void *value, socklen_t len)
{
	int type = s->kind->proto == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM;
	int fd = real.socket(s->domain, type | SOCK_CLOEXEC, 0);
	bool result;

	if (fd < 0)
		return false;
	result = real.setsockopt(fd, level, name, value, len) == 0;
	inside_close(fd);
	return result;
}

/* Leaves the socket to the kernel because of the option. 0, or -EINVAL:
 * VMA_EXCEPTION_HANDLING wants it refused. */
static int leave_for(struct sock *s, int fd, const struct sock_option *option,
		     int level, int name)
{
	char detail[STATS_DETAIL_SIZE];
	int err = sock_exception(s, fd, REASON_OPTION, STATS_BY_OPTION,
				 level_text(level), name);

	if (err)
		return err;
	sock_option_describe(option, level, name, detail);
	mutex_acquire(&s->config);
	if (!s->has_left) {
		sock_leave_config(s, fd, REASON_OPTION, STATS_BY_OPTION,
				  detail);
		log_dbg("fd %d goes back to the kernel: %s", fd, detail);
	}
	mutex_release(&s->config);
	return 0;
}

/* Does what must be done before Linux is asked, since it could not be done after it. */
static int prepare(struct sock *s, int fd, const struct sock_option *option,
		   int level, int name, const void *value, socklen_t len)
{
	if (sock_params.exception_mode >= SOCK_EXCEPTION_REFUSE &&
	    sock_option_is_kernels(option, value, len))
		return leave_for(s, fd, option, level, name);
	if (option && option->class == SOCK_OPTION_FILTER && sock_stack(s) &&
	    would_be_taken(s, level, name, value, len) &&
	    sock_option_is_kernels(option, value, len))
		return leave_for(s, fd, option, level, name);
	return 0;
}

/* -- the op ------------------------------------------------------------------------ */

/* Linux has taken the option, so we may read its value. With `config`. */
static void follow(struct sock *s, int fd, const struct sock_option *option,
		   int level, int name, const void *value, socklen_t len)
{
	sock_follow_timeout(s, fd, level, name, value);
	sock_follow_ttl(s, level, name, value, len);
	if (s->has_left || !sock_stack(s))
		return; /* it is read when the socket is attached */
	if (option && option->class <= SOCK_OPTION_AT_CALL)
		return;
	s->kind->read_settings(s, fd);
	if (option && option->class == SOCK_OPTION_ATTACH)
		sock_attach_anew(s, fd, STATS_BY_OPTION);
}

long sock_setsockopt(struct fd_object *obj, int fd, int level, int name,
		     const void *value, socklen_t len)
{
	struct sock *s = sock_of(obj);
	const struct sock_option *option =
		sock_option_find(s->kind->proto, level, name);
	int result = prepare(s, fd, option, level, name, value, len);

	if (result)
		return result;
	mutex_acquire(&s->config);
	result = real.setsockopt(fd, level, name, value, len) ? -errno : 0;
	if (result == 0)
		follow(s, fd, option, level, name, value, len);
	mutex_release(&s->config);
	if (result == 0 && sock_option_is_kernels(option, value, len))
		result = leave_for(s, fd, option, level, name);
	return result;
}
