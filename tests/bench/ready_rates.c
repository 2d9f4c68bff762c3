/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What waiting costs: by a blocking receive, by epoll, poll and select, over sockets of
 * whoever is preloaded. ready_rates.sh runs it at both ends of a cable.
 *
 *   ready_rates ROLE WAY OWN-ADDRESS PEER-ADDRESS
 *
 * The ways: block, epoll, poll, select. The roles: `echo` answers until it hears END.
 * `ping` asks, and prints the half round trip in nanoseconds, median and 99.9th
 * percentile. `pair` is two threads that do so at once, by epoll, with `echo-any` at the
 * other end; it prints whole round trips. `ticks` sends the time now and then, without asking for an answer, until it
 * is ended. `hear` sleeps until one comes, and prints how long that took, as ping does.
 * `crowd` is threads that sleep in one set: it prints how often one of them returned for
 * each datagram, and how often the process slept. `idle` has many sockets in one set, and
 * prints the milliseconds of processor time that a long sleep takes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define END	  UINT64_MAX

enum { PORT = 7301, LEN = 64, WARM_UP = 2000, PINGS = 20000, ENDS = 16 };
enum { PAIR_PINGS = 20000 };
enum { HEARD = 400, HEARD_BEFORE = 40, TICK_US = 1500 };
enum { CROWD = 64, CROWD_TICKS = 400 };
enum { IDLE_SOCKETS = 1000, IDLE_PORT = 20000, IDLE_S = 10 };
/* Whoever has lost the other end is ended. */
enum { LIMIT_S = 15 };

struct payload {
	uint64_t number;
	uint8_t rest[LEN - sizeof(uint64_t)];
};

static int fd, set;
static const char *way;

static void must(bool is_done, const char *what)
{
	if (is_done)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct sockaddr_in name_of(const char *address, uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port) };

	must(inet_pton(AF_INET, address, &name.sin_addr) == 1, address);
	return name;
}

static void add(int member)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = member };

	must(epoll_ctl(set, EPOLL_CTL_ADD, member, &event) == 0, "epoll_ctl");
}

static void open_at(const char *own, uint16_t port, const char *peer)
{
	struct sockaddr_in name = name_of(own, port);
	struct sockaddr_in other = name_of(peer, PORT);

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	must(bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0, "bind");
	must(connect(fd, (struct sockaddr *)&other, sizeof(other)) == 0,
	     "connect");
	set = epoll_create1(0);
	add(fd);
}

/* -- the ways ------------------------------------------------------------------- */

static bool is_epoll_ready(void)
{
	struct epoll_event event;

	return epoll_wait(set, &event, 1, -1) == 1;
}

static bool is_poll_ready(void)
{
	struct pollfd asked = { .fd = fd, .events = POLLIN };

	return poll(&asked, 1, -1) == 1;
}

static bool is_select_ready(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, NULL) == 1;
}

static const struct {
	const char *name;
	bool (*is_ready)(void); /* NULL: the receive blocks */
} ways[] = {
	{ "block", NULL },
	{ "epoll", is_epoll_ready },
	{ "poll", is_poll_ready },
	{ "select", is_select_ready },
};
static bool (*is_ready)(void);

static bool find_way(void)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i].name, way) == 0) {
			is_ready = ways[i].is_ready;
			return true;
		}
	return false;
}

/* The next datagram; the peer may not be there yet. */
static void receive(struct payload *data)
{
	ssize_t n;

	do
		n = is_ready && !is_ready() ?
			    -1 :
			    recv(fd, data, sizeof(*data),
				 is_ready ? MSG_DONTWAIT : 0);
	while (n != sizeof(*data));
}

static void send_one(uint64_t number)
{
	struct payload data = { .number = number };

	(void)!send(fd, &data, sizeof(data), 0);
}

/* -- roles ------------------------------------------------------------------------ */

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(uint32_t *samples, size_t cnt, double share)
{
	qsort(samples, cnt, sizeof(samples[0]), compare);
	printf("%.0f %.0f\n", samples[cnt / 2] * share,
	       samples[(size_t)((double)(cnt - 1) * 0.999)] * share);
}

static int echo(void)
{
	struct payload data = { .number = 0 };

	say_ready();
	while (data.number != END) {
		receive(&data);
		send_one(data.number);
	}
	return 0;
}

static int ping(void)
{
	static uint32_t samples[PINGS];
	struct payload data;

	for (uint64_t number = 0; number < WARM_UP + PINGS; number++) {
		uint64_t begin = now_ns();

		send_one(number);
		do
			receive(&data);
		while (data.number != number);
		if (number >= WARM_UP)
			samples[number - WARM_UP] =
				(uint32_t)(now_ns() - begin);
	}
	for (int i = 0; i < ENDS; i++)
		send_one(END);
	print(samples, PINGS, 0.5);
	return 0;
}

/* Answers whoever asks. */
static int echo_any(const char *own)
{
	struct sockaddr_in name = name_of(own, PORT), from;
	struct payload data = { .number = 0 };
	socklen_t len;

	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	must(bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0, "bind");
	say_ready();
	while (data.number != END) {
		len = sizeof(from);
		if (recvfrom(fd, &data, sizeof(data), 0,
			     (struct sockaddr *)&from, &len) == sizeof(data))
			(void)!sendto(fd, &data, sizeof(data), 0,
				      (struct sockaddr *)&from, len);
	}
	return 0;
}

struct asker {
	int fd, set;
	uint32_t samples[PAIR_PINGS];
	pthread_t thread;
};

static void *ask(void *arg)
{
	struct asker *me = arg;
	struct payload data;
	struct epoll_event event;

	for (uint64_t number = 0; number < WARM_UP + PAIR_PINGS; number++) {
		uint64_t begin = now_ns();

		data.number = number;
		(void)!send(me->fd, &data, sizeof(data), 0);
		do
			if (epoll_wait(me->set, &event, 1, -1) != 1 ||
			    recv(me->fd, &data, sizeof(data), MSG_DONTWAIT) < 0)
				data.number = END;
		while (data.number != number);
		if (number >= WARM_UP)
			me->samples[number - WARM_UP] =
				(uint32_t)(now_ns() - begin);
	}
	return NULL;
}

/* Two threads that wait on one processor: what the slowest answer takes. */
static int pair(const char *own, const char *peer)
{
	static struct asker askers[2];
	static uint32_t all[2 * PAIR_PINGS];

	askers[0] = (struct asker){ .fd = fd, .set = set };
	open_at(own, PORT + 1, peer);
	askers[1] = (struct asker){ .fd = fd, .set = set };
	for (int i = 0; i < 2; i++)
		must(pthread_create(&askers[i].thread, NULL, ask,
				    &askers[i]) == 0, "pthread_create");
	for (int i = 0; i < 2; i++) {
		pthread_join(askers[i].thread, NULL);
		memcpy(all + i * PAIR_PINGS, askers[i].samples,
		       sizeof(askers[i].samples));
	}
	for (int i = 0; i < ENDS; i++)
		send_one(END);
	print(all, 2 * PAIR_PINGS, 1);
	return 0;
}

_Noreturn static void tick(void)
{
	say_ready();
	for (;;) {
		usleep(TICK_US);
		send_one(now_ns());
	}
}

static int hear(void)
{
	static uint32_t samples[HEARD];
	struct payload data;

	for (int i = 0; i < HEARD_BEFORE; i++)
		receive(&data);
	for (int i = 0; i < HEARD; i++) {
		receive(&data);
		samples[i] = (uint32_t)(now_ns() - data.number);
	}
	print(samples, HEARD, 1);
	return 0;
}

static _Atomic unsigned returned, taken;

static void *sleep_in_set(void *arg)
{
	struct epoll_event event;
	char buf[LEN];

	for (;;) {
		if (epoll_wait(set, &event, 1, -1) != 1)
			continue;
		atomic_fetch_add(&returned, 1);
		if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			atomic_fetch_add(&taken, 1);
	}
	return arg;
}

static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static void await_taken(unsigned cnt)
{
	while (atomic_load(&taken) < cnt)
		usleep(200);
}

/* The waits of the thread that counts are its own. */
_Noreturn static void crowd(void)
{
	struct rusage usage;
	unsigned from, from_taken;
	long slept, own;
	pthread_t thread;

	for (int i = 0; i < CROWD; i++)
		must(pthread_create(&thread, NULL, sleep_in_set, NULL) == 0,
		     "pthread_create");
	await_taken(HEARD_BEFORE);
	from = atomic_load(&returned);
	from_taken = atomic_load(&taken);
	slept = sleeps();
	getrusage(RUSAGE_THREAD, &usage);
	own = usage.ru_nvcsw;
	await_taken(from_taken + CROWD_TICKS);
	getrusage(RUSAGE_THREAD, &usage);
	own = usage.ru_nvcsw - own;
	slept = sleeps() - slept - own;
	from_taken = atomic_load(&taken) - from_taken;
	printf("%.3f %.3f\n", (atomic_load(&returned) - from) / (double)from_taken,
	       (double)slept / from_taken);
	fflush(stdout);
	_exit(0);
}

static double processor_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

_Noreturn static void idle(const char *own)
{
	struct rlimit limit = { IDLE_SOCKETS + 100, IDLE_SOCKETS + 100 };
	pthread_t thread;
	double before;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < IDLE_SOCKETS; i++) {
		struct sockaddr_in name =
			name_of(own, (uint16_t)(IDLE_PORT + i));
		int one = socket(AF_INET, SOCK_DGRAM, 0);

		must(bind(one, (struct sockaddr *)&name, sizeof(name)) == 0,
		     "bind");
		add(one);
	}
	must(pthread_create(&thread, NULL, sleep_in_set, NULL) == 0,
	     "pthread_create");
	/* until it has ceased to poll */
	sleep(2);
	before = processor_ms();
	sleep(IDLE_S);
	printf("%.3f\n", processor_ms() - before);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *role = argc == 5 ? argv[1] : "";

	way = argc == 5 ? argv[2] : "";
	if (!find_way()) {
		fprintf(stderr, "usage: %s echo|echo-any|ping|pair|ticks|hear|crowd|idle block|epoll|poll|select OWN-ADDRESS PEER-ADDRESS\n",
			argv[0]);
		return 2;
	}
	alarm(LIMIT_S);
	open_at(argv[3], PORT, argv[4]);
	if (strcmp(role, "echo") == 0)
		return echo();
	if (strcmp(role, "ping") == 0)
		return ping();
	if (strcmp(role, "echo-any") == 0)
		return echo_any(argv[3]);
	if (strcmp(role, "pair") == 0)
		return pair(argv[3], argv[4]);
	if (strcmp(role, "ticks") == 0)
		tick();
	if (strcmp(role, "hear") == 0)
		return hear();
	if (strcmp(role, "crowd") == 0)
		crowd();
	idle(argv[3]);
}
