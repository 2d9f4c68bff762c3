/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stats.sh looks at: traffic over loopback whose counts are known. Says
 * "ready", and ends when its standard input does.
 *
 *   stats SCENARIO [N]
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static void must(int is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	exit(1);
}

static int bound(uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0,
	     "bind");
	return fd;
}

static void join(int fd, uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };

	must(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0,
	     "connect");
}

/* The first on fd 3 and port 7301, the second on 4 and 7302. */
static void make_pair(int pair[2])
{
	pair[0] = bound(7301);
	pair[1] = bound(7302);
	join(pair[0], 7302);
	join(pair[1], 7301);
}

static void stay(void)
{
	char c;

	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

/* Lets what is under way arrive, more than a poll takes. */
static void gather(int fd)
{
	int len;

	for (int i = 0; i < 20; i++)
		must(ioctl(fd, FIONREAD, &len) == 0, "FIONREAD");
}

/* 100 datagrams of 1,000 bytes from 3 to 4, which takes 90 of them, 10 into a
 * buffer that is too short; a peek; one of 500 bytes back, found by polling; and 3
 * asks 5 times for what is not there. */
static void exchange(int pair[2])
{
	char buf[1000] = "";

	for (int i = 0; i < 100; i++)
		must(send(pair[0], buf, sizeof(buf), 0) == sizeof(buf), "send");
	gather(pair[1]);
	must(recv(pair[1], buf, sizeof(buf), MSG_PEEK) == sizeof(buf), "peek");
	for (int i = 0; i < 90; i++)
		must(recv(pair[1], buf, i < 10 ? 10 : sizeof(buf), 0) > 0,
		     "recv");
	must(send(pair[1], buf, 500, 0) == 500, "send");
	must(recv(pair[0], buf, sizeof(buf), 0) == 500, "recv");
	for (int i = 0; i < 5; i++)
		must(recv(pair[0], buf, sizeof(buf), MSG_DONTWAIT) < 0,
		     "nothing");
}

static void traffic(int n)
{
	int pair[2];

	(void)n;
	make_pair(pair);
	exchange(pair);
	stay();
}

/* The same for each line that it is given. */
static void on_demand(int n)
{
	char c;
	int pair[2];

	(void)n;
	make_pair(pair);
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		exchange(pair);
}

/* By an option that the kernel alone serves. */
static void give_to_kernel(int fd)
{
	const int segment = 1400;

	must(setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment,
			sizeof(segment)) == 0, "setsockopt");
}

/* 4 goes back to the kernel: 7 sent and 7 received there, in each form, and one
 * that fails. */
static void by_kernel(int n)
{
	struct iovec iov = { (char[10]){ 0 }, 10 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr msgs[2] = { { .msg_hdr = msg }, { .msg_hdr = msg } };
	char buf[100];
	int plain = socket(AF_INET, SOCK_DGRAM, 0);
	int fd = bound(7302);

	(void)n;
	give_to_kernel(fd);
	join(fd, 7302);
	must(write(fd, buf, 10) == 10, "write");
	must(writev(fd, &iov, 1) == 10, "writev");
	must(send(fd, buf, 10, 0) == 10, "send");
	must(sendto(fd, buf, 10, 0, NULL, 0) == 10, "sendto");
	must(sendmsg(fd, &msg, 0) == 10, "sendmsg");
	must(sendmmsg(fd, msgs, 2, 0) == 2, "sendmmsg");
	must(send(fd, buf, sizeof(buf), MSG_OOB) < 0, "failure");
	must(read(fd, buf, 10) == 10, "read");
	must(readv(fd, &iov, 1) == 10, "readv");
	must(recv(fd, buf, 10, MSG_PEEK) == 10, "peek");
	must(recv(fd, buf, 10, 0) == 10, "recv");
	must(recvfrom(fd, buf, 10, 0, NULL, NULL) == 10, "recvfrom");
	must(recvmsg(fd, &msg, 0) == 10, "recvmsg");
	must(recvmmsg(fd, msgs, 2, 0, NULL) == 2, "recvmmsg");
	must(recv(fd, buf, 10, MSG_DONTWAIT) < 0, "nothing");
	close(plain);
	stay();
}

/* Buffers that cannot be: 3 of ours, and one that the kernel gets. */
static void failures(int n)
{
	/* not for the compiler to see through */
	char *volatile nowhere = (char *)16;
	int pair[2], fd;

	(void)n;
	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		must(send(pair[0], "x", 1, 0) == 1, "send");
		must(recv(pair[1], nowhere, 1, 0) < 0, "recv");
	}
	fd = bound(7303);
	give_to_kernel(fd);
	join(fd, 7303);
	must(send(fd, "x", 1, 0) == 1, "send");
	must(recv(fd, nowhere, 1, 0) < 0, "recv");
	stay();
}

/* More than 4 takes. */
static void flood(int n)
{
	char buf[1000] = "";
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < n; i++)
		must(send(pair[0], buf, sizeof(buf), 0) == sizeof(buf), "send");
	gather(pair[1]);
	stay();
}

/* With room for 4 on the way: 10 that shall not wait, of which the last 6 end with
 * `err` or, if it is 0, are lost in silence; and some that wait in vain. Linux says of a queue that
 * loses them only to whom asks for all errors. */
static void full(int err)
{
	struct timeval limit = { .tv_usec = 50000 };
	int pair[2], on = 1;

	make_pair(pair);
	for (int i = 0; i < 10; i++) {
		long n = send(pair[0], "x", 1, MSG_DONTWAIT);

		must(i < 4 || !err ? n == 1 : n < 0 && errno == err, "send");
	}
	must(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0,
	     "SO_SNDTIMEO");
	must(send(pair[0], "x", 1, 0) < 0 && errno == EAGAIN, "send with a limit");
	limit.tv_usec = 0;
	must(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0,
	     "no SO_SNDTIMEO");
	for (int i = 0; i < 2; i++)
		must(send(pair[0], "x", 1, 0) == 1, "send that is lost");
	must(setsockopt(pair[0], IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) == 0, "IP_RECVERR");
	must(send(pair[0], "x", 1, 0) < 0 && errno == ENOBUFS, "send that says so");
	gather(pair[1]);
	must(send(pair[0], "x", 1, 0) == 1, "send when there is room");
	stay();
}

static _Atomic unsigned handled;

static void handle(int sig)
{
	(void)sig;
	handled++;
}

/* A signal each millisecond, whose handler has these flags; it takes the time of alarm(). */
static void signal_often(int flags)
{
	const struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	must(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	must(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
}

/* The same room: sends that wait sleep, and handlers end them or do not, as on Linux. */
static void full_for_long(int n)
{
	struct timeval limit = { .tv_sec = 10 };
	struct rusage before, after;
	int pair[2];

	(void)n;
	make_pair(pair);
	for (int i = 0; i < 4; i++)
		must(send(pair[0], "x", 1, 0) == 1, "send");
	signal_often(0);
	must(send(pair[0], "x", 1, 0) < 0 && errno == EINTR, "interrupted send");
	signal_often(SA_RESTART);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	must(send(pair[0], "x", 1, 0) < 0 && errno == EINTR, "interrupted send with a limit");
	limit.tv_sec = 0;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	handled = 0;
	must(send(pair[0], "x", 1, 0) == 1, "send that goes on");
	must(handled > 0, "a handler beside it");
	alarm(60);
	signal(SIGALRM, SIG_DFL);
	gather(pair[1]);
	for (int i = 0; i < 4; i++)
		must(send(pair[0], "x", 1, 0) == 1, "send");
	getrusage(RUSAGE_THREAD, &before);
	must(send(pair[0], "x", 1, 0) == 1, "send that sleeps");
	getrusage(RUSAGE_THREAD, &after);
	must(after.ru_nvcsw - before.ru_nvcsw > 10, "its sleeps");
	stay();
}

/* Each way of waiting once with data, and once in vain. */
static void waits(int n)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd fd;
	struct timeval none = { 0 };
	int pair[2], set = epoll_create1(0);
	fd_set in;

	(void)n;
	make_pair(pair);
	must(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event) == 0, "epoll_ctl");
	fd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	FD_ZERO(&in);
	for (int i = 0; i < 2; i++) {
		FD_SET(pair[1], &in);
		must(poll(&fd, 1, 0) == i, "poll");
		must(select(pair[1] + 1, &in, NULL, NULL, &none) == i,
		     "select");
		must(epoll_wait(set, &event, 1, i ? -1 : 0) == i, "epoll_wait");
		if (!i)
			must(send(pair[0], "x", 1, 0) == 1, "send");
	}
	stay();
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* For more than a second: looks at an empty set and polls an empty socket, again and
 * again; with n each call sleeps. */
static void waits_long(int n)
{
	struct epoll_event event = { .events = EPOLLIN };
	double end = seconds() + 2.5;
	struct pollfd fd;
	int pair[2], set = epoll_create1(0);

	make_pair(pair);
	must(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event) == 0, "epoll_ctl");
	fd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	while (seconds() < end) {
		must(epoll_wait(set, &event, 1, n) == 0, "epoll_wait");
		if (n)
			must(poll(&fd, 1, n) == 0, "poll");
	}
	stay();
}

static void nothing(int sig)
{
	(void)sig;
}

/* poll: once asleep until time is over, once asleep until a signal, and once with
 * a pipe that is readable beside a socket that is not. */
static void waits_in_vain(int n)
{
	/* again and again, since the first may come before the call */
	const struct itimerval soon = { { .tv_usec = 50000 }, { .tv_usec = 50000 } };
	const struct itimerval never = { 0 };
	struct sigaction action = { .sa_handler = nothing };
	struct pollfd fds[2];
	int pair[2], ends[2];

	(void)n;
	make_pair(pair);
	must(pipe(ends) == 0, "pipe");
	fds[0] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	must(poll(fds, 2, 20) == 0, "poll");
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	must(poll(fds, 2, -1) < 0 && errno == EINTR, "interrupted poll");
	setitimer(ITIMER_REAL, &never, NULL);
	must(write(ends[1], "x", 1) == 1 && poll(fds, 2, -1) == 1,
	     "poll of a pipe");
	stay();
}

/* A listener on fd 3 and port 7304, 4 connected to it, 5 accepted. */
static void open_stream(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(7304),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(listener, (struct sockaddr *)&name, sizeof(name)) == 0 &&
		     listen(listener, 5) == 0,
	     "listen");
	/* which makes it ours */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	must(accept(listener, NULL, NULL) < 0, "accept of nothing");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	join(fd, 7304);
	must(fd == 4 && accept(listener, NULL, NULL) == 5, "accept");
}

/* 4 sends four times 1,000 bytes, of which 5 takes 400. With n the end of 4 follows. */
static void stream(int n)
{
	char buf[1000] = "";

	open_stream();
	for (int i = 0; i < 4; i++)
		must(send(4, buf, sizeof(buf), 0) == sizeof(buf), "send");
	must(recv(5, buf, 400, 0) == 400, "recv");
	if (n)
		must(shutdown(4, SHUT_WR) == 0, "shutdown");
	stay();
}

/* A short request of 4 behind datagrams that leave no place for it. It is not sent again, by a
 * probe neither. With n it is none that follows an answer, and goes the shortest way. */
static void request(int n)
{
	struct tcp_info info;
	socklen_t info_len = sizeof(info);
	char buf[64] = "";
	int pair[2], one = 1;

	open_stream();
	make_pair(pair);
	must(send(4, buf, sizeof(buf), 0) == sizeof(buf) &&
		     recv(5, buf, sizeof(buf), MSG_WAITALL) == sizeof(buf) &&
		     send(5, buf, 1, 0) == 1 && recv(4, buf, 1, 0) == 1,
	     "exchange");
	if (n)
		must(setsockopt(4, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
			     send(4, buf, 1, 0) == 1 && recv(5, buf, 1, 0) == 1,
		     "what goes before");
	while (send(pair[0], "x", 1, MSG_DONTWAIT) == 1)
		;
	must(errno == EAGAIN, "send without room");
	must(send(4, buf, sizeof(buf), 0) == sizeof(buf), "send");
	must(recv(5, buf, sizeof(buf), MSG_WAITALL) == sizeof(buf), "recv");
	must(getsockopt(4, IPPROTO_TCP, TCP_INFO, &info, &info_len) == 0, "TCP_INFO");
	must(!info.tcpi_total_retrans, "a request that was sent again");
	stay();
}

/* The same of one that is followed: it is said once that it was scheduled, and that it left. */
static void followed_request(int n)
{
	int flags = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE |
		    SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
	struct msghdr none = { .msg_name = NULL };
	char buf[64] = "";
	int pair[2];

	(void)n;
	open_stream();
	make_pair(pair);
	must(setsockopt(4, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0,
	     "SO_TIMESTAMPING");
	while (send(pair[0], "x", 1, MSG_DONTWAIT) == 1)
		;
	must(errno == EAGAIN, "send without room");
	must(send(4, buf, sizeof(buf), 0) == sizeof(buf), "send");
	must(recv(5, buf, sizeof(buf), MSG_WAITALL) == sizeof(buf), "recv");
	for (n = 0; recvmsg(4, &none, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0; n++)
		;
	must(n == 2, "scheduled and sent");
	stay();
}

/* A listener on fd 3 and port 7304, from which nobody has accepted. */
static void listener(int n)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(7304),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	(void)n;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 5) == 0,
	     "listen");
	stay();
}

/* The same, and 4 wishes for time stamps of what it sends. */
static void stamped_stream(int n)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(7304),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
	int flags = SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE;

	(void)n;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(listener, (struct sockaddr *)&name, sizeof(name)) == 0 &&
		     listen(listener, 5) == 0,
	     "listen");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	join(fd, 7304);
	must(accept(listener, NULL, NULL) == 5, "accept");
	must(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
			sizeof(flags)) == 0,
	     "setsockopt");
	stay();
}

/* Every kind of socket that the library is asked for; n bound ones. */
static void kinds(int n)
{
	for (int i = 0; i < n; i++)
		bound((uint16_t)(7400 + i));
	(void)!socket(AF_INET, SOCK_STREAM, 0);
	(void)!socket(AF_INET, SOCK_STREAM, 0);
	stay();
}

/* The child's socket has a file of the child's. */
static void child(int n)
{
	char buf[10];
	int pair[2];
	pid_t pid;

	(void)n;
	make_pair(pair);
	pid = fork();
	if (pid == 0) {
		bound(7303);
		send(pair[0], buf, sizeof(buf), 0);
		printf("child %d\n", getpid());
		stay();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void ends_at_once(int n)
{
	int pair[2];

	make_pair(pair);
	exchange(pair);
	if (n == 0)
		_exit(0);
	close(pair[1]);
}

static void becomes_another(int n)
{
	char *argv[] = { (char *)"/nowhere", NULL };
	char *cat[] = { (char *)"cat", NULL };
	int pair[2];

	(void)n;
	make_pair(pair);
	execv(argv[0], argv);
	stay();
	printf("going\n");
	fflush(stdout);
	execvp(cat[0], cat);
}

/* A daemon that has started as root: by setuid, setreuid or setresuid. */
static void becomes_nobody(int n)
{
	const uid_t nobody = 65534;
	int pair[2];

	make_pair(pair);
	must(seteuid(nobody) == 0 && seteuid(0) == 0, "seteuid");
	must((n == 0   ? setuid(nobody) :
	      n == 1   ? setreuid(nobody, nobody) :
			 setresuid(nobody, nobody, nobody)) == 0,
	     "setuid");
	stay();
}

static const struct {
	const char *name;
	void (*run)(int n);
} scenarios[] = {
	{ "traffic", traffic },
	{ "on_demand", on_demand },
	{ "by_kernel", by_kernel },
	{ "failures", failures },
	{ "flood", flood },
	{ "full", full },
	{ "full_for_long", full_for_long },
	{ "waits", waits },
	{ "waits_in_vain", waits_in_vain },
	{ "waits_long", waits_long },
	{ "stream", stream },
	{ "request", request },
	{ "followed_request", followed_request },
	{ "stamped_stream", stamped_stream },
	{ "listener", listener },
	{ "kinds", kinds },
	{ "child", child },
	{ "ends_at_once", ends_at_once },
	{ "becomes_another", becomes_another },
	{ "becomes_nobody", becomes_nobody },
};

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0;

	alarm(60);
	/* what make leaves open: our first socket is to be 3 */
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(scenarios); i++) {
		if (strcmp(argv[1], scenarios[i].name) != 0)
			continue;
		scenarios[i].run(n);
		return 0;
	}
	return 2;
}
