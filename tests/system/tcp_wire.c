/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The wire between the engine and a peer (tcp_wire.h). */
#define _GNU_SOURCE
#include "config.h"

#include "tests/system/tcp_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dev/fake/impair.h"
#include "os/real.h"
#include "pkt/wire.h"
#include "tests/system/netns.h"

enum {
	FRAME_MAX = 2048,
	HELD_MAX = 4096,
	PKTS = 8192,
	DATA_MAX = 1400,
};

static int own_ns = -1, peer_ns = -1, own_tun = -1, peer_tun = -1;
struct ip_addr own_addr, peer_addr;

/* -- the wire ------------------------------------------------------------------- */

struct frame {
	size_t len;
	uint8_t bytes[FRAME_MAX];
};

struct wire wire;
/* wire.held_cnt of them wait */
static struct frame held[HELD_MAX];

/* -- the engine ----------------------------------------------------------------- */

static struct timer_wheel wheel;
static struct pkt_pool pool, borrowers;
static struct tcp_table *table;
struct tcp_pcb *pcb;
static struct tcp_pcb *listener;
static bool is_connected;

/* -- the two ends ---------------------------------------------------------------- */

/* of the kernel beside the engine, once it has the connection; of the peer */
int own_fd = -1, peer_fd = -1;
static int peer_listener = -1;

struct stream to_peer, from_peer;

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 7 + (i >> 16));
}

void check_bytes(uint64_t from, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_at(from + i))
			FAIL("byte %llu is wrong",
			     (unsigned long long)(from + i));
}

static void put_frame(int tun, const uint8_t *frame, size_t len)
{
	CHECK_EQ(write(tun, frame, len), (ssize_t)len);
}

/* What happens to frames under way: to the peer, and from it. NULL: nothing. */
enum way { TO_PEER, FROM_PEER, WAYS };
static struct impair *ways[WAYS];

void wire_spoil(uint32_t ppm, uint64_t seed)
{
	struct impair_params params = { .loss_ppm = ppm, .dup_ppm = ppm,
					.reorder_ppm = ppm, .reorder_cnt = 4 };

	for (unsigned i = 0; i < WAYS; i++) {
		if (!ways[i])
			ways[i] = impair_create(&params, 2 * seed + i,
						&impair_bytes_ops, NULL);
		CHECK(ways[i]);
		impair_set_params(ways[i], &params);
	}
}

static void send_by(enum way way, const uint8_t *frame, size_t len)
{
	struct impair_bytes *bytes = impair_bytes_create(frame, len);

	CHECK(bytes);
	impair_send(ways[way], clock_monotonic_ns(), bytes, len);
}

static void to_the_peer(const uint8_t *frame, size_t len)
{
	if (wire.is_cut)
		return;
	if (ways[TO_PEER])
		send_by(TO_PEER, frame, len);
	else
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
					   tcp_stamp_ignore,
					   tcp_stray_refuse, tcp_room_always };

static struct pkt *segment_of(const struct frame *frame)
{
	const struct wire_ipv4 *ip = (const void *)frame->bytes;
	uint32_t len = (uint32_t)(frame->len - sizeof(*ip));
	struct pkt *pkt = pkt_alloc(&pool);

	CHECK(pkt);
	memcpy(pkt_append(pkt, len), ip + 1, len);
	return pkt;
}

static void to_the_engine(const struct frame *frame)
{
	const struct wire_ipv4 *ip = (const void *)frame->bytes;
	struct tcp_in in = { .pkt = segment_of(frame), .ecn = ip->tos & 3 };

	in.key.local = own_addr;
	in.key.remote = peer_addr;
	tcp_input(table, &in, clock_monotonic_ns());
}

static bool has_data(const struct frame *frame)
{
	return frame->len > sizeof(struct wire_ipv4) + 60;
}

static void arrive(const struct frame *frame)
{
	if (wire.loses_one && has_data(frame)) {
		wire.loses_one = false;
		return;
	}
	if (wire.is_open) {
		put_frame(own_tun, frame->bytes, frame->len);
	} else if (wire.is_holding) {
		CHECK(wire.held_cnt < HELD_MAX);
		held[wire.held_cnt++] = *frame;
	} else {
		to_the_engine(frame);
	}
}

static void from_the_peer(const struct frame *frame)
{
	const struct wire_ipv4 *ip = (const void *)frame->bytes;

	if (ip->version_ihl >> 4 != 4 || ip->proto != WIRE_PROTO_TCP)
		return;
	if (ways[FROM_PEER])
		send_by(FROM_PEER, frame->bytes, frame->len);
	else
		arrive(frame);
}

/* What has been under way long enough. */
static void carry(void)
{
	struct impair_bytes *bytes;
	struct frame frame;
	size_t len;

	if (!ways[TO_PEER])
		return;
	while ((bytes = impair_recv(ways[TO_PEER], clock_monotonic_ns(), &len))) {
		put_frame(peer_tun, bytes->data, len);
		free(bytes);
	}
	while ((bytes = impair_recv(ways[FROM_PEER], clock_monotonic_ns(), &len))) {
		memcpy(frame.bytes, bytes->data, len);
		frame.len = len;
		free(bytes);
		arrive(&frame);
	}
}

static bool get_frame(int tun, struct frame *frame)
{
	ssize_t n = read(tun, frame->bytes, sizeof(frame->bytes));

	frame->len = (size_t)MAX(n, 0);
	return n > 0;
}

void wire_take(void)
{
	struct frame frame;

	while (get_frame(peer_tun, &frame))
		from_the_peer(&frame);
	carry();
}

void wire_hold(void)
{
	wire.is_holding = true;
}

void wire_to_engine(void)
{
	wire.is_holding = wire.is_open = false;
	for (unsigned i = 0; i < wire.held_cnt; i++)
		to_the_engine(&held[i]);
	wire.held_cnt = 0;
}

void wire_to_kernel(void)
{
	wire.is_holding = false;
	wire.is_open = true;
}

int wire_give(const uint8_t *header, size_t header_len, const struct pkt *data)
{
	uint8_t packet[FRAME_MAX * 2];
	size_t at = sizeof(struct wire_ipv4);

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

/* As the library does it: without those that the kernel needs not have. */
void wire_held_to_kernel(void)
{
	struct list pkts = LIST_INIT(pkts);
	struct pkt *pkt;

	for (unsigned i = 0; i < wire.held_cnt; i++) {
		pkt = segment_of(&held[i]);
		list_push_back(&pkts, &pkt->link);
	}
	wire.held_cnt = 0;
	tcp_drop_superseded(pcb, &pkts);
	LIST_FOR_EACH(pkt, &pkts, link) {
		CHECK_EQ(wire_give(pkt->data, pkt->len, NULL), 0);
		wire.given_cnt++;
	}
	pkt_put_list(&pkts);
}

void pump(void)
{
	struct pollfd fds[] = { { .fd = own_tun, .events = POLLIN },
				{ .fd = peer_tun, .events = POLLIN } };
	struct tcp_event event;
	struct frame frame;

	poll(fds, 2, 1);
	wire_take();
	while (get_frame(own_tun, &frame))
		if (wire.is_open)
			to_the_peer(frame.bytes, frame.len);
	carry();
	timer_wheel_advance(&wheel, clock_monotonic_ns());
	while (tcp_event_next(table, &event))
		if (event.what & TCP_EV_CONNECTED)
			is_connected = true;
}

/* -- reading and writing ---------------------------------------------------------- */

void write_to_peer(uint32_t len)
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

void write_from_peer(uint32_t len)
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
	uint32_t len = tcp_take(pcb, UINT32_MAX, &pkts);
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

void read_from_peer(void)
{
	if (own_fd >= 0)
		read_fd(own_fd, &from_peer.read, &from_peer.is_at_end);
	else
		read_engine();
}

void read_to_peer(void)
{
	read_fd(peer_fd, &to_peer.read, &to_peer.is_at_end);
}

void deliver_all(void)
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

void exchange(uint32_t len)
{
	write_to_peer(len);
	write_from_peer(len);
	deliver_all();
}

void pump_for(unsigned ms)
{
	uint64_t end_ns = clock_monotonic_ns() + ms * NS_PER_MS;

	while (clock_monotonic_ns() < end_ns)
		pump();
}

void close_stream_to_peer(void)
{
	if (own_fd >= 0)
		CHECK_EQ(shutdown(own_fd, SHUT_WR), 0);
	else
		CHECK_EQ(tcp_shutdown(pcb, clock_monotonic_ns()), 0);
}

struct tcp_info kernel_info(int fd)
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

int bound_socket(const struct ip_addr *addr, uint16_t port)
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
	memset(&wire, 0, sizeof(wire));
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

void connect_with(const struct tcp_params *params)
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

void connect_as_usual(void)
{
	struct tcp_params params;

	tcp_params_init(&params);
	connect_with(&params);
}

void accept_one(void)
{
	struct sockaddr_in name;
	struct tcp_params params;

	tcp_params_init(&params);
	begin_with(&params);
	name = name_of(&own_addr, OWN_PORT);
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

void end(void)
{
	close_fd(&own_fd);
	close_fd(&peer_fd);
	close_fd(&peer_listener);
	for (unsigned i = 0; i < WAYS; i++) {
		impair_destroy(ways[i]);
		ways[i] = NULL;
	}
	tcp_table_destroy(table);
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
	CHECK_EQ(pkt_pool_destroy(&borrowers), 0);
	close_fd(&own_tun);
	close_fd(&peer_tun);
	close_fd(&own_ns);
	close_fd(&peer_ns);
}
