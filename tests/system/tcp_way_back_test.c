/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of the engine become the kernel's, seen by a peer on another kernel
 * stack. This program is the wire between two namespaces:
 *
 *	engine ------+
 *	             |-- this program -- tun -- kernel of the peer (10.79.0.2)
 *	kernel - tun +   (10.79.0.1)
 *
 * A frame of the peer goes to the engine or, once the connection has gone back, to
 * the kernel beside it. Both streams are checked byte by byte.
 */
#define _GNU_SOURCE
#include "config.h"

#include "sock/tcp/tcp_way_back.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "os/real.h"
#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/system/netns.h"

enum {
	OWN_PORT = 7001,
	PEER_PORT = 7000,
	FRAME_MAX = 2048,
	HELD_MAX = 4096,
	PKTS = 8192,
	DATA_MAX = 1400,
};

#define PATIENCE_NS (10 * NS_PER_SEC)

static int own_ns = -1, peer_ns = -1, own_tun = -1, peer_tun = -1;
static struct ip_addr own_addr, peer_addr;

/* -- the wire ------------------------------------------------------------------- */

struct frame {
	size_t len;
	uint8_t bytes[FRAME_MAX];
};

static struct {
	/* the kernel has the connection; until then: frames wait for it */
	bool is_open, is_holding;
	struct frame held[HELD_MAX];
	unsigned held_cnt;
	/* nothing passes to the peer; one frame of the peer with data is lost */
	bool is_cut, loses_one;
	/* of a thousand frames, each way, so many are lost */
	unsigned loss;
	struct rand rand;
	/* what the case makes fail, an errno */
	int open_err, give_err;
} wire;

/* -- the engine ----------------------------------------------------------------- */

static struct timer_wheel wheel;
static struct pkt_pool pool, borrowers;
static struct tcp_table *table;
static struct tcp_pcb *pcb, *listener;
static bool is_connected;

/* -- the two ends ---------------------------------------------------------------- */

/* of the kernel beside the engine, once it has the connection; of the peer */
static int own_fd = -1, peer_fd = -1, peer_listener = -1;

/* Bytes that have been written and read, of the stream to the peer and from it. */
static struct {
	uint64_t written, read;
	bool is_at_end;
} to_peer, from_peer;

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 7 + (i >> 16));
}

static void check_bytes(uint64_t from, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_at(from + i))
			FAIL("byte %llu is wrong",
			     (unsigned long long)(from + i));
}

static bool is_lost(void)
{
	return wire.loss && rand_below(&wire.rand, 1000) < wire.loss;
}

static void put_frame(int tun, const uint8_t *frame, size_t len)
{
	CHECK_EQ(write(tun, frame, len), (ssize_t)len);
}

static void to_the_peer(const uint8_t *frame, size_t len)
{
	if (!wire.is_cut && !is_lost())
		put_frame(peer_tun, frame, len);
}

/* The length of an IP packet around a transport segment that lies in it. */
static size_t finish_packet(uint8_t *packet, const struct ip_addr *src,
			    const struct ip_addr *dst, uint8_t ecn,
			    size_t len)
{
	struct wire_ipv4 *ip = (void *)packet;
	struct wire_tcp *tcp = (void *)(ip + 1);

	*ip = (struct wire_ipv4){
		.version_ihl = 0x45,
		.tos = ecn,
		.total_len = htobe16((uint16_t)(sizeof(*ip) + len)),
		.frag = htobe16(WIRE_IPV4_DF),
		.ttl = 64,
		.proto = WIRE_PROTO_TCP,
		.src = ip_addr_v4(src),
		.dst = ip_addr_v4(dst),
	};
	ip->check = csum_fold(csum_words(ip, sizeof(*ip) / 4));
	tcp->check = 0;
	tcp->check = csum_fold(csum_partial(
		tcp, (uint32_t)len,
		wire_pseudo_sum(src, dst, WIRE_PROTO_TCP, (uint32_t)len)));
	return sizeof(*ip) + len;
}

static void emit(void *ctx UNUSED, struct tcp_pcb *of UNUSED,
		 const struct tcp_out *out)
{
	uint8_t packet[FRAME_MAX];
	size_t at = sizeof(struct wire_ipv4);
	struct pkt *pkt = out->data;

	memcpy(packet + at, out->header, out->header_len);
	at += out->header_len;
	for (uint32_t i = 0; i < out->data_cnt; i++) {
		memcpy(packet + at, pkt->data, pkt->len);
		at += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	to_the_peer(packet, finish_packet(packet, &own_addr, &peer_addr,
					  out->ecn,
					  at - sizeof(struct wire_ipv4)));
}

static void *alloc(void *ctx UNUSED, size_t size)
{
	return calloc(1, size);
}

static void release(void *ctx UNUSED, void *mem, size_t size UNUSED)
{
	free(mem);
}

static const struct tcp_path path_of_tun = { .mtu = 1500 };

static bool path(void *ctx UNUSED, const struct flow_key *key UNUSED,
		 struct tcp_path *path_out)
{
	*path_out = path_of_tun;
	return true;
}

static const struct tcp_ops engine_ops = { emit, alloc, release, path,
					   tcp_stamp_ignore };

static void to_the_engine(const struct frame *frame)
{
	const struct wire_ipv4 *ip = (const void *)frame->bytes;
	uint32_t len = (uint32_t)(frame->len - sizeof(*ip));
	struct tcp_in in = { .pkt = pkt_alloc(&pool), .ecn = ip->tos & 3 };

	CHECK(in.pkt);
	memcpy(pkt_append(in.pkt, len), ip + 1, len);
	in.key.local = own_addr;
	in.key.remote = peer_addr;
	tcp_input(table, &in, clock_monotonic_ns());
}

static bool has_data(const struct frame *frame)
{
	return frame->len > sizeof(struct wire_ipv4) + 60;
}

static void from_the_peer(const struct frame *frame)
{
	const struct wire_ipv4 *ip = (const void *)frame->bytes;

	if (ip->version_ihl >> 4 != 4 || ip->proto != WIRE_PROTO_TCP ||
	    is_lost())
		return;
	if (wire.loses_one && has_data(frame)) {
		wire.loses_one = false;
		return;
	}
	if (wire.is_open) {
		put_frame(own_tun, frame->bytes, frame->len);
	} else if (wire.is_holding) {
		CHECK(wire.held_cnt < HELD_MAX);
		wire.held[wire.held_cnt++] = *frame;
	} else {
		to_the_engine(frame);
	}
}

static bool get_frame(int tun, struct frame *frame)
{
	ssize_t n = read(tun, frame->bytes, sizeof(frame->bytes));

	frame->len = (size_t)MAX(n, 0);
	return n > 0;
}

/* Moves what there is; waits a little when there is nothing. */
static void pump(void)
{
	struct pollfd fds[] = { { .fd = own_tun, .events = POLLIN },
				{ .fd = peer_tun, .events = POLLIN } };
	struct tcp_event event;
	struct frame frame;

	poll(fds, 2, 1);
	while (get_frame(peer_tun, &frame))
		from_the_peer(&frame);
	while (get_frame(own_tun, &frame))
		if (wire.is_open)
			to_the_peer(frame.bytes, frame.len);
	timer_wheel_advance(&wheel, clock_monotonic_ns());
	while (tcp_event_next(table, &event))
		if (event.what & TCP_EV_CONNECTED)
			is_connected = true;
}

/* -- reading and writing ---------------------------------------------------------- */

static void write_to_peer(uint32_t len)
{
	uint8_t bytes[DATA_MAX];

	while (len) {
		uint32_t n = MIN(len, (uint32_t)DATA_MAX);
		struct pkt *pkt;

		for (uint32_t i = 0; i < n; i++)
			bytes[i] = byte_at(to_peer.written + i);
		if (own_fd >= 0) {
			ssize_t sent = send(own_fd, bytes, n,
					    MSG_DONTWAIT | MSG_NOSIGNAL);

			if (sent < 0)
				return;
			n = (uint32_t)sent;
		} else {
			if (tcp_sndbuf(pcb) < n)
				return;
			pkt = pkt_alloc(&pool);
			CHECK(pkt);
			memcpy(pkt_append(pkt, n), bytes, n);
			CHECK_EQ(tcp_write(pcb, pkt), 0);
			tcp_output(pcb, clock_monotonic_ns());
		}
		to_peer.written += n;
		len -= n;
	}
}

static void write_from_peer(uint32_t len)
{
	uint8_t bytes[DATA_MAX];

	while (len) {
		uint32_t n = MIN(len, (uint32_t)DATA_MAX);
		ssize_t sent;

		for (uint32_t i = 0; i < n; i++)
			bytes[i] = byte_at(from_peer.written + i);
		sent = send(peer_fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
			return;
		from_peer.written += (uint64_t)sent;
		len -= (uint32_t)sent;
	}
}

static void read_fd(int fd, uint64_t *cnt, bool *is_at_end)
{
	uint8_t bytes[65536];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		check_bytes(*cnt, bytes, (size_t)n);
		*cnt += (uint64_t)n;
	}
	if (n == 0)
		*is_at_end = true;
	else if (errno != EAGAIN)
		FAIL("recv: %s", strerror(errno));
}

static void read_engine(void)
{
	struct list pkts = LIST_INIT(pkts);
	uint32_t len = tcp_take(pcb, &pkts);
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pkts, link)
		for (struct pkt *part = pkt; part; part = part->next_part) {
			check_bytes(from_peer.read, part->data, part->len);
			from_peer.read += part->len;
		}
	pkt_put_list(&pkts);
	tcp_recved(pcb, len, clock_monotonic_ns());
	from_peer.is_at_end = tcp_at_end(pcb);
}

static void read_from_peer(void)
{
	if (own_fd >= 0)
		read_fd(own_fd, &from_peer.read, &from_peer.is_at_end);
	else
		read_engine();
}

static void read_to_peer(void)
{
	read_fd(peer_fd, &to_peer.read, &to_peer.is_at_end);
}

/* Until everything that was written has been read. */
static void deliver_all(void)
{
	uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;

	while (to_peer.read < to_peer.written ||
	       from_peer.read < from_peer.written) {
		if (clock_monotonic_ns() > end_ns)
			FAIL("%llu of %llu bytes to the peer, %llu of %llu from it",
			     (unsigned long long)to_peer.read,
			     (unsigned long long)to_peer.written,
			     (unsigned long long)from_peer.read,
			     (unsigned long long)from_peer.written);
		pump();
		read_to_peer();
		read_from_peer();
	}
}

static void exchange(uint32_t len)
{
	write_to_peer(len);
	write_from_peer(len);
	deliver_all();
}

static void pump_for(unsigned ms)
{
	uint64_t end_ns = clock_monotonic_ns() + ms * NS_PER_MS;

	while (clock_monotonic_ns() < end_ns)
		pump();
}

#define PUMP_UNTIL(condition)                                              \
	do {                                                               \
		uint64_t end_ns_ = clock_monotonic_ns() + PATIENCE_NS;     \
                                                                           \
		while (!(condition)) {                                     \
			if (clock_monotonic_ns() > end_ns_)                \
				FAIL("never so: %s", #condition);          \
			pump();                                            \
		}                                                          \
	} while (0)

static void close_stream_to_peer(void)
{
	if (own_fd >= 0)
		CHECK_EQ(shutdown(own_fd, SHUT_WR), 0);
	else
		CHECK_EQ(tcp_shutdown(pcb, clock_monotonic_ns()), 0);
}

static struct tcp_info kernel_info(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info;
}

/* -- a case ------------------------------------------------------------------------ */

static int open_tun(const char *addr)
{
	struct ifreq req = { .ifr_flags = IFF_TUN | IFF_NO_PI,
			     .ifr_name = "way0" };
	struct sockaddr_in *in = (void *)&req.ifr_addr;
	int fd, tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	CHECK(tun >= 0);
	CHECK_EQ(ioctl(tun, TUNSETIFF, &req), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	CHECK_EQ(inet_pton(AF_INET, addr, &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, SIOCSIFADDR, &req), 0);
	CHECK_EQ(inet_pton(AF_INET, "255.255.255.0", &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, SIOCSIFNETMASK, &req), 0);
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
	return tun;
}

static int open_ns(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/ns/net", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static struct sockaddr_in name_of(const struct ip_addr *addr, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = ip_addr_v4(addr) };
}

static int bound_socket(const struct ip_addr *addr, uint16_t port)
{
	struct sockaddr_in name = name_of(addr, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void make_lab(void)
{
	netns_enter();
	own_ns = open_ns(getpid());
	peer_ns = open_ns(netns_make_peer());
	own_addr = ip_addr_from_v4(inet_addr("10.79.0.1"));
	peer_addr = ip_addr_from_v4(inet_addr("10.79.0.2"));
	own_tun = open_tun("10.79.0.1");
	CHECK_EQ(setns(peer_ns, CLONE_NEWNET), 0);
	peer_tun = open_tun("10.79.0.2");
	CHECK_EQ(setns(own_ns, CLONE_NEWNET), 0);
}

static int socket_of_peer(uint16_t port)
{
	int fd;

	CHECK_EQ(setns(peer_ns, CLONE_NEWNET), 0);
	fd = bound_socket(&peer_addr, port);
	CHECK_EQ(setns(own_ns, CLONE_NEWNET), 0);
	return fd;
}

static void begin_with(const struct tcp_params *params)
{
	real_resolve();
	memset(&wire, 0, offsetof(typeof(wire), held));
	wire.held_cnt = 0;
	wire.is_cut = wire.loses_one = false;
	wire.loss = 0;
	wire.open_err = wire.give_err = 0;
	rand_init(&wire.rand, test_seed);
	memset(&to_peer, 0, sizeof(to_peer));
	memset(&from_peer, 0, sizeof(from_peer));
	is_connected = false;
	pcb = listener = NULL;
	make_lab();
	timer_wheel_init(&wheel, clock_monotonic_ns());
	pkt_pool_init(&pool, 0);
	pkt_pool_init(&borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&pool, PKTS, FRAME_MAX), 0);
	CHECK_EQ(pkt_pool_grow(&borrowers, 1024, 0), 0);
	table = tcp_table_create(params, &engine_ops, NULL, &wheel, &borrowers);
	CHECK(table);
}

/* A connection that we have opened. */
static void connect_with(const struct tcp_params *params)
{
	begin_with(params);
	peer_listener = socket_of_peer(PEER_PORT);
	CHECK_EQ(listen(peer_listener, 1), 0);
	pcb = tcp_new(table);
	CHECK(pcb);
	CHECK_EQ(tcp_bind(pcb, &own_addr, htobe16(OWN_PORT)), 0);
	CHECK_EQ(tcp_connect(pcb, &peer_addr, htobe16(PEER_PORT), &path_of_tun,
			     clock_monotonic_ns()),
		 0);
	PUMP_UNTIL(is_connected);
	peer_fd = accept(peer_listener, NULL, NULL);
	CHECK(peer_fd >= 0);
}

static void connect_as_usual(void)
{
	struct tcp_params params;

	tcp_params_init(&params);
	connect_with(&params);
}

/* One that the peer has opened. */
static void accept_one(void)
{
	struct sockaddr_in name = name_of(&own_addr, OWN_PORT);
	struct tcp_params params;

	tcp_params_init(&params);
	begin_with(&params);
	listener = tcp_new(table);
	CHECK_EQ(tcp_bind(listener, &own_addr, htobe16(OWN_PORT)), 0);
	CHECK_EQ(tcp_listen(listener, 1), 0);
	peer_fd = socket_of_peer(PEER_PORT);
	CHECK_EQ(fcntl(peer_fd, F_SETFL, O_NONBLOCK), 0);
	CHECK(connect(peer_fd, (struct sockaddr *)&name, sizeof(name)) != 0);
	PUMP_UNTIL((pcb = tcp_accept(listener)) != NULL);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void end(void)
{
	close_fd(&own_fd);
	close_fd(&peer_fd);
	close_fd(&peer_listener);
	tcp_table_destroy(table);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
	CHECK_EQ(pkt_pool_destroy(&borrowers), 0);
	close_fd(&own_tun);
	close_fd(&peer_tun);
	close_fd(&own_ns);
	close_fd(&peer_ns);
}

/* -- the way back ------------------------------------------------------------------ */

static int give(void *ctx UNUSED, const uint8_t *header, size_t header_len,
		const struct pkt *data)
{
	uint8_t packet[FRAME_MAX * 2];
	size_t at = sizeof(struct wire_ipv4);

	if (wire.give_err)
		return wire.give_err;
	memcpy(packet + at, header, header_len);
	at += header_len;
	for (; data; data = data->next_part) {
		if (at + data->len > sizeof(packet))
			return -EMSGSIZE;
		memcpy(packet + at, data->data, data->len);
		at += data->len;
	}
	put_frame(own_tun, packet,
		  finish_packet(packet, &peer_addr, &own_addr, 0,
				at - sizeof(struct wire_ipv4)));
	return 0;
}

static int open_gate(void *ctx UNUSED)
{
	if (wire.open_err)
		return wire.open_err;
	wire.is_open = true;
	for (unsigned i = 0; i < wire.held_cnt; i++)
		put_frame(own_tun, wire.held[i].bytes, wire.held[i].len);
	wire.held_cnt = 0;
	return 0;
}

static void close_gate(void *ctx UNUSED)
{
	wire.is_open = false;
}

static const struct tcp_way_back_ops ops = { give, open_gate, close_gate };

/* Into this socket. The engine goes on with it after an error. */
static int go_back_into(int fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	int err;

	CHECK_EQ(tcp_freeze(pcb, now_ns), 0);
	wire.is_holding = true;
	err = tcp_way_back(fd, pcb, &ops, NULL, now_ns);
	wire.is_holding = false;
	if (err) {
		tcp_thaw(pcb, clock_monotonic_ns());
		for (unsigned i = 0; i < wire.held_cnt; i++)
			to_the_engine(&wire.held[i]);
		wire.held_cnt = 0;
		return err;
	}
	tcp_drop(pcb);
	pcb = NULL;
	own_fd = fd;
	return 0;
}

static void go_back(void)
{
	CHECK_EQ(go_back_into(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
		 0);
}

/* What was held while it stood still counts too. */
static void go_back_while_frames_come(void)
{
	struct frame frame;
	uint64_t now_ns = clock_monotonic_ns();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(tcp_freeze(pcb, now_ns), 0);
	wire.is_holding = true;
	write_from_peer(20000);
	while (get_frame(peer_tun, &frame))
		from_the_peer(&frame);
	CHECK(wire.held_cnt > 0);
	CHECK_EQ(tcp_way_back(fd, pcb, &ops, NULL, now_ns), 0);
	wire.is_holding = false;
	tcp_drop(pcb);
	pcb = NULL;
	own_fd = fd;
}

/* Both ends have closed in order. */
static void part(void)
{
	if (!to_peer.is_at_end)
		close_stream_to_peer();
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	if (!from_peer.is_at_end)
		CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	CHECK_EQ(from_peer.read, from_peer.written);
}

TEST(an_idle_connection)
{
	connect_as_usual();
	exchange(50000);
	go_back();
	CHECK_EQ(kernel_info(own_fd).tcpi_state, TCP_ESTABLISHED);
	exchange(200000);
	part();
	/* segments are as long as the peer takes them */
	CHECK(kernel_info(own_fd).tcpi_snd_mss >= 1400);
	end();
}

TEST(a_connection_that_the_peer_has_opened)
{
	accept_one();
	exchange(50000);
	go_back();
	exchange(200000);
	part();
	end();
}

/* As a socket is whose program has called bind(). */
TEST(into_a_socket_that_is_bound)
{
	connect_as_usual();
	exchange(1000);
	CHECK_EQ(go_back_into(bound_socket(&own_addr, OWN_PORT)), 0);
	exchange(50000);
	part();
	end();
}

/* The listener of the port is the kernel's, too, and goes on. */
TEST(beside_a_listener_of_the_kernel)
{
	int other;

	accept_one();
	other = bound_socket(&own_addr, OWN_PORT);
	CHECK_EQ(listen(other, 1), 0);
	exchange(1000);
	go_back();
	exchange(50000);
	part();
	close(other);
	end();
}

TEST(what_was_not_read)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(40000);
	pump_for(50);
	CHECK_EQ(from_peer.read, 1000);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_was_not_acknowledged)
{
	connect_as_usual();
	exchange(1000);
	wire.is_cut = true;
	write_to_peer(10000);
	pump_for(20);
	go_back();
	wire.is_cut = false;
	deliver_all();
	exchange(50000);
	part();
	end();
}

/* The peer's window is closed. */
TEST(what_was_not_sent)
{
	connect_as_usual();
	exchange(1000);
	for (int i = 0; i < 200; i++) {
		write_to_peer(100000);
		pump();
	}
	CHECK(to_peer.written > 200000);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_came_out_of_order)
{
	connect_as_usual();
	exchange(1000);
	wire.loses_one = true;
	write_from_peer(10000);
	pump_for(5);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_comes_meanwhile)
{
	connect_as_usual();
	exchange(1000);
	go_back_while_frames_come();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(the_peer_has_closed)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(10000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(50);
	go_back();
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(from_peer.read, from_peer.written);
	CHECK_EQ(kernel_info(own_fd).tcpi_state, TCP_CLOSE_WAIT);
	write_to_peer(50000);
	deliver_all();
	part();
	end();
}

TEST(we_have_closed)
{
	connect_as_usual();
	exchange(1000);
	close_stream_to_peer();
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	pump_for(50);
	go_back();
	PUMP_UNTIL(kernel_info(own_fd).tcpi_state == TCP_FIN_WAIT2);
	write_from_peer(50000);
	deliver_all();
	part();
	end();
}

TEST(our_end_was_not_acknowledged)
{
	connect_as_usual();
	exchange(1000);
	wire.is_cut = true;
	write_to_peer(5000);
	close_stream_to_peer();
	pump_for(20);
	go_back();
	wire.is_cut = false;
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	write_from_peer(20000);
	deliver_all();
	part();
	end();
}

TEST(both_have_closed)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(5000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(50);
	wire.is_cut = true;
	write_to_peer(5000);
	close_stream_to_peer();
	pump_for(20);
	go_back();
	wire.is_cut = false;
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(from_peer.read, from_peer.written);
	PUMP_UNTIL(kernel_info(own_fd).tcpi_state == TCP_CLOSE);
	end();
}

TEST(without_time_stamps_sack_and_scaling)
{
	struct tcp_params params;

	tcp_params_init(&params);
	params.with_timestamps = params.with_sack = false;
	params.with_window_scale = false;
	connect_with(&params);
	exchange(50000);
	write_from_peer(20000);
	pump_for(20);
	go_back();
	deliver_all();
	exchange(100000);
	part();
	end();
}

/* -- what fails: it goes on with us ------------------------------------------------- */

TEST(with_ecn_it_stays)
{
	struct tcp_params params;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tcp_params_init(&params);
	params.ecn = TCP_ECN_ON;
	connect_with(&params);
	exchange(1000);
	CHECK_EQ(go_back_into(fd), -EOPNOTSUPP);
	exchange(50000);
	part();
	close(fd);
	end();
}

/* The same socket serves at the next attempt. */
static void fail_then_succeed(int fd, int err)
{
	CHECK_EQ(go_back_into(fd), err);
	exchange(5000);
	wire.open_err = wire.give_err = 0;
	CHECK_EQ(go_back_into(fd), 0);
	exchange(50000);
	part();
	end();
}

TEST(rules_that_cannot_be_made)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(20000);
	pump_for(20);
	wire.open_err = -ENOSPC;
	fail_then_succeed(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			  -ENOSPC);
}

TEST(a_socket_of_another_port)
{
	int fd;

	connect_as_usual();
	exchange(1000);
	fd = bound_socket(&own_addr, OWN_PORT + 1);
	CHECK_EQ(go_back_into(fd), -EINVAL);
	close(fd);
	exchange(5000);
	go_back();
	exchange(5000);
	part();
	end();
}

/* The peer would not repeat it. */
TEST(an_end_that_cannot_be_given)
{
	int fd = -1;

	connect_as_usual();
	exchange(1000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(20);
	wire.give_err = -EPERM;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(go_back_into(fd), -EPERM);
	write_to_peer(5000);
	deliver_all();
	wire.give_err = 0;
	CHECK_EQ(go_back_into(fd), 0);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	part();
	end();
}

TEST(without_the_right)
{
	int fd;

	connect_as_usual();
	exchange(1000);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(seteuid(65534), 0);
	CHECK_EQ(go_back_into(fd), -EPERM);
	CHECK_EQ(seteuid(0), 0);
	exchange(5000);
	CHECK_EQ(go_back_into(fd), 0);
	exchange(5000);
	part();
	end();
}

/* -- any moment ----------------------------------------------------------------------- */

/* Writes and reads of any size, with losses; at any moment the kernel takes over, and
 * sometimes cannot at first. WAYS: how many connections. */
static void one_way(uint64_t seed)
{
	unsigned steps, back_at;

	connect_as_usual();
	rand_init(&wire.rand, seed);
	wire.loss = (unsigned)rand_below(&wire.rand, 3) * 10;
	steps = 5 + (unsigned)rand_below(&wire.rand, 40);
	back_at = (unsigned)rand_below(&wire.rand, steps);
	for (unsigned i = 0; i < steps; i++) {
		if (rand_below(&wire.rand, 2))
			write_to_peer((uint32_t)rand_below(&wire.rand, 60000));
		if (rand_below(&wire.rand, 2))
			write_from_peer((uint32_t)rand_below(&wire.rand, 60000));
		for (uint64_t n = rand_below(&wire.rand, 8); n; n--)
			pump();
		if (rand_below(&wire.rand, 2))
			read_to_peer();
		if (rand_below(&wire.rand, 2))
			read_from_peer();
		if (i == back_at)
			go_back();
	}
	wire.loss = 0;
	deliver_all();
	part();
	end();
}

TEST(at_any_moment)
{
	const char *text = getenv("WAYS");
	unsigned cnt = text ? (unsigned)atoi(text) : 20;

	for (unsigned i = 0; i < cnt; i++) {
		printf("# seed %llu\n", (unsigned long long)(test_seed + i));
		one_way(test_seed + i);
	}
}
