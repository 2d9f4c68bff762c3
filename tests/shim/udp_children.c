/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: what the child of a fork changes of a file that both have. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/udp.h"

static int pair[2], set;

static void handler(int sig)
{
	(void)sig;
}

static void in_a_child(void (*change)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		change();
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

/* With a datagram behind it, so that the second one is the library's where there is one. */
static void make_used_pair(void)
{
	make_pair(pair);
	send(pair[0], "before", 6, 0);
	receive(pair[1], 0);
}

static void block(void)
{
	fcntl(pair[1], F_SETFL, 0);
}

static void block_by_ioctl(void)
{
	ioctl(pair[1], FIONBIO, &(int){ 0 });
}

static void limit_time(void)
{
	struct timeval limit = { .tv_usec = 10000 };

	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static void blocking_by_a_child(void)
{
	static void (*const ways[])(void) = { block, block_by_ioctl };
	struct sigaction act = { .sa_handler = handler };
	/* again and again, since one signal may come before the wait */
	struct itimerval often = { { .tv_usec = 50000 }, { .tv_usec = 50000 } };
	char c;

	sigaction(SIGALRM, &act, NULL);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		make_used_pair();
		fcntl(pair[1], F_SETFL, O_NONBLOCK);
		in_a_child(ways[i]);
		setitimer(ITIMER_REAL, &often, NULL);
		SAY("recv %s\n", err(recv(pair[1], &c, 1, 0)));
		setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
		close_pair(pair);
	}
}

static void time_limit_by_a_child(void)
{
	struct sigaction act = { .sa_handler = handler };
	char c;

	sigaction(SIGALRM, &act, NULL);
	make_used_pair();
	in_a_child(limit_time);
	alarm(5);
	SAY("recv %s\n", err(recv(pair[1], &c, 1, 0)));
	alarm(0);
	close_pair(pair);
}

static void disconnect(void)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	connect(pair[1], &nobody, sizeof(nobody));
}

static void disconnected_by_a_child(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	make_used_pair();
	in_a_child(disconnect);
	SAY("peer %s\n", err(getpeername(pair[1], (struct sockaddr *)&name, &len)));
	SAY("send %s\n", err(send(pair[1], "x", 1, 0)));
	close_pair(pair);
}

static void shut(void)
{
	shutdown(pair[1], SHUT_RDWR);
}

static void shutdown_by_a_child(void)
{
	struct sigaction act = { .sa_handler = handler };
	char c;

	sigaction(SIGALRM, &act, NULL);
	make_used_pair();
	in_a_child(shut);
	alarm(5);
	SAY("recv %zd\n", recv(pair[1], &c, 1, 0));
	SAY("send %s\n", err(send(pair[1], "x", 1, MSG_NOSIGNAL)));
	alarm(0);
	close_pair(pair);
}

static void wish(void)
{
	setsockopt(pair[1], IPPROTO_IP, IP_PKTINFO, &(int){ 1 }, sizeof(int));
}

static void option_by_a_child(void)
{
	char buf[8], control[128];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	make_used_pair();
	in_a_child(wish);
	send(pair[0], "after", 5, 0);
	kernels_cnt++;
	SAY("%zd bytes, ", recvmsg(pair[1], &msg, 0));
	SAY("%zu of control\n", msg.msg_controllen);
	close_pair(pair);
}

static void take_out(void)
{
	epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL);
}

static void ask_for_more(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 7 };

	epoll_ctl(set, EPOLL_CTL_MOD, pair[1], &event);
}

static void set_by_a_child(void)
{
	static void (*const changes[])(void) = { ask_for_more, take_out };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 1 };
	int cnt;

	set = epoll_create1(0);
	make_used_pair();
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	epoll_wait(set, &event, 1, 0);
	send(pair[0], "more", 4, 0);
	receive(pair[1], 0);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		in_a_child(changes[i]);
		send(pair[0], "after", 5, 0);
		settle();
		cnt = epoll_wait(set, &event, 1, 0);
		SAY("%d told", cnt);
		if (cnt == 1)
			SAY(": %x %d", event.events, (int)event.data.u64);
		SAY("\n");
		receive(pair[1], 0);
	}
	close(set);
	close_pair(pair);
}

const struct scenario child_scenarios[] = {
	SCENARIO(blocking_by_a_child, 0),
	SCENARIO(time_limit_by_a_child, 0),
	SCENARIO(disconnected_by_a_child, 0),
	SCENARIO(shutdown_by_a_child, 0),
	SCENARIO(option_by_a_child, 0),
	SCENARIO(set_by_a_child, 2),
	SCENARIO_END,
};
