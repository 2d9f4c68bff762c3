/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: threads that sleep for a set of epoll before anything in it is
 * ours. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/shim/udp.h"
#include "tests/support/sleeper.h"
#include "tests/support/unseen.h"

static const char *add(int set, int fd, uint32_t events, uint32_t word)
{
	struct epoll_event event = { .events = events, .data.u32 = word };

	return err(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

/* A thread in a set, by one of the three calls, until it has a datagram. */
struct early_waiter {
	int set;
	int fd; /* that may have one */
	unsigned call;
	int ms;
	_Atomic pid_t tid;
	_Atomic unsigned *got;
	int found;
	uint32_t events;
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
		sleeper_await(waiters[i].tid);
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
		sleeper_await(waiter.tid);
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

/* The first socket comes with something to read: the sleeper is told all of it, once. */
static void *take_first(void *arg)
{
	struct early_waiter *waiter = arg;
	struct epoll_event event = { 0 };

	waiter->tid = gettid();
	waiter->found = wait_by(waiter->call, waiter->set, &event, waiter->ms);
	waiter->events = event.events;
	return NULL;
}

static void sleepers_of_a_set_that_gets_a_ready_socket(void)
{
	for (unsigned call = 0; call < 3; call++) {
		struct early_waiter waiter = { .call = call, .ms = -1 };
		struct epoll_event again;
		int pair[2], pipes[2];

		waiter.set = set_with_pipe(pipes);
		make_pair(pair);
		send(pair[0], "one", 3, 0);
		settle();
		pthread_create(&waiter.thread, NULL, take_first, &waiter);
		while (!waiter.tid)
			sched_yield();
		sleeper_await(waiter.tid);
		SAY("add %s\n", add(waiter.set, pair[1],
				    EPOLLIN | EPOLLOUT | EPOLLONESHOT, 1));
		pthread_join(waiter.thread, NULL);
		SAY("epoll %d: %#x\n", waiter.found, waiter.events);
		SAY("once: %d\n", epoll_wait(waiter.set, &again, 1, 0));
		receive(pair[1], 0);
		close(waiter.set);
		close(pipes[0]);
		close(pipes[1]);
		close_pair(pair);
	}
}

/* -- by poll and select --------------------------------------------------------------- */

/* A thread that asks whether a set is ready, beside another fd or alone. */
struct poller {
	unsigned call;
	int set, beside; /* -1: none */
	int ms;
	bool is_silent; /* and does not say what it found */
	bool is_ready;
	int n; /* what the call returned */
	_Atomic long long from_ns;
	_Atomic pid_t tid;
	pthread_t thread;
};

enum { POLL_CALLS = 4 };

static int poll_by(const struct poller *me, bool *is_set_ready)
{
	struct pollfd fds[] = { { .fd = me->set, .events = POLLIN },
				{ .fd = me->beside, .events = POLLIN } };
	struct timespec ts = { me->ms / 1000, me->ms % 1000 * 1000000L };
	struct timeval tv = { ts.tv_sec, ts.tv_nsec / 1000 };
	int n, cnt = MAX(me->set, me->beside) + 1;
	fd_set in;

	FD_ZERO(&in);
	FD_SET(me->set, &in);
	if (me->beside >= 0)
		FD_SET(me->beside, &in);
	switch (me->call) {
	case 0:
		n = poll(fds, 2, me->ms);
		break;
	case 1:
		n = ppoll(fds, 2, &ts, NULL);
		break;
	case 2:
		n = select(cnt, &in, NULL, NULL, &tv);
		*is_set_ready = FD_ISSET(me->set, &in);
		return n;
	default:
		n = pselect(cnt, &in, NULL, NULL, &ts, NULL);
		*is_set_ready = FD_ISSET(me->set, &in);
		return n;
	}
	*is_set_ready = fds[0].revents == POLLIN;
	return n;
}

static void *poll_set(void *arg)
{
	struct poller *me = arg;
	long long ms;

	me->from_ns = now_ns();
	me->tid = gettid();
	me->n = poll_by(me, &me->is_ready);
	ms = (now_ns() - me->from_ns) / 1000000;
	if (me->is_silent)
		return NULL;
	SAY("call %u: %d%s, %s\n", me->call, me->n, me->is_ready ? " ready" : "",
	    me->n ? ms < me->ms ? "in time" : "too late" :
		    ms >= me->ms ? "in time" : "too early");
	return NULL;
}

static void start_poller(struct poller *me)
{
	me->tid = 0;
	pthread_create(&me->thread, NULL, poll_set, me);
	while (!me->tid)
		sched_yield();
	sleeper_await(me->tid);
}

/* The set gets its first socket, and then that a datagram. */
static void poll_of_first_socket(struct poller *poller, int sender)
{
	struct sockaddr_in name;
	struct epoll_event event;
	int fd;

	start_poller(poller);
	fd = bound(&name);
	SAY("add %s\n", add(poller->set, fd, EPOLLIN, 1));
	/* it may be about to sleep once more */
	sleeper_await(poller->tid);
	sendto(sender, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
	pthread_join(poller->thread, NULL);
	SAY("epoll %d\n", epoll_wait(poller->set, &event, 1, 1000));
	receive(fd, 0);
	close(fd);
}

static void polls_of_a_set_without_sockets(void)
{
	struct sockaddr_in own, other;
	int sender = bound(&own), beside = bound(&other), pipes[2];

	/* whoever is early: nothing of ours was there before */
	for (unsigned i = 0; i < 2 * POLL_CALLS; i++) {
		struct poller poller = { .call = i % POLL_CALLS, .ms = 4000,
					 .set = set_with_pipe(pipes),
					 .beside = i < POLL_CALLS ? -1 :
								    beside };

		poll_of_first_socket(&poller, sender);
		close(poller.set);
		close(pipes[0]);
		close(pipes[1]);
	}
	close(sender);
	close(beside);
}

/* The very first socket of the program is that of the set. */
static void poll_of_a_set_before_any_socket(void)
{
	int pipes[2];
	struct poller poller = { .ms = 4000, .set = set_with_pipe(pipes),
				 .beside = -1 };
	struct sockaddr_in name;
	struct epoll_event event;
	int fd;

	start_poller(&poller);
	fd = bound(&name);
	add(poller.set, fd, EPOLLIN, 1);
	sleeper_await(poller.tid);
	sendto(fd, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
	pthread_join(poller.thread, NULL);
	SAY("epoll %d\n", epoll_wait(poller.set, &event, 1, 1000));
	receive(fd, 0);
	close(fd);
	close(poller.set);
	close(pipes[0]);
	close(pipes[1]);
}

/* Nothing comes until the time is over, or only by the pipe. */
static void time_of_polls_of_a_set_that_gets_sockets(void)
{
	struct sockaddr_in own;
	int sender = bound(&own), pipes[2];

	for (unsigned i = 0; i < 2 * POLL_CALLS; i++) {
		struct poller poller = { .call = i % POLL_CALLS,
					 .ms = i < POLL_CALLS ? 80 : 4000,
					 .set = set_with_pipe(pipes),
					 .beside = -1 };
		struct sockaddr_in name;
		int fd;

		start_poller(&poller);
		fd = bound(&name);
		add(poller.set, fd, EPOLLIN, 1);
		if (i >= POLL_CALLS && write(pipes[1], "x", 1) != 1)
			SAY("write: %m\n");
		pthread_join(poller.thread, NULL);
		sendto(sender, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		receive(fd, 0);
		close(fd);
		close(poller.set);
		close(pipes[0]);
		close(pipes[1]);
	}
	close(sender);
}

/* -- by a number ------------------------------------------------------------------- */

enum change { CLOSED, ANOTHER_SOCKET, A_PIPE, CHANGES };

/* As in Linux, who polls looks by the number when its time is over, or when it is woken
 * for nothing, and finds what that names then. */
static void change_under_a_poll(unsigned call, enum change change, int another)
{
	struct sockaddr_in name;
	struct poller poller;
	bool is_late;

	do { /* a change after its time shows nothing */
		poller = (struct poller){ .call = call, .ms = 60,
					  .set = bound(&name), .beside = -1,
					  .is_silent = true };
		start_poller(&poller);
		if (change == CLOSED)
			close(poller.set);
		else
			dup2(another, poller.set);
		is_late = now_ns() - poller.from_ns >= poller.ms * 1000000LL;
		pthread_join(poller.thread, NULL);
		if (change != CLOSED)
			close(poller.set);
	} while (is_late);
	SAY("call %u: %d%s\n", call, poller.n, poller.is_ready ? " ready" : "");
}

static void number_changes_under_a_poll(void)
{
	struct sockaddr_in name, other;
	int sender = bound(&other), ready = bound(&name), pipes[2];

	sendto(sender, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
	if (pipe(pipes) != 0 || write(pipes[1], "x", 1) != 1)
		SAY("pipe: %m\n");
	for (enum change change = 0; change < CHANGES; change++)
		for (unsigned call = 0; call < POLL_CALLS; call++)
			change_under_a_poll(call, change,
					    change == A_PIPE ? pipes[0] : ready);
	receive(ready, 0);
	close(ready);
	close(sender);
	close(pipes[0]);
	close(pipes[1]);
}

/* -- by a copy ----------------------------------------------------------------------- */

/* The set has lost the number that it was made with, before it gets a socket. */
static void sleepers_of_a_copied_set(void)
{
	struct sockaddr_in own;
	int sender = bound(&own);

	for (unsigned i = 0; i < 6; i++) {
		struct early_waiter waiter = { .call = i % 3 };
		struct epoll_event event = { .events = EPOLLIN };
		_Atomic unsigned got = 0;
		struct sockaddr_in name;
		int pipes[2], set = set_with_pipe(pipes), copy = dup(set);

		if (i < 3)
			close(set);
		waiter.set = copy;
		waiter.got = &got;
		/* the next number, which the socket gets */
		waiter.fd = dup(copy);
		close(waiter.fd);
		pthread_create(&waiter.thread, NULL, take_one, &waiter);
		while (!waiter.tid)
			sched_yield();
		sleeper_await(waiter.tid);
		event.data.fd = bound(&name);
		epoll_ctl(i < 3 ? copy : set, EPOLL_CTL_ADD, event.data.fd,
			  &event);
		sendto(sender, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		for (int ms = 0; ms < 2000 && !got; ms++)
			usleep(1000);
		SAY("%s\n", got ? "woken" : "asleep");
		/* by the kernel alone, for one that has missed it */
		if (!got && write(pipes[1], "x", 1) != 1)
			SAY("write: %m\n");
		pthread_join(waiter.thread, NULL);
		received_cnt += got;
		close(event.data.fd);
		if (i >= 3)
			close(set);
		close(copy);
		close(pipes[0]);
		close(pipes[1]);
	}
	close(sender);
}

/* -- by two threads at once ---------------------------------------------------------- */

struct first_adder {
	pthread_barrier_t *start;
	int set, fd;
	pthread_t thread;
};

static void *add_first(void *arg)
{
	struct first_adder *me = arg;

	pthread_barrier_wait(me->start);
	if (*add(me->set, me->fd, EPOLLIN, (uint32_t)me->fd) != 'o')
		SAY("add: %m\n");
	return NULL;
}

/* Each has a first socket for the set: it has both then. */
static void two_first_sockets_at_once(void)
{
	struct epoll_event events[4];
	unsigned missed = 0;

	for (int round = 0; round < 300; round++) {
		struct first_adder adders[2];
		pthread_barrier_t start;
		int set = epoll_create1(0), pairs[2][2];

		pthread_barrier_init(&start, NULL, 2);
		for (int i = 0; i < 2; i++) {
			make_pair(pairs[i]);
			adders[i] = (struct first_adder){
				.start = &start, .set = set, .fd = pairs[i][1]
			};
			pthread_create(&adders[i].thread, NULL, add_first,
				       &adders[i]);
		}
		for (int i = 0; i < 2; i++) {
			pthread_join(adders[i].thread, NULL);
			send(pairs[i][0], "x", 1, 0);
		}
		settle();
		missed += epoll_wait(set, events, 4, 0) != 2;
		for (int i = 0; i < 2; i++) {
			received_cnt += recv(pairs[i][1], events, 1, 0) == 1;
			close_pair(pairs[i]);
		}
		close(set);
		pthread_barrier_destroy(&start);
	}
	SAY("missed %u\n", missed);
}

/* -- whose number is another file's ---------------------------------------------------- */

/* As in Linux, poll() looks by the number, also where another one names the set still. */
static void replaced_under_a_poll(void)
{
	for (int has_copy = 0; has_copy < 2; has_copy++) {
		struct poller poller = { .ms = 700, .set = epoll_create1(0), .beside = -1 };
		int pair[2], other = eventfd(0, 0), copy = -1;

		make_pair(pair);
		SAY("add %s\n", add(poller.set, pair[1], EPOLLIN, 1));
		if (has_copy)
			copy = dup(poller.set);
		start_poller(&poller);
		SAY("dup2 %d\n", dup2(other, poller.set) == poller.set);
		send(pair[0], "one", 3, 0);
		pthread_join(poller.thread, NULL);
		receive(pair[1], 0);
		if (has_copy)
			close(copy);
		close(other);
		close(poller.set);
		close_pair(pair);
	}
}

/* -- that are closed ------------------------------------------------------------------ */

/* What becomes of a wait whose set loses its number: `way` 0: nothing comes; 1: a
 * datagram; 2: the number is another set's, in which something is ready; 3: by another
 * number the set lives, and a pipe in it becomes ready; 4: so does one of the set that has
 * no number any more; 5: and the number is another set's. */
static void closed_in_a_wait(unsigned way)
{
	struct early_waiter waiter = { .call = way % 3 };
	int pair[2], pipes[2], others[2], other = -1, copy = -1;
	int (*end)(int) = UNSEEN(close);

	waiter.set = set_with_pipe(pipes);
	make_pair(pair);
	SAY("add %s\n", add(waiter.set, pair[1], EPOLLIN, 1));
	if (way == 3)
		copy = dup(waiter.set);
	waiter.ms = way == 0 || way == 2 ? 60 : 4000;
	pthread_create(&waiter.thread, NULL, take_first, &waiter);
	while (!waiter.tid)
		sched_yield();
	sleeper_await(waiter.tid);
	end(waiter.set);
	if (way == 1)
		send(pair[0], "x", 1, 0);
	if (way == 2 || way == 5) {
		other = set_with_pipe(others);
		if (other != waiter.set || write(others[1], "x", 1) != 1)
			SAY("number %d\n", other);
	}
	if (way >= 3 && write(pipes[1], "x", 1) != 1)
		SAY("write: %m\n");
	pthread_join(waiter.thread, NULL);
	SAY("epoll %d: %#x\n", waiter.found, waiter.events);
	if (way != 1)
		send(pair[0], "x", 1, 0);
	receive(pair[1], 0);
	if (way == 2 || way == 5) {
		close(other);
		close(others[0]);
		close(others[1]);
	}
	close(copy);
	close(pipes[0]);
	close(pipes[1]);
	close_pair(pair);
}

static void sets_close_in_a_wait(void)
{
	for (unsigned way = 0; way < 6; way++)
		closed_in_a_wait(way);
}

/* A wait for a ready set, but not for that, which something else ends. */
struct other_wish {
	int set, end;
	short events;
	bool is_select;
	_Atomic pid_t tid;
};

static void *wish_for_other(void *arg)
{
	struct other_wish *me = arg;
	struct pollfd fds[2] = { { .fd = me->set, .events = me->events },
				 { .fd = me->end, .events = POLLIN } };
	fd_set in, except;
	int n;

	FD_ZERO(&in);
	FD_ZERO(&except);
	FD_SET(me->end, &in);
	FD_SET(me->set, &except);
	me->tid = gettid();
	n = me->is_select ? select(MAX(me->set, me->end) + 1, &in, NULL, &except, NULL) :
			    poll(fds, 2, -1);
	SAY("%s %#x: %d\n", me->is_select ? "select" : "poll", (unsigned)me->events, n);
	return NULL;
}

/* It sleeps meanwhile. */
static void ready_set_asked_for_something_else(void)
{
	const short wishes[] = { 0, POLLOUT, POLLPRI };
	int sender = socket(AF_INET, SOCK_DGRAM, 0), set = epoll_create1(0), pipes[2];
	struct sockaddr_in name;
	int fd = bound(&name);
	pthread_t thread;

	add(set, fd, EPOLLIN, 1);
	sendto(sender, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
	settle();
	for (unsigned i = 0; i <= ARRAY_LEN(wishes); i++) {
		struct other_wish wish = { .set = set };

		wish.is_select = i == ARRAY_LEN(wishes);
		wish.events = wish.is_select ? POLLPRI : wishes[i];
		if (pipe(pipes) != 0)
			return;
		wish.end = pipes[0];
		pthread_create(&thread, NULL, wish_for_other, &wish);
		while (!wish.tid)
			sched_yield();
		SAY("%s\n", sleeper_await(wish.tid) ? "sleeps" : "does not sleep");
		close(pipes[1]);
		pthread_join(thread, NULL);
		close(pipes[0]);
	}
	receive(fd, 0);
	close(fd);
	close(sender);
	close(set);
}

/* -- threads that do not come back from a set without sockets ------------------------- */

enum way_out { IS_CANCELLED, EXITS, JUMPS, WAYS_OUT };

struct leaver {
	int set;
	_Atomic pid_t tid;
};

static _Thread_local sigjmp_buf way_back;

static void leave_by_exit(int sig UNUSED)
{
	pthread_exit(NULL);
}

static void leave_by_jump(int sig UNUSED)
{
	siglongjmp(way_back, 1);
}

static void *sleep_and_leave(void *arg)
{
	struct leaver *me = arg;
	struct epoll_event event;

	if (sigsetjmp(way_back, 1) == 0) {
		me->tid = gettid();
		epoll_wait(me->set, &event, 1, -1);
	}
	return NULL;
}

static void leave_asleep(int set, enum way_out way)
{
	struct leaver leaver = { .set = set };
	pthread_t thread;

	signal(SIGUSR1, way == EXITS ? leave_by_exit : leave_by_jump);
	pthread_create(&thread, NULL, sleep_and_leave, &leaver);
	while (!leaver.tid)
		sched_yield();
	sleeper_await(leaver.tid);
	if (way == IS_CANCELLED)
		pthread_cancel(thread);
	else
		pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
}

static unsigned count_members(int set)
{
	char path[48], line[256];
	unsigned cnt = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		cnt += strncmp(line, "tfd:", 4) == 0;
	if (file)
		fclose(file);
	return cnt;
}

/* Nobody sleeps there any more who would have to be woken for the first socket. */
static void sleepers_leave_a_set_without_sockets(void)
{
	struct sockaddr_in name;
	int fd = bound(&name);

	for (enum way_out way = 0; way < WAYS_OUT; way++) {
		int set = epoll_create1(0);

		leave_asleep(set, way);
		add(set, fd, EPOLLIN, 1);
		SAY("way %u: %u in the set\n", way, count_members(set));
		close(set);
	}
	close(fd);
}

/* -- told of by the kernel ---------------------------------------------------------- */

enum { FRAGMENT = 16 };

/* A datagram of two fragments, which no ring takes. */
static void send_in_fragments(int raw, const struct sockaddr_in *to, unsigned id)
{
	char bytes[2 * FRAGMENT] = { 0 };
	struct udphdr udp = { .dest = to->sin_port, .len = htons(sizeof(bytes)) };

	memcpy(bytes, &udp, sizeof(udp));
	for (unsigned i = 0; i < 2; i++) {
		struct iphdr ip = {
			.version = 4, .ihl = sizeof(ip) / 4, .ttl = 64, .protocol = IPPROTO_UDP,
			.id = htons((uint16_t)(id + 1)), .daddr = to->sin_addr.s_addr,
			.frag_off = htons((uint16_t)(i * FRAGMENT / 8 | (i ? 0 : IP_MF))),
		};
		char packet[sizeof(ip) + FRAGMENT];

		memcpy(packet, &ip, sizeof(ip));
		memcpy(packet + sizeof(ip), bytes + i * FRAGMENT, FRAGMENT);
		if (sendto(raw, packet, sizeof(packet), 0, (const struct sockaddr *)to,
			   sizeof(*to)) < 0)
			SAY("sendto: %m\n");
	}
}

static int wait_in_turn(unsigned i, int fd, int set)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timeval tv = { .tv_sec = 2 };
	struct epoll_event event;
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(fd, &fds);
	switch (i % 3) {
	case 0:
		return poll(&pfd, 1, 2000);
	case 1:
		return select(fd + 1, &fds, NULL, NULL, &tv);
	default:
		return epoll_wait(set, &event, 1, 2000);
	}
}

/* Who is told that there is something finds it at once. */
static void told_of_by_the_kernel(void)
{
	enum { ROUNDS = 600 };
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	struct sockaddr_in name;
	int fd = bound(&name), untold = 0, none = 0, more = 0;
	char buf[2 * FRAGMENT];

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	for (unsigned i = 0; i < ROUNDS; i++) {
		send_in_fragments(raw, &name, i);
		untold += wait_in_turn(i, fd, set) != 1;
		if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0) {
			none++;
			recv(fd, buf, sizeof(buf), 0);
		}
		more += recv(fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0;
	}
	kernels_cnt += ROUNDS;
	SAY("not told %d times, found nothing %d times, more %d times\n", untold, none, more);
	close(set);
	close(raw);
	close(fd);
}

const struct scenario set_scenarios[] = {
	SCENARIO(sleepers_of_a_set_without_sockets, 0),
	SCENARIO(time_of_a_set_that_gets_sockets, 0),
	SCENARIO(sleepers_of_a_set_that_gets_a_ready_socket, 0),
	SCENARIO(polls_of_a_set_without_sockets, 0),
	SCENARIO(poll_of_a_set_before_any_socket, 0),
	SCENARIO(time_of_polls_of_a_set_that_gets_sockets, 0),
	SCENARIO(number_changes_under_a_poll, 0),
	SCENARIO(sleepers_of_a_copied_set, 0),
	SCENARIO(two_first_sockets_at_once, 0),
	SCENARIO(sets_close_in_a_wait, 0),
	SCENARIO(replaced_under_a_poll, 0),
	SCENARIO(sleepers_leave_a_set_without_sockets, 0),
	SCENARIO(ready_set_asked_for_something_else, 0),
	SCENARIO(told_of_by_the_kernel, 0),
	SCENARIO_END,
};
