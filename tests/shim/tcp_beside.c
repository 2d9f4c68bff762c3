/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: calls on a socket beside another thread or a handler, who closes it, or
 * has the kernel take it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"
#include "tests/support/stopper.h"

static _Atomic pid_t caller;

/* The call waits when it returns. */
static void start(pthread_t *thread, void *(*call)(void *arg), int *fd)
{
	caller = 0;
	pthread_create(thread, NULL, call, fd);
	while (!caller)
		sleep_ms(1);
	sleeper_await(caller);
}

static void hand_on(int to, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .align = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { "r", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
	SAY("handed on %s\n", err(sendmsg(to, &msg, 0)));
}

/* -- close -------------------------------------------------------------------------- */

enum { LONG_LEN = 6 << 20 };

static void *send_long(void *arg)
{
	char *text = calloc(1, LONG_LEN);

	caller = gettid();
	SAY("sent all: %d\n", send(*(int *)arg, text, LONG_LEN, 0) == LONG_LEN);
	free(text);
	return NULL;
}

/* The close is that of the call that is inside: nobody waits, and its bytes come before the
 * end. */
static void lingers_behind_a_send(void)
{
	struct linger linger = { 1, 10 };
	pthread_t thread;
	ssize_t last;
	size_t all;
	long begin;
	int pair[2];

	make_pair(pair);
	setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	start(&thread, send_long, &pair[0]);
	begin = now_ms();
	close(pair[0]);
	SAY("without a wait: %d\n", now_ms() - begin < 8000);
	all = drain(pair[1], &last);
	pthread_join(thread, NULL);
	SAY("%zu came, then %zd\n", all, last);
	close(pair[1]);
}

static void *receive_one(void *arg)
{
	char byte;

	caller = gettid();
	return (void *)(recv(*(int *)arg, &byte, 1, 0) < 0 ? -(long)errno : 1);
}

/* The peer hears of no end while the call waits. */
static void lingers_behind_a_receive(void)
{
	struct linger linger = { 1, 10 };
	struct pollfd pfd = { .events = POLLIN };
	pthread_t thread;
	void *received;
	int pair[2];

	make_pair(pair);
	setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	start(&thread, receive_one, &pair[0]);
	close(pair[0]);
	pfd.fd = pair[1];
	SAY("heard of an end: %d\n", poll(&pfd, 1, 50));
	say_sent(pair[1], "x", 0);
	pthread_join(thread, &received);
	SAY("received %ld\n", (long)received);
	receive(pair[1], 0);
	close(pair[1]);
}

static pid_t pausing_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

/* -- accept ------------------------------------------------------------------------- */

static void *accept_one(void *arg)
{
	int fd;

	caller = gettid();
	fd = accept(*(int *)arg, NULL, NULL);
	return (void *)(fd < 0 ? -(long)errno : fd);
}

/* A listener, and who gets its number when that is closed under an accept of a thread. */
struct closed_listener {
	struct sockaddr_in name, strange_name;
	int fd, stranger, visitor;
	pthread_t thread;
};

static void listen_beside_a_stranger(struct closed_listener *c)
{
	c->fd = listening(&c->name, 4);
	c->stranger = listening(&c->strange_name, 4);
}

/* The stranger has a visitor when it returns. */
static void replace(struct closed_listener *c)
{
	int next;

	SAY("close %s\n", err(close(c->fd)));
	next = fcntl(c->stranger, F_DUPFD, c->fd);
	SAY("the same number: %d\n", next == c->fd);
	close(c->stranger);
	c->visitor = connected(&c->strange_name);
	await(next, POLLIN);
}

static void say_child(const char *who, long child, int client)
{
	SAY("%s: %s\n", who, child < 0 ? strerrorname_np((int)-child) : "accepted");
	say_sent(client, who, 0);
	if (child >= 0) {
		receive((int)child, 0);
		close((int)child);
	}
	close(client);
}

static void say_accepted(struct closed_listener *c, int client)
{
	void *child;

	pthread_join(c->thread, &child);
	say_child("closed", (long)child, client);
	say_child("stranger", accept(c->fd, NULL, NULL), c->visitor);
	close(c->fd);
}

static void say_connect(int fd, const struct sockaddr_in *name)
{
	SAY("connect %s\n", err(connect_to(fd, name)));
}

/* To all addresses; its port in *port. */
static int listening_by_six(in_port_t *port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&any, len) != 0 || listen(fd, 4) != 0 ||
	    getsockname(fd, (struct sockaddr *)&any, &len) != 0)
		SAY("listen by six: %m\n");
	*port = any.sin6_port;
	return fd;
}

static int connected_by_six(in_port_t port)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6,
				     .sin6_port = port,
				     .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		SAY("connect by six: %m\n");
	return fd;
}

/* Whom we do not carry comes by the kernel. A copy of the number may be left. */
static void closed_under_an_accept_of_the_kernels(void)
{
	for (int has_copy = 0; has_copy < 2; has_copy++) {
		struct closed_listener c;
		in_port_t port;
		int copy = -1;

		c.fd = listening_by_six(&port);
		c.name = heard_at(port);
		c.stranger = listening(&c.strange_name, 4);
		if (has_copy)
			copy = dup(c.fd);
		start(&c.thread, accept_one, &c.fd);
		replace(&c);
		say_accepted(&c, connected_by_six(port));
		close(copy);
		/* it has ended with the call */
		say_connect(c.fd = made(), &c.name);
		close(c.fd);
	}
}

struct stopped_call {
	int fd, stopper;
	_Atomic pid_t tid;
	_Atomic bool is_over;
	/* libc's stops, too */
	bool by_accept4;
	long result;
};

static void *accept_with_stops(void *arg)
{
	struct stopped_call *call = arg;
	int fd;

	/* the library's, not libc's */
	call->stopper = stopper_set(SYS_accept4, 3, 0);
	call->tid = gettid();
	fd = call->by_accept4 ? accept4(call->fd, NULL, NULL, SOCK_CLOEXEC) :
				accept(call->fd, NULL, NULL);
	call->result = fd < 0 ? -errno : fd;
	call->is_over = true;
	return NULL;
}

/* Another listener gets the number while the call takes who has woken it. */
static void closed_within_an_accept(void)
{
	struct stopped_call call = { .fd = -1 };
	struct sockaddr_in strange_name;
	int stranger, client, visitor, next;
	pthread_t thread;
	in_port_t port;

	call.fd = listening_by_six(&port);
	stranger = listening(&strange_name, 4);
	pthread_create(&thread, NULL, accept_with_stops, &call);
	while (!call.tid)
		sleep_ms(1);
	stopper_await_sleep(call.stopper, call.tid);
	visitor = connected(&strange_name);
	await(stranger, POLLIN);
	client = connected_by_six(port);
	next = stopper_replace(call.stopper, call.fd, stranger, &call.is_over);
	pthread_join(thread, NULL);
	SAY("the same number: %d\n", next == call.fd);
	close(stranger);
	say_child("closed", call.result, client);
	say_child("stranger", accept(next, NULL, NULL), visitor);
	close(next);
	close(call.stopper);
}

struct close_call {
	int fd;
	_Atomic bool is_over;
};

static void *close_it(void *arg)
{
	struct close_call *call = arg;

	close(call->fd);
	call->is_over = true;
	return NULL;
}

/* Somebody whom the library does not see takes the one for whom the call has entered the kernel,
 * where it sleeps then: no close waits for the next one. */
static void closed_under_an_accept_that_is_late(void)
{
	struct stopped_call call = { .by_accept4 = true };
	struct close_call closing = { .is_over = false };
	pthread_t thread, closer;
	int clients[2], taken;
	in_port_t port;
	uint64_t id = 0;

	closing.fd = call.fd = listening_by_six(&port);
	clients[0] = connected_by_six(port);
	await(call.fd, POLLIN);
	pthread_create(&thread, NULL, accept_with_stops, &call);
	while (!call.tid)
		sleep_ms(1);
	SAY("has stopped: %d\n", stopper_has_stopped(call.stopper, 5000, &id));
	taken = (int)syscall_raw(SYS_accept4, call.fd, 0, 0, 0, 0, 0);
	SAY("taken: %d\n", taken >= 0);
	stopper_go_on(call.stopper, id);
	stopper_await_sleep(call.stopper, call.tid);
	pthread_create(&closer, NULL, close_it, &closing);
	for (int i = 0; i < 2000 && !closing.is_over; i++)
		sleep_ms(1);
	SAY("closed: %d, the call is over: %d\n", closing.is_over, call.is_over);
	clients[1] = connected_by_six(port);
	pthread_join(closer, NULL);
	pthread_join(thread, NULL);
	say_child("late", call.result, clients[1]);
	close(taken);
	close(clients[0]);
	close(call.stopper);
}

/* A child has had the listener since before the call, or gets it meanwhile. */
static void closed_under_an_accept_beside_a_child(void)
{
	for (int is_early = 0; is_early < 2; is_early++) {
		struct closed_listener c;
		pid_t pid = -1;

		listen_beside_a_stranger(&c);
		if (is_early)
			pid = pausing_child();
		start(&c.thread, accept_one, &c.fd);
		if (!is_early)
			pid = pausing_child();
		replace(&c);
		say_accepted(&c, connected(&c.name));
		/* the child's goes on */
		say_connect(c.fd = made(), &c.name);
		close(c.fd);
		kill(pid, SIGKILL);
		await_child(pid);
		say_connect(c.fd = made(), &c.name);
		close(c.fd);
	}
}

/* What the call has left behind does not keep the listener from a child. */
static void forks_behind_a_closed_number(void)
{
	struct closed_listener c;
	int copy, client;
	void *child;
	pid_t pid;

	listen_beside_a_stranger(&c);
	copy = dup(c.fd);
	start(&c.thread, accept_one, &c.fd);
	replace(&c);
	client = connected(&c.name);
	pthread_join(c.thread, &child);
	say_child("closed", (long)child, client);
	pid = fork();
	if (pid == 0) {
		receive(accept(copy, NULL, NULL), 0);
		_exit(0);
	}
	client = connected(&c.name);
	send_all(client, "to the child", 12);
	await_child(pid);
	close(client);
	close(c.visitor);
	close(copy);
	close(c.fd);
}

/* The listener is on its way to another process, who does not accept. */
static void handed_on_beside_an_accept(void)
{
	struct closed_listener c;
	int way[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, way);
	listen_beside_a_stranger(&c);
	start(&c.thread, accept_one, &c.fd);
	hand_on(way[0], c.fd);
	replace(&c);
	say_accepted(&c, connected(&c.name));
	close_pair(way);
	say_connect(c.fd = made(), &c.name);
	close(c.fd);
}

/* -- connect ------------------------------------------------------------------------ */

struct connecter {
	struct sockaddr_in name;
	_Atomic int fd;
};

enum { NOTHING = -1, NO_MORE = -2 };

static void *connect_each(void *arg)
{
	struct connecter *c = arg;
	int fd;

	while ((fd = c->fd) != NO_MORE) {
		if (fd == NOTHING) {
			sched_yield();
			continue;
		}
		(void)!connect(fd, (struct sockaddr *)&c->name, sizeof(c->name));
		c->fd = NOTHING;
	}
	return NULL;
}

static void *accept_each(void *arg)
{
	int fd;

	while ((fd = accept(*(int *)arg, NULL, NULL)) >= 0)
		close(fd);
	return NULL;
}

/* What connect() does by the number is not done to the next file that has it. */
static void closed_within_a_connect(void)
{
	enum { ROUNDS = 3000 };
	struct connecter c = { .fd = NOTHING };
	int listener = listening(&c.name, 128), strange = 0, fd, next;
	pthread_t connecter, accepter;
	struct tcp_info info;
	socklen_t len;
	long end = now_ms() + 4000;

	pthread_create(&connecter, NULL, connect_each, &c);
	pthread_create(&accepter, NULL, accept_each, &listener);
	for (int i = 0; i < ROUNDS && now_ms() < end; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		c.fd = fd;
		for (volatile int spins = i % 40 * 100; spins; spins--)
			;
		close(fd);
		next = socket(AF_INET, SOCK_STREAM, 0);
		while (c.fd != NOTHING)
			sched_yield();
		/* or it is connected itself */
		len = sizeof(info);
		getsockopt(next, IPPROTO_TCP, TCP_INFO, &info, &len);
		strange += own_port(next) && info.tcpi_state == TCP_CLOSE;
		close(next);
	}
	c.fd = NO_MORE;
	pthread_join(connecter, NULL);
	shutdown(listener, SHUT_RD);
	pthread_join(accepter, NULL);
	close(listener);
	SAY("bound by another's connect: %d\n", strange);
}

static int opening, full;

/* Makes room for the connection, waits until it is open, and has another program inherit it. */
static void let_go(int sig)
{
	struct pollfd pfd = { .fd = opening, .events = POLLOUT };
	char *const argv[] = { "true", NULL };
	pid_t child;

	(void)sig;
	close(accept(full, NULL, NULL));
	SAY("open %d", poll(&pfd, 1, 20000));
	SAY(", spawned %d\n", posix_spawnp(&child, "true", NULL, NULL, argv, environ));
	waitpid(child, NULL, 0);
}

/* The kernel's socket is connected when the call goes on. */
static void goes_back_within_a_connect(void)
{
	struct sigaction act = { .sa_handler = let_go, .sa_flags = SA_RESTART };
	struct sockaddr_in name;
	int holder;

	full = listening(&name, 0);
	holder = connected(&name);
	opening = made();
	sigaction(SIGALRM, &act, NULL);
	ualarm(100000, 0);
	say_connect(opening, &name);
	say_connect(opening, &name);
	close(opening);
	close(holder);
	close(full);
}

/* One that does not wait is told once, too. */
static void goes_back_before_it_is_asked(void)
{
	char *const argv[] = { "true", NULL };
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made_nonblocking(), child_fd;
	pid_t child;

	say_connect(fd, &name);
	child_fd = accept(listener, NULL, NULL);
	SAY("events %#x\n", (unsigned)await(fd, POLLOUT));
	SAY("spawned %d\n", posix_spawnp(&child, "true", NULL, NULL, argv, environ));
	waitpid(child, NULL, 0);
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	close(child_fd);
	close(listener);
}

/* -- the kernel takes it ------------------------------------------------------------ */

/* A child that uses the socket: the connection is the kernel's then. */
static void used_by_a_child(int fd)
{
	pid_t child = fork();

	if (child == 0) {
		fcntl(fd, F_GETOWN);
		_exit(0);
	}
	await_child(child);
}

static void say_secret(int fd)
{
	char text[16] = "";
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	SAY("the stranger has %zd %s\n", n, text);
}

/* Another file has the number at once, while the thread receives: returns it. */
static int close_under_it(const int pair[2], const int stranger[2], pthread_t thread)
{
	void *received;
	int next;

	close(pair[0]);
	next = fcntl(stranger[0], F_DUPFD, pair[0]);
	SAY("the same number: %d\n", next == pair[0]);
	(void)!write(stranger[1], "secret", 6);
	sleeper_await(caller);
	say_sent(pair[1], "x", 0);
	pthread_join(thread, &received);
	SAY("received %ld\n", (long)received);
	say_secret(next);
	return next;
}

/* In the usual way to hand a connection on. The call keeps its socket, and the next owner of
 * the number its bytes. */
static void hand_on_beside_a_receive(void)
{
	int pair[2], way[2], stranger[2], next;
	pthread_t thread;

	socketpair(AF_UNIX, SOCK_STREAM, 0, way);
	socketpair(AF_UNIX, SOCK_STREAM, 0, stranger);
	make_pair(pair);
	start(&thread, receive_one, &pair[0]);
	hand_on(way[0], pair[0]);
	next = close_under_it(pair, stranger, thread);
	/* nobody has it any more */
	close(way[0]);
	close(way[1]);
	receive(pair[1], 0);
	close(stranger[0]);
	close(stranger[1]);
	close(next);
	close(pair[1]);
}

static void handed_on_beside_a_receive(void)
{
	for (int i = 0; i < 10; i++)
		hand_on_beside_a_receive();
}

static void *send_one(void *arg)
{
	caller = gettid();
	return (void *)send(*(int *)arg, "PRIVATE", 7, MSG_NOSIGNAL);
}

/* While a child has the connection, too, a close gives it to the kernel. */
static void close_beside_a_send(void)
{
	int pair[2], stranger[2], next;
	pthread_t thread;
	pid_t child;
	size_t sent;
	void *n;

	socketpair(AF_UNIX, SOCK_STREAM, 0, stranger);
	make_pair(pair);
	sent = stuff(pair[0]);
	child = pausing_child();
	start(&thread, send_one, &pair[0]);
	close(pair[0]);
	next = fcntl(stranger[0], F_DUPFD, pair[0]);
	drain_all(pair[1], sent + 7);
	pthread_join(thread, &n);
	SAY("sent %ld\n", (long)n);
	say_secret(stranger[1]);
	kill(child, SIGKILL);
	await_child(child);
	await(pair[1], POLLRDHUP);
	receive(pair[1], 0);
	close(next);
	close(stranger[0]);
	close(stranger[1]);
	close(pair[1]);
}

/* The same with one that waits for bytes; the child has used the connection before, or not. */
static void closed_beside_a_receive(void)
{
	for (int is_used = 0; is_used < 2; is_used++) {
		int pair[2], stranger[2], next;
		pthread_t thread;
		pid_t child;

		socketpair(AF_UNIX, SOCK_STREAM, 0, stranger);
		make_pair(pair);
		child = pausing_child();
		start(&thread, receive_one, &pair[0]);
		if (is_used)
			used_by_a_child(pair[0]);
		next = close_under_it(pair, stranger, thread);
		kill(child, SIGKILL);
		await_child(child);
		receive(pair[1], 0);
		close(stranger[0]);
		close(stranger[1]);
		close(next);
		close(pair[1]);
	}
}

static void closed_beside_a_send(void)
{
	for (int i = 0; i < 10; i++)
		close_beside_a_send();
}

static bool keeps_its_time(void)
{
	struct timeval limit = { 2, 0 };
	pthread_t thread;
	void *received;
	long begin, took;
	int pair[2];

	make_pair(pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	begin = now_ms();
	start(&thread, receive_one, &pair[0]);
	sleep_ms(1500);
	used_by_a_child(pair[0]);
	pthread_join(thread, &received);
	took = now_ms() - begin;
	close_pair(pair);
	return (long)received == -EAGAIN && took > 1900 && took < 3400;
}

/* The time of the call goes on. If the machine stands still it is looked at again. */
static void time_limit_beside_a_child(void)
{
	SAY("in time: %d\n", keeps_its_time() || keeps_its_time() || keeps_its_time());
}

static void *receive_five(void *arg)
{
	char text[5];

	caller = gettid();
	return (void *)recv(*(int *)arg, text, sizeof(text), MSG_WAITALL);
}

/* The error is for the next call: without it a stream that was cut would seem to have ended. */
static void reset_behind_a_part(void)
{
	pthread_t thread;
	void *received;
	int pair[2];

	make_pair(pair);
	start(&thread, receive_five, &pair[0]);
	say_sent(pair[1], "abc", 0);
	await_acks(pair[1]);
	used_by_a_child(pair[0]);
	reset(pair[1]);
	pthread_join(thread, &received);
	SAY("received %ld\n", (long)received);
	receive(pair[0], 0);
	receive(pair[0], 0);
	close(pair[0]);
}

struct stamped {
	int fd;
	bool has_stamp;
};

static void *receive_stamped(void *arg)
{
	struct stamped *stamped = arg;
	char room[256], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c;
	ssize_t n;

	caller = gettid();
	n = recvmsg(stamped->fd, &msg, 0);
	c = CMSG_FIRSTHDR(&msg);
	stamped->has_stamp = n == 1 && c && c->cmsg_type == SCM_TIMESTAMPNS;
	return NULL;
}

/* What the kernel says beside the bytes it says to the call that began with us. */
static void stamp_beside_a_child(void)
{
	struct stamped stamped = { .fd = -1 };
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	stamped.fd = pair[0];
	set_option(pair[0], SOL_SOCKET, SO_TIMESTAMPNS, 1);
	start(&thread, receive_stamped, &stamped.fd);
	used_by_a_child(pair[0]);
	sleeper_await(caller);
	say_sent(pair[1], "x", 0);
	pthread_join(thread, NULL);
	SAY("stamped: %d\n", stamped.has_stamp);
	close_pair(pair);
}

static void *receive_batch(void *arg)
{
	struct mmsghdr msgs[3] = { 0 };
	char bytes[3];
	struct iovec iov[3];

	for (int i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ &bytes[i], 1 };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	caller = gettid();
	return (void *)(long)recvmmsg(*(int *)arg, msgs, 3, 0, NULL);
}

/* A batch that blocks has all of its messages. */
static void batch_beside_a_child(void)
{
	pthread_t thread;
	void *received;
	int pair[2];

	make_pair(pair);
	start(&thread, receive_batch, &pair[0]);
	say_sent(pair[1], "a", 0);
	await_acks(pair[1]);
	sleeper_await(caller);
	used_by_a_child(pair[0]);
	say_sent(pair[1], "bc", 0);
	pthread_join(thread, &received);
	SAY("received %ld\n", (long)received);
	close_pair(pair);
}

const struct scenario beside_scenarios[] = {
	SCENARIO(batch_beside_a_child, MIXED),
	SCENARIO(stamp_beside_a_child, MIXED),
	SCENARIO(handed_on_beside_a_receive, MIXED),
	SCENARIO(closed_beside_a_send, MIXED),
	SCENARIO(closed_beside_a_receive, MIXED),
	SCENARIO(time_limit_beside_a_child, MIXED),
	SCENARIO(reset_behind_a_part, MIXED),
	SCENARIO(lingers_behind_a_send, OURS),
	SCENARIO(lingers_behind_a_receive, OURS),
	SCENARIO(closed_under_an_accept_of_the_kernels, MIXED),
	SCENARIO(closed_within_an_accept, MIXED),
	SCENARIO(closed_under_an_accept_that_is_late, MIXED),
	SCENARIO(closed_under_an_accept_beside_a_child, MIXED),
	SCENARIO(forks_behind_a_closed_number, MIXED),
	SCENARIO(handed_on_beside_an_accept, MIXED),
	SCENARIO(closed_within_a_connect, MIXED),
	SCENARIO(goes_back_within_a_connect, MIXED),
	SCENARIO(goes_back_before_it_is_asked, MIXED),
	SCENARIO_END,
};
