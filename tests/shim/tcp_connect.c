/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connect() in every way, what it fails with, and names. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

static void say_connect(int fd, const struct sockaddr_in *name)
{
	int n = connect_to(fd, name);

	SAY("connect %s\n", err(n));
}

/* A listener that has no room: what connects to it gets no answer. */
static int full_listener(struct sockaddr_in *name, int *holder)
{
	int fd = listening(name, 0);

	*holder = connected(name);
	return fd;
}

/* A port that nobody listens at. */
static struct sockaddr_in closed_port(void)
{
	struct sockaddr_in name;

	close(bound(&name));
	return name;
}

/* -- names -------------------------------------------------------------------------- */

static void names_of_both_ends(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made(), child;

	say_names(listener, name.sin_port, 0);
	say_names(fd, 0, 0);
	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	say_names(fd, own_port(fd), name.sin_port);
	say_names(child, name.sin_port, own_port(fd));
	shutdown(fd, SHUT_WR);
	await(child, POLLIN);
	say_names(fd, own_port(fd), name.sin_port);
	say_names(child, name.sin_port, own_port(fd));
	close(child);
	await(fd, POLLIN | POLLRDHUP);
	receive(fd, 0);
	say_names(fd, own_port(fd), name.sin_port);
	close(fd);
	close(listener);
}

static void names_while_connecting(void)
{
	struct sockaddr_in name;
	int holder, listener = full_listener(&name, &holder);
	int fd = made_nonblocking();

	say_connect(fd, &name);
	say_names(fd, own_port(fd), name.sin_port);
	SAY("has a port: %d\n", own_port(fd) != 0);
	close(fd);
	close(holder);
	close(listener);
}

/* Names go into short and missing rooms. */
static void names_in_short_rooms(void)
{
	static const socklen_t rooms[] = { 0, 1, 2, 8, 15, 16, 17, 128 };
	struct sockaddr_storage room;
	socklen_t len;
	int pair[2];

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
		memset(&room, 0xee, sizeof(room));
		len = rooms[i];
		SAY("%u: %s", rooms[i],
		    err(getpeername(pair[0], (struct sockaddr *)&room, &len)));
		SAY(" %u, the next byte %#x\n", len,
		    ((unsigned char *)&room)[rooms[i] < 16 ? rooms[i] : 16]);
	}
	len = (socklen_t)-1;
	SAY("%s\n", err(getsockname(pair[0], (struct sockaddr *)&room, &len)));
	close_pair(pair);
}

/* -- that succeed ------------------------------------------------------------------- */

static void connect_without_waiting(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made_nonblocking();

	say_connect(fd, &name);
	SAY("events %#x\n", (unsigned)await(fd, POLLOUT));
	say_error(fd);
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	close(listener);
}

/* The third connection waits for room, which SYNs are told by silence. */
static void already_connecting(void)
{
	struct sockaddr_in name;
	int holder, listener = full_listener(&name, &holder);
	int fd = made_nonblocking(), child;
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	say_connect(fd, &name);
	say_connect(fd, &name);
	say_error(fd);
	SAY("poll %d\n", poll(&pfd, 1, 50));
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("listen %s\n", err(listen(fd, 1)));
	child = accept(listener, NULL, NULL);
	SAY("events %#x\n", (unsigned)await(fd, POLLOUT));
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	close(child);
	close(holder);
	close(listener);
}

/* A connection that is open, of which connect() has not been asked since it said
 * EINPROGRESS. */
static int not_asked_since(int listener, const struct sockaddr_in *name, int *child)
{
	int fd = made_nonblocking();

	say_connect(fd, name);
	*child = accept(listener, NULL, NULL);
	await(fd, POLLOUT);
	return fd;
}

/* What has become of a connection that has opened and ended since. */
static void ended_before_it_is_asked(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;

	for (int is_told = 0; is_told < 2; is_told++) {
		fd = not_asked_since(listener, &name, &child);
		reset(child);
		await(fd, POLLHUP);
		if (is_told)
			say_error(fd);
		say_connect(fd, &name);
		say_error(fd);
		say_connect(fd, &name);
		child = accept(listener, NULL, NULL);
		await(fd, POLLOUT);
		say_connect(fd, &name);
		say_connect(fd, &name);
		close(fd);
		close(child);
	}
	/* the peer's end alone ends nothing */
	fd = not_asked_since(listener, &name, &child);
	close(child);
	await(fd, POLLRDHUP);
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	/* who shuts it has been told by that */
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		fd = not_asked_since(listener, &name, &child);
		SAY("shutdown %s\n", err(shutdown(fd, how)));
		say_connect(fd, &name);
		close(fd);
		close(child);
	}
	close(listener);
}

static void connect_from_a_bound_port(void)
{
	struct sockaddr_in name, own;
	int listener = listening(&name, 4), fd = bound(&own), child;
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);

	say_connect(fd, &name);
	child = accept(listener, (struct sockaddr *)&peer, &len);
	SAY("from that port: %d\n", peer.sin_port == own.sin_port);
	SAY("bind again %s\n",
	    err(bind(fd, (struct sockaddr *)&(struct sockaddr_in){
				 .sin_family = AF_INET },
		     sizeof(own))));
	close(fd);
	close(child);
	close(listener);
}

/* The same two ends cannot be connected twice. */
static void same_port_same_destination(void)
{
	struct sockaddr_in name, own, bind_name;
	int listener = listening(&name, 4), fds[2];

	fds[0] = made();
	set_option(fds[0], SOL_SOCKET, SO_REUSEADDR, 1);
	bind_name = owned(0);
	bind(fds[0], (struct sockaddr *)&bind_name, sizeof(bind_name));
	own = owned(own_port(fds[0]));
	say_connect(fds[0], &name);
	fds[1] = made();
	set_option(fds[1], SOL_SOCKET, SO_REUSEADDR, 1);
	SAY("bind %s\n", err(bind(fds[1], (struct sockaddr *)&own, sizeof(own))));
	say_connect(fds[1], &name);
	close_pair(fds);
	close(listener);
}

/* Ports are chosen when the destination is known, so one serves several. */
static void one_port_for_several(void)
{
	struct sockaddr_in names[3], own = owned(0), probe;
	int listeners[3], fds[4];
	uint16_t port;

	close(bound(&probe));
	port = ntohs(probe.sin_port);
	for (int i = 0; i < 3; i++)
		listeners[i] = listening(&names[i], 4);
	for (int i = 0; i < 4; i++) {
		fds[i] = made();
		SAY("late port %s\n", err(set_option(fds[i], IPPROTO_IP,
						     IP_BIND_ADDRESS_NO_PORT, 1)));
		SAY("range %s\n",
		    err(set_option(fds[i], IPPROTO_IP, IP_LOCAL_PORT_RANGE,
				   (int)((unsigned)port << 16 | port))));
		SAY("bind %s\n",
		    err(bind(fds[i], (struct sockaddr *)&own, sizeof(own))));
		SAY("port is chosen: %d\n", own_port(fds[i]) != 0);
		say_connect(fds[i], &names[i % 3]);
		SAY("port is that one: %d\n", own_port(fds[i]) == htons(port));
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	for (int i = 0; i < 3; i++)
		close(listeners[i]);
}

/* A port that is chosen late costs nobody the acceleration; the local device of tests holds
 * its ports by bind(). */
static void late_port_is_ours(void)
{
	struct sockaddr_in name, own = owned(0);
	int listener = listening(&name, 4);

	for (int i = 0; i < 4; i++) {
		int fds[2] = { made() };

		if (over_wire())
			set_option(fds[0], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		SAY("bind %s\n",
		    err(bind(fds[0], (struct sockaddr *)&own, sizeof(own))));
		say_connect(fds[0], &name);
		fds[1] = accept(listener, NULL, NULL);
		say_names(fds[1], name.sin_port, own_port(fds[0]));
		for (int j = 0; j < 20; j++) {
			say_sent(fds[j & 1], "late", 0);
			receive(fds[~j & 1], 0);
		}
		close_pair(fds);
	}
	close(listener);
}

/* Of two ports the third connection to one destination gets none; another destination
 * has both, but on the local device of tests, which holds its ports by bind(). */
static void ports_run_out(void)
{
	struct sockaddr_in names[2], probe;
	int listeners[2], fds[4], first;

	do {
		close(bound(&probe));
		first = ntohs(probe.sin_port) & ~1;
	} while (first < 2048);
	for (int i = 0; i < 2; i++)
		listeners[i] = listening(&names[i], 4);
	for (int i = 0; i < 4; i++) {
		fds[i] = made();
		set_option(fds[i], IPPROTO_IP, IP_LOCAL_PORT_RANGE,
			   (int)((unsigned)(first + 1) << 16 | (unsigned)first));
		if (i == 3 && !over_wire())
			break;
		say_connect(fds[i], &names[i == 3]);
		SAY("port is in the range: %d\n",
		    (ntohs(own_port(fds[i])) & ~1) == first);
	}
	close(fds[0]);
	if (over_wire())
		say_connect(fds[2], &names[1]);
	for (int i = 1; i < 4; i++)
		close(fds[i]);
	for (int i = 0; i < 2; i++)
		close(listeners[i]);
}

/* A refused connection gives its port up, and the next one is another's. */
static void refused_port_is_free(void)
{
	struct sockaddr_in name, closed, own;
	int listener = listening(&name, 4), fd = made(), child, other;
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);

	close(bound(&closed));
	say_connect(fd, &closed);
	own = owned(own_port(fd));
	other = made();
	if (over_wire())
		SAY("its port is free: %s\n",
		    err(bind(other, (struct sockaddr *)&own, sizeof(own))));
	say_connect(fd, &name);
	child = accept(listener, (struct sockaddr *)&peer, &len);
	SAY("the port in its name: %d\n", peer.sin_port == own_port(fd));
	SAY("another one: %d\n", !over_wire() || peer.sin_port != own.sin_port);
	close(other);
	close(fd);
	close(child);
	close(listener);
}

/* It begins anew with the kernel, by the name that the program knows. */
static void goes_back_unanswered(void)
{
	struct sockaddr_in name;
	int holder, listener = full_listener(&name, &holder);
	int fd = made_nonblocking(), on = 1;
	uint16_t port;

	say_connect(fd, &name);
	port = own_port(fd);
	/* signals to nobody are the kernel's */
	ioctl(fd, FIOASYNC, &on);
	SAY("its port stays: %d\n", own_port(fd) == port);
	close(accept(listener, NULL, NULL));
	/* a twin over loopback is not heard by what is not accepted yet */
	if (over_wire()) {
		await(fd, POLLOUT);
		say_error(fd);
		SAY("its port stays: %d\n", own_port(fd) == port);
	}
	close(fd);
	close(holder);
	close(listener);
}

/* A socket that calls itself. */
static void self_connect(void)
{
	struct sockaddr_in name;
	int fd = bound(&name);

	say_connect(fd, &name);
	say_names(fd, name.sin_port, name.sin_port);
	say_sent(fd, "to myself", 0);
	receive(fd, 0);
	shutdown(fd, SHUT_WR);
	receive(fd, 0);
	close(fd);
}

static void mapped_destination(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4);
	int fd = socket(AF_INET6, SOCK_STREAM, 0), child;
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = name.sin_port }, got = { 0 };
	socklen_t len = sizeof(got);

	to.sin6_addr.s6_addr[10] = to.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&to.sin6_addr.s6_addr[12], &name.sin_addr, 4);
	SAY("connect %s\n",
	    err(connect(fd, (struct sockaddr *)&to, sizeof(to))));
	child = accept(listener, NULL, NULL);
	getpeername(fd, (struct sockaddr *)&got, &len);
	SAY("peer mapped %d, length %u\n",
	    IN6_IS_ADDR_V4MAPPED(&got.sin6_addr), len);
	len = sizeof(got);
	getsockname(fd, (struct sockaddr *)&got, &len);
	SAY("own mapped %d, length %u\n",
	    IN6_IS_ADDR_V4MAPPED(&got.sin6_addr), len);
	say_sent(fd, "mapped", 0);
	receive(child, 0);
	say_sent(child, "back", 0);
	receive(fd, 0);
	close(fd);
	close(child);
	close(listener);
}

static void data_with_the_syn(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made(), child;
	ssize_t n = sendto(fd, "at once", 7, MSG_FASTOPEN,
			   (struct sockaddr *)&name, sizeof(name));

	SAY("sendto %zd %s\n", n, err(n));
	child = accept(listener, NULL, NULL);
	receive(child, 0);
	close(fd);
	close(child);
	fd = made();
	SAY("set %s\n",
	    err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)));
	say_connect(fd, &name);
	say_sent(fd, "later", 0);
	child = accept(listener, NULL, NULL);
	receive(child, 0);
	close(fd);
	close(child);
	close(listener);
}

/* -- that fail ---------------------------------------------------------------------- */

static void refused_and_again(void)
{
	struct sockaddr_in nobody = closed_port(), name;
	int listener = listening(&name, 4), fd = made();

	say_connect(fd, &nobody);
	say_error(fd);
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
	say_connect(fd, &nobody);
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	close(listener);
}

static void refused_without_waiting(void)
{
	struct sockaddr_in nobody = closed_port(), name;
	int listener = listening(&name, 4), fd = made_nonblocking();

	say_connect(fd, &nobody);
	SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
	say_error(fd);
	say_error(fd);
	SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
	say_connect(fd, &name);
	say_connect(fd, &name);
	await(fd, POLLOUT);
	say_connect(fd, &name);
	close(fd);
	/* told by connect() itself */
	fd = made_nonblocking();
	say_connect(fd, &nobody);
	await(fd, POLLOUT);
	say_connect(fd, &nobody);
	say_error(fd);
	close(fd);
	/* told by recv() */
	fd = made_nonblocking();
	say_connect(fd, &nobody);
	await(fd, POLLOUT);
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	say_error(fd);
	close(fd);
	close(listener);
}

/* Before any call has told that it was refused, which no call of connect() does any more. */
static void refused_and_shut_down(void)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in nobody, name;
	int listener = listening(&nobody, 4), elsewhere = listening(&name, 4), fd, child;
	int client = connected(&nobody);

	/* whose segments, and so all of the port, are ours without its listener */
	child = accept(listener, NULL, NULL);
	close(listener);
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		fd = made_nonblocking();
		say_connect(fd, &nobody);
		await(fd, POLLHUP);
		SAY("shutdown %s\n", err(shutdown(fd, how)));
		SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
		say_connect(fd, &name);
		say_connect(fd, &name);
		say_error(fd);
		SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
		SAY("disconnect %s\n", err(connect(fd, &none, sizeof(none))));
		say_connect(fd, &name);
		await(fd, POLLOUT);
		say_connect(fd, &name);
		close(fd);
		close(accept(elsewhere, NULL, NULL));
	}
	close(client);
	close(child);
	close(elsewhere);
}

static void bad_destinations(void)
{
	static const char *const addresses[] = { "255.255.255.255", "224.0.0.1",
						 "0.0.0.0" };
	struct sockaddr_in name = closed_port(), to;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		fd = made();
		to = name;
		inet_pton(AF_INET, addresses[i], &to.sin_addr);
		SAY("%s: ", addresses[i]);
		say_connect(fd, &to);
		close(fd);
	}
	fd = made();
	SAY("short %s\n", err(connect(fd, (struct sockaddr *)&name, 8)));
	SAY("shorter %s\n", err(connect(fd, (struct sockaddr *)&name, 1)));
	SAY("too long %s\n", err(connect(fd, (struct sockaddr *)&name, 500)));
	SAY("nowhere %s\n", err(connect(fd, nowhere(), sizeof(name))));
	SAY("six %s\n", err(connect(fd, (struct sockaddr *)&six, sizeof(six))));
	to = name;
	to.sin_port = 0;
	SAY("port 0: ");
	say_connect(fd, &to);
	close(fd);
}

static void connect_times_out(void)
{
	struct sockaddr_in name;
	int holder, listener = full_listener(&name, &holder), fd = made();
	long begin = now_ms(), took;

	SAY("set %s\n", err(set_option(fd, IPPROTO_TCP, TCP_SYNCNT, 1)));
	say_connect(fd, &name);
	took = now_ms() - begin;
	SAY("in time: %d\n", took > 1500 && took < 9000);
	say_error(fd);
	close(holder);
	close(accept(listener, NULL, NULL));
	say_connect(fd, &name);
	close(fd);
	close(listener);
}

/* By the sysctl, which tcp.sh has set to 1 in the namespace of a run. */
static void connect_times_out_by_sysctl(void)
{
	struct sockaddr_in name;
	int holder, listener, fd;
	long begin = now_ms(), took;

	if (!getenv("TCP_ALONE")) {
		SAY("it takes minutes\n");
		return;
	}
	listener = full_listener(&name, &holder);
	fd = made();
	say_connect(fd, &name);
	took = now_ms() - begin;
	SAY("in time: %d\n", took > 1500 && took < 9000);
	close(fd);
	close(holder);
	close(listener);
}

static void connect_with_a_time_limit(void)
{
	struct sockaddr_in name;
	struct timeval limit = { 0, 100000 };
	int holder, listener = full_listener(&name, &holder), fd = made();
	long begin = now_ms(), took;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	say_connect(fd, &name);
	took = now_ms() - begin;
	SAY("in time: %d\n", took >= 95 && took < 2900);
	say_connect(fd, &name);
	say_error(fd);
	close(fd);
	close(holder);
	close(listener);
}

static void nothing(int sig)
{
	(void)sig;
}

/* Again and again until alarm(0), for who is not in the call yet. */
static void alarm_in_ms(int ms, int flags)
{
	struct sigaction act = { .sa_handler = nothing, .sa_flags = flags };
	struct itimerval timer = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupted_and_continued(void)
{
	struct sockaddr_in name;
	int holder, listener = full_listener(&name, &holder), fd = made(), child;

	alarm_in_ms(100, 0);
	say_connect(fd, &name);
	alarm(0);
	set_blocking(fd, false);
	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	SAY("events %#x\n", (unsigned)await(fd, POLLOUT));
	say_error(fd);
	say_connect(fd, &name);
	say_connect(fd, &name);
	close(fd);
	close(child);
	close(holder);
	close(listener);
}

static void *accept_later(void *arg)
{
	const int *listener = arg;

	sleep_ms(200);
	close(accept(*listener, NULL, NULL));
	return NULL;
}

/* With SA_RESTART it goes on by itself, but not with a time limit. */
static void interrupted_and_restarted(void)
{
	struct sockaddr_in name;
	struct timeval limit = { 20, 0 };
	int holder, listener = full_listener(&name, &holder), fd = made();
	pthread_t thread;

	alarm_in_ms(100, SA_RESTART);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	say_connect(fd, &name);
	alarm(0);
	close(fd);
	fd = made();
	pthread_create(&thread, NULL, accept_later, &listener);
	alarm_in_ms(100, SA_RESTART);
	say_connect(fd, &name);
	alarm(0);
	pthread_join(thread, NULL);
	close(fd);
	close(holder);
	close(listener);
}

/* -- AF_UNSPEC ---------------------------------------------------------------------- */

static void say_dissolved(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	SAY("dissolve %s\n", err(connect(fd, &none, sizeof(none))));
}

static void dissolved(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made(), child;

	say_dissolved(fd);
	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	say_dissolved(fd);
	SAY("events %#x\n", (unsigned)await(child, POLLIN));
	receive(child, 0);
	receive(child, 0);
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
	say_names(fd, 0, 0);
	say_connect(fd, &name);
	close(child);
	child = accept(listener, NULL, NULL);
	say_sent(fd, "once more", 0);
	receive(child, 0);
	close(fd);
	close(child);
	close(listener);
}

/* What it says by itself: readiness without a wait. */
static void say_events(const char *when, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	poll(&pfd, 1, 0);
	SAY("%s: events %#x\n", when, (unsigned)pfd.revents);
}

/* What was under way is cut off; what has ended is not. */
static void dissolved_at_its_ends(void)
{
	struct sockaddr_in name, free_name;
	int holder, listener = full_listener(&name, &holder), fd = made_nonblocking(), child;

	say_connect(fd, &name);
	say_dissolved(fd);
	say_events("opening", fd);
	say_error(fd);
	close(fd);
	listen(listener, 4);
	child = accept(listener, NULL, NULL);
	shutdown(holder, SHUT_WR);
	receive_to_end(child);
	close(child);
	receive_to_end(holder);
	say_dissolved(holder);
	say_events("ended", holder);
	say_error(holder);
	close(holder);
	close(listener);
	free_name = closed_port();
	fd = made();
	say_connect(fd, &free_name);
	say_dissolved(fd);
	say_events("refused", fd);
	say_error(fd);
	close(fd);
}

static void dissolved_child(void)
{
	int pair[2];

	make_pair(pair);
	say_dissolved(pair[1]);
	say_events("child", pair[1]);
	SAY("error %d\n", get_option(pair[1], SOL_SOCKET, SO_ERROR) == ECONNRESET);
	say_events("child", pair[1]);
	close_pair(pair);
	make_pair(pair);
	say_dissolved(pair[0]);
	say_events("client", pair[0]);
	SAY("shutdown %s\n", err(shutdown(pair[0], SHUT_WR)));
	say_events("client", pair[0]);
	SAY("messages %s\n", err(recvmmsg(pair[0], &(struct mmsghdr){ 0 }, 1,
					  MSG_DONTWAIT, NULL)));
	close_pair(pair);
	/* who waits for it in a set hears of it */
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = i ? EPOLLIN : 0 };
		int set = epoll_create1(0);

		make_pair(pair);
		epoll_ctl(set, EPOLL_CTL_ADD, pair[i], &event);
		SAY("events %d\n", epoll_wait(set, &event, 1, 0));
		say_dissolved(pair[i]);
		event.events = 0;
		SAY("events %d", epoll_wait(set, &event, 1, 1000));
		SAY(", %#x\n", event.events);
		close_pair(pair);
		close(set);
	}
	/* it has ended before, by a reset behind the end */
	make_pair(pair);
	shutdown(pair[0], SHUT_RDWR);
	await(pair[1], POLLRDHUP);
	SAY("send %s\n", err(send(pair[1], "x", 1, MSG_NOSIGNAL)));
	await(pair[1], POLLERR);
	say_dissolved(pair[1]);
	SAY("send %s\n", err(send(pair[1], "x", 1, MSG_NOSIGNAL)));
	close_pair(pair);
}

/* Its listener's port is nobody's when both are closed. */
static void dissolved_child_gives_up_its_port(void)
{
	struct sockaddr_in name, own;
	int listener = listening(&name, 4), fd = made(), child, again = -1;

	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	say_dissolved(child);
	SAY("events %#x\n", (unsigned)await(fd, POLLERR));
	own = owned(own_port(listener));
	close(fd);
	close(child);
	close(listener);
	for (int i = 0; i < 500 && again < 0; i++) {
		int other = made();

		if (bind(other, (struct sockaddr *)&own, sizeof(own)) == 0)
			again = other;
		else
			close(other);
		if (again < 0)
			sleep_ms(10);
	}
	SAY("bound %d\n", again >= 0);
	close(again);
}

/* What has become of the connection before is nothing to the next one: neither when urgent
 * data come nor at its end. */
static void dissolved_after_a_reset(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made(), child;

	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	shutdown(fd, SHUT_RDWR);
	say_sent(child, "late", 0);
	/* both have ended it, which is a hang-up before the reset */
	while (!(await(fd, 0) & POLLERR))
		;
	close(child);
	say_dissolved(fd);
	say_connect(fd, &name);
	child = accept(listener, NULL, NULL);
	SAY("urgent %s\n", err(send(child, "!", 1, MSG_OOB)));
	SAY("events %#x\n", (unsigned)await(fd, POLLPRI));
	for (int i = 0; i < 20; i++) {
		send(child, "a", 1, 0);
		recv(fd, &(char){ 0 }, 1, 0);
		send(fd, "b", 1, 0);
		recv(child, &(char){ 0 }, 1, 0);
		sleep_ms(1);
	}
	close(fd);
	SAY("events %#x\n", (unsigned)await(child, POLLRDHUP));
	receive(child, MSG_DONTWAIT);
	close(child);
	close(listener);
}

static void shut_down_before_it_begins(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd;

	for (int how = 0; how <= 2; how++) {
		fd = made();
		SAY("shutdown %s\n", err(shutdown(fd, how)));
		say_events("fresh", fd);
		SAY("connect %s\n", err(connect_to(fd, &name)));
		say_events("connected", fd);
		close(fd);
		close(accept(listener, NULL, NULL));
	}
	close(listener);
}

static void connections_are_bound_already(void)
{
	/* the last one is the documentation's, which no host has */
	struct sockaddr_in any = owned(0), names[3];
	int pair[2];

	any.sin_addr.s_addr = htonl(INADDR_ANY);
	names[0] = any;
	names[1] = names[2] = owned(0);
	names[2].sin_addr.s_addr = htonl(0xc0000201);
	make_pair(pair);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 3; k++)
			SAY("bind %s\n", err(bind(pair[i], (struct sockaddr *)&names[k],
						  sizeof(names[k]))));
	SAY("bind %s\n", err(bind(pair[1], (struct sockaddr *)&any, 3)));
	say_sent(pair[0], "goes on", 0);
	receive(pair[1], 0);
	close_pair(pair);
}

static void dissolved_listener(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made();

	say_dissolved(listener);
	SAY("listens %d\n", get_option(listener, SOL_SOCKET, SO_ACCEPTCONN));
	say_connect(fd, &name);
	SAY("listen %s\n", err(listen(listener, 4)));
	say_connect(fd, &name);
	close(fd);
	close(listener);
}

static void dissolved_while_connecting(void)
{
	struct sockaddr_in name, other;
	int holder, listener = full_listener(&name, &holder);
	int second = listening(&other, 4), fd = made_nonblocking();

	say_connect(fd, &name);
	say_dissolved(fd);
	say_connect(fd, &other);
	await(fd, POLLOUT);
	say_error(fd);
	close(fd);
	close(holder);
	close(listener);
	close(second);
}

static void connect_of_a_listener(void)
{
	struct sockaddr_in name, other;
	int listener = listening(&name, 4), second = listening(&other, 4);

	say_connect(listener, &other);
	SAY("recv %s\n", err(recv(listener, &(char){ 0 }, 1, 0)));
	SAY("send %s\n", err(send(listener, "x", 1, MSG_NOSIGNAL)));
	close(listener);
	close(second);
}

const struct scenario connect_scenarios[] = {
	SCENARIO(names_of_both_ends, OURS),
	SCENARIO(names_while_connecting, OURS),
	SCENARIO(names_in_short_rooms, OURS),
	SCENARIO(connect_without_waiting, OURS),
	SCENARIO(already_connecting, OURS),
	SCENARIO(ended_before_it_is_asked, OURS),
	SCENARIO(connect_from_a_bound_port, OURS),
	SCENARIO(same_port_same_destination, OURS),
	SCENARIO(one_port_for_several, MIXED),
	SCENARIO(late_port_is_ours, OURS),
	SCENARIO(ports_run_out, MIXED),
	SCENARIO(refused_port_is_free, MIXED),
	SCENARIO(goes_back_unanswered, MIXED),
	SCENARIO(self_connect, MIXED),
	SCENARIO(mapped_destination, OURS),
	SCENARIO(data_with_the_syn, OURS),
	SCENARIO(refused_and_again, MIXED),
	SCENARIO(refused_without_waiting, MIXED),
	SCENARIO(refused_and_shut_down, MIXED),
	SCENARIO(bad_destinations, MIXED),
	SCENARIO(connect_times_out, MIXED),
	SCENARIO(connect_times_out_by_sysctl, MIXED),
	SCENARIO(connect_with_a_time_limit, OURS),
	SCENARIO(interrupted_and_continued, OURS),
	SCENARIO(interrupted_and_restarted, OURS),
	SCENARIO(dissolved, KERNEL),
	SCENARIO(dissolved_at_its_ends, MIXED),
	SCENARIO(dissolved_child, MIXED),
	SCENARIO(dissolved_child_gives_up_its_port, MIXED),
	SCENARIO(dissolved_after_a_reset, MIXED),
	SCENARIO(shut_down_before_it_begins, MIXED),
	SCENARIO(connections_are_bound_already, OURS),
	SCENARIO(dissolved_listener, MIXED),
	SCENARIO(dissolved_while_connecting, OURS),
	SCENARIO(connect_of_a_listener, OURS),
	SCENARIO_END,
};
