/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: options of UDP sockets, by one thread. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"

/* What is about a datagram's way through the kernel changes nothing of it. */
static void options_of_the_way(void)
{
	struct sockaddr_in elsewhere = { .sin_family = AF_INET };
	struct vlan_ioctl_args vlan = { .cmd = GET_VLAN_VID_CMD, .device1 = "lo" };
	int pair[2], value = 3, one = 1, fd;
	socklen_t len = sizeof(value);

	make_pair(pair);
	SAY("confirm: %zd\n", send(pair[0], "confirmed", 9,
				   MSG_CONFIRM | MSG_NOSIGNAL));
	receive(pair[1], 0);
	SAY("priority: %s\n", err(setsockopt(pair[0], SOL_SOCKET, SO_PRIORITY,
					     &value, sizeof(value))));
	value = 0;
	getsockopt(pair[0], SOL_SOCKET, SO_PRIORITY, &value, &len);
	for (int i = 0; i < 10; i++)
		send(pair[0], "with priority", 13, 0);
	for (int i = 0; i < 10; i++)
		receive(pair[1], 0);
	SAY("priority %d, ", value);
	SAY("%s, ", err(ioctl(pair[0], SIOCOUTQ, &value)));
	SAY("%d bytes on their way\n", value);
	SAY("of a VLAN: %s\n", err(ioctl(pair[0], SIOCGIFVLAN, &vlan)));
	inet_pton(AF_INET, "198.51.100.7", &elsewhere.sin_addr);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	SAY("bind: %s\n", err(bind(fd, (struct sockaddr *)&elsewhere,
				   sizeof(elsewhere))));
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	SAY("freebind: %s\n", err(bind(fd, (struct sockaddr *)&elsewhere,
				       sizeof(elsewhere))));
	close(fd);
	close_pair(pair);
}

/* One call, three datagrams. */
static void segments(void)
{
	char buf[256];
	int pair[2], size = 100;

	make_pair(pair);
	send(pair[0], "whole", 5, 0);
	receive(pair[1], 0);
	SAY("segment: %s\n", err(setsockopt(pair[0], IPPROTO_UDP, UDP_SEGMENT,
					    &size, sizeof(size))));
	fill(buf, 250, 1);
	SAY("send: %zd\n", send(pair[0], buf, 250, 0));
	for (int i = 0; i < 3; i++) {
		ssize_t n = recv(pair[1], buf, sizeof(buf), 0);

		SAY("recv: %zd %08x\n", n, n > 0 ? sum(buf, (size_t)n) : 0);
		received_cnt++;
	}
	close_pair(pair);
}

/* What a socket has from others than the peer that it has by now stays its own when it
 * leaves: the kernel's socket would not take it. */
static void earlier_peers_at_a_leave(void)
{
	struct sockaddr_in own, first, second;
	int fd = bound(&own), a = bound(&first), b = bound(&second);
	int size = 100;

	sendto(a, "early", 5, 0, (struct sockaddr *)&own, sizeof(own));
	settle();
	SAY("connect: %s\n",
	    err(connect(fd, (struct sockaddr *)&second, sizeof(second))));
	send_by_kernel(b, "before", &own);
	settle();
	SAY("segment: %s\n", err(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size,
					    sizeof(size))));
	receive(fd, 0);
	receive(fd, 0);
	sendto(b, "late", 4, 0, (struct sockaddr *)&own, sizeof(own));
	settle();
	receive(fd, 0);
	SAY("no more: %s\n", err(recv(fd, &size, sizeof(size), MSG_DONTWAIT)));
	close(fd);
	close(a);
	close(b);
}

static void buffers_and_timeouts(void)
{
	struct timeval tv = { 0, 30000 };
	struct timespec from, to;
	int pair[2], size = 4096, got = 0, n = 0;
	char buf[1024] = "";
	socklen_t len = sizeof(got);
	long us;

	make_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	clock_gettime(CLOCK_MONOTONIC, &from);
	receive(pair[1], 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	us = (to.tv_sec - from.tv_sec) * 1000000 +
	     (to.tv_nsec - from.tv_nsec) / 1000;
	/* the kernel counts in ticks, and by one that may be late */
	SAY("%s\n", us >= 20000 ? "in time" : "too early");
	setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	getsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &got, &len);
	SAY("SO_RCVBUF %d\n", got);
	/* far more than fits: what does not is lost, and nothing breaks */
	for (int i = 0; i < 2000; i++)
		send(pair[0], buf, sizeof(buf), MSG_DONTWAIT);
	settle();
	while (recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		n++;
	SAY("%s\n", n ? "some" : "none");
	received_cnt += (unsigned)n;
	close_pair(pair);
}

/* Nothing comes by an interface that is not there, and nothing goes. */
static void interface_that_is_not_there(void)
{
	int pair[2], number = 99999;

	make_pair(pair);
	SAY("bound %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_BINDTOIFINDEX, &number,
					 sizeof(number))));
	SAY("to it %s\n", err(send(pair[0], "in", 2, 0)));
	settle();
	receive(pair[1], MSG_DONTWAIT);
	SAY("from it %s\n", err(send(pair[1], "out", 3, 0)));
	close_pair(pair);
}

static void bytes_that_wait(void)
{
	int pair[2], n = -1;

	make_pair(pair);
	SAY("FIONREAD %d %d\n", ioctl(pair[1], FIONREAD, &n), n);
	send(pair[0], "12345", 5, 0);
	send(pair[0], "678", 3, 0);
	settle();
	SAY("FIONREAD %d %d\n", ioctl(pair[1], FIONREAD, &n), n);
	receive(pair[1], 0);
	SAY("FIONREAD %d %d\n", ioctl(pair[1], FIONREAD, &n), n);
	receive(pair[1], 0);
	SAY("FIONREAD %d %d\n", ioctl(pair[1], FIONREAD, &n), n);
	close_pair(pair);
}

static void nonblocking_in_each_way(void)
{
	int pair[2], on = 1, off = 0, fd;

	make_pair(pair);
	receive(pair[1], MSG_DONTWAIT);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	receive(pair[1], 0);
	SAY("flags %#x\n", fcntl(pair[1], F_GETFL) & O_NONBLOCK);
	ioctl(pair[1], FIONBIO, &off);
	SAY("flags %#x\n", fcntl(pair[1], F_GETFL) & O_NONBLOCK);
	ioctl(pair[1], FIONBIO, &on);
	receive(pair[1], 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	receive(fd, 0);
	close(fd);
	send(pair[0], "there", 5, 0);
	settle();
	receive(pair[1], 0);
	close_pair(pair);
}

static void shut_down(void)
{
	int pair[2];

	make_pair(pair);
	send(pair[0], "before", 6, 0);
	settle();
	SAY("shutdown %s\n", err(shutdown(pair[1], SHUT_RD)));
	receive(pair[1], 0);
	receive(pair[1], 0);
	SAY("shutdown %s\n", err(shutdown(pair[0], SHUT_WR)));
	signal(SIGPIPE, SIG_IGN);
	SAY("send %s\n", err(send(pair[0], "x", 1, 0)));
	close_pair(pair);
}

/* connect() to nothing ends a connection: what is sent then needs a name, and answers
 * find the port that it has by then. */
static void disconnected_for_good(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in peer, name;
	socklen_t len = sizeof(name);
	int server = bound(&peer), fd = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[16];

	connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	SAY("connected %s\n", err(send(fd, "one", 3, 0)));
	receive(server, 0);
	SAY("connect to nothing %s\n", err(connect(fd, &none, sizeof(none))));
	SAY("send %s\n", err(send(fd, "two", 3, 0)));
	SAY("write %s\n", err(write(fd, "two", 3)));
	SAY("sendto %s\n", err(sendto(fd, "three", 5, 0,
				      (struct sockaddr *)&peer, sizeof(peer))));
	recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&name, &len);
	received_cnt++;
	sendto(server, "answer", 6, 0, (struct sockaddr *)&name, len);
	receive(fd, 0);
	close(fd);
	close(server);
}

static void names_that_cannot_be(void)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	struct sockaddr_in peer, name;
	socklen_t len = (socklen_t)-1;
	int server = bound(&peer), fd = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[16];

	connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	/* whether they are lost by the errors is Linux's secret */
	send(fd, "one", 3, 0);
	send(fd, "two", 3, 0);
	settle();
	SAY("no length %s\n", err(recvfrom(server, buf, sizeof(buf), 0,
					   (struct sockaddr *)&name, NULL)));
	SAY("negative %s\n", err(recvfrom(server, buf, sizeof(buf), 0,
					  (struct sockaddr *)&name, &len)));
	while (recv(server, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	mapped.sin6_port = peer.sin_port;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &peer.sin_addr, 4);
	SAY("another family %s\n",
	    err(sendto(fd, "x", 1, 0, (struct sockaddr *)&mapped,
		       sizeof(mapped))));
	SAY("its own %s\n", err(sendto(fd, "own", 3, 0,
				       (struct sockaddr *)&peer, sizeof(peer))));
	receive(server, 0);
	close(fd);
	close(server);
}

/* A negative time is over at once; one of 0 never is. */
static void negative_timeouts(void)
{
	struct timeval negative = { -1, 0 }, none = { 0, 0 }, bad = { 0, -1 };
	int pair[2];

	make_pair(pair);
	SAY("set %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO,
				       &negative, sizeof(negative))));
	receive(pair[1], 0);
	SAY("set %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF,
				       &(int){ 65536 }, sizeof(int))));
	receive(pair[1], 0);
	SAY("bad %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &bad,
				       sizeof(bad))));
	send(pair[0], "there", 5, 0);
	settle();
	receive(pair[1], 0);
	SAY("set %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &none,
				       sizeof(none))));
	send(pair[0], "again", 5, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

static void interrupt(int signo)
{
	(void)signo;
}

/* Times that nobody lives to see the end of: only the signal ends the wait. */
static void endless_timeouts(void)
{
	static const time_t seconds[] = { LONG_MAX / 1000, 18446744073 };
	struct itimerval often = { { 0, 50000 }, { 0, 50000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = interrupt };
	int pair[2];

	make_pair(pair);
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 2; i++) {
		struct timeval tv = { seconds[i], 0 };

		SAY("set %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO,
					       &tv, sizeof(tv))));
		setitimer(ITIMER_REAL, &often, NULL);
		receive(pair[1], 0);
		setitimer(ITIMER_REAL, &never, NULL);
		send(pair[0], "there", 5, 0);
		receive(pair[1], 0);
	}
	close_pair(pair);
}

/* What waits, and what comes then. */
static void spliced(void)
{
	char buf[64];
	int pair[2], ends[2];

	make_pair(pair);
	if (pipe(ends) != 0)
		SAY("pipe: %m\n");
	send(pair[0], "before", 6, 0);
	recv(pair[1], buf, sizeof(buf), MSG_PEEK);
	kernels_cnt += 2;
	for (int i = 0; i < 2; i++) {
		ssize_t n = splice(pair[1], NULL, ends[1], NULL, sizeof(buf), 0);

		SAY("splice %zd %s\n", n, err(n));
		n = read(ends[0], buf, sizeof(buf));
		SAY("read %zd %.*s\n", n, (int)n, buf);
		send(pair[0], "then", 4, 0);
	}
	receive(pair[1], 0);
	close(ends[0]);
	close(ends[1]);
	close_pair(pair);
}

/* MSG_OOB means nothing to a receiver of datagrams. */
static void out_of_band(void)
{
	char buf[8] = "";
	int pair[2];

	make_pair(pair);
	SAY("nothing: %s\n", err(recv(pair[0], buf, sizeof(buf),
				      MSG_OOB | MSG_DONTWAIT)));
	send(pair[1], "first", 5, 0);
	send(pair[1], "second", 6, 0);
	receive(pair[0], MSG_OOB);
	receive(pair[0], MSG_OOB | MSG_PEEK);
	receive(pair[0], 0);
	SAY("send: %s\n", err(send(pair[1], "x", 1, MSG_OOB)));
	close_pair(pair);
}

/* A socket that was disconnected and lost its port keeps the address it was bound to,
 * and has no peer, also after it has sent to the old one by name. */
static void disconnected_and_named_again(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in to, own = owned(0);
	socklen_t len = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), receiver = bound(&to);

	bind(fd, (struct sockaddr *)&own, sizeof(own));
	connect(fd, (struct sockaddr *)&to, sizeof(to));
	SAY("connected: %s\n", err(send(fd, "1", 1, 0)));
	receive(receiver, 0);
	SAY("disconnect: %s\n", err(connect(fd, &none, sizeof(none))));
	SAY("no peer: %s\n", err(send(fd, "2", 1, 0)));
	getsockname(fd, (struct sockaddr *)&own, &len);
	SAY("own address: %d, a port: %d\n",
	    own.sin_addr.s_addr == owned(0).sin_addr.s_addr, own.sin_port != 0);
	SAY("by name: %s\n", err(sendto(fd, "3", 1, 0, (struct sockaddr *)&to,
				       sizeof(to))));
	SAY("no peer: %s\n", err(send(fd, "4", 1, 0)));
	receive(receiver, 0);
	SAY("%s\n", err(recv(receiver, &own, 1, MSG_DONTWAIT)));
	close(fd);
	close(receiver);
}

static char got(int fd)
{
	char c = '-';

	kernels_cnt += recv(fd, &c, 1, MSG_DONTWAIT) == 1;
	return c;
}

/* One that is the kernel's by an option hears what is for it all the same, though another one
 * has the port, too, within seconds. */
static void left_beside_another(void)
{
	struct sockaddr_in name = owned(0), peer;
	socklen_t len = sizeof(name);
	int client = bound(&peer), on = 1, segment = 100, fds[2], tries = 0;
	char c = 0;

	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
		setsockopt(fds[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		SAY("bind: %s\n", err(bind(fds[i], (struct sockaddr *)&name, sizeof(name))));
		getsockname(fds[i], (struct sockaddr *)&name, &len);
	}
	SAY("connect: %s\n", err(connect(fds[1], (struct sockaddr *)&peer, sizeof(peer))));
	SAY("segment: %s\n", err(setsockopt(fds[1], IPPROTO_UDP, UDP_SEGMENT, &segment,
					    sizeof(segment))));
	name = heard_at(name.sin_port);
	do {
		sendto(client, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		settle();
		usleep(tries * 1000);
		c = got(fds[1]);
		got(fds[0]);
	} while (c != 'x' && ++tries < 100);
	SAY("the connected one heard '%c'\n", c);
	close(client);
	close(fds[0]);
	close(fds[1]);
}

/* The other one hears IPv6 alone: whoever serves it, this one stays as it is. */
static void beside_one_for_ipv6(void)
{
	struct sockaddr_in6 name6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in name = { .sin_family = AF_INET }, peer;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), fd6 = socket(AF_INET6, SOCK_DGRAM, 0);
	int client = bound(&peer), on = 1, cnt = 0;
	socklen_t len = sizeof(name);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd6, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd6, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	SAY("bind %s", err(bind(fd, (struct sockaddr *)&name, len)));
	getsockname(fd, (struct sockaddr *)&name, &len);
	name6.sin6_port = name.sin_port;
	SAY(", %s", err(bind(fd6, (struct sockaddr *)&name6, sizeof(name6))));
	/* two looks at who has the port */
	usleep(2600 * 1000);
	name = heard_at(name.sin_port);
	for (int i = 0; i < 40; i++) {
		sendto(client, "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
		cnt += recv(fd, &on, sizeof(on), 0) == 1;
	}
	received_cnt += (unsigned)cnt;
	SAY(", heard %d\n", cnt);
	close(client);
	close(fd6);
	close(fd);
}

/* What it sends then goes there, and not by the way to the peer that it had. */
static void moved_on_to_a_peer_of_the_kernels(void)
{
	struct sockaddr_in to, group = { .sin_family = AF_INET };
	struct ip_mreqn lo = { .imr_ifindex = 1 };
	socklen_t len = sizeof(group);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), first = bound(&to);
	int second = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, "239.1.2.3", &lo.imr_multiaddr);
	bind(second, (struct sockaddr *)&group, sizeof(group));
	getsockname(second, (struct sockaddr *)&group, &len);
	group.sin_addr = lo.imr_multiaddr;
	SAY("join %s\n", err(setsockopt(second, IPPROTO_IP, IP_ADD_MEMBERSHIP, &lo, sizeof(lo))));
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo));
	for (int turn = 0; turn < 2; turn++) {
		connect(fd, (struct sockaddr *)&to, sizeof(to));
		SAY("to the one: %s\n", err(send(fd, "one", 3, 0)));
		receive(first, 0);
		SAY("connect: %s\n", err(connect(fd, (struct sockaddr *)&group, sizeof(group))));
		SAY("to the other: %s\n", err(send(fd, "other", 5, 0)));
		receive(second, 0);
		settle();
		SAY("nothing more: %s\n", err(recv(first, &len, sizeof(len), MSG_DONTWAIT)));
	}
	close(fd);
	close(first);
	close(second);
}

struct change {
	int from, to, heard_by;
};

static void *change_number(void *arg)
{
	const struct change *c = arg;
	char byte;

	received_cnt += recv(c->heard_by, &byte, 1, 0) == 1;
	if (dup2(c->from, c->to) != c->to)
		SAY("dup2: %m\n");
	return NULL;
}

/* A batch goes to one file, whatever becomes of its number under way. Every second datagram
 * says how it is to be cut, and is the kernel's. */
static void batches_whose_number_changes(void)
{
	enum { ROUNDS = 20, BATCH = 1000 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(uint16_t))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(uint16_t)),
				.cmsg_level = IPPROTO_UDP,
				.cmsg_type = UDP_SEGMENT } };
	static struct mmsghdr msgs[BATCH];
	struct iovec iov = { "x", 1 };
	uint16_t segment = 100;
	int strays = 0;

	memcpy(CMSG_DATA(&control.head), &segment, sizeof(segment));
	for (int i = 0; i < BATCH; i++)
		msgs[i].msg_hdr = (struct msghdr){
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = i % 2 ? &control : NULL,
			.msg_controllen = i % 2 ? sizeof(control) : 0,
		};
	for (int i = 0; i < ROUNDS; i++) {
		int pair[2], other[2];
		pthread_t thread;
		char byte;

		make_pair(pair);
		make_pair(other);
		pthread_create(&thread, NULL, change_number,
			       &(struct change){ other[0], pair[0], pair[1] });
		if (sendmmsg(pair[0], msgs, BATCH, 0) <= 0)
			SAY("sendmmsg: %m\n");
		pthread_join(thread, NULL);
		settle();
		while (recv(other[1], &byte, 1, MSG_DONTWAIT) == 1)
			strays++;
		close_pair(pair);
		close_pair(other);
	}
	SAY("strays: %d\n", strays);
}

const struct scenario option_scenarios[] = {
	SCENARIO(options_of_the_way, 0),
	SCENARIO(earlier_peers_at_a_leave, 2),
	SCENARIO(segments, 3),
	SCENARIO(batches_whose_number_changes, 0),
	SCENARIO(buffers_and_timeouts, 0),
	SCENARIO(interface_that_is_not_there, 0),
	SCENARIO(bytes_that_wait, 0),
	SCENARIO(nonblocking_in_each_way, 0),
	SCENARIO(shut_down, 1),
	SCENARIO(disconnected_for_good, 0),
	SCENARIO(names_that_cannot_be, 0),
	SCENARIO(negative_timeouts, 0),
	SCENARIO(endless_timeouts, 0),
	SCENARIO(spliced, 1),
	SCENARIO(out_of_band, 0),
	SCENARIO(disconnected_and_named_again, 0),
	SCENARIO(left_beside_another, 0),
	SCENARIO(beside_one_for_ipv6, 0),
	SCENARIO(moved_on_to_a_peer_of_the_kernels, 2),
	SCENARIO_END,
};
