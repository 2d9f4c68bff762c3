/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections at once (tcp_crowd.sh, tests/bench/tcp_crowd.sh).
 *
 *   tcp_crowd serve ADDRESS PORT CNT
 *	Says "ready", accepts so many connections, which it has in one epoll set, and
 *	echoes the greeting of each; then says what they cost. Commands, line by line:
 *	idle SECONDS	does nothing for so long, and says what that cost
 *	talk CNT	echoes so many messages, and says what each cost
 *   tcp_crowd call ADDRESS PORT CNT FIRST LOCAL_CNT
 *	Opens so many connections, from LOCAL_CNT addresses, FIRST and the following
 *	ones, by turns, and greets by each; says "open". Commands:
 *	talk CNT	asks so often by connections drawn at random, ten at a time, and
 *			says how many answers were right
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

enum { MESSAGE = 64, AT_ONCE = 10, EVENTS = 64 };

static struct sockaddr_in server_name;

static _Noreturn void fail(const char *what, int cnt)
{
	SAY("%s, with %d connections: %m\n", what, cnt);
	exit(1);
}

static double seconds_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* -- the server ------------------------------------------------------------------------- */

/* Returns how many messages were echoed. The bench counts what this function costs. */
static __attribute__((noinline)) int measured_echo(int set)
{
	struct epoll_event events[EVENTS];
	int cnt = epoll_wait(set, events, EVENTS, 10000), done = 0;
	char message[MESSAGE];

	for (int i = 0; i < cnt; i++) {
		ssize_t n = recv(events[i].data.fd, message, sizeof(message), 0);

		if (n > 0 && send(events[i].data.fd, message, (size_t)n,
				  MSG_NOSIGNAL) == n)
			done++;
	}
	return done;
}

static void add(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

/* All connections, and the greeting of each. */
static void accept_all(int listener, int set, int cnt)
{
	int accepted = 0, greeted = 0, on = 1, lobby = epoll_create1(0);

	add(lobby, listener);
	add(lobby, set);
	while (greeted < cnt) {
		struct epoll_event events[2];
		int n = epoll_wait(lobby, events, 2, 10000);

		if (n <= 0)
			fail("nobody comes", accepted);
		for (int i = 0; i < n; i++) {
			int fd;

			if (events[i].data.fd == set) {
				greeted += measured_echo(set);
				continue;
			}
			fd = accept(listener, NULL, NULL);
			if (fd < 0)
				fail("accept", accepted);
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			add(set, fd);
			accepted++;
		}
	}
	close(lobby);
}

static void idle(int seconds)
{
	struct timespec ts = { seconds, 0 };
	double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

	nanosleep(&ts, NULL);
	SAY("idle: %.0f us of CPU in %d s\n",
	    (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before) * 1e6, seconds);
}

static void echo(int set, int cnt)
{
	double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	double wall = seconds_of(CLOCK_MONOTONIC);
	int left = cnt;

	SAY("talking\n");
	while (left > 0) {
		int done = measured_echo(set);

		if (!done)
			fail("nobody talks", left);
		left -= done;
	}
	SAY("talk: %.2f us of CPU, %.2f us for each of %d\n",
	    (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / cnt,
	    (seconds_of(CLOCK_MONOTONIC) - wall) * 1e6 / cnt, cnt);
}

static int serve(int cnt)
{
	/* one that blocks would be ours from the first accept() on */
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1, n;
	int set = epoll_create1(0);
	char line[64];
	double begun;
	long kb;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&server_name,
		 sizeof(server_name)) != 0 || listen(listener, 4096) != 0)
		fail("listen", 0);
	/* it is ours before the first comes */
	add(set, listener);
	epoll_ctl(set, EPOLL_CTL_DEL, listener, NULL);
	kb = resident_kb();
	begun = seconds_of(CLOCK_MONOTONIC);
	SAY("ready\n");
	accept_all(listener, set, cnt);
	kb = resident_kb() - kb;
	SAY("accepted: %d in %.0f ms, %ld bytes each\n", cnt,
	    (seconds_of(CLOCK_MONOTONIC) - begun) * 1e3, kb * 1024 / cnt);
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "idle %d", &n) == 1)
			idle(n);
		else if (sscanf(line, "talk %d", &n) == 1)
			echo(set, n);
	return 0;
}

/* -- who calls ---------------------------------------------------------------------------- */

static int open_from(struct sockaddr_in *local, int number)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	char greeting = 'g';

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)local, sizeof(*local)) != 0)
		fail("bind", number);
	if (connect(fd, (struct sockaddr *)&server_name, sizeof(server_name)) != 0)
		fail("connect", number);
	if (send(fd, &greeting, 1, MSG_NOSIGNAL) != 1)
		fail("greet", number);
	return fd;
}

static int *open_all(int cnt, const char *first, int local_cnt)
{
	struct sockaddr_in local = { .sin_family = AF_INET };
	int *fds = calloc((size_t)cnt, sizeof(*fds));
	in_addr_t lowest = ntohl(inet_addr(first));
	char c;

	for (int i = 0; i < cnt; i++) {
		local.sin_addr.s_addr = htonl(lowest + (in_addr_t)(i % local_cnt));
		fds[i] = open_from(&local, i);
	}
	for (int i = 0; i < cnt; i++)
		if (recv(fds[i], &c, 1, 0) != 1 || c != 'g')
			fail("no greeting", i);
	return fds;
}

/* Ten different connections, and the answers of all of them. */
static int ask_some(const int *fds, int cnt, unsigned *seed)
{
	char out[AT_ONCE][MESSAGE], in[MESSAGE];
	int first = rand_r(seed) % cnt, step = cnt / AT_ONCE, right = 0;

	for (int i = 0; i < AT_ONCE; i++) {
		memset(out[i], rand_r(seed), MESSAGE);
		right -= send(fds[(first + i * step) % cnt], out[i], MESSAGE,
			      MSG_NOSIGNAL) != MESSAGE;
	}
	for (int i = 0; i < AT_ONCE; i++)
		right += recv(fds[(first + i * step) % cnt], in, MESSAGE,
			      MSG_WAITALL) == MESSAGE &&
			 memcmp(in, out[i], MESSAGE) == 0;
	return right;
}

static int call(int cnt, const char *first, int local_cnt)
{
	int *fds = open_all(cnt, first, local_cnt), n;
	unsigned seed = 1;
	char line[64];

	SAY("open\n");
	while (fgets(line, sizeof(line), stdin)) {
		int right = 0;

		if (sscanf(line, "talk %d", &n) != 1)
			continue;
		for (int i = 0; i < n; i += AT_ONCE)
			right += ask_some(fds, cnt, &seed);
		SAY("right: %d\n", right);
	}
	free(fds);
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	int cnt = argc > 4 ? atoi(argv[4]) : 0;

	if (cnt < AT_ONCE)
		return 2;
	limit.rlim_cur = limit.rlim_max = (rlim_t)cnt + 1000;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("the limit of fds", 0);
	server_name.sin_family = AF_INET;
	server_name.sin_port = htons((uint16_t)atoi(argv[3]));
	inet_pton(AF_INET, argv[2], &server_name.sin_addr);
	if (strcmp(argv[1], "serve") == 0)
		return serve(cnt);
	return argc == 7 ? call(cnt, argv[5], atoi(argv[6])) : 2;
}
