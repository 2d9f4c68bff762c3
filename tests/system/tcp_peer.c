/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of the conversations of tcp_xdp.sh. Whatever carries either, what the
 * asking end prints is the same.
 *
 *   tcp_peer serve ADDRESS PORT         until it is killed; says "ready"
 *   tcp_peer ask ADDRESS PORT CASE      one conversation, or many
 *   tcp_peer --list
 *
 * PEER_BULK=BYTES: in each stream; PEER_TIMES=N: so many times as much of the rest;
 * PEER_SHORT=CNT: only so many short connections.
 * PEER_ORDERS=FIFO: what is to happen to the software card of this process is read there, a
 * word in each line: see heed().
 *
 * A conversation begins with a line that says what the server is to do: see services.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/system/tcp_peer.h"

static struct sockaddr_in server_name;

static int begin(const char *service, unsigned long long seed, size_t len)
{
	char line[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (getenv("PEER_KEEPALIVE"))
		keep_alive(fd);
	if (connect(fd, (struct sockaddr *)&server_name, sizeof(server_name)) != 0)
		SAY("connect: %m\n");
	snprintf(line, sizeof(line), "%s %llu %zu\n", service, seed, len);
	write_all(fd, line, strlen(line));
	return fd;
}

/* What is left to read, and how it ended. */
static void say_answer(int fd)
{
	char buf[64] = "";
	size_t got = read_all(fd, buf, sizeof(buf) - 1);

	errno = 0;
	SAY("answer \"%s\", then ", buf);
	got = (size_t)recv(fd, buf, 1, 0);
	SAY("%s\n", got == 0 ? "the end" : strerrorname_np(errno));
	close(fd);
}

static size_t bulk_len(void)
{
	const char *value = getenv("PEER_BULK");

	return value ? strtoull(value, NULL, 10) : 16 << 20;
}

static int times(int usual)
{
	const char *value = getenv("PEER_TIMES");

	return value ? usual * atoi(value) : usual;
}

static bool is_stdin_over(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

static void await_end_of_stdin(void)
{
	while (!is_stdin_over())
		sleep_ms(10);
}

static void ping_pong(void)
{
	static const size_t lens[] = { 1, 64, 1000, 1448, 1449, 5000, 65536, 200000 };
	static char out[200000], in[200000];
	int fd = begin("echo", 0, 0), bad_cnt = 0, on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		int cnt = times(lens[i] > 10000 ? 10 : 200);

		for (int k = 0; k < cnt; k++) {
			memset(in, 0, lens[i]);
			/* longer ones would fill both directions */
			for (size_t at = 0, n; at < lens[i]; at += n) {
				n = lens[i] - at > 20000 ? 20000 : lens[i] - at;
				write_all(fd, out + at, n);
				read_all(fd, in + at, n);
			}
			bad_cnt += memcmp(out, in, lens[i]) != 0;
		}
	}
	SAY("%d bad\n", bad_cnt);
	shutdown(fd, SHUT_WR);
	say_answer(fd);
}

static void bulk_to_the_server(void)
{
	int fd = begin("take", 1, bulk_len());

	SAY("sent %d\n", send_stream(fd, 1, bulk_len()));
	say_answer(fd);
}

static void bulk_from_the_server(void)
{
	int fd = begin("give", 2, bulk_len());

	SAY("right %d\n", check_stream(fd, 2, bulk_len()));
	say_answer(fd);
}

static void bulk_both_ways(void)
{
	int fd = begin("both", 3, bulk_len());
	struct give g = { fd, 3, bulk_len() };
	pthread_t thread;

	pthread_create(&thread, NULL, give_in_thread, &g);
	SAY("right %d\n", check_stream(fd, 4, bulk_len()));
	pthread_join(thread, NULL);
	say_answer(fd);
}

/* What is left of either stream until somebody ends the wait: the other end has room for less. */
enum { HELD = 8 << 20 };

static void *give_held_in_thread(void *arg)
{
	const struct give *g = arg;
	struct stream s = { g->seed, g->len, g->len };

	if (send_until(g->fd, &s, HELD)) {
		await_end_of_stdin();
		send_until(g->fd, &s, 0);
	}
	return NULL;
}

/* The same, and neither stream comes to its end before somebody says so. */
static void bulk_until_told(void)
{
	int fd = begin("both", 3, bulk_len());
	struct give g = { fd, 3, bulk_len() };
	struct stream s = { 4, bulk_len(), bulk_len() };
	pthread_t thread;
	bool is_right;

	pthread_create(&thread, NULL, give_held_in_thread, &g);
	is_right = check_until(fd, &s, HELD);
	await_end_of_stdin();
	SAY("right %d\n", is_right && check_until(fd, &s, 0));
	pthread_join(thread, NULL);
	say_answer(fd);
}

/* Several streams at once, each with its own seed. */
static void *take_in_thread(void *arg)
{
	struct give *g = arg;
	int fd = begin("give", g->seed, g->len);

	g->fd = check_stream(fd, g->seed, g->len);
	close(fd);
	return NULL;
}

static void bulk_of_several(void)
{
	enum { CNT = 4 };
	struct give gives[CNT];
	pthread_t threads[CNT];

	for (unsigned i = 0; i < CNT; i++) {
		gives[i] = (struct give){ 0, 10 + i, bulk_len() / CNT };
		pthread_create(&threads[i], NULL, take_in_thread, &gives[i]);
	}
	for (int i = 0; i < CNT; i++) {
		pthread_join(threads[i], NULL);
		SAY("right %d\n", gives[i].fd);
	}
}

static void bulk_to_a_slow_reader(void)
{
	int fd = begin("slow", 5, bulk_len() / 4);

	SAY("sent %d\n", send_stream(fd, 5, bulk_len() / 4));
	say_answer(fd);
}

static void bulk_to_us_slowly(void)
{
	int fd = begin("give", 6, bulk_len() / 4);

	sleep_ms(300);
	SAY("right %d\n", check_stream(fd, 6, bulk_len() / 4));
	say_answer(fd);
}

static void short_connections(void)
{
	const char *fewer = getenv("PEER_SHORT");
	char out[64], in[64];
	int good_cnt = 0, cnt = fewer ? atoi(fewer) : times(500);

	for (int i = 0; i < cnt; i++) {
		int fd = begin("echo", 0, 0);

		memset(out, 'a' + i % 26, sizeof(out));
		write_all(fd, out, sizeof(out));
		good_cnt += read_all(fd, in, sizeof(in)) == sizeof(in) &&
			    memcmp(in, out, sizeof(in)) == 0;
		/* either end is the first to end */
		if (i & 1)
			shutdown(fd, SHUT_WR);
		if (i & 1)
			read_all(fd, in, 1);
		close(fd);
	}
	SAY("%d of them bad\n", cnt - good_cnt);
}

static void idle_connections(void)
{
	int cnt = times(300), bad_cnt = 0, fd;
	int *fds = calloc((size_t)cnt, sizeof(*fds));
	char c;

	for (int i = 0; i < cnt; i++)
		fds[i] = begin("echo", 0, 0);
	fd = begin("take", 7, 1 << 20);
	SAY("sent %d\n", send_stream(fd, 7, 1 << 20));
	say_answer(fd);
	for (int i = 0; i < cnt; i++) {
		c = (char)i;
		write_all(fds[i], &c, 1);
	}
	for (int i = cnt - 1; i >= 0; i--)
		bad_cnt += recv(fds[i], &c, 1, 0) != 1 || c != (char)i;
	SAY("%d bad\n", bad_cnt);
	for (int i = 0; i < cnt; i++)
		close(fds[i]);
	free(fds);
}

/* Each says its number again and again, by one set; so often that the last words, which
 * are the kernel's when the program has ended, are few beside it. */
static void many_in_a_set(void)
{
	enum { CNT = 100, ROUNDS = 60 };
	int set = epoll_create1(0), fds[CNT], left = CNT * ROUNDS;
	int heard[CNT] = { 0 }, bad_cnt = 0, n;
	struct epoll_event events[16];

	for (unsigned i = 0; i < CNT; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		fds[i] = begin("echo", 0, 0);
		epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event);
		write_all(fds[i], &i, sizeof(i));
	}
	while (left > 0 && (n = epoll_wait(set, events, 16, 10000)) > 0)
		for (int i = 0; i < n; i++) {
			unsigned who = events[i].data.u32, number = 0;

			read_all(fds[who], &number, sizeof(number));
			bad_cnt += number != who;
			left--;
			if (++heard[who] < ROUNDS)
				write_all(fds[who], &who, sizeof(who));
		}
	SAY("%d left, %d bad\n", left, bad_cnt);
	for (int i = 0; i < CNT; i++)
		close(fds[i]);
	close(set);
}

/* Idle for so long that an end which hears no answers to its probes would give up. */
static void kept_alive(void)
{
	int fd = begin("alive", 0, 0), on = 0;
	socklen_t len = sizeof(on);
	char c = 'c';

	keep_alive(fd);
	getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len);
	SAY("on %d\n", on);
	sleep_ms(4500);
	write_all(fd, &c, 1);
	SAY("answer %zd\n", recv(fd, &c, 1, 0));
	getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len);
	SAY("on %d\n", on);
	shutdown(fd, SHUT_WR);
	say_answer(fd);
}

static void half_closed(void)
{
	int fd = begin("count", 0, 0);

	send_stream(fd, 8, 300000);
	shutdown(fd, SHUT_WR);
	say_answer(fd);
}

static void reset_by_the_server(void)
{
	struct pollfd pfd;
	int fd = begin("reset", 0, 0);

	pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	poll(&pfd, 1, 5000);
	SAY("events %#x\n", (unsigned)pfd.revents);
	say_answer(fd);
}

/* In the middle of a stream; the server has to bear it. */
static void reset_by_us(void)
{
	int fd = begin("give", 9, 1 << 20);
	char buf[1000];

	SAY("read %zu\n", read_all(fd, buf, sizeof(buf)));
	reset(fd);
	fd = begin("count", 0, 0);
	shutdown(fd, SHUT_WR);
	say_answer(fd);
}

static void urgent_byte(void)
{
	int fd = begin("urgent", 0, 0);

	send(fd, "before", 6, 0);
	send(fd, "!", 1, MSG_OOB);
	send(fd, "after", 5, 0);
	say_answer(fd);
}

static void refused(void)
{
	struct sockaddr_in name = server_name;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	name.sin_port = htons((uint16_t)(ntohs(name.sin_port) + 1));
	for (int i = 0; i < 2; i++) {
		int n = connect(fd, (struct sockaddr *)&name, sizeof(name));

		SAY("connect %s\n", n < 0 ? strerrorname_np(errno) : "ok");
	}
	close(fd);
}

static void call_nobody(int flags)
{
	struct sockaddr_in name = server_name;
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0), n, error;
	struct pollfd wish = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(error);

	name.sin_addr.s_addr = htonl((ntohl(name.sin_addr.s_addr) & ~255U) | 99);
	n = connect(fd, (struct sockaddr *)&name, sizeof(name));
	SAY("connect %s\n", n < 0 ? strerrorname_np(errno) : "ok");
	if (flags & SOCK_NONBLOCK) {
		n = poll(&wish, 1, 15000);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
		SAY("poll %d %#x %s\n", n, wish.revents, strerrorname_np(error));
	}
	close(fd);
}

/* An address of the network that nobody has, first and when the kernel knows that. */
static void nobody_there(void)
{
	call_nobody(0);
	call_nobody(SOCK_NONBLOCK);
	call_nobody(0);
}

/* What a process says before it ends at once arrives: what_was_taken tells. */
static void exit_behind_a_stream(void)
{
	int fd = begin("take", 11, 100000);

	send_stream(fd, 11, 100000);
	SAY("sent\n");
	_exit(0);
}

/* The fd is closed by the exec. */
static void exec_behind_a_stream(void)
{
	int fd = begin("take", 11, 100000);

	send_stream(fd, 11, 100000);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	SAY("sent\n");
	execl("/bin/true", "true", NULL);
	SAY("exec: %m\n");
}

/* Who has connected before the server forks is accepted after it. */
static void fork_before_accepting(void)
{
	enum { CNT = 30 };
	int holder = begin("fork", 0, 0), fds[CNT], bad_cnt = 0;
	char c = 0;

	read_all(holder, &c, 1);
	for (int i = 0; i < CNT; i++) {
		fds[i] = begin("echo", 0, 0);
		write_all(fds[i], &(char){ (char)i }, 1);
	}
	write_all(holder, "f", 1);
	read_all(holder, &c, 1);
	for (int i = 0; i < CNT; i++) {
		bad_cnt += recv(fds[i], &c, 1, 0) != 1 || c != (char)i;
		close(fds[i]);
	}
	SAY("%d bad\n", bad_cnt);
	close(holder);
}

/* Who connects when the child has the listener, and one who came before and did not. */
static void child_takes_over(void)
{
	int holder = begin("hand", 0, 0), early, fd;
	char c = 0;

	read_all(holder, &c, 1);
	/* the accept that waits takes it */
	early = begin("echo", 0, 0);
	fd = begin("echo", 0, 0);
	write_all(holder, "f", 1);
	read_all(holder, &c, 1);
	close(early);
	close(fd);
	for (int i = 0; i < 20; i++) {
		fd = begin("echo", 0, 0);
		write_all(fd, "x", 1);
		c = 0;
		SAY("%zd", recv(fd, &c, 1, 0));
		close(fd);
	}
	SAY("\n");
	close(holder);
}

static int echoed(int fd, int cnt)
{
	char out[64], in[64];
	int good = 0;

	for (int i = 0; i < cnt; i++) {
		memset(out, 'a' + i % 26, sizeof(out));
		write_all(fd, out, sizeof(out));
		good += read_all(fd, in, sizeof(in)) == sizeof(in) &&
			memcmp(in, out, sizeof(in)) == 0;
	}
	return good;
}

static int echoed_anew(int cnt)
{
	int good = 0, fd;

	for (int i = 0; i < cnt; i++) {
		fd = begin("echo", 0, 0);
		good += echoed(fd, 10);
		close(fd);
	}
	return good;
}

/* Connections that are open before the server has a child, some that come meanwhile, and
 * others afterwards. */
static void idle_child(void)
{
	int older = begin("echo", 0, 0), holder;
	char c;

	SAY("before %d\n", echoed(older, 10));
	holder = begin("idle", 0, 0);
	read_all(holder, &c, 1);
	SAY("beside a child %d", echoed(older, times(2000)));
	SAY(" %d\n", echoed_anew(5));
	write_all(holder, "e", 1);
	read_all(holder, &c, 1);
	close(holder);
	SAY("after it %d", echoed(older, times(500)));
	SAY(" %d\n", echoed_anew(50));
	shutdown(older, SHUT_WR);
	say_answer(older);
}

/* Each connection goes on with a child of the server. */
static void child_for_each(void)
{
	int bad_cnt = 0;

	for (int i = 0; i < times(5); i++) {
		int fd = begin("child", 0, 0);
		char c = 'c';

		write_all(fd, &c, 1);
		bad_cnt += read_all(fd, &c, 1) != 1;
		bad_cnt += echoed(fd, 200) != 200;
		shutdown(fd, SHUT_WR);
		bad_cnt += recv(fd, &c, 1, 0) != 0;
		close(fd);
	}
	SAY("%d bad\n", bad_cnt);
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* One question after the other until somebody ends it, whatever else the server has to
 * bear. How slow it was is shown, and not judged. */
static void guest(void)
{
	int fd = begin("echo", 0, 0), bad_cnt = 0, on = 1;
	long begun, slowest = 0, cnt = 0;
	char out[64], in[64];

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	SAY("begun\n");
	do {
		memset(out, (int)('a' + cnt % 26), sizeof(out));
		begun = now_ms();
		bad_cnt += !write_all(fd, out, sizeof(out)) ||
			   read_all(fd, in, sizeof(in)) != sizeof(in) ||
			   memcmp(in, out, sizeof(in)) != 0;
		begun = now_ms() - begun;
		slowest = begun > slowest ? begun : slowest;
		cnt++;
	} while (!is_stdin_over() && !bad_cnt);
	fprintf(stderr, "# %ld rounds, the slowest took %ld ms\n", cnt, slowest);
	SAY("%d bad\n", bad_cnt);
	shutdown(fd, SHUT_WR);
	say_answer(fd);
}

enum { CROWD = 100 };

static void begin_crowd(int fds[CROWD])
{
	for (int i = 0; i < CROWD; i++) {
		fds[i] = begin("echo", 0, 0);
		write_all(fds[i], &(char){ (char)i }, 1);
	}
}

/* Many that have said a word, and are silent until somebody ends it; each has its echo
 * still. */
static void silent_crowd(void)
{
	int fds[CROWD], bad_cnt = 0;
	char c;

	begin_crowd(fds);
	for (int i = 0; i < CROWD; i++)
		bad_cnt += recv(fds[i], &c, 1, 0) != 1 || c != (char)i;
	SAY("begun\n");
	await_end_of_stdin();
	for (int i = 0; i < CROWD; i++) {
		errno = 0;
		if (echoed(fds[i], 1) == 1)
			continue;
		fprintf(stderr, "# connection %d: %m\n", i);
		bad_cnt++;
	}
	SAY("%d bad\n", bad_cnt);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
}

/* Says nothing, and hears nothing, until somebody ends it. The server waits for more. */
static void silent(void)
{
	int fd = begin("take", 1, 1 << 20);

	SAY("begun\n");
	await_end_of_stdin();
	reset(fd);
}

static void held(void)
{
	int fd = begin("hold", 0, 0);
	char c = 0;

	read_all(fd, &c, 1);
	SAY("held\n");
	await_end_of_stdin();
	write_all(fd, &c, 1);
	say_answer(fd);
}

/* After each of the others. */
static void what_was_taken(void)
{
	say_answer(begin("taken", 0, 0));
}

static const struct asked {
	const char *name;
	void (*run)(void);
} asked[] = {
#define CASE(name) { #name, name }
	CASE(ping_pong),
	CASE(bulk_to_the_server),
	CASE(bulk_from_the_server),
	CASE(bulk_both_ways),
	CASE(bulk_until_told),
	CASE(bulk_of_several),
	CASE(bulk_to_a_slow_reader),
	CASE(bulk_to_us_slowly),
	CASE(short_connections),
	CASE(idle_connections),
	CASE(many_in_a_set),
	CASE(kept_alive),
	CASE(half_closed),
	CASE(reset_by_the_server),
	CASE(reset_by_us),
	CASE(urgent_byte),
	CASE(refused),
	CASE(nobody_there),
	CASE(exit_behind_a_stream),
	CASE(exec_behind_a_stream),
	CASE(fork_before_accepting),
	CASE(child_takes_over),
	CASE(idle_child),
	CASE(child_for_each),
	CASE(guest),
	CASE(silent),
	CASE(silent_crowd),
	CASE(held),
	CASE(what_was_taken),
#undef CASE
};

static int ask(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		if (strcmp(asked[i].name, name) == 0) {
			asked[i].run();
			return 0;
		}
	return 2;
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < ARRAY_LEN(asked); i++)
			puts(asked[i].name);
		return 0;
	}
	if (argc < 4)
		return 2;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getenv("PEER_ORDERS") && !take_orders(getenv("PEER_ORDERS")))
		return 2;
	server_name.sin_family = AF_INET;
	server_name.sin_port = htons((uint16_t)atoi(argv[3]));
	inet_pton(AF_INET, argv[2], &server_name.sin_addr);
	if (strcmp(argv[1], "serve") == 0)
		return serve(&server_name);
	return argc == 5 ? ask(argv[4]) : 2;
}
