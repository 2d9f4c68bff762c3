/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: threads that wait for datagrams, in receiving calls, and in
 * poll, select and epoll. */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
	sleeper_await(reader->tid);
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
	sleeper_await(reader.tid);
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
	sleeper_await(reader.tid);
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

/* -- handlers while a batch has some ---------------------------------------------------- */

/* Two threads come out of this when the handler forks. */
static void *receive_in_both(void *arg)
{
	struct shut_reader *reader = arg;
	pid_t pid = getpid();

	receive_two(reader);
	if (getpid() != pid)
		_exit((int)reader->n);
	return NULL;
}

static void do_nothing(int sig)
{
	(void)sig;
}

static void fork_here(int sig)
{
	(void)sig;
	if (fork() == 0)
		alarm(5);
}

/* It has one and waits for the second. */
static void interrupt_batch(void (*handler)(int), int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };
	struct shut_reader reader = { 0 };
	int pair[2], cnt = 1, status;

	sigaction(SIGUSR1, &act, NULL);
	make_pair(pair);
	reader.fd = pair[1];
	pthread_create(&reader.thread, NULL, receive_in_both, &reader);
	while (!reader.tid)
		sched_yield();
	send(pair[0], "first", 5, 0);
	settle();
	while (cnt)
		ioctl(pair[1], FIONREAD, &cnt);
	sleeper_await(reader.tid);
	pthread_kill(reader.thread, SIGUSR1);
	pthread_join(reader.thread, NULL);
	received_cnt++;
	SAY("recvmmsg %zd\n", reader.n);
	while (wait(&status) > 0)
		SAY("the child's %d %d\n", WIFEXITED(status), WEXITSTATUS(status));
	close_pair(pair);
}

static void handlers_in_a_batch(void)
{
	interrupt_batch(do_nothing, 0);
	interrupt_batch(do_nothing, SA_RESTART);
	interrupt_batch(fork_here, 0);
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

/* -- waits by number ------------------------------------------------------------------ */

enum number { POLL_NUMBER, SELECT_NUMBER, PPOLL_NUMBER, PSELECT_NUMBER,
	      EPOLL_NUMBER, EPOLL_PWAIT_NUMBER, NUMBERS };

struct numbered {
	enum number number;
	/* of them the second one, if it is there, is a socket of ours */
	int fds[2], epfd;
	_Atomic pid_t tid;
	bool has_returned;
};

static void wait_by_number(const struct numbered *wait)
{
	struct pollfd pfds[2] = { { .fd = wait->fds[0], .events = POLLIN },
				  { .fd = wait->fds[1], .events = POLLIN } };
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = wait->epfd;
	fd_set set;

	FD_ZERO(&set);
	for (int i = 0; i < 2 && wait->fds[i] >= 0; i++) {
		FD_SET(wait->fds[i], &set);
		epoll_ctl(epfd, EPOLL_CTL_ADD, wait->fds[i], &event);
	}
	if (wait->number == POLL_NUMBER)
		syscall(SYS_poll, pfds, 2, -1);
	else if (wait->number == SELECT_NUMBER)
		syscall(SYS_select, 64, &set, NULL, NULL, NULL);
	else if (wait->number == PPOLL_NUMBER)
		syscall(SYS_ppoll, pfds, 2, NULL, NULL, 8);
	else if (wait->number == PSELECT_NUMBER)
		syscall(SYS_pselect6, 64, &set, NULL, NULL, NULL, NULL);
	else if (wait->number == EPOLL_NUMBER)
		syscall(SYS_epoll_wait, epfd, &event, 1, -1);
	else
		syscall(SYS_epoll_pwait, epfd, &event, 1, -1, NULL, 8);
}

static void *run_numbered(void *arg)
{
	struct numbered *wait = arg;

	wait->tid = gettid();
	wait_by_number(wait);
	wait->has_returned = true;
	return NULL;
}

/* Whether a thread that is cancelled there ends, or goes on when something comes. */
static bool is_cancelled_in(enum number number, int socket)
{
	struct numbered wait = { .number = number, .fds = { -1, socket },
				 .epfd = epoll_create1(EPOLL_CLOEXEC) };
	int fds[2];
	pthread_t thread;

	if (pipe(fds) != 0)
		SAY("pipe: %m\n");
	wait.fds[0] = fds[0];
	pthread_create(&thread, NULL, run_numbered, &wait);
	while (!wait.tid)
		sched_yield();
	sleeper_await(wait.tid);
	pthread_cancel(thread);
	if (write(fds[1], "x", 1) != 1)
		SAY("write: %m\n");
	pthread_join(thread, NULL);
	close(fds[0]);
	close(fds[1]);
	close(wait.epfd);
	return !wait.has_returned;
}

/* syscall() is no cancellation point, and has to stay none where it waits for fds of the
 * kernel alone. The library's own waits are some: its sockets', and those for a set of
 * epoll, which may become the library's meanwhile. */
static void cancelled_in_waits_by_number(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	bool has_library = dlsym(RTLD_DEFAULT, "epoll_wait") !=
			   dlsym(libc, "epoll_wait");
	int pair[2];

	make_pair(pair);
	send(pair[0], "first", 5, 0);
	receive(pair[1], 0);
	for (enum number number = 0; number < NUMBERS; number++) {
		bool is_set = number >= EPOLL_NUMBER;

		SAY("of the kernel's %d: %d\n", number,
		    is_cancelled_in(number, -1) == (has_library && is_set));
		SAY("of ours %d: %d\n", number,
		    is_cancelled_in(number, pair[1]) == has_library);
	}
	send(pair[0], "still", 5, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

/* -- without a number left for an fd ------------------------------------------------ */

static void *send_late(void *arg)
{
	usleep(50 * 1000);
	send(*(int *)arg, "late", 4, 0);
	return NULL;
}

static long wait_by(enum way way, int fd, int set)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct epoll_event event;
	char bytes[8];
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	switch (way) {
	case BY_RECV:
		return recv(fd, bytes, sizeof(bytes), MSG_PEEK);
	case BY_POLL:
		return poll(&pfd, 1, -1);
	case BY_SELECT:
		return select(fd + 1, &in, NULL, NULL, NULL);
	default:
		return epoll_wait(set, &event, 1, -1);
	}
}

/* The process makes no fd any more, and neither does anybody in it. */
static void waits_without_numbers(void)
{
	int pair[2], set = epoll_create1(0), lowest;
	struct epoll_event event = { .events = EPOLLIN };
	struct rlimit all, none;
	pthread_t thread;

	make_pair(pair);
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	send(pair[0], "first", 5, 0);
	receive(pair[1], 0);
	getrlimit(RLIMIT_NOFILE, &all);
	none = all;
	lowest = dup(set);
	close(lowest);
	none.rlim_cur = (rlim_t)lowest;
	for (enum way way = 0; way < WAYS; way++) {
		long n;

		setrlimit(RLIMIT_NOFILE, &none);
		pthread_create(&thread, NULL, send_late, &pair[0]);
		n = wait_by(way, pair[1], set);
		SAY("by %d: %ld %s\n", (int)way, n, err(n));
		pthread_join(thread, NULL);
		setrlimit(RLIMIT_NOFILE, &all);
		receive(pair[1], 0);
	}
	close(set);
	close_pair(pair);
}

static void *leave_late(void *fd)
{
	int size = 100;

	usleep(1900 * 1000);
	setsockopt(*(int *)fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
	return NULL;
}

/* What is left of SO_RCVTIMEO is the kernel's when the socket is. */
static void times_out_after_a_leave(void)
{
	struct timeval limit = { .tv_sec = 2 };
	struct timespec from, to;
	pthread_t thread;
	int pair[2];
	char c;

	make_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	pthread_create(&thread, NULL, leave_late, &pair[1]);
	clock_gettime(CLOCK_MONOTONIC, &from);
	SAY("recv: %s\n", err(recv(pair[1], &c, 1, 0)));
	clock_gettime(CLOCK_MONOTONIC, &to);
	/* it would be 3.9 */
	SAY("in time: %d\n", (to.tv_sec - from.tv_sec) * 1000 +
				     (to.tv_nsec - from.tv_nsec) / 1000000 < 3400);
	pthread_join(thread, NULL);
	close_pair(pair);
}

static struct {
	int fd;
	/* of the one who reads, whose buffer would be full otherwise when it stands still */
	_Atomic unsigned ahead;
	_Atomic bool is_over;
} steady;

static void *send_steadily(void *arg)
{
	while (!steady.is_over) {
		if (steady.ahead < 50) {
			steady.ahead++;
			send(steady.fd, "x", 1, MSG_DONTWAIT);
		}
		usleep(20);
	}
	return arg;
}

/* Whoever looks for the way while the peer changes finds that to the one or to the other;
 * what is sent after connect() goes to the new one. */
static void connects_under_a_sender(void)
{
	struct sockaddr_in to[2];
	int fds[2] = { bound(&to[0]), bound(&to[1]) }, lost = 0;
	pthread_t thread;

	steady.fd = socket(AF_INET, SOCK_DGRAM, 0);
	connect(steady.fd, (struct sockaddr *)&to[0], sizeof(to[0]));
	pthread_create(&thread, NULL, send_steadily, NULL);
	for (int i = 0; i < 1000 && !lost; i++) {
		struct timeval wait = { .tv_sec = 1 };
		char mark = (char)('0' + i % 10), c = 0;

		setsockopt(fds[i % 2], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		connect(steady.fd, (struct sockaddr *)&to[i % 2], sizeof(to[0]));
		usleep(i % 50);
		send(steady.fd, &mark, 1, 0);
		while (recv(fds[i % 2], &c, 1, 0) == 1 && c != mark)
			;
		lost += c != mark;
		while (recv(fds[!(i % 2)], &c, 1, MSG_DONTWAIT) == 1)
			;
		steady.ahead = 0;
	}
	steady.is_over = true;
	pthread_join(thread, NULL);
	SAY("lost %d\n", lost);
	close(steady.fd);
	close(fds[0]);
	close(fds[1]);
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
	SCENARIO(many_threads_one_set, 0),
	SCENARIO(shutdown_wakes_readers, 0),
	SCENARIO(errors_behind_the_first, 2),
	SCENARIO(handlers_in_a_batch, 0),
	SCENARIO(threads_end_in_sleeps, 0),
	SCENARIO(threads_end_in_calls, 0),
	SCENARIO(cancelled_in_waits_by_number, 0),
	SCENARIO(waits_without_numbers, 0),
	SCENARIO(connects_under_a_sender, 0),
	SCENARIO(times_out_after_a_leave, 0),
	SCENARIO_END,
};
