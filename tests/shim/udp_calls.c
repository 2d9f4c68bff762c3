/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: every call on UDP sockets, by one thread: forms of sending and
 * receiving, names, streams. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"

/* -- forms of sending and receiving ------------------------------------------- */

static void every_size(void)
{
	static const size_t sizes[] = { 0,    1,    2,	  63,	64,    255,
					256,  257,  1000, 1471, 1472,  1473,
					2048, 8000, 9216, 65507 };
	static char out[65536], in[70000];
	int pair[2];

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		ssize_t n;

		fill(out, sizes[i], (unsigned)i);
		n = send(pair[0], out, sizes[i], 0);
		SAY("send %zu: %zd %s\n", sizes[i], n, err(n));
		n = recv(pair[1], in, sizeof(in), 0);
		SAY("recv: %zd %08x\n", n, n >= 0 ? sum(in, (size_t)n) : 0);
		received_cnt++;
		kernels_cnt += sizes[i] > 1472;
	}
	for (size_t len = 65508; len <= 65536; len += 14) {
		ssize_t n = send(pair[0], out, len, 0);

		SAY("send %zu: %zd %s\n", len, n, err(n));
	}
	close_pair(pair);
}

static void every_form(void)
{
	struct sockaddr_in name, from = { 0 };
	socklen_t len = sizeof(from);
	char a[8] = "", b[8] = "";
	struct iovec out[3] = { { "one", 3 }, { NULL, 0 }, { "two", 3 } };
	struct iovec in[2] = { { a, 4 }, { b, 4 } };
	struct msghdr msg = { .msg_name = &name,
			      .msg_namelen = sizeof(name),
			      .msg_iov = out,
			      .msg_iovlen = 3 };
	int server = bound(&name), pair[2];
	ssize_t n;

	make_pair(pair);
	n = write(pair[0], "written", 7);
	SAY("write %zd\n", n);
	receive(pair[1], 0);
	n = writev(pair[0], out, 3);
	SAY("writev %zd\n", n);
	n = readv(pair[1], in, 2);
	SAY("readv %zd %.4s|%.4s\n", n, a, b);
	received_cnt++;
	n = sendto(pair[0], "to", 2, 0, (struct sockaddr *)&name, sizeof(name));
	SAY("sendto of a connected one: %zd %s\n", n, err(n));
	n = recvfrom(server, a, sizeof(a), 0, (struct sockaddr *)&from, &len);
	SAY("recvfrom %zd %.2s, family %d, length %u\n", n, a, from.sin_family,
	    len);
	received_cnt++;
	n = sendmsg(pair[1], &msg, 0);
	SAY("sendmsg %zd\n", n);
	memset(a, 0, sizeof(a));
	n = read(server, a, 8);
	SAY("read %zd %.6s\n", n, a);
	received_cnt++;
	n = send(server, "x", 1, 0);
	SAY("send without a peer: %zd %s\n", n, err(n));
	close(server);
	close_pair(pair);
}

/* Without a place, and with flags that say nothing to a socket. */
static void vectors_with_flags(void)
{
	static const int flags[] = { 0, RWF_HIPRI, RWF_SYNC, RWF_NOWAIT };
	char text[8] = "";
	struct iovec out = { (void *)"text", 4 }, in = { text, sizeof(text) };
	int pair[2];
	ssize_t n;

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		n = pwritev2(pair[0], &out, 1, -1, flags[i]);
		SAY("%#x: pwritev2 %zd, at a place %s\n", (unsigned)flags[i], n,
		    err(pwritev2(pair[0], &out, 1, 0, flags[i])));
		settle();
		SAY("at a place %s, ", err(preadv2(pair[1], &in, 1, 0, flags[i])));
		n = preadv2(pair[1], &in, 1, -1, flags[i]);
		SAY("preadv2 %zd %.8s\n", n, text);
		received_cnt++;
	}
	SAY("nothing there: %s\n", err(preadv2(pair[1], &in, 1, -1, RWF_NOWAIT)));
	close_pair(pair);
}

/* What a program that was built with _FORTIFY_SOURCE calls. */
extern ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
extern ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size,
			      int flags, struct sockaddr *addr,
			      socklen_t *addr_len);

static void fortified_calls(void)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	char buf[64] = "";
	int pair[2];

	make_pair(pair);
	send(pair[0], "one", 4, 0);
	SAY("%zd ", __read_chk(pair[1], buf, 60, sizeof(buf)));
	SAY("%s\n", buf);
	send(pair[0], "two", 4, 0);
	SAY("%zd ", __recv_chk(pair[1], buf, 60, sizeof(buf), 0));
	SAY("%s\n", buf);
	send(pair[0], "three", 6, 0);
	SAY("%zd ", __recvfrom_chk(pair[1], buf, 60, sizeof(buf), 0,
				   (struct sockaddr *)&from, &from_len));
	SAY("%s %u\n", buf, from_len);
	SAY("%s\n", err(__recv_chk(pair[1], buf, 60, sizeof(buf),
				   MSG_DONTWAIT)));
	received_cnt += 3;
	close_pair(pair);
}

static void errno_is_left_alone(void)
{
	char buf[16];
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		errno = ENOTTY;
		send(pair[0], "x", 1, 0);
		SAY("send %s, ", strerrorname_np(errno));
		errno = ENOTTY;
		recv(pair[1], buf, sizeof(buf), 0);
		SAY("recv %s, ", strerrorname_np(errno));
		errno = 0;
		recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT);
		SAY("nothing %s\n", strerrorname_np(errno));
		received_cnt++;
	}
	close_pair(pair);
}

static void messages_in_batches(void)
{
	enum { CNT = 40 };
	struct mmsghdr out[CNT], in[CNT];
	struct iovec out_iov[CNT], in_iov[CNT];
	char out_buf[CNT][24], in_buf[CNT][24];
	int pair[2], n;

	make_pair(pair);
	memset(out, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	for (int i = 0; i < CNT; i++) {
		snprintf(out_buf[i], sizeof(out_buf[i]), "message %d", i);
		out_iov[i] = (struct iovec){ out_buf[i], strlen(out_buf[i]) };
		in_iov[i] = (struct iovec){ in_buf[i], sizeof(in_buf[i]) };
		out[i].msg_hdr.msg_iov = &out_iov[i];
		out[i].msg_hdr.msg_iovlen = 1;
		in[i].msg_hdr.msg_iov = &in_iov[i];
		in[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(pair[0], out, CNT, 0);
	SAY("sendmmsg %d, the last %u\n", n, out[CNT - 1].msg_len);
	settle();
	n = recvmmsg(pair[1], in, 10, 0, NULL);
	SAY("recvmmsg %d %.*s\n", n, (int)in[9].msg_len, in_buf[9]);
	received_cnt += (unsigned)n;
	n = recvmmsg(pair[1], in, CNT, MSG_WAITFORONE, NULL);
	SAY("recvmmsg %d %.*s\n", n, (int)in[29].msg_len, in_buf[29]);
	received_cnt += (unsigned)n;
	n = recvmmsg(pair[1], in, CNT, MSG_DONTWAIT, NULL);
	SAY("recvmmsg %d %s\n", n, err(n));
	close_pair(pair);
}

static void peek_and_truncate(void)
{
	char small[4] = "";
	struct iovec iov = { small, sizeof(small) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2];
	ssize_t n;

	make_pair(pair);
	send(pair[0], "longer than that", 16, 0);
	receive(pair[1], MSG_PEEK);
	receive(pair[1], MSG_PEEK);
	n = recv(pair[1], small, sizeof(small), MSG_PEEK | MSG_TRUNC);
	SAY("peek and trunc: %zd %.4s\n", n, small);
	n = recvmsg(pair[1], &msg, 0);
	SAY("recvmsg: %zd %.4s %s\n", n, small,
	    msg.msg_flags & MSG_TRUNC ? "truncated" : "whole");
	received_cnt++;
	send(pair[0], "again", 5, 0);
	n = recv(pair[1], small, 0, MSG_TRUNC);
	SAY("recv of nothing: %zd\n", n);
	received_cnt++;
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

void send_by_kernel(int fd, const char *text, const struct sockaddr_in *to)
{
	socklen_t len = to ? sizeof(*to) : 0;

	if (sendto(fd, text, 1, MSG_MORE, (const struct sockaddr *)to, len) != 1 ||
	    sendto(fd, text + 1, strlen(text) - 1, 0, (const struct sockaddr *)to,
		   len) < 0)
		SAY("send in pieces: %m\n");
}

/* A send that fails leaves what was begun with MSG_MORE, or drops it, whatever Linux does:
 * the next one says which. */
static void begun_and_failed(void)
{
	static const char long_one[UINT16_MAX + 1];
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		SAY("begin: %s\n", err(send(pair[0], "begin ", 6, MSG_MORE)));
		if (i == 0)
			SAY("too long: %s\n", err(send(pair[0], long_one,
						       sizeof(long_one), 0)));
		else if (i == 1)
			SAY("out of band: %s\n",
			    err(send(pair[0], "x", 1, MSG_OOB)));
		else
			SAY("no memory: %s\n", err(send(pair[0], (void *)8, 1, 0)));
		SAY("end: %s\n", err(send(pair[0], "end", 3, 0)));
		send(pair[0], "then", 4, 0);
		settle();
		/* both have their turn, so the order of the two does not count here */
		for (int n = 0; n < 2; n++) {
			char buf[16];
			ssize_t len = recv(pair[1], buf, sizeof(buf), 0);

			received_cnt++;
			if (len != 4)
				SAY("recv: %zd %.*s\n", len, (int)len, buf);
		}
	}
	SAY("no more: %s\n", err(recv(pair[1], pair, 1, MSG_DONTWAIT)));
	close_pair(pair);
}

/* What is wrong with one behind others is told by SO_ERROR, or by the next receive. */
static void batches_with_a_bad_message(void)
{
	struct mmsghdr in[2] = { 0 };
	struct iovec iov;
	int pair[2], told = -1;
	socklen_t len = sizeof(told);
	char buf[8];

	make_pair(pair);
	iov = (struct iovec){ buf, sizeof(buf) };
	for (int i = 0; i < 3; i++) {
		in[0].msg_hdr = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 };
		in[1].msg_hdr = in[0].msg_hdr;
		if (i == 0)
			in[1].msg_hdr.msg_iov = (void *)8;
		else if (i == 1)
			in[1].msg_hdr.msg_iovlen = IOV_MAX + 1;
		else
			in[1].msg_hdr = (struct msghdr){ .msg_name = buf,
							 .msg_namelen = -1u };
		send(pair[0], "first", 5, 0);
		send(pair[0], "second", 6, 0);
		settle();
		SAY("batch: %s\n", err(recvmmsg(pair[1], in, 2, MSG_DONTWAIT, NULL)));
		received_cnt++;
		if (i == 0 && getsockopt(pair[1], SOL_SOCKET, SO_ERROR, &told, &len) == 0)
			SAY("told: %s\n", told ? strerrorname_np(told) : "ok");
		if (i)
			SAY("told: %s\n", err(recv(pair[1], buf, 1, MSG_DONTWAIT)));
		receive(pair[1], MSG_DONTWAIT);
	}
	close_pair(pair);
}

/* Whatever looks at one are as many that the twin has its turn, too. */
static void look_again(int fd)
{
	char buf[64];
	int same = 0, len = 0;

	for (int i = 0; i < 300; i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);

		same += i == 0 || n == len;
		len = (int)n;
	}
	SAY("the same: %d\n", same);
	receive(fd, 0);
	receive(fd, 0);
}

static void say_readable(int fd)
{
	int len = -1;

	SAY("readable: %s", err(ioctl(fd, FIONREAD, &len)));
	SAY(" %d\n", len);
}

/* What the program has looked at is what it gets next, though another one may have come by
 * the kernel, or by us, meanwhile. */
static void looked_at_is_next(void)
{
	int pair[2];

	make_pair(pair);
	say_readable(pair[1]);
	send(pair[0], "ours", 4, 0);
	settle();
	receive(pair[1], MSG_PEEK);
	send_by_kernel(pair[0], "kernel's", NULL);
	settle();
	look_again(pair[1]);
	send_by_kernel(pair[0], "kernel's", NULL);
	settle();
	receive(pair[1], MSG_PEEK);
	send(pair[0], "ours", 4, 0);
	settle();
	say_readable(pair[1]);
	look_again(pair[1]);
	send(pair[0], "ours", 4, 0);
	settle();
	say_readable(pair[1]);
	send_by_kernel(pair[0], "kernel's", NULL);
	settle();
	say_readable(pair[1]);
	look_again(pair[1]);
	send_by_kernel(pair[0], "kernel's", NULL);
	settle();
	say_readable(pair[1]);
	send(pair[0], "ours", 4, 0);
	settle();
	say_readable(pair[1]);
	look_again(pair[1]);
	say_readable(pair[1]);
	close_pair(pair);
}

static void bad_pointers(void)
{
	struct sockaddr_in name = heard_at(htons(9));
	struct msghdr msg = { .msg_iov = NULL, .msg_iovlen = 1 };
	struct iovec iov = { NULL, 5 };
	volatile int too_few = -1;
	int pair[2];
	ssize_t n;

	make_pair(pair);
	n = send(pair[0], NULL, 5, 0);
	SAY("send: %s\n", err(n));
	n = send(pair[0], NULL, 0, 0);
	SAY("send of nothing: %s\n", err(n));
	receive(pair[1], 0);
	n = sendto(pair[0], "x", 1, 0, (struct sockaddr *)&name, 3);
	SAY("short name: %s\n", err(n));
	n = sendto(pair[0], "x", 1, 0, (struct sockaddr *)8, sizeof(name));
	SAY("bad name: %s\n", err(n));
	n = sendmsg(pair[0], &msg, 0);
	SAY("bad vector: %s\n", err(n));
	n = writev(pair[0], &iov, 1);
	SAY("bad base: %s\n", err(n));
	n = writev(pair[0], &iov, too_few);
	SAY("bad count: %s\n", err(n));
	n = recvmsg(pair[1], NULL, MSG_DONTWAIT);
	SAY("no message: %s\n", err(n));
	n = recv(pair[1], NULL, 5, MSG_DONTWAIT);
	SAY("nothing there: %s\n", err(n));
	name.sin_port = 0;
	n = sendto(pair[0], "x", 1, 0, (struct sockaddr *)&name, sizeof(name));
	SAY("port 0: %s\n", err(n));
	close_pair(pair);
}

/* What lies behind the datagram's end does not matter; a datagram for which there is no memory
 * is gone all the same. */
static void no_memory_for_the_rest(void)
{
	char buf[8];
	struct iovec some[] = { { buf, sizeof(buf) }, { NULL, 10 } };
	struct msghdr msg = { .msg_iov = some, .msg_iovlen = 2 };
	struct iovec none = { NULL, 5 };
	struct msghdr bad_control = { .msg_iov = some, .msg_iovlen = 1, .msg_controllen = 24 };
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 5; i++)
		send(pair[0], "one", 3, 0);
	SAY("sent %s\n", err(send(pair[0], NULL, 0, 0)));
	settle();
	SAY("vector %zd\n", readv(pair[1], some, 2));
	SAY("message %zd\n", recvmsg(pair[1], &msg, 0));
	SAY("looked at %s\n", err(recv(pair[1], NULL, 5, MSG_PEEK)));
	SAY("taken %s\n", err(recv(pair[1], NULL, 5, 0)));
	SAY("taken %s\n", err(readv(pair[1], &none, 1)));
	receive(pair[1], 0);
	SAY("empty %zd\n", recv(pair[1], NULL, 5, MSG_DONTWAIT));
	receive(pair[1], MSG_DONTWAIT);
	SAY("control %s\n", err(sendmsg(pair[0], &bad_control, 0)));
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

/* There is no memory for control messages, whatever the length says. */
static void no_memory_for_control(void)
{
	int pair[2], on = 1;
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	make_pair(pair);
	for (int i = 0; i < 2; i++) {
		send(pair[0], "told", 4, 0);
		settle();
		msg.msg_controllen = 100;
		n = recvmsg(pair[1], &msg, 0);
		SAY("%zd %s, truncated %d, %zu bytes of control messages\n", n,
		    err(n), !!(msg.msg_flags & MSG_CTRUNC), msg.msg_controllen);
		received_cnt++;
		setsockopt(pair[1], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
		setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on));
	}
	close_pair(pair);
}

/* write() sends an empty datagram. */
static void vectors_of_nothing(void)
{
	struct iovec iov[2] = { { NULL, 0 }, { NULL, 0 } };
	int pair[2];

	make_pair(pair);
	SAY("writev %s\n", err(writev(pair[0], iov, 2)));
	SAY("writev %s\n", err(writev(pair[0], iov, 0)));
	settle();
	receive(pair[1], MSG_DONTWAIT);
	SAY("write %s\n", err(write(pair[0], "", 0)));
	settle();
	receive(pair[1], MSG_DONTWAIT);
	close_pair(pair);
}

/* A time that is longer than nanoseconds can say, and more messages than there is memory. */
static void batches_without_end(void)
{
	struct timespec timeout = { .tv_sec = INT64_MAX };
	struct iovec iov[2];
	struct mmsghdr in[2];
	char buf[2][8];
	int pair[2], n;

	make_pair(pair);
	memset(in, 0, sizeof(in));
	for (int i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		in[i].msg_hdr.msg_iov = &iov[i];
		in[i].msg_hdr.msg_iovlen = 1;
		send(pair[0], "one", 3, 0);
	}
	settle();
	n = recvmmsg(pair[1], in, 2, 0, &timeout);
	SAY("recvmmsg %d, time left %d\n", n, timeout.tv_sec > INT64_MAX / 2);
	received_cnt += (unsigned)n;
	send(pair[0], "two", 3, 0);
	settle();
	in[1].msg_hdr.msg_iov = NULL;
	n = recvmmsg(pair[1], in, UINT_MAX, MSG_WAITFORONE, NULL);
	SAY("recvmmsg %d\n", n);
	received_cnt += (unsigned)n;
	close_pair(pair);
}

/* -- names and connections ------------------------------------------------------ */

static void connected_hears_its_peer_alone(void)
{
	struct sockaddr_in a, b, c, got = { 0 };
	int x = bound_by_number(&a), y = bound(&b), z = bound(&c);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t len = sizeof(got);

	connect(x, (struct sockaddr *)&b, sizeof(b));
	sendto(z, "stranger", 8, 0, (struct sockaddr *)&a, sizeof(a));
	sendto(y, "peer", 4, 0, (struct sockaddr *)&a, sizeof(a));
	receive(x, 0);
	receive(x, MSG_DONTWAIT);
	SAY("peer: %d %d\n", getpeername(x, (struct sockaddr *)&got, &len),
	    got.sin_port == b.sin_port);
	SAY("to another: %d\n", connect(x, (struct sockaddr *)&c, sizeof(c)));
	sendto(z, "friend now", 10, 0, (struct sockaddr *)&a, sizeof(a));
	receive(x, 0);
	SAY("to nobody: %d\n", connect(x, &none, sizeof(none)));
	SAY("peer: %d %s\n", getpeername(x, (struct sockaddr *)&got, &len),
	    strerrorname_np(errno));
	sendto(y, "anybody", 7, 0, (struct sockaddr *)&a, sizeof(a));
	receive(x, 0);
	close(x);
	close(y);
	close(z);
}

static void implicit_names(void)
{
	struct sockaddr_in name, from = { 0 };
	int server = bound(&name), client = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(from);
	char buf[16];
	ssize_t n;

	n = sendto(client, "hello", 5, 0, (struct sockaddr *)&name,
		   sizeof(name));
	SAY("sendto %zd\n", n);
	n = recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&from,
		     &len);
	SAY("recvfrom %zd, port %s\n", n, from.sin_port ? "yes" : "no");
	received_cnt++;
	n = sendto(server, "answer", 6, 0, (struct sockaddr *)&from, len);
	SAY("answer %zd\n", n);
	receive(client, 0);
	SAY("bind: %s\n", err(bind_as_heard(client, &name)));
	close(server);
	close(client);
}

static void wildcard_and_specific(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, name;
	int wild = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
	int special = socket(AF_INET, SOCK_DGRAM, 0);
	int client = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(any);

	setsockopt(wild, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(special, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bind(wild, (struct sockaddr *)&any, sizeof(any));
	getsockname(wild, (struct sockaddr *)&any, &len);
	name = heard_at(any.sin_port);
	sendto(client, "to the wildcard", 15, 0, (struct sockaddr *)&name,
	       sizeof(name));
	receive(wild, 0);
	SAY("bind: %s\n", err(bind_as_heard(special, &name)));
	sendto(client, "to the address", 14, 0, (struct sockaddr *)&name,
	       sizeof(name));
	receive(special, 0);
	receive(wild, MSG_DONTWAIT);
	close(special);
	sendto(client, "back again", 10, 0, (struct sockaddr *)&name,
	       sizeof(name));
	receive(wild, 0);
	close(wild);
	close(client);
}

/* Bound to the name, which others may have, too. */
static int shared(const struct sockaddr_in *name, int option)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, option, &one, sizeof(one));
	SAY("bind: %s\n",
	    err(bind_as_heard(fd, name)));
	return fd;
}

/* An AF_INET6 socket without an address. */
static int shared_by_ipv6(in_port_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = port };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	SAY("bind: %s\n", err(bind(fd, (struct sockaddr *)&any, sizeof(any))));
	return fd;
}

/* One datagram from each of several ports: who has got them. */
static void say_who_hears(const struct sockaddr_in *name, const int *fds,
			  unsigned cnt)
{
	enum { SENDERS = 5 };
	struct sockaddr_in from;
	unsigned got[8] = { 0 };
	char c;

	for (int i = 0; i < SENDERS; i++) {
		int fd = bound(&from);

		sendto(fd, "x", 1, 0, (const struct sockaddr *)name,
		       sizeof(*name));
		close(fd);
	}
	settle();
	for (unsigned i = 0; i < cnt; i++)
		while (recv(fds[i], &c, 1, MSG_DONTWAIT) == 1)
			got[i]++;
	for (unsigned i = 0; i < cnt; i++)
		SAY("%u%s", got[i], i + 1 < cnt ? ", " : " heard\n");
	received_cnt += SENDERS;
}

/* SO_REUSEADDR alone shares nothing out: the last to come has it all. */
static void newest_of_those_with_reuseaddr(void)
{
	struct sockaddr_in name, any, peer;
	int fds[4], client = bound(&peer), first = bound(&name);

	close(first);
	for (int i = 0; i < 3; i++)
		fds[i] = shared(&name, SO_REUSEADDR);
	say_who_hears(&name, fds, 3);
	/* one that is connected hears its peer, and the rest goes to the
	 * newest of the others */
	SAY("connect: %s\n", err(connect(fds[2], (struct sockaddr *)&peer,
					 sizeof(peer))));
	say_who_hears(&name, fds, 3);
	sendto(client, "to the connected one", 20, 0, (struct sockaddr *)&name,
	       sizeof(name));
	receive(fds[2], 0);
	/* Of two with the same peer the last to be connected; what comes by a wire
	 * Linux gives to the last that was bound. */
	connect(fds[0], (struct sockaddr *)&peer, sizeof(peer));
	if (!over_wire()) {
		sendto(client, "to which", 8, 0, (struct sockaddr *)&name,
		       sizeof(name));
		receive(fds[2], MSG_DONTWAIT);
		receive(fds[0], MSG_DONTWAIT);
	}
	peer.sin_family = AF_UNSPEC;
	connect(fds[2], (struct sockaddr *)&peer, sizeof(peer));
	connect(fds[0], (struct sockaddr *)&peer, sizeof(peer));
	say_who_hears(&name, fds, 3);
	close(fds[1]);
	fds[1] = fds[2];
	say_who_hears(&name, fds, 2);
	/* an address before none, however old */
	any = name;
	any.sin_addr.s_addr = 0;
	fds[2] = shared(&any, SO_REUSEADDR);
	fds[3] = shared(&any, SO_REUSEADDR);
	say_who_hears(&name, fds, 4);
	close(fds[0]);
	close(fds[1]);
	say_who_hears(&name, fds + 2, 2);
	/* IPv4's own, however old */
	fds[0] = shared_by_ipv6(name.sin_port);
	say_who_hears(&name, (int[]){ fds[2], fds[3], fds[0] }, 3);
	close(fds[0]);
	close(fds[2]);
	close(fds[3]);
	close(client);
}

/* With SO_REUSEPORT each has a share, which is chosen by a secret. */
static void shares_of_those_with_reuseport(void)
{
	enum { SOCKETS = 4, SENDERS = 200 };
	struct sockaddr_in name, from;
	unsigned got[SOCKETS] = { 0 }, sum_got = 0;
	int fds[SOCKETS], first = bound(&name);
	char c;

	close(first);
	for (int i = 0; i < SOCKETS; i++)
		fds[i] = shared(&name, SO_REUSEPORT);
	for (int i = 0; i < SENDERS; i++) {
		int fd = bound(&from);

		for (int k = 0; k < 2; k++)
			sendto(fd, "x", 1, 0, (struct sockaddr *)&name,
			       sizeof(name));
		close(fd);
		settle();
		for (int k = 0; k < SOCKETS; k++) {
			unsigned n = 0;

			while (recv(fds[k], &c, 1, MSG_DONTWAIT) == 1)
				n++;
			got[k] += n;
			/* of one sender all or nothing */
			if (n % 2)
				SAY("%u at once\n", n);
		}
	}
	for (int k = 0; k < SOCKETS; k++) {
		sum_got += got[k];
		SAY("%s share\n", got[k] > SENDERS / SOCKETS &&
					  got[k] < 4 * SENDERS / SOCKETS ?
				  "a fair" :
				  "an unfair");
		close(fds[k]);
	}
	SAY("%u\n", sum_got);
	received_cnt += sum_got;
}

static void closed_port_refuses(void)
{
	struct sockaddr_in name, mine;
	int server = bound(&name), client = bound(&mine);
	int error = 0;
	socklen_t len = sizeof(error);
	struct pollfd fd = { .fd = client, .events = POLLIN };

	connect(client, (struct sockaddr *)&name, sizeof(name));
	send(client, "first", 5, 0);
	receive(server, 0);
	close(server);
	SAY("send: %s\n", err(send(client, "x", 1, 0)));
	SAY("poll: %d %#x\n", poll(&fd, 1, 1000), fd.revents);
	receive(client, 0);
	SAY("send: %s\n", err(send(client, "x", 1, 0)));
	poll(&fd, 1, 1000);
	getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len);
	SAY("SO_ERROR: %s\n", strerrorname_np(error));
	receive(client, MSG_DONTWAIT);
	close(client);
}

/* What comes just before the close is looked at by whoever watches the socket for the
 * library. */
static void closed_port_is_free_at_once(void)
{
	enum { ROUNDS = 10000 };
	struct sockaddr_in name, mine;
	int client = bound(&mine), refused = 0;

	close(bound(&name));
	for (int i = 0; i < ROUNDS; i++) {
		int server = socket(AF_INET, SOCK_DGRAM, 0);

		refused += bind_as_heard(server, &name) != 0;
		send_by_kernel(client, "last", &name);
		close(server);
	}
	SAY("refused: %d\n", refused);
	close(client);
}

static void mapped_addresses(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, from = { 0 };
	int server = socket(AF_INET6, SOCK_DGRAM, 0), off = 0;
	int client = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in name;
	socklen_t len = sizeof(any);
	char buf[16], text[64];
	ssize_t n;

	setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	bind(server, (struct sockaddr *)&any, sizeof(any));
	getsockname(server, (struct sockaddr *)&any, &len);
	name = heard_at(any.sin6_port);
	sendto(client, "hello", 5, 0, (struct sockaddr *)&name, sizeof(name));
	len = sizeof(from);
	n = recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&from,
		     &len);
	received_cnt++;
	SAY("recvfrom %zd, %s, length %u\n", n,
	    inet_ntop(AF_INET6, &from.sin6_addr, text, sizeof(text)), len);
	n = sendto(server, "answer", 6, 0, (struct sockaddr *)&from, len);
	SAY("sendto %zd\n", n);
	receive(client, 0);
	close(server);
	close(client);
}

/* -- streams ------------------------------------------------------------------- */

/* The sizes of all datagrams up to the last one, which is sent past the stream. */
static void say_sizes(int fd, int from)
{
	static char buf[10000];
	ssize_t n;

	if (send(from, "end", 3, 0) != 3)
		SAY("send: %m\n");
	do {
		n = recv(fd, buf, sizeof(buf), 0);
		received_cnt += n > 0;
		SAY("recv: %zd\n", n);
	} while (n > 0 && (n != 3 || memcmp(buf, "end", 3) != 0));
}

/* A stream's buffer says where a datagram ends. */
static void streams_in_pieces(void)
{
	static char text[10001];
	static const size_t sizes[] = { 1, 100, 4095, 4096, 4097, 6000, 8191, 8192, 10000 };
	FILE *stream;
	int pair[2];

	make_pair(pair);
	stream = fdopen(dup(pair[0]), "w");
	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		SAY("of %zu: %zu\n", sizes[i], fwrite(text, 1, sizes[i], stream));
		say_sizes(pair[1], pair[0]);
		SAY("flushed: %d\n", fflush(stream));
		say_sizes(pair[1], pair[0]);
	}
	for (int i = 0; i < 60; i++)
		fprintf(stream, "%.100s\n", text);
	say_sizes(pair[1], pair[0]);
	SAY("closed: %d\n", fclose(stream));
	say_sizes(pair[1], pair[0]);
	close_pair(pair);
}

/* What fdopen() does to the fd, and what can be done with the stream. */
static void streams_in_each_mode(void)
{
	static const char *const modes[] = { "r",  "w",   "a",   "r+", "w+", "a+", "rb", "rb+",
					     "r+b", "re+", "wx+", "rm+", "", "z",  "+r", "rwa" };

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		int pair[2], was, fd, got;
		FILE *stream;

		make_pair(pair);
		fd = dup(pair[0]);
		was = fcntl(fd, F_GETFL);
		errno = 0;
		stream = fdopen(fd, modes[i]);
		SAY("%s: %s, flags %#x\n", modes[i],
		    stream ? "ok" : strerrorname_np(errno), was ^ fcntl(fd, F_GETFL));
		if (stream) {
			SAY("put: %d, %d\n", fputc('x', stream), fflush(stream));
			clearerr(stream);
			send(pair[1], "y", 1, 0);
			got = fgetc(stream);
			received_cnt += got != EOF;
			SAY("get: %d\n", got);
			fclose(stream);
		}
		close_pair(pair);
	}
}

const struct scenario call_scenarios[] = {
	SCENARIO(every_size, 0),
	SCENARIO(every_form, 0),
	SCENARIO(vectors_with_flags, 0),
	SCENARIO(errno_is_left_alone, 0),
	SCENARIO(fortified_calls, 0),
	SCENARIO(messages_in_batches, 0),
	SCENARIO(peek_and_truncate, 0),
	SCENARIO(looked_at_is_next, 4),
	SCENARIO(begun_and_failed, 3),
	SCENARIO(batches_with_a_bad_message, 0),
	SCENARIO(bad_pointers, 1),
	SCENARIO(no_memory_for_control, 0),
	SCENARIO(no_memory_for_the_rest, 0),
	SCENARIO(vectors_of_nothing, 0),
	SCENARIO(batches_without_end, 0),
	SCENARIO(connected_hears_its_peer_alone, 0),
	SCENARIO(implicit_names, 0),
	SCENARIO(wildcard_and_specific, 0),
	SCENARIO(newest_of_those_with_reuseaddr, 0),
	SCENARIO(shares_of_those_with_reuseport, 0),
	SCENARIO(closed_port_refuses, 0),
	SCENARIO(closed_port_is_free_at_once, 0),
	SCENARIO(mapped_addresses, 0),
	SCENARIO(streams_in_pieces, 14),
	SCENARIO(streams_in_each_mode, 0),
	SCENARIO_END,
};
