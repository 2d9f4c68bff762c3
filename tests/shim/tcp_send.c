/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: every call and flag that sends. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

/* -- forms -------------------------------------------------------------------------- */

static void every_sending_call(void)
{
	struct iovec iov[3] = { { (void *)"one", 3 }, { NULL, 0 }, { (void *)"two", 3 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
	struct mmsghdr msgs[2] = { { msg, 0 }, { msg, 0 } };
	struct sockaddr_in name = { .sin_family = AF_INET };
	int pair[2];

	make_pair(pair);
	SAY("write %zd\n", write(pair[0], "written", 7));
	SAY("writev %zd\n", writev(pair[0], iov, 3));
	SAY("pwritev2 %zd\n", pwritev2(pair[0], iov, 3, -1, 0));
	SAY("pwrite %s\n", err(pwrite(pair[0], "x", 1, 0)));
	SAY("send %zd\n", send(pair[0], "sent", 4, 0));
	SAY("sendto %zd\n", sendto(pair[0], "to", 2, 0, NULL, 0));
	SAY("sendto with a name %zd\n",
	    sendto(pair[0], "named", 5, 0, (struct sockaddr *)&name,
		   sizeof(name)));
	SAY("sendmsg %zd\n", sendmsg(pair[0], &msg, 0));
	SAY("sendmmsg %d\n", sendmmsg(pair[0], msgs, 2, 0));
	SAY("lengths %u %u\n", msgs[0].msg_len, msgs[1].msg_len);
	SAY("dprintf %d\n", dprintf(pair[0], "%d", 12345));
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

static int pipe_cnt;

static void count_pipe(int sig)
{
	(void)sig;
	pipe_cnt++;
}

/* What a stream could not write is lost, and its end says so, once. */
static void streams_that_cannot_write(void)
{
	size_t written;
	ssize_t last;
	FILE *stream;
	int pair[2];

	signal(SIGPIPE, count_pipe);
	make_pair(pair);
	reset(pair[1]);
	await(pair[0], POLLHUP);
	stream = fdopen(pair[0], "w");
	fputs("lost", stream);
	SAY("reset: %s", err(fclose(stream)));
	SAY(", %d signals\n", pipe_cnt);
	make_pair(pair);
	set_blocking(pair[0], false);
	written = stuff(pair[0]);
	stream = fdopen(pair[0], "w");
	fputs("lost", stream);
	SAY("full: %s", err(fclose(stream)));
	SAY(", %d signals", pipe_cnt);
	SAY(", all %d", drain(pair[1], &last) == written);
	SAY(", then %zd\n", last);
	close(pair[1]);
	make_pair(pair);
	set_blocking(pair[0], false);
	written = stuff(pair[0]);
	stream = fdopen(pair[0], "w");
	fputs("lost", stream);
	stream = freopen("/dev/null", "w", stream);
	SAY("replaced: %d, %d signals", !!stream, pipe_cnt);
	SAY(", all %d", drain(pair[1], &last) == written);
	SAY(", then %zd\n", last);
	close(pair[1]);
	fputs("nowhere", stream);
	SAY("ended: %s\n", err(fclose(stream)));
}

static void sends_of_nothing(void)
{
	struct iovec iov = { NULL, 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct pollfd pfd;
	int pair[2];

	make_pair(pair);
	SAY("send %zd\n", send(pair[0], "", 0, 0));
	SAY("write %zd\n", write(pair[0], NULL, 0));
	SAY("writev %zd\n", writev(pair[0], &iov, 1));
	SAY("writev of none %zd\n", writev(pair[0], NULL, 0));
	SAY("sendmsg %zd\n", sendmsg(pair[0], &msg, 0));
	SAY("sendmmsg of none %d\n", sendmmsg(pair[0], NULL, 0, 0));
	pfd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	SAY("poll %d\n", poll(&pfd, 1, 50));
	close(pair[0]);
	receive_to_end(pair[1]);
	close(pair[1]);
}

/* The forms in which a call may have nothing to send. */
static void say_nothing_sent(int fd, int file)
{
	struct iovec iov[2] = { { NULL, 0 }, { NULL, 0 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	off_t at = 1000;
	int before = pipe_cnt;

	SAY("send %s", err(send(fd, "", 0, 0)));
	SAY(" write %s", err(write(fd, "", 0)));
	SAY(" sendmsg %s, %d signals\n", err(sendmsg(fd, &msg, 0)), pipe_cnt - before);
	before = pipe_cnt;
	SAY("writev %s", err(writev(fd, iov, 2)));
	SAY(" of none %s", err(writev(fd, NULL, 0)));
	SAY(" pwritev2 %s", err(pwritev2(fd, iov, 2, -1, 0)));
	SAY(" sendfile %s", err(sendfile(fd, file, NULL, 0)));
	SAY(" at the end %s", err(sendfile(fd, file, NULL, 5)));
	SAY(" behind it %s", err(sendfile(fd, file, &at, 5)));
	SAY(", %d signals\n", pipe_cnt - before);
}

/* Where nothing can be sent. */
static void sends_of_nothing_to_nobody(void)
{
	int pair[2], file = memfd_create("empty", MFD_CLOEXEC), fds[3], listener;
	struct sockaddr_in name;

	signal(SIGPIPE, count_pipe);
	make_pair(pair);
	shutdown(pair[0], SHUT_WR);
	say_nothing_sent(pair[0], file);
	reset(pair[1]);
	await(pair[0], POLLHUP);
	say_error(pair[0]);
	say_nothing_sent(pair[0], file);
	close(pair[0]);
	/* nobody accepts, so that the last one only begins */
	listener = listening(&name, 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = made_nonblocking();
		SAY("connect %s\n", err(connect_to(fds[i], &name)));
		if (i < 1)
			await(fds[i], POLLOUT);
	}
	say_nothing_sent(fds[2], file);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	close(listener);
	close(file);
}

/* Flags of preadv2 and pwritev2 that say nothing to a socket, and one that does. */
static void vectors_with_flags(void)
{
	static const int flags[] = {
		RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_APPEND, RWF_NOWAIT,
		RWF_NOWAIT | RWF_DSYNC, RWF_NOWAIT | RWF_APPEND | RWF_HIPRI,
	};
	char text[8];
	struct iovec out = { (void *)"text", 4 }, in = { text, sizeof(text) };
	int pair[2];
	ssize_t n;

	signal(SIGPIPE, count_pipe);
	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		n = pwritev2(pair[0], &out, 1, -1, flags[i]);
		SAY("%#x: pwritev2 %zd %s", (unsigned)flags[i], n, err(n));
		SAY(" at a place %s", err(pwritev2(pair[0], &out, 1, 0, flags[i])));
		if (n > 0)
			await_bytes(pair[1], (int)n);
		n = preadv2(pair[1], &in, 1, -1, flags[i]);
		SAY(", preadv2 %zd %s", n, err(n));
		SAY(" at a place %s\n", err(preadv2(pair[1], &in, 1, 0, flags[i])));
	}
	SAY("nothing there %s\n", err(preadv2(pair[1], &in, 1, -1, RWF_NOWAIT | RWF_SYNC)));
	stuff(pair[0]);
	/* what is under way may make room still */
	do
		n = pwritev2(pair[0], &out, 1, -1, RWF_NOWAIT | RWF_SYNC);
	while (n > 0);
	SAY("no room %s\n", err(n));
	SAY("%d signals\n", pipe_cnt);
	close_pair(pair);
}

/* What these flags do, and whether there are such, the kernel says. */
static void vectors_with_odd_flags(void)
{
	char text[8];
	struct iovec out = { (void *)"text", 4 }, in = { text, sizeof(text) };
	int pair[2];
	ssize_t n;

	signal(SIGPIPE, count_pipe);
	for (int flag = RWF_APPEND << 1; flag; flag = (int)((unsigned)flag << 1)) {
		make_pair(pair);
		n = pwritev2(pair[0], &out, 1, -1, flag);
		SAY("%#x: pwritev2 %zd %s", (unsigned)flag, n, err(n));
		say_sent(pair[1], "answer", 0);
		await_bytes(pair[0], 6);
		n = preadv2(pair[0], &in, 1, -1, flag);
		SAY("preadv2 %zd %s, %d signals\n", n, err(n), pipe_cnt);
		close_pair(pair);
	}
}

static void *reset_soon(void *fd)
{
	struct linger linger = { .l_onoff = 1 };

	await(*(int *)fd, POLLIN);
	sleep_ms(100);
	setsockopt(*(int *)fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(*(int *)fd);
	return NULL;
}

/* A call that has written some says so, and the next one why there is no more. */
static void reset_within_a_send(void)
{
	static char much[16 << 20];
	pthread_t thread;
	int pair[2];
	ssize_t n;

	signal(SIGPIPE, count_pipe);
	pipe_cnt = 0;
	make_pair(pair);
	pthread_create(&thread, NULL, reset_soon, &pair[1]);
	n = send(pair[0], much, sizeof(much), 0);
	SAY("some %d, ", n > 0 && n < (ssize_t)sizeof(much));
	pthread_join(thread, NULL);
	SAY("events %#x, ", (unsigned)await(pair[0], POLLERR));
	SAY("then %s, ", err(send(pair[0], "x", 1, 0)));
	SAY("then %s, %d signals\n", err(send(pair[0], "x", 1, 0)), pipe_cnt);
	close(pair[0]);
}

static void sends_without_a_connection(void)
{
	int fd = made();

	signal(SIGPIPE, SIG_IGN);
	SAY("send %s\n", err(send(fd, "x", 1, 0)));
	SAY("send of nothing %s\n", err(send(fd, "", 0, 0)));
	SAY("write %s\n", err(write(fd, "x", 1)));
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("sendfile %s\n", err(sendfile(fd, fd, NULL, 1)));
	SAY("send out of band %s\n", err(send(fd, "x", 1, MSG_OOB)));
	close(fd);
	SAY("closed %s\n", err(send(fd, "x", 1, 0)));
}

/* -- pieces ------------------------------------------------------------------------- */

static void pieces_of_one_byte(void)
{
	static char text[IOV_MAX + 1], got[IOV_MAX + 1];
	static struct iovec iov[IOV_MAX + 1];
	int pair[2];

	make_pair(pair);
	fill(text, sizeof(text), 1);
	for (int i = 0; i <= IOV_MAX; i++)
		iov[i] = (struct iovec){ &text[i], 1 };
	SAY("too many %s\n", err(writev(pair[0], iov, IOV_MAX + 1)));
	SAY("writev %zd\n", writev(pair[0], iov, IOV_MAX));
	SAY("right: %d\n", receive_all(pair[1], got, IOV_MAX) == IOV_MAX &&
				   memcmp(got, text, IOV_MAX) == 0);
	/* and into such */
	send_all(pair[0], text, IOV_MAX);
	await_bytes(pair[1], IOV_MAX);
	for (int i = 0; i < IOV_MAX; i++)
		iov[i] = (struct iovec){ &got[i], 1 };
	memset(got, 0, sizeof(got));
	SAY("readv %zd\n", readv(pair[1], iov, IOV_MAX));
	SAY("right: %d\n", memcmp(got, text, IOV_MAX) == 0);
	iov[1].iov_len = (size_t)-1;
	SAY("bad length %s\n", err(writev(pair[0], iov, 2)));
	close_pair(pair);
}

static void many_small_sends(void)
{
	enum { CNT = 3000 };
	static char text[CNT], got[CNT];
	int pair[2];

	make_pair(pair);
	fill(text, CNT, 2);
	for (int is_nodelay = 0; is_nodelay < 2; is_nodelay++) {
		set_option(pair[0], IPPROTO_TCP, TCP_NODELAY, is_nodelay);
		for (int i = 0; i < CNT; i++)
			if (send(pair[0], &text[i], 1, 0) != 1)
				SAY("send: %m\n");
		SAY("right: %d\n", receive_all(pair[1], got, CNT) == CNT &&
					   memcmp(got, text, CNT) == 0);
	}
	close_pair(pair);
}

/* Of the process, in KB. */
static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		SAY("statm: %m\n");
	if (file)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What nobody reads takes memory by its bytes, not by the sends. */
static void small_sends_take_little_memory(void)
{
	enum { MAX = 100000, MORE_KB = 16 * 1024 };
	static const int lens[] = { 1, 3, 300 };
	static char text[MAX], got[MAX];

	fill(text, MAX, 3);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		size_t done = 0, len = (size_t)lens[i], cnt = MAX / len * len;
		struct sockaddr_in name;
		int pair[2], listener = bound(&name);
		long before;

		/* the window closes soon */
		set_option(listener, SOL_SOCKET, SO_RCVBUF, 4096);
		listen(listener, 1);
		make_pair_of(listener, &name, pair);
		close(listener);
		set_option(pair[0], SOL_SOCKET, SO_SNDBUF, 4 * MAX);
		memset(got, 0, MAX);
		before = resident_kb();
		while (done < cnt && send(pair[0], text + done, len,
					  MSG_DONTWAIT) == (ssize_t)len)
			done += len;
		SAY("%zu: all %d, little memory %d\n", len, done == cnt,
		    resident_kb() - before < MORE_KB);
		SAY("right %d\n", receive_all(pair[1], got, done) == done &&
					   memcmp(got, text, done) == 0);
		close_pair(pair);
	}
}

/* The program cannot map any more: there is no room for now, as with a full buffer. */
static void sends_without_memory(void)
{
	enum { MAX = 16 << 20, PIECE = 10000 };
	static char text[MAX], got[MAX];
	struct sockaddr_in name;
	int pair[2], listener = bound(&name);
	struct rlimit all, none;
	size_t done = 0;
	ssize_t n;

	/* what is sent stays with the sender */
	set_option(listener, SOL_SOCKET, SO_RCVBUF, 4096);
	listen(listener, 1);
	make_pair_of(listener, &name, pair);
	close(listener);
	fill(text, MAX, 3);
	memset(got, 0, MAX);
	set_option(pair[0], SOL_SOCKET, SO_SNDBUF, MAX);
	send_all(pair[0], text, PIECE);
	receive_all(pair[1], got, PIECE);
	getrlimit(RLIMIT_AS, &all);
	none = all;
	none.rlim_cur = 1;
	setrlimit(RLIMIT_AS, &none);
	do {
		n = send(pair[0], text + done, PIECE, MSG_DONTWAIT);
		done += n > 0 ? (size_t)n : 0;
	} while (n > 0 && done + PIECE <= MAX);
	SAY("at last %s\n", n < 0 ? err(n) : "all");
	SAY("right %d\n", receive_all(pair[1], got, done) == done &&
				   memcmp(got, text, done) == 0);
	await(pair[0], POLLOUT);
	say_sent(pair[0], "again", 0);
	setrlimit(RLIMIT_AS, &all);
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

static void every_length(void)
{
	enum { MAX = 70000 };
	static char text[MAX], got[MAX];
	int pair[2], bad_cnt = 0;

	make_pair(pair);
	fill(text, MAX, 3);
	for (size_t len = 1; len <= MAX; len += len / 7 + 1) {
		send_all(pair[0], text, len);
		bad_cnt += receive_all(pair[1], got, len) != len ||
			   memcmp(got, text, len) != 0;
	}
	SAY("%d lengths are bad\n", bad_cnt);
	close_pair(pair);
}

/* -- held back ---------------------------------------------------------------------- */

static void say_waiting(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	SAY("%s\n", poll(&pfd, 1, 40) ? "it came" : "nothing yet");
}

/* It leaves after 200 ms in any case: who was away for so long asks anew. An acknowledgment
 * that comes in between would let it go. */
static void say_held(const int pair[2], const char *text, int flags)
{
	struct pollfd pfd = { .fd = pair[1], .events = POLLIN };
	char buf[16];
	int n = 0;

	for (int i = 0; i < 20; i++) {
		long begin = now_ms();

		send(pair[0], text, strlen(text), flags);
		n = poll(&pfd, 1, 40);
		if (!n || now_ms() - begin < 150)
			break;
		receive_all(pair[1], buf, strlen(text));
		await_acks(pair[0]);
	}
	SAY("%s: %s\n", text, n ? "it came" : "nothing yet");
}

static void more_to_come(void)
{
	int pair[2];

	make_pair(pair);
	say_held(pair, "first ", MSG_MORE);
	say_sent(pair[0], "second ", MSG_MORE);
	say_sent(pair[0], "last", 0);
	await_bytes(pair[1], 17);
	receive(pair[1], 0);
	/* what is held back leaves after a while */
	say_sent(pair[0], "alone", MSG_MORE);
	await(pair[1], POLLIN);
	receive(pair[1], 0);
	/* and before the end */
	say_sent(pair[0], "at the end", MSG_MORE);
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

static void corked(void)
{
	int pair[2];

	make_pair(pair);
	set_option(pair[0], IPPROTO_TCP, TCP_CORK, 1);
	say_held(pair, "held ", 0);
	set_option(pair[0], IPPROTO_TCP, TCP_NODELAY, 1);
	say_waiting(pair[1]);
	receive(pair[1], MSG_DONTWAIT);
	say_sent(pair[0], "back", 0);
	set_option(pair[0], IPPROTO_TCP, TCP_CORK, 0);
	await(pair[1], POLLIN);
	receive(pair[1], 0);
	set_option(pair[0], IPPROTO_TCP, TCP_CORK, 1);
	say_sent(pair[0], "closed", 0);
	close(pair[0]);
	receive_to_end(pair[1]);
	close(pair[1]);
}

/* -- full buffers ------------------------------------------------------------------- */

static ssize_t send_one(int fd)
{
	return send(fd, "x", 1, 0);
}

static ssize_t write_one(int fd)
{
	return write(fd, "x", 1);
}

static ssize_t send_one_at_once(int fd)
{
	return send(fd, "x", 1, MSG_DONTWAIT);
}

static void partial_sends(void)
{
	static ssize_t (*const calls[])(int fd) = { send_one, write_one, send_one_at_once };
	enum { LEN = 20 << 20 };
	char *text = malloc(LEN);
	ssize_t n, last;
	int pair[2];

	make_pair(pair);
	fill(text, LEN, 4);
	set_blocking(pair[0], false);
	n = send(pair[0], text, LEN, 0);
	SAY("a part: %d\n", n > 0 && n < LEN);
	n += (ssize_t)stuff(pair[0]);
	/* the rest of a window, which goes after a while, makes room still */
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		while ((last = calls[i](pair[0])) > 0)
			n += last;
		SAY("full: %s\n", err(last));
	}
	set_blocking(pair[1], false);
	while (n > 0) {
		n -= (ssize_t)drain(pair[1], &last);
		if (n > 0)
			await(pair[1], POLLIN);
	}
	SAY("all of it came: %zd\n", n);
	SAY("events %#x\n", (unsigned)await(pair[0], POLLOUT));
	say_sent(pair[0], "room", 0);
	await(pair[1], POLLIN);
	receive(pair[1], 0);
	close_pair(pair);
	free(text);
}

static void send_with_a_time_limit(void)
{
	struct timeval limit = { 0, 100000 };
	static char text[1 << 20];
	ssize_t n;
	long begin;
	int pair[2];

	make_pair(pair);
	stuff(pair[0]);
	/* the rest of a window that is less than a segment goes after a while */
	sleep_ms(400);
	stuff(pair[0]);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	begin = now_ms();
	n = send(pair[0], text, sizeof(text), 0);
	SAY("send %s ", err(n));
	SAY("in time: %d\n", now_ms() - begin >= 95 && now_ms() - begin < 3000);
	close_pair(pair);
}

struct slow_reader {
	int fd;
	_Atomic bool is_over;
};

/* Makes room again and again, and never enough. */
static void *read_slowly(void *arg)
{
	struct slow_reader *r = arg;
	static char text[32768];

	while (!r->is_over && recv(r->fd, text, sizeof(text), 0) > 0)
		sleep_ms(50);
	return NULL;
}

/* The limit is that of the call, however often it waits for room. */
static void send_with_one_time_limit(void)
{
	struct timeval limit = { 0, 500000 };
	static char text[16 << 20];
	struct slow_reader r = { .is_over = false };
	pthread_t thread;
	int pair[2];
	ssize_t n;

	make_pair(pair);
	r.fd = pair[1];
	set_option(pair[1], SOL_SOCKET, SO_RCVBUF, 50000);
	set_option(pair[0], SOL_SOCKET, SO_SNDBUF, 50000);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	pthread_create(&thread, NULL, read_slowly, &r);
	n = send(pair[0], text, sizeof(text), 0);
	SAY("send: %s\n", n <= 0 ? err(n) : n < (ssize_t)sizeof(text) ? "a part" : "all");
	r.is_over = true;
	reset(pair[0]);
	pthread_join(thread, NULL);
	close(pair[1]);
}

static void *send_much(void *arg)
{
	struct transfer *t = arg;
	char *text = malloc(t->len);

	fill(text, t->len, t->seed);
	t->is_right = send_all(t->fd, text, t->len);
	shutdown(t->fd, SHUT_WR);
	free(text);
	return NULL;
}

void *receive_much(void *arg)
{
	struct transfer *t = arg;
	char *text = malloc(t->len), *got = malloc(t->len + 1);

	fill(text, t->len, t->seed);
	t->is_right = receive_all(t->fd, got, t->len + 1) == t->len &&
		      memcmp(text, got, t->len) == 0;
	free(text);
	free(got);
	return NULL;
}

static void much_both_ways(void)
{
	enum { LEN = 4 << 20 };
	struct transfer transfers[4];
	pthread_t threads[4];
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 4; i++) {
		transfers[i] = (struct transfer){ pair[i & 1],
						  i == 0 || i == 3 ? 5 : 6, LEN,
						  false };
		pthread_create(&threads[i], NULL,
			       i < 2 ? send_much : receive_much, &transfers[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		SAY("right: %d\n", transfers[i].is_right);
	close_pair(pair);
}

/* By one thread, which waits for both by poll. */
static void much_by_one_thread(void)
{
	enum { LEN = 4 << 20 };
	char *text = malloc(LEN), *got = malloc(LEN);
	size_t sent = 0, received = 0;
	struct pollfd pfds[2];
	int pair[2];

	make_pair(pair);
	fill(text, LEN, 7);
	set_blocking(pair[0], false);
	set_blocking(pair[1], false);
	while (received < LEN) {
		ssize_t n;

		pfds[0] = (struct pollfd){ .fd = pair[0],
					   .events = sent < LEN ? POLLOUT : 0 };
		pfds[1] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
		if (poll(pfds, 2, 10000) <= 0)
			break;
		if (pfds[0].revents &&
		    (n = write(pair[0], text + sent, LEN - sent)) > 0)
			sent += (size_t)n;
		if (pfds[1].revents &&
		    (n = read(pair[1], got + received, LEN - received)) > 0)
			received += (size_t)n;
	}
	SAY("right: %d\n", received == LEN && memcmp(text, got, LEN) == 0);
	close_pair(pair);
	free(text);
	free(got);
}

/* -- not sent yet ------------------------------------------------------------------- */

static int queued(int fd, unsigned long request)
{
	int n = -1;

	if (ioctl(fd, request, &n) != 0)
		SAY("ioctl: %m\n");
	return n;
}

static void bytes_under_way(void)
{
	int pair[2], out, unsent, fd = made();

	SAY("fresh %s\n", err(ioctl(fd, SIOCOUTQ, &out)));
	SAY("listening %s", err(listen(fd, 1)));
	SAY(" %s", err(ioctl(fd, SIOCOUTQ, &out)));
	SAY(" %s", err(ioctl(fd, SIOCOUTQNSD, &out)));
	SAY(" %s\n", err(ioctl(fd, FIONREAD, &out)));
	close(fd);
	make_pair(pair);
	SAY("%d %d\n", queued(pair[0], SIOCOUTQ), queued(pair[0], SIOCOUTQNSD));
	send(pair[0], "hello", 5, 0);
	await_acks(pair[0]);
	SAY("%d %d\n", queued(pair[0], SIOCOUTQ), queued(pair[0], SIOCOUTQNSD));
	stuff(pair[0]);
	out = queued(pair[0], SIOCOUTQ);
	unsent = queued(pair[0], SIOCOUTQNSD);
	SAY("much %d, not sent %d\n", out > 0, unsent > 0 && unsent <= out);
	SAY("no place %s\n", err(ioctl(pair[0], SIOCOUTQ, NULL)));
	close(pair[1]);
	await(pair[0], POLLIN);
	close(pair[0]);
}

/* Room is what has not been sent, not what has not been acknowledged. */
static void little_unsent(void)
{
	struct pollfd pfd = { .events = POLLOUT };
	size_t sent;
	int pair[2];

	make_pair(pair);
	SAY("set %s\n",
	    err(set_option(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, 8192)));
	SAY("get %d\n", get_option(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT));
	sent = stuff(pair[0]);
	SAY("little is not sent: %d\n",
	    queued(pair[0], SIOCOUTQNSD) < 3 * 65536);
	pfd.fd = pair[0];
	SAY("poll %d\n", poll(&pfd, 1, 50));
	drain_all(pair[1], sent);
	SAY("events %#x\n", (unsigned)await(pair[0], POLLOUT));
	close_pair(pair);
}

/* 0 is the system's limit again: there is none. */
static void unsent_without_a_limit(void)
{
	enum { LIMIT = 4096 };
	int pair[2];

	make_pair(pair);
	/* little is under way, so that the buffer has room for more */
	set_option(pair[1], SOL_SOCKET, SO_RCVBUF, 8192);
	for (int limit = LIMIT; limit >= 0; limit -= LIMIT) {
		SAY("set %s", err(set_option(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT,
					     limit)));
		SAY(", it takes more: %d\n", stuff(pair[0]) > 0);
	}
	close_pair(pair);
}

enum { SHORT_LEN = 300, SHORT_CNT = 80000 };

static void *send_shorts(void *arg)
{
	char text[SHORT_LEN];
	int short_cnt = 0;

	fill(text, sizeof(text), 7);
	for (int i = 0; i < SHORT_CNT; i++)
		short_cnt += send(*(int *)arg, text, sizeof(text), 0) != SHORT_LEN;
	SAY("%d were not whole\n", short_cnt);
	shutdown(*(int *)arg, SHUT_WR);
	return NULL;
}

/* Who waits for room sends all, though there is room for a part of it when he comes. */
static void short_sends_are_whole(void)
{
	pthread_t thread;
	ssize_t last;
	size_t all;
	int pair[2];

	make_pair(pair);
	set_option(pair[0], SOL_SOCKET, SO_SNDBUF, 20000);
	pthread_create(&thread, NULL, send_shorts, &pair[0]);
	all = drain(pair[1], &last);
	pthread_join(thread, NULL);
	SAY("%zu came\n", all);
	close_pair(pair);
}

/* Linux takes no notice of flags that are for receiving. */
static void sends_with_flags_of_receiving(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "all", MSG_WAITALL);
	say_sent(pair[0], "peek", MSG_PEEK);
	say_sent(pair[0], "trunc", MSG_TRUNC);
	await_bytes(pair[1], 12);
	receive(pair[1], 0);
	for (int i = 0; i < 100; i++) {
		send(pair[0], "x", 1, 0);
		await_bytes(pair[1], 1);
		recv(pair[1], &(char){ 0 }, 1, 0);
	}
	close_pair(pair);
}

/* -- bad memory --------------------------------------------------------------------- */

static void sends_from_bad_memory(void)
{
	char *end = edge();
	struct iovec iov[2] = { { (void *)"good", 4 }, { nowhere(), 4 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct pollfd pfd;
	int pair[2];

	make_pair(pair);
	memset(end - 50, 'e', 50);
	SAY("send %s\n", err(send(pair[0], nowhere(), 10, 0)));
	SAY("half of it %s\n", err(send(pair[0], end - 50, 100, 0)));
	SAY("writev %s\n", err(writev(pair[0], iov, 2)));
	SAY("sendmsg %s\n", err(sendmsg(pair[0], &msg, 0)));
	SAY("no message %s\n", err(sendmsg(pair[0], NULL, 0)));
	msg.msg_iov = nowhere();
	SAY("no pieces %s\n", err(sendmsg(pair[0], &msg, 0)));
	pfd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	SAY("nothing came: %d\n", poll(&pfd, 1, 50) == 0);
	SAY("the good half %zd\n", send(pair[0], end - 50, 50, 0));
	await_bytes(pair[1], 50);
	receive(pair[1], 0);
	close_pair(pair);
}

struct taker {
	int fd;
	char *buf;
	size_t len, got_cnt;
};

static void *take(void *arg)
{
	struct taker *taker = arg;

	taker->got_cnt = receive_all(taker->fd, taker->buf, taker->len);
	return NULL;
}

/* Whatever a send says it took, arrives, and nothing else. */
static void long_send_from_bad_memory(void)
{
	enum { LEN = 1 << 20 };
	static char text[LEN], got[LEN];
	struct iovec iov[2] = { { text, LEN / 2 }, { nowhere(), LEN / 2 } };
	struct taker taker = { .buf = got, .len = LEN };
	pthread_t thread;
	ssize_t n;
	int pair[2];

	make_pair(pair);
	taker.fd = pair[1];
	pthread_create(&thread, NULL, take, &taker);
	fill(text, LEN, 8);
	n = writev(pair[0], iov, 2);
	SAY("some of it: %d\n", n > 0 && n <= LEN / 2);
	shutdown(pair[0], SHUT_WR);
	pthread_join(thread, NULL);
	SAY("all of that: %d\n", (ssize_t)taker.got_cnt == n &&
					 memcmp(text, got, taker.got_cnt) == 0);
	close_pair(pair);
}

/* -- control messages --------------------------------------------------------------- */

static void send_with_control(int fd, int level, int type, uint32_t value)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(value))];
	} control = { 0 };
	struct iovec iov = { (void *)"told", 4 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(c), &value, sizeof(value));
	SAY("%d/%d: %s\n", level, type, err(sendmsg(fd, &msg, 0)));
	c->cmsg_len = 3;
	SAY("bad length: %s\n", err(sendmsg(fd, &msg, 0)));
}

static void control_with_sends(void)
{
	int pair[2];

	make_pair(pair);
	send_with_control(pair[0], SOL_SOCKET, SO_TIMESTAMPING,
			  SOF_TIMESTAMPING_TX_ACK);
	send_with_control(pair[0], SOL_SOCKET, SO_MARK, 0);
	send_with_control(pair[0], SOL_SOCKET, 999, 0);
	send_with_control(pair[0], IPPROTO_IP, IP_TOS, 8);
	send_with_control(pair[0], IPPROTO_TCP, 1, 8);
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

/* -- flags that change nothing, and bad ones ---------------------------------------- */

static void flags_of_sends(void)
{
	static const int flags[] = { MSG_CONFIRM, MSG_DONTROUTE, MSG_EOR,
				     MSG_NOSIGNAL, MSG_DONTWAIT, MSG_PEEK,
				     MSG_TRUNC, MSG_WAITALL, MSG_PROXY,
				     MSG_ERRQUEUE, 1 << 27 };
	int pair[2];

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		SAY("%#x: ", (unsigned)flags[i]);
		say_sent(pair[0], "x", flags[i]);
	}
	await_acks(pair[0]);
	receive(pair[1], 0);
	close_pair(pair);
}

const struct scenario send_scenarios[] = {
	SCENARIO(every_sending_call, OURS),
	SCENARIO(streams_that_cannot_write, OURS),
	SCENARIO(sends_of_nothing, OURS),
	SCENARIO(sends_of_nothing_to_nobody, OURS),
	SCENARIO(vectors_with_flags, OURS),
	SCENARIO(vectors_with_odd_flags, MIXED),
	SCENARIO(reset_within_a_send, OURS),
	SCENARIO(sends_without_a_connection, OURS),
	SCENARIO(pieces_of_one_byte, OURS),
	SCENARIO(many_small_sends, OURS),
	SCENARIO(small_sends_take_little_memory, OURS),
	SCENARIO(sends_without_memory, OURS),
	SCENARIO(every_length, OURS),
	SCENARIO(more_to_come, OURS),
	SCENARIO(corked, OURS),
	SCENARIO(partial_sends, OURS),
	SCENARIO(send_with_a_time_limit, OURS),
	SCENARIO(send_with_one_time_limit, OURS),
	SCENARIO(much_both_ways, OURS),
	SCENARIO(much_by_one_thread, OURS),
	SCENARIO(bytes_under_way, OURS),
	SCENARIO(little_unsent, OURS),
	SCENARIO(unsent_without_a_limit, OURS),
	SCENARIO(short_sends_are_whole, OURS),
	SCENARIO(sends_with_flags_of_receiving, OURS),
	SCENARIO(sends_from_bad_memory, KERNEL),
	SCENARIO(long_send_from_bad_memory, KERNEL),
	SCENARIO(control_with_sends, MIXED),
	SCENARIO(flags_of_sends, MIXED),
	SCENARIO_END,
};
