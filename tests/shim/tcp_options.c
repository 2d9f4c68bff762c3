/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: socket options, what they begin with, take and refuse. */
#include "config.h"

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <netinet/ip.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif

/* -- numbers ------------------------------------------------------------------------ */

static const struct number {
	const char *name;
	int level, option;
	int good; /* a value that it takes */
} numbers[] = {
#define NUMBER(level, name, good) { #name, level, name, good }
	NUMBER(SOL_SOCKET, SO_ACCEPTCONN, 1),
	NUMBER(SOL_SOCKET, SO_BROADCAST, 1),
	NUMBER(SOL_SOCKET, SO_BUSY_POLL, 50),
	NUMBER(SOL_SOCKET, SO_DEBUG, 0),
	NUMBER(SOL_SOCKET, SO_DOMAIN, AF_INET),
	NUMBER(SOL_SOCKET, SO_DONTROUTE, 1),
	NUMBER(SOL_SOCKET, SO_ERROR, 1),
	NUMBER(SOL_SOCKET, SO_KEEPALIVE, 1),
	NUMBER(SOL_SOCKET, SO_MARK, 0),
	NUMBER(SOL_SOCKET, SO_NO_CHECK, 1),
	NUMBER(SOL_SOCKET, SO_OOBINLINE, 1),
	NUMBER(SOL_SOCKET, SO_PASSCRED, 1),
	NUMBER(SOL_SOCKET, SO_PREFER_BUSY_POLL, 0),
	NUMBER(SOL_SOCKET, SO_PRIORITY, 6),
	NUMBER(SOL_SOCKET, SO_PROTOCOL, 6),
	NUMBER(SOL_SOCKET, SO_RCVBUF, 10000),
	NUMBER(SOL_SOCKET, SO_RCVLOWAT, 12),
	NUMBER(SOL_SOCKET, SO_REUSEADDR, 1),
	NUMBER(SOL_SOCKET, SO_REUSEPORT, 1),
	NUMBER(SOL_SOCKET, SO_RXQ_OVFL, 1),
	NUMBER(SOL_SOCKET, SO_SNDBUF, 10000),
	NUMBER(SOL_SOCKET, SO_SNDLOWAT, 12),
	NUMBER(SOL_SOCKET, SO_TIMESTAMP, 1),
	NUMBER(SOL_SOCKET, SO_TIMESTAMPNS, 1),
	NUMBER(SOL_SOCKET, SO_TIMESTAMPING, 16),
	NUMBER(SOL_SOCKET, SO_TYPE, SOCK_STREAM),
	NUMBER(SOL_SOCKET, SO_ZEROCOPY, 1),
	NUMBER(SOL_SOCKET, SO_MAX_PACING_RATE, 1000000),
	NUMBER(SOL_SOCKET, SO_PEEK_OFF, 3),
	NUMBER(SOL_SOCKET, 999, 1),
	NUMBER(IPPROTO_TCP, TCP_CORK, 1),
	NUMBER(IPPROTO_TCP, TCP_DEFER_ACCEPT, 10),
	NUMBER(IPPROTO_TCP, TCP_FASTOPEN, 5),
	NUMBER(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
	NUMBER(IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1),
	NUMBER(IPPROTO_TCP, TCP_INQ, 1),
	NUMBER(IPPROTO_TCP, TCP_KEEPCNT, 3),
	NUMBER(IPPROTO_TCP, TCP_KEEPIDLE, 100),
	NUMBER(IPPROTO_TCP, TCP_KEEPINTVL, 200),
	NUMBER(IPPROTO_TCP, TCP_LINGER2, 5),
	NUMBER(IPPROTO_TCP, TCP_MAXSEG, 1000),
	NUMBER(IPPROTO_TCP, TCP_NODELAY, 1),
	NUMBER(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384),
	NUMBER(IPPROTO_TCP, TCP_QUICKACK, 0),
	NUMBER(IPPROTO_TCP, TCP_SAVE_SYN, 1),
	NUMBER(IPPROTO_TCP, TCP_SYNCNT, 4),
	NUMBER(IPPROTO_TCP, TCP_THIN_DUPACK, 1),
	NUMBER(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1),
	NUMBER(IPPROTO_TCP, TCP_TX_DELAY, 0),
	NUMBER(IPPROTO_TCP, TCP_USER_TIMEOUT, 20000),
	NUMBER(IPPROTO_TCP, TCP_WINDOW_CLAMP, 20000),
	NUMBER(IPPROTO_TCP, 999, 1),
	NUMBER(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1),
	NUMBER(IPPROTO_IP, IP_FREEBIND, 1),
	NUMBER(IPPROTO_IP, IP_MTU, 1000),
	NUMBER(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE),
	NUMBER(IPPROTO_IP, IP_RECVERR, 1),
	NUMBER(IPPROTO_IP, IP_RECVTOS, 1),
	NUMBER(IPPROTO_IP, IP_RECVTTL, 1),
	NUMBER(IPPROTO_IP, IP_TOS, 0x48),
	NUMBER(IPPROTO_IP, IP_TRANSPARENT, 0),
	NUMBER(IPPROTO_IP, IP_TTL, 17),
	NUMBER(IPPROTO_UDP, 103, 1000),
#undef NUMBER
};

static void say_number(int fd, const struct number *n)
{
	int value = -77;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, n->level, n->option, &value, &len) == 0)
		SAY(" %d", value);
	else
		SAY(" %s", strerrorname_np(errno));
	if (len != sizeof(value))
		SAY(" (length %u)", len);
}

static void set_and_say(int fd, const struct number *n, int value)
{
	SAY(", %d:", value);
	SAY(" %s", err(set_option(fd, n->level, n->option, value)));
	say_number(fd, n);
}

/* What a connection has found out, or grows by itself, is nobody's promise. */
static bool is_of_the_moment(const struct number *n, bool is_connected)
{
	if (!is_connected)
		return false;
	if (n->level == SOL_SOCKET)
		return n->option == SO_SNDBUF || n->option == SO_RCVBUF;
	/* the kernel tells it while the socket remembers a route */
	if (n->level == IPPROTO_IP)
		return n->option == IP_MTU;
	return n->level == IPPROTO_TCP &&
	       (n->option == TCP_QUICKACK || n->option == TCP_MAXSEG ||
		n->option == TCP_WINDOW_CLAMP);
}

static void say_options(int fd, bool is_connected)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const struct number *n = &numbers[i];

		if (is_of_the_moment(n, is_connected))
			continue;
		SAY("%s:", n->name);
		say_number(fd, n);
		set_and_say(fd, n, n->good);
		SAY("\n");
	}
}

static void options_of_fresh_sockets(void)
{
	int fd = made();

	say_options(fd, false);
	close(fd);
}

static void options_of_connections(void)
{
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 2; i++)
		say_options(pair[i], true);
	close_pair(pair);
}

static void options_of_listeners(void)
{
	struct sockaddr_in name;
	int fd = listening(&name, 4);

	say_options(fd, false);
	close(fd);
}

static void values_out_of_range(void)
{
	static const int values[] = { -1, 0, 2, 127, 128, 32767, 32768, 65536,
				      0x7fffffff };
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		fd = made();
		SAY("%s", numbers[i].name);
		for (size_t k = 0; k < ARRAY_LEN(values); k++)
			set_and_say(fd, &numbers[i], values[k]);
		SAY("\n");
		close(fd);
	}
}

static void lengths_of_options(void)
{
	static const socklen_t lens[] = { 0, 1, 2, 3, 4, 5, 8 };
	char buf[16];
	int fd = made();

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const struct number *n = &numbers[i];

		SAY("%s set:", n->name);
		for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
			memset(buf, 0, sizeof(buf));
			memcpy(buf, &n->good, sizeof(n->good));
			SAY(" %s", err(setsockopt(fd, n->level, n->option, buf,
						  lens[k])));
		}
		SAY(" %s", err(setsockopt(fd, n->level, n->option, buf,
					  (socklen_t)-1)));
		SAY(" %s", err(setsockopt(fd, n->level, n->option, nowhere(), 4)));
		SAY(" get:");
		for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
			socklen_t len = lens[k];

			memset(buf, 0xee, sizeof(buf));
			SAY(" %s", err(getsockopt(fd, n->level, n->option, buf,
						  &len)));
			SAY(" %u %#x", len, ((unsigned char *)buf)[lens[k]]);
		}
		SAY(" %s", err(getsockopt(fd, n->level, n->option, buf, NULL)));
		SAY(" %s\n", err(getsockopt(fd, n->level, n->option, nowhere(),
					    &(socklen_t){ 4 })));
	}
	close(fd);
}

/* -- buffers ------------------------------------------------------------------------ */

static void sizes_of_buffers(void)
{
	static const int sizes[] = { -1, 0, 1, 1000, 2304, 5000, 100000, 1 << 30 };
	static const int options[] = { SO_RCVBUF, SO_SNDBUF, SO_RCVBUFFORCE,
				       SO_SNDBUFFORCE };
	int fd = made();

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
			SAY("%d: %d %s", options[i], sizes[k],
			    err(set_option(fd, SOL_SOCKET, options[i], sizes[k])));
			SAY(" %d\n",
			    get_option(fd, SOL_SOCKET,
				       i & 1 ? SO_SNDBUF : SO_RCVBUF));
		}
	close(fd);
}

/* A small one holds less, and a stream goes through all the same. */
static void small_buffers(void)
{
	enum { LEN = 300000 };
	struct sockaddr_in name;
	static char text[LEN], got[LEN];
	int listener = listening(&name, 4), pair[2];
	size_t sent;
	ssize_t last;

	set_option(listener, SOL_SOCKET, SO_RCVBUF, 4096);
	pair[0] = made();
	set_option(pair[0], SOL_SOCKET, SO_SNDBUF, 8192);
	connect_to(pair[0], &name);
	pair[1] = accept(listener, NULL, NULL);
	sent = stuff(pair[0]);
	SAY("little: %d\n", sent > 0 && sent < 200000);
	set_blocking(pair[1], false);
	SAY("all came: ");
	while (sent > 0) {
		sent -= drain(pair[1], &last);
		if (sent > 0)
			await(pair[1], POLLIN);
	}
	SAY("%zu left\n", sent);
	fill(text, LEN, 1);
	for (size_t at = 0, n; at < LEN; at += n) {
		n = LEN - at > 1000 ? 1000 : LEN - at;
		send_all(pair[0], text + at, n);
		receive_all(pair[1], got + at, n);
	}
	SAY("right: %d\n", memcmp(text, got, LEN) == 0);
	close_pair(pair);
	close(listener);
}

/* -- algorithms --------------------------------------------------------------------- */

static void say_algorithm(int fd)
{
	char name[64] = "";
	socklen_t len = sizeof(name);

	SAY("get %s", err(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len)));
	SAY(" %u %s\n", len, name);
}

static void set_algorithm(int fd, const char *name, socklen_t len)
{
	SAY("%s %u: %s, ", name, len,
	    err(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, len)));
	say_algorithm(fd);
}

static void names_of_algorithms(void)
{
	char name[16] = "";
	socklen_t len;
	int fd = made(), pair[2];

	/* what they begin with is the machine's, or ours */
	set_algorithm(fd, "reno", 4);
	set_algorithm(fd, "cubic", 6);
	set_algorithm(fd, "reno-and-more", 4);
	set_algorithm(fd, "none", 4);
	set_algorithm(fd, "", 0);
	set_algorithm(fd, "", 1);
	set_algorithm(fd, "a-name-that-is-much-too-long", 28);
	SAY("nowhere %s\n",
	    err(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, nowhere(), 4)));
	for (len = 0; len <= 16; len += 4) {
		socklen_t got = len;

		memset(name, 'e', sizeof(name) - 1);
		SAY("get %s", err(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION,
					     name, &got)));
		SAY(" %u %.15s\n", got, name);
	}
	close(fd);
	make_pair(pair);
	set_algorithm(pair[0], "reno", 4);
	send(pair[0], "still works", 11, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

/* Before the connection, and in the middle of it. */
static void bytes_by_each_algorithm(void)
{
	static const char *const names[] = { "cubic", "bbr", "reno" };
	enum { LEN = 200000 };
	static char text[LEN], got[LEN];
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2];

	pair[0] = made();
	set_algorithm(pair[0], "bbr", 3);
	connect_to(pair[0], &name);
	pair[1] = accept(listener, NULL, NULL);
	for (unsigned i = 0; i < 4; i++) {
		fill(text, LEN, i);
		for (size_t at = 0; at < LEN; at += 10000) {
			send_all(pair[0], text + at, 10000);
			receive_all(pair[1], got + at, 10000);
		}
		SAY("right: %d\n", memcmp(text, got, LEN) == 0);
		if (i < 3)
			set_algorithm(pair[0], names[i],
				      (socklen_t)strlen(names[i]));
	}
	close_pair(pair);
	close(listener);
}

/* -- TCP_INFO ----------------------------------------------------------------------- */

static struct tcp_info info_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		SAY("TCP_INFO: %m\n");
	return info;
}

static void say_state(const char *when, int fd)
{
	struct tcp_info info = info_of(fd);

	SAY("%s: state %d, congestion %d, options %#x\n", when, info.tcpi_state,
	    info.tcpi_ca_state, info.tcpi_options);
}

static void info_of_each_state(void)
{
	struct sockaddr_in name;
	int fd = made(), listener, holder, pair[2];

	say_state("fresh", fd);
	close(fd);
	listener = listening(&name, 0);
	SAY("listening, %d of %d\n", (int)info_of(listener).tcpi_unacked,
	    (int)info_of(listener).tcpi_sacked);
	holder = connected(&name);
	await(listener, POLLIN);
	SAY("with a child, %d of %d\n", (int)info_of(listener).tcpi_unacked,
	    (int)info_of(listener).tcpi_sacked);
	fd = made_nonblocking();
	connect_to(fd, &name);
	say_state("connecting", fd);
	close(fd);
	close(holder);
	close(listener);
	make_pair(pair);
	say_state("connected", pair[0]);
	say_state("accepted", pair[1]);
	shutdown(pair[0], SHUT_WR);
	await(pair[1], POLLIN);
	await_acks(pair[0]);
	sleep_ms(5);
	say_state("half closed", pair[0]);
	say_state("its peer", pair[1]);
	shutdown(pair[1], SHUT_WR);
	await_closed(pair[0]);
	await_closed(pair[1]);
	say_state("closed", pair[0]);
	say_state("its peer", pair[1]);
	close_pair(pair);
	make_pair(pair);
	reset(pair[0]);
	await(pair[1], POLLERR);
	say_state("reset", pair[1]);
	close(pair[1]);
}

/* The connection has taken six segments there and back. One that stands still for 200 ms
 * takes some of them twice, or has a smaller window. */
static void make_pair_of_a_talk(int pair[2])
{
	char buf[16];
	long begin;

	for (int tries = 1;; tries++) {
		begin = now_ms();
		make_pair(pair);
		for (int i = 0; i < 3; i++) {
			send(pair[0], "0123456789", 10, 0);
			receive_all(pair[1], buf, 10);
			send(pair[1], "abc", 3, 0);
			receive_all(pair[0], buf, 3);
		}
		await_acks(pair[0]);
		await_acks(pair[1]);
		if (now_ms() - begin < 180 || tries == 60)
			return;
		close_pair(pair);
	}
}

static void info_of_a_connection(void)
{
	struct tcp_info info;
	int pair[2];

	make_pair_of_a_talk(pair);
	for (int i = 0; i < 2; i++) {
		info = info_of(pair[i]);
		SAY("advertised %u\n", info.tcpi_advmss);
		SAY("retransmitted %u %u %u %llu, lost %u, unacked %u, sacked %u\n",
		    info.tcpi_retransmits, info.tcpi_retrans,
		    info.tcpi_total_retrans,
		    (unsigned long long)info.tcpi_bytes_retrans, info.tcpi_lost,
		    info.tcpi_unacked, info.tcpi_sacked);
		SAY("acked %llu, received %llu, sent %llu, unsent %u\n",
		    (unsigned long long)info.tcpi_bytes_acked,
		    (unsigned long long)info.tcpi_bytes_received,
		    (unsigned long long)info.tcpi_bytes_sent,
		    info.tcpi_notsent_bytes);
		SAY("segments with data %u in, %u out, reordering %u\n",
		    info.tcpi_data_segs_in, info.tcpi_data_segs_out,
		    info.tcpi_reordering);
		SAY("sane: rtt %d, rto %d, cwnd %d, ssthresh %d, rcv_space %d\n",
		    info.tcpi_rtt > 0 && info.tcpi_rtt < 1000000,
		    info.tcpi_rto >= 200000 && info.tcpi_rto < 3000000,
		    info.tcpi_snd_cwnd >= 10, info.tcpi_snd_ssthresh > 1000,
		    info.tcpi_rcv_space > 1000);
		SAY("backoff %u, probes %u, data was sent lately %d\n",
		    info.tcpi_backoff, info.tcpi_probes,
		    info.tcpi_last_data_sent < 5000);
	}
	close_pair(pair);
}

static void lengths_of_info(void)
{
	static const socklen_t lens[] = { 0, 1, 7, 8, 104, 192, 232, 240, 500 };
	char buf[512];
	int pair[2];

	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		socklen_t len = lens[i];

		memset(buf, 0xee, sizeof(buf));
		SAY("%u: %s", lens[i],
		    err(getsockopt(pair[0], IPPROTO_TCP, TCP_INFO, buf, &len)));
		SAY(" %u, the next byte %#x\n", len, ((unsigned char *)buf)[len]);
	}
	SAY("set %s\n", err(set_option(pair[0], IPPROTO_TCP, TCP_INFO, 1)));
	close_pair(pair);
}

/* -- options that act --------------------------------------------------------------- */

static void segment_sizes(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2];

	SAY("too small %s\n", err(set_option(listener, IPPROTO_TCP, TCP_MAXSEG, 87)));
	SAY("too large %s\n",
	    err(set_option(listener, IPPROTO_TCP, TCP_MAXSEG, 32768)));
	SAY("listener %s\n",
	    err(set_option(listener, IPPROTO_TCP, TCP_MAXSEG, 1200)));
	pair[0] = made();
	SAY("client %s\n", err(set_option(pair[0], IPPROTO_TCP, TCP_MAXSEG, 1000)));
	SAY("get %d\n", get_option(pair[0], IPPROTO_TCP, TCP_MAXSEG));
	connect_to(pair[0], &name);
	pair[1] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		struct tcp_info info = info_of(pair[i]);

		SAY("%d: get %d, advertised %u, sends %u\n", i,
		    get_option(pair[i], IPPROTO_TCP, TCP_MAXSEG),
		    info.tcpi_advmss, info.tcpi_snd_mss);
		SAY("later %s", err(set_option(pair[i], IPPROTO_TCP, TCP_MAXSEG,
					       500)));
		SAY(" %d\n", get_option(pair[i], IPPROTO_TCP, TCP_MAXSEG));
	}
	close_pair(pair);
	close(listener);
}

static void keepalive_between_living_ends(void)
{
	int pair[2];

	make_pair(pair);
	set_option(pair[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(pair[0], IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(pair[0], IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_option(pair[0], IPPROTO_TCP, TCP_KEEPCNT, 1);
	sleep_ms(2500);
	say_sent(pair[0], "alive", 0);
	receive(pair[1], 0);
	say_error(pair[0]);
	close_pair(pair);
}

static void bound_to_a_device(void)
{
	struct sockaddr_in name;
	char device[16] = "";
	socklen_t len = sizeof(device);
	int listener = listening(&name, 4), fd = made(), child;

	SAY("none %s\n", err(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE,
					"no-such-device", 14)));
	SAY("lo %s\n", err(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3)));
	SAY("get %s", err(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &len)));
	SAY(" %u %s\n", len, device);
	if (!over_wire()) {
		SAY("connect %s\n", err(connect_to(fd, &name)));
		child = accept(listener, NULL, NULL);
		len = sizeof(device);
		getsockopt(child, SOL_SOCKET, SO_BINDTODEVICE, device, &len);
		SAY("accepted, device %u\n", len);
		say_sent(fd, "by lo", 0);
		receive(child, 0);
		close(child);
	}
	close(fd);
	close(listener);
}

struct receiver {
	char *buf;
	size_t len;
	int fd;
	size_t got_cnt;
};

static void *receive_in_thread(void *arg)
{
	struct receiver *r = arg;

	r->got_cnt = receive_all(r->fd, r->buf, r->len);
	return NULL;
}

/* Linux does not pace the first ten segments, which are long here. */
static void paced(void)
{
	enum { LEN = 1 << 20, RATE = 4 << 20 };
	static char text[LEN], got[LEN];
	struct receiver receiver = { got, LEN, -1, 0 };
	pthread_t thread;
	int pair[2];
	long begin, took;

	make_pair(pair);
	SAY("set %s\n",
	    err(set_option(pair[0], SOL_SOCKET, SO_MAX_PACING_RATE, RATE)));
	SAY("get %d\n", get_option(pair[0], SOL_SOCKET, SO_MAX_PACING_RATE));
	fill(text, LEN, 3);
	receiver.fd = pair[1];
	begin = now_ms();
	pthread_create(&thread, NULL, receive_in_thread, &receiver);
	send_all(pair[0], text, LEN);
	pthread_join(thread, NULL);
	took = now_ms() - begin;
	SAY("right: %d\n", receiver.got_cnt == LEN && memcmp(text, got, LEN) == 0);
	SAY("in its time: %d\n", took > 60 && took < 4000);
	close_pair(pair);
}

static void time_limits(void)
{
	static const int options[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	struct timeval tv;
	socklen_t len;
	int fd = made();

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		for (long us = 0; us <= 2000000; us += 333333) {
			tv = (struct timeval){ 3, us };
			SAY("%ld: %s", us,
			    err(setsockopt(fd, SOL_SOCKET, options[i], &tv,
					   sizeof(tv))));
			len = sizeof(tv);
			getsockopt(fd, SOL_SOCKET, options[i], &tv, &len);
			SAY(" %ld.%06ld %u\n", (long)tv.tv_sec, (long)tv.tv_usec,
			    len);
		}
		SAY("short %s\n",
		    err(setsockopt(fd, SOL_SOCKET, options[i], &tv, 8)));
	}
	close(fd);
}

static void who_is_at_the_other_end(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	char buf[256];
	int pair[2], value = -1;

	make_pair(pair);
	SAY("SO_PEERCRED %s\n",
	    err(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &cred, &len)));
	len = sizeof(buf);
	SAY("SO_PEERNAME %s",
	    err(getsockopt(pair[0], SOL_SOCKET, SO_PEERNAME, buf, &len)));
	SAY(" %u\n", len);
	len = sizeof(value);
	SAY("SO_INCOMING_NAPI_ID %s\n",
	    err(getsockopt(pair[1], SOL_SOCKET, SO_INCOMING_NAPI_ID, &value,
			   &len)));
	len = sizeof(value);
	SAY("SO_INCOMING_CPU %s",
	    err(getsockopt(pair[1], SOL_SOCKET, SO_INCOMING_CPU, &value, &len)));
	SAY(" a processor: %d\n", value >= 0 && value < 4096);
	len = 8;
	SAY("SO_COOKIE %s\n",
	    err(getsockopt(pair[1], SOL_SOCKET, SO_COOKIE, buf, &len)));
	SAY("TCP_ULP %s\n", err(setsockopt(pair[0], IPPROTO_TCP, TCP_ULP, "none", 4)));
	len = sizeof(buf);
	SAY("TCP_CC_INFO %s\n",
	    err(getsockopt(pair[0], IPPROTO_TCP, TCP_CC_INFO, buf, &len)));
	close_pair(pair);
}

/* What the kernel maps is in the pages, and of the rest it says how much there is to read. */
static size_t receive_pages(int fd, char *buf, size_t len)
{
	enum { PAGES_LEN = 1 << 16 };
	char *pages = mmap(NULL, PAGES_LEN, PROT_READ, MAP_SHARED, fd, 0);
	size_t got_cnt = 0;

	if (pages == MAP_FAILED)
		return 0;
	while (got_cnt < len) {
		struct tcp_zerocopy_receive asked = {
			.address = (uintptr_t)pages,
			.length = PAGES_LEN,
		};
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		socklen_t size = sizeof(asked);

		if (poll(&pfd, 1, 10000) != 1 ||
		    getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &asked, &size) != 0)
			break;
		memcpy(buf + got_cnt, pages, asked.length);
		got_cnt += asked.length;
		if (asked.recv_skip_hint &&
		    receive_all(fd, buf + got_cnt, asked.recv_skip_hint) !=
			    asked.recv_skip_hint)
			break;
		got_cnt += asked.recv_skip_hint;
		/* in the middle of the stream, it says nothing */
		if (!asked.length && !asked.recv_skip_hint)
			break;
	}
	munmap(pages, PAGES_LEN);
	return got_cnt;
}

static void received_by_pages(void)
{
	enum { LEN = 200000 };
	static char text[LEN], got[LEN];
	socklen_t len = sizeof(int);
	int pair[2], value = 0;

	make_pair(pair);
	fill(text, LEN, 5);
	SAY("too short: %s\n",
	    err(getsockopt(pair[1], IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &value, &len)));
	send_all(pair[0], text, 100);
	SAY("before: %zu\n", receive_all(pair[1], got, 100));
	send_all(pair[0], text, LEN);
	SAY("got %zu\n", receive_pages(pair[1], got, LEN));
	SAY("right: %d\n", memcmp(text, got, LEN) == 0);
	close_pair(pair);
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* A program of the kernel's that drops what comes for the sockets of the map. */
static int make_drop(int map)
{
	static const struct bpf_insn drop[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_DROP },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SK_SKB };
	int program;

	attr.insns = (uintptr_t)drop;
	attr.insn_cnt = ARRAY_LEN(drop);
	attr.license = (uintptr_t)"GPL";
	program = (int)bpf(BPF_PROG_LOAD, &attr);
	if (program < 0)
		return -1;
	attr = (union bpf_attr){ .target_fd = (unsigned)map };
	attr.attach_bpf_fd = (unsigned)program;
	attr.attach_type = BPF_SK_SKB_STREAM_VERDICT;
	return bpf(BPF_PROG_ATTACH, &attr) ? -1 : program;
}

/* Who may not use BPF sees that twice. */
static void dropped_in_a_map(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_SOCKMAP };
	struct timeval limit = { 0, 300000 };
	int pair[2], map, program;
	uint32_t key = 0;
	char byte;

	attr.key_size = attr.value_size = sizeof(uint32_t);
	attr.max_entries = 2;
	map = (int)bpf(BPF_MAP_CREATE, &attr);
	program = make_drop(map);
	SAY("can: %d\n", program >= 0);
	make_pair(pair);
	send_all(pair[0], "before", 6);
	receive(pair[1], 0);
	attr = (union bpf_attr){ .map_fd = (unsigned)map };
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&pair[1];
	SAY("put: %d\n", bpf(BPF_MAP_UPDATE_ELEM, &attr) == 0);
	if (program >= 0) {
		send_all(pair[0], "dropped", 7);
		setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		SAY("behind: %s\n", err((int)recv(pair[1], &byte, 1, 0)));
	}
	close(program);
	close(map);
	close_pair(pair);
}

/* Whether what is held back was still so when other options had been set: 1, 0, or -1, if that
 * took so long that Linux would have sent it by then. */
static int stays_corked(void)
{
	struct timeval limit = { 5, 0 };
	struct pollfd pfd = { .events = POLLIN };
	int pair[2], has_come;
	long begin;

	make_pair(pair);
	set_option(pair[0], IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(pair[0], IPPROTO_TCP, TCP_CORK, 1);
	begin = now_ms();
	(void)!send(pair[0], "abc", 3, 0);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	set_option(pair[0], IPPROTO_TCP, TCP_KEEPINTVL, 20);
	pfd.fd = pair[1];
	has_come = poll(&pfd, 1, 30);
	begin = now_ms() - begin;
	close_pair(pair);
	return begin > 150 ? -1 : !has_come;
}

static void held_back_beside_options(void)
{
	int stays = -1;

	for (int i = 0; i < 50 && stays < 0; i++)
		stays = stays_corked();
	SAY("held back: %d\n", stays);
}

const struct scenario option_scenarios[] = {
	SCENARIO(options_of_fresh_sockets, OURS),
	SCENARIO(options_of_connections, MIXED),
	SCENARIO(options_of_listeners, OURS),
	SCENARIO(values_out_of_range, OURS),
	SCENARIO(lengths_of_options, OURS),
	SCENARIO(sizes_of_buffers, OURS),
	SCENARIO(small_buffers, OURS),
	SCENARIO(names_of_algorithms, OURS),
	SCENARIO(bytes_by_each_algorithm, OURS),
	SCENARIO(info_of_each_state, OURS),
	SCENARIO(info_of_a_connection, OURS),
	SCENARIO(lengths_of_info, OURS),
	SCENARIO(segment_sizes, OURS),
	SCENARIO(keepalive_between_living_ends, OURS),
	SCENARIO(bound_to_a_device, KERNEL),
	SCENARIO(paced, OURS),
	SCENARIO(time_limits, OURS),
	SCENARIO(held_back_beside_options, OURS),
	SCENARIO(who_is_at_the_other_end, MIXED),
	SCENARIO(received_by_pages, MIXED),
	SCENARIO(dropped_in_a_map, MIXED),
	SCENARIO_END,
};
