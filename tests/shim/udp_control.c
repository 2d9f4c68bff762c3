/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: what is told with datagrams, and by the error queue. */
#include "config.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "tests/shim/udp.h"

static void say_stamps(const struct cmsghdr *c)
{
	static const char *const names[] = { "software", "obsolete", "hardware" };
	struct timespec stamps[3];

	memcpy(stamps, CMSG_DATA(c), sizeof(stamps));
	for (int i = 0; i < 3; i++)
		SAY(" %s %s", names[i],
		    !stamps[i].tv_sec && !stamps[i].tv_nsec ? "none" :
		    llabs(time(NULL) - stamps[i].tv_sec) < 5 ?
							      "about now" :
							      "wrong");
}

static void say_control(struct msghdr *msg)
{
	struct sock_extended_err error;
	struct cmsghdr *c;
	struct in_pktinfo info;
	struct timeval tv;
	struct timespec ts;
	int number;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		SAY("control %d/%d length %zu", c->cmsg_level, c->cmsg_type,
		    c->cmsg_len);
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			SAY(" to %s", inet_ntoa(info.ipi_addr));
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_TTL) {
			memcpy(&number, CMSG_DATA(c), sizeof(number));
			SAY(" ttl %d", number);
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_TOS) {
			SAY(" tos %#x", *CMSG_DATA(c));
		} else if (c->cmsg_type == SO_TIMESTAMP) {
			memcpy(&tv, CMSG_DATA(c), sizeof(tv));
			SAY(" time %s", llabs(time(NULL) - tv.tv_sec) < 5 ?
						"about now" : "wrong");
		} else if (c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			SAY(" time %s", llabs(time(NULL) - ts.tv_sec) < 5 ?
						"about now" : "wrong");
		} else if (c->cmsg_type == SO_TIMESTAMPING) {
			say_stamps(c);
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_RECVERR) {
			memcpy(&error, CMSG_DATA(c), sizeof(error));
			SAY(" errno %u origin %u info %u data %u",
			    error.ee_errno, error.ee_origin, error.ee_info,
			    error.ee_data);
		}
		SAY("\n");
	}
}

static void get_with_control(int fd, size_t room, int flags)
{
	char buf[64], control[512];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = room };
	ssize_t n = recvmsg(fd, &msg, flags);

	if (n < 0) {
		SAY("recvmsg %s\n", err(n));
		return;
	}
	SAY("recvmsg %zd flags %#x control %zu\n", n, msg.msg_flags,
	    msg.msg_controllen);
	if (!(msg.msg_flags & MSG_CTRUNC))
		say_control(&msg);
}

static void receive_with_control(int fd, size_t room)
{
	get_with_control(fd, room, 0);
	received_cnt++;
}

static void control_messages(void)
{
	static const struct {
		int level, name, value;
	} wishes[] = {
		{ IPPROTO_IP, IP_PKTINFO, 1 },
		{ IPPROTO_IP, IP_RECVTTL, 1 },
		{ IPPROTO_IP, IP_RECVTOS, 1 },
		{ SOL_SOCKET, SO_TIMESTAMP, 1 },
		{ SOL_SOCKET, SO_TIMESTAMPNS, 1 },
	};
	int pair[2], tos = 0x28, ttl = 33;

	make_pair(pair);
	setsockopt(pair[0], IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	setsockopt(pair[0], IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		SAY("wish %zu: %s\n", i,
		    err(setsockopt(pair[1], wishes[i].level, wishes[i].name,
				   &wishes[i].value, sizeof(int))));
		send(pair[0], "hello", 5, 0);
		receive_with_control(pair[1], 512);
	}
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 40);
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 0);
	close_pair(pair);
}

static void set_stamping(int fd, int flags)
{
	int got = 0;
	socklen_t len = sizeof(got);

	SAY("set %#x: %s", flags,
	    err(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
			   sizeof(flags))));
	getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &got, &len);
	SAY(", got %#x\n", got);
}

/* Linux begins to take stamps some time after the first socket has asked. */
static void await_stamps(const int pair[2])
{
	char buf[8], control[512];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg;

	do {
		msg = (struct msghdr){ .msg_iov = &iov,
				       .msg_iovlen = 1,
				       .msg_control = control,
				       .msg_controllen = sizeof(control) };
		send(pair[0], "x", 1, 0);
		received_cnt += recvmsg(pair[1], &msg, 0) == 1;
	} while (!msg.msg_controllen);
}

static void stamps_of_what_comes(void)
{
	int pair[2], on = 1;

	make_pair(pair);
	set_stamping(pair[1], SOF_TIMESTAMPING_RX_SOFTWARE |
				      SOF_TIMESTAMPING_SOFTWARE);
	await_stamps(pair);
	send(pair[0], "hello", 5, 0);
	get_with_control(pair[1], 512, MSG_PEEK);
	receive_with_control(pair[1], 512);
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 40);
	setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 512);
	/* generated, and not asked for; not at all */
	on = 0;
	setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	set_stamping(pair[1], SOF_TIMESTAMPING_RX_SOFTWARE);
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 512);
	set_stamping(pair[1], 0);
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 512);
	close_pair(pair);
}

/* By when it has come already. */
static void stamps_asked_for_late(void)
{
	struct pollfd pfd;
	int pair[2], on = 1;

	make_pair(pair);
	pfd = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	send(pair[0], "hello", 5, 0);
	SAY("there: %d\n", poll(&pfd, 1, 1000));
	setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	receive_with_control(pair[1], 512);
	close_pair(pair);
}

/* A device whose frames have no stamps. */
static void stamps_of_no_card(void)
{
	int pair[2];

	make_pair(pair);
	set_stamping(pair[1], SOF_TIMESTAMPING_RX_HARDWARE |
				      SOF_TIMESTAMPING_RAW_HARDWARE);
	send(pair[0], "hello", 5, 0);
	receive_with_control(pair[1], 512);
	close_pair(pair);
}

const struct scenario control_scenarios[] = {
	SCENARIO(control_messages, 0),
	SCENARIO(stamps_of_what_comes, 0),
	SCENARIO(stamps_asked_for_late, 0),
	SCENARIO(stamps_of_no_card, 0),
	SCENARIO_END,
};
