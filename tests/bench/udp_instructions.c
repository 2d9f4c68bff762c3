/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls whose instructions udp_instructions.sh counts, over the echo of a
 * kernel socket: sends a datagram of 64 bytes, receives one that waits, and looks
 * when there is none; and sends to peers of another network, each of them new. Prints
 * how often each was done.
 *
 *   udp_instructions echo ADDRESS             the echo, until it is ended
 *   udp_instructions calls ADDRESS NETWORK [SOCKETS]
 *                                             the calls, beside so many sockets
 *                                             more, each bound to a port; the
 *                                             network is a /16
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* In bursts that no buffer is too small for. */
enum { PORT = 7007, LEN = 64, ROUNDS = 100, BURST = 100, WARM_UP = 20 };

#define MEASURED __attribute__((noinline, noipa))

/* Visible, so that callgrind finds them. */
long measured_send(int fd, const void *buf);
long measured_sendto(int fd, const void *buf, const struct sockaddr_in *to);
long measured_sendto_new(int fd, const void *buf, const struct sockaddr_in *to);
long measured_receive(int fd, void *buf);
long measured_look(int fd, void *buf);

MEASURED long measured_send(int fd, const void *buf)
{
	return send(fd, buf, LEN, 0);
}

MEASURED long measured_sendto(int fd, const void *buf,
			      const struct sockaddr_in *to)
{
	return sendto(fd, buf, LEN, 0, (const struct sockaddr *)to,
		      sizeof(*to));
}

MEASURED long measured_sendto_new(int fd, const void *buf,
				  const struct sockaddr_in *to)
{
	return sendto(fd, buf, LEN, 0, (const struct sockaddr *)to,
		      sizeof(*to));
}

MEASURED long measured_receive(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

MEASURED long measured_look(int fd, void *buf)
{
	return recv(fd, buf, LEN, MSG_DONTWAIT);
}

static struct sockaddr_in name_of(const char *address, int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

static int echo(const char *address)
{
	struct sockaddr_in name = name_of(address, PORT), from;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[LEN];

	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		return 1;
	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), 0,
				     (struct sockaddr *)&from, &len);

		if (n >= 0)
			sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from,
			       len);
	}
}

/* Sockets that only lie there. */
static void crowd(int cnt)
{
	struct rlimit limit = { (rlim_t)cnt + 100, (rlim_t)cnt + 100 };

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < cnt; i++) {
		struct sockaddr_in any = name_of("0.0.0.0", 20000 + i);
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0) {
			perror("bind");
			exit(1);
		}
	}
}

/* Until the echo lies in the ring, without a look at it. */
static void nap(void)
{
	usleep(20000);
}

/* Nobody answers. */
static unsigned send_to_new_peers(int fd, const char *network)
{
	struct sockaddr_in name = name_of(network, PORT);
	uint32_t first = ntohl(name.sin_addr.s_addr) + 256;
	unsigned sent = 0;
	char buf[LEN] = "";

	for (uint32_t i = 0; i < ROUNDS * BURST; i++) {
		name.sin_addr.s_addr = htonl(first + i);
		sent += measured_sendto_new(fd, buf, &name) == LEN;
	}
	return sent;
}

static int calls(const char *address, const char *network)
{
	struct sockaddr_in name = name_of(address, PORT);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int unconnected = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned sent = 0, received = 0, looked = 0, sent_to_new;
	char buf[LEN] = "";

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		return 1;
	/* the first ones find the way; they may be the kernel's */
	for (int i = 0; i < WARM_UP; i++) {
		send(fd, buf, LEN, 0);
		nap();
		while (recv(fd, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < BURST; k++)
			sent += measured_send(fd, buf) == LEN;
		nap();
		for (int k = 0; k < BURST; k++)
			received += measured_receive(fd, buf) == LEN;
		for (int k = 0; k < BURST; k++)
			looked += measured_look(fd, buf) == -1 &&
				  errno == EAGAIN;
	}
	sendto(unconnected, buf, LEN, 0, (struct sockaddr *)&name, sizeof(name));
	/* by itself: a receive of one socket costs more after one of another */
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < BURST; k++)
			sent += measured_sendto(unconnected, buf, &name) == LEN;
		nap();
		while (recv(unconnected, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	sent_to_new = send_to_new_peers(unconnected, network);
	printf("%u %u %u %u\n", sent, received, looked, sent_to_new);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "echo") == 0)
		return echo(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "calls") == 0) {
		crowd(argc > 4 ? atoi(argv[4]) : 0);
		return calls(argv[2], argv[3]);
	}
	fprintf(stderr,
		"usage: %s echo ADDRESS | calls ADDRESS NETWORK [SOCKETS]\n",
		argv[0]);
	return 2;
}
