/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: files and pipes to a socket, and from one. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

static int some_file(const char *text, size_t len)
{
	int fd = memfd_create("tcp", MFD_CLOEXEC);

	if (write(fd, text, len) != (ssize_t)len)
		SAY("write: %m\n");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void sent_files(void)
{
	int pair[2], fd = some_file("0123456789", 10);
	off_t at = 3;
	off64_t at64 = 5;
	ssize_t n;

	make_pair(pair);
	n = sendfile(pair[0], fd, &at, 4);
	SAY("sendfile %zd at %ld, file at %ld\n", n, (long)at,
	    (long)lseek(fd, 0, SEEK_CUR));
	n = sendfile64(pair[0], fd, &at64, 100);
	SAY("sendfile64 %zd at %ld\n", n, (long)at64);
	n = sendfile(pair[0], fd, NULL, 4);
	SAY("sendfile %zd, file at %ld\n", n, (long)lseek(fd, 0, SEEK_CUR));
	n = sendfile(pair[0], fd, NULL, 100);
	SAY("sendfile %zd, file at %ld\n", n, (long)lseek(fd, 0, SEEK_CUR));
	SAY("at the end %zd\n", sendfile(pair[0], fd, NULL, 100));
	SAY("of nothing %zd\n", sendfile(pair[0], fd, NULL, 0));
	at = 1000;
	SAY("behind the end %zd\n", sendfile(pair[0], fd, &at, 5));
	at = -1;
	SAY("before the beginning %s\n", err(sendfile(pair[0], fd, &at, 5)));
	SAY("no file %s\n", err(sendfile(pair[0], -1, NULL, 5)));
	SAY("bad place %s\n", err(sendfile(pair[0], fd, nowhere(), 5)));
	SAY("from a socket %s\n", err(sendfile(pair[0], pair[1], NULL, 5)));
	SAY("into a file %zd\n", sendfile(fd, pair[0], NULL, 5));
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
	close(fd);
}

/* Segments are not as long as the blocks of which such a file is read. */
static void direct_file(void)
{
	enum { LEN = 32768 };
	char name[] = "/tmp/tcp_direct.XXXXXX", *text = malloc(LEN), *all = malloc(LEN);
	int pair[2], fd = mkstemp(name);
	ssize_t n, sent;

	fill(text, LEN, 3);
	if (write(fd, text, LEN) != LEN)
		SAY("write: %m\n");
	close(fd);
	fd = open(name, O_RDONLY | O_DIRECT);
	unlink(name);
	/* not every file system can do that */
	if (fd < 0)
		fd = some_file(text, LEN);
	make_pair(pair);
	set_option(pair[0], SOL_SOCKET, SO_SNDBUF, 10 * LEN);
	for (sent = 0; sent < LEN && (n = sendfile(pair[0], fd, NULL, LEN)) > 0;)
		sent += n;
	SAY("sent %zd, file at %ld\n", sent, (long)lseek(fd, 0, SEEK_CUR));
	shutdown(pair[0], SHUT_WR);
	n = (ssize_t)receive_all(pair[1], all, LEN);
	SAY("the same: %d\n", n == LEN && !memcmp(all, text, LEN));
	close_pair(pair);
	close(fd);
	free(text);
	free(all);
}

static void long_file(void)
{
	enum { LEN = 3 << 20 };
	char *text = malloc(LEN), *got = malloc(LEN);
	off_t at = 0;
	ssize_t n;
	pthread_t thread;
	struct transfer t = { .seed = 9, .len = LEN };
	int pair[2], fd;

	make_pair(pair);
	fill(text, LEN, 9);
	fd = some_file(text, LEN);
	set_blocking(pair[0], false);
	n = sendfile(pair[0], fd, &at, LEN);
	SAY("a part: %d, counted %d\n", n > 0 && n <= LEN, at == n);
	t.fd = pair[1];
	pthread_create(&thread, NULL, receive_much, &t);
	set_blocking(pair[0], true);
	while (at < LEN && (n = sendfile(pair[0], fd, &at, LEN)) > 0)
		;
	shutdown(pair[0], SHUT_WR);
	pthread_join(thread, NULL);
	SAY("right: %d\n", t.is_right);
	close_pair(pair);
	close(fd);
	free(text);
	free(got);
}

/* Nothing more of the file: nothing to wait for. */
static void ended_file(void)
{
	struct timeval limit = { .tv_sec = 2 };
	int pair[2], fd = some_file("0123456789", 10);
	char bytes[1024] = { 0 };
	off_t at = 10;
	struct pollfd room;
	bool is_more = true;

	make_pair(pair);
	room = (struct pollfd){ .fd = pair[0], .events = POLLOUT };
	/* full, also when the peer has taken what it takes */
	while (is_more) {
		is_more = false;
		while (send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			is_more = true;
		(void)!poll(&room, 1, 200);
	}
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	SAY("at the end %zd\n", sendfile(pair[0], fd, &at, 5));
	set_blocking(pair[0], false);
	SAY("without a wait %s\n", err(sendfile(pair[0], fd, &at, 5)));
	close_pair(pair);
	close(fd);
}

static void spliced(void)
{
	int pair[2], pipes[2];
	ssize_t n;

	make_pair(pair);
	if (pipe(pipes) != 0 || write(pipes[1], "by a pipe", 9) != 9)
		SAY("pipe: %m\n");
	n = splice(pipes[0], NULL, pair[0], NULL, 9, 0);
	SAY("into the socket %zd\n", n);
	await_bytes(pair[1], 9);
	n = splice(pair[1], NULL, pipes[1], NULL, 100, 0);
	SAY("out of the socket %zd\n", n);
	n = splice(pipes[0], NULL, pair[1], NULL, 100, SPLICE_F_MORE);
	SAY("and back %zd\n", n);
	await_bytes(pair[0], 9);
	receive(pair[0], 0);
	set_blocking(pair[0], false);
	n = splice(pair[0], NULL, pipes[1], NULL, 100, 0);
	SAY("nothing there %s\n", err(n));
	n = splice(pair[0], &(off64_t){ 0 }, pipes[1], NULL, 100, 0);
	SAY("with a place %s\n", err(n));
	set_blocking(pair[0], true);
	close(pair[1]);
	n = splice(pair[0], NULL, pipes[1], NULL, 100, 0);
	SAY("at the end %zd\n", n);
	close(pair[0]);
	close(pipes[0]);
	close(pipes[1]);
}

static void file_of_a_socket(void)
{
	int pair[2], ends[2];
	char bytes[8];

	make_pair(pair);
	say_sent(pair[0], "abcd", 0);
	await_bytes(pair[1], 4);
	SAY("pipe %s\n", err(pipe(ends)));
	SAY("sendfile %s\n", err(sendfile(ends[1], pair[1], NULL, 4)));
	SAY("read %zd\n", read(ends[0], bytes, sizeof(bytes)));
	close(ends[0]);
	close(ends[1]);
	close_pair(pair);
}

const struct scenario file_scenarios[] = {
	SCENARIO(sent_files, MIXED),
	SCENARIO(direct_file, OURS),
	SCENARIO(long_file, OURS),
	SCENARIO(ended_file, OURS),
	SCENARIO(spliced, MIXED),
	SCENARIO(file_of_a_socket, MIXED),
	SCENARIO_END,
};
