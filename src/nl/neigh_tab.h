/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's neighbour table as we last heard of it. An entry that the kernel has
 * dropped keeps its address until there is an answer, because the kernel forgets
 * neighbours that it does not talk to, and it is we who talk to them. The code is
 * pure and takes no lock.
 */
#ifndef NL_NEIGH_TAB_H
#define NL_NEIGH_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_tab.h"
#include "base/ipaddr.h"
#include "base/list.h"
#include "nl/link_tab.h"

/* How many dropped neighbours we remember. When there are more, the oldest one is
 * forgotten. */
enum { NEIGH_DROPPED_MAX = 4096 };

struct neigh_info {
	struct ip_addr addr;
	int ifindex;
	/* NUD_ bits as the kernel has them */
	uint16_t state;
	/* 0: not known */
	uint16_t hw_len;
	uint8_t hw_addr[LINK_ADDR_MAX];
};

struct neigh {
	/* state NUD_NONE: the kernel has dropped it */
	struct neigh_info info;
	/* When the kernel was asked to confirm it; 0: not since it last told of it. */
	uint64_t asked_ns;
	uint32_t epoch;
	struct hash_link by_addr;
	/* the known ones, or the dropped ones in the order of their dropping */
	struct list in_tab;
};

/* What to do with a packet for a neighbour. */
enum neigh_advice {
	/* send */
	NEIGH_USABLE,
	/* send, and ask the kernel to confirm (netlink_resolve), unless
	 * neigh_is_asked() */
	NEIGH_CONFIRM,
	/* nothing is known, or an answer is awaited: ask, and keep the packet
	 * meanwhile */
	NEIGH_RESOLVE,
	/* the kernel asked and got no answer; asking again is allowed */
	NEIGH_FAILED,
};

struct neigh_tab {
	struct hash_tab by_addr;
	struct list known;
	struct list dropped;
	unsigned dropped_cnt;
	uint32_t epoch;
};

void neigh_tab_init(struct neigh_tab *tab);
void neigh_tab_destroy(struct neigh_tab *tab);

/* NULL: we have never heard of it. The result is borrowed until the next change. */
const struct neigh *neigh_tab_find(const struct neigh_tab *tab, int ifindex,
				   const struct ip_addr *addr);
/* NULL is allowed. */
enum neigh_advice neigh_advice(const struct neigh *neigh);

/* Whether the kernel has been asked to confirm it and may still be about to: it says nothing
 * before it begins, for which it takes its time (net.ipv4.neigh.*.delay_first_probe_time).
 * That it has begun is news, after which the question may be put again. */
bool neigh_is_asked(const struct neigh *neigh, uint64_t now_ns);
/* It has just been asked. `now_ns` is not 0. */
void neigh_tab_note_asked(struct neigh_tab *tab, int ifindex, const struct ip_addr *addr,
			  uint64_t now_ns);

/* Whether the kernel has told of it since the last neigh_tab_mark(). */
bool neigh_tab_is_met(const struct neigh_tab *tab, const struct neigh_info *info);
/* 1: something that a sender must know has changed (the hardware address, or
 * whether the neighbour can be used), or it has failed, maybe once more. 0: nothing of
 * that kind has changed. Or -ENOMEM. */
int neigh_tab_set(struct neigh_tab *tab, const struct neigh_info *info)
	MUST_CHECK;
/* The kernel dropped it. Returns what neigh_tab_set does; never fails. */
int neigh_tab_drop(struct neigh_tab *tab, int ifindex,
		   const struct ip_addr *addr);
/* Forgets all of a link that is gone. Whether there was any. */
bool neigh_tab_remove_link(struct neigh_tab *tab, int ifindex);

/* Around a new reading of all neighbours. What is not set in between counts as
 * dropped. */
void neigh_tab_mark(struct neigh_tab *tab);
bool neigh_tab_sweep(struct neigh_tab *tab);

#endif
