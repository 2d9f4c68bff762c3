/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The serving end of tcp_peer, and what happens to its card meanwhile. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softcx/softcx.h"
#include "tests/system/tcp_peer.h"

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
bool take_orders(const char *fifo)
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

void keep_alive(int fd)
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

int serve(const struct sockaddr_in *name)
{
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (getenv("PEER_KEEPALIVE"))
		keep_alive(listener);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (const struct sockaddr *)name, sizeof(*name)) != 0 ||
	    listen(listener, 512) != 0) {
		SAY("serve: %m\n");
		return 1;
	}
	SAY("ready\n");
	serve_all();
}
