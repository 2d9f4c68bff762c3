/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: calls on a socket beside another thread or a handler, who closes it, or
 * has the kernel take it. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"

static _Atomic pid_t caller;

/* -- close -------------------------------------------------------------------------- */

static void *send_long(void *arg)
{
	enum { LEN = 6 << 20 };
	char *text = calloc(1, LEN);

	caller = gettid();
	SAY("sent all: %d\n", send(*(int *)arg, text, LEN, 0) == LEN);
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
	caller = 0;
	pthread_create(&thread, NULL, send_long, &pair[0]);
	while (!caller)
		sleep_ms(1);
	sleeper_await(caller);
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
	return (void *)recv(*(int *)arg, &byte, 1, 0);
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
	caller = 0;
	pthread_create(&thread, NULL, receive_one, &pair[0]);
	while (!caller)
		sleep_ms(1);
	sleeper_await(caller);
	close(pair[0]);
	pfd.fd = pair[1];
	SAY("heard of an end: %d\n", poll(&pfd, 1, 50));
	say_sent(pair[1], "x", 0);
	pthread_join(thread, &received);
	SAY("received %ld\n", (long)received);
	receive(pair[1], 0);
	close(pair[1]);
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

static void say_connect(int fd, const struct sockaddr_in *name)
{
	SAY("connect %s\n", err(connect_to(fd, name)));
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

const struct scenario beside_scenarios[] = {
	SCENARIO(lingers_behind_a_send, OURS),
	SCENARIO(lingers_behind_a_receive, OURS),
	SCENARIO(closed_within_a_connect, MIXED),
	SCENARIO(goes_back_within_a_connect, MIXED),
	SCENARIO(goes_back_before_it_is_asked, MIXED),
	SCENARIO_END,
};
