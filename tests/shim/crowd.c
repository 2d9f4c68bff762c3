/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sixteen threads that do to sockets and sets, all of them shared, whatever comes to
 * their minds: open, bind, connect, send, receive, dup, dup2, close, shut down, add to
 * sets with any flags, modify, delete, wait, poll; sets are put into sets. Nothing is
 * expected of a call but that it returns. After the time, a new pair of sockets and a
 * new set must work as ever.
 *
 *   crowd SECONDS [SEED]
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/unseen.h"

enum { THREADS = 16, SLOTS = 24, SETS = 6 };

/* Numbers of fds, which may be anybody's by now. The sets are the last ones. */
static _Atomic int fds[SLOTS + SETS];
static _Atomic bool is_over;
static _Atomic unsigned long done;

/* Past the thread sanitizer, which takes an fd for memory that threads race for. */
#define CALLS(CALL)                                                            \
	CALL(socket) CALL(close) CALL(dup) CALL(setsockopt) CALL(bind)         \
	CALL(connect) CALL(sendto) CALL(recv) CALL(shutdown) CALL(poll)        \
	CALL(epoll_create1) CALL(epoll_ctl) CALL(epoll_wait)

static struct {
#define CALL(name) __typeof__(&(name)) name;
	CALLS(CALL)
#undef CALL
} calls;

static void find_calls(void)
{
#define CALL(name) calls.name = UNSEEN(name);
	CALLS(CALL)
#undef CALL
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int any_fd(uint64_t *state)
{
	return atomic_load(&fds[next(state) % (SLOTS + SETS)]);
}

static int any_set(uint64_t *state)
{
	return atomic_load(&fds[SLOTS + next(state) % SETS]);
}

static struct sockaddr_in name_at(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* A new file takes a place; the old one goes. */
static void replace(unsigned at, int fd)
{
	int old = atomic_exchange(&fds[at], fd);

	if (old >= 0)
		calls.close(old);
}

static void open_socket(uint64_t *state)
{
	unsigned at = next(state) % SLOTS;
	struct sockaddr_in name = name_at((uint16_t)(7400 + at));
	int fd = calls.socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	const int one = 1;

	calls.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (next(state) % 4)
		calls.bind(fd, (struct sockaddr *)&name, sizeof(name));
	replace(at, fd);
}

static void connect_any(uint64_t *state)
{
	struct sockaddr_in name =
		name_at((uint16_t)(7400 + next(state) % SLOTS));

	if (next(state) % 8 == 0)
		name.sin_family = AF_UNSPEC;
	calls.connect(any_fd(state), (struct sockaddr *)&name, sizeof(name));
}

static void send_any(uint64_t *state)
{
	struct sockaddr_in name =
		name_at((uint16_t)(7400 + next(state) % SLOTS));
	char buf[200] = "";

	calls.sendto(any_fd(state), buf, next(state) % sizeof(buf), MSG_DONTWAIT,
	       (struct sockaddr *)&name, sizeof(name));
}

static void receive_any(uint64_t *state)
{
	char buf[200];

	calls.recv(any_fd(state), buf, sizeof(buf), MSG_DONTWAIT);
}

static void change_any(uint64_t *state)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD,
				   EPOLL_CTL_DEL };
	static const uint32_t flags[] = { 0, EPOLLET, EPOLLONESHOT,
					  EPOLLET | EPOLLONESHOT,
					  EPOLLEXCLUSIVE };
	struct epoll_event event = {
		.events = EPOLLIN | flags[next(state) % 5] |
			  (next(state) % 4 ? 0 : EPOLLOUT),
		.data.u64 = next(state) % 4,
	};

	calls.epoll_ctl(any_set(state), ops[next(state) % 4], any_fd(state), &event);
}

static void wait_any(uint64_t *state)
{
	struct epoll_event events[8];

	calls.epoll_wait(any_set(state), events, 1 + (int)(next(state) % 8),
		   (int)(next(state) % 3));
}

static void poll_any(uint64_t *state)
{
	struct pollfd some[4];

	for (int i = 0; i < 4; i++)
		some[i] = (struct pollfd){ .fd = any_fd(state),
					   .events = POLLIN };
	calls.poll(some, 4, (int)(next(state) % 3));
}

static void copy_any(uint64_t *state)
{
	int fd = any_fd(state);

	if (fd >= 0)
		replace(next(state) % SLOTS, calls.dup(fd));
}

static void close_any(uint64_t *state)
{
	replace(next(state) % SLOTS, -1);
}

static void new_set(uint64_t *state)
{
	replace(SLOTS + next(state) % SETS, calls.epoll_create1(0));
}

static void shut_any(uint64_t *state)
{
	calls.shutdown(any_fd(state), (int)(next(state) % 3));
}

static void *live(void *arg)
{
	static void (*const deeds[])(uint64_t *) = {
		open_socket, open_socket, connect_any, send_any,  send_any,
		send_any,    receive_any, receive_any, change_any, change_any,
		change_any,  wait_any,	  wait_any,    poll_any,  copy_any,
		close_any,   new_set,	  shut_any,
	};
	uint64_t state = (uint64_t)(uintptr_t)arg;

	while (!atomic_load(&is_over)) {
		deeds[next(&state) % (sizeof(deeds) / sizeof(deeds[0]))](&state);
		atomic_fetch_add(&done, 1);
	}
	return NULL;
}

static int bound(uint16_t port)
{
	struct sockaddr_in name = name_at(port);
	int fd = calls.socket(AF_INET, SOCK_DGRAM, 0);

	return calls.bind(fd, (struct sockaddr *)&name, sizeof(name)) ? -1 : fd;
}

/* Whether all is as it was. */
static bool works(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct sockaddr_in name = name_at(7390);
	int to = bound(7390), from = bound(7391), set = calls.epoll_create1(0);
	char buf[10];

	if (calls.epoll_ctl(set, EPOLL_CTL_ADD, to, &event) != 0)
		return false;
	for (int i = 0; i < 100; i++)
		if (calls.sendto(from, "x", 1, 0, (struct sockaddr *)&name,
			   sizeof(name)) != 1 ||
		    calls.epoll_wait(set, &event, 1, 5000) != 1 ||
		    calls.recv(to, buf, sizeof(buf), MSG_DONTWAIT) != 1)
			return false;
	return calls.epoll_wait(set, &event, 1, 0) == 0;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	pthread_t threads[THREADS];

	find_calls();
	for (int i = 0; i < SLOTS + SETS; i++)
		atomic_init(&fds[i], i < SLOTS ? -1 : calls.epoll_create1(0));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, live,
			       (void *)(uintptr_t)(seed * 1000003 + i));
	sleep((unsigned)seconds);
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "seed %llu: %lu calls\n", (unsigned long long)seed,
		atomic_load(&done));
	for (int i = 0; i < SLOTS + SETS; i++)
		replace((unsigned)i, -1);
	puts(works() ? "works" : "does not work");
	return 0;
}
