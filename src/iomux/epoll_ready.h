/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is ready in a set, and who is woken. What comes to a socket fires the watches of
 * its endpoint, and so its items: each puts itself on its set's list, and one call is
 * woken, the one that sleeps longest, unless somebody is looking at the set anyway.
 */
#ifndef IOMUX_EPOLL_READY_H
#define IOMUX_EPOLL_READY_H

#include "iomux/epoll_item.h"

/* What epoll_wait was asked. */
struct epoll_query {
	struct epoll_set *set; /* with a reference */
	struct epoll_event *events; /* the program's */
	int cnt;
	/* Names the set. The number that the call was given may be closed meanwhile, or
	 * be another file's; -1: no number is left. */
	int epfd;
};

/* An epoll_wait that waits. */
struct epoll_call {
	struct mux_call call;
	struct list in_sleepers; /* set->lock */
	bool is_counted;         /* in waiting_cnt; set->lock while it sleeps */
	bool is_heir;            /* was woken to take the kernel's watch; likewise */
	struct epoll_query query;
	/* A handler has begun to run in the waiting thread, and something was ready
	 * then. */
	bool is_interrupted, was_ready;
	/* the stacks it sleeps on, but for the first, and when they were read */
	struct stack *more[NET_STACKS_MAX];
	unsigned stacks_gen;
	struct pollfd fds[1 + NET_STACKS_MAX * WAIT_FDS_MAX];
};

/* Stores what our queues have, at most `cnt` events, and returns how many. */
int epoll_set_harvest(struct epoll_set *set, uint64_t look,
		      struct epoll_event *places, int cnt);
/* The same in a look that has stored events already. */
int epoll_set_harvest_more(struct epoll_set *set, uint64_t look,
			   struct epoll_event *places, int cnt);

/* The kernel has reported the item, and that is to stand at `place`: what our queues have
 * for it is part of that. Under set->lock. */
uint32_t epoll_item_join_report(struct epoll_item *item, uint64_t look,
				struct epoll_event *place);

/* Something may be ready that nobody is about to see: wakes the next sleeper. */
void epoll_set_pass_on(struct epoll_set *set);
/* Wakes all of them, for another reason. */
void epoll_set_wake_all(struct epoll_set *set);

/* Begins a look. What arrives until its end wakes nobody, since the look finds it. No
 * handler of the program may run meanwhile. */
static inline void epoll_set_begin_look(struct epoll_set *set)
{
	atomic_fetch_add(&set->looking_cnt, 1);
}

/* What is left is another sleeper's. It has counted itself before something arrived, and
 * what arrived has found us looking. */
static inline void epoll_set_end_look(struct epoll_set *set)
{
	atomic_fetch_sub(&set->looking_cnt, 1);
	if (UNLIKELY(atomic_load(&set->sleeper_cnt)))
		epoll_set_pass_on(set);
}

/* A call begins to wait, and ends that with an event or is abandoned. */
void epoll_set_begin_wait(struct epoll_set *set, struct epoll_call *call);
void epoll_set_end_wait(struct epoll_set *set, struct epoll_call *call);
/* It is about to leave with nothing. False: something has come since it looked, and
 * may have been left to it. It has to look again. */
bool epoll_set_try_end_wait(struct epoll_set *set, struct epoll_call *call);

/* A call is about to sleep, with a waiter in each of the set's stacks. Under the lock of
 * the first one, as the next. True: something may be ready, or has changed. */
bool epoll_set_begin_sleep(struct epoll_set *set, struct epoll_call *call);
/* It sleeps no more. */
void epoll_set_end_sleep(struct epoll_set *set, struct epoll_call *call);
/* It cannot be counted on. */
void epoll_set_pause_sleep(struct epoll_set *set, struct epoll_call *call);

/* Processes what is in the rings of its stacks. */
void epoll_set_poll_rings(struct epoll_set *set);
/* Whether our queues have something that the set would report now. */
bool epoll_set_is_ready(struct epoll_set *set);
/* The same, or something has been ready: for who looks then. Any locks. */
bool epoll_set_may_be_ready(struct epoll_set *set);

/* -- arrivals ----------------------------------------------------------------------- */

/* What the watch of a socket's item does, under the lock of its stack. */
bool epoll_item_fire(struct watch *watch, uint32_t bits);
bool epoll_item_is_level(const struct watch *watch);
/* Something has come to the set that is the member; under the lock of nested sets as
 * well. */
void epoll_item_hear(struct epoll_item *item, struct stack *stack)
	REQUIRES(epoll_nesting);
/* The kernel's set that is the member is about to become ready by itself. */
void epoll_item_foretell_set(struct epoll_item *item) REQUIRES(epoll_nesting);

/* The program has given the item its events: what is there already is reported. Of a
 * socket, under the stack's lock. */
void epoll_item_rouse_ready(struct epoll_item *item);
static inline void epoll_item_rouse_socket(struct epoll_item *item)
{
	if (UNLIKELY(endpoint_ready(item->end)))
		epoll_item_rouse_ready(item);
}
/* Of a set, without a lock. */
void epoll_item_rouse_set(struct epoll_item *item);

#endif
