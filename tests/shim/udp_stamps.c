/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: time stamps of what is sent, which come by the error queue. */
#include "config.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"

enum {
	SOFTWARE = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE,
	NUMBERED = SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
		   SOF_TIMESTAMPING_OPT_TSONLY,
	ALL = NUMBERED | SOF_TIMESTAMPING_TX_SCHED,
	ETH_LEN = 14,
};

static void stamp(int fd, int flags)
{
	int got = 0;
	socklen_t len = sizeof(got);
	int rc = setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
			    sizeof(flags));

	getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &got, &len);
	SAY("stamps %#x: %s, %#x\n", flags, err(rc), got);
}

static void say_offender(const struct sock_extended_err *error)
{
	const struct sockaddr_in *from = (const void *)SO_EE_OFFENDER(error);
	struct sockaddr_in own = owned(0);

	SAY(" offender %d%s", from->sin_family,
	    from->sin_family != AF_INET ? "" :
	    from->sin_addr.s_addr == own.sin_addr.s_addr ? " own" : " other");
}

static void say_cmsg(const struct cmsghdr *c)
{
	_Alignas(8) char body[64];
	const struct sock_extended_err *error = (const void *)body;
	const struct timespec *time_of = (const void *)body;
	const struct in_pktinfo *info = (const void *)body;

	memcpy(body, CMSG_DATA(c), sizeof(body));
	SAY(" [%d/%d %zu", c->cmsg_level, c->cmsg_type, c->cmsg_len);
	if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING)
		SAY(" %s", llabs(time(NULL) - time_of->tv_sec) < 5 ? "now" :
								     "wrong");
	if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
	    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
		SAY(" errno %u origin %u type %u code %u station %u number %u",
		    error->ee_errno, error->ee_origin, error->ee_type,
		    error->ee_code, error->ee_info, error->ee_data);
		say_offender(error);
	}
	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
		SAY(" %s %s", info->ipi_ifindex ? "by an interface" : "by none",
		    info->ipi_spec_dst.s_addr == owned(0).sin_addr.s_addr ?
			    "own" : "other");
	SAY("]");
}

/* The frame that a record shows. */
static void say_frame(const char *buf, ssize_t n)
{
	struct iphdr ip;
	struct udphdr udp;
	size_t headers = ETH_LEN + sizeof(ip) + sizeof(udp);

	if (n < (ssize_t)headers)
		return;
	memcpy(&ip, buf + ETH_LEN, sizeof(ip));
	memcpy(&udp, buf + ETH_LEN + sizeof(ip), sizeof(udp));
	SAY(" frame: version %u protocol %u length %u %s; udp length %u; bytes %x",
	    ip.version, ip.protocol, ntohs(ip.tot_len),
	    ip.frag_off & htons(IP_MF) ? "more" : "whole", ntohs(udp.len),
	    sum(buf + headers, (size_t)n - headers));
}

/* Whether what a router or a host has said has a time depends on whether anybody on this machine
 * asks for times. That is passed over. */
static struct cmsghdr *first_of(struct msghdr *msg)
{
	struct cmsghdr *first = CMSG_FIRSTHDR(msg), *c = first ? CMSG_NXTHDR(msg, first) : NULL;
	struct sock_extended_err error;

	if (!c || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SO_TIMESTAMPING ||
	    c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR)
		return first;
	memcpy(&error, CMSG_DATA(c), sizeof(error));
	if (error.ee_origin != SO_EE_ORIGIN_ICMP)
		return first;
	msg->msg_controllen -= (size_t)((char *)c - (char *)first);
	msg->msg_control = c;
	return c;
}

/* Reads one record; false: there is none. */
static bool record(int fd, size_t len, size_t room)
{
	static char buf[66000];
	_Alignas(8) char control[512] = { 0 };
	struct sockaddr_storage name;
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_name = &name,
			      .msg_namelen = sizeof(name),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = room };
	ssize_t n = recvmsg(fd, &msg, MSG_ERRQUEUE);
	struct cmsghdr *c;

	if (n < 0) {
		SAY("no record: %s\n", err(n));
		return false;
	}
	c = msg.msg_flags & MSG_CTRUNC ? NULL : first_of(&msg);
	SAY("record %zd flags %#x name %u control %zu:", n, msg.msg_flags,
	    msg.msg_namelen, msg.msg_controllen);
	say_frame(buf, n);
	for (; c; c = CMSG_NXTHDR(&msg, c))
		say_cmsg(c);
	SAY("\n");
	return true;
}

static void all_records(int fd)
{
	while (record(fd, 65536, 512))
		;
}

static void send_stations(int fd, const struct sockaddr_in *to, uint32_t stations)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(stations))];
	} control = { 0 };
	struct iovec iov = { (void *)"hello", 5 };
	struct msghdr msg = { .msg_name = (void *)(uintptr_t)to,
			      .msg_namelen = to ? sizeof(*to) : 0,
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SO_TIMESTAMPING;
	c->cmsg_len = CMSG_LEN(sizeof(stations));
	memcpy(CMSG_DATA(c), &stations, sizeof(stations));
	SAY("send stamped at %#x: %s\n", stations, err(sendmsg(fd, &msg, 0)));
}

/* -- what is stamped -------------------------------------------------------------- */

/* By the error queue. What waited when they were asked for is not lost. */
static void stamps_of_what_is_sent(void)
{
	struct pollfd pfd = { .events = 0 };
	int pair[2], n;

	make_pair(pair);
	pfd.fd = pair[0];
	send(pair[1], "early", 5, 0);
	stamp(pair[0], SOFTWARE | SOF_TIMESTAMPING_OPT_ID);
	receive(pair[0], 0);
	for (int i = 0; i < 3; i++) {
		send(pair[0], "hello", 5, 0);
		n = poll(&pfd, 1, 1000);
		SAY("poll %d %#x\n", n, pfd.revents);
		record(pair[0], 64, 512);
		receive(pair[1], 0);
	}
	record(pair[0], 64, 512);
	close_pair(pair);
}

static void stamps_of_every_send(void)
{
	struct sockaddr_in name;
	socklen_t name_len = sizeof(name);
	struct iovec iov[2] = { { (void *)"he", 2 }, { (void *)"llo", 3 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct mmsghdr msgs[3] = { { .msg_hdr = msg },
				   { .msg_hdr = msg },
				   { .msg_hdr = msg } };
	int pair[2];

	make_pair(pair);
	getpeername(pair[0], (struct sockaddr *)&name, &name_len);
	stamp(pair[0], ALL);
	SAY("%s\n", err(write(pair[0], "hello", 5)));
	SAY("%s\n", err(writev(pair[0], iov, 2)));
	SAY("%s\n", err(send(pair[0], "hello", 5, MSG_DONTWAIT)));
	SAY("%s\n", err(sendto(pair[0], "hello", 5, 0, (struct sockaddr *)&name,
			       sizeof(name))));
	SAY("%s\n", err(sendmsg(pair[0], &msg, 0)));
	SAY("%d\n", sendmmsg(pair[0], msgs, 3, 0));
	SAY("%s\n", err(send(pair[0], NULL, 0, 0)));
	for (int i = 0; i < 9; i++)
		receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

/* Each flag by itself, and what resets the numbers. */
static void stamps_as_they_are_asked_for(void)
{
	static const int flags[] = {
		SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_ID,
		SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY,
		NUMBERED,
		NUMBERED | SOF_TIMESTAMPING_TX_SCHED,
		SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_OPT_ID |
			SOF_TIMESTAMPING_SOFTWARE,
		SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
			SOF_TIMESTAMPING_OPT_ID,
		SOF_TIMESTAMPING_SOFTWARE,
		NUMBERED,
		1 << 16, /* SOF_TIMESTAMPING_OPT_ID_TCP, of streams */
		1 << 30,
		0,
	};
	int pair[2], on = 1;

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		stamp(pair[0], flags[i]);
		for (int j = 0; j < 2; j++) {
			send(pair[0], "hello", 5, 0);
			receive(pair[1], 0);
		}
		all_records(pair[0]);
	}
	stamp(pair[0], SOF_TIMESTAMPING_TX_SOFTWARE);
	setsockopt(pair[0], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

/* The whole frame comes with the record, and by which interface it went. */
static void stamps_with_their_frames(void)
{
	static const size_t lens[] = { 0, 1, 200, 257, 1001, 1472, 4000, 20001 };
	static char buf[20001];
	int pair[2], on = 1, tos = 0x28;

	make_pair(pair);
	fill(buf, sizeof(buf), 5);
	stamp(pair[0], SOFTWARE | SOF_TIMESTAMPING_OPT_CMSG |
			       SOF_TIMESTAMPING_TX_SCHED);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		/* loopback cuts nothing */
		if (lens[i] > 1472 && !over_wire())
			continue;
		send(pair[0], buf, lens[i], 0);
		receive(pair[1], 0);
		/* pieces arrive by the kernel */
		kernels_cnt += lens[i] > 1472;
		all_records(pair[0]);
	}
	setsockopt(pair[0], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	setsockopt(pair[0], IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
	setsockopt(pair[0], IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	setsockopt(pair[0], IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	stamp(pair[0], SOFTWARE);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	stamp(pair[0], NUMBERED | SOF_TIMESTAMPING_OPT_CMSG);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

static struct sockaddr_in6 mapped(const struct sockaddr_in *v4)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = v4->sin_port };

	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&v6.sin6_addr.s6_addr[12], &v4->sin_addr, 4);
	return v6;
}

/* An IPv6 socket with IPv4 peers has other control messages. */
static void stamps_of_an_ipv6_socket(void)
{
	static const int flags[] = { SOFTWARE | SOF_TIMESTAMPING_OPT_ID, ALL,
				     SOFTWARE | SOF_TIMESTAMPING_OPT_CMSG };
	struct sockaddr_in to, own = owned(0);
	struct sockaddr_in6 from6 = mapped(&own), to6;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), peer = bound(&to);

	to6 = mapped(&to);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&from6, sizeof(from6))));
	SAY("connect %s\n", err(connect(fd, (struct sockaddr *)&to6, sizeof(to6))));
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		stamp(fd, flags[i]);
		send(fd, "hello", 5, 0);
		receive(peer, 0);
		sendto(fd, "hello", 5, 0, (struct sockaddr *)&to6, sizeof(to6));
		receive(peer, 0);
		all_records(fd);
	}
	close(fd);
	close(peer);
}

/* One send says for itself where it is stamped. */
static void stamps_by_control_message(void)
{
	static const uint32_t stations[] = {
		SOF_TIMESTAMPING_TX_SOFTWARE,
		SOF_TIMESTAMPING_TX_SCHED,
		SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE,
		SOF_TIMESTAMPING_TX_ACK,
		0,
		SOF_TIMESTAMPING_SOFTWARE,
		SOF_TIMESTAMPING_TX_SOFTWARE,
	};
	const int options[] = {
		0, NUMBERED & ~SOF_TIMESTAMPING_TX_SOFTWARE, ALL,
	};
	struct sockaddr_in name;
	socklen_t name_len = sizeof(name);
	int pair[2];

	make_pair(pair);
	getpeername(pair[0], (struct sockaddr *)&name, &name_len);
	for (size_t option = 0; option < ARRAY_LEN(options); option++) {
		stamp(pair[0], options[option]);
		for (size_t i = 0; i < ARRAY_LEN(stations); i++)
			send_stations(pair[0], i & 1 ? &name : NULL, stations[i]);
		for (size_t i = 0; i < ARRAY_LEN(stations) - 1; i++)
			receive(pair[1], 0);
		all_records(pair[0]);
	}
	close_pair(pair);
}

/* -- how it is told --------------------------------------------------------------- */

static void say_poll(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int n = poll(&pfd, 1, 0);

	SAY("poll for %#x: %d %#x\n", (unsigned)events, n,
	    (unsigned)(unsigned short)pfd.revents);
}

static void say_select(int fd)
{
	struct timeval none = { 0 };
	fd_set in, out, except;
	int n;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	FD_SET(fd, &except);
	n = select(fd + 1, &in, &out, &except, &none);
	SAY("select %d: %d %d %d\n", n, !!FD_ISSET(fd, &in),
	    !!FD_ISSET(fd, &out), !!FD_ISSET(fd, &except));
}

static void say_epoll(int set)
{
	struct epoll_event event = { .events = 0 };
	int n = epoll_wait(set, &event, 1, 0);

	SAY("epoll %d %#x\n", n, n > 0 ? event.events : 0);
}

static void readiness_of_records(void)
{
	struct epoll_event level = { .events = 0 },
			   edge = { .events = EPOLLIN | EPOLLPRI | EPOLLET };
	int pair[2], on = 1, off = 0, levels, edges;

	make_pair(pair);
	levels = epoll_create1(0);
	edges = epoll_create1(0);
	epoll_ctl(levels, EPOLL_CTL_ADD, pair[0], &level);
	epoll_ctl(edges, EPOLL_CTL_ADD, pair[0], &edge);
	stamp(pair[0], NUMBERED);
	for (int urgent = 0; urgent < 2; urgent++) {
		SAY("urgent: %s\n",
		    err(setsockopt(pair[0], SOL_SOCKET, SO_SELECT_ERR_QUEUE,
				   urgent ? &on : &off, sizeof(on))));
		for (int i = 0; i < 2; i++) {
			send(pair[0], "hello", 5, 0);
			receive(pair[1], 0);
			say_epoll(levels);
			say_epoll(edges);
			say_epoll(edges);
		}
		say_poll(pair[0], 0);
		say_poll(pair[0], POLLIN | POLLPRI);
		say_select(pair[0]);
		for (int i = 0; i < 3; i++) {
			record(pair[0], 64, 512);
			say_poll(pair[0], POLLPRI);
			say_epoll(levels);
		}
		say_select(pair[0]);
	}
	SAY("error %d\n", getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &off,
				     &(socklen_t){ sizeof(off) }) ? -1 : off);
	close(levels);
	close(edges);
	close_pair(pair);
}

/* Small buffers of every kind, and calls without a message. */
static void records_cut_off(void)
{
	char buf[64];
	int pair[2];

	make_pair(pair);
	stamp(pair[0], SOFTWARE | SOF_TIMESTAMPING_OPT_ID);
	for (int i = 0; i < 7; i++) {
		send(pair[0], "hello", 5, 0);
		receive(pair[1], 0);
	}
	record(pair[0], 46, 512);
	record(pair[0], 0, 512);
	record(pair[0], 64, 100);
	record(pair[0], 64, 40);
	record(pair[0], 64, 0);
	SAY("recv %zd\n", recv(pair[0], buf, sizeof(buf), MSG_ERRQUEUE));
	SAY("recvfrom %zd\n",
	    recvfrom(pair[0], buf, 10, MSG_ERRQUEUE | MSG_TRUNC, NULL, NULL));
	SAY("recv %s\n", err(recv(pair[0], buf, sizeof(buf), MSG_ERRQUEUE)));
	close_pair(pair);
}

/* Who does not read them gets as many as the receive buffer takes, and others after that. */
static void records_that_nobody_reads(void)
{
	int pair[2], size = 8192, cnt = 0;

	make_pair(pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	stamp(pair[0], NUMBERED);
	for (int i = 0; i < 200; i++) {
		send(pair[0], "hello", 5, 0);
		receive(pair[1], 0);
	}
	while (recvmsg(pair[0], &(struct msghdr){ 0 }, MSG_ERRQUEUE) >= 0)
		cnt++;
	SAY("some %d, not all %d\n", cnt > 4, cnt < 100);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	send(pair[1], "there is room again", 19, 0);
	receive(pair[0], 0);
	close_pair(pair);
}

/* Names that Linux takes for others: AF_UNSPEC for AF_INET, and one of no length for none. */
static void stamps_of_sends_to_odd_names(void)
{
	struct iovec iov = { "text", 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);
	int pair[2];

	make_pair(pair);
	getpeername(pair[0], (struct sockaddr *)&name, &len);
	name.sin_family = AF_UNSPEC;
	msg.msg_name = &name;
	stamp(pair[0], SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
			       SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY);
	for (int i = 0; i < 3; i++) {
		send(pair[0], "text", 4, 0);
		receive(pair[1], 0);
		record(pair[0], 64, 512);
		SAY("of no family %s\n", err(sendto(pair[0], "text", 4, 0,
						    (struct sockaddr *)&name, len)));
		receive(pair[1], 0);
		record(pair[0], 64, 512);
		msg.msg_namelen = i ? 0 : len;
		SAY("message %s\n", err(sendmsg(pair[0], &msg, 0)));
		receive(pair[1], 0);
		record(pair[0], 64, 512);
	}
	name.sin_port = 0;
	SAY("no port %s\n", err(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&name, len)));
	SAY("short %s\n", err(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&name, 8)));
	name.sin_family = AF_INET6;
	SAY("family %s\n", err(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&name, len)));
	close_pair(pair);
}

/* -- with the kernel -------------------------------------------------------------- */

/* Some of the datagrams are not ours to send. The numbers are of all. */
static void records_of_both_ways(void)
{
	struct sockaddr_in name, elsewhere = { .sin_family = AF_INET,
					       .sin_port = htons(9),
					       .sin_addr = { htonl(0x7f000001) } };
	static const char long_buf[70000];
	int fd = bound(&name), peer;
	struct sockaddr_in to;

	peer = bound(&to);
	stamp(fd, ALL);
	for (int i = 0; i < 12; i++) {
		bool is_ours = i % 3;

		SAY("%d: %s\n", i,
		    err(sendto(fd, "hello", 5, 0,
			       (struct sockaddr *)(is_ours ? &to : &elsewhere),
			       sizeof(to))));
		if (is_ours)
			receive(peer, 0);
		if (i == 5)
			record(fd, 64, 512);
	}
	all_records(fd);
	send_stations(fd, &elsewhere, 0);
	send_stations(fd, &elsewhere, SOF_TIMESTAMPING_TX_SCHED);
	send_stations(fd, &to, SOF_TIMESTAMPING_TX_SCHED);
	receive(peer, 0);
	all_records(fd);
	/* numbers begin anew, and what waits is older nevertheless */
	for (int i = 0; i < 4; i++) {
		bool is_ours = i != 2;

		if (i == 2)
			stamp(fd, 0), stamp(fd, ALL);
		sendto(fd, "hello", 5, 0,
		       (struct sockaddr *)(is_ours ? &to : &elsewhere),
		       sizeof(to));
		if (is_ours)
			receive(peer, 0);
	}
	all_records(fd);
	SAY("too long: %s\n", err(sendto(fd, long_buf, sizeof(long_buf), 0,
					 (struct sockaddr *)&to, sizeof(to))));
	all_records(fd);
	close(fd);
	close(peer);
}

/* The socket becomes the kernel's while records wait. */
static void records_when_a_socket_leaves(void)
{
	int pair[2], on = 1;

	make_pair(pair);
	stamp(pair[0], ALL);
	for (int i = 0; i < 3; i++) {
		send(pair[0], "hello", 5, 0);
		receive(pair[1], 0);
	}
	SAY("leaves: %s\n", err(setsockopt(pair[0], SOL_SOCKET, SO_RXQ_OVFL, &on,
					   sizeof(on))));
	say_poll(pair[0], POLLIN);
	record(pair[0], 64, 512);
	for (int i = 0; i < 3; i++) {
		send(pair[0], "hello", 5, 0);
		receive(pair[1], 0);
	}
	all_records(pair[0]);
	say_poll(pair[0], POLLIN);
	stamp(pair[0], 0);
	stamp(pair[0], NUMBERED);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

/* A send that only the kernel does in several calls. */
static void records_of_what_is_gathered(void)
{
	int pair[2];

	make_pair(pair);
	stamp(pair[0], ALL);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	send(pair[0], "two ", 4, MSG_MORE);
	send(pair[0], "parts", 5, 0);
	receive(pair[1], 0);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

/* The parent forks while records wait: they stay with it, and it goes on. */
static void records_over_a_fork(void)
{
	int pair[2], status;
	pid_t child;

	make_pair(pair);
	stamp(pair[0], NUMBERED);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	child = fork();
	if (!child) {
		send(pair[1], "from the child", 14, 0);
		_exit(0);
	}
	waitpid(child, &status, 0);
	receive(pair[0], 0);
	send(pair[0], "hello", 5, 0);
	receive(pair[1], 0);
	all_records(pair[0]);
	close_pair(pair);
}

/* Errors that the network tells stand in the same queue. */
static void records_among_errors(void)
{
	struct sockaddr_in name, to;
	int fd = bound(&name), peer = bound(&to), on = 1;
	struct sockaddr_in nobody = { .sin_family = AF_INET,
				      .sin_port = htons(9),
				      .sin_addr = { htonl(0x7f000001) } };
	struct pollfd pfd = { .fd = fd };

	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	stamp(fd, NUMBERED);
	sendto(fd, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to));
	receive(peer, 0);
	sendto(fd, "hello", 5, 0, (struct sockaddr *)&nobody, sizeof(nobody));
	while (poll(&pfd, 1, 1000) != 1)
		;
	for (int i = 0; i < 4; i++)
		record(fd, 64, 512);
	close(fd);
	close(peer);
}

const struct scenario stamp_scenarios[] = {
	SCENARIO(stamps_of_what_is_sent, 0),
	SCENARIO(stamps_of_every_send, 0),
	SCENARIO(stamps_as_they_are_asked_for, 0),
	SCENARIO(stamps_with_their_frames, 0),
	SCENARIO(stamps_of_an_ipv6_socket, 0),
	SCENARIO(stamps_by_control_message, 1),
	SCENARIO(readiness_of_records, 0),
	SCENARIO(records_cut_off, 0),
	SCENARIO(records_that_nobody_reads, 0),
	SCENARIO(stamps_of_sends_to_odd_names, 0),
	SCENARIO(records_of_both_ways, 0),
	SCENARIO(records_when_a_socket_leaves, 4),
	SCENARIO(records_of_what_is_gathered, 2),
	SCENARIO(records_over_a_fork, 1),
	SCENARIO(records_among_errors, 0),
	SCENARIO_END,
};
