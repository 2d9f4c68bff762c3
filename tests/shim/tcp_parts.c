/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: calls that end when they have done a part. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"

/* -- a batch that does not fit ---------------------------------------------------------- */

enum { BATCH = 16, BATCH_LEN = 300000 };

/* Byte by byte what the messages say, each as far as it was sent. */
static void *compare_batches(void *arg)
{
	int fd = *(int *)arg;
	static char buf[65536];
	size_t wrong_cnt = 0;
	unsigned char next = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		for (ssize_t i = 0; i < n; i++)
			wrong_cnt += (unsigned char)buf[i] != next++;
	return (void *)wrong_cnt;
}

/* While somebody reads there is room again at any moment. What comes after a message of which
 * only a part was sent is for the next call. */
static void batches_that_do_not_fit(void)
{
	enum { LEN = BATCH * BATCH_LEN };
	/* from where the whole begins in 256 ways */
	char *text = malloc(LEN + 256);
	struct iovec iov[BATCH];
	struct mmsghdr msgs[BATCH] = { 0 };
	pthread_t reader;
	int pair[2], bad_cnt = 0;
	void *wrong;

	for (int i = 0; i < LEN + 256; i++)
		text[i] = (char)i;
	for (int i = 0; i < BATCH; i++)
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	make_pair(pair);
	pthread_create(&reader, NULL, compare_batches, &pair[1]);
	for (size_t sent = 0, round = 0; round < 200; round++) {
		int n;

		for (int i = 0; i < BATCH; i++)
			iov[i] = (struct iovec){ text + sent % 256 + i * BATCH_LEN,
						 BATCH_LEN };
		n = sendmmsg(pair[0], msgs, BATCH, MSG_DONTWAIT);
		if (n < 0)
			await(pair[0], POLLOUT);
		for (int i = 0; i < n; i++) {
			sent += msgs[i].msg_len;
			bad_cnt += i < n - 1 && msgs[i].msg_len < BATCH_LEN;
		}
	}
	shutdown(pair[0], SHUT_WR);
	pthread_join(reader, &wrong);
	SAY("parts in the middle: %d, wrong bytes: %zu\n", bad_cnt, (size_t)wrong);
	close_pair(pair);
	free(text);
}

/* -- handlers ------------------------------------------------------------------------- */

enum part { PART_OF_ALL, PART_OF_A_BATCH, PART_OF_A_SEND, PARTS };

enum { SENT_LEN = 64 << 20 };

struct caller {
	enum part part;
	int fd;
	char *text;
	pthread_t thread;
	_Atomic pid_t tid;
	long n;
	/* of the child that the handler makes, in memory that both have */
	_Atomic long *childs_n;
};

static long receive_batch(int fd)
{
	char buf[2][4];
	struct iovec iov[2] = { { buf[0], 4 }, { buf[1], 4 } };
	struct mmsghdr msgs[2] = { 0 };

	for (int i = 0; i < 2; i++)
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	return recvmmsg(fd, msgs, 2, 0, NULL);
}

/* Two threads come out of this when the handler forks. */
static void *call(void *arg)
{
	struct caller *c = arg;
	pid_t pid = getpid();
	char buf[8];
	long n;

	c->tid = gettid();
	switch (c->part) {
	case PART_OF_ALL:
		n = recv(c->fd, buf, sizeof(buf), MSG_WAITALL);
		break;
	case PART_OF_A_BATCH:
		n = receive_batch(c->fd);
		break;
	default:
		n = send(c->fd, c->text, SENT_LEN, MSG_NOSIGNAL);
	}
	if (getpid() != pid) {
		*c->childs_n = n;
		_exit(0);
	}
	c->n = n;
	return NULL;
}

/* Returns when it has a part, and waits for more. */
static void start_call(struct caller *c, const int pair[2])
{
	int cnt = 1;

	*c->childs_n = -1;
	c->tid = 0;
	c->fd = pair[0];
	if (c->part != PART_OF_A_SEND)
		send(pair[1], "abcd", 4, 0);
	pthread_create(&c->thread, NULL, call, c);
	while (!c->tid)
		sched_yield();
	if (c->part != PART_OF_A_SEND)
		await_acks(pair[1]);
	while (c->part != PART_OF_A_SEND && cnt)
		if (ioctl(c->fd, FIONREAD, &cnt) != 0)
			break;
	sleeper_await(c->tid);
}

static void say_part(struct caller *c)
{
	pthread_join(c->thread, NULL);
	if (c->part == PART_OF_A_SEND)
		SAY("%d: a part %d", c->part, c->n > 0 && c->n < SENT_LEN);
	else
		SAY("%d: %ld", c->part, c->n);
}

static _Atomic pid_t child;

static void do_nothing(int sig)
{
	(void)sig;
}

static void fork_here(int sig)
{
	pid_t pid = fork();

	(void)sig;
	if (pid)
		child = pid;
	else
		alarm(5);
}

static struct caller caller_with_memory(void)
{
	return (struct caller){
		.text = mmap(NULL, SENT_LEN, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		.childs_n = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	};
}

/* With a part, SA_RESTART restarts nothing. */
static void handlers_behind_a_part(void)
{
	struct caller c = caller_with_memory();
	int pair[2];

	for (int flags = 0;; flags = SA_RESTART) {
		struct sigaction act = { .sa_handler = do_nothing, .sa_flags = flags };

		sigaction(SIGUSR1, &act, NULL);
		for (c.part = 0; c.part < PARTS; c.part++) {
			make_pair(pair);
			start_call(&c, pair);
			pthread_kill(c.thread, SIGUSR1);
			say_part(&c);
			SAY("\n");
			reset(pair[1]);
			close(pair[0]);
		}
		if (flags)
			break;
	}
}

/* The call returns in both processes, with the same part. */
static void forks_behind_a_part(void)
{
	struct caller c = caller_with_memory();
	int pair[2], status = -1;

	signal(SIGUSR1, fork_here);
	for (c.part = 0; c.part < PARTS; c.part++) {
		make_pair(pair);
		start_call(&c, pair);
		pthread_kill(c.thread, SIGUSR1);
		say_part(&c);
		waitpid(child, &status, 0);
		SAY(", child %d: the same %d\n", status, *c.childs_n == c.n);
		close_pair(pair);
	}
}

const struct scenario part_scenarios[] = {
	SCENARIO(batches_that_do_not_fit, OURS),
	SCENARIO(handlers_behind_a_part, OURS),
	SCENARIO(forks_behind_a_part, MIXED),
	SCENARIO_END,
};
