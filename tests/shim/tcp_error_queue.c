/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: what the error queue says of what was sent: time stamps, and memory that
 * is free again. */
#include "config.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

static void say_record(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct sock_extended_err error;

		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) {
			SAY(" control %d/%d", c->cmsg_level, c->cmsg_type);
			continue;
		}
		memcpy(&error, CMSG_DATA(c), sizeof(error));
		SAY(" errno %u origin %u info %u data %u code %u",
		    error.ee_errno, error.ee_origin, error.ee_info,
		    error.ee_data, error.ee_code);
	}
}

static void say_error_queue(int fd)
{
	char buf[64], control[512];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_ERRQUEUE);

	SAY("error queue %s %zd flags %#x", err(n), n, n < 0 ? 0 : msg.msg_flags);
	if (n >= 0)
		say_record(&msg);
	SAY("\n");
}

static void stamps_of_acknowledgments(void)
{
	int pair[2];

	make_pair(pair);
	say_error_queue(pair[0]);
	SAY("set %s\n",
	    err(set_option(pair[0], SOL_SOCKET, SO_TIMESTAMPING,
			   SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
				   SOF_TIMESTAMPING_OPT_ID |
				   SOF_TIMESTAMPING_OPT_TSONLY)));
	for (int i = 0; i < 3; i++) {
		say_sent(pair[0], "stamped", 0);
		SAY("events %#x\n", (unsigned)await(pair[0], 0));
		say_error_queue(pair[0]);
		say_error_queue(pair[0]);
	}
	close_pair(pair);
}

/* All stations of three sends, by the number of their last byte. What was sent before
 * does not count, or not as far as it was acknowledged. */
static void stamps_of_all_stations(void)
{
	const int stations = SOF_TIMESTAMPING_TX_SCHED |
			     SOF_TIMESTAMPING_TX_SOFTWARE |
			     SOF_TIMESTAMPING_TX_ACK;
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "before", 0);
	await_acks(pair[0]);
	SAY("set %s\n", err(set_option(pair[0], SOL_SOCKET, SO_TIMESTAMPING,
				       stations | SOF_TIMESTAMPING_SOFTWARE |
					       SOF_TIMESTAMPING_OPT_ID |
					       SOF_TIMESTAMPING_OPT_TSONLY)));
	for (int i = 0; i < 3; i++) {
		say_sent(pair[0], "stamped", 0);
		await_acks(pair[0]);
		for (int record = 0; record < 4; record++)
			say_error_queue(pair[0]);
	}
	receive(pair[1], 0);
	close_pair(pair);
}

/* The number of the next record; false: there is none. */
static bool take_number(int fd, uint32_t *number_out)
{
	_Alignas(struct cmsghdr) char control[512];
	struct msghdr msg = { .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct sock_extended_err error;

	if (recvmsg(fd, &msg, MSG_ERRQUEUE) < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) {
			memcpy(&error, CMSG_DATA(c), sizeof(error));
			*number_out = error.ee_data;
		}
	return true;
}

enum {
	NUMBERED_ACKS = SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
			SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY,
};

static void stamp(int fd, int flags)
{
	int got = 0;
	socklen_t len = sizeof(got);
	int rc = set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, flags);

	SAY("stamps %#x: %s", flags, err(rc));
	getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &got, &len);
	SAY(", %#x\n", got);
}

/* Sends it, and waits for its acknowledgment. */
static void send_acked(int fd)
{
	say_sent(fd, "stamped", 0);
	await_acks(fd);
}

/* The flags of the option, and what Linux refuses. */
static void stamps_as_they_are_asked_for(void)
{
	static const int flags[] = {
		NUMBERED_ACKS, NUMBERED_ACKS & ~SOF_TIMESTAMPING_OPT_ID,
		NUMBERED_ACKS | 1 << 16, 1 << 16,
		NUMBERED_ACKS & ~SOF_TIMESTAMPING_SOFTWARE, 1 << 30, 0,
		NUMBERED_ACKS | 1 << 16,
		SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
			SOF_TIMESTAMPING_OPT_TSONLY,
	};
	int pair[2];

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		stamp(pair[0], flags[i]);
		send_acked(pair[0]);
		say_error_queue(pair[0]);
		say_error_queue(pair[0]);
	}
	receive(pair[1], 0);
	close_pair(pair);
}

static void send_stamped(int fd, uint32_t stations)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(stations))];
	} control = { 0 };
	struct iovec iov = { (void *)"told", 4 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SO_TIMESTAMPING;
	c->cmsg_len = CMSG_LEN(sizeof(stations));
	memcpy(CMSG_DATA(c), &stations, sizeof(stations));
	SAY("stamped at %#x: %s\n", stations, err(sendmsg(fd, &msg, 0)));
	await_acks(fd);
}

/* One send says for itself where it is stamped, also that it is not. */
static void stamps_by_control_message(void)
{
	int pair[2];

	make_pair(pair);
	stamp(pair[0], NUMBERED_ACKS & ~SOF_TIMESTAMPING_TX_ACK);
	for (int i = 0; i < 2; i++) {
		send_stamped(pair[0], SOF_TIMESTAMPING_TX_ACK);
		send_acked(pair[0]);
		send_stamped(pair[0], 0);
		send_stamped(pair[0], SOF_TIMESTAMPING_TX_SCHED |
					      SOF_TIMESTAMPING_TX_ACK);
		for (int record = 0; record < 6; record++)
			say_error_queue(pair[0]);
		stamp(pair[0], NUMBERED_ACKS);
	}
	receive(pair[1], 0);
	close_pair(pair);
}

/* Long ones end with their last byte; a short buffer ends them early. */
static void stamps_of_long_sends(void)
{
	static char buf[100000], sink[100000];
	int pair[2];

	make_pair(pair);
	stamp(pair[0], NUMBERED_ACKS);
	for (int i = 0; i < 3; i++) {
		SAY("sent %zd\n", send(pair[0], buf, sizeof(buf), 0));
		SAY("received %zd\n", recv(pair[1], sink, sizeof(sink),
					   MSG_WAITALL));
		await_acks(pair[0]);
		say_error_queue(pair[0]);
		say_error_queue(pair[0]);
	}
	close_pair(pair);
}

static void events_of_stamps(void)
{
	int pair[2];

	make_pair(pair);
	stamp(pair[0], NUMBERED_ACKS);
	SAY("urgent %s\n", err(set_option(pair[0], SOL_SOCKET,
					  SO_SELECT_ERR_QUEUE, 1)));
	for (int i = 0; i < 2; i++)
		send_acked(pair[0]);
	for (int i = 0; i < 3; i++) {
		SAY("events %#x\n", (unsigned)await(pair[0], POLLOUT | POLLPRI));
		say_error_queue(pair[0]);
	}
	SAY("error %d\n", get_option(pair[0], SOL_SOCKET, SO_ERROR));
	receive(pair[1], 0);
	close(pair[1]);
	close(pair[0]);
}

/* It goes back to the kernel while records wait; the numbers go on. */
static void stamps_when_it_leaves(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "before", 0);
	await_acks(pair[0]);
	stamp(pair[0], NUMBERED_ACKS);
	for (int i = 0; i < 3; i++)
		send_acked(pair[0]);
	say_error_queue(pair[0]);
	SAY("leaves %s\n", err(set_option(pair[0], SOL_SOCKET, SO_ZEROCOPY, 1)));
	stamp(pair[0], NUMBERED_ACKS);
	for (int i = 0; i < 2; i++) {
		SAY("events %#x\n", (unsigned)await(pair[0], 0));
		say_error_queue(pair[0]);
	}
	say_error_queue(pair[0]);
	for (int i = 0; i < 2; i++) {
		send_acked(pair[0]);
		SAY("events %#x\n", (unsigned)await(pair[0], 0));
		say_error_queue(pair[0]);
		say_error_queue(pair[0]);
	}
	stamp(pair[0], 0);
	stamp(pair[0], NUMBERED_ACKS);
	send_acked(pair[0]);
	say_error_queue(pair[0]);
	receive(pair[1], 0);
	close_pair(pair);
}

/* What the peer takes after that is stamped by the kernel, with our number. */
static void stamps_of_what_is_under_way(void)
{
	static char buf[8 << 20], sink[1 << 16];
	uint32_t number = 0;
	int pair[2], records = 0;
	ssize_t sent, got = 0, n;

	make_pair(pair);
	say_sent(pair[0], "before", 0);
	await_acks(pair[0]);
	receive(pair[1], 0);
	stamp(pair[0], NUMBERED_ACKS);
	sent = send(pair[0], buf, sizeof(buf), MSG_DONTWAIT);
	SAY("some %d, not all %d\n", sent > 10000, sent < (ssize_t)sizeof(buf));
	SAY("leaves %s\n", err(set_option(pair[0], SOL_SOCKET, SO_ZEROCOPY, 1)));
	while (got < sent && (n = recv(pair[1], sink, sizeof(sink), 0)) > 0)
		got += n;
	await_acks(pair[0]);
	while (take_number(pair[0], &number))
		records++;
	SAY("records %d, of the last byte %d\n", records,
	    number == (uint32_t)sent - 1);
	send_acked(pair[0]);
	SAY("record %d, of the next %d\n", take_number(pair[0], &number),
	    number == (uint32_t)sent + 6);
	receive(pair[1], 0);
	close_pair(pair);
}

/* A child of a fork has the connection while records wait here. */
static void stamps_over_a_fork(void)
{
	int pair[2], status;
	pid_t child;

	make_pair(pair);
	stamp(pair[0], NUMBERED_ACKS);
	for (int i = 0; i < 2; i++)
		send_acked(pair[0]);
	child = fork();
	if (!child)
		_exit(send(pair[1], "from the child", 14, 0) != 14);
	waitpid(child, &status, 0);
	SAY("child %d\n", status);
	receive(pair[0], 0);
	for (int i = 0; i < 3; i++)
		say_error_queue(pair[0]);
	send_acked(pair[0]);
	say_error_queue(pair[0]);
	receive(pair[1], 0);
	close_pair(pair);
}

/* Records that have the segments are the kernel's. */
static void stamps_with_their_segments(void)
{
	int pair[2];

	make_pair(pair);
	stamp(pair[0], SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
			       SOF_TIMESTAMPING_OPT_ID);
	send_acked(pair[0]);
	say_error_queue(pair[0]);
	receive(pair[1], 0);
	close_pair(pair);
}

static void sent_without_a_copy(void)
{
	int pair[2];

	make_pair(pair);
	SAY("not asked for: ");
	say_sent(pair[0], "plain", MSG_ZEROCOPY);
	await_bytes(pair[1], 5);
	receive(pair[1], 0);
	say_error_queue(pair[0]);
	SAY("set %s\n", err(set_option(pair[0], SOL_SOCKET, SO_ZEROCOPY, 1)));
	say_sent(pair[0], "uncopied", MSG_ZEROCOPY);
	await_bytes(pair[1], 8);
	receive(pair[1], 0);
	SAY("events %#x\n", (unsigned)await(pair[0], 0));
	say_error_queue(pair[0]);
	close_pair(pair);
}

/* As servers of gRPC set it on their listeners. */
static void copied_all_the_same(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2];

	SAY("set %s\n", err(set_option(listener, SOL_SOCKET, SO_ZEROCOPY, 1)));
	make_pair_of(listener, &name, pair);
	SAY("accepted with %d\n", get_option(pair[1], SOL_SOCKET, SO_ZEROCOPY));
	say_sent(pair[1], "copied", 0);
	await_bytes(pair[0], 6);
	receive(pair[0], 0);
	SAY("set %s\n", err(set_option(pair[0], SOL_SOCKET, SO_ZEROCOPY, 1)));
	say_sent(pair[0], "this, too", 0);
	await_bytes(pair[1], 9);
	receive(pair[1], 0);
	SAY("off %s\n", err(set_option(pair[0], SOL_SOCKET, SO_ZEROCOPY, 0)));
	say_sent(pair[0], "asked for in vain", MSG_ZEROCOPY);
	await_bytes(pair[1], 17);
	receive(pair[1], 0);
	say_error_queue(pair[0]);
	close_pair(pair);
	close(listener);
}

/* Of an accepted one, whose listener had the option. */
static void child_sends_without_a_copy(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2];

	set_option(listener, SOL_SOCKET, SO_ZEROCOPY, 1);
	make_pair_of(listener, &name, pair);
	say_sent(pair[1], "copied", 0);
	say_sent(pair[1], "uncopied", MSG_ZEROCOPY);
	say_sent(pair[1], "again", MSG_ZEROCOPY);
	await_bytes(pair[0], 19);
	receive(pair[0], 0);
	SAY("events %#x\n", (unsigned)await(pair[1], 0));
	say_error_queue(pair[1]);
	close_pair(pair);
	close(listener);
}

const struct scenario error_queue_scenarios[] = {
	SCENARIO(stamps_of_acknowledgments, OURS),
	SCENARIO(stamps_of_all_stations, OURS),
	SCENARIO(stamps_as_they_are_asked_for, OURS),
	SCENARIO(stamps_by_control_message, OURS),
	SCENARIO(stamps_of_long_sends, OURS),
	SCENARIO(events_of_stamps, OURS),
	SCENARIO(stamps_when_it_leaves, MIXED),
	SCENARIO(stamps_of_what_is_under_way, MIXED),
	SCENARIO(stamps_over_a_fork, MIXED),
	SCENARIO(stamps_with_their_segments, MIXED),
	SCENARIO(sent_without_a_copy, MIXED),
	SCENARIO(copied_all_the_same, OURS),
	SCENARIO(child_sends_without_a_copy, MIXED),
	SCENARIO_END,
};
