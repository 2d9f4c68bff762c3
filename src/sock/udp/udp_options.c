/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings of a UDP socket. The twin has them all, with the kernel's limits
 * and defaults; after each change we read back those that concern us
 * (sock_options.def says which options those are). A fcntl or an ioctl that changes
 * what a receiver gets, and that we do not serve, returns the socket to the kernel.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "sock/sock_pace.h"
#include "sock/udp/udp_priv.h"

/* What a receiver can wish for, where it is asked for, and that we serve it. */
static const struct {
	int level, name;
	enum udp_wish wish;
} wishes[] = {
	{ IPPROTO_IP, IP_PKTINFO, UDP_WISH_PKTINFO },
	{ IPPROTO_IP, IP_RECVTTL, UDP_WISH_TTL },
	{ IPPROTO_IP, IP_RECVTOS, UDP_WISH_TOS },
	{ SOL_SOCKET, SO_TIMESTAMP, UDP_WISH_TIMESTAMP },
	{ SOL_SOCKET, SO_TIMESTAMPNS, UDP_WISH_TIMESTAMPNS },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, UDP_WISH_PKTINFO6 },
};

static uint32_t get_wishes(int fd)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (sock_twin_option(fd, wishes[i].level, wishes[i].name))
			bits |= wishes[i].wish;
	return bits;
}

/* SO_TIMESTAMP and SO_TIMESTAMPNS exclude each other, and the getter of either
 * says which holds. */
static uint32_t get_stamping(int fd)
{
	return user_stamping_of((uint32_t)sock_twin_option(fd, SOL_SOCKET,
							   SO_TIMESTAMPING));
}

/* What IP_MTU_DISCOVER says of datagrams that fit, and of longer ones. */
static void read_mtu_discovery(int fd, struct sock_settings *set)
{
	int mode = sock_twin_option(fd, IPPROTO_IP, IP_MTU_DISCOVER);

	set->may_cut = mode == IP_PMTUDISC_DONT || mode == IP_PMTUDISC_WANT ||
		       mode == IP_PMTUDISC_OMIT;
	set->is_mtu_of_link = mode == IP_PMTUDISC_PROBE ||
			      mode == IP_PMTUDISC_INTERFACE ||
			      mode == IP_PMTUDISC_OMIT;
	switch (mode) {
	case IP_PMTUDISC_DO:
	case IP_PMTUDISC_PROBE:
		set->df = DST_DF_ALWAYS;
		break;
	case IP_PMTUDISC_WANT:
		set->df = DST_DF_USUAL;
		break;
	default:
		set->df = DST_DF_NEVER;
	}
}

void udp_read_settings(struct sock *sock, int fd)
{
	struct udp *u = udp_of_sock(sock);
	struct stack *stack;
	uint32_t rx_limit = (uint32_t)udp_rcvbuf(u, fd);
	struct sock_settings set = {
		.wishes = get_wishes(fd) | get_stamping(fd),
		.mark = (uint32_t)sock_twin_option(fd, SOL_SOCKET, SO_MARK),
		.priority = (uint32_t)sock_twin_option(fd, SOL_SOCKET, SO_PRIORITY),
		.ifindex = sock_twin_device(fd),
		.tos = (uint8_t)sock_twin_option(fd, IPPROTO_IP, IP_TOS),
		.ttl = (uint8_t)sock_twin_option(fd, IPPROTO_IP, IP_TTL),
		.has_own_ttl = atomic_load(&sock->has_own_ttl),
		.is_on_link_only = sock_twin_option(fd, SOL_SOCKET, SO_DONTROUTE),
		.is_shared = sock_twin_option(fd, SOL_SOCKET, SO_REUSEPORT),
	};

	set.may_share = set.is_shared ||
			sock_twin_option(fd, SOL_SOCKET, SO_REUSEADDR);
	read_mtu_discovery(fd, &set);
	if (sock_twin_option(fd, IPPROTO_UDP, UDP_CORK))
		sock_hold_tx(&u->sock, UDP_TX_CORKED);
	else
		sock_release_tx(&u->sock, UDP_TX_CORKED);
	sock_set_nonblocking(&u->sock, real.fcntl(fd, F_GETFL) & O_NONBLOCK);
	sock_lock(sock, &stack);
	if (set.wishes & UDP_WISH_CARD_STAMP)
		stack_want_stamps_locked(stack);
	u->sock.set = set;
	u->rx_limit_full = MAX(rx_limit, sock_params.rx_bytes_min);
	udp_settle_limit(u);
	u->sock.stats.at->rx_limit = u->rx_limit_full;
	udp_forget_ways(sock, NULL);
	stack_unlock(stack);
	if (u->has_pace_news)
		udp_pace_follow(u);
}

/* The kernel is to do something for the socket on its own, so it must have the
 * datagrams. 0, or -EINVAL: the call is refused. */
static int leave_for(struct udp *u, int fd, const char *what, int number)
{
	return sock_leave_for(&u->sock, fd, REASON_OPTION, STATS_BY_OPTION, what,
			      number);
}

/* Answers what libc would not know. */
static long tell(int answer, void *value, socklen_t *len)
{
	memcpy(value, &answer, sizeof(answer));
	*len = sizeof(answer);
	return 0;
}

static long tell_rcvbuf(struct udp *u, int fd, void *value, socklen_t *len)
{
	int size;

	mutex_acquire(&u->sock.config);
	size = sock_owns_fd(&u->sock, fd) ? udp_rcvbuf(u, fd) : 0;
	mutex_release(&u->sock.config);
	return size ? tell(size, value, len) : FD_PASS;
}

long udp_getsockopt(struct fd_object *obj, int fd, int level, int name,
		    void *value, socklen_t *len)
{
	int err;

	if (name == SO_MAX_PACING_RATE && user_is_plausible(len, sizeof(*len)) &&
	    sock_pace_is_vma(level, name, *len))
		return sock_pace_get(sock_of(obj), fd, value);
	if (level != SOL_SOCKET || (name != SO_ERROR && name != SO_RCVBUF) ||
	    !user_is_plausible(len, sizeof(*len)) || (int)*len < (int)sizeof(err) ||
	    !user_is_plausible(value, sizeof(err)))
		return FD_PASS;
	if (name == SO_RCVBUF)
		return tell_rcvbuf(udp_of(obj), fd, value, len);
	err = (int)-udp_take_error(udp_of(obj));
	return err ? tell(err, value, len) : FD_PASS;
}

/* It is the program's from now on, even if it is as wide as we had made it. */
static long set_rcvbuf(struct udp *u, int fd, int name, const void *value, socklen_t len)
{
	int result;

	mutex_acquire(&u->sock.config);
	result = real.setsockopt(fd, SOL_SOCKET, name, value, len) ? -errno : 0;
	if (result == 0) {
		u->twin_rcvbuf_wide = 0;
		if (!u->sock.has_left && sock_stack(&u->sock))
			udp_read_settings(&u->sock, fd);
	}
	mutex_release(&u->sock.config);
	return result;
}

long udp_setsockopt(struct fd_object *obj, int fd, int level, int name,
		    const void *value, socklen_t len)
{
	struct udp *u = udp_of(obj);
	long result;

	if (level == SOL_SOCKET && name == SO_MAX_PACING_RATE)
		return udp_pace_setsockopt(u, fd, value, len);
	if (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_RCVBUFFORCE))
		return set_rcvbuf(u, fd, name, value, len);
	result = sock_setsockopt(obj, fd, level, name, value, len);
	if (result == 0 && level == SOL_SOCKET &&
	    (name == SO_TIMESTAMPING || name == SO_TIMESTAMPING_NEW ||
	     name == SO_SELECT_ERR_QUEUE)) {
		mutex_acquire(&u->sock.config);
		udp_stamps_follow(u, fd);
		mutex_release(&u->sock.config);
	}
	return result;
}

long udp_fcntl(struct fd_object *obj, int fd, int cmd, void *arg)
{
	struct udp *u = udp_of(obj);
	int result;

	if (cmd != F_SETFL)
		return FD_PASS;
	/* a signal for each datagram */
	result = (uintptr_t)arg & O_ASYNC ?
			 leave_for(u, fd, "a flag of F_SETFL", O_ASYNC) :
			 0;
	if (result)
		return result;
	result = real.fcntl(fd, cmd, arg);
	if (result < 0)
		return -errno;
	sock_set_nonblocking(&u->sock, (uintptr_t)arg & O_NONBLOCK);
	return result;
}

/* The length of the first datagram in the queue, which the next read gives from now on;
 * negative: there is none. */
static int queued_len(struct udp *u)
{
	struct list *first;
	struct stack *stack;
	int len = -ENOENT;

	if (!sock_try_lock(&u->sock, &stack))
		return -ENOENT;
	stack_poll_locked(stack);
	first = list_first(&u->rx_queue);
	if (first) {
		len = (int)PKT_CB(pkt_from_link(first), struct rx_info)->len;
		udp_put_ahead(u, 1);
	}
	stack_unlock(stack);
	return len;
}

/* The same of the twin; 0: it has none, or an empty one; or a negative errno. */
static int twin_len(struct udp *u, int fd)
{
	int len;

	if (real.ioctl(fd, FIONREAD, &len) != 0)
		return -errno;
	atomic_store(&u->is_twin_next, len > 0);
	if (len > 0)
		atomic_store(&u->sock.is_twin_ready, true);
	return len;
}

/* The length of the datagram that a read would give; 0: there is none. */
static int next_len(struct udp *u, int fd)
{
	int len = atomic_load(&u->is_twin_next) ? twin_len(u, fd) : 0;

	if (len)
		return len;
	len = queued_len(u);
	return len >= 0 ? len : twin_len(u, fd);
}

/* Whether the program has received by our ways. */
static bool has_received(struct udp *u)
{
	struct stack *stack;
	bool result;

	if (!sock_try_lock(&u->sock, &stack))
		return false;
	result = sock_counters(&u->sock)->rx_packets > 0;
	stack_unlock(stack);
	return result;
}

/*
 * When the last datagram came. To note it for every one would cost all programs, so
 * the socket of one that asks is the kernel's from then on. Linux begins to note when
 * it is asked first, and then says what time it is, if something was received before;
 * and the same again until more is.
 */
static int last_stamp(struct udp *u, int fd, unsigned long request, void *arg)
{
	bool is_in_us = _IOC_NR(request) == _IOC_NR(SIOCGSTAMP_OLD);
	/* as the program sees it: before what waits is given back */
	bool is_known = has_received(u);
	int result = real.ioctl(fd, request, arg) ? -errno : 0;
	int err = leave_for(u, fd, "an ioctl", (int)request);
	int64_t stamp[2];

	if (err)
		return err;
	mutex_acquire(&u->sock.config);
	if (result == -ENOENT && is_known && !u->stamp_ns)
		u->stamp_ns = clock_realtime_ns();
	stamp[0] = (int64_t)(u->stamp_ns / NS_PER_SEC);
	stamp[1] = (int64_t)(u->stamp_ns % NS_PER_SEC) / (is_in_us ? 1000 : 1);
	mutex_release(&u->sock.config);
	if (result != -ENOENT || !stamp[0])
		return result;
	if (!user_is_plausible(arg, sizeof(stamp)))
		return -EFAULT;
	memcpy(arg, stamp, sizeof(stamp));
	return 0;
}

long udp_ioctl(struct fd_object *obj, int fd, unsigned long request, void *arg)
{
	struct udp *u = udp_of(obj);
	int result, len;

	switch (request) {
	case FIOASYNC:
		/* a signal for each datagram */
		result = user_is_plausible(arg, sizeof(int)) && *(int *)arg ?
				 leave_for(u, fd, "an ioctl", FIOASYNC) :
				 0;
		return result ? result : FD_PASS;
	case SIOCGSTAMP_OLD:
	case SIOCGSTAMPNS_OLD:
	case SIOCGSTAMP_NEW:
	case SIOCGSTAMPNS_NEW:
		return last_stamp(u, fd, request, arg);
	case FIONBIO:
		result = real.ioctl(fd, request, arg);
		if (result < 0)
			return -errno;
		sock_set_nonblocking(&u->sock, *(int *)arg != 0);
		return result;
	case FIONREAD:
		len = next_len(u, fd);
		if (len < 0)
			return len;
		if (!user_is_plausible(arg, sizeof(len)))
			return -EFAULT;
		*(int *)arg = len;
		return 0;
	default:
		return FD_PASS;
	}
}
