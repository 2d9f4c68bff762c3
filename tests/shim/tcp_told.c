/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: what epoll has told of, and the program does not read at once. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/shim/tcp.h"

/* A single short segment may be told of while it lies in its ring. Whatever the
 * program does then finds it. */
static void read_rest(int fd)
{
	char buf[16];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		SAY(" rest %zd", n);
	SAY(" %s", n ? err(n) : "end");
}

static void by_pieces(int pair[2], int set)
{
	char buf[2];

	for (int i = 0; i < 2; i++) {
		SAY(" recv %zd", recv(pair[0], buf, sizeof(buf), 0));
		say_wait(set, 0);
	}
}

static void by_more_waits(int pair[2], int set)
{
	for (int i = 0; i < 3; i++)
		say_wait(set, 0);
	say_poll(pair[0], POLLIN);
	say_select(pair[0]);
}

static void by_counting(int pair[2], int set UNUSED)
{
	int n = -1;

	ioctl(pair[0], FIONREAD, &n);
	SAY(" FIONREAD %d", n);
}

static void by_peeking(int pair[2], int set)
{
	char buf[16];

	SAY(" peek %zd", recv(pair[0], buf, sizeof(buf), MSG_PEEK));
	SAY(" peek %zd", recv(pair[0], buf, sizeof(buf), MSG_PEEK));
	say_wait(set, 0);
}

static void by_a_vector(int pair[2], int set UNUSED)
{
	char a[3], b[3];
	struct iovec iov[2] = { { a, 3 }, { b, 3 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	SAY(" recvmsg %zd", recvmsg(pair[0], &msg, 0));
}

static void by_a_copy(int pair[2], int set)
{
	char buf[16];
	int copy = dup(pair[0]);

	SAY(" read %zd", read(copy, buf, sizeof(buf)));
	say_wait(set, 0);
	close(copy);
}

static void after_another_watch(int pair[2], int set)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int edges = epoll_create1(0);

	epoll_ctl(edges, EPOLL_CTL_ADD, pair[0], &event);
	for (int i = 0; i < 2; i++) {
		say_wait(edges, 0);
		say_wait(set, 0);
	}
	close(edges);
}

static void after_a_change(int pair[2], int set)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	epoll_ctl(set, EPOLL_CTL_MOD, pair[0], &event);
	say_wait(set, 0);
	say_wait(set, 0);
	event.events = EPOLLIN;
	epoll_ctl(set, EPOLL_CTL_MOD, pair[0], &event);
	say_wait(set, 0);
}

static void after_a_set_around(int pair[2] UNUSED, int set)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int outer = epoll_create1(0);

	epoll_ctl(outer, EPOLL_CTL_ADD, set, &event);
	say_wait(outer, 0);
	say_wait(outer, 0);
	say_wait(set, 0);
	close(outer);
}

static void after_a_send(int pair[2], int set)
{
	char buf[16];

	SAY(" send %zd", send(pair[0], "xy", 2, 0));
	say_wait(set, 0);
	SAY(" other end %zd", recv(pair[1], buf, sizeof(buf), 0));
}

static void after_a_second_one(int pair[2], int set)
{
	char buf[16];

	send(pair[1], "efg", 3, 0);
	say_wait(set, 0);
	await_bytes(pair[0], 7);
	say_wait(set, 0);
	SAY(" recv %zd", recv(pair[0], buf, sizeof(buf), 0));
}

static void after_a_mark(int pair[2], int set)
{
	set_option(pair[0], SOL_SOCKET, SO_RCVLOWAT, 10);
	say_wait(set, 0);
	send(pair[1], "0123456789", 10, 0);
	say_wait(set, 2000);
	set_option(pair[0], SOL_SOCKET, SO_RCVLOWAT, 1);
}

static void after_the_end(int pair[2], int set)
{
	shutdown(pair[1], SHUT_WR);
	await(pair[0], POLLRDHUP);
	say_wait(set, 0);
}

static void after_shut_down(int pair[2], int set)
{
	shutdown(pair[0], SHUT_RD);
	say_wait(set, 0);
}

static void close_unread(int pair[2], int set UNUSED)
{
	close(pair[0]);
	await(pair[1], POLLIN);
	say_error(pair[1]);
	pair[0] = made();
}

static void told_and_not_read(void)
{
	static void (*const ways[])(int pair[2], int set) = {
		by_pieces,           by_more_waits,      by_counting,
		by_peeking,          by_a_vector,        by_a_copy,
		after_another_watch, after_a_change,     after_a_set_around,
		after_a_send,        after_a_second_one, after_a_mark,
		after_the_end,       after_shut_down,    close_unread,
	};
	struct epoll_event event = { .events = EPOLLIN };

	for (unsigned i = 0; i < 2 * ARRAY_LEN(ways); i++) {
		int pair[2], set = epoll_create1(0);
		char c;

		make_pair(pair);
		/* either end */
		if (i % 2) {
			int first = pair[0];

			pair[0] = pair[1];
			pair[1] = first;
		}
		epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
		send(pair[1], "w", 1, 0);
		recv(pair[0], &c, 1, 0);
		send(pair[1], "abcd", 4, 0);
		SAY("way %u:", i);
		say_wait(set, 2000);
		ways[i / 2](pair, set);
		read_rest(pair[0]);
		say_wait(set, 0);
		SAY("\n");
		close_pair(pair);
		close(set);
	}
}

static void edges_of_the_low_water_mark(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int set = epoll_create1(0), pair[2];

	make_pair(pair);
	epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
	say_sent(pair[1], "data", 0);
	await_bytes(pair[0], 4);
	for (int mark = 5; mark >= 3; mark--) {
		SAY("mark %d: events %d,", mark, epoll_wait(set, &event, 1, 0));
		set_option(pair[0], SOL_SOCKET, SO_RCVLOWAT, mark);
		SAY(" %d\n", epoll_wait(set, &event, 1, 0));
	}
	close_pair(pair);
	close(set);
}

/* While a connection of it lives. The port stays taken. */
static void closed_listener_in_a_set(void)
{
	struct sockaddr_in name, own = owned(0);
	int listener = listening(&name, 4), set = epoll_create1(0), pair[2], fd;
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	make_pair_of(listener, &name, pair);
	close(listener);
	SAY("events %d\n", epoll_wait(set, &event, 1, 0));
	fd = made();
	own.sin_port = name.sin_port;
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	say_sent(pair[0], "goes on", 0);
	receive(pair[1], 0);
	close(fd);
	close_pair(pair);
	close(set);
}

/* Looks at the set of `closings`, and counts what comes while a listener is closed. */
static struct {
	int set;
	_Atomic bool is_closing, is_over;
	unsigned strays; /* the thread's */
} closings;

static void *count_strays(void *arg UNUSED)
{
	struct epoll_event event;

	while (!closings.is_over)
		if (epoll_wait(closings.set, &event, 1, 20) > 0 && closings.is_closing)
			closings.strays++;
	return NULL;
}

/* While another thread waits in its set, and a connection of it lives. */
static void closed_listener_tells_nothing(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sockaddr_in name;
	int listener, pair[2];
	pthread_t thread;

	closings.set = epoll_create1(0);
	pthread_create(&thread, NULL, count_strays, NULL);
	for (int i = 0; i < 100; i++) {
		listener = listening(&name, 4);
		make_pair_of(listener, &name, pair);
		epoll_ctl(closings.set, EPOLL_CTL_ADD, listener, &event);
		closings.is_closing = true;
		close(listener);
		closings.is_closing = false;
		say_sent(pair[0], "goes on", 0);
		receive(pair[1], 0);
		close_pair(pair);
	}
	closings.is_over = true;
	pthread_join(thread, NULL);
	SAY("%u strays\n", closings.strays);
	close(closings.set);
}

const struct scenario told_scenarios[] = {
	SCENARIO(told_and_not_read, OURS),
	SCENARIO(edges_of_the_low_water_mark, OURS),
	SCENARIO(closed_listener_in_a_set, OURS),
	SCENARIO(closed_listener_tells_nothing, OURS),
	SCENARIO_END,
};
