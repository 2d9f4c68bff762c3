/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls whose instructions tcp_calls.sh counts, over the echo of a kernel socket:
 * requests of 64 bytes, one after the other. Prints how often each was done.
 *
 *   tcp_calls echo ADDRESS PIPE              the echo, until it is ended
 *   tcp_calls calls ADDRESS PIPE [SOCKETS]   the calls, beside so many connections more
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7007, LEN = 64, ROUNDS = 4000, WARM_UP = 50 };

#define MEASURED __attribute__((noinline, noipa))

/* Visible, so that callgrind finds them. */
long measured_send(int fd, const void *buf);
long measured_receive(int fd, void *buf);
long measured_take(int fd, void *buf);
long measured_look(int fd, void *buf);
long measured_told(int fd, void *buf);
long measured_epoll(int set, struct epoll_event *event);
long measured_ready(int set, struct epoll_event *event);

MEASURED long measured_send(int fd, const void *buf)
{
	return send(fd, buf, LEN, 0);
}

MEASURED long measured_receive(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

/* Of a connection that nothing is sent by. */
MEASURED long measured_take(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

MEASURED long measured_look(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

/* Of a connection that epoll_wait has told of. */
MEASURED long measured_told(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

MEASURED long measured_epoll(int set, struct epoll_event *event)
{
	return epoll_wait(set, event, 1, 0);
}

/* What is ready has been received before. */
MEASURED long measured_ready(int set, struct epoll_event *event)
{
	return epoll_wait(set, event, 1, 0);
}

static struct sockaddr_in name_of(const char *address)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };

	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

/* Of any number of connections. What comes by the pipe leaves by the latest of them. */
static int echo(const char *address, const char *pipe)
{
	struct sockaddr_in name = name_of(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0), one = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	int latest = -1, requests = open(pipe, O_RDWR);
	char buf[LEN];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    listen(fd, 1024) != 0)
		return 1;
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	event.data.fd = requests;
	epoll_ctl(set, EPOLL_CTL_ADD, requests, &event);
	for (;;) {
		ssize_t n;

		if (epoll_wait(set, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == fd) {
			event.data.fd = latest = accept(fd, NULL, NULL);
			setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one,
				   sizeof(one));
			epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
			continue;
		}
		n = read(event.data.fd, buf, sizeof(buf));
		if (n <= 0)
			close(event.data.fd);
		else
			(void)!write(event.data.fd == requests ? latest :
								  event.data.fd,
				     buf, (size_t)n);
	}
}

static int connected(const char *address)
{
	struct sockaddr_in name = name_of(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0) {
		perror("connect");
		exit(1);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Connections that only lie there. */
static void crowd(const char *address, int cnt)
{
	struct rlimit limit = { (rlim_t)cnt + 100, (rlim_t)cnt + 100 };

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < cnt; i++)
		connected(address);
}

/* The frames that the interface has received. */
static long frames(void)
{
	static int fd = -1;
	char text[24] = "";

	if (fd < 0)
		fd = open("/sys/class/net/v0/statistics/rx_packets", O_RDONLY);
	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atol(text) : 0;
}

/* Until the echo lies in the ring, without a look at it. */
static void await_frame(long before)
{
	for (int i = 0; frames() == before && i < 1000; i++)
		usleep(100);
	usleep(100);
}

static int calls(const char *address, const char *pipe)
{
	int fd = connected(address), set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	unsigned sent = 0, received = 0, looked = 0, waited = 0, taken = 0,
		 told = 0, ready = 0;
	int latest, requests = open(pipe, O_RDWR);
	char buf[LEN] = "";
	long before;

	for (int i = 0; i < WARM_UP; i++) {
		send(fd, buf, LEN, 0);
		recv(fd, buf, LEN, 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		before = frames();
		sent += measured_send(fd, buf) == LEN;
		await_frame(before);
		received += measured_receive(fd, buf) == LEN;
		looked += measured_look(fd, buf) == -1 && errno == EAGAIN;
		/* late ones are of no interest */
		while (recv(fd, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	for (int i = 0; i < ROUNDS; i++) {
		before = frames();
		send(fd, buf, LEN, 0);
		await_frame(before);
		waited += measured_epoll(set, &event) == 1;
		told += measured_told(fd, buf) == LEN;
	}
	for (int i = 0; i < ROUNDS; i++) {
		before = frames();
		send(fd, buf, LEN, 0);
		await_frame(before);
		/* one tells of the segment, another one takes it in */
		epoll_wait(set, &event, 1, 0);
		epoll_wait(set, &event, 1, 0);
		ready += measured_ready(set, &event) == 1;
		while (recv(fd, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	latest = connected(address);
	for (int i = 0; i < ROUNDS; i++) {
		before = frames();
		(void)!write(requests, buf, LEN);
		await_frame(before);
		taken += measured_take(latest, buf) == LEN;
		while (recv(latest, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	printf("%u %u %u %u %u %u %u\n", sent, received, taken, looked, waited, told,
	       ready);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "echo") == 0)
		return echo(argv[2], argv[3]);
	if (argc >= 4 && strcmp(argv[1], "calls") == 0) {
		crowd(argv[2], argc > 4 ? atoi(argv[4]) : 0);
		return calls(argv[2], argv[3]);
	}
	fprintf(stderr, "usage: %s echo ADDRESS PIPE | calls ADDRESS PIPE [SOCKETS]\n",
		argv[0]);
	return 2;
}
