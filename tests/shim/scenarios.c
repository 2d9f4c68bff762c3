/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Things programs do with sockets that take more than one call: threads, fork,
 * descriptors passed around, handlers that jump. Each scenario prints what it
 * saw; scenarios.sh runs it on libc and under the library, and the outputs must
 * be the same. Where the test library is present a scenario also checks that it
 * left nothing behind, and says so if not.
 *
 *   scenarios NAME     scenarios --list
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/sleeper.h"
#include "tests/support/unseen.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

extern char **environ;

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

/* A connected pair over TCP. */
static void connect_pair(int pair[2])
{
	struct sockaddr_in addr = loopback();
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	bind(listener, (struct sockaddr *)&addr, len);
	listen(listener, 5);
	getsockname(listener, (struct sockaddr *)&addr, &len);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(pair[0], (struct sockaddr *)&addr, len) != 0)
		SAY("connect: %m\n");
	pair[1] = accept(listener, NULL, NULL);
	close(listener);
}

static void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

static void say_received(int fd, int flags)
{
	char buf[64] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, flags);

	if (n < 0)
		SAY("recv: %s\n", strerrorname_np(errno));
	else
		SAY("received %zd: %s\n", n, buf);
}

static void ended(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		SAY("child: exit %d\n", WEXITSTATUS(status));
	else
		SAY("child: signal %d\n", WTERMSIG(status));
}

/* What the test library knows. */
static int library_number(const char *what)
{
	int (*fn)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, what);

	return fn ? fn() : 0;
}

/* With the test kind, calls on a copy have to reach the object, not just the
 * kernel's idea of it. `cnt` is how often the op must have been called. */
static void reached(const char *op, unsigned long cnt)
{
	unsigned long (*fn)(const char *) = (unsigned long (*)(
		const char *))dlsym(RTLD_DEFAULT, "vma_test_op_cnt");
	const char *kind = getenv("SHIM_TEST_KIND");

	if (fn && kind && strcmp(kind, "1") == 0 && fn(op) < cnt)
		SAY("op %s was called %lu times only\n", op, fn(op));
}

/* Last thing of a scenario that has closed all it opened. */
static void nothing_is_left(void)
{
	int objects = library_number("vma_test_object_cnt");
	int depth = library_number("vma_test_depth");

	if (objects != 0 || depth != 0)
		SAY("left behind: %d objects, %d brackets\n", objects, depth);
}

static void on_signal(int sig, void (*handler)(int), int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &act, NULL);
}

static void alarm_in_ms(int ms)
{
	struct itimerval timer = { .it_value = { ms / 1000, ms % 1000 * 1000 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Again and again until alarm(0), for who is not in the call yet. */
static void alarm_each_ms(int ms)
{
	struct itimerval timer = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static volatile sig_atomic_t signal_cnt;

static void count_signal(int sig)
{
	(void)sig;
	signal_cnt++;
}

static void copies_name_one_socket(void)
{
	int pair[2], copies[4], i;

	connect_pair(pair);
	copies[0] = dup(pair[0]);
	copies[1] = dup2(pair[0], 70);
	copies[2] = dup3(pair[0], 71, O_CLOEXEC);
	copies[3] = fcntl(pair[0], F_DUPFD_CLOEXEC, 72);
	close(pair[0]);
	for (i = 0; i < 4; i++) {
		SAY("copy %d: %zd\n", copies[i], send(copies[i], "x", 1, 0));
		say_received(pair[1], 0);
	}
	for (i = 0; i < 4; i++)
		close(copies[i]);
	say_received(pair[1], 0);
	close(pair[1]);
	reached("send", 4);
	nothing_is_left();
}

static void dup2_over_a_socket_closes_it(void)
{
	int pair[2], other[2], result;

	connect_pair(pair);
	connect_pair(other);
	SAY("%d\n", dup2(other[0], pair[0]) == pair[0]);
	say_received(pair[1], 0); /* end of file */
	send(pair[0], "by copy", 7, 0);
	say_received(other[1], 0);
	SAY("itself: %d\n", dup2(pair[0], pair[0]) == pair[0]);
	errno = 0;
	result = dup2(900, pair[0]);
	SAY("of nothing: %d %s\n", result, strerrorname_np(errno));
	send(pair[0], "still", 5, 0);
	say_received(other[1], 0);
	close_pair(pair);
	close_pair(other);
	reached("send", 2);
	nothing_is_left();
}

static void send_fd(int via, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	memset(control, 0, sizeof(control));
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

	if (recvmsg(via, &msg, 0) != 1)
		SAY("recvmsg: %m\n");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void fd_passed_within_the_process(void)
{
	int pair[2], via[2], copy;

	connect_pair(pair);
	socketpair(AF_UNIX, SOCK_STREAM, 0, via);
	send_fd(via[0], pair[0]);
	close(pair[0]);
	copy = receive_fd(via[1]);
	SAY("sent %zd\n", send(copy, "passed on", 9, 0));
	say_received(pair[1], 0);
	close(copy);
	say_received(pair[1], 0);
	close(pair[1]);
	close_pair(via);
	reached("send", 1);
	nothing_is_left();
}

static void child_of_fork_keeps_the_connection(void)
{
	int pair[2];
	pid_t pid;

	connect_pair(pair);
	pid = fork();
	if (pid == 0) {
		send(pair[0], "from child", 10, 0);
		close_pair(pair);
		_exit(7);
	}
	ended(pid);
	say_received(pair[1], 0);
	send(pair[0], "from parent", 11, 0);
	say_received(pair[1], 0);
	close_pair(pair);
	nothing_is_left();
}

/* The classic spawn: the child rearranges descriptors, then execs. */
static void vfork_child_rearranges_descriptors(void)
{
	int pair[2];
	pid_t pid;

	connect_pair(pair);
	pid = vfork();
	if (pid == 0) {
		dup2(pair[0], STDOUT_FILENO);
		close(pair[0]);
		close(pair[1]);
		execl("/bin/echo", "echo", "-n", "spawned", (char *)NULL);
		_exit(127);
	}
	ended(pid);
	say_received(pair[1], 0);
	SAY("parent still sends %zd\n", send(pair[0], "mine", 4, 0));
	say_received(pair[1], 0);
	close_pair(pair);
	nothing_is_left();
}

static void spawned_child_gets_the_socket(void)
{
	char *argv[] = { "echo", "-n", "by spawn", NULL };
	posix_spawn_file_actions_t actions;
	int pair[2];
	pid_t pid;

	connect_pair(pair);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[0], STDOUT_FILENO);
	SAY("spawn %d\n", posix_spawn(&pid, "/bin/echo", &actions, NULL, argv,
				      environ));
	posix_spawn_file_actions_destroy(&actions);
	ended(pid);
	say_received(pair[1], 0);
	SAY("system %d\n", system("exit 3") >> 8);
	close_pair(pair);
	nothing_is_left();
}

/* vfork's parent runs on only after the exec: what the child did is done. */
static void vfork_parent_waits_for_exec(void)
{
	struct timespec nap = { 0, 50000000 };
	int fds[2];
	char byte = '-';
	pid_t pid;

	if (pipe(fds) != 0)
		return;
	pid = vfork();
	if (pid == 0) {
		nanosleep(&nap, NULL);
		if (write(fds[1], "w", 1) != 1)
			_exit(1);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	SAY("read %zd %c\n", read(fds[0], &byte, 1), byte);
	ended(pid);
	close_pair(fds);
}

/* What daemons do: a loop, closefrom, close_range. */
static void program_closes_everything(void)
{
	struct sockaddr_in addr = loopback();
	int pair[2], fd, cnt = 0;

	connect_pair(pair);
	for (fd = 3; fd < 1024; fd++)
		if (close(fd) == 0)
			cnt++;
	SAY("closed %d\n", cnt);
	connect_pair(pair);
	closefrom(3);
	SAY("then %d\n", fcntl(pair[0], F_GETFD));
	connect_pair(pair);
	close_range(3, ~0U, 0);
	SAY("then %d\n", fcntl(pair[0], F_GETFD));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	SAY("bind %d\n", bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	close(fd);
	nothing_is_left();
}

/* A number that this program had as a socket is a file's now. */
static void numbers_are_reused(void)
{
	int i, fd, file;

	for (i = 0; i < 50; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		syscall(SYS_close, fd);
		file = open("/dev/zero", O_RDONLY);
		if (file != fd || lseek(file, 0, SEEK_CUR) != 0)
			SAY("round %d: %d is not a file\n", i, file);
		close(file);
	}
	SAY("done\n");
	nothing_is_left();
}

static void *close_and_open(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		int fd = socket(AF_INET, (intptr_t)arg, 0), copy = dup(fd);

		if (fd < 0 || copy < 0)
			SAY("out of descriptors\n");
		if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &i, sizeof(i)))
			SAY("setsockopt: %m\n");
		close(fd);
		close(copy);
	}
	return NULL;
}

static void threads_open_and_close(void)
{
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, close_and_open,
			       (void *)(intptr_t)(i % 2 ? SOCK_STREAM :
							   SOCK_DGRAM));
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	SAY("done\n");
	nothing_is_left();
}

static void interrupted_without_restart(void)
{
	int pair[2];

	connect_pair(pair);
	on_signal(SIGALRM, count_signal, 0);
	alarm_each_ms(50);
	say_received(pair[0], 0);
	alarm(0);
	SAY("handlers ran: %d\n", signal_cnt > 0);
	close_pair(pair);
	nothing_is_left();
}

static int sender_fd;

static void send_from_handler(int sig)
{
	(void)sig;
	signal_cnt++;
	if (send(sender_fd, "from handler", 12, 0) != 12)
		SAY("send in handler: %m\n");
}

/* The handler sends to the very call it interrupts. */
static void restarted_with_sa_restart(void)
{
	int pair[2];

	connect_pair(pair);
	sender_fd = pair[1];
	on_signal(SIGALRM, send_from_handler, SA_RESTART);
	alarm_in_ms(50);
	say_received(pair[0], 0);
	SAY("handlers ran: %d\n", signal_cnt);
	close_pair(pair);
	nothing_is_left();
}

static int same_fd;

static void use_same_socket(int sig)
{
	char byte;

	(void)sig;
	if (signal_cnt++)
		return;
	SAY("in handler: recv %zd, send %zd\n",
	    recv(same_fd, &byte, 1, MSG_DONTWAIT), send(same_fd, "y", 1, 0));
}

static void handler_uses_the_interrupted_socket(void)
{
	int pair[2];

	connect_pair(pair);
	same_fd = pair[0];
	on_signal(SIGALRM, use_same_socket, 0);
	alarm_each_ms(50);
	say_received(pair[0], 0);
	alarm(0);
	say_received(pair[1], 0);
	close_pair(pair);
	nothing_is_left();
}

static sigjmp_buf way_out;

static void jump_out(int sig)
{
	siglongjmp(way_out, sig);
}

static __attribute__((noinline)) void block_in_recv(int fd)
{
	char big[4096];

	big[0] = (char)recv(fd, big, sizeof(big), 0);
	SAY("not reached: %d\n", big[0]);
}

static void handler_jumps_out_of_a_wait(void)
{
	int pair[2];

	connect_pair(pair);
	on_signal(SIGALRM, jump_out, 0);
	for (volatile int i = 0; i < 20; i++) {
		if (sigsetjmp(way_out, 1) == 0) {
			alarm_in_ms(5);
			block_in_recv(pair[0]);
		}
	}
	send(pair[1], "after", 5, 0);
	say_received(pair[0], 0);
	close_pair(pair);
	nothing_is_left();
}

static void receive_timeout_expires(void)
{
	struct timeval timeout = { 0, 30000 };
	int pair[2];

	connect_pair(pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	say_received(pair[0], 0);
	/* A socket with a timeout never restarts. */
	timeout.tv_sec = 5;
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	on_signal(SIGALRM, count_signal, SA_RESTART);
	alarm_each_ms(30);
	say_received(pair[0], 0);
	alarm(0);
	close_pair(pair);
	nothing_is_left();
}

static _Atomic pid_t receiver;

static void *receive_one(void *arg)
{
	char buf[16] = "";
	ssize_t n;

	receiver = gettid();
	n = recv(*(int *)arg, buf, sizeof(buf) - 1, 0);

	SAY("thread received %zd %s\n", n, buf);
	return NULL;
}

/* Returns when it sleeps in its call. */
static pthread_t start_receiver(int *fd)
{
	pthread_t thread;

	receiver = 0;
	pthread_create(&thread, NULL, receive_one, fd);
	while (!receiver)
		sched_yield();
	sleeper_await(receiver);
	return thread;
}

static void shutdown_wakes_a_blocked_thread(void)
{
	pthread_t thread;
	int pair[2];

	connect_pair(pair);
	thread = start_receiver(&pair[0]);
	shutdown(pair[0], SHUT_RD);
	pthread_join(thread, NULL);
	close_pair(pair);
	nothing_is_left();
}

/* In Linux the call goes on, on a socket without a number. */
static void close_leaves_a_blocked_call(void)
{
	struct timespec while_it_may_go_wrong = { 0, 50000000 };
	pthread_t thread;
	int pair[2], fd;

	connect_pair(pair);
	fd = pair[0];
	thread = start_receiver(&fd);
	UNSEEN(close)(pair[0]);
	nanosleep(&while_it_may_go_wrong, NULL);
	send(pair[1], "late", 4, 0);
	pthread_join(thread, NULL);
	close(pair[1]);
	nothing_is_left();
}

static void streams_over_a_socket(void)
{
	char line[64] = "";
	FILE *in, *out;
	int pair[2];

	connect_pair(pair);
	in = fdopen(pair[0], "r");
	out = fdopen(dup(pair[0]), "w");
	send(pair[1], "one\ntwo\n", 8, 0);
	SAY("%s", fgets(line, sizeof(line), in));
	SAY("%s", fgets(line, sizeof(line), in));
	fprintf(out, "answer %d\n", 42);
	fflush(out);
	say_received(pair[1], 0);
	SAY("numbers %d %d\n", fileno(in) == pair[0], fileno(out) != pair[0]);
	fputs("last", out);
	fclose(out);
	say_received(pair[1], 0);
	fclose(in);
	say_received(pair[1], 0);
	close(pair[1]);
	reached("read", 1);
	reached("write", 2);
	nothing_is_left();
}

static void readiness_of_mixed_descriptors(void)
{
	struct epoll_event event = { .events = EPOLLIN }, got[4];
	struct pollfd fds[2];
	int pair[2], pipe_fds[2], set;

	connect_pair(pair);
	if (pipe(pipe_fds) != 0)
		return;
	fds[0] = (struct pollfd){ .fd = pair[0], .events = POLLIN | POLLOUT };
	fds[1] = (struct pollfd){ .fd = pipe_fds[0], .events = POLLIN };
	SAY("poll %d: %#x %#x\n", poll(fds, 2, 0), fds[0].revents,
	    fds[1].revents);
	send(pair[1], "x", 1, 0);
	if (write(pipe_fds[1], "x", 1) != 1)
		return;
	SAY("poll %d: %#x %#x\n", poll(fds, 2, 1000), fds[0].revents,
	    fds[1].revents);
	set = epoll_create1(EPOLL_CLOEXEC);
	event.data.fd = pair[0];
	epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
	event.data.fd = pipe_fds[0];
	epoll_ctl(set, EPOLL_CTL_ADD, pipe_fds[0], &event);
	SAY("epoll %d\n", epoll_wait(set, got, 4, 1000));
	close(set);
	close_pair(pair);
	close_pair(pipe_fds);
	nothing_is_left();
}

static unsigned random_state;

static unsigned next_random(unsigned below)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 16) % below;
}

/* Any order of operations on a few numbers, seeded by SCENARIO_SEED. */
static void random_operations(void)
{
	const char *seed = getenv("SCENARIO_SEED");
	int fds[12], i;

	random_state = seed ? (unsigned)atoi(seed) : 1;
	for (i = 0; i < 12; i++)
		fds[i] = -1;
	for (i = 0; i < 3000; i++) {
		int *a = &fds[next_random(12)], *b = &fds[next_random(12)];
		long result = 0;
		int kind = 0;
		socklen_t len = sizeof(kind);

		errno = 0;
		switch (next_random(11)) {
		case 0:
			if (*a < 0)
				result = *a = socket(AF_INET, SOCK_STREAM, 0);
			break;
		case 1:
			if (*a < 0)
				result = *a = open("/dev/null", O_RDWR);
			break;
		case 2:
			result = close(*a);
			*a = -1;
			break;
		case 3:
			if (*b < 0)
				result = *b = dup(*a);
			break;
		case 4:
			if (*b >= 0)
				result = dup2(*a, *b);
			break;
		case 5:
			if (*b < 0)
				result = *b = fcntl(*a, F_DUPFD, 40);
			break;
		case 6:
			result = getsockopt(*a, SOL_SOCKET, SO_TYPE, &kind,
					    &len);
			break;
		case 7:
			result = recv(*a, &kind, 1, MSG_DONTWAIT);
			break;
		case 8:
			if (next_random(40) == 0) {
				result = close_range(3, 60, 0);
				for (int k = 0; k < 12; k++)
					fds[k] = -1;
			}
			break;
		case 9:
			if (*a < 0 && *b < 0) {
				int both[2];

				result = socketpair(AF_UNIX, SOCK_STREAM, 0,
						    both);
				if (result == 0 && a != b) {
					*a = both[0];
					*b = both[1];
				} else if (result == 0) {
					close_pair(both);
				}
			}
			break;
		case 10:
			if (*b >= 0)
				result = dup3(*a, *b, O_CLOEXEC);
			break;
		}
		printf("%d: %ld %s %d\n", i, result,
		       result < 0 ? strerrorname_np(errno) : "", kind);
	}
	close_range(3, ~0U, 0);
	nothing_is_left();
}

struct scenario {
	const char *name;
	void (*run)(void);
};

#define SCENARIO(name) { #name, name }

static const struct scenario scenarios[] = {
	SCENARIO(copies_name_one_socket),
	SCENARIO(dup2_over_a_socket_closes_it),
	SCENARIO(fd_passed_within_the_process),
	SCENARIO(child_of_fork_keeps_the_connection),
	SCENARIO(vfork_child_rearranges_descriptors),
	SCENARIO(vfork_parent_waits_for_exec),
	SCENARIO(spawned_child_gets_the_socket),
	SCENARIO(program_closes_everything),
	SCENARIO(numbers_are_reused),
	SCENARIO(threads_open_and_close),
	SCENARIO(interrupted_without_restart),
	SCENARIO(restarted_with_sa_restart),
	SCENARIO(handler_uses_the_interrupted_socket),
	SCENARIO(handler_jumps_out_of_a_wait),
	SCENARIO(receive_timeout_expires),
	SCENARIO(shutdown_wakes_a_blocked_thread),
	SCENARIO(close_leaves_a_blocked_call),
	SCENARIO(streams_over_a_socket),
	SCENARIO(readiness_of_mixed_descriptors),
	SCENARIO(random_operations),
};

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "--list";

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
		if (strcmp(wanted, "--list") == 0) {
			puts(scenarios[i].name);
		} else if (strcmp(wanted, scenarios[i].name) == 0) {
			scenarios[i].run();
			return 0;
		}
	}
	return strcmp(wanted, "--list") != 0;
}
