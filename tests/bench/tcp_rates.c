/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long 64 bytes take there and back over TCP, how much goes one way, and how many
 * connections a second there are. tcp_rates.sh runs it at both ends of a cable.
 *
 *   tcp_rates serve spin|block ADDRESS           one connection after the other, until it
 *                                                is ended
 *   tcp_rates ping spin|block ADDRESS            prints half a round trip in nanoseconds:
 *                                                median, 99.9th percentile
 *   tcp_rates send|take block ADDRESS            prints megabits per second
 *   tcp_rates connect block ADDRESS              prints connections per second, each with
 *                                                64 bytes both ways
 *
 * What a connection is for is its first byte.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define RUN_NS	 (NS_PER_S / 2)

enum { PORT = 7009, LEN = 64, BLOCK = 65536, SAMPLES_MAX = 1 << 20, WARM_UP = 1000 };

static bool does_spin;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* False: the end. */
static bool read_all(int fd, void *buf, size_t len)
{
	ssize_t n;

	for (size_t at = 0; at < len; at += (size_t)n) {
		do
			n = recv(fd, (char *)buf + at, len - at,
				 does_spin ? MSG_DONTWAIT : 0);
		while (n < 0 && errno == EAGAIN);
		if (n <= 0)
			return false;
	}
	return true;
}

static void write_all(int fd, const void *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, (const char *)buf + at, len - at, MSG_NOSIGNAL);

		if (n < 0)
			return;
		at += (size_t)n;
	}
}

static void set_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct sockaddr_in name_of(const char *address)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };

	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

/* -- the server -------------------------------------------------------------------- */

static uint64_t take_to_end(int fd)
{
	static char block[BLOCK];
	uint64_t total = 0;
	ssize_t n;

	while ((n = recv(fd, block, sizeof(block), 0)) > 0)
		total += (uint64_t)n;
	return total;
}

static uint64_t send_for(int fd, uint64_t ns)
{
	static char block[BLOCK];
	uint64_t from = now_ns(), total = 0;

	while (now_ns() - from < ns) {
		write_all(fd, block, sizeof(block));
		total += sizeof(block);
	}
	return total;
}

static void serve_one(int fd)
{
	char buf[LEN], what;
	uint64_t total;

	set_no_delay(fd);
	if (!read_all(fd, &what, 1))
		return;
	if (what == 'e') {
		while (read_all(fd, buf, LEN))
			write_all(fd, buf, LEN);
	} else if (what == 's') {
		total = take_to_end(fd);
		write_all(fd, &total, sizeof(total));
	} else {
		send_for(fd, RUN_NS);
	}
}

static int serve(const char *address)
{
	struct sockaddr_in name = name_of(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    listen(listener, 64) != 0)
		die("listen");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			die("accept");
		serve_one(fd);
		close(fd);
	}
}

/* -- the client -------------------------------------------------------------------- */

static int begin(const char *address, char what)
{
	struct sockaddr_in name = name_of(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		die("connect");
	set_no_delay(fd);
	write_all(fd, &what, 1);
	return fd;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int ping(const char *address)
{
	static uint32_t samples[SAMPLES_MAX];
	int fd = begin(address, 'e');
	uint64_t from = now_ns(), before;
	char buf[LEN] = "";
	size_t cnt = 0;

	for (unsigned i = 0; cnt < SAMPLES_MAX; i++) {
		before = now_ns();
		if (before - from > RUN_NS)
			break;
		write_all(fd, buf, LEN);
		if (!read_all(fd, buf, LEN))
			die("ping");
		/* where round trips take milliseconds, there are few of them */
		if (i >= WARM_UP || before - from > RUN_NS / 4)
			samples[cnt++] = (uint32_t)(now_ns() - before) / 2;
	}
	if (!cnt) {
		fprintf(stderr, "ping: no round trip in time\n");
		return 1;
	}
	qsort(samples, cnt, sizeof(*samples), by_size);
	printf("%u %u\n", samples[cnt / 2], samples[cnt - 1 - cnt / 1000]);
	return 0;
}

static void say_rate(uint64_t bytes, uint64_t ns)
{
	printf("%" PRIu64 "\n", bytes * 8 * 1000 / ns);
}

static int send_bulk(const char *address)
{
	int fd = begin(address, 's');
	uint64_t from = now_ns(), total;

	send_for(fd, RUN_NS);
	shutdown(fd, SHUT_WR);
	if (!read_all(fd, &total, sizeof(total)))
		die("send");
	say_rate(total, now_ns() - from);
	return 0;
}

static int take_bulk(const char *address)
{
	int fd = begin(address, 'g');
	uint64_t from = now_ns(), total = take_to_end(fd);

	say_rate(total, now_ns() - from);
	return 0;
}

static int connect_often(const char *address)
{
	uint64_t from = now_ns(), cnt = 0, ns;
	char buf[LEN] = "";

	do {
		int fd = begin(address, 'e');

		write_all(fd, buf, LEN);
		if (!read_all(fd, buf, LEN))
			die("connect");
		close(fd);
		cnt++;
		ns = now_ns() - from;
	} while (ns < RUN_NS);
	printf("%" PRIu64 "\n", cnt * NS_PER_S / ns);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const char *address);
	} roles[] = { { "serve", serve },
		      { "ping", ping },
		      { "send", send_bulk },
		      { "take", take_bulk },
		      { "connect", connect_often } };

	does_spin = argc == 4 && strcmp(argv[2], "spin") == 0;
	for (size_t i = 0; argc == 4 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(argv[1], roles[i].name) == 0)
			return roles[i].run(argv[3]);
	fprintf(stderr, "usage: %s serve|ping|send|take|connect spin|block ADDRESS\n",
		argv[0]);
	return 2;
}
