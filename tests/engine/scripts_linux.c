/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scripts of tests/engine/segments, with sockets as the TCP: Linux's, in a network
 * namespace of our own, whose packets come and go through a TUN device; or with SCRIPT_TAP
 * the library's, under which the program runs then, on this TAP device, whose addresses and
 * neighbour are there. Each case needs root and real time; tests/engine/scripts_linux.sh
 * and scripts_sockets.sh run them.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pkt/wire.h"
#include "tests/engine/script.h"
#include "tests/support/test.h"

enum { OWN_PORT = 4000, PEER_PORT = 5000, PEER_ISN = 70000 };

/* In front of a segment. */
enum { IP_ROOM = 40, ETH_LEN = 14, ROOM = ETH_LEN + IP_ROOM };

static const char *tap; /* NULL: a TUN device */
static int tun = -1, sock = -1, listener = -1;
static bool is_ipv6;
static int keep_interval_s;
static struct ip_addr own_addr, peer_addr;
static uint32_t own_isn; /* of Linux */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void write_sysctl(const char *name, uint32_t value)
{
	char path[100], text[16];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	snprintf(text, sizeof(text), "%u", value);
	fd = open(path, O_WRONLY);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void set_addr(int fd, struct ifreq *req, unsigned long what,
		     const char *text)
{
	struct sockaddr_in *in = (void *)&req->ifr_addr;

	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	CHECK_EQ(inet_pton(AF_INET, text, &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, what, req), 0);
}

/* As <linux/ipv6.h> has it, which does not go together with <netinet/in.h>. */
struct in6_request {
	struct in6_addr addr;
	uint32_t prefix_len;
	int index;
};

static void set_addr_v6(const char *name)
{
	struct in6_request req = { .prefix_len = 64,
				   .index = (int)if_nametoindex(name) };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	memcpy(&req.addr, own_addr.byte, sizeof(req.addr));
	CHECK_EQ(ioctl(fd, SIOCSIFADDR, &req), 0);
	close(fd);
}

static void choose_addresses(void)
{
	const struct ip_addr v6 = { .byte = { 0xfd, 0x77, [15] = 1 } };

	own_addr = is_ipv6 ? v6 : ip_addr_from_v4(inet_addr("10.77.0.1"));
	peer_addr = own_addr;
	peer_addr.byte[15] = 2;
}

static void open_device(struct ifreq *req, const char *name)
{
	tun = open("/dev/net/tun", O_RDWR);
	if (tun < 0)
		test_skip("needs root");
	strcpy(req->ifr_name, name);
	CHECK_EQ(ioctl(tun, TUNSETIFF, req), 0);
}

static void open_tap(void)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI };

	CHECK(strlen(tap) < sizeof(req.ifr_name));
	open_device(&req, tap);
	choose_addresses();
}

static void make_tun(void)
{
	struct ifreq req = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd;

	if (unshare(CLONE_NEWNET))
		test_skip("needs root");
	open_device(&req, "script0");
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0);
	set_addr(fd, &req, SIOCSIFADDR, "10.77.0.1");
	set_addr(fd, &req, SIOCSIFNETMASK, "255.255.255.0");
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
	choose_addresses();
	if (is_ipv6)
		set_addr_v6(req.ifr_name);
}

/* Sends what lies behind the room for an IP header. */
static void send_ip(uint8_t *packet, uint8_t proto, uint8_t ecn, size_t len)
{
	const struct wire_ip ip = {
		.src = peer_addr,
		.dst = own_addr,
		.proto = proto,
		.tos = ecn,
		.ttl = 64,
		.payload_len = (uint16_t)len,
	};
	/* from the neighbour that the wrapper has named, to the TAP device's address */
	static const uint8_t ends[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
	size_t header_len = is_ipv6 ? 40 : 20;
	uint8_t *at = packet + ROOM - header_len;

	CHECK_EQ(wire_build_ip(at, &ip, 1), header_len);
	len += header_len;
	if (tap) {
		at -= ETH_LEN;
		len += ETH_LEN;
		memcpy(at, ends, sizeof(ends));
		wire_put_u16(at + sizeof(ends), is_ipv6 ? 0x86dd : 0x0800);
	}
	CHECK_EQ(write(tun, at, len), (ssize_t)len);
}

/* What has come to the library's queues is seen when somebody looks. */
static void let_it_look(void)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (tap)
		poll(&p, 1, 0);
}

static void linux_send(const struct script_segment *s)
{
	struct tcp_options options = s->options;
	uint8_t packet[4096] = { 0 };
	struct wire_tcp *header = (void *)(packet + ROOM);
	uint8_t *at = (uint8_t *)(header + 1);
	size_t len = s->raw_len;
	uint32_t sum;

	for (uint8_t i = 0; i < options.sack_cnt; i++) {
		options.sack[i].start += own_isn + 1;
		options.sack[i].end += own_isn + 1;
	}
	memcpy(at, s->raw, len);
	if (!len)
		len = tcp_options_build(at, &options);
	len += sizeof(*header);
	*header = (struct wire_tcp){
		.src_port = htobe16((uint16_t)(PEER_PORT + s->port)),
		.dst_port = htobe16(OWN_PORT),
		.seq = htobe32(PEER_ISN + 1 + s->seq),
		.ack = htobe32(own_isn + 1 + s->ack),
		.offset_ae = (uint8_t)(len << 2 | (s->flags & SCRIPT_AE ? 1 : 0)),
		.flags = (uint8_t)s->flags,
		.window = htobe16((uint16_t)s->win),
		.urgent = htobe16((uint16_t)s->urg),
	};
	len += s->len;
	sum = wire_pseudo_sum(&peer_addr, &own_addr, WIRE_PROTO_TCP,
			      (uint32_t)len);
	header->check = csum_fold(csum_partial(header, len, sum));
	send_ip(packet, WIRE_PROTO_TCP, s->ecn, len);
	let_it_look();
}

static void fill_icmp(struct wire_icmp *header, const struct script_icmp *icmp)
{
	if (is_ipv6) {
		header->type = icmp->is_too_big ? WIRE_ICMPV6_TOO_BIG
						: WIRE_ICMPV6_UNREACHABLE;
		/* the address is unreachable */
		header->code = icmp->is_too_big ? 0 : 3;
	} else {
		header->type = WIRE_ICMP_UNREACHABLE;
		/* the host is unreachable */
		header->code = icmp->is_too_big ? WIRE_ICMP_FRAG_NEEDED : 1;
	}
	header->rest_low = htobe16(icmp->mtu);
}

/* The message quotes the IP header of what was dropped, and eight bytes more. */
static void linux_icmp(const struct script_icmp *icmp)
{
	uint8_t packet[256] = { 0 };
	struct wire_icmp *header = (void *)(packet + ROOM);
	uint8_t *quote = (uint8_t *)(header + 1);
	uint16_t header_len = is_ipv6 ? 40 : 20;
	const struct wire_ip ip = {
		.src = own_addr,
		.dst = peer_addr,
		.proto = WIRE_PROTO_TCP,
		.ttl = 60,
		.payload_len = (uint16_t)(icmp->len - header_len),
	};
	size_t len = sizeof(*header) + header_len + 8;
	uint32_t sum = 0;

	fill_icmp(header, icmp);
	CHECK_EQ(wire_build_ip(quote, &ip, 1), header_len);
	wire_put_u16(quote + header_len, OWN_PORT);
	wire_put_u16(quote + header_len + 2, PEER_PORT);
	wire_put_u32(quote + header_len + 4, own_isn + 1 + icmp->seq);
	if (is_ipv6)
		sum = wire_pseudo_sum(&peer_addr, &own_addr, WIRE_PROTO_ICMPV6,
				      (uint32_t)len);
	header->check = csum_fold(csum_partial(header, len, sum));
	send_ip(packet, is_ipv6 ? WIRE_PROTO_ICMPV6 : WIRE_PROTO_ICMP, 0, len);
	let_it_look();
}

/* The next segment of our connection, raw; false after so long. */
static bool receive(uint32_t within_ms, struct wire_tcp *header_out,
		    struct script_segment *s)
{
	uint64_t until_ms = now_ms() + within_ms;
	uint8_t packet[65536];

	for (;;) {
		struct pollfd p = { .fd = tun, .events = POLLIN };
		int64_t left = (int64_t)(until_ms - now_ms());
		struct wire_ip ip;
		uint8_t *at;
		ssize_t len;

		if (poll(&p, 1, (int)MAX(left, INT64_C(0))) <= 0)
			return false;
		len = read(tun, packet, sizeof(packet));
		at = tap ? packet + ETH_LEN : packet;
		len -= at - packet;
		if (len <= 0 || wire_parse_ip(at, (size_t)len, &ip) ||
		    ip.proto != WIRE_PROTO_TCP)
			continue;
		at += ip.header_len;
		memcpy(header_out, at, sizeof(*header_out));
		s->ecn = ip.tos & 3;
		s->len = ip.payload_len - 4u * (header_out->offset_ae >> 4);
		tcp_options_parse(at + 20,
				  ip.payload_len - 20u - s->len,
				  header_out->flags & WIRE_TCP_SYN,
				  &s->options);
		return true;
	}
}

static socklen_t fill_sockaddr(struct sockaddr_storage *sa,
			       const struct ip_addr *addr, uint16_t port)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	memset(sa, 0, sizeof(*sa));
	if (is_ipv6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htobe16(port);
		memcpy(&in6->sin6_addr, addr->byte, sizeof(in6->sin6_addr));
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htobe16(port);
	in->sin_addr.s_addr = ip_addr_v4(addr);
	return sizeof(*in);
}

static int make_socket(uint32_t rcv_buf)
{
	int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	struct sockaddr_storage sa;
	socklen_t len = fill_sockaddr(&sa, &own_addr, OWN_PORT);

	int on = 1;

	CHECK(fd >= 0);
	/* there may be a second one */
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	/* what the engine is set to, whatever the machine prefers */
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5), 0);
	if (rcv_buf)
		CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcv_buf,
				    sizeof(rcv_buf)), 0);
	/* an address of IPv6 is not there at once */
	for (int i = 0; bind(fd, (void *)&sa, len); i++) {
		CHECK_EQ(errno, EADDRNOTAVAIL);
		CHECK(i < 300);
		poll(NULL, 0, 10);
	}
	return fd;
}

/* What Linux calls the parameters of scripts. */
static void choose_params(const uint32_t *param)
{
	static const char *const sysctls[SCRIPT_PARAMS] = {
		[SCRIPT_RETRIES] = "tcp_retries2",
		[SCRIPT_ORPHAN_RETRIES] = "tcp_orphan_retries",
		[SCRIPT_SYN_RETRIES] = "tcp_syn_retries",
		[SCRIPT_SYNACK_RETRIES] = "tcp_synack_retries",
		[SCRIPT_FIN_WAIT_2] = "tcp_fin_timeout",
		[SCRIPT_CHALLENGES] = "tcp_challenge_ack_limit",
		[SCRIPT_OVERFLOW_RESETS] = "tcp_abort_on_overflow",
		[SCRIPT_RFC1337] = "tcp_rfc1337",
		[SCRIPT_MTU_PROBING] = "tcp_mtu_probing",
		[SCRIPT_NO_METRICS] = "tcp_no_metrics_save",
		[SCRIPT_FASTOPEN] = "tcp_fastopen",
		[SCRIPT_FASTOPEN_PAUSE] = "tcp_fastopen_blackhole_timeout_sec",
	};

	static const char *const switches[SCRIPT_PARAMS] = {
		[SCRIPT_NO_IDLE_RESTART] = "tcp_slow_start_after_idle",
		[SCRIPT_NO_TLP] = "tcp_early_retrans",
		[SCRIPT_NO_FRTO] = "tcp_frto",
		[SCRIPT_NO_DSACK] = "tcp_dsack",
		[SCRIPT_NO_LINEAR_SYNS] = "tcp_syn_linear_timeouts",
	};

	for (size_t i = 0; i < ARRAY_LEN(sysctls); i++) {
		if (param[i] && sysctls[i])
			write_sysctl(sysctls[i], param[i]);
		if (param[i] && switches[i])
			write_sysctl(switches[i], 0);
	}
	if (param[SCRIPT_COOKIES])
		write_sysctl("tcp_syncookies", 2);
}

static void choose_settings(const uint32_t *param)
{
	static const struct {
		enum script_param param;
		int name;
	} options[] = {
		{ SCRIPT_MAXSEG, TCP_MAXSEG },
		{ SCRIPT_SYNCNT, TCP_SYNCNT },
		{ SCRIPT_LINGER2, TCP_LINGER2 },
		{ SCRIPT_DEFER, TCP_DEFER_ACCEPT },
		{ SCRIPT_CLAMP, TCP_WINDOW_CLAMP },
		{ SCRIPT_THIN, TCP_THIN_LINEAR_TIMEOUTS },
		{ SCRIPT_FASTOPEN_MAX, TCP_FASTOPEN },
		{ SCRIPT_FASTOPEN_NO_COOKIE, TCP_FASTOPEN_NO_COOKIE },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		int value = (int)param[options[i].param];

		if (value)
			CHECK_EQ(setsockopt(sock, IPPROTO_TCP, options[i].name,
					    &value, sizeof(value)), 0);
	}
}

static void choose_rate(const uint32_t *param)
{
	uint32_t rate = param[SCRIPT_PACE];

	if (rate)
		CHECK_EQ(setsockopt(sock, SOL_SOCKET, SO_MAX_PACING_RATE, &rate,
				    sizeof(rate)), 0);
}

/* The next segment is the SYN, with data if the kernel has taken it. */
static void open_fast(const struct script_setup *setup)
{
	static const uint8_t buf[4096];
	struct sockaddr_storage sa;
	socklen_t len = fill_sockaddr(&sa, &peer_addr,
				      (uint16_t)(PEER_PORT + setup->fast_port));
	ssize_t sent;

	CHECK_EQ(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	sent = sendto(sock, buf, setup->fast_len, MSG_FASTOPEN | MSG_NOSIGNAL,
		      (void *)&sa, len);
	CHECK(sent == (ssize_t)setup->fast_len ||
	      (sent < 0 && errno == EINPROGRESS));
}

static void linux_open_again(const struct script_setup *setup)
{
	sock = make_socket(setup->param[SCRIPT_RCV_BUF]);
	choose_settings(setup->param);
	open_fast(setup);
}

static void linux_open(const struct script_setup *setup)
{
	uint32_t backlog = setup->param[SCRIPT_BACKLOG];
	struct sockaddr_storage sa;
	socklen_t len;

	is_ipv6 = setup->is_ipv6;
	tap = getenv("SCRIPT_TAP");
	if (tap)
		open_tap();
	else
		make_tun();
	write_sysctl("tcp_ecn", setup->accepts_ecn	   ? 2
				: setup->with_accurate_ecn ? 3
							   : setup->with_ecn);
	choose_params(setup->param);
	keep_interval_s = (int)setup->param[SCRIPT_KEEP_INTERVAL];
	if (!keep_interval_s)
		keep_interval_s = 1;
	sock = make_socket(setup->param[SCRIPT_RCV_BUF]);
	choose_settings(setup->param);
	choose_rate(setup->param);
	if (setup->is_passive) {
		listener = sock;
		/* its queue holds one more than it is told */
		CHECK_EQ(listen(listener, backlog ? (int)backlog - 1 : 4), 0);
		/* a listener is the library's from the first look at it on */
		CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
		CHECK_EQ(accept(listener, NULL, NULL), -1);
		return;
	}
	if (setup->is_fast) {
		open_fast(setup);
		return;
	}
	CHECK_EQ(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	len = fill_sockaddr(&sa, &peer_addr, PEER_PORT);
	CHECK_EQ(connect(sock, (void *)&sa, len), -1);
	CHECK_EQ(errno, EINPROGRESS);
}

static bool linux_next(uint32_t within_ms, struct script_segment *s,
		       uint32_t *after_ms_out)
{
	uint64_t since_ms = now_ms();
	struct wire_tcp header;

	if (!receive(within_ms, &header, s))
		return false;
	if (header.flags & WIRE_TCP_SYN)
		own_isn = be32toh(header.seq);
	*after_ms_out = (uint32_t)(now_ms() - since_ms);
	s->flags = header.flags | (header.offset_ae & 1 ? SCRIPT_AE : 0);
	s->seq = be32toh(header.seq) - own_isn - 1;
	s->ack = be32toh(header.ack) - PEER_ISN - 1;
	s->win = be16toh(header.window);
	s->urg = be16toh(header.urgent);
	s->port = (uint32_t)be16toh(header.dst_port) - PEER_PORT;
	for (uint8_t i = 0; i < s->options.sack_cnt; i++) {
		s->options.sack[i].start -= PEER_ISN + 1;
		s->options.sack[i].end -= PEER_ISN + 1;
	}
	return true;
}

static void set_option(int name, int value)
{
	CHECK_EQ(setsockopt(sock, IPPROTO_TCP, name, &value, sizeof(value)), 0);
}

static void take_connection(void)
{
	sock = accept(listener, NULL, NULL);
	CHECK(sock >= 0);
	CHECK_EQ(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
}

static void linux_act(enum script_act act, uint32_t value)
{
	static uint8_t buf[100000];
	const int on = 1;

	switch (act) {
	case SCRIPT_WRITE:
		CHECK_EQ(send(sock, buf, value, MSG_NOSIGNAL), value);
		break;
	case SCRIPT_URGENT:
		CHECK_EQ(send(sock, buf, value, MSG_NOSIGNAL | MSG_OOB), value);
		break;
	case SCRIPT_MORE:
		CHECK_EQ(send(sock, buf, value, MSG_NOSIGNAL | MSG_MORE), value);
		break;
	case SCRIPT_EOR:
		CHECK_EQ(send(sock, buf, value, MSG_NOSIGNAL | MSG_EOR), value);
		break;
	case SCRIPT_QUICKACK:
		set_option(TCP_QUICKACK, (int)value);
		break;
	case SCRIPT_INLINE:
		CHECK_EQ(setsockopt(sock, SOL_SOCKET, SO_OOBINLINE, &value,
				    sizeof(value)), 0);
		break;
	case SCRIPT_MARK:
		CHECK_EQ(sockatmark(sock), value);
		break;
	case SCRIPT_READ:
		CHECK_EQ(recv(sock, buf, sizeof(buf), 0), value);
		break;
	case SCRIPT_SHUTDOWN:
		CHECK_EQ(shutdown(sock, SHUT_WR), 0);
		break;
	case SCRIPT_CLOSE:
		CHECK_EQ(close(sock), 0);
		break;
	case SCRIPT_NODELAY:
		set_option(TCP_NODELAY, (int)value);
		break;
	case SCRIPT_CORK:
		set_option(TCP_CORK, (int)value);
		break;
	case SCRIPT_ACCEPT:
		take_connection();
		break;
	case SCRIPT_USER_TIMEOUT:
		set_option(TCP_USER_TIMEOUT, (int)value);
		break;
	case SCRIPT_KEEPALIVE:
		set_option(TCP_KEEPIDLE, (int)value);
		set_option(TCP_KEEPINTVL, keep_interval_s);
		set_option(TCP_KEEPCNT, 3);
		CHECK_EQ(setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on,
				    sizeof(on)), 0);
		break;
	case SCRIPT_MOVE:
	case SCRIPT_TOGETHER:
		/* it stays where it is, and gets one at a time */
		break;
	}
}

/* The library hears of ICMP by a thread of its own. */
static int linux_error(void)
{
	uint64_t until_ms = now_ms() + (tap ? 300 : 0);
	socklen_t len = sizeof(int);
	int error = 0;

	do {
		let_it_look();
		CHECK_EQ(getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	} while (!error && now_ms() < until_ms);
	return -error;
}

static int linux_oob(void)
{
	char byte;

	return recv(sock, &byte, 1, MSG_OOB | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

static struct script_target kernel = {
	.open = linux_open,
	.open_again = linux_open_again,
	.send = linux_send,
	.icmp = linux_icmp,
	.next = linux_next,
	.act = linux_act,
	.error = linux_error,
	.oob = linux_oob,
	.slack_ms = 30,
};

static void run(const char *name)
{
	const char *srcdir = getenv("srcdir"), *slack = getenv("SCRIPT_SLACK_MS");
	char path[1024], why[128];

	/* a thread of a busy machine is later than the kernel's timers */
	if (slack)
		kernel.slack_ms = (uint32_t)strtoul(slack, NULL, 10);
	snprintf(path, sizeof(path), "%s/tests/engine/segments/%s.tcp",
		 srcdir ? srcdir : ".", name);
	script_run(path, &kernel, why);
}

/* A case for each script. */
#define SCRIPT(name) TEST(name) { run(#name); }
#include "tests/engine/scripts.def"
