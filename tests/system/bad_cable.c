/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bad cable between two interfaces: frames of each that arrive leave by the other, or
 * late, twice, damaged, in another order, or never (dev/fake/impair.h).
 *
 *   bad_cable INTERFACE INTERFACE SEED [loss=PPM] [dup=PPM] [reorder=PPM] [corrupt=PPM]
 *             [delay=MICROSECONDS]
 *
 * Says "ready", and at SIGTERM how many frames each way met what.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dev/fake/impair.h"

enum { FRAME_MAX = 65536, BATCH = 64 };

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	struct packet_mreq all = { .mr_ifindex = address.sll_ifindex,
				   .mr_type = PACKET_MR_PROMISC };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0), one = 1;

	if (fd < 0 || !address.sll_ifindex ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
		       sizeof(one)) != 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
		       sizeof(all)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &(int){ 16 << 20 },
		       sizeof(int)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		perror(name);
		exit(1);
	}
	return fd;
}

/* So many at a time, so that both ways have their turns. */
static void take(int fd, struct impair *way)
{
	static uint8_t frame[FRAME_MAX];
	struct impair_bytes *bytes;
	ssize_t n;

	for (int i = 0; i < BATCH; i++) {
		n = recv(fd, frame, sizeof(frame), 0);
		if (n <= 0)
			return;
		bytes = impair_bytes_create(frame, (size_t)n);
		if (bytes)
			impair_send(way, clock_monotonic_ns(), bytes, (size_t)n);
	}
}

/* A queue that is full is a loss, as on any cable. */
static void give(int fd, struct impair *way)
{
	struct impair_bytes *bytes;
	size_t len;

	while ((bytes = impair_recv(way, clock_monotonic_ns(), &len))) {
		(void)!send(fd, bytes->data, len, 0);
		free(bytes);
	}
}

static int time_left(struct impair *const ways[2])
{
	uint64_t now = clock_monotonic_ns(), next = IMPAIR_NEVER;

	for (int i = 0; i < 2; i++)
		next = MIN(next, impair_next_ns(ways[i]));
	if (next == IMPAIR_NEVER)
		return 1000;
	return next <= now ? 0 : (int)MIN((next - now) / NS_PER_MS + 1, 1000u);
}

static void carry(const int fds[2], struct impair *const ways[2])
{
	struct pollfd ready[2] = { { .fd = fds[0], .events = POLLIN },
				   { .fd = fds[1], .events = POLLIN } };

	while (!is_over) {
		if (poll(ready, 2, time_left(ways)) < 0 && errno != EINTR)
			return;
		for (int i = 0; i < 2; i++) {
			take(fds[i], ways[i]);
			give(fds[!i], ways[i]);
		}
	}
}

static uint32_t *named(struct impair_params *params, const char *name)
{
	if (strcmp(name, "loss") == 0)
		return &params->loss_ppm;
	if (strcmp(name, "dup") == 0)
		return &params->dup_ppm;
	if (strcmp(name, "reorder") == 0)
		return &params->reorder_ppm;
	return strcmp(name, "corrupt") == 0 ? &params->corrupt_ppm : NULL;
}

static bool read_param(struct impair_params *params, char *text)
{
	char *value = strchr(text, '=');
	uint32_t *number;

	if (!value)
		return false;
	*value++ = '\0';
	if (strcmp(text, "delay") == 0) {
		params->delay_ns = strtoull(value, NULL, 10) * NS_PER_US;
		params->jitter_ns = params->delay_ns / 4;
		return true;
	}
	number = named(params, text);
	if (number)
		*number = (uint32_t)strtoul(value, NULL, 10);
	return number;
}

static void say(const char *name, const struct impair *way)
{
	const struct impair_counts *c = impair_counts(way);

	printf("%s: %lu frames, %lu lost, %lu twice, %lu damaged, %lu overtaken\n",
	       name, c->sent, c->lost, c->duplicated, c->corrupted, c->held);
}

int main(int argc, char **argv)
{
	struct impair_params params = { .reorder_cnt = 5 };
	struct impair *ways[2];
	int fds[2];

	for (int i = 4; i < argc; i++)
		if (!read_param(&params, argv[i]))
			argc = 0;
	if (argc < 4) {
		fprintf(stderr, "usage: bad_cable INTERFACE INTERFACE SEED [loss=PPM] [dup=PPM] [reorder=PPM] [corrupt=PPM] [delay=MICROSECONDS]\n");
		return 2;
	}
	signal(SIGTERM, end);
	for (int i = 0; i < 2; i++) {
		fds[i] = open_interface(argv[1 + i]);
		ways[i] = impair_create(&params,
					strtoull(argv[3], NULL, 10) + (unsigned)i,
					&impair_bytes_ops, NULL);
		if (!ways[i])
			return 1;
	}
	printf("ready\n");
	fflush(stdout);
	carry(fds, ways);
	for (int i = 0; i < 2; i++) {
		say(argv[1 + i], ways[i]);
		impair_destroy(ways[i]);
	}
	return 0;
}
