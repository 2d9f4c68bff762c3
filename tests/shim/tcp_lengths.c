/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: calls with lengths that no memory has, and names that cannot be. */
#include "config.h"

#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

/* That the compiler does not know them. */
static volatile size_t no_size = SIZE_MAX;
static volatile socklen_t no_len = (socklen_t)-1;

static void next_byte(const int pair[2])
{
	send(pair[0], "x", 1, 0);
	await_bytes(pair[1], 1);
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
	next_byte(pair);
	SAY("recv %zd\n", recv(pair[1], buf, no_size, 0));
	next_byte(pair);
	SAY("recvfrom %zd\n", recvfrom(pair[1], buf, no_size, 0, NULL, NULL));
	next_byte(pair);
	SAY("read %s\n", err(read(pair[1], buf, no_size)));
	SAY("readv %s\n", err(readv(pair[1], &iov, 1)));
	SAY("recvmsg %s\n", err(recvmsg(pair[1], &msg, 0)));
	SAY("recvmmsg %s\n", err(recvmmsg(pair[1], &batch, 1, 0, NULL)));
	iov = (struct iovec){ nowhere(), 4 };
	SAY("readv nowhere %s\n", err(readv(pair[1], &iov, 1)));
	SAY("recvmsg nowhere %s\n", err(recvmsg(pair[1], &msg, 0)));
	SAY("recvmmsg nowhere %s\n", err(recvmmsg(pair[1], &batch, 1, 0, NULL)));
	receive(pair[1], 0);
	close_pair(pair);
}

static void receives_of_any_name(void)
{
	char buf[16];
	struct sockaddr_in name;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	socklen_t len = no_len;
	int pair[2];

	make_pair(pair);
	next_byte(pair);
	msg.msg_namelen = 77;
	SAY("without a name %zd", recvmsg(pair[1], &msg, 0));
	SAY(" %u\n", msg.msg_namelen);
	next_byte(pair);
	msg.msg_namelen = no_len;
	SAY("none of no length %zd\n", recvmsg(pair[1], &msg, 0));
	next_byte(pair);
	msg.msg_name = &name;
	SAY("of no length %s\n", err(recvmsg(pair[1], &msg, 0)));
	msg.msg_namelen = 1000;
	SAY("of any %zd", recvmsg(pair[1], &msg, 0));
	SAY(" %u\n", msg.msg_namelen);
	next_byte(pair);
	SAY("recvfrom %s\n", err(recvfrom(pair[1], buf, sizeof(buf), 0,
					  (struct sockaddr *)&name, &len)));
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

/* Behind its last one, nobody looks. */
static void messages_without_end(void)
{
	char buf[8] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = &iov,
						  .msg_iovlen = 1 } } };
	int pair[2], n;

	make_pair(pair);
	say_sent(pair[0], "one", 0);
	await_bytes(pair[1], 3);
	n = recvmmsg(pair[1], msgs, UINT_MAX, MSG_WAITFORONE, NULL);
	SAY("recvmmsg %d %s\n", n, buf);
	close_pair(pair);
}

/* Linux takes a part of what is too long, but where it writes as to files. */
static void sends_of_any_length(void)
{
	enum { LEN = 64 << 20 };
	char *text = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { NULL, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2];

	make_pair(pair);
	SAY("writev nowhere %s\n", err(writev(pair[0], &iov, 1)));
	SAY("sendmsg nowhere %s\n", err(sendmsg(pair[0], &msg, 0)));
	SAY("write %s\n", err(write(pair[0], text, no_size)));
	iov = (struct iovec){ text, no_size };
	SAY("writev %s\n", err(writev(pair[0], &iov, 1)));
	SAY("sendmsg %s\n", err(sendmsg(pair[0], &msg, 0)));
	say_sent(pair[0], "x", 0);
	receive(pair[1], 0);
	SAY("send %d\n", send(pair[0], text, no_size, MSG_DONTWAIT) > 0);
	reset(pair[1]);
	close(pair[0]);
	munmap(text, LEN);
}

enum { LONG_NAME = 1000 };

static void sends_to_any_name(void)
{
	/* longer than any name, for what looks at all that a message says it has */
	union {
		struct sockaddr_storage room;
		char bytes[LONG_NAME];
	} name = { .room.ss_family = AF_INET };
	struct sockaddr *to = (struct sockaddr *)&name;
	struct iovec iov = { (void *)"x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr batch = { 0 };
	int pair[2];

	make_pair(pair);
	SAY("sendto %s\n", err(sendto(pair[0], "x", 1, 0, to, no_len)));
	SAY("too long %s\n", err(sendto(pair[0], "x", 1, 0, to, sizeof(name.room) + 1)));
	SAY("nowhere %s\n", err(sendto(pair[0], "x", 1, 0, nowhere(), 16)));
	SAY("none %zd\n", sendto(pair[0], "x", 1, 0, NULL, no_len));
	SAY("all of it %zd\n", sendto(pair[0], "x", 1, 0, to, sizeof(name.room)));
	msg.msg_namelen = no_len;
	SAY("no message's %zd\n", sendmsg(pair[0], &msg, 0));
	msg.msg_name = to;
	batch.msg_hdr = msg;
	SAY("message %s\n", err(sendmsg(pair[0], &msg, 0)));
	SAY("batch %s\n", err(sendmmsg(pair[0], &batch, 1, 0)));
	msg.msg_namelen = LONG_NAME;
	SAY("long message's %zd\n", sendmsg(pair[0], &msg, 0));
	msg.msg_name = nowhere();
	SAY("message to nowhere %s\n", err(sendmsg(pair[0], &msg, 0)));
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

const struct scenario length_scenarios[] = {
	SCENARIO(receives_of_any_length, OURS),
	SCENARIO(receives_of_any_name, OURS),
	SCENARIO(messages_without_end, OURS),
	SCENARIO(sends_of_any_length, OURS),
	SCENARIO(sends_to_any_name, OURS),
	SCENARIO_END,
};
