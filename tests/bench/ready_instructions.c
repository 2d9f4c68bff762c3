/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls whose instructions ready_instructions.sh counts, over the echo of a kernel
 * socket (udp_instructions echo): epoll_wait and poll with one socket ready among
 * many, and epoll_ctl. Prints how often each was done.
 *
 *   ready_instructions ADDRESS SOCKETS
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7007, LEN = 64, ROUNDS = 50, BURST = 100, WARM_UP = 20, POLLED = 10 };

#define MEASURED __attribute__((noinline, noipa))

/* Visible, so that callgrind finds them. */
long measured_epoll_wait(int set, struct epoll_event *events);
long measured_epoll_idle(int set, struct epoll_event *events);
long measured_epoll_mod(int set, int fd);
long measured_poll(struct pollfd *fds);

MEASURED long measured_epoll_wait(int set, struct epoll_event *events)
{
	return epoll_wait(set, events, 16, 0);
}

MEASURED long measured_epoll_idle(int set, struct epoll_event *events)
{
	return epoll_wait(set, events, 16, 0);
}

MEASURED long measured_epoll_mod(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
}

MEASURED long measured_poll(struct pollfd *fds)
{
	return poll(fds, POLLED, 0);
}

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void add(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* A set with so many sockets that only lie there. */
static int make_set(int cnt, struct pollfd *fds)
{
	struct rlimit limit = { (rlim_t)cnt + 100, (rlim_t)cnt + 100 };
	struct sockaddr_in any = { .sin_family = AF_INET };
	int set = epoll_create1(0);

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < cnt; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		any.sin_port = htons((uint16_t)(20000 + i));
		must(bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0,
		     "bind");
		add(set, fd);
		if (i < POLLED - 1)
			fds[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return set;
}

/* Until the echo lies in the ring, without a look at it. */
static void nap(void)
{
	usleep(20000);
}

static void send_burst(int fd)
{
	char buf[LEN] = "";

	for (int k = 0; k < BURST; k++)
		must(send(fd, buf, LEN, 0) == LEN, "send");
	nap();
}

static void receive(int fd)
{
	char buf[LEN];

	while (recv(fd, buf, LEN, MSG_DONTWAIT) < 0)
		;
}

/* Takes what lies in the ring to the socket: that is what a receive costs. */
static void take_in(int set)
{
	struct epoll_event event;

	for (int i = 0; i < BURST; i++)
		must(epoll_wait(set, &event, 1, 1000) == 1, "epoll_wait");
}

int main(int argc, char **argv)
{
	struct sockaddr_in echo = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };
	unsigned waited = 0, idle = 0, modified = 0, polled = 0;
	struct pollfd fds[POLLED];
	struct epoll_event events[16];
	int set, fd;
	char buf[LEN] = "";

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS SOCKETS\n", argv[0]);
		return 2;
	}
	set = make_set(atoi(argv[2]) - 1, fds);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, argv[1], &echo.sin_addr);
	must(connect(fd, (struct sockaddr *)&echo, sizeof(echo)) == 0,
	     "connect");
	add(set, fd);
	fds[POLLED - 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	/* the first ones find the way; they may be the kernel's */
	for (int i = 0; i < WARM_UP; i++) {
		send(fd, buf, LEN, 0);
		nap();
		while (recv(fd, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	for (int i = 0; i < ROUNDS; i++) {
		send_burst(fd);
		take_in(set);
		for (int k = 0; k < BURST; k++) {
			waited += measured_epoll_wait(set, events) == 1;
			receive(fd);
		}
		send_burst(fd);
		take_in(set);
		for (int k = 0; k < BURST; k++) {
			polled += measured_poll(fds) == 1;
			receive(fd);
		}
		for (int k = 0; k < BURST; k++) {
			idle += measured_epoll_idle(set, events) == 0;
			modified += measured_epoll_mod(set, fd) == 0;
		}
	}
	printf("%u %u %u %u\n", waited, polled, idle, modified);
	return 0;
}
