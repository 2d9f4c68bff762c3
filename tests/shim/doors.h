/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scenarios of doors.sh have in common. */
#ifndef SHIM_DOORS_H
#define SHIM_DOORS_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

/* In no process, though it is not near 0. */
#define NOWHERE ((void *)-1)

struct door {
	const char *name;
	void (*run)(void);
};

#define SCENARIO(name) { #name, name }
#define SCENARIO_END { NULL, NULL }

extern const struct door handed_doors[];
extern const struct door number_doors[];
extern const struct door reader_doors[];

/* Of this program. */
extern char own_path[4096];

static inline const char *err(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

/* Two sockets of loopback that are connected to each other. */
void make_pair(int pair[2]);
/* A pair of which the first one is accelerated, and has two datagrams: one that was
 * seen by a look, and one that nobody has looked for. */
void make_waiting_pair(int pair[2]);
void close_pair(const int pair[2]);

/* One datagram, printed. */
void receive(int fd, int flags);
/* Whether the socket still hears, and is still the library's where there is one. */
void still_hears(int fd, int from);

/* What a new image does: `cnt` datagrams, each of which it waits for, and no more. */
void read_all(int fd, int cnt);

#endif
