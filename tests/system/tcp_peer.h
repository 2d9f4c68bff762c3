/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two ends of tcp_peer share. */
#ifndef TESTS_SYSTEM_TCP_PEER_H
#define TESTS_SYSTEM_TCP_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

/* A stream that can be checked at any place, made block by block. */
struct stream {
	uint64_t state;
	size_t len, left;
};

enum { BLOCK = 16384 };

bool write_all(int fd, const void *buf, size_t len);
/* How much there was until the end, or an error. */
size_t read_all(int fd, void *buf, size_t len);
bool send_stream(int fd, uint64_t seed, size_t len);
bool check_stream(int fd, uint64_t seed, size_t len);
/* Until `rest` is left of it. */
bool send_until(int fd, struct stream *s, size_t rest);
bool check_until(int fd, struct stream *s, size_t rest);

/* One way of a conversation. */
struct give {
	int fd;
	uint64_t seed;
	size_t len;
};
/* For a thread; the argument is a struct give. */
void *give_in_thread(void *arg);

void sleep_ms(int ms);
/* What has been sent is with the peer only when it says so. */
void reset(int fd);
/* Probes a second apart, two of which may be lost. */
void keep_alive(int fd);

/* Serves until the process is killed, or returns why it cannot. */
int serve(const struct sockaddr_in *name);
/* The software card of this process does what is written there, a word in each line. */
bool take_orders(const char *fifo);

#endif
