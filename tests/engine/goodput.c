/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes per second over one link, for our engine in the simulator, or for Linux:
 * two network namespaces with a TUN device each, and between them, in real time,
 * the same impairment code. Data is lost at random, acknowledgments are not.
 * `capacity` is Linux over a link that does nothing: what this carries.
 *
 * The cases named beside_linux have two flows into one link, where the queue alone loses:
 * ours, be it BBR, or Linux once more, and one of Linux. Both have Linux as receiver, and
 * the clock is the real one for all. The share is that of the bytes received behind the
 * first third of the time; who begins depends on the seed.
 *
 * exchanges_of_linux is a request and an answer of one segment each, again and again.
 *
 * Usage: MBIT=n RTT_MS=n LOSS_PPM=n DURATION=n \
 *        goodput ours|linux_tcp|capacity|... [--seed N]
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tests/engine/sim.h"
#include "tests/support/test.h"

enum { PORT = 5001 };

/* A turn of the emulator that takes so much longer than it meant to wait was
 * somebody else's time. */
#define STALL_NS (NS_PER_MS / 2)

struct cell {
	uint64_t rate_bps, rtt_ns, duration_ns, seed;
	uint32_t loss_ppm;
};

/* A queue of one round trip, 30 packets at least. */
static void make_links(const struct cell *cell, struct impair_params link[2])
{
	uint64_t queue = cell->rate_bps / 8 * cell->rtt_ns / NS_PER_SEC;

	for (int i = 0; i < 2; i++)
		link[i] = (struct impair_params){
			.rate_bps = cell->rate_bps,
			.delay_ns = cell->rtt_ns / 2,
			.queue_bytes = MAX(queue, UINT64_C(45000)),
		};
	link[0].loss_ppm = cell->loss_ppm;
}

/* ---- ours ---- */

static uint64_t run_ours_with(const struct cell *cell,
			      enum tcp_cc_algorithm cc)
{
	static struct sim sim;
	struct sim_app client = { .to_send = UINT64_C(1) << 40 };
	struct sim_app server = { .to_send = 0, .stays_open = true };
	struct impair_params link[2];
	struct tcp_params params;
	const struct tcp_counts *counts;
	struct sim_conn *conn;
	uint64_t got;

	make_links(cell, link);
	tcp_params_init(&params);
	params.cc = cc;
	sim_init(&sim, cell->seed, &params, link);
	sim_listen(&sim, &server);
	conn = sim_connect(&sim, &client);
	sim_run(&sim, sim.now_ns + cell->duration_ns);
	got = sim_other_end(conn)->received;
	counts = tcp_counts(sim.host[0].table);
	test_note("%" PRIu64 " sent again, %" PRIu64 " recoveries, %" PRIu64
		  " timeouts", counts->retransmitted, counts->fast_recoveries,
		  counts->rto_fired);
	sim_finish(&sim, true);
	return got;
}

static uint64_t run_ours(const struct cell *cell)
{
	return run_ours_with(cell, TCP_CC_CUBIC);
}

static uint64_t run_bbr(const struct cell *cell)
{
	return run_ours_with(cell, TCP_CC_BBR);
}

/* ---- Linux ---- */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void write_sysctl(const char *name, const char *value)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	file = fopen(path, "w");
	if (!file)
		return;
	fputs(value, file);
	fclose(file);
}

/* A namespace with a TUN device whose far side is the other one's. The calling
 * thread is inside afterwards. */
static int make_end(const char *addr, const char *peer)
{
	struct ifreq req = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	struct sockaddr_in *in = (void *)&req.ifr_addr;
	int fd, tun;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	/* its first words on a link would take losses meant for others */
	write_sysctl("ipv6/conf/default/disable_ipv6", "1");
	tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	CHECK(tun >= 0);
	strcpy(req.ifr_name, "goodput0");
	CHECK_EQ(ioctl(tun, TUNSETIFF, &req), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	in->sin_family = AF_INET;
	CHECK_EQ(inet_pton(AF_INET, addr, &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, SIOCSIFADDR, &req), 0);
	/* others than the peer are behind it, too */
	CHECK_EQ(inet_pton(AF_INET, "255.255.255.0", &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, SIOCSIFNETMASK, &req), 0);
	CHECK_EQ(inet_pton(AF_INET, peer, &in->sin_addr), 1);
	CHECK_EQ(ioctl(fd, SIOCSIFDSTADDR, &req), 0);
	req.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT;
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	req.ifr_qlen = 10000;
	CHECK_EQ(ioctl(fd, SIOCSIFTXQLEN, &req), 0);
	close(fd);
	write_sysctl("ipv4/tcp_no_metrics_save", "1");
	return tun;
}

static int make_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5), 0);
	return fd;
}

/* ---- ours in real time ---- */

enum { OWN_PORT = 6001, POOL_PACKETS = 1 << 14, RX_PACKETS = 256, BUF_SIZE = 2048 };

/* Our engine in real time, as one more host before the link. */
static struct own {
	struct timer_wheel wheel;
	struct pkt_pool tx_pool, rx_pool, borrowers;
	struct tcp_table *table;
	struct tcp_pcb *pcb;
	struct ip_addr addr, peer;
	struct impair *out;
	uint16_t ip_id;
} own;

static const struct tcp_path own_path = { .mtu = 1500 };

static void own_emit(void *ctx UNUSED, struct tcp_pcb *pcb UNUSED,
		     const struct tcp_out *out)
{
	const struct wire_ip ip = {
		.src = out->key->local,
		.dst = out->key->remote,
		.proto = WIRE_PROTO_TCP,
		.tos = out->ecn,
		.ttl = 64,
		.payload_len = (uint16_t)(out->header_len + out->data_len),
	};
	uint8_t packet[2048];
	size_t len = wire_build_ip(packet, &ip, own.ip_id++);
	struct pkt *pkt = out->data;

	memcpy(packet + len, out->header, out->header_len);
	len += out->header_len;
	for (uint32_t i = 0; i < out->data_cnt; i++) {
		memcpy(packet + len, pkt->data, pkt->len);
		len += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	impair_send(own.out, now(), impair_bytes_create(packet, len), len);
}

static void *own_alloc(void *ctx UNUSED, size_t size)
{
	return calloc(1, size);
}

static void own_release(void *ctx UNUSED, void *mem, size_t size UNUSED)
{
	free(mem);
}

static bool own_find_path(void *ctx UNUSED, const struct flow_key *key UNUSED,
			  struct tcp_path *path_out)
{
	*path_out = own_path;
	return true;
}

static const struct tcp_ops own_ops = {
	.emit = own_emit,
	.alloc = own_alloc,
	.release = own_release,
	.path = own_find_path,
	.stamped = tcp_stamp_ignore,
	.stray = tcp_stray_refuse,
	.no_room_ns = tcp_room_always,
};

static void own_begin(struct impair *out, enum tcp_cc_algorithm cc)
{
	struct tcp_params params;

	tcp_params_init(&params);
	params.cc = cc;
	params.secret.word[0] = test_seed;
	own.out = out;
	own.addr = ip_addr_from_v4(htobe32(0x0a4e0003));
	own.peer = ip_addr_from_v4(htobe32(0x0a4e0002));
	timer_wheel_init(&own.wheel, now());
	pkt_pool_init(&own.tx_pool, 0);
	pkt_pool_init(&own.rx_pool, 0);
	pkt_pool_init(&own.borrowers, 0);
	CHECK_EQ(pkt_pool_grow(&own.tx_pool, POOL_PACKETS, BUF_SIZE), 0);
	CHECK_EQ(pkt_pool_grow(&own.rx_pool, RX_PACKETS, BUF_SIZE), 0);
	CHECK_EQ(pkt_pool_grow(&own.borrowers, POOL_PACKETS, 0), 0);
	own.table = tcp_table_create(&params, &own_ops, NULL, &own.wheel,
				     &own.borrowers);
	CHECK(own.table != NULL);
	own.pcb = tcp_new(own.table);
	CHECK_EQ(tcp_bind(own.pcb, &own.addr, htobe16(OWN_PORT)), 0);
	CHECK_EQ(tcp_connect(own.pcb, &own.peer, htobe16(PORT), &own_path,
			     now()), 0);
}

/* False: the packet is for somebody else. */
static bool own_takes(const uint8_t *packet, size_t len)
{
	struct tcp_in in = { .pkt = NULL };
	struct wire_ip ip;

	if (!own.table || wire_parse_ip(packet, len, &ip) ||
	    !ip_addr_eq(&ip.dst, &own.addr))
		return false;
	in.pkt = pkt_alloc(&own.rx_pool);
	if (!in.pkt)
		return true;
	memcpy(pkt_append(in.pkt, ip.payload_len), packet + ip.header_len,
	       ip.payload_len);
	in.key.local = ip.dst;
	in.key.remote = ip.src;
	in.ecn = ip.tos & 3;
	tcp_input(own.table, &in, now());
	return true;
}

static void own_run(void)
{
	struct tcp_event event;
	uint32_t room;

	if (!own.table)
		return;
	timer_wheel_advance(&own.wheel, now());
	while (tcp_event_next(own.table, &event))
		CHECK(!(event.what & TCP_EV_ERROR));
	while ((room = tcp_sndbuf(own.pcb))) {
		struct pkt *pkt = pkt_alloc(&own.tx_pool);

		if (!pkt)
			break;
		room = MIN(room, tcp_mss(own.pcb));
		memset(pkt_append(pkt, room), 'o', room);
		CHECK_EQ(tcp_write(own.pcb, pkt), 0);
	}
	tcp_output(own.pcb, now());
}

static void own_end(void)
{
	if (!own.table)
		return;
	tcp_abort(own.pcb, now());
	tcp_table_destroy(own.table);
	own.table = NULL;
	CHECK_EQ(pkt_pool_destroy(&own.tx_pool), 0);
	CHECK_EQ(pkt_pool_destroy(&own.rx_pool), 0);
	CHECK_EQ(pkt_pool_destroy(&own.borrowers), 0);
}

/* ---- the emulator ---- */

/* What the device has to send goes onto the link, what comes out goes in at the
 * other device. */
static void carry(int tun, struct impair *out, struct impair *in)
{
	uint8_t packet[65536];
	struct impair_bytes *frame;
	ssize_t got;
	size_t len;

	while ((got = read(tun, packet, sizeof(packet))) > 0)
		impair_send(out, now(), impair_bytes_create(packet, (size_t)got),
			    (size_t)got);
	while ((frame = impair_recv(in, now(), &len))) {
		/* a full queue loses it, as any would */
		if (!own_takes(frame->data, frame->len) &&
		    write(tun, frame->data, frame->len) < 0)
			CHECK(errno == EAGAIN || errno == ENOBUFS);
		free(frame);
	}
}

static void fill_up(int sock)
{
	static uint8_t buf[65536];

	while (send(sock, buf, sizeof(buf), MSG_NOSIGNAL) > 0)
		;
}

static uint64_t drain(int sock)
{
	static uint8_t buf[1 << 18];
	uint64_t sum = 0;
	ssize_t got;

	while ((got = recv(sock, buf, sizeof(buf), 0)) > 0)
		sum += (uint64_t)got;
	return sum;
}

/* Returns how long it meant to wait. */
static uint64_t wait_for(const int tun[2], struct impair *const link[2])
{
	struct pollfd fds[2] = { { .fd = tun[0], .events = POLLIN },
				 { .fd = tun[1], .events = POLLIN } };
	uint64_t next = MIN(impair_next_ns(link[0]), impair_next_ns(link[1]));
	int64_t left = next == IMPAIR_NEVER ? INT64_C(1000000)
					    : (int64_t)next - (int64_t)now();
	struct timespec ts = { 0, 0 };

	if (left > 0)
		ts.tv_nsec = (long)MIN(left, INT64_C(1000000));
	ppoll(fds, 2, &ts, NULL);
	return (uint64_t)ts.tv_nsec;
}

static uint64_t run_over(const struct cell *cell,
			 const struct impair_params params[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };
	struct impair *link[2];
	int tun[2], sender, listener, receiver = -1;
	uint64_t received = 0, stalled = 0, turn, end;

	/* wake up when told to, not fifty microseconds later */
	prctl(PR_SET_TIMERSLACK, 1);
	for (int i = 0; i < 2; i++) {
		link[i] = impair_create(&params[i], cell->seed + (uint64_t)i,
					&impair_bytes_ops, NULL);
		CHECK(link[i] != NULL);
	}
	tun[1] = make_end("10.78.0.2", "10.78.0.1");
	listener = make_socket();
	CHECK_EQ(bind(listener, (void *)&addr, sizeof(addr)), 0);
	CHECK_EQ(listen(listener, 1), 0);
	tun[0] = make_end("10.78.0.1", "10.78.0.2");
	sender = make_socket();
	CHECK_EQ(inet_pton(AF_INET, "10.78.0.2", &addr.sin_addr), 1);
	CHECK_EQ(connect(sender, (void *)&addr, sizeof(addr)), -1);
	CHECK_EQ(errno, EINPROGRESS);
	turn = now();
	end = turn + cell->duration_ns;
	while (turn < end) {
		uint64_t last = turn, waited = wait_for(tun, link);

		carry(tun[0], link[0], link[1]);
		carry(tun[1], link[1], link[0]);
		fill_up(sender);
		if (receiver < 0)
			receiver = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		else
			received += drain(receiver);
		turn = now();
		if (turn - last > waited + STALL_NS)
			stalled += turn - last - waited;
	}
	test_note("%.2f %% stalled",
		  100.0 * (double)stalled / (double)cell->duration_ns);
	for (int i = 0; i < 2; i++)
		impair_destroy(link[i]);
	return received;
}

static uint64_t run_linux(const struct cell *cell)
{
	struct impair_params link[2];

	make_links(cell, link);
	return run_over(cell, link);
}

static uint64_t run_capacity(const struct cell *cell)
{
	const struct impair_params link[2] = { { .rate_bps = 0 } };

	return run_over(cell, link);
}

/* ---- two flows ---- */

/* What a connection has brought, and whose it is. */
struct receiver {
	int fd;
	bool is_first;
	uint64_t bytes;
};

static void take_connections(int listener, struct receiver *receivers,
			     unsigned *cnt)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd;

	while (*cnt < 2 && (fd = accept4(listener, (void *)&from, &len,
					 SOCK_NONBLOCK)) >= 0)
		receivers[(*cnt)++] = (struct receiver){
			.fd = fd,
			.is_first = from.sin_port == htons(OWN_PORT),
		};
}

static int connect_linux(uint16_t from_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(from_port) };
	int fd = make_socket();

	CHECK_EQ(bind(fd, (void *)&addr, sizeof(addr)), 0);
	addr.sin_port = htons(PORT);
	CHECK_EQ(inet_pton(AF_INET, "10.78.0.2", &addr.sin_addr), 1);
	CHECK_EQ(connect(fd, (void *)&addr, sizeof(addr)), -1);
	CHECK_EQ(errno, EINPROGRESS);
	return fd;
}

/* The first flow is Linux's if the algorithm is TCP_CC_CNT. */
static void run_beside_linux(const struct cell *cell, enum tcp_cc_algorithm cc)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };
	struct receiver receivers[2] = { { .fd = -1 }, { .fd = -1 } };
	uint64_t begin, turn, end, stalled = 0, sum[2] = { 0, 0 };
	struct impair_params params[2];
	int tun[2], listener, senders[2] = { -1, -1 };
	struct impair *link[2];
	unsigned cnt = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	make_links(cell, params);
	/* Without this it is chance who always finds the queue full: the time of two
	 * packets, both ways. */
	for (int i = 0; i < 2; i++)
		params[i].jitter_ns = 2 * 1500 * 8 * NS_PER_SEC / cell->rate_bps;
	for (int i = 0; i < 2; i++) {
		link[i] = impair_create(&params[i], cell->seed + (uint64_t)i,
					&impair_bytes_ops, NULL);
		CHECK(link[i] != NULL);
	}
	tun[1] = make_end("10.78.0.2", "10.78.0.1");
	listener = make_socket();
	CHECK_EQ(bind(listener, (void *)&addr, sizeof(addr)), 0);
	CHECK_EQ(listen(listener, 2), 0);
	tun[0] = make_end("10.78.0.1", "10.78.0.2");
	if (cell->seed % 2)
		senders[1] = connect_linux(OWN_PORT + 1);
	if (cc == TCP_CC_CNT)
		senders[0] = connect_linux(OWN_PORT);
	else
		own_begin(link[0], cc);
	if (senders[1] < 0)
		senders[1] = connect_linux(OWN_PORT + 1);
	begin = turn = now();
	end = begin + cell->duration_ns;
	while (turn < end) {
		uint64_t last = turn, waited = wait_for(tun, link);

		carry(tun[0], link[0], link[1]);
		carry(tun[1], link[1], link[0]);
		own_run();
		for (int i = 0; i < 2; i++)
			if (senders[i] >= 0)
				fill_up(senders[i]);
		take_connections(listener, receivers, &cnt);
		turn = now();
		for (unsigned i = 0; i < cnt; i++) {
			uint64_t got = drain(receivers[i].fd);

			if (turn - begin > cell->duration_ns / 3)
				sum[!receivers[i].is_first] += got;
		}
		if (turn - last > waited + STALL_NS)
			stalled += turn - last - waited;
	}
	own_end();
	CHECK(cnt == 2 && sum[0] + sum[1] > 0);
	test_note("%.2f %% stalled",
		  100.0 * (double)stalled / (double)cell->duration_ns);
	test_note("share %.3f of %.2f Mbit/s",
		  (double)sum[0] / (double)(sum[0] + sum[1]),
		  (double)(sum[0] + sum[1]) * 12e3 /
			  (double)cell->duration_ns);
	for (int i = 0; i < 2; i++)
		impair_destroy(link[i]);
}

/* ---- exchanges ---- */

enum { EXCHANGES = 1000, MESSAGE = 500 };

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Carries until so many bytes have come. */
static void await(int sock, uint64_t bytes, const int tun[2],
		  struct impair *const link[2])
{
	uint64_t got = 0;

	while (got < bytes) {
		wait_for(tun, link);
		carry(tun[0], link[0], link[1]);
		carry(tun[1], link[1], link[0]);
		got += drain(sock);
	}
}

static void send_message(int sock)
{
	static const uint8_t buf[MESSAGE];

	CHECK_EQ(send(sock, buf, sizeof(buf), MSG_NOSIGNAL), sizeof(buf));
}

/* A request and an answer of one segment each, one exchange after the other, where both
 * ways lose; see tests/engine/recovery.c for ours. */
static void run_exchanges(const struct cell *cell)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };
	static uint64_t times[EXCHANGES];
	struct impair_params params[2];
	int tun[2], listener, client, server = -1, on = 1;
	struct impair *link[2];

	prctl(PR_SET_TIMERSLACK, 1);
	make_links(cell, params);
	params[1].loss_ppm = cell->loss_ppm;
	for (int i = 0; i < 2; i++) {
		link[i] = impair_create(&params[i], cell->seed + (uint64_t)i,
					&impair_bytes_ops, NULL);
		CHECK(link[i] != NULL);
	}
	tun[1] = make_end("10.78.0.2", "10.78.0.1");
	listener = make_socket();
	CHECK_EQ(bind(listener, (void *)&addr, sizeof(addr)), 0);
	CHECK_EQ(listen(listener, 2), 0);
	tun[0] = make_end("10.78.0.1", "10.78.0.2");
	client = connect_linux(OWN_PORT);
	while (server < 0) {
		wait_for(tun, link);
		carry(tun[0], link[0], link[1]);
		carry(tun[1], link[1], link[0]);
		server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	}
	CHECK_EQ(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	CHECK_EQ(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	for (int i = 0; i < EXCHANGES; i++) {
		uint64_t start = now();

		send_message(client);
		await(server, MESSAGE, tun, link);
		send_message(server);
		await(client, MESSAGE, tun, link);
		times[i] = now() - start;
	}
	qsort(times, EXCHANGES, sizeof(times[0]), compare_times);
	test_note("median %.1f ms, p99 %.1f ms, most %.1f ms",
		  (double)times[EXCHANGES / 2] / 1e6,
		  (double)times[EXCHANGES * 99 / 100] / 1e6,
		  (double)times[EXCHANGES - 1] / 1e6);
	for (int i = 0; i < 2; i++)
		impair_destroy(link[i]);
}

/* ---- the cell ---- */

static uint64_t argument(const char *name)
{
	const char *text = getenv(name);

	CHECK(text != NULL);
	return strtoull(text, NULL, 0);
}

static struct cell cell_of_environment(void)
{
	return (struct cell){
		.rate_bps = argument("MBIT") * 1000000,
		.rtt_ns = argument("RTT_MS") * NS_PER_MS,
		.loss_ppm = (uint32_t)argument("LOSS_PPM"),
		.duration_ns = argument("DURATION") * NS_PER_SEC,
		.seed = test_seed,
	};
}

static void report(uint64_t (*run)(const struct cell *))
{
	struct cell cell = cell_of_environment();

	test_note("%.3f Mbit/s", (double)run(&cell) * 8e3 /
					 (double)cell.duration_ns);
}

TEST(ours)
{
	report(run_ours);
}

TEST(bbr)
{
	report(run_bbr);
}

TEST(linux_tcp)
{
	report(run_linux);
}

TEST(capacity)
{
	report(run_capacity);
}

static void report_share(enum tcp_cc_algorithm cc)
{
	struct cell cell = cell_of_environment();

	run_beside_linux(&cell, cc);
}

TEST(beside_linux)
{
	report_share(TCP_CC_CUBIC);
}

TEST(bbr_beside_linux)
{
	report_share(TCP_CC_BBR);
}

TEST(linux_beside_linux)
{
	report_share(TCP_CC_CNT);
}

TEST(exchanges_of_linux)
{
	struct cell cell = cell_of_environment();

	run_exchanges(&cell);
}
