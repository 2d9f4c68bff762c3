/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scripts of tests/engine/segments, with Linux as the TCP: a socket in a network
 * namespace of our own, whose packets come and go through a TUN device. Each case
 * needs root and real time; tests/engine/scripts_linux.sh runs them all.
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

static int tun = -1, sock = -1;
static struct ip_addr own_addr, peer_addr;
static uint32_t own_isn; /* of Linux */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
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

static void make_tun(void)
{
	struct ifreq req = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd;

	if (unshare(CLONE_NEWNET))
		test_skip("needs root");
	tun = open("/dev/net/tun", O_RDWR);
	if (tun < 0)
		test_skip("needs root");
	strcpy(req.ifr_name, "script0");
	CHECK_EQ(ioctl(tun, TUNSETIFF, &req), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0);
	set_addr(fd, &req, SIOCSIFADDR, "10.77.0.1");
	set_addr(fd, &req, SIOCSIFNETMASK, "255.255.255.0");
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
	own_addr = ip_addr_from_v4(inet_addr("10.77.0.1"));
	peer_addr = ip_addr_from_v4(inet_addr("10.77.0.2"));
}

static void send_packet(const struct script_segment *s, uint32_t seq,
			uint32_t ack, const struct tcp_options *options)
{
	uint8_t packet[4096] = { 0 };
	size_t options_len = tcp_options_build(packet + 40, options);
	struct wire_tcp *header = (void *)(packet + 20);
	struct wire_ip ip = {
		.src = peer_addr,
		.dst = own_addr,
		.proto = WIRE_PROTO_TCP,
		.tos = s->ecn,
		.ttl = 64,
		.payload_len = (uint16_t)(20 + options_len + s->len),
	};
	uint32_t sum = wire_pseudo_sum(&ip.src, &ip.dst, WIRE_PROTO_TCP,
				       ip.payload_len);

	CHECK_EQ(wire_build_ip(packet, &ip, 1), 20);
	*header = (struct wire_tcp){
		.src_port = htobe16(PEER_PORT),
		.dst_port = htobe16(OWN_PORT),
		.seq = htobe32(seq),
		.ack = htobe32(ack),
		.offset_ae = (uint8_t)((20 + options_len) << 2),
		.flags = s->flags,
		.window = htobe16((uint16_t)s->win),
	};
	header->check = csum_fold(csum_partial(header, ip.payload_len, sum));
	CHECK_EQ(write(tun, packet, 20u + ip.payload_len),
		 20 + ip.payload_len);
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
		ssize_t len;

		if (poll(&p, 1, (int)MAX(left, INT64_C(0))) <= 0)
			return false;
		len = read(tun, packet, sizeof(packet));
		if (len <= 0 || wire_parse_ip(packet, (size_t)len, &ip) ||
		    ip.proto != WIRE_PROTO_TCP)
			continue;
		memcpy(header_out, packet + ip.header_len, sizeof(*header_out));
		s->ecn = ip.tos & 3;
		s->len = ip.payload_len - 4u * (header_out->offset_ae >> 4);
		tcp_options_parse(packet + ip.header_len + 20,
				  ip.payload_len - 20u - s->len,
				  header_out->flags & WIRE_TCP_SYN,
				  &s->options);
		return true;
	}
}

static void bind_socket(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htobe16(OWN_PORT) };

	sock = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(sock >= 0);
	in.sin_addr.s_addr = ip_addr_v4(&own_addr);
	CHECK_EQ(bind(sock, (void *)&in, sizeof(in)), 0);
}

static void linux_open(bool is_passive, bool with_ecn)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htobe16(PEER_PORT) };
	int sysctl;

	make_tun();
	sysctl = open("/proc/sys/net/ipv4/tcp_ecn", O_WRONLY);
	CHECK_EQ(write(sysctl, with_ecn ? "1" : "0", 1), 1);
	close(sysctl);
	bind_socket();
	if (is_passive) {
		CHECK_EQ(listen(sock, 1), 0);
		return;
	}
	CHECK_EQ(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	in.sin_addr.s_addr = ip_addr_v4(&peer_addr);
	CHECK_EQ(connect(sock, (void *)&in, sizeof(in)), -1);
	CHECK_EQ(errno, EINPROGRESS);
}

static void linux_send(const struct script_segment *s)
{
	struct tcp_options options = s->options;

	for (uint8_t i = 0; i < options.sack_cnt; i++) {
		options.sack[i].start += own_isn + 1;
		options.sack[i].end += own_isn + 1;
	}
	send_packet(s, PEER_ISN + 1 + s->seq, own_isn + 1 + s->ack, &options);
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
	s->flags = header.flags;
	s->seq = be32toh(header.seq) - own_isn - 1;
	s->ack = be32toh(header.ack) - PEER_ISN - 1;
	s->win = be16toh(header.window);
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

/* The connection instead of the listener. */
static void take_connection(void)
{
	int listener = sock;

	sock = accept(listener, NULL, NULL);
	CHECK(sock >= 0);
	close(listener);
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
		set_option(TCP_KEEPINTVL, 1);
		set_option(TCP_KEEPCNT, 3);
		CHECK_EQ(setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on,
				    sizeof(on)), 0);
		break;
	}
}

static int linux_error(void)
{
	socklen_t len = sizeof(int);
	int error = 0;

	CHECK_EQ(getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return -error;
}

static const struct script_target kernel = {
	.open = linux_open,
	.send = linux_send,
	.next = linux_next,
	.act = linux_act,
	.error = linux_error,
	.slack_ms = 30,
};

static void run(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[1024], why[128];

	snprintf(path, sizeof(path), "%s/tests/engine/segments/%s.tcp",
		 srcdir ? srcdir : ".", name);
	script_run(path, &kernel, why);
}

/* A case for each script. */
TEST(accepts_and_talks) { run("accepts_and_talks"); }
TEST(ack_beyond) { run("ack_beyond"); }
TEST(ack_rides_on_data) { run("ack_rides_on_data"); }
TEST(active_close) { run("active_close"); }
TEST(bytes_in_the_middle) { run("bytes_in_the_middle"); }
TEST(close_with_unread) { run("close_with_unread"); }
TEST(cork) { run("cork"); }
TEST(data_after_close) { run("data_after_close"); }
TEST(data_beyond_window) { run("data_beyond_window"); }
TEST(data_is_no_duplicate) { run("data_is_no_duplicate"); }
TEST(delayed_ack) { run("delayed_ack"); }
TEST(duplicate_data) { run("duplicate_data"); }
TEST(echo_of_delayed) { run("echo_of_delayed"); }
TEST(echo_undoes_timeout) { run("echo_undoes_timeout"); }
TEST(ecn_is_echoed) { run("ecn_is_echoed"); }
TEST(ecn_slows_down) { run("ecn_slows_down"); }
TEST(fast_retransmit) { run("fast_retransmit"); }
TEST(fin_out_of_order) { run("fin_out_of_order"); }
TEST(fin_with_data) { run("fin_with_data"); }
TEST(gap_then_repair) { run("gap_then_repair"); }
TEST(half_close_by_peer) { run("half_close_by_peer"); }
TEST(impossible_sack) { run("impossible_sack"); }
TEST(initial_window) { run("initial_window"); }
TEST(keepalive) { run("keepalive"); }
TEST(lone_segment) { run("lone_segment"); }
TEST(lost_fin) { run("lost_fin"); }
TEST(missing_time_stamp) { run("missing_time_stamp"); }
TEST(nagle) { run("nagle"); }
TEST(newreno) { run("newreno"); }
TEST(no_ecn) { run("no_ecn"); }
TEST(old_ack) { run("old_ack"); }
TEST(old_segment) { run("old_segment"); }
TEST(old_time_stamp) { run("old_time_stamp"); }
TEST(open_options) { run("open_options"); }
TEST(overlap) { run("overlap"); }
TEST(plain_syn) { run("plain_syn"); }
TEST(reset_in_window) { run("reset_in_window"); }
TEST(reset_when_closing) { run("reset_when_closing"); }
TEST(shrunk_window) { run("shrunk_window"); }
TEST(simultaneous_close) { run("simultaneous_close"); }
TEST(simultaneous_open) { run("simultaneous_open"); }
TEST(small_mss) { run("small_mss"); }
TEST(syn_again) { run("syn_again"); }
TEST(syn_backs_off) { run("syn_backs_off"); }
TEST(syn_in_window) { run("syn_in_window"); }
TEST(syn_refused) { run("syn_refused"); }
TEST(syn_window) { run("syn_window"); }
TEST(tail_loss_probe) { run("tail_loss_probe"); }
TEST(three_duplicates) { run("three_duplicates"); }
TEST(time_wait) { run("time_wait"); }
TEST(time_wait_and_reset) { run("time_wait_and_reset"); }
TEST(timeout_doubles) { run("timeout_doubles"); }
TEST(two_holes) { run("two_holes"); }
TEST(unknown_reset) { run("unknown_reset"); }
TEST(user_timeout) { run("user_timeout"); }
TEST(window_anchor) { run("window_anchor"); }
TEST(window_limits) { run("window_limits"); }
TEST(wrong_refusal) { run("wrong_refusal"); }
TEST(zero_window) { run("zero_window"); }
