/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The doors of the process: where a socket, or the whole program, comes in, goes out,
 * or is handed to somebody else. Each scenario prints what it saw; doors.sh runs it on
 * libc and under the test library, where loopback is an accelerated device, and the
 * outputs must be the same.
 *
 *   doors NAME     doors --list
 *   doors --read FD CNT, --read-env     what some of them become
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/support/sleeper.h"

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

extern char **environ;

/* In no process, though it is not near 0. */
#define NOWHERE ((void *)-1)

static const char *err(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

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

static void make_pair(int pair[2])
{
	struct sockaddr_in names[2];

	for (int i = 0; i < 2; i++)
		pair[i] = bound(&names[i]);
	for (int i = 0; i < 2; i++)
		if (connect(pair[i], (struct sockaddr *)&names[!i],
			    sizeof(names[0])) != 0)
			SAY("connect: %m\n");
}

static void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

static void receive(int fd, int flags)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, flags);

	SAY("recv: %zd %s %s\n", n, err(n), n > 0 ? buf : "");
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

/* Whether the socket still hears, and is still the library's where there is one. */
static void still_hears(int fd, int from)
{
	int (*has_object)(int) =
		(int (*)(int))dlsym(RTLD_DEFAULT, "vma_test_has_object");

	if (has_object && !has_object(fd))
		SAY("the library has lost the socket\n");
	if (send(from, "still here", 10, 0) != 10)
		SAY("send: %m\n");
	receive(fd, MSG_DONTWAIT);
}

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

/* -- sockets that are handed on ------------------------------------------------------- */

static char own_path[4096];

static const char *number(int value)
{
	static char text[4][16];
	static int next;

	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%d", value);
	return text[next];
}

/* What the new image does: `cnt` datagrams, each of which it waits for, and no more. */
static void read_all(int fd, int cnt)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < cnt; i++) {
		if (poll(&readable, 1, 3000) != 1)
			SAY("nothing comes\n");
		receive(fd, MSG_DONTWAIT);
	}
	receive(fd, MSG_DONTWAIT);
}

/* A pair of which the first one is accelerated, and has two datagrams: one that was
 * seen by a look, and one that nobody has looked for. */
static void make_waiting_pair(int pair[2])
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

static void ended(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	SAY("child: %#x\n", (unsigned)status);
}

static void exec_keeps_what_waits(void)
{
	int pair[2];

	make_waiting_pair(pair);
	execl(own_path, "doors", "--read", number(pair[0]), "2", (char *)NULL);
	SAY("execl: %m\n");
}

/* As programs upgrade themselves: a failed attempt, the number in the environment. */
static void exec_of_itself_keeps_what_waits(void)
{
	char *args[] = { (char *)"doors", (char *)"--read-env", NULL };
	int pair[2];

	make_waiting_pair(pair);
	fcntl(pair[1], F_SETFD, FD_CLOEXEC);
	setenv("DOORS_FD", number(pair[0]), 1);
	execv("/nowhere/doors", args);
	SAY("execv: %m\n");
	send(pair[1], "third", 5, 0);
	execvp(own_path, args);
	SAY("execvp: %m\n");
}

static void send_fd(int via, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	if (sendmsg(via, &msg, 0) != 1)
		SAY("sendmsg: %m\n");
}

static int receive_fd(int via)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(via, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The sender closes it at once. */
static void passed_to_another_process(void)
{
	int via[2], pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
		SAY("socketpair: %m\n");
	pid = fork();
	if (pid == 0) {
		read_all(receive_fd(via[1]), 3);
		_exit(0);
	}
	make_waiting_pair(pair);
	send_fd(via[0], pair[0]);
	close(pair[0]);
	send(pair[1], "third", 5, 0);
	ended(pid);
	close(pair[1]);
	close_pair(via);
}

/* By a copy in the child, and by leaving the fd open. */
static void spawned_children_read_what_waits(void)
{
	posix_spawn_file_actions_t actions;
	int pair[2];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		char *args[] = { (char *)"doors", (char *)"--read", NULL,
				 (char *)"3", NULL };

		make_waiting_pair(pair);
		fcntl(pair[1], F_SETFD, FD_CLOEXEC);
		args[2] = (char *)number(i == 0 ? 0 : pair[0]);
		posix_spawn_file_actions_init(&actions);
		if (i == 0)
			posix_spawn_file_actions_adddup2(&actions, pair[0], 0);
		if ((i == 0 ? posix_spawn : posix_spawnp)(&pid, own_path, &actions,
							  NULL, args, environ))
			SAY("posix_spawn fails\n");
		posix_spawn_file_actions_destroy(&actions);
		send(pair[1], "third", 5, 0);
		ended(pid);
		close_pair(pair);
	}
}

static void shells_read_what_waits(void)
{
	char command[sizeof(own_path) + 64], line[128];
	int pair[2];
	FILE *file;

	for (int i = 0; i < 2; i++) {
		make_waiting_pair(pair);
		snprintf(command, sizeof(command), "exec %s --read %d 2",
			 own_path, pair[0]);
		if (i == 0) {
			SAY("system: %d\n", system(command));
			continue;
		}
		file = popen(command, "r");
		while (file && fgets(line, sizeof(line), file))
			SAY("%s", line);
		SAY("pclose: %d\n", pclose(file));
	}
}

static int read_in_clone(void *fd)
{
	read_all(*(int *)fd, 3);
	_exit(0);
}

/* A child that libc does not make, or not by fork: its calls go to the kernel's
 * socket, and the parent's go on. */
static void cloned_children_read_what_waits(void)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	int pair[2];
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		make_waiting_pair(pair);
		switch (i) {
		case 0:
			pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
			break;
		case 1:
			pid = clone(read_in_clone, stack + sizeof(stack),
				    SIGCHLD, &pair[0]);
			break;
		default:
			pid = _Fork();
		}
		if (pid == 0)
			read_in_clone(&pair[0]);
		send(pair[1], "third", 5, 0);
		ended(pid);
		still_hears(pair[0], pair[1]);
		close_pair(pair);
	}
}

/* -- filters of system calls ----------------------------------------------------------- */

/* What the program itself needs from then on, and nothing that a library might: whoever
 * calls anything else is killed. */
static const int allowed[] = {
	SYS_read, SYS_write, SYS_recvfrom, SYS_sendto, SYS_close, SYS_socket,
	SYS_clock_nanosleep, SYS_exit_group, SYS_exit, SYS_futex, SYS_brk,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_getpid, SYS_gettid,
	SYS_epoll_wait,
#if HAS_THREAD_SANITIZER
	SYS_nanosleep, SYS_gettimeofday, /* its own thread */
#endif
};

static struct sock_filter filter_code[4 + 2 * ARRAY_LEN(allowed)];

static struct sock_fprog filter(void)
{
	unsigned n = 0;

	filter_code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		filter_code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		filter_code[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter_code[n++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return (struct sock_fprog){ (unsigned short)n, filter_code };
}

static _Atomic bool is_there;

static void *sleep_in_kernel(void *arg)
{
	(void)arg;
	/* whatever libc has to do for a new thread has been done */
	atomic_store(&is_there, true);
	sleep(60);
	return NULL;
}

static void live_under_filter(const int pair[2], int epfd)
{
	struct epoll_event event = { 0 };
	int fd;

	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	send(pair[1], "third", 5, 0);
	receive(pair[0], 0);
	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	SAY("another: %d\n", fd > pair[1]);
	close(fd);
	/* whatever the library does each second */
	sleep(2);
	SAY("alive\n");
	close_pair(pair);
}

static void filter_for_one_thread(void)
{
	struct sock_fprog program = filter();
	int pair[2], epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	make_waiting_pair(pair);
	epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &event);
	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	SAY("no new privileges: %d\n",
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY("nothing: %s\n", err(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
					NULL)));
	SAY("nothing: %s\n", err(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					 0, NULL)));
	SAY("mode: %d\n", prctl(PR_GET_SECCOMP));
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	still_hears(pair[0], pair[1]);
	send(pair[1], "first", 5, 0);
	send(pair[1], "second", 6, 0);
	SAY("filter: %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
				   &program));
	live_under_filter(pair, epfd);
}

static void filter_for_all_threads(void)
{
	struct sock_fprog program = filter();
	int pair[2], epfd = epoll_create1(0);
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_in_kernel, NULL);
	while (!atomic_load(&is_there))
		usleep(1000);
	make_waiting_pair(pair);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	SAY("filter: %ld\n", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_TSYNC, &program));
	live_under_filter(pair, epfd);
}

/* -- readers that nobody sees ----------------------------------------------------------- */

/* As in programs that contain system calls of their own. */
static long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#else
	long (*libc)(long, ...) = (long (*)(long, ...))dlsym(
		dlopen("libc.so.6", RTLD_NOW), "syscall");

	return libc(number, a, b, c, d, e, f);
#endif
}

struct ring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void map_ring(struct ring *ring)
{
	size_t sq = ring->params.sq_off.array +
		    ring->params.sq_entries * sizeof(unsigned);
	size_t cq = ring->params.cq_off.cqes +
		    ring->params.cq_entries * sizeof(struct io_uring_cqe);

	ring->sq = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			IORING_OFF_SQ_RING);
	ring->cq = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, ring->params.sq_entries * sizeof(*ring->sqes),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  IORING_OFF_SQES);
}

/* False: the kernel has none for us. */
static bool make_ring(struct ring *ring, bool by_libc)
{
	memset(ring, 0, sizeof(*ring));
	ring->fd = (int)(by_libc ? syscall(SYS_io_uring_setup, 4, &ring->params) :
				   call_kernel(SYS_io_uring_setup, 4,
					       (long)&ring->params, 0, 0, 0, 0));
	if (ring->fd >= 0)
		map_ring(ring);
	return ring->fd >= 0;
}

static unsigned *word(char *base, unsigned offset)
{
	return (unsigned *)(void *)(base + offset);
}

/* One datagram by the ring, which waits for it. */
static void submit_recv(struct ring *ring, int fd, char *buf, size_t len)
{
	unsigned *tail = word(ring->sq, ring->params.sq_off.tail);
	unsigned at = *tail & *word(ring->sq, ring->params.sq_off.ring_mask);
	struct io_uring_sqe *sqe = &ring->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_RECV;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)buf;
	sqe->len = (unsigned)len;
	word(ring->sq, ring->params.sq_off.array)[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (call_kernel(SYS_io_uring_enter, ring->fd, 1, 0, 0, 0, 0) != 1)
		SAY("io_uring_enter fails\n");
}

/* Its result, or -ETIME after five seconds. */
static int await_recv(struct ring *ring)
{
	unsigned *head = word(ring->cq, ring->params.cq_off.head);
	unsigned *tail = word(ring->cq, ring->params.cq_off.tail);
	struct io_uring_cqe *cqes =
		(void *)(ring->cq + ring->params.cq_off.cqes);

	for (int i = 0; i < 500; i++) {
		if (__atomic_load_n(tail, __ATOMIC_ACQUIRE) != *head) {
			int result = cqes[*head & *word(ring->cq,
				ring->params.cq_off.ring_mask)].res;

			__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
			return result;
		}
		usleep(10000);
	}
	return -ETIME;
}

static void receive_by_ring(struct ring *ring, int fd, int from, const char *what)
{
	char buf[64] = "";
	int result;

	submit_recv(ring, fd, buf, sizeof(buf) - 1);
	if (what)
		send(from, what, strlen(what), 0);
	result = await_recv(ring);
	SAY("by ring: %d %s\n", result, buf);
}

/* As libuv does: without a ring it does the same by other calls. */
static void ring_with_a_way_around(void)
{
	struct ring ring;
	int pair[2];
	bool is_made = make_ring(&ring, true);

	make_pair(pair);
	if (is_made) {
		receive_by_ring(&ring, pair[0], pair[1], "first");
	} else {
		send(pair[1], "first", 5, 0);
		SAY("by ring: 5 first\n");
		recv(pair[0], (char[8]){ "" }, 8, 0);
	}
	/* and stays accelerated */
	sleep(2);
	still_hears(pair[0], pair[1]);
	close_pair(pair);
}

static void ring_of_its_own_before_sockets(void)
{
	struct ring ring;
	int pair[2];

	if (!make_ring(&ring, false))
		SAY("no ring\n");
	make_pair(pair);
	receive_by_ring(&ring, pair[0], pair[1], "first");
	receive_by_ring(&ring, pair[0], pair[1], "second");
	close_pair(pair);
}

/* What waits is the ring's, too. */
static void ring_of_its_own_after_sockets(void)
{
	struct ring ring;
	int pair[2];

	make_waiting_pair(pair);
	if (!make_ring(&ring, false))
		SAY("no ring\n");
	receive_by_ring(&ring, pair[0], pair[1], NULL);
	receive_by_ring(&ring, pair[0], pair[1], NULL);
	receive_by_ring(&ring, pair[0], pair[1], "third");
	close_pair(pair);
}

static void aio_reads_what_waits(void)
{
	char buf[64] = "";
	struct iocb iocb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			     .aio_buf = (uintptr_t)buf,
			     .aio_nbytes = sizeof(buf) - 1 };
	struct iocb *list[] = { &iocb };
	aio_context_t context = 0;
	struct io_event event = { 0 };
	int pair[2], other[2];

	make_waiting_pair(pair);
	make_pair(other);
	SAY("io_setup: %ld\n", syscall(SYS_io_setup, 4, &context));
	for (int i = 0; i < 2; i++) {
		iocb.aio_fildes = (unsigned)pair[0];
		SAY("io_submit: %ld\n", syscall(SYS_io_submit, context, 1, list));
		SAY("io_getevents: %ld\n",
		    syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
		SAY("read: %lld %s\n", (long long)event.res, buf);
		memset(buf, 0, sizeof(buf));
	}
	SAY("none: %s\n", err(syscall(SYS_io_submit, context, 1, NOWHERE)));
	/* another one's are not concerned */
	still_hears(other[0], other[1]);
	close_pair(pair);
	close_pair(other);
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
	int hanging = 0, status;
	pthread_t thread;

	close(socket(AF_INET, SOCK_DGRAM, 0));
	pthread_create(&thread, NULL, make_sockets, NULL);
	for (int i = 0; i < 1000 && !hanging; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(2);
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

#define SCENARIO(name) { #name, name }

static const struct door {
	const char *name;
	void (*run)(void);
} doors[] = {
	SCENARIO(pointers_beyond_everything),
	SCENARIO(counts_beyond_everything),
	SCENARIO(select_beyond_its_size),
	SCENARIO(failing_copies_change_nothing),
	SCENARIO(failing_ranges_close_nothing),
	SCENARIO(signals_for_datagrams),
	SCENARIO(stamps_of_the_last_datagram),
	SCENARIO(last_thread_ends),
	SCENARIO(crash_handler_ends_the_process),
	SCENARIO(exec_keeps_what_waits),
	SCENARIO(exec_of_itself_keeps_what_waits),
	SCENARIO(passed_to_another_process),
	SCENARIO(spawned_children_read_what_waits),
	SCENARIO(shells_read_what_waits),
	SCENARIO(cloned_children_read_what_waits),
	SCENARIO(filter_for_one_thread),
	SCENARIO(filter_for_all_threads),
	SCENARIO(ring_with_a_way_around),
	SCENARIO(ring_of_its_own_before_sockets),
	SCENARIO(ring_of_its_own_after_sockets),
	SCENARIO(aio_reads_what_waits),
	SCENARIO(vfork_waits_for_its_child_alone),
	SCENARIO(child_makes_sockets),
};

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
	for (size_t i = 0; i < ARRAY_LEN(doors); i++) {
		if (is_listing) {
			puts(doors[i].name);
		} else if (argc >= 2 && strcmp(argv[1], doors[i].name) == 0) {
			doors[i].run();
			return 0;
		}
	}
	if (!is_listing)
		fprintf(stderr, "usage: doors NAME | --list\n");
	return is_listing ? 0 : 2;
}
