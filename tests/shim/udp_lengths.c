/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: calls with lengths that no memory has, and names that cannot be. */
#include "config.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/high_page.h"

/* That the compiler does not know them. */
static volatile size_t no_size = SIZE_MAX;
static volatile socklen_t no_len = (socklen_t)-1;
static void *volatile nowhere = (void *)8;

static void next_datagram(const int pair[2])
{
	send(pair[0], "text", 4, 0);
	settle();
}

/* Linux cuts what is too long, but where it reads and writes as from files. */
static void receives_of_any_length(void)
{
	/* not on the stack, behind which memory ends */
	static char buf[16];
	struct iovec iov = { buf, no_size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr batch = { .msg_hdr = msg };
	int pair[2];

	make_pair(pair);
	next_datagram(pair);
	SAY("recv %zd\n", recv(pair[1], buf, no_size, 0));
	next_datagram(pair);
	SAY("recvfrom %zd\n", recvfrom(pair[1], buf, no_size, 0, NULL, NULL));
	next_datagram(pair);
	received_cnt += 2;
	SAY("read %s\n", err(read(pair[1], buf, no_size)));
	SAY("readv %s\n", err(readv(pair[1], &iov, 1)));
	SAY("recvmsg %s\n", err(recvmsg(pair[1], &msg, 0)));
	SAY("recvmmsg %s\n", err(recvmmsg(pair[1], &batch, 1, 0, NULL)));
	receive(pair[1], 0);
	close_pair(pair);
}

static void receives_of_any_name(void)
{
	char buf[16];
	struct sockaddr_in name;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr batch = { 0 };
	int pair[2];

	make_pair(pair);
	next_datagram(pair);
	msg.msg_namelen = 77;
	SAY("without a name %zd", recvmsg(pair[1], &msg, 0));
	SAY(" %u\n", msg.msg_namelen);
	next_datagram(pair);
	msg.msg_namelen = no_len;
	SAY("none of no length %zd\n", recvmsg(pair[1], &msg, 0));
	next_datagram(pair);
	received_cnt += 3;
	msg.msg_name = &name;
	batch.msg_hdr = msg;
	SAY("of no length %s\n", err(recvmsg(pair[1], &msg, 0)));
	SAY("batch %s\n", err(recvmmsg(pair[1], &batch, 1, 0, NULL)));
	msg.msg_namelen = 1000;
	SAY("of any %zd", recvmsg(pair[1], &msg, 0));
	SAY(" %u\n", msg.msg_namelen);
	close_pair(pair);
}

/* As of a length that was never set. */
static void names_of_a_length_beyond_memory(void)
{
	char buf[16], *page = high_page();
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_name = page,
			      .msg_namelen = INT_MAX };
	socklen_t len = INT_MAX;
	int pair[2];

	make_pair(pair);
	next_datagram(pair);
	SAY("recvfrom %zd", recvfrom(pair[1], buf, sizeof(buf), 0,
				     (struct sockaddr *)(void *)page, &len));
	SAY(" %u\n", len);
	next_datagram(pair);
	SAY("recvmsg %zd", recvmsg(pair[1], &msg, 0));
	SAY(" %u\n", msg.msg_namelen);
	received_cnt += 2;
	close_pair(pair);
	munmap(page, HIGH_PAGE_SIZE);
}

/* No datagram is as long. */
static void sends_of_any_length(void)
{
	/* as above */
	static char buf[16];
	struct iovec iov = { buf, no_size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2];

	make_pair(pair);
	SAY("send %s\n", err(send(pair[0], buf, no_size, 0)));
	SAY("sendto %s\n", err(sendto(pair[0], buf, no_size, 0, NULL, 0)));
	SAY("write %s\n", err(write(pair[0], buf, no_size)));
	SAY("writev %s\n", err(writev(pair[0], &iov, 1)));
	SAY("sendmsg %s\n", err(sendmsg(pair[0], &msg, 0)));
	iov = (struct iovec){ nowhere, 4 };
	SAY("writev nowhere %s\n", err(writev(pair[0], &iov, 1)));
	SAY("sendmsg nowhere %s\n", err(sendmsg(pair[0], &msg, 0)));
	close_pair(pair);
}

enum { LONG_NAME = 1000 };

static void sends_to_any_name(void)
{
	/* longer than any name, for what looks at all that a message says it has */
	union {
		struct sockaddr_in v4;
		struct sockaddr_storage room;
		char bytes[LONG_NAME];
	} name = { 0 };
	struct sockaddr *to = (struct sockaddr *)&name;
	struct iovec iov = { (void *)"text", 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr batch = { 0 };
	int reader = bound(&name.v4), fd = bound(&(struct sockaddr_in){ 0 });

	SAY("sendto %s\n", err(sendto(fd, "text", 4, 0, to, sizeof(name.v4))));
	SAY("no length %s\n", err(sendto(fd, "text", 4, 0, to, no_len)));
	SAY("too long %s\n", err(sendto(fd, "text", 4, 0, to, sizeof(name.room) + 1)));
	SAY("nowhere %s\n", err(sendto(fd, "text", 4, 0, nowhere, 16)));
	SAY("none %s\n", err(sendto(fd, "text", 4, 0, NULL, no_len)));
	SAY("all of it %s\n", err(sendto(fd, "text", 4, 0, to, sizeof(name.room))));
	msg.msg_name = to;
	msg.msg_namelen = no_len;
	batch.msg_hdr = msg;
	SAY("message %s\n", err(sendmsg(fd, &msg, 0)));
	SAY("batch %s\n", err(sendmmsg(fd, &batch, 1, 0)));
	msg.msg_namelen = LONG_NAME;
	SAY("long message's %s\n", err(sendmsg(fd, &msg, 0)));
	settle();
	for (int i = 0; i < 3; i++)
		receive(reader, MSG_DONTWAIT);
	receive(reader, MSG_DONTWAIT);
	close(fd);
	close(reader);
}

const struct scenario length_scenarios[] = {
	SCENARIO(receives_of_any_length, 0),
	SCENARIO(receives_of_any_name, 0),
	SCENARIO(names_of_a_length_beyond_memory, 0),
	SCENARIO(sends_of_any_length, 0),
	/* the last one */
	SCENARIO(sends_to_any_name, 1),
	SCENARIO_END,
};
