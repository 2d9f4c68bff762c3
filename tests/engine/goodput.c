/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes per second over one link, for our engine in the simulator, or for Linux:
 * two network namespaces with a TUN device each, and between them, in real time,
 * the same impairment code. Data is lost at random, acknowledgments are not.
 * `capacity` is Linux over a link that does nothing: what this carries.
 *
 * Usage: MBIT=n RTT_MS=n LOSS_PPM=n DURATION=n \
 *        goodput ours|linux_tcp|capacity [--seed N]
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
		if (write(tun, frame->data, frame->len) < 0)
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

/* ---- the cell ---- */

static uint64_t argument(const char *name)
{
	const char *text = getenv(name);

	CHECK(text != NULL);
	return strtoull(text, NULL, 0);
}

static void report(uint64_t (*run)(const struct cell *))
{
	struct cell cell = {
		.rate_bps = argument("MBIT") * 1000000,
		.rtt_ns = argument("RTT_MS") * NS_PER_MS,
		.loss_ppm = (uint32_t)argument("LOSS_PPM"),
		.duration_ns = argument("DURATION") * NS_PER_SEC,
		.seed = test_seed,
	};

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
