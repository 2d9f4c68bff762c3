/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: another file gets the number of a call, at the moment when the library has
 * the kernel do what is left of it. */
#include "config.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/stopper.h"

struct stopped_call {
	int fd, stopper;
	_Atomic pid_t tid;
	_Atomic bool is_over;
	ssize_t result;
	char got[8];
	/* who gets the number, and its other end */
	int stranger[2], next;
	pthread_t thread;
};

static void begin(struct stopped_call *call, void *(*run)(void *))
{
	socketpair(AF_UNIX, SOCK_DGRAM, 0, call->stranger);
	(void)!send(call->stranger[1], "secret", 6, 0);
	pthread_create(&call->thread, NULL, run, call);
	while (!call->tid)
		sched_yield();
}

static void replace(struct stopped_call *call)
{
	call->next = stopper_replace(call->stopper, call->fd, call->stranger[0],
				     &call->is_over);
	pthread_join(call->thread, NULL);
	SAY("the same number: %d\n", call->next == call->fd);
	SAY("%zd %s\n", call->result, call->got);
}

static void end(struct stopped_call *call)
{
	char text[8] = "";
	ssize_t n = recv(call->next, text, sizeof(text), MSG_DONTWAIT);

	SAY("the stranger has %zd %s\n", n, text);
	n = recv(call->stranger[1], text, sizeof(text), MSG_DONTWAIT);
	SAY("and was sent %zd\n", n);
	close_pair(call->stranger);
	close(call->stopper);
	close(call->next);
}

static void *receive_with_stops(void *arg)
{
	struct stopped_call *call = arg;

	/* the library's, not libc's */
	call->stopper = stopper_set(SYS_recvmsg, 2, MSG_DONTWAIT);
	call->tid = gettid();
	call->result = recv(call->fd, call->got, sizeof(call->got), 0);
	call->is_over = true;
	return NULL;
}

/* It takes what has woken it. */
static void closed_within_a_receive(void)
{
	struct stopped_call call = { .fd = -1 };
	struct sockaddr_in name, mine;
	int client;

	call.fd = bound(&name);
	client = bound(&mine);
	begin(&call, receive_with_stops);
	stopper_await_sleep(call.stopper, call.tid);
	send_by_kernel(client, "ownown", &name);
	replace(&call);
	end(&call);
	close(client);
}

/* A socket that asks for time stamps, connected to one that only the kernel reaches. */
static int stamped(void)
{
	int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
		     SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_ID;
	struct sockaddr_in elsewhere = { .sin_family = AF_INET,
					 .sin_port = htons(9),
					 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	SAY("stamps %s\n",
	    err(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps))));
	SAY("connect %s\n",
	    err(connect(fd, (struct sockaddr *)&elsewhere, sizeof(elsewhere))));
	return fd;
}

static void *send_with_stops(void *arg)
{
	struct stopped_call *call = arg;

	call->stopper = stopper_set(SYS_sendmsg, 2, MSG_DONTWAIT);
	call->tid = gettid();
	call->result = send(call->fd, "PRIVATE", 7, 0);
	call->is_over = true;
	return NULL;
}

static void closed_within_a_send(void)
{
	struct stopped_call call = { .fd = stamped() };

	begin(&call, send_with_stops);
	replace(&call);
	end(&call);
}

static void *read_with_stops(void *arg)
{
	struct stopped_call *call = arg;
	char room[256];
	struct iovec iov = { call->got, sizeof(call->got) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };

	call->stopper = stopper_set(SYS_recvmsg, 2, MSG_DONTWAIT);
	call->tid = gettid();
	call->result = recvmsg(call->fd, &msg, MSG_ERRQUEUE);
	call->is_over = true;
	return NULL;
}

/* The error queue's. */
static void closed_within_a_read_of_records(void)
{
	struct stopped_call call = { .fd = stamped() };
	struct pollfd pfd = { .fd = call.fd };

	SAY("send %s\n", err(send(call.fd, "hello", 5, 0)));
	SAY("poll %d\n", poll(&pfd, 1, 10000));
	begin(&call, read_with_stops);
	replace(&call);
	end(&call);
}

const struct scenario beside_scenarios[] = {
	SCENARIO(closed_within_a_receive, 0),
	SCENARIO(closed_within_a_send, 0),
	SCENARIO(closed_within_a_read_of_records, 0),
	SCENARIO_END,
};
