/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: every call and flag that receives. */
#include "config.h"

#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

/* -- forms -------------------------------------------------------------------------- */

static void every_receiving_call(void)
{
	char a[8] = "", b[8] = "", control[64];
	struct iovec iov[3] = { { a, 3 }, { NULL, 0 }, { b, 4 } };
	struct sockaddr_in name = { 0 };
	struct msghdr msg = { .msg_name = &name,
			      .msg_namelen = sizeof(name),
			      .msg_iov = iov,
			      .msg_iovlen = 3,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	socklen_t len = sizeof(name);
	int pair[2];

	make_pair(pair);
	send(pair[0], "0123456789abcdefghijklmnopqrstuvwxyz", 36, 0);
	await_bytes(pair[1], 36);
	SAY("read %zd ", read(pair[1], a, 3));
	SAY("%s\n", a);
	SAY("readv %zd ", readv(pair[1], iov, 3));
	SAY("%s|%s\n", a, b);
	SAY("preadv2 %zd ", preadv2(pair[1], iov, 3, -1, 0));
	SAY("%s|%s\n", a, b);
	SAY("pread %s\n", err(pread(pair[1], a, 1, 0)));
	SAY("recv %zd ", recv(pair[1], b, 4, 0));
	SAY("%s\n", b);
	SAY("recvfrom %zd ", recvfrom(pair[1], b, 4, 0, (struct sockaddr *)&name, &len));
	SAY("%s, family %d, length %u\n", b, name.sin_family, len);
	SAY("recvmsg %zd ", recvmsg(pair[1], &msg, 0));
	SAY("%s|%s, family %d, name %u, control %zu, flags %#x\n", a, b,
	    name.sin_family, msg.msg_namelen, msg.msg_controllen,
	    (unsigned)msg.msg_flags);
	receive(pair[1], 0);
	close_pair(pair);
}

/* What a program that was built with _FORTIFY_SOURCE calls. */
extern ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
extern ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size,
			      int flags, struct sockaddr *addr,
			      socklen_t *addr_len);

static void fortified_receiving_calls(void)
{
	char buf[8] = "";
	int pair[2];

	make_pair(pair);
	send(pair[0], "onetwothree", 11, 0);
	await_bytes(pair[1], 11);
	SAY("%zd ", __read_chk(pair[1], buf, 3, sizeof(buf)));
	SAY("%s\n", buf);
	SAY("%zd ", __recv_chk(pair[1], buf, 3, sizeof(buf), 0));
	SAY("%s\n", buf);
	SAY("%zd ", __recvfrom_chk(pair[1], buf, 5, sizeof(buf), 0, NULL, NULL));
	SAY("%s\n", buf);
	SAY("%s\n", err(__recv_chk(pair[1], buf, 5, sizeof(buf), MSG_DONTWAIT)));
	close_pair(pair);
}

static void errno_after_success(void)
{
	char buf[16];
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		errno = ENOTTY;
		send(pair[0], "x", 1, 0);
		SAY("send %s, ", strerrorname_np(errno));
		recv(pair[1], buf, sizeof(buf), 0);
		SAY("recv %s, ", strerrorname_np(errno));
		errno = 0;
		recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT);
		SAY("nothing %s\n", strerrorname_np(errno));
	}
	close_pair(pair);
}

static void nothing_to_receive(void)
{
	struct mmsghdr msg = { 0 };
	int pair[2], on = 1;

	make_pair(pair);
	SAY("recv %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_DONTWAIT)));
	SAY("recvmmsg %s\n", err(recvmmsg(pair[1], &msg, 1, MSG_DONTWAIT, NULL)));
	ioctl(pair[1], FIONBIO, &on);
	SAY("FIONBIO %s\n", err(read(pair[1], &(char){ 0 }, 1)));
	on = 0;
	ioctl(pair[1], FIONBIO, &on);
	set_blocking(pair[1], false);
	SAY("O_NONBLOCK %s\n", err(read(pair[1], &(char){ 0 }, 1)));
	SAY("no bytes, recv %s\n", err(recv(pair[1], &(char){ 0 }, 0, 0)));
	SAY("no bytes, read %s\n", err(read(pair[1], &(char){ 0 }, 0)));
	SAY("RWF_NOWAIT %s\n",
	    err(preadv2(pair[1], &(struct iovec){ &on, 1 }, 1, -1, RWF_NOWAIT)));
	send(pair[0], "xy", 2, 0);
	await(pair[1], POLLIN);
	SAY("no bytes, recv %s\n", err(recv(pair[1], &(char){ 0 }, 0, 0)));
	SAY("no bytes, read %s\n", err(read(pair[1], NULL, 0)));
	receive(pair[1], 0);
	close_pair(pair);
}

/* -- flags -------------------------------------------------------------------------- */

static void peeked(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "first", 0);
	await_bytes(pair[1], 5);
	receive(pair[1], MSG_PEEK);
	receive(pair[1], MSG_PEEK);
	say_sent(pair[0], "second", 0);
	await_bytes(pair[1], 11);
	receive(pair[1], MSG_PEEK);
	SAY("a part %zd\n", recv(pair[1], &(char[3]){ 0 }, 3, MSG_PEEK));
	SAY("read %zd\n", read(pair[1], &(char[3]){ 0 }, 3));
	receive(pair[1], MSG_PEEK | MSG_DONTWAIT);
	receive(pair[1], 0);
	receive(pair[1], MSG_PEEK | MSG_DONTWAIT);
	close(pair[0]);
	await(pair[1], POLLIN);
	receive(pair[1], MSG_PEEK);
	receive(pair[1], 0);
	close(pair[1]);
}

/* Each look sees what lies behind the last one's. */
static void peeked_with_an_offset(void)
{
	char buf[8] = "";
	int pair[2], offset = -1;
	socklen_t len = sizeof(offset);

	make_pair(pair);
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_PEEK_OFF, 2)));
	getsockopt(pair[1], SOL_SOCKET, SO_PEEK_OFF, &offset, &len);
	SAY("get %d\n", offset);
	say_sent(pair[0], "abcdefgh", 0);
	await_bytes(pair[1], 8);
	for (int i = 0; i < 3; i++) {
		memset(buf, 0, sizeof(buf));
		SAY("%zd", recv(pair[1], buf, 3, MSG_PEEK | MSG_DONTWAIT));
		SAY(" %s\n", buf);
	}
	receive(pair[1], 0);
	close_pair(pair);
}

static void truncated(void)
{
	char buf[8] = "kept";
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "0123456789", 0);
	await_bytes(pair[1], 10);
	SAY("thrown away %zd", recv(pair[1], buf, 4, MSG_TRUNC));
	SAY(" %s\n", buf);
	SAY("without a place %zd\n", recv(pair[1], NULL, 3, MSG_TRUNC));
	receive(pair[1], 0);
	close_pair(pair);
}

struct pieces {
	int fd, cnt;
};

static void *send_pieces(void *arg)
{
	const struct pieces *pieces = arg;

	for (int i = 0; i < pieces->cnt; i++) {
		sleep_ms(30);
		send(pieces->fd, "piece ", 6, 0);
	}
	shutdown(pieces->fd, SHUT_WR);
	return NULL;
}

static void waited_for_all(void)
{
	struct timeval limit = { 0, 100000 };
	struct pieces pieces = { .cnt = 4 };
	char buf[64] = "";
	struct iovec iov[2] = { { buf, 5 }, { buf + 5, 7 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	pieces.fd = pair[0];
	pthread_create(&thread, NULL, send_pieces, &pieces);
	SAY("recvmsg %zd", recvmsg(pair[1], &msg, MSG_WAITALL));
	SAY(" %s\n", buf);
	memset(buf, 0, sizeof(buf));
	SAY("to the end %zd", recv(pair[1], buf, sizeof(buf), MSG_WAITALL));
	SAY(" %s\n", buf);
	SAY("at the end %zd\n", recv(pair[1], buf, 5, MSG_WAITALL));
	pthread_join(thread, NULL);
	close_pair(pair);
	make_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	send(pair[0], "abc", 3, 0);
	SAY("until its time %zd\n", recv(pair[1], buf, 10, MSG_WAITALL));
	send(pair[0], "abc", 3, 0);
	await_bytes(pair[1], 3);
	SAY("without waiting %zd\n",
	    recv(pair[1], buf, 10, MSG_WAITALL | MSG_DONTWAIT));
	send(pair[0], "abc", 3, 0);
	await_bytes(pair[1], 3);
	SAY("and looking %zd\n", recv(pair[1], buf, 3, MSG_WAITALL | MSG_PEEK));
	close_pair(pair);
}

/* All is there, so each message is full. */
static void messages_of_a_stream(void)
{
	enum { CNT = 4 };
	char bufs[CNT][8] = { "" };
	struct iovec iovs[CNT];
	struct mmsghdr msgs[CNT] = { 0 };
	int pair[2], n;

	make_pair(pair);
	for (int i = 0; i < CNT; i++) {
		iovs[i] = (struct iovec){ bufs[i], 4 };
		msgs[i].msg_hdr.msg_iov = &iovs[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	send(pair[0], "0123456789", 10, 0);
	await_bytes(pair[1], 10);
	n = recvmmsg(pair[1], msgs, CNT, MSG_WAITFORONE, NULL);
	SAY("recvmmsg %d:", n);
	for (int i = 0; i < n; i++)
		SAY(" %u %s", msgs[i].msg_len, bufs[i]);
	SAY("\nnothing %s\n", err(recvmmsg(pair[1], msgs, CNT, MSG_DONTWAIT, NULL)));
	send(pair[0], "0123", 4, 0);
	await_bytes(pair[1], 4);
	SAY("in time %d\n", recvmmsg(pair[1], msgs, CNT, MSG_WAITFORONE,
				     &(struct timespec){ 1, 0 }));
	close(pair[0]);
	await(pair[1], POLLIN);
	n = recvmmsg(pair[1], msgs, CNT, 0, NULL);
	SAY("at the end %d, length %u\n", n, msgs[0].msg_len);
	close(pair[1]);
}

static void bad_flags(void)
{
	int pair[2];

	make_pair(pair);
	send(pair[0], "0123456789", 10, 0);
	await_bytes(pair[1], 10);
	SAY("confirm %zd\n", recv(pair[1], &(char){ 0 }, 1, MSG_CONFIRM));
	SAY("more %zd\n", recv(pair[1], &(char){ 0 }, 1, MSG_MORE));
	SAY("any %zd\n", recv(pair[1], &(char){ 0 }, 1, 1 << 27));
	SAY("close-on-exec %zd\n", recv(pair[1], &(char){ 0 }, 1, MSG_CMSG_CLOEXEC));
	SAY("error queue %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_ERRQUEUE)));
	SAY("out of band %s\n", err(recv(pair[1], &(char){ 0 }, 1, MSG_OOB)));
	receive(pair[1], 0);
	close_pair(pair);
}

/* -- how much ----------------------------------------------------------------------- */

static void receive_with_a_time_limit(void)
{
	struct timeval limit = { 0, 100000 }, got = { 0 };
	socklen_t len = sizeof(got);
	int pair[2];
	long begin;

	make_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	getsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &got, &len);
	SAY("limit %ld.%06ld\n", (long)got.tv_sec, (long)got.tv_usec);
	begin = now_ms();
	SAY("recv %s ", err(recv(pair[1], &(char){ 0 }, 1, 0)));
	SAY("in time: %d\n", now_ms() - begin >= 95 && now_ms() - begin < 3000);
	begin = now_ms();
	SAY("peek %s ", err(recv(pair[1], &(char){ 0 }, 1, MSG_PEEK)));
	SAY("in time: %d\n", now_ms() - begin >= 95 && now_ms() - begin < 3000);
	SAY("nothing %zd\n", recv(pair[1], &(char){ 0 }, 0, 0));
	limit = (struct timeval){ 0, 2000000 };
	SAY("bad %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit,
				       sizeof(limit))));
	limit = (struct timeval){ -1, 0 };
	SAY("negative %s\n", err(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO,
					    &limit, sizeof(limit))));
	SAY("recv %s\n", err(recv(pair[1], &(char){ 0 }, 1, 0)));
	close_pair(pair);
}

static void low_water_mark(void)
{
	struct timeval limit = { 0, 100000 };
	struct pollfd pfd = { .events = POLLIN };
	int pair[2];

	make_pair(pair);
	pfd.fd = pair[1];
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_RCVLOWAT, 10)));
	SAY("get %d\n", get_option(pair[1], SOL_SOCKET, SO_RCVLOWAT));
	say_sent(pair[0], "12345", 0);
	await_bytes(pair[1], 5);
	SAY("poll %d\n", poll(&pfd, 1, 50));
	receive(pair[1], MSG_DONTWAIT);
	say_sent(pair[0], "12345", 0);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	/* too few, so it waits for its time */
	receive(pair[1], 0);
	say_sent(pair[0], "1234567890", 0);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLIN));
	receive(pair[1], 0);
	say_sent(pair[0], "123", 0);
	await_bytes(pair[1], 3);
	SAY("poll %d\n", poll(&pfd, 1, 50));
	set_option(pair[1], SOL_SOCKET, SO_RCVLOWAT, 3);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLIN));
	receive(pair[1], 0);
	set_option(pair[1], SOL_SOCKET, SO_RCVLOWAT, 10);
	say_sent(pair[0], "12", 0);
	shutdown(pair[0], SHUT_WR);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLIN));
	receive(pair[1], 0);
	receive(pair[1], 0);
	close_pair(pair);
}

static void say_waiting(int fd)
{
	int n = -1;

	SAY("FIONREAD %s", err(ioctl(fd, FIONREAD, &n)));
	SAY(" %d\n", n);
}

static void bytes_that_wait(void)
{
	int pair[2], fd = made();

	say_waiting(fd);
	close(fd);
	make_pair(pair);
	say_waiting(pair[1]);
	send(pair[0], "hello", 5, 0);
	await_bytes(pair[1], 5);
	send(pair[0], "world!", 6, 0);
	await_bytes(pair[1], 11);
	say_waiting(pair[1]);
	recv(pair[1], &(char[4]){ 0 }, 4, 0);
	say_waiting(pair[1]);
	recv(pair[1], &(char[4]){ 0 }, 4, MSG_PEEK);
	say_waiting(pair[1]);
	shutdown(pair[0], SHUT_WR);
	await(pair[1], POLLRDHUP);
	say_waiting(pair[1]);
	receive(pair[1], 0);
	say_waiting(pair[1]);
	SAY("no place %s\n", err(ioctl(pair[1], FIONREAD, NULL)));
	close_pair(pair);
}

/* -- bad memory --------------------------------------------------------------------- */

/* What could not be copied is there for the next call. */
static void receives_into_bad_memory(void)
{
	char *end = edge();
	struct iovec iov[2] = { { end - 2, 2 }, { nowhere(), 4 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	socklen_t len = 16;
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "0123456789", 0);
	await_bytes(pair[1], 10);
	SAY("recv %s\n", err(recv(pair[1], nowhere(), 10, 0)));
	SAY("read %s\n", err(read(pair[1], nowhere(), 10)));
	SAY("half of it %s\n", err(recv(pair[1], end - 4, 10, 0)));
	SAY("readv %s\n", err(readv(pair[1], iov, 2)));
	SAY("recvmsg %s\n", err(recvmsg(pair[1], &msg, 0)));
	SAY("no message %s\n", err(recvmsg(pair[1], NULL, 0)));
	SAY("recvmmsg %s\n", err(recvmmsg(pair[1], nowhere(), 1, 0, NULL)));
	SAY("peek %s\n", err(recv(pair[1], nowhere(), 10, MSG_PEEK)));
	receive(pair[1], 0);
	say_sent(pair[0], "abc", 0);
	await_bytes(pair[1], 3);
	SAY("name %zd\n", recvfrom(pair[1], &(char){ 0 }, 1, 0, nowhere(), &len));
	SAY("its length %u\n", len);
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

/* -- control messages --------------------------------------------------------------- */

static void say_control(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct timeval tv;
		int number;

		SAY(" control %d/%d", c->cmsg_level, c->cmsg_type);
		if (c->cmsg_level == SOL_SOCKET) {
			memcpy(&tv, CMSG_DATA(c), sizeof(tv));
			SAY(" %s", llabs(time(NULL) - tv.tv_sec) < 5 ?
					   "about now" : "wrong");
		} else {
			memcpy(&number, CMSG_DATA(c), sizeof(number));
			SAY(" %d", number);
		}
	}
	SAY("\n");
}

static void receive_with_control(int fd, size_t len, int flags)
{
	char buf[64], control[256];
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control),
			      /* which a call without a result leaves alone */
			      .msg_flags = 0x55 };
	ssize_t n = recvmsg(fd, &msg, flags);

	SAY("recvmsg %zd flags %#x room %zu", n, (unsigned)msg.msg_flags,
	    (size_t)msg.msg_controllen);
	if (n < 0)
		msg.msg_controllen = 0;
	say_control(&msg);
}

/* Whatever `len` says, there is no memory for control messages. */
static void receive_without_room(int fd, size_t len)
{
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_controllen = len };

	SAY("no room %zd", recvmsg(fd, &msg, 0));
	SAY(" flags %#x length %zu\n", (unsigned)msg.msg_flags,
	    (size_t)msg.msg_controllen);
}

static void bytes_left_behind(void)
{
	int pair[2];

	make_pair(pair);
	SAY("set %s\n", err(set_option(pair[1], IPPROTO_TCP, TCP_INQ, 1)));
	SAY("bad %s\n", err(set_option(pair[1], IPPROTO_TCP, TCP_INQ, 2)));
	SAY("get %d\n", get_option(pair[1], IPPROTO_TCP, TCP_INQ));
	send(pair[0], "0123456789", 10, 0);
	await_bytes(pair[1], 10);
	receive_with_control(pair[1], 4, 0);
	receive_with_control(pair[1], 4, MSG_PEEK);
	receive_with_control(pair[1], 60, 0);
	receive_with_control(pair[1], 60, MSG_DONTWAIT);
	send(pair[0], "0123456789", 10, 0);
	shutdown(pair[0], SHUT_WR);
	await(pair[1], POLLRDHUP);
	receive_without_room(pair[1], 0);
	receive_with_control(pair[1], 4, 0);
	receive_with_control(pair[1], 60, 0);
	receive_with_control(pair[1], 60, 0);
	receive_with_control(pair[1], 60, 0);
	SAY("off %s\n", err(set_option(pair[1], IPPROTO_TCP, TCP_INQ, 0)));
	receive_with_control(pair[1], 60, 0);
	close_pair(pair);
}

/* Whom such a listener accepts tells it, too. */
static void bytes_left_behind_of_a_child(void)
{
	struct sockaddr_in name;
	int pair[2], listener = listening(&name, 4);

	set_option(listener, IPPROTO_TCP, TCP_INQ, 1);
	make_pair_of(listener, &name, pair);
	SAY("get %d\n", get_option(pair[1], IPPROTO_TCP, TCP_INQ));
	send(pair[0], "0123456789", 10, 0);
	await_bytes(pair[1], 10);
	receive_with_control(pair[1], 4, 0);
	receive_with_control(pair[1], 60, 0);
	close_pair(pair);
	close(listener);
}

/* Linux begins to take stamps some time after the first wish. */
static void await_stamps(const int pair[2])
{
	char byte, control[512];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg;

	do {
		msg = (struct msghdr){ .msg_iov = &iov,
				       .msg_iovlen = 1,
				       .msg_control = control,
				       .msg_controllen = sizeof(control) };
		send(pair[0], "x", 1, 0);
	} while (recvmsg(pair[1], &msg, 0) == 1 && !msg.msg_controllen);
}

static void receive_stamped(const int pair[2])
{
	send(pair[0], "stamped", 7, 0);
	await_bytes(pair[1], 7);
	receive_with_control(pair[1], 60, MSG_PEEK);
	receive_with_control(pair[1], 3, 0);
	receive_with_control(pair[1], 60, 0);
	receive_with_control(pair[1], 60, MSG_DONTWAIT);
}

static void stamps_of_what_arrives(void)
{
	int pair[2], flags = SOF_TIMESTAMPING_RX_SOFTWARE |
			     SOF_TIMESTAMPING_SOFTWARE;

	make_pair(pair);
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_TIMESTAMP, 1)));
	await_stamps(pair);
	receive_stamped(pair);
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, 1)));
	receive_stamped(pair);
	SAY("set %s\n",
	    err(set_option(pair[1], SOL_SOCKET, SO_TIMESTAMPING, flags)));
	set_option(pair[1], IPPROTO_TCP, TCP_INQ, 1);
	receive_stamped(pair);
	send(pair[0], "xy", 2, 0);
	await_bytes(pair[1], 2);
	receive_without_room(pair[1], 0);
	receive_without_room(pair[1], 200);
	SAY("set %s\n", err(set_option(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, 0)));
	receive_stamped(pair);
	/* the other end wishes for nothing */
	send(pair[1], "plain", 5, 0);
	await_bytes(pair[0], 5);
	receive_with_control(pair[0], 60, 0);
	shutdown(pair[0], SHUT_WR);
	await(pair[1], POLLRDHUP);
	receive_with_control(pair[1], 60, 0);
	close_pair(pair);
}

/* Wishes before there is a connection are wishes of the connection. */
static void stamps_from_the_first(void)
{
	struct sockaddr_in name;
	int pair[2], listener = listening(&name, 4);

	set_option(listener, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	make_pair_of(listener, &name, pair);
	SAY("get %d\n", get_option(pair[1], SOL_SOCKET, SO_TIMESTAMPNS));
	await_stamps(pair);
	receive_stamped(pair);
	close_pair(pair);
	close(listener);
}

/* There is no more to wait for, and what there is stays. */
static void peeked_to_the_end(void)
{
	struct timeval limit = { .tv_sec = 10 };
	char bytes[8];

	for (int how = 0; how < 3; how++) {
		int pair[2];

		make_pair(pair);
		setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		say_sent(pair[0], "ab", 0);
		await_bytes(pair[1], 2);
		if (how == 0)
			shutdown(pair[0], SHUT_WR);
		else if (how == 1)
			shutdown(pair[1], SHUT_RD);
		else
			set_option(pair[1], SOL_SOCKET, SO_RCVLOWAT, 8);
		if (how == 2)
			shutdown(pair[0], SHUT_WR);
		for (int i = 0; i < 2; i++) {
			time_t before = time(NULL);
			ssize_t n = recv(pair[1], bytes, sizeof(bytes),
					 how == 2 ? MSG_PEEK : MSG_PEEK | MSG_WAITALL);

			SAY("%d: %zd, waits %d\n", how, n, time(NULL) - before > 8);
		}
		receive(pair[1], 0);
		close_pair(pair);
	}
}

static void *send_slowly(void *arg)
{
	sleep_ms(20);
	send(*(int *)arg, "some", 4, 0);
	sleep_ms(1000);
	send(*(int *)arg, "the rest", 8, 0);
	return NULL;
}

static long cpu_ms(const struct rusage *r)
{
	return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000 +
	       (r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1000;
}

/* While it waits for the rest it sleeps, whatever it has seen before. */
static void peeks_that_wait(void)
{
	struct rusage before, after;
	pthread_t thread;
	char bytes[12];
	int pair[2];

	make_pair(pair);
	pthread_create(&thread, NULL, send_slowly, &pair[0]);
	getrusage(RUSAGE_THREAD, &before);
	SAY("%zd\n", recv(pair[1], bytes, 12, MSG_PEEK | MSG_WAITALL));
	getrusage(RUSAGE_THREAD, &after);
	SAY("spins %d\n", cpu_ms(&after) - cpu_ms(&before) > 700);
	pthread_join(thread, NULL);
	receive(pair[1], 0);
	close_pair(pair);
}

/* What is left of the time is told, as a program may give it to the next call. */
static void batch_counts_its_time_down(void)
{
	struct timespec left = { .tv_sec = 20 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "x", 0);
	SAY("recvmmsg %d\n", recvmmsg(pair[1], &msg, 1, 0, &left));
	SAY("less %d, not much %d\n", left.tv_sec < 20, left.tv_sec >= 3);
	close_pair(pair);
}

const struct scenario receive_scenarios[] = {
	SCENARIO(every_receiving_call, OURS),
	SCENARIO(fortified_receiving_calls, OURS),
	SCENARIO(errno_after_success, OURS),
	SCENARIO(nothing_to_receive, MIXED),
	SCENARIO(peeked, OURS),
	SCENARIO(peeked_with_an_offset, MIXED),
	SCENARIO(peeked_to_the_end, OURS),
	SCENARIO(peeks_that_wait, OURS),
	SCENARIO(batch_counts_its_time_down, OURS),
	SCENARIO(truncated, OURS),
	SCENARIO(waited_for_all, OURS),
	SCENARIO(messages_of_a_stream, OURS),
	SCENARIO(bad_flags, OURS),
	SCENARIO(receive_with_a_time_limit, OURS),
	SCENARIO(low_water_mark, OURS),
	SCENARIO(bytes_that_wait, OURS),
	SCENARIO(receives_into_bad_memory, KERNEL),
	SCENARIO(bytes_left_behind, OURS),
	SCENARIO(bytes_left_behind_of_a_child, OURS),
	SCENARIO(stamps_of_what_arrives, OURS),
	SCENARIO(stamps_from_the_first, OURS),
	SCENARIO_END,
};
