/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of tcp_peer. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/system/tcp_peer.h"

static size_t next_block(struct stream *s, uint64_t *block)
{
	size_t len = s->left < BLOCK ? s->left : BLOCK;

	for (size_t i = 0; i < BLOCK / sizeof(*block); i++) {
		s->state = s->state * 6364136223846793005ULL + 1442695040888963407ULL;
		block[i] = s->state >> 7;
	}
	s->left -= len;
	return len;
}

bool write_all(int fd, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

size_t read_all(int fd, void *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)buf + got, len - got, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

bool send_until(int fd, struct stream *s, size_t rest)
{
	uint64_t block[BLOCK / sizeof(uint64_t)];

	while (s->left > rest) {
		size_t n = next_block(s, block);

		if (!write_all(fd, block, n))
			return false;
	}
	return true;
}

bool send_stream(int fd, uint64_t seed, size_t len)
{
	struct stream s = { seed, len, len };

	return send_until(fd, &s, 0);
}

/* For whoever looks for the reason. */
static void say_wrong(size_t at, const void *right, const void *got, size_t len,
		      size_t cnt)
{
	const char *a = right, *b = got;
	size_t same = 0;
	int err = errno;

	while (same < cnt && a[same] == b[same])
		same++;
	fprintf(stderr, "# wrong from %zu on: %zu of %zu bytes there, %s\n",
		at + same, cnt, len, err ? strerror(err) : "no error");
}

bool check_until(int fd, struct stream *s, size_t rest)
{
	uint64_t block[BLOCK / sizeof(uint64_t)], got[BLOCK / sizeof(uint64_t)];

	while (s->left > rest) {
		size_t n = next_block(s, block);
		size_t cnt;

		errno = 0;
		cnt = read_all(fd, got, n);
		if (cnt != n || memcmp(block, got, n) != 0) {
			say_wrong(s->len - s->left - n, block, got, n, cnt);
			return false;
		}
	}
	return true;
}

bool check_stream(int fd, uint64_t seed, size_t len)
{
	struct stream s = { seed, len, len };

	return check_until(fd, &s, 0);
}

void *give_in_thread(void *arg)
{
	const struct give *g = arg;

	send_stream(g->fd, g->seed, g->len);
	return NULL;
}

void sleep_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) != 0)
		;
}

void reset(int fd)
{
	struct linger linger = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}
