/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every intercepted call in every condition: valid arguments, NULL for its
 * pointers, a bad fd, a closed fd, an fd of the wrong type, a non-blocking fd that
 * is not ready, and a blocking one interrupted by a signal. Each cell runs in a
 * process of its own and prints result, errno and what it received.
 *
 * The program knows nothing of the library: ab.sh runs it on libc and preloaded
 * and compares. Where the test library is present it also writes to the file named
 * by MATRIX_MISSED which calls did not come through their wrapper, or did not
 * reach the object they were made on.
 *
 *   matrix            all cells          matrix --list    their names
 *   matrix CALL...    the cells of these calls
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/matrix_calls.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { CELL_SECONDS = 5, INTERRUPT_MS = 30, BUF_SIZE = 64 };

static const char *const condition_names[COND_CNT] = {
	[COND_VALID] = "valid",		    [COND_NULL] = "null",
	[COND_BAD_FD] = "bad_fd",	    [COND_CLOSED] = "closed",
	[COND_WRONG_TYPE] = "wrong_type",   [COND_NONBLOCKING] = "nonblocking",
	[COND_INTERRUPTED] = "interrupted",
};

/* The test library's counters; NULL on libc. */
static unsigned long (*entry_cnt)(const char *name);
static unsigned long (*op_cnt)(const char *name);

/* Ends the cell: its preparation failed, which is no result. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	printf("cannot prepare: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	real_exit(99);
}

/* A way out that is not one of the calls under test. */
void real_exit(int status)
{
	fflush(NULL);
	kill(getpid(), status ? SIGKILL : SIGTERM);
	for (;;)
		pause();
}

struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);

	must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0,
	     "getsockname");
	return addr;
}

static int make_listener(void)
{
	struct sockaddr_in addr = loopback(0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0, "socket");
	must(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0, "bind");
	must(listen(fd, 5) == 0, "listen");
	return fd;
}

static int connect_to(int listener)
{
	struct sockaddr_in addr = name_of(listener);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0, "socket");
	must(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0,
	     "connect");
	return fd;
}

static void wait_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	must(poll(&poll_fd, 1, 2000) == 1, "poll");
}

/* c->fd connected to c->peer; with data on its way to c->fd if it may. */
static void prepare_stream(struct cell *c, bool has_data)
{
	int listener = make_listener();

	c->peer = connect_to(listener);
	c->fd = accept(listener, NULL, NULL);
	must(c->fd >= 0, "accept");
	close(listener);
	if (!has_data)
		return;
	must(send(c->peer, "hello, world", 12, 0) == 12, "send");
	wait_readable(c->fd);
}

static void prepare_listener(struct cell *c, bool has_data)
{
	c->fd = make_listener();
	if (!has_data)
		return;
	c->peer = connect_to(c->fd);
	wait_readable(c->fd);
}

static void prepare_dgram(struct cell *c, bool has_data)
{
	struct sockaddr_in addr = loopback(0);

	c->fd = socket(AF_INET, SOCK_DGRAM, 0);
	must(bind(c->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0, "bind");
	addr = name_of(c->fd);
	c->peer = socket(AF_INET, SOCK_DGRAM, 0);
	must(connect(c->peer, (struct sockaddr *)&addr, sizeof(addr)) == 0,
	     "connect");
	addr = name_of(c->peer);
	must(connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0,
	     "connect");
	if (!has_data)
		return;
	must(send(c->peer, "hello, world", 12, 0) == 12, "send");
	wait_readable(c->fd);
}

static int make_file(void)
{
	int fd = memfd_create("matrix", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, "file content", 12) == 12 &&
		     lseek(fd, 0, SEEK_SET) == 0,
	     "memfd");
	return fd;
}

/* Neither socket nor file, and readable. */
static int make_pipe_end(void)
{
	int fds[2];

	must(pipe(fds) == 0 && write(fds[1], "piped", 5) == 5, "pipe");
	return fds[0];
}

static bool is_writable_within(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	return poll(&poll_fd, 1, ms) == 1;
}

/* On a busy machine what was sent may not have come to the peer's kernel yet, which then
 * makes room. */
static bool is_under_way(int fd)
{
	int all = 0, not_sent = 0;

	return ioctl(fd, SIOCOUTQ, &all) == 0 &&
	       ioctl(fd, SIOCOUTQNSD, &not_sent) == 0 && all > not_sent;
}

/* Until a blocking send of any size has to wait, and the peer's kernel takes
 * nothing more in either. */
static void fill_send_buffer(int fd)
{
	static char chunk[65536];
	int size = 4096, looks = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	do {
		while (send(fd, chunk, sizeof(chunk), MSG_DONTWAIT) > 0)
			;
		while (send(fd, chunk, 1, MSG_DONTWAIT) > 0)
			;
	} while (is_writable_within(fd, 50) || (is_under_way(fd) && ++looks < 40));
}

static void prepare_role(struct cell *c, bool has_data)
{
	switch (c->call->role) {
	case ROLE_STREAM:
		prepare_stream(c, has_data);
		break;
	case ROLE_SENDER:
		prepare_stream(c, false);
		if (!has_data)
			fill_send_buffer(c->fd);
		break;
	case ROLE_LISTENER:
		prepare_listener(c, has_data);
		break;
	case ROLE_DGRAM:
		prepare_dgram(c, has_data);
		break;
	case ROLE_SOCKET:
		c->fd = socket(AF_INET, SOCK_STREAM, 0);
		break;
	case ROLE_FILE:
		c->fd = make_file();
		break;
	case ROLE_NONE:
		c->fd = -1;
		break;
	}
}

static void nothing(int sig)
{
	(void)sig;
}

static void interrupt_soon(void)
{
	struct sigaction act = { .sa_handler = nothing };
	/* Again and again: the first may come before the call. */
	struct itimerval timer = { { 0, INTERRUPT_MS * 1000 },
				   { 0, INTERRUPT_MS * 1000 } };

	must(sigaction(SIGALRM, &act, NULL) == 0, "sigaction");
	must(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
}

static void prepare(struct cell *c)
{
	bool is_ready = c->condition != COND_NONBLOCKING &&
			c->condition != COND_INTERRUPTED;

	c->fd = c->peer = -1;
	c->is_null = c->condition == COND_NULL;
	memset(c->buf, '.', sizeof(c->buf));
	strcpy(c->buf, "payload");
	prepare_role(c, is_ready);
	switch (c->condition) {
	case COND_BAD_FD:
		c->fd = -1;
		break;
	case COND_CLOSED:
		if (c->fd >= 0)
			close(c->fd);
		break;
	case COND_WRONG_TYPE:
		if (c->call->role == ROLE_FILE)
			c->fd = socket(AF_INET, SOCK_STREAM, 0);
		else if (c->call->role != ROLE_NONE)
			c->fd = make_pipe_end();
		break;
	case COND_NONBLOCKING:
		if (c->fd >= 0)
			fcntl(c->fd, F_SETFL, O_NONBLOCK);
		break;
	case COND_INTERRUPTED:
		interrupt_soon();
		break;
	default:
		break;
	}
}

static bool applies(const struct call *call, enum condition condition)
{
	return !(call->not_in & 1u << condition);
}

/* The op behind a call; syscall() makes its read. */
static const char *op_of(const struct call *call)
{
	return strcmp(call->name, "syscall") == 0 ? "read" : call->name;
}

/* Whether the socket kind of the test library has to see the call. */
static bool must_reach_op(const struct cell *c)
{
	static const char *const ops[] = {
#define CALL_OP(ret, name, params, args) #name,
#include "os/calls.def"
	};
	const char *kind = getenv("SHIM_TEST_KIND");
	bool is_socket = c->call->role != ROLE_NONE &&
			 c->call->role != ROLE_FILE &&
			 c->condition != COND_BAD_FD &&
			 c->condition != COND_CLOSED &&
			 c->condition != COND_WRONG_TYPE;

	if (!kind || strcmp(kind, "1") != 0 || !is_socket)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (strcmp(ops[i], op_of(c->call)) == 0)
			return true;
	return false;
}

/* A line for ab.sh when the call did not come through its wrapper, or did not
 * reach an object it should have. */
static void report(const struct cell *c, unsigned long entries,
		   unsigned long ops)
{
	const char *path = getenv("MATRIX_MISSED");
	bool is_bypassed, is_unreached;
	char line[128];
	int fd;

	if (!entry_cnt || !path)
		return;
	is_bypassed = entry_cnt(c->call->name) == entries;
	is_unreached = must_reach_op(c) && op_cnt(op_of(c->call)) == ops;
	if (!is_bypassed && !is_unreached)
		return;
	snprintf(line, sizeof(line), "%s.%s: %s\n", c->call->name,
		 condition_names[c->condition],
		 is_bypassed ? "the wrapper was not entered" :
			       "no op of the object was called");
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (write(fd, line, strlen(line)) < 0)
		must(false, "report");
	close(fd);
}

/* In the cell's own process. */
static void run_cell(const struct call *call, enum condition condition)
{
	static struct cell c;
	struct itimerval off = { { 0, 0 }, { 0, 0 } };
	unsigned long entries = 0, ops = 0;
	long result;
	int err;

	c.call = call;
	c.condition = condition;
	alarm(0);
	prepare(&c);
	if (entry_cnt) {
		entries = entry_cnt(call->name);
		ops = op_cnt(op_of(call));
	}
	errno = ENOTRECOVERABLE; /* to see that success leaves it alone */
	result = call->run(&c);
	err = errno;
	setitimer(ITIMER_REAL, &off, NULL);
	report(&c, entries, ops);
	printf("%ld", result);
	if (result < 0)
		printf(" %s", strerrorname_np(err));
	else if (err != ENOTRECOVERABLE && !call->may_touch_errno)
		printf(" errno touched: %s", strerrorname_np(err));
	if (c.shown[0])
		printf(" [%s]", c.shown);
	printf("\n");
	fflush(stdout);
	real_exit(0);
}

void cell_show(struct cell *c, const char *fmt, ...)
{
	size_t len = strlen(c->shown);
	va_list list;

	va_start(list, fmt);
	vsnprintf(c->shown + len, sizeof(c->shown) - len, fmt, list);
	va_end(list);
}

/* Waits for the cell; one that hangs is ended. SIGTERM is the regular way out. */
static void await(pid_t pid)
{
	struct timespec step = { 0, 2000000 };
	int status = 0;

	for (int i = 0; i < CELL_SECONDS * 500; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM)
				printf("ended by %s\n",
				       sigabbrev_np(WTERMSIG(status)));
			else if (WIFEXITED(status))
				printf("exit %d\n", WEXITSTATUS(status));
			return;
		}
		nanosleep(&step, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("HUNG\n");
}

static void run_all_of(const struct call *call)
{
	for (int i = 0; i < COND_CNT; i++) {
		enum condition condition = (enum condition)i;
		pid_t pid;

		if (!applies(call, condition))
			continue;
		printf("%s.%s: ", call->name, condition_names[condition]);
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			run_cell(call, condition);
		await(pid);
		fflush(stdout);
	}
}

static void list_cells(void)
{
	for (size_t i = 0; i < calls_cnt; i++)
		for (int k = 0; k < COND_CNT; k++)
			printf("%s.%s%s\n", calls[i].name, condition_names[k],
			       applies(&calls[i], (enum condition)k) ?
				       "" :
				       " does not apply");
}

static bool is_wanted(const char *name, char **wanted)
{
	if (!*wanted)
		return true;
	for (; *wanted; wanted++)
		if (strcmp(*wanted, name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	(void)argc;
	if (argv[1] && strcmp(argv[1], "--list") == 0) {
		list_cells();
		return 0;
	}
	entry_cnt = (unsigned long (*)(const char *))dlsym(
		RTLD_DEFAULT, "vma_test_entry_cnt");
	op_cnt = (unsigned long (*)(const char *))dlsym(RTLD_DEFAULT,
							"vma_test_op_cnt");
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < calls_cnt; i++)
		if (is_wanted(calls[i].name, argv + 1))
			run_all_of(&calls[i]);
	return 0;
}
