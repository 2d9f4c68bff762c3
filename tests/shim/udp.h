/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scenarios of udp.sh have in common. */
#ifndef SHIM_UDP_H
#define SHIM_UDP_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

struct scenario {
	const char *name;
	void (*run)(void);
	/* datagrams that the kernel carries by right */
	unsigned by_kernel;
};

#define SCENARIO(name, by_kernel) { #name, name, by_kernel }
#define SCENARIO_END { NULL, NULL, 0 }

extern const struct scenario beside_scenarios[];
extern const struct scenario call_scenarios[];
extern const struct scenario option_scenarios[];
extern const struct scenario control_scenarios[];
extern const struct scenario stamp_scenarios[];
extern const struct scenario process_scenarios[];
extern const struct scenario child_scenarios[];
extern const struct scenario ready_scenarios[];
extern const struct scenario length_scenarios[];
extern const struct scenario mux_scenarios[];
extern const struct scenario set_scenarios[];
extern const struct scenario wait_scenarios[];

/* Datagrams that a scenario has received, and those that the kernel has by right, though
 * only over a wire. */
extern unsigned long received_cnt, kernels_cnt;

static inline const char *err(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

/* What a socket binds itself to, and where others reach it: both are loopback's unless
 * a mirror stands somewhere. */
struct sockaddr_in owned(uint16_t port);
struct sockaddr_in heard_at(uint16_t port);
/* To the name by which it is heard, or to no address but that port. */
int bind_as_heard(int fd, const struct sockaddr_in *name);
/* Bound to a free port; where it is heard in *name. */
int bound(struct sockaddr_in *name);
/* The same, with a port that was asked for, which a socket keeps when it is
 * disconnected. */
int bound_by_number(struct sockaddr_in *name);
bool over_wire(void);
/* Returns when what was sent before has arrived, which by loopback it has at once. */
void settle(void);
/* Two sockets that are connected to each other. */
void make_pair(int pair[2]);
void close_pair(const int pair[2]);

long long now_ns(void);

/* Bytes that depend on their place. */
void fill(char *buf, size_t len, unsigned seed);
unsigned sum(const char *buf, size_t len);

/* One datagram, printed. */
ssize_t receive(int fd, int flags);
/* A datagram that the sender leaves to the kernel, in two pieces. NULL: to its peer. */
void send_by_kernel(int fd, const char *text, const struct sockaddr_in *to);

#endif
