/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: the urgent byte, its mark and its signal. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

static void say_mark(int fd)
{
	int is_there = -1;

	SAY("ioctl %s", err(ioctl(fd, SIOCATMARK, &is_there)));
	SAY(" at the mark %d, sockatmark %d\n", is_there, sockatmark(fd));
}

static void urgent_byte(void)
{
	int pair[2];

	make_pair(pair);
	say_mark(pair[1]);
	SAY("none %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_OOB)));
	say_sent(pair[0], "before", 0);
	say_sent(pair[0], "!", MSG_OOB);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLPRI));
	say_sent(pair[0], "after", 0);
	await_bytes(pair[1], 6);
	say_mark(pair[1]);
	receive(pair[1], MSG_OOB | MSG_PEEK);
	receive(pair[1], MSG_OOB);
	SAY("again %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_OOB)));
	receive(pair[1], 0);
	say_mark(pair[1]);
	await_acks(pair[0]);
	receive(pair[1], 0);
	say_mark(pair[1]);
	/* of several bytes the last one is it, and the newest of several */
	say_sent(pair[0], "abc", MSG_OOB);
	await(pair[1], POLLPRI);
	await_bytes(pair[1], 2);
	say_sent(pair[0], "xyz", MSG_OOB);
	await_acks(pair[0]);
	receive(pair[1], MSG_OOB);
	receive(pair[1], 0);
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

/* What is told of the urgent byte, and then of the stream, to whom the byte is not in the
 * stream. Nothing here may wait. */
static void say_urgent(int fd)
{
	char byte = '-';
	ssize_t n = recv(fd, &byte, 1, MSG_OOB | MSG_DONTWAIT);

	SAY("urgent: %zd %s %c\n", n, err(n), byte);
}

/* The urgent byte is the last one, and what comes behind it is an end. */
static void urgent_byte_at_the_end(void)
{
	struct iovec none = { NULL, 0 };
	struct msghdr msg = { .msg_iov = &none, .msg_iovlen = 1 };
	int pair[2];
	ssize_t n;

	for (int round = 0; round < 6; round++) {
		SAY("round %d\n", round);
		make_pair(pair);
		say_sent(pair[0], round & 1 ? "!" : "data!", MSG_OOB);
		shutdown(pair[0], SHUT_WR);
		await(pair[1], POLLRDHUP);
		if (round < 2)
			say_urgent(pair[1]);
		if (round >= 4)
			receive(pair[1], MSG_PEEK | MSG_DONTWAIT);
		for (int i = 0; i < 3; i++)
			receive(pair[1], MSG_DONTWAIT);
		say_mark(pair[1]);
		say_urgent(pair[1]);
		close_pair(pair);
	}
	/* nothing behind it, and no end: who reads has passed it */
	make_pair(pair);
	say_sent(pair[0], "!", MSG_OOB);
	await(pair[1], POLLPRI);
	receive(pair[1], MSG_PEEK | MSG_DONTWAIT);
	say_mark(pair[1]);
	n = recvmsg(pair[1], &msg, MSG_OOB | MSG_PEEK);
	SAY("without room %zd %#x\n", n, (unsigned)msg.msg_flags);
	receive(pair[1], MSG_DONTWAIT);
	say_mark(pair[1]);
	say_urgent(pair[1]);
	say_sent(pair[0], "on", 0);
	await_bytes(pair[1], 2);
	receive(pair[1], 0);
	/* a reset takes it along */
	say_sent(pair[0], "!", MSG_OOB);
	await(pair[1], POLLPRI);
	reset(pair[0]);
	await(pair[1], POLLRDHUP);
	say_urgent(pair[1]);
	say_error(pair[1]);
	close(pair[1]);
}

/* A look ends at the mark as a read does, and goes on behind the byte. */
/* It can still be read. */
static void urgent_byte_before_a_reset(void)
{
	struct pollfd pfd = { .events = POLLIN | POLLPRI };
	char byte = 0;
	int pair[2];

	make_pair(pair);
	SAY("oob %zd\n", send(pair[0], "ab", 2, MSG_OOB));
	await(pair[1], POLLPRI);
	reset(pair[0]);
	await(pair[1], POLLHUP);
	pfd.fd = pair[1];
	poll(&pfd, 1, 0);
	SAY("events %#x", (unsigned)pfd.revents);
	SAY(", oob %s", err(recv(pair[1], &byte, 1, MSG_OOB)));
	SAY(" %c\n", byte ? byte : '-');
	close(pair[1]);
}

static void looks_at_the_mark(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "before!", MSG_OOB);
	await(pair[1], POLLPRI);
	say_sent(pair[0], "after", 0);
	await_acks(pair[0]);
	receive(pair[1], MSG_PEEK);
	receive(pair[1], 0);
	receive(pair[1], MSG_PEEK);
	say_mark(pair[1]);
	receive(pair[1], MSG_OOB | MSG_PEEK);
	receive(pair[1], 0);
	say_mark(pair[1]);
	close_pair(pair);
}

static void urgent_byte_in_line(void)
{
	int pair[2];

	make_pair(pair);
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_OOBINLINE, 1)));
	say_sent(pair[0], "before", 0);
	say_sent(pair[0], "!", MSG_OOB);
	say_sent(pair[0], "after", 0);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLPRI));
	await_bytes(pair[1], 6);
	await_acks(pair[0]);
	SAY("apart %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_OOB)));
	receive(pair[1], 0);
	say_mark(pair[1]);
	receive(pair[1], 0);
	say_mark(pair[1]);
	close_pair(pair);
}

/* Who waits for all of it gets what lies before the mark, and then what is behind it. */
static void waits_end_at_the_mark(void)
{
	const int flags[] = { MSG_WAITALL | MSG_PEEK, MSG_WAITALL, MSG_WAITALL };
	struct timeval limit = { .tv_sec = 2 };
	char bytes[8];
	int pair[2];

	make_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	say_sent(pair[0], "ab", 0);
	say_sent(pair[0], "!", MSG_OOB);
	say_sent(pair[0], "cd", 0);
	await_acks(pair[0]);
	for (int i = 0; i < 3; i++)
		SAY("%zd of 4\n", recv(pair[1], bytes, i == 2 ? 2 : 4, flags[i]));
	close_pair(pair);
}

static void say_readable(int fd, int first, int last)
{
	for (int lowat = first; lowat <= last; lowat++) {
		struct pollfd one = { .fd = fd, .events = POLLIN };

		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
		SAY("%d for who wants %d\n", poll(&one, 1, 0), lowat);
	}
}

/* poll() counts what is behind the mark, too. */
static void polls_beyond_the_mark(void)
{
	char bytes[8];
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "ab", 0);
	say_sent(pair[0], "!", MSG_OOB);
	say_sent(pair[0], "cd", 0);
	await_acks(pair[0]);
	say_readable(pair[1], 2, 6);
	SAY("%zd of 4\n", recv(pair[1], bytes, 4, 0));
	say_readable(pair[1], 1, 4);
	close_pair(pair);
}

/* A batch ends with the urgent byte, as there is one alone, and what follows is none of it. */
static void batch_of_urgent_bytes(void)
{
	char bytes[2];
	struct iovec iov[] = { { &bytes[0], 1 }, { &bytes[1], 1 } };
	struct mmsghdr msgs[] = { { .msg_hdr = { .msg_iov = &iov[0], .msg_iovlen = 1 } },
				  { .msg_hdr = { .msg_iov = &iov[1], .msg_iovlen = 1 } } };
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "!", MSG_OOB);
	await(pair[1], POLLPRI);
	SAY("recvmmsg %d\n", recvmmsg(pair[1], msgs, 2, MSG_OOB, NULL));
	SAY("recv %s\n", err(recv(pair[1], bytes, 1, MSG_DONTWAIT)));
	close_pair(pair);
}

static _Atomic int urgent_cnt;

static void count_urgent(int sig)
{
	(void)sig;
	urgent_cnt++;
}

static void urgent_signal(void)
{
	int pair[2];

	make_pair(pair);
	signal(SIGURG, count_urgent);
	SAY("owner %s\n", err(fcntl(pair[1], F_SETOWN, getpid())));
	SAY("is it: %d\n", fcntl(pair[1], F_GETOWN) == getpid());
	say_sent(pair[0], "!", MSG_OOB);
	for (int i = 0; i < 5000 && !urgent_cnt; i++)
		sleep_ms(1);
	SAY("%d signals\n", urgent_cnt);
	receive(pair[1], MSG_OOB);
	close_pair(pair);
}

static _Atomic int urgent_tid;

static void note_thread(int sig)
{
	(void)sig;
	urgent_tid = (int)gettid();
}

static bool is_pending(int sig)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, sig);
}

/* Of a connection whose owner is a thread, which F_SETOWN_EX can name. It waits for the
 * thread while that blocks it, though another would take it. */
static void *own_urgent(void *arg)
{
	const int *pair = arg;
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = gettid() };
	sigset_t urgent;

	SAY("owner %s\n", err(fcntl(pair[1], F_SETOWN_EX, &owner)));
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_BLOCK, &urgent, NULL);
	say_sent(pair[0], "!", MSG_OOB);
	for (int i = 0; i < 5000 && !urgent_tid && !is_pending(SIGURG); i++)
		sleep_ms(1);
	pthread_sigmask(SIG_UNBLOCK, &urgent, NULL);
	SAY("the thread that is named: %d\n", urgent_tid == owner.pid);
	return NULL;
}

static void urgent_signal_for_a_thread(void)
{
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	signal(SIGURG, note_thread);
	pthread_create(&thread, NULL, own_urgent, pair);
	pthread_join(thread, NULL);
	receive(pair[1], MSG_OOB);
	close_pair(pair);
}

static void make_pair_with_mark(int pair[2])
{
	make_pair(pair);
	say_sent(pair[0], "before", 0);
	say_sent(pair[0], "!", MSG_OOB);
	await(pair[1], POLLPRI);
}

/* It was read, and what was before it. */
static void urgent_byte_and_a_child(void)
{
	int pair[2];
	pid_t pid;

	make_pair_with_mark(pair);
	receive(pair[1], MSG_OOB);
	receive(pair[1], 0);
	say_sent(pair[0], "behind", 0);
	await_bytes(pair[1], 6);
	pid = fork();
	if (pid == 0) {
		receive(pair[1], 0);
		send_all(pair[1], "the child", 9);
		_exit(0);
	}
	await_child(pid);
	receive(pair[0], 0);
	close_pair(pair);
}

/* It is not of what a reset connection still has to give. */
static void urgent_byte_and_a_child_of_a_reset(void)
{
	int pair[2];
	pid_t pid;

	make_pair_with_mark(pair);
	say_sent(pair[0], "behind", 0);
	await_acks(pair[0]);
	receive(pair[1], MSG_OOB);
	setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 },
		   sizeof(struct linger));
	close(pair[0]);
	await(pair[1], POLLHUP);
	pid = fork();
	if (pid == 0) {
		receive_to_end(pair[1]);
		_exit(0);
	}
	await_child(pid);
	close(pair[1]);
}

const struct scenario urgent_scenarios[] = {
	SCENARIO(urgent_byte, OURS),
	SCENARIO(urgent_byte_at_the_end, OURS),
	SCENARIO(urgent_byte_before_a_reset, OURS),
	SCENARIO(looks_at_the_mark, OURS),
	SCENARIO(waits_end_at_the_mark, OURS),
	SCENARIO(polls_beyond_the_mark, OURS),
	SCENARIO(batch_of_urgent_bytes, OURS),
	SCENARIO(urgent_byte_in_line, MIXED),
	SCENARIO(urgent_signal, MIXED),
	SCENARIO(urgent_signal_for_a_thread, MIXED),
	SCENARIO(urgent_byte_and_a_child, MIXED),
	SCENARIO(urgent_byte_and_a_child_of_a_reset, MIXED),
	SCENARIO_END,
};
