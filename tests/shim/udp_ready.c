/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: readiness, by poll, select and epoll. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/sleeper.h"
#include "tests/support/unseen.h"

static void readiness_by_poll(void)
{
	struct pollfd fds[4];
	int pair[2], pipes[2], n;

	make_pair(pair);
	if (pipe(pipes) != 0)
		return;
	fds[0] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[3] = (struct pollfd){ .fd = pair[0],
				  .events = POLLIN | POLLOUT | POLLRDNORM };
#define POLL_THEM(cnt, ms)                                                   \
	(n = poll(fds, cnt, ms),                                             \
	 SAY("poll %d: %#x %#x %#x %#x\n", n, fds[0].revents, fds[1].revents, \
	     fds[2].revents, fds[3].revents))
	POLL_THEM(3, 0);
	POLL_THEM(3, 20);
	POLL_THEM(4, 20);
	send(pair[0], "x", 1, 0);
	settle();
	POLL_THEM(4, -1);
	n = (int)write(pipes[1], "y", 1);
	POLL_THEM(3, -1);
	receive(pair[1], 0);
	POLL_THEM(3, -1);
	send(pair[1], "z", 1, 0);
	settle();
	POLL_THEM(4, -1);
	receive(pair[0], 0);
	fds[0].fd = 999;
	POLL_THEM(1, -1);
	close(pipes[0]);
	close(pipes[1]);
	close_pair(pair);
}

static void select_them(const int pair[2], bool with_out, struct timeval *tv)
{
	int n, max = (pair[0] > pair[1] ? pair[0] : pair[1]) + 1;
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(pair[0], &in);
	FD_SET(pair[1], &in);
	FD_SET(pair[0], &out);
	n = select(max, &in, with_out ? &out : NULL, NULL, tv);
	SAY("select %d: %d %d %d\n", n, !!FD_ISSET(pair[0], &in),
	    !!FD_ISSET(pair[1], &in), !!FD_ISSET(pair[0], &out));
}

static void readiness_by_select(void)
{
	struct timeval tv = { 0, 20000 };
	int pair[2];

	make_pair(pair);
	select_them(pair, false, &tv);
	SAY("left %ld\n", (long)tv.tv_sec * 1000000 + tv.tv_usec);
	select_them(pair, true, NULL);
	send(pair[0], "x", 1, 0);
	select_them(pair, false, NULL);
	tv = (struct timeval){ LONG_MAX, 0 };
	select_them(pair, false, &tv);
	SAY("left for long %d\n", tv.tv_sec > LONG_MAX / 2);
	select_them(pair, true, NULL);
	receive(pair[1], 0);
	close_pair(pair);
}

struct closer {
	int fd;
	_Atomic long long closed_ns;
};

static void *close_soon(void *arg)
{
	struct closer *closer = arg;

	sleeper_await(getpid());
	close(closer->fd);
	closer->closed_ns = now_ns();
	return NULL;
}

/* Closed by another thread, in the middle of a select: it counts as ready, and is an
 * error for the next one. */
static void select_of_one_that_is_closed(void)
{
	for (int is_bound = 0; is_bound < 2; is_bound++) {
		struct sockaddr_in name;
		struct closer closer;
		struct timeval tv;
		fd_set in, out;
		pthread_t thread;
		long long from;
		int n;

		do { /* a close after its time shows nothing */
			closer.fd = is_bound ? bound(&name) :
					       socket(AF_INET, SOCK_DGRAM, 0);
			tv = (struct timeval){ 0, 100000 };
			FD_ZERO(&in);
			FD_ZERO(&out);
			FD_SET(closer.fd, &in);
			from = now_ns();
			pthread_create(&thread, NULL, close_soon, &closer);
			n = select(closer.fd + 1, &in, &out, NULL, &tv);
			pthread_join(thread, NULL);
		} while (closer.closed_ns - from >= 100000000);
		SAY("select %s %d\n", err(n), n > 0 && FD_ISSET(closer.fd, &in));
		FD_SET(closer.fd, &in);
		n = select(closer.fd + 1, &in, NULL, NULL, &tv);
		SAY("again %s\n", err(n));
	}
}

static void *send_soon(void *arg)
{
	sleeper_await(getpid());
	send(*(int *)arg, "late", 4, 0);
	return NULL;
}

static struct pollfd polled[2];

static void *use_array(void *arg)
{
	sleeper_await(getpid());
	polled[0] = (struct pollfd){ .fd = -1 };
	polled[1] = (struct pollfd){ .fd = INT_MAX, .events = POLLIN };
	send(*(int *)arg, "late", 4, 0);
	return NULL;
}

/* Another thread has a use for the array while it is polled: as with the kernel, that is of
 * no account but for what comes back. */
static void array_changes_under_a_poll(void)
{
	pthread_t thread;
	int pair[2], n;

	make_pair(pair);
	polled[0] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	polled[1] = (struct pollfd){ .fd = pair[0], .events = POLLIN };
	pthread_create(&thread, NULL, use_array, &pair[0]);
	n = poll(polled, 2, 5000);
	pthread_join(thread, NULL);
	SAY("poll %d: %#x %#x\n", n, polled[0].revents, polled[1].revents);
	receive(pair[1], 0);
	close_pair(pair);
}

static void readiness_by_epoll(void)
{
	struct epoll_event events[4], event = { .events = EPOLLIN };
	int pair[2], set = epoll_create1(0), pipes[2], n;
	pthread_t thread;

	make_pair(pair);
	if (pipe(pipes) != 0)
		return;
#define WAIT_FOR(cnt, ms)                                                \
	(n = epoll_wait(set, events, cnt, ms),                           \
	 SAY("epoll %d: %#x %u\n", n, n > 0 ? events[0].events : 0,      \
	     n > 0 ? events[0].data.u32 : 0))
	event.data.u32 = 1;
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	event.data.u32 = 2;
	epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event);
	WAIT_FOR(4, 0);
	WAIT_FOR(4, 20);
	send(pair[0], "x", 1, 0);
	WAIT_FOR(4, -1);
	WAIT_FOR(1, -1);
	n = (int)write(pipes[1], "y", 1);
	n = epoll_wait(set, events, 4, -1);
	SAY("both: %d\n", n);
	receive(pair[1], 0);
	WAIT_FOR(4, -1);
	n = (int)read(pipes[0], events, 1);
	WAIT_FOR(4, 0);
	pthread_create(&thread, NULL, send_soon, &pair[0]);
	WAIT_FOR(4, -1);
	pthread_join(thread, NULL);
	receive(pair[1], 0);
	event.events = EPOLLIN | EPOLLOUT;
	event.data.u32 = 3;
	SAY("mod %s\n", err(epoll_ctl(set, EPOLL_CTL_MOD, pair[1], &event)));
	WAIT_FOR(4, -1);
	send(pair[0], "x", 1, 0);
	settle();
	WAIT_FOR(4, -1);
	SAY("del %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
	WAIT_FOR(4, 0);
	SAY("wait %s\n", err(epoll_wait(set, events, 0, 0)));
	receive(pair[1], 0);
	event.events = EPOLLIN;
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	send(pair[0], "x", 1, 0);
	close(pair[1]);
	WAIT_FOR(4, 0);
	close(set);
	close(pipes[0]);
	close(pipes[1]);
	close(pair[0]);
}

/* Kernel's affair: but nothing that is queued may be lost on the way back. */
/* All of them by their numbers, as programs with wrappers of their own call them. The
 * kernel's sets of signals have 8 bytes there, and it writes back how much time is left. */
static void readiness_by_number(void)
{
	static const struct timespec fixed = { 0, 1000000 };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 }, out = { 0 };
	struct timespec ts = { 5, 0 }, none = { 0, 0 };
	struct timeval tv = { 5, 0 };
	uint64_t mask = 0;
	struct {
		uint64_t *mask;
		size_t size;
	} masked = { &mask, sizeof(mask) };
	struct pollfd fds[1];
	int pair[2], epfd;
	fd_set in;
	long n;

	make_pair(pair);
	fds[0] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	epfd = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
	n = syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, pair[1], &event);
	SAY("add %s\n", err(n));
	n = syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, pair[1], &event);
	SAY("again %s\n", err(n));
	n = syscall(SYS_ppoll, fds, 1UL, &none, NULL, 0UL);
	SAY("nothing %ld\n", n);
	send(pair[0], "x", 1, 0);
	settle();
	n = syscall(SYS_epoll_pwait, epfd, &out, 1, -1, &mask, sizeof(mask));
	SAY("epoll_pwait %ld %u\n", n, out.data.u32);
	n = syscall(SYS_epoll_pwait2, epfd, &out, 1, &ts, &mask, sizeof(mask));
	SAY("epoll_pwait2 %ld\n", n);
	/* the kernel minds no time that it cannot count down */
	n = syscall(SYS_ppoll, fds, 1UL, &fixed, NULL, 0UL);
	SAY("a time that is fixed: %ld\n", n);
	n = syscall(SYS_ppoll, fds, 1UL, &ts, &mask, sizeof(mask));
	SAY("ppoll %ld %#x, %ld s left\n", n, fds[0].revents, (long)ts.tv_sec);
	n = syscall(SYS_ppoll, fds, 1UL, &ts, &mask, sizeof(mask) + 1);
	SAY("a set of another size: %s\n", err(n));
	FD_ZERO(&in);
	FD_SET(pair[1], &in);
	ts = (struct timespec){ 5, 0 };
	n = syscall(SYS_pselect6, pair[1] + 1, &in, NULL, NULL, &ts, &masked);
	SAY("pselect6 %ld %d, %ld s left\n", n, !!FD_ISSET(pair[1], &in),
	    (long)ts.tv_sec);
#ifdef SYS_poll
	n = syscall(SYS_poll, fds, 1UL, -1);
	SAY("poll %ld %#x\n", n, fds[0].revents);
	n = syscall(SYS_epoll_wait, epfd, &out, 1, -1);
	SAY("epoll_wait %ld\n", n);
	n = syscall(SYS_select, pair[1] + 1, &in, NULL, NULL, &tv);
	SAY("select %ld %d, %ld s left\n", n, !!FD_ISSET(pair[1], &in),
	    (long)tv.tv_sec);
#endif
	receive(pair[1], 0);
	ts = (struct timespec){ 0, 30000000 };
	n = syscall(SYS_ppoll, fds, 1UL, &ts, NULL, 0UL);
	SAY("ppoll %ld, %ld ns left\n", n, ts.tv_nsec);
	n = syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_DEL, pair[1], NULL);
	SAY("delete %s\n", err(n));
	close(epfd);
	close_pair(pair);
}

/* One look at a set, printed. */
static void say_ready(const char *what, int set, int cnt, int ms)
{
	struct epoll_event got[8] = { 0 };
	int n = epoll_wait(set, got, cnt, ms);

	SAY("%s: %d", what, n);
	for (int i = 0; i < n; i++)
		SAY(", %u %#x", got[i].data.u32, got[i].events);
	SAY("\n");
}

static const char *add(int set, int fd, uint32_t events, uint32_t word)
{
	struct epoll_event event = { .events = events, .data.u32 = word };

	return err(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

static const char *modify(int set, int fd, uint32_t events, uint32_t word)
{
	struct epoll_event event = { .events = events, .data.u32 = word };

	return err(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
}

static void send_one(int fd)
{
	send(fd, "one", 3, 0);
	settle();
}

/* Each arrival is an edge, also at a socket that was readable already. */
static void epoll_edges(void)
{
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	send_one(pair[0]);
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLET, 1));
	say_ready("what was there", set, 8, 1000);
	say_ready("once", set, 8, 0);
	send_one(pair[0]);
	say_ready("one more", set, 8, 1000);
	say_ready("once", set, 8, 0);
	receive(pair[1], 0);
	say_ready("reading is no edge", set, 8, 0);
	SAY("modify %s\n",
	    modify(set, pair[1], EPOLLIN | EPOLLOUT | EPOLLET, 2));
	say_ready("what is there", set, 8, 0);
	say_ready("once", set, 8, 0);
	receive(pair[1], 0);
	SAY("modify %s\n",
	    modify(set, pair[1], EPOLLIN | EPOLLOUT | EPOLLET, 3));
	say_ready("to write", set, 8, 0);
	say_ready("once", set, 8, 0);
	send_one(pair[0]);
	say_ready("both", set, 8, 1000);
	receive(pair[1], 0);
	close(set);
	close_pair(pair);
}

static void *wait_for_an_edge(void *arg)
{
	say_ready("another thread", *(int *)arg, 8, 5000);
	return NULL;
}

/* Each send is an edge for who wants to write. */
static void sends_are_edges(void)
{
	int pair[2], set = epoll_create1(0), other = epoll_create1(0);
	struct iovec iov = { (void *)(uintptr_t)"one", 3 };
	struct mmsghdr msgs[2] = {
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
	};
	pthread_t thread;

	make_pair(pair);
	SAY("add %s\n", add(set, pair[0], EPOLLIN | EPOLLOUT | EPOLLET, 1));
	say_ready("to write", set, 8, 0);
	say_ready("once", set, 8, 0);
	for (int i = 0; i < 3; i++) {
		send_one(pair[0]);
		say_ready("sent", set, 8, 1000);
		say_ready("once", set, 8, 0);
	}
	SAY("%zd\n", write(pair[0], "one", 3));
	say_ready("written", set, 8, 1000);
	SAY("%zd\n", sendmsg(pair[0], &msgs->msg_hdr, 0));
	say_ready("a message", set, 8, 1000);
	SAY("%d\n", sendmmsg(pair[0], msgs, 2, 0));
	say_ready("two messages", set, 8, 1000);
	say_ready("once", set, 8, 0);
	SAY("add %s\n", add(other, pair[0], EPOLLIN | EPOLLET, 1));
	send_one(pair[0]);
	say_ready("who wants to read", other, 8, 0);
	say_ready("who wants both", set, 8, 1000);
	send_one(pair[1]);
	say_ready("who wants to read", other, 8, 1000);
	say_ready("who wants both", set, 8, 1000);
	pthread_create(&thread, NULL, wait_for_an_edge, &set);
	settle();
	send(pair[0], "one", 3, 0);
	pthread_join(thread, NULL);
	SAY("modify %s\n", modify(set, pair[0], EPOLLIN | EPOLLET, 2));
	say_ready("what is there", set, 8, 0);
	send_one(pair[0]);
	say_ready("nobody wants to write", set, 8, 0);
	close(other);
	close(set);
	close_pair(pair);
}

static void epoll_one_shot(void)
{
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLONESHOT, 1));
	send_one(pair[0]);
	say_ready("first", set, 8, 1000);
	send_one(pair[0]);
	say_ready("disarmed", set, 8, 0);
	receive(pair[1], 0);
	SAY("modify %s\n",
	    modify(set, pair[1], EPOLLIN | EPOLLRDNORM | EPOLLONESHOT, 2));
	say_ready("what is left", set, 8, 1000);
	receive(pair[1], 0);
	SAY("modify %s\n",
	    modify(set, pair[1], EPOLLIN | EPOLLET | EPOLLONESHOT, 3));
	say_ready("nothing", set, 8, 0);
	send_one(pair[0]);
	say_ready("an edge", set, 8, 1000);
	send_one(pair[0]);
	say_ready("disarmed", set, 8, 0);
	receive(pair[1], 0);
	receive(pair[1], 0);
	close(set);
	close_pair(pair);
}

static void poll_set(const char *what, int set)
{
	struct pollfd fd = { .fd = set, .events = POLLIN };
	int n = poll(&fd, 1, 0);

	SAY("%s: poll %d %#x\n", what, n, fd.revents);
}

/* Who sees the set from outside, by poll or in another set, sees nothing of a one-shot
 * socket that is disarmed, whatever comes to it. It is a member all the same. */
static void epoll_one_shot_from_outside(void)
{
	int pair[2], set = epoll_create1(0), outer = epoll_create1(0);
	int other = epoll_create1(0);

	make_pair(pair);
	SAY("add %s\n", add(other, pair[1], EPOLLIN | EPOLLONESHOT, 1));
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLONESHOT, 1));
	send_one(pair[0]);
	say_ready("first", other, 8, 1000);
	poll_set("armed", set);
	say_ready("first", set, 8, 1000);
	poll_set("disarmed", set);
	SAY("shut %s\n", err(shutdown(pair[1], SHUT_RD)));
	poll_set("still", set);
	SAY("outer %s\n", add(outer, set, EPOLLIN, 9));
	say_ready("in a set", outer, 8, 0);
	SAY("outer %s\n", add(outer, other, EPOLLIN, 8));
	say_ready("in a set at once", outer, 8, 0);
	close(other);
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLONESHOT, 1));
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLEXCLUSIVE |
						  EPOLLONESHOT, 1));
	poll_set("it failed", set);
	SAY("modify %s\n", modify(set, pair[1], EPOLLIN | EPOLLEXCLUSIVE, 1));
	say_ready("it failed", outer, 8, 0);
	SAY("modify %s\n", modify(set, pair[1], EPOLLIN | EPOLLONESHOT, 2));
	poll_set("armed", set);
	say_ready("in a set", outer, 8, 0);
	say_ready("second", set, 8, 0);
	poll_set("disarmed", set);
	say_ready("in a set", outer, 8, 0);
	SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
	SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLONESHOT, 3));
	poll_set("armed", set);
	receive(pair[1], 0);
	close(outer);
	close(set);
	close_pair(pair);
}

/* A one-shot set that has been told is a member all the same. */
static void epoll_one_shot_set_from_outside(void)
{
	int pair[2], inner = epoll_create1(0), outer = epoll_create1(0);

	make_pair(pair);
	SAY("add %s\n", add(inner, pair[1], EPOLLIN, 1));
	SAY("add %s\n", add(outer, inner, EPOLLIN | EPOLLONESHOT, 2));
	poll_set("before", outer);
	send_one(pair[0]);
	say_ready("told", outer, 8, 0);
	poll_set("disarmed", outer);
	SAY("around %s\n", add(inner, outer, EPOLLIN, 3));
	SAY("again %s\n", add(outer, inner, EPOLLIN, 2));
	SAY("armed %s\n", modify(outer, inner, EPOLLIN | EPOLLONESHOT, 2));
	poll_set("armed", outer);
	say_ready("told", outer, 8, 0);
	say_ready("once", outer, 8, 0);
	receive(pair[1], 0);
	close(outer);
	close(inner);
	close_pair(pair);
}

static void epoll_exclusive(void)
{
	int pair[2], set = epoll_create1(0), outer = epoll_create1(0);

	make_pair(pair);
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLEXCLUSIVE, 1));
	SAY("modify %s\n", modify(set, pair[1], EPOLLIN, 1));
	SAY("again %s\n", add(set, pair[1], EPOLLIN | EPOLLEXCLUSIVE, 1));
	SAY("a set %s\n", add(outer, set, EPOLLIN | EPOLLEXCLUSIVE, 1));
	send_one(pair[0]);
	say_ready("exclusive", set, 8, 1000);
	say_ready("level", set, 8, 0);
	receive(pair[1], 0);
	say_ready("read", set, 8, 0);
	SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
	SAY("one shot %s\n", add(set, pair[1],
				 EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 1));
	SAY("itself %s\n", add(set, set, EPOLLIN, 1));
	close(outer);
	close(set);
	close_pair(pair);
}

/* The thread gives up one of its capabilities, if it has it. */
static void drop_capability(unsigned cap)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps) != 0)
		SAY("capget: %m\n");
	caps[cap / 32].effective &= ~(1U << cap % 32);
	if (syscall(SYS_capset, &head, caps) != 0)
		SAY("capset: %m\n");
}

/* Linux takes EPOLLWAKEUP away from who must not block suspend, without a word. It is in
 * no report. */
static void add_with_wakeup(void)
{
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	SAY("add %s\n", add(set, pair[1], EPOLLIN | EPOLLWAKEUP | EPOLLET, 1));
	send_one(pair[0]);
	say_ready("told", set, 8, 1000);
	say_ready("once", set, 8, 0);
	SAY("modify %s\n",
	    modify(set, pair[1], EPOLLIN | EPOLLWAKEUP | EPOLLONESHOT, 2));
	say_ready("told", set, 8, 1000);
	say_ready("once", set, 8, 0);
	SAY("alone %s\n", modify(set, pair[1], EPOLLWAKEUP, 3));
	say_ready("nothing", set, 8, 0);
	SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
	SAY("exclusive %s\n", add(set, pair[1],
				  EPOLLIN | EPOLLWAKEUP | EPOLLEXCLUSIVE, 4));
	say_ready("told", set, 8, 1000);
	SAY("modify %s\n", modify(set, pair[1], EPOLLIN | EPOLLWAKEUP, 5));
	receive(pair[1], 0);
	close(set);
	close_pair(pair);
}

static void epoll_wakeup(void)
{
	add_with_wakeup();
	drop_capability(CAP_BLOCK_SUSPEND);
	add_with_wakeup();
}

/* Three deep; the innermost set gets its socket last. */
static void epoll_nested(void)
{
	int pair[2], sets[3], copy, n;
	struct pollfd fd;

	make_pair(pair);
	for (int i = 0; i < 3; i++)
		sets[i] = epoll_create1(0);
	SAY("add %s\n", add(sets[1], sets[0], EPOLLIN | EPOLLET, 10));
	SAY("add %s\n", add(sets[2], sets[1], EPOLLIN, 20));
	SAY("a loop %s\n", add(sets[0], sets[2], EPOLLIN, 30));
	SAY("add %s\n", add(sets[0], pair[1], EPOLLIN, 1));
	say_ready("nothing", sets[2], 8, 0);
	send_one(pair[0]);
	say_ready("outermost", sets[2], 8, 1000);
	say_ready("still", sets[2], 8, 0);
	say_ready("an edge", sets[1], 8, 0);
	say_ready("once", sets[1], 8, 0);
	say_ready("none any more", sets[2], 8, 0);
	say_ready("the socket", sets[0], 8, 0);
	fd = (struct pollfd){ .fd = sets[0], .events = POLLIN };
	n = poll(&fd, 1, 1000);
	SAY("poll %d %#x\n", n, fd.revents);
	receive(pair[1], 0);
	n = poll(&fd, 1, 0);
	SAY("poll %d %#x\n", n, fd.revents);
	copy = dup(sets[0]);
	close(sets[0]);
	send_one(pair[0]);
	say_ready("by a copy", copy, 8, 1000);
	say_ready("the outer one", sets[1], 8, 0);
	close(copy);
	send_one(pair[0]);
	say_ready("gone", sets[1], 8, 20);
	receive(pair[1], 0);
	receive(pair[1], 0);
	close(sets[1]);
	close(sets[2]);
	close_pair(pair);
}

/* What wakes a sleeper of a set: an arrival in a set inside it, also one that had
 * nothing of ours when the sleep began. */
static void epoll_nested_sleep(void)
{
	int pair[2], inner = epoll_create1(0), outer = epoll_create1(0), n;
	struct pollfd fd = { .fd = inner, .events = POLLIN };
	pthread_t sender;

	make_pair(pair);
	add(outer, inner, EPOLLIN | EPOLLET, 10);
	add(inner, pair[1], EPOLLIN | EPOLLET, 1);
	pthread_create(&sender, NULL, send_soon, &pair[0]);
	say_ready("outer", outer, 8, -1);
	pthread_join(sender, NULL);
	say_ready("inner", inner, 8, 0);
	receive(pair[1], 0);
	pthread_create(&sender, NULL, send_soon, &pair[0]);
	n = poll(&fd, 1, -1);
	SAY("poll %d %#x\n", n, fd.revents);
	pthread_join(sender, NULL);
	receive(pair[1], 0);
	close(inner);
	close(outer);
	close_pair(pair);
}

enum { CROWD = 16 };

struct crowd {
	int sets[CROWD];
	_Atomic unsigned woken;
};

struct crowd_member {
	struct crowd *crowd;
	unsigned i;
	_Atomic pid_t tid;
	_Atomic bool is_back;
	pthread_t thread;
};

static void *wait_in_crowd(void *arg)
{
	struct crowd_member *me = arg;
	struct epoll_event event;

	atomic_store(&me->tid, gettid());
	if (epoll_wait(me->crowd->sets[me->i], &event, 1, -1) == 1)
		atomic_fetch_add(&me->crowd->woken, 1);
	atomic_store(&me->is_back, true);
	return NULL;
}

/* Until each of them sleeps, or is back. */
static void await_all(struct crowd_member *members)
{
	for (unsigned i = 0; i < CROWD; i++) {
		while (!atomic_load(&members[i].tid))
			sched_yield();
		while (!atomic_load(&members[i].is_back) &&
		       !sleeper_is_asleep(atomic_load(&members[i].tid)))
			sched_yield();
	}
}

/* Five seconds at most. */
static void await_woken(const struct crowd *crowd, unsigned cnt)
{
	time_t end = time(NULL) + 5;

	while (atomic_load(&crowd->woken) < cnt && time(NULL) < end)
		sched_yield();
}

/* Threads wait for one socket. Each datagram wakes one of them. */
static void wake_crowd(struct crowd *crowd, int from, int to)
{
	struct crowd_member members[CROWD];

	for (unsigned i = 0; i < CROWD; i++) {
		members[i].crowd = crowd;
		members[i].i = i;
		atomic_init(&members[i].tid, 0);
		atomic_init(&members[i].is_back, false);
		pthread_create(&members[i].thread, NULL, wait_in_crowd,
			       &members[i]);
	}
	await_all(members);
	for (unsigned i = 1; i <= CROWD; i++) {
		send(from, "one", 3, 0);
		await_woken(crowd, i);
		/* who was woken beside is back then, too */
		await_all(members);
		SAY("%u ", atomic_load(&crowd->woken));
	}
	SAY("\n");
	for (unsigned i = 0; i < CROWD; i++) {
		pthread_join(members[i].thread, NULL);
		receive(to, 0);
	}
}

static void epoll_one_is_woken(void)
{
	struct crowd crowd = { 0 };
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	add(set, pair[1], EPOLLIN | EPOLLET, 1);
	for (unsigned i = 0; i < CROWD; i++)
		crowd.sets[i] = set;
	wake_crowd(&crowd, pair[0], pair[1]);
	close(set);
	close_pair(pair);
}

static void epoll_one_set_is_woken(void)
{
	struct crowd crowd = { 0 };
	int pair[2];

	make_pair(pair);
	for (unsigned i = 0; i < CROWD; i++) {
		crowd.sets[i] = epoll_create1(0);
		add(crowd.sets[i], pair[1], EPOLLIN | EPOLLET | EPOLLEXCLUSIVE,
		    i);
	}
	wake_crowd(&crowd, pair[0], pair[1]);
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd.sets[i]);
	close_pair(pair);
}

/* Both ways, before anything has led to us. It goes on to receive. */
static void shut_before_it_is_attached(void)
{
	int set = epoll_create1(0), fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own = owned(0), name;
	socklen_t len = sizeof(own);
	int me = bound(&name);

	shutdown(fd, SHUT_RDWR);
	bind(fd, (struct sockaddr *)&own, sizeof(own));
	getsockname(fd, (struct sockaddr *)&own, &len);
	SAY("add %s\n", add(set, fd, EPOLLIN | EPOLLET, 1));
	say_ready("shut", set, 8, 0);
	own = heard_at(own.sin_port);
	sendto(me, "one", 3, 0, (struct sockaddr *)&own, sizeof(own));
	settle();
	say_ready("and an arrival", set, 8, 1000);
	receive(fd, MSG_DONTWAIT);
	/* so that the others are most */
	for (int i = 0; i < 20; i++) {
		sendto(me, "two", 3, 0, (struct sockaddr *)&name, sizeof(name));
		receive(me, 0);
	}
	close(set);
	close(fd);
	close(me);
}

/* With room for one event everything that is ready is reported in turn. */
static void one_event_at_a_time(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int pair[2], ends[2], set = epoll_create1(0);
	unsigned seen[2] = { 0 };

	make_pair(pair);
	if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
		SAY("pipe: %m\n");
	event.data.u32 = 0;
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	event.data.u32 = 1;
	epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
	send(pair[0], "stays", 5, 0);
	settle();
	for (int i = 0; i < 64; i++)
		if (epoll_wait(set, &event, 1, 1000) == 1)
			seen[event.data.u32 & 1]++;
	SAY("%s %s\n", seen[0] >= 4 ? "ours" : "starved",
	    seen[1] >= 4 ? "the kernel's" : "starved");
	receive(pair[1], 0);
	close(ends[0]);
	close(ends[1]);
	close(set);
	close_pair(pair);
}

/* What we have told already, and the kernel tells once more, takes no other event's place. */
static void nothing_hides_behind_what_was_told(void)
{
	static const uint32_t modes[] = { EPOLLET, EPOLLONESHOT };

	for (size_t i = 0; i < 2 * ARRAY_LEN(modes); i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLOUT |
						       modes[i / 2] };
		int pair[2], ends[2], set = epoll_create1(0);

		make_pair(pair);
		if (pipe(ends) != 0)
			SAY("pipe: %m\n");
		event.data.u32 = 1;
		epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
		say_ready("fresh", set, 8, 0);
		/* the kernel and we take turns */
		if (i % 2)
			say_ready("told", set, 1, 0);
		epoll_ctl(set, EPOLL_CTL_MOD, pair[1], &event);
		send(pair[0], "x", 1, 0);
		settle();
		add(set, ends[0], EPOLLIN, 2);
		if (write(ends[1], "x", 1) != 1)
			SAY("write: %m\n");
		for (int look = 0; look < 4; look++)
			say_ready("one", set, 1, 0);
		receive(pair[1], 0);
		close(ends[0]);
		close(ends[1]);
		close(set);
		close_pair(pair);
	}
}

/* -- sets and closes ------------------------------------------------------------------ */

struct adder {
	int set;
	_Atomic int fd;
	_Atomic bool is_over;
};

static void *add_on_and_on(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct adder *adder = arg;
	int (*change)(int, int, int, struct epoll_event *) = UNSEEN(epoll_ctl);

	while (!adder->is_over)
		change(adder->set, EPOLL_CTL_ADD, adder->fd, &event);
	return NULL;
}

/* A socket that is closed while another thread adds it is in no set afterwards. */
static void sockets_close_while_they_are_added(void)
{
	struct adder adder = { .set = epoll_create1(0), .fd = -1 };
	struct sockaddr_in name;
	struct epoll_event event;
	pthread_t thread;

	pthread_create(&thread, NULL, add_on_and_on, &adder);
	for (int i = 0; i < 500; i++) {
		adder.fd = bound(&name);
		if (i % 3)
			sched_yield();
		close(adder.fd);
	}
	adder.fd = -1;
	adder.is_over = true;
	pthread_join(thread, NULL);
	SAY("left %d\n", epoll_wait(adder.set, &event, 1, 0));
	close(adder.set);
}

const struct scenario ready_scenarios[] = {
	SCENARIO(readiness_by_poll, 0),
	SCENARIO(array_changes_under_a_poll, 0),
	SCENARIO(readiness_by_select, 0),
	SCENARIO(select_of_one_that_is_closed, 0),
	SCENARIO(readiness_by_number, 0),
	SCENARIO(readiness_by_epoll, 0),
	SCENARIO(epoll_edges, 0),
	SCENARIO(sends_are_edges, 0),
	SCENARIO(epoll_one_shot, 0),
	SCENARIO(epoll_one_shot_from_outside, 0),
	SCENARIO(epoll_one_shot_set_from_outside, 0),
	SCENARIO(epoll_exclusive, 0),
	SCENARIO(epoll_wakeup, 0),
	SCENARIO(epoll_nested, 0),
	SCENARIO(epoll_nested_sleep, 0),
	SCENARIO(epoll_one_is_woken, 0),
	SCENARIO(epoll_one_set_is_woken, 0),
	SCENARIO(shut_before_it_is_attached, 0),
	SCENARIO(one_event_at_a_time, 0),
	SCENARIO(nothing_hides_behind_what_was_told, 0),
	SCENARIO(sockets_close_while_they_are_added, 0),
	SCENARIO_END,
};
