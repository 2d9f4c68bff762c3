/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of doors.sh: numbers of fds that the library has not seen come or go. */
#include "config.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/syscall_raw.h"
#include "tests/shim/doors.h"

/* -- closes --------------------------------------------------------------------------- */

static int new_eventfd(void)
{
	return eventfd(7, EFD_NONBLOCK);
}

static int new_timer(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
}

static int new_signalfd(void)
{
	sigset_t none;

	sigemptyset(&none);
	return signalfd(-1, &none, SFD_NONBLOCK);
}

static int new_inotify(void)
{
	return inotify_init1(IN_NONBLOCK);
}

static int new_memory(void)
{
	return memfd_create("numbers", 0);
}

static int numbered_eventfd(void)
{
	return (int)syscall(SYS_eventfd2, 7, EFD_NONBLOCK);
}

static int numbered_timer(void)
{
	return (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK);
}

static int numbered_signalfd(void)
{
	uint64_t none = 0;

	return (int)syscall(SYS_signalfd4, -1, &none, sizeof(none), SFD_NONBLOCK);
}

static int numbered_inotify(void)
{
	return (int)syscall(SYS_inotify_init1, IN_NONBLOCK);
}

static int numbered_memory(void)
{
	return (int)syscall(SYS_memfd_create, "numbers", 0);
}

static int numbered_pidfd(void)
{
	return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

static int numbered_file(void)
{
	struct open_how how = { .flags = O_RDWR };

	return (int)syscall(SYS_openat2, AT_FDCWD, "/dev/null", &how, sizeof(how));
}

static int numbered_copy(void)
{
	return (int)syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD, 0);
}

static const struct {
	const char *name;
	int (*make)(void);
} makers[] = {
	{ "eventfd", new_eventfd },
	{ "timerfd_create", new_timer },
	{ "signalfd", new_signalfd },
	{ "inotify_init1", new_inotify },
	{ "memfd_create", new_memory },
	{ "SYS_eventfd2", numbered_eventfd },
	{ "SYS_timerfd_create", numbered_timer },
	{ "SYS_signalfd4", numbered_signalfd },
	{ "SYS_inotify_init1", numbered_inotify },
	{ "SYS_memfd_create", numbered_memory },
	{ "SYS_pidfd_open", numbered_pidfd },
	{ "SYS_openat2", numbered_file },
	{ "SYS_fcntl", numbered_copy },
};

/* A number that the program has closed by a system call of its own, as some languages make
 * them, is another file's afterwards. */
static void numbers_closed_unseen(void)
{
	char buf[128];

	for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
		int pair[2], fd;
		ssize_t n;

		make_waiting_pair(pair);
		(void)syscall_raw(SYS_close, pair[0], 0, 0, 0, 0, 0);
		fd = makers[i].make();
		SAY("%s: %s number\n", makers[i].name, fd == pair[0] ? "the same" : "another");
		n = read(fd, buf, sizeof(buf));
		SAY("read: %zd %s\n", n, err(n));
		close(fd);
		close(pair[1]);
	}
}

/* -- copies --------------------------------------------------------------------------- */

enum { FREE_NUMBER = 60 };

static int set_by_dup(int set)
{
	return (int)syscall(SYS_dup, set);
}

static int set_by_fcntl(int set)
{
	return (int)syscall(SYS_fcntl, set, F_DUPFD_CLOEXEC, FREE_NUMBER);
}

#ifdef SYS_dup2
static int set_by_dup2(int set)
{
	return (int)syscall(SYS_dup2, set, FREE_NUMBER);
}
#endif

static int set_by_dup3(int set)
{
	return (int)syscall(SYS_dup3, set, FREE_NUMBER, O_CLOEXEC);
}

/* Older C libraries do not have it. */
extern int pidfd_getfd(int pidfd, int fd, unsigned flags) __attribute__((weak));

static int got(int pidfd, int fd, unsigned flags)
{
	return pidfd_getfd ? pidfd_getfd(pidfd, fd, flags) :
			     (int)syscall(SYS_pidfd_getfd, pidfd, fd, flags);
}

static int set_by_pidfd(int set)
{
	int self = numbered_pidfd(), copy = got(self, set, 0);

	close(self);
	return copy;
}

static int set_by_pidfd_number(int set)
{
	int self = numbered_pidfd();
	int copy = (int)syscall(SYS_pidfd_getfd, self, set, 0);

	close(self);
	return copy;
}

/* Both numbers name one set, also where it got its members later. */
static void sets_copied_by_number(void)
{
	static int (*const ways[])(int set) = {
		set_by_dup, set_by_fcntl, set_by_dup3, set_by_pidfd, set_by_pidfd_number,
#ifdef SYS_dup2
		set_by_dup2,
#else
		set_by_dup3,
#endif
	};

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct epoll_event event = { .events = EPOLLIN };
		int pair[2], set = epoll_create1(0), copy = ways[i](set);

		SAY("way %zu: %s\n", i, err(copy));
		make_pair(pair);
		still_hears(pair[0], pair[1]);
		SAY("added: %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event)));
		send(pair[1], "x", 1, 0);
		SAY("of the copy: %d\n", epoll_wait(copy, &event, 1, 500));
		SAY("of the set: %d\n", epoll_wait(set, &event, 1, 500));
		close(set);
		SAY("of the copy alone: %d\n", epoll_wait(copy, &event, 1, 500));
		close(copy);
		close_pair(pair);
	}
}

/* A program may get an fd of another process, and that may be itself. */
static void sockets_got_by_pidfd(void)
{
	int self = numbered_pidfd(), other = eventfd(0, 0);

	for (int by_number = 0; by_number < 2; by_number++) {
		struct pollfd readable = { .events = POLLIN };
		int pair[2], copy;

		make_waiting_pair(pair);
		copy = by_number ? (int)syscall(SYS_pidfd_getfd, self, pair[0], 0) :
				   got(self, pair[0], 0);
		SAY("copy: %s\n", err(copy));
		receive(copy, 0);
		close(pair[0]);
		readable.fd = copy;
		SAY("poll: %d\n", poll(&readable, 1, 1000));
		receive(copy, MSG_DONTWAIT);
		still_hears(copy, pair[1]);
		close(copy);
		close(pair[1]);
	}
	SAY("none: %s\n", err(got(self, 1000, 0)));
	SAY("no pidfd: %s\n", err(got(other, 0, 0)));
}

const struct door number_doors[] = {
	SCENARIO(numbers_closed_unseen),
	SCENARIO(sets_copied_by_number),
	SCENARIO(sockets_got_by_pidfd),
	SCENARIO_END,
};
