/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections at once (tcp_crowd.sh).
 *
 *   tcp_crowd serve ADDRESS PORT CNT BACKLOG
 *	Says "ready", accepts so many connections, which it has in one epoll set, and
 *	echoes the greeting of each; then says what they cost. Commands, line by line:
 *	cost CNT	says what each of so many costs by now, with those in the backlog
 *	idle SECONDS	does nothing for so long, and says what that cost
 *	talk CNT	echoes so many messages, and says what each cost
 *   tcp_crowd call ADDRESS PORT CNT FIRST LOCAL_CNT
 *	Opens so many connections, from LOCAL_CNT addresses, FIRST and the following
 *	ones, by turns, and greets by each; says "open". Commands:
 *	talk CNT	asks so often by connections drawn at random, ten at a time, and
 *			says how many answers were right
 *   tcp_crowd join ADDRESS PORT CNT FIRST LOCAL_CNT
 *	Opens so many that nobody accepts yet, and says "joined"; at the end of its input
 *	says how many of them still were connections.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
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

enum { MESSAGE = 64, AT_ONCE = 10, JOIN_AT_ONCE = 100, EVENTS = 64 };

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

static void say_cost(const char *what, int cnt, long before_kb)
{
	SAY("%s: %d, %ld bytes each\n", what, cnt,
	    (resident_kb() - before_kb) * 1024 / cnt);
}

static int serve(int cnt, int backlog)
{
	/* one that blocks would be ours from the first accept() on */
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1, n;
	int set = epoll_create1(0);
	char line[64];
	double begun;
	long kb;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&server_name,
		 sizeof(server_name)) != 0 || listen(listener, backlog) != 0)
		fail("listen", 0);
	/* it is ours before the first comes */
	add(set, listener);
	epoll_ctl(set, EPOLL_CTL_DEL, listener, NULL);
	kb = resident_kb();
	begun = seconds_of(CLOCK_MONOTONIC);
	SAY("ready\n");
	accept_all(listener, set, cnt);
	SAY("took %.0f ms\n", (seconds_of(CLOCK_MONOTONIC) - begun) * 1e3);
	say_cost("accepted", cnt, kb);
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "idle %d", &n) == 1)
			idle(n);
		else if (sscanf(line, "talk %d", &n) == 1)
			echo(set, n);
		else if (sscanf(line, "cost %d", &n) == 1)
			say_cost("held", n, kb);
	return 0;
}

/* -- who calls ---------------------------------------------------------------------------- */

/* Of a type that does not block it may not be open yet. */
static int open_from(struct sockaddr_in *local, int type, int number)
{
	int fd = socket(AF_INET, type, 0), on = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)local, sizeof(*local)) != 0)
		fail("bind", number);
	if (connect(fd, (struct sockaddr *)&server_name, sizeof(server_name)) != 0 &&
	    errno != EINPROGRESS)
		fail("connect", number);
	return fd;
}

static struct sockaddr_in local_name(const char *first, int number)
{
	in_addr_t lowest = ntohl(inet_addr(first));

	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(lowest + (in_addr_t)number),
	};
}

static int *open_all(int cnt, const char *first, int local_cnt)
{
	int *fds = calloc((size_t)cnt, sizeof(*fds));
	char c;

	for (int i = 0; i < cnt; i++) {
		struct sockaddr_in local = local_name(first, i % local_cnt);

		fds[i] = open_from(&local, SOCK_STREAM, i);
		if (send(fds[i], "g", 1, MSG_NOSIGNAL) != 1)
			fail("greet", i);
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

static void await_open(int fd, int number)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	if (poll(&pfd, 1, 10000) != 1 || pfd.revents != POLLOUT)
		fail("not open", number);
}

/* Several at once: who accepts nobody looks seldom. */
static int join(int cnt, const char *first, int local_cnt)
{
	int *fds = calloc((size_t)cnt, sizeof(*fds)), held = 0;
	struct tcp_info info;
	socklen_t len;

	for (int i = 0; i < cnt + JOIN_AT_ONCE; i++) {
		struct sockaddr_in local = local_name(first, i % local_cnt);

		if (i < cnt)
			fds[i] = open_from(&local, SOCK_STREAM | SOCK_NONBLOCK, i);
		if (i >= JOIN_AT_ONCE)
			await_open(fds[i - JOIN_AT_ONCE], i);
	}
	SAY("joined\n");
	while (getchar() != EOF)
		;
	for (int i = 0; i < cnt; i++) {
		len = sizeof(info);
		held += getsockopt(fds[i], IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
			info.tcpi_state == TCP_ESTABLISHED;
	}
	SAY("held: %d\n", held);
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
	if (argc == 6 && strcmp(argv[1], "serve") == 0)
		return serve(cnt, atoi(argv[5]));
	if (argc == 7 && strcmp(argv[1], "call") == 0)
		return call(cnt, argv[5], atoi(argv[6]));
	return argc == 7 ? join(cnt, argv[5], atoi(argv[6])) : 2;
}
