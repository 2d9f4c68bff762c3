/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: what poll, select and epoll say of TCP sockets in each state. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/shim/tcp.h"

enum {
	ALL_POLL = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM |
		   POLLWRNORM | POLLRDBAND | POLLWRBAND,
	ALL_EPOLL = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLRDNORM |
		    EPOLLWRNORM | EPOLLRDBAND | EPOLLWRBAND,
};

void say_poll(int fd, int events)
{
	struct pollfd pfd = { .fd = fd, .events = (short)events };
	int n = poll(&pfd, 1, 0);

	SAY(" poll %d %#x,", n, (unsigned)pfd.revents);
}

void say_select(int fd)
{
	fd_set sets[3];
	int n;

	for (int i = 0; i < 3; i++) {
		FD_ZERO(&sets[i]);
		FD_SET(fd, &sets[i]);
	}
	n = select(fd + 1, &sets[0], &sets[1], &sets[2], &(struct timeval){ 0 });
	SAY(" select %d%s%s%s,", n, FD_ISSET(fd, &sets[0]) ? " read" : "",
	    FD_ISSET(fd, &sets[1]) ? " write" : "",
	    FD_ISSET(fd, &sets[2]) ? " except" : "");
}

static void say_epoll(int fd)
{
	struct epoll_event event = { .events = ALL_EPOLL };
	int set = epoll_create1(0), n;

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	event.events = 0;
	n = epoll_wait(set, &event, 1, 0);
	SAY(" epoll %d %#x\n", n, event.events);
	close(set);
}

static void say_ready(const char *state, int fd)
{
	SAY("%s:", state);
	say_poll(fd, ALL_POLL);
	say_poll(fd, POLLIN);
	say_poll(fd, POLLOUT);
	say_poll(fd, 0);
	say_select(fd);
	say_epoll(fd);
}

/* -- each state --------------------------------------------------------------------- */

static void ready_before_a_connection(void)
{
	struct sockaddr_in name;
	int listener, fd = made(), holder;

	say_ready("fresh", fd);
	close(fd);
	fd = bound(&name);
	say_ready("bound", fd);
	close(fd);
	listener = listening(&name, 0);
	say_ready("listening", listener);
	holder = connected(&name);
	await(listener, POLLIN);
	say_ready("with a child", listener);
	/* before the next one, whose SYN is repeated */
	close(accept(listener, NULL, NULL));
	say_ready("without one", listener);
	close(holder);
	holder = connected(&name);
	await(listener, POLLIN);
	fd = made_nonblocking();
	connect_to(fd, &name);
	say_ready("connecting", fd);
	close(accept(listener, NULL, NULL));
	await(fd, POLLOUT);
	say_ready("connected", fd);
	close(fd);
	close(holder);
	shutdown(listener, SHUT_RD);
	say_ready("shut down", listener);
	close(listener);
	close(bound(&name));
	fd = made_nonblocking();
	connect_to(fd, &name);
	await(fd, POLLOUT);
	say_ready("refused", fd);
	say_error(fd);
	say_ready("and told", fd);
	close(fd);
}

static void ready_with_data_and_ends(void)
{
	int pair[2];

	make_pair(pair);
	say_ready("quiet", pair[0]);
	say_ready("quiet", pair[1]);
	send(pair[1], "ab", 2, 0);
	await_bytes(pair[0], 2);
	say_ready("data", pair[0]);
	recv(pair[0], &(char){ 0 }, 1, 0);
	say_ready("still data", pair[0]);
	recv(pair[0], &(char){ 0 }, 1, 0);
	say_ready("none", pair[0]);
	send(pair[1], "!", 1, MSG_OOB);
	await(pair[0], POLLPRI);
	say_ready("urgent", pair[0]);
	recv(pair[0], &(char){ 0 }, 1, MSG_OOB);
	say_ready("taken", pair[0]);
	send(pair[1], "ab", 2, 0);
	shutdown(pair[1], SHUT_WR);
	await(pair[0], POLLRDHUP);
	say_ready("data and end", pair[0]);
	recv(pair[0], &(char[2]){ 0 }, 2, 0);
	recv(pair[0], &(char[2]){ 0 }, 2, 0);
	say_ready("end", pair[0]);
	say_ready("shut for writing", pair[1]);
	shutdown(pair[0], SHUT_WR);
	await(pair[0], POLLHUP);
	await(pair[1], POLLHUP);
	say_ready("both", pair[0]);
	say_ready("both", pair[1]);
	close_pair(pair);
	make_pair(pair);
	shutdown(pair[0], SHUT_RD);
	say_ready("shut for reading", pair[0]);
	say_ready("its peer", pair[1]);
	reset(pair[0]);
	await(pair[1], POLLERR);
	say_ready("reset", pair[1]);
	say_error(pair[1]);
	say_ready("and told", pair[1]);
	close(pair[1]);
}

static void ready_when_full(void)
{
	size_t sent;
	int pair[2];

	make_pair(pair);
	sent = stuff(pair[0]);
	say_ready("full", pair[0]);
	shutdown(pair[1], SHUT_WR);
	await(pair[0], POLLRDHUP);
	say_ready("full, and the end", pair[0]);
	drain_all(pair[1], sent);
	await(pair[0], POLLOUT);
	say_ready("room", pair[0]);
	close_pair(pair);
}

/* -- epoll: level, edge, once ------------------------------------------------------- */

static void add(int set, int fd, unsigned events, unsigned data)
{
	struct epoll_event event = { .events = events, .data.u32 = data };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0)
		SAY("add: %m\n");
}

/* Changes it, which asks anew. */
static void change(int set, int fd, unsigned events, unsigned data)
{
	struct epoll_event event = { .events = events, .data.u32 = data };

	if (epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) != 0)
		SAY("change: %m\n");
}

static void say_events_within(int set, const char *when, int ms)
{
	struct epoll_event events[8];
	int n = epoll_wait(set, events, 8, ms);

	SAY("%s: %d", when, n);
	for (unsigned data = 0; data < 8; data++)
		for (int i = 0; i < n; i++)
			if (events[i].data.u32 == data)
				SAY(" [%u] %#x", data, events[i].events);
	SAY("\n");
}

static void say_events(int set, const char *when)
{
	say_events_within(set, when, 0);
}

/* The kernel tells poll, and sets inside, a moment before it tells the set. */
static void await_events(int set, const char *when)
{
	say_events_within(set, when, 5000);
}

void say_wait(int set, int timeout)
{
	struct epoll_event event = { 0 };
	int n = epoll_wait(set, &event, 1, timeout);

	SAY(" %d %#x", n, event.events);
}

static void story_of_a_watch(unsigned mode)
{
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	add(set, pair[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | mode, 1);
	say_events(set, "begin");
	say_events(set, "again");
	send(pair[1], "ab", 2, 0);
	await_bytes(pair[0], 2);
	say_events(set, "data");
	say_events(set, "again");
	recv(pair[0], &(char){ 0 }, 1, 0);
	say_events(set, "half of it read");
	send(pair[1], "cd", 2, 0);
	await_bytes(pair[0], 3);
	say_events(set, "more data");
	change(set, pair[0], EPOLLIN | mode, 2);
	say_events(set, "changed");
	recv(pair[0], &(char[3]){ 0 }, 3, 0);
	say_events(set, "all read");
	change(set, pair[0], EPOLLIN | EPOLLRDHUP | mode, 3);
	shutdown(pair[1], SHUT_WR);
	await(pair[0], POLLRDHUP);
	say_events(set, "end");
	say_events(set, "again");
	change(set, pair[0], mode, 4);
	close(pair[1]);
	send(pair[0], "x", 1, MSG_NOSIGNAL);
	await(pair[0], POLLERR);
	say_events(set, "reset");
	say_events(set, "again");
	close(pair[0]);
	say_events(set, "closed");
	close(set);
}

static void level_triggered(void)
{
	story_of_a_watch(0);
}

static void edge_triggered(void)
{
	story_of_a_watch(EPOLLET);
}

static void one_shot(void)
{
	story_of_a_watch(EPOLLONESHOT);
}

static void one_shot_edges(void)
{
	story_of_a_watch(EPOLLONESHOT | EPOLLET);
}

/* Room makes an edge when there was none. */
static void edges_of_room(void)
{
	int pair[2], set = epoll_create1(0);
	struct epoll_event event;
	size_t sent;

	make_pair(pair);
	add(set, pair[0], EPOLLOUT | EPOLLET, 1);
	say_events(set, "begin");
	sent = stuff(pair[0]);
	/* it may have been full and not full on the way */
	say_events(set, "full") ;
	say_events(set, "again");
	drain_all(pair[1], sent);
	SAY("wait %d\n", epoll_wait(set, &event, 1, 5000));
	SAY("events %#x\n", event.events);
	close_pair(pair);
	close(set);
}

/* Fills it so far that there is no room, by sends that all succeed. */
static size_t fill_without_a_miss(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	static const char some[1000];
	size_t sent = 0;

	for (int quiet = 0; quiet < 10; quiet++) {
		while (poll(&poll_fd, 1, 0) == 1) {
			ssize_t n = send(fd, some, sizeof(some), MSG_DONTWAIT);

			if (n < 0) {
				SAY("a send has missed it\n");
				return sent;
			}
			sent += (size_t)n;
			quiet = 0;
		}
		/* what is under way still makes room, until the peer is full, too */
		usleep(20000);
	}
	return sent;
}

/* The same, and asks for room by a set: what is sent again, or a peer that is late, may still
 * make some between the two. */
static size_t fill_and_ask(int fd, int set, uint32_t mode)
{
	struct epoll_event event;
	size_t sent = 0;

	for (int times = 0; times < 20; times++) {
		sent += fill_without_a_miss(fd);
		add(set, fd, EPOLLOUT | mode, 1);
		if (epoll_wait(set, &event, 1, 0) == 0)
			return sent;
		epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
	}
	SAY("it is never full\n");
	return sent;
}

/* Who has asked for room is told of it, though no send has found that there was none. */
static void room_that_no_send_has_missed(void)
{
	static const unsigned modes[] = { 0, EPOLLET, EPOLLONESHOT };
	struct epoll_event event;
	int pair[2], set;
	size_t sent;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		event = (struct epoll_event){ 0 };
		set = epoll_create1(0);
		make_pair(pair);
		sent = fill_and_ask(pair[0], set, modes[i]);
		drain_all(pair[1], sent);
		SAY("wait %d", epoll_wait(set, &event, 1, 5000));
		SAY(" %#x\n", event.events);
		close_pair(pair);
		close(set);
	}
}

static void edges_of_a_connect(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made_nonblocking();
	int set = epoll_create1(0);
	struct epoll_event event = { 0 };

	add(set, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1);
	say_events(set, "fresh");
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("wait %d", epoll_wait(set, &event, 1, 5000));
	SAY(" %#x\n", event.events);
	say_events(set, "again");
	say_error(fd);
	close(fd);
	close(listener);
	fd = made_nonblocking();
	add(set, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 2);
	say_events(set, "fresh");
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("wait %d", epoll_wait(set, &event, 1, 5000));
	SAY(" %#x\n", event.events);
	say_events(set, "again");
	say_error(fd);
	say_events(set, "told");
	close(fd);
	close(set);
}

static void watched_listeners(void)
{
	static const unsigned modes[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE };
	struct sockaddr_in name;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		int listener = listening(&name, 8), set = epoll_create1(0);
		int fds[2];

		set_blocking(listener, false);
		add(set, listener, EPOLLIN | modes[i], 1);
		say_events(set, "begin");
		fds[0] = connected(&name);
		await(listener, POLLIN);
		/* the kernel tells poll a moment before it tells the set */
		sleep_ms(5);
		say_events(set, "one");
		say_events(set, "again");
		fds[1] = connected(&name);
		sleep_ms(5);
		say_events(set, "two");
		close(accept(listener, NULL, NULL));
		say_events(set, "one is left");
		close(accept(listener, NULL, NULL));
		say_events(set, "none");
		close_pair(fds);
		close(listener);
		close(set);
	}
}

static void copies_in_a_set(void)
{
	int pair[2], set = epoll_create1(0), copy;

	make_pair(pair);
	copy = dup(pair[0]);
	add(set, pair[0], EPOLLIN, 1);
	add(set, copy, EPOLLOUT, 2);
	send(pair[1], "x", 1, 0);
	await_bytes(pair[0], 1);
	say_events(set, "both");
	close(pair[0]);
	say_events(set, "one closed");
	recv(copy, &(char){ 0 }, 1, 0);
	say_events(set, "read");
	close(copy);
	say_events(set, "both closed");
	close(pair[1]);
	close(set);
}

static void set_in_a_set(void)
{
	int pair[2], inner = epoll_create1(0), outer = epoll_create1(0);

	make_pair(pair);
	add(inner, pair[0], EPOLLIN, 1);
	add(outer, inner, EPOLLIN, 2);
	say_events(outer, "quiet");
	send(pair[1], "x", 1, 0);
	await_bytes(pair[0], 1);
	say_events(outer, "outer");
	say_events(inner, "inner");
	SAY("set:");
	say_poll(inner, POLLIN);
	recv(pair[0], &(char){ 0 }, 1, 0);
	SAY(" and\n");
	say_events(outer, "read");
	close_pair(pair);
	close(inner);
	close(outer);
}

/* Signals of a socket are the kernel's, and then the connection is, too. */
static void give_to_kernel(int fd)
{
	int on = 1;

	SAY("signals %s\n", err(ioctl(fd, FIOASYNC, &on)));
}

/* What a set has told once it does not tell again, whoever has the connection by then, and
 * its members are known. */
static void watches_of_one_that_goes_back(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	add(set, pair[1], EPOLLIN | EPOLLONESHOT, 1);
	send(pair[0], "x", 1, 0);
	await_bytes(pair[1], 1);
	say_events(set, "told");
	give_to_kernel(pair[1]);
	say_events(set, "not again");
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	close(pair[0]);
	await(pair[1], POLLRDHUP);
	say_events(set, "nor the end");
	change(set, pair[1], EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, 2);
	say_events(set, "armed");
	say_events(set, "once");
	close(pair[1]);
	make_pair(pair);
	add(set, pair[1], EPOLLIN, 3);
	give_to_kernel(pair[1]);
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	send(pair[0], "x", 1, 0);
	await_bytes(pair[1], 1);
	say_events(set, "told");
	close_pair(pair);
	close(set);
}

/* Events come and go with the connection, whoever has it, also to sets around the set, which
 * alone are waited for. */
static void watch_by_outer_sets(unsigned way)
{
	int pair[2], sets[3];
	struct pollfd pfd = { .events = POLLIN };

	make_pair(pair);
	for (unsigned i = 0; i < ARRAY_LEN(sets); i++)
		sets[i] = epoll_create1(0);
	add(sets[0], pair[1], EPOLLIN, 1);
	add(sets[1], sets[0], EPOLLIN, 2);
	add(sets[2], sets[1], EPOLLIN, 3);
	pfd.fd = sets[way % 3];
	send(pair[0], "x", 1, 0);
	SAY("poll %d\n", poll(&pfd, 1, 5000));
	recv(pair[1], &(char){ 0 }, 1, 0);
	say_events(sets[2], "read");
	give_to_kernel(pair[1]);
	send(pair[0], "y", 1, 0);
	await_bytes(pair[1], 1);
	if (way < 3)
		SAY("poll %d\n", poll(&pfd, 1, 5000));
	for (unsigned i = ARRAY_LEN(sets); i-- > 0;)
		await_events(sets[i], "data");
	recv(pair[1], &(char){ 0 }, 1, 0);
	say_events(sets[2], "read");
	close_pair(pair);
	for (unsigned i = 0; i < ARRAY_LEN(sets); i++)
		close(sets[i]);
}

static void outer_sets_of_one_that_goes_back(void)
{
	for (unsigned way = 0; way < 4; way++)
		watch_by_outer_sets(way);
}

static void *wait_for_outer(void *arg)
{
	say_wait(*(int *)arg, 10000);
	return NULL;
}

/* A thread sleeps for the outer set all the while. A set may have become a member after the
 * connection has gone back. */
static void sleeper_of_an_outer_set(void)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		int pair[2], inner = epoll_create1(0), outer = epoll_create1(0);
		pthread_t thread;

		make_pair(pair);
		add(inner, pair[1], EPOLLIN, 1);
		if (is_late)
			give_to_kernel(pair[1]);
		add(outer, inner, EPOLLIN, 2);
		pthread_create(&thread, NULL, wait_for_outer, &outer);
		if (!is_late) {
			sleep_ms(30);
			give_to_kernel(pair[1]);
		}
		send(pair[0], "x", 1, 0);
		pthread_join(thread, NULL);
		say_events(inner, " inner");
		close_pair(pair);
		close(inner);
		close(outer);
	}
}

/* The number by which it is a member is another file's, and events come by the duplicate that
 * is left, until it is closed, too. */
static void closed_number_of_one_that_goes_back(void)
{
	static const unsigned modes[] = { 0, EPOLLET, EPOLLONESHOT };

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		int pair[2], pipes[2], set = epoll_create1(0), copy;

		make_pair(pair);
		add(set, pair[1], EPOLLIN | modes[i], 1);
		copy = dup(pair[1]);
		if (pipe(pipes) != 0 || dup2(pipes[0], pair[1]) < 0)
			SAY("pipe: %m\n");
		add(set, pair[1], EPOLLIN, 2);
		say_events(set, "quiet");
		give_to_kernel(copy);
		say_events(set, "quiet");
		send(pair[0], "x", 1, 0);
		await_bytes(copy, 1);
		await_events(set, "data");
		if (write(pipes[1], "x", 1) != 1)
			SAY("write: %m\n");
		recv(copy, &(char){ 0 }, 1, 0);
		say_events(set, "the other file");
		/* by this number it is none */
		SAY("remove %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL)));
		add(set, copy, EPOLLIN, 3);
		SAY("remove %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL)));
		close(copy);
		say_events(set, "closed");
		close_pair(pair);
		close_pair(pipes);
		close(set);
	}
}

/* The name of a listener that it is no more. */
static void end_listening(int fd, unsigned way)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (way == 0)
		SAY("shutdown %s\n", err(shutdown(fd, SHUT_RDWR)));
	else
		SAY("disconnect %s\n", err(connect(fd, &none, sizeof(none))));
}

/* A member that has listened goes on as a client. */
static void listeners_that_connect(void)
{
	for (unsigned way = 0; way < 4; way++) {
		struct sockaddr_in name, other_name;
		int fd = listening(&name, 4), other = listening(&other_name, 4);
		int set = epoll_create1(0), outer = epoll_create1(0), peer;

		add(outer, set, EPOLLIN, 2);
		add(set, fd, EPOLLIN | EPOLLRDHUP, 1);
		say_events(set, "listening");
		end_listening(fd, way % 2);
		if (way < 2)
			say_events(set, "no more");
		SAY("connect %s\n", err(connect_to(fd, &other_name)));
		if (way < 2)
			say_events(set, "connected");
		say_events(outer, "connected");
		peer = accept(other, NULL, NULL);
		send(peer, "x", 1, 0);
		await_bytes(fd, 1);
		await_events(outer, "data");
		await_events(set, "data");
		recv(fd, &(char){ 0 }, 1, 0);
		say_events(set, "read");
		change(set, fd, EPOLLIN | EPOLLRDHUP, 3);
		say_events(set, "read");
		close(peer);
		await(fd, POLLRDHUP);
		await_events(set, "end");
		close(fd);
		close(other);
		close(set);
		close(outer);
	}
}

static void bad_watches(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	SAY("change %s\n", err(epoll_ctl(set, EPOLL_CTL_MOD, pair[0], &event)));
	SAY("remove %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[0], NULL)));
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event)));
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event)));
	SAY("nowhere %s\n", err(epoll_ctl(set, EPOLL_CTL_MOD, pair[0], nowhere())));
	SAY("nothing %s\n", err(epoll_ctl(set, 0, pair[0], &event)));
	SAY("nothing, nowhere %s\n", err(epoll_ctl(set, 0, pair[0], nowhere())));
	event.events = EPOLLIN | EPOLLEXCLUSIVE;
	SAY("change %s\n", err(epoll_ctl(set, EPOLL_CTL_MOD, pair[0], &event)));
	SAY("remove %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[0], NULL)));
	SAY("no set %s\n", err(epoll_ctl(pair[1], EPOLL_CTL_ADD, pair[0], &event)));
	SAY("no room %s\n", err(epoll_wait(set, &event, 0, 0)));
	SAY("no set %s\n", err(epoll_wait(pair[0], &event, 1, 0)));
	close_pair(pair);
	close(set);
}

/* Numbers that are closed to the program are no members and no sets, whoever has files by
 * them. */
static void closed_numbers_in_sets(void)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	struct epoll_event event = { .events = EPOLLIN };
	int pair[2], set = epoll_create1(0), fd, odd = 0;
	const struct timespec none = { 0 };
	struct dirent *entry;
	DIR *dir;

	make_pair(pair);
	add(set, pair[0], EPOLLIN, 1);
	dir = opendir("/proc/self/fd");
	while ((entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
			odd += !epoll_ctl(set, ops[i], fd, &event) || errno != EBADF;
			odd += !epoll_ctl(fd, ops[i], pair[0], &event) ||
			       errno != EBADF;
		}
		odd += epoll_wait(fd, &event, 1, 0) >= 0 || errno != EBADF;
		odd += epoll_pwait(fd, &event, 1, 0, NULL) >= 0 || errno != EBADF;
		odd += epoll_pwait2(fd, &event, 1, &none, NULL) >= 0 ||
		       errno != EBADF;
	}
	SAY("%d are not closed\n", odd);
	closedir(dir);
	send(pair[1], "x", 1, 0);
	await_bytes(pair[0], 1);
	say_events(set, "set");
	close_pair(pair);
	close(set);
}

/* -- waits -------------------------------------------------------------------------- */

struct later {
	int fd;
	enum { SENDS, ENDS, RESETS, CONNECTS, READS } what;
	struct sockaddr_in name;
	size_t cnt; /* to read */
};

static void *do_later(void *arg)
{
	const struct later *later = arg;

	sleep_ms(30);
	if (later->what == SENDS)
		send(later->fd, "x", 1, 0);
	else if (later->what == ENDS)
		shutdown(later->fd, SHUT_WR);
	else if (later->what == RESETS)
		reset(later->fd);
	else if (later->what == CONNECTS)
		connect_to(later->fd, &later->name);
	else
		drain_all(later->fd, later->cnt);
	return NULL;
}

static int wait_by(int way, int fd, int events)
{
	struct pollfd pfd = { .fd = fd, .events = (short)events };
	struct epoll_event event = { .events = (unsigned)events };
	int set, n;
	fd_set in, out;

	if (way == 0)
		return poll(&pfd, 1, 5000) == 1 ? pfd.revents : -1;
	if (way == 1) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
		n = epoll_wait(set, &event, 1, 5000);
		close(set);
		return n == 1 ? (int)event.events : -1;
	}
	FD_ZERO(&in);
	FD_ZERO(&out);
	if (events & POLLIN)
		FD_SET(fd, &in);
	if (events & POLLOUT)
		FD_SET(fd, &out);
	n = select(fd + 1, &in, &out, NULL, &(struct timeval){ 5, 0 });
	return n * 256 + FD_ISSET(fd, &in) + 2 * FD_ISSET(fd, &out);
}

/* Who sleeps hears of it. */
static void woken_by(struct later later, int way)
{
	int fd, pair[2] = { -1, -1 }, events = POLLIN;
	pthread_t thread;

	if (later.what == CONNECTS) {
		fd = listening(&later.name, 4);
		later.fd = made();
	} else {
		make_pair(pair);
		fd = pair[0];
		later.fd = pair[1];
	}
	if (later.what == READS) {
		later.cnt = stuff(fd);
		events = POLLOUT;
	}
	pthread_create(&thread, NULL, do_later, &later);
	SAY("%d by %d: %#x\n", later.what, way, (unsigned)wait_by(way, fd, events));
	pthread_join(thread, NULL);
	close(fd);
	if (later.what != RESETS)
		close(later.fd);
}

static void woken_by_everything(void)
{
	for (int way = 0; way < 3; way++)
		for (int what = SENDS; what <= READS; what++)
			woken_by((struct later){ .what = what }, way);
}

static void time_of_waits(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int pair[2], set = epoll_create1(0);
	long begin;

	make_pair(pair);
	pfd.fd = pair[0];
	epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
	begin = now_ms();
	SAY("poll %d, ", poll(&pfd, 1, 100));
	SAY("in time: %d\n", now_ms() - begin >= 99 && now_ms() - begin < 3000);
	begin = now_ms();
	SAY("epoll %d, ", epoll_wait(set, &event, 1, 100));
	SAY("in time: %d\n", now_ms() - begin >= 99 && now_ms() - begin < 3000);
	close_pair(pair);
	close(set);
}

/* One after the other says something, and each is heard as often as it spoke. */
static void many_in_a_set(void)
{
	enum { CNT = 100, ROUNDS = 20 };
	struct sockaddr_in name;
	struct epoll_event events[16];
	int listener = listening(&name, 8), set = epoll_create1(0);
	int pairs[CNT][2], heard[CNT] = { 0 }, total = 0, n, bad_cnt = 0;

	for (unsigned i = 0; i < CNT; i++) {
		make_pair_of(listener, &name, pairs[i]);
		add(set, pairs[i][1], EPOLLIN | (i & 1 ? EPOLLET : 0), i);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < CNT; i++)
			send(pairs[i][0], "x", 1, 0);
	while (total < CNT * ROUNDS &&
	       (n = epoll_wait(set, events, ARRAY_LEN(events), 5000)) > 0)
		for (int i = 0; i < n; i++) {
			char buf[ROUNDS];
			unsigned who = events[i].data.u32;
			ssize_t got = recv(pairs[who][1], buf, sizeof(buf),
					   MSG_DONTWAIT);

			bad_cnt += events[i].events != EPOLLIN;
			heard[who] += (int)(got > 0 ? got : 0);
			total += (int)(got > 0 ? got : 0);
		}
	for (int i = 0; i < CNT; i++)
		bad_cnt += heard[i] != ROUNDS;
	SAY("%d heard, %d bad\n", total, bad_cnt);
	for (int i = 0; i < CNT; i++)
		close(pairs[i][0]);
	total = 0;
	while (total < CNT && (n = epoll_wait(set, events, 16, 5000)) > 0)
		for (int i = 0; i < n; i++) {
			close(pairs[events[i].data.u32][1]);
			total++;
		}
	SAY("%d ended, %d left\n", total, epoll_wait(set, events, 16, 0));
	close(set);
	close(listener);
}

/* Sockets of all sorts, in one call. */
static void ready_beside_others(void)
{
	struct pollfd pfds[5] = { 0 };
	int pair[2], pipes[2], udp = socket(AF_INET, SOCK_DGRAM, 0);

	make_pair(pair);
	if (pipe(pipes) != 0)
		SAY("pipe: %m\n");
	pfds[0] = (struct pollfd){ .fd = pair[0], .events = POLLIN | POLLOUT };
	pfds[1] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	pfds[2] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	pfds[3] = (struct pollfd){ .fd = udp, .events = POLLIN | POLLOUT };
	pfds[4] = (struct pollfd){ .fd = -1, .events = POLLIN };
	for (int round = 0; round < 3; round++) {
		SAY("poll %d:", poll(pfds, 5, 0));
		for (int i = 0; i < 5; i++)
			SAY(" %#x", (unsigned)pfds[i].revents);
		SAY("\n");
		send(pair[!round], "x", 1, 0);
		await(pair[round ? 1 : 0], POLLIN);
		if (write(pipes[1], "x", 1) != 1)
			SAY("write: %m\n");
	}
	close_pair(pair);
	close_pair(pipes);
	close(udp);
}

const struct scenario ready_scenarios[] = {
	SCENARIO(ready_before_a_connection, MIXED),
	SCENARIO(ready_with_data_and_ends, OURS),
	SCENARIO(ready_when_full, OURS),
	SCENARIO(level_triggered, OURS),
	SCENARIO(edge_triggered, OURS),
	SCENARIO(one_shot, OURS),
	SCENARIO(one_shot_edges, OURS),
	SCENARIO(edges_of_room, OURS),
	SCENARIO(room_that_no_send_has_missed, OURS),
	SCENARIO(edges_of_a_connect, MIXED),
	SCENARIO(watched_listeners, OURS),
	SCENARIO(copies_in_a_set, OURS),
	SCENARIO(set_in_a_set, OURS),
	SCENARIO(watches_of_one_that_goes_back, MIXED),
	SCENARIO(outer_sets_of_one_that_goes_back, MIXED),
	SCENARIO(sleeper_of_an_outer_set, MIXED),
	SCENARIO(closed_number_of_one_that_goes_back, MIXED),
	SCENARIO(listeners_that_connect, OURS),
	SCENARIO(bad_watches, OURS),
	SCENARIO(closed_numbers_in_sets, OURS),
	SCENARIO(woken_by_everything, OURS),
	SCENARIO(time_of_waits, OURS),
	SCENARIO(many_in_a_set, OURS),
	SCENARIO(ready_beside_others, OURS),
	SCENARIO_END,
};
