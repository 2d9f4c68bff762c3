/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The doors of the process: where a socket, or the whole program, comes in, goes out,
 * or is handed to somebody else. Each scenario prints what it saw; doors.sh runs it on
 * libc and under the test library, where loopback is an accelerated device, and the
 * outputs must be the same.
 *
 * The scenarios are here, in doors_handed.c, doors_numbers.c and doors_readers.c.
 *
 *   doors NAME     doors --list
 *   doors --read FD CNT, --read-env     what some of them become
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/doors.h"
#include "tests/support/sleeper.h"

char own_path[4096];

/* -- what they share ------------------------------------------------------------------ */

/* Bound to a free port of loopback, which *name tells. */
static int bound(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (fd < 0 || bind(fd, (struct sockaddr *)name, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)name, &len) != 0)
		SAY("bound: %m\n");
	return fd;
}

void make_pair(int pair[2])
{
	struct sockaddr_in names[2];

	for (int i = 0; i < 2; i++)
		pair[i] = bound(&names[i]);
	for (int i = 0; i < 2; i++)
		if (connect(pair[i], (struct sockaddr *)&names[!i],
			    sizeof(names[0])) != 0)
			SAY("connect: %m\n");
}

void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

void receive(int fd, int flags)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, flags);

	SAY("recv: %zd %s %s\n", n, err(n), n > 0 ? buf : "");
}

void still_hears(int fd, int from)
{
	int (*has_object)(int) =
		(int (*)(int))dlsym(RTLD_DEFAULT, "vma_test_has_object");

	if (has_object && !has_object(fd))
		SAY("the library has lost the socket\n");
	if (send(from, "still here", 10, 0) != 10)
		SAY("send: %m\n");
	receive(fd, MSG_DONTWAIT);
}

void make_waiting_pair(int pair[2])
{
	struct pollfd readable = { .events = POLLIN };

	make_pair(pair);
	still_hears(pair[0], pair[1]);
	send(pair[1], "first", 5, 0);
	readable.fd = pair[0];
	if (poll(&readable, 1, 1000) != 1)
		SAY("not readable\n");
	send(pair[1], "second", 6, 0);
}

/* -- pointers and counts ------------------------------------------------------------ */

/* None of them may be looked at before the kernel does, on whichever socket. */
static void pointers_beyond_everything(void)
{
	struct iovec iov = { (void *)"x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr batch = { .msg_hdr = msg };
	struct timeval none = { 0 };
	int pair[2], local[2], fds[2];
	volatile size_t last = (size_t)-8;
	char option[64] = "";

	make_pair(pair);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, local) != 0)
		SAY("socketpair: %m\n");
	fds[0] = local[0];
	fds[1] = pair[0];
	for (int i = 0; i < 2; i++) {
		int fd = fds[i];

		msg.msg_control = NOWHERE;
		msg.msg_controllen = 64;
		batch.msg_hdr = msg;
		SAY("control: %s\n", err(sendmsg(fd, &msg, 0)));
		SAY("in a batch: %s\n", err(sendmmsg(fd, &batch, 1, 0)));
		msg.msg_control = (void *)last;
		SAY("at the end: %s\n", err(sendmsg(fd, &msg, 0)));
		SAY("message: %s\n", err(sendmsg(fd, NOWHERE, 0)));
		SAY("batch: %s\n", err(sendmmsg(fd, NOWHERE, 2, 0)));
		SAY("long batch: %s\n", err(sendmmsg(fd, NOWHERE, -1u, 0)));
		SAY("receive: %s\n", err(recvmsg(fd, NOWHERE, MSG_DONTWAIT)));
		SAY("receive a batch: %s\n",
		    err(recvmmsg(fd, NOWHERE, 2, MSG_DONTWAIT, NULL)));
		SAY("option: %s\n", err(setsockopt(fd, SOL_SOCKET, SO_RCVBUF,
						   option, (socklen_t)-1)));
		SAY("filter: %s\n", err(setsockopt(fd, SOL_SOCKET,
						   SO_ATTACH_FILTER, option,
						   INT32_MAX)));
	}
	SAY("sets: %s\n", err(select(64, NOWHERE, NULL, NULL, &none)));
	SAY("number: %s\n", err(select(-1, NULL, NULL, NULL, &none)));
	close_pair(pair);
	close_pair(local);
}

static void counts_beyond_everything(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd fds[2] = { { .events = POLLIN } };
	volatile nfds_t many = (unsigned)-1, most = -1, wraps = -1ul / 8 + 2;
	volatile int largest = INT32_MAX, negative = -1;
	int pair[2], epfd = epoll_create1(0);

	make_pair(pair);
	fds[0].fd = pair[0];
	SAY("poll: %s\n", err(poll(fds, many, 0)));
	SAY("poll: %s\n", err(poll(fds, most, 0)));
	SAY("poll: %s\n", err(poll(fds, wraps, 0)));
	SAY("ppoll: %s\n", err(ppoll(fds, many, NULL, NULL)));
	SAY("nothing: %s\n", err(poll(NOWHERE, 1, 0)));
	SAY("add: %s\n", err(epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &event)));
	SAY("epoll_wait: %s\n", err(epoll_wait(epfd, &event, largest, 0)));
	SAY("epoll_wait: %s\n", err(epoll_wait(epfd, &event, negative, 0)));
	SAY("epoll_wait: %s\n", err(epoll_wait(epfd, &event, 0, 0)));
	SAY("waits: %d\n", epoll_wait(epfd, &event, 1, 0));
	close(epfd);
	close_pair(pair);
}

enum { BIG_SET = 4096, BIG_FD = 3000 };

static void *send_later(void *arg)
{
	sleeper_await(getpid());
	send(*(int *)arg, "late", 4, 0);
	return NULL;
}

/* Sets that the caller has made larger than FD_SETSIZE, as servers with many
 * connections do. */
static void select_beyond_its_size(void)
{
	struct rlimit limit = { BIG_SET, 1 << 20 };
	unsigned long in[BIG_SET / 64] = { 0 };
	struct timeval patience = { 10, 0 }, none = { 0 };
	unsigned long *word = &in[BIG_FD / 64];
	int pair[2], n;
	pthread_t thread;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = BIG_SET;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		SAY("setrlimit: %m\n");
	make_pair(pair);
	if (dup2(pair[0], BIG_FD) != BIG_FD)
		SAY("dup2: %m\n");
	*word = 1ul << BIG_FD % 64;
	n = select(BIG_FD + 1, (fd_set *)(void *)in, NULL, NULL, &none);
	SAY("nothing: %d %d\n", n, *word != 0);
	*word = 1ul << BIG_FD % 64;
	pthread_create(&thread, NULL, send_later, &pair[1]);
	n = select(BIG_FD + 1, (fd_set *)(void *)in, NULL, NULL, &patience);
	SAY("ready: %d %d\n", n, *word == 1ul << BIG_FD % 64);
	pthread_join(thread, NULL);
	receive(BIG_FD, MSG_DONTWAIT);
	/* The kernel looks no further than there can be fds. */
	memset(in, 0, sizeof(in));
	n = select(1 << 30, (fd_set *)(void *)in, NULL, NULL, &none);
	SAY("all: %d\n", n);
	in[0] = 1ul << 63;
	n = select(BIG_SET, (fd_set *)(void *)in, NULL, NULL, &none);
	SAY("closed: %s\n", err(n));
	close(BIG_FD);
	close_pair(pair);
}

/* -- copies and closes that fail ---------------------------------------------------- */

/* Nothing has happened to what the number named. */
static void failing_copies_change_nothing(void)
{
	struct rlimit limit, less;
	int pair[2], other[2], result;

	make_pair(pair);
	make_pair(other);
	result = dup3(other[0], pair[0], O_NONBLOCK);
	SAY("flags: %s\n", err(result));
	result = dup3(other[0], pair[0], -1);
	SAY("flags: %s\n", err(result));
	result = dup3(900, pair[0], 0);
	SAY("of nothing: %s\n", err(result));
	result = dup3(pair[0], pair[0], 0);
	SAY("to itself: %s\n", err(result));
	still_hears(pair[0], pair[1]);
	getrlimit(RLIMIT_NOFILE, &limit);
	less = limit;
	less.rlim_cur = (rlim_t)pair[0];
	setrlimit(RLIMIT_NOFILE, &less);
	result = dup2(other[0], pair[0]);
	SAY("beyond the limit: %s\n", err(result));
	result = dup3(other[0], pair[0], O_CLOEXEC);
	SAY("beyond the limit: %s\n", err(result));
	result = dup(other[0]);
	SAY("beyond the limit: %s\n", err(result));
	setrlimit(RLIMIT_NOFILE, &limit);
	result = dup2(other[0], -1);
	SAY("negative: %s\n", err(result));
	still_hears(pair[0], pair[1]);
	still_hears(other[0], other[1]);
	close_pair(pair);
	close_pair(other);
}

static void failing_ranges_close_nothing(void)
{
	int pair[2], result;

	make_pair(pair);
	result = close_range((unsigned)pair[0], (unsigned)pair[1], 1 << 9);
	SAY("flags: %s\n", err(result));
	result = close_range((unsigned)pair[0], ~0u, -1);
	SAY("flags: %s\n", err(result));
	result = close_range((unsigned)pair[1], (unsigned)pair[0], 0);
	SAY("reversed: %s\n", err(result));
	still_hears(pair[0], pair[1]);
	result = close_range((unsigned)pair[0], (unsigned)pair[1],
			     CLOSE_RANGE_CLOEXEC);
	SAY("at exec: %s %d\n", err(result), fcntl(pair[0], F_GETFD));
	still_hears(pair[0], pair[1]);
	result = close_range((unsigned)pair[0], (unsigned)pair[1],
			     CLOSE_RANGE_UNSHARE);
	SAY("unshared: %s\n", err(result));
	result = close(pair[0]);
	SAY("closed: %s\n", err(result));
}

/* -- calls that want a process to have one thread -------------------------------------- */

/* In a child that has used sockets, and goes on with one afterwards. */
static void alone(const char *what, long (*call)(void))
{
	pid_t pid = fork();
	int pair[2], status;
	long result;

	if (pid == 0) {
		make_pair(pair);
		still_hears(pair[0], pair[1]);
		errno = 0;
		result = call();
		SAY("%s: %s\n", what, err((int)result));
		still_hears(pair[0], pair[1]);
		send(pair[1], "waits", 5, 0);
		receive(pair[0], 0);
		close_pair(pair);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	SAY("status: %d\n", status);
}

static long own_users(void)
{
	return unshare(CLONE_NEWUSER);
}

static long own_users_by_number(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long no_other_threads(void)
{
	return unshare(CLONE_THREAD | CLONE_VM | CLONE_SIGHAND);
}

static long enter(const char *path, int type)
{
	int fd = open(path, O_RDONLY);
	long result = setns(fd, type);

	close(fd);
	return result;
}

static long other_mounts(void)
{
	return enter("/proc/self/ns/mnt", CLONE_NEWNS);
}

static long other_mounts_by_number(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);
	long result = syscall(SYS_setns, fd, 0);

	close(fd);
	return result;
}

static long other_times(void)
{
	return enter("/proc/self/ns/time", CLONE_NEWTIME);
}

static void namespaces_of_a_single_thread(void)
{
	alone("users", own_users);
	alone("users, by number", own_users_by_number);
	alone("threads", no_other_threads);
	alone("mounts", other_mounts);
	alone("mounts, by number", other_mounts_by_number);
	alone("times", other_times);
}

/* What it closes is closed, and nobody keeps it. */
static void ends_are_heard(const char *what)
{
	int fds[2];
	char byte;

	if (pipe2(fds, O_NONBLOCK) != 0)
		return;
	close(fds[1]);
	SAY("%s: %zd\n", what, read(fds[0], &byte, 1));
	close(fds[0]);
}

/* To a program with one thread, fds that it shares with nobody are its own already. */
/* Its children are another namespace's, and it can have no new thread. */
static void unshare_processes(int with)
{
	int pair[2];

	make_waiting_pair(pair);
	SAY("unshare: %s\n", err(unshare(CLONE_NEWPID | with)));
	receive(pair[0], MSG_DONTWAIT);
	send(pair[1], "third", 5, 0);
	receive(pair[0], 0);
	receive(pair[0], 0);
	close_pair(pair);
}

static void processes_and_users_of_another_namespace(void)
{
	unshare_processes(CLONE_NEWUSER);
}

static void processes_of_another_namespace(void)
{
	unshare_processes(CLONE_FILES);
}

static void fds_of_a_single_thread(void)
{
	int pair[2], other[2], fds[2], result;
	char byte;

	make_pair(pair);
	make_pair(other);
	still_hears(pair[0], pair[1]);
	if (pipe2(fds, O_NONBLOCK) != 0)
		return;
	result = unshare(CLONE_FILES);
	SAY("unshare: %s\n", err(result));
	close(fds[1]);
	SAY("end: %zd\n", read(fds[0], &byte, 1));
	close(fds[0]);
	ends_are_heard("and of later ones");
	still_hears(pair[0], pair[1]);
	if (pipe2(fds, O_NONBLOCK) != 0)
		return;
	result = close_range((unsigned)fds[1], (unsigned)fds[1], CLOSE_RANGE_UNSHARE);
	SAY("range: %s\n", err(result));
	SAY("end: %zd\n", read(fds[0], &byte, 1));
	result = (int)syscall(SYS_close_range, other[0], other[1],
			      CLOSE_RANGE_UNSHARE);
	SAY("range, by number: %s\n", err(result));
	result = close(other[0]);
	SAY("closed: %s\n", err(result));
	still_hears(pair[0], pair[1]);
	close_pair(pair);
}

/* -- fds that some threads have and others do not --------------------------------------- */

static int parted_fd;
static atomic_int parted;

/* The number that it closes is another file's in it alone. */
static void *part(void *arg)
{
	int (*getting_own)(void) = arg, other;
	char byte;

	SAY("part: %s\n", err(getting_own()));
	close(parted_fd);
	other = open("/dev/null", O_RDONLY);
	SAY("in its place: %d, %zd\n", other == parted_fd, read(other, &byte, 1));
	atomic_store(&parted, 1);
	while (atomic_load(&parted) == 1)
		usleep(1000);
	return NULL;
}

static void *idle(void *arg)
{
	while (atomic_load(&parted) != 2)
		usleep(1000);
	return arg;
}

static int by_unshare(void)
{
	return unshare(CLONE_FILES);
}

/* -1 has the flag that parts fds, too. */
static void failing_ranges_of_two_threads(void)
{
	pthread_t thread;
	int pair[2], result;

	make_pair(pair);
	atomic_store(&parted, 0);
	pthread_create(&thread, NULL, idle, NULL);
	result = close_range((unsigned)pair[0], ~0u, -1);
	SAY("flags: %s\n", err(result));
	result = close_range((unsigned)pair[1], (unsigned)pair[0], CLOSE_RANGE_UNSHARE);
	SAY("reversed: %s\n", err(result));
	still_hears(pair[0], pair[1]);
	atomic_store(&parted, 2);
	pthread_join(thread, NULL);
	close_pair(pair);
}

/* What threads share by nature. */
static void failing_unshares_of_two_threads(void)
{
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	atomic_store(&parted, 0);
	pthread_create(&thread, NULL, idle, NULL);
	SAY("memory: %s\n", err(unshare(CLONE_FILES | CLONE_VM)));
	SAY("users: %s\n", err(unshare(CLONE_FILES | CLONE_NEWUSER)));
	SAY("by number: %s\n",
	    err((int)syscall(SYS_unshare, CLONE_FILES | CLONE_SIGHAND)));
	still_hears(pair[0], pair[1]);
	atomic_store(&parted, 2);
	pthread_join(thread, NULL);
	close_pair(pair);
}

static int by_number(void)
{
	return (int)syscall(SYS_unshare, CLONE_FILES);
}

static int by_range(void)
{
	return close_range(700, 800, CLOSE_RANGE_UNSHARE);
}

static void parted_by(int (*getting_own)(void))
{
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	still_hears(pair[0], pair[1]);
	send(pair[1], "waits", 5, 0);
	parted_fd = pair[0];
	atomic_store(&parted, 0);
	pthread_create(&thread, NULL, part, (void *)getting_own);
	while (!atomic_load(&parted))
		usleep(1000);
	receive(pair[0], 0);
	send(pair[1], "goes on", 7, 0);
	receive(pair[0], 0);
	atomic_store(&parted, 2);
	pthread_join(thread, NULL);
	close_pair(pair);
}

static void fds_of_one_of_two_threads(void)
{
	parted_by(by_unshare);
}

static void fds_of_one_of_two_threads_by_number(void)
{
	parted_by(by_number);
}

static void fds_of_one_of_two_threads_by_a_range(void)
{
	parted_by(by_range);
}

static int sharer(void *arg)
{
	int *pair = arg;

	receive(pair[0], 0);
	send(pair[1], "goes on", 7, 0);
	receive(pair[0], 0);
	SAY("close: %s\n", err(close(pair[0])));
	return 0;
}

/* A child has memory of its own, and our fds. */
static void child_shares(bool by_its_number)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int pair[2], status;
	pid_t pid;

	make_pair(pair);
	still_hears(pair[0], pair[1]);
	send(pair[1], "waits", 5, 0);
	if (by_its_number)
		pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	else
		pid = clone(sharer, stack + sizeof(stack), CLONE_FILES | SIGCHLD,
			    pair);
	if (pid == 0)
		_exit(sharer(pair));
	waitpid(pid, &status, 0);
	SAY("status: %d\n", status);
	SAY("close: %s\n", err(close(pair[0])));
	close(pair[1]);
}

static void child_shares_fds(void)
{
	child_shares(false);
}

static void child_shares_fds_by_number(void)
{
	child_shares(true);
}

/* -- what the kernel does on its own --------------------------------------------------- */

static volatile sig_atomic_t signal_cnt, last_signal;

static void count_signal(int sig)
{
	last_signal = sig;
	signal_cnt++;
}

/* A signal for a datagram, however it is asked for. */
static void signals_for_datagrams(void)
{
	int pair[2], on = 1;

	signal(SIGIO, count_signal);
	signal(SIGRTMIN, count_signal);
	for (int i = 0; i < 3; i++) {
		make_pair(pair);
		still_hears(pair[0], pair[1]);
		send(pair[1], "waits", 5, 0);
		fcntl(pair[0], F_SETOWN, getpid());
		if (i == 2)
			fcntl(pair[0], F_SETSIG, SIGRTMIN);
		if (i == 1)
			SAY("FIOASYNC: %d\n", ioctl(pair[0], FIOASYNC, &on));
		else
			SAY("O_ASYNC: %d\n", fcntl(pair[0], F_SETFL, O_ASYNC));
		signal_cnt = 0;
		send(pair[1], "heard", 5, 0);
		for (int k = 0; k < 100 && !signal_cnt; k++)
			usleep(10000);
		SAY("signal: %d, %s\n", signal_cnt > 0,
		    last_signal == SIGIO ? "SIGIO" : "SIGRTMIN");
		receive(pair[0], MSG_DONTWAIT);
		receive(pair[0], MSG_DONTWAIT);
		close_pair(pair);
	}
}

static void say_stamp(int fd, struct timespec *ts)
{
	struct timespec now, last = *ts;
	int result = ioctl(fd, SIOCGSTAMPNS, ts);
	struct timeval tv = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	if (result != 0) {
		SAY("stamp: %s\n", err(result));
		return;
	}
	SAY("stamp: of %s, %s\n",
	    ts->tv_sec <= now.tv_sec && ts->tv_sec >= now.tv_sec - 2 ? "now" :
								      "another time",
	    ts->tv_sec == last.tv_sec && ts->tv_nsec == last.tv_nsec ?
		    "the same" :
		    "a new one");
	result = ioctl(fd, SIOCGSTAMP, &tv);
	SAY("in microseconds: %d %d\n", result,
	    tv.tv_sec == ts->tv_sec && tv.tv_usec == ts->tv_nsec / 1000);
}

static void stamps_of_the_last_datagram(void)
{
	struct timespec ts = { 0 };
	int pair[2];

	make_pair(pair);
	say_stamp(pair[0], &ts);
	still_hears(pair[0], pair[1]);
	say_stamp(pair[0], &ts);
	say_stamp(pair[0], &ts);
	close_pair(pair);
	make_pair(pair);
	still_hears(pair[0], pair[1]);
	send(pair[1], "waits", 5, 0);
	say_stamp(pair[0], &ts);
	say_stamp(pair[0], &ts);
	receive(pair[0], MSG_DONTWAIT);
	say_stamp(pair[0], &ts);
	close_pair(pair);
}

/* -- the end of the process --------------------------------------------------------- */

static void say_exit(void)
{
	SAY("handlers run at exit\n");
}

static void *outlive_main(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	SAY("the last thread ends\n");
	return NULL;
}

/* A process whose threads have all ended is over, with exit handlers, in no time. */
static void last_thread_ends(void)
{
	static pthread_t main_thread;
	pthread_t thread;
	int pair[2];

	main_thread = pthread_self();
	make_pair(pair);
	still_hears(pair[0], pair[1]);
	atexit(say_exit);
	alarm(5);
	pthread_create(&thread, NULL, outlive_main, &main_thread);
	pthread_exit(NULL);
}

static void end_at_once(int sig)
{
	(void)sig;
	_exit(0);
}

/* The child ends after its parent, which alone writes to the pipe. */
static void outlive_parent(const int parent[2])
{
	char byte;

	close(parent[1]);
	(void)!read(parent[0], &byte, 1);
	_exit(0);
}

/* Linux says EFAULT. Our copy faults, as libc's memcpy would, and under a lock; the
 * program's handler for that ends the process all the same. A child has the socket,
 * too, so that there is something to do before the end. */
static void crash_handler_ends_the_process(void)
{
	void *nowhere = mmap(NULL, 4096, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int pair[2], parent[2];
	pid_t pid;

	make_pair(pair);
	still_hears(pair[0], pair[1]);
	if (pipe(parent) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0)
		outlive_parent(parent);
	signal(SIGSEGV, end_at_once);
	alarm(5);
	send(pair[0], nowhere, 40, 0);
	end_at_once(0);
}

/* -- forks -------------------------------------------------------------------------- */

static _Atomic bool is_over;

enum { SLEEPERS = 200 };

/* Makes children that live until the end of the pipe. */
static void *fork_sleepers(void *arg)
{
	for (int i = 0; i < SLEEPERS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			outlive_parent(arg);
		/* the other one has its turn */
		usleep(500);
	}
	atomic_store(&is_over, true);
	return NULL;
}

/* However many children others have that live on: with one of them in the way it would
 * wait for ever. */
static void vfork_waits_for_its_child_alone(void)
{
	int pair[2], alive[2];
	pthread_t thread;

	make_pair(pair);
	if (pipe(alive) != 0)
		SAY("pipe: %m\n");
	pthread_create(&thread, NULL, fork_sleepers, alive);
	do {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	} while (!atomic_load(&is_over));
	pthread_join(thread, NULL);
	SAY("all vforks have ended\n");
	close(alive[1]);
	while (wait(NULL) > 0)
		;
	close_pair(pair);
}

static void *make_sockets(void *arg)
{
	(void)arg;
	while (!atomic_load(&is_over))
		close(socket(AF_INET, SOCK_DGRAM, 0));
	return NULL;
}

/* Whatever other threads were about at the moment of the fork. */
static void child_makes_sockets(void)
{
	/* under a sanitizer a fork may take 30 ms */
	time_t end = time(NULL) + 10;
	int hanging = 0, status;
	pthread_t thread;

	close(socket(AF_INET, SOCK_DGRAM, 0));
	pthread_create(&thread, NULL, make_sockets, NULL);
	for (int i = 0; i < 1000 && !hanging && time(NULL) < end; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(15);
			close(socket(AF_INET, SOCK_DGRAM, 0));
			_exit(0);
		}
		waitpid(pid, &status, 0);
		hanging = WIFSIGNALED(status);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	SAY("hanging: %d\n", hanging);
}

/* -- the runner --------------------------------------------------------------------- */

static const struct door doors[] = {
	SCENARIO(pointers_beyond_everything),
	SCENARIO(counts_beyond_everything),
	SCENARIO(select_beyond_its_size),
	SCENARIO(failing_copies_change_nothing),
	SCENARIO(failing_ranges_close_nothing),
	SCENARIO(failing_ranges_of_two_threads),
	SCENARIO(failing_unshares_of_two_threads),
	SCENARIO(namespaces_of_a_single_thread),
	SCENARIO(fds_of_a_single_thread),
	SCENARIO(processes_of_another_namespace),
	SCENARIO(processes_and_users_of_another_namespace),
	SCENARIO(fds_of_one_of_two_threads),
	SCENARIO(fds_of_one_of_two_threads_by_number),
	SCENARIO(fds_of_one_of_two_threads_by_a_range),
	SCENARIO(child_shares_fds),
	SCENARIO(child_shares_fds_by_number),
	SCENARIO(signals_for_datagrams),
	SCENARIO(stamps_of_the_last_datagram),
	SCENARIO(last_thread_ends),
	SCENARIO(crash_handler_ends_the_process),
	SCENARIO(vfork_waits_for_its_child_alone),
	SCENARIO(child_makes_sockets),
	SCENARIO_END,
};

static const struct door *const lists[] = { doors, handed_doors, number_doors,
					     reader_doors };

int main(int argc, char **argv)
{
	bool is_listing = argc == 2 && strcmp(argv[1], "--list") == 0;

	if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0)
		return 1;
	if (argc == 4 && strcmp(argv[1], "--read") == 0) {
		read_all(atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--read-env") == 0) {
		read_all(atoi(getenv("DOORS_FD")), 3);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct door *door = lists[i]; door->name; door++) {
			if (is_listing) {
				puts(door->name);
			} else if (argc >= 2 && strcmp(argv[1], door->name) == 0) {
				door->run();
				return 0;
			}
		}
	if (!is_listing)
		fprintf(stderr, "usage: doors NAME | --list\n");
	return is_listing ? 0 : 2;
}
