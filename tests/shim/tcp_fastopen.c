/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: Fast Open. They write sysctls, in a network namespace of their own. */
#include "config.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

/* tcpi_options: the data of a SYN has arrived */
enum { OPT_SYN_DATA = 32 };

static void allow(const char *value)
{
	int fd = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		SAY("tcp_fastopen: %m\n");
	close(fd);
}

/* tcpi_fastopen_client_fail: two bits that the C library's struct does not name */
static unsigned failure(int fd)
{
	struct tcp_info info = { .tcpi_options = 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return ((const unsigned char *)&info)[7] >> 1 & 3;
}

static const char *by_syn(int fd)
{
	struct tcp_info info = { .tcpi_options = 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_options & OPT_SYN_DATA ? "by SYN" : "not by SYN";
}

static ssize_t send_fast(int fd, const struct sockaddr_in *name,
			 const char *text, int flags)
{
	ssize_t n = sendto(fd, text, strlen(text), MSG_FASTOPEN | flags,
			   (const struct sockaddr *)name, sizeof(*name));

	SAY("fast send of %zu: %zd %s\n", strlen(text), n, err(n));
	return n;
}

static int fast_listener(struct sockaddr_in *name)
{
	int fd = listening(name, 8);

	SAY("TCP_FASTOPEN %s", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN, 5)));
	SAY(" %d\n", get_option(fd, IPPROTO_TCP, TCP_FASTOPEN));
	return fd;
}

/* A connection that leaves the listener's cookie behind. */
static void learn(int listener, const struct sockaddr_in *name)
{
	int fd = made(), child;

	send_fast(fd, name, "who are you", 0);
	child = accept(listener, NULL, NULL);
	receive(child, 0);
	close(fd);
	close(child);
}

/* What has come is all that was sent, once. */
static void say_pair(int child, int fd)
{
	char rest[8];

	receive(child, 0);
	say_sent(child, "answer", 0);
	receive(fd, 0);
	SAY("more %s\n", err(recv(child, rest, sizeof(rest), MSG_DONTWAIT)));
	shutdown(fd, SHUT_WR);
	SAY("end %zd\n", recv(child, rest, sizeof(rest), 0));
	close(child);
	close(fd);
}

static void say_child(int listener, int fd)
{
	int child = accept(listener, NULL, NULL);

	await_acks(fd);
	SAY("server %s, client %s, failure %u\n", by_syn(child), by_syn(fd),
	    failure(fd));
	say_pair(child, fd);
}

static void fast_open_carries_data(void)
{
	struct sockaddr_in name;
	int listener, fd;

	allow("3");
	listener = fast_listener(&name);
	learn(listener, &name);
	fd = made();
	send_fast(fd, &name, "at once", 0);
	SAY("again %s\n", err(connect_to(fd, &name)));
	send_fast(fd, &name, "twice", MSG_NOSIGNAL);
	say_child(listener, fd);
	fd = made_nonblocking();
	send_fast(fd, &name, "without a wait", 0);
	await(fd, POLLOUT);
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	set_blocking(fd, true);
	say_child(listener, fd);
	close(listener);
	allow("1");
}

/* The SYN has room for a part. */
static void fast_open_carries_a_part(void)
{
	static char buf[100000], got[100000];
	struct sockaddr_in name;
	int listener, fd = made(), child;
	ssize_t n;

	allow("3");
	listener = fast_listener(&name);
	learn(listener, &name);
	fill(buf, sizeof(buf), 1);
	n = sendto(fd, buf, 20000, MSG_FASTOPEN, (struct sockaddr *)&name,
		   sizeof(name));
	SAY("sent %zd\n", n);
	child = accept(listener, NULL, NULL);
	SAY("sum %d\n", receive_all(child, got, 20000) == 20000 &&
				sum(got, 20000) == sum(buf, 20000));
	SAY("server %s\n", by_syn(child));
	close(fd);
	close(child);
	close(listener);
	allow("1");
}

static void fast_open_waits_for_data(void)
{
	struct sockaddr_in name, peer;
	socklen_t len = sizeof(peer);
	int listener, fd;

	allow("3");
	listener = fast_listener(&name);
	learn(listener, &name);
	fd = made_nonblocking();
	SAY("set %s\n", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("peer %s\n", err(getpeername(fd, (struct sockaddr *)&peer, &len)));
	SAY("port %d\n", own_port(fd) != 0);
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("option %d\n", get_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT));
	say_sent(fd, "later", 0);
	await(fd, POLLOUT);
	set_blocking(fd, true);
	say_child(listener, fd);
	fd = made();
	SAY("set %s\n", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("shut %s\n", err(shutdown(fd, SHUT_RDWR)));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	say_sent(fd, "another", 0);
	say_child(listener, fd);
	/* nothing has left */
	fd = made();
	set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
	SAY("connect %s\n", err(connect_to(fd, &name)));
	close(fd);
	set_blocking(listener, false);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	close(listener);
	allow("1");
}

static void fast_open_is_refused(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in name;
	int listener, fd = made(), pair[2];

	allow("3");
	listener = fast_listener(&name);
	SAY("no name %s\n", err(send(fd, "x", 1, MSG_FASTOPEN)));
	SAY("AF_UNSPEC %s\n", err(sendto(fd, "x", 1, MSG_FASTOPEN, &none,
					 sizeof(none))));
	SAY("bad values %s", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 2)));
	SAY(" %s", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 2)));
	SAY(" %s\n", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN, -1)));
	SAY("of a listener %s\n", err(sendto(listener, "x", 1, MSG_FASTOPEN,
					     (struct sockaddr *)&name,
					     sizeof(name))));
	make_pair_of(listener, &name, pair);
	SAY("of a connection %s", err(send(pair[0], "x", 1, MSG_FASTOPEN)));
	SAY(" %s", err(set_option(pair[0], IPPROTO_TCP, TCP_FASTOPEN, 5)));
	SAY(" %s\n", err(set_option(pair[0], IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)));
	allow("2");
	SAY("no client %s", err(sendto(fd, "x", 1, MSG_FASTOPEN,
				       (struct sockaddr *)&name, sizeof(name))));
	SAY(" %s", err(send(pair[0], "x", 1, MSG_FASTOPEN)));
	SAY(" %s\n", err(set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)));
	close_pair(pair);
	close(fd);
	close(listener);
	allow("1");
}

/* Where nobody knows each other, the SYN asks, and the data follows. */
static void fast_open_asks_first(void)
{
	struct sockaddr_in name;
	int listener, fd;

	allow("3");
	listener = fast_listener(&name);
	fd = made_nonblocking();
	send_fast(fd, &name, "nobody knows me", 0);
	await(fd, POLLOUT);
	SAY("connect %s\n", err(connect_to(fd, &name)));
	set_blocking(fd, true);
	say_sent(fd, "the usual way", 0);
	say_child(listener, fd);
	close(listener);
	allow("1");
}

static void fast_open_without_cookies(void)
{
	struct sockaddr_in name;
	int listener, fd = made();

	allow("3");
	listener = fast_listener(&name);
	SAY("listener %s\n", err(set_option(listener, IPPROTO_TCP,
					    TCP_FASTOPEN_NO_COOKIE, 1)));
	SAY("client %s\n", err(set_option(fd, IPPROTO_TCP,
					  TCP_FASTOPEN_NO_COOKIE, 1)));
	send_fast(fd, &name, "we trust", 0);
	say_child(listener, fd);
	close(listener);
	allow("1");
}

/* A cookie of the key before opens, one of a key that is gone does not. */
static void fast_open_keys(void)
{
	static const char keys[32] = "0123456789abcdefFEDCBA9876543210";
	struct sockaddr_in name;
	socklen_t len = sizeof(keys);
	char got[sizeof(keys)] = "";
	int listener, fd = made();

	allow("3");
	listener = fast_listener(&name);
	SAY("key %s", err(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY,
				     keys + 16, 16)));
	SAY(" %s\n", err(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY,
				    keys, 15)));
	learn(listener, &name);
	SAY("keys %s\n", err(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY,
					keys, sizeof(keys))));
	SAY("got %s", err(getsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY,
				     got, &len)));
	SAY(" %u %d\n", len, memcmp(got, keys, sizeof(keys)) == 0);
	send_fast(fd, &name, "the old key", 0);
	say_child(listener, fd);
	setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY, "fedcba9876543210", 16);
	fd = made();
	send_fast(fd, &name, "a lost key", 0);
	say_child(listener, fd);
	close(listener);
	allow("1");
}

/* Its data is with the peer once, whoever has the connection. */
static void fast_open_goes_back(void)
{
	struct sockaddr_in name;
	int listener, fd, child;

	allow("3");
	listener = fast_listener(&name);
	learn(listener, &name);
	fd = made_nonblocking();
	send_fast(fd, &name, "and then the kernel", 0);
	child = accept(listener, NULL, NULL);
	SAY("only the kernel can %s\n", err(set_option(fd, SOL_SOCKET, SO_PEEK_OFF, 0)));
	set_blocking(fd, true);
	say_pair(child, fd);
	/* before anything was written */
	fd = made();
	set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
	SAY("connect %s\n", err(connect_to(fd, &name)));
	SAY("only the kernel can %s\n", err(set_option(fd, SOL_SOCKET, SO_PEEK_OFF, 0)));
	say_sent(fd, "written then", 0);
	close(fd);
	fd = accept(listener, NULL, NULL);
	receive(fd, 0);
	close(fd);
	close(listener);
	allow("1");
}

const struct scenario fastopen_scenarios[] = {
	SCENARIO(fast_open_carries_data, OURS),
	SCENARIO(fast_open_carries_a_part, OURS),
	SCENARIO(fast_open_waits_for_data, OURS),
	SCENARIO(fast_open_is_refused, MIXED),
	SCENARIO(fast_open_asks_first, OURS),
	SCENARIO(fast_open_without_cookies, OURS),
	SCENARIO(fast_open_keys, OURS),
	SCENARIO(fast_open_goes_back, MIXED),
	SCENARIO_END,
};
