/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that spin on one processor. If there are several, each of them has to give
 * way, or the others wait for the end of its time slice: the one that has something
 * to do among them. There is a count for each processor; high numbers share places,
 * which costs a needless yield.
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
} CACHE_ALIGNED;
extern HIDDEN struct sock_crowd_place sock_crowd[SOCK_CROWD_PLACES];

/* Where a thread is counted; -1: nowhere. */
struct sock_spinner {
	int place;
};

/* The thread begins to spin, or goes on with that. Returns whether others do so on its
 * processor. It may have been moved to another one meanwhile. */
bool sock_crowd_is_here(struct sock_spinner *spinner);
/* It sleeps, or runs a handler, or is done. */
void sock_crowd_leave(struct sock_spinner *spinner);
/* Whether a processor that our threads spin on is wanted by somebody who computes: one of
 * them, which looked at `looked_ns` (0: not yet) and looks again, has been off its processor
 * for as long as such a one keeps it. It holds for a while, for all threads. */
bool sock_crowd_is_wanted(uint64_t looked_ns, uint64_t now_ns);
/* In the child of a fork, which has one thread. */
void sock_crowd_forked(void);

#endif
