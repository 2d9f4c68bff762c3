/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flood of SYNs: each comes from an end of its own, of an address in 10.80.0.0/16, that
 * says nothing more. They are a usual client's, with all options.
 *
 *   tcp_flood INTERFACE MAC ADDRESS PORT CNT RATE
 *
 * CNT of them (at most 2^20), RATE in a second, or until SIGTERM. While 1500 wait for their
 * answers it waits, too, but for three seconds in all: whoever is flooded may stand still for
 * a moment. Counts what comes back, until half a second after the last, and says
 *
 *   sent N, answered N, twice N, reset N, wrong N
 *
 * where twice counts the answers to what was answered before, and wrong those to no SYN of
 * ours.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CNT_MAX = 1 << 20, BATCH = 32, OPEN_MAX = 1500, OPTIONS_LEN = 20, FIRST_PORT = 1024 };

#define NETWORK (10u << 8 | 80u)

#define NS_PER_S UINT64_C(1000000000)

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t options[OPTIONS_LEN];
} __attribute__((packed));

static struct frame frame;
static int fd;
static volatile sig_atomic_t is_over;
static bool was_answered[CNT_MAX];
static unsigned long answered_cnt, twice_cnt, reset_cnt, wrong_cnt;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* -- the SYNs --------------------------------------------------------------------------- */

/* Neighbours in time are no neighbours in the network. */
static uint32_t address_of(uint32_t number)
{
	return NETWORK << 16 | (number * 40503u & 0xffff);
}

static uint16_t port_of(uint32_t number)
{
	return (uint16_t)(FIRST_PORT + (number >> 16));
}

static uint32_t seq_of(uint32_t number)
{
	return number * 2654435761u;
}

/* False: it is of none. */
static bool number_of(uint32_t address, uint16_t port, uint32_t *number_out)
{
	/* 40503 times this is 1, modulo 2^16 */
	uint32_t low = (address & 0xffff) * 30599u & 0xffff;

	*number_out = low | (uint32_t)(port - FIRST_PORT) << 16;
	return address >> 16 == NETWORK && port >= FIRST_PORT &&
	       *number_out < CNT_MAX;
}

static uint32_t sum(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint32_t total = 0;

	for (size_t i = 0; i < len; i += 2)
		total += (uint32_t)(at[i] << 8 | at[i + 1]);
	return total;
}

static uint16_t checksum(uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons((uint16_t)~total);
}

static void make_syn(uint32_t number)
{
	size_t len = sizeof(frame.tcp) + OPTIONS_LEN;

	frame.ip.saddr = htonl(address_of(number));
	frame.ip.id = (uint16_t)number;
	frame.ip.check = 0;
	frame.ip.check = checksum(sum(&frame.ip, sizeof(frame.ip)));
	frame.tcp.source = htons(port_of(number));
	frame.tcp.seq = htonl(seq_of(number));
	frame.tcp.check = 0;
	frame.tcp.check = checksum(sum(&frame.ip.saddr, 8) + IPPROTO_TCP +
				   (uint32_t)len + sum(&frame.tcp, len));
}

static void prepare(const char *interface, const char *mac, const char *address,
		    const char *port)
{
	/* MSS 1460, SACK, time stamp 1, scale 7 */
	static const uint8_t options[OPTIONS_LEN] = { 2, 4, 5, 180, 4, 2, 8, 10, 0, 0,
						      0, 1, 0, 0,   0, 0, 1, 3,  3, 7 };
	struct ether_addr to;
	struct ifreq own = { 0 };

	snprintf(own.ifr_name, sizeof(own.ifr_name), "%s", interface);
	if (!ether_aton_r(mac, &to) || ioctl(fd, SIOCGIFHWADDR, &own) != 0 ||
	    inet_pton(AF_INET, address, &frame.ip.daddr) != 1)
		die("names");
	memcpy(frame.eth.ether_dhost, &to, ETH_ALEN);
	memcpy(frame.eth.ether_shost, own.ifr_hwaddr.sa_data, ETH_ALEN);
	frame.eth.ether_type = htons(ETH_P_IP);
	frame.ip.version = 4;
	frame.ip.ihl = 5;
	frame.ip.ttl = 64;
	frame.ip.protocol = IPPROTO_TCP;
	frame.ip.tot_len = htons(sizeof(frame) - sizeof(frame.eth));
	frame.tcp.dest = htons((uint16_t)atoi(port));
	frame.tcp.doff = (sizeof(frame.tcp) + OPTIONS_LEN) / 4;
	frame.tcp.syn = 1;
	frame.tcp.window = htons(64240);
	memcpy(frame.options, options, sizeof(options));
}

/* -- the wire --------------------------------------------------------------------------- */

/* Nothing but IPv4 to the network of the SYNs. */
static void open_wire(const char *interface)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 30),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETWORK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	struct sockaddr_ll name = { .sll_family = AF_PACKET,
				    .sll_protocol = htons(ETH_P_IP),
				    .sll_ifindex = (int)if_nametoindex(interface) };
	int size = 64 << 20, one = 1;

	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		die(interface);
}

static void take(const struct frame *answer)
{
	uint32_t number;

	if (answer->tcp.rst) {
		reset_cnt++;
	} else if (!number_of(ntohl(answer->ip.daddr), ntohs(answer->tcp.dest), &number) ||
		   !answer->tcp.syn || !answer->tcp.ack ||
		   ntohl(answer->tcp.ack_seq) != seq_of(number) + 1) {
		wrong_cnt++;
	} else {
		answered_cnt += !was_answered[number];
		twice_cnt += was_answered[number];
		was_answered[number] = true;
	}
}

static void take_all(void)
{
	struct frame answer;
	ssize_t n;

	while ((n = recv(fd, &answer, sizeof(answer), 0)) >= 0)
		if ((size_t)n >= sizeof(answer) - OPTIONS_LEN)
			take(&answer);
}

/* Until a moment; what comes back is taken meanwhile. */
static void rest(uint64_t until)
{
	static const struct timespec while_ = { 0, 100000 };

	do {
		take_all();
		if (now_ns() < until)
			nanosleep(&while_, NULL);
	} while (now_ns() < until);
}

/* Until few enough are open, or its patience is over for good. Returns how long that was. */
static uint64_t await_answers(uint32_t sent)
{
	static uint64_t patience = 3 * NS_PER_S;
	uint64_t begun = now_ns(), waited = 0;

	while (sent > answered_cnt + OPEN_MAX && waited < patience && !is_over) {
		rest(now_ns() + NS_PER_S / 1000);
		waited = now_ns() - begun;
	}
	patience -= waited < patience ? waited : patience;
	return waited;
}

/* In batches, as the rate wants them. Returns how many. */
static uint32_t flood(uint32_t cnt, uint64_t rate)
{
	uint64_t begun = now_ns(), waited = 0;
	uint32_t i;

	for (i = 0; i < cnt && !is_over; i++) {
		if (i % BATCH == 0) {
			rest(begun + waited + i * NS_PER_S / rate);
			waited += await_answers(i);
		}
		make_syn(i);
		while (send(fd, &frame, sizeof(frame), 0) < 0)
			if (errno != ENOBUFS && errno != EAGAIN)
				die("send");
	}
	fprintf(stderr, "# %.0f SYNs per second\n",
		i * 1e9 / (double)(now_ns() - begun + 1));
	return i;
}

int main(int argc, char **argv)
{
	uint64_t cnt = 0, rate = 0;

	if (argc == 7) {
		cnt = strtoull(argv[5], NULL, 10);
		rate = strtoull(argv[6], NULL, 10);
	}
	if (!rate || cnt > CNT_MAX) {
		fprintf(stderr, "usage: %s INTERFACE MAC ADDRESS PORT CNT RATE\n", argv[0]);
		return 2;
	}
	signal(SIGTERM, end);
	open_wire(argv[1]);
	prepare(argv[1], argv[2], argv[3], argv[4]);
	cnt = flood((uint32_t)cnt, rate);
	rest(now_ns() + NS_PER_S / 2);
	printf("sent %lu, answered %lu, twice %lu, reset %lu, wrong %lu\n",
	       (unsigned long)cnt, answered_cnt, twice_cnt, reset_cnt, wrong_cnt);
	return 0;
}
