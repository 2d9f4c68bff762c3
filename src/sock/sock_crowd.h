/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that spin on one processor. If there are several, each of them has to give
 * way, or the others wait for the end of its time slice: the one that has something
 * to do among them. There is a count for each processor; high numbers share places,
 * which costs a needless yield. Whoever spins also keeps a processor from those who compute,
 * and had better sleep while there are some.
 */
#ifndef SOCK_SOCK_CROWD_H
#define SOCK_SOCK_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { SOCK_CROWD_PLACES = 64 };

struct sock_crowd_place {
	_Atomic int cnt;
	/* somebody who computes wants the processor; 0: nobody did */
	_Atomic uint64_t wanted_until_ns;
} CACHE_ALIGNED;
extern HIDDEN struct sock_crowd_place sock_crowd[SOCK_CROWD_PLACES];

struct sock_spinner {
	/* where the thread is counted; -1: nowhere */
	int place;
	/* when it has looked last, without a sleep or a handler since; 0: it has not */
	uint64_t looked_ns;
};

/* The thread begins to spin, or goes on with that. Returns whether others do so on its
 * processor. It may have been moved to another one meanwhile. */
bool sock_crowd_is_here(struct sock_spinner *spinner);
/* It sleeps, or runs a handler, or is done. */
void sock_crowd_leave(struct sock_spinner *spinner);
/* The thread looks again at this time. Whether the processor that it is on is wanted by
 * somebody who computes: a thread of ours that spun there, this one or another, has lately
 * been off it for as long as such a one keeps it. */
bool sock_crowd_is_wanted(struct sock_spinner *spinner, uint64_t now_ns);
/* In the child of a fork, which has one thread. */
void sock_crowd_forked(void);

#endif
