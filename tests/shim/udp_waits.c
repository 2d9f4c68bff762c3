/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: threads that wait for datagrams, in receiving calls, and in
 * poll, select and epoll. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/sleeper.h"
#include "tests/support/unseen.h"

/* -- threads ---------------------------------------------------------------------- */

struct crowd {
	int fd;
	unsigned cnt;
	_Atomic unsigned long long sum;
	_Atomic unsigned got;
};

static void *take_numbers(void *arg)
{
	struct crowd *crowd = arg;
	unsigned number;

	while (recv(crowd->fd, &number, sizeof(number), 0) ==
		       sizeof(number) &&
	       number) {
		crowd->sum += number;
		crowd->got++;
	}
	return NULL;
}

/* Each datagram is received once, whichever thread it is by. */
static void many_threads_one_socket(void)
{
	enum { THREADS = 4, NUMBERS = 4000 };
	struct crowd crowd = { 0 };
	pthread_t threads[THREADS];
	unsigned number;
	int pair[2];

	make_pair(pair);
	crowd.fd = pair[1];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, take_numbers, &crowd);
	for (number = 1; number <= NUMBERS; number++) {
		send(pair[0], &number, sizeof(number), 0);
		/* no more on the way than the queue holds */
		while (number - crowd.got > 50)
			sched_yield();
	}
	while (crowd.got < NUMBERS)
		sched_yield();
	number = 0;
	for (int i = 0; i < THREADS; i++)
		send(pair[0], &number, sizeof(number), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	SAY("%u numbers, sum %llu\n", crowd.got, crowd.sum);
	received_cnt += crowd.got + THREADS;
	close_pair(pair);
}

/* Sleeps in the kernel, or wherever the library lets it sleep. */
static void await_sleep(pid_t tid)
{
	char path[64], stat[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (!strstr(stat, ") S ")) {
		file = fopen(path, "r");
		if (!file || !fgets(stat, sizeof(stat), file))
			SAY("no such thread\n");
		if (file)
			fclose(file);
	}
}

/* How a thread sleeps until there is a datagram. */
enum way { BY_RECV, BY_POLL, BY_SELECT, BY_EPOLL, WAYS };

static void await_datagram(enum way way, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	fd_set in;
	int set;

	switch (way) {
	case BY_POLL:
		poll(&pfd, 1, -1);
		break;
	case BY_SELECT:
		FD_ZERO(&in);
		FD_SET(fd, &in);
		select(fd + 1, &in, NULL, NULL, NULL);
		break;
	case BY_EPOLL:
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
		epoll_wait(set, &event, 1, -1);
		close(set);
		break;
	default:
		break; /* recv does it itself */
	}
}

struct early_reader {
	int fd;
	enum way way;
	_Atomic pid_t tid;
	pthread_t thread;
	char got[8];
};

static void *read_early(void *arg)
{
	struct early_reader *reader = arg;

	reader->tid = gettid();
	await_datagram(reader->way, reader->fd);
	recv(reader->fd, reader->got, sizeof(reader->got), 0);
	return NULL;
}

/* It sleeps when this returns. */
static void start_reader(struct early_reader *reader)
{
	pthread_create(&reader->thread, NULL, read_early, reader);
	while (!reader->tid)
		sched_yield();
	await_sleep(reader->tid);
}

/* Its socket gets its port by a send, and is answered. */
static void ask_for_reader(struct early_reader *reader, int server,
			   const struct sockaddr_in *name)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char buf[8];

	sendto(reader->fd, "ask", 4, 0, (const struct sockaddr *)name,
	       sizeof(*name));
	recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len);
	sendto(server, "answer", 7, 0, (struct sockaddr *)&from, len);
	pthread_join(reader->thread, NULL);
	SAY("%s, %s\n", buf, reader->got);
	received_cnt += 2;
}

/* As one thread sends and another one receives: the port comes with the first
 * send, when the reader sleeps already. */
static void reader_before_the_first_send(void)
{
	struct sockaddr_in name;
	int server = bound(&name);

	for (enum way way = 0; way < WAYS; way++) {
		struct early_reader reader = { .way = way };

		reader.fd = socket(AF_INET, SOCK_DGRAM, 0);
		start_reader(&reader);
		ask_for_reader(&reader, server, &name);
		close(reader.fd);
	}
	close(server);
}

/* A socket with a peer that only the kernel serves; its name in *own. No other
 * socket of the program is needed for it. */
static int connected_to_a_group(struct sockaddr_in *own)
{
	struct sockaddr_in group = { .sin_family = AF_INET,
				     .sin_port = htons(9) };
	struct in_addr by = owned(0).sin_addr;
	socklen_t len = sizeof(*own);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, "239.7.7.7", &group.sin_addr);
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by));
	SAY("connect: %s\n",
	    err(connect(fd, (struct sockaddr *)&group, sizeof(group))));
	getsockname(fd, (struct sockaddr *)own, &len);
	*own = heard_at(own->sin_port);
	return fd;
}

/* Another thread connects the reader's socket to the peer, which sends then. */
static void reconnect_reader(struct early_reader *reader, int peer,
			     const struct sockaddr_in *name,
			     const struct sockaddr_in *own)
{
	SAY("reconnect: %s\n",
	    err(UNSEEN(connect)(reader->fd, (const struct sockaddr *)name,
				sizeof(*name))));
	sendto(peer, "hello", 5, 0, (const struct sockaddr *)own, sizeof(*own));
	pthread_join(reader->thread, NULL);
	SAY("got %s\n", reader->got);
	received_cnt++;
}

/* The same for a socket that the kernel has, until another thread connects it
 * elsewhere. */
static void reader_of_one_that_is_reconnected(void)
{
	struct sockaddr_in name, own;
	int peer = bound(&name);

	for (int i = 0; i < 3 * WAYS; i++) {
		struct early_reader reader = { .way = (enum way)i % WAYS };

		reader.fd = connected_to_a_group(&own);
		start_reader(&reader);
		reconnect_reader(&reader, peer, &name, &own);
		close(reader.fd);
	}
	close(peer);
}

/* Both once more, when nothing in the process is accelerated yet: that comes while
 * the reader sleeps. */
static void first_in_the_process(enum way way, bool has_names)
{
	struct early_reader reader = { .way = way };
	struct sockaddr_in name, own;
	int peer;

	if (has_names)
		reader.fd = connected_to_a_group(&own);
	else
		reader.fd = socket(AF_INET, SOCK_DGRAM, 0);
	start_reader(&reader);
	peer = bound(&name);
	if (has_names)
		reconnect_reader(&reader, peer, &name, &own);
	else
		ask_for_reader(&reader, peer, &name);
	close(reader.fd);
	close(peer);
}

/* How long is asked of the socket, whoever has it. */
static void timeouts_of_the_kernels(void)
{
	struct timeval tv = { 0, 30000 };
	struct sockaddr_in own;
	int fds[] = { socket(AF_INET, SOCK_DGRAM, 0),
		      connected_to_a_group(&own) };
	struct pollfd pfd = { .events = POLLIN };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		pfd.fd = fds[i];
		SAY("poll %d\n", poll(&pfd, 1, 30));
		setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
		receive(fds[i], 0);
		close(fds[i]);
	}
}

#define FIRST_READER(name, way)                      \
	static void first_reader_by_##name(void)     \
	{                                            \
		first_in_the_process(way, false);    \
	}                                            \
	static void first_by_kernel_by_##name(void)  \
	{                                            \
		first_in_the_process(way, true);     \
	}
FIRST_READER(recv, BY_RECV)
FIRST_READER(poll, BY_POLL)
FIRST_READER(select, BY_SELECT)
FIRST_READER(epoll, BY_EPOLL)

static void *echo(void *arg)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char buf[256];
	ssize_t n;

	while ((n = recvfrom(*(int *)arg, buf, sizeof(buf), 0,
			     (struct sockaddr *)&from, &len)) > 1)
		sendto(*(int *)arg, buf, (size_t)n, 0,
		       (struct sockaddr *)&from, len);
	return NULL;
}

struct asker {
	struct sockaddr_in server;
	unsigned id;
	_Atomic unsigned *good;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char out[64], in[64];

	connect(fd, (struct sockaddr *)&asker->server, sizeof(asker->server));
	for (int i = 0; i < 500; i++) {
		int len = snprintf(out, sizeof(out), "%u asks %d", asker->id, i);

		send(fd, out, (size_t)len, 0);
		if (recv(fd, in, sizeof(in), 0) == len &&
		    memcmp(in, out, (size_t)len) == 0)
			(*asker->good)++;
	}
	close(fd);
	return NULL;
}

/* Threads that sleep on sockets of their own: one at a time watches for all. */
static void many_threads_many_sockets(void)
{
	enum { ASKERS = 6 };
	struct asker askers[ASKERS];
	pthread_t threads[ASKERS], server_thread;
	_Atomic unsigned good = 0;
	struct sockaddr_in name;
	int server = bound(&name);
	int me = socket(AF_INET, SOCK_DGRAM, 0);

	pthread_create(&server_thread, NULL, echo, &server);
	for (unsigned i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ name, i, &good };
		pthread_create(&threads[i], NULL, ask, &askers[i]);
	}
	for (int i = 0; i < ASKERS; i++)
		pthread_join(threads[i], NULL);
	sendto(me, "", 1, 0, (struct sockaddr *)&name, sizeof(name));
	pthread_join(server_thread, NULL);
	SAY("%u good\n", good);
	received_cnt += 2 * good + 1;
	close(server);
	close(me);
}

/* -- readiness -------------------------------------------------------------------- */

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
	select_them(pair, true, NULL);
	receive(pair[1], 0);
	close_pair(pair);
}

static void *send_soon(void *arg)
{
	sleeper_await(getpid());
	send(*(int *)arg, "late", 4, 0);
	return NULL;
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
static void epoll_beyond_us(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got;
	int pair[2], set = epoll_create1(0), n;

	make_pair(pair);
	send(pair[0], "early", 5, 0);
	settle();
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	/* by the twin, which has it from us */
	kernels_cnt++;
	receive(pair[1], 0);
	send(pair[0], "one", 3, 0);
	n = epoll_wait(set, &got, 1, 1000);
	SAY("wait %d %#x\n", n, n > 0 ? got.events : 0);
	receive(pair[1], 0);
	n = epoll_wait(set, &got, 1, 0);
	SAY("wait %d\n", n);
	send(pair[0], "two", 3, 0);
	n = epoll_wait(set, &got, 1, 1000);
	SAY("wait %d\n", n);
	n = epoll_wait(set, &got, 1, 0);
	SAY("edge only: %d\n", n);
	receive(pair[1], 0);
	close(set);
	close_pair(pair);
}

static void *wait_in_set(void *arg)
{
	struct crowd *crowd = arg;
	struct epoll_event event;
	unsigned number;

	while (epoll_wait(crowd->fd, &event, 1, -1) == 1) {
		if (recv(event.data.fd, &number, sizeof(number),
			 MSG_DONTWAIT) != sizeof(number))
			continue;
		if (!number)
			break;
		crowd->sum += number;
		crowd->got++;
	}
	return NULL;
}

static void many_threads_one_set(void)
{
	enum { THREADS = 3, SOCKETS = 5, NUMBERS = 1000 };
	struct crowd crowd = { .fd = epoll_create1(0) };
	int pairs[SOCKETS][2];
	pthread_t threads[THREADS];
	unsigned number;

	for (int i = 0; i < SOCKETS; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		make_pair(pairs[i]);
		event.data.fd = pairs[i][1];
		epoll_ctl(crowd.fd, EPOLL_CTL_ADD, pairs[i][1], &event);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, wait_in_set, &crowd);
	for (number = 1; number <= NUMBERS; number++) {
		send(pairs[number % SOCKETS][0], &number, sizeof(number), 0);
		while (number - crowd.got > 50)
			sched_yield();
	}
	while (crowd.got < NUMBERS)
		sched_yield();
	number = 0;
	for (int i = 0; i < THREADS; i++)
		send(pairs[i][0], &number, sizeof(number), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	SAY("%u numbers, sum %llu\n", crowd.got, crowd.sum);
	received_cnt += crowd.got + THREADS;
	for (int i = 0; i < SOCKETS; i++)
		close_pair(pairs[i]);
	close(crowd.fd);
}

/* A thread in a set, by one of the three calls, until it has a datagram. */
struct early_waiter {
	int set;
	int fd; /* that may have one */
	unsigned call;
	_Atomic pid_t tid;
	_Atomic unsigned *got;
	pthread_t thread;
};

static int wait_by(unsigned call, int set, struct epoll_event *event, int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	switch (call) {
	case 0:
		return epoll_wait(set, event, 1, ms);
	case 1:
		return epoll_pwait(set, event, 1, ms, NULL);
	default:
		return epoll_pwait2(set, event, 1, ms < 0 ? NULL : &ts, NULL);
	}
}

static void *take_one(void *arg)
{
	struct early_waiter *waiter = arg;
	struct epoll_event event;
	char buf[8];

	waiter->tid = gettid();
	do {
		if (wait_by(waiter->call, waiter->set, &event, -1) != 1 ||
		    event.data.fd != waiter->fd)
			SAY("stray\n");
	} while (recv(waiter->fd, buf, sizeof(buf), MSG_DONTWAIT) < 0);
	(*waiter->got)++;
	return NULL;
}

static int set_with_pipe(int pipes[2])
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = -1 };
	int set = epoll_create1(0);

	if (pipe(pipes) == 0)
		epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event);
	return set;
}

/* As a program does whose loop runs before it has sockets. */
static void sleepers_of_a_set_without_sockets(void)
{
	enum { THREADS = 6 };
	struct epoll_event event = { .events = EPOLLIN };
	struct early_waiter waiters[THREADS];
	_Atomic unsigned got = 0;
	struct sockaddr_in name;
	int pipes[2], set = set_with_pipe(pipes);
	int me, fd = dup(set);

	/* the number of the socket to be */
	close(fd);
	for (unsigned i = 0; i < THREADS; i++) {
		waiters[i] = (struct early_waiter){
			.set = set, .fd = fd, .call = i % 3, .got = &got
		};
		pthread_create(&waiters[i].thread, NULL, take_one, &waiters[i]);
		while (!waiters[i].tid)
			sched_yield();
		await_sleep(waiters[i].tid);
	}
	event.data.fd = bound(&name);
	SAY("%s\n", event.data.fd == fd ? "as expected" : "another number");
	me = socket(AF_INET, SOCK_DGRAM, 0);
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	for (unsigned i = 0; i < THREADS; i++) {
		sendto(me, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		while (got == i)
			sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(waiters[i].thread, NULL);
	SAY("%u got one\n", got);
	received_cnt += got;
	close(fd);
	close(me);
	close(set);
	close(pipes[0]);
	close(pipes[1]);
}

static void *wait_in_vain(void *arg)
{
	struct early_waiter *waiter = arg;
	struct timespec from, to;
	struct epoll_event event;
	int n;

	waiter->tid = gettid();
	clock_gettime(CLOCK_MONOTONIC, &from);
	n = wait_by(waiter->call, waiter->set, &event, 80);
	clock_gettime(CLOCK_MONOTONIC, &to);
	SAY("epoll %d, %s\n", n,
	    (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec >=
			    80000000L ?
		    "in time" :
		    "too early");
	return NULL;
}

/* The socket comes, and nothing for it until the wait is over: then one datagram, which
 * shows whose the socket was. */
static void time_of_a_set_that_gets_sockets(void)
{
	struct sockaddr_in own;
	int client = bound(&own);

	for (unsigned call = 0; call < 3; call++) {
		struct early_waiter waiter = { .call = call };
		struct epoll_event event = { .events = EPOLLIN };
		struct sockaddr_in name;
		int pipes[2], fd;

		waiter.set = set_with_pipe(pipes);
		pthread_create(&waiter.thread, NULL, wait_in_vain, &waiter);
		while (!waiter.tid)
			sched_yield();
		await_sleep(waiter.tid);
		fd = bound(&name);
		epoll_ctl(waiter.set, EPOLL_CTL_ADD, fd, &event);
		pthread_join(waiter.thread, NULL);
		sendto(client, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		SAY("epoll %d, ", epoll_wait(waiter.set, &event, 1, 1000));
		SAY("recv %zd\n", recv(fd, &event, 1, 0));
		received_cnt++;
		close(fd);
		close(waiter.set);
		close(pipes[0]);
		close(pipes[1]);
	}
	close(client);
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

/* -- shutdown() ends a wait, whoever serves the socket -------------------------------- */

struct shut_reader {
	int fd;
	_Atomic pid_t tid;
	pthread_t thread;
	ssize_t n;
};

static void *read_until_shut(void *arg)
{
	struct shut_reader *reader = arg;
	char buf[8];

	reader->tid = gettid();
	reader->n = recv(reader->fd, buf, sizeof(buf), 0);
	return NULL;
}

static void shut_under_reader(int fd)
{
	struct shut_reader reader = { .fd = fd };

	pthread_create(&reader.thread, NULL, read_until_shut, &reader);
	while (!reader.tid)
		sched_yield();
	await_sleep(reader.tid);
	SAY("shutdown %s\n", err(shutdown(fd, SHUT_RD)));
	pthread_join(reader.thread, NULL);
	SAY("recv %zd\n", reader.n);
	SAY("again %zd\n", recv(fd, &(char){ 0 }, 1, 0));
	SAY("without waiting %s\n",
	    err(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT)));
}

static void shutdown_wakes_readers(void)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in name;
	int pair[2], fd;

	make_pair(pair);
	shut_under_reader(pair[1]);
	close_pair(pair);
	fd = bound(&name);
	shut_under_reader(fd);
	close(fd);
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bind(fd, (struct sockaddr *)&v6, sizeof(v6));
	shut_under_reader(fd);
	close(fd);
}

/* -- what a batch meets behind its first datagram ------------------------------------ */

static void *receive_two(void *arg)
{
	struct shut_reader *reader = arg;
	struct mmsghdr msgs[2] = { 0 };
	struct iovec iov[2];
	char buf[2][8];

	for (int i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	reader->tid = gettid();
	reader->n = recvmmsg(reader->fd, msgs, 2, 0, NULL);
	return NULL;
}

/* The error comes while the second one is waited for; it is the next call's. */
static void meet_error(bool by_getsockopt)
{
	struct shut_reader reader = { 0 };
	struct pollfd pfd;
	int pair[2], error = 0;
	socklen_t len = sizeof(error);

	make_pair(pair);
	reader.fd = pair[1];
	pthread_create(&reader.thread, NULL, receive_two, &reader);
	while (!reader.tid)
		sched_yield();
	send(pair[0], "first", 5, 0);
	/* it sleeps for the second one */
	settle();
	await_sleep(reader.tid);
	close(pair[0]);
	/* nobody has its port any more */
	send(pair[1], "refused", 7, 0);
	pthread_join(reader.thread, NULL);
	received_cnt++;
	SAY("recvmmsg %zd\n", reader.n);
	pfd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	SAY("poll %d", poll(&pfd, 1, 0));
	SAY(" %#x\n", pfd.revents & POLLERR);
	if (by_getsockopt) {
		getsockopt(pair[1], SOL_SOCKET, SO_ERROR, &error, &len);
		SAY("SO_ERROR %s\n", strerrorname_np(error));
	} else {
		SAY("recv %s\n", err(recv(pair[1], &error, 1, 0)));
	}
	SAY("then %s\n", err(recv(pair[1], &error, 1, MSG_DONTWAIT)));
	close(pair[1]);
}

static void errors_behind_the_first(void)
{
	meet_error(false);
	meet_error(true);
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

/* -- threads that end while they wait ------------------------------------------------ */

static void exit_here(int sig)
{
	(void)sig;
	pthread_exit(NULL);
}

/* How a sleeping thread is made to end. */
enum ending { BY_CANCEL, BY_HANDLER, ENDINGS };

static void end_thread(pthread_t thread, enum ending ending)
{
	struct sigaction act = { .sa_handler = exit_here };

	if (ending == BY_CANCEL) {
		pthread_cancel(thread);
	} else {
		sigaction(SIGUSR1, &act, NULL);
		pthread_kill(thread, SIGUSR1);
	}
	pthread_join(thread, NULL);
}

/* The thread that ends may have been the one that wakes all others, and is not to keep
 * its socket: another one gets the port, and what is sent there. */
static void end_in_a_sleep(enum way way, enum ending ending)
{
	struct early_reader ends = { .way = way }, stays = { .way = BY_RECV };
	struct sockaddr_in name, other;
	int sender = bound(&name);

	ends.fd = bound_by_number(&other);
	stays.fd = bound(&name);
	start_reader(&ends);
	start_reader(&stays);
	end_thread(ends.thread, ending);
	sendto(sender, "stays", 6, 0, (struct sockaddr *)&name, sizeof(name));
	pthread_join(stays.thread, NULL);
	SAY("%s\n", stays.got);
	sendto(sender, "still", 6, 0, (struct sockaddr *)&other, sizeof(other));
	receive(ends.fd, 0);
	received_cnt++;
	close(ends.fd);
	close(stays.fd);
	close(sender);
}

static void threads_end_in_sleeps(void)
{
	for (enum ending ending = 0; ending < ENDINGS; ending++)
		for (enum way way = 0; way < WAYS; way++)
			end_in_a_sleep(way, ending);
}

/* Cancelled threads that never sleep: each end is in a call that looks, names, or
 * sends, and what those hold must be free afterwards. */
static void *call_on_and_on(void *arg)
{
	const int *fd = arg;
	struct pollfd pfd = { .fd = *fd, .events = POLLIN };
	struct sockaddr_in name = heard_at(9);
	char buf[8];

	for (;;) {
		recv(*fd, buf, sizeof(buf), MSG_DONTWAIT);
		poll(&pfd, 1, 0);
		connect(*fd, (struct sockaddr *)&name, sizeof(name));
		pthread_testcancel();
	}
	return NULL;
}

static void threads_end_in_calls(void)
{
	enum { TIMES = 40 };
	struct sockaddr_in name;
	int fd = bound(&name), sender = bound(&name);
	pthread_t thread;

	close(sender);
	for (int i = 0; i < TIMES; i++) {
		pthread_create(&thread, NULL, call_on_and_on, &fd);
		for (int j = 0; j < i; j++)
			sched_yield();
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	close(fd);
	fd = bound(&name);
	sender = bound(&(struct sockaddr_in){ 0 });
	sendto(sender, "after", 6, 0, (struct sockaddr *)&name, sizeof(name));
	receive(fd, 0);
	close(fd);
	close(sender);
}

const struct scenario wait_scenarios[] = {
	SCENARIO(many_threads_one_socket, 0),
	SCENARIO(many_threads_many_sockets, 0),
	SCENARIO(reader_before_the_first_send, 0),
	SCENARIO(reader_of_one_that_is_reconnected, 0),
	SCENARIO(timeouts_of_the_kernels, 0),
	SCENARIO(first_reader_by_recv, 0),
	SCENARIO(first_reader_by_poll, 0),
	SCENARIO(first_reader_by_select, 0),
	SCENARIO(first_reader_by_epoll, 0),
	SCENARIO(first_by_kernel_by_recv, 0),
	SCENARIO(first_by_kernel_by_poll, 0),
	SCENARIO(first_by_kernel_by_select, 0),
	SCENARIO(first_by_kernel_by_epoll, 0),
	SCENARIO(readiness_by_poll, 0),
	SCENARIO(readiness_by_select, 0),
	SCENARIO(readiness_by_epoll, 0),
	SCENARIO(epoll_beyond_us, 2),
	SCENARIO(many_threads_one_set, 0),
	SCENARIO(sleepers_of_a_set_without_sockets, 0),
	SCENARIO(time_of_a_set_that_gets_sockets, 0),
	SCENARIO(one_event_at_a_time, 0),
	SCENARIO(shutdown_wakes_readers, 0),
	SCENARIO(errors_behind_the_first, 2),
	SCENARIO(sockets_close_while_they_are_added, 0),
	SCENARIO(threads_end_in_sleeps, 0),
	SCENARIO(threads_end_in_calls, 0),
	SCENARIO_END,
};
