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
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/softcx/softcx.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

static struct sockaddr_in server_name;

/* -- bytes -------------------------------------------------------------------------- */

/* A stream that can be checked at any place, made block by block. */
struct stream {
	uint64_t state;
	size_t len, left;
};

enum { BLOCK = 16384 };

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

static bool write_all(int fd, const void *buf, size_t len)
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

static size_t read_all(int fd, void *buf, size_t len)
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

/* Until `rest` is left of it. */
static bool send_until(int fd, struct stream *s, size_t rest)
{
	uint64_t block[BLOCK / sizeof(uint64_t)];

	while (s->left > rest) {
		size_t n = next_block(s, block);

		if (!write_all(fd, block, n))
			return false;
	}
	return true;
}

static bool send_stream(int fd, uint64_t seed, size_t len)
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

/* Until `rest` is left of it. */
static bool check_until(int fd, struct stream *s, size_t rest)
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

static bool check_stream(int fd, uint64_t seed, size_t len)
{
	struct stream s = { seed, len, len };

	return check_until(fd, &s, 0);
}

static void sleep_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) != 0)
		;
}

/* What has been sent is with the peer only when it says so. */
static void reset(int fd)
{
	struct linger linger = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/* -- the card ------------------------------------------------------------------------ */

/* All queues of a kind fail. */
static int fail_all(const char *function)
{
	softcx_fail_qp_fn *fail = (softcx_fail_qp_fn *)dlsym(RTLD_DEFAULT, function);
	int result = -ENODEV;

	for (uint32_t number = 0; fail && number < 1 << 16; number++)
		if (fail("mlx5_0", number) == 0)
			result = 0;
	return result;
}

static int set_port(int is_up)
{
	softcx_port_set_fn *set = (softcx_port_set_fn *)dlsym(RTLD_DEFAULT,
							      "softcx_port_set");

	return set ? set("mlx5_0", is_up) : -ENODEV;
}

static int remove_card(void)
{
	softcx_remove_fn *removed = (softcx_remove_fn *)dlsym(RTLD_DEFAULT,
							      "softcx_remove");

	return removed ? removed("mlx5_0") : -ENODEV;
}

static int heed(const char *order)
{
	if (strcmp(order, "remove") == 0)
		return remove_card();
	if (strcmp(order, "fail_queues") == 0)
		return fail_all("softcx_fail_qp");
	if (strcmp(order, "fail_completions") == 0)
		return fail_all("softcx_fail_cq");
	if (strcmp(order, "down") == 0 || strcmp(order, "up") == 0)
		return set_port(strcmp(order, "up") == 0);
	return -EINVAL;
}

static void *heed_orders(void *arg)
{
	char order[32];
	FILE *orders = arg;

	while (fscanf(orders, "%31s", order) == 1) {
		int err = heed(order);

		if (err)
			SAY("%s: %s\n", order, strerror(-err));
	}
	return NULL;
}

/* The script that gives orders writes to it, one after the other. */
static bool take_orders(const char *fifo)
{
	/* as a writer, too, so that it never ends */
	FILE *orders = fopen(fifo, "r+");
	pthread_t thread;

	return orders && pthread_create(&thread, NULL, heed_orders, orders) == 0;
}

/* -- the server --------------------------------------------------------------------- */

static void echo(int fd, uint64_t a, size_t b)
{
	char buf[65536];
	ssize_t n;

	(void)a;
	(void)b;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (!write_all(fd, buf, (size_t)n))
			break;
}

/* Probes a second apart, two of which may be lost. */
static void keep_alive(int fd)
{
	static const int on = 1, second = 1, cnt = 2;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &cnt, sizeof(cnt));
}

static void echo_kept_alive(int fd, uint64_t a, size_t b)
{
	keep_alive(fd);
	echo(fd, a, b);
}

/* What the server has taken so far, and the connections by which it takes something, or which
 * have not said yet what they are for. */
static _Atomic int right_cnt, wrong_cnt, taking_cnt;

static bool check_and_count(int fd, uint64_t seed, size_t len)
{
	bool is_right = check_stream(fd, seed, len);

	if (is_right)
		right_cnt++;
	else
		wrong_cnt++;
	return is_right;
}

static void take(int fd, uint64_t seed, size_t len)
{
	write_all(fd, check_and_count(fd, seed, len) ? "right" : "wrong", 5);
}

static void tell_taken(int fd, uint64_t a, size_t b)
{
	char answer[64];

	(void)a;
	(void)b;
	for (int i = 0; i < 500 && taking_cnt; i++)
		sleep_ms(10);
	snprintf(answer, sizeof(answer), "%d right, %d wrong", right_cnt,
		 wrong_cnt);
	write_all(fd, answer, strlen(answer));
}

/* Reads nothing for a while, then little by little at first. */
static void take_slowly(int fd, uint64_t seed, size_t len)
{
	sleep_ms(300);
	take(fd, seed, len);
}

static void give(int fd, uint64_t seed, size_t len)
{
	send_stream(fd, seed, len);
}

struct give {
	int fd;
	uint64_t seed;
	size_t len;
};

static void *give_in_thread(void *arg)
{
	const struct give *g = arg;

	give(g->fd, g->seed, g->len);
	return NULL;
}

static void give_and_take(int fd, uint64_t seed, size_t len)
{
	struct give g = { fd, seed + 1, len };
	pthread_t thread;
	bool is_right;

	pthread_create(&thread, NULL, give_in_thread, &g);
	is_right = check_and_count(fd, seed, len);
	pthread_join(thread, NULL);
	write_all(fd, is_right ? "right" : "wrong", 5);
}

/* Answers what came when the end has come. */
static void count(int fd, uint64_t a, size_t b)
{
	char buf[4096], answer[32];
	size_t total = 0;
	ssize_t n;

	(void)a;
	(void)b;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		total += (size_t)n;
	snprintf(answer, sizeof(answer), "%zu", total);
	write_all(fd, answer, strlen(answer));
}

static void end_by_reset(int fd, uint64_t a, size_t b)
{
	struct linger linger = { 1, 0 };

	(void)a;
	(void)b;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* The byte of a message that was sent as urgent, and the others. */
static void hear_urgent(int fd, uint64_t a, size_t b)
{
	struct pollfd pfd = { .fd = fd, .events = POLLPRI };
	char urgent = '-', rest[16] = "", answer[64];

	(void)a;
	(void)b;
	poll(&pfd, 1, 5000);
	recv(fd, &urgent, 1, MSG_OOB);
	read_all(fd, rest, 11);
	snprintf(answer, sizeof(answer), "urgent %c, rest %s", urgent, rest);
	write_all(fd, answer, strlen(answer));
}

/* Who accepts has it meanwhile. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* A server that forks while connections wait to be accepted: it tells that it accepts
 * nothing, and forks when it is told that they are there. */
static void fork_before_accepts(int fd, uint64_t a, size_t b)
{
	char c;
	pid_t pid;

	(void)a;
	(void)b;
	pthread_mutex_lock(&gate);
	write_all(fd, "h", 1);
	read_all(fd, &c, 1);
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	pthread_mutex_unlock(&gate);
	write_all(fd, "f", 1);
}

/* A server whose child has all that is open, and uses nothing of it, until it is told that
 * this is enough. */
static void fork_idle(int fd, uint64_t a, size_t b)
{
	int pipes[2] = { -1, -1 };
	char c;
	pid_t pid;

	(void)a;
	(void)b;
	if (pipe(pipes) != 0)
		return;
	pid = fork();
	if (pid == 0) {
		close(pipes[1]);
		_exit((int)read(pipes[0], &c, 1));
	}
	write_all(fd, "f", 1);
	read_all(fd, &c, 1);
	close(pipes[1]);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	write_all(fd, "e", 1);
}

/* A server that accepts nothing until it is told to. */
static void hold_accepts(int fd, uint64_t a, size_t b)
{
	char c;

	(void)a;
	(void)b;
	pthread_mutex_lock(&gate);
	write_all(fd, "h", 1);
	read_all(fd, &c, 1);
	pthread_mutex_unlock(&gate);
}

/* The listener of all that is served, and how many have been taken from it. */
static int listener = -1;
static _Atomic unsigned accepted_cnt;

static _Noreturn void serve_all(void);

/*
 * A server whose child goes on in its place, while somebody waits to be accepted. Its own
 * accept must have returned by then: one that waits still takes who comes to the child.
 */
static void hand_to_a_child(int fd, uint64_t a, size_t b)
{
	unsigned before_cnt;
	char c;

	(void)a;
	(void)b;
	pthread_mutex_lock(&gate);
	before_cnt = accepted_cnt;
	write_all(fd, "h", 1);
	read_all(fd, &c, 1);
	while (accepted_cnt == before_cnt)
		usleep(1000);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_mutex_init(&gate, NULL);
		serve_all();
	}
	close(listener);
	write_all(fd, "f", 1);
	pause();
}

/* A server with a child for each connection, which is both of theirs at first. */
static void echo_in_a_child(int fd, uint64_t a, size_t b)
{
	pid_t pid;
	char c;

	if (read_all(fd, &c, 1) != 1 || !write_all(fd, &c, 1))
		return;
	pid = fork();
	if (pid == 0) {
		echo(fd, a, b);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static const struct service {
	const char *name;
	void (*run)(int fd, uint64_t seed, size_t len);
} services[] = {
	{ "echo", echo },	    { "take", take },
	{ "slow", take_slowly },    { "give", give },
	{ "both", give_and_take },  { "count", count },
	{ "reset", end_by_reset },  { "urgent", hear_urgent },
	{ "taken", tell_taken },    { "fork", fork_before_accepts },
	{ "hand", hand_to_a_child },  { "alive", echo_kept_alive },
	{ "idle", fork_idle },	    { "child", echo_in_a_child },
	{ "hold", hold_accepts },
};

/* Byte by byte, so that what follows stays in the socket. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t len = 0;

	while (len + 1 < size && recv(fd, &line[len], 1, 0) == 1)
		if (line[len++] == '\n') {
			line[len - 1] = '\0';
			return true;
		}
	return false;
}

static const struct service *service_called(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if (strcmp(services[i].name, name) == 0)
			return &services[i];
	return NULL;
}

static void *serve_one(void *arg)
{
	const struct service *service = NULL;
	int fd = (int)(intptr_t)arg;
	char line[64], name[16];
	unsigned long long seed;
	bool does_take;
	size_t len;

	if (read_line(fd, line, sizeof(line)) &&
	    sscanf(line, "%15s %llu %zu", name, &seed, &len) == 3)
		service = service_called(name);
	does_take = service && (service->run == take || service->run == take_slowly ||
				service->run == give_and_take);
	taking_cnt -= !does_take;
	if (service)
		service->run(fd, seed, len);
	taking_cnt -= does_take;
	close(fd);
	return NULL;
}

static _Noreturn void serve_all(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	/* a child has none of its parent's threads */
	taking_cnt = 0;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		accepted_cnt += fd >= 0;
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
		if (fd < 0)
			continue;
		taking_cnt++;
		if (pthread_create(&thread, &attr, serve_one,
				   (void *)(intptr_t)fd) != 0) {
			taking_cnt--;
			close(fd);
		}
	}
}

static int serve(void)
{
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (getenv("PEER_KEEPALIVE"))
		keep_alive(listener);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&server_name,
		 sizeof(server_name)) != 0 || listen(listener, 512) != 0) {
		SAY("serve: %m\n");
		return 1;
	}
	SAY("ready\n");
	serve_all();
}

/* -- who asks ----------------------------------------------------------------------- */

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
		return serve();
	return argc == 5 ? ask(argv[4]) : 2;
}
