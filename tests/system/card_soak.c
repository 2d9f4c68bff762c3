/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams of all sizes to an echo and back, of which none may be lost, doubled, changed
 * or out of order. There are never more of them under way than a socket holds.
 *
 *   card_soak echo ADDRESS
 *   card_soak ask ADDRESS SHORT LONG SEED   so many that fit into a frame, and so many
 *                                           that do not
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
	PORT = 7007,
	SHORT_MAX = 1472,
	LONG_MAX = 65507,
	WINDOW = 32,
	BUFFER = 8 << 20,
	PATIENCE_S = 20,
};

static uint8_t pattern[2 * LONG_MAX], got[LONG_MAX + 1];

/* xorshift64: the same numbers everywhere, from a seed that is not 0. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* What datagram `number` has: bytes of the pattern from some place on, and its number if
 * there is room. */
static const uint8_t *content(uint64_t number, size_t len, uint8_t *out)
{
	memcpy(out, pattern + number * 31 % LONG_MAX, len);
	if (len >= sizeof(number))
		memcpy(out, &number, sizeof(number));
	return out;
}

static int open_socket(const char *address, struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = BUFFER;

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons(PORT) };
	if (inet_pton(AF_INET, address, &name->sin_addr) != 1) {
		fprintf(stderr, "no address: %s\n", address);
		exit(2);
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	return fd;
}

static int echo(const char *address)
{
	struct sockaddr_in name, from;
	int fd = open_socket(address, &name);

	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0) {
		perror("bind");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, got, sizeof(got), 0,
				     (struct sockaddr *)&from, &from_len);

		if (n < 0 || sendto(fd, got, (size_t)n, 0,
				    (struct sockaddr *)&from, from_len) != n) {
			perror("echo");
			return 1;
		}
	}
}

static struct {
	int fd;
	uint64_t seed;
	uint64_t number;	/* of the next datagram */
	uint64_t bytes;
} asker;

static int fail(const char *what, uint64_t number, size_t len, long n)
{
	uint64_t other = 0;

	if (n >= (long)sizeof(other))
		memcpy(&other, got, sizeof(other));
	printf("datagram %llu of %zu bytes: %s (%ld, number %llu, %s)\n",
	       (unsigned long long)number, len, what, n,
	       (unsigned long long)other, n < 0 ? strerror(errno) : "");
	return 1;
}

/* So many datagrams there and back, with lengths from `least` to `most`. */
static int ask_window(unsigned cnt, uint32_t least, uint32_t most)
{
	static uint8_t want[LONG_MAX];
	size_t lens[WINDOW];

	for (unsigned i = 0; i < cnt; i++) {
		ssize_t n;

		lens[i] = least + draw(&asker.seed) % (most - least + 1);
		content(asker.number + i, lens[i], want);
		n = send(asker.fd, want, lens[i], 0);
		if (n != (ssize_t)lens[i])
			return fail("not sent", asker.number + i, lens[i], n);
	}
	for (unsigned i = 0; i < cnt; i++) {
		ssize_t n = recv(asker.fd, got, sizeof(got), 0);

		if (n != (ssize_t)lens[i])
			return fail("lost, or another", asker.number + i, lens[i], n);
		if (memcmp(got, content(asker.number + i, lens[i], want), lens[i]) != 0)
			return fail("other bytes", asker.number + i, lens[i], n);
		asker.bytes += lens[i];
	}
	asker.number += cnt;
	return 0;
}

/* Nothing may come that was not asked for. */
static int check_silence(void)
{
	struct timeval soon = { .tv_usec = 300000 };
	ssize_t n;

	setsockopt(asker.fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	n = recv(asker.fd, got, sizeof(got), 0);
	return n < 0 && errno == EAGAIN ? 0 :
					  fail("one too many", asker.number, 0, n);
}

static int ask(const char *address, uint64_t short_cnt, uint64_t long_cnt,
	       uint64_t seed)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	uint64_t long_each = long_cnt ? short_cnt / long_cnt + 1 : UINT64_MAX;
	uint64_t longs = 0, shorts = 0;
	struct sockaddr_in name;
	struct timespec begin, end;

	asker.fd = open_socket(address, &name);
	asker.seed = seed;
	setsockopt(asker.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(asker.fd, (struct sockaddr *)&name, sizeof(name)) != 0) {
		perror("connect");
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (shorts < short_cnt || longs < long_cnt) {
		unsigned cnt = WINDOW;

		if (shorts + cnt > short_cnt)
			cnt = (unsigned)(short_cnt - shorts);
		if (cnt && ask_window(cnt, 0, SHORT_MAX))
			return 1;
		shorts += cnt;
		/* One at a time: pieces come another way, and may overtake. */
		while (longs < long_cnt &&
		       (longs * long_each <= shorts || shorts == short_cnt)) {
			if (ask_window(1, SHORT_MAX + 1, LONG_MAX))
				return 1;
			longs++;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (check_silence())
		return 1;
	printf("right: %llu up to a frame, %llu longer, %llu bytes each way, in %.1f s\n",
	       (unsigned long long)shorts, (unsigned long long)longs,
	       (unsigned long long)asker.bytes,
	       (double)(end.tv_sec - begin.tv_sec) +
		       (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(draw(&state) >> 32);
	if (argc == 3 && strcmp(argv[1], "echo") == 0)
		return echo(argv[2]);
	if (argc == 6 && strcmp(argv[1], "ask") == 0)
		return ask(argv[2], strtoull(argv[3], NULL, 0),
			   strtoull(argv[4], NULL, 0),
			   strtoull(argv[5], NULL, 0) | 1u << 20);
	fprintf(stderr, "usage: card_soak echo ADDRESS | ask ADDRESS SHORT LONG SEED\n");
	return 2;
}
