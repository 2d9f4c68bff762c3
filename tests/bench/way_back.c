/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it costs that a connection may become the kernel's at any moment: forks, ways back
 * one by one, and an exit with many (way_back.sh). Lines of a name and a figure; times
 * are in microseconds.
 *
 *   way_back serve ADDRESS PORT       accepts, gives what a connection asks for, and holds it
 *   way_back ask ADDRESS PORT CNT
 */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in name;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* -- the other end --------------------------------------------------------------------- */

/* The first four bytes say how many it wants to get. */
static void serve_one(int fd)
{
	static char buf[1 << 16];
	uint32_t want = 0;

	if (recv(fd, &want, sizeof(want), MSG_WAITALL) != sizeof(want))
		return;
	while (want) {
		ssize_t n = send(fd, buf, want < sizeof(buf) ? want : sizeof(buf),
				 MSG_NOSIGNAL);

		if (n <= 0)
			return;
		want -= (uint32_t)n;
	}
}

static _Noreturn void serve(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    listen(fd, 4096) != 0)
		die("serve");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int child = accept(fd, NULL, NULL);

		if (child >= 0)
			serve_one(child);
	}
}

/* -- this end --------------------------------------------------------------------------- */

static int connected(uint32_t want)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		die("connect");
	if (send(fd, &want, sizeof(want), 0) != sizeof(want))
		die("send");
	return fd;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void say_median(const char *what, double *times, int cnt)
{
	qsort(times, (size_t)cnt, sizeof(*times), by_size);
	printf("%s %.1f\n", what, times[cnt / 2]);
}

static void time_forks(const char *what)
{
	enum { TIMES = 25 };
	double times[TIMES];

	for (int i = 0; i < TIMES; i++) {
		double begin = now_us();
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		times[i] = now_us() - begin;
		waitpid(pid, NULL, 0);
	}
	say_median(what, times, TIMES);
}

/* As many programs with so many connections have: memory of their own, in small pages. */
static void grow(void)
{
	enum { SIZE = 32 << 20 };
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	madvise(memory, SIZE, MADV_NOHUGEPAGE);
	memset(memory, 1, SIZE);
}

/* What only the kernel does sends a connection back: here, to say how it ends a stream of
 * TLS, which it does not do either. */
static double time_way_back(int fd)
{
	double begin = now_us();

	(void)!setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3);
	return now_us() - begin;
}

static void set_tcp(int fd, int option, int value)
{
	if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)) != 0)
		die("TCP_REPAIR");
}

/* The calls alone by which a socket that stands by becomes a connection with so much to
 * read, with nobody at the other end: no program can do it in less. */
static double time_calls(uint32_t number, size_t unread)
{
	static const char data[100000];
	const struct tcp_repair_opt options[] = { { 3, 10 | 10 << 16 }, { 4, 0 }, { 8, 0 } };
	const struct tcp_repair_window window = { number, 65536, 65536, 64000, number };
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd = socket(AF_INET, SOCK_STREAM, 0), error;
	struct sockaddr_in local;
	socklen_t len = sizeof(local);
	double begin, time;

	set_tcp(fd, TCP_REPAIR, 1);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		die("a socket that stands by");
	usleep(2000);
	len = sizeof(error);
	begin = now_us();
	set_tcp(fd, TCP_REPAIR, 1);
	connect(fd, &none, sizeof(none));
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (bind(fd, (const struct sockaddr *)&local, sizeof(local)) != 0)
		die("bind");
	for (int queue = TCP_SEND_QUEUE; queue >= TCP_RECV_QUEUE; queue--) {
		set_tcp(fd, TCP_REPAIR_QUEUE, queue);
		set_tcp(fd, TCP_QUEUE_SEQ, (int)number);
	}
	set_tcp(fd, TCP_MAXSEG, 1460);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, options, sizeof(options)) != 0)
		die("connect");
	set_tcp(fd, TCP_TIMESTAMP, 1);
	if (unread) {
		set_tcp(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
		if (send(fd, data, unread, 0) <= 0)
			die("the queue of what is to be read");
	}
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, sizeof(window)) != 0)
		die("TCP_REPAIR_WINDOW");
	set_tcp(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	set_tcp(fd, TCP_REPAIR, -1);
	set_tcp(fd, TCP_MAXSEG, 0);
	time = now_us() - begin;
	/* and ends without a word */
	set_tcp(fd, TCP_REPAIR, 1);
	close(fd);
	return time;
}

/* The kernel's part of sending so much that was not sent, to a peer who has room for some of
 * it and does not read. */
static double time_send(size_t unsent)
{
	static const char data[100000];
	int fd = connected(0);
	double begin, time;

	usleep(2000);
	begin = now_us();
	(void)!send(fd, data, unsent, MSG_DONTWAIT);
	time = now_us() - begin;
	close(fd);
	return time;
}

static void time_all_calls(const char *what, size_t unread, size_t unsent)
{
	enum { TIMES = 25 };
	double times[TIMES];

	for (uint32_t i = 0; i < TIMES; i++) {
		times[i] = time_calls(1000000 + i, unread);
		if (unsent)
			times[i] += time_send(unsent);
	}
	say_median(what, times, TIMES);
}

/* So much waits at this end, and so much was written that the peer, who reads no more, has
 * no room for. */
static void time_ways_back(const char *what, uint32_t unread, size_t unsent)
{
	enum { TIMES = 25 };
	static char buf[1 << 20];
	double times[TIMES];
	struct pollfd pfd = { .events = POLLIN };

	for (int i = 0; i < TIMES; i++) {
		int fd = connected(unread);

		if (unread) {
			pfd.fd = fd;
			poll(&pfd, 1, 1000);
			usleep(20000);
		}
		if (unsent)
			(void)!send(fd, buf, unsent, MSG_DONTWAIT);
		usleep(2000);
		times[i] = time_way_back(fd);
		close(fd);
	}
	say_median(what, times, TIMES);
}

/* The exit is timed by who started us. */
static int ask(int cnt)
{
	struct timespec ts;
	int fd = connected(0);

	time_forks("fork_one");
	if (!getenv("LD_PRELOAD")) {
		time_all_calls("calls", 0, 0);
		/* of 100,000 bytes written before, a third has been sent */
		time_all_calls("calls_100k", 64000, 65000);
	}
	time_ways_back("back_idle", 0, 0);
	time_ways_back("back_100k", 100000, 100000);
	time_ways_back("back_1m", 0, 1000000);
	close(fd);
	for (int i = 0; i < cnt; i++)
		(void)connected(0);
	time_forks("fork_many");
	grow();
	time_forks("fork_large");
	clock_gettime(CLOCK_REALTIME, &ts);
	printf("exit_at %lld\n",
	       (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (argc < 4)
		return 2;
	name.sin_family = AF_INET;
	inet_pton(AF_INET, argv[2], &name.sin_addr);
	name.sin_port = htons((uint16_t)atoi(argv[3]));
	if (strcmp(argv[1], "serve") == 0)
		serve();
	return argc == 5 ? ask(atoi(argv[4])) : 2;
}
