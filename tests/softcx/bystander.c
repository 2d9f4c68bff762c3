/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ordinary kernel traffic on the cable while the cards use it: one TCP
 * connection on which numbered blocks go to the other end and come back. Not run
 * with the card; ends when its standard input does, with the sums.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7777, BLOCK = 4096, TIMEOUT_S = 5, PAUSE_MS = 2 };

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static bool transfer(int fd, uint8_t *block, bool is_read)
{
	size_t done = 0;

	while (done < BLOCK) {
		ssize_t n = is_read ? read(fd, block + done, BLOCK - done) :
				      write(fd, block + done, BLOCK - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static int run_listener(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, conn;
	uint8_t block[BLOCK];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) || listen(fd, 1))
		return fail("bystander");
	conn = accept(fd, NULL, NULL);
	while (transfer(conn, block, true) && transfer(conn, block, false))
		;
	return 0;
}

static bool should_stop(void)
{
	struct pollfd pfd = { .fd = 0, .events = POLLIN };

	return poll(&pfd, 1, PAUSE_MS) > 0;
}

static int connect_to(struct sockaddr_in *addr)
{
	struct timeval timeout = { .tv_sec = TIMEOUT_S };

	for (int i = 0; i < 100; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout,
			   sizeof(timeout));
		if (connect(fd, (struct sockaddr *)addr, sizeof(*addr)) == 0)
			return fd;
		close(fd);
		usleep(50000);
	}
	return -1;
}

static int run_connector(struct sockaddr_in *addr)
{
	uint8_t block[BLOCK], back[BLOCK];
	uint32_t n = 0;
	int fd = connect_to(addr);

	if (fd < 0)
		return fail("bystander: connect");
	for (; !should_stop(); n++) {
		for (size_t i = 0; i < BLOCK; i++)
			block[i] = (uint8_t)(i * 31 + n);
		if (!transfer(fd, block, false) || !transfer(fd, back, true))
			return fail("bystander: no echo");
		if (memcmp(block, back, BLOCK) != 0)
			return fail("bystander: wrong echo");
	}
	printf("%u blocks of %d bytes went and came back\n", n, BLOCK);
	return n == 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
	};

	if (argc == 2 && strcmp(argv[1], "listen") == 0)
		return run_listener(&addr);
	if (argc == 3 && strcmp(argv[1], "connect") == 0 &&
	    inet_pton(AF_INET, argv[2], &addr.sin_addr) == 1)
		return run_connector(&addr);
	fprintf(stderr, "usage: bystander listen | connect ADDRESS\n");
	return 2;
}
