/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of options.sh: what variables change of TCP sockets. */
#include "config.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/options.h"

static int tcp_listener(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET };
	name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)name, len) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)name, &len) != 0)
		perror("listen");
	return fd;
}

/* What a connection that has chosen nothing has. */
static void tcp(void)
{
	struct sockaddr_in name;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info), int_len = sizeof(int), text_len = 16;
	int listener = tcp_listener(&name), nodelay = -1;
	int fd = socket(AF_INET, SOCK_STREAM, 0), child;
	char text[16] = "";

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	if (write(fd, text, 1) != 1 || read(child, text, 1) != 1)
		perror("a byte");
	getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &int_len);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &text_len);
	printf("nodelay %d, time stamps %d, mss %u, %s\n", nodelay,
	       info.tcpi_options & TCPI_OPT_TIMESTAMPS, info.tcpi_snd_mss, text);
	close(child);
	close(fd);
	close(listener);
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Whether the last of many single bytes is acknowledged although nobody answers or reads.
 * Negative: it took so long that an acknowledgment that is late by 40 ms may be there. */
static int sees_an_ack(void)
{
	struct sockaddr_in name;
	long long from, took;
	int listener = tcp_listener(&name), unacked = 0;
	int fd = socket(AF_INET, SOCK_STREAM, 0), child;
	char byte = 0, bytes[40];

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	from = now_ms();
	for (size_t i = 1; i <= sizeof(bytes); i++)
		if (write(fd, &byte, 1) != 1 ||
		    recv(child, bytes, i, MSG_PEEK | MSG_WAITALL) != (ssize_t)i)
			perror("a byte");
	/* which also polls */
	(void)!poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 2);
	ioctl(fd, SIOCOUTQ, &unacked);
	took = now_ms() - from;
	close(child);
	close(fd);
	close(listener);
	return !unacked && took >= 30 ? -1 : !unacked;
}

static void tcp_acks(void)
{
	int seen, tries = 0;

	do
		seen = sees_an_ack();
	while (seen < 0 && ++tries < 50);
	printf("%s\n", seen < 0 ? "too slow to tell" : seen ? "at once" : "later");
}

/* Whether a send sees the acknowledgment of the one before. */
static void tcp_sends(void)
{
	struct sockaddr_in name;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int listener = tcp_listener(&name);
	int fd = socket(AF_INET, SOCK_STREAM, 0), child;
	char byte = 0;

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	/* the child's answer acknowledges; and TCP_INFO does not poll */
	if (write(fd, &byte, 1) != 1 || read(child, &byte, 1) != 1 ||
	    write(child, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
		perror("a byte");
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	printf("%s\n", info.tcpi_unacked == 1 ? "seen" : "not yet");
	close(child);
	close(fd);
	close(listener);
}

/* Who looks at some bytes and waits for more finds them itself. */
static void tcp_peeks(void)
{
	struct sockaddr_in name;
	int listener = tcp_listener(&name), fd = socket(AF_INET, SOCK_STREAM, 0), child;
	char bytes[3] = "";

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (write(fd, "a", 1) != 1 || recv(child, bytes, 1, MSG_PEEK) != 1 ||
	    write(fd, "b", 1) != 1 ||
	    recv(child, bytes, 2, MSG_PEEK | MSG_WAITALL) != 2)
		perror("a byte");
	printf("%s\n", bytes);
	close(child);
	close(fd);
	close(listener);
}

/* A child that has bytes reads one of them, while segments wait in the ring. */
static void tcp_drained(void)
{
	struct sockaddr_in name;
	int listener = tcp_listener(&name);
	int fd = socket(AF_INET, SOCK_STREAM, 0), child;
	char bytes[100] = "";

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    read(child, bytes, 1) != 1)
		perror("bytes");
	for (int i = 0; i < 12; i++)
		send(fd, bytes, 1, 0);
	if (read(child, bytes, 1) != 1)
		perror("a byte");
	puts("ready");
	while (getchar() != EOF)
		;
}

/* A connection to a child with a small buffer, and with a large one itself. */
static int tcp_pair(int listener, const struct sockaddr_in *name, int *child)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ 8192 }, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int));
	if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) != 0)
		perror("connect");
	*child = accept(listener, NULL, NULL);
	return fd;
}

static size_t fill(int fd)
{
	static char piece[4000];
	size_t sum = 0;
	ssize_t n;

	while ((n = send(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
		sum += (size_t)n;
	if (errno != EAGAIN)
		perror("send");
	return sum;
}

static bool has_room(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, ms) == 1;
}

enum { STREAM = 2 << 20 };

static void *read_stream(void *arg)
{
	char buf[4096];
	size_t sum = 0;
	ssize_t n;

	while (sum < STREAM && (n = read(*(int *)arg, buf, sizeof(buf))) > 0)
		sum += (size_t)n;
	return NULL;
}

static void read_all(int fd, size_t len)
{
	char buf[4096];
	ssize_t n;

	for (; len; len -= (size_t)n) {
		n = read(fd, buf, len < sizeof(buf) ? len : sizeof(buf));
		if (n <= 0) {
			perror("read");
			return;
		}
	}
}

/* How much connections take whose peers read nothing, whether they say that they are
 * full, and whether they go on when the peers read. */
static void tcp_memory(void)
{
	struct sockaddr_in name;
	int listener = tcp_listener(&name), children[2];
	int fds[2] = { tcp_pair(listener, &name, &children[0]),
		       tcp_pair(listener, &name, &children[1]) };
	char *stream = calloc(1, STREAM);
	size_t first = 0, second = 0;
	pthread_t reader;

	/* until the children's buffers are full as well */
	for (int i = 0; i < 50; i++) {
		first += fill(fds[0]);
		second += fill(fds[1]);
		if (!has_room(fds[0], 100) && !has_room(fds[1], 100))
			break;
	}
	printf("%s, ", first + second < 400000 ? "little" : "much");
	printf("%s, ", has_room(fds[0], 0) || has_room(fds[1], 0) ? "room" : "full");
	read_all(children[0], first);
	printf("%s, ", has_room(fds[0], 2000) ? "goes on" : "stands still");
	read_all(children[1], second);
	printf("%s, ", has_room(fds[1], 2000) ? "goes on" : "stands still");
	if (pthread_create(&reader, NULL, read_stream, &children[0]) != 0)
		perror("thread");
	printf("%s\n", write(fds[0], stream, STREAM) == STREAM ? "all" : "some");
	pthread_join(reader, NULL);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(children[i]);
	}
	close(listener);
	free(stream);
}

static unsigned segments_in(int fd)
{
	struct {
		struct tcp_info info;
		char more[200];
	} big = { 0 };
	socklen_t len = sizeof(big);
	uint32_t cnt;

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &big, &len);
	/* tcpi_segs_in, which the C library's struct does not have */
	memcpy(&cnt, (const char *)&big + 140, sizeof(cnt));
	return cnt;
}

/* By how many acknowledgments a stream is answered. */
static void tcp_merges(void)
{
	enum { PIECE = 32 << 10, WARM_UP = 10, PIECES = 10, MSS = 988 };
	static char piece[PIECE];
	struct sockaddr_in name;
	int listener = tcp_listener(&name), child;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned cnt = 0;

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	for (int i = 0; i < WARM_UP + PIECES; i++) {
		if (i == WARM_UP)
			cnt = segments_in(fd);
		if (write(fd, piece, PIECE) != PIECE)
			perror("write");
		read_all(child, PIECE);
		/* which also polls */
		(void)!recv(fd, piece, 1, MSG_DONTWAIT);
	}
	cnt = segments_in(fd) - cnt;
	printf("%s\n", cnt > PIECES * PIECE / MSS / 3 ? "each" : "merged");
	close(child);
	close(fd);
	close(listener);
}

static void tcp_dummies(void)
{
	struct sockaddr_in name;
	int listener = tcp_listener(&name), child;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("connect");
	child = accept(listener, NULL, NULL);
	say_dummies("TCP", fd, child);
	close(child);
	close(fd);
	close(listener);
}

/* How many of twelve connect: all of them as soon as the machine finds the time for it,
 * or two in each second that has begun. */
static void tcp_syns(void)
{
	enum { CNT = 12, AT_MOST_SECONDS = 3 };
	struct sockaddr_in name;
	int listener = tcp_listener(&name), cnt = 0;
	struct timespec begin, now;
	struct pollfd fds[CNT];

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < CNT; i++) {
		fds[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		fds[i].events = POLLOUT;
		(void)!connect(fds[i].fd, (struct sockaddr *)&name, sizeof(name));
	}
	do {
		(void)!poll(fds, CNT, 100);
		for (int i = 0; i < CNT; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			cnt++;
			close(fds[i].fd);
			fds[i].fd = -1;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (cnt < CNT && now.tv_sec - begin.tv_sec < AT_MOST_SECONDS);
	printf("%s\n", cnt == CNT ? "all" :
	       cnt >= 1 && cnt <= 2 * (now.tv_sec - begin.tv_sec + 2) ? "few" : "others");
	for (int i = 0; i < CNT; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
	close(listener);
}

const struct program tcp_programs[] = {
	{ "tcp_drained", tcp_drained },
	{ "tcp", tcp },
	{ "tcp_dummies", tcp_dummies },
	{ "tcp_acks", tcp_acks },
	{ "tcp_sends", tcp_sends },
	{ "tcp_peeks", tcp_peeks },
	{ "tcp_memory", tcp_memory },
	{ "tcp_merges", tcp_merges },
	{ "tcp_syns", tcp_syns },
	{ NULL, NULL },
};
