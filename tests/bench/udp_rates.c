/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a datagram of 64 bytes (RATES_LEN) takes, and how many go one way, over sockets
 * or over bare AF_XDP (udp_rates.h). udp_rates.sh and tcp_rates.sh run it at both ends of
 * a cable.
 *
 *   udp_rates raw|spin|block ROLE OWN-ADDRESS PEER-ADDRESS PEER-MAC BATCH
 *
 * The roles: `echo` answers until it hears END, and `ping` asks and prints the half
 * round trip in nanoseconds, median and 99.9th percentile, and how often it asked.
 * `count` receives and prints datagrams per second, `flood` sends them until it is
 * ended.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/udp_rates.h"

#define NS_PER_S   UINT64_C(1000000000)
#define NS_PER_MS  UINT64_C(1000000)
/* The first part of a run is not counted. */
#define WARM_UP_NS (100 * NS_PER_MS)
#define RUN_NS	   (400 * NS_PER_MS)
#define END	   UINT64_MAX

/* Whoever has lost the other end, or a datagram of a ping-pong, is ended. */
enum { LIMIT_S = 10 };
enum { SAMPLES_MAX = 1 << 20, CLOCK_EVERY = 256, ENDS = 16 };

static const struct rates_way *way;
static unsigned batch_cnt;

void rates_die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* -- there and back -------------------------------------------------------------- */

static int echo(void)
{
	struct rates_payload data = { .number = 0 };

	say_ready();
	while (data.number != END)
		if (way->receive(&data, 1))
			way->send(&data, 1);
	return 0;
}

static void ask(uint64_t number)
{
	struct rates_payload data = { .number = number };

	way->send(&data, 1);
	do
		while (!way->receive(&data, 1))
			;
	while (data.number != number);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double half(const uint32_t *samples, size_t cnt, double share)
{
	return cnt ? samples[(size_t)((double)(cnt - 1) * share)] / 2.0 : 0;
}

static int ping(void)
{
	static uint32_t samples[SAMPLES_MAX];
	struct rates_payload end = { .number = END };
	uint64_t begin = now_ns(), last = begin, now = begin;
	size_t cnt = 0;

	for (uint64_t number = 0; cnt < SAMPLES_MAX &&
				  now - begin < WARM_UP_NS + RUN_NS; number++) {
		ask(number);
		now = now_ns();
		if (now - begin > WARM_UP_NS)
			samples[cnt++] = (uint32_t)(now - last);
		last = now;
	}
	for (int i = 0; i < ENDS; i++)
		way->send(&end, 1);
	qsort(samples, cnt, sizeof(samples[0]), compare);
	printf("%.0f %.0f %zu\n", half(samples, cnt, 0.5),
	       half(samples, cnt, 0.999), cnt);
	return 0;
}

/* -- one way ----------------------------------------------------------------------- */

/* Receives until `ns` have passed, and returns how many that were. */
static uint64_t count_for(uint64_t ns)
{
	struct rates_payload batch[RATES_BATCH_MAX];
	uint64_t begin = now_ns(), cnt = 0;

	do {
		for (int i = 0; i < CLOCK_EVERY; i++)
			cnt += way->receive(batch, batch_cnt);
	} while (now_ns() - begin < ns);
	return cnt;
}

static int count(void)
{
	struct rates_payload first;
	uint64_t begin, cnt;

	say_ready();
	while (!way->receive(&first, 1))
		;
	count_for(WARM_UP_NS);
	begin = now_ns();
	cnt = count_for(RUN_NS);
	printf("%.0f\n", (double)cnt * 1e9 / (double)(now_ns() - begin));
	return 0;
}

static int flood(void)
{
	struct rates_payload batch[RATES_BATCH_MAX] = { { .number = 0 } };

	do
		way->send(batch, batch_cnt);
	while (++batch[0].number != END);
	return 0;
}

/* -- roles ------------------------------------------------------------------------- */

static int run(const char *role)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} roles[] = {
		{ "echo", echo },
		{ "ping", ping },
		{ "count", count },
		{ "flood", flood },
	};

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(roles[i].name, role) == 0)
			return roles[i].run();
	return 2;
}

static const struct rates_way *find_way(const char *name)
{
	static const struct rates_way *const ways[] = {
		&rates_raw,
		&rates_spin,
		&rates_block,
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i]->name, name) == 0)
			return ways[i];
	return NULL;
}

static bool read_ends(char **args, struct rates_ends *ends)
{
	uint8_t *mac = ends->peer_mac;

	return inet_pton(AF_INET, args[0], &ends->own) == 1 &&
	       inet_pton(AF_INET, args[1], &ends->peer) == 1 &&
	       sscanf(args[2],
		      "%" SCNx8 ":%" SCNx8 ":%" SCNx8 ":%" SCNx8 ":%" SCNx8
		      ":%" SCNx8,
		      &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		      &mac[5]) == 6;
}

int main(int argc, char **argv)
{
	struct rates_ends ends;

	if (argc == 7) {
		way = find_way(argv[1]);
		batch_cnt = (unsigned)atoi(argv[6]);
	}
	if (!way || !batch_cnt || batch_cnt > RATES_BATCH_MAX ||
	    !read_ends(argv + 3, &ends)) {
		fprintf(stderr,
			"usage: %s raw|spin|block echo|ping|count|flood OWN-ADDRESS PEER-ADDRESS PEER-MAC BATCH\n",
			argv[0]);
		return 2;
	}
	alarm(LIMIT_S);
	way->open(&ends);
	return run(argv[2]);
}
